"""Lines that say how far a long step has come, and about how long it takes yet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

WORTH_SAYING = 5  # seconds


class Progress:
    """So many things to do; each is told as it is done."""

    def __init__(self, total: int):
        self.total, self.count, self.started = total, 0, time.perf_counter()

    def done(self, text: str) -> None:
        """Print that one more is done, and about how long the rest takes."""
        self.count += 1
        gone = time.perf_counter() - self.started
        seconds_left = gone / self.count * (self.total - self.count)
        estimate = f", about {duration(seconds_left)} left" if seconds_left >= WORTH_SAYING else ""
        print(f"  {text} ({self.count} of {self.total}{estimate})", flush=True)


def duration(seconds: float) -> str:
    """Return seconds in words."""
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"


def status_of(main: Callable[[], int]) -> int:
    """Return a tool's status: its own, and 130 after Ctrl-C, which is told in one sentence."""
    try:
        return main()
    except KeyboardInterrupt:
        print("Stopped; the same command goes on.", file=sys.stderr)
        return 130
