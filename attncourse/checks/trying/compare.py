"""Comparing a returned value with the expected one."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attncourse.checks.trying.outcome import is_tensor

# Relative to the largest expected entry. In float64 an error of 1e-7 shows and a guard of 1e-12
# in a denominator does not; in float32 a few hundred roundings are allowed, in float16 a few.
TOLERANCES = {"float64": 1e-9, "float32": 2e-5, "float16": 8e-3}
MAX_NUMBERS_WRITTEN_OUT = 16  # numbers that are quicker read than described
ROUNDING_DIFFERENCE = 1e-5  # relative differences below this come of rounding


@dataclass(frozen=True)
class Problem:
    """A difference between a result and the expected one.

    ``said`` is one line; ``detail`` says it at length where there is room, or is "".

    ``kind`` is "type", "shape", "dtype", "value", "nan" or "precision"; where the call returned
    nothing that can be compared, "raised", "unfinished", "unwritten" or "unusable".
    """

    kind: str
    said: str
    detail: str = ""

    def __str__(self) -> str:
        """Return the detail, or the one line where there is none."""
        return self.detail or self.said

    def in_part(self, part: str) -> "Problem":
        """Return the problem with the name of the part of the result in front: ``part: …``."""
        detail = f"{part}: {self.detail}" if self.detail else ""
        return Problem(self.kind, f"{part}: {self.said}", detail)


OTHER_NUMBERS = Problem("value", "returned other numbers")


def difference(value: Any, expected: Any, *, brief: bool = False) -> Problem | None:
    """Return what is wrong with ``value``, in words a student can act on; None where it is right.

    ``brief`` is for callers who only ask whether it is wrong: numbers are not put into words.

    A NumPy answer may also come as a tensor or, for a single number, as a Python float. Torch
    answers are tensors that keep the expected dtype. Strings, truth values and lists of strings
    compare exactly; tuples and dicts entry by entry.
    """
    if expected is None:  # an answer is compared with a known mistake, which returned None
        return None if value is None else problem_of_type(value, "None")
    if value is None:
        return Problem("type", "returned None: is a return missing?")
    if isinstance(expected, bool | np.bool_):
        return exact_difference(as_truth(value), bool(expected), "True or False")
    if isinstance(expected, str):
        if not isinstance(value, str):
            return problem_of_type(value, "a str")
        return exact_difference(value, expected, "a str")
    if isinstance(expected, dict):
        return entries_difference(value, expected, brief)
    if isinstance(expected, list | tuple) and all(isinstance(item, str | int) for item in expected):
        if not isinstance(value, list | tuple):
            return problem_of_type(value, "a list")
        return exact_difference(list(value), list(expected), "a list")
    if isinstance(expected, list | tuple):
        return items_difference(value, expected, brief)
    if is_tensor(expected):
        if not is_tensor(value):
            return problem_of_type(value, "a torch tensor")
        is_same_dtype = value.dtype == expected.dtype or is_unexpected_nan(value, expected)
        if not is_same_dtype and tuple(value.shape) == tuple(expected.shape):
            like = " like the input" if "float" in dtype_name(expected) else ""
            sentence = f"returned dtype {dtype_name(value)}, expected {dtype_name(expected)}{like}"
            return Problem("dtype", sentence)
    return numbers_difference(value, expected, brief)


def is_unexpected_nan(value: Any, expected: Any) -> bool:
    """True if a tensor holds NaN and the expected one none: reported before a wrong dtype."""
    return bool(value.isnan().any()) and not bool(expected.isnan().any())


def entries_difference(value: Any, expected: dict, brief: bool) -> Problem | None:
    """Return the first difference between dicts of named results; additional names are allowed."""
    if not isinstance(value, dict) or not expected.keys() <= value.keys():
        return problem_of_type(value, f"results named {', '.join(expected)}")
    for key, expected_entry in expected.items():
        problem = difference(value[key], expected_entry, brief=brief)
        if problem:
            return problem.in_part(key)
    return None


def items_difference(value: Any, expected: list | tuple, brief: bool) -> Problem | None:
    """Return the first difference between two lists of results; None where there is none."""
    if not isinstance(value, list | tuple) or len(value) != len(expected):
        return problem_of_type(value, f"{len(expected)} results")
    if place := next((n for n, item in enumerate(value, 1) if item is None), 0):
        return Problem("type", f"the result number {place} of {len(expected)} is None")
    pairs = zip(value, expected, strict=True)
    problems = (
        difference(returned_item, expected_item, brief=brief)
        for returned_item, expected_item in pairs
    )
    return next((problem for problem in problems if problem), None)


def numbers_difference(value: Any, expected: Any, brief: bool = False) -> Problem | None:
    """Return the difference between two arrays of any library, or None.

    The problem names NaN or lost precision, or else the entry that differs most.
    """
    numbers, right = as_numbers(value), known_numbers(expected)
    if numbers is None:
        return problem_of_type(value, "an array of numbers" if np.ndim(right) else "a number")
    if numbers.shape != right.shape:
        return Problem("shape", f"returned shape {numbers.shape}, expected {right.shape}")
    if equal_but_for_rounding(numbers, right):
        return None
    if brief:
        return OTHER_NUMBERS
    if numbers.dtype.kind == "b" and right.dtype.kind == "b":
        return entry_that_differs("value", numbers, right)
    if np.isnan(numbers).any() and not np.isnan(right).any():
        return entry_that_differs("nan", numbers, right)
    if (
        numbers.dtype == np.float32
        and right.dtype == np.float64
        and numbers_difference(numbers, right.astype(np.float32), brief=True) is None
    ):
        return Problem("dtype", "returned float32, expected float64: precision was lost")
    with np.errstate(all="ignore"):
        error = float(np.abs(numbers.astype(float) - right.astype(float)).max())
    if right.dtype == np.float64 and error <= ROUNDING_DIFFERENCE * scale_of(right):
        # Not that it was lost: weights near 0 and 1 make a difference of any cause as small.
        sentence = (
            f"differs from what is expected by {error:.0e}, as little as where precision is lost"
        )
        return Problem("precision", sentence)
    return entry_that_differs("value", numbers, right)


def equal_but_for_rounding(returned: np.ndarray, expected: np.ndarray) -> bool:
    """True if two arrays of one shape hold the same numbers, but for rounding."""
    if returned.dtype == expected.dtype and returned.tobytes() == expected.tobytes():
        return True
    if returned.dtype.kind == "b" and expected.dtype.kind == "b":
        return np.array_equal(returned, expected)
    with np.errstate(all="ignore"):
        return not entries_far_apart(returned, expected, error_margin(expected)).any()


def entries_far_apart(returned: np.ndarray, expected: np.ndarray, allowed: float) -> np.ndarray:
    """Return a boolean array: True where two arrays differ by more than is allowed.

    NaN counts as equal to NaN, and ∞ to ∞.
    """
    far = ~(np.abs(returned - expected) <= allowed)
    if not far.any():
        return far
    # ∞ − ∞ and NaN are never ≤ anything: take out equal entries, and those that are NaN in both.
    both_nan = (returned != returned) & (expected != expected)
    return far & (returned != expected) & ~both_nan


def error_margin(expected: np.ndarray) -> float:
    """Return how far entries may be from those expected: the dtype's tolerance, times the scale."""
    return TOLERANCES.get(str(expected.dtype), 1e-9) * scale_of(expected)


