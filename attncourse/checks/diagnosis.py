"""Which of the usual mistakes an implementation makes, told by what it does."""

import re
from functools import lru_cache

import numpy as np

from attncourse.checks.compare import as_numbers, difference
from attncourse.checks.exercise import Exercise, Misconception
from attncourse.checks.outcome import Outcome
from attncourse.checks.trials import Trial, try_out


def diagnose(exercise: Exercise, trials: tuple[Trial, ...], seed: int) -> Misconception | None:
    """The misconception that does what the implementation did, or None.

    A misconception's outcomes are compared with the implementation's wherever either is wrong.
    Agreement on wrong random numbers does not come about by chance, so a third of the cases is
    enough when some of them agree in that way (a second mistake may blur the rest); agreement
    on NaN, on exceptions or on truth values proves little, so there all must agree.
    """
    best, best_score = None, 0.0
    for misconception, made in mistakes(exercise, seed):
        score = likeness(trials, made)
        if score > best_score:
            best, best_score = misconception, score
    return best


def likeness(trials: tuple[Trial, ...], made: tuple[Trial, ...]) -> float:
    """How far the implementation did what made ``made``: 0 for not, 1 for exactly."""
    looked_at = agreed = telling = 0
    for trial, other in zip(trials, made, strict=True):
        if not (trial.problem or trial.outcome.mutated or other.problem or other.outcome.mutated):
            continue
        looked_at += 1
        if same(trial.outcome, other.outcome):
            agreed += 1
            telling += tells(trial)
    if not looked_at or not agreed:
        return 0.0
    score = agreed / looked_at
    return score if score == 1 or (telling and score >= 1 / 3) else 0.0


def same(a: Outcome, b: Outcome) -> bool:
    """Whether two calls did the same."""
    if a.kind != b.kind or a.mutated != b.mutated:
        return False
    if a.kind == "raised":
        return a.error is b.error and without_numbers(a.text) == without_numbers(b.text)
    if a.kind == "value":
        if a.value is None or b.value is None:
            return a.value is b.value
        return difference(a.value, b.value) is None
    return a.kind == "hung"


def without_numbers(text: str) -> str:
    """An error's message without sizes and without the line that raised it."""
    return re.sub(r"\d+", "#", text.split(" (in the line")[0])


def tells(trial: Trial) -> bool:
    """Whether an outcome is a wrong value that nobody returns by chance."""
    if trial.outcome.kind != "value" or not trial.problem:
        return False
    value = trial.outcome.value
    if isinstance(value, dict):
        value = next(iter(value.values()), None)
    if isinstance(value, list | tuple):
        return len(value) > 2
    array = as_numbers(value) if value is not None else None
    if array is None or array.dtype.kind != "f":
        return False
    distinct = np.unique(array[np.isfinite(array)]).size
    return distinct > 2 or (distinct == 2 and array.size >= 12)


@lru_cache(maxsize=8)
def mistakes(exercise: Exercise, seed: int) -> tuple[tuple[Misconception, tuple[Trial, ...]], ...]:
    """Each misconception with what it does on the cases."""
    return tuple((m, try_out(exercise, m.wrong, seed)) for m in exercise.misconceptions)
