"""Chapter 14: what the heads of a ``GPT`` do, and what it costs to go without one.

``attention_maps`` collects the weights of every head. ``head_scores`` says how much of a head's
attention falls where a pattern expects it, ``ablate`` what the model does without a head: the
first describes, the second intervenes. ``rollout`` multiplies maps through the layers, and
``pronoun_bias`` asks a model which of two tokens it expects.

Layers and heads count from 0. Sources: Olsson et al. (2022), In-context Learning and Induction
Heads; Michel et al. (2019), Are Sixteen Heads Really Better than One?; Abnar and Zuidema (2020),
Quantifying Attention Flow in Transformers; Vig (2019), A Multiscale Visualization of Attention in
the Transformer Model.
"""

import copy
from collections.abc import Iterable
from typing import Any, Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attncourse.gpt import GPT
from attncourse.masking import causal_mask
from attncourse.support.arrays import require_count
from attncourse.support.shapes import Count, shaped
from attncourse.support.tensors import require_boolean, require_whole_numbers


class DecoderModel(Protocol):
    """A model whose ``blocks`` are called one after the other: a ``GPT``, or a ``Llama``."""

    blocks: Any

    def __call__(self, ids: Tensor, /) -> Any:
        """The logits for the token after each of ids."""


@torch.no_grad()
def residual_stream(
    model: DecoderModel, ids: Int[Tensor, "*batch n"]
) -> Float[Tensor, "l_and_1 *batch n d_model"]:
    """Return the residual stream while a model reads ids: before the first block, after each.

    ids: ``(..., n)``. Returns ``(layers + 1, ..., n, d_model)``. The model is a ``GPT``, or another
    whose ``blocks`` are called one after the other. Raises ``ValueError`` for ids that the model
    does not read.
    """
    require_gpt(model)
    stream: list[Tensor] = []
    hooks = [model.blocks[0].register_forward_pre_hook(lambda block, args: stream.append(args[0]))]
    for block in model.blocks:
        hooks.append(block.register_forward_hook(lambda block, args, x: stream.append(x)))
    try:
        model(ids)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(stream)


@torch.no_grad()
def attention_maps(
    model: DecoderModel, ids: Int[Tensor, "*batch n"]
) -> Float[Tensor, "*batch l h n n"]:
    """The weights of every head of every layer while the model reads ids.

    ids: ``(..., n)``. Returns ``(..., layers, heads, n, n)``; row i of a map belongs to token i and
    sums to 1. The model is a ``GPT``, or another of pre-norm blocks. Raises ``ValueError`` for ids
    that the model does not read.
    """
    stream = residual_stream(model, ids)
    mask = causal_mask(ids.shape[-1]).to(ids.device)
    maps = []
    for block, x in zip(model.blocks, stream[:-1], strict=True):
        read = block.norm_1(x)
        weights = block.attention.weights(read, mask=mask)
        maps.append(weights)  # (..., h, n, n)
    return torch.stack(maps, dim=-4)


@shaped
def head_scores(
    maps: Float[Tensor, "*batch l h n n"], pattern: Bool[Tensor, "n n"]
) -> Float[Tensor, "*batch l h"]:
    """The attention of a head that falls where the pattern is True.

    Averaged over the queries for which the pattern has any True; 0 where none has. maps:
    ``(..., layers, heads, n, n)``, pattern: boolean ``(n, n)``. Returns ``(..., layers, heads)``.
    """
    n = maps.shape[-1]
    require_boolean("pattern", pattern)
    if pattern.shape != (n, n):
        raise ValueError(f"pattern: expected shape ({n}, {n}), got {tuple(pattern.shape)}")
    has_target = pattern.any(dim=-1)  # (n,)
    share = (maps * pattern).sum(dim=-1)  # (..., n), 0 where nothing is asked
    return share.sum(dim=-1) / has_target.sum().clamp(min=1)


def induction_pattern(ids: Int[Tensor, "n"]) -> Bool[Tensor, "n n"]:
    """True at (i, j) where token j came right after an earlier token that is equal to token i.

    That is 1 ≤ j ≤ i and ids[j − 1] = ids[i]. Whoever attends there finds what followed the last
    time. ids: ``(n,)``. Returns boolean ``(n, n)``. Source: Olsson et al. (2022).
    """
    require_whole_numbers(ids, "n")
    same = ids[:, None] == ids  # (n, n), token j is token i
    followed = torch.zeros_like(same)
    followed[:, 1:] = same[:, :-1]  # token j − 1 is token i
    return followed.tril()


@shaped
def previous_token_pattern(n: Count) -> Bool[Tensor, "n n"]:
    """True at (i, i − 1): every token but the first looks at the one before it. ``(n, n)``."""
    return torch.eye(n, dtype=torch.bool).roll(-1, dims=1).tril(-1)


@shaped
def first_token_pattern(n: Count) -> Bool[Tensor, "n n"]:
    """True at (i, 0) for i ≥ 1: every token but the first looks at the first. ``(n, n)``.

    Row 0 is left out: under a causal mask it has nowhere else to look.
    """
    pattern = torch.zeros(n, n, dtype=torch.bool)
    pattern[1:, 0] = True
    return pattern


