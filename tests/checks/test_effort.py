"""How much a diagnosis tries is counted: what it says does not depend on a machine's load."""

import time
from contextlib import contextmanager
from itertools import combinations, pairwise

import pytest
import torch

from attncourse.checks import exercises
from attncourse.checks.exercise import parts_of
from attncourse.checks.explaining import effort, search
from attncourse.checks.explaining.effort import (
    CALLS_UNDER_PROFILER,
    NUMBERS_PER_CALL,
    Effort,
    calls_of_case,
    measured_calls,
    typical_cases,
)
from attncourse.checks.explaining.search import likely_pairs
from attncourse.checks.explaining.suspects import least_distance
from attncourse.checks.judging import judge
from attncourse.checks.trying import outcome, trials

ATTENTION_WEIGHTS = exercises()["self_attention.attention_weights"]
APPLY_ROPE = exercises()["positions.apply_rope"]


def with_two_mistakes(exercise):
    """Return an answer with two mistakes of its exercise."""
    parts = [recipe for m in exercise.mistakes if (recipe := parts_of(m.wrong))]
    first = parts[0]
    return next(
        first.compose(**first.chosen, **second.chosen)
        for second in parts
        if second.compose is first.compose and not second.chosen.keys() & first.chosen.keys()
    )


def verdict_text(exercise, answer, seed=11):
    verdict = judge(exercise, answer, seed)
    return verdict.in_short, verdict.rest, [c.follows for c in verdict.criteria]


@pytest.mark.parametrize("exercise", [ATTENTION_WEIGHTS, APPLY_ROPE], ids=lambda e: e.target)
def test_a_slow_machine_says_the_same(exercise, monkeypatch):
    answers = [exercise.mistakes[-1].wrong, with_two_mistakes(exercise)]
    before = [verdict_text(exercise, answer) for answer in answers]
    clock = time.thread_time
    monkeypatch.setattr(time, "thread_time", lambda: 8 * clock())
    assert [verdict_text(exercise, answer) for answer in answers] == before


def test_earlier_answers_change_no_verdict():
    cold = verdict_text(APPLY_ROPE, with_two_mistakes(APPLY_ROPE), 12)
    for m in APPLY_ROPE.mistakes:
        judge(APPLY_ROPE, m.wrong, 12)
    assert verdict_text(APPLY_ROPE, with_two_mistakes(APPLY_ROPE), 12) == cold


def test_every_claim_is_tried_on_three_draws_more(monkeypatch):
    seeds = []
    made = search.Search.__init__

    def noted(self, exercise, trials, seed, *more):
        seeds.append(seed)
        made(self, exercise, trials, seed, *more)

    monkeypatch.setattr(search.Search, "__init__", noted)
    clock = time.thread_time
    monkeypatch.setattr(time, "thread_time", lambda: 8 * clock())
    assert judge(APPLY_ROPE, APPLY_ROPE.mistakes[0].wrong, 40).diagnosis
    assert seeds == [40, 41, 42, 43]


def test_a_named_mistake_needs_right_results_of_one_draw(monkeypatch):
    worked, before = [], trials.expected_outcome

    def noted(exercise, case):
        worked.append(case)
        return before(exercise, case)

    monkeypatch.setattr(trials, "expected_outcome", noted)
    assert judge(APPLY_ROPE, APPLY_ROPE.mistakes[0].wrong, 50).diagnosis
    assert worked
    assert all(
        any(case is drawn_case for _, drawn_case, _ in trials.draw(APPLY_ROPE, 50))
        for case in worked
    )


def test_calls_are_counted_and_rounded():
    def many(n):
        for _ in range(n):
            len("")

    few, more = measured_calls(lambda: many(100)), measured_calls(lambda: many(101))
    assert few == more  # which lie within a rounding
    assert measured_calls(lambda: many(1000)) > 8 * few
    assert measured_calls(lambda: torch.ones(2) + 1) < 50


def test_under_a_profiler_calls_are_not_measured():
    import cProfile

    profile = cProfile.Profile()
    profile.enable()
    number = measured_calls(lambda: len(""))
    profile.disable()
    assert number == CALLS_UNDER_PROFILER


def test_a_result_is_compared_once_with_each_mistake():
    first_search = search.Search(
        APPLY_ROPE, trials.try_out(APPLY_ROPE, APPLY_ROPE.mistakes[0].wrong, 5), 5
    )
    assert first_search.effort.spent == 0
    for _ in range(2):
        for suspect in first_search.suspects[:3]:
            first_search.agrees(suspect, 0)
    assert first_search.effort.spent == 3 * (
        calls_of_case(APPLY_ROPE, 0) + effort.CALLS_PER_COMPARISON
    )


