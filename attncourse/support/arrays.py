"""Checks on arguments: wrong input fails at once and says what was expected and what came."""

from collections.abc import Sequence
from functools import cache

import numpy as np


def as_floats(name: str, value, axes: str, *, allow_nan: bool = False) -> np.ndarray:
    """Return ``value`` as a floating-point array whose axes are those that ``axes`` names.

    ``axes`` is written as in a signature: ``"n d"`` for a matrix, ``"... n d"`` for a matrix
    behind any number of batch axes. Whole numbers become float64; a floating dtype stays.

    Raises ``ValueError`` for anything that is not an array of real numbers, for another number
    of axes, for an axis of length 0 and, unless ``allow_nan``, for NaN.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"{name}: expected an array of shape ({axes}), got {error}") from None
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise ValueError(f"{name}: expected real numbers, got an array of dtype {array.dtype}")
    require_axes(name, array.shape, axes)
    if not allow_nan and np.isnan(array).any():
        where = tuple(int(i) for i in np.argwhere(np.isnan(array))[0])
        raise ValueError(f"{name}: expected numbers, got NaN at index {where}")
    return array


def require_finite(**arrays: np.ndarray) -> None:
    """Raise ``ValueError`` where an entry of the named arrays is infinite."""
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            got = f"{array[where]} at index {where}"
            raise ValueError(f"{name}: expected finite numbers, got {got}")


def require_axes(name: str, shape: Sequence[int], axes: str) -> None:
    """Raise ``ValueError`` unless ``shape`` has the axes that ``axes`` names, none empty.

    Where it names several, ``"... n d | n"``, those of one are enough.
    """
    for n, batched in readings(axes):
        if len(shape) == n or (batched and len(shape) > n):
            break
    else:
        expected = " or ".join(
            f"({', '.join(alternative.split())})" for alternative in axes.split(" | ")
        )
        raise ValueError(f"{name}: expected shape {expected}, got {tuple(shape)}")
    if 0 in shape:
        raise ValueError(
            f"{name}: expected at least one entry along every axis, got {tuple(shape)}"
        )


@cache
def readings(axes: str) -> tuple[tuple[int, bool], ...]:
    """Return, for each reading, how many axes are named and if others may stand before them."""
    named = [alternative.split() for alternative in axes.split(" | ")]
    return tuple((len(names) - (names[0] == "..."), names[0] == "...") for names in named)


def require_count(name: str, value, *, least: int = 1, most: int | None = None) -> int:
    """Return ``value`` as an ``int``; raise ``ValueError`` unless it is whole and in the range."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        range_ = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name}: expected a whole number {range_}, got {value!r}")
    return int(value)


def require_divisor(name: str, number: int, of: str, whole: int) -> None:
    """Raise ``ValueError`` where ``whole / number`` is no whole number."""
    if whole % number:
        raise ValueError(f"{name}: expected a divisor of {of}, {whole}, got {number}")


def require_positive(name: str, value) -> float:
    """Return ``value`` as a ``float``; raise ``ValueError`` unless it is finite and above 0."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool) or not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name}: expected a finite number above 0, got {value!r}")
    return float(value)
