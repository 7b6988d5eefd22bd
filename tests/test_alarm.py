"""Time limits: what is in time is returned, what is not ends, and limits within limits hold."""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext, suppress

import pytest

from attncourse.alarm import TimeUp, ready, within

SHORT, LONG = 0.05, 20.0  # seconds; nothing here may take long ones


def endless() -> None:
    while True:
        pass


def deaf() -> None:
    """A loop around whose bare ``except`` there is another, as students write them."""
    while True:
        try:  # noqa: SIM105
            endless()
        except:  # noqa: E722
            pass


@contextmanager
def soon():
    """What is inside may take a few seconds, on a busy machine, and no more."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < LONG / 2


@pytest.fixture(autouse=True)
def watched():
    """A limit that does not hold ends this process: the run fails and does not hang."""
    faulthandler.dump_traceback_later(2 * LONG, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(params=[nullcontext, ready], ids=["alone", "ready"])
def around(request):
    with request.param():
        yield


def test_what_is_in_time_is_returned_or_raised(around):
    assert within(LONG, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(LONG, lambda: 1 / 0)


@pytest.mark.parametrize("call", [endless, deaf])
def test_what_is_not_in_time_ends(around, call):
    with soon(), pytest.raises(TimeUp):
        within(SHORT, call)
    assert within(LONG, lambda: sum(range(1000))) == 499_500  # and nothing rings afterwards
    time.sleep(3 * SHORT)


def test_a_debuggers_trace_is_there_again():
    def trace(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with soon(), pytest.raises(TimeUp):
            within(SHORT, deaf)
        found = sys.gettrace()
    finally:
        sys.settrace(before)
    assert found is trace


def test_an_inner_limit_ends_the_inner_call_alone(around):
    def outer() -> str:
        for call in (endless, deaf):
            with pytest.raises(TimeUp):
                within(SHORT, call)
        return "went on"

    with soon():
        assert within(LONG, outer) == "went on"


@pytest.mark.parametrize("inner", [lambda: 7, lambda: 1 / 0, endless])
def test_an_outer_limit_goes_on_after_an_inner_one(around, inner):
    def outer() -> None:
        with suppress(ZeroDivisionError, TimeUp):
            within(SHORT / 2, inner)
        endless()

    with soon(), pytest.raises(TimeUp):
        within(4 * SHORT, outer)


def test_an_outer_limit_that_is_over_in_an_inner_call_ends_the_outer_one(around):
    def outer() -> None:
        within(4 * SHORT, lambda: time.sleep(2 * SHORT))
        endless()

    with soon(), pytest.raises(TimeUp):
        within(SHORT, outer)


def test_the_handler_and_the_timer_of_before_are_there_again():
    def own(signum, frame):
        raise AssertionError("rang for somebody else")

    before = signal.signal(signal.SIGALRM, own)
    try:
        with ready():
            within(LONG, lambda: within(LONG, lambda: 7))
            with pytest.raises(TimeUp):
                within(SHORT, endless)
        assert signal.getsignal(signal.SIGALRM) is own
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_thread_has_a_limit_too():
    found = []

    def inside() -> None:
        with ready():
            found.append(within(LONG, lambda: 7))
            try:
                within(SHORT, lambda: time.sleep(4 * SHORT))
            except TimeUp:
                found.append("ended")

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert found == [7, "ended"]
