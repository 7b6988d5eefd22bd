"""What a worker tells of a submission's exceptions, functions and modules: text and numbers."""

import inspect
import linecache
from typing import Any

from attncourse.alarm import TimeUp, within
from attncourse.checks.outcome import Unusable
from attncourse.grading.judge.wire.encoding import Encoder, content

MESSAGE = 2000  # characters of an error's text that are worth keeping


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as text: its class, the builtin classes above it, message and line."""
    if isinstance(error, TimeUp):
        return {"timeout": True}
    try:
        message = within(1, lambda: str(error))[:MESSAGE]
    except BaseException:  # a submission's own exception may refuse to be shown
        message = ""
    return describe_class(type(error)) | {"message": message, "line": line_of(error)}


def describe_class(kind: type[BaseException]) -> dict[str, Any]:
    """An exception's class by name, with the builtin classes above it."""
    return {
        "type": kind.__name__,
        "above": [c.__name__ for c in kind.__mro__ if c.__module__ == "builtins"],
        "unusable": issubclass(kind, Unusable),
    }


def line_of(error: BaseException) -> str:
    """The last line of the submission that the exception came through."""
    line, step = "", error.__traceback__
    while step is not None:
        filename = step.tb_frame.f_code.co_filename
        if filename.startswith("<cell"):
            line = linecache.getline(filename, step.tb_lineno).strip() or line
        step = step.tb_next
    return line[:200]


def signature(value: Any) -> list[list] | None:
    """The parameters of a function: name, kind, whether it has a default."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except Exception:  # builtins have none, and a class may refuse
        return None
    return [[p.name, int(p.kind), p.default is not p.empty] for p in parameters]


def describe_module(module: Any, encoder: Encoder) -> dict[str, Any]:
    """A module's own parameters, buffers and plain attributes, and what it is made from."""
    plain = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and isinstance(value, bool | int | float | str | None)
    }
    return {
        "class": type(module).__name__,
        "bases": [b.__name__ for b in type(module).__mro__ if b.__module__.startswith("torch.nn.")],
        "parameters": {
            name: {"value": encoder.encode(p.detach()), "grad": p.requires_grad, "id": id(p)}
            for name, p in module._parameters.items()
            if p is not None
        },
        "buffers": {n: encoder.encode(b) for n, b in module._buffers.items() if b is not None},
        "transient": sorted(module._non_persistent_buffers_set),
        "plain": encoder.encode(plain),
    }


def fingerprint(module: Any) -> dict[str, tuple]:
    """Something that changes whenever a module's own state does."""
    tensors = [*module._parameters.items(), *module._buffers.items()]
    state = {name: (id(t), *content(t)) for name, t in tensors if t is not None}
    children = tuple((name, id(child)) for name, child in module._modules.items())
    return state | {" ": (module.training, *children)}
