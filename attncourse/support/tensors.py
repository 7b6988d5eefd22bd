"""Checks on tensors, as ``arrays`` has them for NumPy, and on the masks that come with them."""

import numpy as np
import torch
from torch import Tensor

from attncourse.support.arrays import require_axes

ALLOWED = ", True where allowed"
WHOLE_NUMBER_DTYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def require_float_tensor(name: str, value, axes: str) -> Tensor:
    """Return ``value``; raise ``ValueError`` unless it is a float tensor with these axes."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name}: expected a torch tensor, got {type(value).__name__}")
    if not value.is_floating_point():
        raise ValueError(f"{name}: expected a floating-point tensor, got dtype {value.dtype}")
    require_axes(name, value.shape, axes)
    return value


def require_boolean(name: str, value, meaning: str = "") -> Tensor:
    """Return ``value``; raise ``ValueError`` unless it is a boolean tensor. meaning: of True."""
    if not isinstance(value, Tensor) or value.dtype != torch.bool:
        got = f"dtype {value.dtype}" if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"{name}: expected a boolean tensor{meaning}, got {got}")
    return value


def require_whole_numbers(ids: Tensor, axes: str | None = None, name: str = "ids") -> Tensor:
    """Return ``ids``; raise ``ValueError`` unless they are whole numbers, with these axes."""
    if not isinstance(ids, Tensor) or ids.dtype not in WHOLE_NUMBER_DTYPES:
        got = f"dtype {ids.dtype}" if isinstance(ids, Tensor) else type(ids).__name__
        raise ValueError(f"{name}: expected a tensor of whole numbers, got {got}")
    if axes is not None:
        require_axes(name, ids.shape, axes)
    return ids


def require_ids(
    ids: Tensor, n_vocab: int, *, shape: tuple[int, ...] | None = None, longest: int | None = None
) -> Tensor:
    """Return ``ids``; raise ``ValueError`` unless they are whole, from 0 to n_vocab − 1.

    shape: the one they must have, any unless given. longest: how many one sequence may have.
    """
    require_whole_numbers(ids, "... n")
    if shape is not None and ids.shape != shape:
        raise ValueError(f"ids: expected shape {tuple(shape)}, got {tuple(ids.shape)}")
    if longest is not None and ids.shape[-1] > longest:
        raise ValueError(f"ids: expected at most {longest} tokens, got {ids.shape[-1]}")
    outside = (ids < 0) | (ids >= n_vocab)
    if seen(outside):
        where = tuple(outside.nonzero()[0].tolist())
        got = f"{int(ids[where])} at index {where}"
        raise ValueError(f"ids: expected ids from 0 to {n_vocab - 1}, got {got}")
    return ids


def seen(where: Tensor) -> bool:
    """True if any entry is True, as far as can be seen: ``torch.vmap`` hides numbers."""
    try:
        return bool(where.any())
    except RuntimeError:
        return False


def require_mask(mask: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mask and the scores, as they are; they broadcast to each other.

    Raises ``ValueError`` for a mask that is not boolean or does not broadcast to ``(..., m, n)``,
    and for one that hides NaN.
    """
    require_boolean("mask", mask, ALLOWED)
    names = {-1: "the keys", -2: "the queries"}
    for axis in range(-1, -1 - min(mask.ndim, scores.ndim), -1):
        got, size = mask.shape[axis], scores.shape[axis]
        batch_of_masks = axis < -2 and size == 1
        if got not in (1, size) and not batch_of_masks:
            raise ValueError(
                f"mask: expected 1 or {size} along axis {axis} ({names.get(axis, 'a batch axis')}),"
                f" got {got} in a mask of shape {tuple(mask.shape)}"
            )
    # Every training step asks, and a sum is quickly made: without NaN in it none is hidden.
    if seen(scores.detach().sum().isnan()):
        hidden = scores.isnan() & ~mask
        if seen(hidden):
            where = tuple(hidden.nonzero()[0].tolist())
            raise ValueError(f"scores: expected numbers, the mask hides NaN at {where}")
    # Not broadcast here: what is done to a mask (m, n) alone is done once, not for each head.
    return mask, scores


def require_mask_for_all(mask: Tensor | None, x: Tensor) -> None:
    """Raise ``ValueError`` for a mask with more axes than x has: a head knows of no others."""
    if isinstance(mask, Tensor) and isinstance(x, Tensor) and mask.ndim > x.ndim:
        raise ValueError(
            f"mask: expected one mask for all heads, at most {x.ndim} axes for x of shape "
            f"{tuple(x.shape)}, got shape {tuple(mask.shape)}"
        )


def mask_over_heads(mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """Return the mask with an axis for the heads, so that it broadcasts to ``(..., h, m, n)``.

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
