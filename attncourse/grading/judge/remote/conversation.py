"""The protocol between the checker and a submission's process: who may speak when, how long.

Each request has a random name that its replies repeat: what comes without it, or when nothing was
asked, ends the conversation. So do bytes that are no message, and replies that are too large.
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
from attncourse.grading.judge.wire.frames import WireError, pack_frame, unpack_frame
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
    """Requests to one process, and its replies. ``ended`` says why there are no more, else "".

    The class below, ``Session``, gives replies their meaning beyond plain values, by its methods
    ``resolve_handle``, ``note_modules`` and ``answer_callback``.
    """

    def __init__(self, connection: Any, limits: Limits, budget: Stopwatch, clock: Clock):
        self.connection = connection
        self.limits = limits
        self.budget = budget  # of the whole submission
        self.clock = clock  # the process's
        self.memory = WrittenMemory(clock.pid)
        self.limit = 0.0  # that its process was told for the present request
        self.watch = self.stopwatch_for(0.0)  # of the present request
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
        """Return the proxy for an object in the submission's process, described in a reply."""
        raise WireError("sent an object")

    def note_modules(self, descriptions: Any, decoder: Decoder, size: float) -> None:
        """Note the modules of the process that a reply of ``size`` bytes describes."""

    def answer_callback(self, message: dict[str, Any], decoder: Decoder) -> bytes:
        """Call one of the checker's functions for the process; return the bytes to send back."""
        raise WireError("called what it was not lent")

    def ask(
        self, request: dict[str, Any], buffers: list[bytes], limit: float, arguments: tuple = ()
    ) -> tuple[dict[str, Any], Decoder]:
        """Send a request and return its one reply; raise what the submission raised.

        ``limit`` are seconds. ``arguments`` are those of a call, which its reply may name.
        """
        self.send_request(request, buffers, limit)
        return self.open_reply(*self.next_reply(limit), arguments)

    def send_request(self, request: dict[str, Any], buffers: list[bytes], limit: float) -> None:
        """Send a request, whose replies ``next_reply`` returns."""
        if self.ended:
            raise self.time_up() if self.ended == UNINTERRUPTED else Ended(self.ended)
        self.require_silence()
        # Not to be guessed: a reply that was made up in advance answers nothing.
        self.request_id = secrets.token_hex(8)
        request |= {"id": self.request_id, "limit": limit, "drop": self.dropped.copy()}
        self.dropped.clear()  # the same list: what is forgotten later is appended to it
        self.midway = True
        self.limit = limit
        self.room = Room(self.limits.message * MB)
        self.watch = self.stopwatch_for(limit)
        self.send_bytes(pack_frame(request, buffers))

    def next_reply(self, limit: float, *, last: bool = True) -> tuple[dict[str, Any], list, float]:
        """Return the next reply to the present request, with its arrays and its size in bytes.

        With ``last`` no other reply to the request is to come.
        """
        if self.ended:
            raise Ended(self.ended)
        if not self.replies:
            self.watch = self.stopwatch_for(limit)
            with self.ending_on_bad_reply():
                self.receive_replies()
            self.longest = max(self.longest, self.watch.worked())
        self.midway = not last
        return self.replies.popleft()

    def open_reply(
        self, reply: dict[str, Any], arrays: list, size: float, arguments: tuple = ()
    ) -> tuple[dict[str, Any], Decoder]:
        """Return a reply with a decoder for its values, after noting what it tells besides them.

        That are changed modules and what was printed. Raises what the submission raised.
        """
        decoder = Decoder(arrays, self.resolve_handle, arguments, self.room)
        if "modules" in reply:
            with self.ending_on_bad_reply():
                self.note_modules(reply["modules"], decoder, size)
        self.printed_too_much |= reply.get("over") is True
        self.print_output(reply.get("out"))
        if "error" in reply:
            raise self.exception_of(reply["error"])
        return reply, decoder

    def stopwatch_for(self, limit: float) -> Stopwatch:
        """Return a stopwatch for a request that may take ``limit`` seconds, and the grace."""
        return Stopwatch(limit + self.limits.grace, self.clock.used)

    def time_up(self) -> TimeUp:
        """Note that a call did not end in time, and return the exception to raise for that."""
        self.overdue = f"a call did not end within {self.time_limit_in_words()}"
        return TimeUp()

    def time_limit_in_words(self) -> str:
        """Return the present request's time limit, as it is on a machine of the usual speed."""
        return self.watch.in_words(self.limit / self.limits.stretch)

    def print_output(self, text: Any) -> None:
        """Print what a call has printed, so that the test that made the call may read it.

        Nothing more is printed once a submission's output has reached its limit.
        """
        if isinstance(text, str) and text and self.printed_chars < self.limits.output * MB:
            self.printed_chars += len(text)
            # Into the redirection of the test that made the call, if it has one.
            print(text[:MAX_SHOWN_CHARS], end="")

    def receive_replies(self) -> None:
        """Wait until there is a reply, and serve the calls back that come before it."""
        while not self.replies:
            message, raw = unpack_frame(self.read_bytes, int(self.limits.message * MB))
            if message.get("id") != self.request_id:
                raise WireError("sent what it was not asked for")
            if "callback" in message:
                # Of its own: however often its process called back, a reply may be as large as any.
                room = Room(self.limits.message * MB)
                self.send_bytes(
                    self.answer_callback(message, Decoder(raw, self.resolve_handle, (), room))
                )
                continue
            replies = message.get("replies")
            if not isinstance(replies, list) or not all(isinstance(r, dict) for r in replies):
                raise WireError("sent no reply")
            rest, size = iter(raw), message["bytes"] / max(len(replies), 1)
            for reply in replies:
                n_arrays = min(natural_number(reply.get("arrays", 0)), len(raw))
                self.replies.append((reply, list(islice(rest, n_arrays)), size))

    def require_silence(self) -> None:
        """End the conversation, and raise ``Ended``, if the process has sent something unasked."""
        if not self.buffer and not self.replies:
            try:
                self.buffer += self.connection.recv(1)
            except BlockingIOError:
                return
            except OSError:
                pass
        if not self.buffer and not self.replies:
            self.end_after_hang_up()
        self.close("sent what it was not asked for")
        raise Ended(self.ended)

    @contextmanager
    def ending_on_bad_reply(self) -> Iterator[None]:
        """End the conversation if the block finds that a reply is none, or too large.

        It raises ``Ended`` for a ``WireError`` or a ``MemoryError`` in the block.
        """
        try:
            yield
        except WireError as problem:
            self.close(str(problem))
            raise Ended(self.ended) from None
        except MemoryError:
            self.buffer.clear()
            self.close("sent more than there is memory for")
            raise Ended(self.ended) from None

    def end_on_bad_reply(self, why: str) -> NoReturn:
        """End the conversation because of a reply that is none, and raise ``Ended``."""
        with self.ending_on_bad_reply():
            raise WireError(why)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes, within the time of the present request."""
        view = memoryview(data)
        while view:
            try:
                view = view[self.connection.send(view) :]
            except BlockingIOError:
                self.wait_for_process(writing=True)
            except OSError:
                self.end_after_hang_up()

    def read_bytes(self, size: int) -> bytes:
        """Return exactly ``size`` bytes from the process, once they are there."""
        while len(self.buffer) < size:
            self.wait_for_process()
            try:
                piece = self.connection.recv(RECEIVE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                piece = b""
            if not piece:
                self.end_after_hang_up()
            self.buffer += piece
        with memoryview(self.buffer) as view:
            data = bytes(view[:size])
        del self.buffer[:size]
        return data

    def wait_for_process(self, *, writing: bool = False) -> None:
        """Wait until the process has sent something or, with ``writing``, can be sent something.

        Ends the conversation if that takes longer than the request or the submission may, or if the
        process writes more memory than it may.
        """
        read, write = ([], [self.connection]) if writing else ([self.connection], [])
        while seconds_left := min(self.watch.left(), self.budget.left()):
            if any(select.select(read, write, [], min(seconds_left, MEMORY_CHECK_SECONDS))):
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

    def end_after_hang_up(self) -> None:
        """End the conversation with a process that has hung up, and raise ``Ended``."""
        self.close("ended its process")
        raise Ended(self.ended)

    def close(self, reason: str) -> None:
        """Hang up; every later request raises ``Ended`` with the first reason given."""
        self.ended = self.ended or reason
        self.connection.close()

    def exception_of(self, form: Any) -> BaseException:
        """Return the exception to raise here in place of the one that a reply describes."""
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
    """Return a text that was sent under a key, shortened; "" where there is no text."""
    text = message.get(key)
    return text[:limit] if isinstance(text, str) else ""
