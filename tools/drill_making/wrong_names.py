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
from drill_making.examples import shown
from drill_making.overlapping import is_fair_name, overlap
from drill_making.proving import as_checked, true_names

WANTED = 3
SAME = 1e-6  # the difference of results that nobody sees
AMONG = 6  # of the likeliest, of which so many are drawn
TWIN_TIER = 9  # of a name whose mistake gives the very result that came
VAGUE = re.compile(r"^(an?|the )?\s*(other|another|wrong)\b|does not follow|not (low|far) enough")


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
    true = {mistake.name}
    for seed, trials in draws.items():
        true |= true_names(exercise, trials, seed)
    own = decisions_of(mistake)
    return [
        other.name
        for other in exercise.mistakes
        if other.name not in true
        and not is_vague_beside(other, own)
        and not overlap(other.name, mistake.name)
        and is_fair_name(other.name, right)
    ]


def wrong_names(
    trial: Trial,
    outcomes: Mapping[str, Outcome],
    luck: random.Random,
    kept: Sequence[str] = (),
) -> list[str]:
    """Return three of the names of ``outcomes``; fewer where there are not so many.

    ``outcomes`` are what mistakes make of the example's case, ``trial`` what the code did there.
    Those come first that a reader has to work out: whose result looks like what came, and is
    another. ``kept`` are names that the drill has already; one of them whose result is the very one
    that came is kept only where there is no other.
    """
    tiers: dict[int, list[tuple[float, str]]] = {}
    for name, outcome in outcomes.items():
        tier, distance = belief(trial, outcome)
        tiers.setdefault(TWIN_TIER if is_twin(trial, outcome) else tier, []).append(
            (distance, name)
        )
    twins = [name for _, name in tiers.get(TWIN_TIER, [])]
    chosen = [name for name in kept if name not in twins]
    for tier in sorted(tiers):
        ranked = sorted(tiers[tier], key=lambda pair: (pair[1] not in kept, pair))
        names = [name for _, name in ranked if name not in chosen]
        wanted = min(WANTED - len(chosen), len(names))
        if tier == TWIN_TIER:
            chosen += names[:wanted]
        else:
            chosen += luck.sample(names[:AMONG], min(wanted, AMONG))
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
    apart = apart[~np.isnan(apart)]
    far = float(apart.max()) if apart.size else 0.0
    return 0, far if np.isfinite(far) else 1e9


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
