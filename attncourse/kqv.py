"""Chapter 5: queries, keys and values, ``softmax(Q Kᵀ / √d_k) V``.

A token meets the others in three roles. As a query it looks for something, as a key it says what
can be found at it, as a value it is what the others take away. Queries are the rows of Q
``(m, d_k)``, keys those of K ``(n, d_k)``, values those of V ``(n, d_v)``; the attention weights
are ``(m, n)``, and row i belongs to query i.

Every function takes any number of leading batch axes and keeps the floating dtype. NaN in an
argument comes out as NaN wherever it takes part. Among the scores, where a mask would hide one, it
is an error; in a value it reaches every output, since 0 · NaN is NaN.
Source: Vaswani et al. (2017), Attention Is All You Need, section 3.2.1.
"""

import math
from numbers import Real

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attncourse.support.shapes import Count, shaped
from attncourse.support.tensors import require_mask


@shaped(d_in="one row of weight for each feature of x")
def project(
    x: Float[Tensor, "*batch n d_in"], weight: Float[Tensor, "d_in d_out"]
) -> Float[Tensor, "*batch n d_out"]:
    """Another view of every token: row i of the result is ``x[i] @ weight``.

    x: one token per row, ``(..., n, d_in)``. weight: ``(d_in, d_out)``. Returns
    ``(..., n, d_out)``. Raises ``ValueError`` where x has not one feature per row of weight.
    """
    return x @ weight  # (..., n, d_in) @ (d_in, d_out)


@shaped(d_k="queries and keys of the same width d_k")
def attention_scores(
    query: Float[Tensor, "*#batch m d_k"], key: Float[Tensor, "*#batch n d_k"]
) -> Float[Tensor, "*batch m n"]:
    """Return how well each query and each key fit, ``S = Q Kᵀ``: ``S[i, j] = query[i] · key[j]``.

    query: ``(..., m, d_k)``. key: ``(..., n, d_k)``. Returns ``(..., m, n)``; batch axes broadcast.
    Nothing is scaled here. Raises ``ValueError`` where queries and keys differ in width.
    """
    return query @ key.mT  # (..., m, d_k) @ (..., d_k, n)


def attention_weights(
    query: Float[Tensor, "*#batch m d_k"],
    key: Float[Tensor, "*#batch n d_k"],
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    *,
    scale: float | None = None,
) -> Float[Tensor, "*batch m n"]:
    """Whom each query listens to, ``A = softmax(scale · Q Kᵀ)``, a softmax over the keys.

    ``scale`` is 1/√d_k unless given. ``mask`` is True where attention is allowed and broadcasts
    to ``(..., m, n)``; weights elsewhere are 0, and so is a whole row with no allowed key.

    Raises ``ValueError`` for a mask that is not boolean or does not broadcast, for a scale that is
    no finite number, and for a NaN score that the mask would hide.
    """
    scores = attention_scores(query, key)  # (..., m, n)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else require_scale(scale)
    return softmax_over_keys(scale * scores, mask)


def softmax_over_keys(
    scores: Float[Tensor, "*#batch m n"], mask: Bool[Tensor, "*#batch #m #n"] | None = None
) -> Float[Tensor, "*batch m n"]:
    """The scores as weights, ``softmax(S)`` along each row, over the keys that the mask allows.

    Raises ``ValueError`` for a mask that is not boolean, does not broadcast, or hides a NaN.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    mask, scores = require_mask(mask, scores)
    # A row of nothing but −∞ would be NaN: a row without a key
    # keeps its scores and loses its weights instead.
    some_key = mask.any(dim=-1, keepdim=True)  # (..., m, 1)
    scores = scores.masked_fill(~mask & some_key, -math.inf)
    return scores.softmax(dim=-1).masked_fill(~mask, 0)


@shaped(d_k="queries and keys of the same width d_k", n="one value for each key")
def scaled_dot_product_attention(
    query: Float[Tensor, "*#batch m d_k"],
    key: Float[Tensor, "*#batch n d_k"],
    value: Float[Tensor, "*#batch n d_v"],
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    *,
    scale: float | None = None,
) -> Float[Tensor, "*batch m d_v"]:
    """The blend of values that each query asked for, ``U = softmax(scale · Q Kᵀ) V``.

    query: ``(..., m, d_k)``. key: ``(..., n, d_k)``. value: ``(..., n, d_v)``. mask and scale: as
    in ``attention_weights``. Returns ``(..., m, d_v)``; a query with no allowed key gets 0.

    Raises ``ValueError`` where there is not one value for each key.
    """
    weights = attention_weights(query, key, mask, scale=scale)
    return weights @ value  # (..., m, n) @ (..., n, d_v)


class AttentionHead(nn.Module):
    """Self-attention with learned views: queries, keys and values are projections of one sequence.

    ``W_q`` and ``W_k`` map d_model features to d_k, ``W_v`` maps them to d_v (d_k unless given).
    They are ``nn.Linear``, whose ``weight`` is stored as (out, in) and applied transposed.
    """

    @shaped
    def __init__(self, d_model: Count, d_k: Count, d_v: Count | None = None, bias: bool = False):
        """Make W_q, W_k and W_v, from d_model to d_k, d_k and d_v; d_v is d_k unless given."""
        super().__init__()
        d_v = d_k if d_v is None else d_v
        self.d_model = d_model
        self.W_q = nn.Linear(d_model, d_k, bias=bias)
        self.W_k = nn.Linear(d_model, d_k, bias=bias)
        self.W_v = nn.Linear(d_model, d_v, bias=bias)

    @shaped
    def forward(
        self,
        x: Float[Tensor, "*#batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """The output for every token of x, ``(..., n, d_v)``."""
        query, key, value = self.W_q(x), self.W_k(x), self.W_v(x)
        return scaled_dot_product_attention(query, key, value, mask)

    @shaped
    def weights(
        self,
        x: Float[Tensor, "*#batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n n"]:
        """The attention map that ``forward`` mixes the values with, ``(..., n, n)``."""
        return attention_weights(self.W_q(x), self.W_k(x), mask)


def require_scale(scale: float) -> float:
    """The factor on the scores as a ``float``; ``ValueError`` unless it is a finite number."""
    if isinstance(scale, bool) or not isinstance(scale, Real) or not math.isfinite(scale):
        raise ValueError(f"scale: expected a finite number or None, got {scale!r}")
    return float(scale)
