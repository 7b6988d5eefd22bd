"""Chapter 20: batches against each sequence alone, codes by hand, guesses against distributions."""

import math
import re

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from attncourse.checks import examine
from attncourse.gpt import GPT, GPTConfig, filter_logits
from attncourse.llama import Llama, LlamaConfig
from attncourse.serving import (
    ModelDraft,
    cut_back,
    dequantize,
    generate_batch,
    load_balance_loss,
    lookup_draft,
    pad_left,
    quantize,
    speculative_accept,
    speculative_generate,
    speculative_stream,
    token_probabilities,
    top_k_gate,
    with_layers,
)
from helpers.random_arguments import randomised

N_VOCAB = 29
SEQUENCES = [[3, 1, 4], [1], [5, 9, 2, 6, 5, 3, 5], [0, 0]]
FALSE_ALARM = 1e-6  # how often a right answer fails a test of counts here


def llama(n_vocab: int = N_VOCAB, n_layers: int = 3) -> Llama:
    torch.manual_seed(3)
    config = LlamaConfig(n_vocab, 40, 12, 3, n_kv_heads=1, n_layers=n_layers, d_ff=17, base=100.0)
    return randomised(Llama(config)).eval().requires_grad_(False)


def gpt() -> GPT:
    torch.manual_seed(3)
    return randomised(GPT(GPTConfig(N_VOCAB, 23, 12, n_heads=3, n_layers=3))).eval()


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some_ids(n: int, seed: int = 0, n_vocab: int = N_VOCAB) -> torch.Tensor:
    return torch.randint(n_vocab, (n,), generator=generator(seed))


def counts_fit(counts: np.ndarray, probabilities: np.ndarray) -> bool:
    """Whether counts fit a distribution, by a χ² test with the false-alarm rate of this page."""
    expected = counts.sum() * np.asarray(probabilities, dtype=float)
    assert not counts[expected == 0].any()
    seen = expected > 0
    assert expected[seen].min() >= 5  # else χ² is no good approximation
    distance = ((counts[seen] - expected[seen]) ** 2 / expected[seen]).sum()
    return bool(distance < chi2.isf(FALSE_ALARM, seen.sum() - 1))


# --- batches -------------------------------------------------------------------------------------


def test_a_padded_batch_by_hand():
    ids, positions, mask = pad_left([[5, 6, 7], [0]], pad=0)
    assert ids.tolist() == [[5, 6, 7], [0, 0, 0]]
    assert positions.tolist() == [[0, 1, 2], [0, 0, 0]]
    assert mask[0].tolist() == [[True, False, False], [True, True, False], [True] * 3]
    assert mask[1].sum() == 1
    assert mask[1, 2, 2]
    assert ids.dtype == positions.dtype == torch.int64


@pytest.mark.parametrize("make", [llama, gpt])
def test_a_padded_batch_says_what_each_sequence_says_alone(make):
    model = make()
    ids, positions, mask = pad_left([torch.tensor(row) for row in SEQUENCES], pad=0)
    logits = model(ids, mask=mask, positions=positions)
    for row, sequence in zip(logits, SEQUENCES, strict=True):
        alone = model(torch.tensor(sequence))
        torch.testing.assert_close(row[-len(sequence) :], alone, atol=1e-4, rtol=0)


def test_only_rotary_positions_may_count_padding():
    ids, positions, mask = pad_left(SEQUENCES, pad=0)
    for model, matters in ((llama(), False), (gpt(), True)):
        with_them, without = model(ids, None, mask, positions), model(ids, None, mask)
        differ = (with_them - without)[:, -1].abs().amax(-1)  # of the last tokens
        assert (differ > 0.05).tolist() == [matters, matters, False, matters], differ
    assert (llama()(ids) - llama()(ids, mask=mask)).abs().max() > 0.1  # the mask does


def test_a_batch_writes_what_each_sequence_writes_alone():
    model = llama()
    new = generate_batch(model, SEQUENCES, 9)
    for row, sequence in zip(new, SEQUENCES, strict=True):
        alone = model.generate(torch.tensor(sequence), 9)
        assert row.tolist() == alone[len(sequence) :].tolist()


