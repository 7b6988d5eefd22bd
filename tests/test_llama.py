"""Chapter 18: the model against transformers', its parts against PyTorch and loops."""

import math
import re
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attncourse import gpt
from attncourse.kqv import scaled_dot_product_attention
from attncourse.llama import (
    Llama,
    LlamaBlock,
    LlamaConfig,
    RMSNorm,
    RotaryAttention,
    SwiGLU,
    merge_pairs,
    pairs_from_halves,
    rms_norm,
)
from attncourse.multihead import merge_heads, split_heads
from attncourse.positions import apply_rope
from helpers.random_llama import llama, shaken, some_ids, their_config, their_llama
from helpers.refusals import refused

KV_HEADS = (1, 3, 9)


# --- against transformers -------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("n_kv_heads", KV_HEADS)
def test_logits_are_those_of_transformers(transformers, n_kv_heads, tied):
    library_model = their_llama(
        transformers, num_key_value_heads=n_kv_heads, tie_word_embeddings=tied, rms_norm_eps=3e-3
    )
    model, ids = Llama.from_huggingface(library_model), some_ids(2, 17)
    with torch.no_grad():
        right = library_model(ids).logits
        assert right.std() > 0.5
        torch.testing.assert_close(model(ids), right, atol=1e-5, rtol=1e-5)
    assert sum(p.numel() for p in model.parameters()) == library_model.num_parameters()


@pytest.mark.parametrize("n_kv_heads", KV_HEADS)
def test_a_permuted_block_is_a_decoder_layer_of_transformers(transformers, n_kv_heads):
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    config = their_config(transformers, num_key_value_heads=n_kv_heads, rope_theta=100.0)
    library_layer = shaken(LlamaDecoderLayer(config, 0), 0.2)
    block = LlamaBlock(54, 9, n_kv_heads, 29, config.rope_parameters["rope_theta"], 1e-6)
    self, layer = library_layer.self_attn, library_layer.mlp
    block.load_state_dict(
        {
            "attention.W_q.weight": pairs_from_halves(self.q_proj.weight, 9),
            "attention.W_k.weight": pairs_from_halves(self.k_proj.weight, n_kv_heads),
            "attention.W_v.weight": self.v_proj.weight,
            "attention.W_o.weight": self.o_proj.weight,
            "feed_forward.W_gate.weight": layer.gate_proj.weight,
            "feed_forward.W_up.weight": layer.up_proj.weight,
            "feed_forward.W_down.weight": layer.down_proj.weight,
            "norm_1.gain": library_layer.input_layernorm.weight,
            "norm_2.gain": library_layer.post_attention_layernorm.weight,
        }
    )
    x, places = torch.randn(2, 13, 54), torch.arange(3, 16)
    forbidden = torch.full((13, 13), -math.inf).triu(1)[None, None]
    with torch.no_grad():
        turns = LlamaRotaryEmbedding(config)(x, places[None])
        right = library_layer(x, attention_mask=forbidden, position_embeddings=turns)
        right = right[0] if isinstance(right, tuple) else right
        torch.testing.assert_close(block(x, positions=places), right, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hidden_act": "gelu"}, "expected hidden_act = silu, got gelu"),
        ({"attention_bias": True}, "expected attention_bias = False, got True"),
        ({"head_dim": 8}, "expected head_dim = 6, got 8"),
        (
            {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "rope_theta": 100.0}},
            "expected rope_type = default, got linear",
        ),
    ],
)
def test_settings_that_a_llama_lacks_are_refused(transformers, changed, message):
    with pytest.raises(ValueError, match=message):
        Llama.from_huggingface(their_llama(transformers, **changed))


