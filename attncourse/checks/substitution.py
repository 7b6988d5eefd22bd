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
from attncourse.checks.trying.unavailable import lend_functions, names_in_code


def wrong_exercises_called(
    exercise: Exercise,
    implementation: Any,
    exercises: tuple[Exercise, ...],
    is_right: Callable[[Exercise, Any], bool],
) -> tuple[Exercise, ...]:
    """Return the earlier exercises of the chapter whose answers this answer calls and are wrong.

    ``exercises`` is the whole chapter. ``is_right`` is also False for an answer that cannot be
    judged, because its cell did not run, for example.
    """
    names = namespace_of(implementation)
    earlier = exercises[: [e.target for e in exercises].index(exercise.target)]
    used = names_called(implementation, names, {e.name for e in earlier})
    return tuple(e for e in earlier if e.name in used and not is_right(e, names.get(e.name)))


def judged_with_references(
    wrong: Verdict,
    implementation: Any,
    others: tuple[Exercise, ...],
    judge: Callable[[Any], Verdict],
) -> Verdict:
    """Return the verdict on a wrong answer when it calls the references of ``others``.

    Where neither points nor diagnosis change, or the points fall, the ``wrong`` verdict
    comes back as it is: here as in a grade.
    """
    references = {e.name: e.reference for e in others}
    if not references:
        return wrong
    # Lent, because an answer may not use what a submission lacks, this chapter's code included.
    with (
        exchange_names(namespace_of(implementation), references),
        lend_functions(references.values()),
    ):
        verdict = judge(implementation)
    is_same_verdict = (verdict.earned, verdict.in_short) == (wrong.earned, wrong.in_short)
    if is_same_verdict or verdict.earned < wrong.earned:
        return wrong
    return replace(verdict, given=tuple(references))


@contextmanager
def exchange_names(names: dict[str, Any], replacements: dict[str, Any]) -> Iterator[None]:
    """Give global names other values inside the ``with`` block, and their own again behind it."""
    former_values = {name: names[name] for name in replacements if name in names}
    names.update(replacements)
    try:
        yield
    finally:
        for name in replacements.keys() - former_values.keys():
            del names[name]
        names.update(former_values)


def namespace_of(implementation: Any) -> dict[str, Any]:
    """Return the globals of an answer's function, or of a class's methods; {} for another thing."""
    for function in functions_of(implementation):
        return function.__globals__
    return {}


def names_called(implementation: Any, names: dict[str, Any], stop_at: set[str]) -> set[str]:
    """Return the global names that an answer's code mentions, or that of helpers it calls.

    ``names`` are its globals. Functions named in ``stop_at`` are not looked into; these names count
    even where nothing is bound to them.
    """
    todo, names_found = functions_of(implementation), set()
    while todo:
        function = todo.pop()
        if function.__globals__ is not names:
            continue  # from a library or a file: its global names are others
        for name in names_in_code(function.__code__) & (names.keys() | stop_at) - names_found:
            names_found.add(name)
            if name not in stop_at:
                todo += functions_of(names[name])
    return names_found


def functions_of(thing: Any) -> list[types.FunctionType]:
    """Return a function, or all functions of a class, as a list; [] for anything else."""
    things = vars(thing).values() if isinstance(thing, type) else [thing]
    return [member for member in things if isinstance(member, types.FunctionType)]
