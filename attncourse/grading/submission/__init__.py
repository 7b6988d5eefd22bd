"""Reading what was handed in, and planning what of it runs where."""
