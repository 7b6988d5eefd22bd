"""Time limits: what is in time is returned, what is not ends, and limits within limits hold."""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext, suppress

import pytest

from attncourse.support import alarm, limited_thread
from attncourse.support.alarm import (
    CLOCK_SECONDS_PER_WORK,
    Stopwatch,
    TimeUp,
    alarm_ready,
    idle_seconds,
    within,
)

SHORT, LONG = 0.05, 120.0  # seconds; nothing here may take long ones


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
    """What is inside may take many seconds, on a busy machine, but has an end."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < LONG / 2


@pytest.fixture(autouse=True)
def watched():
    """A limit that does not hold ends this process: the run fails and does not hang."""
    faulthandler.dump_traceback_later(2 * LONG, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@contextmanager
def no_alarm():
    """As on Windows, and off the main thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alarm, "has_alarms", lambda: False)
        yield


@pytest.fixture(params=[nullcontext, alarm_ready, no_alarm], ids=["alone", "ready", "no alarm"])
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


@pytest.mark.parametrize("call", [endless, deaf])
def test_where_no_alarm_rings_a_thread_that_runs_python_ends(call):
    before = threading.active_count()
    with no_alarm(), soon():
        for _ in range(3):
            with pytest.raises(TimeUp) as caught:
                within(SHORT, call)
            assert not isinstance(caught.value, limited_thread.StillRuns)
    assert threading.active_count() == before
    assert not limited_thread.is_slowed_down()


def test_c_code_that_no_alarm_stops_is_known(monkeypatch):
    monkeypatch.setattr(limited_thread, "MAX_RAISES", 2)
    with no_alarm(), soon():
        with pytest.raises(limited_thread.StillRuns):
            within(SHORT, threading.Event().wait)
        assert not limited_thread.is_slowed_down()  # for what waits takes nothing from others
        assert within(LONG, lambda: 7) == 7
    over = threading.Event()
    busy = threading.Thread(target=lambda: over.is_set() or spin(over), daemon=True)
    busy.start()
    limited_thread._deaf.append(busy)
    monkeypatch.setattr(
        limited_thread, "PROGRESS_CHECK_SECONDS", 1.0
    )  # a busy machine gives it its turn within
    try:
        assert limited_thread.is_slowed_down()
    finally:
        over.set()
        busy.join()
    assert not limited_thread.is_slowed_down()


def spin(over: threading.Event) -> None:
    while not over.is_set():
        pass


def test_no_limit_touches_a_debuggers_trace(monkeypatch):
    """VS Code's debugger warns, with a stack, of each ``sys.settrace``."""
    calls = []
    monkeypatch.setattr(sys, "settrace", calls.append)
    assert within(LONG, lambda: 7) == 7
    assert calls == []


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


def test_an_outer_limit_ends_inner_calls_too(around):
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
        with alarm_ready():
            within(LONG, lambda: within(LONG, lambda: 7))
            with pytest.raises(TimeUp):
                within(SHORT, endless)
        assert signal.getsignal(signal.SIGALRM) is own
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_alarm_lost_in_a_finalizer_rings_again(monkeypatch):
    said = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: said.append(what.exc_type))

    class Slow:
        def __del__(self):
            endless()

    class Failing:
        def __del__(self):
            raise ValueError

    def call():
        Failing()
        Slow()
        endless()

    with soon(), pytest.raises(TimeUp):
        within(SHORT, call)
    assert said == [ValueError]
    Failing()
    assert said == [ValueError, ValueError]


def test_a_thread_has_a_limit_too():
    found, over = [], threading.Event()

    def inside() -> None:
        with alarm_ready():
            found.append(within(LONG, lambda: 7))
            try:
                within(SHORT, over.wait)
            except TimeUp:
                found.append("ended")

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join(LONG / 2)
    over.set()
    assert found == [7, "ended"]


# --- what counts is the process's own work --------------------------------------------------------


def work(seconds: float) -> str:
    """Uses the processor for so many seconds."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return "done"


def test_the_clock_alone_has_no_say_for_a_while(around):
    """As on a busy machine, or on one that was stopped for a moment."""
    assert within(1.0, lambda: time.sleep(1.2) or work(0.01)) == "done"


def by_turns() -> None:
    while True:
        time.sleep(0.02)
        work(0.001)


@pytest.mark.parametrize("call", [lambda: time.sleep(1e6), by_turns])
def test_what_sleeps_has_its_end_too_and_not_before(around, call):
    began = time.monotonic()
    with soon(), pytest.raises(TimeUp):
        within(0.2, call)
    assert time.monotonic() - began >= CLOCK_SECONDS_PER_WORK * 0.2


def test_a_lock_that_nobody_opens_ends(around):
    lock = threading.Lock()
    lock.acquire()
    with soon(), pytest.raises(TimeUp):
        within(SHORT, lock.acquire)


def test_the_time_that_counts_may_be_anothers(around):
    """As where a call only waits for what another process does."""
    worked = [0.0]

    def elsewhere() -> None:
        while True:
            worked[0] += 0.05
            time.sleep(0.01)

    with soon(), pytest.raises(TimeUp):
        within(Stopwatch(1.0, lambda: worked[0]), elsewhere)
    assert worked[0] < 10


def test_a_stopwatch_says_what_was_up(monkeypatch):
    worked, clock = [0.0], [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    watch = Stopwatch(2, lambda: worked[0])
    assert watch.left() == 2
    worked[0], clock[0] = 1.5, 107.0
    assert watch.left() == 0.5
    worked[0] = 2.0
    assert (watch.left(), watch.in_words()) == (0, "2 s of processor time")
    assert watch.in_words(1.5) == "1.5 s of processor time"
    worked[0], clock[0] = 1.25, 100 + idle_seconds(2) + CLOCK_SECONDS_PER_WORK * 1.25
    assert watch.left() == 0
    assert watch.in_words() == f"{idle_seconds(2):g} s on the clock, with 1.2 s of processor time"
    watch.extend(1)
    assert watch.left() == 1.75


@pytest.mark.parametrize(("seconds", "waits"), [(0.5, 4), (5, 30), (20, 30), (120, 180)])
def test_what_sleeps_waits_for_less_than_what_works_may_take(seconds, waits, monkeypatch):
    """Twice a limit of twenty seconds, once more alone: a class waits a minute for a sleeper."""
    worked, clock = [0.0], [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    watch = Stopwatch(seconds, lambda: worked[0])
    clock[0] += waits - 0.01
    assert watch.left() > 0
    clock[0] += 0.01
    assert watch.left() == 0
    worked[0] = seconds / 2  # at an eighth of the machine's speed
    assert watch.left() == min(seconds / 2, CLOCK_SECONDS_PER_WORK * seconds / 2)
    seen = Stopwatch(seconds, lambda: 0.0, waits=CLOCK_SECONDS_PER_WORK * seconds)
    clock[0] += CLOCK_SECONDS_PER_WORK * seconds - 1
    assert seen.left() == min(1, seconds)


@pytest.mark.parametrize("worked", [1.2, 3.0, 3.4])
def test_what_is_told_is_the_limit_whatever_was_measured(worked, monkeypatch):
    """A call may be stopped before or after its time where others are at the processor."""
    watch = Stopwatch(5, iter([0.0, worked]).__next__)
    monkeypatch.setattr(watch, "passed", lambda: CLOCK_SECONDS_PER_WORK * 1.1)
    assert watch.in_words(3) == "3 s of processor time"
