"""Chapter 13: the model against transformers, PyTorch and loops, and other right answers."""

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from torch import nn
from torch.nn import functional as F

from attncourse import gpt
from attncourse.checks import callers, exercises
from attncourse.checks.exercise import Case
from attncourse.checks.judging import judge
from attncourse.checks.trying.outcome import Outcome, Unusable, outcome_of_facts
from attncourse.checks.trying.trials import draw
from attncourse.gpt import (
    GPT,
    GPTConfig,
    attend_with_cache,
    filter_logits,
    generate,
    next_token_loss,
    perplexity,
    sample_token,
)
from attncourse.kqv import scaled_dot_product_attention
from attncourse.masking import causal_mask
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def loss_of_torch(logits, ids, padding_id=None):
    targets = ids[..., 1:].flatten().long()
    if padding_id is not None:
        targets = targets.masked_fill(targets == padding_id, -100)
    guesses = logits[..., :-1, :].flatten(0, -2)
    total = F.cross_entropy(guesses, targets, reduction="sum")
    return total / max(int((targets != -100).sum()), 1)


def loss_by_loops(logits, ids, padding_id=None):
    rows, targets = logits.flatten(0, -3) if logits.ndim > 2 else logits[None], ids
    targets = targets.reshape(-1, ids.shape[-1])
    total, count = logits.sum() * 0, 0
    for row, target in zip(rows, targets, strict=True):
        for t in range(len(target) - 1):
            if padding_id is not None and int(target[t + 1]) == padding_id:
                continue
            total = total + torch.logsumexp(row[t], -1) - row[t, target[t + 1]]
            count += 1
    return total / count if count else total


def loss_one_hot(logits, ids, padding_id=None):
    targets = ids[..., 1:]
    guesses = logits[..., :-1, :]
    hot = F.one_hot(targets.long(), logits.shape[-1]).to(logits.dtype)
    surprise = -(torch.log_softmax(guesses, -1) * hot).sum(-1)
    keep = torch.ones_like(targets, dtype=torch.bool)
    if padding_id is not None:
        keep = targets != padding_id
    return surprise[keep].sum() / max(1, int(keep.sum()))


def loss_by_ignore_index(logits, ids, padding_id=None):
    if ids.shape[-1] < 2:
        return (logits * 0).sum()
    targets = ids[..., 1:].reshape(-1).long()
    if padding_id is not None and bool((targets == padding_id).all()):
        return (logits * 0).sum()
    ignored = -100 if padding_id is None else padding_id
    guesses = logits[..., :-1, :].reshape(-1, logits.shape[-1])
    return F.cross_entropy(guesses, targets, ignore_index=ignored)


def loss_in_numbers(logits, ids, padding_id=None):
    """Shifted down by the greatest, exponentials, sums."""
    guesses, targets = logits[..., :-1, :], ids[..., 1:, None]
    lowered = guesses - guesses.max(-1, keepdim=True).values
    surprise = lowered.exp().sum(-1).log() - lowered.gather(-1, targets).squeeze(-1)
    counts = targets[..., 0] != (-1 if padding_id is None else padding_id)
    return torch.where(counts, surprise, 0.0).sum() / counts.sum().clamp(min=1)


def loss_rolled(logits, ids, padding_id=None):
    """The whole sequence, the targets rolled back, and no weight for the last row."""
    targets = ids.roll(-1, dims=-1)
    weights = torch.ones_like(ids, dtype=logits.dtype)
    weights[..., -1] = 0
    if padding_id is not None:
        weights = weights * (targets != padding_id)
    surprise = -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1))[..., 0]
    return (surprise * weights).sum() / weights.sum().clamp(min=1)


def cut_by_threshold(logits, top_k=None, top_p=None):
    """Loops over rows, Python's own sort."""
    rows = logits.reshape(-1, logits.shape[-1])
    out = []
    for row in rows:
        indices = sorted(range(len(row)), key=lambda i: (-float(row[i].detach()), i))
        if top_k is not None:
            indices = indices[:top_k]
        if top_p is not None:
            shares = torch.stack([row[i] for i in indices]).double().softmax(-1).tolist()
            total, chosen = 0.0, []
            for i, share in zip(indices, shares, strict=True):
                chosen.append(i)
                total += share
                if total >= top_p:
                    break
            indices = chosen
        keep = torch.zeros(len(row), dtype=torch.bool)
        keep[indices] = True
        out.append(torch.where(keep, row, -math.inf))
    return torch.stack(out).reshape(logits.shape)


