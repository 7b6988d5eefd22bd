"""The processor time that a submission may use, in the judge and in its own processes together."""

import time

from attncourse.support.alarm import Clock, Stopwatch


class Budget(Stopwatch):
    """A stopwatch on the processor time of a submission: that of the judge and of its processes.

    A submission has one process at a time; what those before it used counts on.
    """

    def __init__(self, seconds: float):
        self.ended_seconds = 0.0  # processor time of its processes that are no more
        self.clock = Clock()  # of the one that is there
        super().__init__(seconds, self.seconds_used)

    def seconds_used(self) -> float:
        """Return the seconds of processor time used by this process and the submission's so far."""
        return time.process_time() + self.ended_seconds + self.clock.used()

    def count_process(self, clock: Clock) -> None:
        """Count another process's time from now on: the one of ``clock``, which may be nobody's."""
        self.ended_seconds += self.clock.used()
        self.clock = clock
