"""The cases of an exercise, an implementation's outcome of each, and what is wrong with it."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from attncourse.checks.exercise import Case, Criterion, Exercise
from attncourse.checks.trying.asking import bring_back_changes
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
    refused_outcome,
    run,
)
from attncourse.checks.trying.watch import forbidding

N_FURTHER_DRAWS = 3  # in which a finding has to hold, too, before it is told
MAX_KEPT_DRAWS = 32  # enough for a chapter's exercises, with their further draws
NOT_WRITTEN = "not written yet: replace `raise NotImplementedError()` by your code"


@dataclass(frozen=True)
class Trial:
    """A case, the reference's outcome of it and the implementation's.

    ``answered`` is the implementation's. It is None in the trial of an answer whose mistake is
    mended: its outcome is then the reference's.
    """

    criterion: Criterion
    case: Case
    expected: "Outcome | ReferenceOutcome"
    answered: Outcome | None

    @property
    def outcome(self) -> Outcome:
        """Return the implementation's outcome, the reference's where ``answered`` is None."""
        if self.answered is not None:
            return self.answered
        return self.expected if isinstance(self.expected, Outcome) else self.expected.outcome

    @property
    def wrong(self) -> bool:
        """True if there is a ``problem``: quicker than to look at that, which is put into words.

        The outcome keeps the result, so that a second look, or another trial with the same two
        outcomes, compares nothing.
        """
        comparison = self.outcome.comparison
        if comparison.expected is not self.expected:
            problem = problem_with(self.case, self.expected, self.outcome, brief=True)
            comparison.expected, comparison.wrong = self.expected, problem is not None
        return comparison.wrong

    @cached_property
    def problem(self) -> Problem | None:
        """Return what is wrong with the outcome, or None. A changed argument is no problem here."""
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
    """Raised where the reference did not return in time, or found no memory.

    That is never the answer's fault, and a second try may well succeed.
    """


@lru_cache(maxsize=MAX_KEPT_DRAWS)
def draw(exercise: Exercise, seed: int) -> tuple[tuple[Criterion, Case, Any], ...]:
    """Return every case of every criterion, with the reference's outcome, still to be worked out.

    Each criterion has its own stream of random numbers, so that one may get a further case without
    changing those of the others.
    """
    streams = np.random.SeedSequence(seed).spawn(len(exercise.criteria))
    return tuple(
        (criterion, case, ReferenceOutcome(exercise, case))
        for criterion, stream in zip(exercise.criteria, streams, strict=True)
        for case in criterion.cases(np.random.default_rng(stream))
    )


class ReferenceOutcome:
    """The right outcome of a case, worked out when its kind or its value is first read.

    Many are never read: where an answer fails as a known mistake does, only these are compared.
    Reading raises ``NoReference`` where the reference fails; the next reading tries again.
    """

    def __init__(self, exercise: Exercise, case: Case):
        """Keep the case; nothing is worked out yet."""
        self.exercise, self.case = exercise, case

    @cached_property
    def outcome(self) -> Outcome:
        """Return the whole outcome."""
        return expected_outcome(self.exercise, self.case)

    @cached_property
    def in_single_precision(self) -> Outcome:
        """Return the outcome of the reference on the case's arguments in single precision."""
        args, kwargs = (
            to_single_precision(arguments) for arguments in (self.case.args, self.case.kwargs)
        )
        case = replace(self.case, args=args, kwargs=kwargs)
        return run(self.exercise, self.exercise.reference, case)

    @property
    def kind(self) -> str:
        """Return "value", or "raised" for a case in which right answers raise."""
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
    """Return the reference's outcome of a case; raise ``NoReference`` if it is not as expected."""
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
    """Return an implementation's trials on all cases of a seed.

    After a call that hangs, all further cases are skipped. With ``among``, places in the draw, all
    other cases are skipped.
    """
    return tuple(trials_of(exercise, implementation, seed, among))


