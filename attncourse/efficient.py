"""Chapter 17: attention with less memory, and with less work.

``tiled_attention`` returns what chapter 5's attention returns and never holds its (m, n) weights:
a softmax can be taken block by block, if the running sum is rescaled whenever a larger score comes.
``windowed_attention`` and ``linear_attention`` return something else, for less work.

Sources: Milakov and Gimelshein (2018), Online Normalizer Calculation for Softmax; Rabe and Staats
(2021), Self-attention Does Not Need O(n²) Memory; Dao et al. (2022), FlashAttention; Katharopoulos
et al. (2020), Transformers are RNNs, section 3.
"""

import math
from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attncourse.kqv import scaled_dot_product_attention
from attncourse.support.arrays import require_count
from attncourse.support.shapes import Count, shaped
from attncourse.support.tensors import ALLOWED, require_boolean, require_float_tensor


def online_softmax(
    blocks: Iterable[Float[Tensor, "*batch m n_b"]],
) -> tuple[Float[Tensor, "*batch m 1"], Float[Tensor, "*batch m 1"]]:
    """The largest score of each row and ``Σ_j exp(s_j − largest)``, in one pass over blocks.

    blocks: the scores of the same m queries, some keys at a time, ``(..., m, n_b)``; each is looked
    at once. Returns (maximum, normaliser), ``(..., m, 1)`` each; a row of nothing but −∞ gives
    (−∞, 0). Raises ``ValueError`` for no blocks, and for two of other queries.
    Source: Milakov and Gimelshein (2018), section 3.
    """
    maximum = normaliser = None
    for scores in blocks:
        require_float_tensor("blocks", scores, "... m n")
        if maximum is None or normaliser is None:
            maximum = torch.full_like(scores[..., :1], -math.inf)
            normaliser = torch.zeros_like(maximum)
        if scores.shape[:-1] != maximum.shape[:-1]:
            expected, got = tuple(maximum.shape[:-1]), tuple(scores.shape[:-1])
            raise ValueError(f"blocks: expected scores of queries {expected}, got {got}")
        larger = torch.maximum(maximum, scores.amax(-1, keepdim=True))
        shift = finite(larger)  # −∞ − (−∞) would be NaN
        new = (scores - shift).exp().sum(-1, keepdim=True)  # (..., m, 1)
        normaliser = normaliser * (maximum - shift).exp() + new
        maximum = larger
    if maximum is None or normaliser is None:
        raise ValueError("blocks: expected one block of scores or more, got none")
    return maximum, normaliser


@shaped(d_k="queries and keys of the same width d_k", n="one value for each key")
def tiled_attention(
    query: Float[Tensor, "*#batch m d_k"],
    key: Float[Tensor, "*#batch n d_k"],
    value: Float[Tensor, "*#batch n d_v"],
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    block: Count = 128,
) -> Float[Tensor, "*batch m d_v"]:
    """``softmax(Q Kᵀ / √d_k) V``, with ``block`` queries and keys at a time.

    Equal to chapter 5's ``scaled_dot_product_attention``, gradients too, and never holds a tensor
    ``(m, n)``: the backward pass computes each tile of weights again from the logarithm of its
    rows' sums of exponentials. A query with no allowed key gets 0. Raises ``ValueError`` as chapter
    5 does. Source: Dao et al. (2022), with queries in the outer loop, as in Dao (2024),
    FlashAttention-2, algorithm 1.
    """
    inputs = query, key, value
    shape = torch.broadcast_shapes(*(x.shape[:-2] for x in inputs))
    if mask is not None:
        require_boolean("mask", mask, ALLOWED)
        shape = torch.broadcast_shapes(shape, mask.shape[:-2])
        m, n = query.shape[-2], key.shape[-2]
        mask = mask.expand(*mask.shape[:-2], m, n)
    parts = (x.expand(*shape, *x.shape[-2:]) for x in inputs)
    return Tiled.apply(*parts, mask, block)


