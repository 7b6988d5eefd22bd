"""Chapter 15: an image as a sentence of patches.

An image is cut into square patches; each, flattened and projected, is a token. A class token in
front collects what the image shows. Windows keep attention local, so that its cost grows with the
image's area and not with the square of it.

Images are ``(..., c, H, W)``; everything is counted in reading order, row by row from the top left.
Sources: Dosovitskiy et al. (2021), An Image is Worth 16x16 Words, section 3.1; Liu et al. (2021),
Swin Transformer, section 3.2.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attncourse.support.arrays import require_divisor
from attncourse.support.shapes import Count, shaped
from attncourse.transformer import EncoderBlock, LayerNorm


@shaped
def patchify(images: Float[Tensor, "*batch c H W"], patch: Count) -> Float[Tensor, "*batch n cpp"]:
    """The square patches of each image, one a row, ``(..., n, c · patch²)``, n = HW / patch².

    Patches stand in reading order, and within one the numbers by channel, row and column, as
    ``torch.nn.functional.unfold`` has them. Raises ``ValueError`` for a height or a width that
    ``patch`` does not divide.
    """
    require_divisor("patch", patch, "the height", images.shape[-2])
    require_divisor("patch", patch, "the width", images.shape[-1])
    x = images.unflatten(-1, (-1, patch))  # (..., c, H, columns, patch)
    x = x.unflatten(-3, (-1, patch))  # (..., c, rows, patch, columns, patch)
    x = x.movedim((-4, -2), (-5, -4))  # (..., rows, columns, c, patch, patch)
    return x.flatten(-3).flatten(-3, -2)  # (..., n, c · patch²)


@shaped
def unpatchify(
    patches: Float[Tensor, "*batch n cpp"], patch: Count, height: Count, width: Count
) -> Float[Tensor, "*batch c H W"]:
    """The images that these patches were cut from: ``unpatchify(patchify(x, p), p, H, W)`` is x.

    patches: ``(..., n, c · patch²)``. height, width: the image's, in pixels. Raises ``ValueError``
    where the patches do not fill such an image.
    """
    require_divisor("patch", patch, "height", height)
    require_divisor("patch", patch, "width", width)
    require_divisor("patch²", patch * patch, "the width of patches", patches.shape[-1])
    rows, columns = height // patch, width // patch
    require_tokens("patches", patches.shape[-2], rows, columns)
    x = patches.unflatten(-1, (-1, patch, patch))  # (..., n, c, patch, patch)
    x = x.unflatten(-4, (rows, columns))  # (..., rows, columns, c, patch, patch)
    x = x.movedim((-5, -4), (-4, -2))  # (..., c, rows, patch, columns, patch)
    return x.flatten(-2).flatten(-3, -2)  # (..., c, H, W)


@shaped
def window_partition(
    x: Float[Tensor, "*batch H W d"], window: Count
) -> Float[Tensor, "*batch windows tokens d"]:
    """The tokens of each square window together, ``(..., n_windows, window², d)``.

    x: a token for each patch, ``(..., H, W, d)``. Windows, and the tokens in one, stand in reading
    order. Raises ``ValueError`` for a height or a width that ``window`` does not divide.
    """
    require_divisor("window", window, "the height", x.shape[-3])
    require_divisor("window", window, "the width", x.shape[-2])
    x = x.unflatten(-2, (-1, window))  # (..., H, columns, window, d)
    x = x.unflatten(-4, (-1, window))  # (..., rows, window, columns, window, d)
    x = x.transpose(-4, -3)  # (..., rows, columns, window, window, d)
    return x.flatten(-3, -2).flatten(-4, -3)  # (..., n_windows, window², d)


@shaped
def window_merge(
    windows: Float[Tensor, "*batch windows tokens d"], window: Count, height: Count, width: Count
) -> Float[Tensor, "*batch H W d"]:
    """The tokens back in their places: ``window_merge(window_partition(x, w), w, H, W)`` is x.

    height, width: of the grid of tokens. Raises ``ValueError`` where the windows do not fill it.
    """
    require_divisor("window", window, "height", height)
    require_divisor("window", window, "width", width)
    rows, columns = height // window, width // window
    require_tokens("windows", windows.shape[-3], rows, columns)
    require_tokens("windows, tokens in one", windows.shape[-2], window, window)
    x = windows.unflatten(-2, (window, window))  # (..., n_windows, window, window, d)
    x = x.unflatten(-4, (rows, columns))  # (..., rows, columns, window, window, d)
    x = x.transpose(-4, -3)  # (..., rows, window, columns, window, d)
    return x.flatten(-3, -2).flatten(-4, -3)  # (..., H, W, d)


@shaped
def embed_image(
    images: Float[Tensor, "*batch c H W"],
    patch: Count,
    weight: Float[Tensor, "cpp d"],
    bias: Float[Tensor, "d"],
    class_token: Float[Tensor, "d"],
    positions: Float[Tensor, "tokens d"],
) -> Float[Tensor, "*batch tokens d"]:
    """The tokens of each image: the class token, then a projection of each patch, plus positions.

    weight: ``(c · patch², d)``. bias, class_token: ``(d,)``. positions: ``(n + 1, d)``, the first
    that of the class token. Returns ``(..., n + 1, d)``. Source: Dosovitskiy et al. (2021), eq. 1.
    """
    patches = patchify(images, patch)  # (..., n, c · patch²)
    if patches.shape[-1] != len(weight) or patches.shape[-2] + 1 != len(positions):
        raise ValueError(
            f"expected weight of {patches.shape[-1]} rows and positions of "
            f"{patches.shape[-2] + 1}, got {len(weight)} and {len(positions)}"
        )
    tokens = patches @ weight + bias  # (..., n, d)
    first = class_token.expand(*tokens.shape[:-2], 1, -1)  # (..., 1, d)
    return torch.cat([first, tokens], dim=-2) + positions  # (..., n + 1, d)


@shaped
def attention_on_image(
    weights: Float[Tensor, "*batch tokens"], height: Count, width: Count
) -> Float[Tensor, "*batch height width"]:
    """Return the class token's attention to the patches, as shares, laid over the image.

    weights: its row of an attention map, ``(..., n + 1)``, its weight on itself first. That one is
    left out and the others divided by their sum. height, width: of the image, in patches. Returns
    ``(..., height, width)``. Raises ``ValueError`` for another number of weights.
    """
    require_tokens("weights, less the class token's,", weights.shape[-1] - 1, height, width)
    shares = weights[..., 1:]
    shares = shares / shares.sum(-1, keepdim=True)  # (..., n)
    return shares.unflatten(-1, (height, width))


class VisionTransformer(nn.Module):
    """A classifier of images: patches, class token, pre-norm blocks, a norm, a score a class.

    Source: Dosovitskiy et al. (2021), section 3.1.
    """

    blocks: Any  # a list of modules has no type for its elements

    @shaped
    def __init__(
        self,
        image_size: Count,
        patch: Count,
        n_channels: Count,
        n_classes: Count,
        d_model: Count,
        n_heads: Count,
        n_layers: Count,
    ):
        """Make the layers for n = (image_size / patch)² patches of patch² n_channels numbers.

        Raises ``ValueError`` where patch does not divide image_size.
        """
        super().__init__()
        require_divisor("patch", patch, "image_size", image_size)
        self.patch, self.image_size = patch, image_size
        self.n_channels = n_channels
        n = (image_size // patch) ** 2
        self.project = nn.Linear(n_channels * patch**2, d_model)
        self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
        places = torch.randn(n + 1, d_model)
        self.positions = nn.Parameter(0.02 * places)
        sizes = d_model, n_heads
        blocks = [EncoderBlock(*sizes) for _ in range(n_layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = LayerNorm(d_model)
        self.out = nn.Linear(d_model, n_classes)

    def embed(
        self, images: Float[Tensor, "*batch c side side"]
    ) -> Float[Tensor, "*batch tokens d"]:
        """The tokens that the first block reads, ``(..., n + 1, d_model)``."""
        size = (self.n_channels, self.image_size, self.image_size)
        if tuple(images.shape[-3:]) != size:
            expected = ", ".join(map(str, size))
            raise ValueError(f"images: expected shape (..., {expected}), got {tuple(images.shape)}")
        weight, bias = self.project.weight.T, self.project.bias
        added = self.class_token, self.positions
        return embed_image(images, self.patch, weight, bias, *added)

    def forward(
        self, images: Float[Tensor, "*batch c side side"]
    ) -> Float[Tensor, "*batch n_classes"]:
        """Logits of the classes, ``(..., n_classes)``, read off the class token."""
        x = self.embed(images)
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x[..., 0, :]))

    @classmethod
    def from_huggingface(cls, model: Any) -> "VisionTransformer":
        """A copy of ``transformers``' ``ViTForImageClassification``, which returns the same logits.

        Raises ``ValueError`` for another model, and for settings that this class lacks.
        """
        from attncourse.support.huggingface import vit_sizes, vit_weights

        vit = cls(**vit_sizes(model))
        vit.load_state_dict(vit_weights(model))
        for layer in vit.modules():
            if isinstance(layer, LayerNorm):
                layer.eps = model.config.layer_norm_eps
        return vit.eval()

    @torch.no_grad()
    def weights(self, images: Tensor) -> Float[Tensor, "*batch layers h tokens tokens"]:
        """The attention maps of all layers and heads."""
        x, maps = self.embed(images), []
        for block in self.blocks:
            maps.append(block.attention.weights(block.norm_1(x)))
            x = block(x)
        return torch.stack(maps, dim=-4)


def require_tokens(name: str, n: int, rows: int, columns: int) -> None:
    """Raises ``ValueError`` unless there are n of them, rows times columns."""
    if n != rows * columns:
        raise ValueError(f"{name}: expected {rows} × {columns} = {rows * columns}, got {n}")
