"""Blocks of a student's parts, for the milestones after chapter 12, and what all must do."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.milestones.gates import MAX_DIFFERENCE, difference_message, relative_difference
from attncourse.milestones.parts import Parts


def make_block(parts: Parts, d: int, heads: int) -> nn.Module:
    """Return a student's block around a student's attention and feed-forward layer."""
    made = parts["transformer.EncoderBlock"](d, heads)
    made.attention = parts["multihead.MultiHeadAttention"](d, heads)
    made.feed_forward = parts["transformer.FeedForward"](d)
    return made


def widen(model: Any, std: float) -> None:
    """Make all weights random numbers of that size, which suits a short training."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Embedding):
            nn.init.normal_(layer.weight, std=std)


def maps_of(blocks: Iterable[Any], x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the attention maps of all blocks and heads, ``(layers, ..., h, n, n)``."""
    maps = []
    for block in blocks:
        maps.append(block.attention.weights(block.norm_1(x), mask=mask))
        x = block(x, mask)
    return torch.stack(maps)


@contextmanager
def made_zero(layers: Iterable[nn.Module]) -> Iterator[None]:
    """Make the numbers of these layers 0 inside the ``with`` block."""
    numbers = [p for layer in layers for p in layer.parameters()]
    values_before = [p.clone() for p in numbers]
    for p in numbers:
        p.zero_()
    try:
        yield
    finally:
        for p, old in zip(numbers, values_before, strict=True):
            p.copy_(old)


def branches_add(draw_input: Callable[[], Tensor]) -> Callable[[nn.Module], str]:
    """Return the gate that blocks whose branches add 0 leave a token unchanged."""

    def shut(model: Any) -> str:
        x = draw_input()
        last = [layer for b in model.blocks for layer in (b.attention.W_o, b.feed_forward.W_2)]
        with made_zero(last):
            far = relative_difference(model(x), model.read_out(model.embed(x)))
        return difference_message("blocks whose branches add nothing still change a token", far)

    return shut


def block_parts_gate(draw_input: Callable[[], Tensor], causal: bool) -> Callable[[nn.Module], str]:
    """Return the gate that a block is attention, then a feed-forward layer, each behind a norm."""

    def shut(model: Any) -> str:
        x = model.embed(draw_input())
        mask = model.causal(x.shape[-2]) if causal else None
        for block in model.blocks:
            attention, layer, y = block.attention, block.feed_forward, block.norm_1(x)
            views = (attention.W_q, attention.W_k, attention.W_v)
            query, key, value = (model.split(view(y), model.heads) for view in views)
            right = x + attention.W_o(model.merge(model.blend(query, key, value, mask)))
            right = right + layer.W_2(F.gelu(layer.W_1(block.norm_2(right))))
            far = relative_difference(right, block(x, mask))
            if far > MAX_DIFFERENCE:
                return difference_message("a block is not what its heads and its layers say", far)
            x = right
        return ""

    return shut


def norm_rows_gate(draw_input: Callable[[], Tensor]) -> Callable[[nn.Module], str]:
    """Return the gate that the last norm takes out size and mean, and has a gain and a bias."""

    def shut(model: Any) -> str:
        x = model.embed(draw_input())
        if relative_difference(model.read_out(x), model.read_out(30 * x + 30)) > 0.03:
            return "what is said depends on the size of a row, not on its direction"
        right = F.layer_norm(x, x.shape[-1:], model.gain, model.bias)
        return difference_message("rows do not come out of the last norm at one size",
                     relative_difference(right, model.norm(x, model.gain, model.bias)))  # fmt: skip

    return shut


def map_rows_gate(draw_input: Callable[[], Tensor], causal: bool) -> Callable[[nn.Module], str]:
    """Return the gate that maps have a row for each token: its shares of those it may see."""

    def shut(model: Any) -> str:
        x = draw_input()
        maps, heads, n = model.maps(x), model.heads, model.embed(x).shape[-2]
        if maps.shape[1:] != (len(x), heads, n, n):
            return f"expected maps of shape {(len(x), heads, n, n)}, got {tuple(maps.shape[1:])}"
        ahead = maps.triu(1).abs().max() if causal else torch.zeros(())
        far = max(float(ahead), float((maps.sum(-1) - 1).abs().max()), -float(maps.min()))
        return difference_message("a token's weights are no shares of what it may see", far)

    return shut
