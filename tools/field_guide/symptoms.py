"""The symptoms of a mistake: the criterion that it fails first, on which example, and how.

All of it is the checks' own verdict. The kinds of symptom are told from what came and what was
expected; the first that fits is the one that the field guide files the mistake under.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np

from attncourse.checks import Exercise, Mistake
from attncourse.checks.callers import dtype_of, repeated, scattered
from attncourse.checks.exercise import Criterion
from attncourse.checks.judging import call_text, first_picture
from attncourse.checks.showing.verdict import Picture
from attncourse.checks.trying.compare import as_numbers, difference
from attncourse.checks.trying.outcome import Unusable
from attncourse.checks.trying.trials import Trial, trials_of
from field_guide.wrong_lines import LISTING_SEED

ARRAYS = re.compile(r"(?s)(.*?)\s*returned( NaN)?:?\n(.*)\nexpected\n(.*)")


@dataclass(frozen=True)
class Example:
    """An example of a mistake: what happens in words, and both results where they are small."""

    criterion: str
    symptom: str
    call: str
    description: str
    texts: tuple[str, str] | None
    picture: Picture | None


def example(exercise: Exercise, mistake: Mistake) -> Example:
    """The smallest case that fails the first criterion that fails; one to draw if there is one."""
    first, failing = first_failure(exercise, mistake)
    drawable = [
        t for t in failing if exercise.picture and not first.unchanged and first_picture((t,))
    ]
    trial = min(drawable or failing, key=count_numbers)
    seen = symptom(trial, first.unchanged)
    drawn = first_picture((trial,)) if drawable else None
    call = call_text(exercise, trial.case)
    description, texts = str(trial.problem or ""), None
    if first.unchanged:
        description = f"changed its argument {trial.outcome.mutated} in place"
    elif arrays := ARRAYS.fullmatch(description):
        description, texts = (
            arrays[1] + ("returned NaN" if arrays[2] else ""),
            (arrays[3], arrays[4]),
        )
    description = description.strip().removesuffix(":")
    return Example(first.name, seen, call, description, None if drawn else texts, drawn)


def first_failure(exercise: Exercise, mistake: Mistake) -> tuple[Criterion, list[Trial]]:
    """The first criterion that fails, with the trials in which it does.

    Later ones are not tried. What fails none of its own fails by an argument that it changed.
    """
    seen: list[Trial] = []
    if mistake.wrong is None:
        raise ValueError(f"{mistake.name} is a family: it has no one wrong implementation")
    trials = trials_of(exercise, mistake.wrong, LISTING_SEED)
    for criterion, criterion_trials in groupby(trials, key=attrgetter("criterion")):
        seen += criterion_trials
        failing = [t for t in seen if t.criterion is criterion and t.problem]
        if failing:
            return criterion, failing
    unchanged = next(criterion for criterion in exercise.criteria if criterion.unchanged)
    return unchanged, [t for t in seen if t.outcome.mutated]


def count_numbers(trial: Trial) -> int:
    """Return how many numbers the arguments of a case hold."""
    values = [*trial.case.args, *trial.case.kwargs.values()]
    return sum(array.size for array in map(as_numbers, values) if array is not None)


# --- symptoms --------------------------------------------------------------------------------


def rows_sum_to_one(array: np.ndarray, axis: int | tuple[int, ...] = -1) -> bool:
    """True if the numbers along an axis sum to 1 everywhere."""
    return bool(np.isclose(array.sum(axis), 1, rtol=0, atol=1e-4).all())


def is_weights_problem(actual: np.ndarray, expected: np.ndarray) -> bool:
    """True if rows that sum to 1 were expected, and rows of some other kind came."""
    alike = (
        actual.ndim == expected.ndim >= 1
        and actual.shape == expected.shape
        and expected.shape[-1] > 1
    )
    return (
        alike
        and rows_sum_to_one(expected)
        and bool((expected >= 0).all())
        and not rows_sum_to_one(actual)
    )


def differs_by_factor(actual: np.ndarray, expected: np.ndarray) -> bool:
    """True if a result is the right one times one factor."""
    is_nonzero = np.abs(expected) > 1e-9
    if (
        actual.shape != expected.shape
        or is_nonzero.sum() < 2
        or np.abs(actual[~is_nonzero]).max(initial=0) > 1e-9
    ):
        return False
    return bool(np.ptp(actual[is_nonzero] / expected[is_nonzero]) < 1e-4)


def in_order(array: np.ndarray) -> np.ndarray:
    """Return an array's numbers from the smallest to the largest."""
    return np.sort(array, axis=None)


