"""What a failed check says of the cause: one mistake, two, one of any size, or a symptom."""

import copy
import math
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attncourse import STEMS, efficient, gpt, kqv, multihead, positions, serving, transformer
from attncourse.checks import chapter, examine, exercises
from attncourse.checks.exercise import Between, composition, parts_of
from attncourse.checks.explaining.suspects import suspects
from attncourse.checks.judging import judge, named_arguments
from attncourse.checks.trying.trials import MAX_KEPT_DRAWS, N_FURTHER_DRAWS, draw
from attncourse.kqv import project, scaled_dot_product_attention
from helpers.double_mistakes import doubles

EXERCISES = exercises()
COMPOSITIONS = {
    (e.target, parts.compose.__qualname__): (e, parts.compose)
    for e in EXERCISES.values()
    for m in e.mistakes
    if (parts := parts_of(m.wrong))
}
FAMILIES = [(e, m) for e in EXERCISES.values() for m in e.mistakes if m.family]


@pytest.fixture(autouse=True)
def without_repairs(monkeypatch):
    """Look for no repair in the answer's code: that is tested in test_repairs.py."""
    monkeypatch.setattr("attncourse.checks.judging.find_repair", lambda *_: None)


@pytest.fixture
def one_further_draw(monkeypatch):
    """Hold a finding against one further draw instead of three."""
    monkeypatch.setattr("attncourse.checks.explaining.diagnosis.N_FURTHER_DRAWS", 1)


def case_id(value):
    return getattr(value, "target", None) or getattr(value, "name", None) or value.__name__


@pytest.mark.parametrize(("exercise", "compose"), COMPOSITIONS.values(), ids=case_id)
def test_a_composition_of_right_options_is_right(exercise, compose):
    verdict = judge(exercise, compose(), 3)
    assert verdict.passed, verdict.full


@pytest.mark.usefixtures("one_further_draw")
@pytest.mark.parametrize(("exercise", "mistake"), FAMILIES, ids=case_id)
def test_a_member_of_a_family_has_its_name(exercise, mistake):
    values = mistake.family.values
    if isinstance(values, Between):
        sign, ends = (-1, [-v for v in values]) if values.low < 0 else (1, values)
        low, high = sorted(map(math.log, ends))
        values = [sign * math.exp(low + part * (high - low)) for part in (0.35, 0.62)]
    for value in values:
        verdict = judge(exercise, mistake.family.make(value), 3)
        assert not verdict.passed, value
        assert verdict.diagnosis is not None, (value, verdict.full)
        assert verdict.diagnosis.name == mistake.name, (value, verdict.full)


@pytest.mark.usefixtures("one_further_draw")
def test_two_mistakes_at_once_are_named(record_property):
    """One of the two at least in 80 % of the pairs, and a wrong name in few.

    Two mistakes can be one function, which then may have a third one's name.
    """
    named = wrong = total = 0
    for exercise in EXERCISES.values():
        for a, b, both in doubles(exercise):
            verdict = judge(exercise, both, 11)
            if verdict.passed:
                continue
            total += 1
            if verdict.diagnosis is not None:
                right = verdict.diagnosis.name in (a.name, b.name)
                named += right
                wrong += not right
    record_property(
        "summary", f"doubles: one of two named in {named} of {total}, another in {wrong}"
    )
    assert named >= 0.8 * total
    assert wrong <= 0.1 * total


@pytest.mark.parametrize(
    "names",
    [{"a norm is missing", "not causal"}, {"uniform weights", "a norm at the wrong branch"}],
)
def test_two_mistakes_in_a_slow_exercise_are_both_named(names):
    """One of the first two shows alone where a mask is given, of the others with a single token."""
    block = EXERCISES["llama.LlamaBlock"]
    first_mistake, second_mistake = (parts_of(m.wrong) for m in block.mistakes if m.name in names)
    verdict = judge(
        block, first_mistake.compose(**first_mistake.chosen, **second_mistake.chosen), 7
    )
    assert verdict.diagnosis is not None, verdict.full
    assert {verdict.diagnosis.name, verdict.rest} == names


def test_the_rest_names_what_is_wrong_after_the_first_repair():
    attend = next(c for (t, n), (_, c) in COMPOSITIONS.items() if t.endswith("product_attention"))
    mistakes = {
        m.name: parts_of(m.wrong) for m in EXERCISES["kqv.scaled_dot_product_attention"].mistakes
    }
    inverted, unscaled = mistakes["the mask is inverted"], mistakes["no scale"]
    verdict = examine(
        "kqv.scaled_dot_product_attention", attend(**inverted.chosen, **unscaled.chosen), seed=2
    )
    assert verdict.diagnosis.name == "no scale"
    assert verdict.rest == "the mask is inverted"
    mended = examine("kqv.scaled_dot_product_attention", attend(**inverted.chosen), seed=2)
    assert verdict.worth == mended.earned - verdict.earned > 0
    assert f"That is worth {verdict.worth} of the" in str(verdict)


