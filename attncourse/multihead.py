"""Chapter 9: several attention maps at once, ``concat(head_0, …, head_{h−1}) W_o``.

A head of its own for each question: each has its queries, keys and values, d_head = d_model / h
features wide, and its own map ``(m, n)``. Their outputs stand side by side, and W_o mixes them.
``MultiHeadNaive`` is a list of h heads; ``MultiHeadAttention`` computes the same with one
projection for all heads, cut into heads afterwards.

A mask ``(m, n)`` or ``(b, m, n)`` holds for every head. One with an axis more, ``(b, h, m, n)`` for
a batch of b and ``(h, m, n)`` for a single sequence, has a map for each head.
Sources: Vaswani et al. (2017), section 3.2.2; Shazeer (2019), multi-query; Ainslie et al. (2023),
grouped-query attention.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attncourse.arrays import require_count
from attncourse.kqv import AttentionHead, attention_weights, scaled_dot_product_attention
from attncourse.tensors import require_features, require_float_tensor, require_same_batch


def split_heads(x: Float[Tensor, "*batch n d"], n_heads: int) -> Float[Tensor, "*batch h n d_head"]:
    """The features in h runs, a sequence for each head: ``out[i, t] = x[t, i·d/h : (i+1)·d/h]``.

    x: ``(..., n, d)``. Returns ``(..., h, n, d/h)``, which shares x's memory where that is
    possible. Raises ``ValueError`` where h does not divide d.
    """
    require_float_tensor("x", x, "... n d")
    d_head = head_width("the width of x", x.shape[-1], n_heads)
    # Cut the features first, (..., n, h, d_head), and only then change places.
    return x.unflatten(-1, (n_heads, d_head)).transpose(-3, -2)  # (..., h, n, d_head)


def merge_heads(x: Float[Tensor, "*batch h n d_head"]) -> Float[Tensor, "*batch n d"]:
    """The heads' features side by side again: ``merge_heads(split_heads(x, h))`` is x.

    x: ``(..., h, n, d_head)``. Returns ``(..., n, h·d_head)``.
    """
    require_float_tensor("x", x, "... h n d_head")
    return x.transpose(-3, -2).flatten(-2)  # (..., n, h, d_head) -> (..., n, h * d_head)


class MultiHeadNaive(nn.Module):
    """Self-attention with h heads in a list, each d_model / h wide, and W_o for what they return.

    One mask, ``(n, n)`` or ``(b, n, n)``, holds for every head. Raises ``ValueError`` where n_heads
    does not divide d_model, and for a mask with an axis for the heads.
    """

    def __init__(self, d_model: int, n_heads: int, bias: bool = True):
        super().__init__()
        d_head = head_width("d_model", d_model, n_heads)
        self.heads = nn.ModuleList(
            AttentionHead(d_model, d_head, bias=bias) for _ in range(n_heads)
        )
        self.W_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """The heads' outputs side by side, mixed by W_o: ``(..., n, d_model)``."""
        require_mask_for_all(mask, x)
        outputs = [head(x, mask) for head in self.heads]  # h times (..., n, d_head)
        return self.W_o(torch.cat(outputs, dim=-1))  # (..., n, d_model)

    def weights(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch h n n"]:
        """A map for each head, ``(..., h, n, n)``."""
        require_mask_for_all(mask, x)
        return torch.stack([head.weights(x, mask) for head in self.heads], dim=-3)


class MultiHeadAttention(nn.Module):
    """Attention with h heads at once: ``merge(attention(split(query W_q), …)) W_o``.

    Head i uses features i·d_head … (i+1)·d_head − 1 of each projection, d_head = d_model / h. With
    fewer key/value heads, ``n_kv_heads``, each serves a run of h / n_kv_heads consecutive query
    heads (grouped-query attention; multi-query attention with 1). ``W_q`` and ``W_o`` map d_model
    features to d_model, ``W_k`` and ``W_v`` to n_kv_heads · d_head.

    Raises ``ValueError`` where n_heads does not divide d_model or n_kv_heads not n_heads.
    """

    def __init__(
        self, d_model: int, n_heads: int, n_kv_heads: int | None = None, bias: bool = True
    ):
        super().__init__()
        d_head = head_width("d_model", d_model, n_heads)
        n_kv_heads = n_heads if n_kv_heads is None else require_count("n_kv_heads", n_kv_heads)
        if n_heads % n_kv_heads:
            raise ValueError(
                f"n_kv_heads: expected a divisor of n_heads = {n_heads}, got {n_kv_heads}"
            )
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, n_kv_heads * d_head, bias=bias)
        self.W_v = nn.Linear(d_model, n_kv_heads * d_head, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "*batch m d_model"],
        key: Float[Tensor, "*batch n d_model"] | None = None,
        value: Float[Tensor, "*batch n d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch m d_model"]:
        """The output ``(..., m, d_model)``; key is query and value is key unless given."""
        query, key, value = self.views(query, key, value)
        mask = mask_over_heads(mask, query, key)
        heads = scaled_dot_product_attention(query, key, value, mask)  # (..., h, m, d_head)
        return self.W_o(merge_heads(heads))

    def weights(
        self,
        query: Float[Tensor, "*batch m d_model"],
        key: Float[Tensor, "*batch n d_model"] | None = None,
        value: Float[Tensor, "*batch n d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch h m n"]:
        """A map for each head, ``(..., h, m, n)``; value has no part in it."""
        query, key, _ = self.views(query, key, value)
        return attention_weights(query, key, mask_over_heads(mask, query, key))

    def views(
        self, query: Tensor, key: Tensor | None, value: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries ``(..., h, m, d_head)``, keys and values ``(..., h, n, d_head)``."""
        key = query if key is None else key
        value = key if value is None else value
        for name, x in (("query", query), ("key", key), ("value", value)):
            require_features(name, x, self.W_q, "n d_model")
        require_same_batch(query=query, key=key, value=value)
        query = split_heads(self.W_q(query), self.n_heads)
        key = split_heads(self.W_k(key), self.n_kv_heads)  # (..., n_kv_heads, n, d_head)
        value = split_heads(self.W_v(value), self.n_kv_heads)
        group = self.n_heads // self.n_kv_heads
        return query, key.repeat_interleave(group, -3), value.repeat_interleave(group, -3)


def naive_to_batched(naive: MultiHeadNaive) -> MultiHeadAttention:
    """A ``MultiHeadAttention`` that computes what ``naive`` does, with weights of its own.

    ``nn.Linear`` stores its weight as (out, in), so the heads' outputs, which stand side by side,
    are rows: W_q is the heads' W_q one below the other, and likewise the others and the biases.
    Raises ``ValueError`` for a module that has no ``heads`` or no ``W_o``.
    """
    if not hasattr(naive, "heads") or not hasattr(naive, "W_o"):
        raise ValueError(f"naive: expected a MultiHeadNaive, got {type(naive).__name__}")
    parts = ("weight",) if naive.W_o.bias is None else ("weight", "bias")
    state = {f"W_o.{part}": getattr(naive.W_o, part) for part in parts}
    for name in ("W_q", "W_k", "W_v"):
        layers = [getattr(head, name) for head in naive.heads]
        for part in parts:
            state[f"{name}.{part}"] = torch.cat([getattr(layer, part) for layer in layers])
    return loaded(naive.W_o, len(naive.heads), state)


def load_torch_weights(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
    """A ``MultiHeadAttention`` with copies of the weights of PyTorch's module.

    It returns what ``theirs`` does, with batch axes in front (PyTorch's ``batch_first=True``) and
    without dropout. PyTorch's boolean ``attn_mask`` is True where attention is *forbidden*; ours is
    its negation. Raises ``ValueError`` for what ours has no place for: ``kdim`` or ``vdim`` other
    than d_model, ``add_bias_kv`` and ``add_zero_attn``.
    """
    if not isinstance(theirs, nn.MultiheadAttention):
        got = type(theirs).__name__
        raise ValueError(f"theirs: expected an nn.MultiheadAttention, got {got}")
    d_model = theirs.embed_dim
    if (theirs.kdim, theirs.vdim) != (d_model, d_model):
        raise ValueError(
            f"theirs: expected kdim = vdim = embed_dim = {d_model}, "
            f"got kdim = {theirs.kdim} and vdim = {theirs.vdim}"
        )
    if theirs.bias_k is not None:
        raise ValueError("theirs: expected add_bias_kv=False, got a module with bias_k and bias_v")
    if theirs.add_zero_attn:
        raise ValueError("theirs: expected add_zero_attn=False, got a module that adds a zero key")
    state = {f"W_o.{part}": w for part, w in theirs.out_proj.state_dict().items()}
    for part, stacked in (("weight", theirs.in_proj_weight), ("bias", theirs.in_proj_bias)):
        if stacked is not None:
            q, k, v = stacked.chunk(3)
            state |= {f"W_q.{part}": q, f"W_k.{part}": k, f"W_v.{part}": v}
    return loaded(theirs.out_proj, theirs.num_heads, state)


def count_parameters(module: nn.Module) -> int:
    """How many numbers a module learns; one that several layers share counts once."""
    if not isinstance(module, nn.Module):
        raise ValueError(f"module: expected an nn.Module, got {type(module).__name__}")
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def loaded(W_o: nn.Linear, n_heads: int, state: dict[str, Tensor]) -> MultiHeadAttention:
    """A ``MultiHeadAttention`` of the width, dtype and device of W_o, with copies of a state."""
    batched = MultiHeadAttention(W_o.in_features, n_heads, bias=W_o.bias is not None)
    batched.to(W_o.weight).load_state_dict(state)
    return batched


def head_width(name: str, width: int, n_heads: int) -> int:
    """``width / n_heads``; ``ValueError`` where that is no whole number."""
    width, n_heads = require_count(name, width), require_count("n_heads", n_heads)
    if width % n_heads:
        raise ValueError(f"n_heads: expected a divisor of {name}, {width}, got {n_heads}")
    return width // n_heads


def require_mask_for_all(mask: Tensor | None, x: Tensor) -> None:
    """Raises ``ValueError`` for a mask with more axes than x has: a head knows of no others."""
    if isinstance(mask, Tensor) and isinstance(x, Tensor) and mask.ndim > x.ndim:
        raise ValueError(
            f"mask: expected one mask for all heads, at most {x.ndim} axes for x of shape "
            f"{tuple(x.shape)}, got shape {tuple(mask.shape)}"
        )


def mask_over_heads(mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """The mask with an axis for the heads, where it lacks one, to broadcast to ``(..., h, m, n)``.

    query, key: cut into heads. The number of axes decides: fewer than the scores have is a mask for
    every head. Raises ``ValueError`` where the axis of the heads or a batch axis does not fit.
    """
    if not isinstance(mask, Tensor) or mask.ndim < 3:
        return mask
    every_head = mask.ndim < max(query.ndim, key.ndim)
    shape, heads = tuple(mask.shape), query.shape[-3]
    if not every_head and shape[-3] not in (1, heads):
        raise ValueError(
            f"mask: expected 1 or {heads} along axis -3 (the heads), got {shape[-3]} "
            f"in a mask of shape {shape}"
        )
    batch = np.broadcast_shapes(query.shape[:-3], key.shape[:-3])
    try:
        np.broadcast_shapes(shape[: -2 if every_head else -3], batch)
    except ValueError:
        raise ValueError(
            f"mask: expected batch axes that broadcast with those of the scores, {batch}, "
            f"got a mask of shape {shape}"
        ) from None
    return mask.unsqueeze(-3) if every_head else mask
