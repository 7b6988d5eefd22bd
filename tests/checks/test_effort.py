"""How much a diagnosis tries is counted: what it says does not depend on a machine's load."""

import time
from dataclasses import replace

import pytest
import torch

from attncourse.checks import exercises
from attncourse.checks.exercise import parts_of
from attncourse.checks.explaining import effort, search
from attncourse.checks.explaining.effort import USUAL, Effort, calls_in, weight
from attncourse.checks.judging import judge
from attncourse.checks.trying import trials

MEAN = exercises()["self_attention.attention_weights"]
ROPE = exercises()["positions.apply_rope"]


def two_at_once(exercise):
    """An answer with two mistakes of its exercise."""
    parts = [found for m in exercise.mistakes if (found := parts_of(m.wrong))]
    first = parts[0]
    return next(
        first.compose(**first.chosen, **other.chosen)
        for other in parts
        if other.compose is first.compose and not other.chosen.keys() & first.chosen.keys()
    )


def said(exercise, answer, seed=11):
    verdict = judge(exercise, answer, seed)
    return verdict.in_short, verdict.rest, [c.follows for c in verdict.criteria]


@pytest.mark.parametrize("exercise", [MEAN, ROPE], ids=lambda e: e.target)
def test_a_slow_machine_says_the_same(exercise, monkeypatch):
    answers = [exercise.mistakes[-1].wrong, two_at_once(exercise)]
    before = [said(exercise, answer) for answer in answers]
    clock = time.thread_time
    monkeypatch.setattr(time, "thread_time", lambda: 8 * clock())
    assert [said(exercise, answer) for answer in answers] == before


def test_what_others_have_tried_before_changes_nothing():
    cold = said(ROPE, two_at_once(ROPE), 12)
    for m in ROPE.mistakes:
        judge(ROPE, m.wrong, 12)
    assert said(ROPE, two_at_once(ROPE), 12) == cold


def test_every_claim_is_tried_on_three_draws_more(monkeypatch):
    seeds = []
    made = search.Search.__init__

    def noted(self, exercise, trials, seed, *more):
        seeds.append(seed)
        made(self, exercise, trials, seed, *more)

    monkeypatch.setattr(search.Search, "__init__", noted)
    clock = time.thread_time
    monkeypatch.setattr(time, "thread_time", lambda: 8 * clock())
    assert judge(ROPE, ROPE.mistakes[0].wrong, 40).diagnosis
    assert seeds == [40, 41, 42, 43]


def test_a_named_mistake_asks_for_the_right_results_of_its_own_draw_alone(monkeypatch):
    worked, before = [], trials.expected

    def noted(exercise, case):
        worked.append(case)
        return before(exercise, case)

    monkeypatch.setattr(trials, "expected", noted)
    assert judge(ROPE, ROPE.mistakes[0].wrong, 50).diagnosis
    assert worked
    assert all(any(case is own for _, own, _ in trials.draw(ROPE, 50)) for case in worked)


def test_calls_are_counted_and_rounded():
    def many(n):
        for _ in range(n):
            len("")

    few, more = calls_in(lambda: many(100)), calls_in(lambda: many(101))
    assert few == more  # which lie within a rounding
    assert calls_in(lambda: many(1000)) > 8 * few
    assert calls_in(lambda: torch.ones(2) + 1) < 50


def test_who_profiles_is_left_alone():
    import cProfile

    profile = cProfile.Profile()
    profile.enable()
    number = calls_in(lambda: len(""))
    profile.disable()
    assert number == USUAL


def test_a_result_is_looked_at_once_beside_each_mistakes_and_counts_once():
    found = search.Search(ROPE, trials.try_out(ROPE, ROPE.mistakes[0].wrong, 5), 5)
    before = found.effort.compared
    for _ in range(2):
        for suspect in found.suspects[:3]:
            found.agrees(suspect, 0)
    assert found.effort.compared - before == 3


def test_tries_weigh_what_the_reference_takes_and_end(monkeypatch):
    whole = Effort(ROPE)
    part = Effort(ROPE, whole)
    assert whole.is_left()
    part.trials = 10**6
    assert part.spent > effort.ALL
    assert whole.is_over()
    assert not whole.is_left()
    late = Effort(ROPE)
    monkeypatch.setattr(time, "thread_time", lambda: 1e9)
    assert late.is_over()


def test_of_an_answer_that_stops_no_right_result_is_worked_out_but_what_is_shown(
    monkeypatch,
):
    asked, real = [], trials.expected
    monkeypatch.setattr(trials, "expected", lambda *case: asked.append(case) or real(*case))

    def stops(scores, d_k):
        raise TypeError("something else")

    verdict = judge(exercises()["scaling.scale_scores"], stops, 90411)
    assert "TypeError" in verdict.in_short
    assert len(asked) <= 2  # of dozens: for the example, and for the picture


def test_a_try_weighs_as_much_more_as_its_exercise_gives_it_time():
    usual = weight(MEAN)
    assert weight(replace(MEAN, limit=4 * MEAN.limit)) == 4 * usual
