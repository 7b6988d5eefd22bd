"""Wrong names for a drill: mistakes that a reader might believe in and that it does not make."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from attncourse.checks import Exercise, Mistake
from attncourse.checks.exercise import parts_of
from attncourse.checks.explaining.suspects import suspects
from attncourse.checks.trying.compare import as_numbers
from attncourse.checks.trying.outcome import Outcome
from attncourse.checks.trying.trials import Trial, try_out
from drill_making.examples import shown
from drill_making.overlapping import is_fair_name, overlap
from drill_making.proving import as_checked, true_names

WANTED = 3
SAME = 1e-6  # the difference of results that nobody sees
AMONG = 6  # of the likeliest, of which so many are drawn
VAGUE = re.compile(r"^(an?|the )?\s*(other|another|wrong)\b|does not follow|not (low|far) enough")


def wrong_names(
    exercise: Exercise,
    mistake: Mistake,
    draws: dict[int, tuple[Trial, ...]],
    place: int,
    luck: random.Random,
    right: Sequence[str],
    kept: Sequence[str] = (),
) -> list[str]:
    """Return three names of other mistakes; fewer where the exercise has not so many.

    ``draws`` is what the code did in the cases of some seeds, ``place`` the case of the first that
    is shown. A name that is true in one of them is none. ``right`` is the right code, and ``kept``
    are names that the drill has already.
    """
    true = {mistake.name}
    for seed, trials in draws.items():
        true |= true_names(exercise, trials, seed)
    seed, trials = next(iter(draws.items()))
    tiers: dict[int, list[tuple[float, str]]] = {}
    own = decisions_of(mistake)
    with as_checked():
        first = {}
        for suspect in suspects(exercise, seed):
            first.setdefault(suspect.mistake.name, suspect)
        for other in exercise.mistakes:
            if other.name in true or is_vague_beside(other, own):
                continue
            if overlap(other.name, mistake.name) or not is_fair_name(other.name, right):
                continue
            if other.name in kept:
                continue
            outcome = first[other.name].trial(place).outcome
            tier, distance = belief(trials[place], outcome)
            tiers.setdefault(tier, []).append((distance, other.name))
    chosen = [*kept]
    for tier in sorted(tiers):
        names = [name for _, name in sorted(tiers[tier])][:AMONG]
        wanted = min(WANTED - len(chosen), len(names))
        chosen += luck.sample(names, wanted)
    return chosen


def belief(trial: Trial, outcome: Outcome) -> tuple[int, float]:
    """How soon the example refutes a mistake: 0 where its result looks like what came.

    1 where it is the right one, 2 where it has another shape or does not come. And how far its
    numbers are from those that came.
    """
    came = trial.outcome
    if came.kind != outcome.kind:
        return 2, 0.0
    if came.kind == "raised":
        return 0, float(came.error is not outcome.error)
    numbers, others = as_numbers(came.value), as_numbers(outcome.value)
    if numbers is None or others is None:
        return (0 if type(came.value) is type(outcome.value) else 2), 0.0
    if numbers.shape != others.shape or bool(np.isnan(numbers).any()) != bool(
        np.isnan(others).any()
    ):
        return 2, 0.0
    right = as_numbers(trial.expected.value)
    if right is not None and right.shape == others.shape and np.allclose(right, others):
        return 1, 0.0
    with np.errstate(all="ignore"):
        apart = np.abs(numbers.astype(float) - others.astype(float))
        far = np.nanmax(apart) if numbers.size else 0.0
    return 0, float(far) if np.isfinite(far) else 1e9


def twins_of(
    exercise: Exercise, trials: tuple[Trial, ...], names: Collection[str], seed: int
) -> Counter[int]:
    """Return in which cases how many of these mistakes give the very result that came."""
    found: Counter[int] = Counter()
    with as_checked():
        first = {}
        for suspect in suspects(exercise, seed):
            first.setdefault(suspect.mistake.name, suspect)
        for place, trial in enumerate(trials):
            if trial.stands_out:
                others = (first[name].trial(place).outcome for name in names if name in first)
                found[place] = sum(is_twin(trial, outcome) for outcome in others)
    return found


def is_twin(trial: Trial, outcome: Outcome) -> bool:
    """True if an outcome is the one of a trial, as far as a reader can see."""
    tier, distance = belief(trial, outcome)
    alike = shown(trial.outcome.value) == shown(outcome.value)
    return tier == 0 and distance < SAME and alike


def decisions_of(mistake: Mistake) -> set[str]:
    """The decisions in which a mistake takes a wrong option."""
    parts = parts_of(mistake.wrong)
    return set(parts.chosen) if parts else set()


def is_vague_beside(other: Mistake, own: set[str]) -> bool:
    """True for a name that is true in words of another mistake.

    *Another power of d_k* is true of a mistake in the same decision.
    """
    return bool(VAGUE.search(other.name)) and (not own or bool(own & decisions_of(other)))


def draws_of(exercise: Exercise, implementation, seeds: tuple[int, ...]) -> dict:
    """What an implementation does in all cases of these seeds."""
    with as_checked():
        return {seed: try_out(exercise, implementation, seed) for seed in seeds}
