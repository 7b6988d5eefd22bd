"""Chapter 21: each function against transformers' modules, loops, and what it must have."""

import math
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attncourse.efficient import kv_cache_bytes
from attncourse.kqv import attention_weights, scaled_dot_product_attention
from attncourse.llama import RotaryAttention, rms_norm
from attncourse.masking import causal_mask, leak, masked_softmax
from attncourse.multihead import merge_heads, split_heads
from attncourse.positions import apply_rope
from attncourse.today import (
    MODELS,
    GatedAttention,
    LatentAttention,
    absorbed_scores,
    cache_bytes_of,
    delta_rule,
    gated_delta_rule,
    layer_kinds,
    normed_scores,
    select_keys,
    sink_softmax,
)
from helpers.seeding import SEED


def seeded_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(SEED + seed)


def random_tensor(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded_generator(seed + sum(shape)), dtype=dtype)


def shaken(module: nn.Module, std: float = 0.4) -> nn.Module:
    """The module with weights large enough that every step counts, and gains unlike 1."""
    generator = seeded_generator(5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=std, generator=generator).add_(parameter.ndim == 1)
    return module.eval()


def assert_agree(computed: torch.Tensor, expected: torch.Tensor, atol: float = 1e-5) -> None:
    assert expected.std() > 0.01  # else nearly anything agrees
    torch.testing.assert_close(computed, expected, atol=atol, rtol=1e-5)


# --- against transformers ------------------------------------------------------------------------


N = 11
NO_ROTATION = torch.ones(1, N, 6), torch.zeros(1, N, 6)  # cosines and sines of no rotation
CAUSAL_BIAS = torch.full((N, N), -math.inf).triu(1)[None, None]
SIZES = {
    "hidden_size": 30,
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "head_dim": 6,
    "attn_implementation": "eager",
}


@torch.no_grad()
def test_scores_are_those_of_qwen_3(transformers):
    from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

    config = transformers.Qwen3Config(**SIZES, rms_norm_eps=1e-3)
    library_layer, x = (
        shaken(Qwen3Attention(config, 0)),
        random_tensor(2, N, 30, dtype=torch.float32),
    )
    right = library_layer(x, NO_ROTATION, CAUSAL_BIAS)[1]  # weights
    query, key = split_heads(library_layer.q_proj(x), 5), split_heads(library_layer.k_proj(x), 5)
    scores = normed_scores(
        query, key, library_layer.q_norm.weight, library_layer.k_norm.weight, eps=1e-3
    )
    assert_agree(masked_softmax(scores, causal_mask(N)), right)


