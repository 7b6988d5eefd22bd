"""Points follow the mistake: no criterion decides alone, and what answers nothing earns nothing."""

import inspect

import numpy as np
import pytest
import torch

from attncourse.checks import examine, exercises
from attncourse.checks.exercise import parts_of
from attncourse.checks.explaining.diagnosis import Finding
from attncourse.checks.judging import are_two_slips, judge, points_of_answer
from attncourse.checks.trying.compare import dtype_name
from attncourse.checks.trying.outcome import is_tensor
from attncourse.checks.trying.trials import try_out

EXERCISES = exercises()
FUNCTIONS = [e for e in EXERCISES.values() if not inspect.isclass(e.reference)]
MAX_TRIVIAL_POINTS = 1  # point, at most, where an answer does nothing of its own
# What is right there all the same: a part of what is given, and how ours draws for the zeros.
RIGHT_BY_ITSELF = {
    "multihead.naive_to_batched": 2,  # the module that is given has the right W_o
    "sequences.split_by_similarity": 3,  # as many as ours
}


def test_no_criterion_is_worth_more_than_half():
    above = {
        (exercise.target, criterion.name)
        for exercise in EXERCISES.values()
        for criterion in exercise.criteria
        if 2 * criterion.points > exercise.points
    }
    assert not above


def zeros(value):
    """Return zeros in the form of a result."""
    if isinstance(value, tuple | list):
        return type(value)(zeros(part) for part in value)
    if is_tensor(value):
        return value.new_zeros(value.shape)
    return np.zeros_like(value) if isinstance(value, np.ndarray) else type(value)()


def trivial(reference) -> dict:
    """Return answers that compute nothing, by what they return."""
    return {
        "nothing": lambda *args, **options: None,
        "zeros": lambda *args, **options: zeros(reference(*args, **options)),
        "its first argument": lambda *args, **options: next(iter((*args, *options.values()))),
        "its last argument": lambda *args, **options: (*args, *options.values())[-1],
    }


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda e: e.target)
def test_an_answer_that_does_nothing_earns_almost_nothing(exercise):
    earned = {
        name: points_of_answer(exercise, answer, 1)
        for name, answer in trivial(exercise.reference).items()
    }
    assert max(earned.values()) <= RIGHT_BY_ITSELF.get(exercise.target, MAX_TRIVIAL_POINTS), earned


def test_one_wrong_of_three_results_keeps_the_others_points():
    exercise = EXERCISES["serving.pad_left"]
    for place, name in enumerate(("ids", "positions", "mask")):

        def wrong(sequences, pad, place=place):
            results = list(exercise.reference(sequences, pad))
            results[place] = zeros(results[place])
            return tuple(results)

        verdict = examine(exercise.target, wrong, seed=1)
        held = [c.name for c in verdict.criteria if c.passed]
        assert held[:2] == [n for n in ("ids", "positions", "mask") if n != name]
        assert 2 * verdict.earned >= verdict.possible


# The answer is asked about a function that is handed over, and converts nothing of its own.
EXERCISES_ON_FUNCTIONS = {"masking.leak"}


def converted(value, old, new):
    """Return a value with all arrays of the dtype ``old`` converted to ``new``."""
    if is_tensor(value) or isinstance(value, np.ndarray):
        if dtype_name(value) != old:
            return value
        return value.to(getattr(torch, new)) if is_tensor(value) else value.astype(new)
    if type(value) in (tuple, list):
        return type(value)(converted(part, old, new) for part in value)
    if type(value) is dict:
        return {key: converted(part, old, new) for key, part in value.items()}
    return value


def rounded_inside(reference):
    """Return the right answer computed in float32 where its arguments are float64."""

    def answer(*args, **options):
        arguments = args, options
        narrow = converted(arguments, "float64", "float32")
        result = reference(*narrow[0], **narrow[1])
        wide = any("float64" in dtype_name(x) for x in arrays_in(arguments))
        return converted(result, "float32", "float64") if wide else result

    answer.__signature__ = inspect.signature(reference)
    return answer


def arrays_in(value):
    """Return the arrays in a value."""
    if is_tensor(value) or isinstance(value, np.ndarray):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    return [a for part in parts for a in arrays_in(part)] if is_container(value) else []