def cut_by_scatter(logits, top_k=None, top_p=None):
    if top_k is not None:
        _, best = torch.sort(logits, dim=-1, descending=True, stable=True)
        best = best[..., :top_k]
        only = torch.full_like(logits, -math.inf)
        logits = only.scatter(-1, best, logits.gather(-1, best))
    if top_p is not None:
        values, order = logits.sort(dim=-1, descending=True, stable=True)
        reached = values.softmax(-1).cumsum(-1)
        gone = F.pad(reached[..., :-1], (1, 0)) >= top_p
        gone[..., 0] = False
        logits = logits.masked_fill(torch.zeros_like(gone).scatter(-1, order, gone), -math.inf)
    return logits + 0


def cut_by_ranks(logits, top_k=None, top_p=None):
    """A token's rank is how many are above it, or equal with a lower id."""

    def before(x):
        ids = torch.arange(x.shape[-1])
        above = x[..., None, :] > x[..., :, None]
        return above | ((x[..., None, :] == x[..., :, None]) & (ids[None, :] < ids[:, None]))

    if top_k is not None:
        logits = torch.where(before(logits).sum(-1) < top_k, logits, -math.inf)
    if top_p is not None:
        shares = logits.softmax(-1)
        ahead = (before(logits) * shares[..., None, :]).sum(-1)
        logits = torch.where(ahead < top_p, logits, -math.inf)
    return logits * 1


def cut_one_by_one(logits, top_k=None, top_p=None):
    """Takes the likeliest again and again."""
    if logits.ndim > 1:
        return torch.stack([cut_one_by_one(row, top_k, top_p) for row in logits])
    rest, keep = logits.detach().clone(), torch.zeros(len(logits), dtype=torch.bool)
    for _ in range(len(logits) if top_k is None else top_k):
        best = int((rest == rest.max()).nonzero()[0])
        keep[best], rest[best] = True, -math.inf
    logits = logits.masked_fill(~keep, -math.inf)
    if top_p is not None and top_p < 1:
        shares, keep, total = logits.detach().softmax(-1), torch.zeros_like(keep), 0.0
        while total < top_p - 1e-12:
            best = int(shares.argmax())
            total += float(shares[best])
            keep[best], shares[best] = True, -1.0
        logits = logits.masked_fill(~keep, -math.inf)
    return logits


def cut_in_numpy_order(logits, top_k=None, top_p=None):
    """Ranks by NumPy, values by torch."""
    order = np.argsort(-logits.detach().numpy(), axis=-1, kind="stable")
    order = torch.from_numpy(np.ascontiguousarray(order))
    place = torch.empty_like(order).scatter_(
        -1, order, torch.arange(order.shape[-1]).expand_as(order)
    )
    if top_k is not None:
        logits = torch.where(place < top_k, logits, torch.tensor(-math.inf, dtype=logits.dtype))
    if top_p is not None:
        along = logits.softmax(-1).gather(-1, order)
        number = (along.cumsum(-1) < top_p).sum(-1, keepdim=True) + 1
        logits = torch.where(place < number, logits, torch.tensor(-math.inf, dtype=logits.dtype))
    return logits.clone()