def ablate(
    model: GPT,
    layer: int,
    head: int,
    how: str = "zero",
    ids: Int[Tensor, "*batch n"] | None = None,
) -> GPT:
    """A copy of the model, one of whose heads says the same whatever it reads.

    A head is a block of columns of W_o, ``W_o[:, i·d_head : (i + 1)·d_head]``. With ``"zero"`` it
    hands zeros to W_o: its columns become 0. With ``"mean"`` it hands over the mean of its outputs
    over batch and positions of ids: what W_o makes of that goes into W_o's bias. The model stays
    as it is, and what it shares the copy shares too. Raises ``ValueError`` for a layer or a head
    that does not exist, another ``how``, and ``"mean"`` without ids.
    """
    require_head(model, layer, head)
    if how not in ("zero", "mean"):
        raise ValueError(f'how: expected "zero" or "mean", got {how!r}')
    if how == "mean" and ids is None:
        raise ValueError('ids: expected tokens to take the mean over, how="mean" needs them')
    attention = model.blocks[layer].attention
    d_head = attention.d_model // attention.n_heads
    columns = slice(head * d_head, (head + 1) * d_head)
    changed = copy.deepcopy(model)
    W_o = changed.blocks[layer].attention.W_o
    with torch.no_grad():
        if ids is not None and how == "mean":
            heads = head_output(model, layer, ids)  # (..., n, d_model)
            mean = heads[..., columns].flatten(0, -2).mean(dim=0)  # (d_head,)
            said = W_o.weight[:, columns] @ mean  # (d_model,)
            said = said if W_o.bias is None else W_o.bias + said
            W_o.bias = nn.Parameter(said)
        W_o.weight[:, columns] = 0
    return changed


@shaped
def rollout(
    maps: Float[Tensor, "*batch l h n n"], residual: float = 0.5
) -> Float[Tensor, "*batch n n"]:
    """Return how much of each input is in each output, if all that is mixed were mixed by the maps.

    ``R = Â_{L−1} ⋯ Â_1 Â_0`` with ``Â_l = residual · I + (1 − residual) · mean_h A_lh``: the heads
    of a layer averaged, the residual stream beside them, later layers on the left. maps:
    ``(..., layers, heads, n, n)``. Returns ``(..., n, n)``, whose rows sum to 1 where the maps' do.
    Raises ``ValueError`` for a residual outside 0 to 1. Source: Abnar and Zuidema (2020).
    """
    if not 0 <= residual <= 1:
        raise ValueError(f"residual: expected a share from 0 to 1, got {residual}")
    layers = maps.mean(dim=-3)  # (..., l, n, n)
    stay = torch.eye(maps.shape[-1]).to(maps)  # (n, n)
    flow = stay.expand(*layers.shape[:-3], -1, -1)
    for layer in layers.unbind(dim=-3):  # from the first one up
        flow = (residual * stay + (1 - residual) * layer) @ flow
    return flow


@torch.no_grad()
def pronoun_bias(model: nn.Module, contexts: Iterable, she: int, he: int) -> float:
    """Return the mean of log p(she) − log p(he): how much the model prefers she to he.

    In nats, 0 for no preference. contexts: sequences of ids, each as long as it likes. she, he: the
    ids of the two tokens. Raises ``ValueError`` where there is no context, and for an empty one.
    """
    ratios = []
    for context in contexts:
        context = torch.as_tensor(context)
        if context.ndim != 1 or len(context) == 0:
            raise ValueError(
                f"contexts: expected sequences of one id or more, got shape {tuple(context.shape)}"
            )
        logits = model(context)[-1]  # (n_vocab,)
        for name, word in ("she", she), ("he", he):
            require_count(name, word, least=0, most=len(logits) - 1)
        # Both logits less the same normaliser: their logarithms.
        ratios.append((logits[she] - logits[he]).item())
    if not ratios:
        raise ValueError("contexts: expected one context or more, got none")
    return sum(ratios) / len(ratios)


def head_output(model: DecoderModel, layer: int, ids: Tensor) -> Tensor:
    """Return the output of a layer's heads, side by side, as W_o gets it: ``(..., n, d_model)``."""
    handed: list[Tensor] = []
    W_o = model.blocks[layer].attention.W_o
    hook = W_o.register_forward_pre_hook(lambda module, args: handed.append(args[0]))
    try:
        model(ids)
    finally:
        hook.remove()
    return handed[0]


def require_gpt(model: object) -> None:
    """Raises ``ValueError`` for what has no blocks."""
    if not isinstance(model, nn.Module) or not hasattr(model, "blocks"):
        raise ValueError(f"model: expected a GPT or a Llama, got {type(model).__name__}")


def require_head(model: DecoderModel, layer: int, head: int) -> None:
    """Raises ``ValueError`` where there is no such layer or head."""
    require_gpt(model)
    require_count("layer", layer, least=0, most=len(model.blocks) - 1)
    require_count("head", head, least=0, most=model.blocks[layer].attention.n_heads - 1)