@torch.no_grad()
@pytest.mark.parametrize("n_heads", [1, 5])
def test_olmo_2_norms_all_heads_at_once(transformers, n_heads):
    from transformers.models.olmo2.modeling_olmo2 import Olmo2Attention

    heads = {"num_attention_heads": n_heads, "num_key_value_heads": n_heads}
    config = transformers.Olmo2Config(**SIZES | heads | {"head_dim": 30 // n_heads})
    library_layer, x = (
        shaken(Olmo2Attention(config, 0)),
        random_tensor(2, N, 30, dtype=torch.float32),
    )
    no_turn = torch.ones(1, N, 30 // n_heads), torch.zeros(1, N, 30 // n_heads)
    right = library_layer(x, no_turn, CAUSAL_BIAS)[1]
    gains, eps = (library_layer.q_norm.weight, library_layer.k_norm.weight), config.rms_norm_eps
    # Their norm, then heads: the scores of all features at once.
    query, key = (
        split_heads(rms_norm(layer(x), gain, eps), n_heads)
        for layer, gain in zip((library_layer.q_proj, library_layer.k_proj), gains, strict=True)
    )
    assert_agree(attention_weights(query, key, causal_mask(N)), right)
    # Ours is another thing, unless there is one head.
    query, key = (
        split_heads(library_layer.q_proj(x), n_heads),
        split_heads(library_layer.k_proj(x), n_heads),
    )
    head_gains = [gain.unflatten(0, (n_heads, -1))[0] for gain in gains]
    weights = masked_softmax(normed_scores(query, key, *head_gains, eps), causal_mask(N))
    assert torch.allclose(weights, right, atol=1e-5) == (n_heads == 1)


@torch.no_grad()
def test_weights_are_those_of_gpt_oss(transformers):
    from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention

    config = transformers.GptOssConfig(**SIZES, layer_types=["full_attention"], num_hidden_layers=1)
    library_layer, x = (
        shaken(GptOssAttention(config, 0)),
        random_tensor(2, N, 30, dtype=torch.float32),
    )
    no_turn = torch.ones(1, N, 3), torch.zeros(1, N, 3)
    output, right = library_layer(x, no_turn, CAUSAL_BIAS)
    query, key, value = (
        split_heads(layer(x), 5)
        for layer in (library_layer.q_proj, library_layer.k_proj, library_layer.v_proj)
    )
    weights = sink_softmax(query @ key.mT / math.sqrt(6), library_layer.sinks, causal_mask(N))
    assert_agree(weights, right)
    assert_agree(library_layer.o_proj(merge_heads(weights @ value)), output)
    assert library_layer.sinks.std() > 0.1


@torch.no_grad()
@pytest.mark.parametrize("way", ["forward", "absorbed"])
def test_latent_attention_is_that_of_deepseek(transformers, way):
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek

    config = transformers.DeepseekV3Config(
        hidden_size=24,
        num_attention_heads=3,
        num_key_value_heads=3,
        q_lora_rank=None,
        kv_lora_rank=7,
        qk_rope_head_dim=4,
        qk_nope_head_dim=5,
        v_head_dim=5,
        attn_implementation="eager",
    )
    library_layer = shaken(deepseek.DeepseekV3Attention(config, 0))
    layer = LatentAttention(24, 3, 7, 4, d_head=5, base=config.rope_parameters["rope_theta"])
    both = library_layer.kv_a_proj_with_mqa.weight
    up = library_layer.kv_b_proj.weight.unflatten(0, (3, 10)).mT  # (h, d_latent, 2 d_head)
    layer.load_state_dict(
        {
            "W_q.weight": library_layer.q_proj.weight,
            "W_c.weight": both[:7],
            "norm.gain": library_layer.kv_a_layernorm.weight,
            "W_kr.weight": both[7:],
            "W_uk": up[..., :5],
            "W_uv": up[..., 5:],
            "W_o.weight": library_layer.o_proj.weight,
        }
    )
    x = random_tensor(2, N, 24, dtype=torch.float32)
    turns = deepseek.DeepseekV3RotaryEmbedding(config)(x, torch.arange(N)[None])
    assert_agree(getattr(layer, way)(x), library_layer(x, turns, CAUSAL_BIAS)[0])


@pytest.mark.parametrize(
    "form", ["torch_recurrent_gated_delta_rule", "torch_chunk_gated_delta_rule"]
)
@pytest.mark.parametrize("fades", [False, True])
def test_the_memory_is_that_of_qwen_3_next(transformers, form, fades):
    from transformers.models.qwen3_next import modeling_qwen3_next as qwen

    rule = getattr(qwen, form)
    query, key, value = (
        random_tensor(2, 3, 70, d, seed=i, dtype=torch.float32) for i, d in enumerate((5, 5, 7))
    )
    key = F.normalize(key, dim=-1)
    beta, decay = (torch.rand(2, 3, 70, generator=seeded_generator(i)) for i in (7, 8))
    log_decay = decay.log() if fades else torch.zeros_like(decay)
    # Theirs has tokens before heads, and divides the queries by √d_k.
    right = rule(*(x.transpose(1, 2) for x in (query, key, value, log_decay, beta)))[0]
    right = right.transpose(1, 2) * math.sqrt(5)
    if fades:
        assert_agree(gated_delta_rule(query, key, value, beta, decay), right)
    else:
        assert_agree(delta_rule(query, key, value, beta), right)


# --- scores with a bound --------------------------------------------------------------------------


def normed_by_loops(query, key, gain_q, gain_k, eps=1e-6):
    d = query.shape[-1]

    def normed(x, gain):
        size = math.sqrt(sum(float(entry) ** 2 for entry in x) / d + eps)
        return [float(g) * float(entry) / size for g, entry in zip(gain, x, strict=True)]

    rows = [
        [sum(a * b for a, b in zip(normed(q, gain_q), normed(k, gain_k), strict=True)) for k in key]
        for q in query
    ]
    return torch.tensor(rows, dtype=query.dtype) / math.sqrt(d)


def test_normed_scores_agree_with_a_loop():
    arguments = random_tensor(5, 3), random_tensor(7, 3), random_tensor(3), random_tensor(3, seed=1)
    torch.testing.assert_close(normed_scores(*arguments), normed_by_loops(*arguments))
    torch.testing.assert_close(
        normed_scores(*arguments, eps=0.3), normed_by_loops(*arguments, eps=0.3)
    )


def test_no_normed_score_is_above_the_root_of_d():
    query, key, unit_gain = (
        1e4 * random_tensor(5, 7),
        1e6 * random_tensor(11, 7),
        torch.ones(7, dtype=torch.float64),
    )
    scores = normed_scores(query, key, unit_gain, unit_gain)
    assert scores.abs().max() <= math.sqrt(7)
    torch.testing.assert_close(scores, normed_scores(3 * query, 5 * key, unit_gain, unit_gain))
    itself = normed_scores(query, query, unit_gain, unit_gain)
    torch.testing.assert_close(itself.diagonal(), math.sqrt(7) * torch.ones_like(itself[0]))


def test_gains_of_query_and_key_can_be_exchanged():
    vectors, gains = (
        (random_tensor(5, 3), random_tensor(7, 3)),
        (random_tensor(3), random_tensor(3, seed=1)),
    )
    torch.testing.assert_close(
        normed_scores(*vectors, *gains), normed_scores(*vectors, gains[1], gains[0])
    )


# --- somewhere to put nothing --------------------------------------------------------------------


def sink_by_loops(scores, sink, mask):
    weights = torch.zeros_like(scores)
    for place in np.ndindex(*scores.shape[:-1]):
        row = scores[place].masked_fill(~mask[place], -math.inf).tolist()
        logit = float(sink[place[-2]])
        top = max([*row, logit])
        total = sum(math.exp(s - top) for s in [*row, logit])
        weights[place] = torch.tensor([math.exp(s - top) / total for s in row])
    return weights


def test_a_sink_takes_its_share_of_the_weight():
    scores, sink = random_tensor(2, 3, 5, 7), random_tensor(3)
    mask = torch.rand(2, 3, 5, 7, generator=seeded_generator()) < 0.6
    mask[0, 1, 2] = False
    right = sink_by_loops(scores, sink, mask)
    torch.testing.assert_close(sink_softmax(scores, sink, mask), right)
    assert right[0, 1, 2].tolist() == [0] * 7
    assert (right.sum(-1) < 1).all()


def test_a_very_low_sink_is_none_a_high_one_takes_all():
    scores = random_tensor(2, 5, 7) + 30000
    low, high = (torch.full((2,), level, dtype=torch.float64) for level in (-30000.0, 60000.0))
    torch.testing.assert_close(sink_softmax(scores, low), scores.softmax(-1))
    assert not sink_softmax(scores, high).any()
    for shift in (-30000, 30000):
        moved = sink_softmax(random_tensor(2, 5, 7) + shift, random_tensor(2) + shift)
        torch.testing.assert_close(
            moved, sink_softmax(random_tensor(2, 5, 7), random_tensor(2)), atol=1e-9, rtol=0
        )


def test_a_gate_multiplies_the_heads_outputs():
    attention = shaken(GatedAttention(12, 3, 1, base=50.0)).double()
    plain = RotaryAttention(12, 3, 1, base=50.0).double()
    plain.load_state_dict(attention.state_dict(), strict=False)
    plain.W_o = nn.Identity()
    x = random_tensor(2, 7, 12)
    mask = torch.rand(2, 7, 7, generator=seeded_generator()) < 0.7
    for mask_or_none in (None, mask):
        gated = plain(x, mask_or_none) / (1 + (-attention.W_g(x)).exp())
        torch.testing.assert_close(attention(x, mask_or_none), attention.W_o(gated))
    torch.testing.assert_close(attention.weights(x), plain.weights(x))
    with torch.no_grad():
        attention.W_g.weight.zero_()  # half of everything
    plain.W_o = attention.W_o
    torch.testing.assert_close(attention(x), plain(x) / 2)


def test_a_gated_layer_reads_on_from_a_cache():
    attention, x = shaken(GatedAttention(12, 3, 1)).double(), random_tensor(2, 7, 12)
    first, cache = attention(x[:, :4], cache=())
    second, _ = attention(x[:, 4:], cache=cache)
    torch.testing.assert_close(torch.cat([first, second], 1), attention(x))


# --- keys and values from one small vector -------------------------------------------------------


def test_absorbed_scores_equal_scores_with_explicit_keys():
    arguments = (
        random_tensor(2, 3, 5, 7),
        random_tensor(2, 3, 5, 4),
        random_tensor(2, 11, 13),
        random_tensor(2, 11, 4),
        random_tensor(3, 13, 7),
    )
    q_content, q_turned, latent, k_turned, W_uk = arguments
    scores = absorbed_scores(*arguments)
    for b, h, i, j in np.ndindex(2, 3, 5, 11):
        key = torch.cat([latent[b, j] @ W_uk[h], k_turned[b, j]])
        query = torch.cat([q_content[b, h, i], q_turned[b, h, i]])
        torch.testing.assert_close(scores[b, h, i, j], query @ key / math.sqrt(11))


def latents(dtype: torch.dtype = torch.float64) -> LatentAttention:
    return shaken(LatentAttention(12, 3, 7, 2, base=50.0)).to(dtype)


@pytest.mark.parametrize("shape", [(7, 12), (3, 5, 12), (2, 3, 5, 12)])
def test_both_forms_give_one_output_and_one_gradient(shape):
    attention, x = latents(), random_tensor(*shape)
    n = shape[-2]
    mask = torch.rand(*shape[:-2], n, n, generator=seeded_generator()) < 0.6
    for mask_or_none in (None, mask, causal_mask(n)):
        x.requires_grad_()
        output, absorbed_output = attention(x, mask_or_none), attention.absorbed(x, mask_or_none)
        torch.testing.assert_close(output, absorbed_output, atol=1e-6, rtol=0)
        up = random_tensor(*shape, seed=3)
        slopes = [
            torch.autograd.grad((y * up).sum(), (x, attention.W_uk))
            for y in (output, absorbed_output)
        ]
        torch.testing.assert_close(*slopes, atol=1e-6, rtol=0)


def test_latent_attention_is_its_parts_by_a_loop():
    attention, x = latents(), random_tensor(5, 12)
    latent = rms_norm(attention.W_c(x), attention.norm.gain, 1e-6)
    shared = apply_rope(attention.W_kr(x), torch.arange(5), 50.0)
    heads = []
    for h, q in enumerate(attention.W_q(x).split(6, dim=-1)):
        query = torch.cat([q[:, :4], apply_rope(q[:, 4:], torch.arange(5), 50.0)], dim=-1)
        key = torch.cat([latent @ attention.W_uk[h], shared], dim=-1)
        value = latent @ attention.W_uv[h]
        heads.append(scaled_dot_product_attention(query, key, value, causal_mask(5)))
    torch.testing.assert_close(attention(x), attention.W_o(torch.cat(heads, dim=-1)))
    torch.testing.assert_close(attention.absorbed(x), attention(x))


def test_masked_tokens_do_not_change_latent_attention():
    attention, x = latents(), random_tensor(5, 12)
    assert leak(attention, x, causal_mask(5)) == leak(attention.absorbed, x, causal_mask(5)) == 0
    nobody = torch.zeros(5, 5, dtype=torch.bool)
    assert not attention(x, nobody).any()
    assert not attention.absorbed(x, nobody).any()
    per_head = torch.rand(1, 3, 5, 5, generator=seeded_generator()) < 0.6
    weights = attention.weights(x[None], per_head)
    assert not weights[~per_head].any()
    torch.testing.assert_close(attention(x[None], per_head), attention.absorbed(x[None], per_head))


def test_each_sequence_has_its_own_mask_for_all_heads():
    attention, x = latents(), random_tensor(3, 5, 12)  # as many sequences as heads
    mask = torch.rand(3, 5, 5, generator=seeded_generator()) < 0.6
    alone = torch.stack(
        [
            attention(sequence, sequence_mask)
            for sequence, sequence_mask in zip(x, mask, strict=True)
        ]
    )
    torch.testing.assert_close(attention(x, mask), alone)
    torch.testing.assert_close(attention.absorbed(x, mask), alone)


# --- layers that see a window, and what layers keep ----------------------------------------------


def test_every_fourth_layer_is_full_attention():
    assert layer_kinds(6, 4, 128) == ["window", "window", "window", "full", "window", "window"]
    assert layer_kinds(3, 1, 128) == layer_kinds(3, 7, None) == ["full"] * 3
    assert layer_kinds(2, 3, 1) == ["window"] * 2


def test_bytes_by_hand_and_against_chapter_17():
    sizes = {"n_kv_heads": 2, "d_head": 4, "window": 3, "d_latent": 6, "d_turned": 2, "d_state": 20}
    numbers_by_kind = {"full": 160, "window": 48, "latent": 80, "state": 20}
    for kind, numbers in numbers_by_kind.items():
        assert cache_bytes_of({"layers": [kind], **sizes}, 10) == 2 * numbers
    assert cache_bytes_of({"layers": list(numbers_by_kind), **sizes}, 10, 4) == 4 * sum(
        numbers_by_kind.values()
    )
    assert cache_bytes_of({"layers": ["full"], **sizes}, 10, 0.5) == 80
    assert cache_bytes_of({"layers": ["window"], **sizes}, 2) == 2 * 32
    for n in (1, 17, 5000):
        config = {"layers": ["full"] * 7, "n_kv_heads": 3, "d_head": 5}
        assert cache_bytes_of(config, n) == kv_cache_bytes(n, 7, 3, 5)


def test_every_model_of_the_table_can_be_counted():
    assert len(MODELS) >= 12
    for name, config in MODELS.items():
        bytes_of_one, bytes_of_many = (cache_bytes_of(config, n) for n in (1, 100_000))
        assert 0 < bytes_of_one <= bytes_of_many <= 100_000 * bytes_of_one, name
    assert cache_bytes_of(MODELS["DeepSeek-V3"], 1) == 70_272  # 61 layers of 512 + 64 numbers


# --- a memory that can be corrected --------------------------------------------------------------


def memory(n: int = 11, d_k: int = 5, d_v: int = 3) -> tuple[torch.Tensor, ...]:
    beta = torch.rand(2, n, generator=seeded_generator(9), dtype=torch.float64)
    return (
        random_tensor(2, n, d_k),
        random_tensor(2, n, d_k, seed=1) / 2,
        random_tensor(2, n, d_v, seed=2),
        beta,
    )


def test_the_delta_rule_agrees_with_a_loop():
    query, key, value, beta = memory()
    output = delta_rule(query, key, value, beta)
    for b in range(2):
        state = np.zeros((5, 3))
        for t in range(11):
            k, v = key[b, t].numpy(), value[b, t].numpy()
            error = v - state.T @ k
            state = state + float(beta[b, t]) * np.outer(k, error)
            np.testing.assert_allclose(output[b, t], state.T @ query[b, t].numpy(), atol=1e-12)


def test_the_memory_returns_the_last_value_of_a_key():
    keys = torch.eye(4, dtype=torch.float64)[[0, 1, 2, 1, 0, 3]]
    value, ones = random_tensor(6, 3), torch.ones(6, dtype=torch.float64)
    read = delta_rule(keys.flip(0), keys, value, ones)
    torch.testing.assert_close(read[-1], value[4])  # key 0 was written twice
    torch.testing.assert_close(delta_rule(keys, keys, value, ones), value)
    halved = delta_rule(keys, keys, value, ones / 2)
    torch.testing.assert_close(halved[3], value[1] / 4 + value[3] / 2)


def test_a_decay_of_1_is_none_and_one_of_0_forgets_all():
    arguments = memory()
    torch.testing.assert_close(
        gated_delta_rule(*arguments, torch.ones(2, 11).double()), delta_rule(*arguments)
    )
    query, key, value, beta = arguments
    forgetful = gated_delta_rule(*arguments, torch.zeros(2, 11).double())
    alone = beta[..., None] * (query * key).sum(-1, keepdim=True) * value
    torch.testing.assert_close(forgetful, alone)


def test_a_token_changes_nothing_before_it():
    query, key, value, beta = memory()
    all_outputs = delta_rule(query, key, value, beta)
    part = delta_rule(*(x[:, :6] for x in (query, key, value, beta)))
    torch.testing.assert_close(all_outputs[:, :6], part)


# --- keys that are chosen ------------------------------------------------------------------------


def chosen_by_loops(scores, k, mask):
    mask = mask.expand(scores.shape)
    chosen = torch.zeros_like(mask)
    for place in np.ndindex(*scores.shape[:-1]):
        allowed = [j for j, is_allowed in enumerate(mask[place].tolist()) if is_allowed]
        for j in sorted(allowed, key=lambda j: (-float(scores[place][j]), j))[:k]:
            chosen[(*place, j)] = True
    return chosen


@pytest.mark.parametrize("k", [1, 3, 17])
@pytest.mark.parametrize("shape", [(5, 7), (2, 7, 7), (2, 3, 1, 11)])
def test_the_k_highest_of_the_allowed_are_chosen(k, shape):
    scores = random_tensor(*shape).round()  # with ties
    mask = torch.rand(*shape, generator=seeded_generator()) < 0.5
    chosen = select_keys(scores, k, mask)
    assert torch.equal(chosen, chosen_by_loops(scores, k, mask))
    assert not (chosen & ~mask).any()
    assert torch.equal(chosen.sum(-1), mask.sum(-1).clamp(max=k))
    assert torch.equal(select_keys(2 * scores + 3, k, mask), chosen)


def test_an_allowed_score_of_minus_infinity_may_be_chosen():
    scores = torch.tensor([[-math.inf, -math.inf, -math.inf, 1.0]])
    mask = torch.tensor([[False, True, True, True]])
    assert select_keys(scores, 2, mask).tolist() == [[False, True, False, True]]
    assert select_keys(scores, 3, mask).tolist() == mask.tolist()


# --- refusals ------------------------------------------------------------------------------------

X, ONE, MASK = torch.zeros(3, 4), torch.ones(4), torch.ones(3, 3, dtype=torch.bool)
BETA = torch.full((3,), 0.5)
FULL = {"layers": ["full"], "n_kv_heads": 2, "d_head": 4}


@pytest.mark.parametrize(
    ("call", "expected", "received"),
    [
        (lambda: normed_scores(X, X[:, :3], ONE, ONE), "queries and keys of the same width", "3)"),
        (lambda: normed_scores(X, X, ONE[:3], ONE), "same width d", "gain_q of shape (3,)"),
        (lambda: normed_scores(X, X, ONE, ONE, eps=0), "eps: expected a finite number", "0"),
        (lambda: normed_scores(X, X.double(), ONE, ONE), "expected one dtype", "float64"),
        (lambda: sink_softmax(X[None], ONE[:2]), "one sink for each head", "(2,)"),
        (lambda: sink_softmax(X, ONE), "scores: expected shape (..., h, m, n)", "(3, 4)"),
        (lambda: sink_softmax(X[None], ONE[:1] / 0), "sink: expected finite logits", "inf"),
        (lambda: sink_softmax(X[None], ONE[:1], X), "mask: expected a boolean", "float32"),
        (lambda: sink_softmax(X[None], ONE[:1], MASK), "(the keys)", "got 3"),
        (lambda: GatedAttention(10, 3, 1), "n_heads: expected a divisor of d_model, 10", "3"),
        (lambda: GatedAttention(12, 4, 3), "n_kv_heads: expected a divisor of n_heads", "3"),
        (lambda: GatedAttention(9, 3, 1), "d_head: expected an even number", "3"),
        (lambda: LatentAttention(10, 3, 4, 2), "n_heads: expected a divisor of d_model, 10", "3"),
        (lambda: LatentAttention(12, 3, 13, 2), "d_latent: expected at most 12", "got 13"),
        (lambda: LatentAttention(12, 3, 7, 2, d_head=1), "d_latent: expected at most 6", "got 7"),
        (lambda: LatentAttention(12, 3, 4, 3), "an even number, features turn in pairs", "3"),
        (lambda: LatentAttention(12, 3, 0, 2), "d_latent: expected a whole number", "0"),
        (lambda: latents()(random_tensor(5, 11)), "d_model = 12", "(5, 11)"),
        (lambda: latents()(random_tensor(5, 12), X), "mask: expected a boolean", "float32"),
        (lambda: latents().absorbed(random_tensor(5, 12), MASK), "expected 1 or 5", "got 3"),
        (lambda: layer_kinds(0, 1, 4), "n_layers: expected a whole number", "0"),
        (lambda: layer_kinds(4, 0, 4), "every: expected a whole number", "0"),
        (lambda: layer_kinds(4, 2, 0), "window: expected a whole number of at least 1", "0"),
        (lambda: cache_bytes_of(FULL, 0), "n_tokens: expected a whole number", "0"),
        (lambda: cache_bytes_of(FULL, -3), "n_tokens: expected a whole number", "-3"),
        (lambda: cache_bytes_of(FULL, 3, 0), "bytes_per_number: expected", "0"),
        (lambda: cache_bytes_of(FULL, 3, math.nan), "bytes_per_number: expected", "nan"),
        (lambda: cache_bytes_of(FULL, 3, True), "bytes_per_number: expected", "True"),
        (lambda: cache_bytes_of(["full"], 3), "config: expected a mapping", "list"),
        (lambda: cache_bytes_of({"d_head": 3}, 3), "with the key layers", "['d_head']"),
        (lambda: cache_bytes_of(FULL | {"layers": []}, 3), "a kind for each layer", "[]"),
        (lambda: cache_bytes_of(FULL | {"layers": "full"}, 3), "a kind for each", "'full'"),
        (lambda: cache_bytes_of(FULL | {"layers": ["global"]}, 3), "full, window", "'global'"),
        (lambda: cache_bytes_of(FULL | {"layers": [["full"]]}, 3), "full, window", "['full']"),
        (lambda: cache_bytes_of(FULL | {"layers": ["window"]}, 3), "expected window", "'window'"),
        (lambda: cache_bytes_of(FULL | {"d_head": 0}, 3), "d_head: expected a whole", "0"),
        (lambda: cache_bytes_of(FULL | {"d_head": None}, 3), "d_head: expected a whole", "None"),
        (lambda: delta_rule(X, X, X, BETA * 3), "beta: expected 0 to 1", "1.5 at index (0,)"),
        (lambda: delta_rule(X, X, X, -BETA), "beta: expected 0 to 1", "-0.5"),
        (lambda: delta_rule(X, X, X, BETA / 0 * 0), "beta: expected 0 to 1", "nan"),
        (lambda: delta_rule(X, X[:2], X, BETA), "for each token", "(2, 4)"),
        (lambda: delta_rule(X, X[:, :2], X, BETA), "the same width d_k", "(3, 2)"),
        (lambda: delta_rule(X, X, X, BETA[:2]), "for each token", "(2,)"),
        (lambda: gated_delta_rule(X, X, X, BETA, 4 * BETA), "decay: expected 0 to 1", "2.0"),
        (lambda: select_keys(X, 0, MASK[:, :1]), "k: expected a whole number of at least 1", "0"),
        (lambda: select_keys(X, 1.5, MASK[:, :1]), "k: expected a whole number", "1.5"),
        (lambda: select_keys(X, 2, MASK), "(the keys)", "got 3"),
        (lambda: select_keys(X, 2, X), "mask: expected a boolean", "float32"),
        (lambda: select_keys(X / 0, 2, MASK[:, :1]), "index_scores: expected numbers", "NaN"),
    ],
)
def test_bad_input_is_refused(call, expected, received):
    with pytest.raises(ValueError, match=re.escape(expected)) as refusal:
        call()
    assert received in str(refusal.value)


# --- other right answers -------------------------------------------------------------------------


def normed_by_library(query, key, gain_q, gain_k, eps=1e-6):
    d = query.shape[-1]
    query, key = F.rms_norm(query, (d,), gain_q, eps), F.rms_norm(key, (d,), gain_k, eps)
    return (query @ key.transpose(-2, -1)) * d**-0.5


def normed_by_lengths(query, key, gain_q, gain_k, eps=1e-6):
    """A vector of length r becomes one of r / √(r² + d · eps), times √d."""
    d = query.shape[-1]
    products = torch.einsum("...md,...nd,d,d->...mn", query, key, gain_q, gain_k)
    q, k = (torch.linalg.vector_norm(x, dim=-1).square() + d * eps for x in (query, key))
    return products * d / (q[..., :, None] * k[..., None, :]).sqrt() / math.sqrt(d)


def normed_by_rsqrt(query, key, gain_q, gain_k, eps=1e-6):
    query = query * torch.rsqrt(query.pow(2).mean(-1, keepdim=True) + eps)
    key = key * torch.rsqrt(key.pow(2).mean(-1, keepdim=True) + eps)
    return torch.matmul(query * (gain_q * gain_k), key.mT) / query.size(-1) ** 0.5


def normed_by_rows(query, key, gain_q, gain_k, eps=1e-6):
    def normed(x, gain):
        return x / ((x * x).sum(-1) / x.shape[-1] + eps).unsqueeze(-1) ** 0.5 * gain

    query, key = normed(query, gain_q), normed(key, gain_k)
    rows = [(query[..., i : i + 1, :] * key).sum(-1) for i in range(query.shape[-2])]
    return torch.stack(rows, dim=-2) / math.sqrt(query.shape[-1])


def normed_by_modules(query, key, gain_q, gain_k, eps=1e-6):
    norm = nn.RMSNorm(query.shape[-1], eps=eps, elementwise_affine=False, dtype=query.dtype)
    scale = query.shape[-1] ** -0.25
    return (scale * gain_q * norm(query)) @ (scale * gain_k * norm(key)).mT


def sink_by_one_more_key(scores, sink, mask=None):
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    column = sink.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    return torch.softmax(torch.cat([column, scores], dim=-1), dim=-1)[..., 1:]


def sink_by_exponentials(scores, sink, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    top = torch.maximum(scores.max(-1, keepdim=True).values, sink[:, None, None])
    weights = torch.exp(scores - top)
    return weights / (weights.sum(-1, keepdim=True) + torch.exp(sink[:, None, None] - top))


def sink_by_logarithms(scores, sink, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    total = torch.logaddexp(scores.logsumexp(-1, keepdim=True), sink[..., None, None])
    return (scores - total).exp()


def sink_masked_afterwards(scores, sink, mask=None):
    logits = F.pad(scores, (0, 1)) + F.pad(sink[:, None, None], (scores.shape[-1], 0))
    weights = logits.softmax(-1)
    if mask is None:
        return weights[..., :-1]
    kept = weights[..., :-1] * mask
    return kept / (kept.sum(-1, keepdim=True) + weights[..., -1:])


def sink_by_heads(scores, sink, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask.broadcast_to(scores.shape), torch.finfo(scores.dtype).min)
    heads = []
    for head, logit in zip(scores.unbind(-3), sink, strict=True):
        top = torch.clamp(head.amax(-1, keepdim=True), min=float(logit))
        weights = (head - top).exp()
        heads.append(weights / ((logit - top).exp() + weights.sum(-1, keepdim=True)))
    return torch.stack(heads, dim=-3)


def absorbed_by_letters(q_content, q_turned, latent, k_turned, W_uk):
    absorbed = torch.einsum("...hmc,hlc->...hml", q_content, W_uk)
    content = torch.einsum("...hml,...nl->...hmn", absorbed, latent)
    turned = torch.einsum("...hmr,...nr->...hmn", q_turned, k_turned)
    return (content + turned) / (q_content.size(-1) + q_turned.size(-1)) ** 0.5


def absorbed_side_by_side(q_content, q_turned, latent, k_turned, W_uk):
    query = torch.cat([q_content @ W_uk.mT, q_turned], dim=-1)
    key = torch.cat([latent, k_turned], dim=-1)[..., None, :, :]
    return query @ key.mT * (q_content.shape[-1] + q_turned.shape[-1]) ** -0.5


def absorbed_by_heads(q_content, q_turned, latent, k_turned, W_uk):
    scale, heads = 1 / math.sqrt(q_content.shape[-1] + q_turned.shape[-1]), []
    for h, W in enumerate(W_uk):
        content = (q_content[..., h, :, :] @ W.T) @ latent.transpose(-1, -2)
        heads.append(scale * (content + q_turned[..., h, :, :] @ k_turned.transpose(-1, -2)))
    return torch.stack(heads, dim=-3)


def absorbed_by_tokens(q_content, q_turned, latent, k_turned, W_uk):
    absorbed = (W_uk.unsqueeze(-3) * q_content.unsqueeze(-2)).sum(-1)  # (..., h, m, d_latent)
    columns = [
        (absorbed * latent[..., None, None, j, :]).sum(-1)
        + (q_turned * k_turned[..., None, None, j, :]).sum(-1)
        for j in range(latent.shape[-2])
    ]
    return torch.stack(columns, dim=-1) / math.sqrt(q_content.shape[-1] + q_turned.shape[-1])


def absorbed_by_all_heads_at_once(q_content, q_turned, latent, k_turned, W_uk):
    h, m = q_content.shape[-3:-1]
    absorbed = torch.matmul(q_content, W_uk.transpose(1, 2))
    query = torch.cat((absorbed, q_turned), -1).flatten(-3, -2)  # (..., h · m, d_latent + d_r)
    scores = query @ torch.cat((latent, k_turned), -1).transpose(-2, -1)
    return scores.unflatten(-2, (h, m)) / np.sqrt(q_content.shape[-1] + q_turned.shape[-1])


def delta_by_projections(query, key, value, beta):
    """S ← (I − β k kᵀ) S + β k vᵀ."""
    eye = torch.eye(key.shape[-1], dtype=key.dtype)
    state = torch.zeros(*value.shape[:-2], key.shape[-1], value.shape[-1], dtype=value.dtype)
    outputs = []
    for q, k, v, b in zip(
        query.unbind(-2), key.unbind(-2), value.unbind(-2), beta.unbind(-1), strict=True
    ):
        b, k = b[..., None, None], k.unsqueeze(-1)
        state = (eye - b * k @ k.mT) @ state + b * k @ v.unsqueeze(-2)
        outputs.append((state.mT @ q.unsqueeze(-1)).squeeze(-1))
    return torch.stack(outputs, dim=-2)


def delta_by_a_triangle(query, key, value, beta):
    """What each token writes solves a triangular system, since it lacks what was written before."""
    n = key.shape[-2]
    strength = beta.unsqueeze(-1)
    system = (strength * (key @ key.mT)).tril(-1) + torch.eye(n, dtype=key.dtype)
    written = torch.linalg.solve_triangular(system, strength * value, upper=False)
    return (query @ key.mT).tril() @ written


def delta_by_letters(query, key, value, beta):
    state, outputs = torch.einsum("...k,...v->...kv", 0 * key[..., 0, :], value[..., 0, :]), []
    for t in range(key.shape[-2]):
        value_read = torch.einsum("...kv,...k->...v", state, key[..., t, :])
        error = beta[..., t : t + 1] * (value[..., t, :] - value_read)
        state = state + torch.einsum("...k,...v->...kv", key[..., t, :], error)
        outputs.append(torch.einsum("...kv,...k->...v", state, query[..., t, :]))
    return torch.stack(outputs, -2)


def delta_with_the_state_turned(query, key, value, beta):
    """The state is (d_v, d_k), as in the papers."""
    state, outputs = value.new_zeros(*value.shape[:-2], value.shape[-1], key.shape[-1]), []
    for t in range(key.shape[-2]):
        k, v, b = key[..., t, :, None], value[..., t, :, None], beta[..., t, None, None]
        old = state @ k
        new = b * v + (1 - b) * old
        state = state - old @ k.mT + new @ k.mT
        outputs.append(state @ query[..., t, :, None])
    return torch.cat(outputs, -1).mT


def delta_by_what_was_written(query, key, value, beta):
    """No state: the vectors that were written, one for each token."""
    written, outputs = [], []
    for t in range(key.shape[-2]):
        k, q = key[..., t, :], query[..., t, :]
        value_read = sum(
            ((key[..., s, :] * k).sum(-1, keepdim=True) * w for s, w in enumerate(written)),
            torch.zeros_like(value[..., t, :]),
        )
        written.append(beta[..., t, None] * (value[..., t, :] - value_read))
        outputs.append(
            sum((key[..., s, :] * q).sum(-1, keepdim=True) * w for s, w in enumerate(written))
        )
    return torch.stack(outputs, dim=-2)


def refuse_few(k):
    if k < 1:
        raise ValueError("k is at least 1")


def select_by_loops(index_scores, k, mask):
    refuse_few(k)
    return chosen_by_loops(index_scores, k, mask)


def select_by_sorting(index_scores, k, mask):
    refuse_few(k)
    hidden = torch.where(mask, index_scores, -torch.inf)
    order = torch.sort(hidden, dim=-1, descending=True, stable=True).indices[..., :k]
    chosen = torch.zeros_like(hidden, dtype=torch.bool)
    return chosen.scatter_(-1, order, True).logical_and(mask)


def select_by_ranks(index_scores, k, mask):
    refuse_few(k)
    hidden = index_scores.masked_fill(~mask, -math.inf)
    rank = hidden.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    return (rank < k) & mask


def select_by_pairs(index_scores, k, mask):
    """A key is chosen where fewer than k allowed ones are better."""
    refuse_few(k)
    n = index_scores.shape[-1]
    mask = mask.expand(index_scores.shape)
    own_scores, other_scores = index_scores[..., :, None], index_scores[..., None, :]
    earlier = torch.arange(n) < torch.arange(n)[:, None]
    better = ((other_scores > own_scores) | ((other_scores == own_scores) & earlier)) & mask[
        ..., None, :
    ]
    return (better.sum(-1) < k) & mask


def select_by_numpy(index_scores, k, mask):
    refuse_few(k)
    scores, allowed = index_scores.numpy(), np.broadcast_to(mask.numpy(), index_scores.shape)
    order = np.argsort(np.where(allowed, -scores, np.inf), axis=-1, kind="stable")
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, order[..., :k], True, axis=-1)
    return torch.from_numpy(chosen & allowed)


def select_one_by_one(index_scores, k, mask):
    refuse_few(k)
    remaining, chosen = (
        mask.expand(index_scores.shape).clone(),
        torch.zeros_like(index_scores).bool(),
    )
    for _ in range(min(k, index_scores.shape[-1])):
        best = index_scores.masked_fill(~remaining, -math.inf).max(-1, keepdim=True).values
        ties = (remaining & (index_scores == best)).int()
        first = (ties.cumsum(-1) == 1) & ties.bool()
        chosen, remaining = chosen | first, remaining & ~first
    return chosen


def bytes_by_cases(config, n_tokens, bytes_per_number=2):
    if n_tokens <= 0:
        raise ValueError("no tokens")
    total = 0
    for kind in config["layers"]:
        match kind:
            case "full":
                total += 2 * config["n_kv_heads"] * config["d_head"] * n_tokens
            case "window":
                n_stored = min(n_tokens, config["window"])
                total += 2 * config["n_kv_heads"] * config["d_head"] * n_stored
            case "latent":
                total += (config["d_latent"] + config["d_turned"]) * n_tokens
            case "state":
                total += config["d_state"]
    return total * bytes_per_number


def bytes_by_table(config, n_tokens, bytes_per_number=2):
    if not n_tokens > 0:
        raise ValueError(n_tokens)
    pair = 2 * config["n_kv_heads"] * config["d_head"]
    numbers = {
        "full": pair * n_tokens,
        "window": pair * min(config["window"], n_tokens),
        "latent": n_tokens * (config["d_latent"] + config["d_turned"]),
        "state": config["d_state"],
    }
    return bytes_per_number * sum(numbers[kind] for kind in config["layers"])


def bytes_by_counts(config, n_tokens, bytes_per_number=2):
    if n_tokens < 1:
        raise ValueError("expected a text")
    count, heads = config["layers"].count, config["n_kv_heads"] * config["d_head"]
    tokens = count("full") * n_tokens + count("window") * min(n_tokens, config["window"])
    latent = count("latent") * (config["d_latent"] + config["d_turned"]) * n_tokens
    return (2 * heads * tokens + latent + count("state") * config["d_state"]) * bytes_per_number


def bytes_with_defaults(config, n_tokens, bytes_per_number=2):
    if n_tokens < 1:
        raise ValueError("expected a text")
    layers, numbers = list(config["layers"]), 0.0
    while layers:
        kind = layers.pop()
        seen = config["window"] if kind == "window" else n_tokens
        width = 2 * config["d_head"] * config["n_kv_heads"]
        if kind == "latent":
            width = config["d_latent"] + config["d_turned"]
        numbers += config["d_state"] if kind == "state" else width * min(seen, n_tokens)
    return numbers * bytes_per_number


def bytes_token_by_token(config, n_tokens, bytes_per_number=2):
    if n_tokens < 1:
        raise ValueError("expected a text")
    total = 0
    for kind in config["layers"]:
        if kind in ("full", "window"):
            reach = n_tokens if kind == "full" else config["window"]
            tokens = len(range(max(0, n_tokens - reach), n_tokens))
            total += np.prod([2, tokens, config["n_kv_heads"], config["d_head"]])
        elif kind == "latent":
            total += np.dot([config["d_latent"], config["d_turned"]], [n_tokens, n_tokens])
        else:
            total += config["d_state"]
    return int(total) * bytes_per_number


RIGHT = {
    "today.normed_scores": [
        normed_by_library,
        normed_by_lengths,
        normed_by_rsqrt,
        normed_by_rows,
        normed_by_modules,
    ],
    "today.sink_softmax": [
        sink_by_one_more_key,
        sink_by_exponentials,
        sink_by_logarithms,
        sink_masked_afterwards,
        sink_by_heads,
    ],
    "today.absorbed_scores": [
        absorbed_by_letters,
        absorbed_side_by_side,
        absorbed_by_heads,
        absorbed_by_tokens,
        absorbed_by_all_heads_at_once,
    ],
    "today.delta_rule": [
        delta_by_projections,
        delta_by_a_triangle,
        delta_by_letters,
        delta_with_the_state_turned,
        delta_by_what_was_written,
    ],
    "today.select_keys": [
        select_by_loops,
        select_by_sorting,
        select_by_ranks,
        select_by_pairs,
        select_by_numpy,
        select_one_by_one,
    ],
    "today.cache_bytes_of": [
        bytes_by_cases,
        bytes_by_table,
        bytes_by_counts,
        bytes_with_defaults,
        bytes_token_by_token,
    ],
}
