"""Preparing a call in a worker, and describing what it did.

Before it: settings put back, seeds, gradients on or off. After it: what it changed, and exceptions,
functions and modules as text and numbers.
"""

import copy
import inspect
import random
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from typing import Any

import numpy as np

from attncourse.checks.reading.lines import line_behind
from attncourse.checks.trying.outcome import Unusable
from attncourse.checks.trying.settings import reset_torch
from attncourse.grading.judge.wire import encoding
from attncourse.grading.judge.wire.decoding import Decoder
from attncourse.support.alarm import TimeUp, within


def seed_generators(number: int | None) -> None:
    """Seed every generator that a function may draw from; do nothing for None."""
    if number is None:
        return
    random.seed(number)
    np.random.seed(number % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(number)  # the CPU's


def generator_in_state(state: dict[str, Any]) -> np.random.Generator:
    """Return a generator that goes on from a state, as the checker's own would."""
    generator = np.random.Generator(np.random.PCG64())
    generator.bit_generator.state = state
    return generator


def gradient_context(request: dict[str, Any]) -> Any:
    """Return a context in which gradients are on or off, as they are in the checker."""
    if "torch" not in sys.modules or "grad" not in request:
        return nullcontext()
    return sys.modules["torch"].set_grad_enabled(request["grad"])


def with_computed_tensors_cloned(
    args: list, kwargs: dict, decoder: Decoder, request: dict
) -> tuple:
    """Return a call's arguments, with clones of computed tensors; and the leaves for gradients.

    What a test computed before the call is a leaf here: without the clone, a submission that
    changes it in place would meet an error that a notebook does not give. Gradients are for the
    leaves.
    """
    leaves = [decoder.tracked[n] for n in sorted(decoder.tracked)]
    inner = {id(leaves[n - 1]): leaves[n - 1].clone() for n in request.get("inner", ())}
    args = [inner.get(id(value), value) for value in args]
    kwargs = {name: inner.get(id(value), value) for name, value in kwargs.items()}
    return args, kwargs, leaves


def is_numeric_array(value: Any) -> bool:
    """True if a value is an array of NumPy's or a tensor."""
    torch = sys.modules.get("torch")
    return isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor))


def argument_snapshot(value: Any) -> Any:
    """Return what compares equal as long as an argument is not changed in place.

    None for an argument that cannot be changed, or not be sent.
    """
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    if is_numeric_array(value):
        return encoding.tensor_content(value)
    if not isinstance(value, list | dict | set):
        return None
    encoder = encoding.Encoder(lambda member: {"h": id(member)})
    try:
        return encoder.encode(value), encoder.buffers
    except encoding.Unsendable:
        return None


USES: dict[str, Callable] = {
    "call": lambda function, /, *args, **kwargs: function(*args, **kwargs),
    "getattr": getattr,
    "setattr": setattr,
    "getitem": lambda value, key: value[key],
    "setitem": lambda value, key, item: value.__setitem__(key, item),
    "len": len,
    "iter": iter,
    "next": next,
    "equal": lambda a, b: bool(a == b),
    "isinstance": isinstance,
    "copy": copy.deepcopy,
}


# --- settings of the whole process ----------------------------------------------------------------

_undo = ExitStack()  # kept: some of it would end with the line


class Settings:
    """The process-wide settings at a worker's start, of NumPy, warnings, recursion and torch.

    A test expects them as a fresh notebook has them, whatever a student's cell has changed. What an
    answer may rely on stays as the student left it: the folder, the environment, a higher limit on
    recursion.
    """

    def __init__(self) -> None:
        self.errors = np.geterr()
        self.filters = list(warnings.filters)
        self.depth = sys.getrecursionlimit()

    def put_back(self) -> None:
        """Restore the settings to what they were at the start."""
        if np.geterr() != self.errors:
            np.seterr(**self.errors)
        if warnings.filters != self.filters:
            warnings_module: Any = warnings  # the stubs have neither
            warnings_module.filters[:] = self.filters
            warnings_module._filters_mutated()
        if sys.getrecursionlimit() < self.depth:
            sys.setrecursionlimit(self.depth)
        if "torch" in sys.modules:
            reset_torch(sys.modules["torch"], _undo)


# --- what the checker is told ---------------------------------------------------------------------

MAX_ERROR_CHARS = 2000  # of an error's text are worth keeping


def error_as_text(error: BaseException) -> dict[str, Any]:
    """Return an exception's class, builtin bases, message and line, or that a time was over."""
    if isinstance(error, TimeUp):
        return {"timeout": True}
    try:
        message = within(1, lambda: str(error))[:MAX_ERROR_CHARS]
    except BaseException:  # a submission's own exception may refuse to be shown
        message = ""
    line = line_behind(error, lambda name: name.startswith("<cell"))
    return describe_class(type(error)) | {"message": message, "line": line}


def describe_class(kind: type[BaseException]) -> dict[str, Any]:
    """Return the name of an exception's class, and the names of the builtin classes above it."""
    return {
        "type": kind.__name__,
        "above": [c.__name__ for c in kind.__mro__ if c.__module__ == "builtins"],
        "unusable": issubclass(kind, Unusable),
    }


def parameters_of(value: Any) -> list[list] | None:
    """Return a function's parameters as name, kind, and whether a default is there; else None."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except Exception:  # builtins have none, and a class may refuse
        return None
    return [[p.name, int(p.kind), p.default is not p.empty] for p in parameters]


def describe_module(module: Any, encoder: encoding.Encoder) -> dict[str, Any]:
    """Return a module's tensors, plain attributes and torch classes, of which a copy is made."""
    plain = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and isinstance(value, bool | int | float | str | None)
    }
    return {
        "class": type(module).__name__,
        "bases": [b.__name__ for b in type(module).__mro__ if b.__module__.startswith("torch.nn.")],
        "tensors": {
            name: encoding.describe_tensor(module, name, encoder)
            for name in encoding.tensors_of(module)
        },
        "transient": sorted(module._non_persistent_buffers_set),
        "plain": encoder.encode(plain),
    }
