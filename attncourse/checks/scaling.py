"""The exercises of chapter 7."""

EXERCISES = ()
