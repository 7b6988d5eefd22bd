"""Pairs of known mistakes in one answer."""

from itertools import combinations

from attncourse.checks.exercise import parts_of

DOUBLES = 2  # of each exercise


def doubles(exercise):
    """Pairs of mistakes of one composition, spread over all there are."""
    composed = [m for m in exercise.mistakes if parts_of(m.wrong)]
    found = []
    for a, b in combinations(composed, 2):
        one, other = parts_of(a.wrong), parts_of(b.wrong)
        if one.compose is other.compose and not one.chosen.keys() & other.chosen.keys():
            found.append((a, b, one.compose(**one.chosen, **other.chosen)))
    return found[:: max(1, len(found) // DOUBLES)][:DOUBLES]
