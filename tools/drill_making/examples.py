"""The example of a drill: a small input, what the code makes of it, and what it should make."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from drill_pages.markup import numbers_of_value, reads_the_same

from attncourse.checks import Exercise
from attncourse.checks.exercise import Case, Criterion
from attncourse.checks.judging import value_as_typed
from attncourse.checks.trying.compare import as_numbers, is_array
from attncourse.checks.trying.outcome import named_arguments, run
from attncourse.checks.trying.trials import Trial
from attncourse.practice.drills import DrillExample
from drill_making.small_cases import SMALL_CASE_CRITERION

MAX_NUMBERS_SHOWN = 30  # of an array that is shown
MIN_TELLING_NUMBERS = 4  # numbers of a result, of which fewer fit many mistakes
DIGITS_TRIED = (4, 6, 9)  # of a number: as few as show that a result is wrong
LARGEST_WHOLE_NUMBER = 1e9  # below it a whole number is shown whole
ROUNDING_ERROR = 1e-12  # beside 1, a number that only rounding has made
MAX_PARTS = 4  # of several results
MAX_TEXT_LENGTH = 160
COMPUTED_TOLERANCE = 0.02  # how far a result may be off that is computed with what is shown
# The effort of an argument whose numbers are not shown, so that nobody can compute
EFFORT_PER_HIDDEN_ARRAY = 120.0
MAX_WEIGHTS = 8  # of a module's arrays: an attention's, with biases
HIDDEN_WEIGHTS_NOTE = "weights drawn at random"  # the note of a module of which none are shown
MAX_UNEVEN_NUMBERS = 44  # numbers of an example's inputs that are not whole
EFFORT_OF_TRUTH_VALUE = 50  # the effort that is worth more than True or False alone
MAX_CALL_LENGTH = 160  # characters
RESULT_IN_WORDS = re.compile(r"\bat \[[\d, ]*\] returned\b")  # of a result that is told, not shown
ROUNDED_SHARES_NOTE = re.compile(r"\bin sixths\b")
DTYPE_NOTE = re.compile(r"(u?int|b?float)\d+|bool")


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
        if not np.allclose(
            numbers, others, rtol=COMPUTED_TOLERANCE, atol=COMPUTED_TOLERANCE, equal_nan=True
        ):
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
        rounded[place] = float(f"{float(value[place]):.{DIGITS_TRIED[0]}g}")
    return rounded.requires_grad_() if getattr(value, "requires_grad", False) else rounded


def reading_effort(exercise: Exercise, trial: Trial) -> float:
    """Return how much there is to read in a case: least for few whole numbers and one result."""
    arguments = [v for _, v in arguments_shown(exercise, trial.criterion, trial.case)]
    arrays = [numbers for v in arguments if is_array(v) and (numbers := as_numbers(v)) is not None]
    effort = float(sum(a.size for a in arrays))
    effort += 4 * len(arrays)
    effort += EFFORT_PER_HIDDEN_ARRAY * (
        sum(a.size > MAX_NUMBERS_SHOWN for a in arrays)
        + sum(any(is_array(part) for part in v) for v in arguments if isinstance(v, tuple | list))
    )
    effort += sum(len(v) for v in arguments if isinstance(v, list | tuple | dict))
    if any(a.size and (a != np.round(a)).any() for a in arrays if np.isfinite(a).all()):
        effort += 30
    for value in (trial.outcome.value, trial.expected.value):
        if isinstance(value, dict):
            effort += 200
        elif isinstance(value, tuple | list):
            effort += 20
        elif isinstance(value, bool | np.bool_):
            effort += EFFORT_OF_TRUTH_VALUE
        elif is_array(value) and (numbers := as_numbers(value)) is not None:
            effort += numbers.size
            if numbers.size > MAX_NUMBERS_SHOWN:
                effort += 300
            elif 0 < numbers.size < MIN_TELLING_NUMBERS:
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
    return value_shown(trial.outcome.value, digits) == value_shown(trial.expected.value, digits)


def digits_needed(trial: Trial) -> int:
    """Return how many digits show that a result differs from the right one."""
    for digits in DIGITS_TRIED:
        if value_shown(trial.outcome.value, digits) != value_shown(trial.expected.value, digits):
            return digits
    return DIGITS_TRIED[0]


def example_of(exercise: Exercise, trial: Trial) -> dict[str, Any]:
    """Return the example in the form in which drills are kept."""
    return question_of(exercise, trial.criterion, trial.case) | {
        "got": outcome_shown(trial),
        "want": expected_shown(trial),
    }


def question_of(exercise: Exercise, criterion: Criterion, case: Case) -> dict[str, Any]:
    """Return what an example shows of a case before anything is called."""
    named = arguments_shown(exercise, criterion, case)
    question = {
        "call": case.shown or f"{exercise.name}({', '.join(arguments_as_typed(named))})",
        "note": f"arrays of {case.note}" if DTYPE_NOTE.fullmatch(case.note) else case.note,
        "inputs": [{"name": n, "value": value_shown(v)} for n, v in named if is_array(v)],
    }
    return without_weights(question)


def arguments_shown(exercise: Exercise, criterion: Criterion, case: Case) -> list[tuple[str, Any]]:
    """Return a case's arguments with their names; a small case's note may say the weights."""
    named = named_arguments(exercise, case)
    is_told = criterion.name == SMALL_CASE_CRITERION and bool(case.note)
    return [(n, v) for n, v in named if not (is_told and "." in n)]


def arguments_as_typed(named: Sequence[tuple[str, Any]]) -> list[str]:
    """Return arguments as a call has them: behind the first with a name all have theirs."""
    typed: list[str] = []
    for name, value in named:
        if not is_array(value):
            typed.append(f"{name}={value_as_typed(value)}")
        else:
            typed.append(f"{name}={name}" if any("=" in argument for argument in typed) else name)
    return typed


def example_problem(example: DrillExample) -> str:
    """Return why nobody can follow an example, in words; empty where one can."""
    values = [*(shown_input["value"] for shown_input in example.inputs), example.got, example.want]
    if RESULT_IN_WORDS.search(str(example.got)):
        return "its result is told, not shown"
    if any(is_shape_alone(value) for value in values):
        return "an array is shown by its shape alone"
    if (
        sum(
            n != round(n)
            for n in numbers_of_value([shown_input["value"] for shown_input in example.inputs])
        )
        > MAX_UNEVEN_NUMBERS
    ):
        return "nobody computes with so many numbers"
    if HIDDEN_WEIGHTS_NOTE in example.note:
        return "its weights are not shown"
    if ROUNDED_SHARES_NOTE.search(example.note):
        return "its shares are rounded, so that they need not sum to the whole"
    if reads_the_same(example):
        return "both its results read the same"
    if len(example.call) > MAX_CALL_LENGTH:
        return "its call is too long"
    if not is_call(example.call):
        return "its call is no Python"
    return ""


def is_shape_alone(value: Any) -> bool:
    """True if an array, or one of several, is too large to be shown."""
    if isinstance(value, dict):
        return "shape" in value or any(map(is_shape_alone, [*value.values()]))
    return isinstance(value, list) and any(isinstance(v, dict) and is_shape_alone(v) for v in value)


def is_call(text: str) -> bool:
    """True if the call in a text can be read by Python; words may stand before and behind it."""
    head = re.search(r"[\w.]+\(", text)
    if head is None:
        return False
    for end in (m.end() for m in re.finditer(r"\)", text)):
        code = text[head.start() : end]
        if code.count("(") == code.count(")"):
            try:
                ast.parse(code, mode="eval")
            except SyntaxError:
                return False
            return True
    return False


def without_weights(example: dict[str, Any]) -> dict[str, Any]:
    """Return an example without a module's weights where they are many, or some cannot be shown.

    Nobody computes with them then, and they hide what can be compared.
    """
    weights = [shown_input for shown_input in example["inputs"] if "." in shown_input["name"]]
    all_shown = not any(isinstance(shown_input["value"], dict) for shown_input in weights)
    if all_shown and len(weights) <= MAX_WEIGHTS:
        return example
    note = f"{example['note']}; {HIDDEN_WEIGHTS_NOTE}" if example["note"] else HIDDEN_WEIGHTS_NOTE
    others = [shown_input for shown_input in example["inputs"] if shown_input not in weights]
    return example | {"inputs": others, "note": note}


def expected_shown(trial: Trial) -> Any:
    """Return the right result of a case as it is shown, or the error that it should raise."""
    if trial.case.raises is not None:
        return {"raised": trial.case.raises.__name__}
    return value_shown(trial.expected.value, digits_needed(trial))


def outcome_shown(trial: Trial) -> Any:
    """Return the result of a case as it is shown, or what happened instead."""
    if trial.outcome.kind == "raised":
        words = trial.outcome.text.splitlines()[0].partition(" (in the line `")[0]
        return {"raised": shorter_text(words)}
    if trial.outcome.mutated and not trial.wrong:
        return {"changed": trial.outcome.mutated}
    if looks_right(trial):  # another dtype, or numbers that are too many to show
        words = trial.problem.said if trial.problem else "another result"
        return {"text": shorter_text(words)}
    return value_shown(trial.outcome.value, digits_needed(trial))


def shorter_text(text: str) -> str:
    """Return a text, cut where it is too long to show."""
    return text if len(text) <= MAX_TEXT_LENGTH else text[: MAX_TEXT_LENGTH - 2] + " …"


def value_shown(value: Any, digits: int = DIGITS_TRIED[0]) -> Any:
    """Return a value as drills keep it: numbers of a few digits, large arrays by their shape."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int | float | np.number):
        return number_shown(value, digits)
    if is_array(value):
        return array_shown(value, digits)
    if isinstance(value, dict):
        parts = [
            {"name": str(name), "value": value_shown(part, digits)} for name, part in value.items()
        ]
        return {"parts": parts}
    if isinstance(value, tuple | list):
        plain = all(isinstance(part, bool | int | float | str) for part in value)
        if plain and len(value) <= MAX_NUMBERS_SHOWN:
            return [value_shown(part, digits) for part in value]
        return {"parts": [value_shown(part, digits) for part in value[:MAX_PARTS]]}
    return {"text": shorter_text(value_as_typed(value))}


def array_shown(value: Any, digits: int) -> Any:
    """Return an array as nested lists of numbers, or its shape where it is large."""
    array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    if array.size > MAX_NUMBERS_SHOWN or not array.size:
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
    if value == round(value) and abs(value) < LARGEST_WHOLE_NUMBER:
        return int(value)
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) < ROUNDING_ERROR:
        return 0
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e6 else rounded
