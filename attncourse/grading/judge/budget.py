"""The time that a submission has, whoever works for it: the judge, and the processes it runs in."""

import time

from attncourse.support.alarm import Clock, Stopwatch


class Budget(Stopwatch):
    """A submission's seconds of processor time: here, and in its processes one after the other."""

    def __init__(self, seconds: float):
        self.ended_seconds = 0.0  # processor time of its processes that are no more
        self.clock = Clock()  # of the one that is there
        super().__init__(seconds, self.spent)

    def spent(self) -> float:
        """Return the seconds of processor time that were used up to now."""
        return time.process_time() + self.ended_seconds + self.clock.used()

    def moves_to(self, clock: Clock) -> None:
        """Count another process's time from now on; ``clock`` is the new one's, or nobody's."""
        self.ended_seconds += self.clock.used()
        self.clock = clock