def scale_of(expected: np.ndarray) -> float:
    """Return the absolute value of the largest finite entry, at least 1."""
    scale = float(np.abs(expected).max(initial=1.0))
    if not math.isfinite(scale):
        scale = float(np.abs(expected[np.isfinite(expected)]).max(initial=1.0))
    return scale


def entry_that_differs(kind: str, returned: np.ndarray, expected: np.ndarray) -> Problem:
    """Return the problem that names the entry that differs most, with both arrays if small.

    It has as many digits, 4, 8 or 17, as show the difference. ``kind`` is the problem's; "nan"
    says that NaN was returned.
    """
    with np.errstate(all="ignore"):
        error = np.abs(returned.astype(float) - expected.astype(float))
    error = np.where(returned == expected, 0, error)  # two equal ∞ differ by NaN
    error = np.where(np.isnan(error), np.inf, error)
    worst = np.unravel_index(int(np.argmax(error)), expected.shape)
    index = ", ".join(str(int(i)) for i in worst)
    returned_entry, expected_entry = returned[worst], expected[worst]
    digits = 17
    for n in (8, 4):
        if entry_in_words(returned_entry, n) != entry_in_words(expected_entry, n):
            digits = n
    place = f"at [{index}] " if index else ""
    expected_words = entry_in_words(expected_entry, digits)
    sentence = (
        f"{place}returned {entry_in_words(returned_entry, digits)}, expected {expected_words}"
    )
    if kind == "nan":
        expected_words = entry_in_words(expected_entry, 4)
        sentence = f"returned NaN{f' at [{index}]' if index else ''}, expected {expected_words}"
    if expected.size > MAX_NUMBERS_WRITTEN_OUT:
        return Problem(kind, sentence)
    returned_text, expected_text = indented_array(returned), indented_array(expected)
    if returned_text == expected_text:  # rounded, they look the same
        return Problem(kind, sentence)
    return Problem(kind, sentence, f"returned\n{returned_text}\nexpected\n{expected_text}")


