"""The process in which a submission's code runs. It computes; it judges nothing.

It answers the checker's requests over one socket: run this cell, what do these names mean, call
this function with these arguments, take this gradient. It knows no tests, no checks and no
answers, and whatever it says is taken for numbers and text.
"""

import ast
import copy
import inspect
import io
import linecache
import os
import random
import signal
import sys
import types
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from functools import cache
from typing import Any

import numpy as np

from attncourse.alarm import TimeUp, within
from attncourse.grading.wire import Decoder, Encoder, Unsendable, content, pack, unpack

MESSAGE = 2000  # characters of an error's text that are worth keeping
SHOWN = 20_000  # characters of printed output that a reply carries
NO_LIMIT = 1 << 40
NOTHING = object()


class Gone(BaseException):
    """The checker has hung up."""


def serve(connection: Any, output: float) -> None:
    """Answers requests until the checker hangs up. ``output`` is the MB that may be printed."""
    worker = Worker(connection, int(output * 1e6))
    try:
        while True:
            worker.answer(*worker.receive())
    except Gone:
        os._exit(0)


class Printed(io.TextIOBase):
    """Collects what is printed, up to a number of characters for the whole submission."""

    def __init__(self, left: int):
        self.left = left
        self.pieces: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.left > 0:
            self.pieces.append(text[: self.left])
        self.left -= len(text)
        return len(text)

    def taken(self) -> str:
        """What was printed since the last time, shortened."""
        text = "".join(self.pieces)
        self.pieces.clear()
        return text if len(text) <= SHOWN else text[:SHOWN] + "…"