def forward_in_tiles(
    query: Float[Tensor, "*#batch m d_k"],
    key: Float[Tensor, "*#batch n d_k"],
    value: Float[Tensor, "*#batch n d_v"],
    mask: Bool[Tensor, "*#batch m n"] | None,
    block: int,
) -> tuple[Float[Tensor, "*batch m d_v"], Float[Tensor, "*batch m 1"]]:
    """The output, and the logarithm of each row's sum of exponentials, tile by tile."""
    scale, outputs, log_sums = query.shape[-1] ** -0.5, [], []
    for rows in slices(query.shape[-2], block):
        q = query[..., rows, :] * scale  # (..., block, d_k)
        total = maximum = normaliser = torch.zeros(())
        for columns in slices(key.shape[-2], block):
            scores = q @ key[..., columns, :].mT  # (..., block, block)
            scores = masked(scores, mask, rows, columns)
            larger = scores.amax(-1, keepdim=True)  # (..., block, 1)
            if columns.start:
                larger = torch.maximum(maximum, larger)
            shift = finite(larger)
            weights = scores.sub_(shift).exp()
            # What was summed under a smaller maximum counts for less.
            shrink = (maximum - shift).exp() if columns.start else 0.0
            total = total * shrink + weights @ value[..., columns, :]
            added = weights.sum(-1, keepdim=True)
            normaliser = normaliser * shrink + added
            maximum = larger
        normaliser = normaliser.where(normaliser > 0, 1)  # no key
        outputs.append(total / normaliser)
        log_sums.append(finite(maximum) + normaliser.log())
    return torch.cat(outputs, dim=-2), torch.cat(log_sums, dim=-2)


class Tiled(torch.autograd.Function):
    """The two passes of ``tiled_attention``. Scores are those of one tile at a time."""

    @staticmethod
    def forward(ctx, query, key, value, mask, block):
        """Return the output, ``(..., m, d_v)``; keep what the way back needs."""
        output, log_sum = forward_in_tiles(query, key, value, mask, block)
        ctx.save_for_backward(query, key, value, mask, output, log_sum)
        ctx.block = block
        return output

    @staticmethod
    def backward(ctx, upstream):  # pyrefly: ignore [bad-override]  one result, so one gradient
        """Return the gradients of query, key and value, from weights that each tile works out anew.

        ``dS = A ⊙ (dO Vᵀ − rowsum(dO ⊙ O))``, ``dV = Aᵀ dO``, ``dQ = scale · dS K``, ``dK = scale ·
        dSᵀ Q``.
        """
        query, key, value, mask, output, log_sum = ctx.saved_tensors
        scale, block = query.shape[-1] ** -0.5, ctx.block
        d_query, d_key, d_value = map(torch.zeros_like, (query, key, value))
        mean = (upstream * output).sum(-1, keepdim=True)  # (..., m, 1)
        for rows in slices(query.shape[-2], block):
            q, up = query[..., rows, :] * scale, upstream[..., rows, :]
            for columns in slices(key.shape[-2], block):
                k, v = key[..., columns, :], value[..., columns, :]
                scores = masked(q @ k.mT, mask, rows, columns)
                weights = (scores - log_sum[..., rows, :]).exp()
                slope = weights * (up @ v.mT - mean[..., rows, :])
                d_value[..., columns, :] += weights.mT @ up
                d_query[..., rows, :] += slope @ k * scale
                d_key[..., columns, :] += slope.mT @ q
        return d_query, d_key, d_value, None, None


