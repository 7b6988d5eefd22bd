"""PyTorch's own transformer layers, as chapter 12's blocks with the same weights."""

from typing import Any

import torch
from torch import Tensor, nn

from attncourse.multihead import load_torch_weights
from attncourse.transformer import Block, DecoderBlock, EncoderBlock, LayerNorm


def from_torch(layer: Any) -> Block:
    """Return the block that does what an ``nn.TransformerEncoderLayer`` or ``…DecoderLayer`` does.

    It holds copies of the weights and is in the layer's mode. Raises ``ValueError`` for any other
    module, and for a layer without biases. In training the two differ where there is dropout:
    PyTorch drops attention weights and hidden units too.
    """
    kinds: dict[type, type[EncoderBlock | DecoderBlock]] = {
        nn.TransformerEncoderLayer: EncoderBlock,
        nn.TransformerDecoderLayer: DecoderBlock,
    }
    if type(layer) not in kinds:
        names = " or ".join(f"nn.{kind.__name__}" for kind in kinds)
        raise ValueError(f"layer: expected an {names}, got {type(layer).__name__}")
    if layer.linear1.bias is None:
        raise ValueError("layer: expected one with biases, got bias=False")
    first = layer.self_attn
    block = kinds[type(layer)](
        first.embed_dim,
        first.num_heads,
        layer.linear1.out_features,
        pre_norm=layer.norm_first,
        dropout=layer.dropout1.p,
    ).to(first.in_proj_weight)
    if isinstance(block, EncoderBlock):
        block.attention = load_torch_weights(first)
    else:
        block.self_attention = load_torch_weights(first)
        block.cross_attention = load_torch_weights(layer.multihead_attn)
        copy(block.norm_3, layer.norm3)
    for ours, theirs in (
        (block.norm_1, layer.norm1),
        (block.norm_2, layer.norm2),
        (block.feed_forward.W_1, layer.linear1),
        (block.feed_forward.W_2, layer.linear2),
    ):
        copy(ours, theirs)
    block.feed_forward.activation = layer.activation
    return block.train(layer.training)


@torch.no_grad()
def copy(ours: LayerNorm | nn.Linear, theirs: nn.LayerNorm | nn.Linear) -> None:
    """Copy weight and bias, and a norm's eps."""
    weight: Tensor = ours.gain if isinstance(ours, LayerNorm) else ours.weight
    weight.copy_(theirs.weight)
    ours.bias.copy_(theirs.bias)
    if isinstance(ours, LayerNorm) and isinstance(theirs, nn.LayerNorm):
        ours.eps = theirs.eps
