"""A default that is not the exercise's: wrong where an argument is left out, right where it is not.

The cases that are wrong are tried once more, with the exercise's own default handed over.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace

from attncourse.checks.exercise import Case, Exercise, Mistake
from attncourse.checks.explaining.signatures import in_code
from attncourse.checks.trying.asking import asking
from attncourse.checks.trying.outcome import run
from attncourse.checks.trying.trials import Trial, problem_with
from attncourse.support.alarm import TimeUp

SHARED_DEFAULT = "a default that all calls share"


def other_default(
    exercise: Exercise, implementation: Callable, trials: tuple[Trial, ...]
) -> Mistake | None:
    """Return the mistake, if handing a default over makes everything right that leaves it out.

    Raises ``TimeUp`` where such a call does not return: nothing can be asked after that.
    """
    wrong = [t for t in trials if t.wrong and t.case.raises is None]
    for name, default in defaults_of(exercise.reference).items():
        tried = [
            (t, case) for t in wrong if (case := with_default(t.case, name, default, exercise))
        ]
        enough = max(1, len(wrong) / 2)
        if len(tried) < enough:
            continue
        results = []
        for trial, case in tried:
            result = default_mends(exercise, implementation, trial, case)
            if result is False:
                break  # one that is wrong settles it
            results.append(result)
        if len(results) == len(tried) and results.count(True) >= enough:
            # Once more as it was: what is wrong once and right once is decided by lot.
            if any(default_mends(exercise, implementation, t, t.case) for t, _ in tried):
                return None
            return Mistake(
                f"another default for {name}",
                f"Your answer is right where the call gives `{name}={in_code(default)}`, and wrong "
                f"where {name} is left out. The exercise says that it is the same then.",
            )
    return None


def defaults_of(function: Callable) -> dict[str, object]:
    """Return the parameters of a function that have defaults, with these."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # it is in another process, or has none to read
        return {}
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def with_default(case: Case, name: str, default: object, exercise: Exercise) -> Case | None:
    """Return the case with an argument handed over that it leaves out; None where it does not."""
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
    """True if a case is right with this default; None where its caller takes no such argument."""
    with asking():
        outcome = run(exercise, implementation, case)
    if outcome.kind == "hung":
        raise TimeUp
    if outcome.kind == "raised":
        return None
    return problem_with(trial.case, trial.expected, outcome, brief=True) is None


def shared_default(
    exercise: Exercise, implementation: Callable, trials: tuple[Trial, ...]
) -> Mistake | None:
    """Return the mistake, if a list, dictionary or set that is a default is what calls share.

    That is so where a new one handed over makes everything right. Raises ``TimeUp`` as
    ``other_default`` does.
    """
    wrong = [t for t in trials if t.wrong]
    for name, default in defaults_of(implementation).items():
        if type(default) not in (list, dict, set) or not wrong:
            continue
        made = type(default)
        anew = with_new(implementation, name, made)
        if all(default_mends(exercise, anew, t, t.case) for t in wrong):
            new = in_code(made())
            return Mistake(
                SHARED_DEFAULT,
                f"`{name}={new}` is made once, when the function is defined, and each "
                f"call goes on with what those before have left in it. Write `{name}=None`, and "
                f"inside `if {name} is None: {name} = {new}`.",
            )
    return None


def with_new(implementation: Callable, name: str, made: type) -> Callable:
    """Return the implementation with a new list for each call, whoever calls it."""

    def called(*args: object, **kwargs: object) -> object:
        return implementation(*args, **{name: made(), **kwargs})

    return called