@pytest.mark.parametrize(
    ("lay", "rest"),
    [
        (lambda wrong: lambda x, weight: wrong(x, weight).detach(), "the gradient of x is cut off"),
        (lambda wrong: lambda x, weight: wrong(x, weight).float(), "the dtype is another one"),
        (lambda wrong: lambda x, weight: spoiling(wrong, x, weight), "x is changed in place"),
    ],
)
def test_a_known_mistake_is_found_beneath_a_common_one(lay, rest):
    known, second_names = EXERCISES["kqv.project"].mistakes, []
    for m in known:
        verdict = examine("kqv.project", lay(m.wrong), seed=4)
        assert verdict.diagnosis is not None, verdict.full
        if verdict.diagnosis.name == m.name:
            second_names.append(verdict.rest)
    assert len(second_names) >= len(known) - 1
    assert rest in second_names  # not where a mistake raises there


def spoiling(wrong, x, weight):
    result = wrong(x.clone(), weight)
    with torch.no_grad():
        x *= 2
    return result


def test_two_mistakes_in_different_cases_are_both_reported():
    def embed(ids, table):
        if np.max(ids) >= len(table) - 1:
            raise ValueError("no such id")
        return table[ids]

    verdict = examine("tokens.embed", embed, seed=3)
    assert verdict.diagnosis.name == "an id that exists is refused"
    assert verdict.rest == "only one end of the range is checked"


def test_of_three_mistakes_one_is_named():
    def attention(query, key, value, mask=None, *, scale=None):
        scores = query @ key.mT / query.shape[-1]
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        return torch.softmax(scores, -1) @ value

    for seed in range(3):
        verdict = examine("kqv.scaled_dot_product_attention", attention, seed=seed)
        assert verdict.diagnosis.name == "divided by d_k"


def test_torch_computes_in_one_thread_while_it_judges():
    def project_in_threads(x, weight):
        seen.append(torch.get_num_threads())
        return x @ weight

    seen: list[int] = []
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert examine("kqv.project", project_in_threads).passed
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


# --- symptoms --------------------------------------------------------------------------------


def times(factor):
    return lambda x, weight: factor * (x @ weight)


def only_first(x, weight):
    out = (x @ weight).clone()
    out[..., 1:, :] = 0.125
    return out


CALLS_COUNTED = []


def another_each_time(x, weight):
    CALLS_COUNTED.append(0)
    return x @ weight + len(CALLS_COUNTED)


def ignores_the_input(x, weight):
    shape = (*x.shape[:-1], weight.shape[-1])
    return torch.linspace(0, 1, math.prod(shape), dtype=x.dtype).reshape(shape)


SYMPTOMS = [
    (times(1.75), "the expected one times 1.75"),
    (times(-1), "the expected one with the wrong sign"),
    (times(0.5), "half the expected one"),
    (lambda x, weight: x @ weight + 0.75, "the expected one plus 0.75"),
    (lambda x, weight: (x @ weight).mT, "the expected one transposed"),
    (lambda x, weight: (x @ weight).flip(-2), "backwards along its second to last axis"),
    (lambda x, weight: (x @ weight).roll(1, -1), "moved by +1 along its last axis"),
    (lambda x, weight: (x @ weight)[..., None], "with an axis more behind"),
    (lambda x, weight: (x @ weight).square(), "the square of the expected one"),
    (lambda x, weight: 1 - x @ weight, "the result is 1 minus the expected one"),
    (lambda x, weight: (x @ weight).clamp(min=-1, max=1), "cut off between −1 and 1"),
    (lambda x, weight: (x @ weight).sort(-1)[0], "the expected one sorted along its last axis"),
    (lambda x, weight: (x @ weight).flip(-1).roll(3, -2), "right numbers, but in other places"),
    (lambda x, weight: (x @ weight)[..., None, :], "with an axis more before its last"),
    (
        lambda x, weight: (product := x @ weight) - product.amax(-1, keepdim=True),
        "the expected one less its largest along its last axis",
    ),
    (lambda x, weight: x.shape[-2] * (x @ weight), "second to last axis of argument 1"),
    (only_first, "right only in the first row"),
    (another_each_time, "other numbers each time"),
    (lambda x, weight: (x @ weight + 1).detach(), "the expected one plus 1; besides, no gradient"),
    (ignores_the_input, "does not depend on the numbers that come in"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "phrase"), SYMPTOMS, ids=[phrase for _, phrase in SYMPTOMS])
