"""A symptom: a sentence that says how wrong results differ from the right ones."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from attncourse.checks.exercise import Mistake
from attncourse.checks.trying.trials import Trial


@dataclass(frozen=True)
class Symptom:
    """A sentence on wrong results; ``sure`` if it explains every case, numbers included.

    It is told only if every draw gives the same sentence, so it may contain no drawn number. One
    that is ``of_result`` describes the result, and is told with a place in the code, too. Some
    symptoms show a ``mistake`` that is the same in every exercise. ``all`` says that nothing else
    can be wrong: False where calls raised before they gave a result. One that is ``told_beside`` a
    known mistake is a second mistake; others may be the known one, made in another way. If
    ``shown_by`` holds trials, the example is one of them.
    """

    text: str
    sure: bool
    mistake: Mistake | None = None
    all: bool = True
    of_result: bool = False
    told_beside: bool = True
    shown_by: tuple[Trial, ...] = field(default=(), compare=False)


def result_is(words: str, sure: bool) -> Symptom:
    """Return the symptom "the result is <words>"."""
    return Symptom(f"the result is {words}", sure, of_result=True)


def names_in_words(names: Iterable[str]) -> str:
    """Return names, at least one, joined for a sentence: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
