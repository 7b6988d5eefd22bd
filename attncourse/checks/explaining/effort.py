"""How much a diagnosis may try, counted in calls of functions and not in seconds.

What a verdict says must not depend on how busy a machine is: of the same answer and the same cases
it is the same. So what has been tried is counted, and each try weighs as much as the reference
takes, in calls of Python's functions: a third of a microsecond each, here and in NumPy and torch
alike. A clock ends what is slow in another way, many times later.
"""

import math
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from attncourse.checks.exercise import Exercise
from attncourse.checks.trying.outcome import run
from attncourse.checks.trying.trials import draw

CALLS = 3_000_000  # in what takes many tries
ALL = 6_000_000  # for all, fresh draws included: then what is known is said
LAST = 12.0  # seconds of processor time after which nothing more is begun, whatever was counted
AROUND = 300  # calls in a try that are not the implementation's
SOME = 6  # cases that are counted
USUAL = 2048
COMPARED = 100  # for looking at one result beside another


class Effort:
    """What has been tried so far: ``trials``, ``glances``, which know no limits, and comparisons.

    What it is ``within`` counts as well.
    """

    def __init__(self, exercise: Exercise, within: "Effort | None" = None):
        self.each = weight(exercise)
        self.trials = self.glances = self.compared = 0
        self.parts = [self] if within is None else within.parts
        if within is not None:
            self.parts.append(self)
        self.ends = time.thread_time() + LAST if within is None else within.ends

    @property
    def spent(self) -> int:
        """The calls in all that this counts."""
        less = max(self.each - AROUND, 0)
        return self.trials * self.each + self.glances * less + self.compared * COMPARED

    def is_left(self, share: float = 1.0) -> bool:
        """Whether more may be tried, of which a search may use a share with those before it."""
        return self.spent < share * CALLS and not self.is_over()

    def is_over(self) -> bool:
        """Whether so much was tried in all that what is known by now has to do."""
        return sum(part.spent for part in self.parts) > ALL or time.thread_time() > self.ends


@lru_cache(maxsize=256)
def weight(exercise: Exercise) -> int:
    """The calls in one try of an exercise's case, in the mean of some of one draw.

    Those on large arrays take longer: such an exercise has a longer ``limit``, and weighs more.
    """
    cases = [case for _, case, _ in draw(exercise, 0)]
    some = cases[:: max(1, len(cases) // SOME)]
    reference = exercise.reference
    calls = sum(calls_in(lambda c=c: run(exercise, reference, c)) for c in some) // len(some)
    return round(calls * exercise.limit / Exercise.limit)


def calls_in(function: Callable[[], Any]) -> int:
    """How many functions are called in a call, roughly: a few more or less are the same number.

    While somebody profiles this, nobody counts, and it is the number of many calls.
    """
    if sys.getprofile() is not None:
        return USUAL
    count = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        function()
    finally:
        sys.setprofile(None)
    return round(2 ** (round(2 * math.log2(max(count, 1))) / 2))