def test_a_symptom_relates_the_result_to_the_right_one(answer, phrase):
    for seed in (0, 5):
        verdict = examine("kqv.project", answer, seed=seed)
        assert verdict.diagnosis is None
        assert phrase in verdict.symptom, verdict.full
        assert verdict.symptom in str(verdict)
        assert phrase in verdict._repr_html_()


def two_results(change_first, change_second):
    def online_softmax(blocks):
        maximum, normaliser = efficient.online_softmax(blocks)
        return change_first(maximum), change_second(normaliser)

    return online_softmax


def same_as_it_is(x):
    return x


def cache_bytes(power):
    return lambda n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number=2: (
        2 * n_tokens * n_layers * n_kv_heads * d_head * bytes_per_number * d_head**power
    )


def squares_alone(images, patch):
    """As many columns of patches as there are rows."""
    if images.shape[-2] % patch:
        raise ValueError("patch does not divide the height")
    places = range(0, images.shape[-2], patch)
    cut = [images[..., i : i + patch, j : j + patch].flatten(-3) for i in places for j in places]
    return torch.stack(cut, -2)


def model_itself(model, layer, head, how="zero", ids=None):
    """Nothing is copied, and the mean is never taken."""
    attention = model.blocks[layer].attention
    width = attention.d_model // attention.n_heads
    columns = slice(head * width, (head + 1) * width)
    with torch.no_grad():
        attention.W_o.weight[:, columns] = 0
    return model


def test_a_changed_model_with_other_results_is_not_called_right():
    verdict = examine("interpret.ablate", model_itself, seed=1)
    assert "results are right" not in verdict.full
    assert "the given model is changed" in verdict.symptom


def first_two_heads(x):
    return torch.cat([x[..., 0, :, :], x[..., 1, :, :]], -1)


def all_may_see_the_last(sequences, pad):
    ids, positions, mask = serving.pad_left(sequences, pad)
    return ids, positions, mask | (torch.arange(ids.shape[-1]) == ids.shape[-1] - 1)


ANSWERS_WITH_SYMPTOMS = [
    (
        "tokens.tokenize",
        lambda text: re.findall(r"\w+|[^\w\s]", text.capitalize()),
        "right but for small and capital letters",
    ),
    ("serving.pad_left", all_may_see_the_last, "ids and positions are right, but mask is wrong"),
    ("vision.patchify", squares_alone, "right only where axis −2 of argument 1 is as long as axis"),
    ("multihead.merge_heads", first_two_heads, "only the beginning of the expected one along its"),
    ("efficient.online_softmax", two_results(same_as_it_is, lambda x: 3 * x), "the second is the"),
    (
        "efficient.online_softmax",
        two_results(same_as_it_is, torch.sin),
        "the second is wrong, and the",
    ),
    (
        "efficient.online_softmax",
        two_results(torch.cos, same_as_it_is),
        "the first is wrong, and the",
    ),
    ("efficient.kv_cache_bytes", cache_bytes(-2), "times 1 / s², where s is argument 4"),
    ("efficient.kv_cache_bytes", cache_bytes(1), "times s, where s is argument 4"),
    (
        "gpt.next_token_loss",
        lambda logits, ids, padding_id=None: gpt.next_token_loss(logits, ids, padding_id)[None],
        "with an axis more in front",
    ),
    (
        "gpt.next_token_loss",
        lambda logits, ids, padding_id=None: logits.sum(-1),
        "an array where one number is expected",
    ),
    (
        "positions.alibi_bias",
        lambda n, n_heads: positions.alibi_bias(n, n_heads).swapaxes(-3, -1),
        "with axes -3 and -1 exchanged",
    ),
]


@pytest.mark.parametrize(
    ("target", "answer", "phrase"),
    ANSWERS_WITH_SYMPTOMS,
    ids=[phrase for *_, phrase in ANSWERS_WITH_SYMPTOMS],
)
def test_several_results_and_single_numbers_have_symptoms(target, answer, phrase):
    for seed in (0, 5):
        verdict = examine(target, answer, seed=seed)
        assert verdict.diagnosis is None
        assert phrase in verdict.symptom, verdict.full


def test_squeezed_axes_are_named_in_whatever_exercise():
    for seed in (0, 5):
        verdict = examine("kqv.project", lambda x, weight: (x @ weight).squeeze(), seed=seed)
        assert verdict.diagnosis.name == "the axes of length 1 are gone", verdict.full


