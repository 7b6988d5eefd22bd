"""Checks on tensors, as ``arrays`` has them for NumPy, and on the masks that come with them."""

import numpy as np
import torch
from torch import Tensor, nn

from attncourse.arrays import require_axes


def require_float_tensor(name: str, value, axes: str) -> None:
    """Raises ``ValueError`` unless ``value`` is a floating-point torch tensor with these axes."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name}: expected a torch tensor, got {type(value).__name__}")
    if not value.is_floating_point():
        raise ValueError(f"{name}: expected a floating-point tensor, got dtype {value.dtype}")
    require_axes(name, tuple(value.shape), axes)


def require_features(name: str, x: Tensor, layer: nn.Linear, axes: str) -> None:
    """Raises ``ValueError`` unless the last of x's ``axes``, "n d_model" say, fits the layer."""
    require_float_tensor(name, x, f"... {axes}")
    require_same_dtype(**{name: x, "parameters": layer.weight})
    if x.shape[-1] != layer.in_features:
        raise ValueError(
            f"{name}: expected {axes.split()[-1]} = {layer.in_features} features a token, "
            f"got shape {tuple(x.shape)}"
        )


def require_same_dtype(**tensors: Tensor) -> None:
    """Raises ``ValueError`` unless the named tensors have one dtype."""
    if len({tensor.dtype for tensor in tensors.values()}) > 1:
        got = ", ".join(f"{name} of {tensor.dtype}" for name, tensor in tensors.items())
        raise ValueError(f"expected one dtype, got {got}")


def require_same_batch(**tensors: Tensor) -> None:
    """Raises ``ValueError`` unless the axes before the last two broadcast."""
    try:
        np.broadcast_shapes(*(tensor.shape[:-2] for tensor in tensors.values()))
    except ValueError:
        got = ", ".join(f"{name} of shape {tuple(t.shape)}" for name, t in tensors.items())
        raise ValueError(f"expected batch axes that broadcast, got {got}") from None


def require_mask(mask: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The mask and the scores, broadcast to each other.

    Raises ``ValueError`` for a mask that is not boolean or does not broadcast to ``(..., m, n)``,
    and for one that hides NaN.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = f"dtype {mask.dtype}" if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(f"mask: expected a boolean tensor, True where allowed, got {got}")
    names = {-1: "the keys", -2: "the queries"}
    for axis in range(-1, -1 - min(mask.ndim, scores.ndim), -1):
        got, size = mask.shape[axis], scores.shape[axis]
        batch_of_masks = axis < -2 and size == 1
        if got not in (1, size) and not batch_of_masks:
            raise ValueError(
                f"mask: expected 1 or {size} along axis {axis} ({names.get(axis, 'a batch axis')}),"
                f" got {got} in a mask of shape {tuple(mask.shape)}"
            )
    mask, scores = torch.broadcast_tensors(mask, scores)
    hidden = scores.isnan() & ~mask
    if hidden.any():
        where = tuple(hidden.nonzero()[0].tolist())
        raise ValueError(f"scores: expected numbers, the mask hides NaN at {where}")
    return mask, scores
