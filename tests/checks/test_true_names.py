"""What a verdict says of the cause is true: no case speaks against it, and what follows says so."""

import numpy as np
import pytest
import torch

from attncourse.checks import examine, exercises
from attncourse.checks.exercise import parts_of
from attncourse.checks.judging import answers_something, judge
from attncourse.checks.showing.verdict import FOLLOWS_NOTE, Picture, picture_html
from attncourse.checks.trying.outcome import is_unchanged
from attncourse.checks.trying.trials import draw, try_out
from helpers.double_mistakes import doubles

EXERCISES = exercises()
SOME_TARGETS = ("mixing.normalize_rows", "kqv.attention_scores", "scaling.attention_entropy")


@pytest.fixture(autouse=True)
def without_repairs(monkeypatch):
    """Look for no repair in the answer's code."""
    monkeypatch.setattr("attncourse.checks.judging.find_repair", lambda *_: None)


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_a_mistake_that_fresh_cases_refute_is_not_named(target):
    """It does what a mistake does on the cases of one seed, and something else on all others."""
    exercise = EXERCISES[target]
    mistake = exercise.mistakes[0]
    known = [case.args for _, case, _ in draw(exercise, 3)]

    def answer(*args, **kwargs):
        if any(is_unchanged(tuple(args), known_arguments) for known_arguments in known):
            return mistake.wrong(*args, **kwargs)
        return 0.3 * exercise.reference(*args, **kwargs) ** 2 + 0.1

    assert judge(exercise, mistake.wrong, 3).diagnosis.name == mistake.name
    verdict = judge(exercise, answer, 3)
    assert not verdict.passed
    assert verdict.diagnosis is None, verdict.full
    assert mistake.name not in verdict.symptom


def test_other_gradients_are_those_of_another_function():
    """The rows of a map sum to 1, so only gradients show that their sum is divided by."""

    def head_scores(maps, pattern):
        hit = (maps * pattern).sum((-2, -1))
        return hit / maps.sum((-2, -1))

    for seed in range(3):
        verdict = examine("interpret.head_scores", head_scores, seed=seed)
        assert verdict.diagnosis.name == "divided by all the attention"


def test_a_second_mistake_is_told_only_where_no_other_would_do():
    """Behind the error of the wrong axis nothing shows whether a maximum is subtracted at all."""

    def tiled_attention(query, key, value, mask=None, block=128):
        rows = []
        for i in range(0, query.shape[-2], block):
            q = query[..., i : i + block, :] / query.shape[-1] ** 0.5
            parts = []
            for j in range(0, key.shape[-2], block):
                s = q @ key[..., j : j + block, :].mT
                if mask is not None:
                    s = s.masked_fill(~mask[..., i : i + block, j : j + block], -torch.inf)
                e = s.exp()
                parts.append((e @ value[..., j : j + block, :], e.sum(-1, keepdim=True)))
            above, below = zip(*parts, strict=True)
            rows.append(sum(above) / sum(below))
        return torch.cat(rows, dim=1)

    verdict = examine("efficient.tiled_attention", tiled_attention, seed=7)
    assert verdict.diagnosis.name == "the blocks are joined along another axis"
    assert verdict.rest != "the maximum begins at a number"


@pytest.mark.parametrize(("factor", "way"), [(1 - 1e-8, "small"), (1 + 1e-8, "large")])
def test_errors_to_one_side_are_not_called_rounding(factor, way):
    verdict = examine("kqv.project", lambda x, weight: factor * (x @ weight), seed=2)
    assert verdict.diagnosis is None
    assert verdict.symptom.startswith(f"the result is right but for its last digits: all too {way}")


def test_an_answer_for_exactly_one_batch_axis_is_named():
    def project(x, weight):
        b, n, d = x.shape
        return (x.reshape(b * n, d) @ weight).reshape(b, n, -1)

    verdict = examine("kqv.project", project, seed=2)
    assert verdict.diagnosis.name == "exactly one batch axis is provided for"


# --- what follows -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_criteria_after_the_first_follow_from_one_mistake(target):
    for mistake in EXERCISES[target].mistakes[:4]:
        verdict = judge(EXERCISES[target], mistake.wrong, 5)
        failed = [c for c in verdict.criteria if not c.passed and not c.waits]
        assert [c.follows for c in failed] == [False, *[True] * (len(failed) - 1)]
        assert verdict.full.count(FOLLOWS_NOTE) == verdict._repr_html_().count(FOLLOWS_NOTE)
        assert verdict.full.count(FOLLOWS_NOTE) == len(failed) - 1


def test_each_of_two_mistakes_has_its_own_criterion():
    """What does not follow is broken by one of the two by itself, and is one for each at most."""
    n_followed = 0
    for exercise in [
        e for e in EXERCISES.values() if e.stem in ("mixing", "lookup", "scaling", "kqv")
    ]:
        for a, b, both in doubles(exercise):
            verdict = judge(exercise, both, 11)
            named = verdict.diagnosis.name if verdict.diagnosis else ""
            if {named, verdict.rest} != {a.name, b.name} or not parts_of(a.wrong):
                continue
            alone = [
                {c.name for c in judge(exercise, mistake.wrong, 11).criteria if not c.passed}
                for mistake in (a, b)
            ]
            failed = [c for c in verdict.criteria if not c.passed and not c.waits]
            shown = {c.name for c in failed if not c.follows}
            each = [try_out(exercise, wrong, 11) for wrong in (both, a.wrong, b.wrong)]
            if all(answers_something(exercise, trials, 11) for trials in each):
                assert 0 < len(shown) <= 2
                n_followed += len(failed) > len(shown)
            assert shown <= set().union(*alone)
    assert n_followed


# --- pictures -----------------------------------------------------------------------------------


def test_pictures_that_look_equal_show_their_difference():
    want = np.array([[0.25, 0.75], [0.5, 0.5]])
    assert "yours − expected" in picture_html(Picture(want + 1e-6, want))
    assert "yours − expected" not in picture_html(Picture(want + 0.1, want))


def test_the_picture_shows_the_example_in_the_verdict():
    def uniform_weights(n):
        return np.ones((n, n)) / (n + 1)

    verdict = examine("mixing.uniform_weights", uniform_weights, seed=1)
    first = next(c for c in verdict.criteria if not c.passed)
    n = len(verdict.picture.want)
    assert f"uniform_weights(n={n})" in first.message or f"uniform_weights({n})" in first.message
