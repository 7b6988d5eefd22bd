"""Pairs of known mistakes in one answer."""

from itertools import combinations

from attncourse.checks.exercise import parts_of

DOUBLES = 2  # of each exercise


def doubles(exercise):
    """Pairs of mistakes of one composition, spread over all there are."""
    composed = [m for m in exercise.mistakes if parts_of(m.wrong)]
    pairs = []
    for a, b in combinations(composed, 2):
        first, second = parts_of(a.wrong), parts_of(b.wrong)
        if first.compose is second.compose and not first.chosen.keys() & second.chosen.keys():
            pairs.append((a, b, first.compose(**first.chosen, **second.chosen)))
    return pairs[:: max(1, len(pairs) // DOUBLES)][:DOUBLES]
