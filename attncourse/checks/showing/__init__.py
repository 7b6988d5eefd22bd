"""Showing a student the verdict, as text and in a notebook, and the table at the notebook's end."""
