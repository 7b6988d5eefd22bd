"""A submission's process as the checker sees it: requests go out, plain values come back."""

import secrets
import select
import sys
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from attncourse.alarm import Clock, Stopwatch, TimeUp
from attncourse.checks.asking import asked
from attncourse.grading.judge.remote.lent import Lent
from attncourse.grading.judge.wire.decoding import Decoder, Room, exception_class, natural
from attncourse.grading.judge.wire.encoding import Encoder, Unsendable
from attncourse.grading.judge.wire.frames import WireError, pack, unpack
from attncourse.grading.limits import MB, Limits

GRACE = 2.0  # seconds beyond a limit until a process that was told to stop is ended
DEAF = "could not be interrupted"
PIECE = 1 << 16  # bytes that are received at once
SHOWN = 20_000  # characters of what a call prints that a test may read


class Ended(Exception):
    """The submission's process is no more. The message says why."""


class OutOfTime(BaseException):
    """The time for the whole submission is over."""


class Session:
    """The conversation with one process.

    ``ended`` says why there is none any more. Each request has a name that its replies repeat: what
    comes without it, or when nothing was asked, ends the conversation.
    """

    def __init__(
        self,
        connection: Any,
        limits: Limits,
        whole: Stopwatch,
        *,
        carry_seed: bool,
        clock: Clock | None = None,
    ):
        self.connection = connection
        self.limits = limits
        self.whole = whole  # for the submission
        self.clock = clock or Clock()  # the process's
        self.watch = self.watch_for(0.0)  # of the present request
        self.room = Room()  # for what the replies to it hold
        self.shown = 0  # characters that it said it printed
        self.carry_seed = carry_seed
        self.forbids: dict[str, tuple[str, ...]] = {}  # what the answers of these names may not use
        self.careful = False  # whether to hear of every case at once, before the next is tried
        self.asked = ""  # the name of the present request
        self.replies: deque[tuple[dict, list, float]] = deque()  # that came with others, and sizes
        self.ended = ""
        self.stalled = False
        self.midway = False  # between a request and its reply
        self.printed_too_much = False
        self.longest = 0.0
        self.gave_empty = False  # whether the present test has handed over something empty
        self.unasked: set[str] = set()  # functions that changed what the test did not ask for
        self.dropped: list[int] = []
        self.proxies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.lent = Lent()  # functions of the checker's that the process may call
        self.buffer = bytearray()
        connection.setblocking(False)

    @cached_property
    def mirrors(self) -> Any:
        """The copies of the submission's modules; loads torch."""
        from attncourse.grading.judge.remote.mirrors import Mirrors

        return Mirrors(self)

    # --- what the checker asks for --------------------------------------------------------------

    def run_cell(self, name: str, source: str, limit: float) -> None:
        """Runs a cell for at most ``limit`` seconds; raises what it raised."""
        self.ask({"op": "cell", "name": name, "source": source}, [], limit)

    def names(self, wanted: list[str]) -> dict[str, Any]:
        """The values of those names that the submission has; functions and classes as proxies."""
        forbids = {name: self.forbids[name] for name in wanted if name in self.forbids}
        request = {"op": "names", "names": wanted, "forbids": forbids}
        reply, decoder = self.ask(request, [], self.limits.call)
        values = reply.get("values")
        if not isinstance(values, dict):
            self.refuse("sent no names")
        return {name: self.value(decoder, values[name]) for name in wanted if name in values}

    def use(self, what: str, *args: Any, leaves: tuple = (), **kwargs: Any) -> Any:
        """What comes of using a proxy, the first argument, with the others."""
        encoder, lent = Encoder(self.form_of), self.lent.count
        try:
            request = {
                "op": "call",
                "use": what,
                "args": encoder.encode(list(args)),
                "kwargs": encoder.encode(kwargs),
            }
        except Unsendable as problem:
            raise TypeError(f"cannot hand the submission {problem}") from None
        if "torch" in sys.modules:
            request |= self.mirrors.before(encoder, leaves)
        if self.carry_seed:
            request["seed"] = self.draw()
        given = (*args, *kwargs.values())
        self.gave_empty |= any(is_empty(value) for value in given)
        request["writes"] = asked()
        before = self.stood_for() if self.lent.count > lent else set()
        reply, decoder = self.ask(request, encoder.buffers, self.limits.call, given)
        if reply.get("stop") is True and what == "next":
            raise StopIteration
        with self.refusing():
            value = decoder.decode(reply.get("value"))
            for place, form in reply.get("changed") or ():
                if request["writes"]:
                    change(given[natural(place)], decoder.decode(form))
                else:
                    self.unasked.add(getattr(args[0], "__name__", "") or "an answer")
            if reply.get("graph") and "torch" in sys.modules:
                inputs = [*encoder.tracked, *(parameter for _, _, parameter in leaves)]
                value = self.mirrors.connect(value, decoder, reply["graph"], inputs)
        if self.lent.count > lent:
            made = value if what not in ("setattr", "setitem") else args[0]
            self.lent.keep(lent, None if value is made and handle_of(made) in before else made)
        return value

    def stood_for(self) -> set[int]:
        """The handles of the process's objects that something here stands for."""
        mirrors = vars(self).get("mirrors")
        return {*self.proxies, *(mirrors.alive if mirrors is not None else ())}

    def draw(self) -> int:
        """A seed for a call that may draw random numbers, from the test's own generators."""
        return int(np.random.randint(2**31)) ^ torch_draw()

    def value(self, decoder: Decoder, form: Any) -> Any:
        """What was sent."""
        with self.refusing():
            return decoder.decode(form)

    # --- talking --------------------------------------------------------------------------------

    def ask(
        self, request: dict[str, Any], buffers: list[bytes], limit: float, given: tuple = ()
    ) -> tuple[dict[str, Any], Decoder]:
        """The reply to a request; raises what the submission raised."""
        self.request(request, buffers, limit)
        return self.reply(limit, given)

    def request(self, request: dict[str, Any], buffers: list[bytes], limit: float) -> None:
        """Sends a request to which the replies are fetched by ``reply``."""
        if self.ended:
            if self.stalled:
                raise TimeUp
            raise Ended(self.ended)
        self.listen()
        self.asked = secrets.token_hex(8)
        request |= {"id": self.asked, "limit": limit, "drop": self.dropped.copy()}
        self.dropped.clear()  # the same list: what is forgotten later is appended to it
        self.midway = True
        self.room = Room(self.limits.message * MB)
        self.watch = self.watch_for(limit)
        self.send(pack(request, buffers))

    def reply(
        self, limit: float, given: tuple = (), *, last: bool = True
    ) -> tuple[dict[str, Any], Decoder]:
        """The next reply to the request, the last one unless told otherwise."""
        if self.ended:
            raise Ended(self.ended)
        waits = not self.replies
        if waits:
            self.watch = self.watch_for(limit)
        with self.refusing():
            reply, decoder = self.talk(given)
        self.midway = not last
        if waits:
            self.longest = max(self.longest, self.watch.worked())
        self.printed_too_much |= reply.get("over") is True
        self.show(reply.get("out"))
        if "error" in reply:
            raise self.raised(reply["error"])
        return reply, decoder

    def watch_for(self, limit: float) -> Stopwatch:
        """Measures a request whose process was told to be back in ``limit`` seconds."""
        clock = self.clock
        return Stopwatch(limit + GRACE, clock.used, clock.queued, sleeps=not clock.pid)

    def show(self, text: Any) -> None:
        """Prints what a call has printed, where a test may read it."""
        if isinstance(text, str) and text and self.shown < self.limits.output * MB:
            self.shown += len(text)
            print(text[:SHOWN], end="")

    def talk(self, given: tuple) -> tuple[dict[str, Any], Decoder]:
        """The next reply, once the calls back that come before it are served."""
        while not self.replies:
            message, raw = unpack(self.read, int(self.limits.message * MB))
            if message.get("id") != self.asked:
                raise WireError("sent what it was not asked for")
            if "callback" in message:
                room = Room(self.limits.message * MB)
                self.send(self.call_back(message, Decoder(raw, self.meant, (), room)))
                continue
            replies = message.get("replies")
            if not isinstance(replies, list) or not all(isinstance(r, dict) for r in replies):
                raise WireError("sent no reply")
            self.replies.extend((reply, raw, message["bytes"] / len(replies)) for reply in replies)
        reply, raw, size = self.replies.popleft()
        decoder = Decoder(raw, self.meant, given, self.room)
        if "modules" in reply:
            self.mirrors.learn(reply["modules"], decoder, size)
        return reply, decoder

    def listen(self) -> None:
        """Makes sure that nothing waits that was not asked for."""
        if not self.buffer and not self.replies:
            try:
                self.buffer += self.connection.recv(1)
            except BlockingIOError:
                return
            except OSError:
                pass
        if not self.buffer and not self.replies:
            self.lose()
        self.close("its process sent what it was not asked for")
        raise Ended(self.ended)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Ends the conversation over what is no message, or no value, or too large a one."""
        try:
            yield
        except WireError as problem:
            self.close(f"its process {problem}")
            raise Ended(self.ended) from None
        except MemoryError:
            self.buffer.clear()
            self.close("its process sent more than there is memory for")
            raise Ended(self.ended) from None

    def refuse(self, why: str) -> None:
        """Ends the conversation over a reply that is none."""
        with self.refusing():
            raise WireError(why)

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self.connection.send(view) :]
            except BlockingIOError:
                self.wait(writing=True)
            except OSError:
                self.lose()

    def read(self, size: int) -> bytes:
        while len(self.buffer) < size:
            self.wait()
            try:
                piece = self.connection.recv(PIECE)
            except BlockingIOError:
                continue
            except OSError:
                piece = b""
            if not piece:
                self.lose()
            self.buffer += piece
        with memoryview(self.buffer) as view:
            data = bytes(view[:size])
        del self.buffer[:size]
        return data

    def wait(self, *, writing: bool = False) -> None:
        """Waits for the process; ends it when it takes too long."""
        reading, writing = ([], [self.connection]) if writing else ([self.connection], [])
        while left := min(self.watch.left(), self.whole.left()):
            if any(select.select(reading, writing, [], left)):
                return
        if not self.whole.left():
            self.close("the time for the submission was over")
            raise OutOfTime
        self.close(DEAF)
        self.stalled = True
        raise TimeUp

    def lose(self) -> None:
        self.close("ended its process")
        raise Ended(self.ended)

    def close(self, reason: str) -> None:
        """Hangs up; every later request fails for this reason."""
        self.ended = self.ended or reason
        self.connection.close()

    # --- values ---------------------------------------------------------------------------------

    def form_of(self, value: Any) -> dict[str, Any]:
        """What the submission's process is told of a value that has no form of its own."""
        number = handle_of(value)
        if number is not None:
            return {"h": number}
        if isinstance(value, np.random.Generator):
            return {"G": np.random.Generator.bit_generator.__get__(value).state}
        if isinstance(value, type) and issubclass(value, Exception):
            return {"E": value.__name__}
        if callable(value):
            number = self.lent.add(value)
            told = getattr(value, "__dict__", {}).items()  # model.max_length, for example
            plain = {n: x for n, x in told if type(x) in (bool, int, float, str)}
            return {"C": number, "name": getattr(value, "__name__", ""), "plain": plain}
        raise Unsendable(f"a {type(value).__name__}")

    def meant(self, told: Any) -> Any:
        """The proxy for an object that lives in the submission's process."""
        from attncourse.grading.judge.remote.proxies import proxy

        return proxy(self, told)

    def forget_with(self, thing: Any, number: int) -> None:
        """The process may forget an object once ``thing`` is gone here."""
        if number in self.dropped:  # told of again before it could be forgotten
            self.dropped.remove(number)
        weakref.finalize(thing, self.dropped.append, number).atexit = False

    def call_back(self, reply: dict[str, Any], decoder: Decoder) -> bytes:
        """The answer to a call of one of the checker's own functions."""
        encoder = Encoder(self.form_of)
        try:
            function = self.lent[reply["callback"]]
            value = function(*decoder.decode(reply["args"]), **decoder.decode(reply["kwargs"]))
            return pack({"value": encoder.encode(value)}, encoder.buffers)
        except Exception as error:
            told = {"type": type(error).__name__, "message": str(error)[:500]}
            return pack({"error": told}, [])

    def raised(self, told: Any) -> BaseException:
        """The exception that stands here for one of the submission's."""
        if not isinstance(told, dict):
            return WireError("sent no error")
        if told.get("timeout") is True:
            return TimeUp()
        error = exception_class(told.get("type"), told.get("above"))(text_in(told, "message", 2000))
        error.attncourse_line = text_in(told, "line", 400)
        skipped = told.get("skipped")
        error.attncourse_skipped = (
            [str(line)[:200] for line in skipped[:5]] if isinstance(skipped, list) else []
        )
        return error