def test_a_gpt_takes_no_mask_with_a_cache():
    ids, _, mask = pad_left(SEQUENCES, pad=0)
    with pytest.raises(ValueError, match="mask: expected none with a cache"):
        gpt()(ids, [], mask)


def test_the_real_model_reads_a_padded_batch(real_model):
    model, words = real_model
    texts = ["The cat sat on the", "Yes", "One, two, three, four, five, six, seven,"]
    sequences = [words.encode(text) for text in texts]
    ids, positions, mask = pad_left(sequences, pad=0)
    with torch.no_grad():
        logits, _ = model(ids, [], mask, positions)
        for row, sequence in zip(logits, sequences, strict=True):
            torch.testing.assert_close(row[-len(sequence) :], model(sequence), atol=5e-4, rtol=0)


# --- fewer bits ----------------------------------------------------------------------------------


def test_quantized_codes_by_hand():
    x = torch.tensor([[0.0, 2, 1, 3, -5, 1, -1, -3], [0, 0.5, 1.5, 3, 4, 4, 4, 4]])
    codes, scale, minimum = quantize(x, 2, 4)
    assert codes.tolist() == [[0, 2, 1, 3, 0, 3, 2, 1], [0, 0, 2, 3, 0, 0, 0, 0]]
    assert scale.tolist() == [[1, 2], [1, 0]]
    assert minimum.tolist() == [[0, -5], [0, 4]]


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("shape", [(12,), (5, 12), (2, 3, 12)])
def test_dequantized_numbers_are_at_most_half_a_step_off(bits, shape):
    x = torch.randn(*shape, generator=generator(bits), dtype=torch.float64)
    codes, scale, minimum = quantize(x, bits, 4)
    assert codes.dtype == torch.uint8
    assert codes.unflatten(-1, (-1, 4)).amax(-1).eq(2**bits - 1).all()
    assert codes.unflatten(-1, (-1, 4)).amin(-1).eq(0).all()
    away = (dequantize(codes, scale, minimum) - x).abs()
    assert (away <= 0.5001 * scale.repeat_interleave(4, -1)).all()
    again = quantize(dequantize(codes, scale, minimum), bits, 4)
    assert torch.equal(again[0], codes)  # rounding a second time changes nothing


def test_codes_of_a_range_that_float16_hardly_holds_stay_codes():
    """A scale that is rounded to the least number that there is would ask for more than 2^bits."""
    x = torch.tensor([0.0, 1e-5, 2e-5, 2e-5]).half()
    codes, _, _ = quantize(x, 8, 4)
    assert codes.tolist() == sorted(codes.tolist())
    assert codes[-1] == 255


def test_a_tiny_temperature_draws_the_likeliest():
    assert token_probabilities(torch.tensor([1.0, 3, 2]), 1e-310).tolist() == [0, 1, 0]


def test_equal_numbers_are_dequantized_exactly():
    x = torch.full((3, 6), 0.1)
    assert torch.equal(dequantize(*quantize(x, 3, 2)), x)


# --- guess and check -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_ids_are_distributed_as_the_target_says(seed):
    rng = np.random.default_rng(seed)
    k, n_vocab, times = 2, 4, 6000
    q, p = (torch.tensor(rng.dirichlet(np.ones(n_vocab), n)) for n in (k, k + 1))
    q, p = 0.9 * q + 0.1 / n_vocab, 0.9 * p + 0.1 / n_vocab
    draws, counts = generator(seed), np.zeros((k + 1, n_vocab), dtype=int)
    for _ in range(times):
        draft = torch.multinomial(q, 1, generator=draws)[:, 0]
        for place, token in enumerate(speculative_accept(draft, q, p, draws).tolist()):
            counts[place, token] += 1
    assert counts[0].sum() == times
    assert all(counts_fit(counts[place], p[place].numpy()) for place in range(k + 1))
    expected_accepted = (
        torch.minimum(p[:k], q).sum(-1).cumprod(0).numpy() * times
    )  # min(p, q), place by place
    error = 5 * np.sqrt(expected_accepted)
    assert (np.abs(counts[1:].sum(-1) - expected_accepted) < error).all()