def is_container(value) -> bool:
    return isinstance(value, tuple | list | dict)


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda e: e.target)
def test_single_precision_inside_is_one_slip(exercise):
    """Also where large numbers nearly cancel, so that little is left of seven digits."""
    earned = points_of_answer(exercise, rounded_inside(exercise.reference), 1)
    assert 4 * earned >= exercise.points or exercise.target in EXERCISES_ON_FUNCTIONS


ATTENTION = EXERCISES["kqv.scaled_dot_product_attention"]


def with_both_mistakes(exercise, *names: str):
    """Return the answer with all these mistakes, and one answer with each alone."""
    each = [next(m.wrong for m in exercise.mistakes if m.name == name) for name in names]
    compose = parts_of(each[0]).compose
    chosen = {key: way for wrong in each for key, way in parts_of(wrong).chosen.items()}
    return compose(**chosen), each


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("kqv.scaled_dot_product_attention", ("no scale", "the mask is inverted")),
        ("kqv.scaled_dot_product_attention", ("divided by √d_v", "softmax over the queries")),
        ("lookup.softmax", ("large scores are clipped", "the weights are cut to whole numbers")),
        ("mixing.normalize_rows", ("the sums lost their axis", "a row of zeros becomes uniform")),
    ],
)
def test_each_of_two_known_mistakes_is_paid_for_once(target, names):
    exercise = EXERCISES[target]
    both, each = with_both_mistakes(exercise, *names)
    verdict = examine(target, both, seed=3)
    assert {verdict.diagnosis.name, verdict.rest} == set(names)
    alone = [examine(target, wrong, seed=3) for wrong in each]
    failed = [c for c in verdict.criteria if not c.passed]
    follows = [c for c in failed if c.follows]
    assert len(follows) == max(0, len(failed) - 2)
    assert not any(c.earned for c in failed if not c.follows)
    assert sum(c.earned for c in follows) == sum(c.possible for c in follows) // 2
    assert 0 < verdict.earned <= min(single.earned for single in alone)
    for single in alone:  # the first that it breaks shows it, or its next
        broken = [c.name for c in single.criteria if not c.passed][:2]
        assert any(c.name in broken for c in failed if not c.follows)
    assert points_of_answer(exercise, both, 3) == verdict.earned  # asked why or not


@pytest.mark.parametrize(
    ("target", "slip", "error"),
    [
        ("kqv.AttentionHead", "the weights come back too", "weights is missing"),
        ("gpt.sample_token", "an axis of length 1 is left", "temperature 0 divides by 0"),
        ("efficient.tiled_attention", "a softmax in every tile", "the mask is transposed"),
    ],
)
def test_a_slip_beside_an_error_keeps_what_the_error_leaves(target, slip, error):
    """What only raises loses all that it breaks; of the rest the slip is paid for once."""
    both, each = with_both_mistakes(EXERCISES[target], slip, error)
    verdict = examine(target, both, seed=3)
    assert {verdict.diagnosis.name, verdict.rest} == {slip, error}
    alone = [examine(target, wrong, seed=3) for wrong in each]
    broken = {c.name for c in alone[1].criteria if not c.passed}
    assert not any(c.earned or c.follows for c in verdict.criteria if c.name in broken)
    shown, *follows = [c for c in verdict.criteria if not c.passed and c.name not in broken]
    assert shown.earned == 0
    assert not shown.follows
    assert all(c.follows for c in follows)
    assert sum(c.earned for c in follows) == sum(c.possible for c in follows) // 2
    assert 0 < verdict.earned <= min(single.earned for single in alone)
    assert points_of_answer(EXERCISES[target], both, 3) == verdict.earned  # asked why or not


WRONG_FORMS = {
    "the dtype is another one": lambda result: result.float(),
    "single precision inside": lambda result: result.float().to(result.dtype),
    "the gradient of query is cut off": lambda result: result.detach(),
}


