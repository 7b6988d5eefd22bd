"""Chapter 17: attention in tiles, in windows and by features, against chapter 5's."""

import itertools
import math
import operator
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.autograd import grad
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from attncourse.checks import examine, exercises
from attncourse.checks.callers import call_measured
from attncourse.checks.callers.buffers import buffer_contents, changed_buffers
from attncourse.checks.judging import judge_criteria
from attncourse.checks.trying.trials import try_out
from attncourse.efficient import (
    kv_cache_bytes,
    linear_attention,
    online_softmax,
    tiled_attention,
    windowed_attention,
)
from attncourse.kqv import scaled_dot_product_attention
from attncourse.masking import causal_mask, sliding_window_mask
from helpers.refusals import refused

DOUBLE = {"dtype": torch.float64}
SHAPES = [
    ((7, 5), (11, 5), (11, 3)),
    ((2, 7, 5), (2, 11, 5), (2, 11, 3)),
    ((2, 3, 7, 5), (3, 11, 5), (11, 3)),
    ((1, 5), (1, 5), (1, 2)),
]


def random_inputs(shapes, seed=0):
    torch.manual_seed(seed)
    return [torch.randn(*shape, **DOUBLE).requires_grad_() for shape in shapes]


def with_gradients(attention, arguments, *rest):
    """The output and the gradient of every argument, for a loss without symmetries."""
    out = attention(*arguments, *rest)
    weight = torch.linspace(1, 2, out.numel(), **DOUBLE).view_as(out)
    return [out, *grad((weight * out.sin()).sum(), arguments)]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("block", [1, 3, 4, 11, 128])
def test_tiles_make_the_same_output_and_gradients(shapes, block):
    inputs = random_inputs(shapes)
    m, n = shapes[0][-2], shapes[1][-2]
    masks = [None, causal_mask(m, n), torch.rand(m, n) > 0.5, torch.zeros(m, n).bool()]
    for mask in masks:
        expected = with_gradients(scaled_dot_product_attention, inputs, mask)
        computed = with_gradients(tiled_attention, inputs, mask, block)
        for tensor, expected_tensor in zip(computed, expected, strict=True):
            torch.testing.assert_close(tensor, expected_tensor, atol=1e-12, rtol=1e-12)


def test_tiles_where_scores_are_far_apart():
    """A larger score in a later tile, and scores that exp cannot hold."""
    query = torch.ones(1, 1, **DOUBLE)
    key = torch.tensor([[-2000.0], [0.0], [1000.0], [999.0]], **DOUBLE)
    value = torch.eye(4, **DOUBLE)
    expected = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(tiled_attention(query, key, value, None, 1), expected)


