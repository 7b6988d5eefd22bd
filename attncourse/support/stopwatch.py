"""Time limits of calls, in processor time.

On a busy machine a second on the clock is less than one of work.
"""

import time
from collections.abc import Callable
from contextlib import suppress


class TimeUp(BaseException):
    """Raised inside a call that takes too long. Not an ``Exception``: ``except`` cannot keep it."""


# Seconds on the clock in which a busy machine may do one second's work
CLOCK_SECONDS_PER_WORK = 8.0
# Seconds on the clock in which it may do nothing: so long nobody stops it by chance
PAUSE_SECONDS = 30.0


def idle_seconds(seconds: float) -> float:
    """Return the seconds on the clock that may pass without work.

    ``seconds`` are those of work that are allowed.
    """
    return min(CLOCK_SECONDS_PER_WORK * seconds, max(PAUSE_SECONDS, 1.5 * seconds))


CPUCLOCK_SCHED = 2  # Linux's number for the time that the scheduler gave a process


def process_cpu_clock(pid: int) -> int:
    """Return the id of the clock of another process's time, as ``clock_getcpuclockid`` makes it."""
    return (~pid << 3) | CPUCLOCK_SCHED


class Clock:
    """The processor time of a process of this machine; once that is gone, its last.

    Without a number, or where other processes have no clock, it stays 0.
    """

    def __init__(self, pid: int = 0):
        self.pid = pid
        self.worked = 0.0

    def used(self) -> float:
        """Return seconds of processor time."""
        with suppress(OSError, AttributeError, OverflowError):
            self.worked = time.clock_gettime(process_cpu_clock(self.pid)) if self.pid else 0.0
        return self.worked


class Stopwatch:
    """Holds the processor time that ``used`` tells against a limit of so many seconds.

    Time is up, too, where the clock leaves that far behind: what sleeps, or waits for what may
    never come, uses no processor. ``CLOCK_SECONDS_PER_WORK`` may pass for each second of work,
    and beside them those of ``idle_seconds``, or ``waits`` where ``used`` does not see the work
    that is waited for.
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
        """Return seconds of processor time since the start."""
        return self.used() - self.before

    def passed(self) -> float:
        """Return seconds on the clock since the start."""
        return time.monotonic() - self.began

    def left(self) -> float:
        """Return seconds on the clock in which time cannot be up yet; 0 once it is."""
        worked, waits = (
            self.worked(),
            idle_seconds(self.seconds) if self.waits is None else self.waits,
        )
        left = min(self.seconds - worked, waits + CLOCK_SECONDS_PER_WORK * worked - self.passed())
        return max(left, 0.001) if left > 0 else 0.0

    def extend(self, seconds: float) -> None:
        """Allow so many seconds more."""
        self.seconds += seconds

    def in_words(self, limit: float = 0.0) -> str:
        """Return which time is up, in words; of a shorter ``limit`` where there is one."""
        limit, worked = limit or self.seconds, self.worked()
        if CLOCK_SECONDS_PER_WORK * worked >= self.passed():
            return f"{limit:g} s of processor time"
        return f"{idle_seconds(limit):g} s on the clock, with {worked:.1f} s of processor time"
