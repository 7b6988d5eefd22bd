"""A time limit for code that may not want one.

What counts is processor time: on a busy machine a second on the clock is less than one of work.
"""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any


class TimeUp(BaseException):
    """Raised inside a call that takes too long. Not an ``Exception``: ``except`` cannot keep it."""


CLOCK = 8.0  # seconds on the clock in which a busy machine may do one second's work
PAUSE = 30.0  # and in which it may do nothing for a while: so long nobody stops it by chance


def idle(seconds: float) -> float:
    """The seconds on the clock that may pass without work where so many of work are allowed."""
    return min(CLOCK * seconds, max(PAUSE, 1.5 * seconds))


class Clock:
    """The processor time of a process of this machine; once that is gone, its last.

    Without a number, or where other processes have no clock, it stays 0.
    """

    def __init__(self, pid: int = 0):
        self.pid = pid
        self.worked = 0.0

    def used(self) -> float:
        """Seconds of processor time."""
        with suppress(OSError, AttributeError, OverflowError):
            self.worked = time.clock_gettime((~self.pid << 3) | 2) if self.pid else 0.0
        return self.worked


class Stopwatch:
    """Holds the processor time that ``used`` tells against a limit of so many seconds.

    Time is up, too, where the clock leaves that far behind: what sleeps, or waits for what may
    never come, uses no processor. ``CLOCK`` seconds may pass for each of work, and beside them
    those of ``idle``, or ``waits`` where the work that is waited for is not seen by ``used``.
    """

    def __init__(
        self,
        seconds: float,
        used: Callable[[], float] = time.process_time,
        waits: float | None = None,
    ):
        self.seconds = seconds
        self.used = used
        self.waits = waits
        self.before, self.began = used(), time.monotonic()

    def worked(self) -> float:
        """Seconds of processor time since the start."""
        return self.used() - self.before

    def passed(self) -> float:
        """Seconds on the clock since the start."""
        return time.monotonic() - self.began

    def left(self) -> float:
        """Seconds on the clock in which time cannot be up yet; 0 once it is."""
        worked, waits = self.worked(), idle(self.seconds) if self.waits is None else self.waits
        left = min(self.seconds - worked, waits + CLOCK * worked - self.passed())
        return max(left, 0.001) if left > 0 else 0.0

    def extend(self, seconds: float) -> None:
        """Allows so many seconds more."""
        self.seconds += seconds

    def in_words(self, limit: float = 0.0) -> str:
        """Which time is up, in words; of a shorter ``limit`` where there is one."""
        limit, worked = limit or self.seconds, self.worked()
        if CLOCK * worked >= self.passed():
            return f"{limit:g} s of processor time"
        return f"{idle(limit):g} s on the clock, with {worked:.1f} s of processor time"


def within(limit: float | Stopwatch, call: Callable[[], Any]) -> Any:
    """What ``call()`` returns; raises ``TimeUp`` if it takes so many seconds of processor time.

    What sleeps has an end as well, see ``Stopwatch``. Off the main thread, and where there are no
    alarms, the call goes on in the background.
    """
    watch = limit if isinstance(limit, Stopwatch) else Stopwatch(limit)
    if by_alarm():
        return within_by_alarm(watch, call)
    box: list[Callable[[], Any]] = []
    thread = threading.Thread(target=lambda: box.append(outcome_of(call)), daemon=True)
    thread.start()
    while not box and (left := watch.left()):
        thread.join(left)
    if not box:
        raise TimeUp
    return box[0]()


def by_alarm() -> bool:
    """Whether there are alarms, and this thread gets them."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


def outcome_of(call: Callable[[], Any]) -> Callable[[], Any]:
    """A function that returns what the call returned, or raises what it raised."""
    try:
        value = call()
    except BaseException as error:
        problem = error

        def raise_it() -> Any:
            raise problem

        return raise_it
    return lambda: value


@dataclass
class Limit:
    """A call that has to be back in time."""

    watch: Stopwatch | None = None
    running: bool = False
    rung: int = 0  # alarms that raised


AGAIN = 0.1  # seconds until an alarm that nobody has obeyed rings again
PATIENCE = 2  # alarms that a call may swallow before it is ended in another way
_limits: list[Limit] = []  # the innermost last


@contextmanager
def ready() -> Iterator[None]:
    """Has the alarm's handler in place, so that each ``within`` inside costs less."""
    if not by_alarm():
        yield
        return
    with handling(Limit()):
        yield


@contextmanager
def handling(limit: Limit) -> Iterator[None]:
    """Sees to it that an alarm concerns this limit. The outermost one sets the handler."""
    depth, hook = len(_limits), sys.unraisablehook
    if not depth:
        outer = signal.signal(signal.SIGALRM, ring)
        sys.unraisablehook = partial(dropped, hook)
    _limits.append(limit)
    try:
        yield
    finally:
        del _limits[depth:]
        if not depth:
            sys.unraisablehook = hook
            signal.signal(signal.SIGALRM, outer)


def dropped(tell: Callable[[Any], None], what: Any) -> None:
    """Python drops what is raised in a finalizer or a weak reference's callback, and says so.

    Of the alarm there is nothing to say: it rings again.
    """
    if what.exc_type is not TimeUp:
        tell(what)


def ring(signum: int, frame: Any) -> None:
    """Raises ``TimeUp`` in the innermost call, once its time is up and again until it has ended.

    The timer goes by the clock, which is ahead: while processor time is left it is set anew. Then
    each alarm raises, and after ``PATIENCE`` that were swallowed the call's next line does, too.
    """
    limit = _limits[-1] if _limits else None
    if limit is None or not limit.running:
        return
    is_first = limit.rung == 0
    if is_first and (left := limit.watch.left()):
        signal.setitimer(signal.ITIMER_REAL, left, AGAIN)
        return
    limit.rung += 1
    if limit.rung > PATIENCE:
        raise_on_next_line(limit, frame)
    raise TimeUp


def raise_on_next_line(limit: Limit, frame: Any) -> None:
    """Has ``TimeUp`` raised once more, by whatever line of the limited call comes next.

    A loop around a bare ``except`` swallows every alarm, for all of them ring inside its ``try``.
    The next line is in the handler, which nothing guards.
    """

    def trace(frame: Any, event: str, arg: Any) -> Callable:
        if limit.running and event in ("line", "call"):  # an "exception" is still in the try
            raise TimeUp
        return trace

    sys.settrace(trace)  # for calls from now on; those that are open have to be told each
    while frame is not None and frame.f_code is not within_by_alarm.__code__:
        frame.f_trace = trace
        frame = frame.f_back


def within_by_alarm(watch: Stopwatch, call: Callable[[], Any]) -> Any:
    """``within``, by an alarm that raises ``TimeUp`` in the call, again and again.

    The timer is the clock's: those of processor time do not ring for what sleeps.
    """
    limit, tracer = Limit(watch, running=True), sys.gettrace()
    with handling(limit):
        first = watch.left() or 0.001
        others_left, others_interval = signal.setitimer(signal.ITIMER_REAL, first, AGAIN)
        try:
            value = call()
            limit.running = False
        finally:
            limit.running = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            sys.settrace(tracer)
            if others_left:  # an outer limit or a grader's own timer goes on until it is heard
                left = max(others_left - watch.passed(), 0.001)
                signal.setitimer(signal.ITIMER_REAL, left, others_interval)
    return value
