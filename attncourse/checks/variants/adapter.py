"""An implementation for one convention as one for another: arguments read, results written.

Whatever is built so behaves as its author would have written it in the other convention: the same
mistakes, gradients and refusals, and what it changes in its arguments is changed in those given.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from attncourse.checks.exercise import Exercise
from attncourse.checks.trying.outcome import argument_names
from attncourse.checks.variants.rewriting import NOTATIONS, Notation, in_variant


@dataclass(frozen=True)
class Adapter:
    """The changes of one exercise in a variant.

    ``arguments`` are those that are written otherwise, by name, ``result`` is what is returned, by
    a module what its ``forward`` returns. ``methods`` are those of a module that take them.
    ``drops`` are mistakes that are none here: what they are called is right, or the published
    convention itself.
    """

    arguments: Mapping[str, Notation] = field(default_factory=dict)
    result: Notation | None = None
    methods: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()


def adapted_implementation(
    implementation: Callable, adapter: Adapter, exercise: Exercise
) -> Callable:
    """Return an implementation for the published convention as one for the variant's."""
    names, methods = names_taken(adapter, exercise)
    return in_variant(implementation, names, adapter.arguments, adapter.result, methods)


def names_taken(
    adapter: Adapter, exercise: Exercise
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the names of an exercise's positional arguments, and those of its module's methods."""
    methods = {
        method: tuple(inspect.signature(getattr(exercise.reference, method)).parameters)[1:]
        for method in adapter.methods
    }
    return tuple(argument_names(exercise)), methods


def as_data(adapter: Adapter, exercise: Exercise) -> dict[str, Any] | None:
    """Return the arguments of ``rewritten`` as plain data, with names for the changes.

    The data are for another process.

    None where a change is none of the ``NOTATIONS``.
    """
    names, methods = names_taken(adapter, exercise)
    by_id = {id(change): name for name, change in NOTATIONS.items()}
    if any(id(c) not in by_id for c in (*adapter.arguments.values(), adapter.result) if c):
        return None
    return {
        "names": names,
        "arguments": {argument: by_id[id(c)] for argument, c in adapter.arguments.items()},
        "result": adapter.result and by_id[id(adapter.result)],
        "methods": methods,
    }
