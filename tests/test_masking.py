"""Chapter 10: masks against their definitions, softmax and the leak test against oracles."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from attncourse.checks import examine, exercises
from attncourse.checks.judging import call_text, points_of_answer
from attncourse.checks.trying.trials import draw
from attncourse.cross_attention import AttentionPooling, CrossAttention
from attncourse.kqv import AttentionHead, attention_weights, scaled_dot_product_attention
from attncourse.masking import (
    block_mask,
    causal_mask,
    combine,
    leak,
    masked_softmax,
    padding_mask,
    shifted_window_mask,
    sliding_window_mask,
)
from attncourse.multihead import MultiHeadAttention, MultiHeadNaive
from helpers.random_arrays import normal
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def causal_tril(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)


def causal_last_rows(n_queries, n_keys=None):
    n = n_queries if n_keys is None else n_keys
    return ~torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)[-n_queries:]


def causal_loops(n_queries, n_keys=None):
    n_keys = n_queries if n_keys is None else n_keys
    offset = n_keys - n_queries
    return torch.tensor([[j <= i + offset for j in range(n_keys)] for i in range(n_queries)])


def causal_einops(n_queries, n_keys=None):
    from einops import rearrange

    keys = torch.arange(n_keys or n_queries)
    return rearrange(keys[-n_queries:], "i -> i 1") >= rearrange(keys, "j -> 1 j")


def causal_numpy(n_queries, n_keys=None):
    n_keys = n_queries if n_keys is None else n_keys
    return torch.from_numpy(np.tri(n_queries, n_keys, n_keys - n_queries).astype(bool))


def causal_counted(n_queries, n_keys=None):
    ones = torch.ones(n_queries, n_keys or n_queries)
    return ones.cumsum(-1) <= ones.cumsum(0) + ones.shape[1] - n_queries


def padding_loops(lengths, max_length):
    flat = [[j < length for j in range(max_length)] for length in lengths.flatten().tolist()]
    return torch.tensor(flat).reshape(*lengths.shape, 1, max_length)


def padding_einops(lengths, max_length):
    from einops import rearrange

    return torch.arange(max_length) < rearrange(lengths, "... -> ... 1 1")


def padding_filled(lengths, max_length):
    mask = torch.zeros(lengths.numel(), 1, max_length, dtype=torch.bool)
    for row, length in zip(mask, lengths.flatten(), strict=True):
        row[:, :length] = True
    return mask.view(*lengths.shape, 1, max_length)


def padding_rows_of_a_triangle(lengths, max_length):
    ladder = torch.ones(max_length + 1, max_length, dtype=torch.bool).tril(-1)
    return ladder[lengths.long()].unsqueeze(-2)


def padding_broadcast(lengths, max_length):
    positions = torch.arange(max_length).expand(*lengths.shape, 1, max_length)
    return torch.gt(lengths.reshape(*lengths.shape, 1, 1), positions)


def padding_scattered(lengths, max_length):
    """A 1 where each sequence ends, and its running sum."""
    ends = torch.zeros(*lengths.shape, max_length + 1, dtype=torch.int64)
    ends.scatter_(-1, lengths.long()[..., None], 1)
    return ends.cumsum(-1)[..., None, :-1] == 0


def window_loops(n, width, causal=False):
    if not causal and width % 2 == 0:
        raise ValueError("no centre")
    reach = width // 2
    return torch.tensor(
        [
            [i - width < j <= i if causal else i - reach <= j <= i + reach for j in range(n)]
            for i in range(n)
        ]
    )


def window_triangles(n, width, causal=False):
    if not causal and not width % 2:
        raise ValueError("no centre")
    back, ahead = (width - 1, 0) if causal else (width // 2, width // 2)
    return torch.ones(n, n).triu(-back).tril(ahead).bool()


def window_diagonals(n, width, causal=False):
    if causal is False and width % 2 == 0:
        raise ValueError("no centre")
    offsets = range(1 - width, 1) if causal else range(-(width // 2), width // 2 + 1)
    return sum(
        torch.ones(n - abs(k)).diag(k) for k in offsets if abs(k) < n
    ).bool()  # fmt: skip


def window_einops(n, width, causal=False):
    from einops import rearrange

    if width % 2 == 0 and not causal:
        raise ValueError("no centre")
    i, j = rearrange(torch.arange(n), "i -> i 1"), rearrange(torch.arange(n), "j -> 1 j")
    return (j <= i) & (j > i - width) if causal else (i - j).abs() * 2 < width


def window_slices(n, width, causal=False):
    assert width >= 1
    if width % 2 == 0 and not causal:
        raise ValueError("no centre")
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        first = i - width + 1 if causal else i - width // 2
        mask[i, max(0, first) : first + width] = True
    return mask


def softmax_short(scores, mask):
    """NaN in between, but overwritten on the way there and on the way back."""
    return scores.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask, 0)


def softmax_repaired(scores, mask):
    return F.softmax(torch.where(mask, scores, -torch.inf), dim=-1).nan_to_num(0.0)


def softmax_float64(scores, mask):
    wide = scores.double()
    highest = wide.masked_fill(~mask, -1e300).amax(-1, keepdim=True).detach()
    e = torch.where(mask, (wide - highest).clamp(max=0), -torch.inf).exp()
    return (e / e.sum(-1, keepdim=True).clamp_min(1e-300)).to(scores.dtype)


def softmax_renormalised(scores, mask):
    weights = torch.softmax(scores, dim=-1) * mask
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total > 0, total, 1)


def softmax_loops(scores, mask):
    mask = mask.broadcast_to(scores.shape)
    if scores.ndim > 2:
        return torch.stack([softmax_loops(s, m) for s, m in zip(scores, mask, strict=True)])
    rows = []
    for row, allowed in zip(scores, mask, strict=True):
        weights = row * 0
        if allowed.any():
            weights = weights.masked_scatter(allowed, torch.softmax(row[allowed], dim=0))
        rows.append(weights)
    return torch.stack(rows)


def softmax_einops(scores, mask):
    from einops import reduce

    low = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, low).softmax(-1)
    return weights * reduce(mask, "... m n -> ... m 1", "max")


def softmax_log(scores, mask):
    safe = mask | ~mask.any(-1, keepdim=True)
    lowered = scores + torch.zeros_like(scores).masked_fill(~safe, -torch.inf)
    return (lowered - lowered.logsumexp(-1, keepdim=True)).exp() * mask


def softmax_of_the_allowed(scores, mask):
    """The largest allowed score subtracted, and a sum of 0 kept from dividing."""
    low = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    e = (low - low.amax(-1, keepdim=True).detach()).exp() * mask
    return e / e.sum(-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).tiny)


def leak_jacobian(f, x, mask):
    if x.ndim > 2:
        n, d = x.shape[-2:]
        m = f(x).shape[-2]
        masks = mask.broadcast_to(*x.shape[:-2], m, n)
        parts = zip(x.reshape(-1, n, d), masks.reshape(-1, m, n), strict=True)
        return max(leak_jacobian(f, one, its) for one, its in parts)
    J = torch.autograd.functional.jacobian(f, x).abs()  # (m, d', n, d)
    return (J.amax((1, 3)) * ~mask).max().item()


def leak_backward(f, x, mask):
    x = x.clone().requires_grad_(True)
    out = f(x)
    mask = mask.expand(*out.shape[:-1], x.shape[-2])
    worst = torch.zeros(())
    for i in range(out.size(-2)):
        for a in range(out.size(-1)):
            x.grad = None
            out[..., i, a].sum().backward(retain_graph=True)
            worst = torch.maximum(worst, (x.grad.abs().amax(-1) * ~mask[..., i, :]).max())
    return worst


def leak_forward_mode(f, x, mask):
    """Column by column: how all outputs change with one number of the input."""
    worst = 0.0
    for j in range(x.shape[-2]):
        for c in range(x.shape[-1]):
            direction = torch.zeros_like(x)
            direction[..., j, c] = 1
            out, change = torch.autograd.functional.jvp(f, x, direction)
            hidden = ~mask.broadcast_to(*out.shape[:-1], x.shape[-2])[..., j]
            worst = max(worst, (change.abs() * hidden[..., None]).max().item())
    return worst


def leak_einops(f, x, mask):
    from einops import reduce

    J = torch.func.jacrev(lambda v: reduce(f(v), "... m e -> m e", "sum"))(x)  # (m, d', ..., n, d)
    J = reduce(J.abs(), "m e ... n d -> ... m n", "max")
    return torch.where(mask, 0, J).max().item()


def leak_float64(f, x, mask):
    leaf = x.detach().clone().requires_grad_()
    out = f(leaf)
    numbers = []
    for index in np.ndindex(*out.shape):
        gradient = torch.autograd.grad(out[index], leaf, retain_graph=True)[0].double()
        allowed = mask.broadcast_to(*out.shape[:-1], x.shape[-2])[index[:-1]]
        numbers.append(gradient[index[:-2]][~allowed].abs())
    found = torch.cat([n.flatten() for n in numbers])
    return float(found.max()) if len(found) else 0.0


RIGHT = {
    "masking.causal_mask": [
        causal_tril,
        causal_last_rows,
        causal_loops,
        causal_einops,
        causal_numpy,
        causal_counted,
    ],
    "masking.padding_mask": [
        padding_loops,
        padding_einops,
        padding_filled,
        padding_rows_of_a_triangle,
        padding_broadcast,
        padding_scattered,
    ],
    "masking.sliding_window_mask": [
        window_loops,
        window_triangles,
        window_diagonals,
        window_einops,
        window_slices,
    ],
    "masking.masked_softmax": [
        softmax_short,
        softmax_repaired,
        softmax_float64,
        softmax_renormalised,
        softmax_loops,
        softmax_einops,
        softmax_log,
        softmax_of_the_allowed,
    ],
    "masking.leak": [
        leak_jacobian,
        leak_backward,
        leak_forward_mode,
        leak_einops,
        leak_float64,
    ],
}

# --- the package: masks ----------------------------------------------------------------------

SIZES = st.integers(1, 13)


def as_rows(mask) -> list[str]:
    return ["".join("x" if allowed else "." for allowed in row) for row in mask]


def test_masks_are_those_drawn_by_hand():
    assert as_rows(causal_mask(3)) == ["x..", "xx.", "xxx"]
    assert as_rows(causal_mask(2, 5)) == ["xxxx.", "xxxxx"]
    assert as_rows(padding_mask([2, 0, 3], 3)[:, 0]) == ["xx.", "...", "xxx"]
    assert as_rows(sliding_window_mask(5, 3)) == ["xx...", "xxx..", ".xxx.", "..xxx", "...xx"]
    assert as_rows(sliding_window_mask(4, 2, causal=True)) == ["x...", "xx..", ".xx.", "..xx"]
    assert as_rows(block_mask(5, 2)) == ["xx...", "xx...", "..xx.", "..xx.", "....x"]
    assert as_rows(shifted_window_mask(5, 3, 1)) == ["x....", ".xxx.", ".xxx.", ".xxx.", "....x"]


@given(n=SIZES, more=st.integers(0, 7))
def test_causal_mask_counts_from_the_last_key(n, more):
    mask = causal_mask(n, n + more)
    assert torch.equal(mask, causal_mask(n + more)[more:])
    assert mask.sum(-1).tolist() == list(range(more + 1, more + n + 1))


@pytest.mark.parametrize("m", [1, 3, 7])
def test_causal_attention_of_last_queries_is_part_of_all(m):
    query, key = normal(7, 4), normal(7, 4, seed=1)
    all_weights = attention_weights(query, key, causal_mask(7))
    torch.testing.assert_close(
        attention_weights(query[-m:], key, causal_mask(m, 7)), all_weights[-m:]
    )
    library = F.scaled_dot_product_attention(query, key, key, is_causal=True)
    torch.testing.assert_close(all_weights @ key, library)


def test_padding_mask_takes_lists_tensors_and_batches():
    lengths = torch.tensor([[3, 0, 5], [1, 2, 4]], dtype=torch.int32)
    mask = padding_mask(lengths, 5)
    assert mask.shape == (2, 3, 1, 5)
    assert torch.equal(mask.sum(-1)[..., 0], lengths)
    assert torch.equal(mask[0], padding_mask([3, 0, 5], 5))
    assert as_rows(padding_mask(torch.tensor(2), 3)) == ["xx."]


@given(n=SIZES, width=st.integers(1, 15), causal=st.booleans())
def test_windows_have_width_tokens_but_for_the_edges(n, width, causal):
    width = width if causal else 2 * width - 1
    mask = sliding_window_mask(n, width, causal)
    for i, row in enumerate(mask.tolist()):
        first = i - width + 1 if causal else i - width // 2
        assert row == [first <= j < first + width for j in range(n)]


@given(n=SIZES, block=st.integers(1, 7), data=st.data())
def test_blocks_begin_at_their_starts(n, block, data):
    shift = data.draw(st.integers(0, block - 1))
    mask = shifted_window_mask(n, block, shift)
    assert torch.equal(mask, mask.T)
    joined = [bool(mask[i, i + 1]) for i in range(n - 1)]
    assert joined == [(i + 1 - shift) % block != 0 for i in range(n - 1)]
    starts = [0] + [i + 1 for i, same in enumerate(joined) if not same] + [n]
    for first, last in pairwise(starts):
        assert mask[first:last].sum(-1).tolist() == [last - first] * (last - first)


@pytest.mark.parametrize(("n", "block", "shift"), [(12, 4, 2), (15, 5, 1), (12, 3, 0), (6, 6, 3)])
def test_shifted_windows_are_swins(n, block, shift):
    """Swin's own steps: roll, cut into windows, forbid across the seam, roll back."""
    regions = torch.zeros(n)
    regions[n - block : n - shift] = 1
    regions[n - shift :] = 2  # in the rolled sequence, the tokens that came from the front
    window = torch.arange(n) // block
    allowed = window[:, None] == window
    if shift:
        allowed = allowed & (regions[:, None] == regions)
    place = torch.arange(n).roll(-shift)  # which token stands where after the roll
    back = torch.zeros(n, n, dtype=torch.bool)
    back[place[:, None], place] = allowed
    assert torch.equal(shifted_window_mask(n, block, shift), back)