def handle_of(value: Any) -> int | None:
    """The handle of what stands for an object of the process's; None for anything else."""
    handle = getattr(type(value), "attncourse_handle", None)
    return handle(value) if handle is not None else None


def text_in(told: dict[str, Any], key: str, limit: int) -> str:
    """A text that was sent, shortened; nothing where there is none."""
    text = told.get(key)
    return text[:limit] if isinstance(text, str) else ""


def torch_draw() -> int:
    torch = sys.modules.get("torch")
    return int(torch.randint(2**31, ())) if torch is not None else 0


def is_empty(value: Any) -> bool:
    """Whether an argument is an array, a list, a text or the like without an entry."""
    if isinstance(value, str | list | tuple | dict | set):
        return not value
    return hasattr(type(value), "dtype") and 0 in getattr(value, "shape", ())


def change(given: Any, now: Any) -> None:
    """Makes an argument what the call has made of it."""
    if isinstance(given, np.ndarray):
        given[...] = now
    elif isinstance(given, list) and isinstance(now, list):
        given[:] = now
    elif isinstance(given, dict | set) and isinstance(now, dict | set):
        given.clear()
        given.update(now)
    elif hasattr(given, "copy_"):
        import torch

        with torch.no_grad():
            if given.shape == now.shape and given.dtype == now.dtype:
                given.detach().copy_(now)
            else:
                given.data = now
