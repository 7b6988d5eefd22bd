"""The exercises of chapter 8."""

EXERCISES = ()