def test_another_model_is_refused(transformers):
    with pytest.raises(ValueError, match="expected a LlamaForCausalLM, got Linear"):
        Llama.from_huggingface(nn.Linear(2, 2))


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(7,), (1, 5), (2, 3, 11)])
@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_rms_norm_is_that_of_torch(shape, eps, dtype):
    x, gain = torch.randn(shape).to(dtype), torch.randn(shape[-1]).to(dtype)
    right = F.rms_norm(x.double(), shape[-1:], gain.double(), eps)
    computed = rms_norm(x, gain, eps)
    assert computed.dtype == dtype
    torch.testing.assert_close(computed, right.to(dtype))
    torch.testing.assert_close(rms_norm(1e-3 * x), F.rms_norm(1e-3 * x, shape[-1:], eps=1e-5))


def test_rms_norm_does_not_subtract_the_mean():
    x = torch.full((3, 5), 2.0)
    torch.testing.assert_close(rms_norm(x, eps=1e-12), torch.ones(3, 5))


def test_swiglu_by_a_loop():
    layer, x = shaken(SwiGLU(5, 7)), torch.randn(2, 3, 5)
    gate, up, down = (w.weight.detach() for w in (layer.W_gate, layer.W_up, layer.W_down))
    for row, output in zip(x.flatten(0, 1), layer(x).flatten(0, 1), strict=True):
        hidden = [
            float((gate[j] @ row) / (1 + torch.exp(-gate[j] @ row)) * (up[j] @ row))
            for j in range(7)
        ]
        torch.testing.assert_close(output, down @ torch.tensor(hidden))
    assert {name for name, _ in layer.named_parameters()} == {
        "W_gate.weight", "W_up.weight", "W_down.weight",
    }  # fmt: skip


def turned_in_halves(x, places, base):
    """Feature i with i + d/2, as complex numbers."""
    half = x.shape[-1] // 2
    angles = places[:, None] * base ** (-torch.arange(half).double() / half)
    z = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([z.real, z.imag], -1)


@pytest.mark.parametrize(("n_heads", "d_head"), [(1, 2), (3, 10), (5, 4)])
def test_rows_for_pairs_give_the_scores_of_rows_for_halves(n_heads, d_head):
    W_q, W_k = torch.randn(2, n_heads * d_head, 7, dtype=torch.float64)
    x, places = torch.randn(2, 11, 7, dtype=torch.float64), torch.arange(11)

    def scores(weights, turn):
        query, key = (turn(split_heads(x @ w.mT, n_heads), places, 50.0) for w in weights)
        return query @ key.mT

    pairs = [pairs_from_halves(w, n_heads) for w in (W_q, W_k)]
    torch.testing.assert_close(scores(pairs, apply_rope), scores((W_q, W_k), turned_in_halves))
    assert torch.equal(pairs[0].sort(0).values, W_q.sort(0).values)


def test_rows_of_one_head_by_hand():
    rows = torch.arange(6.0)[:, None]
    assert pairs_from_halves(rows, 1).flatten().tolist() == [0, 3, 1, 4, 2, 5]
    rows = torch.arange(8.0)[:, None]
    assert pairs_from_halves(rows, 2).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize(
    ("rows", "n_heads", "message"),
    [(10, 3, "expected a divisor of the rows of weight, 10, got 3"), (9, 3, "even number.*got 3")],
)
def test_rows_that_heads_do_not_divide_are_refused(rows, n_heads, message):
    with pytest.raises(ValueError, match=message):
        pairs_from_halves(torch.randn(rows, 4), n_heads)


