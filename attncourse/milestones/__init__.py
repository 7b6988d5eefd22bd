"""Models that run on a student's own parts; README.md says which file is what."""

from importlib import import_module

from attncourse import MILESTONES

MILESTONE_NAMES = tuple(MILESTONES.values())  # in the course's order


def as_reached(ours: int) -> str:
    """Say how a milestone was reached, with so many parts of ours."""
    return f"runs, with {ours} of ours" if ours else "is yours"


def find_milestone(name: str):
    """Return the milestone of that name. Raises ``ValueError`` where there is none."""
    if name not in MILESTONE_NAMES:
        raise ValueError(
            f"no milestone is called {name!r}: expected one of {', '.join(MILESTONE_NAMES)}"
        )
    return import_module(f"attncourse.milestones.{name}").MILESTONE