def test_combine_is_and_with_broadcasting():
    masks = causal_mask(5), padding_mask([2, 5], 5), sliding_window_mask(5, 3)
    both = combine(*masks)
    assert both.shape == (2, 5, 5)
    for b, i, j in np.ndindex(2, 5, 5):
        assert both[b, i, j] == (masks[0][i, j] and masks[1][b, 0, j] and masks[2][i, j])
    alone = causal_mask(3)
    combine(alone)[0, 0] = False
    assert alone[0, 0], "the result is nobody else's tensor"


# --- the package: masked_softmax -------------------------------------------------------------


def some_mask(*shape, seed=0):
    """Half of the keys; the first row has none."""
    mask = normal(*shape, seed=seed) > 0
    mask[..., 0, :] = False
    return mask


def test_masked_softmax_by_hand():
    scores = torch.tensor([[1.0, 3.0, 4.0], [2.0, 1.0, 1.0], [1.0, 5.0, 2.0]]).log()
    mask = torch.tensor([[True, True, False], [True, True, True], [False, False, False]])
    expected = torch.tensor([[0.25, 0.75, 0], [0.5, 0.25, 0.25], [0, 0, 0]])
    torch.testing.assert_close(masked_softmax(scores, mask), expected)


@settings(deadline=None)
@given(m=SIZES, n=SIZES, batch=st.sampled_from([(), (2,), (3, 2)]), seed=st.integers(0, 99))
def test_masked_softmax_against_loops(m, n, batch, seed):
    scores, mask = normal(*batch, m, n, seed=seed), normal(*batch, m, n, seed=seed + 1) > 0
    weights = masked_softmax(scores, mask)
    for index in np.ndindex(*batch, m):
        row, allowed = scores[index].tolist(), mask[index].tolist()
        total = sum(math.exp(s) for s, a in zip(row, allowed, strict=True) if a)
        expected = [math.exp(s) / total if a else 0.0 for s, a in zip(row, allowed, strict=True)]
        assert weights[index].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_dtype_with_empty_rows(dtype):
    scores, mask = 3 * normal(2, 5, 7, dtype=dtype), some_mask(2, 5, 7)
    scores.requires_grad_()
    weights = masked_softmax(scores, mask)
    assert weights.dtype == dtype
    assert (weights[~mask] == 0).all()
    assert weights[:, 0].tolist() == [[0.0] * 7] * 2
    torch.testing.assert_close(
        weights.sum(-1)[mask.any(-1)].float(),
        torch.ones(int(mask.any(-1).sum())),
        rtol=0,
        atol={torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-6),
    )
    exact = masked_softmax(scores.detach().double(), mask)
    torch.testing.assert_close(weights.double(), exact, rtol=1e-2, atol=1e-3)
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly():
        (weights * torch.arange(7)).sum().backward()  # raises where a NaN stands on the way back
    assert (scores.grad[~mask] == 0).all()
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_masked_scores_do_not_matter_however_large(dtype):
    scores, mask = normal(5, 7, dtype=dtype), some_mask(5, 7)
    loud = scores.masked_fill(~mask, torch.finfo(dtype).max)
    assert torch.equal(masked_softmax(loud, mask), masked_softmax(scores, mask))