def test_certain_probabilities_decide_without_chance():
    one_hot = torch.eye(5)
    draft = torch.tensor([3, 1])
    assert speculative_accept(draft, one_hot[[3, 1]], one_hot[[3, 1, 4]], None).tolist() == [
        3,
        1,
        4,
    ]
    assert speculative_accept(draft, one_hot[[3, 1]], one_hot[[3, 2, 4]], None).tolist() == [3, 2]
    assert speculative_accept(draft[:0], one_hot[:0], one_hot[[2]], None).tolist() == [2]


DRAFTS = {
    "looked up": lambda model: lookup_draft,
    "one layer": lambda model: ModelDraft(with_layers(model, [0])),
    "itself": ModelDraft,
    "nothing": lambda model: lambda ids, k: ids[:0],
    "anything": lambda model: lambda ids, k: some_ids(k, seed=len(ids)),
}


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("k", [0, 1, 4, 11])
def test_at_temperature_0_the_text_is_the_models_own(draft, k):
    model, ids = llama(), some_ids(6)
    alone = model.generate(ids, 30)
    assert speculative_generate(model, ids, 30, DRAFTS[draft](model), k).tolist() == alone.tolist()


def test_a_draft_that_is_right_saves_passes():
    model, ids = llama(), some_ids(6)
    text = model.generate(ids, 30)

    def second_wrong(ids, k):
        guess = text[len(ids) : len(ids) + k].clone()
        guess[1:2] = (guess[1:2] + 1) % N_VOCAB
        return guess

    for draft, each in ((lambda ids, k: ids[:0], 1), (ModelDraft(model), 5), (second_wrong, 2)):
        new = list(speculative_stream(model, ids, 30, draft, k=4))
        assert [len(new_ids) for new_ids in new] == [each] * (30 // each)


class CachedModel:
    """A model that computes what follows each text once; its cache holds what has been read."""

    def __init__(self, model):
        self.model, self.config, self.max_length = model, model.config, model.max_length
        self.known = {}

    def __call__(self, ids, cache):
        text = torch.cat([cache[0][0][:, 0], ids]) if cache else ids
        ends = range(len(text) - len(ids) + 1, len(text) + 1)
        return torch.stack([self.after(text[:end]) for end in ends]), [(text[:, None],) * 2]

    def after(self, text):
        key = tuple(text.tolist())
        if key not in self.known:
            self.known[key] = self.model(text)[-1]
        return self.known[key]


@pytest.mark.parametrize("draft", ["one layer", "looked up"])
def test_two_guessed_tokens_have_the_models_distribution(draft):
    real, ids, times = llama(n_vocab=4), torch.tensor([1, 2, 1]), 1500
    model, rng = CachedModel(real), generator(5)
    short = CachedModel(with_layers(real, [0]))
    guess = ModelDraft(short, 1.3, rng) if draft == "one layer" else lookup_draft
    counts = np.zeros(16, dtype=int)
    for _ in range(times):
        new = speculative_generate(model, ids, 2, guess, 2, temperature=1.3, rng=rng)[3:]
        counts[4 * int(new[0]) + int(new[1])] += 1
    first = token_probabilities(real(ids)[-1], 1.3)
    pairs = [
        first[a] * token_probabilities(real(torch.tensor([*ids, a]))[-1], 1.3) for a in range(4)
    ]
    right = torch.cat(pairs).numpy()
    often = right * times >= 5
    counts, right = (np.append(x[often], x[~often].sum()) for x in (counts, right))
    is_frequent = right * times >= 5
    assert counts_fit(counts[is_frequent], right[is_frequent] / right[is_frequent].sum())


def test_lookup_drafts_what_followed_the_same_ids_before():
    ids = torch.tensor([7, 1, 2, 3, 1, 2, 5, 1, 2])
    assert lookup_draft(ids, 3).tolist() == [5, 1, 2]  # the latest place
    assert lookup_draft(ids, 5).tolist() == [5, 1, 2, 5, 1]  # what was copied is copied on
    assert lookup_draft(ids, 2, n_match=3).tolist() == []
    assert lookup_draft(torch.tensor([4, 4, 4, 4]), 3).tolist() == [4, 4, 4]
    assert lookup_draft(ids[:2], 3).tolist() == lookup_draft(ids[:1], 3).tolist() == []


def test_a_model_draft_gives_its_probabilities_and_forgets():
    model, rng = llama(), generator(1)
    draft = ModelDraft(model, 0.8, rng)
    for ids in (some_ids(6), torch.cat([some_ids(6), some_ids(3, seed=1)]), some_ids(4, seed=2)):
        guess, rows = draft(ids, 3)
        text = torch.cat([ids, guess])
        right = token_probabilities(model(text)[len(ids) - 1 : -1], 0.8)
        torch.testing.assert_close(rows, right, atol=1e-5, rtol=0)
    assert [len(part) for part in draft(ids, 0)] == [0, 0]


def test_a_model_of_some_layers_shares_its_weights():
    model, ids = llama(), some_ids(5)
    short = with_layers(model, [0, 2])
    x = model.tokens(ids)
    for i in (0, 2):
        x = model.blocks[i](x)
    assert torch.equal(short(ids), model.out(model.norm(x)))
    assert len(model.blocks) == 3
    assert short.blocks[1] is model.blocks[2]


def test_a_cache_is_cut_back_to_the_accepted_tokens():
    model, ids = llama(), some_ids(7)
    _, cache = model(ids, [])
    logits, _ = model(ids[4:], cut_back(cache, 4))
    torch.testing.assert_close(logits, model(ids)[4:])


# --- experts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_gate_is_the_softmax_over_the_k_largest(k):
    logits = torch.randn(2, 7, 5, generator=generator(), dtype=torch.float64)
    weights = top_k_gate(logits, k)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 7, dtype=torch.float64))
    assert ((weights > 0).sum(-1) == k).all()
    for row, row_logits in zip(weights.flatten(0, 1), logits.flatten(0, 1), strict=True):
        top = row_logits.topk(k)
        torch.testing.assert_close(row[top.indices], top.values.softmax(-1))