def attention_by_loops(attention, x, mask, places):
    """One sequence, head by head, query by query."""
    d, group = attention.d_head, attention.n_heads // attention.n_kv_heads
    query, key, value = (x @ w.weight.T for w in (attention.W_q, attention.W_k, attention.W_v))
    out = torch.zeros(len(x), attention.n_heads * d, dtype=x.dtype)
    for head in range(attention.n_heads):
        columns = slice(head // group * d, (head // group + 1) * d)
        q = apply_rope(query[:, head * d : (head + 1) * d], places, attention.base)
        k, v = apply_rope(key[:, columns], places, attention.base), value[:, columns]
        for i in range(len(x)):
            keys = mask[i].nonzero().flatten().tolist()
            if keys:
                shares = torch.stack([q[i] @ k[j] / d**0.5 for j in keys]).softmax(0)
                out[i, head * d : (head + 1) * d] = shares @ v[keys]
    return out @ attention.W_o.weight.T


@pytest.mark.parametrize("n_kv_heads", KV_HEADS)
def test_attention_by_loops_with_rows_that_have_no_key(n_kv_heads):
    attention = shaken(RotaryAttention(54, 9, n_kv_heads, 100.0)).double()
    x, mask = torch.randn(2, 7, 54, dtype=torch.float64), torch.rand(2, 7, 7) > 0.4
    mask[:, :2] = False  # as padding to the left makes them
    places = torch.tensor([5, 0, 2, 2, 11, 3, 90])
    right = torch.stack(
        [
            attention_by_loops(attention, *sequence_and_mask, places)
            for sequence_and_mask in zip(x, mask, strict=True)
        ]
    )
    torch.testing.assert_close(attention(x, mask, places), right)
    causal = torch.ones(7, 7, dtype=torch.bool).tril()
    right = attention_by_loops(attention, x[0], causal, torch.arange(7))
    torch.testing.assert_close(attention(x[0]), right)


def test_weights_are_the_maps_that_forward_mixes_with():
    attention, x = shaken(RotaryAttention(54, 9, 3, 100.0)), torch.randn(2, 7, 54)
    mask, places = torch.rand(2, 9, 7, 7) > 0.3, torch.arange(4, 11)
    for options in ((None, None), (mask, places)):
        maps = attention.weights(x, *options)
        assert maps.shape == (2, 9, 7, 7)
        value = split_heads(attention.W_v(x), 3).repeat_interleave(3, -3)
        blended = attention.W_o(merge_heads(maps @ value))
        torch.testing.assert_close(attention(x, *options), blended)
    assert (maps[~mask] == 0).all()


def test_a_block_is_two_branches_that_add():
    block, x = shaken(LlamaBlock(54, 9, 3, 29)), torch.randn(2, 7, 54)
    y = x + block.attention(block.norm_1(x))
    torch.testing.assert_close(block(x), y + block.feed_forward(block.norm_2(y)))
    assert isinstance(block.norm_1, RMSNorm)
    assert LlamaBlock(54, 9, 3, 29).attention.base == 10000.0


def test_only_distances_count():
    """Positions further on change nothing: scores of turned pairs depend on distances."""
    block, x = shaken(LlamaBlock(54, 9, 3, 29)).double(), torch.randn(7, 54, dtype=torch.float64)
    torch.testing.assert_close(block(x, positions=torch.arange(100, 107)), block(x))
    stretched = block(x, positions=torch.arange(0, 14, 2))
    assert (stretched - block(x)).abs().max() > 1e-2


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((54, 7, 7, 29), "n_heads: expected a divisor of d_model, 54, got 7"),
        ((54, 9, 2, 29), "n_kv_heads: expected a divisor of n_heads, 9, got 2"),
        ((45, 9, 3, 29), "d_head: expected an even number.*got 5"),
    ],
)
def test_heads_that_do_not_divide_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        LlamaBlock(*sizes)


# --- the model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_kv_heads", KV_HEADS)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_a_cache_changes_nothing(n_kv_heads, batch):
    model, ids = llama(n_kv_heads=n_kv_heads), some_ids(*batch, 19)
    pieces, cache = [], []
    with torch.no_grad():
        for piece in ids.split([5, 1, 1, 7, 5], dim=-1):
            logits, cache = model(piece, cache)
            pieces.append(logits)
        torch.testing.assert_close(torch.cat(pieces, -2), model(ids), atol=1e-5, rtol=1e-5)
    keys, values = cache[-1]
    assert keys.shape == values.shape == (*batch, n_kv_heads, 19, 6)  # not one for each query head


