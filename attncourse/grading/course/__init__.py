"""A course on disk: its settings and assignments, who handed in what, when, what was released."""