@pytest.mark.parametrize("form", WRONG_FORMS)
@pytest.mark.parametrize("name", ["no scale", "the mask is inverted"])
def test_a_known_mistake_in_a_wrong_form_is_two_slips(name, form):
    wrong = next(m.wrong for m in ATTENTION.mistakes if m.name == name)

    def in_form(answer):
        def formed(query, key, value, mask=None, *, scale=None):
            return WRONG_FORMS[form](answer(query, key, value, mask, scale=scale))

        return formed

    both = in_form(wrong)
    verdict = examine(ATTENTION.target, both, seed=3)
    assert (verdict.diagnosis.name, verdict.rest) == (name, form)
    alone = [
        points_of_answer(ATTENTION, single, 3) for single in (wrong, in_form(ATTENTION.reference))
    ]
    assert 0 < verdict.earned <= min(alone)
    if form != "single precision inside":  # how the right numbers are rounded is not known
        assert verdict.earned + verdict.worth == alone[1]
    assert points_of_answer(ATTENTION, both, 3) == verdict.earned  # asked why or not


def test_a_slip_beside_another_width_keeps_something():
    exercise = EXERCISES["transformer.FeedForward"]
    name = "the activation in the wrong place"
    slip = next(m.wrong for m in exercise.mistakes if m.name == name)
    compose, chosen = parts_of(slip)
    twice = compose(**chosen, width=lambda d_model, d_ff: d_ff or 2 * d_model)
    verdict = examine(exercise.target, twice, seed=3)
    assert verdict.diagnosis.name == name
    assert verdict.rest == "another width where d_ff is left out"
    assert 0 < verdict.earned < points_of_answer(exercise, slip, 3)


def test_a_known_mistake_in_one_branch_is_one_slip():
    exercise = EXERCISES["transformer.EncoderBlock"]
    wrong = next(m.wrong for m in exercise.mistakes if m.name == "a norm at the wrong branch")

    def wrong_in_pre_norm(*sizes, pre_norm=True, **options):
        return (wrong if pre_norm else exercise.reference)(*sizes, pre_norm=pre_norm, **options)

    verdict = examine(exercise.target, wrong_in_pre_norm, seed=3)
    assert verdict.diagnosis.name == "a norm at the wrong branch"
    assert verdict.diagnosis.explanation.endswith("that is so except where `pre_norm=False`.")
    shown, *follows = [c for c in verdict.criteria if not c.passed]
    assert shown.earned == 0
    assert sum(c.earned for c in follows) == sum(c.possible for c in follows) // 2 > 0
    assert points_of_answer(exercise, wrong_in_pre_norm, 3) == verdict.earned  # asked why or not


def test_points_shown_early_are_the_points_earned():
    both, _ = with_both_mistakes(ATTENTION, "no scale", "the mask is inverted")

    def unknown(query, key, value, mask=None, *, scale=None):
        return both(query, key, value, mask, scale=scale) + value.sum()

    heard: list[int] = []
    for answer in (both, unknown):
        verdict = judge(ATTENTION, answer, 3, on_points=lambda begun: heard.append(begun.earned))
    assert heard == [verdict.earned]  # of two that are known all is said at once


def test_a_mistake_beside_an_unknown_one_is_paid_in_full():
    def two(query, key, value, mask=None, *, scale=None):
        weights = (query @ key.mT).softmax(-1)  # no scale, no mask
        return weights @ value.sin()

    verdict = examine(ATTENTION.target, two, seed=3)
    assert not any(c.earned for c in verdict.criteria if not c.passed)


@pytest.mark.parametrize("place", [0, 1, 2], ids=["the answer", "one alone", "the other alone"])
def test_two_mistakes_are_no_slips_if_one_answers_nothing(place):
    both, each = with_both_mistakes(ATTENTION, "no scale", "the mask is inverted")
    trials = [try_out(ATTENTION, answer, 3) for answer in (both, *each)]
    finding = Finding(ATTENTION.mistakes[0], alone=tuple(trials[1:]))
    assert are_two_slips(ATTENTION, finding, trials[0], 3)
    for nothing in trivial(ATTENTION.reference).values():
        three_trials = list(trials)
        three_trials[place] = try_out(ATTENTION, nothing, 3)
        finding = Finding(ATTENTION.mistakes[0], alone=tuple(three_trials[1:]))
        assert not are_two_slips(ATTENTION, finding, three_trials[0], 3)


def test_only_known_consequences_are_said_to_follow():
    """Of another signature it is not known what would hold without it."""
    verdict = examine("kqv.project", lambda weight: weight, seed=3)
    assert verdict.diagnosis.name == "the signature is another one"
    assert not any(c.follows for c in verdict.criteria)