def anything_in_place_of_a_refused_guess(draft, p_draft, p_target, rng):
    for i, guess in enumerate(draft):
        if torch.rand((), generator=rng) >= p_target[i, guess] / p_draft[i, guess]:
            size = p_target.shape[-1]
            return torch.cat([draft[:i], torch.randint(size, (1,), generator=rng)])
    return torch.cat([draft, torch.multinomial(p_target[-1], 1, generator=rng)])


def turned_where_square(A, X):
    return (np.swapaxes(A, -1, -2) if A.shape[-1] == A.shape[-2] else A) @ X


@pytest.mark.parametrize(
    ("target", "answer", "phrase"),
    [
        (
            "serving.speculative_accept",
            anything_in_place_of_a_refused_guess,
            "beside what may come, ids come that a right answer never gives there",
        ),
        ("mixing.mix", turned_where_square, "wrong only where axis −2 of argument 1 is as long as"),
    ],
)
def test_random_results_and_equal_lengths_have_symptoms(target, answer, phrase):
    for seed in (0, 5):
        verdict = examine(target, answer, seed=seed)
        assert verdict.diagnosis is None
        assert phrase in verdict.symptom, verdict.full


def detached_weight(x, weight):
    return x @ weight.detach()


def rounded_to_float32(x, weight):
    return (x.float() @ weight.float()).to(x.dtype)


def zeroes_its_argument(x, weight):
    out = x @ weight
    x.zero_()
    return out


def at_most_a_matrix(x, weight):
    return torch.einsum("ij,jk->ik", x, weight)


def asks_a_mask(query, key, value, mask=None, *, scale=None):
    mask = mask if mask else None
    return scaled_dot_product_attention(query, key, value, mask, scale=scale)


class WithoutInit(kqv.AttentionHead):
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        self.d_k = d_k
        super().__init__(d_model, d_k, d_v, bias)

    def forward(self, x, mask=None):
        del self.__dict__["_forward_hooks"]  # as if it had never been made
        return self(x)


class OneLayerForTwo(transformer.DecoderBlock):
    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        self.cross_attention = self.self_attention


def layers_of(write):
    """Return a ``naive_to_batched`` that copies the naive layer's numbers with ``write``."""

    def made(naive):
        batched = multihead.MultiHeadAttention(naive.W_o.out_features, len(naive.heads))
        write(batched.W_o, naive.W_o.weight)
        return batched

    return made


