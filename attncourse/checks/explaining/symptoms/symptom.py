"""A sentence that says what a wrong result has to do with the right one."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from attncourse.checks.exercise import Mistake
from attncourse.checks.trying.trials import Trial


@dataclass(frozen=True)
class Symptom:
    """A sentence; ``sure`` if it explains every case, numbers and all.

    It is told only if every draw gives the same sentence: so no number that is drawn is in it. One
    ``of_result`` is told together with a place in the code, which does not say what came out.
    Some symptoms leave no doubt about the mistake, in whatever exercise. It is ``all`` where
    nothing else is wrong with what came: not where a call ended before it gave anything. One that
    is ``told_beside`` a known mistake is a second one; others may be what the known one does where
    it is made in another way. An example is one of the trials that it is ``shown_by``, if any.
    """

    text: str
    sure: bool
    mistake: Mistake | None = None
    all: bool = True
    of_result: bool = False
    told_beside: bool = True
    shown_by: tuple[Trial, ...] = field(default=(), compare=False)


def result_is(words: str, sure: bool) -> Symptom:
    """Return the symptom that says what the result is."""
    return Symptom(f"the result is {words}", sure, of_result=True)


def names_in_words(names: Iterable[str]) -> str:
    """Return names in a sentence: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
