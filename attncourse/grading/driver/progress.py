"""Progress of a grading run and its remaining time: a bar or, without a terminal, lines."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

SECONDS_BETWEEN_LINES = 10.0  # seconds between two lines, where there is no terminal for a bar
STEPS_OF_PACE = 50  # the last ones tell it: those from the journal take no time, others do


class Pace:
    """The speed of a run and its remaining time; its text is empty before the first step.

    The wait for the next step counts, or one that takes long would be "about 1 s" away all along.
    """

    def __init__(self, total: int) -> None:
        """Start measuring a run of ``total`` steps."""
        self._left = total
        self._times = deque([time.monotonic()], maxlen=STEPS_OF_PACE + 1)

    def step(self) -> None:
        """Note that a step has ended."""
        self._left -= 1
        self._times.append(time.monotonic())

    def __str__(self) -> str:
        """Return how many steps end in a second, and the time that is left."""
        steps, taken = len(self._times) - 1, time.monotonic() - self._times[0]
        if not steps or not taken:
            return ""
        time_left = timedelta(seconds=math.ceil(self._left * taken / steps))
        return f"{steps / taken:.1f} a second, about {time_left} left"


@contextmanager
def show_progress(console: Console, title: str, total: int) -> Iterator[Callable[[], None]]:
    """Show progress towards ``total`` in the block; yield a function that goes one step on."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    live, pace, ended = console.is_terminal, Pace(total), Event()
    with Progress(*columns, console=console, transient=True, disable=not live) as bar:
        number = bar.add_task(title, total=total, pace=pace)

        def step() -> None:
            """Note that a step has ended, and move the bar."""
            pace.step()
            bar.advance(number)

        def write_lines() -> None:
            """Print a line of progress every few seconds, until the run has ended."""
            while not ended.wait(SECONDS_BETWEEN_LINES):
                if pace_in_words := str(pace):  # before, what is refused should be the only line
                    line = f"{title}: {bar.tasks[0].completed} of {total}, {pace_in_words}"
                    console.print(line, soft_wrap=True, highlight=False)
                    console.file.flush()

        writer = Thread(target=write_lines, daemon=True)
        if not live:
            writer.start()
        try:
            yield step
        finally:
            ended.set()
            if not live:
                writer.join()  # no line comes after the end