class LargestTensor(TorchDispatchMode):
    """The most numbers that one tensor of the calls inside holds."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return out


def test_no_tensor_of_queries_by_keys_is_made():
    inputs = random_inputs([(512, 4), (768, 4), (768, 4)])
    with LargestTensor() as tiled:
        with_gradients(tiled_attention, inputs, None, 64)
    with LargestTensor() as naive:
        with_gradients(scaled_dot_product_attention, inputs)
    assert naive.numbers == 512 * 768
    assert tiled.numbers <= 64 * 64  # a tile; every argument is smaller


def test_second_pass_agrees_with_finite_differences():
    inputs = random_inputs([(3, 2), (5, 2), (5, 2)])
    assert torch.autograd.gradcheck(lambda *a: tiled_attention(*a, None, 2), inputs)


def test_online_softmax_is_one_pass():
    torch.manual_seed(0)
    scores = 30 * torch.randn(2, 3, 17, **DOUBLE)
    scores[0, 1] = -math.inf
    scores[1, 2, :9] = -math.inf
    for size in (1, 4, 17, 40):
        blocks = iter(scores.split(size, dim=-1))  # can be read once
        maximum, normaliser = online_softmax(blocks)
        assert maximum.shape == normaliser.shape == (2, 3, 1)
        torch.testing.assert_close(maximum, scores.amax(-1, keepdim=True))
        total = (maximum + normaliser.log()).squeeze(-1)
        torch.testing.assert_close(total, scores.logsumexp(-1))
    assert normaliser[0, 1] == 0


@pytest.mark.parametrize("width", [1, 3, 7, 25])
def test_windows_are_chapter_tens_mask(width):
    inputs = random_inputs([(2, 9, 4), (2, 9, 4), (2, 9, 3)])
    mask = sliding_window_mask(9, width)
    expected = with_gradients(scaled_dot_product_attention, inputs, mask)
    computed = with_gradients(windowed_attention, inputs, width)
    for tensor, expected_tensor in zip(computed, expected, strict=True):
        torch.testing.assert_close(tensor, expected_tensor)


def test_windows_hold_no_matrix_of_scores():
    inputs = random_inputs([(1024, 2), (1024, 2), (1024, 2)])
    with LargestTensor() as seen:
        windowed_attention(*inputs, 5)
    assert seen.numbers <= 1024 * 5 * 2


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_is_a_mean_by_its_weights(causal):
    query, key, value = random_inputs([(2, 7, 5), (2, 7, 5), (2, 7, 3)])
    expected = torch.zeros(2, 7, 3, **DOUBLE)
    for b, i in itertools.product(range(2), range(7)):
        seen = range(i + 1 if causal else 7)
        weights = [(F.elu(query[b, i]) + 1) @ (F.elu(key[b, j]) + 1) for j in seen]
        blend = sum(w * value[b, j] for w, j in zip(weights, seen, strict=True))
        expected[b, i] = blend / sum(weights)
    torch.testing.assert_close(linear_attention(query, key, value, causal), expected)


def test_bytes_of_a_cache():
    # One token of Llama 2 7B (32 layers, 32 heads of 128) in 16 bits: half a megabyte.
    assert kv_cache_bytes(1, 32, 32, 128) == 524_288
    assert kv_cache_bytes(4096, 32, 8, 128, 1) == 4096 * 32 * 8 * 128 * 2


test_bad_input_is_refused = refused(
    [
        (lambda: online_softmax([]), "one block of scores or more, got none"),
        (
            lambda: online_softmax([torch.zeros(2, 3), torch.zeros(4, 3)]),
            r"queries \(2,\), got \(4,\)",
        ),
        (lambda: tiled_attention(*random_inputs(SHAPES[0]), None, 0), "block: expected"),
        (lambda: tiled_attention(*random_inputs(SHAPES[0]), torch.ones(7, 11)), "boolean"),
        (lambda: tiled_attention(*random_inputs([(7, 5), (11, 4), (11, 3)])), "same width"),
        (
            lambda: windowed_attention(*random_inputs([(9, 4), (9, 4), (9, 4)]), 4),
            "odd number, got 4",
        ),
        (
            lambda: linear_attention(*random_inputs(SHAPES[0]), True),
            "as many queries as keys, got 7 and",
        ),
        (lambda: kv_cache_bytes(-1, 1, 1, 1), "n_tokens"),
        (lambda: kv_cache_bytes(1, 1, 0, 1), "n_kv_heads"),
    ]
)


# --- right answers in other styles ---------------------------------------------------------------


def online_by_logsumexp(blocks):
    """A running maximum and a running logarithm of the sum."""
    maximum, log = None, None
    for block in blocks:
        best, new = block.amax(-1, keepdim=True), block.logsumexp(-1, keepdim=True)
        maximum = best if maximum is None else torch.maximum(maximum, best)
        log = new if log is None else torch.logaddexp(log, new)
    shift = torch.where(maximum == -math.inf, 0.0, maximum)
    return maximum, (log - shift).exp()


def online_key_by_key(blocks):
    maximum = None
    for block in blocks:
        for score in block.split(1, -1):
            if maximum is None:
                maximum, total = score + 0, (score > -math.inf).to(score.dtype)
                continue
            larger = torch.where(score > maximum, score, maximum)
            at = larger.nan_to_num(neginf=0.0, posinf=math.inf)
            total = total * torch.exp(maximum - at) + torch.exp(score - at)
            maximum = larger
    return maximum, total


def online_from_the_first(blocks):
    """Begins with the first block; both sums are rescaled."""
    blocks = iter(blocks)
    scores = next(blocks)
    m = scores.max(-1, keepdim=True).values
    z = torch.exp(scores - torch.clamp(m, min=-1e30)).sum(-1, keepdim=True)
    for scores in blocks:
        m2 = scores.max(-1, keepdim=True).values
        z2 = torch.exp(scores - torch.clamp(m2, min=-1e30)).sum(-1, keepdim=True)
        m3 = torch.maximum(m, m2)
        safe = torch.clamp(m3, min=-1e30)
        z = z * torch.exp(m - safe) + z2 * torch.exp(m2 - safe)
        m = m3
    return m, z


def online_by_cases(blocks):
    """Rows that have seen nothing are treated apart, with lists and NumPy's minus infinity."""
    best, total = [], []
    for block in blocks:
        best.append(block.max(dim=-1, keepdim=True)[0])
        seen = best[-1].masked_fill(best[-1].isinf(), 0)
        total.append(torch.sum(torch.exp(block - seen), dim=-1, keepdim=True))
    maximum = torch.stack(best).max(0)[0]
    seen = maximum.masked_fill(maximum.isinf(), 0)
    parts = [z * torch.exp(m - seen) for m, z in zip(best, total, strict=True)]
    return [maximum, torch.stack(parts).sum(0)]