@shaped(d_k="queries and keys of the same width d_k", n="a query, a key and a value for each token")
def windowed_attention(
    query: Float[Tensor, "*#batch n d_k"],
    key: Float[Tensor, "*#batch n d_k"],
    value: Float[Tensor, "*#batch n d_v"],
    width: Count,
) -> Float[Tensor, "*batch n d_v"]:
    """Attention of each token to the ``width`` tokens around it, in O(n · width) time and memory.

    What chapter 5's attention returns under ``sliding_window_mask(n, width)``. width is odd; a
    window is cut off at the ends and may be wider than the sequence. Queries are taken in blocks of
    ``width``, at least 64, which share their keys: that makes twice as many scores as are used, and
    more for narrow windows. Raises ``ValueError`` for an even width. Source: Beltagy et al. (2020),
    Longformer, section 3.1.
    """
    if width % 2 == 0:
        raise ValueError(f"width: expected an odd number, got {width}")
    n, half, outputs = key.shape[-2], width // 2, []
    for rows in slices(n, max(width, 64)):  # neighbours share most of what they see
        first, stop = max(rows.start - half, 0), rows.stop + half
        columns = slice(first, min(stop, n))
        i, j = torch.arange(n)[rows, None], torch.arange(n)[columns]
        near = ((i - j).abs() <= half).to(key.device)  # (block, block + 2 half)
        k, v = key[..., columns, :], value[..., columns, :]
        q = query[..., rows, :]  # (..., block, d_k)
        outputs.append(scaled_dot_product_attention(q, k, v, near))
    return torch.cat(outputs, dim=-2)  # (..., n, d_v)


@shaped(d_k="queries and keys of the same width d_k", n="one value for each key")
def linear_attention(
    query: Float[Tensor, "*#batch m d_k"],
    key: Float[Tensor, "*#batch n d_k"],
    value: Float[Tensor, "*#batch n d_v"],
    causal: bool = False,
) -> Float[Tensor, "*batch m d_v"]:
    """Attention by a product of features, ``φ(Q) (φ(K)ᵀ V) / φ(Q) Σ_j φ(k_j)``, φ = elu + 1.

    The weights are ``φ(q_i) · φ(k_j)`` over their sum, but (m, n) of them are never made. With
    ``causal`` a token sees those up to itself, which takes as many queries as keys; the sums up to
    every token are held at once, n · d_k · d_v numbers. Raises
    ``ValueError`` where that is not so. Source: Katharopoulos et al. (2020), equations 5 to 9.
    """
    query, key = F.elu(query) + 1, F.elu(key) + 1
    if not causal:
        state = key.mT @ value  # (..., d_k, d_v)
        return query @ state / (query @ key.sum(-2, keepdim=True).mT)
    if query.shape[-2] != key.shape[-2]:
        got = f"{query.shape[-2]} and {key.shape[-2]}"
        raise ValueError(f"linear_attention: expected as many queries as keys, got {got}")
    states = (key.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(-3)  # (..., n, d_k, d_v)
    sums = (query * key.cumsum(-2)).sum(-1, keepdim=True)  # (..., n, 1)
    return (query.unsqueeze(-2) @ states).squeeze(-2) / sums


def kv_cache_bytes(
    n_tokens: int, n_layers: int, n_kv_heads: int, d_head: int, bytes_per_number: int = 2
) -> int:
    """The bytes of a cache of keys and values: two numbers a token, layer, head and feature.

    Raises ``ValueError`` for a number that is not whole and at least 1 (n_tokens: at least 0).
    """
    require_count("n_tokens", n_tokens, least=0)
    for name, number in (
        ("n_layers", n_layers),
        ("n_kv_heads", n_kv_heads),
        ("d_head", d_head),
        ("bytes_per_number", bytes_per_number),
    ):
        require_count(name, number)
    numbers = 2 * n_tokens * n_layers * n_kv_heads * d_head
    return numbers * bytes_per_number


def slices(n: int, block: int) -> Iterator[slice]:
    """0 … block − 1, the next block, and so on; the last may be shorter."""
    for start in range(0, n, block):
        yield slice(start, min(start + block, n))


def masked(scores: Tensor, mask: Tensor | None, rows: slice, columns: slice) -> Tensor:
    """The scores of a tile, −∞ where the mask forbids."""
    return scores if mask is None else scores.masked_fill(~mask[..., rows, columns], -math.inf)


def finite(maximum: Tensor) -> Tensor:
    """The maximum, and 0 in place of −∞, so that differences to it are never NaN."""
    return maximum.masked_fill(maximum == -math.inf, 0)