def test_a_mask_holds_with_a_cache_too():
    """A text with padding before it says what it says alone."""
    model, ids = llama(), some_ids(11)
    padded = torch.cat([torch.zeros(3, dtype=torch.int64), ids])
    mask = torch.ones(14, 14, dtype=torch.bool).tril()
    mask[:, :3] = False
    with torch.no_grad():
        right = model(ids)
        torch.testing.assert_close(model(padded, mask=mask)[3:], right, atol=1e-5, rtol=1e-5)
        first, cache = model(padded[:8], [], mask[:8, :8])
        rest, _ = model(padded[8:], cache, mask[8:])
    torch.testing.assert_close(torch.cat([first, rest])[3:], right, atol=1e-5, rtol=1e-5)


def test_hooks_see_every_block():
    model, seen = llama(), []
    for block in model.blocks:
        block.register_forward_hook(lambda block, inputs, x: seen.append(x.shape))
    model(some_ids(2, 5))
    assert seen == [(2, 5, 54)] * 2


def test_generate_continues_as_in_chapter_13():
    model, ids = llama(), some_ids(3, 5)
    right = gpt.generate(model, ids, 12)
    assert torch.equal(model.generate(ids, 12), right)
    assert len(right.unique()) > 5
    assert torch.equal(torch.cat([ids, *model.stream(ids, 12)], -1), right)
    least = model.generate(ids, 3, lambda logits: logits.argmin(-1))
    assert torch.equal(least, gpt.generate(model, ids, 3, lambda logits: logits.argmin(-1)))
    assert torch.equal(model.generate(ids, 0), ids)
    assert not model.generate(ids, 1).requires_grad


def test_generation_stops_once_every_sequence_has_the_last_id():
    model, ids = llama(), some_ids(5)
    written = model.generate(ids, 12)[5:].tolist()
    stop = written[6]
    assert model.generate(ids, 12, stop=stop)[5:].tolist() == written[: written.index(stop) + 1]
    two = some_ids(2, 5)
    both = model.generate(two, 12)
    first = int(both[0, 5])
    if first not in both[1, 5:]:
        assert torch.equal(model.generate(two, 12, stop=first), both)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.tensor([[4, 61, 2]]), r"ids from 0 to 60, got 61 at index \(0, 1\)"),
        (torch.tensor([-1]), r"ids from 0 to 60, got -1 at index \(0,\)"),
        (torch.zeros(98, dtype=torch.int64), "at most 97 tokens, got 98"),
        (torch.zeros(3), "whole numbers, got dtype torch.float32"),
        (torch.zeros(0, dtype=torch.int64), "at least one entry"),
    ],
)
def test_ids_that_the_model_cannot_read_are_refused(ids, message):
    with pytest.raises(ValueError, match=message):
        llama()(ids)


X, PAIR = torch.zeros(4, 12), (torch.zeros(1, 5, 4),) * 2
SMALL_SIZES = {"n_vocab": 11, "max_length": 9, "d_model": 12, "n_heads": 3, "n_kv_heads": 1}


def block() -> LlamaBlock:
    return LlamaBlock(12, 3, 1, 17)


def block_of_sizes(**sizes) -> LlamaConfig:
    return LlamaConfig(**SMALL_SIZES | {"n_layers": 2, "d_ff": 7} | sizes)


def small_llama() -> Llama:
    return Llama(block_of_sizes()).eval()


