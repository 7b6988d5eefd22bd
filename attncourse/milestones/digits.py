"""After chapter 15: a vision transformer that reads handwritten digits.

Images of 8 × 8 pixels become sixteen patches and a class token, two blocks read them, and the class
token answers. See ``attncourse.tasks.digits``.
"""

from typing import Any

import torch
from torch import Tensor, nn

from attncourse.milestones.blocks import make_block, maps_of, widen
from attncourse.milestones.digits_gates import PATCH, SIDE, TRAINED, UNTRAINED, parts_of_fold
from attncourse.milestones.digits_picture import draw_digits
from attncourse.milestones.milestone import Milestone
from attncourse.milestones.parts import Parts
from attncourse.tasks.digits import train

D, HEADS, LAYERS, EPOCHS, RATE, WIDE = 32, 4, 2, 8, 0.01, 0.16
USES = (
    "kqv.scaled_dot_product_attention", "multihead.split_heads", "multihead.merge_heads",
    "multihead.MultiHeadAttention", "transformer.layer_norm", "transformer.FeedForward",
    "transformer.EncoderBlock", "vision.patchify", "vision.unpatchify", "vision.embed_image",
    "vision.attention_on_image",
)  # fmt: skip


class DigitReader(nn.Module):
    """Patches and a class token with their places, two blocks, a norm, a score for each digit."""

    blocks: Any  # a list of modules has no type for its elements

    def __init__(self, parts: Parts):
        super().__init__()
        self.heads, n = HEADS, SIDE * SIDE
        self.project = nn.Linear(PATCH * PATCH, D)
        self.class_token = nn.Parameter(0.5 * torch.randn(D))
        self.places = nn.Parameter(0.5 * torch.randn(n + 1, D))
        self.blocks = nn.ModuleList(make_block(parts, D, HEADS) for _ in range(LAYERS))
        self.gain = nn.Parameter(1 + 0.1 * torch.randn(D))
        self.bias = nn.Parameter(0.1 * torch.randn(D))
        self.out, self.norm = nn.Linear(D, 10), parts["transformer.layer_norm"]
        self.blend = parts["kqv.scaled_dot_product_attention"]
        self.split, self.merge = parts["multihead.split_heads"], parts["multihead.merge_heads"]
        self.cut, self.join = parts["vision.patchify"], parts["vision.unpatchify"]
        self.tokens, self.on_image = parts["vision.embed_image"], parts["vision.attention_on_image"]
        widen(self, WIDE)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits ``(..., 10)`` of images ``(..., 1, 8, 8)``."""
        x = self.embed(images)
        for block in self.blocks:
            x = block(x)
        return self.read_out(x)

    def embed(self, images: Tensor) -> Tensor:
        """Return the tokens ``(..., 17, d)``, the class token's first."""
        weight, bias = self.project.weight.T, self.project.bias
        return self.tokens(images, PATCH, weight, bias, self.class_token, self.places)

    def read_out(self, x: Tensor) -> Tensor:
        """Return the logits of the ten digits, from the class token's vector."""
        return self.out(self.norm(x[..., 0, :], self.gain, self.bias))

    def maps(self, images: Tensor) -> Tensor:
        """Return the attention maps of all blocks and heads, ``(layers, ..., h, 17, 17)``."""
        return maps_of(self.blocks, self.embed(images))

    def looks(self, images: Tensor) -> Tensor:
        """Return where the class token looks in the last block, the heads' mean, ``(…, 4, 4)``."""
        return self.on_image(self.maps(images)[-1].mean(-3)[..., 0, :], SIDE, SIDE)

    def in_disorder(self, images: Tensor, order: Tensor) -> Tensor:
        """Return the images with patch ``order[i]`` in place i."""
        return self.join(self.cut(images, PATCH)[..., order, :], PATCH, *images.shape[-2:])


def train_digits(parts: Parts, show: bool = False) -> nn.Module:
    """Return a reader of these parts, trained on one part of the digits."""
    torch.manual_seed(0)
    model, (images, labels) = DigitReader(parts), parts_of_fold()[0]
    train(model, images, labels, rate=RATE, epochs=EPOCHS, show=show)
    return model


MILESTONE = Milestone(
    name="digits",
    after="vision",
    what="a vision transformer reads handwritten digits",
    uses=USES,
    build=DigitReader,
    train=train_digits,
    untrained=UNTRAINED,
    trained=TRAINED,
    picture=draw_digits,
)