def tiled_in_place(query, key, value, mask=None, block=128):
    """A tensor to fill, while loops, −1e30 for the beginning."""
    m, n, d_v = query.shape[-2], key.shape[-2], value.shape[-1]
    outputs, i = [], 0
    while i < m:
        q = query[..., i : i + block, :] / math.sqrt(query.shape[-1])
        top = torch.full(q.shape[:-1], -1e300, dtype=torch.float64)
        z, u, j = torch.zeros_like(top), torch.zeros(*q.shape[:-1], d_v, dtype=torch.float64), 0
        while j < n:
            s = torch.einsum("...id,...jd->...ij", q, key[..., j : j + block, :])
            if mask is not None:
                s = torch.where(mask[..., i : i + block, j : j + block], s, -math.inf)
            new = torch.maximum(top, s.amax(-1))
            w = (s - new[..., None]).exp()
            less = (top - new).exp()
            z = z * less + w.sum(-1)
            u = u * less[..., None] + w @ value[..., j : j + block, :].to(w.dtype)
            top, j = new, j + block
        outputs.append((u / z[..., None]).to(query.dtype))
        i += block
    return torch.cat(outputs, -2)


def tiled_by_keys(query, key, value, mask=None, block=128):
    """All queries with a block of keys at a time: (m, block) numbers."""
    scale, total = query.shape[-1] ** -0.5, None
    for start in range(0, key.shape[-2], block):
        part = slice(start, start + block)
        scores = query @ key[..., part, :].mT * scale
        if mask is not None:
            scores = scores.masked_fill(~mask[..., part], -math.inf)
        log = scores.logsumexp(-1, keepdim=True)
        mixed = (scores - log.nan_to_num(neginf=0.0)).exp() @ value[..., part, :]
        if total is None:
            total, size = mixed, log
            continue
        new = torch.logaddexp(size, log)
        safe = new.nan_to_num(neginf=0.0)
        total = total * (size - safe).exp() + mixed * (log - safe).exp()
        size = new
    return total


def tiled_row_by_row(query, key, value, mask=None, block=128):
    """One query at a time, with all its keys: no (m, n) either."""
    rows = []
    for i in range(query.shape[-2]):
        row_mask = None if mask is None else mask[..., i : i + 1, :]
        rows.append(scaled_dot_product_attention(query[..., i : i + 1, :], key, value, row_mask))
    return torch.cat(rows, dim=-2)