test_what_a_llama_cannot_work_with_is_refused = refused(
    [
        (lambda: merge_pairs([1, 2], {}), "symbols: expected strings", "got 1"),
        (lambda: merge_pairs("ab", [("a", "b")]), "ranks: expected a mapping", "list"),
        (
            lambda: block_of_sizes(n_layers=0),
            "n_layers: expected a whole number of at least 1",
            "0",
        ),
        (lambda: block_of_sizes(max_length=2.5), "max_length: expected a whole number", "2.5"),
        (lambda: block_of_sizes(base=math.nan), "base: expected a finite number above 0", "nan"),
        (lambda: block()(X, positions=[0, 1, 2, 3]), "positions: expected a tensor", "list"),
        (lambda: block()(X, cache=3), "cache: expected a pair of tensors", "3"),
        (lambda: block()(X, cache=(X, X[:3])), "as many values as keys", "3 and 4"),
        (lambda: small_llama()(torch.tensor([1]), [PAIR]), "for each of 2 blocks", "got 1"),
        (lambda: small_llama()(torch.tensor([1]), [(), ()]), "a pair of tensors", r"\(\)"),
        (
            lambda: small_llama()(torch.tensor([1]), [PAIR, (torch.zeros(1, 6, 4),) * 2]),
            "as many tokens in each block",
            "5, 6",
        ),
        (
            lambda: small_llama().generate(torch.tensor([1]), 2, stop=11),
            "stop: .* from 0 to 10",
            "11",
        ),
        (
            lambda: small_llama().generate(torch.tensor([1]), 1, lambda row: torch.tensor(11)),
            "ids from 0 to 10",
            "got 11",
        ),
        (
            lambda: small_llama().generate(torch.tensor([1]), 1, len),
            "choose: expected .* id",
            "int",
        ),
    ]
)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_ids_are_whole_numbers_of_any_width(dtype):
    model, ids = small_llama(), torch.tensor([1, 7, 3])
    assert torch.equal(model(ids.to(dtype)), model(ids))


def test_prompts_that_cannot_be_continued_are_refused():
    model = llama()
    with pytest.raises(ValueError, match="expected one token or more to go on from"):
        model.generate(torch.zeros(0, dtype=torch.int64), 3)
    with pytest.raises(ValueError, match="at most 97 tokens in all, got 90 and 8 new ones"):
        model.generate(some_ids(90), 8)
    assert model.generate(some_ids(90), 7).shape == (97,)
    _, cache = model(some_ids(90), [])
    with pytest.raises(ValueError, match="at most 7 tokens, got 8"):
        model(some_ids(8), cache)


def test_smollm2s_parameters_are_the_sum_of_its_parts():
    config = LlamaConfig(49152, 8192, 576, 9, 3, 30, 1536, 1e5)
    with torch.device("meta"):
        model = Llama(config)
    block = 2 * 576 * 576 + 2 * 576 * 192 + 3 * 576 * 1536 + 2 * 576
    total = 49152 * 576 + 30 * block + 576
    assert sum(p.numel() for p in model.parameters()) == total == 134_515_008


# --- pieces of words ------------------------------------------------------------------------------


def test_pairs_are_joined_by_rank_and_not_from_left_to_right():
    ranks = {("b", "c"): 0, ("a", "b"): 1, ("bc", "d"): 2}
    assert merge_pairs(list("abcd"), ranks) == ["a", "bcd"]
    assert merge_pairs(list("abab"), ranks) == ["ab", "ab"]
    assert merge_pairs(list("aaa"), {("a", "a"): 0}) == ["aa", "a"]
    assert merge_pairs([], ranks) == []
    symbols = list("abc")
    assert merge_pairs(symbols, {}) == symbols
    assert symbols == ["a", "b", "c"]


def test_with_one_head_and_no_rotation_it_is_chapter_5():
    """One head, nothing turned: what is left is chapter 5."""
    attention, x = shaken(RotaryAttention(6, 1, 1, 100.0)), torch.randn(5, 6)
    views = (w(x) for w in (attention.W_q, attention.W_k, attention.W_v))
    right = attention.W_o(scaled_dot_product_attention(*views, torch.ones(5, 5).tril() > 0))
    torch.testing.assert_close(attention(x, positions=torch.zeros(5)), right)


# --- right answers in other styles -----------------------------------------------------------


def merge_by_ranks(symbols, ranks):
    """Every merge once, in the order of ranks: a pair comes after those that it is made of."""
    symbols = [*symbols]
    for pair in sorted(ranks, key=ranks.get):
        i = 0
        while i + 1 < len(symbols):
            if (symbols[i], symbols[i + 1]) == pair:
                symbols[i : i + 2] = ["".join(pair)]
            i += 1
    return symbols


