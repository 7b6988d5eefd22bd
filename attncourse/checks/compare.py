"""Whether a returned value is the expected one, and if not, in what it differs."""

from typing import Any

import numpy as np

from attncourse.checks.outcome import is_tensor

# Relative to the largest expected entry. In float64 an error of 1e-7 shows and a guard of 1e-12
# in a denominator does not; in float32 a few hundred roundings are allowed, in float16 a few.
TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 8e-3}


def difference(value: Any, expected: Any, *, brief: bool = False) -> str | None:
    """What is wrong with ``value``, in words a student can act on; None where nothing is.

    ``brief`` is for callers who only ask whether anything is: numbers are not written out.

    A NumPy answer may also come as a tensor or, for a single number, as a Python float. Torch
    answers are tensors that keep the expected dtype. Strings, truth values and lists of strings
    compare exactly; tuples and dicts entry by entry.
    """
    if value is None:
        return "returned None: is a return missing?"
    if isinstance(expected, bool | np.bool_):
        return exact(as_truth(value), bool(expected), "True or False")
    if isinstance(expected, str):
        return (
            exact(value, expected, "a str")
            if isinstance(value, str)
            else wrong_type(value, "a str")
        )
    if isinstance(expected, dict):
        return entries(value, expected, brief)
    if isinstance(expected, list | tuple) and all(isinstance(item, str | int) for item in expected):
        if not isinstance(value, list | tuple):
            return wrong_type(value, "a list")
        return exact(list(value), list(expected), "a list")
    if isinstance(expected, list | tuple):
        return items(value, expected, brief)
    if is_tensor(expected):
        if not is_tensor(value):
            return wrong_type(value, "a torch tensor")
        if value.dtype != expected.dtype and tuple(value.shape) == tuple(expected.shape):
            like = "" if name_of(expected) == "bool" else " like the input"
            return f"returned dtype {name_of(value)}, expected {name_of(expected)}{like}"
    return numbers(value, expected, brief)


def entries(value: Any, expected: dict, brief: bool) -> str | None:
    """The first difference between two dicts of named results."""
    for key, wanted in expected.items():
        problem = difference(value[key], wanted, brief=brief)
        if problem:
            return f"{key}: {problem}"
    return None


def items(value: Any, expected: list | tuple, brief: bool) -> str | None:
    """The first difference between two lists of results."""
    if not isinstance(value, list | tuple) or len(value) != len(expected):
        return wrong_type(value, f"{len(expected)} results")
    pairs = zip(value, expected, strict=True)
    problems = (difference(got, want, brief=brief) for got, want in pairs)
    return next((problem for problem in problems if problem), None)


def numbers(value: Any, expected: Any, brief: bool = False) -> str | None:
    """The difference between two arrays of numbers, whatever library they come from."""
    got, want = as_numbers(value), as_numbers(expected)
    if got is None:
        return wrong_type(value, "an array of numbers" if np.ndim(want) else "a number")
    if got.shape != want.shape:
        return f"returned shape {got.shape}, expected {want.shape}"
    if equal(got, want):
        return None
    if brief:
        return "returned other numbers"
    if got.dtype.kind == "b" and want.dtype.kind == "b":
        return show(got, want)
    if np.isnan(got).any() and not np.isnan(want).any():
        return "returned NaN" + show(got, want).replace("\nreturned\n", ":\n", 1)
    if (
        got.dtype == np.float32
        and want.dtype == np.float64
        and numbers(got, want.astype(np.float32)) is None
    ):
        return "returned float32 where the arguments are float64: precision was lost"
    return show(got, want).lstrip()


def equal(got: np.ndarray, want: np.ndarray) -> bool:
    """Whether two arrays of one shape hold the same numbers, but for rounding."""
    if got.dtype.kind == "b" and want.dtype.kind == "b":
        return np.array_equal(got, want)
    with np.errstate(all="ignore"):
        allowed = margin(want)
        if (np.abs(got - want) <= allowed).all():
            return True
        return bool(np.isclose(got, want, rtol=0, atol=allowed, equal_nan=True).all())


def margin(want: np.ndarray) -> float:
    """The largest error allowed in an entry of ``want``."""
    scale = float(np.abs(want).max(initial=1.0))
    if not np.isfinite(scale):
        scale = float(np.abs(want[np.isfinite(want)]).max(initial=1.0))
    return TOLERANCE.get(str(want.dtype), 1e-9) * scale


def show(got: np.ndarray, want: np.ndarray) -> str:
    """Both arrays where they are small, else the entry that differs most."""
    if want.size <= 16 and indent(got) != indent(want):  # rounded, they may look the same
        return f"\nreturned\n{indent(got)}\nexpected\n{indent(want)}"
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(float) - want.astype(float))
    worst = np.unravel_index(int(np.argmax(np.where(np.isnan(error), np.inf, error))), want.shape)
    index = ", ".join(str(int(i)) for i in worst)
    got, want = got[worst], want[worst]
    digits = 8 if number(got, 8) != number(want, 8) else 17
    return f"\nat [{index}] returned {number(got, digits)}, expected {number(want, digits)}"


def indent(array: np.ndarray) -> str:
    """An array as text, rounded for reading, each line indented."""
    text = np.array2string(array, precision=4, suppress_small=True, floatmode="maxprec")
    return "\n".join("    " + line for line in text.splitlines())


def number(value: Any, digits: int) -> str:
    """One entry of an array, with so many digits."""
    return str(value) if value.dtype.kind == "b" else f"{float(value):.{digits}g}"


def as_numbers(value: Any) -> np.ndarray | None:
    """A NumPy array of the numbers in ``value``; None where it holds something else."""
    if isinstance(value, list | tuple | dict | str | bytes | set):
        return None
    try:
        if is_tensor(value):
            value = value.detach().cpu()
            value = value.float() if name_of(value) == "bfloat16" else value
        array = np.asarray(value)
    except Exception:  # an object that refuses to become an array is of the wrong type
        return None
    return array if array.dtype.kind in "biuf" else None


def as_truth(value: Any) -> Any:
    """A bool for what NumPy and torch return as one; anything else as it is."""
    array = as_numbers(value)
    single = array is not None and array.ndim == 0 and array.dtype.kind == "b"
    return bool(array) if single else value


def exact(value: Any, expected: Any, kind: str) -> str | None:
    """The difference where nothing but equality will do."""
    if type(value) is not type(expected):
        return wrong_type(value, kind)
    return None if value == expected else f"returned {value!r}, expected {expected!r}"


def wrong_type(value: Any, wanted: str) -> str:
    kind = article(type(value).__name__)
    if hasattr(value, "dtype"):
        kind += f" of dtype {name_of(value)}"
    return f"returned {kind}, expected {wanted}"


def article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiouAEIOU' or word == 'ndarray' else 'a'} {word}"


def name_of(array: Any) -> str:
    """The dtype's name, the same in NumPy and torch."""
    return str(array.dtype).removeprefix("torch.")
