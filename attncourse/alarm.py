"""A time limit for code that may not want one.

What counts is processor time: on a busy machine a second on the clock is less than one of work.
"""

import math
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


NAP = 1.5  # seconds on the clock for one of processor time, where that is its own choice
PATIENCE = 10.0  # where it is not
ASLEEP = 0.05  # of the clock's time: what works less than this waits for something else
STARVED = 0.67  # what works less than this waits, too, or others keep the processor from it
LOOK = 0.02  # seconds of processor time to find out which


def queued_here() -> float | None:
    """Seconds for which others have kept the processor from this thread, where Linux tells it."""
    try:
        with open("/proc/thread-self/schedstat") as told:
            return int(told.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


class Clock:
    """The time of a process of this machine; once that is gone, its last.

    Without a number, or where other processes have no clock, it stays 0.
    """

    def __init__(self, pid: int = 0):
        self.pid = pid
        self.worked = self.waited = 0.0

    def used(self) -> float:
        """Seconds of processor time."""
        with suppress(OSError, AttributeError, OverflowError):
            self.worked = time.clock_gettime((~self.pid << 3) | 2) if self.pid else 0.0
        return self.worked

    def queued(self) -> float:
        """Seconds for which others have kept the processor from it."""
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{self.pid}/schedstat") as told:
            self.waited = int(told.read().split()[1]) / 1e9
        return self.waited


class Stopwatch:
    """Holds the processor time that ``used`` tells against a limit of so many seconds.

    Time is up, too, after ``NAP`` times as many seconds on the clock for what does not use the
    processor (it sleeps, or waits for what may never come), and after ``PATIENCE`` times as many
    on a busy machine. ``queued`` tells the time for which others kept the processor from it; where
    that is None, it is guessed. ``sleeps``: it may wait, say for another process.
    """

    def __init__(
        self,
        seconds: float,
        used: Callable[[], float] = time.process_time,
        queued: Callable[[], float | None] = queued_here,
        *,
        sleeps: bool = False,
    ):
        self.seconds = seconds
        self.used = used
        self.queued = queued
        self.sleeps = sleeps
        self.before, self.began = used(), time.monotonic()
        self.look = seconds / 2  # when to see next what it does with its time
        self.seen: tuple = (0.0, 0.0, None)  # worked, passed and queued by then
        self.starving: bool | None = None  # when it was last seen
        self.up = False  # once it is, it stays so

    def worked(self) -> float:
        """Seconds of processor time since the start."""
        return self.used() - self.before

    def passed(self) -> float:
        """Seconds on the clock since the start."""
        return time.monotonic() - self.began

    def left(self) -> float:
        """Seconds on the clock in which time cannot be up yet; 0 once it is."""
        worked, passed = self.worked(), self.passed()
        self.up = self.up or worked >= self.seconds or passed >= PATIENCE * self.seconds
        if self.up:
            return 0.0
        ends = [self.seconds - worked, PATIENCE * self.seconds - passed]
        if not self.sleeps:
            if passed >= self.look:
                self.look = passed + self.seconds / 2  # an alarm may ring again while it looks
                self.look_at(worked, passed)
                self.up = passed >= NAP * self.seconds and not self.starving
                if self.up:
                    return 0.0
            ends.append(self.look - passed)
        return max(min(ends), 0.001)

    def extend(self, seconds: float) -> None:
        """Allows so many seconds more, where time is not up."""
        self.seconds += seconds

    def look_at(self, worked: float, passed: float) -> None:
        """Sees whether it uses the processor as far as others let it, since the last look."""
        queued = self.queued()
        then, self.seen = self.seen, (worked, passed, queued)
        worked, passed = worked - then[0], passed - then[1]
        if worked < ASLEEP * passed:
            self.starving = False
        elif worked >= STARVED * passed:
            self.starving = True  # by all that came before, if time is up
        elif queued is not None and then[2] is not None:
            self.starving = queued - then[2] > (passed - worked) / 2
        else:
            self.starving = crowded()

    def starved(self) -> bool:
        """Whether others keep the processor from it, as far as one can tell."""
        if not ASLEEP < self.worked() / max(self.passed(), 0.001) < STARVED:
            return False
        return crowded() if self.starving is None else self.starving

    def in_words(self, limit: float = 0.0) -> str:
        """The time that is up, in words; of a shorter ``limit`` where there is one.

        It is the time that was set, not what was measured: the same code is told the same on a
        busy machine, which stops it later.
        """
        limit = limit or self.seconds
        if self.worked() >= ASLEEP * self.passed():
            return f"{limit:g} s of processor time"
        clock = NAP * limit
        return f"{math.ceil(clock)} s" if clock >= 1 else f"{clock:.2g} s"


def crowded() -> bool:
    """Whether others are at the processor, too, just now."""
    began, worked = time.monotonic(), time.process_time()
    while time.process_time() - worked < LOOK:
        pass
    return LOOK < STARVED * (time.monotonic() - began)


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
    rung: int = 0


AGAIN = 0.1  # seconds until an alarm that nobody has obeyed rings again
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
    """Raises ``TimeUp`` in the innermost call once its time is up; rings again later till then.

    A loop around a bare ``except`` swallows every one of them. So from the third on, a trace
    function is left behind that raises once more on the next line, which is in the handler and no
    longer guarded by it.
    """
    limit = _limits[-1] if _limits else None
    if limit is None or not limit.running:
        return
    if not limit.rung and (left := limit.watch.left()):
        signal.setitimer(signal.ITIMER_REAL, left, AGAIN)
        return
    limit.rung += 1
    if limit.rung > 2:

        def raise_on_next_line(frame, event, arg):
            if limit.running and event in ("line", "call"):  # an "exception" is still in the try
                raise TimeUp
            return raise_on_next_line

        sys.settrace(raise_on_next_line)
        while frame is not None and frame.f_code is not within_by_alarm.__code__:
            frame.f_trace = raise_on_next_line
            frame = frame.f_back
    raise TimeUp


def within_by_alarm(watch: Stopwatch, call: Callable[[], Any]) -> Any:
    """``within``, by an alarm that raises ``TimeUp`` in the call, again and again.

    The timer is the clock's: those of processor time do not ring for what sleeps.
    """
    limit, tracer = Limit(watch, running=True), sys.gettrace()
    with handling(limit):
        others_left, others_interval = signal.setitimer(signal.ITIMER_REAL, watch.seconds, AGAIN)
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
