"""The notations of variants, and functions rewritten to take and return values in them.

This file contains no right answer and imports no other of ours: where a reference of ours replaces
a wrong answer, a grader runs this file's text in the submission's process, and finds the notations
there by their names in ``NOTATIONS``.
"""

import copy
import math
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

# What the change of a value raises that is not of the right kind.
MISFIT = (TypeError, ValueError, IndexError, RuntimeError, AttributeError)


class Notation(NamedTuple):
    """A way to write a value: ``write`` turns the book's into the variant's, ``read`` back."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


# --- conventions ----------------------------------------------------------------------------------


def is_torch_tensor(value: Any) -> bool:
    """True for a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def negation(mask: Any) -> Any:
    """Return a mask with True and False exchanged, also one of 0 and 1; other numbers unchanged."""
    kind = str(mask.dtype).removeprefix("torch.")
    if kind == "bool":
        return ~mask
    return 1 - mask if bool(((mask == 0) | (mask == 1)).all()) else mask


def with_last_negated(parts: Any) -> Any:
    """Return a tuple of results with the last one, a mask, negated."""
    *others, mask = parts
    return (*others, negation(mask))


def with_axes_exchanged(x: Any) -> Any:
    """Return a value with its last two axes exchanged."""
    return x.mT if is_torch_tensor(x) else np.swapaxes(x, -1, -2)


def notation_in_units(number: int | float) -> Notation:
    """Return the notation in a smaller unit, of which ``number`` make one.

    Lists are changed entry by entry.
    """

    def write(value: Any) -> Any:
        """Return a value in the smaller unit."""
        return type(value)(number * x for x in value) if is_list(value) else value * number

    def read(value: Any) -> Any:
        """Return a value in the larger unit; whole numbers stay whole."""
        if is_list(value):
            return type(value)(x / number for x in value)
        is_whole = (
            str(getattr(value, "dtype", "")).removeprefix("torch.").startswith(("int", "uint"))
        )
        return value // number if is_whole else value / number

    return Notation(write, read)


def is_list(value: Any) -> bool:
    """True for a list or a tuple; ``TypeError`` for a text, which is no list of numbers."""
    if isinstance(value, str | bytes):
        raise TypeError
    return isinstance(value, list | tuple)


def to_halves(x: Any) -> Any:
    """Return a tensor in which neighbours, 2i and 2i + 1, have become the pairs i and d/2 + i."""
    # Whoever has a tensor has loaded torch, which chapters on NumPy do without.
    return sys.modules["torch"].cat([x[..., 0::2], x[..., 1::2]], dim=-1)


def to_neighbours(x: Any) -> Any:
    """Return a tensor whose pairs, i and d/2 + i, have become neighbours: undo ``to_halves``."""
    return sys.modules["torch"].stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


