"""A default that is not the exercise's is known by handing the right one over."""

import inspect
import re

import pytest

from attncourse.checks import examine, exercises
from attncourse.checks.explaining.defaults import defaults_of, other_default_mistake
from attncourse.checks.judging import judge
from attncourse.checks.trying.trials import try_out
from attncourse.efficient import kv_cache_bytes
from attncourse.positions import apply_rope
from attncourse.support.alarm import TimeUp

# Their callers take other arguments.
DRAWING_EXERCISES = {
    "gpt.sample_token",
    "sequences.bootstrap_interval",
    "sequences.split_by_similarity",
}
OTHER_DEFAULTS = [
    (e, name, default)
    for e in exercises().values()
    if inspect.isfunction(e.reference) and e.target not in DRAWING_EXERCISES
    for name, default in defaults_of(e.reference).items()
    if type(default) in (int, float) and name != "atol" and "seed" not in name
]


@pytest.mark.parametrize(
    ("exercise", "name", "default"), OTHER_DEFAULTS, ids=lambda x: getattr(x, "target", str(x))
)
def test_every_other_default_is_named(exercise, name, default):
    """For each exercise that has a number as a default."""
    signature = inspect.signature(exercise.reference)

    def answer(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        return exercise.reference(
            *args, **({} if name in bound.arguments else {name: 3 * default}), **kwargs
        )

    verdict = judge(exercise, answer, 3)
    if not verdict.passed:
        assert verdict.diagnosis is not None, verdict
        assert f"default for {name}" in verdict.diagnosis.name, verdict


def test_most_exercises_with_a_default_have_a_case_for_it():
    assert len(OTHER_DEFAULTS) > 5


def test_wrong_with_the_argument_passed_is_no_wrong_default():
    def rope(x, positions, base=100.0):
        return apply_rope(x, positions + 1, base)

    def cache(n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number=2):
        return 3 * kv_cache_bytes(n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number) // 2

    for target, answer in (("positions.apply_rope", rope), ("efficient.kv_cache_bytes", cache)):
        verdict = examine(target, answer, seed=1)
        assert not verdict.passed
        assert "default" not in verdict.in_short


@pytest.mark.parametrize("last", [2, 15])
def test_an_answer_that_does_not_return_is_not_called_again(last):
    """In grading its process is gone, or busy for ever. The 15th call hands a default over."""
    calls = []

    def cache(n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number=3):
        calls.append(n_tokens)
        if len(calls) == last:
            raise TimeUp
        return kv_cache_bytes(n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number)

    verdict = examine("efficient.kv_cache_bytes", cache, seed=1)
    assert not verdict.passed
    assert len(calls) == last


def test_a_right_default_is_not_reported_as_another():
    exercise, late = exercises()["efficient.kv_cache_bytes"], []

    def cache(n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number=None):
        right = kv_cache_bytes(n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number or 2)
        return right if late or bytes_per_number else right + 1

    trials = try_out(exercise, cache, 3)
    assert other_default_mistake(exercise, cache, trials) is not None
    late.append(True)
    assert other_default_mistake(exercise, cache, trials) is None


def test_a_default_that_calls_share_is_named():
    def tokens(text, out=[]):  # noqa: B006
        for word in text.lower().split():
            out += re.findall(r"\w+|[^\w\s]", word)
        return out

    verdict = examine("tokens.tokenize", tokens, seed=1)
    assert verdict.diagnosis.name == "a default that all calls share"
    assert "Write `out=None`" in verdict.diagnosis.explanation
    assert all(c.follows for c in [c for c in verdict.criteria if not c.passed][1:])


def test_a_shared_default_is_named_with_gradients_too():
    def project(x, weight, out={}):  # noqa: B006
        if "result" not in out:
            out["result"] = x @ weight
        return out["result"]

    verdict = examine("kqv.project", project, seed=1)
    assert verdict.diagnosis.name == "a default that all calls share", verdict.full


def test_a_list_as_a_default_that_is_only_read_is_no_mistake():
    def tokens(text, drop=[]):  # noqa: B006
        return [t for t in re.findall(r"\w+|[^\w\s]+", text.lower()) if t not in drop]

    assert "share" not in examine("tokens.tokenize", tokens, seed=1).in_short
