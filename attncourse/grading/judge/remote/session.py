"""A submission's process as the checker sees it: requests go out, plain values come back."""

import sys
import weakref
from functools import cached_property
from typing import Any

import numpy as np

from attncourse.checks.trying.asking import must_bring_back_changes
from attncourse.grading.judge.remote.conversation import Conversation
from attncourse.grading.judge.remote.lent import LentFunctions
from attncourse.grading.judge.remote.proxies import proxy_for
from attncourse.grading.judge.wire.decoding import Decoder, natural_number
from attncourse.grading.judge.wire.encoding import Encoder, Unsendable
from attncourse.grading.judge.wire.frames import pack_frame
from attncourse.grading.limits import Limits
from attncourse.support.alarm import Clock, Stopwatch


class Session(Conversation):
    """The checker's requests to one process: run cells, read names, use the objects behind them."""

    def __init__(
        self,
        connection: Any,
        limits: Limits,
        budget: Stopwatch,
        *,
        carry_seed: bool,
        clock: Clock | None = None,
    ):
        super().__init__(connection, limits, budget, clock or Clock())
        self.carry_seed = carry_seed
        self.forbids: dict[str, tuple[str, ...]] = {}  # what the answers of these names may not use
        self.careful = False  # whether to hear of every case at once, before the next is tried
        self.gave_empty = False  # whether the present test has handed over something empty
        self.unasked: set[str] = set()  # functions that changed what the test did not ask for
        self.proxies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.failed: AssertionError | None = None  # in one of the checker's own functions
        self.lent_functions = LentFunctions()  # the checker's, which the process may call

    @cached_property
    def mirrors(self) -> Any:
        """Return the copies of the submission's modules; loads torch."""
        from attncourse.grading.judge.remote.mirrors import Mirrors

        return Mirrors(self)

    # --- what the checker asks for --------------------------------------------------------------

    def run_cell(self, name: str, source: str, limit: float) -> None:
        """Run a cell in the process for at most ``limit`` seconds; raise what it raised."""
        self.ask({"op": "cell", "name": name, "source": source}, [], limit)

    def values_of(self, names: list[str]) -> dict[str, Any]:
        """Return the values of those of the names that the submission has.

        Functions, classes and objects come as proxies; modules are left out.
        """
        forbids = {name: self.forbids[name] for name in names if name in self.forbids}
        request = {"op": "names", "names": names, "forbids": forbids}
        reply, decoder = self.ask(request, [], self.limits.call)
        values = reply.get("values")
        if not isinstance(values, dict):
            self.end_on_bad_reply("sent no names")
        return {name: self.decode_value(decoder, values[name]) for name in names if name in values}

    def use(self, operation: str, /, *args: Any, **kwargs: Any) -> Any:
        """Use an object of the process, whose proxy is the first argument; return the result."""
        return self.use_with(operation, args, kwargs)

    def use_with(self, operation: str, args: tuple, kwargs: dict, leaves: tuple = ()) -> Any:
        """Use an object of the process with these arguments, the object first; return the result.

        ``operation`` is one of the operations in the worker's ``calls.USES``; ``leaves`` are the
        parameters that the result may have gradients for. Where the test asks for it, arguments are
        changed in place.
        """
        encoder, lent = Encoder(self.reference_to), self.lent_functions.count
        try:
            request = {
                "op": "call",
                "use": operation,
                "args": encoder.encode(list(args)),
                "kwargs": encoder.encode(kwargs),
            }
        except Unsendable as problem:
            raise TypeError(f"cannot hand the submission {problem}") from None
        if "torch" in sys.modules:
            request |= self.mirrors.sent_with_call(encoder, leaves)
        if self.carry_seed:
            request["seed"] = self.new_seed()
        arguments = (*args, *kwargs.values())
        self.gave_empty |= any(is_empty(value) for value in arguments)
        request["writes"] = must_bring_back_changes()
        before: set[int] = set()  # the objects that something here stands for
        if self.lent_functions.count > lent:
            mirrors = vars(self).get("mirrors")
            before = {*self.proxies, *(mirrors.alive if mirrors is not None else ())}
        try:
            reply, decoder = self.ask(request, encoder.buffers, self.limits.call, arguments)
        finally:
            failed, self.failed = self.failed, None
            if failed is not None:
                raise failed  # whoever called the test's function may have caught it
        if reply.get("stop") is True and operation == "next":
            raise StopIteration
        with self.ending_on_bad_reply():
            value = decoder.decode(reply.get("value"))
            for place, form in reply.get("changed") or ():
                if request["writes"]:
                    change_argument(arguments[natural_number(place)], decoder.decode(form))
                else:
                    self.unasked.add(getattr(args[0], "__name__", "") or "an answer")
            if reply.get("graph") and "torch" in sys.modules:
                inputs = [*encoder.tracked, *(parameter for _, _, parameter in leaves)]
                value = self.mirrors.connect_gradients(value, decoder, reply["graph"], inputs)
        if self.lent_functions.count > lent:
            holder = value if operation not in ("setattr", "setitem") else args[0]
            self.lent_functions.keep_while_held(
                lent, None if value is holder and handle_of(holder) in before else holder
            )
        return value

    def new_seed(self) -> int:
        """Return a seed for a call that may draw numbers, drawn from the test's generators."""
        torch = sys.modules.get("torch")
        torch_seed = int(torch.randint(2**31, ())) if torch is not None else 0
        return int(np.random.randint(2**31)) ^ torch_seed

    def decode_value(self, decoder: Decoder, form: Any) -> Any:
        """Return a value that was sent; end the conversation if it is none."""
        with self.ending_on_bad_reply():
            return decoder.decode(form)

    # --- values ---------------------------------------------------------------------------------

    def reference_to(self, value: Any) -> dict[str, Any]:
        """Return the form in which the process is sent what is no plain value: a reference to it.

        Raises ``Unsendable`` for what it cannot be sent.
        """
        number = handle_of(value)
        if number is not None:
            return {"h": number}
        if isinstance(value, np.random.Generator):
            return {"G": np.random.Generator.bit_generator.__get__(value).state}
        if isinstance(value, type) and issubclass(value, Exception):
            return {"E": value.__name__}
        if callable(value):
            number = self.lent_functions.add(value)
            attributes = getattr(value, "__dict__", {}).items()  # model.max_length, for example
            plain = {n: x for n, x in attributes if type(x) in (bool, int, float, str)}
            return {"C": number, "name": getattr(value, "__name__", ""), "plain": plain}
        raise Unsendable(f"a {type(value).__name__}")

    def resolve_handle(self, description: Any) -> Any:
        """Return the proxy for an object that lives in the submission's process."""
        return proxy_for(self, description)

    def note_modules(self, descriptions: Any, decoder: Decoder, size: float) -> None:
        """Note the modules of the process that a reply of ``size`` bytes describes."""
        self.mirrors.note_modules(descriptions, decoder, size)

    def forget_with(self, thing: Any, number: int) -> None:
        """Have the process forget an object, at a later request, once ``thing`` is gone here."""
        if number in self.dropped:  # told of again before it could be forgotten
            self.dropped.remove(number)
        # Sent with the next request. Of no use when this process ends, so not done then.
        weakref.finalize(thing, self.dropped.append, number).atexit = False

    def answer_callback(self, message: dict[str, Any], decoder: Decoder) -> bytes:
        """Call one of the checker's functions for the process; return the bytes to send back."""
        encoder = Encoder(self.reference_to)
        try:
            function = self.lent_functions[message["callback"]]
            value = function(*decoder.decode(message["args"]), **decoder.decode(message["kwargs"]))
            return pack_frame({"value": encoder.encode(value)}, encoder.buffers)
        except Exception as error:
            self.failed = error if isinstance(error, AssertionError) else None
            error_form = {"type": type(error).__name__, "message": str(error)[:500]}
            return pack_frame({"error": error_form}, [])


def handle_of(value: Any) -> int | None:
    """Return the handle of the object that a proxy or copy stands for; None for another value."""
    handle = getattr(type(value), "attncourse_handle", None)
    return handle(value) if handle is not None else None


def is_empty(value: Any) -> bool:
    """True if an argument is an array or a container without an entry, or an empty text."""
    if isinstance(value, str | list | tuple | dict | set):
        return not value
    return hasattr(type(value), "dtype") and 0 in getattr(value, "shape", ())


def change_argument(argument: Any, value: Any) -> None:
    """Change an argument in place to the value that the call has given it in its process."""
    if isinstance(argument, np.ndarray):
        argument[...] = value
    elif isinstance(argument, list) and isinstance(value, list):
        argument[:] = value
    elif isinstance(argument, dict | set) and isinstance(value, dict | set):
        argument.clear()
        argument.update(value)
    elif hasattr(argument, "copy_"):
        import torch

        with torch.no_grad():
            if argument.shape == value.shape and argument.dtype == value.dtype:
                argument.detach().copy_(value)
            else:
                argument.data = value
