"""Wrong names for a drill: mistakes that a reader might believe in and that it does not make."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

import numpy as np

from attncourse.checks import Exercise, Mistake
from attncourse.checks.exercise import parts_of
from attncourse.checks.trying.compare import as_numbers
from attncourse.checks.trying.outcome import Outcome
from attncourse.checks.trying.trials import Trial, try_out
from drill_making.examples import value_shown
from drill_making.overlapping import is_fair_name, names_overlap
from drill_making.proving import as_checked, true_names

N_WRONG_NAMES = 3
SAME_RESULT_TOLERANCE = 1e-6  # the difference of results that nobody sees
N_LIKELIEST_NAMES = 6  # of the likeliest, of which so many are drawn
TWIN_TIER = 9  # of a name whose mistake gives the very result that came
VAGUE_NAME = re.compile(
    r"^(an?|the )?\s*(other|another|wrong)\b|does not follow|not (low|far) enough"
)


def fair_names(
    exercise: Exercise,
    mistake: Mistake,
    draws: dict[int, tuple[Trial, ...]],
    right: Sequence[str],
) -> list[str]:
    """Return the names of other mistakes that are untrue of code, in its cases and in words.

    ``draws`` is what the code did in the cases of some seeds: a name that is true in one of them is
    none. ``right`` is the right code.
    """
    true_of_code = {mistake.name}
    for seed, trials in draws.items():
        true_of_code |= true_names(exercise, trials, seed)
    decisions = decisions_of(mistake)
    return [
        other_mistake.name
        for other_mistake in exercise.mistakes
        if other_mistake.name not in true_of_code
        and not is_vague_beside(other_mistake, decisions)
        and not names_overlap(other_mistake.name, mistake.name)
        and is_fair_name(other_mistake.name, right)
    ]


def wrong_names(
    trial: Trial,
    outcomes: Mapping[str, Outcome],
    luck: random.Random,
    kept_names: Sequence[str] = (),
) -> list[str]:
    """Return three of the names of ``outcomes``; fewer where there are not so many.

    ``outcomes`` are what mistakes make of the example's case, ``trial`` what the code did there.
    Those come first that a reader has to work out: whose result looks like what came, and is
    another. ``kept_names`` are those that the drill has already; one whose result is the very one
    that came is kept only where there is no other.
    """
    tiers: dict[int, list[tuple[float, str]]] = {}
    for name, outcome in outcomes.items():
        tier, distance = refutation_tier(trial, outcome)
        tiers.setdefault(TWIN_TIER if is_twin(trial, outcome) else tier, []).append(
            (distance, name)
        )
    twins = [name for _, name in tiers.get(TWIN_TIER, [])]
    chosen = [name for name in kept_names if name not in twins]
    for tier in sorted(tiers):
        ranked = sorted(tiers[tier], key=lambda pair: (pair[1] not in kept_names, pair))
        names = [name for _, name in ranked if name not in chosen]
        n_wanted = min(N_WRONG_NAMES - len(chosen), len(names))
        if tier == TWIN_TIER:
            chosen += names[:n_wanted]
        else:
            chosen += luck.sample(names[:N_LIKELIEST_NAMES], min(n_wanted, N_LIKELIEST_NAMES))
    return chosen


def refutation_tier(trial: Trial, outcome: Outcome) -> tuple[int, float]:
    """Return how soon the example refutes a mistake: 0 where its result looks like what came.

    1 where it is the right one, 2 where it has another shape or does not come. And how far its
    numbers are from those that came.
    """
    actual = trial.outcome
    if actual.kind != outcome.kind:
        return 2, 0.0
    if actual.kind == "raised":
        return 0, float(actual.error is not outcome.error)
    numbers, others = as_numbers(actual.value), as_numbers(outcome.value)
    if numbers is None or others is None:
        return (0 if type(actual.value) is type(outcome.value) else 2), 0.0
    if numbers.shape != others.shape or bool(np.isnan(numbers).any()) != bool(
        np.isnan(others).any()
    ):
        return 2, 0.0
    right = as_numbers(trial.expected.value)
    if right is not None and right.shape == others.shape and np.allclose(right, others):
        return 1, 0.0
    with np.errstate(all="ignore"):
        differences = np.abs(numbers.astype(float) - others.astype(float))
    differences = differences[~np.isnan(differences)]
    far = float(differences.max()) if differences.size else 0.0
    return 0, far if np.isfinite(far) else 1e9


def is_twin(trial: Trial, outcome: Outcome) -> bool:
    """True if an outcome is the one of a trial, as far as a reader can see."""
    tier, distance = refutation_tier(trial, outcome)
    alike = value_shown(trial.outcome.value) == value_shown(outcome.value)
    return tier == 0 and distance < SAME_RESULT_TOLERANCE and alike


def decisions_of(mistake: Mistake) -> set[str]:
    """Return the decisions in which a mistake takes a wrong option."""
    parts = parts_of(mistake.wrong)
    return set(parts.chosen) if parts else set()


def is_vague_beside(mistake: Mistake, decisions: set[str]) -> bool:
    """True for a name that is true in words of another mistake.

    *Another power of d_k* is true of a mistake in the same decision.
    """
    return bool(VAGUE_NAME.search(mistake.name)) and (
        not decisions or bool(decisions & decisions_of(mistake))
    )


def draws_of(exercise: Exercise, implementation, seeds: tuple[int, ...]) -> dict:
    """Return what an implementation does in all cases, by seed."""
    with as_checked():
        return {seed: try_out(exercise, implementation, seed) for seed in seeds}
