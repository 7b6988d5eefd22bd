"""Arguments that an answer does not use, although the right result depends on them.

In a wrong case one argument is exchanged for that of another draw, so that the right result
changes. If the answer's result never does, in several tries, it does not use the argument.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from attncourse.checks.exercise import Case, Exercise
from attncourse.checks.trying.asking import bring_back_changes
from attncourse.checks.trying.compare import as_numbers, difference
from attncourse.checks.trying.outcome import Outcome, is_unchanged, named_arguments, run
from attncourse.checks.trying.trials import N_FURTHER_DRAWS, ReferenceOutcome, Trial, draw

MAX_CALLS_PER_ARGUMENT = 12  # after which it counts as not used
MIN_CALLS_PER_ARGUMENT = 3
MAX_ARGUMENTS = 6  # of a case that is tried: a model has dozens of weights


def ignored_arguments(
    exercise: Exercise, implementation: Callable, trials: tuple[Trial, ...], seed: int
) -> list[str]:
    """Return the names of the arguments that an answer does not use; [] after a call that hangs."""
    votes: dict[str, list[bool]] = {}
    for number, trial in enumerate(trials):
        if not is_comparable(trial):
            continue
        names = [name for name, _ in named_arguments(exercise, trial.case)]
        for key, case in exchanged_cases(exercise, number, trial, seed):
            name = names[key] if isinstance(key, int) else key
            votes_of_name = votes.setdefault(name, [])
            if len(votes_of_name) < MAX_CALLS_PER_ARGUMENT and False not in votes_of_name:
                with bring_back_changes():
                    outcome = run(exercise, implementation, case)
                if outcome.kind == "hung":
                    return []  # the answer may not be called any more
                votes_of_name.append(same_numbers(outcome, trial.outcome))
    return [
        name
        for name, votes_of_name in votes.items()
        if len(votes_of_name) >= MIN_CALLS_PER_ARGUMENT and all(votes_of_name)
    ]


def is_comparable(trial: Trial) -> bool:
    """True if a trial returned a wrong array without NaN, and its call has few arguments."""
    if not trial.wrong or trial.expected.kind != "value" or trial.outcome.kind != "value":
        return False
    few = len(trial.case.args) + len(trial.case.kwargs) <= MAX_ARGUMENTS
    return few and as_numbers(trial.expected.value) is not None and not has_nan(trial.outcome.value)


def has_nan(value: Any) -> bool:
    """True if a result contains NaN, which stays NaN whatever the other arguments are."""
    array = as_numbers(value)
    return array is not None and array.dtype.kind == "f" and bool(np.isnan(array).any())


def exchanged_cases(
    exercise: Exercise, number: int, trial: Trial, seed: int
) -> Iterator[tuple[int | str, Case]]:
    """Yield cases with one argument exchanged that have another right result.

    Before each comes the argument's place, or its keyword. ``number`` is the trial's place in the
    draw: the new value is that of the case at the same place of another draw.
    """
    case = trial.case
    for offset in range(1, 1 + N_FURTHER_DRAWS):
        others = draw(exercise, seed + offset)
        other_case = others[min(number, len(others) - 1)][1]
        pairs = [*enumerate(zip(case.args, other_case.args, strict=False))]
        pairs += [(key, (value, other_case.kwargs.get(key))) for key, value in case.kwargs.items()]
        for key, (value, new) in pairs:
            if not is_exchangeable(value, new):
                continue
            changed = case_with_argument(case, key, new)
            right = run(exercise, exercise.reference, changed)
            if right.kind == "value" and not same_numbers(right, trial.expected):
                yield key, changed


def case_with_argument(case: Case, key: int | str, new: Any) -> Case:
    """Return the case with a new value for the argument at a place, or with a keyword."""
    if isinstance(key, str):
        return replace(case, kwargs={**case.kwargs, key: new})
    return replace(case, args=(*case.args[:key], new, *case.args[key + 1 :]))


def is_exchangeable(value: Any, new: Any) -> bool:
    """True if two values have one type and one shape, differ, and are no functions."""
    is_same_kind = type(value) is type(new) and getattr(value, "shape", ()) == getattr(
        new, "shape", ()
    )
    return (
        is_same_kind and value is not None and not callable(value) and not is_unchanged(value, new)
    )


def same_numbers(a: Outcome, b: Outcome | ReferenceOutcome) -> bool:
    """True if two calls returned the same numbers."""
    if a.kind != "value" or b.kind != "value" or as_numbers(b.value) is None:
        return False
    return difference(a.value, b.value, brief=True) is None