def test_of_equal_logits_the_lower_index_is_chosen():
    assert top_k_gate(torch.tensor([[1.0, 2, 0, 2, 2]]), 2).tolist() == [[0, 0.5, 0, 0.5, 0]]


def test_a_balanced_load_has_a_loss_of_1():
    """Fedus et al. (2022), equations 4 to 6, by a loop; and its largest value, all on one."""
    logits = torch.randn(3, 5, 4, generator=generator(), dtype=torch.float64)
    rows = logits.flatten(0, 1)
    for k in (1, 2):
        f, P = torch.zeros(4).double(), torch.zeros(4).double()
        for row in rows:
            f[row.topk(k).indices] += 1 / (15 * k)
            P += row.softmax(-1) / 15
        torch.testing.assert_close(load_balance_loss(logits, k), 4 * (f * P).sum())
    even = torch.eye(4).repeat(3, 1) * 9
    torch.testing.assert_close(load_balance_loss(even), torch.tensor(1.0))
    torch.testing.assert_close(load_balance_loss(torch.eye(4)[[0] * 8] * 99), torch.tensor(4.0))


def test_the_loss_teaches_a_gate_to_spread_its_tokens():
    logits = torch.tensor([[2.0, 0, 0, 0]] * 8, requires_grad=True)
    load_balance_loss(logits).backward()
    assert (logits.grad[:, 0] > 0).all()
    assert (logits.grad[:, 1:] < 0).all()


# --- refusals ------------------------------------------------------------------------------------

X, ONE = torch.zeros(2, 8), torch.eye(4)
CODES = quantize(torch.arange(8.0), 4, 4)