def test_a_mask_keeps_the_ratios_of_the_allowed_weights():
    scores, mask = normal(5, 7), some_mask(5, 7, seed=3)
    ratio = masked_softmax(scores, mask) / scores.softmax(-1)  # one number for each row
    for row, allowed in zip(ratio, mask, strict=True):
        torch.testing.assert_close(row[allowed], row[allowed].mean().expand(int(allowed.sum())))


def test_masked_softmax_gradcheck():
    scores = normal(5, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: masked_softmax(s, some_mask(5, 3)), (scores,))


# --- the package: leak -----------------------------------------------------------------------


def test_leak_by_hand():
    A = torch.tensor([[1.0, -7.0, 2.0], [3.0, 1.0, 4.0], [9.0, 9.0, 1.0]])
    x = normal(3, 2, dtype=torch.float32)
    assert leak(lambda x: A @ x, x, causal_mask(3)) == 7.0
    assert leak(lambda x: A @ x, x, ~causal_mask(3)) == 9.0
    assert leak(lambda x: A.tril() @ x, x, causal_mask(3)) == 0.0
    assert leak(lambda x: A @ x, x, torch.ones(3, 3, dtype=torch.bool)) == 0.0
    assert leak(lambda x: A[:2] @ x, x, causal_mask(2, 3)) == 2.0
    assert isinstance(leak(lambda x: x, x, causal_mask(3)), float)


