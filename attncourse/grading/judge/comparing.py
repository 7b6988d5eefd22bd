"""Checking that two values can be compared: their types, their shapes, and that they hold entries.

Only a value that the checker has received is compared: an array, a number, a text, or lists and
dicts of them. An object that stayed in the submission's process would itself decide what equals it.
"""

import math
from typing import Any

import numpy as np

LISTS = (list, tuple, range)
VALUES_EXPECTED = "an array, a number or a list of numbers"


def require_values(*values: Any) -> None:
    """Raise ``AssertionError``, in words, if one of these holds an object of the submission's."""
    for remote_object in objects_in(list(values)):
        name = getattr(remote_object, "_type", "") or "torch.nn.Module"
        kind = "class" if isinstance(remote_object, type) else f"object of class {name}"
        raise AssertionError(
            f"got {'a' if kind == 'class' else 'an'} {kind}: expected {VALUES_EXPECTED}"
        )


def objects_in(value: Any) -> list[Any]:
    """Return the objects in a value that live in the submission's process.

    Lists and dicts are looked through.
    """
    if isinstance(value, list | tuple | set | frozenset):
        return [remote_object for item in value for remote_object in objects_in(item)]
    if isinstance(value, dict):
        return objects_in(list(value.values()))
    return [value] if is_theirs(value) else []


def is_theirs(value: Any) -> bool:
    """True if a value is a proxy or a copy of an object in the submission's process."""
    return hasattr(type(value), "attncourse_handle")


def is_their_side_empty(first: tuple | None, second: tuple | None, side: str) -> bool:
    """True if the submission's side of a comparison, by its shape, has no entries.

    ``side`` says which one that is; where both are or nobody knows, one empty side is enough.
    """
    sides = {"first": (first,), "second": (second,)}.get(side, (first, second))
    return any(0 in (shape or ()) for shape in sides)


def require_all_comparable(a: Any, b: Any, side: str, gave_empty: bool) -> None:
    """Call ``require_comparable`` for two values and, in lists and dicts, for each pair in them."""
    first, second = compared_shapes(a, b)
    pairs: list[tuple[Any, Any]] = []
    if isinstance(a, dict) and isinstance(b, dict):
        pairs = [(a[key], b[key]) for key in a.keys() & b.keys()]
    elif None in (first, second) and isinstance(a, LISTS) and isinstance(b, LISTS):
        pairs = list(zip(a, b, strict=False))
    for first_part, second_part in pairs:
        require_all_comparable(first_part, second_part, side, gave_empty)
    require_comparable(first, second, side, True, gave_empty)


def require_comparable(
    first: tuple | None, second: tuple | None, side: str, all_entries: bool, gave_empty: bool
) -> None:
    """Raise ``AssertionError``, in words, where two shapes make no meaningful comparison.

    ``side`` is the one that is the submission's: "first", "second", "both", or "either" where
    that is not known. With ``all_entries``, all are to agree, so the submission's may not be
    repeated to fit; without it only emptiness matters. ``gave_empty`` says that the test handed
    over something empty, and so may get something empty. A shape of None is none that is compared
    here.
    """
    if first is None or second is None or first == second == ():
        return
    try:
        entries = math.prod(np.broadcast_shapes(first, second))
    except ValueError:
        return  # the comparison itself says so
    if entries == 0:
        expected = first == second and side != "both"
        if expected or (gave_empty and (first == second or () in (first, second))):
            return
        raise AssertionError(f"shapes {first} and {second}: there is nothing to compare")
    if all_entries and side in ("first", "second"):
        submitted, expected_shape = (first, second) if side == "first" else (second, first)
        if math.prod(submitted) != entries:
            raise AssertionError(
                f"got {shape_in_words(submitted)}, expected shape {expected_shape}"
            )


def shape_in_words(shape: tuple) -> str:
    """Return a shape as a sentence names it."""
    return f"shape {shape}" if shape else "one number"


def compared_shapes(a: Any, b: Any) -> tuple[tuple | None, tuple | None]:
    """Return the shapes by which two values are compared, each None where there is none.

    Beside an array, a text or None counts as one number.
    """
    arrays = is_of_a_library(a) or is_of_a_library(b)
    shapes = [
        () if shape is None and arrays and not isinstance(value, LISTS) else shape
        for value, shape in ((a, compared_shape(a)), (b, compared_shape(b)))
    ]
    return shapes[0], shapes[1]


def compared_shape(value: Any) -> tuple | None:
    """Return the shape of an array, a number or regular lists of numbers; None for all else."""
    if is_of_a_library(value):
        return tuple(value.shape)
    if isinstance(value, int | float | complex):
        return ()
    if isinstance(value, range):
        return (len(value),)
    if not isinstance(value, LISTS):
        return None
    inner = {compared_shape(item) for item in value}
    if not inner:
        return (0,)
    (shape,) = inner if len(inner) == 1 else (None,)
    return None if shape is None else (len(value), *shape)


def is_of_a_library(value: Any) -> bool:
    """True if a value is an array of NumPy's, torch's or of another library that a test uses.

    A tuple is none, since its fields may have any names; nor is an object of the submission's,
    which is asked nothing.
    """
    if isinstance(value, tuple) or is_theirs(value):
        return False
    return hasattr(type(value), "dtype") and hasattr(type(value), "shape")