@pytest.mark.parametrize(
    ("call", "expected", "received"),
    [
        (lambda: pad_left([], 0), "sequences: expected one or more", "got none"),
        (lambda: pad_left([[1], []], 0), "one id or more in each", "in sequence 1"),
        (lambda: pad_left([[1.5]], 0), "whole numbers", "float32"),
        (lambda: pad_left([[1, -2]], 0), "ids from 0 on", "got -2"),
        (lambda: pad_left([[1]], -1), "pad: expected a whole number", "-1"),
        (lambda: pad_left([[[1]]], 0), "one id or more in each", "(1, 1)"),
        (lambda: pad_left(["ab"], 0), "sequences: expected whole numbers in 0", "str"),
        (lambda: pad_left(None, 0), "sequences: expected a list of lists of ids", "None"),
        (lambda: generate_batch(llama(), [[1] * 30, [2]], 11), "at most 40", "30 and 11"),
        (lambda: generate_batch(llama(), [[1], [2]], 1, len), "choose: expected", "got int"),
        (lambda: generate_batch(llama(), [[1]], 1, lambda row: ids_of(29)), "0 to 28", "got 29"),
        (lambda: quantize(X, 1, 4), "bits: expected a whole number from 2 to 8", "got 1"),
        (lambda: quantize(X, 9, 4), "bits: expected a whole number from 2 to 8", "got 9"),
        (lambda: quantize(X, 4, 3), "block: expected a divisor", "got 3"),
        (lambda: quantize(X / 0, 4, 4), "x: expected", "(0, 0)"),
        (lambda: quantize(X - math.inf, 4, 4), "x: expected finite numbers", "-inf at index"),
        (lambda: quantize(torch.tensor([-3e38, 3e38]), 4, 2), "max − min of a block", "inf"),
        (lambda: dequantize(CODES[0], CODES[1], CODES[2][:1]), "codes, scale, minimum", "(1,)"),
        (
            lambda: dequantize(CODES[0] / 2, *CODES[1:]),
            "codes: expected a tensor of whole",
            "float",
        ),
        (lambda: dequantize(-CODES[0].int(), *CODES[1:]), "codes: expected whole numbers", "-15"),
        (lambda: dequantize(CODES[0], CODES[1] / 0, CODES[2]), "scale: expected finite", "inf"),
        (lambda: dequantize(CODES[0], CODES[1], None), "minimum: expected a torch", "NoneType"),
        (lambda: dequantize(CODES[0][:7], *CODES[1:]), "divisor", "got 2"),
        (lambda: speculative_accept(ids_of(1), ONE[:1], ONE[:1], None), "shapes (k,)", "(1, 4)"),
        (lambda: speculative_accept(ids_of(4), ONE[:1], ONE[:2], None), "0 to 3", "got 4"),
        (lambda: speculative_accept(ids_of(1), 2 * ONE[:1], ONE[:2], None), "p_draft", "of 2"),
        (lambda: speculative_accept(ids_of(1), ONE[:1], -ONE[:2], None), "p_target", "of -1"),
        (lambda: speculative_accept(ids_of(1), ONE[:1], ONE[:2] / 0, None), "p_target", "nan"),
        (lambda: speculative_accept([1], ONE[:1], ONE[:2], None), "draft: expected a", "list"),
        (lambda: speculative_accept(ids_of(1), ONE[:1].int(), ONE[:2], None), "p_draft", "int32"),
        (lambda: speculative_accept(ids_of(1), ONE[1:2], [[1]], None), "p_target", "list"),
        (lambda: speculative_accept(ids_of(1), ONE[:1], ONE[:2], None), "drawn from", "id 1"),
        (lambda: speculative_accept(ids_of(1), ONE[1:2], ONE[:2], 0), "rng: expected", "int"),
        (lambda: write(ids_of(), 2), "one token or more", "(0,)"),
        (lambda: write(some_ids(3), 3, lambda ids, k: ids_of(29)), "ids from 0 to 28", "got 29"),
        (lambda: write(some_ids(3), 3, lambda ids, k: ids[None]), "at most 2 ids", "(1, 3)"),
        (lambda: write(some_ids(3), 3, lambda ids, k: None), "draft: expected a", "NoneType"),
        (lambda: write(some_ids(38), 3), "at most 40 tokens", "38 and 3"),
        (lambda: write(some_ids(3), 3, k=40), "k: expected a whole number from 0 to 39", "40"),
        (lambda: write(some_ids(3), 3, k=-1), "k: expected a whole number", "-1"),
        (lambda: write(some_ids(3), 3, lambda ids, k: some_ids(k + 1)), "at most 2 ids", "got 3"),
        (lambda: write(some_ids(3), 3, temperature=-1), "temperature", "-1"),
        (lambda: ModelDraft(llama(), math.nan), "temperature: expected a number", "nan"),
        (lambda: token_probabilities(X / 0), "the largest of logits: expected finite", "nan"),
        (lambda: token_probabilities(X - math.inf, 0), "the largest of logits", "-inf"),
        (lambda: cut_back([(X, X)], 3), "n: expected a whole number from 0 to 2", "got 3"),
        (lambda: lookup_draft(some_ids(9), -1), "k: expected a whole number", "got -1"),
        (lambda: lookup_draft(some_ids(9), 2, n_match=0), "n_match", "got 0"),
        (lambda: with_layers(llama(), [3]), "layers: expected a whole number from 0 to 2", "3"),
        (lambda: with_layers(llama(), []), "the number of layers", "got 0"),
        (lambda: top_k_gate(X, 0), "k: expected a whole number from 1 to 8", "got 0"),
        (lambda: top_k_gate(X, 9), "k: expected a whole number from 1 to 8", "got 9"),
        (lambda: load_balance_loss(X, 9), "k: expected a whole number from 1 to 8", "got 9"),
        (lambda: top_k_gate(X / 0, 2), "logits: expected finite", "nan"),
        (lambda: load_balance_loss(X - math.inf, 2), "logits: expected finite", "-inf"),
    ],
)
def test_bad_input_is_refused(call, expected, received):
    with pytest.raises(ValueError, match=re.escape(expected)) as refusal:
        call()
    assert received in str(refusal.value)