class Worker:
    """The submission's names, the objects that the checker holds handles of, and the requests."""

    def __init__(self, connection: Any, output: int):
        self.connection = connection
        self.printed = Printed(output)
        self.handles: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}  # id of an object to its handle
        self.modules: dict[int, dict[str, tuple]] = {}  # as the checker last saw them
        self.graphs: dict[int, tuple[list, list]] = {}
        self.count = 0
        self.namespace = notebook_namespace()

    # --- talking --------------------------------------------------------------------------------

    def receive(self) -> tuple[dict[str, Any], list[memoryview]]:
        return unpack(self.read, NO_LIMIT)

    def read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.connection.recv(min(size - len(data), 1 << 20))
            if not piece:
                raise Gone
            data += piece
        return bytes(data)

    def answer(self, request: dict[str, Any], buffers: list[memoryview]) -> None:
        """Does what is asked for and sends what came of it."""
        encoder = Encoder(self.handle)
        try:
            reply = self.limited(request, Decoder(buffers, self.meant), encoder)
        except Gone:
            raise
        except BaseException as error:
            encoder = Encoder(self.handle)
            reply = {"error": describe(error)}
        reply["out"] = self.printed.taken()
        reply["over"] = self.printed.left < 0
        self.connection.sendall(pack(reply, encoder.buffers))

    def limited(self, request: dict, decoder: Decoder, encoder: Encoder) -> dict[str, Any]:
        """The reply to a request, its code stopped after the request's limit."""
        for number in request.get("drop", ()):
            self.forget(number)
        do = getattr(self, "do_" + request["op"])
        with redirect_stdout(self.printed), redirect_stderr(Printed(0)), forbidding(request):
            reply = within(request["limit"], lambda: do(request, decoder, encoder))
        self.update(reply, encoder)
        return reply

    # --- requests -------------------------------------------------------------------------------

    def do_cell(self, request: dict, decoder: Decoder, encoder: Encoder) -> dict[str, Any]:
        """Runs one of the notebook's cells."""
        execute(request["source"], f"<{request['name']}>", self.namespace)
        return {}

    def do_names(self, request: dict, decoder: Decoder, encoder: Encoder) -> dict[str, Any]:
        """The values of those names that the submission has."""
        values = {}
        for name in request["names"]:
            value = self.namespace.get(name, NOTHING)
            if value is NOTHING or isinstance(value, types.ModuleType):
                continue
            try:
                values[name] = encoder.encode(value)
            except Unsendable:
                values[name] = {"o": self.handle(value)}
        return {"values": values}

    def do_call(self, request: dict, decoder: Decoder, encoder: Encoder) -> dict[str, Any]:
        """Uses an object: calls it, or reads an attribute, an item, the length, the next value."""
        self.load(request.get("state", {}), decoder)
        seed(request.get("seed"))
        args = decoder.decode(request["args"])
        kwargs = decoder.decode(request["kwargs"])
        before = [image(value) for value in (*args, *kwargs.values())]
        use = USES[request["use"]]
        with gradients(request):
            args, kwargs, leaves = unleafed(args, kwargs, decoder, request)
            try:
                value = use(*args, **kwargs)
            except StopIteration:
                if request["use"] != "next":
                    raise
                return {"stop": True}
        known = {id(v): {"A": i} for i, v in enumerate((*args, *kwargs.values())) if is_array(v)}
        encoder.known.update(known)
        reply = {"value": encoder.encode(value)}
        encoder.known = {}
        after = (*args, *kwargs.values())
        reply["changed"] = [
            [i, encoder.encode(v)]
            for i, v in enumerate(after)
            if before[i] is not None and image(v) != before[i]
        ]
        if encoder.tracked:
            leaves += [self.parameter(*pair) for pair in request.get("leaves", ())]
            reply["graph"] = self.new_number()
            self.graphs[reply["graph"]] = (list(encoder.tracked), leaves)
        return reply

    def do_backward(self, request: dict, decoder: Decoder, encoder: Encoder) -> dict[str, Any]:
        """Gradients of a call's outputs with respect to what went into it."""
        import torch

        outputs, leaves = self.graphs[request["graph"]]
        given = decoder.decode(request["gradients"])
        pairs = [(o, g) for o, g in zip(outputs, given, strict=True) if g is not None]
        found = torch.autograd.grad(
            [o for o, _ in pairs],
            leaves,
            [g for _, g in pairs],
            allow_unused=True,
            retain_graph=True,
        )
        return {"gradients": encoder.encode(list(found))}

    # --- objects that stay here -----------------------------------------------------------------

    def new_number(self) -> int:
        self.count += 1
        return self.count

    def forget(self, number: int) -> None:
        self.graphs.pop(number, None)
        self.modules.pop(number, None)
        gone = self.handles.pop(number, None)
        self.numbers.pop(id(gone), None)

    def number_of(self, value: Any) -> int:
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = self.new_number()
            self.handles[number] = value
        return number

    def handle(self, value: Any) -> dict[str, Any]:
        """What the checker is told of an object: enough to stand in for it."""
        torch = sys.modules.get("torch")
        told = {"h": self.number_of(value), "type": type(value).__name__}
        if torch is not None and isinstance(value, torch.nn.Module):
            return {**told, "kind": "module"}
        if isinstance(value, type):
            module = torch is not None and issubclass(value, torch.nn.Module)
            bases = [b.__name__ for b in value.__mro__ if b.__module__.startswith("torch.nn.")]
            told |= {"kind": "class", "name": value.__name__, "module": module, "bases": bases}
            return {**told, "signature": signature(value)}
        if callable(value) and not hasattr(type(value), "__next__"):
            name = getattr(value, "__name__", "")
            told |= {"kind": "function", "name": name if isinstance(name, str) else ""}
            return {**told, "signature": signature(value)}
        return {**told, "kind": "object"}

    def meant(self, form: dict[str, Any]) -> Any:
        """What the checker's side of a value is here."""
        if "h" in form:
            return self.handles[form["h"]]
        if "G" in form:
            return generator(form["G"])
        if "E" in form:
            return getattr(__import__("builtins"), form["E"])
        return self.callback(form["C"], form.get("name", ""))

    def callback(self, number: int, name: str) -> Callable:
        """A function that lives in the checker."""

        def call(*args: Any, **kwargs: Any) -> Any:
            encoder = Encoder(self.handle)
            asked = {"args": encoder.encode(list(args)), "kwargs": encoder.encode(kwargs)}
            self.connection.sendall(pack({"callback": number, **asked}, encoder.buffers))
            reply, buffers = self.receive()
            if "error" in reply:
                kind = getattr(__import__("builtins"), reply["error"]["type"], RuntimeError)
                raise kind(reply["error"]["message"])
            return Decoder(buffers, self.meant).decode(reply["value"])

        call.__name__ = name or "function"
        return call

    # --- modules: the checker holds a copy of their parameters ----------------------------------

    def parameter(self, number: int, name: str) -> Any:
        return self.handles[number]._parameters[name]

    def load(self, state: dict[str, Any], decoder: Decoder) -> None:
        """Takes over what the checker did to a module: its parameters, buffers and mode."""
        torch, made = sys.modules.get("torch"), {}
        for number, changes in state.items():
            module = self.handles[int(number)]
            if "training" in changes:
                module.training = changes["training"]
            for name, form in changes.get("parameters", {}).items():
                value = decoder.decode(form["value"]).detach()
                old = module._parameters.get(name)
                if form.get("new") or old is None:
                    same = made.get(form["id"])
                    if same is None:
                        same = made[form["id"]] = torch.nn.Parameter(value, form["grad"])
                    module._parameters[name] = same
                else:
                    old.data = value
                    old.requires_grad_(form["grad"])
            for name, form in changes.get("buffers", {}).items():
                module._buffers[name] = decoder.decode(form)
            if int(number) in self.modules:
                self.modules[int(number)] = fingerprint(module)

    def update(self, reply: dict[str, Any], encoder: Encoder) -> None:
        """Adds to a reply what the checker does not know of the modules it holds handles of."""
        torch = sys.modules.get("torch")
        if torch is None:
            return
        told = {}
        todo = [n for n, v in self.handles.items() if isinstance(v, torch.nn.Module)]
        while todo:
            number = todo.pop()
            module = self.handles[number]
            now = fingerprint(module)
            if str(number) in told or self.modules.get(number) == now:
                continue
            self.modules[number] = now
            children = {k: m for k, m in module._modules.items() if m is not None}
            told[str(number)] = describe_module(module, encoder) | {
                "children": {name: self.handle(child) for name, child in children.items()}
            }
            todo += [self.number_of(child) for child in children.values()]
        if told:
            reply["modules"] = told


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


