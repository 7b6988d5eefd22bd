"""The cases of an exercise, and what an implementation makes of each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from attncourse.checks.compare import as_numbers, difference
from attncourse.checks.exercise import Case, Criterion, Exercise
from attncourse.checks.outcome import Outcome, Unusable, run

NOT_WRITTEN = "not written yet: replace `raise NotImplementedError()` by your code"


@dataclass(frozen=True)
class Trial:
    """A case, what the reference made of it and what the implementation did."""

    criterion: Criterion
    case: Case
    expected: Outcome
    outcome: Outcome

    @cached_property
    def wrong(self) -> bool:
        """Whether there is a ``problem``, which takes longer to put into words."""
        return bool(
            problem_with(self.criterion, self.case, self.expected, self.outcome, brief=True)
        )

    @cached_property
    def problem(self) -> str | None:
        """What is wrong with the outcome, apart from changed arguments; None if it is right."""
        return problem_with(self.criterion, self.case, self.expected, self.outcome)


@lru_cache(maxsize=8)
def draw(exercise: Exercise, seed: int) -> tuple[tuple[Criterion, Case, Outcome], ...]:
    """Every case of every criterion, with what the reference makes of it.

    Each criterion has its own stream of random numbers.
    """
    streams = np.random.SeedSequence(seed).spawn(len(exercise.criteria))
    return tuple(
        (criterion, case, run(exercise, exercise.reference, case))
        for criterion, stream in zip(exercise.criteria, streams, strict=True)
        for case in criterion.cases(np.random.default_rng(stream))
    )


def try_out(exercise: Exercise, implementation: Callable, seed: int) -> tuple[Trial, ...]:
    """The implementation on each case. After a call that hangs, the rest are skipped."""
    drawn = draw(exercise, seed)
    outcomes = outcomes_of(exercise, implementation, seed)
    return tuple(
        Trial(criterion, case, expected, next(outcomes, Outcome("skipped")))
        for criterion, case, expected in drawn
    )


def outcomes_of(exercise: Exercise, implementation: Callable, seed: int) -> Iterator[Outcome]:
    """What the implementation makes of each case, up to one that hangs.

    One that lives in another process is tried there: it offers ``attncourse_outcomes``.
    """
    elsewhere = getattr(type(implementation), "attncourse_outcomes", None)
    if elsewhere is not None:
        yield from elsewhere(implementation, exercise, seed)
        return
    for _, case, _ in draw(exercise, seed):
        outcome = run(exercise, implementation, case)
        yield outcome
        if outcome.kind == "hung":
            return


def problem_with(
    criterion: Criterion, case: Case, expected: Outcome, outcome: Outcome, *, brief: bool = False
) -> str | None:
    """What is wrong with an outcome, in words; None if it is right."""
    if outcome.kind == "hung":
        return "did not return in time: is there a loop that never ends?"
    if outcome.kind == "skipped":
        return "not tried, because an earlier call did not return in time"
    if case.raises is not None:
        wanted = case.raises.__name__
        if outcome.kind == "value":
            return f"returned a value, expected it to raise {wanted}"
        ok = outcome.error is not None and issubclass(outcome.error, case.raises)
        return None if ok else f"raised {outcome.text}, expected {wanted}"
    if outcome.kind == "raised":
        if outcome.error is NotImplementedError:
            return NOT_WRITTEN
        told = outcome.error is not None and issubclass(outcome.error, Unusable)
        return outcome.text if told else f"raised {outcome.text}"
    problem = difference(outcome.value, expected.value, brief=brief)
    if problem is None or criterion.holds is None:
        return problem
    # A property is judged by itself, once type and shape are those of the reference.
    got, want = as_numbers(outcome.value), as_numbers(expected.value)
    if got is None or want is None or got.shape != want.shape:
        return problem
    return criterion.holds(got, case)
