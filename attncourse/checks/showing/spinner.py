"""The line that a student sees while a check runs, and when it is interrupted."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attncourse.checks.reading.cells import running_shell
from attncourse.checks.reading.lines import line_behind
from attncourse.checks.trying.muted import aloud
from attncourse.checks.trying.outcome import is_students

SECONDS_BETWEEN_LINES = 5.0  # seconds


class Interrupted(KeyboardInterrupt):
    """Raised when somebody interrupts a check. Its text is all there is to say: no traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints in place of a traceback."""
        return [str(self)]


@contextmanager
def watched_check(target: str) -> Iterator[None]:
    """Say every few seconds that a check still runs, and in a sentence that it was interrupted."""
    began = time.monotonic()
    try:
        with ticking(target):
            yield
    except KeyboardInterrupt as stop:
        line = line_behind(stop, is_students)
        where = f", in the line {line} of your code" if line else ""
        seconds = time.monotonic() - began
        said = f"{target}: interrupted after {seconds:.0f} s{where}; nothing was judged"
        raise Interrupted(said) from None


@contextmanager
def ticking(target: str) -> Iterator[None]:
    """Say every few seconds that something still runs."""
    over = threading.Event()
    line = ReplacedLine()
    thread = threading.Thread(target=tick, args=(target, over, line), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def tick(target: str, over: threading.Event, line: "ReplacedLine") -> None:
    """Tell how long it has been running, until it is over."""
    seconds = 0.0
    while not over.wait(SECONDS_BETWEEN_LINES):
        seconds += SECONDS_BETWEEN_LINES
        line.show(f"{target}: still running, {seconds:.0f} s …")
    line.show("")


class ReplacedLine:
    """A line that is replaced by the next: in a notebook, or on a terminal that somebody sees."""

    def __init__(self) -> None:
        """Begin with no line shown."""
        self.out = sys.stderr  # while an answer runs, another takes its place
        self.handle: Any = None
        self.shown = ""

    def show(self, text: str) -> None:
        """Show a text in the place of the last one, in a notebook or a terminal."""
        if not text and not self.shown:
            return
        ipython = running_shell()
        if ipython is not None and hasattr(ipython, "kernel"):
            with aloud():
                self.display(text)
        elif self.out.isatty():
            print(f"\r{text:{len(self.shown)}}", end="" if text else "\r", file=self.out)
        self.shown = text

    def display(self, text: str) -> None:
        """Show a text in a notebook's output, in the place of the last one."""
        from IPython.display import display

        what = {"text/plain": text}
        if self.handle is None:
            self.handle = display(what, raw=True, display_id=True)
        else:
            self.handle.update(what, raw=True)
