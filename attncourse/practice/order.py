"""In which order drills are given: what somebody did wrong, then its relatives, then others."""

import random
from collections.abc import Collection, Iterable
from typing import NamedTuple

from attncourse.practice.drills import Drill

EXACT, RELATED, OTHER = range(3)


class NamedMistake(NamedTuple):
    """A mistake that a check has named in somebody's notebook, as a sentence."""

    target: str
    sentence: str


def ordered_drills(
    drills: Iterable[Drill], named: Collection[NamedMistake] = (), seed: int = 0
) -> list[Drill]:
    """Return the drills in the order in which to give them.

    Those with a mistake that was ``named`` come first, then their relatives: the same exercise, or
    the same mistake in another one. Each time, every kind comes before a second one of it; the
    seed decides the rest.
    """
    luck = random.Random(seed)
    shuffled = list(drills)
    luck.shuffle(shuffled)
    times: dict[tuple[str, str], int] = {}
    turns = []
    for drill in shuffled:
        kind = drill.exercise, drill.name
        turns.append(times.get(kind, 0))
        times[kind] = turns[-1] + 1
    ranked = [
        (nearness(drill, named), turn, place)
        for place, (drill, turn) in enumerate(zip(shuffled, turns, strict=True))
    ]
    return [shuffled[place] for _, _, place in sorted(ranked)]


def nearness(drill: Drill, named: Collection[NamedMistake]) -> int:
    """Return how near a drill is to what was named: the mistake itself, a relative, neither."""
    sentence = as_sentence(drill.name)
    if any(n.target == drill.exercise and n.sentence == sentence for n in named):
        return EXACT
    if any(n.target == drill.exercise or n.sentence == sentence for n in named):
        return RELATED
    return OTHER


def as_sentence(name: str) -> str:
    """Return a mistake's name as it is compared: without capitals and the full stop."""
    return name.rstrip(".").lower()


def one_for_each_function(drills: Iterable[Drill]) -> list[Drill]:
    """Return the first drill of each exercise, in the order given."""
    first: dict[str, Drill] = {}
    for drill in drills:
        first.setdefault(drill.exercise, drill)
    return list(first.values())
