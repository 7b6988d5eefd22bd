"""One call of an implementation on a case, with its limits, and the outcome."""

import copy
import inspect
import linecache
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from attncourse.checks.exercise import Case, Exercise
from attncourse.checks.reading.lines import line_behind, steps_of
from attncourse.checks.trying.unavailable import (
    Absent,
    block_solutions_for,
    refuse_questions,
    unavailable_sentence,
)
from attncourse.checks.trying.watch import Forbidden, Unusable, forbidding
from attncourse.support.alarm import TimeUp, within
from attncourse.support.limited_thread import StillRuns

STILL_RUNS = "It still runs, and nothing here can end it: restart the kernel."
IMMUTABLE_TYPES = {type(None), bool, int, float, str}  # nobody has to copy them


class Comparison:
    """The last comparison of an outcome: with which expected one, and whether it was wrong."""

    expected: object = None
    wrong: bool = False


@dataclass(frozen=True)
class Outcome:
    """The outcome of one call. ``kind``: "value", "raised", "hung" or "skipped".

    ``value`` is what was returned, tensors as they came. ``error`` is the exception's class,
    ``text`` its message with the line that raised it; ``decided`` says that a ``raise`` in this
    package raised it. ``mutated`` names the arguments that the call changed. The ``text`` of a call
    that hung says that nothing can end it, or is empty. ``comparison`` is kept with the outcome,
    since many trials may share one outcome, and each would compare it again.
    """

    kind: str
    value: Any = None
    error: type[BaseException] | None = None
    text: str = ""
    mutated: str = ""
    decided: bool = False
    comparison: Comparison = field(
        default_factory=Comparison, init=False, compare=False, repr=False
    )


@dataclass(frozen=True)
class TrialSettings:
    """What ``run_case`` has to know of an exercise.

    ``names`` are those of the positional arguments, ``limit`` is the seconds for each call (0 where
    the caller ends calls itself), ``forbids`` the functions that an answer may not use.
    """

    names: tuple[str, ...]
    limit: float
    forbids: tuple[str, ...]


def run(
    exercise: Exercise, implementation: Callable, case: Case, *, watched: bool = True
) -> Outcome:
    """Return the outcome of using ``implementation`` on a copy of the case's arguments.

    If ``watched``, calls of functions that the exercise forbids are refused. A caller with many
    cases passes False and watches all of them together, since starting a watch takes longer than
    most calls. The reference is never watched.
    """
    arguments = dict(zip(argument_names(exercise), case.args, strict=False))
    watched = watched and implementation is not exercise.reference
    settings = TrialSettings(tuple(arguments), exercise.limit, exercise.forbids if watched else ())
    with block_solutions_for(exercise.stem, implementation):
        outcome = run_case(settings, implementation, case)
    return outcome_of_facts(case, outcome)


def outcome_of_facts(case: Case, outcome: Outcome) -> Outcome:
    """Return the outcome with the case's facts in place of its value, if the case has any."""
    if case.facts is None or outcome.kind != "value":
        return outcome
    try:
        with quiet():
            return replace(outcome, value=case.facts(outcome.value))
    except Exception as error:  # a proxy of a dishonest process may return any value
        return replace(outcome, kind="raised", value=None, error=Unusable, text=str(error)[:200])


def run_case(settings: TrialSettings, implementation: Callable, case: Case) -> Outcome:
    """Return the outcome of one case, without the exercise: a submission's process has none.

    Warnings are off, input and debugger are refused, calls of forbidden functions are noticed, and
    the call is ended after its limit. A changed argument is noted.
    """
    args, kwargs = copy_of(case.args), copy_of(case.kwargs)

    def call() -> Outcome:
        """Return the outcome of the call itself: a copy of its value, or its exception."""
        try:
            # A value that shares memory with the arguments is kept as it is now.
            value = copy_of(case.use(implementation, *args, **kwargs))
        except (Exception, SystemExit) as error:
            if sentence := unavailable_sentence(error):
                return Outcome("raised", error=Absent, text=sentence)
            text, decided = describe_error(error), is_decided(error)
            return Outcome("raised", error=type(error), text=text, decided=decided)
        return Outcome("value", value=value)

    try:
        with quiet(), refuse_questions(), forbidding(settings.forbids) as refused:
            outcome = within(settings.limit, call) if settings.limit else call()
            outcome = refused_outcome(outcome, refused())
    except TimeUp as up:
        outcome = Outcome("hung", text=STILL_RUNS if isinstance(up, StillRuns) else "")
    arguments = [*zip(settings.names, case.args, args, strict=False)]
    arguments += [(name, value, kwargs[name]) for name, value in case.kwargs.items()]
    changed = [name for name, before, after in arguments if not is_unchanged(before, after)]
    return replace(outcome, mutated=", ".join(changed)) if changed else outcome


