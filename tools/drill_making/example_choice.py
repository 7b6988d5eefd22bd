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
from drill_making.wrong_names import N_WRONG_NAMES, draws_of, fair_names, is_twin, wrong_names

EFFORT_PER_PLACE = 2.0  # the effort by which a small case is worth less than the one before it
MAX_CASES_PER_DRAW = 24  # cases of a draw that are looked at, those that are read most quickly
MAX_CASES_COMPUTED = 6  # cases that are computed again
# The effort that a case is worth that can be computed with what is shown
EFFORT_OF_UNCOMPUTABLE = 60.0
EFFORT_PER_NEW_NAME = 15.0  # that a wrong name costs which another takes the place of
SEED_STEP = 100  # from one seed to the next
# The effort that a case costs whose mistake gives the very result, for want of another
EFFORT_PER_MISSING_NAME = 300.0


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
        later = (
            EFFORT_PER_PLACE * self.place
            if self.trial.criterion.name == SMALL_CASE_CRITERION
            else 0
        )
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
    code: NamedCode, luck: random.Random, kept_names: Sequence[str] = ()
) -> tuple[list[str], PossibleExample] | None:
    """Return three wrong names for wrong code, and a case that refutes them where there is one.

    ``kept_names`` stay, if a case refutes them that is read as quickly as another. Further draws
    are looked through where no case refutes three names. None where there are too few names, or no
    case can be followed.
    """
    draws = {
        code.seed: code.named.trials,
        **draws_of(code.exercise, code.wrong, further_seeds(code.seed)[1:2]),
    }
    fair = fair_names(code.exercise, code.named.mistake, draws, code.right_lines)
    other_names = [name for name in fair if name not in kept_names]
    cases = code.cases(code.seed)
    case = best_example(cases, kept_names, other_names, code.wrong)
    if case is None or cost_of(case, kept_names, other_names) >= EFFORT_PER_MISSING_NAME:
        cases += code.cases(*further_seeds(code.seed)[1:])
        case = best_example(cases, kept_names, other_names, code.wrong)
    if case is None:
        return None
    names = wrong_names(case.trial, case.outcomes([*kept_names, *other_names]), luck, kept_names)
    return (names, case) if len(names) == N_WRONG_NAMES else None


def possible_examples(
    exercise: Exercise, implementation: Callable, right: Callable, seeds: Sequence[int]
) -> Iterator[PossibleExample]:
    """Yield the cases of wrong code that can be followed: small ones, then the seeds' draws.

    Of each draw those first that are read most quickly.
    """
    for full_exercise, seed in draws_for_examples(exercise, right, seeds):
        with as_checked():
            trials = try_out(full_exercise, implementation, seed)
        examples = [
            PossibleExample(full_exercise, seed, i, t)
            for i, t in enumerate(trials)
            if is_possible(t)
        ]
        examples.sort(key=lambda example: example.effort)
        yield from islice(
            (example for example in examples if not example_problem(example.example)),
            MAX_CASES_PER_DRAW,
        )


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
    for full_exercise, draw_seed in draws_for_examples(exercise, right, further_seeds(seed)):
        for place, (criterion, case, _) in enumerate(draw(full_exercise, draw_seed)):
            question = question_of(full_exercise, criterion, case)
            if any(example[name] != question[name] for name in question):
                continue
            with as_checked():
                trial = try_out(full_exercise, wrong, draw_seed, {place})[place]
            if is_possible(trial) and example_of(full_exercise, trial) == example:
                return PossibleExample(full_exercise, draw_seed, place, trial)
    return None


def further_seeds(seed: int) -> tuple[int, int, int]:
    """Return a seed, and the two others whose draws may have an example."""
    return seed, seed + SEED_STEP, seed + 2 * SEED_STEP


def draws_for_examples(
    exercise: Exercise, right: Callable, seeds: Sequence[int]
) -> list[tuple[Exercise, int]]:
    """Return exercises and seeds among whose cases examples are: the small cases come first."""
    small = with_small_cases(exercise, right)
    full_draws = [(exercise, seed) for seed in seeds]
    return [(small, seeds[0]), *full_draws] if small else full_draws


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
    kept_names: Sequence[str],
    other_names: Sequence[str],
    implementation: Callable,
) -> PossibleExample | None:
    """Return the case that is read most quickly, of those that refute as many names as wanted.

    ``kept_names``, which the drill has, rather stay; ``other_names`` can take their places. Of the
    best few one is taken whose results come out of what is shown. None where there is no case.
    """
    ranked = sorted(((cost_of(case, kept_names, other_names), i) for i, case in enumerate(cases)))
    best = [(cost, cases[i]) for cost, i in ranked]
    with as_checked():
        for cost, case in best[:MAX_CASES_COMPUTED]:
            near = cost - best[0][0] <= EFFORT_OF_UNCOMPUTABLE
            if near and can_be_computed(case.exercise, case.trial, implementation):
                return case
    return best[0][1] if best else None


def cost_of(case: PossibleExample, kept_names: Sequence[str], other_names: Sequence[str]) -> float:
    """Return the effort of reading a case, with what its twins among the names cost."""
    n_lacking = max(N_WRONG_NAMES - len(kept_names) + len(case.twins(kept_names)), 0)
    n_other_names = len(other_names) - len(case.twins(other_names))
    n_missing = max(n_lacking - n_other_names, 0)
    return (
        case.effort
        + EFFORT_PER_NEW_NAME * (n_lacking - n_missing)
        + EFFORT_PER_MISSING_NAME * n_missing
    )
