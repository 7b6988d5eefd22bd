"""The exercises of chapter 10."""

EXERCISES = ()