# --- running code -------------------------------------------------------------------------------


def execute(source: str, filename: str, namespace: dict[str, Any]) -> None:
    """Runs a cell as a notebook would, but for the value of its last line."""
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)  # for inspect.getsource
    code = compile(
        source, filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    result = eval(code, namespace)
    if code.co_flags & inspect.CO_COROUTINE:
        import asyncio

        asyncio.run(result)


def notebook_namespace() -> dict[str, Any]:
    """The names that a notebook starts with, in a module of its own."""
    module = types.ModuleType("__main__")
    module.__dict__.update(display=ignore, get_ipython=lambda: Shell())
    sys.modules["__main__"] = module
    sys.argv = ["notebook"]
    sys.stdin = io.StringIO()
    return module.__dict__


def ignore(*values: Any, **options: Any) -> None:
    """Stands for what only shows something."""


class Shell:
    """What ``get_ipython()`` returns here: every method does nothing."""

    def __getattr__(self, name: str) -> Callable:
        return ignore


def seed(number: int | None) -> None:
    """Seeds every generator that a function may draw from."""
    if number is None:
        return
    random.seed(number)
    np.random.seed(number % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(number)


def generator(state: dict[str, Any]) -> np.random.Generator:
    made = np.random.Generator(np.random.PCG64())
    made.bit_generator.state = state
    return made


def gradients(request: dict[str, Any]) -> Any:
    """A context with or without gradients, as the checker has it."""
    if "torch" not in sys.modules or "grad" not in request:
        return nullcontext()
    return sys.modules["torch"].set_grad_enabled(request["grad"])


def unleafed(args: list, kwargs: dict, decoder: Decoder, request: dict) -> tuple:
    """The arguments, with a copy in place of each leaf that is none in the checker; the leaves."""
    leaves = [decoder.tracked[n] for n in sorted(decoder.tracked)]
    inner = {id(leaves[n - 1]): leaves[n - 1].clone() for n in request.get("inner", ())}
    args = [inner.get(id(value), value) for value in args]
    kwargs = {name: inner.get(id(value), value) for name, value in kwargs.items()}
    return args, kwargs, leaves


def is_array(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor))


def image(value: Any) -> Any:
    """Something equal exactly while a mutable argument stays as it is; None for others."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    if is_array(value):
        return content(value)
    if not isinstance(value, list | dict | set):
        return None
    encoder = Encoder(lambda other: {"h": id(other)})
    try:
        return encoder.encode(value), encoder.buffers
    except Unsendable:
        return None


def forbidding(request: dict[str, Any]) -> Any:
    """A context in which calling one of the named torch functions raises ``Forbidden``."""
    names = request.get("forbid")
    if not names or "torch" not in sys.modules:
        return nullcontext()
    return watch()(names)


@cache
def watch() -> type:
    """The class of those contexts; made once torch is there."""
    from torch.overrides import TorchFunctionMode

    class Forbid(TorchFunctionMode):
        def __init__(self, names: list[str]):
            super().__init__()
            self.names = names

        def __torch_function__(self, func, types, args=(), kwargs=None):
            if getattr(func, "__name__", "") in self.names:
                raise Forbidden(func.__name__)
            return func(*args, **(kwargs or {}))

    return Forbid


class Forbidden(Exception):
    """A library function was called that the exercise asks to build."""


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
    "text": repr,
    "source": inspect.getsource,
}


def signature(value: Any) -> list[list] | None:
    """The parameters of a function: name, kind, whether it has a default."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except Exception:  # builtins have none, and a class may refuse
        return None
    return [[p.name, int(p.kind), p.default is not p.empty] for p in parameters]


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as text: its class, the builtin classes above it, message and line."""
    if isinstance(error, TimeUp):
        return {"timeout": True}
    if isinstance(error, Forbidden):
        return {"forbidden": str(error)}
    try:
        message = within(1, lambda: str(error))[:MESSAGE]
    except BaseException:  # a submission's own exception may refuse to be shown
        message = ""
    return {
        "type": type(error).__name__,
        "above": [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"],
        "message": message,
        "line": line_of(error),
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


def start(connection: Any, output: float) -> None:
    """Runs in the process that was made for a submission; never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.append(os.getcwd())  # last: a file of the submission's hides no library
    try:
        serve(connection, output)
    finally:
        os._exit(1)