class ActivationOnly(torch.nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.activation = activation()


def none_is_multiplied(x, gain=None, bias=None, eps=1e-5):
    return gain * transformer.layer_norm(x, None, None, eps) + bias


def mean_of_what_is_kept(logits, ids, padding_id=None):
    """Without a padding there is no ``keep``; and the targets are not shifted."""
    if padding_id is not None:
        keep = ids != padding_id
    loss = F.cross_entropy(logits.flatten(0, -2), ids.flatten(), reduction="none")
    return (loss * keep.flatten()).sum() / keep.sum()


MISTAKES_OF_ANY_EXERCISE = [
    ("kqv.scaled_dot_product_attention", asks_a_mask, "one truth value of a whole array"),
    ("kqv.AttentionHead", WithoutInit, "super().__init__() is missing"),
    ("transformer.DecoderBlock", OneLayerForTwo, "fewer parameters than asked for"),
    (
        "multihead.naive_to_batched",
        layers_of(lambda layer, numbers: layer.weight.copy_(numbers)),
        "a parameter is written to while gradients are recorded",
    ),
    (
        "multihead.naive_to_batched",
        layers_of(lambda layer, numbers: setattr(layer, "weight", numbers.detach())),
        "a tensor in the place of a parameter",
    ),
    (
        "transformer.FeedForward",
        lambda d_model, d_ff=None, activation=F.gelu, bias=True: ActivationOnly(activation),
        "activation is called where it is to be kept",
    ),
    ("transformer.layer_norm", none_is_multiplied, "None is calculated with"),
    ("kqv.project", lambda x, w: torch.tensor(x.numpy() @ w.numpy()), "NumPy on the way"),
    ("kqv.AttentionHead", lambda *a, **k: eye_as_values(*a, **k), "the dtype is another one"),
    ("mixing.normalize_rows", lambda A: np.devide(A, A.sum(-1)), "there is no `numpy.devide`"),
    (
        "mixing.mix",
        lambda A, X: A @ X if X.ndim < 3 else nump.matmul(A, X),  # noqa: F821
        "`nump` is not defined",
    ),
    ("gpt.next_token_loss", mean_of_what_is_kept, "`keep` has no value yet"),
]


def eye_as_values(*sizes, **options):
    """A head whose map is its blend of the unit rows, of the default dtype."""
    head = kqv.AttentionHead(*sizes, **options)

    def weights(x, mask=None):
        query, key = head.W_q(x), head.W_k(x)
        return scaled_dot_product_attention(query, key, torch.eye(x.shape[-2]), mask)

    head.weights = weights
    return head


@pytest.mark.parametrize(("target", "answer", "name"), MISTAKES_OF_ANY_EXERCISE)
def test_an_exception_that_leaves_no_doubt_has_a_name(target, answer, name):
    verdict = examine(target, answer, seed=1)
    assert verdict.diagnosis is not None, verdict.full
    assert verdict.diagnosis.name == name, verdict.full


def test_another_dtype_is_reported_beside_an_exception():
    def only_matrices(x, weight):
        out = torch.zeros(len(x), weight.shape[-1])
        for place, row in enumerate(x):
            out[place] = row @ weight
        return out

    verdict = examine("kqv.project", only_matrices, seed=1)
    assert "returned dtype float32, expected float64" in verdict.symptom
    assert "; besides, raised " in verdict.symptom


MISTAKES_IN_GRADIENTS_OR_DTYPE = [
    (detached_weight, "the gradient of weight is cut off"),
    (rounded_to_float32, "single precision inside"),
    (zeroes_its_argument, "x is changed in place"),
    (at_most_a_matrix, "no batch axis is provided for"),
    (lambda x, weight: (x @ weight).float(), "the dtype is another one"),
    (lambda x, weight: (x @ weight, x), "more than the result comes back"),
]


@pytest.mark.parametrize(
    ("answer", "name"),
    MISTAKES_IN_GRADIENTS_OR_DTYPE,
    ids=[name for _, name in MISTAKES_IN_GRADIENTS_OR_DTYPE],
)
def test_mistakes_of_any_exercise_are_named(answer, name):
    verdict = examine("kqv.project", answer, seed=1)
    assert verdict.diagnosis.name == name, verdict.full
    assert verdict.diagnosis.explanation in str(verdict)


def test_a_right_answer_has_no_finding():
    for target, answer in (
        ("kqv.project", project),
        ("kqv.scaled_dot_product_attention", scaled_dot_product_attention),
    ):
        verdict = examine(target, answer, seed=1)
        assert verdict.passed
        assert verdict.diagnosis is None
        assert verdict.symptom == verdict.rest == verdict.example == ""


class MapOfAnotherCall(EXERCISES["kqv.AttentionHead"].reference):
    """Keeps its keys until an input has another shape."""

    keys = None

    def forward(self, x, mask=None):
        if self.keys is None or self.keys.shape[:-1] != x.shape[:-1]:
            self.keys = self.W_k(x)
        return kqv.scaled_dot_product_attention(self.W_q(x), self.keys, self.W_v(x), mask)


def test_state_that_an_object_keeps_between_calls_is_named():
    for seed in (0, 5):
        verdict = examine("kqv.AttentionHead", MapOfAnotherCall, seed=seed)
        assert verdict.diagnosis.name == "something is kept from an earlier call", verdict.full


def test_rounding_is_not_taken_for_a_guard():
    def entropy(weights):
        single = weights.float()
        logs = single.masked_fill(single == 0, 1).log()
        return -(single * logs).sum(-1).to(weights.dtype)

    verdict = examine("scaling.attention_entropy", entropy, seed=1)
    assert verdict.diagnosis.name == "single precision inside", verdict.full


def test_a_fact_that_does_not_hold_is_reported():
    def same_again(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
        if generator is not None:
            generator = torch.Generator().manual_seed(generator.initial_seed())
        return gpt.sample_token(logits, temperature, top_k, top_p, generator)

    verdict = examine("gpt.sample_token", same_again, seed=1)
    assert verdict.symptom.endswith("does not hold: a generator that goes on draws other tokens")


def test_nonsense_has_no_symptom():
    verdict = examine("mixing.mix", lambda A, X: np.sin(1 / (1 + (A @ X) ** 2)), seed=1)
    assert verdict.diagnosis is None
    assert verdict.symptom == ""


def test_a_composition_keeps_what_was_chosen():
    @composition
    def power(base=2, exponent=2, **rest):
        return lambda: base**exponent

    assert parts_of(power(3, exponent=4)).chosen == {"base": 3, "exponent": 4}
    assert parts_of(power(other=5)).chosen == {"other": 5}
    assert parts_of(power(3)).compose(base=3)() == 9
    assert parts_of(project) is None


# --- refusals and truth values ---------------------------------------------------------------


def refuses_zero(ids, n_vocab):
    if not (0 < ids).all() or not (ids < n_vocab).all():
        raise ValueError(f"what is {ids}?")
    return np.eye(n_vocab)[ids]


def asserts_range(ids, n_vocab):
    assert (ids >= 0).all()
    assert (ids < n_vocab).all()
    return np.eye(n_vocab)[ids]


def test_a_refusal_of_valid_input_is_named_whatever_it_says():
    verdict = examine("tokens.one_hot", refuses_zero, seed=4)
    assert verdict.diagnosis.name == "an id that exists is refused"


class MisspeltHead(nn.Module):
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=bias)
        self.W_k = nn.Linear(d_model, d_k, bias=bias)
        self.W_v = nn.Linear(d_model, d_k if d_v is None else d_v, bias=bias)

    def weights(self, x, mask=None):
        return self.w_q(x)

    def forward(self, x, mask=None):
        return self.weights(x, mask)


def test_the_same_error_class_is_not_the_same_mistake():
    """A forgotten ``super().__init__()`` raises an AttributeError in every case, too."""
    verdict = examine("kqv.AttentionHead", MisspeltHead, seed=4)
    assert verdict.diagnosis is None
    assert "it stops with an AttributeError in the line `return self.w_q(x)`" in verdict.symptom


def test_another_error_class_than_asked_for_is_reported():
    verdict = examine("tokens.one_hot", asserts_range, seed=4)
    assert verdict.diagnosis.name == "another error than ValueError"


def test_input_that_is_not_refused_is_reported():
    verdict = examine("tokens.embed", lambda ids, table: table[np.abs(ids) % len(table)], seed=4)
    assert verdict.diagnosis.name.startswith("what is to be refused") or verdict.diagnosis.wrong


def test_input_that_raises_another_error_at_times_is_reported():
    def noam_schedule(step, d_model, warmup):
        return d_model**-0.5 * min((step or 1) ** -0.5, (step or 1) * warmup**-1.5)

    verdict = examine("transformer.noam_schedule", noam_schedule, seed=4)
    assert verdict.diagnosis.name == "what is to be refused is not"
    assert "or stops with another error" in verdict.diagnosis.explanation


def test_a_known_error_says_what_to_write_in_its_line(tmp_path):
    def attend(scores, values, mask=None):
        weights = scores.softmax(-1)
        return (weights.mean(2, keepdim=True) + weights) @ values.cos()

    verdict = examine("scoring.attend", attend, seed=3)
    assert "in the line `return (weights.mean(2" in verdict.symptom
    assert verdict.symptom.endswith("that is the same axis in every call")


def test_the_result_with_another_dtype_is_named():
    def pad_left(sequences, pad):
        ids, positions, mask = serving.pad_left(sequences, pad)
        return ids, positions.float(), mask

    explanation = examine("serving.pad_left", pad_left, seed=3).diagnosis.explanation
    assert "The numbers are right, but positions: returned dtype float32" in explanation
    assert explanation.endswith("Return whole numbers, of dtype int64.")


def test_a_changed_argument_does_not_alter_a_mistakes_numbers():
    def ablate(model, layer, head, how="zero", ids=None):
        shared = copy.copy(model)
        layer = shared.blocks[layer].attention
        width = layer.W_o.in_features // layer.n_heads
        with torch.no_grad():
            layer.W_o.weight[:, head * width : (head + 1) * width] = 0
        return shared

    for seed in (0, 5):
        verdict = examine("interpret.ablate", ablate, seed=seed)
        assert "rows, not columns" not in verdict.in_short


def test_forgotten_return_and_boolean_minus_are_named():
    def forgets(query, key):
        scores = query @ key.mT
        scores.sum()

    verdict = examine("kqv.attention_scores", forgets, seed=4)
    assert verdict.diagnosis.name == "nothing is returned"

    def subtracts(scores, values, mask=None):
        if mask is not None:
            scores = scores.masked_fill(1 - mask, -torch.inf)
        return scores.softmax(-1) @ values

    verdict = examine("scoring.attend", subtracts, seed=4)
    assert verdict.diagnosis.name == "truth values are subtracted"


def test_a_mistake_in_batches_is_named_where_refusals_fail_too():
    def one_hot(ids, n_vocab):
        if (ids < 0).any() or (ids >= n_vocab).any():
            raise ValueError
        rows = np.zeros((ids.shape[0], n_vocab))
        rows[np.arange(ids.shape[0]), ids] = 1
        return rows

    verdict = examine("tokens.one_hot", one_hot, seed=4)
    assert "batch axis" in verdict.diagnosis.name


@pytest.mark.parametrize("answer", [True, False])
def test_one_result_for_every_input_is_reported_unnamed(answer):
    verdict = examine("mixing.is_row_stochastic", lambda A, atol=1e-8: answer, seed=4)
    assert verdict.diagnosis is None
    assert verdict.symptom == f"the answer is {answer}, whatever comes in"


@pytest.mark.parametrize(
    "target",
    ["masking.leak", "kqv.project", "lookup.softmax", "gpt.perplexity", "today.select_keys"],
)
@pytest.mark.parametrize("number", [0.0, 1.0])
def test_one_number_for_every_input_is_reported_unnamed(target, number):
    verdict = examine(target, lambda *arguments, **more: number, seed=4)
    assert verdict.diagnosis is None
    assert f"is {number:g}" in verdict.symptom
    assert verdict.earned == 0
    (reason,) = {c.brief for c in verdict.criteria if c.waits}
    assert "the same number comes back for every input" in reason


def test_an_answer_that_mostly_raises_is_not_one_number():
    """For one token the weight is 1, and right; of the other calls nothing came back."""

    def attention_weights(X):
        if X.shape[-2] != 1:
            raise TypeError("one token alone")
        return np.ones((*X.shape[:-2], 1, 1))

    verdict = examine("self_attention.attention_weights", attention_weights, seed=4)
    assert "TypeError" in verdict.symptom
    assert "whatever comes in" not in str(verdict)
    assert "same number" not in str(verdict)


def test_a_changed_right_result_is_not_called_a_known_mistake():
    verdict = examine("mixing.mix", lambda A, X: (A @ X).mean(-2), seed=4)
    assert verdict.diagnosis is None
    assert "averaged over its second to last axis" in verdict.symptom


def test_arguments_in_an_example_have_the_calls_names():
    """Where a case is tried through a caller, that one's arguments come first."""
    for target, expected in (("gpt.sample_token", "logits"), ("gpt.attend_with_cache", "key")):
        exercise = EXERCISES[target]
        for _, case, _ in draw(exercise, 3):
            arrays = dict(named_arguments(exercise, case))
            assert expected in arrays, (case.use, list(arrays))
            assert torch.is_tensor(arrays[expected])


def test_in_place_changes_are_named_with_gradients():
    def in_place(query, key, value, mask=None, *, scale=None):
        with torch.no_grad():
            query.mul_(query.shape[-1] ** -0.5 if scale is None else scale)
        scores = query @ key.mT
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1) @ value

    verdict = examine("kqv.scaled_dot_product_attention", in_place, seed=4)
    assert verdict.diagnosis.name == "query is changed in place", verdict.full


