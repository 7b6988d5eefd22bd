"""The protocol between the checker and a submission's process: who may speak when, and how long.

Each request has a name that its replies repeat: what comes without it, or when nothing was asked,
ends the conversation. So do bytes that are no message, and replies that are too large.
"""

import secrets
import select
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, NoReturn

from attncourse.grading.judge.remote.memory import WrittenMemory
from attncourse.grading.judge.wire.decoding import Decoder, Room, exception_class, natural_number
from attncourse.grading.judge.wire.frames import WireError, pack, unpack_frame
from attncourse.grading.limits import MB, Limits
from attncourse.support.alarm import Clock, Stopwatch, TimeUp

UNINTERRUPTED = "could not be interrupted"
RECEIVE_BYTES = 1 << 16  # received at once
MEMORY_CHECK_SECONDS = 0.25  # after which a process that is waited for is looked at
MAX_SHOWN_CHARS = 20_000  # of what a call prints, for a test to read


class Ended(Exception):
    """The submission's process is no more. The message says why."""


class OutOfTime(BaseException):
    """The time for the whole submission is over."""


class Conversation:
    """Requests to one process and its replies. ``ended`` says why there are none any more.

    A class below says what a reply may mean beyond plain values, in ``resolve_handle``, ``learn``
    and ``call_back``.
    """

    def __init__(self, connection: Any, limits: Limits, budget: Stopwatch, clock: Clock):
        self.connection = connection
        self.limits = limits
        self.budget = budget  # of the whole submission
        self.clock = clock  # the process's
        self.memory = WrittenMemory(clock.pid)
        self.limit = 0.0  # that its process was told for the present request
        self.watch = self.watch_for(0.0)  # of the present request
        self.room = Room()  # for what the replies to it hold
        self.printed_chars = 0  # by its own account
        self.request_id = ""  # the name of the present request
        self.replies: deque[tuple[dict, list, float]] = deque()  # that came with others, and sizes
        self.ended = ""
        self.overdue = ""  # what of the present step did not end in time
        self.midway = False  # between a request and its reply
        self.printed_too_much = False
        self.longest = 0.0
        self.dropped: list[int] = []  # objects that the process may forget
        self.buffer = bytearray()
        # Nothing here waits for the process but ``wait``, which knows how long.
        connection.setblocking(False)

    def resolve_handle(self, description: Any) -> Any:
        """Return the stand-in for an object that lives in the submission's process."""
        raise WireError("sent an object")

    def learn(self, descriptions: Any, decoder: Decoder, size: float) -> None:
        """Take note of what a reply tells of its process's modules."""

    def call_back(self, message: dict[str, Any], decoder: Decoder) -> bytes:
        """Return the answer to a call of one of the checker's own functions."""
        raise WireError("called what it was not lent")

    def ask(
        self, request: dict[str, Any], buffers: list[bytes], limit: float, arguments: tuple = ()
    ) -> tuple[dict[str, Any], Decoder]:
        """Send a request and return the reply; raise what the submission raised."""
        self.request(request, buffers, limit)
        return self.reply(limit, arguments)

    def request(self, request: dict[str, Any], buffers: list[bytes], limit: float) -> None:
        """Send a request whose replies are fetched by ``reply``."""
        if self.ended:
            raise self.time_up() if self.ended == UNINTERRUPTED else Ended(self.ended)
        self.listen()
        # Not to be guessed: a reply that was made up in advance answers nothing.
        self.request_id = secrets.token_hex(8)
        request |= {"id": self.request_id, "limit": limit, "drop": self.dropped.copy()}
        self.dropped.clear()  # the same list: what is forgotten later is appended to it
        self.midway = True
        self.limit = limit
        self.room = Room(self.limits.message * MB)
        self.watch = self.watch_for(limit)
        self.send(pack(request, buffers))

    def reply(
        self, limit: float, arguments: tuple = (), *, last: bool = True
    ) -> tuple[dict[str, Any], Decoder]:
        """Return the next reply to the request, the last one unless told otherwise."""
        return self.open_reply(*self.next_reply(limit, last=last), arguments)

    def next_reply(self, limit: float, *, last: bool = True) -> tuple[dict[str, Any], list, float]:
        """Return the next reply as it was sent, with its arrays and its size."""
        if self.ended:
            raise Ended(self.ended)
        if not self.replies:
            self.watch = self.watch_for(limit)
            with self.refusing():
                self.talk()
            self.longest = max(self.longest, self.watch.worked())
        self.midway = not last
        return self.replies.popleft()

    def open_reply(
        self, reply: dict[str, Any], arrays: list, size: float, arguments: tuple = ()
    ) -> tuple[dict[str, Any], Decoder]:
        """Return a reply once all is noted that it tells besides its values."""
        decoder = Decoder(arrays, self.resolve_handle, arguments, self.room)
        if "modules" in reply:
            with self.refusing():
                self.learn(reply["modules"], decoder, size)
        self.printed_too_much |= reply.get("over") is True
        self.show(reply.get("out"))
        if "error" in reply:
            raise self.raised(reply["error"])
        return reply, decoder

    def watch_for(self, limit: float) -> Stopwatch:
        """Return a stopwatch for a request that is to be answered in ``limit`` seconds."""
        return Stopwatch(limit + self.limits.grace, self.clock.used)

    def time_up(self) -> TimeUp:
        """Return the exception to raise where the present request did not end in time."""
        self.overdue = f"a call did not end within {self.in_words()}"
        return TimeUp()

    def in_words(self) -> str:
        """Return the time of the present request, as for a machine of the usual speed."""
        return self.watch.in_words(self.limit / self.limits.stretch)

    def show(self, text: Any) -> None:
        """Print what a call has printed, so that the test that made the call may read it.

        Nothing more is printed once a submission's output has reached its limit.
        """
        if isinstance(text, str) and text and self.printed_chars < self.limits.output * MB:
            self.printed_chars += len(text)
            # Into the redirection of the test that made the call, if it has one.
            print(text[:MAX_SHOWN_CHARS], end="")

    def talk(self) -> None:
        """Wait for replies, and serve the calls back that come before them."""
        while not self.replies:
            message, raw = unpack_frame(self.read, int(self.limits.message * MB))
            if message.get("id") != self.request_id:
                raise WireError("sent what it was not asked for")
            if "callback" in message:
                # Of its own: however often its process called back, a reply may be as large as any.
                room = Room(self.limits.message * MB)
                self.send(self.call_back(message, Decoder(raw, self.resolve_handle, (), room)))
                continue
            replies = message.get("replies")
            if not isinstance(replies, list) or not all(isinstance(r, dict) for r in replies):
                raise WireError("sent no reply")
            rest, size = iter(raw), message["bytes"] / max(len(replies), 1)
            for reply in replies:
                n_arrays = min(natural_number(reply.get("arrays", 0)), len(raw))
                self.replies.append((reply, list(islice(rest, n_arrays)), size))

    def listen(self) -> None:
        """Make sure that nothing waits that was not asked for."""
        if not self.buffer and not self.replies:
            try:
                self.buffer += self.connection.recv(1)
            except BlockingIOError:
                return
            except OSError:
                pass
        if not self.buffer and not self.replies:
            self.lose()
        self.close("sent what it was not asked for")
        raise Ended(self.ended)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """End the conversation over what is no message, or no value, or too large a one."""
        try:
            yield
        except WireError as problem:
            self.close(str(problem))
            raise Ended(self.ended) from None
        except MemoryError:
            self.buffer.clear()
            self.close("sent more than there is memory for")
            raise Ended(self.ended) from None

    def refuse(self, why: str) -> NoReturn:
        """End the conversation over a reply that is none."""
        with self.refusing():
            raise WireError(why)

    def send(self, data: bytes) -> None:
        """Send bytes, for as long as the present request may take."""
        view = memoryview(data)
        while view:
            try:
                view = view[self.connection.send(view) :]
            except BlockingIOError:
                self.wait(writing=True)
            except OSError:
                self.lose()

    def read(self, size: int) -> bytes:
        """Return exactly so many bytes, once they are there."""
        while len(self.buffer) < size:
            self.wait()
            try:
                piece = self.connection.recv(RECEIVE_BYTES)
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
        """Wait for the process; end it when it takes too long, or too much memory.

        With ``writing``, wait until it can be sent something, else until it has sent something.
        """
        read, write = ([], [self.connection]) if writing else ([self.connection], [])
        while left := min(self.watch.left(), self.budget.left()):
            if any(select.select(read, write, [], min(left, MEMORY_CHECK_SECONDS))):
                return
            # No limit of the kernel's counts all that is written, so it is looked at meanwhile.
            if self.memory.is_beyond(self.limits.memory):
                self.close(f"used more than {self.limits.memory} MB of memory")
                raise Ended(self.ended)
        if not self.budget.left():
            self.close("the time for the submission was over")
            raise OutOfTime
        self.close(UNINTERRUPTED)
        raise self.time_up()

    def lose(self) -> None:
        """End the conversation with a process that has hung up."""
        self.close("ended its process")
        raise Ended(self.ended)

    def close(self, reason: str) -> None:
        """Hang up; every later request fails for this reason."""
        self.ended = self.ended or reason
        self.connection.close()

    def raised(self, form: Any) -> BaseException:
        """Return the exception that stands here for one of the submission's."""
        if not isinstance(form, dict):
            return WireError("sent no error")
        if form.get("timeout") is True:
            return self.time_up()
        kind = exception_class(form.get("type"), form.get("above"))
        error: Any = kind(sent_text(form, "message", 2000))
        error.attncourse_line = sent_text(form, "line", 400)
        skipped = form.get("skipped")
        error.attncourse_skipped = (
            [str(line)[:200] for line in skipped[:5]] if isinstance(skipped, list) else []
        )
        return error


def sent_text(message: dict[str, Any], key: str, limit: int) -> str:
    """Return a text that was sent, shortened; nothing where there is none."""
    text = message.get(key)
    return text[:limit] if isinstance(text, str) else ""
