"""Chapter 15: attention inside windows of a grid of tokens, and how far a token then sees."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attncourse.kqv import scaled_dot_product_attention
from attncourse.vision import window_merge, window_partition


def attend_in_windows(
    x: Float[Tensor, "*batch H W d"], window: int, shift: int = 0, *, wrap: bool = False
) -> Float[Tensor, "*batch H W d"]:
    """Return what each token takes, as query, key and value at once, from its window.

    The borders of the windows are moved down and right by ``shift``. For that the grid is rolled,
    which brings tokens from opposite edges into one window; they may not see each other, unless
    ``wrap``. Source: Liu et al. (2021), section 3.2.
    """
    height, width = x.shape[-3:-1]
    rolled = x.roll((-shift, -shift), (-3, -2))
    windows = window_partition(rolled, window)  # (..., n_windows, window², d)
    mask = None if wrap else same_window(height, width, window, shift)
    attended = scaled_dot_product_attention(windows, windows, windows, mask)
    return window_merge(attended, window, height, width).roll((shift, shift), (-3, -2))


def same_window(height: int, width: int, window: int, shift: int) -> Bool[Tensor, "w t t"]:
    """Return which tokens of each window of the rolled grid lie in one window of the grid."""
    rows = (torch.arange(height) - shift).div(window, rounding_mode="floor")
    columns = (torch.arange(width) - shift).div(window, rounding_mode="floor")
    number = (rows[:, None] * (width + 1) + columns).double()[..., None]  # (H, W, 1)
    number = window_partition(number.roll((-shift, -shift), (0, 1)), window)  # (w, t, 1)
    return number == number.mT


def seen_from(
    row: int, column: int, *, size: int, window: int, layers: int, shift: int, wrap: bool = False
) -> Bool[Tensor, "size size"]:
    """Return the tokens that this one depends on after some layers: where its gradient is not 0.

    Every second layer is shifted. Tokens are random numbers; each layer adds what it attends to.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(size, size, 8, generator=generator, dtype=torch.float64, requires_grad=True)
    out = x
    for layer in range(layers):
        out = out + attend_in_windows(out, window, shift * (layer % 2), wrap=wrap)
    (gradient,) = torch.autograd.grad(out[row, column].sum(), x)
    return gradient.abs().amax(-1) > 0


def score_entries(height: int, width: int, window: int | None = None) -> int:
    """Return how many scores one head computes: all pairs of tokens, or those inside windows."""
    return (height * width) ** 2 if window is None else height * width * window**2