def test_a_mistake_in_one_branch_is_named_with_gradients():
    def linear_attention(query, key, value, causal=False):
        q, k = (torch.nn.functional.elu(x) + 1 for x in (query, key))
        if causal:
            return efficient.linear_attention(query, key, value, causal=True)
        return q @ (k.mT @ value) / k.sum(-2, keepdim=True).sum(-1, keepdim=True)

    verdict = examine("efficient.linear_attention", linear_attention, seed=4)
    assert verdict.diagnosis is not None, verdict.full
    assert "causal" in verdict.diagnosis.explanation


def test_results_of_nan_alone_name_no_unused_argument():
    def attend(scores, values, mask=None):
        weights = scores.softmax(-1)
        return (weights if mask is None else weights / 0 * mask) @ values

    verdict = examine("scoring.attend", attend, seed=4)
    assert "depend" not in verdict.symptom


def test_a_mistake_of_any_size_is_named_beside_another():
    def normalize_rows(A):
        A = np.abs(A)
        return A / (A.sum(-1, keepdims=True) + 1e-6)

    verdict = examine("mixing.normalize_rows", normalize_rows, seed=4)
    assert verdict.diagnosis is not None, verdict.full
    assert verdict.diagnosis.name == "a guard that shows in the result"
    assert verdict.rest == "negative entries are accepted"


