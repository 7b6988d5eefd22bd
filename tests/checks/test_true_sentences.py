"""Every sentence of a verdict holds of the answer: names, what is left, ticks, points, lines."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attncourse import transformer
from attncourse.checks import examine, exercises
from attncourse.checks.exercise import Case, Criterion
from attncourse.checks.explaining.symptoms.looks import symptom_beside_mistake, symptom_in_form
from attncourse.checks.explaining.symptoms.nearly_right import (
    batch_axes_unprovided,
    right_to_single_precision,
)
from attncourse.checks.explaining.symptoms.results import first_result_right
from attncourse.checks.judging import judge, judge_criteria, points_of_answer
from attncourse.checks.showing.verdict import FOLLOWS_NOTE, KEEPS_HALF
from attncourse.checks.trying.outcome import Outcome
from attncourse.checks.trying.trials import Trial, try_out

EXERCISES = exercises()


def criterion_of(verdict, name):
    return next(c for c in verdict.criteria if c.name == name)


# --- answers -------------------------------------------------------------------------------------


def norm_over_each_sequence(x, gain=None, bias=None, eps=1e-5):
    axes = (-2, -1) if x.dim() > 1 else (-1,)
    mean = x.mean(axes, keepdim=True)
    variance = ((x - mean) ** 2).mean(axes, keepdim=True)
    y = (x - mean) / torch.sqrt(variance + eps)
    y = y if gain is None else y * gain
    return y if bias is None else y + bias


def points_of_the_first_sequence(x_query, x, y, bandwidth):
    """Batches of queries are provided for, and no axis is counted from the front."""
    places, heights = x.reshape(-1, x.shape[-1])[0], y.reshape(-1, y.shape[-1])[0]
    out = np.empty(x_query.shape)
    for place in np.ndindex(x_query.shape):
        scores = -((x_query[place] - places) ** 2) / (2 * bandwidth**2)
        weights = np.exp(scores - scores.max())
        out[place] = np.average(heights, weights=weights)
    return out


def replaced_from_p(draft, p_draft, p_target, rng):
    for i, token in enumerate(draft.tolist()):
        if torch.rand((), generator=rng) >= p_target[i, token] / p_draft[i, token]:
            new = torch.multinomial(p_target[i], 1, generator=rng)
            return torch.cat([draft[:i], new])
    return torch.cat([draft, torch.multinomial(p_target[-1], 1, generator=rng)])


def another_power_of_warmup(step, d_model, warmup):
    if step < 1:
        raise ValueError("steps count from 1")
    return min(step**-0.5, step * warmup**-0.5) / d_model**0.5


def without_the_token_itself(n):
    W = np.zeros((n, n))
    for i in range(n):
        W[i, : max(i, 1)] = 1 / max(i, 1)
    return W


class OneSharedLayer(transformer.DecoderBlock):
    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        self.cross_attention = self.self_attention


def in_single_precision(query, key):
    q, k = query[..., :, None, :].float(), key[..., None, :, :].float()
    return (q * k).sum(dim=-1).to(query.dtype)


# --- what was told and did not hold -----------------------------------------------------------


def test_one_mistake_in_another_form_is_not_reported_as_two():
    """With one number changed all is right: nothing is left, and the answer takes every batch."""
    verdict = examine("transformer.layer_norm", norm_over_each_sequence, seed=11)
    assert verdict.diagnosis.name == "one mean and variance for all rows"
    assert verdict.rest == verdict.rest_sentence == ""
    assert verdict.earned == examine("transformer.layer_norm", over_everything, seed=11).earned > 0


def over_everything(x, gain=None, bias=None, eps=1e-5):
    y = (x - x.mean()) / torch.sqrt(((x - x.mean()) ** 2).mean() + eps)
    y = y if gain is None else y * gain
    return y if bias is None else y + bias


def test_wrong_numbers_in_a_batch_are_no_second_mistake():
    """They may be what the first does there; an error, or another shape, is a second one."""
    exercise = EXERCISES["kqv.project"]

    def of_all_tokens(x, weight):
        return x @ weight + (x.sum() if x.ndim > 2 else 0)

    def of_a_matrix(x, weight):
        return torch.einsum("nd,de->ne", x, weight)

    for answer, is_second in ((of_all_tokens, False), (of_a_matrix, True)):
        trials = try_out(exercise, answer, 3)
        assert batch_axes_unprovided(trials).mistake.name == "no batch axis is provided for"
        assert bool(symptom_beside_mistake(trials)) is is_second


def test_using_the_first_sequence_for_a_whole_batch_is_named():
    verdict = examine("lookup.kernel_regression", points_of_the_first_sequence, seed=11)
    assert verdict.diagnosis.name == "only the first of a batch is right"
    assert "count the axes" not in verdict.diagnosis.explanation


@pytest.mark.parametrize("seed", [9, 13, 24, 31])
def test_a_replacement_drawn_from_p_is_named_on_every_draw(seed):
    """Whatever order it draws in: no id comes nearly as often as where the words change."""
    verdict = examine("serving.speculative_accept", replaced_from_p, seed=seed)
    assert verdict.diagnosis is not None, verdict.full
    assert verdict.diagnosis.name == "the replacement comes from p"


def test_passed_and_failed_criteria_say_what_holds():
    verdict = examine("transformer.noam_schedule", another_power_of_warmup, seed=11)
    assert verdict.diagnosis.name == "another power of warmup"
    rates = [another_power_of_warmup(step, 4, 100) for step in range(1, 200)]
    assert rates.index(max(rates)) + 1 != 100  # no peak at step warmup, and no tick says so
    assert not any("peak" in c.name for c in verdict.criteria)
    assert criterion_of(verdict, "then falls as 1/√step").passed
    assert math.isclose(rates[149], 150**-0.5 / 2)  # the fall is right


def test_no_row_that_is_right_is_mentioned():
    verdict = examine("mixing.causal_mean_weights", without_the_token_itself, seed=11)
    assert verdict.diagnosis.name == "a token does not see itself"
    assert "nothing to average" not in verdict.diagnosis.explanation


def test_checking_sums_instead_of_entries_is_named():
    def normalize_rows(A):
        sums = A.sum(-1, keepdims=True)
        if (sums < 0).any():
            raise ValueError
        return np.divide(A, sums, out=np.zeros(A.shape), where=sums != 0)

    verdict = examine("mixing.normalize_rows", normalize_rows, seed=11)
    assert verdict.diagnosis.name == "the sums are looked at, not the entries"


def test_a_wrong_default_of_value_is_named_where_sizes_are_cut():
    class Heads(EXERCISES["multihead.MultiHeadAttention"].reference):
        def forward(self, query, key=None, value=None, mask=None):
            key = query if key is None else key
            value = query if value is None else value
            n = min(key.shape[-2], value.shape[-2])
            weights = self.weights(query, key, mask=mask)[..., :n]
            _, _, heads = self.views(query, key, value)
            mixed = weights @ heads[..., :n, :]
            return self.W_o(mixed.transpose(-2, -3).flatten(-2))

    verdict = examine("multihead.MultiHeadAttention", Heads, seed=11)
    assert verdict.diagnosis is not None, verdict.full
    assert verdict.diagnosis.name == "another key or value is used"


# --- points --------------------------------------------------------------------------------------


def test_a_call_wrong_only_at_first_counts_once():
    exercise = EXERCISES["mixing.window_weights"]
    first, again = (
        c for c in exercise.criteria[0].cases(np.random.default_rng(1)) if c.args[0] == 5
    )
    assert again.repeats is first
    wrong_once = Criterion("values", 1).on(lambda rng: [first])
    asked_again = Criterion("later", 1).on(lambda rng: [again])
    small = replace(exercise, criteria=(wrong_once, asked_again), mistakes=())
    answers = iter(["wrong", "wrong", "right", "wrong"])

    def by_turns(n, width):
        W = exercise.reference(n, width)
        return W if next(answers) == "right" else 1 - W

    both = judge_criteria(small, try_out(small, by_turns, 1))
    assert [c.passed for c in both] == [False, True]  # the second asks whether a call changes later
    later = judge_criteria(small, try_out(small, by_turns, 1))
    assert [c.passed for c in later] == [True, False]


def test_right_numbers_in_another_form_are_one_slip():
    """Each number is right but for its digits: that costs a criterion, and half of what follows."""
    exercise = EXERCISES["kqv.attention_scores"]
    verdict = judge(exercise, in_single_precision, 11)
    assert verdict.diagnosis.name == "single precision inside"
    failed = [c for c in verdict.criteria if not c.passed]
    assert [c.follows for c in failed] == [False, *[True] * (len(failed) - 1)]
    assert sum(c.earned for c in failed) == sum(c.possible for c in failed[1:]) // 2 > 0
    assert points_of_answer(exercise, in_single_precision, 11) == verdict.earned  # asked why or not


def test_of_many_results_only_the_wrong_ones_are_named():
    """A block has two dozen gradients: nobody reads the names of all that are right."""
    names = ["the output", "the share", *(f"the gradient of {letter}" for letter in "abcde")]

    def said_of(*wrong):
        expected = {name: np.arange(3.0) for name in names}
        answered = {
            name: numbers[::-1] if name in wrong else numbers for name, numbers in expected.items()
        }
        criterion, case = Criterion("values", 1), Case()
        outcomes = (Outcome("value", value=value) for value in (expected, answered))
        return first_result_right((Trial(criterion, case, *outcomes),)).text

    assert said_of("the share").endswith("and all else is right")
    assert said_of("the share").startswith("the share is ")
    many = said_of(*names[1:])
    assert many.startswith("the output is right, but the share, the gradient of a and 4 others are")


class FiveTimesAsWide(EXERCISES["transformer.FeedForward"].reference):
    """A width that no known mistake has, beside another mistake, which the first case shows."""

    def __init__(self, d_model, d_ff=None, activation=None, bias=True):
        super().__init__(d_model, d_ff or 5 * d_model, activation, bias)

    def forward(self, x):
        return super().forward(x).abs()


def test_the_example_shows_the_mistake_named():
    verdict = examine("transformer.FeedForward", FiveTimesAsWide, seed=3)
    assert verdict.diagnosis.name == "W_1.weight has another shape"
    assert "your module has W_1.weight of shape" in verdict.example


def test_what_ends_in_an_error_is_not_said_to_follow():
    """Nothing came, so nothing is known of what would hold without the error."""
    verdict = examine("transformer.DecoderBlock", OneSharedLayer, seed=11)
    assert verdict.diagnosis.name == "fewer parameters than asked for"
    assert FOLLOWS_NOTE not in verdict.full
    assert not any(c.follows for c in verdict.criteria)
    (line,) = [line for line in str(verdict).splitlines() if "the same error" in line]
    failed = [c for c in verdict.criteria if not c.passed and not c.waits]
    assert f"({0}/{sum(c.possible for c in failed[1:])})" in line
    trials = try_out(EXERCISES["transformer.DecoderBlock"], OneSharedLayer, 11)
    assert symptom_in_form(trials) is None


def test_digits_lost_to_float32_are_distinguished_from_fewer():
    signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0])

    def off_by(share):
        def project(x, weight):
            out = x @ weight
            return (out * (1 + share * torch.from_numpy(np.resize(signs, out.shape)))).to(x.dtype)

        return right_to_single_precision(try_out(EXERCISES["kqv.project"], project, 2))

    assert off_by(4e-8).mistake.name == "single precision inside"
    assert off_by(4e-9).mistake is None
    assert "of which float32 would lose more" in off_by(4e-9).text


# --- lines ---------------------------------------------------------------------------------------


def test_criteria_that_follow_share_a_line_with_their_points():
    """The fault first, with its points; what follows keeps half together, which is said once."""
    exercise = EXERCISES["vision.embed_image"]
    wrong = next(m.wrong for m in exercise.mistakes if m.name == "the class token stands last")
    verdict = judge(exercise, wrong, 11)
    lines = str(verdict).splitlines()
    crosses = [line.strip() for line in lines if line.startswith("  ✗")]
    fault, *follows = [c for c in verdict.criteria if not c.passed and not c.waits]
    earned, possible = sum(c.earned for c in follows), sum(c.possible for c in follows)
    assert crosses == [
        f"✗ {fault.name} (0/{fault.possible})",
        f"✗ {FOLLOWS_NOTE} and {KEEPS_HALF} ({earned}/{possible}): "
        + " · ".join(c.name for c in follows),
    ]
    sentence = f"What only follows {KEEPS_HALF}, {earned} of {possible}."
    assert sentence in verdict.full
    assert sentence in verdict._repr_html_()


def test_a_similar_mistake_is_told_with_its_explanation():
    """It counts on from the first position, and its angles have the digits of float32."""

    def apply_rope(x, positions, base=10000.0):
        n, d = x.shape[-2:]
        if d % 2:
            raise ValueError("d is odd")
        t = torch.arange(n, dtype=torch.float64) + positions[:1].long()
        angles = t[:, None] * torch.pow(torch.tensor(base).double(), -torch.arange(0, d, 2) / d)
        c, s = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack((even * c - odd * s, even * s + odd * c), dim=-1).flatten(-2)

    verdict = examine("positions.apply_rope", apply_rope, seed=11)
    assert "does: “positions of its own. You turn token t by t" in verdict.symptom, verdict.full


def test_none_may_come_from_a_function_that_returns_nothing():
    def nothing(x):
        x.clone()

    def layer_norm(x, gain=None, bias=None, eps=1e-5):
        return x - nothing(x)

    verdict = examine("transformer.layer_norm", layer_norm, seed=1)
    assert verdict.diagnosis.name == "None is calculated with"
    assert "no `return`" in verdict.diagnosis.explanation


# --- digits --------------------------------------------------------------------------------------


def test_numbers_that_a_dtype_has_rounded_are_not_called_right():
    verdict = examine("kqv.project", lambda x, weight: (x @ weight).float(), seed=3)
    assert verdict.diagnosis.name == "the dtype is another one"
    assert "The numbers are right to the digits of float32, but" in verdict.diagnosis.explanation


def test_whole_numbers_of_another_dtype_have_all_their_digits():
    def pad_left(sequences, pad):
        ids, positions, mask = EXERCISES["serving.pad_left"].reference(sequences, pad)
        return ids, positions.float(), mask

    explanation = examine("serving.pad_left", pad_left, seed=3).diagnosis.explanation
    assert "The numbers are right, but positions" in explanation
