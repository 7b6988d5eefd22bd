"""Wrong defaults: one that is not the exercise's, and a mutable one that all calls share.

The answer is wrong only where an argument is left out. So the wrong cases are tried once more with
the exercise's default, or a new list, handed over.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace

from attncourse.checks.exercise import Case, Exercise, Mistake
from attncourse.checks.explaining.signatures import default_as_code
from attncourse.checks.trying.asking import bring_back_changes
from attncourse.checks.trying.outcome import run
from attncourse.checks.trying.trials import Trial, problem_with
from attncourse.support.alarm import TimeUp

SHARED_DEFAULT = "a default that all calls share"


def other_default_mistake(
    exercise: Exercise, implementation: Callable, trials: tuple[Trial, ...]
) -> Mistake | None:
    """Return the mistake, if wrong cases become right once a default is handed over; else None.

    That has to hold for all wrong cases that leave this argument out, and these have to be at least
    half of the wrong ones. Raises ``TimeUp`` for a call that hangs: none may follow it.
    """
    wrong = [t for t in trials if t.wrong and t.case.raises is None]
    for name, default in defaults_of(exercise.reference).items():
        tried = [
            (t, case) for t in wrong if (case := case_with_default(t.case, name, default, exercise))
        ]
        enough = max(1, len(wrong) / 2)
        if len(tried) < enough:
            continue
        results = []
        for trial, case in tried:
            result = default_mends(exercise, implementation, trial, case)
            if result is False:
                break  # the default is not the mistake
            results.append(result)
        if len(results) == len(tried) and results.count(True) >= enough:
            # The cases as they were, once more: right now, the answer differs by chance.
            if any(default_mends(exercise, implementation, t, t.case) for t, _ in tried):
                return None
            return Mistake(
                f"another default for {name}",
                f"Your answer is right where the call gives `{name}={default_as_code(default)}`, "
                f"and wrong where {name} is left out. The exercise says that it is the same then.",
            )
    return None


def defaults_of(function: Callable) -> dict[str, object]:
    """Return a function's defaults, by parameter; {} where its signature cannot be read."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # it is in another process, or has none to read
        return {}
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def case_with_default(case: Case, name: str, default: object, exercise: Exercise) -> Case | None:
    """Return the case with a default handed over; None if it gives that argument already.

    A module's default is handed to its constructor (``make``).
    """
    if "make" in case.kwargs:
        args, settings = case.kwargs["make"]
        if name in settings or len(args) > parameter_place(exercise.reference, name):
            return None
        return replace(case, kwargs={**case.kwargs, "make": (args, {**settings, name: default})})
    if name in case.kwargs or len(case.args) > parameter_place(exercise.reference, name):
        return None
    return replace(case, kwargs={**case.kwargs, name: default})


def parameter_place(reference: Callable, name: str) -> int:
    """Return the place of a parameter in the reference's signature, from 0."""
    return list(inspect.signature(reference).parameters).index(name)


def default_mends(
    exercise: Exercise, implementation: Callable, trial: Trial, case: Case
) -> bool | None:
    """Return whether a changed case is right, compared with its trial; None where it raises.

    It raises where the caller takes no such argument. Raises ``TimeUp`` for a call that hangs.
    """
    with bring_back_changes():
        outcome = run(exercise, implementation, case)
    if outcome.kind == "hung":
        raise TimeUp
    if outcome.kind == "raised":
        return None
    return problem_with(trial.case, trial.expected, outcome, brief=True) is None


def shared_default_mistake(
    exercise: Exercise, implementation: Callable, trials: tuple[Trial, ...]
) -> Mistake | None:
    """Return the mistake of a list, dict or set as a default, which all calls share; else None.

    It is found if all wrong cases become right once each call gets a new one. Raises ``TimeUp`` for
    a call that hangs.
    """
    wrong = [t for t in trials if t.wrong]
    for name, default in defaults_of(implementation).items():
        if type(default) not in (list, dict, set) or not wrong:
            continue
        kind = type(default)
        with_new = with_new_default(implementation, name, kind)
        if all(default_mends(exercise, with_new, t, t.case) for t in wrong):
            new = default_as_code(kind())
            return Mistake(
                SHARED_DEFAULT,
                f"`{name}={new}` is made once, when the function is defined, and each "
                f"call goes on with what those before have left in it. Write `{name}=None`, and "
                f"inside `if {name} is None: {name} = {new}`.",
            )
    return None


def with_new_default(implementation: Callable, name: str, kind: type) -> Callable:
    """Return the implementation with a new list, dict or set for each call that leaves it out."""

    def call_with_new(*args: object, **kwargs: object) -> object:
        """Return the implementation's result with a new default, unless the call gives one."""
        return implementation(*args, **{name: kind(), **kwargs})

    return call_with_new