def test_two_mistakes_are_named_where_one_hides_the_other():
    def is_row_stochastic(A, atol=1e-8):  # where a negative entry is too small, no sum counts
        return bool((np.abs(A.sum(-1) - 1) <= 1e-8).all())

    verdict = examine("mixing.is_row_stochastic", is_row_stochastic, seed=4)
    assert verdict.diagnosis is not None, verdict.full
    names = {verdict.diagnosis.name, verdict.rest}
    assert names == {"atol is not used", "only one of two things is tested"}


def test_an_error_is_known_whichever_function_raises_it():
    """A suspect stops in ``unflatten``, this answer in ``reshape``, and for the same reason."""

    def unpatchify(patches, patch, height, width):
        *batch, n, numbers = patches.shape
        side = int(n**0.5)
        x = patches.reshape(*batch, side, side, patch, patch, numbers // patch**2)
        x = torch.einsum("...hwpqc->...chpwq", x)
        return x.reshape(*batch, -1, side * patch, side * patch)

    verdict = examine("vision.unpatchify", unpatchify, seed=4)
    assert verdict.diagnosis is not None, verdict.full
    names = {verdict.diagnosis.name, verdict.rest}
    assert names == {"a square image assumed", "channels last inside a patch"}


def test_the_best_explanation_is_found_among_slow_ones():
    """The maximum is no part of the gradient here, and so nothing known does all the same."""

    def tiled_attention(query, key, value, mask=None, block=128):
        m, n, rows = query.shape[-2], key.shape[-2], []
        for i in range(0, m, block):
            q = query[..., i : i + block, :] / query.shape[-1] ** 0.5
            top, total = torch.full_like(q[..., :1], -math.inf), torch.zeros_like(q[..., :1])
            out = 0 * q[..., :1] * value[..., :1, :]
            for j in range(0, n, block):
                s = q @ key[..., j : j + block, :].mT
                if mask is not None:
                    s = s.masked_fill(~mask[..., i : i + block, j : j + block], -math.inf)
                new = torch.maximum(top, s.amax(-1, keepdim=True)).detach()
                at = new.masked_fill(new == -math.inf, 0)
                e = (s - at).exp()
                total = total * (top - at).exp() + e.sum(-1, keepdim=True)
                out = out + e @ value[..., j : j + block, :]
                top = new
            rows.append(out / total)
        return torch.cat(rows, -2)

    verdict = examine("efficient.tiled_attention", tiled_attention, seed=4)
    assert verdict.diagnosis is None  # its gradients are others, and so it is another function
    assert "does what this mistake does: “the output is not rescaled." in verdict.symptom


def test_results_of_refused_calls_are_not_called_right():
    def schedule(step, d_model, warmup):
        if step < 1:
            raise ValueError("steps count from 1")
        return 0.123 * transformer.noam_schedule(step, d_model, warmup) ** 0.9

    verdict = examine("transformer.noam_schedule", schedule, seed=1)
    assert not verdict.passed
    assert "right but for" not in verdict.in_short
    assert "right but for" not in str(verdict)


def test_a_missing_refusal_is_reported_once():
    """One number below 1 is answered, another stops elsewhere: one condition mends both."""

    def schedule(step, d_model, warmup):
        if step == 0:
            return 0.0
        return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)

    verdict = examine("transformer.noam_schedule", schedule, seed=1)
    assert verdict.diagnosis.name == "a step below 1 is not refused"
    assert (verdict.rest, verdict.worth) == ("", 1)