Fits = Callable[[np.ndarray, np.ndarray], bool]
NUMBERS: tuple[tuple[str, Fits], ...] = (
    ("NaN or infinity", lambda g, w: bool(np.isfinite(w).all() and not np.isfinite(g).all())),
    ("the wrong shape", lambda g, w: g.shape != w.shape),
    ("a wrong truth value", lambda g, w: g.dtype.kind == w.dtype.kind == "b"),
    (
        "columns sum to 1, not rows",
        lambda g, w: w.ndim == 2 and is_weights_problem(g, w) and rows_sum_to_one(g, -2),
    ),
    (
        "the whole matrix sums to 1, not each row",
        lambda g, w: w.ndim == 2 and is_weights_problem(g, w) and rows_sum_to_one(g, (-2, -1)),
    ),
    ("rows do not sum to 1", is_weights_problem),
    (
        "the transposed result",
        lambda g, w: w.ndim > 1 and g.shape == w.mT.shape and np.allclose(g, w.mT),
    ),
    ("nearly the right numbers", lambda g, w: np.allclose(g, w, rtol=1e-4, atol=1e-6)),
    ("wrong signs", lambda g, w: np.allclose(abs(g), abs(w))),
    ("everything off by one factor", differs_by_factor),
    ("the right numbers in wrong places", lambda g, w: np.allclose(in_order(g), in_order(w))),
    (
        "weight where there should be none",
        lambda g, w: bool(w.ndim > 1 and rows_sum_to_one(w) and (g[w == 0] != 0).any()),
    ),
    ("rows sum to 1, with other weights", lambda g, w: w.ndim > 1 and rows_sum_to_one(w)),
    ("every number too large", lambda g, w: bool((abs(g) >= abs(w) - 1e-9).all())),
    ("every number too small", lambda g, w: bool((abs(g) <= abs(w) + 1e-9).all())),
    ("other numbers of the right shape", lambda g, w: True),
)
OTHERS = (
    "an argument has changed",
    "an exception",
    "another exception than the one asked for",
    "no exception where one is asked for",
    "no answer in time",
    "no gradient",
    "right results, wrong gradients",
    "parameters that are not the ones asked for",
    "random in the wrong way",
    "the wrong type",
    "other tokens",
)
SYMPTOMS = (*(name for name, _ in NUMBERS), *OTHERS)


def symptom(trial: Trial, unchanged: bool = False) -> str:
    """Which of ``SYMPTOMS`` a failing trial shows."""
    outcome, case = trial.outcome, trial.case
    if unchanged:
        return "an argument has changed"
    if outcome.kind in ("hung", "skipped"):
        return "no answer in time"
    if outcome.kind == "raised":
        if case.raises is not None:
            return "another exception than the one asked for"
        if issubclass(outcome.error or Exception, Unusable):
            if "returned shape" in outcome.text:
                return "the wrong shape"
            gradient = "no gradient" in outcome.text
            return "no gradient" if gradient else "parameters that are not the ones asked for"
        return "an exception"
    if case.raises is not None:
        return "no exception where one is asked for"
    if case.use in (repeated, scattered):
        return "random in the wrong way"
    return value_symptom(trial, outcome.value, trial.expected.value)


def value_symptom(trial: Trial, actual: object, expected: object) -> str:
    """Return what a wrong value has to do with the right one, in words."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        key = next(key for key in expected if difference(actual[key], expected[key]))
        if key != next(iter(expected)):
            return "right results, wrong gradients"
        return value_symptom(trial, actual[key], expected[key])
    kind = trial.problem.kind if trial.problem else ""
    if trial.case.use is dtype_of or kind in ("type", "dtype"):
        return "the wrong type"
    if isinstance(expected, list):
        return "other tokens"
    numbers = as_numbers(actual), as_numbers(expected)
    if any(array is None for array in numbers):
        return "the wrong type"
    with np.errstate(all="ignore"):
        return next(name for name, fits in NUMBERS if fits(*numbers))
