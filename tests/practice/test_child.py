"""A child process that ends while it works takes nothing with it."""

import os
import signal

import pytest
from drill_making import child as children
from drill_making.child import Child, ChildEnded


def double_or_end(number):
    """Return twice a number; 13 ends the process, 14 is an error, 15 never comes back.

    16 asks for more memory than a child may have.
    """
    if number == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 14:
        raise ValueError("fourteen")
    while number == 15:
        signal.pause()
    if number == 16:
        bytearray(2 * children.MAX_EXTRA_BYTES)
    return 2 * number, os.getpid()


def test_calls_go_on_after_a_child_has_ended():
    with Child(double_or_end) as child:
        first, process = child.ask(3)
        assert child.ask(4) == (8, process)
        with pytest.raises(ChildEnded):
            child.ask(13)
        again, another = child.ask(5)
    assert (first, again) == (6, 10)
    assert len({process, another, os.getpid()}) == 3


def test_an_error_of_the_function_is_told_and_the_child_stays():
    with Child(double_or_end) as child:
        _, process = child.ask(1)
        with pytest.raises(RuntimeError, match="ValueError: fourteen"):
            child.ask(14)
        assert child.ask(2) == (4, process)


@pytest.mark.skipif(not children.MEMORY_FILE.exists(), reason="memory has a limit on Linux alone")
def test_a_child_has_memory_to_its_limit():
    with Child(double_or_end) as child:
        with pytest.raises(RuntimeError, match="MemoryError"):
            child.ask(16)
        assert child.ask(2)[0] == 4


def test_a_call_that_never_ends_is_ended(monkeypatch):
    monkeypatch.setattr(children, "MAX_CALL_SECONDS", 0.2)
    with Child(double_or_end) as child, pytest.raises(ChildEnded):
        child.ask(15)


def test_no_process_is_left():
    with Child(double_or_end) as child:
        _, process = child.ask(1)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
