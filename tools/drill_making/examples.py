"""The example of a drill: a small input, what the code makes of it, and what it should make."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from attncourse.checks import Exercise
from attncourse.checks.exercise import Case
from attncourse.checks.judging import value_as_typed
from attncourse.checks.trying.compare import as_numbers, is_array
from attncourse.checks.trying.outcome import named_arguments, run
from attncourse.checks.trying.trials import Trial

MOST_NUMBERS = 30  # of an array that is shown
TELLING = 4  # numbers of a result, of which fewer fit many mistakes
DIGITS = (4, 6, 9)  # of a number: as few as show that a result is wrong
NOTHING = 1e-12  # beside 1, a number that only rounding has made
MOST_PARTS = 4  # of several results
LONGEST_TEXT = 160
TWIN = 40.0  # the effort that a wrong name with the same result is worth
MOST_COMPUTED = 6  # cases that are computed again, those that are read most quickly
COMPUTED = 0.02  # how far a result may be off that is computed with what is shown
UNSEEN = 120.0  # that of an argument whose numbers are not shown, so that nobody can compute
MOST_WEIGHTS = 8  # of a module's arrays: an attention's, with biases
UNSHOWN = "weights drawn at random"  # the note of a module of which none are shown
NO_TWINS: Mapping[int, int] = MappingProxyType({})


def example_place(
    exercise: Exercise,
    trials: tuple[Trial, ...],
    twins: Mapping[int, int] = NO_TWINS,
    implementation: Callable | None = None,
) -> int | None:
    """Return the place of the failing case that is read most quickly; None where none can be.

    ``twins`` says in which cases how many of the wrong names give the very result that came: such
    a case does not show which of them is right. Of an ``implementation``, the wrong code, one of
    the first cases is taken in which the numbers that are shown give the results that are shown.
    """
    failing = sorted(
        (reading_effort(exercise, t) + TWIN * twins.get(i, 0), i)
        for i, t in enumerate(trials)
        if t.stands_out and t.outcome.kind in ("value", "raised")
    )
    places = [place for effort, place in failing if math.isfinite(effort)]
    if implementation is not None:
        for place in places[:MOST_COMPUTED]:
            if can_be_computed(exercise, trials[place], implementation):
                return place
    return places[0] if places else None


def can_be_computed(exercise: Exercise, trial: Trial, implementation: Callable) -> bool:
    """True if both results come out of the arguments as they are shown, with their few digits."""
    case = case_as_shown(trial.case)
    for function, outcome in (
        (exercise.reference, trial.expected),
        (implementation, trial.outcome),
    ):
        again = run(exercise, function, case, watched=False)
        if again.kind != outcome.kind:
            return False
        numbers, others = as_numbers(again.value), as_numbers(outcome.value)
        if numbers is None or others is None:
            continue
        if numbers.shape != others.shape:
            return False
        if not np.allclose(numbers, others, rtol=COMPUTED, atol=COMPUTED, equal_nan=True):
            return False
    return True


def case_as_shown(case: Case) -> Case:
    """Return a case with the digits of its arrays that are shown."""
    args = tuple(array_as_shown(value) for value in case.args)
    kwargs = {name: array_as_shown(value) for name, value in case.kwargs.items()}
    return replace(case, args=args, kwargs=kwargs)


def array_as_shown(value: Any) -> Any:
    """Return an array of the digits that are shown; anything else as it is."""
    if not is_array(value) or "float" not in str(value.dtype):
        return value
    rounded = value.detach().clone() if hasattr(value, "detach") else value.copy()
    for place in np.ndindex(tuple(value.shape)):
        rounded[place] = float(f"{float(value[place]):.{DIGITS[0]}g}")
    return rounded.requires_grad_() if getattr(value, "requires_grad", False) else rounded


def reading_effort(exercise: Exercise, trial: Trial) -> float:
    """How much there is to read in a case: fewer numbers, whole ones, one result."""
    given = [v for _, v in named_arguments(exercise, trial.case)]
    arrays = [numbers for v in given if is_array(v) and (numbers := as_numbers(v)) is not None]
    effort = float(sum(a.size for a in arrays))
    effort += 4 * len(arrays)
    effort += UNSEEN * (
        sum(a.size > MOST_NUMBERS for a in arrays)
        + sum(any(is_array(part) for part in v) for v in given if isinstance(v, tuple | list))
    )
    if any(a.size and (a != np.round(a)).any() for a in arrays if np.isfinite(a).all()):
        effort += 30
    for value in (trial.outcome.value, trial.expected.value):
        if isinstance(value, dict):
            effort += 200
        elif isinstance(value, tuple | list):
            effort += 20
        elif is_array(value) and (numbers := as_numbers(value)) is not None:
            effort += numbers.size
            if numbers.size > MOST_NUMBERS:
                effort += 300
            elif 0 < numbers.size < TELLING:
                effort += 20
    if trial.outcome.kind == "raised":
        effort += 15
    if looks_right(trial):
        effort += 400
    return effort


def looks_right(trial: Trial) -> bool:
    """True if what is written down of a result is the same for the right one."""
    if trial.outcome.kind != "value" or trial.outcome.mutated or trial.case.raises:
        return False
    digits = digits_needed(trial)
    return shown(trial.outcome.value, digits) == shown(trial.expected.value, digits)


def digits_needed(trial: Trial) -> int:
    """How many digits show that a result is another one than the right one."""
    for digits in DIGITS:
        if shown(trial.outcome.value, digits) != shown(trial.expected.value, digits):
            return digits
    return DIGITS[0]


def example_of(exercise: Exercise, trial: Trial) -> dict[str, Any]:
    """Return the example in the form in which drills are kept."""
    case = trial.case
    named = named_arguments(exercise, case)
    typed = [n if is_array(v) else f"{n}={value_as_typed(v)}" for n, v in named]
    example = {
        "call": case.shown or f"{exercise.name}({', '.join(typed)})",
        "note": case.note,
        "inputs": [{"name": n, "value": shown(v)} for n, v in named if is_array(v)],
        "got": outcome_shown(trial),
        "want": expected_shown(trial),
    }
    return without_weights(example)


def without_weights(example: dict[str, Any]) -> dict[str, Any]:
    """Return an example without a module's weights where they are many, or some cannot be shown.

    Nobody computes with them then, and they hide what can be compared.
    """
    weights = [one for one in example["inputs"] if "." in one["name"]]
    all_shown = not any(isinstance(one["value"], dict) for one in weights)
    if all_shown and len(weights) <= MOST_WEIGHTS:
        return example
    note = f"{example['note']}; {UNSHOWN}" if example["note"] else UNSHOWN
    others = [one for one in example["inputs"] if one not in weights]
    return example | {"inputs": others, "note": note}


def expected_shown(trial: Trial) -> Any:
    """What should come out of a case, or the error that it should raise."""
    if trial.case.raises is not None:
        return {"raised": trial.case.raises.__name__}
    return shown(trial.expected.value, digits_needed(trial))


def outcome_shown(trial: Trial) -> Any:
    """What came out of a case, or what happened instead."""
    if trial.outcome.kind == "raised":
        return {"raised": shorter_text(trial.outcome.text.splitlines()[0])}
    if trial.outcome.mutated and not trial.wrong:
        return {"changed": trial.outcome.mutated}
    if looks_right(trial):  # another dtype, or numbers that are too many to show
        said = trial.problem.said if trial.problem else "another result"
        return {"text": shorter_text(said)}
    return shown(trial.outcome.value, digits_needed(trial))


def shorter_text(text: str) -> str:
    """Return a text, cut where it is too long to show."""
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 2] + " …"


def shown(value: Any, digits: int = DIGITS[0]) -> Any:
    """A value as it is kept: numbers of a few digits, large arrays by their shape."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int | float | np.number):
        return number_shown(value, digits)
    if is_array(value):
        return array_shown(value, digits)
    if isinstance(value, dict):
        parts = [{"name": str(name), "value": shown(part, digits)} for name, part in value.items()]
        return {"parts": parts}
    if isinstance(value, tuple | list):
        plain = all(isinstance(part, bool | int | float | str) for part in value)
        if plain and len(value) <= MOST_NUMBERS:
            return [shown(part, digits) for part in value]
        return {"parts": [shown(part, digits) for part in value[:MOST_PARTS]]}
    return {"text": shorter_text(value_as_typed(value))}


def array_shown(value: Any, digits: int) -> Any:
    """Return an array as nested lists of numbers, or its shape where it is large."""
    array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    if array.size > MOST_NUMBERS or not array.size:
        return {"shape": list(array.shape)}
    if array.dtype == bool or array.dtype.kind in "US":
        return array.tolist()

    def entry(part: Any) -> Any:
        if isinstance(part, list):
            return [entry(one) for one in part]
        return number_shown(part, digits)

    return entry(array.astype(float).tolist())


def number_shown(number: Any, digits: int) -> Any:
    """Return a number of a few digits; what rounding left of 0 is 0, what JSON lacks a word."""
    value = float(number)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) < NOTHING:
        return 0
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e6 else rounded
