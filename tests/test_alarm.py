"""Time limits: what is in time is returned, what is not ends, and limits within limits hold."""

from __future__ import annotations

import faulthandler
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext, suppress

import pytest

from attncourse import alarm
from attncourse.alarm import NAP, PATIENCE, Stopwatch, TimeUp, crowded, ready, within

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


def test_an_alarm_that_is_dropped_in_a_finalizer_rings_again_and_says_nothing(monkeypatch):
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


# --- what counts is the process's own work --------------------------------------------------------


def work(seconds: float) -> str:
    """Uses the processor for so many seconds."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return "done"


@pytest.fixture
def crowd():
    """Four other processes that never pause."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    time.sleep(0.2)
    yield
    for process in spinning:
        process.kill()
        process.wait()


def test_waiting_for_a_busy_processor_does_not_count(around, crowd):
    began = time.monotonic()
    assert within(1.0, lambda: work(0.7)) == "done"
    assert time.monotonic() - began > 0.75, "nobody else was there"


def test_what_sleeps_has_its_end_too(around):
    began = time.monotonic()
    with soon(), pytest.raises(TimeUp):
        within(0.2, lambda: time.sleep(1e6))
    assert time.monotonic() - began >= NAP * 0.2


def by_turns() -> None:
    while True:
        time.sleep(0.02)
        work(0.004)


@pytest.mark.parametrize("queued", [lambda: None, lambda: 0.0, time.monotonic])
def test_what_sleeps_and_works_by_turns_has_its_end_too(around, monkeypatch, queued):
    """Later where others keep the processor from it, as the kernel knows or can be guessed."""
    monkeypatch.setattr(alarm, "crowded", lambda: queued() is None)
    times = NAP if queued() == 0 else PATIENCE
    began = time.monotonic()
    with soon(), pytest.raises(TimeUp):
        within(Stopwatch(0.5, queued=queued), by_turns)
    assert time.monotonic() - began > 0.5 * min(times, 2)


def test_a_crowd_shows(crowd):
    assert any(crowded() for _ in range(9))


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


def test_a_stopwatch_says_what_was_up():
    worked = [0.0]
    watch = Stopwatch(2, lambda: worked[0])
    assert 0 < watch.left() <= 2
    worked[0] = 2.0
    assert (watch.left(), watch.in_words()) == (0, "2 s of processor time")
    slept = Stopwatch(0.01, lambda: 0.0)
    time.sleep(0.03)
    assert slept.left() == 0
    assert "processor" not in slept.in_words()
    patient = Stopwatch(0.01, lambda: 0.0, sleeps=True)
    time.sleep(0.03)
    assert patient.left() > 0
    assert not slept.starved()


@pytest.mark.parametrize("worked", [1.2, 3.0, 3.4])
def test_what_is_told_is_the_limit_whatever_was_measured(worked, monkeypatch):
    """A call may be stopped before or after its time where others are at the processor."""
    watch = Stopwatch(5, iter([0.0, worked]).__next__)
    monkeypatch.setattr(watch, "passed", lambda: 9.0)
    assert watch.in_words(3) == "3 s of processor time"


def test_what_had_half_of_the_processor_was_starved_or_waited(monkeypatch):
    half = Stopwatch(1, iter([0.0, 0.01, 0.01]).__next__)  # of 0.02 s
    time.sleep(0.02)
    for others in (True, False):
        monkeypatch.setattr(alarm, "crowded", lambda others=others: others)
        assert half.starved() is others


def test_time_that_is_up_stays_up(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(alarm.time, "monotonic", lambda: next(clock) / 2)
    idle = Stopwatch(3, lambda: 0.0, lambda: 0.0)
    found = [idle.left() for _ in range(20)]
    ended = found.index(0)
    assert ended > 0
    assert not any(found[ended:])
