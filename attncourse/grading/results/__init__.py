"""A class's results: the report at a glance, and exports for other platforms."""
