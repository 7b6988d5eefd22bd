"""A time limit for code that may not want one.

What counts is processor time: on a busy machine a second on the clock is less than one of work.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from attncourse.support.limited_thread import raise_on_next_line, report_dropped, within_in_thread
from attncourse.support.stopwatch import (
    CLOCK_SECONDS_PER_WORK,
    Clock,
    Stopwatch,
    TimeUp,
    idle_seconds,
)

__all__ = [
    "CLOCK_SECONDS_PER_WORK",
    "Clock",
    "Limit",
    "Stopwatch",
    "TimeUp",
    "alarm_ready",
    "idle_seconds",
    "within",
]


def within(limit: float | Stopwatch, call: Callable[[], Any]) -> Any:
    """Return ``call()``; raise ``TimeUp`` if it takes more than ``limit`` processor seconds.

    What sleeps has an end as well, see ``Stopwatch``. Off the main thread, and where there are no
    alarms, a call that nothing can end goes on: then it raises ``StillRuns``.
    """
    watch = limit if isinstance(limit, Stopwatch) else Stopwatch(limit)
    if has_alarms():
        return within_by_alarm(watch, call)
    return within_in_thread(watch, call)


def has_alarms() -> bool:
    """True if there are alarms, and this thread gets them."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@dataclass
class Limit:
    """A call that has to be back in time."""

    watch: Stopwatch | None = None
    running: bool = False
    rung: int = 0  # alarms that raised


RING_INTERVAL_SECONDS = 0.1  # until an alarm that nobody has obeyed rings again
MAX_SWALLOWED_ALARMS = 2  # alarms that a call may swallow before it is ended in another way
_limits: list[Limit] = []  # the innermost last


@contextmanager
def alarm_ready() -> Iterator[None]:
    """Have the alarm's handler in place, so that each ``within`` inside costs less."""
    if not has_alarms():
        yield
        return
    with handling_alarm(Limit()):
        yield


@contextmanager
def handling_alarm(limit: Limit) -> Iterator[None]:
    """See to it that an alarm concerns this limit. The outermost one sets the handler."""
    depth, hook, outer = len(_limits), sys.unraisablehook, None
    if not depth:
        outer = signal.signal(signal.SIGALRM, ring)
        sys.unraisablehook = partial(report_dropped, hook)
    _limits.append(limit)
    try:
        yield
    finally:
        del _limits[depth:]
        if not depth:
            sys.unraisablehook = hook
            signal.signal(signal.SIGALRM, outer)


def ring(signum: int, frame: Any) -> None:
    """Raise ``TimeUp`` in the innermost call, once its time is up and again until it has ended.

    The timer goes by the clock, which is ahead: while processor time is left it is set anew. Then
    each alarm raises, and after ``MAX_SWALLOWED_ALARMS`` the call's next line does, too.
    """
    limit = _limits[-1] if _limits else None
    if limit is None or not limit.running:
        return
    is_first = limit.rung == 0
    if is_first and limit.watch and (left := limit.watch.left()):
        signal.setitimer(signal.ITIMER_REAL, left, RING_INTERVAL_SECONDS)
        return
    limit.rung += 1
    if limit.rung > MAX_SWALLOWED_ALARMS:
        raise_on_next_line(limit, frame, within_by_alarm)
    raise TimeUp


def within_by_alarm(watch: Stopwatch, call: Callable[[], Any]) -> Any:
    """Return ``within`` by an alarm that raises ``TimeUp`` in the call, again and again.

    The timer is the clock's: those of processor time do not ring for what sleeps.
    """
    limit, tracer = Limit(watch, running=True), sys.gettrace()
    with handling_alarm(limit):
        first = watch.left() or 0.001
        others_left, others_interval = signal.setitimer(
            signal.ITIMER_REAL, first, RING_INTERVAL_SECONDS
        )
        try:
            value = call()
            limit.running = False
        finally:
            limit.running = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            if sys.gettrace() is not tracer:  # a debugger warns of each call, whatever it sets
                sys.settrace(tracer)
            if others_left:  # an outer limit or a grader's own timer goes on until it is heard
                left = max(others_left - watch.passed(), 0.001)
                signal.setitimer(signal.ITIMER_REAL, left, others_interval)
    return value
