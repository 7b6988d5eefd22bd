"""A signature that is not the exercise's, so that Python refuses the calls of the cases.

Python refuses them before any line of the answer runs, so its error ends without such a line.
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


def wrong_signature(exercise: Exercise, trials: tuple[Trial, ...]) -> Mistake | None:
    """Return the mistake in a signature if it refuses some call; None if it takes all."""
    for trial in trials:
        if trial.outcome.error is TypeError and trial.wrong:
            if missing := MISSING_ARGUMENT.search(trial.outcome.text):
                return missing_default_mistake(
                    exercise, missing["function"], re.findall(r"'(\w+)'", missing["names"])
                )
            if refusal := OTHER_ARGUMENT.search(trial.outcome.text):
                return signature_mistake(exercise, refusal["function"], refusal[0])
    return None


def missing_default_mistake(exercise: Exercise, function: str, names: list[str]) -> Mistake:
    """Return the mistake that arguments, which the exercise lets be left out, have no default.

    If the exercise has no defaults for them, it is a mistake in the signature.
    """
    defaults = {
        name: p.default
        for name, p in inspect.signature(reference_part(exercise, function)).parameters.items()
        if p.default is not p.empty
    }
    if not set(names) <= set(defaults):
        text = f"{function}() asks for {' and '.join(names)} as well"
        return signature_mistake(exercise, function, text)
    names_in_words = " and ".join(names)
    written = ", ".join(f"{name}={default_as_code(defaults[name])}" for name in names)
    return Mistake(
        f"no default for {names_in_words}",
        f"Your signature asks for {names_in_words} in every call. The exercise lets "
        f"{'it' if len(names) == 1 else 'them'} be left out: write `{written}`.",
    )


def signature_mistake(exercise: Exercise, function: str, complaint: str) -> Mistake:
    """Return the mistake of a signature that does not take the exercise's calls.

    ``complaint`` is what Python says of such a call.
    """
    reference = reference_part(exercise, function)
    name = exercise.reference.__name__ if reference.__name__ == "__init__" else reference.__name__
    parameters_as_code = []
    for p in inspect.signature(reference).parameters.values():
        if p.kind is p.KEYWORD_ONLY and "*" not in parameters_as_code:
            parameters_as_code.append("*")
        parameters_as_code += [
            p.name if p.default is p.empty else f"{p.name}={default_as_code(p.default)}"
        ]
    if parameters_as_code[:1] == ["self"]:
        parameters_as_code.pop(0)
    return Mistake(
        "the signature is another one",
        f"The exercise is called as `{name}({', '.join(parameters_as_code)})`. "
        f"Yours does not take such a call: {complaint}. "
        "Have the arguments that the exercise has, in its order and with its names.",
    )


def default_as_code(default: object) -> str:
    """Return a default as code: a function of torch as ``F.name``."""
    if not callable(default):
        return repr(default)
    module = getattr(default, "__module__", "") or ""
    return f"F.{default.__name__}" if module.startswith("torch") else default.__name__


def reference_part(exercise: Exercise, function: str) -> Callable:
    """Return the reference, or its method of the same name as a function of the answer."""
    reference = exercise.reference
    if not inspect.isclass(reference):
        return reference
    return getattr(reference, function.rsplit(".", 1)[-1], reference)