def indented_array(array: np.ndarray) -> str:
    """Return an array as text, rounded for reading, each line indented."""
    array = np.where(array == 0, array.dtype.type(0), array)  # not −0
    text = np.array2string(array, precision=4, suppress_small=True, floatmode="maxprec")
    return "\n".join("    " + line for line in text.splitlines())


def entry_in_words(value: Any, digits: int) -> str:
    """Return one entry of an array as text, with so many digits; True or False as they are."""
    return str(value) if value.dtype.kind == "b" else f"{float(value):.{digits}g}"


def known_numbers(value: Any) -> np.ndarray:
    """Return the numbers of a value that has to hold some as an array; ``TypeError`` for others."""
    array = as_numbers(value)
    if array is None:
        raise TypeError(f"expected numbers, got {type(value).__name__}")
    return array


def as_numbers(value: Any) -> np.ndarray | None:
    """Return a NumPy array of the numbers in ``value``; None where it holds something else."""
    if isinstance(value, list | tuple | dict | str | bytes | set):
        return None
    try:
        if is_tensor(value):
            value = value.float() if dtype_name(value) == "bfloat16" else value
            value = value.numpy(force=True)
        huge = type(value) is int and abs(value) >= 2**63  # no array holds it as it is
        array = np.asarray(float(value) if huge else value)
    except Exception:  # an object that refuses to become an array is of the wrong type
        return None
    return array if array.dtype.kind in "biuf" else None


def is_array(value: Any) -> bool:
    """True if a value is a tensor or an array of numbers. An array of words is none."""
    return is_tensor(value) or (isinstance(value, np.ndarray) and as_numbers(value) is not None)


def as_truth(value: Any) -> Any:
    """Return one truth value of NumPy or torch as a ``bool``; anything else as it is."""
    array = as_numbers(value)
    single = array is not None and array.ndim == 0 and array.dtype.kind == "b"
    return bool(array) if single else value


def exact_difference(value: Any, expected: Any, kind: str) -> Problem | None:
    """Return the problem of a value of another type or not equal to ``expected``; else None.

    ``kind`` is the expected type in words.
    """
    if type(value) is not type(expected):
        return problem_of_type(value, kind)
    if value == expected:
        return None
    return Problem("value", f"returned {value!r}, expected {expected!r}")


def problem_of_type(value: Any, expected_type: str) -> Problem:
    """Return the problem of a value that is of another type than the one wanted."""
    return Problem("type", wrong_type(value, expected_type))


def wrong_type(value: Any, expected_type: str) -> str:
    """Return the sentence on a value of another type than the one wanted."""
    kind = noun_with_article(type_name(value))
    if hasattr(value, "dtype"):
        kind += f" of dtype {dtype_name(value)}"
    return f"returned {kind}, expected {expected_type}"


def type_name(value: Any) -> str:
    """Return the name of a value's type; of a proxy, that of its object in another process."""
    is_proxy = hasattr(type(value), "attncourse_outcomes")
    return value._type if is_proxy else type(value).__name__


def noun_with_article(word: str) -> str:
    """Return the name of a type after *a* or *an*."""
    return f"{'an' if word[0] in 'aeiouAEIOU' or word == 'ndarray' else 'a'} {word}"


def dtype_name(array: Any) -> str:
    """Return the dtype's name, the same in NumPy and torch."""
    return str(array.dtype).removeprefix("torch.")
