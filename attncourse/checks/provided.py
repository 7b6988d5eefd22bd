"""A wrong answer judged once more with ours in place of wrong ones that it calls, in a notebook.

Which answers are wrong is what the checks of this session saw; what an answer calls is read off its
code, through the helpers that it calls as well. Only earlier exercises are exchanged.
"""

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from attncourse.checks.exercise import Exercise
from attncourse.checks.verdict import Verdict


def given_right_ones(
    target: str,
    implementation: Any,
    exercises: tuple[Exercise, ...],
    seen: dict[str, Verdict],
    examine: Callable[[str, Any], Verdict],
) -> Verdict | None:
    """The verdict on a wrong answer that is right, given right ones; None where it is not."""
    names = namespace_of(implementation)
    earlier = exercises[: [e.target for e in exercises].index(target)]
    wrong = {e.name: e.reference for e in earlier if e.target in seen and not seen[e.target].passed}
    used = called(implementation, names, set(wrong))
    ours = {name: reference for name, reference in wrong.items() if name in used}
    if not ours:
        return None
    with exchanged(names, ours):
        verdict = examine(target, implementation)
    return replace(verdict, given=tuple(ours)) if verdict.passed else None


@contextmanager
def exchanged(names: dict[str, Any], ours: dict[str, Any]) -> Iterator[None]:
    """Has these names mean ours inside the ``with`` block."""
    before = {name: names[name] for name in ours}
    names.update(ours)
    try:
        yield
    finally:
        names.update(before)


def namespace_of(implementation: Any) -> dict[str, Any]:
    """The global names of an answer: a notebook's."""
    for function in functions_of(implementation):
        return function.__globals__
    return {}


def called(implementation: Any, names: dict[str, Any], ends: set[str]) -> set[str]:
    """The global names that an answer uses, itself or through others; ``ends`` are not followed."""
    todo, found = functions_of(implementation), set()
    while todo:
        function = todo.pop()
        if function.__globals__ is not names:
            continue
        for name in names_in(function.__code__) & names.keys() - found:
            found.add(name)
            todo += [] if name in ends else functions_of(names[name])
    return found


def functions_of(thing: Any) -> list[types.FunctionType]:
    """A function, or those of a class."""
    things = vars(thing).values() if isinstance(thing, type) else [thing]
    return [one for one in things if isinstance(one, types.FunctionType)]


def names_in(code: types.CodeType) -> set[str]:
    """The global names and attributes that code uses, with those of the functions in it."""
    inner = (names_in(one) for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*inner)
