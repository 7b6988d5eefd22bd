"""Which case is the example of a drill: one that can be followed, and tells its names apart.

It is one of the checks' cases, of a draw or of a further one, or one of the small ones that were
written for examples (``small_cases``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

from attncourse.checks import Exercise, find_exercise
from attncourse.checks.explaining.suspects import Suspect, suspects
from attncourse.checks.trying.outcome import Outcome
from attncourse.checks.trying.trials import NoReference, Trial, draw, try_out
from attncourse.practice.drills import Drill, DrillExample
from drill_making.examples import (
    can_be_computed,
    example_of,
    example_problem,
    question_of,
    reading_effort,
)
from drill_making.proving import Named, as_checked, implementation_of, limited
from drill_making.small_cases import SMALL_CASE_CRITERION, with_small_cases
from drill_making.wrong_names import WANTED, draws_of, fair_names, is_twin, wrong_names

IN_ORDER = 2.0  # the effort by which a small case is worth less than the one before it
MOST_CASES = 24  # cases of a draw that are looked at, those that are read most quickly
MOST_COMPUTED = 6  # cases that are computed again
COMPUTED = 60.0  # the effort that a case is worth that can be computed with what is shown
REPLACED = 15.0  # that a wrong name costs which another takes the place of
FURTHER = 100  # from one seed to the next
MISSING = 300.0  # that one costs whose mistake gives the very result, for want of another


@dataclass(frozen=True)
class PossibleExample:
    """A case in which a drill's code is wrong, by its place among those of an exercise's draw."""

    exercise: Exercise
    seed: int
    place: int
    trial: Trial

    def outcomes(self, names: Collection[str]) -> dict[str, Outcome]:
        """Return what mistakes of these names make of the case."""
        first: dict[str, Suspect] = {}
        for suspect in suspects(self.exercise, self.seed):
            first.setdefault(suspect.mistake.name, suspect)
        with as_checked():
            return {n: first[n].trial(self.place).outcome for n in names if n in first}

    def twins(self, names: Collection[str]) -> list[str]:
        """Return those of the names whose mistakes give the very result that the code gives."""
        return [n for n, outcome in self.outcomes(names).items() if is_twin(self.trial, outcome)]

    @property
    def effort(self) -> float:
        """Return how much there is to read; small cases stand in the order of their effort."""
        later = IN_ORDER * self.place if self.trial.criterion.name == SMALL_CASE_CRITERION else 0
        return reading_effort(self.exercise, self.trial) + later

    @property
    def example(self) -> DrillExample:
        """Return the case in the form in which drills are kept."""
        return DrillExample(**example_of(self.exercise, self.trial))


@dataclass(frozen=True)
class NamedCode:
    """Wrong code, what the checks named it on a seed, and the right code that it was made of."""

    exercise: Exercise
    named: Named
    wrong: Callable
    right: Callable
    right_lines: Sequence[str]
    seed: int

    def cases(self, *seeds: int) -> list[PossibleExample]:
        """Return the cases of these draws that can be its example, and the small ones."""
        return [*possible_examples(self.exercise, self.wrong, self.right, seeds)]


def names_and_example(
    code: NamedCode, luck: random.Random, kept: Sequence[str] = ()
) -> tuple[list[str], PossibleExample] | None:
    """Return three wrong names for wrong code, and a case that refutes them where there is one.

    The names that are ``kept`` stay, if a case refutes them that is read as quickly as another.
    Further draws are looked through where no case refutes three names. None where there are too few
    names, or no case can be followed.
    """
    draws = {
        code.seed: code.named.trials,
        **draws_of(code.exercise, code.wrong, further_seeds(code.seed)[1:2]),
    }
    fair = fair_names(code.exercise, code.named.mistake, draws, code.right_lines)
    others = [name for name in fair if name not in kept]
    cases = code.cases(code.seed)
    case = best_example(cases, kept, others, code.wrong)
    if case is None or cost_of(case, kept, others) >= MISSING:
        cases += code.cases(*further_seeds(code.seed)[1:])
        case = best_example(cases, kept, others, code.wrong)
    if case is None:
        return None
    names = wrong_names(case.trial, case.outcomes([*kept, *others]), luck, kept)
    return (names, case) if len(names) == WANTED else None


def possible_examples(
    exercise: Exercise, implementation: Callable, right: Callable, seeds: Sequence[int]
) -> Iterator[PossibleExample]:
    """The cases of wrong code that can be followed: small ones, then those of the seeds' draws.

    Of each draw those first that are read most quickly.
    """
    for whole, seed in draws_for_examples(exercise, right, seeds):
        with as_checked():
            trials = try_out(whole, implementation, seed)
        found = [PossibleExample(whole, seed, i, t) for i, t in enumerate(trials) if is_possible(t)]
        found.sort(key=lambda one: one.effort)
        yield from islice((one for one in found if not example_problem(one.example)), MOST_CASES)


def example_case(drill: Drill, seed: int) -> PossibleExample | None:
    """Return the case that is a drill's example, with what its code makes of it.

    It is looked for among the small ones, and among those of a seed's draw and of the further two.
    None where it is in none of them.
    """
    exercise = limited(find_exercise(drill.exercise))
    wrong = implementation_of(drill.function, drill.setup, "\n".join(drill.code))
    right = implementation_of(drill.function, drill.setup, "\n".join(drill.right))
    if wrong is None or right is None:
        return None
    example = asdict(drill.example)
    for whole, draw_seed in draws_for_examples(exercise, right, further_seeds(seed)):
        for place, (criterion, case, _) in enumerate(draw(whole, draw_seed)):
            asked = question_of(whole, criterion, case)
            if any(example[name] != asked[name] for name in asked):
                continue
            with as_checked():
                trial = try_out(whole, wrong, draw_seed, {place})[place]
            if is_possible(trial) and example_of(whole, trial) == example:
                return PossibleExample(whole, draw_seed, place, trial)
    return None


def further_seeds(seed: int) -> tuple[int, int, int]:
    """Return a seed, and the two others whose draws may have an example."""
    return seed, seed + FURTHER, seed + 2 * FURTHER


def draws_for_examples(
    exercise: Exercise, right: Callable, seeds: Sequence[int]
) -> list[tuple[Exercise, int]]:
    """Return exercises and seeds among whose cases examples are: the small cases come first."""
    small = with_small_cases(exercise, right)
    own = [(exercise, seed) for seed in seeds]
    return [(small, seeds[0]), *own] if small else own


def is_possible(trial: Trial) -> bool:
    """True if wrong code ends in a case, and right code can be asked what should come of it."""
    if trial.outcome.kind not in ("value", "raised"):
        return False
    try:
        return bool(trial.expected.kind) and trial.stands_out
    except NoReference:  # a small case is for answers of one form only
        return False


def best_example(
    cases: Sequence[PossibleExample],
    kept: Sequence[str],
    others: Sequence[str],
    implementation: Callable,
) -> PossibleExample | None:
    """Return the case that is read most quickly, of those that refute as many names as wanted.

    The names that a drill has, ``kept``, rather stay; ``others`` can take their places. Of the best
    few one is taken whose results come out of what is shown. None where there is no case.
    """
    ranked = sorted(((cost_of(case, kept, others), i) for i, case in enumerate(cases)))
    best = [(cost, cases[i]) for cost, i in ranked]
    with as_checked():
        for cost, case in best[:MOST_COMPUTED]:
            near = cost - best[0][0] <= COMPUTED
            if near and can_be_computed(case.exercise, case.trial, implementation):
                return case
    return best[0][1] if best else None


def cost_of(case: PossibleExample, kept: Sequence[str], others: Sequence[str]) -> float:
    """Return the effort of reading a case, with what its twins among the names cost."""
    lacks = max(WANTED - len(kept) + len(case.twins(kept)), 0)
    there = len(others) - len(case.twins(others))
    missing = max(lacks - there, 0)
    return case.effort + REPLACED * (lacks - missing) + MISSING * missing
