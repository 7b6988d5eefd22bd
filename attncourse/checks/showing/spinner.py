"""The line that a student sees while a check runs, and when it is interrupted."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attncourse.checks.reading.cells import running_shell
from attncourse.checks.reading.lines import line_behind
from attncourse.checks.trying.muted import show_anyway
from attncourse.checks.trying.outcome import is_student_file

SECONDS_BETWEEN_LINES = 5.0


class Interrupted(KeyboardInterrupt):
    """Raised when somebody interrupts a check; IPython shows its text and no traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints in place of a traceback."""
        return [str(self)]


@contextmanager
def watched_check(target: str) -> Iterator[None]:
    """Show that a check still runs inside the block; raise ``Interrupted`` for a Ctrl-C in it."""
    began = time.monotonic()
    try:
        with show_still_running(target):
            yield
    except KeyboardInterrupt as stop:
        line = line_behind(stop, is_student_file)
        where = f", in the line {line} of your code" if line else ""
        seconds = time.monotonic() - began
        message = f"{target}: interrupted after {seconds:.0f} s{where}; nothing was judged"
        raise Interrupted(message) from None


@contextmanager
def show_still_running(target: str) -> Iterator[None]:
    """Show every few seconds, inside the block, that something still runs; then take it away."""
    is_over = threading.Event()
    line = ReplacedLine()
    thread = threading.Thread(target=update_line, args=(target, is_over, line), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def update_line(target: str, is_over: threading.Event, line: "ReplacedLine") -> None:
    """Update a line with the seconds so far until the event ``is_over`` is set; then clear it."""
    seconds = 0.0
    while not is_over.wait(SECONDS_BETWEEN_LINES):
        seconds += SECONDS_BETWEEN_LINES
        line.show(f"{target}: still running, {seconds:.0f} s …")
    line.show("")


class ReplacedLine:
    """A line that is replaced by the next: in a notebook, or on a terminal that somebody sees."""

    def __init__(self) -> None:
        """Begin with no line shown."""
        self.out = sys.stderr  # kept, since another stream replaces it while an answer runs
        self.handle: Any = None
        self.shown = ""

    def show(self, text: str) -> None:
        """Show a text in place of the last one, in a notebook or a terminal; "" clears the line."""
        if not text and not self.shown:
            return
        ipython = running_shell()
        if ipython is not None and hasattr(ipython, "kernel"):
            with show_anyway():
                self.display(text)
        elif self.out.isatty():
            print(f"\r{text:{len(self.shown)}}", end="" if text else "\r", file=self.out)
        self.shown = text

    def display(self, text: str) -> None:
        """Show a text in a notebook's output, in the place of the last one."""
        from IPython.display import display

        mime_bundle = {"text/plain": text}
        if self.handle is None:
            self.handle = display(mime_bundle, raw=True, display_id=True)
        else:
            self.handle.update(mime_bundle, raw=True)
