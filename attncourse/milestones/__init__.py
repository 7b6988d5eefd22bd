"""Models that run on a student's own parts: one file a milestone, each a script of its own."""

from importlib import import_module

NAMES = ("recall", "dates", "copying", "language", "digits")  # in the course's order


def find(name: str):
    """The milestone called that. Raises ``ValueError`` where there is none."""
    if name not in NAMES:
        raise ValueError(f"no milestone is called {name!r}: expected one of {', '.join(NAMES)}")
    return import_module(f"attncourse.milestones.{name}").MILESTONE
