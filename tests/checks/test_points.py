"""Points do not depend on luck: a wrong answer earns on other cases what it earned before."""

from itertools import cycle

import pytest

from attncourse.checks import exercises
from attncourse.checks.judging import points

DRAWS = range(300, 320)
# What random draws of an answer's own come to is estimated: these criteria are chances, of which
# the text speaks.
ESTIMATED = {"scaling.score_variance", "sequences.bootstrap_interval"}
# Numbers that come near the tolerance (a guard of 1e-9), and answers that draw numbers of their
# own, may win or lose a criterion from one draw to the next: one point, and few of them do.
ALLOWED, SHARE = 1, 0.02
ALL = exercises()
FOUND: dict[str, list[tuple[str, set[int]]]] = {}


JUDGED = [e for target, e in ALL.items() if target not in ESTIMATED]


@pytest.mark.parametrize("exercise", JUDGED, ids=lambda exercise: exercise.target)
def test_a_wrong_answer_earns_the_same_on_two_draws(exercise):
    """Each exercise has six of the twenty draws; ``benchmarks/points.py`` tries all ways on all.

    To draw takes longer than to judge an answer, and so many draws are kept.
    """
    first = DRAWS[JUDGED.index(exercise) % len(DRAWS)]
    dealt = cycle(DRAWS[(first - DRAWS[0] + n) % len(DRAWS)] for n in range(6))
    found = [
        (m.name, {points(exercise, m.wrong, next(dealt)) for _ in range(2)})
        for m in exercise.mistakes
        if m.wrong is not None
    ]
    FOUND[exercise.target] = found
    assert [(name, earned) for name, earned in found if max(earned) - min(earned) > ALLOWED] == []


def test_hardly_any_wrong_answer_is_a_matter_of_luck():
    tried = [(target, *one) for target, found in FOUND.items() for one in found]
    if len(FOUND) < len(JUDGED):
        pytest.skip("asks for all exercises in one process")
    varied = [(target, name) for target, name, earned in tried if len(earned) > 1]
    assert len(varied) <= SHARE * len(tried), varied


def test_luck_is_seen():
    """An answer that is wrong on every second draw."""
    exercise = ALL["mixing.mix"]

    def lucky(A, X):
        return exercise.reference(A, X) + (A.flat[-1] > 0.35)

    assert len({points(exercise, lucky, draw) for draw in DRAWS}) > 1
    assert {points(exercise, exercise.reference, draw) for draw in DRAWS} == {exercise.points}
