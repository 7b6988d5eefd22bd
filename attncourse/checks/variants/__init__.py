"""Exercises in other conventions: masks True where forbidden, tokens as columns."""