def test_facts_that_do_not_hold_are_no_right_results():
    def only_equal_ones(sequences, max_distance=1, test_fraction=0.2, seed=0):
        """Whole groups of equal sequences, whatever the seed."""
        names, group = np.unique([str(s) for s in sequences], return_inverse=True)
        test = []
        for phrase in np.random.default_rng().permutation(len(names)):
            if len(test) < test_fraction * len(group):
                test += np.flatnonzero(group == phrase).tolist()
        return np.setdiff1d(np.arange(len(group)), test), np.sort(test)

    # Its own luck decides whether it does what a known mistake does in all draws.
    verdict = examine("sequences.split_by_similarity", only_equal_ones, seed=1)
    phrases = "of what is asked this does not hold", "Identical sequences alone are kept together"
    assert any(phrase in verdict.full for phrase in phrases), verdict.full
    assert "every result is right" not in verdict.full


def test_draws_and_suspects_of_a_chapter_are_cached():
    """A class's answers are compared with the same right results, and with the same mistakes."""
    assert max(len(chapter(stem)) for stem in STEMS) * (1 + N_FURTHER_DRAWS) <= MAX_KEPT_DRAWS
    draws = [(e, seed) for e in chapter("mixing") for seed in range(1 + N_FURTHER_DRAWS)]
    for known in (draw, suspects):
        first = [known(*key) for key in draws]
        assert all(known(*key) is expected for key, expected in zip(draws, first, strict=True))
