"""Lines that say how far a long step has come, and about how long it takes yet."""

from __future__ import annotations

import time

WORTH_SAYING = 5  # seconds


class Progress:
    """So many things to do; each is told as it is done."""

    def __init__(self, total: int):
        self.total, self.count, self.started = total, 0, time.perf_counter()

    def done(self, text: str) -> None:
        self.count += 1
        gone = time.perf_counter() - self.started
        left = gone / self.count * (self.total - self.count)
        estimate = f", about {duration(left)} left" if left >= WORTH_SAYING else ""
        print(f"  {text} ({self.count} of {self.total}{estimate})", flush=True)


def duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
