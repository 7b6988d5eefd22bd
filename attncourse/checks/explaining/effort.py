"""The budget of a diagnosis, counted in calls of functions and not in seconds.

What a verdict says must not depend on how busy a machine is: of the same answer and the same cases
it is the same. So what has been tried is counted, and a try of a case weighs as much as a right
answer takes in it, in calls of Python's functions: a third of a microsecond each. An operator of
torch takes as long as some of them, and so do the numbers that it makes. A clock ends what is slow
in another way, many times later.
"""

import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from attncourse.checks.exercise import Case, Criterion, Exercise, parts_of
from attncourse.checks.trying.outcome import run
from attncourse.checks.trying.trials import count_numbers, draw

MAX_CALLS_OF_SEARCH = 2_700_000  # in what takes many tries
MAX_CALLS_IN_ALL = 4_700_000  # for all, fresh draws included: then what is known is said
# Seconds of processor time after which nothing more is begun, whatever was counted.
MAX_SECONDS = 12.0
CALLS_AROUND_TRY = 300  # calls in a try that are not the implementation's
# Calls around the implementation in one try, where no notebook's kernel adds to them.
CALLS_OUTSIDE_KERNEL = 144
CALLS_UNDER_PROFILER = 2048
CALLS_PER_COMPARISON = 100  # for looking at one result beside another
CALLS_PER_OPERATOR = 6  # for an operator of torch
NUMBERS_PER_CALL = 125  # that operators make in the time of a call
NUMBERS_PER_DRAWN_ONE = 4  # such numbers in the time of one that is drawn by chance


class Effort:
    """The budget of one diagnosis, and the calls ``spent`` of it on tries, glances and comparisons.

    A budget may lie ``within`` another one: then both end together.
    """

    def __init__(self, exercise: Exercise, within: "Effort | None" = None):
        """Start with the whole budget, or as a part of the one that this lies ``within``."""
        self.exercise = exercise
        self.spent = 0
        self.parts = [self] if within is None else within.parts
        if within is not None:
            self.parts.append(self)
        self.ends = time.thread_time() + MAX_SECONDS if within is None else within.ends

    def tried(self, place: int, times: int = 1) -> None:
        """Count so many tries of the case at a place."""
        self.spent += times * calls_of_case(self.exercise, place)

    def glanced(self, place: int) -> None:
        """Count a try without its safeguards, copies and limits, and a comparison."""
        self.spent += (
            max(calls_of_case(self.exercise, place) - CALLS_AROUND_TRY, 0) + CALLS_PER_COMPARISON
        )

    def compared(self) -> None:
        """Count the comparison of one result with another."""
        self.spent += CALLS_PER_COMPARISON

    def is_left(self, share: float = 1.0) -> bool:
        """True if more may be tried: a search may use its share of the budget."""
        return self.spent < share * MAX_CALLS_OF_SEARCH and not self.is_over()

    def is_over(self) -> bool:
        """True if the whole budget is spent, so that what is known by now has to do."""
        return (
            sum(part.spent for part in self.parts) > MAX_CALLS_IN_ALL
            or time.thread_time() > self.ends
        )


def calls_of_case(exercise: Exercise, place: int) -> int:
    """Return the calls in one try of the case at a place, or of one like it."""
    alike = typical_cases(exercise)
    return work_of(exercise, alike[min(place, len(alike) - 1)])


@lru_cache(maxsize=256)
def typical_cases(exercise: Exercise) -> tuple[int, ...]:
    """Return for each case the index of a typical one with its criterion, caller and size class."""
    ways = [way_of(criterion, case) for criterion, case, _ in draw(exercise, 0)]
    alike = {way: [i for i, other in enumerate(ways) if other == way] for way in ways}
    return tuple(alike[way][len(alike[way]) // 2] for way in ways)


def way_of(criterion: Criterion, case: Case) -> tuple:
    """Return what makes two cases take about as long: criterion, caller, and size class."""
    use = case.use
    while isinstance(use, partial):
        use = use.func
    return criterion.name, use, count_numbers(case).bit_length() // 2


@lru_cache(maxsize=4096)
def work_of(exercise: Exercise, place: int) -> int:
    """Return how many calls a right answer takes for the case at this place of a draw."""
    case = draw(exercise, 0)[place][1]
    answer = usual_answer(exercise)
    return work_in(lambda: run(exercise, answer, case, watched=False), calls_around(exercise))


@lru_cache(maxsize=256)
def usual_answer(exercise: Exercise) -> Callable:
    """Return the right answer that most of an exercise's mistakes are made of."""
    compositions = Counter(made.compose for m in exercise.mistakes if (made := parts_of(m.wrong)))
    return compositions.most_common(1)[0][0]() if compositions else exercise.reference


def work_in(function: Callable[[], Any], around: int | None = None) -> int:
    """Return how many functions a call runs; operators of torch count as several.

    In a try there are some ``around`` the implementation's, which are made
    ``CALLS_OUTSIDE_KERNEL``. A few more or less are the same number. While somebody profiles this,
    nobody counts, and it is the number of many calls.
    """
    if sys.getprofile() is not None:
        return CALLS_UNDER_PROFILER
    operators = calls_of_operators(function)  # which first loads what it needs
    calls = calls_in(function)
    if around is not None:
        calls = max(calls - around, 0) + CALLS_OUTSIDE_KERNEL
    return round(2 ** (round(2 * math.log2(max(operators + calls, 1))) / 2))


@lru_cache(maxsize=256)
def calls_around(exercise: Exercise) -> int:
    """Return the calls in a try that are not the implementation's; a kernel makes more of them.

    So they are counted and made ``CALLS_OUTSIDE_KERNEL``, or a kernel would be told less than a
    script.
    """
    nothing = Case(())
    run(exercise, int, nothing, watched=False)  # which first loads what it needs
    return calls_in(lambda: run(exercise, int, nothing, watched=False))


def calls_in(function: Callable[[], Any]) -> int:
    """Return how many functions of Python, and of C, are called in a call."""
    calls = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        # torch writes down the stack where a seed is set, and a kernel's is deep.
        is_counted = frame.f_globals.get("__name__") not in ("traceback", "linecache")
        calls += is_counted and event in ("call", "c_call")

    sys.setprofile(called)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def calls_of_operators(function: Callable[[], Any]) -> int:
    """Return how many calls the operators of torch in a call count as, gradients included."""
    if "torch" not in sys.modules:
        function()
        return 0
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counted(TorchDispatchMode):
        operators = numbers = 0

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Return False: else torch loads all of its compiler at the first operation."""
            return False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            self.operators += 1
            parts = made if isinstance(made, tuple | list) else (made,)
            numbers = sum(part.numel() for part in parts if isinstance(part, torch.Tensor))
            by_chance = torch.Tag.nondeterministic_seeded in func.tags
            self.numbers += numbers * (NUMBERS_PER_DRAWN_ONE if by_chance else 1)
            return made

    with Counted() as counted:
        function()
    return CALLS_PER_OPERATOR * counted.operators + counted.numbers // NUMBERS_PER_CALL
