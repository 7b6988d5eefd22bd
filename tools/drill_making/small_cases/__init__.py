"""Small cases, written by hand, for the examples of drills.

The checks' cases are made to tell mistakes apart: models of three heads, random weights. Nobody
computes with these. Here are cases of the same exercises with one head, two tokens, few whole
weights. They are no part of a check: a chapter's module has ``CASES``, by exercise.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

from attncourse.checks import Exercise
from attncourse.checks.exercise import Case, Criterion

SMALL_CASE_CRITERION = "a small case for an example"


@cache
def with_small_cases(exercise: Exercise, right: Callable) -> Exercise | None:
    """Return the exercise with small cases in the place of its own; None where it has none.

    What should come is what ``right`` makes of them, a drill's own right code: where numbers are
    drawn, another right answer may draw others.
    """
    cases = small_cases_of(exercise.stem).get(exercise.target)
    if not cases:
        return None
    return replace(
        exercise, reference=right, criteria=(Criterion(SMALL_CASE_CRITERION, 1, lambda rng: cases),)
    )


@cache
def small_cases_of(stem: str) -> dict[str, Sequence[Case]]:
    """Return a chapter's small cases by exercise."""
    name = f"{__name__}.{stem}"
    if find_spec(name) is None:
        return {}
    makers: dict[str, Callable[[], Sequence[Case]]] = importlib.import_module(name).CASES
    return {target: tuple(make()) for target, make in makers.items()}
