"""The budget of a diagnosis, counted in calls of functions and not in seconds.

A verdict must not depend on how busy a machine is: for the same answer and cases it is the same. So
tries are counted. A try of a case counts as many function calls as a right answer makes in it; one
takes about a third of a microsecond. An operator of torch counts as several calls, and so do the
numbers that it makes. A clock ends what is slow in another way, long after.
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

MAX_CALLS_OF_SEARCH = 2_700_000  # for steps of the search that take many tries
MAX_CALLS_IN_ALL = 4_700_000  # for the whole diagnosis, fresh draws included
MAX_SECONDS = 12.0  # of processor time, after which no step begins, whatever was counted
CALLS_AROUND_TRY = 300  # calls in a try that are not the implementation's
# Calls around the implementation in one try, where no notebook's kernel adds to them.
CALLS_OUTSIDE_KERNEL = 144
CALLS_UNDER_PROFILER = 2048  # of any function, where a profiler keeps this from counting
CALLS_PER_COMPARISON = 100  # that the comparison of two results counts as
CALLS_PER_OPERATOR = 6  # that an operator of torch counts as
NUMBERS_PER_CALL = 125  # numbers made by operators that count as one call
NUMBERS_PER_DRAWN_ONE = 4  # such numbers that one random number counts as


class Effort:
    """The budget of one search, and the calls ``spent`` on tries, glances and comparisons.

    A search that confirms another one's claim has a budget ``within`` that of the other: both end
    together.
    """

    def __init__(self, exercise: Exercise, within: "Effort | None" = None):
        """Start a new budget, or a further part of the one that it is ``within``."""
        self.exercise = exercise
        self.spent = 0
        self.parts = [self] if within is None else within.parts
        if within is not None:
            self.parts.append(self)
        self.deadline = time.thread_time() + MAX_SECONDS if within is None else within.deadline

    def count_tries(self, place: int, times: int = 1) -> None:
        """Count ``times`` tries of the case at this place of the draw."""
        self.spent += times * calls_of_case(self.exercise, place)

    def count_glance(self, place: int) -> None:
        """Count a call without the safeguards of a try (``Suspect.glance``), and a comparison."""
        self.spent += (
            max(calls_of_case(self.exercise, place) - CALLS_AROUND_TRY, 0) + CALLS_PER_COMPARISON
        )

    def count_comparison(self) -> None:
        """Count the comparison of one result with another."""
        self.spent += CALLS_PER_COMPARISON

    def is_left(self, share: float = 1.0) -> bool:
        """True if the search has spent less than this share of its budget, and time is left."""
        return self.spent < share * MAX_CALLS_OF_SEARCH and not self.is_over()

    def is_over(self) -> bool:
        """True if the budget of the whole diagnosis, or its time, is spent."""
        return (
            sum(part.spent for part in self.parts) > MAX_CALLS_IN_ALL
            or time.thread_time() > self.deadline
        )


def calls_of_case(exercise: Exercise, place: int) -> int:
    """Return how many calls one try of the case at this place counts as.

    It is measured on a typical case of the same kind, so that few cases are measured.
    """
    typical = typical_cases(exercise)
    return calls_of_right_answer(exercise, typical[min(place, len(typical) - 1)])


@lru_cache(maxsize=256)
def typical_cases(exercise: Exercise) -> tuple[int, ...]:
    """Return, for each case of a draw, the place of the middle one of those of its kind."""
    kinds = [kind_of_case(criterion, case) for criterion, case, _ in draw(exercise, 0)]
    places_by_kind = {
        kind: [i for i, other_kind in enumerate(kinds) if other_kind == kind] for kind in kinds
    }
    return tuple(places_by_kind[kind][len(places_by_kind[kind]) // 2] for kind in kinds)


def kind_of_case(criterion: Criterion, case: Case) -> tuple:
    """Return criterion, caller and size class: cases with equal ones take about as long."""
    use = case.use
    while isinstance(use, partial):
        use = use.func
    return criterion.name, use, count_numbers(case).bit_length() // 2


@lru_cache(maxsize=4096)
def calls_of_right_answer(exercise: Exercise, place: int) -> int:
    """Return how many calls a right answer makes in the case at this place of a draw."""
    case = draw(exercise, 0)[place][1]
    answer = usual_answer(exercise)
    return measured_calls(
        lambda: run(exercise, answer, case, watched=False), calls_around(exercise)
    )


@lru_cache(maxsize=256)
def usual_answer(exercise: Exercise) -> Callable:
    """Return a right answer: of the composition that most mistakes use, else the reference."""
    compositions = Counter(parts.compose for m in exercise.mistakes if (parts := parts_of(m.wrong)))
    return compositions.most_common(1)[0][0]() if compositions else exercise.reference


def measured_calls(function: Callable[[], Any], around: int | None = None) -> int:
    """Return how many calls a function makes, rounded to a power of √2; operators count as several.

    In a try, ``around`` is the number of calls that are not the implementation's: a constant
    replaces it, since a notebook's kernel adds some. Rounded, small differences between machines
    and versions do not count. Under a profiler nothing can be counted, and a constant is returned.
    """
    if sys.getprofile() is not None:
        return CALLS_UNDER_PROFILER
    operators = calls_of_operators(function)  # first, so that imports do not count below
    calls = calls_in(function)
    if around is not None:
        calls = max(calls - around, 0) + CALLS_OUTSIDE_KERNEL
    return round(2 ** (round(2 * math.log2(max(operators + calls, 1))) / 2))


@lru_cache(maxsize=256)
def calls_around(exercise: Exercise) -> int:
    """Return the calls in a try that are not the implementation's.

    A notebook's kernel makes more of them than a script. They are counted to be replaced by
    ``CALLS_OUTSIDE_KERNEL``: else a notebook would spend its budget sooner and find less.
    """
    nothing = Case(())
    run(exercise, int, nothing, watched=False)  # once before, so that imports do not count
    return calls_in(lambda: run(exercise, int, nothing, watched=False))


def calls_in(function: Callable[[], Any]) -> int:
    """Return how many functions of Python and of C are called while a function runs."""
    calls = 0

    def count_call(frame: Any, event: str, argument: Any) -> None:
        """Count an event that Python's profiler reports, if it is a call."""
        nonlocal calls
        # torch records the stack when a seed is set, and a kernel's stack is deep.
        is_counted = frame.f_globals.get("__name__") not in ("traceback", "linecache")
        calls += is_counted and event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def calls_of_operators(function: Callable[[], Any]) -> int:
    """Return how many calls a function's torch operators count as, those of gradients included."""
    if "torch" not in sys.modules:
        function()
        return 0
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class OperatorCounter(TorchDispatchMode):
        """Counts the operators in its ``with`` block, and the numbers that they return."""

        operators = numbers = 0

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Return False: else torch loads all of its compiler at the first operation."""
            return False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            """Return the operator's result, and count it."""
            result = func(*args, **(kwargs or {}))
            self.operators += 1
            parts = result if isinstance(result, tuple | list) else (result,)
            numbers = sum(part.numel() for part in parts if isinstance(part, torch.Tensor))
            by_chance = torch.Tag.nondeterministic_seeded in func.tags
            self.numbers += numbers * (NUMBERS_PER_DRAWN_ONE if by_chance else 1)
            return result

    with OperatorCounter() as counted:
        function()
    return CALLS_PER_OPERATOR * counted.operators + counted.numbers // NUMBERS_PER_CALL