def ids_of(*ids: int) -> torch.Tensor:
    return torch.tensor(ids, dtype=torch.int64)


def write(ids, n_new, draft=lookup_draft, **options):
    return speculative_generate(llama(), ids, n_new, draft, **options)


# --- other right answers -------------------------------------------------------------------------


def pad_by_loops(sequences, pad):
    b, n = len(sequences), max(len(row) for row in sequences)
    ids = torch.full((b, n), pad)
    positions = torch.zeros(b, n, dtype=torch.int64)
    mask = torch.zeros(b, n, n, dtype=torch.bool)
    for i, row in enumerate(sequences):
        start = n - len(row)
        for j, token in enumerate(row):
            ids[i, start + j], positions[i, start + j] = token, j
            mask[i, start + j, start : start + j + 1] = True
    return ids, positions, mask


def pad_by_cumsum(sequences, pad):
    n = max(map(len, sequences))
    real = torch.tensor([[0] * (n - len(row)) + [1] * len(row) for row in sequences])
    ids = torch.tensor([[pad] * (n - len(row)) + row for row in sequences])
    positions = (real.cumsum(-1) - 1).masked_fill(real == 0, 0)
    return ids, positions, torch.tril(real[:, None].expand(-1, n, n)) > 0


def pad_by_library(sequences, pad):
    turned = [torch.tensor(row[::-1]) for row in sequences]
    ids = torch.nn.utils.rnn.pad_sequence(turned, batch_first=True, padding_value=pad).flip(-1)
    n = ids.shape[1]
    starts = torch.tensor([n - len(row) for row in sequences])[:, None]
    places = torch.arange(n)
    allowed = (places[:, None] >= places) & (places >= starts[..., None])
    return ids, torch.relu(places - starts), allowed


def pad_by_numpy(sequences, pad):
    n = max(map(len, sequences))
    ids, start = np.full((len(sequences), n), pad), [n - len(row) for row in sequences]
    for row, first, sequence in zip(ids, start, sequences, strict=True):
        row[first:] = sequence
    positions = np.maximum(np.arange(n) - np.array(start)[:, None], 0)
    mask = [np.tri(n, dtype=bool) & (np.arange(n) >= first) for first in start]
    return tuple(map(torch.from_numpy, (ids, positions, np.array(mask))))


def sizes_fit(x, bits, block):
    if bits not in range(2, 9) or x.shape[-1] % block:
        raise ValueError("no such bits or block")


