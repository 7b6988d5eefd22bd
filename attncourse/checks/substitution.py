"""A wrong answer judged once more with ours in place of wrong ones that it calls, in a notebook.

What an answer calls is read off its code, through the helpers that it calls as well. Only earlier
exercises are exchanged. What is wrong then, too, is the answer's own mistake.
"""

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from attncourse.checks.exercise import Exercise
from attncourse.checks.showing.verdict import Verdict
from attncourse.checks.trying.unavailable import lending_functions, names_in_code


def wrong_ones(
    exercise: Exercise,
    implementation: Any,
    exercises: tuple[Exercise, ...],
    is_right: Callable[[Exercise, Any], bool],
) -> tuple[Exercise, ...]:
    """Return the earlier exercises that an answer calls and whose answers are not right.

    One is not right, too, that does not stand: whose cell did not run, say.
    """
    names = namespace_of(implementation)
    earlier = exercises[: [e.target for e in exercises].index(exercise.target)]
    used = names_called(implementation, names, {e.name for e in earlier})
    return tuple(e for e in earlier if e.name in used and not is_right(e, names.get(e.name)))


def judged_given_right_ones(
    wrong: Verdict,
    implementation: Any,
    others: tuple[Exercise, ...],
    judge: Callable[[Any], Verdict],
) -> Verdict:
    """Return the verdict on a wrong answer, given right ones, if these change it.

    It never earns less than without them, here as in a grade.
    """
    ours = {e.name: e.reference for e in others}
    if not ours:
        return wrong
    # Lent, because an answer is refused what a submission does not find, this chapter included.
    with names_exchanged(namespace_of(implementation), ours), lending_functions(ours.values()):
        verdict = judge(implementation)
    same = (verdict.earned, verdict.in_short) == (wrong.earned, wrong.in_short)
    return wrong if same or verdict.earned < wrong.earned else replace(verdict, given=tuple(ours))


@contextmanager
def names_exchanged(names: dict[str, Any], ours: dict[str, Any]) -> Iterator[None]:
    """Have these names mean ours inside the ``with`` block."""
    before = {name: names[name] for name in ours if name in names}
    names.update(ours)
    try:
        yield
    finally:
        for name in ours.keys() - before.keys():
            del names[name]
        names.update(before)


def namespace_of(implementation: Any) -> dict[str, Any]:
    """Return the global names of an answer: a notebook's."""
    for function in functions_of(implementation):
        return function.__globals__
    return {}


def names_called(implementation: Any, names: dict[str, Any], ends: set[str]) -> set[str]:
    """Return the global names that an answer uses; ``ends`` are not followed.

    It may use them through its helpers. Those count, too, that are bound to nothing.
    """
    todo, names_found = functions_of(implementation), set()
    while todo:
        function = todo.pop()
        if function.__globals__ is not names:
            continue  # from a library or a file: its global names are others
        for name in names_in_code(function.__code__) & (names.keys() | ends) - names_found:
            names_found.add(name)
            if name not in ends:
                todo += functions_of(names[name])
    return names_found


def functions_of(thing: Any) -> list[types.FunctionType]:
    """Return a function, or those of a class."""
    things = vars(thing).values() if isinstance(thing, type) else [thing]
    return [member for member in things if isinstance(member, types.FunctionType)]