def test_tries_cost_the_references_calls_and_are_bounded(monkeypatch):
    total = Effort(APPLY_ROPE)
    part = Effort(APPLY_ROPE, total)
    assert total.is_left()
    part.count_tries(0, 10**6)
    assert part.spent > effort.MAX_CALLS_IN_ALL
    assert total.is_over()
    assert not total.is_left()
    late = Effort(APPLY_ROPE)
    monkeypatch.setattr(time, "thread_time", lambda: 1e9)
    assert late.is_over()


def test_an_answer_that_raises_needs_few_reference_results(
    monkeypatch,
):
    cases_answered, real = [], trials.expected_outcome
    monkeypatch.setattr(
        trials, "expected_outcome", lambda *case: cases_answered.append(case) or real(*case)
    )

    def stops(scores, d_k):
        raise TypeError("something else")

    verdict = judge(exercises()["scaling.scale_scores"], stops, 90411)
    assert "TypeError" in verdict.in_short
    assert len(cases_answered) <= 2  # of dozens: for the example, and for the picture


def test_operators_and_array_sizes_count_as_calls():
    few, many = torch.ones(2), torch.ones(400 * NUMBERS_PER_CALL)

    def add(x, times=1):
        for _ in range(times):
            x = x + 1

    assert measured_calls(lambda: add(few, 100)) > 4 * 100
    assert measured_calls(lambda: add(many)) > 300 > 4 * measured_calls(lambda: add(few))
    x = torch.ones(2, requires_grad=True)
    assert measured_calls(lambda: (x * x).sum().backward()) > 2 * measured_calls(
        lambda: (x * x).sum()
    )
    n = len(many)
    assert measured_calls(lambda: torch.randn(n)) > 2 * measured_calls(
        lambda: torch.ones(n)
    )  # takes 4 times


def test_imports_at_the_first_call_are_not_counted():
    new = [True]

    def loads():
        if new and new.pop():
            for _ in range(10_000):
                len("")

    assert measured_calls(loads) < 100


def test_cases_used_alike_cost_the_same():
    tiled = exercises()["efficient.tiled_attention"]
    cases = trials.draw(tiled, 0)
    names = [criterion.name for criterion, _, _ in cases]
    plain, measured = names.index("batches"), names.index("no tensor of m · n numbers on the way")
    assert calls_of_case(tiled, measured) > 2 * calls_of_case(tiled, plain)
    assert len(set(typical_cases(tiled))) < len(cases) / 2
    assert calls_of_case(tiled, 10**6) == calls_of_case(
        tiled, len(cases) - 1
    )  # another draw may have more


def test_a_fitting_size_is_found_and_a_hopeless_search_ends():
    for size in (0.013, 0.5, 1.7, 3.0):  # also where the search ends
        assert least_distance(lambda x, size=size: abs(x - size), 0.0, 3.0) == pytest.approx([size])
    sizes_tried = []
    assert least_distance(lambda x: sizes_tried.append(x) or 0.5 + (x - 1) ** 2, 0.0, 3.0) == []
    assert len(sizes_tried) < 60


def test_pairs_are_tried_once_the_likely_ones_first():
    pairs = list(likely_pairs(["b", "a", "c"], ["a", "b", "c", "d"]))
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert {frozenset(p) for p in pairs} >= {frozenset(p) for p in combinations("abcd", 2)}
    products = [("abcd".index(a) + 1) * ("abcd".index(b) + 1) for a, b in pairs]
    assert products == sorted(products)


def test_cases_that_take_many_times_as_long_come_last():
    tiled = exercises()["efficient.tiled_attention"]
    wrong = next(m for m in tiled.mistakes if "own block alone" in m.name).wrong
    of = search.Search(tiled, trials.try_out(tiled, wrong, 5), 5)
    for order in (of.wrong_cases, of.right_cases, of.telling_cases):
        sizes = [calls_of_case(tiled, i) for i in order]
        assert all(a < 4 * b for a, b in pairwise(sizes))
    heavy = of.wrong_cases[-1]
    assert calls_of_case(tiled, heavy) > 4 * calls_of_case(tiled, of.wrong_cases[0])
    assert all((suspect, heavy) not in of.counted_tries for suspect in of.likeliest_first())


def test_a_kernels_own_calls_are_not_counted(monkeypatch):
    """Where prints go to a notebook, each try makes hundreds of calls more, and stacks are deep."""
    accept = exercises()["serving.speculative_accept"]

    def deep(levels: int) -> int:
        return effort.calls_of_right_answer(accept, 0) if not levels else deep(levels - 1)

    @contextmanager
    def busy(*anything):
        for _ in range(1000):
            len("")
        yield

    plain = deep(0)
    assert deep(80) == plain
    monkeypatch.setattr(outcome, "block_solutions_for", busy)
    effort.calls_around.cache_clear()
    try:
        assert deep(0) == plain
    finally:
        effort.calls_around.cache_clear()
