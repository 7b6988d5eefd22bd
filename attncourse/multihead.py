"""Chapter 9: several attention maps at once, ``concat(head_0, …, head_{h−1}) W_o``.

A head of its own for each question: each has its queries, keys and values, d_head = d_model / h
features wide, and its own map ``(m, n)``. ``MultiHeadNaive`` is a list of h heads;
``MultiHeadAttention`` computes the same with one projection for all, cut into heads afterwards.

A mask ``(m, n)`` or ``(b, m, n)`` holds for every head. One with an axis more, ``(b, h, m, n)`` for
a batch of b and ``(h, m, n)`` for a single sequence, has a map for each head.
Sources: Vaswani et al. (2017), section 3.2.2; Shazeer (2019), multi-query; Ainslie et al. (2023),
grouped-query attention.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attncourse.kqv import AttentionHead, attention_weights, scaled_dot_product_attention
from attncourse.support.arrays import require_divisor
from attncourse.support.shapes import Count, shaped
from attncourse.support.tensors import mask_over_heads, require_mask_for_all


@shaped
def split_heads(
    x: Float[Tensor, "*batch n d"], n_heads: Count
) -> Float[Tensor, "*batch h n d_head"]:
    """The features in h runs, a sequence for each head: ``out[i, t] = x[t, i·d/h : (i+1)·d/h]``.

    x: ``(..., n, d)``. Returns ``(..., h, n, d/h)``, which shares x's memory where that is
    possible. Raises ``ValueError`` where h does not divide d.
    """
    require_divisor("n_heads", n_heads, "the width of x", x.shape[-1])
    # Cut the features first, and only then change places.
    x = x.unflatten(-1, (n_heads, -1))  # (..., n, h, d_head)
    return x.transpose(-3, -2)  # (..., h, n, d_head)


@shaped
def merge_heads(x: Float[Tensor, "*batch h n d_head"]) -> Float[Tensor, "*batch n d"]:
    """The heads' features side by side again: ``merge_heads(split_heads(x, h))`` is x.

    x: ``(..., h, n, d_head)``. Returns ``(..., n, h·d_head)``.
    """
    x = x.transpose(-3, -2)  # (..., n, h, d_head)
    return x.flatten(-2)  # (..., n, h · d_head)


class MultiHeadNaive(nn.Module):
    """Self-attention with h heads in a list, each d_model / h wide, and W_o for what they return.

    One mask, ``(n, n)`` or ``(b, n, n)``, holds for every head. Raises ``ValueError`` where n_heads
    does not divide d_model, and for a mask with an axis for the heads.
    """

    heads: Any  # a list of modules has no type for its elements

    @shaped
    def __init__(self, d_model: Count, n_heads: Count, bias: bool = True):
        """Make n_heads heads of width d_model / n_heads, and W_o, from d_model to d_model."""
        super().__init__()
        require_divisor("n_heads", n_heads, "d_model", d_model)
        self.heads = nn.ModuleList()
        for _ in range(n_heads):
            head = AttentionHead(d_model, d_model // n_heads, bias=bias)
            self.heads.append(head)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "*#batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """The heads' outputs side by side, mixed by W_o: ``(..., n, d_model)``."""
        require_mask_for_all(mask, x)
        outputs = [head(x, mask) for head in self.heads]
        outputs = torch.cat(outputs, dim=-1)  # (..., n, h · d_head)
        return self.W_o(outputs)  # (..., n, d_model)

    def weights(
        self,
        x: Float[Tensor, "*#batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch h n n"]:
        """A map for each head, ``(..., h, n, n)``."""
        require_mask_for_all(mask, x)
        maps = [head.weights(x, mask) for head in self.heads]
        return torch.stack(maps, dim=-3)  # (..., h, n, n)


class MultiHeadAttention(nn.Module):
    """Attention with h heads at once: ``merge(attention(split(query W_q), …)) W_o``.

    Head i uses features i·d_head … (i+1)·d_head − 1 of each projection, d_head = d_model / h. With
    fewer key/value heads, ``n_kv_heads``, each serves a run of h / n_kv_heads consecutive query
    heads (grouped-query attention; multi-query attention with 1). ``W_q`` and ``W_o`` map d_model
    features to d_model, ``W_k`` and ``W_v`` to n_kv_heads · d_head.

    Raises ``ValueError`` where n_heads does not divide d_model or n_kv_heads not n_heads.
    """

    @shaped
    def __init__(
        self, d_model: Count, n_heads: Count, n_kv_heads: Count | None = None, bias: bool = True
    ):
        """Make W_q, W_k, W_v and W_o for n_heads heads of width d_model / n_heads.

        Of keys and values there are n_kv_heads heads, as many as of queries unless given. Raises
        ``ValueError`` where n_heads does not divide d_model, or n_kv_heads not n_heads.
        """
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        require_divisor("n_heads", n_heads, "d_model", d_model)
        require_divisor("n_kv_heads", n_kv_heads, "n_heads", n_heads)
        self.d_model = d_model
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        d_kv = n_kv_heads * (d_model // n_heads)
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, d_kv, bias=bias)
        self.W_v = nn.Linear(d_model, d_kv, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)

    @shaped(n="one value for each key")
    def forward(
        self,
        query: Float[Tensor, "*#batch m d_model"],
        key: Float[Tensor, "*#batch n d_model"] | None = None,
        value: Float[Tensor, "*#batch n d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch m d_model"]:
        """The output ``(..., m, d_model)``; key is query and value is key unless given."""
        query, key, value = self.views(query, key, value)
        mask = mask_over_heads(mask, query, key)
        heads = scaled_dot_product_attention(query, key, value, mask)
        return self.W_o(merge_heads(heads))  # (..., m, d_model)

    @shaped(n="one value for each key")
    def weights(
        self,
        query: Float[Tensor, "*#batch m d_model"],
        key: Float[Tensor, "*#batch n d_model"] | None = None,
        value: Float[Tensor, "*#batch n d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch h m n"]:
        """A map for each head, ``(..., h, m, n)``; value has no part in it."""
        query, key, _ = self.views(query, key, value)
        mask = mask_over_heads(mask, query, key)
        return attention_weights(query, key, mask)

    def views(self, query: Tensor, key: Tensor | None, value: Tensor | None) -> tuple[Tensor, ...]:
        """Queries ``(..., h, m, d_head)``, keys and values ``(..., h, n, d_head)``."""
        key = query if key is None else key
        value = key if value is None else value
        query = split_heads(self.W_q(query), self.n_heads)
        key = split_heads(self.W_k(key), self.n_kv_heads)
        value = split_heads(self.W_v(value), self.n_kv_heads)
        group = self.n_heads // self.n_kv_heads  # query heads for each
        key = key.repeat_interleave(group, -3)  # (..., h, n, d_head)
        return query, key, value.repeat_interleave(group, -3)


def naive_to_batched(naive: MultiHeadNaive) -> MultiHeadAttention:
    """A ``MultiHeadAttention`` that computes what ``naive`` does, with weights of its own.

    ``nn.Linear`` stores its weight as (out, in), so the heads' outputs, which stand side by side,
    are rows: W_q is the heads' W_q one below the other, and likewise the others and the biases.
    Raises ``ValueError`` for a module that has no ``heads`` or no ``W_o``.
    """
    if not hasattr(naive, "heads") or not hasattr(naive, "W_o"):
        raise ValueError(f"naive: expected a MultiHeadNaive, got {type(naive).__name__}")
    heads = [head.state_dict() for head in naive.heads]
    state = {}
    for name in heads[0]:  # W_q.weight, W_q.bias, …
        state[name] = torch.cat([head[name] for head in heads])
    return loaded(naive.W_o, len(naive.heads), state)


def load_torch_weights(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
    """A ``MultiHeadAttention`` with copies of the weights of PyTorch's module.

    It returns what ``theirs`` does, with batch axes in front (PyTorch's ``batch_first=True``) and
    without dropout. PyTorch's boolean ``attn_mask`` is True where attention is *forbidden*; ours is
    its negation. Raises ``ValueError`` where kdim or vdim is not d_model, and for added keys.
    """
    if not isinstance(theirs, nn.MultiheadAttention):
        raise ValueError(f"theirs: expected an nn.MultiheadAttention, got {type(theirs).__name__}")
    d_model = theirs.embed_dim
    widths = f"kdim = {theirs.kdim} and vdim = {theirs.vdim}"
    for fits, expected, got in (
        (theirs.kdim == theirs.vdim == d_model, f"kdim = vdim = embed_dim = {d_model}", widths),
        (theirs.bias_k is None, "add_bias_kv=False", "a module with bias_k and bias_v"),
        (not theirs.add_zero_attn, "add_zero_attn=False", "a module that adds a zero key"),
    ):
        if not fits:
            raise ValueError(f"theirs: expected {expected}, got {got}")
    state = {}
    for part, stacked in (("weight", theirs.in_proj_weight), ("bias", theirs.in_proj_bias)):
        if stacked is not None:
            q, k, v = stacked.chunk(3)
            state |= {f"W_q.{part}": q, f"W_k.{part}": k, f"W_v.{part}": v}
    return loaded(theirs.out_proj, theirs.num_heads, state)


def loaded(W_o: nn.Linear, n_heads: int, state: dict[str, Tensor]) -> MultiHeadAttention:
    """A ``MultiHeadAttention`` with copies of W_o and of a state, of W_o's dtype and device."""
    batched = MultiHeadAttention(W_o.in_features, n_heads, bias=W_o.bias is not None)
    state = state | {f"W_o.{part}": w for part, w in W_o.state_dict().items()}
    batched.to(W_o.weight).load_state_dict(state)
    return batched
