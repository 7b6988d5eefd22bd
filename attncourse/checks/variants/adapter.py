"""Implementations for the book's convention, wrapped to take and return values in a variant's.

A wrapped implementation behaves as if it had been written in the other convention: it has the same
mistakes, gradients and refusals, and what it changes in its arguments is changed in the caller's.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from attncourse.checks.exercise import Exercise
from attncourse.checks.trying.outcome import argument_names
from attncourse.checks.variants.rewriting import NOTATIONS, Notation, implementation_in_variant


@dataclass(frozen=True)
class Adapter:
    """How one exercise differs in a variant.

    ``arguments`` has the notation of the arguments that are written in another way, by name;
    ``result`` that of the result, or of what a module's ``forward`` returns. ``methods`` are a
    module's methods that take such arguments. ``drops`` names mistakes that are none in the
    variant: they are right in it, or are the book's convention itself.
    """

    arguments: Mapping[str, Notation] = field(default_factory=dict)
    result: Notation | None = None
    methods: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()


def adapted_implementation(
    implementation: Callable, adapter: Adapter, exercise: Exercise
) -> Callable:
    """Return an implementation for the book's convention, wrapped for the variant's."""
    names, methods = positional_names_of(adapter, exercise)
    return implementation_in_variant(
        implementation, names, adapter.arguments, adapter.result, methods
    )


def positional_names_of(
    adapter: Adapter, exercise: Exercise
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the names of an exercise's positional arguments, and those of methods by method."""
    methods = {
        method: tuple(inspect.signature(getattr(exercise.reference, method)).parameters)[1:]
        for method in adapter.methods
    }
    return tuple(argument_names(exercise)), methods


def adapter_as_data(adapter: Adapter, exercise: Exercise) -> dict[str, Any] | None:
    """Return the keyword arguments of ``rewrite_from_data`` as plain data, for another process.

    A notation is its name in ``NOTATIONS``. None where one has no name there.
    """
    names, methods = positional_names_of(adapter, exercise)
    by_id = {id(change): name for name, change in NOTATIONS.items()}
    if any(id(c) not in by_id for c in (*adapter.arguments.values(), adapter.result) if c):
        return None
    return {
        "names": names,
        "arguments": {argument: by_id[id(c)] for argument, c in adapter.arguments.items()},
        "result": adapter.result and by_id[id(adapter.result)],
        "methods": methods,
    }
