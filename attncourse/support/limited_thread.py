"""A time limit where no alarm can ring: on Windows, and off the main thread.

The call runs in a thread of its own. When its time is up, ``TimeUp`` is raised in that thread,
which ends whatever runs in Python. What runs in C does not hear it and goes on: that is said.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from types import FrameType
from typing import Any

from attncourse.support.stopwatch import Stopwatch, TimeUp

RAISE_INTERVAL_SECONDS = 0.1  # until ``TimeUp`` is raised again where nobody has obeyed
MAX_SWALLOWED_RAISES = 2  # times that a call may swallow it before its next line is told, too
MAX_RAISES = 30  # times after which a call counts as deaf
PROGRESS_CHECK_SECONDS = 0.05  # in which a call that goes on shows whether it takes the processor


class StillRuns(TimeUp):
    """Raised for a call whose time is up and which nothing could end."""


class LimitedThread:
    """A call in a thread of its own, which can be ended while it runs in Python."""

    def __init__(self, call: Callable[[], Any]):
        self.running = True
        self.result: Callable[[], Any] | None = None
        self.inner: LimitedThread | None = None  # a limited call that this one makes
        if outer := _outer.get():
            outer.inner = self
        # Settings of a context, as NumPy's for overflows, are those of who asks.
        target = partial(copy_context().run, self.run, call)
        self.thread = threading.Thread(target=target, daemon=True)

    def run(self, call: Callable[[], Any]) -> None:
        """Make the call; this is what the thread does."""
        _outer.set(self)
        with suppress(TimeUp):  # one that comes when the call is over
            self.result = result_of(call)
            self.running = False

    def end(self) -> bool:
        """True if the thread came to its end, by itself or by ``TimeUp``."""

        class TimeUpOnNextLine(TimeUp):
            def __init__(_) -> None:
                raise_on_next_line(self, sys._getframe(1), LimitedThread.run)

        with quiet_finalizers(), untraced():
            for tries in range(MAX_RAISES):
                if self.inner:
                    self.inner.end()
                if not self.thread.is_alive():
                    return True
                raise_in(self.thread, TimeUp if tries < MAX_SWALLOWED_RAISES else TimeUpOnNextLine)
                self.thread.join(RAISE_INTERVAL_SECONDS)
            raise_in(self.thread, None)
        return not self.thread.is_alive()


_outer: ContextVar[LimitedThread | None] = ContextVar("_outer", default=None)
_deaf: list[threading.Thread] = []  # threads that nothing could end


def within_in_thread(watch: Stopwatch, call: Callable[[], Any]) -> Any:
    """Return what ``call()`` returns; raise ``TimeUp`` once its time is up and it has ended.

    Raises ``StillRuns`` where it goes on all the same.
    """
    limited = LimitedThread(call)
    limited.thread.start()
    try:
        while limited.thread.is_alive() and (left := watch.left()):
            limited.thread.join(min(left, RAISE_INTERVAL_SECONDS))
    finally:  # also where somebody interrupts, or an outer limit is over
        has_ended = not limited.thread.is_alive() or limited.end()
        if not has_ended:
            _deaf.append(limited.thread)
    if not has_ended:
        raise StillRuns
    if limited.result is None:
        raise TimeUp
    return limited.result()


def is_slowed_down() -> bool:
    """True if a call that nothing could end still takes the processor from all that follows."""
    _deaf[:] = [thread for thread in _deaf if thread.is_alive()]
    if not _deaf:
        return False
    worked, began = time.process_time(), time.monotonic()
    time.sleep(PROGRESS_CHECK_SECONDS)
    return time.process_time() - worked > (time.monotonic() - began) / 20


def raise_in(thread: threading.Thread, error: type[BaseException] | None) -> None:
    """Have an exception raised in a thread, by the next thing that it does in Python.

    None takes back what was not raised yet.
    """
    try:
        import ctypes
    except ImportError:  # a Python that was built without
        return
    if thread.ident is None:  # not started: nothing of it runs
        return
    ident = ctypes.c_ulong(thread.ident)
    what = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, what)


def result_of(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that returns what the call returned, or raises what it raised."""
    try:
        value = call()
    except BaseException as error:
        problem = error

        def raise_it() -> Any:
            raise problem

        return raise_it
    return lambda: value


def raise_on_next_line(limit: Any, frame: FrameType | None, last: Callable) -> None:
    """Have ``TimeUp`` raised once more, by whatever line of the limited call comes next.

    A loop around a bare ``except`` swallows every ``TimeUp``, for all of them come inside its
    ``try``. The next line is in the handler, which nothing guards. ``last`` makes the limited call.
    """

    def trace(frame: FrameType, event: str, arg: Any) -> Callable:
        if limit.running and event in ("line", "call"):  # an "exception" is still in the try
            raise TimeUp
        return trace

    sys.settrace(trace)  # for calls from now on; those that are open have to be told each
    while frame is not None and frame.f_code is not last.__code__:
        frame.f_trace = trace
        frame = frame.f_back


@contextmanager
def untraced() -> Iterator[None]:
    """Trace nothing in this thread inside the ``with`` block, and raise here what is left over.

    While an exception waits for another thread, Python up to 3.12 may loop for ever at a call that
    is traced. The mark that one waits goes away where one is raised.
    """
    tracer = sys.gettrace()
    if tracer:
        sys.settrace(None)
    try:
        yield
    finally:
        with suppress(TimeUp):
            raise_in(threading.current_thread(), TimeUp)
            for _ in range(100):  # it comes at one of these
                pass
        if tracer:
            sys.settrace(tracer)


@contextmanager
def quiet_finalizers() -> Iterator[None]:
    """Say nothing of a ``TimeUp`` that Python drops inside the ``with`` block: it comes again."""
    hook = sys.unraisablehook
    sys.unraisablehook = partial(report_dropped, hook)
    try:
        yield
    finally:
        sys.unraisablehook = hook


def report_dropped(tell: Callable[[Any], None], what: Any) -> None:
    """Report what Python drops in a finalizer or in a weak reference's callback.

    Of the alarm there is nothing to say: it rings again.
    """
    if not issubclass(what.exc_type, TimeUp):
        tell(what)
