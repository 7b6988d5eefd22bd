"""The exercises of chapter 9."""

EXERCISES = ()
