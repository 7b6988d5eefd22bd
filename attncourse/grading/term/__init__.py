"""The life of a course: people leave, gradebooks move, terms end."""