def refused_outcome(outcome: Outcome, refusal: str) -> Outcome:
    """Return the outcome, or one that raised ``Forbidden`` if the watch has a ``refusal``.

    An outcome that hung stays as it is.
    """
    if not refusal or outcome.kind == "hung":
        return outcome
    return Outcome("raised", error=Forbidden, text=refusal, mutated=outcome.mutated)


def argument_names(exercise: Exercise) -> list[str]:
    """Return the names of the reference's positional parameters, in order.

    A callable without code of its own gives "argument 0" and so on.
    """
    code = getattr(inspect.unwrap(exercise.reference), "__code__", None)
    if code is None:
        return [f"argument {i}" for i in range(9)]
    return list(code.co_varnames[: code.co_argcount])


def named_arguments(exercise: Exercise, case: Case) -> list[tuple[str, object]]:
    """Return name and value of each argument of a case; a caller's parameters have its names."""
    names = argument_names(exercise)
    if case.use is not None:  # its own parameters come first; messages show their names
        parameter_names = positional_names(case.use)[1:]  # without the implementation
        names = parameter_names + names[len(parameter_names) :]
    return [*zip(names, case.args, strict=False), *case.kwargs.items()]


@cache
def positional_names(function: Callable) -> list[str]:
    """Return the names of a function's positional parameters."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def copy_of(value: Any) -> Any:
    """Return a copy with the same memory layout, so that a non-contiguous array stays one."""
    if type(value) in IMMUTABLE_TYPES:
        return value
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if is_tensor(value):
        if not value.requires_grad:
            return value.clone()
        return value.detach().clone().requires_grad_()
    if type(value) in (tuple, list):
        return type(value)(map(copy_of, value))
    if type(value) is dict:
        return {key: copy_of(item) for key, item in value.items()}
    try:
        return copy.deepcopy(value)
    except Exception:  # what a student returns may refuse to be copied
        return value


def is_unchanged(a: Any, b: Any) -> bool:
    """True if an argument after the call, b, is bit for bit what it was before, a.

    Functions and generators count as unchanged: a call may use them up.
    """
    if a is b and type(a) in IMMUTABLE_TYPES:
        return True
    tensors = is_tensor(a)
    if tensors != is_tensor(b):
        return False
    if tensors or isinstance(a, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if tensors and a.requires_grad != b.requires_grad:
            return False
        both = (x.numpy(force=True) if tensors else x for x in (a, b))
        return next(both).tobytes() == next(both).tobytes()
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(is_unchanged, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(is_unchanged(a[key], b[key]) for key in a)
    return callable(a) or isinstance(a, np.random.Generator) or bool(a == b)


def is_tensor(value: Any) -> bool:
    """True if ``value`` is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def plain_tensor(tensor: Any) -> Any:
    """Return a tensor's numbers as a plain ``torch.Tensor``, so that no subclass's methods run.

    Call it on whatever an answer returned before computing with it.
    """
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        return torch.Tensor.detach(tensor).as_subclass(torch.Tensor)


def describe_error(error: BaseException) -> str:
    """Return an exception's type and message, with the last line of the student's code in it."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, Unusable):
        return str(error)
    line = getattr(error, "attncourse_line", None)  # raised in another process
    line = line_behind(error, is_student_file) if line is None else line
    return f"{text} (in the line {line})" if line else text


def is_unwritten(outcome: Outcome) -> bool:
    """True if a call raised by a stub's ``raise NotImplementedError()``, not by torch's."""
    message = outcome.text.split(" (in the line")[0]
    by_hand = message == "NotImplementedError" or "raise NotImplementedError" in outcome.text
    return outcome.error is NotImplementedError and by_hand


def is_decided(error: BaseException) -> bool:
    """True if the innermost line of an error's traceback is a ``raise`` in this package."""
    *_, (frame, number) = steps_of(error)
    filename = frame.f_code.co_filename
    if not filename.startswith(PACKAGE_FOLDER):
        return False
    return linecache.getline(filename, number).strip().startswith("raise")


PACKAGE_FOLDER = __file__.rsplit("checks", 1)[0]


def is_student_file(filename: str) -> bool:
    """True if a traceback's file belongs neither to this package nor to an installed library."""
    return not filename.startswith(PACKAGE_FOLDER) and "site-packages" not in filename


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore warnings inside the block: an overflow is judged by its result, not reported twice."""
    # Inside another such block there is nothing to do, and setting it again takes time.
    if warnings.filters[:1] == SILENT_WARNING_FILTERS and np.geterr() == IGNORED_NUMPY_ERRORS:
        yield
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


SILENT_WARNING_FILTERS = [("ignore", None, Warning, None, 0)]
IGNORED_NUMPY_ERRORS = dict.fromkeys(np.geterr(), "ignore")