def quantize_by_loops(x, bits, block):
    sizes_fit(x, bits, block)
    codes, scales, least = [], [], []
    for part in x.reshape(-1, block):
        low, high = part.min(), part.max()
        scale = (high - low) / (2**bits - 1)
        codes.append(torch.zeros(block) if scale == 0 else torch.round((part - low) / scale))
        scales.append(scale)
        least.append(low)
    shape = (*x.shape[:-1], x.shape[-1] // block)
    codes_of_x = torch.stack(codes).reshape(x.shape).long()
    return codes_of_x, torch.stack(scales).reshape(shape), torch.stack(least).reshape(shape)


def quantize_by_sorting(x, bits, block):
    sizes_fit(x, bits, block)
    parts = x.reshape(*x.shape[:-1], -1, block)
    ordered = parts.sort(-1).values
    low, wide = ordered[..., 0], ordered[..., -1] - ordered[..., 0]
    codes = (parts - low.unsqueeze(-1)) * (2**bits - 1) / wide.unsqueeze(-1)
    return codes.nan_to_num(0).round().reshape(x.shape), wide / (2**bits - 1), low


def quantize_by_chunks(x, bits, block):
    sizes_fit(x, bits, block)
    codes, scales, least = [], [], []
    for part in x.split(block, dim=-1):
        low, high = part.amin(-1, keepdim=True), part.amax(-1, keepdim=True)
        scale = (high - low) / (2**bits - 1)
        by = torch.where(scale == 0, torch.ones_like(scale), scale)
        codes.append(((part - low) / by).round().int())
        scales.append(scale)
        least.append(low)
    return tuple(torch.cat(parts, -1) for parts in (codes, scales, least))


def quantize_in_numpy(x, bits, block):
    sizes_fit(x, bits, block)
    parts = x.numpy().reshape(*x.shape[:-1], -1, block)
    low, high = parts.min(-1), parts.max(-1)
    scale = (high - low) / np.array(2**bits - 1, dtype=parts.dtype)
    with np.errstate(all="ignore"):
        codes = np.rint((parts - low[..., None]) / scale[..., None])
    codes = np.where(scale[..., None] > 0, codes, 0).reshape(x.shape)
    return tuple(
        torch.from_numpy(np.array(array)) for array in (codes.astype(np.int16), scale, low)
    )


def accept_vectorised(draft, p_draft, p_target, rng):
    k = len(draft)
    each = torch.arange(k)
    u = torch.rand(k, generator=rng, dtype=p_target.dtype)
    passed = u * p_draft[each, draft] < p_target[each, draft]
    n_accepted = int(passed.long().cumprod(0).sum())
    weights = p_target[n_accepted]
    if n_accepted < k:
        weights = torch.relu(weights - p_draft[n_accepted])
    return torch.cat([draft[:n_accepted], torch.multinomial(weights, 1, generator=rng)])


def accept_by_running_sums(draft, p_draft, p_target, rng):
    def draw(weights):
        sums = (weights / weights.sum()).cumsum(0)
        u = torch.rand(1, generator=rng, dtype=weights.dtype)
        return torch.searchsorted(sums, u, right=True).clamp(max=len(weights) - 1)

    for i, token in enumerate(draft):
        ratio = float(p_target[i, token] / p_draft[i, token])
        if float(torch.rand(1, generator=rng)) > min(1.0, ratio) or ratio == 0:
            return torch.cat([draft[:i], draw((p_target[i] - p_draft[i]).clamp_min(0))])
    return torch.cat([draft, draw(p_target[len(draft)])])


def accept_by_races(draft, p_draft, p_target, rng):
    """The first of exponential clocks rings; ids are gathered in a list."""

    def draw(weights):
        waits = torch.empty_like(weights).exponential_(generator=rng) / weights
        return int(waits.nan_to_num(nan=math.inf).argmin())

    ids = []
    for q, p, token in zip(p_draft, p_target, draft.tolist(), strict=False):
        if torch.bernoulli((p[token] / q[token]).clamp(max=1), generator=rng) == 0:
            return torch.tensor([*ids, draw(torch.maximum(p - q, torch.zeros_like(p)))])
        ids.append(token)
    return torch.tensor([*ids, draw(p_target[-1])])


def accept_in_numpy(draft, p_draft, p_target, rng):
    seed = int(torch.randint(2**31, (1,), generator=rng))
    rng, q, p = np.random.default_rng(seed), p_draft.double().numpy(), p_target.double().numpy()
    n_accepted = 0
    while n_accepted < len(draft):
        token = int(draft[n_accepted])
        if rng.random() >= p[n_accepted, token] / q[n_accepted, token]:
            break
        n_accepted += 1
    residual = (
        p[n_accepted]
        if n_accepted == len(draft)
        else np.clip(p[n_accepted] - q[n_accepted], 0, None)
    )
    new = rng.choice(len(residual), p=residual / residual.sum())
    return torch.tensor([*draft[:n_accepted].tolist(), new])


def k_fits(logits, k):
    if k < 1 or k > logits.shape[-1]:
        raise ValueError("no such k")


def gate_by_filter(logits, k):
    k_fits(logits, k)
    return torch.softmax(filter_logits(logits, top_k=k), dim=-1)


def gate_by_scatter(logits, k):
    k_fits(logits, k)
    values, order = logits.sort(dim=-1, descending=True, stable=True)
    weights = torch.softmax(values[..., :k], dim=-1)
    return torch.zeros_like(logits).scatter(-1, order[..., :k], weights)


def gate_renormalised(logits, k):
    k_fits(logits, k)
    shares = logits.softmax(-1)
    place = logits.argsort(dim=-1, descending=True, stable=True).argsort(-1)
    chosen = shares * (place < k)
    return chosen / chosen.sum(-1, keepdim=True)


def gate_by_rows(logits, k):
    k_fits(logits, k)
    rows = []
    for row in logits.reshape(-1, logits.shape[-1]):
        best = sorted(range(len(row)), key=lambda i, row=row: (-float(row[i]), i))[:k]
        weights = (row[best] - row[best].max()).exp()
        rows.append(torch.zeros_like(row).index_put((torch.tensor(best),), weights / weights.sum()))
    return torch.stack(rows).reshape(logits.shape)


def gate_by_counting(logits, k):
    """An expert is chosen where fewer than k beat it."""
    k_fits(logits, k)
    i = torch.arange(logits.shape[-1])
    own_logits, other_logits = logits.unsqueeze(-1), logits.unsqueeze(-2)
    beaten = (other_logits > own_logits) | ((other_logits == own_logits) & (i < i[:, None]))
    return logits.where(beaten.sum(-1) < k, -math.inf).softmax(-1)


RIGHT = {
    "serving.pad_left": [pad_by_loops, pad_by_cumsum, pad_by_library, pad_by_numpy],
    "serving.quantize": [
        quantize_by_loops,
        quantize_by_sorting,
        quantize_by_chunks,
        quantize_in_numpy,
    ],
    "serving.speculative_accept": [
        accept_vectorised,
        accept_by_running_sums,
        accept_by_races,
        accept_in_numpy,
    ],
    "serving.top_k_gate": [
        gate_by_filter,
        gate_by_scatter,
        gate_renormalised,
        gate_by_rows,
        gate_by_counting,
    ],
}


@pytest.mark.parametrize(
    ("target", "answer"),
    [(target, answer) for target, answers in RIGHT.items() for answer in answers],
)
@pytest.mark.parametrize("seed", range(3))
def test_other_right_answers_pass(target, answer, seed):
    verdict = examine(target, answer, seed=seed)
    assert verdict.passed, str(verdict)


def test_nan_codes_are_not_reported_as_a_wrong_dtype():
    """0/0 in a block of equal numbers: any dtype would do for the codes, NaN does not."""

    def without_a_guard(x, bits, block):
        if not 2 <= bits <= 8 or x.shape[-1] % block:
            raise ValueError
        blocks = x.unflatten(-1, (-1, block))
        low = blocks.amin(-1)
        scale = (blocks.amax(-1) - low) / (2**bits - 1)
        codes = ((blocks - low[..., None]) / scale[..., None]).round().flatten(-2)
        return codes, scale, low

    verdict = examine("serving.quantize", without_a_guard, seed=1)
    equal = next(c for c in verdict.criteria if c.name == "a block of equal numbers")
    assert equal.reason.startswith("codes: returned NaN")
    assert "dtype" not in equal.reason