def merge_one_by_one(symbols, ranks):
    """The leftmost place of the lowest pair, one place at a time."""
    symbols = list(symbols)
    while True:
        found = [(ranks[p], i) for i, p in enumerate(pairwise(symbols)) if p in ranks]
        if not found:
            return symbols
        _, i = min(found)
        symbols = [*symbols[:i], symbols[i] + symbols[i + 1], *symbols[i + 2 :]]


def merge_in_a_call(symbols, ranks):
    """By recursion, with infinity for a pair without a rank."""
    pairs = list(pairwise(symbols))
    lowest = min(pairs, key=lambda pair: ranks.get(pair, float("inf")), default=None)
    if lowest is None or lowest not in ranks:
        return list(symbols)
    out = []
    rest = list(symbols)
    while rest:
        take = 2 if tuple(rest[:2]) == lowest else 1
        out.append("".join(rest[:take]))
        rest = rest[take:]
    return merge_in_a_call(out, ranks)


def merge_by_text(symbols, ranks):
    """On a text in which a sign stands between symbols, by a regular expression."""
    text = "\n".join(["", *symbols, ""])
    while True:
        known = {p for p in pairwise(text.split("\n")[1:-1]) if p in ranks}
        if not known:
            return text.split("\n")[1:-1]
        a, b = min(known, key=ranks.get)
        text = re.sub(f"\n{re.escape(a)}\n{re.escape(b)}(?=\n)", f"\n{a}{b}", text)


def rms_by_library_parts(x, gain=None, eps=1e-5):
    out = x * torch.rsqrt(torch.mean(x**2, dim=-1, keepdim=True) + eps)
    return out * (1 if gain is None else gain)


def rms_by_norm(x, gain=None, eps=1e-5):
    d = x.shape[-1]
    size = (x.norm(dim=-1, keepdim=True) ** 2 / d + eps) ** 0.5
    return x / size if gain is None else x / size * gain


def rms_by_loops(x, gain=None, eps=1e-5):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        row = row / torch.sqrt(sum(number**2 for number in row) / len(row) + eps)
        rows.append(row if gain is None else row * gain)
    return torch.stack(rows).reshape(x.shape)


def rms_by_einsum(x, gain=None, eps=1e-5):
    d = x.size(-1)
    size = (torch.einsum("...d,...d->...", x, x) / d + eps).sqrt()
    gain = torch.ones(d, dtype=x.dtype) if gain is None else gain
    return torch.einsum("...d,...,d->...d", x, 1 / size, gain)


