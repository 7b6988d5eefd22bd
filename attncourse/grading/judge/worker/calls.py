"""Preparing a call in a worker, and describing its effects.

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


def seed(number: int | None) -> None:
    """Seed every generator that a function may draw from."""
    if number is None:
        return
    random.seed(number)
    np.random.seed(number % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(number)  # the CPU's


def generator(state: dict[str, Any]) -> np.random.Generator:
    """Return a generator that draws on from a state that was sent."""
    made = np.random.Generator(np.random.PCG64())
    made.bit_generator.state = state
    return made


def gradient_context(request: dict[str, Any]) -> Any:
    """Return a context with or without gradients, as the checker has it."""
    if "torch" not in sys.modules or "grad" not in request:
        return nullcontext()
    return sys.modules["torch"].set_grad_enabled(request["grad"])


def without_leaves(args: list, kwargs: dict, decoder: Decoder, request: dict) -> tuple:
    """Return the arguments, with a copy in place of each leaf that is none there; the leaves.

    What a test computed before the call is a leaf here: without the copy, a submission that changes
    it in place would meet an error that a notebook does not give.
    """
    leaves = [decoder.tracked[n] for n in sorted(decoder.tracked)]
    inner = {id(leaves[n - 1]): leaves[n - 1].clone() for n in request.get("inner", ())}
    args = [inner.get(id(value), value) for value in args]
    kwargs = {name: inner.get(id(value), value) for name, value in kwargs.items()}
    return args, kwargs, leaves


def is_numeric_array(value: Any) -> bool:
    """True for an array of NumPy's or a tensor."""
    torch = sys.modules.get("torch")
    return isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor))


def argument_image(value: Any) -> Any:
    """Return something equal exactly while an argument stays as it is.

    None for what cannot be changed.
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
    "call": lambda function, *args, **kwargs: function(*args, **kwargs),
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
    """The settings at a process's start; ``put_back`` restores them.

    A test expects them as a fresh notebook has them, whatever a student's cell has changed. What an
    answer may rely on stays as the student left it: the folder, the environment, a higher limit on
    recursion.
    """

    def __init__(self) -> None:
        self.errors = np.geterr()
        self.filters = list(warnings.filters)
        self.depth = sys.getrecursionlimit()

    def put_back(self) -> None:
        """Restore the settings."""
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
    """Return an exception as text: class, builtin classes above it, message and line."""
    if isinstance(error, TimeUp):
        return {"timeout": True}
    try:
        message = within(1, lambda: str(error))[:MAX_ERROR_CHARS]
    except BaseException:  # a submission's own exception may refuse to be shown
        message = ""
    line = line_behind(error, lambda name: name.startswith("<cell"))
    return describe_class(type(error)) | {"message": message, "line": line}


def describe_class(kind: type[BaseException]) -> dict[str, Any]:
    """Return an exception's class by name, with the builtin classes above it."""
    return {
        "type": kind.__name__,
        "above": [c.__name__ for c in kind.__mro__ if c.__module__ == "builtins"],
        "unusable": issubclass(kind, Unusable),
    }


def parameters_of(value: Any) -> list[list] | None:
    """Return the parameters of a function: name, kind, whether it has a default."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except Exception:  # builtins have none, and a class may refuse
        return None
    return [[p.name, int(p.kind), p.default is not p.empty] for p in parameters]


def describe_module(module: Any, encoder: encoding.Encoder) -> dict[str, Any]:
    """Return a module's own parameters, buffers and plain attributes.

    And what it is made from.
    """
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