@settings(deadline=None, max_examples=25)
@given(
    m=st.integers(1, 5),
    n=st.integers(1, 5),
    d=st.integers(1, 3),
    batch=st.sampled_from([(), (2,), (3, 2)]),
)
def test_leak_against_the_jacobian(m, n, d, batch):
    A, B, W = normal(m, n), normal(m, n, seed=1), normal(d, 2)
    x, mask = normal(*batch, n, d), normal(*batch, m, n, seed=2) > 0

    def f(x):
        return torch.tanh(A @ x @ W) + (B @ x @ W) ** 2

    inner = (B @ x @ W)[..., :, :, None, None]  # (..., m, d', 1, 1)
    slope = 1 - torch.tanh(A @ x @ W)[..., :, :, None, None] ** 2
    A4, B4, W4 = A[:, None, :, None], B[:, None, :, None], W.T[None, :, None, :]
    J = (slope * A4 * W4 + 2 * inner * B4 * W4).abs()
    expected = J.masked_fill(mask[..., :, None, :, None], 0).max()
    assert leak(f, x, mask) == pytest.approx(float(expected), abs=1e-12)


MASKS = {
    "causal": causal_mask(7),
    "causal, padded": combine(causal_mask(7), padding_mask([7, 4], 7)),
    "padded on the left": combine(causal_mask(7), padding_mask([7, 5], 7).flip(-1)),
    "window": sliding_window_mask(7, 3),
    "causal window": sliding_window_mask(7, 2, causal=True),
    "blocks": block_mask(7, 3),
    "shifted blocks": shifted_window_mask(7, 3, 1),
    "nothing at all": torch.zeros(7, 7, dtype=torch.bool),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", MASKS)
def test_our_head_leaks_nothing(name, dtype):
    torch.manual_seed(0)
    head, mask = AttentionHead(5, 4, 3, bias=True).to(dtype), MASKS[name]
    x = normal(2, 7, 5, dtype=dtype)
    # A token makes its own query, even where it may not be a key.
    tested = mask | torch.eye(7, dtype=torch.bool)
    assert leak(lambda x: head(x, mask), x, tested) == 0.0
    assert leak(lambda x: head.weights(x, mask), x, tested) == 0.0
    assert leak(lambda x: head(x), x, tested) > 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(
    "build",
    [
        lambda: MultiHeadNaive(6, 3),
        lambda: MultiHeadAttention(6, 3),
        lambda: MultiHeadAttention(6, 3, n_kv_heads=1, bias=False),
    ],
    ids=["a list of heads", "one projection for all heads", "shared keys and values"],
)
def test_our_heads_leak_nothing(build, name, dtype):
    torch.manual_seed(0)
    heads, mask, x = build().to(dtype), MASKS[name], normal(2, 7, 6, dtype=dtype)
    tested = mask | torch.eye(7, dtype=torch.bool)
    assert leak(lambda x: heads(x, mask=mask), x, tested) == 0.0
    assert leak(lambda x: heads(x), x, tested) > 1e-3


def test_a_mask_for_each_head_hides_what_all_heads_may_not_see():
    torch.manual_seed(0)
    heads, x = MultiHeadAttention(6, 3).double(), normal(2, 7, 6)
    masks = torch.stack([causal_mask(7), sliding_window_mask(7, 3), block_mask(7, 3)])  # (h, n, n)
    seen = masks.any(dim=0)
    assert leak(lambda x: heads(x, mask=masks.expand(2, 3, 7, 7)), x, seen) == 0.0
    assert leak(lambda x: heads(x, mask=masks.expand(2, 3, 7, 7)), x, masks[0]) > 1e-3


def test_cross_attention_and_pooling_leak_nothing():
    torch.manual_seed(0)
    x, y, mask = normal(3, 4), normal(7, 5), sliding_window_mask(7, 3)[2:5]
    cross, pool = CrossAttention(4, 5, 3, 2).double(), AttentionPooling(5, n_queries=3).double()
    for attend in (lambda y, mask=None: cross(x, y, mask), pool):
        assert leak(lambda y, attend=attend: attend(y, mask), y, mask) == 0.0
        assert leak(attend, y, mask) > 1e-3


def test_a_masked_token_still_asks_as_a_query():
    """A padded token that may not attend to itself still asks: its output depends on it."""
    head, x = AttentionHead(5, 4).double(), normal(7, 5)
    mask = combine(causal_mask(7), padding_mask([4], 7)[0])
    assert leak(lambda x: head(x, mask), x, mask) > 1e-3
    assert leak(lambda x: head(x, mask), x, mask | torch.eye(7, dtype=torch.bool)) == 0.0


@pytest.mark.parametrize("m", [1, 3, 7])
def test_the_last_queries_leak_nothing(m):
    torch.manual_seed(0)
    head, x, mask = AttentionHead(5, 4).double(), normal(7, 5), causal_mask(m, 7)

    def last(x, mask):
        query = head.W_q(x)[-m:]
        return scaled_dot_product_attention(query, head.W_k(x), head.W_v(x), mask)

    assert leak(lambda x: last(x, mask), x, mask) == 0.0
    if m > 1:
        assert leak(lambda x: last(x, None), x, mask) > 1e-3


def test_leaks_of_wrong_attention_are_found():
    torch.manual_seed(0)
    x, mask, head = normal(7, 5), causal_mask(7), AttentionHead(5, 4).double()
    library = nn.MultiheadAttention(5, 1, batch_first=True).double()

    def late(x):
        return (head.weights(x) * mask) @ head.W_v(x)

    def centred(x):
        return head(x - x.mean(-2, keepdim=True), mask)

    assert leak(lambda x: library(x, x, x, attn_mask=mask, need_weights=False)[0], x, mask) > 1e-3
    assert leak(lambda x: library(x, x, x, attn_mask=~mask, need_weights=False)[0], x, mask) == 0.0
    assert leak(late, x, mask) > 1e-3
    assert leak(centred, x, mask) > 1e-3


def test_leak_shows_nan_and_leaves_x_alone():
    x = normal(3, 2)
    before = x.clone()
    assert math.isnan(leak(lambda x: (x - x).sqrt() * x[:1], x, causal_mask(3)))
    assert torch.equal(x, before)
    assert not x.requires_grad
    with torch.no_grad():
        assert leak(lambda x: x.flip(0), x, causal_mask(3)) == 1.0


# --- errors ----------------------------------------------------------------------------------

X, M = torch.ones(5, 3), torch.ones(5, 5, dtype=torch.bool)


test_bad_input_is_refused = refused(
    [
        (lambda: causal_mask(0), "n_queries: expected a whole number", "got 0"),
        (lambda: causal_mask(2.0), "n_queries: expected a whole number", "2.0"),
        (lambda: causal_mask(3, -1), "n_keys: expected a whole number", "-1"),
        (lambda: causal_mask(5, 3), "at most as many queries as keys", "5 queries and 3 keys"),
        (lambda: padding_mask([2, 6], 5), "lengths: expected 0 to 5", r"got 6 at index \(1,\)"),
        (lambda: padding_mask([-1], 5), "lengths: expected 0 to 5", r"got -1 at index \(0,\)"),
        (lambda: padding_mask([2.0], 5), "lengths: expected whole numbers", "float32"),
        (lambda: padding_mask(torch.tensor([True]), 5), "expected whole numbers", "torch.bool"),
        (lambda: padding_mask([2], 0), "max_length: expected a whole number", "got 0"),
        (lambda: sliding_window_mask(5, 4), "an odd number unless causal=True", "got 4"),
        (lambda: sliding_window_mask(5, -3), "width: expected a whole number", "-3"),
        (lambda: sliding_window_mask(5, 0, causal=True), "width: expected a whole number", "0"),
        (lambda: sliding_window_mask(0, 3), "n: expected a whole number", "got 0"),
        (lambda: block_mask(5, 0), "block: expected a whole number", "got 0"),
        (lambda: shifted_window_mask(5, 3, 3), "shift: expected less than a block of 3", "got 3"),
        (lambda: shifted_window_mask(5, 3, -1), "shift: expected a whole number", "-1"),
        (lambda: combine(), "one mask or more", "got none"),
        (lambda: combine(M, M.float()), "expected boolean tensors", "torch.float32"),
        (lambda: combine(M, M.numpy()), "expected boolean tensors", "ndarray"),
        (lambda: combine(M, M[:, :4]), r"along axis -1 \(the keys\)", r"got \[5, 4\]"),
        (lambda: combine(M[:3], M), r"along axis -2 \(the queries\)", r"got \[3, 5\]"),
        (
            lambda: combine(M.expand(2, 5, 5), M, M.expand(3, 5, 5)),
            r"along axis -3 \(a batch axis\)",
            r"got \[2, 3\]",
        ),
        (lambda: masked_softmax(X.long(), M), "scores: expected a floating-point", "int64"),
        (lambda: masked_softmax(X[0], M), r"scores: expected shape \(\.\.\., m, n\)", r"\(3,\)"),
        (lambda: masked_softmax(X, M), r"1 or 3 along axis -1 \(the keys\)", "got 5"),
        (lambda: masked_softmax(X, M[:2, :3]), r"5 along axis -2 \(the queries\)", "got 2"),
        (lambda: masked_softmax(X, M[:, :3].long()), "boolean tensor, True where", "int64"),
        (lambda: masked_softmax(X, [[True]]), "boolean tensor, True where", "got list"),
        (
            lambda: masked_softmax(X * torch.nan, M[:, :3].tril()),
            "expected numbers",
            r"the mask hides NaN at \(0, 1\)",
        ),
        (lambda: leak(3, X, M), "f: expected a function", "int"),
        (lambda: leak(lambda x: x, X.long(), M), "x: expected a floating-point", "int64"),
        (lambda: leak(lambda x: x, X[0], M), r"x: expected shape \(\.\.\., n, d\)", r"\(3,\)"),
        (lambda: leak(lambda x: x.sum(), X, M), r"f\(x\): expected shape", r"got \(\)"),
        (lambda: leak(lambda x: x.tolist(), X, M), r"f\(x\): expected a torch", "got list"),
        (lambda: leak(lambda x: x.detach(), X, M), "to have a gradient", "cut off from x"),
        (
            lambda: leak(lambda x: nn.Parameter(X) * 2, X, M),
            "to have a gradient",
            "cut off from x",
        ),
        (lambda: leak(lambda x: x[:2], X, M), r"2 along axis -2 \(the queries\)", "got 5"),
        (lambda: leak(lambda x: x, X, M.float()), "boolean tensor", "torch.float32"),
    ]
)


# --- the checks ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_no_masked_score_exceeds_the_allowed_ones_by_much(seed):
    """In float16 e^-8 is still a number, in float64 a guard of 1e-12 would show below e^-8."""
    for _, case, _ in draw(exercises()["masking.masked_softmax"], seed):
        scores, mask = case.args
        allowed = scores.masked_fill(~mask, -math.inf).amax(-1)
        gap = scores.amax(-1) - allowed
        assert (gap[mask.any(-1).broadcast_to(gap.shape)] < 8).all()


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda n_queries, n_keys=None: np.tri(n_queries, dtype=bool), "returned an ndarray"),
        (lambda n_queries, n_keys=None: causal_mask(n_queries, n_keys).float(), "expected bool"),
        (lambda n_queries, n_keys=None: None, "is a return missing"),
    ],
)
def test_a_mask_of_another_kind_is_explained(answer, phrase):
    message = examine("masking.causal_mask", answer, seed=0).criteria[0].message
    assert phrase in message
    assert "like the input" not in message


