"""A student's own notebooks: checked, counted, put together. Nothing here gives a grade."""