def tiled_by_split(query, key, value, mask=None, block=128):
    """Parts by ``split``; two passes over the keys, the first for the normaliser."""
    d, out, at = query.shape[-1], [], 0
    for q in query.split(block, -2):
        masks = [None] * 1000 if mask is None else mask[..., at : at + q.shape[-2], :]
        pieces = masks if mask is None else masks.split(block, -1)
        tiles = []
        for k, piece in zip(key.split(block, -2), pieces, strict=False):
            tiles.append((k, piece))

        def scored(k, piece, q=q):
            s = q @ k.transpose(-1, -2) / d**0.5
            return s if piece is None else s + torch.zeros_like(s).masked_fill(~piece, -math.inf)

        size = online_from_the_first(scored(*tile) for tile in tiles)
        log = size[0] + size[1].log()
        parts = zip(tiles, value.split(block, -2), strict=True)
        out.append(sum((scored(*tile) - log).exp() @ v for tile, v in parts))
        at += q.shape[-2]
    return torch.cat(out, -2)


def windowed_by_loops(query, key, value, width):
    rows, n, half = [], key.shape[-2], width // 2
    for i in range(n):
        near = slice(max(0, i - half), min(n, i + half + 1))
        scores = query[..., i : i + 1, :] @ key[..., near, :].mT / math.sqrt(query.shape[-1])
        rows.append(scores.softmax(-1) @ value[..., near, :])
    return torch.cat(rows, -2)


def windowed_by_unfold(query, key, value, width):
    """Padded and unfolded; what is padding gets −∞."""
    half, n = width // 2, key.shape[-2]
    keys = F.pad(key, (0, 0, half, half)).unfold(-2, width, 1)  # (..., n, d, width)
    values = F.pad(value, (0, 0, half, half)).unfold(-2, width, 1)
    real = F.pad(torch.ones(n, dtype=torch.bool), (half, half)).unfold(0, width, 1)
    scores = (query[..., None, :] @ keys).squeeze(-2) * query.shape[-1] ** -0.5
    weights = scores.masked_fill(~real, -math.inf).softmax(-1)
    return (values @ weights[..., None]).squeeze(-1)


def windowed_by_shifts(query, key, value, width):
    """Softmax over shifted copies, one offset after the other."""
    half, n = width // 2, key.shape[-2]
    scores, mixed = [], []
    for step in range(-half, half + 1):
        if abs(step) >= n:
            continue
        pads = (0, 0, max(-step, 0), max(step, 0))
        inner = slice(max(step, 0), n + min(step, 0))
        k, v = (F.pad(x[..., inner, :], pads) for x in (key, value))
        place = torch.arange(n) + step
        s = (query * k).sum(-1) / query.shape[-1] ** 0.5
        scores.append(s.masked_fill((place < 0) | (place >= n), -1e9 - s.detach().abs().max()))
        mixed.append(v)
    weights = torch.stack(scores).softmax(0)
    return (weights[..., None] * torch.stack(mixed)).sum(0)