def drawn_by_gumbel(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.max(-1).indices
    filtered = filter_logits(logits / temperature, top_k, top_p)
    u = torch.rand(filtered.shape, generator=generator, dtype=torch.float64).clamp(
        1e-300, 1 - 1e-16
    )
    return (filtered.double() - (-u.log()).log()).argmax(-1)


def drawn_by_cumsum(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature < 1e-12:
        return torch.argmax(logits, dim=-1)
    shares = cut_by_scatter(logits / temperature, top_k, top_p).double().softmax(-1)
    ends = shares.cumsum(-1)
    u = torch.rand(shares.shape[:-1], generator=generator, dtype=torch.float64)
    return (u[..., None] * ends[..., -1:] >= ends).sum(-1)


def drawn_row_by_row(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if logits.ndim > 1:
        rows = [drawn_row_by_row(row, temperature, top_k, top_p, generator) for row in logits]
        return torch.stack(rows)
    if temperature == 0:
        return logits.argmax()
    shares = torch.softmax(filter_logits(logits / temperature, top_k, top_p), 0)
    return torch.multinomial(shares, 1, generator=generator)[0]


def drawn_as_in_package(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """The likeliest kept alone at temperature 0."""
    if temperature == 0:
        temperature, top_k, top_p = 1, 1, None
    shares = cut_by_scatter(logits.double() / temperature, top_k, top_p).softmax(-1)
    ids = torch.multinomial(
        shares.flatten(0, -2) if shares.ndim > 1 else shares, 1, generator=generator
    )
    return ids.view(shares.shape[:-1])


def drawn_by_exponentials(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """The first of several clocks that tick at rates in proportion to the shares."""
    if temperature == 0:
        return logits.argmax(-1)
    shares = filter_logits(logits / temperature, top_k, top_p).double().softmax(-1)
    waits = torch.empty_like(shares).exponential_(generator=generator)
    return (waits / shares).argmin(-1)


def written_recursively(model, ids, n_new, choose=None):
    if n_new == 0:
        return ids
    logits = model(ids[..., max(0, ids.shape[-1] - model.max_length) :])
    token = (choose or (lambda x: x.argmax(-1)))(logits[..., -1, :])
    return written_recursively(model, torch.cat((ids, token.unsqueeze(-1)), -1), n_new - 1, choose)


def written_in_place(model, ids, n_new, choose=None):
    n = ids.shape[-1]
    text = torch.zeros(*ids.shape[:-1], n + n_new, dtype=ids.dtype)
    text[..., :n] = ids
    for t in range(n, n + n_new):
        logits = model(text[..., max(0, t - model.max_length) : t])[..., -1, :]
        text[..., t] = logits.max(-1)[1] if choose is None else choose(logits)
    return text


def written_as_list(model, ids, n_new, choose=None):
    tokens = list(ids.unbind(-1))
    for _ in range(n_new):
        context = torch.stack(tokens[-model.max_length :], -1)
        last = model(context).select(-2, -1)
        tokens.append(choose(last) if choose else torch.argmax(last, dim=-1))
    return torch.stack(tokens, -1)


def written_one_by_one(model, ids, n_new, choose=None):
    """Each sequence by itself."""
    if ids.ndim > 1:
        return torch.stack([written_one_by_one(model, sequence, n_new, choose) for sequence in ids])
    return written_as_list(model, ids, n_new, choose)


@torch.no_grad()
def written_with_a_window(model, ids, n_new, choose=None):
    window, new = ids[..., -model.max_length :], []
    for _ in range(n_new):
        logits = model(window)[..., -1, :]
        token = (logits.topk(1).indices[..., 0] if choose is None else choose(logits))[..., None]
        new.append(token)
        window = torch.cat([window, token], -1)[..., -model.max_length :]
    return torch.cat([ids, *new], -1)


def perplexed_by_numpy(losses, counts):
    return float(np.exp(np.average(np.asarray(losses, float), weights=np.asarray(counts, float))))


def perplexed_by_shares(losses, counts):
    total = float(sum(int(c) for c in counts))
    return math.exp(
        math.fsum(float(a) * int(c) / total for a, c in zip(losses, counts, strict=True))
    )


def perplexed_token_by_token(losses, counts):
    every = [float(a) for a, c in zip(losses, counts, strict=True) for _ in range(int(c))]
    return math.exp(math.fsum(every) / len(every))


def perplexed_running(losses, counts):
    mean, seen = 0.0, 0
    for loss, count in zip(losses, counts, strict=True):
        if count:
            seen += int(count)
            mean += (float(loss) - mean) * int(count) / seen
    return math.e**mean


def perplexed_in_torch(losses, counts):
    a, c = torch.as_tensor(losses, dtype=torch.double), torch.as_tensor(counts).double()
    return torch.exp(a @ (c / c.sum()))


def cached_by_loops(query, key, value, cache=None):
    """One new token after the other, over a cache that grows."""
    keys, values = cache if cache is not None else (key[..., :0, :], value[..., :0, :])
    outputs = []
    for i in range(query.shape[-2]):
        keys = torch.cat([keys, key[..., i : i + 1, :]], -2)
        values = torch.cat([values, value[..., i : i + 1, :]], -2)
        scores = query[..., i : i + 1, :] @ keys.mT / math.sqrt(query.shape[-1])
        outputs.append(scores.softmax(-1) @ values)
    return torch.cat(outputs, -2), (keys, values)


def cached_by_torch(query, key, value, cache=None):
    if cache:
        key, value = torch.cat((cache[0], key), -2), torch.cat((cache[1], value), -2)
    m, n = query.shape[-2], key.shape[-2]
    mask = torch.tril(torch.ones(m, n, dtype=torch.bool), diagonal=n - m)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask), (key, value)


def cached_by_places(query, key, value, cache=None):
    """Places of queries and keys compared; −1e9 where masked."""
    c = 0
    if cache is not None:
        c = cache[0].size(-2)
        key, value = (torch.cat(both, dim=-2) for both in zip(cache, (key, value), strict=True))
    place = torch.arange(c + query.size(-2))
    ahead = place[None, :] > place[c:, None]
    scores = torch.einsum("...id,...jd->...ij", query, key) * query.size(-1) ** -0.5
    weights = torch.softmax(scores.masked_fill(ahead, -1e9), -1)
    return torch.einsum("...ij,...jd->...id", weights, value), (key, value)


def cached_in_two_blocks(query, key, value, cache=None):
    """Old and new tokens scored apart, then one softmax."""
    scale, m = query.shape[-1] ** -0.5, query.shape[-2]
    new = (query @ key.mT * scale).masked_fill(~causal_mask(m), -math.inf)
    if cache is None:
        return new.softmax(-1) @ value, (key, value)
    old = query @ cache[0].mT * scale
    weights = torch.cat([old, new], -1).softmax(-1)
    c = cache[0].shape[-2]
    output = weights[..., :c] @ cache[1] + weights[..., c:] @ value
    return output, (torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2))


def cached_as_list(query, key, value, cache=None):
    """A list comes back, and a mask of numbers is added."""
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    m, n = query.shape[-2], key.shape[-2]
    ahead = torch.full((m, n), -math.inf, dtype=query.dtype).triu(n - m + 1)
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5 + ahead
    return [scores.softmax(-1) @ value, [key, value]]


def cached_as_one_sequence(query, key, value, cache=None):
    """Queries of the old tokens are made up, and their rows thrown away."""
    if cache is None:
        return cached_by_torch(query, key, value)
    c = cache[0].shape[-2]
    key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    padded = F.pad(query, (0, 0, c, 0))
    output = scaled_dot_product_attention(padded, key, value, causal_mask(key.shape[-2]))
    return output[..., c:, :], (key, value)


RIGHT = {
    "gpt.next_token_loss": [
        loss_of_torch,
        loss_by_loops,
        loss_one_hot,
        loss_by_ignore_index,
        loss_in_numbers,
        loss_rolled,
    ],
    "gpt.filter_logits": [
        cut_by_threshold,
        cut_by_scatter,
        cut_by_ranks,
        cut_one_by_one,
        cut_in_numpy_order,
    ],
    "gpt.sample_token": [
        drawn_by_gumbel,
        drawn_by_cumsum,
        drawn_row_by_row,
        drawn_as_in_package,
        drawn_by_exponentials,
    ],
    "gpt.generate": [
        written_recursively,
        written_in_place,
        written_as_list,
        written_one_by_one,
        written_with_a_window,
    ],
    "gpt.perplexity": [
        perplexed_by_numpy,
        perplexed_by_shares,
        perplexed_token_by_token,
        perplexed_running,
        perplexed_in_torch,
    ],
    "gpt.attend_with_cache": [
        cached_by_loops,
        cached_by_torch,
        cached_by_places,
        cached_in_two_blocks,
        cached_as_list,
        cached_as_one_sequence,
    ],
}


# --- the package against oracles -------------------------------------------------------------


def small_gpt(**changed) -> GPT:
    """A model with weights of order one and biases that are not zero."""
    torch.manual_seed(3)
    settings = {"n_vocab": 13, "max_length": 11, "d_model": 12, "n_heads": 3, "n_layers": 2}
    model = GPT(GPTConfig(**settings | changed))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model.eval().double()


def gpt2(transformers, **changed):
    settings = {"vocab_size": 17, "n_positions": 13, "n_embd": 12, "n_layer": 3, "n_head": 3}
    config = transformers.GPT2Config(**settings | changed, attn_pdrop=0, embd_pdrop=0)
    torch.manual_seed(4)
    model = transformers.GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_those_of_transformers(transformers, tied):
    library_model = gpt2(transformers, tie_word_embeddings=tied)
    model = GPT.from_huggingface(library_model)
    ids = torch.randint(17, (2, 13))
    with torch.no_grad():
        expected = library_model(ids).logits
        assert torch.allclose(model(ids), expected, atol=1e-4)
        logits, cache = model(ids[:, :5], [])
        more, _ = model(ids[:, 5:], cache)
        assert torch.allclose(torch.cat([logits, more], 1), expected, atol=1e-4)
    assert (model.out.weight is model.tokens.weight) == tied
    before = model(ids)
    with torch.no_grad():
        library_model.transformer.wte.weight.zero_()
    assert torch.equal(model(ids), before), "copies, not the same memory"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"activation_function": "relu"}, "activation_function"),
        ({"layer_norm_epsilon": 1e-3}, "layer_norm_epsilon"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ({"scale_attn_weights": False}, "scale_attn_weights"),
    ],
)
def test_another_model_than_gpt2_is_refused(transformers, changed, message):
    with pytest.raises(ValueError, match=message):
        GPT.from_huggingface(gpt2(transformers, **changed))