def trials_of(
    exercise: Exercise, implementation: Callable, seed: int, among: Container[int] | None = None
) -> Iterator[Trial]:
    """Yield the trials of ``try_out`` case by case, so that a caller may stop early."""
    outcomes = outcomes_of(exercise, implementation, seed, among)
    for criterion, case, expected in draw(exercise, seed):
        yield Trial(criterion, case, expected, next(outcomes, Outcome("skipped")))


def outcomes_of(
    exercise: Exercise, implementation: Callable, seed: int, among: Container[int] | None = None
) -> Iterator[Outcome]:
    """Yield the implementation's outcome of each case, up to one that hangs.

    A proxy of an answer in another process has the method ``attncourse_outcomes``, which tries all
    cases there; ``among`` has no effect then.
    """
    outcomes_of_proxy = getattr(type(implementation), "attncourse_outcomes", None)
    if outcomes_of_proxy is not None:
        yield from outcomes_of_proxy(implementation, exercise, seed)
        return
    cases = draw(exercise, seed)
    is_watched = implementation is not exercise.reference
    with forbidding(exercise.forbids if is_watched else ()) as refused:
        for place, (_, case, _) in enumerate(cases):
            if among is not None and place not in among:
                yield Outcome("skipped")
                continue
            # Functions that it calls may be proxies, and what they change counts.
            with bring_back_changes():
                outcome = run(exercise, implementation, case, watched=False)
            outcome = refused_outcome(outcome, refused())
            yield outcome
            if outcome.kind == "hung":
                return


def problem_with(
    case: Case, expected: Outcome | ReferenceOutcome, outcome: Outcome, *, brief: bool = False
) -> Problem | None:
    """Return what is wrong with an outcome, in the words of a verdict; None if it is right.

    ``brief`` leaves numbers out of the words.
    """
    if outcome.kind == "hung":
        sentence = "did not return in time: is there a loop that never ends?"
        return Problem("unfinished", f"{sentence} {outcome.text}".rstrip())
    if outcome.kind == "skipped":
        return Problem("unfinished", "not tried, because an earlier call did not return in time")
    if case.raises is not None:
        error_name = case.raises.__name__
        if outcome.kind == "value":
            return Problem("value", f"returned a value, expected it to raise {error_name}")
        if outcome.error is not None and issubclass(outcome.error, case.raises):
            return None
        return Problem("raised", f"raised {outcome.text}, expected {error_name}")
    if outcome.kind == "raised":
        if is_unwritten(outcome):
            return Problem("unwritten", NOT_WRITTEN)
        if outcome.error is not None and issubclass(outcome.error, Unusable):
            return Problem("unusable", outcome.text)
        return Problem("raised", f"raised {outcome.text}")
    return difference(outcome.value, expected.value, brief=brief)


def constant_number(trials: tuple[Trial, ...]) -> float | None:
    """Return the one number that is all that an answer returns; None if it returns several.

    It may come alone or fill arrays. Cases that compare facts, and values that are words, such as
    the name of a dtype, are left out. None, too, where some value holds no numbers, or a call ended
    without a value: of other inputs nothing is known then.
    """
    if any(not t.case.raises and ended_without_value(t.outcome) for t in trials):
        return None
    values = [t.outcome.value for t in trials if t.outcome.kind == "value" and not t.case.facts]
    arrays = [as_numbers(value) for value in values if not isinstance(value, str)]
    number_arrays = [a for a in arrays if a is not None]
    if not arrays or len(number_arrays) < len(arrays):
        return None
    numbers = {float(n) for a in number_arrays if a.size for n in (a.min(), a.max())}
    return numbers.pop() if len(numbers) == 1 else None


def ended_without_value(outcome: Outcome) -> bool:
    """True if a call hung, was not tried or raised, but for a value that its use refuses."""
    is_refused_value = outcome.error is not None and issubclass(outcome.error, Unusable)
    return outcome.kind != "value" and not is_refused_value
