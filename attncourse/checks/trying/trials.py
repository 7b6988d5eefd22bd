"""The cases of an exercise, and what an implementation makes of each."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from attncourse.checks.exercise import Case, Criterion, Exercise
from attncourse.checks.trying.asking import asking
from attncourse.checks.trying.compare import (
    Problem,
    as_numbers,
    difference,
    dtype_name,
    is_array,
    known_numbers,
)
from attncourse.checks.trying.outcome import (
    Outcome,
    Unusable,
    is_tensor,
    is_unwritten,
    run,
    unless_refused,
)
from attncourse.checks.trying.watch import forbidding

N_FURTHER_DRAWS = 3  # further draws that what is told of an answer has to hold in
MAX_KEPT_DRAWS = 32  # draws: a chapter's, with the further ones of each exercise
NOT_WRITTEN = "not written yet: replace `raise NotImplementedError()` by your code"


@dataclass(frozen=True)
class Trial:
    """A case, what the reference made of it and what the implementation did.

    ``answered`` is None in the trial of an answer that is mended here: then it does what is right.
    """

    criterion: Criterion
    case: Case
    expected: "Outcome | ReferenceOutcome"
    answered: Outcome | None

    @property
    def outcome(self) -> Outcome:
        """Return what the implementation did; it is not worked out before it is looked at."""
        if self.answered is not None:
            return self.answered
        return self.expected if isinstance(self.expected, Outcome) else self.expected.outcome

    @property
    def wrong(self) -> bool:
        """True if there is a ``problem``, which takes longer to put into words.

        An outcome that is held against the same once more is not compared again.
        """
        comparison = self.outcome.comparison
        if comparison.expected is not self.expected:
            problem = problem_with(self.case, self.expected, self.outcome, brief=True)
            comparison.expected, comparison.wrong = self.expected, problem is not None
        return comparison.wrong

    @cached_property
    def problem(self) -> Problem | None:
        """Return the problem with the outcome, changed arguments apart; None if it is right."""
        return problem_with(self.case, self.expected, self.outcome)

    @property
    def said(self) -> str:
        """Return the problem in one line; "" if there is none."""
        return self.problem.said if self.problem else ""

    @property
    def stands_out(self) -> bool:
        """True if anything is wrong, a changed argument included."""
        return bool(self.outcome.mutated) or self.wrong


def count_numbers(case: Case) -> int:
    """Return how many numbers the arguments of a case hold."""
    values = [*case.args, *case.kwargs.values()]
    return sum(known_numbers(value).size for value in values if is_array(value))


class NoReference(Exception):
    """There is nothing to compare an answer with: ours did not return in time, or found no memory.

    That is never the answer's doing, and another try may well go right.
    """


@lru_cache(maxsize=MAX_KEPT_DRAWS)
def draw(exercise: Exercise, seed: int) -> tuple[tuple[Criterion, Case, Any], ...]:
    """Return every case of every criterion, with what the reference will make of it.

    Each criterion has its own stream of random numbers.
    """
    streams = np.random.SeedSequence(seed).spawn(len(exercise.criteria))
    return tuple(
        (criterion, case, ReferenceOutcome(exercise, case))
        for criterion, stream in zip(exercise.criteria, streams, strict=True)
        for case in criterion.cases(np.random.default_rng(stream))
    )


class ReferenceOutcome:
    """The right outcome of a case, worked out when its kind or its value is first looked at.

    Where an answer does what a known mistake does, nobody looks. Looking raises ``NoReference``
    where the reference makes nothing of the case; then nothing is kept.
    """

    def __init__(self, exercise: Exercise, case: Case):
        """Note the case."""
        self.exercise, self.case = exercise, case

    @cached_property
    def outcome(self) -> Outcome:
        """Return the whole outcome."""
        return expected_outcome(self.exercise, self.case)

    @cached_property
    def in_single_precision(self) -> Outcome:
        """Return the outcome of the reference on the case's arguments in single precision."""
        args, kwargs = (to_single_precision(given) for given in (self.case.args, self.case.kwargs))
        case = replace(self.case, args=args, kwargs=kwargs)
        return run(self.exercise, self.exercise.reference, case)

    @property
    def kind(self) -> str:
        """Return what came of the call: "value", or "raised" where that is asked for."""
        return self.outcome.kind

    @property
    def value(self) -> Any:
        """Return the right value."""
        return self.outcome.value


