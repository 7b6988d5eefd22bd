"""A time limit for code that may not want one."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class TimeUp(BaseException):
    """Raised inside a call that takes too long. Not an ``Exception``: ``except`` cannot keep it."""


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """What ``call()`` returns; raises ``TimeUp`` if it is not back in ``seconds``.

    Off the main thread, and where there are no alarms, the call goes on in the background.
    """
    if by_alarm():
        return within_by_alarm(seconds, call)
    box: list[Callable[[], Any]] = []
    thread = threading.Thread(target=lambda: box.append(outcome_of(call)), daemon=True)
    thread.start()
    thread.join(seconds)
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

    running: bool
    rung: int = 0


_limits: list[Limit] = []  # the innermost last


@contextmanager
def ready() -> Iterator[None]:
    """Has the alarm's handler in place, so that each ``within`` inside costs less."""
    if not by_alarm():
        yield
        return
    with handling(Limit(running=False)):
        yield


@contextmanager
def handling(limit: Limit) -> Iterator[None]:
    """Sees to it that an alarm concerns this limit. The outermost one sets the handler."""
    depth = len(_limits)
    outer = None if _limits else signal.signal(signal.SIGALRM, ring)
    _limits.append(limit)
    try:
        yield
    finally:
        del _limits[depth:]
        if not _limits:
            signal.signal(signal.SIGALRM, outer)


def ring(signum: int, frame: Any) -> None:
    """Raises ``TimeUp`` in the innermost call.

    A loop around a bare ``except`` swallows every one of them. So from the third on, a trace
    function is left behind that raises once more on the next line, which is in the handler and no
    longer guarded by it.
    """
    limit = _limits[-1] if _limits else None
    if limit is None or not limit.running:
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


def within_by_alarm(seconds: float, call: Callable[[], Any]) -> Any:
    """``within``, by an alarm that raises ``TimeUp`` in the call, again and again."""
    limit, tracer, started = Limit(running=True), sys.gettrace(), time.monotonic()
    with handling(limit):
        outer_left, outer_interval = signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)
        try:
            value = call()
            limit.running = False
        finally:
            limit.running = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            sys.settrace(tracer)
            if outer_left:  # a grader's own limit goes on where it was; it rings until it is heard
                left = max(outer_left - (time.monotonic() - started), 0.001)
                signal.setitimer(signal.ITIMER_REAL, left, outer_interval)
    return value