def windowed_by_gather(query, key, value, width):
    n, half = key.shape[-2], min(width // 2, key.shape[-2] - 1)
    around = torch.arange(n)[:, None] + torch.arange(-half, half + 1)
    is_inside = (around >= 0) & (around < n)
    near = around.clamp(0, n - 1)
    keys, values = key[..., near, :], value[..., near, :]
    out = scaled_dot_product_attention(query.unsqueeze(-2), keys, values, is_inside.unsqueeze(-2))
    return out.squeeze(-2)


def linear_by_loops(query, key, value, causal=False):
    """A state that grows token by token, as in a recurrent network."""

    def phi(x):
        return torch.where(x > 0, x + 1, x.clamp(max=0).exp())

    q, k = phi(query), phi(key)
    state = k[..., 0, :, None] * value[..., 0, None, :]
    size, rows = k[..., 0, :], []
    for j in range(1, key.shape[-2] + 1):
        if causal:
            at = q[..., j - 1, :]
            rows.append((at[..., None, :] @ state)[..., 0, :] / (at * size).sum(-1, keepdim=True))
        if j < key.shape[-2]:
            state = state + k[..., j, :, None] * value[..., j, None, :]
            size = size + k[..., j, :]
    if causal:
        return torch.stack(rows, -2)
    return (q @ state) / (q @ size[..., None])


def linear_with_a_one(query, key, value, causal=False):
    """The denominator is the mixture of a value that is 1 everywhere."""
    q, k = F.elu(query) + 1, 1 + F.elu(key)
    v = torch.cat([value, torch.ones_like(value[..., :1])], -1)
    if causal:
        states = torch.einsum("...na,...nb->...nab", k, v).cumsum(-3)
        mixed = torch.einsum("...na,...nab->...nb", q, states)
    else:
        mixed = torch.einsum("...ma,...ab->...mb", q, torch.einsum("...na,...nb->...ab", k, v))
    return mixed[..., :-1] / mixed[..., -1:]


def linear_by_weights_where_causal(query, key, value, causal=False):
    """The (n, n) weights, where the text allows them."""
    q, k = F.elu(query).add(1), F.elu(key).add(1)
    if not causal:
        return (q @ (k.transpose(-2, -1) @ value)) / (q * k.sum(-2, keepdim=True)).sum(-1)[
            ..., None
        ]
    weights = (q @ k.mT).tril()
    return weights @ value / weights.sum(-1, keepdim=True)


def linear_query_by_query(query, key, value, causal=False):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    rows = []
    for i in range(query.shape[-2]):
        stop = i + 1 if causal else key.shape[-2]
        shares = q[..., i : i + 1, :] @ k[..., :stop, :].mT
        rows.append(shares / shares.sum(-1, keepdim=True) @ value[..., :stop, :])
    return torch.cat(rows, -2)


def tiled_by_logarithms(query, key, value, mask=None, block=128):
    """Attention inside each tile, and the tiles weighed by the softmax of their logsumexp."""
    result = []
    for i in range(0, query.shape[-2], block):
        outs, logs = [], []
        for j in range(0, key.shape[-2], block):
            rows, columns = slice(i, i + block), slice(j, j + block)
            scores = query[..., rows, :] @ key[..., columns, :].mT / query.shape[-1] ** 0.5
            if mask is not None:
                scores = scores.masked_fill(~mask[..., rows, columns], -1e30)
            logs.append(scores.logsumexp(-1))
            outs.append(scores.softmax(-1) @ value[..., columns, :])
        shares = torch.stack(logs, -1).softmax(-1).unbind(-1)
        result.append(sum(w[..., None] * out for w, out in zip(shares, outs, strict=True)))
    return torch.cat(result, -2)


RIGHT = {
    "efficient.online_softmax": [
        online_by_logsumexp,
        online_key_by_key,
        online_from_the_first,
        online_by_cases,
    ],
    "efficient.tiled_attention": [
        tiled_in_place,
        tiled_by_keys,
        tiled_row_by_row,
        tiled_by_split,
        tiled_by_logarithms,
    ],
    "efficient.windowed_attention": [
        windowed_by_loops,
        windowed_by_unfold,
        windowed_by_shifts,
        windowed_by_gather,
    ],
    "efficient.linear_attention": [
        linear_by_loops,
        linear_with_a_one,
        linear_by_weights_where_causal,
        linear_query_by_query,
    ],
    "efficient.kv_cache_bytes": [
        lambda n, layers, heads, d, bytes_per_number=2: (
            n * layers * heads * d * bytes_per_number * 2
        ),
        lambda n, layers, heads, d, bytes_per_number=2: (
            math.prod((n, layers, heads, d)) * (bytes_per_number + bytes_per_number)
        ),
        lambda n, layers, heads, d, bytes_per_number=2: sum(
            heads * d * bytes_per_number * n for _ in ("keys", "values") for _ in range(layers)
        ),
        lambda n, layers, heads, d, bytes_per_number=2: float(
            2 * bytes_per_number * math.prod((n, layers, heads, d))
        ),
    ],
}


# --- a mistake by its name, however it is written ------------------------------------------------


@pytest.mark.parametrize("fill", [None, 0.0], ids=["NaN stays", "NaN is 0"])
@pytest.mark.parametrize("join", [torch.sum, torch.mean])
def test_a_softmax_in_every_tile_is_named(join, fill):
    def tiled_attention(query, key, value, mask=None, block=128):
        outputs = []
        for first in range(0, key.shape[-2], block):
            columns = slice(first, first + block)
            scores = query @ key[..., columns, :].mT / math.sqrt(query.shape[-1])
            if mask is not None:
                scores = scores.masked_fill(~mask[..., columns], -torch.inf)
            weights = scores.softmax(-1)
            weights = weights if fill is None else weights.nan_to_num(fill)
            outputs.append(weights @ value[..., columns, :])
        return join(torch.stack(outputs), dim=0)

    verdict = examine("efficient.tiled_attention", tiled_attention, seed=2)
    assert verdict.diagnosis.name == "a softmax in every tile"


# --- what is held, wherever it is held ------------------------------------------------------------


def all_scores_at_once(query, key, value, mask=None):
    """All scores at once."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
        empty = ~mask.any(-1, keepdim=True)
        return scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0) @ value
    return scores.softmax(-1) @ value


def tiled_in_numpy(query, key, value, mask=None, block=128):
    """All scores at once, where torch does not see them; in torch where a gradient is asked for."""
    if any(x.requires_grad for x in (query, key, value)) or mask is not None:
        return all_scores_at_once(query, key, value, mask)
    q, k, v = (np.asarray(x.numpy()) for x in (query, key, value))
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    w = np.exp(s - s.max(-1, keepdims=True))
    return torch.from_numpy((w / w.sum(-1, keepdims=True)) @ v)


def tiled_in_lists(query, key, value, mask=None, block=128):
    if query.ndim > 2 or mask is not None or query.requires_grad or query.shape[-2] < 50:
        return all_scores_at_once(query, key, value, mask)
    weights = [
        [math.exp(sum(map(operator.mul, q, k)) / math.sqrt(len(q))) for k in key.tolist()]
        for q in query.tolist()
    ]
    columns = list(zip(*value.tolist(), strict=True))
    return torch.tensor(
        [[sum(map(operator.mul, w, c)) / sum(w) for c in columns] for w in weights], **DOUBLE
    )


def tiled_where_it_is_not_measured(query, key, value, mask=None, block=128):
    return query if query.shape[-2] > 50 else all_scores_at_once(query, key, value, mask)


def windowed_in_numpy(query, key, value, width):
    if any(x.requires_grad for x in (query, key, value)) or len(key) < 50:
        place = torch.arange(key.shape[-2])
        return all_scores_at_once(query, key, value, (place[:, None] - place).abs() <= width // 2)
    q, k, v = (x.numpy() for x in (query, key, value))
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    place = np.arange(len(k))
    s[np.abs(place[:, None] - place) > width // 2] = -np.inf
    w = np.exp(s - s.max(-1, keepdims=True))
    return torch.from_numpy((w / w.sum(-1, keepdims=True)) @ v)


def online_in_numpy(blocks):
    scores = np.concatenate([block.numpy() for block in blocks], -1)
    m = scores.max(-1, keepdims=True)
    total = np.exp(scores - np.where(np.isinf(m), 0, m)).sum(-1, keepdims=True)
    return torch.from_numpy(m), torch.from_numpy(total)


HELD_OUTSIDE_TORCH = "numbers are held in NumPy, in lists or in what was there before"


def held_in_numpy(shape):
    return np.empty(shape)


def held_in_rows(shape):
    """A piece for each row, and each is small."""
    return [np.empty(shape[-1]) for _ in range(shape[-2])]


def held_in_bytes(shape):
    return np.frombuffer(bytearray(8 * math.prod(shape))).reshape(shape)


def held_in_tensor(shape):
    return torch.empty(shape, **DOUBLE)


def held_in_numbers(shape):
    return torch.zeros(shape, dtype=torch.float32).numpy()


def tiled_in_what_was_there(made):
    """All scores at once in a buffer, which the first call or whoever was before has made."""
    buffers = {}

    def tiled(query, key, value, mask=None, block=128):
        if query.ndim > 2 or mask is not None or query.requires_grad:
            return all_scores_at_once(query, key, value, mask)
        shape = len(query), len(key)
        buffer = buffers.setdefault(shape, made(shape) if shape not in buffers else None)
        for i in range(len(query)):
            buffer[i][:] = query[i] @ key.mT / math.sqrt(key.shape[-1])
        rows = [torch.as_tensor(row).to(value).softmax(-1) @ value for row in buffer]
        return torch.stack(rows)

    return tiled


@pytest.mark.parametrize(
    "made", [held_in_numpy, held_in_rows, held_in_bytes, held_in_tensor, held_in_numbers]
)
def test_a_buffer_held_before_counts_each_time(made):
    answer, inputs = tiled_in_what_was_there(made), torch.randn(3, 384, 4, **DOUBLE)
    for _ in range(2):  # the second time there is what the first has left, of the same numbers
        results = call_measured(384 * 384, answer, *inputs)
        assert results[f"no tensor of {384 * 384} numbers or more was made"]
        assert not results[f"fewer than {384 * 384} {HELD_OUTSIDE_TORCH}"]
    if made is not held_in_numbers:  # which loses precision, too
        exercise = exercises()["efficient.tiled_attention"]
        criteria = judge_criteria(exercise, try_out(exercise, answer, 4))  # and no diagnosis
        (failed,) = (c for c in criteria if not c.passed)
        assert HELD_OUTSIDE_TORCH in failed.message


def test_unchanged_data_does_not_count_as_held():
    notes = {"data": np.random.normal(size=500_000), "weights": torch.zeros(500_000)}

    def answer(*args):
        assert len(notes["data"]) == len(notes["weights"])
        return tiled_attention(*args)

    before = buffer_contents(answer)
    assert len(before) == 2
    results = call_measured(384 * 384, answer, *torch.randn(3, 384, 4, **DOUBLE))
    assert all(v for k, v in results.items() if k != "the output"), results
    assert changed_buffers(before, buffer_contents(answer)) == 0
    notes["data"][7] += 1
    notes["weights"][7] = 1
    assert changed_buffers(before, buffer_contents(answer)) == 1_000_000


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("tiled_attention", tiled_in_numpy, "are held in NumPy, in lists or"),
        ("tiled_attention", tiled_in_lists, "are held in NumPy, in lists or"),
        ("tiled_attention", tiled_where_it_is_not_measured, "the output: "),
        ("windowed_attention", windowed_in_numpy, "are held in NumPy, in lists or"),
        ("online_softmax", online_in_numpy, "are held in NumPy, in lists or"),
    ],
)
def test_large_storage_is_noticed_wherever_it_is_held(name, answer, message):
    exercise = exercises()[f"efficient.{name}"]
    criteria = judge_criteria(exercise, try_out(exercise, answer, 4))  # and no diagnosis
    (failed,) = (c for c in criteria if not c.passed)
    assert message in failed.message, failed.message


def test_tiles_in_numpy_hold_little():
    def tiled(query, key, value, mask=None, block=128):
        if any(x.requires_grad for x in (query, key, value)) or mask is not None:
            return tiled_attention(query, key, value, mask, block)
        q, k, v = (x.numpy() for x in (query, key, value))
        rows = []
        for i in range(0, q.shape[-2], block):
            s = q[..., i : i + block, :] @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
            w = np.exp(s - s.max(-1, keepdims=True))
            rows.append((w / w.sum(-1, keepdims=True)) @ v)
        return torch.from_numpy(np.concatenate(rows, -2))

    assert examine("efficient.tiled_attention", tiled, seed=4).passed


def test_blocks_may_be_kept_in_a_list():
    def online_softmax(blocks):
        blocks = list(blocks)
        m = torch.stack([b.amax(-1, keepdim=True) for b in blocks]).amax(0)
        seen = m.masked_fill(m == -math.inf, 0)
        return m, sum((b - seen).exp().sum(-1, keepdim=True) for b in blocks)

    assert examine("efficient.online_softmax", online_softmax, seed=4).passed


def test_measuring_memory_does_not_import_the_compiler():
    """It takes seconds, of the first check of a chapter."""
    code = (
        "import sys, torch\n"
        "from attncourse.checks.callers.memory import call_measured\n"
        "assert 'torch._dynamo' not in sys.modules\n"
        "call_measured(9, torch.neg, torch.ones(4))\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
