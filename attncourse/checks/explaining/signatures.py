"""A signature that is not the exercise's: one that does not take the calls it is tested with.

Python says so before any line of the answer runs, so no line of it stands in the error.
"""

import inspect
import re
from collections.abc import Callable

from attncourse.checks.exercise import Exercise, Mistake
from attncourse.checks.trying.trials import Trial

CALL_PATTERN = r"(?P<function>\w+|<lambda>)\(\) "  # as Python writes it
MISSING_ARGUMENT = re.compile(
    CALL_PATTERN + r"missing \d+ required [a-z-]+ arguments?: (?P<names>'[^()]+')$"
)
OTHER_ARGUMENT = re.compile(
    CALL_PATTERN + r"(takes (from )?\d+ .*positional arguments? but \d+ .*given"
    r"|takes no (keyword )?arguments.*|got an unexpected keyword argument '.+'"
    r"|got multiple values for argument '.+')$"
)


def other_signature(exercise: Exercise, trials: tuple[Trial, ...]) -> Mistake | None:
    """Return the mistake in a signature, if a call does not fit it, whatever else is wrong."""
    for trial in trials:
        if trial.outcome.error is TypeError and trial.wrong:
            if missing := MISSING_ARGUMENT.search(trial.outcome.text):
                return missing_default(
                    exercise, missing["function"], re.findall(r"'(\w+)'", missing["names"])
                )
            if other := OTHER_ARGUMENT.search(trial.outcome.text):
                return other_signature_mistake(exercise, other["function"], other[0])
    return None


def missing_default(exercise: Exercise, function: str, names: list[str]) -> Mistake:
    """Return the mistake of an argument that a signature asks for in every call."""
    defaults = {
        name: p.default
        for name, p in inspect.signature(counterpart(exercise, function)).parameters.items()
        if p.default is not p.empty
    }
    if not set(names) <= set(defaults):
        text = f"{function}() asks for {' and '.join(names)} as well"
        return other_signature_mistake(exercise, function, text)
    listed = " and ".join(names)
    written = ", ".join(f"{name}={in_code(defaults[name])}" for name in names)
    return Mistake(
        f"no default for {listed}",
        f"Your signature asks for {listed} in every call. The exercise lets "
        f"{'it' if len(names) == 1 else 'them'} be left out: write `{written}`.",
    )


def other_signature_mistake(exercise: Exercise, function: str, complaint: str) -> Mistake:
    """Return the mistake of a signature that does not take the exercise's calls.

    ``complaint`` is what Python says of such a call.
    """
    wanted = counterpart(exercise, function)
    name = exercise.reference.__name__ if wanted.__name__ == "__init__" else wanted.__name__
    bare = []
    for p in inspect.signature(wanted).parameters.values():
        if p.kind is p.KEYWORD_ONLY and "*" not in bare:
            bare.append("*")
        bare += [p.name if p.default is p.empty else f"{p.name}={in_code(p.default)}"]
    if bare[:1] == ["self"]:
        bare.pop(0)
    return Mistake(
        "the signature is another one",
        f"The exercise is called as `{name}({', '.join(bare)})`. Yours does not take such a call: "
        f"{complaint}. Have the arguments that the exercise has, in its order and with its names.",
    )


def in_code(default: object) -> str:
    """Return a default as it is written in a signature."""
    if not callable(default):
        return repr(default)
    module = getattr(default, "__module__", "") or ""
    return f"F.{default.__name__}" if module.startswith("torch") else default.__name__


def counterpart(exercise: Exercise, function: str) -> Callable:
    """Return the part of the reference that a function of the answer stands for.

    It is the method of that name, or the whole.
    """
    reference = exercise.reference
    return (
        getattr(reference, function.rsplit(".", 1)[-1], reference)
        if inspect.isclass(reference)
        else reference
    )