class GatedByHand(nn.Module):
    """The SiLU by its formula, the products by the weights."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)

    def forward(self, x):
        gate = x @ self.W_gate.weight.mT
        return (gate * torch.sigmoid(gate) * (x @ self.W_up.weight.mT)) @ self.W_down.weight.mT


class GatedInOne(GatedByHand):
    """Both branches in one product, as fast code has them."""

    def forward(self, x):
        both = F.linear(x, torch.cat([self.W_gate.weight, self.W_up.weight]))
        gate, up = both.chunk(2, dim=-1)
        return self.W_down(F.silu(gate).mul(up))


class GatedToken(GatedByHand):
    """Token by token; the activation is a module."""

    def forward(self, x):
        bend = nn.SiLU()
        rows = [self.W_down(self.W_up(r) * bend(self.W_gate(r))) for r in x.flatten(0, -2)]
        return torch.stack(rows).reshape(x.shape)


class GatedByUnits(GatedByHand):
    """One hidden unit after the other."""

    def forward(self, x):
        out = torch.zeros_like(x)
        for j in range(self.W_gate.out_features):
            gate, up = (x * self.W_gate.weight[j]).sum(-1), (x * self.W_up.weight[j]).sum(-1)
            out = out + (F.silu(gate) * up).unsqueeze(-1) * self.W_down.weight[:, j]
        return out


def refuse(rows, n_heads):
    if rows % n_heads or (rows // n_heads) % 2:
        raise ValueError("heads do not divide")


def pairs_by_index(weight, n_heads):
    refuse(len(weight), n_heads)
    d = len(weight) // n_heads
    order = [h * d + j for h in range(n_heads) for i in range(d // 2) for j in (i, i + d // 2)]
    return weight[torch.tensor(order)]


def pairs_by_stack(weight, n_heads):
    refuse(weight.size(0), n_heads)
    out = []
    for head in weight.chunk(n_heads):
        first, second = head.chunk(2)
        out.append(torch.stack([first, second], dim=1).flatten(0, 1))
    return torch.cat(out)


def pairs_by_slices(weight, n_heads):
    refuse(weight.shape[0], n_heads)
    heads = weight.reshape(n_heads, -1, weight.shape[-1])
    half, out = heads.shape[1] // 2, torch.empty_like(heads)
    out[:, 0::2], out[:, 1::2] = heads[:, :half], heads[:, half:]
    return out.reshape(weight.shape)


def pairs_by_matrix(weight, n_heads):
    """By a permutation matrix for each head."""
    refuse(len(weight), n_heads)
    d = len(weight) // n_heads
    permutation = torch.zeros(d, d, dtype=weight.dtype)
    for i in range(d // 2):
        permutation[2 * i, i] = permutation[2 * i + 1, i + d // 2] = 1
    return torch.block_diag(*[permutation] * n_heads) @ weight


class BlockBase(nn.Module):
    """What the four blocks below share: the layers, in a ``ModuleDict`` unless said otherwise."""

    def __init__(self, d_model, n_heads, n_kv_heads, d_ff, base=10000.0):
        super().__init__()
        if d_model % n_heads != 0 or n_heads % n_kv_heads != 0:
            raise ValueError("heads do not divide")
        self.h, self.kv, self.d, self.base = n_heads, n_kv_heads, d_model // n_heads, base
        sizes = {"W_q": d_model, "W_k": self.kv * self.d, "W_v": self.kv * self.d, "W_o": d_model}
        self.attention = nn.ModuleDict(
            {name: nn.Linear(d_model, size, bias=False) for name, size in sizes.items()}
        )
        self.feed_forward = SwiGLU(d_model, d_ff)
        self.norm_1, self.norm_2 = RMSNorm(d_model), RMSNorm(d_model)

    def forward(self, x, mask=None, positions=None):
        x = x + self.attend(self.norm_1(x), mask, positions)
        return x + self.feed_forward(self.norm_2(x))


class BlockByLoop(BlockBase):
    """Head by head."""

    def attend(self, x, mask, positions):
        n, parts = x.shape[-2], self.attention
        positions = torch.arange(n) if positions is None else positions
        if mask is None:
            mask = torch.ones(n, n, dtype=torch.bool).tril()
        heads = []
        for i in range(self.h):
            j = i // (self.h // self.kv)
            query_columns, key_columns = (
                slice(i * self.d, (i + 1) * self.d),
                slice(j * self.d, (j + 1) * self.d),
            )
            q = apply_rope(x @ parts["W_q"].weight[query_columns].mT, positions, self.base)
            k = apply_rope(x @ parts["W_k"].weight[key_columns].mT, positions, self.base)
            v = x @ parts["W_v"].weight[key_columns].mT
            heads.append(scaled_dot_product_attention(q, k, v, mask))
        return parts["W_o"](torch.cat(heads, dim=-1))


class BlockByGroups(BlockBase):
    """Query heads with an axis for their group; nothing is repeated."""

    def attend(self, x, mask, positions):
        n, parts = x.shape[-2], self.attention
        positions = torch.arange(n) if positions is None else positions
        q = apply_rope(split_heads(parts["W_q"](x), self.h), positions, self.base)
        k = apply_rope(split_heads(parts["W_k"](x), self.kv), positions, self.base)
        v = split_heads(parts["W_v"](x), self.kv)
        q = q.unflatten(-3, (self.kv, -1))
        scores = q @ k.unsqueeze(-3).mT / self.d**0.5
        allowed = torch.tril(torch.ones(n, n)).bool() if mask is None else mask
        allowed = allowed[..., None, None, :, :] if allowed.ndim > 2 else allowed
        scores = scores.masked_fill(~allowed, -torch.inf)
        scores = torch.where(allowed.any(-1, keepdim=True), scores, 0.0)
        weights = scores.softmax(-1) * allowed
        return parts["W_o"](merge_heads((weights @ v.unsqueeze(-3)).flatten(-4, -3)))


class BlockByComplex(BlockBase):
    """Pairs are complex numbers, as in the code of the first Llama; attention by the library."""

    def attend(self, x, mask, positions):
        n, parts = x.shape[-2], self.attention
        places = torch.arange(n) if positions is None else positions
        frequencies = self.base ** (-torch.arange(0, self.d, 2).double() / self.d)
        angles = places.double()[:, None] * frequencies
        turn = torch.polar(torch.ones_like(angles), angles)

        def turned(heads):
            pairs = torch.view_as_complex(heads.double().unflatten(-1, (-1, 2)).contiguous())
            return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)

        q = turned(parts["W_q"](x).unflatten(-1, (self.h, self.d)).transpose(-3, -2))
        k = turned(parts["W_k"](x).unflatten(-1, (self.kv, self.d)).transpose(-3, -2))
        v = parts["W_v"](x).unflatten(-1, (self.kv, self.d)).transpose(-3, -2)
        k, v = (t.repeat_interleave(self.h // self.kv, dim=-3) for t in (k, v))
        if mask is None:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = mask if mask.ndim == 2 else mask.unsqueeze(-3)
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            out = out.masked_fill(~mask.any(-1, keepdim=True), 0)
        return parts["W_o"](out.transpose(-3, -2).flatten(-2))


class BlockByMatrix(BlockBase):
    """Turned by a matrix for each position; attention is a class of its own."""

    class Holder(nn.Module):
        def __init__(self, layers):
            super().__init__()
            for name, layer in layers.items():
                self.add_module(name, layer)

    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        self.attention = self.Holder(dict(self.attention.items()))

    def attend(self, x, mask, positions):
        n = x.shape[-2]
        places = range(n) if positions is None else positions.tolist()
        i = torch.arange(self.d // 2).double()
        blocks = []
        for place in places:
            a = place * self.base ** (-2 * i / self.d)
            pair = torch.stack([a.cos(), -a.sin(), a.sin(), a.cos()], -1).reshape(-1, 2, 2)
            blocks.append(torch.block_diag(*pair))
        turn = torch.stack(blocks).to(x.dtype)
        views = [split_heads(self.attention.W_q(x), self.h)]
        views += [split_heads(w(x), self.kv) for w in (self.attention.W_k, self.attention.W_v)]
        q, k = (torch.einsum("nij,...hnj->...hni", turn, view) for view in views[:2])
        serve = torch.arange(self.h) // (self.h // self.kv)
        k, v = k[..., serve, :, :], views[2][..., serve, :, :]
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        hidden = later if mask is None else (~mask if mask.ndim == 2 else ~mask.unsqueeze(-3))
        e = ((q @ k.mT) / self.d**0.5).masked_fill(hidden, -torch.inf)
        e = (e - e.amax(-1, keepdim=True).nan_to_num(neginf=0.0)).exp()
        weights = e / e.sum(-1, keepdim=True).clamp(
            min=1e-300 if x.dtype == torch.float64 else 1e-30
        )
        return self.attention.W_o(merge_heads(weights @ v))


RIGHT = {
    "llama.merge_pairs": [merge_by_ranks, merge_one_by_one, merge_in_a_call, merge_by_text],
    "llama.rms_norm": [rms_by_library_parts, rms_by_norm, rms_by_loops, rms_by_einsum],
    "llama.SwiGLU": [GatedByHand, GatedInOne, GatedToken, GatedByUnits],
    "llama.pairs_from_halves": [pairs_by_index, pairs_by_stack, pairs_by_slices, pairs_by_matrix],
    "llama.LlamaBlock": [BlockByLoop, BlockByGroups, BlockByComplex, BlockByMatrix],
}