NEGATED = Notation(negation, negation)
LAST_NEGATED = Notation(with_last_negated, with_last_negated)
COLUMNS = Notation(with_axes_exchanged, with_axes_exchanged)
PERCENT = notation_in_units(100)
BITS = notation_in_units(1 / math.log(2))
IN_HALVES = Notation(to_halves, to_neighbours)
BOTH_AXES = Notation(
    lambda R: to_halves(to_halves(R).mT).mT, lambda R: to_neighbours(to_neighbours(R).mT).mT
)
LAST_FIRST = Notation(lambda maps: maps.flip(-4), lambda maps: maps.flip(-4))
CHANNELS_LAST = Notation(lambda x: x.movedim(-3, -1), lambda x: x.movedim(-1, -3))
ONE_SIDE = Notation(lambda width: width // 2, lambda reach: 2 * reach + 1)

NOTATIONS = {name: value for name, value in list(globals().items()) if isinstance(value, Notation)}

# --- implementations ------------------------------------------------------------------------------


def implementation_in_variant(
    implementation: Callable,
    names: tuple[str, ...],
    arguments: Mapping[str, Notation],
    result: Notation | None = None,
    methods: Mapping[str, tuple[str, ...]] | None = None,
) -> Callable:
    """Return ``implementation``, of the book's convention, so wrapped that it speaks a variant's.

    ``names`` are the names of its positional arguments, ``arguments`` the notations of those that
    change, and ``result`` that of the result. Of a module, ``methods`` are those that take such
    arguments, with the names of their positional ones; the result is what ``forward`` returns.
    """
    if not methods:
        return rewrite_function(implementation, names, arguments, result)

    @wraps(implementation, updated=())
    def build(*args, **options):
        """Return a module whose methods read the variant's notations."""
        inner = implementation(*args, **options)
        # A second module with the same weights, whose methods call those of the inner one.
        outer = object.__new__(type(inner))
        outer.__dict__.update(vars(inner))
        for method, own_names in methods.items():
            if callable(inner_method := getattr(inner, method, None)):
                returned = result if method == "forward" else None
                outer.__dict__[method] = rewrite_function(
                    method_in_mode_of(outer, inner, inner_method), own_names, arguments, returned
                )
        return outer

    return build


def rewrite_from_data(
    implementation: Callable,
    names: tuple[str, ...],
    arguments: Mapping[str, str],
    result: str | None,
    methods: Mapping[str, tuple[str, ...]],
) -> Callable:
    """Return what ``implementation_in_variant`` returns, for notations given by their names."""
    changes = {argument: NOTATIONS[change] for argument, change in arguments.items()}
    return implementation_in_variant(
        implementation, names, changes, NOTATIONS[result] if result else None, methods
    )


def method_in_mode_of(outer: Any, inner: Any, method: Callable) -> Callable:
    """Return a method of the inner module that takes over the outer one's training mode first."""

    def call(*args, **kwargs):
        """Return the method's result in the outer module's mode."""
        inner.training = outer.training
        return method(*args, **kwargs)

    return call


def rewrite_function(
    function: Callable,
    names: tuple[str, ...],
    arguments: Mapping[str, Notation],
    result: Notation | None,
) -> Callable:
    """Return a function for the book's convention, wrapped for changed notations.

    If it changes an argument in place, the caller's argument is changed as well.
    """

    @wraps(function, updated=())
    def call(*args, **kwargs):
        """Return the function's result, in the variant's notation, for arguments in it."""
        by_name = dict(zip(names, args, strict=False))
        values_read: dict[str, Any] = {}  # the changed arguments, in the book's notation
        images_before: dict[str, Any] = {}  # their images before the call
        for name, value in (by_name | kwargs).items():
            if name in arguments:
                values_read[name] = change_value(arguments[name].read, value)
                images_before[name] = value_image(values_read[name])
        rewritten = [values_read.get(name, value) for name, value in zip(names, args, strict=False)]
        rewritten += args[len(names) :]
        returned = function(
            *rewritten, **{name: values_read.get(name, v) for name, v in kwargs.items()}
        )
        for name, value in values_read.items():
            if value_image(value) != images_before[name]:
                overwrite_array((by_name | kwargs)[name], arguments[name].write(value))
        return returned if result is None else change_value(result.write, returned)

    return call


def change_value(change: Callable[[Any], Any], value: Any) -> Any:
    """Return the value changed; None, and a value of the wrong kind, stay as they are."""
    if value is None:
        return None
    try:
        return change(value)
    except MISFIT:
        return value


def value_image(value: Any) -> Any:
    """Return an image of a value that compares equal as long as the value has not changed.

    None for values that are not watched.
    """
    if is_torch_tensor(value):
        return str(value.dtype), value.requires_grad, value_image(value.numpy(force=True))
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    return copy.deepcopy(value) if isinstance(value, list | dict) else None


def overwrite_array(array: Any, values: Any) -> None:
    """Put values into an array or a tensor in place.

    They are copied first, since they may be a view of the same memory.
    """
    if is_torch_tensor(array) and not array.requires_grad:
        array.copy_(values.clone())
    elif hasattr(array, "__setitem__"):
        array[...] = values.copy()
