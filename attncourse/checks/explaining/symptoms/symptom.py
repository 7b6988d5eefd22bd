"""A sentence that says what a wrong result has to do with the right one."""

from collections.abc import Iterable
from dataclasses import dataclass

from attncourse.checks.exercise import Mistake


@dataclass(frozen=True)
class Symptom:
    """A sentence; ``sure`` if it explains every case, numbers and all.

    Some symptoms leave no doubt about the mistake, in whatever exercise; it need not be ``all``.
    """

    text: str
    sure: bool
    mistake: Mistake | None = None
    all: bool = True


def listed(names: Iterable[str]) -> str:
    """Names in a sentence: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
