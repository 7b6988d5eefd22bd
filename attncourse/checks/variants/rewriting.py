"""A function for one convention as one for another, and the conventions that there are.

This file knows no right answer and needs none of the others: where an answer of ours stands in for
a wrong one, a grader runs its text beside the submission, and what is written otherwise is found
there by its name in ``NOTATIONS``.
"""

import copy
import math
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

MISFIT = (TypeError, ValueError, IndexError, RuntimeError, AttributeError)


class Notation(NamedTuple):
    """Two functions that write a value as a variant has it, and read it: they undo each other."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


# --- conventions ----------------------------------------------------------------------------------


def is_torch_tensor(value: Any) -> bool:
    """True for a tensor, without loading torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def negation(mask: Any) -> Any:
    """Return a mask with False for True. What is no mask, such as numbers to be added, stays."""
    kind = str(mask.dtype).removeprefix("torch.")
    if kind == "bool":
        return ~mask
    return 1 - mask if bool(((mask == 0) | (mask == 1)).all()) else mask


def last_negated(parts: Any) -> Any:
    """Return several results of which the last is a mask."""
    *others, mask = parts
    return (*others, negation(mask))


def turned_over(x: Any) -> Any:
    """Return a value with its last two axes exchanged."""
    return x.mT if is_torch_tensor(x) else np.swapaxes(x, -1, -2)


def in_units(number: int | float) -> Notation:
    """Return the notation in units so many of which are one."""

    def write(value: Any) -> Any:
        return type(value)(number * x for x in value) if is_list(value) else value * number

    def read(value: Any) -> Any:
        if is_list(value):
            return type(value)(x / number for x in value)
        whole = str(getattr(value, "dtype", "")).removeprefix("torch.").startswith(("int", "uint"))
        return value // number if whole else value / number

    return Notation(write, read)


def is_list(value: Any) -> bool:
    """True for a list or a tuple; ``TypeError`` for a text, which is no list of numbers."""
    if isinstance(value, str | bytes):
        raise TypeError
    return isinstance(value, list | tuple)


def to_halves(x: Any) -> Any:
    """Return a tensor in which neighbours, 2i and 2i + 1, have become the pairs i and d/2 + i."""
    return sys.modules["torch"].cat([x[..., 0::2], x[..., 1::2]], dim=-1)


def to_neighbours(x: Any) -> Any:
    """Return a tensor whose pairs, i and d/2 + i, have become neighbours: undo ``to_halves``."""
    return sys.modules["torch"].stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


NEGATED = Notation(negation, negation)
LAST_NEGATED = Notation(last_negated, last_negated)
COLUMNS = Notation(turned_over, turned_over)
PERCENT = in_units(100)
BITS = in_units(1 / math.log(2))
IN_HALVES = Notation(to_halves, to_neighbours)
BOTH_AXES = Notation(
    lambda R: to_halves(to_halves(R).mT).mT, lambda R: to_neighbours(to_neighbours(R).mT).mT
)
LAST_FIRST = Notation(lambda maps: maps.flip(-4), lambda maps: maps.flip(-4))
CHANNELS_LAST = Notation(lambda x: x.movedim(-3, -1), lambda x: x.movedim(-1, -3))
ONE_SIDE = Notation(lambda width: width // 2, lambda reach: 2 * reach + 1)

NOTATIONS = {name: value for name, value in list(globals().items()) if isinstance(value, Notation)}

# --- implementations ------------------------------------------------------------------------------


def in_variant(
    implementation: Callable,
    names: tuple[str, ...],
    arguments: Mapping[str, Notation],
    result: Notation | None = None,
    methods: Mapping[str, tuple[str, ...]] | None = None,
) -> Callable:
    """Return an implementation for the published convention as one for these changed arguments.

    ``names`` are its positional arguments. ``methods`` are those of a module that take the
    arguments, with the names of theirs; what its ``forward`` returns is the result.
    """
    if not methods:
        return function_rewritten(implementation, names, arguments, result)

    @wraps(implementation, updated=())
    def build(*args, **options):
        inner = implementation(*args, **options)
        outer = object.__new__(type(inner))  # the same weights; its methods go to the inner one
        outer.__dict__.update(vars(inner))
        for method, own_names in methods.items():
            if callable(inner_method := getattr(inner, method, None)):
                returned = result if method == "forward" else None
                outer.__dict__[method] = function_rewritten(
                    in_the_mode_of(outer, inner, inner_method), own_names, arguments, returned
                )
        return outer

    return build


def rewritten_as_told(
    implementation: Callable,
    names: tuple[str, ...],
    arguments: Mapping[str, str],
    result: str | None,
    methods: Mapping[str, tuple[str, ...]],
) -> Callable:
    """Return what ``in_variant`` returns; the changes are given by their names in ``NOTATIONS``."""
    changes = {argument: NOTATIONS[change] for argument, change in arguments.items()}
    return in_variant(
        implementation, names, changes, NOTATIONS[result] if result else None, methods
    )


def in_the_mode_of(outer: Any, inner: Any, method: Callable) -> Callable:
    """Return a module's method, called as the other one is set: for training or for evaluation."""

    def call(*args, **kwargs):
        inner.training = outer.training
        return method(*args, **kwargs)

    return call


def function_rewritten(
    function: Callable,
    names: tuple[str, ...],
    arguments: Mapping[str, Notation],
    result: Notation | None,
) -> Callable:
    """Return a function for the published convention as one for the variant's.

    What it changes in its arguments is changed in those that it was called with.
    """

    @wraps(function, updated=())
    def call(*args, **kwargs):
        by_name = dict(zip(names, args, strict=False))
        read, before = {}, {}
        for name, value in (by_name | kwargs).items():
            if name in arguments:
                read[name] = change_value(arguments[name].read, value)
                before[name] = value_image(read[name])
        rewritten = [read.get(name, value) for name, value in zip(names, args, strict=False)]
        rewritten += args[len(names) :]
        returned = function(*rewritten, **{name: read.get(name, v) for name, v in kwargs.items()})
        for name, value in read.items():
            if value_image(value) != before[name]:
                overwrite((by_name | kwargs)[name], arguments[name].write(value))
        return returned if result is None else change_value(result.write, returned)

    return call


def change_value(change: Callable[[Any], Any], value: Any) -> Any:
    """Return the value changed. One of the wrong kind stays, for an implementation to refuse."""
    if value is None:
        return None
    try:
        return change(value)
    except MISFIT:
        return value


def value_image(value: Any) -> Any:
    """Return something that equals its like exactly while an argument stays what it is."""
    if is_torch_tensor(value):
        return str(value.dtype), value.requires_grad, value_image(value.numpy(force=True))
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    return copy.deepcopy(value) if isinstance(value, list | dict) else None


def overwrite(array: Any, values: Any) -> None:
    """Put values into an array or tensor in place; a view of what was changed has them already."""
    if is_torch_tensor(array) and not array.requires_grad:
        array.copy_(values.clone())
    elif hasattr(array, "__setitem__"):
        array[...] = values.copy()