def test_an_examples_call_of_leak_reads_like_a_call():
    exercise = exercises()["masking.leak"]
    texts = [call_text(exercise, case) for _, case, _ in draw(exercise, 0)]
    assert texts[0].startswith("leak(f, x, mask) (f(x) = A x W), in float64, where\nx =\n")
    assert "A =\n" in texts[0]
    assert "W =\n" in texts[0]


def wrong_axis_in_softmax(scores, mask):
    allowed = mask | ~mask.any(-2, keepdim=True)
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0)


def wrong_axis_at_the_end(scores, mask):
    has_key = mask.any(-1, keepdim=True)
    weights = scores.masked_fill(~(mask | ~has_key), -torch.inf).softmax(-1)
    return weights.masked_fill(~mask.any(-2, keepdim=True), 0)


@pytest.mark.parametrize("answer", [wrong_axis_in_softmax, wrong_axis_at_the_end])
def test_points_for_a_wrong_axis_are_the_same_in_each_draw(answer):
    """Whether some key is unseen, or some row empty, is no matter of chance."""
    masked_softmax = exercises()["masking.masked_softmax"]
    assert len({points_of_answer(masked_softmax, answer, seed) for seed in range(12)}) == 1


def test_a_leak_may_come_as_a_tensor():
    """A leak returned as a tensor of one number is as good as a float."""

    def as_tensor(f, x, mask):
        return torch.tensor(leak(f, x, mask), dtype=torch.float64)

    verdict = examine("masking.leak", as_tensor)
    assert verdict.passed, verdict
