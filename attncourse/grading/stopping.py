"""Stopping a command with Ctrl-C."""

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SECONDS_UNTIL_SENT_AGAIN = 0.05


def interrupt_main_thread() -> None:
    """Send this process Ctrl-C's signal, where possible such that a waiting call ends."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:  # on Windows
        _thread.interrupt_main()


@contextmanager
def ending_at_ctrl_c(state: str) -> Iterator[None]:
    """End the command at a Ctrl-C in the block, with status 130 and a line on how things stand.

    Python drops an exception that is raised in a finalizer or in a weak reference's callback, and
    an import runs such callbacks: an interrupt that falls there is dropped too. It is sent again.
    """
    hook_before = sys.unraisablehook

    def send_again_if_dropped(dropped: Any) -> None:
        """Python's hook for exceptions that it drops: a Ctrl-C among them is sent again."""
        if dropped.exc_type is KeyboardInterrupt:
            # Not at once: what drops the exception has to be over by then.
            threading.Timer(SECONDS_UNTIL_SENT_AGAIN, interrupt_main_thread).start()
        else:
            hook_before(dropped)

    sys.unraisablehook = send_again_if_dropped
    try:
        yield
    except KeyboardInterrupt as stop:
        print(f"attncourse: stopped; {stop.args[0] if stop.args else state}", file=sys.stderr)
        # An interrupt inside exec(), which dataclasses and named tuples use, stays marked as not
        # handled, and ``python -m`` would end by the signal. To execute anything unmarks it.
        exec("")
        raise SystemExit(130) from None
    finally:
        sys.unraisablehook = hook_before
