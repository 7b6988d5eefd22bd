"""An implementation for one convention as one for another: arguments read, results written.

Whatever is built so behaves as its author would have written it in the other convention: the same
mistakes, gradients and refusals, and what it changes in its arguments is changed in those given.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, NamedTuple

from attncourse.checks.exercise import Exercise
from attncourse.checks.outcome import argument_names, copy_of, identical, is_tensor

MISFIT = (TypeError, ValueError, IndexError, RuntimeError, AttributeError)


class Change(NamedTuple):
    """How a value is written in a variant, and how it is read: one undoes the other."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Adapter:
    """How one exercise is asked for in a variant.

    ``arguments`` are those that are written otherwise, by name, ``result`` is what is returned, by
    a module what its ``forward`` returns. ``methods`` are those of a module that take them.
    ``drops`` are misconceptions that are none here: what they are called is right, or the published
    convention itself.
    """

    arguments: Mapping[str, Change] = field(default_factory=dict)
    result: Change | None = None
    methods: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()


def turned(change: Callable[[Any], Any], value: Any) -> Any:
    """The value changed. One of the wrong kind stays, for an implementation to refuse."""
    if value is None:
        return None
    try:
        return change(value)
    except MISFIT:
        return value


def adapted(implementation: Callable, adapter: Adapter, exercise: Exercise) -> Callable:
    """An implementation for the published convention as one for the variant's."""
    if not adapter.methods:
        return function_adapted(implementation, adapter, tuple(argument_names(exercise)))
    names = {
        method: tuple(inspect.signature(getattr(exercise.reference, method)).parameters)[1:]
        for method in adapter.methods
    }

    @wraps(implementation, updated=())
    def build(*args, **options):
        inner = implementation(*args, **options)
        outer = object.__new__(type(inner))  # the same weights; its methods go to the inner one
        outer.__dict__.update(vars(inner))
        for method in adapter.methods:
            if callable(own := getattr(inner, method, None)):
                kept = adapter if method == "forward" else replace(adapter, result=None)
                outer.__dict__[method] = function_adapted(
                    in_the_mode_of(outer, inner, own), kept, names[method]
                )
        return outer

    return build


def in_the_mode_of(outer: Any, inner: Any, method: Callable) -> Callable:
    """A module's method, called as the other one is set: for training or for evaluation."""

    def call(*args, **kwargs):
        inner.training = outer.training
        return method(*args, **kwargs)

    return call


def function_adapted(function: Callable, adapter: Adapter, names: tuple[str, ...]) -> Callable:
    """A function for the published convention as one for the variant's.

    What it changes in its arguments is changed in those that it was called with.
    """

    @wraps(function, updated=())
    def call(*args, **kwargs):
        given = dict(zip(names, args, strict=False))
        read, before = {}, {}
        for name, value in (given | kwargs).items():
            if name in adapter.arguments:
                read[name] = turned(adapter.arguments[name].read, value)
                before[name] = copy_of(read[name])
        own = [read.get(name, value) for name, value in zip(names, args, strict=False)]
        own += args[len(names) :]
        result = function(*own, **{name: read.get(name, v) for name, v in kwargs.items()})
        for name, value in read.items():
            if not identical(value, before[name]):
                overwrite((given | kwargs)[name], adapter.arguments[name].write(value))
        return result if adapter.result is None else turned(adapter.result.write, result)

    return call


def overwrite(array: Any, values: Any) -> None:
    """Puts values into an array or tensor in place; a view of what was changed has them already."""
    if is_tensor(array) and not array.requires_grad:
        array.copy_(values.clone())
    elif hasattr(array, "__setitem__"):
        array[...] = values.copy()
