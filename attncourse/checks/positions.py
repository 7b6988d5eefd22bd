"""The exercises of chapter 11."""

EXERCISES = ()