def to_single_precision(value: Any) -> Any:
    """Return arguments in which every float64 array is one of float32."""
    if is_array(value) and dtype_name(value) == "float64":
        return value.float() if is_tensor(value) else value.astype(np.float32)
    if type(value) in (tuple, list):
        return type(value)(map(to_single_precision, value))
    if type(value) is dict:
        return {key: to_single_precision(item) for key, item in value.items()}
    return value


def expected_outcome(exercise: Exercise, case: Case) -> Outcome:
    """Return the reference's outcome of a case."""
    outcome = run(exercise, exercise.reference, case)
    if outcome.kind != ("value" if case.raises is None else "raised"):
        why = outcome.text or f"took longer than {exercise.limit:g} s of processor time"
        raise NoReference(
            f"the expected result of {exercise.name} could not be worked out on this machine "
            f"({why}): please run this once more"
        )
    return outcome


def try_out(
    exercise: Exercise, implementation: Callable, seed: int, among: Container[int] | None = None
) -> tuple[Trial, ...]:
    """Return the trials of an implementation. After a call that hangs, the rest are skipped.

    So are those that are not ``among`` these, by their places, where they are given.
    """
    return tuple(trials_of(exercise, implementation, seed, among))


def trials_of(
    exercise: Exercise, implementation: Callable, seed: int, among: Container[int] | None = None
) -> Iterator[Trial]:
    """Yield the trials of ``try_out`` case by case, for a caller that may stop early."""
    outcomes = outcomes_of(exercise, implementation, seed, among)
    for criterion, case, expected in draw(exercise, seed):
        yield Trial(criterion, case, expected, next(outcomes, Outcome("skipped")))


def outcomes_of(
    exercise: Exercise, implementation: Callable, seed: int, among: Container[int] | None = None
) -> Iterator[Outcome]:
    """Yield the implementation's outcome of each case, up to one that hangs.

    One that lives in another process is tried there, on all: it offers ``attncourse_outcomes``.
    """
    elsewhere = getattr(type(implementation), "attncourse_outcomes", None)
    if elsewhere is not None:
        yield from elsewhere(implementation, exercise, seed)
        return
    cases = draw(exercise, seed)
    watched = implementation is not exercise.reference
    with forbidding(exercise.forbids if watched else ()) as refused:
        for place, (_, case, _) in enumerate(cases):
            if among is not None and place not in among:
                yield Outcome("skipped")
                continue
            with asking():  # a part of it may live in another process, and what it changes counts
                outcome = run(exercise, implementation, case, watched=False)
            outcome = unless_refused(outcome, refused())
            yield outcome
            if outcome.kind == "hung":
                return


def problem_with(
    case: Case, expected: Outcome | ReferenceOutcome, outcome: Outcome, *, brief: bool = False
) -> Problem | None:
    """Return what is wrong with an outcome; None if it is right."""
    if outcome.kind == "hung":
        said = "did not return in time: is there a loop that never ends?"
        return Problem("unfinished", f"{said} {outcome.text}".rstrip())
    if outcome.kind == "skipped":
        return Problem("unfinished", "not tried, because an earlier call did not return in time")
    is_unusable = outcome.error is not None and issubclass(outcome.error, Unusable)
    if case.raises is not None:
        wanted = case.raises.__name__
        if outcome.kind == "value":
            return Problem("value", f"returned a value, expected it to raise {wanted}")
        if outcome.error is not None and issubclass(outcome.error, case.raises):
            return None
        return Problem("raised", f"raised {outcome.text}, expected {wanted}")
    if outcome.kind == "raised":
        if is_unwritten(outcome):
            return Problem("unwritten", NOT_WRITTEN)
        if is_unusable:
            return Problem("unusable", outcome.text)
        return Problem("raised", f"raised {outcome.text}")
    return difference(outcome.value, expected.value, brief=brief)


def one_number(trials: tuple[Trial, ...]) -> float | None:
    """Return the number that comes back for every input, alone or in arrays; None if several do.

    A word in place of a value, the name of its dtype, says nothing of it.
    """
    values = [t.outcome.value for t in trials if t.outcome.kind == "value" and not t.case.facts]
    arrays = [as_numbers(value) for value in values if not isinstance(value, str)]
    known = [a for a in arrays if a is not None]
    if not arrays or len(known) < len(arrays):
        return None
    numbers = {float(n) for a in known if a.size for n in (a.min(), a.max())}
    return numbers.pop() if len(numbers) == 1 else None