def test_models_that_are_no_gpt2_are_refused():
    with pytest.raises(ValueError, match="GPT2LMHeadModel, got Linear"):
        GPT.from_huggingface(nn.Linear(2, 2))


def test_loss_by_hand_and_against_pytorch():
    shares = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.3, 0.5]]).log()
    loss = next_token_loss(shares, torch.tensor([0, 1, 2]))
    assert float(loss) == pytest.approx((math.log(4) - math.log(0.8)) / 2)
    logits, ids = torch.randn(3, 7, 5), torch.randint(5, (3, 7))
    expected = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert torch.allclose(next_token_loss(logits, ids), expected)
    expected_without_padding = F.cross_entropy(
        logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=2
    )
    assert torch.allclose(next_token_loss(logits, ids, 2), expected_without_padding)


def test_the_loss_of_nothing_is_0_and_has_a_gradient():
    logits = torch.randn(2, 5, 7, requires_grad=True)
    loss = next_token_loss(logits, torch.full((2, 5), 3), 3)
    loss.backward()
    assert loss == 0
    assert torch.equal(logits.grad, torch.zeros_like(logits))
    assert next_token_loss(logits[:, :1], torch.tensor([[3], [1]])) == 0


def test_filter_by_hand():
    logits = torch.tensor([0.1, 0.5, 0.15, 0.25]).log()

    def kept_ids(**cut):
        return filter_logits(logits, **cut).isfinite().nonzero().flatten().tolist()

    assert kept_ids(top_k=2) == [1, 3]
    assert kept_ids(top_p=0.5) == [1]
    assert kept_ids(top_p=0.6) == [1, 3]
    assert kept_ids(top_p=0.8) == [1, 2, 3]
    assert kept_ids(top_k=2, top_p=0.6) == [1]
    assert kept_ids(top_p=1.0) == kept_ids() == [0, 1, 2, 3]
    ties = torch.zeros(5)
    assert filter_logits(ties, top_k=2).isfinite().tolist() == [True, True, False, False, False]
    assert filter_logits(logits) is not logits
    assert filter_logits(logits, top_p=1.0) is not logits


@given(st.integers(2, 17), st.integers(1, 17), st.floats(0.01, 1), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_top_p_is_the_smallest_set_that_reaches_p(n, k, p, seed):
    torch.manual_seed(seed)
    logits = torch.randn(n, dtype=torch.float64)
    k = min(k, n)
    filtered = filter_logits(logits, k)
    shares = filtered.softmax(-1)
    is_kept = filter_logits(logits, k, p).isfinite()
    assert shares[is_kept].sum() >= p - 1e-12
    least = shares[is_kept].min()
    if is_kept.sum() > 1:
        assert shares[is_kept].sum() - least < p
    dropped = shares[~is_kept]
    assert not len(dropped) or dropped.max() <= least


def test_tokens_come_as_often_as_they_should():
    logits = torch.tensor([3.0, 2.0, 1.0]).log().expand(20_000, 3)
    drawn = sample_token(logits, generator=torch.Generator().manual_seed(0))
    shares = torch.bincount(drawn) / len(drawn)
    assert torch.allclose(shares, torch.tensor([3, 2, 1]) / 6, atol=0.02)
    hot = sample_token(logits, temperature=1e6, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(torch.bincount(hot) / len(hot), torch.full((3,), 1 / 3), atol=0.02)
    assert sample_token(logits[0] * 1e30, temperature=1e-30) == 0
    assert sample_token(logits[0]).shape == ()
    assert sample_token(logits[:6].view(1, 2, 3, 3)).shape == (1, 2, 3)


def test_the_generator_decides_and_the_global_one_is_unchanged():
    logits = torch.zeros(40, 7)
    state = torch.get_rng_state()
    first, again = (
        sample_token(logits, generator=torch.Generator().manual_seed(5)) for _ in range(2)
    )
    assert torch.equal(first, again)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("n_new", [0, 1, 4, 20])
def test_the_cache_writes_what_the_loop_writes(n_new):
    model = small_gpt()
    for ids in (torch.tensor([3]), torch.randint(13, (2, 9)), torch.randint(13, (2, 3, 14))):
        plain = generate(model, ids, n_new)
        assert plain.shape == (*ids.shape[:-1], ids.shape[-1] + n_new)
        assert torch.equal(plain[..., : ids.shape[-1]], ids)
        assert torch.equal(model.generate(ids, n_new), plain)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
@settings(max_examples=20, deadline=None)
def test_logits_are_the_same_in_any_pieces(sizes):
    model, ids = small_gpt(max_length=25), torch.randint(13, (2, sum(sizes)))
    with torch.no_grad():
        full_logits, cache, rows = model(ids), [], []
        for piece in ids.split(sizes, dim=1):
            logits, cache = model(piece, cache)
            rows.append(logits)
    assert torch.allclose(torch.cat(rows, 1), full_logits, atol=1e-10)
    assert [k.shape[-2] for k, _ in cache] == [sum(sizes)] * 2


def test_no_row_sees_a_later_token():
    model, ids = small_gpt(), torch.randint(13, (7,))
    changed = ids.clone()
    changed[4:] = (changed[4:] + 1) % 13
    with torch.no_grad():
        assert torch.equal(model(ids)[:4], model(changed)[:4])
        assert not torch.allclose(model(ids)[4:], model(changed)[4:])


def test_attention_with_a_cache_is_attention():
    q, k, v = (torch.randn(2, 7, d, dtype=torch.float64, requires_grad=True) for d in (4, 4, 3))
    expected = scaled_dot_product_attention(q, k, v, causal_mask(7))
    cache = k[:, :4], v[:, :4]
    output, (keys, values) = attend_with_cache(q[:, 4:], k[:, 4:], v[:, 4:], cache)
    assert torch.allclose(output, expected[:, 4:], atol=1e-12)
    assert torch.equal(keys, k)
    assert torch.equal(values, v)
    gradients = torch.autograd.grad(output.sum(), (k, v), retain_graph=True)
    expected_gradients = torch.autograd.grad(expected[:, 4:].sum(), (k, v))
    assert all(torch.allclose(a, b) for a, b in zip(gradients, expected_gradients, strict=True))
    assert (gradients[0][:, :4] != 0).any()


def test_perplexity_by_hand():
    assert perplexity([math.log(2), math.log(8)], [30, 10]) == pytest.approx(2**1.5)
    assert perplexity([1.0, math.inf], [3, 0]) == pytest.approx(math.e)
    assert perplexity(torch.tensor([2.0]), torch.tensor([7])) == pytest.approx(math.e**2)


def test_a_gpt_has_its_sizes_and_initial_weights():
    tied, untied = (GPT(GPTConfig(45, 17, tied=tied)) for tied in (True, False))
    count = [sum(p.numel() for p in m.parameters()) for m in (tied, untied)]
    blocks = 2 * (12 * 64**2 + 4 * 64 + 5 * 64 + 4 * 64)
    assert count[0] == 45 * 64 + 17 * 64 + blocks + 2 * 64
    assert count[1] - count[0] == 45 * 64
    bare = GPT(GPTConfig(45, 17, bias=False, n_layers=1, d_ff=7))
    names = {n for n, _ in bare.named_parameters() if n.endswith("bias")}
    assert names == {"blocks.0.norm_1.bias", "blocks.0.norm_2.bias", "norm.bias"}
    shares = tied(torch.randint(45, (3, 17))).softmax(-1)
    assert shares.max() < 3 / 45, "the first guesses are nearly uniform"


# --- bad input -------------------------------------------------------------------------------

Z, IDS = torch.randn(5, 7), torch.randint(7, (5,))
MODEL = small_gpt()
CACHE = (torch.randn(2, 3, 4), torch.randn(2, 3, 5))
NEW = torch.randn(2, 1, 4), torch.randn(2, 1, 4), torch.randn(2, 1, 5)

BAD_INPUT = {
    "an id without a logit": (lambda: next_token_loss(Z, IDS.clone().fill_(7)), "0 to 6, got 7 at"),
    "ids of another shape": (lambda: next_token_loss(Z, IDS[:3]), "expected the same n"),
    "ids that are floats": (lambda: next_token_loss(Z, IDS.float()), "whole numbers"),
    "top_k of 0": (lambda: filter_logits(Z, top_k=0), "from 1 to 7, got 0"),
    "top_k above the vocabulary": (lambda: filter_logits(Z, top_k=8), "from 1 to 7, got 8"),
    "top_k that is no whole number": (lambda: filter_logits(Z, top_k=2.0), "whole number"),
    "top_p of 0": (lambda: filter_logits(Z, top_p=0.0), "above 0 and at most 1"),
    "top_p above 1": (lambda: filter_logits(Z, top_p=1.2), "at most 1, got 1.2"),
    "top_p of NaN": (lambda: filter_logits(Z, top_p=math.nan), "at most 1"),
    "a negative temperature": (lambda: sample_token(Z, -1.0), "from 0 on, got -1"),
    "an infinite temperature": (lambda: sample_token(Z, math.inf), "from 0 on, got inf"),
    "an empty prompt": (lambda: generate(MODEL, IDS[:0], 2), "one token or more"),
    "an empty prompt to the method": (lambda: MODEL.generate(IDS[:0], 2), "one token or more"),
    "a negative number": (lambda: generate(MODEL, IDS, -1), "at least 0, got -1"),
    "a number that is none": (lambda: MODEL.generate(IDS, 2.5), "whole number"),
    "ids outside the vocabulary": (lambda: MODEL(torch.tensor([3, 13])), r"13 at index \(1,\)"),
    "negative ids": (lambda: MODEL(torch.tensor([-1])), "got -1"),
    "a sequence too long": (lambda: MODEL(torch.zeros(12).long()), "at most 11 tokens, got 12"),
    "a cache that leaves no room": (
        lambda: MODEL(torch.zeros(8).long(), MODEL(torch.zeros(4).long(), [])[1]),
        "at most 7 tokens, got 8",
    ),
    "a cache of another batch": (
        lambda: MODEL(torch.zeros(3, 1).long(), MODEL(torch.zeros(2, 4).long(), [])[1]),
        "cache: expected keys",
    ),
    "a cache of another width": (
        lambda: attend_with_cache(*NEW, (CACHE[0][..., :3], CACHE[1])),
        "cache: expected keys",
    ),
    "heads that do not divide": (lambda: GPT(GPTConfig(7, 5, d_model=10, n_heads=3)), "3"),
    "losses without counts": (lambda: perplexity([1.0, 2.0], [3]), "one count for each loss"),
    "nothing counted": (lambda: perplexity([1.0], [0]), "some targets"),
    "negative counts": (lambda: perplexity([1.0, 1.0], [3, -1]), "some targets"),
}


test_bad_input_is_refused = refused(BAD_INPUT.values())


def test_a_cache_is_unchanged_where_it_is_refused():
    before = copy.deepcopy(CACHE)
    with pytest.raises(ValueError, match="cache"):
        attend_with_cache(*(x[:1] for x in NEW), CACHE)
    assert all(torch.equal(a, b) for a, b in zip(CACHE, before, strict=True))


# --- the checks ------------------------------------------------------------------------------


def test_counts_are_right_with_the_promised_certainty():
    """Every share is near a whole number of sixths; of 700,000 verdicts one rounds one wrong."""
    exercise = exercises()["gpt.sample_token"]
    wrong = 0.0
    for seed in range(3):
        for _, case, expected in draw(exercise, seed):
            if case.use is not callers.shares_drawn:
                continue
            draws, parts, _, _, logits = case.args
            filtered = filter_logits(
                logits / case.kwargs.get("temperature", 1.0),
                case.kwargs.get("top_k"),
                case.kwargs.get("top_p"),
            )
            right = filtered.softmax(-1) * parts
            assert torch.allclose(right, right.round(), atol=0.11)
            assert torch.equal(expected.value, right.round().long())
            counts = np.arange(draws + 1)
            rounded = torch.from_numpy(counts * parts / draws).round().numpy()
            for sixths in right.flatten().tolist():
                wrong += binom.pmf(counts[rounded != round(sixths)], draws, sixths / parts).sum()
    assert wrong / 3 < 1 / 700_000


def test_model_and_choice_are_built_outside_the_answer():
    exercise = exercises()["gpt.generate"]
    seen = []

    def looking(model, ids, n_new, choose=None):
        seen.append((type(model).__mro__[1], model.max_length, model.training, choose))
        return generate(model, ids, n_new, choose)

    assert judge(exercise, looking, 1).passed
    assert {kind for kind, *_ in seen} == {nn.Module}
    assert {length for _, length, *_ in seen} == {4, 6}
    assert not any(training for _, _, training, _ in seen)
    assert any(choose is None for *_, choose in seen)
    assert len([choose for *_, choose in seen if choose]) > 3


def test_only_the_last_tokens_logits_reach_the_choice():
    def every_token(model, ids, n_new, choose=None):
        choose = choose or (lambda logits: logits.argmax(-1))
        for _ in range(n_new):
            chosen = choose(model(ids[..., -model.max_length :]))
            ids = torch.cat([ids, chosen[..., -1:]], dim=-1)
        return ids

    verdict = judge(exercises()["gpt.generate"], every_token, 1)
    assert not verdict.passed
    assert "rows of logits for" in verdict.full


@pytest.mark.parametrize(
    ("returned", "message"),
    [(torch.tensor([9, 9]), "token 9 of 3"), (torch.zeros(2), "ids"), (None, "ids")],
)
def test_a_result_that_is_no_token_is_reported(returned, message):
    with pytest.raises(Unusable, match=message):
        callers.drawn_with_generators(lambda logits, **_: returned, (1, 2), torch.zeros(2, 3))


class EqualToEverything(torch.Tensor):
    """Ids that are equal to everything, and unequal too."""

    def __eq__(self, other):
        return torch.ones(3, dtype=torch.bool)

    __ne__, all, any, clone = __eq__, __eq__, __eq__, lambda self: self


@pytest.mark.parametrize("kind", [torch.Tensor, EqualToEverything])
def test_an_answers_own_equality_does_not_decide(kind):
    def without_the_generator(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
        ids = gpt.sample_token(logits, temperature, top_k, top_p)
        return ids.as_subclass(kind)

    verdict = judge(exercises()["gpt.sample_token"], without_the_generator, 1)
    assert [c.name for c in verdict.criteria if not c.passed] == ["the generator decides"]


def test_a_refilled_tensor_is_not_equal_to_itself():
    buffer = torch.zeros(50, dtype=torch.int64)

    def refilled(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
        ids = gpt.sample_token(logits, temperature, top_k, top_p, generator)
        return buffer.copy_(ids) if ids.shape == buffer.shape else ids

    assert judge(exercises()["gpt.sample_token"], refilled, 1).passed


def test_facts_are_computed_by_the_judge_not_the_answer():
    """Whatever another process says came of a case, it says no truth about it."""
    case = Case(use=callers.drawn_with_generators, facts=callers.decided_by_generators)
    same = torch.zeros(3)
    outcome = outcome_of_facts(
        case, Outcome("value", [same, same + 1, same, same, same + 1, same + 1])
    )
    assert list(outcome.value.values()) == [True] * 4
    forged = outcome_of_facts(case, Outcome("value", dict.fromkeys(outcome.value, True)))
    assert (forged.kind, forged.error, forged.value) == ("raised", Unusable, None)


@pytest.mark.parametrize("returned", [torch.zeros(2), (1, 2), (torch.zeros(2), None)])
def test_a_result_that_is_no_cache_is_reported(returned):
    x = torch.zeros(2, 3)
    with pytest.raises(Unusable):
        callers.attend_in_steps(lambda *_: returned, (1, 1), x, x, x)


def test_the_small_model_refuses_ids_it_cannot_read():
    weights = {"tokens": torch.eye(3), "positions": torch.ones(2, 3), "scores": torch.eye(3)}
    with pytest.raises(ValueError, match="1 to 2 tokens, got 3"):
        callers.call_on_model(
            lambda model, ids, n_new: model(ids), "small_model", torch.zeros(3).long(), 1, **weights
        )


def test_gpt2_has_the_gelu_by_tanh(transformers):
    model = GPT.from_huggingface(gpt2(transformers))
    ids = torch.randint(17, (9,))
    right = model(ids)
    for block in model.blocks:
        block.feed_forward.activation = F.gelu
    assert not torch.allclose(model(ids), right, atol=1e-5)


def test_examples_of_gpt_name_its_functions():
    assert all(callable(getattr(gpt, name.split(".")[1])) for name in RIGHT)
