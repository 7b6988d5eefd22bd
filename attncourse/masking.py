"""Chapter 10: masking, what a model must not see.

A mask is boolean and True **where attention is allowed**; row i belongs to query i, column j to
key j. It is ``(m, n)``, or has batch axes in front, and broadcasts. This module makes masks, joins
them, turns scores into weights under them, and tests whether a function obeys one.

Positions count from 0. Sources: Vaswani et al. (2017), Attention Is All You Need, section 3.2.3
(causal); Beltagy et al. (2020), Longformer, section 3.1 (windows); Liu et al. (2021), Swin
Transformer, section 3.2 (shifted windows).
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd import grad

from attncourse.kqv import softmax_over_keys
from attncourse.support.arrays import require_count
from attncourse.support.shapes import Count, shaped
from attncourse.support.tensors import require_float_tensor, require_mask, seen


@shaped
def causal_mask(n_queries: Count, n_keys: Count | None = None) -> Bool[Tensor, "m n"]:
    """Nobody looks ahead: a query may attend to its own position and to those before it.

    There are as many keys as queries unless ``n_keys`` is given. The queries are the *last*
    positions of the keys: query i stands at position ``i + n - m``, and entry (i, j) is
    ``j <= i + n - m``. Returns ``(m, n)``. Raises ``ValueError`` for more queries than keys.
    """
    m, n = n_queries, n_queries if n_keys is None else n_keys
    if m > n:
        raise ValueError(
            f"causal_mask: expected at most as many queries as keys, got {m} queries and {n} keys"
        )
    return steps_back(m, n) >= 0


def steps_back(m: int, n: int) -> Int[Tensor, "m n"]:
    """Return how many steps key j lies before query i; queries are the last m of n positions."""
    return torch.arange(n - m, n)[:, None] - torch.arange(n)


@shaped
def padding_mask(
    lengths: Int[Tensor, "*batch"] | Sequence[int], max_length: Count
) -> Bool[Tensor, "*batch 1 n"]:
    """Nobody attends to padding: of sequence b the first ``lengths[b]`` keys are allowed.

    lengths: whole numbers from 0 to ``max_length``, ``(b,)``. Returns ``(b, 1, max_length)``: the
    axis of 1 stands for all queries, so that the mask combines with masks ``(m, n)``.
    Raises ``ValueError`` for lengths that are not whole, negative or above ``max_length``.
    """
    lengths = require_lengths(lengths, max_length)
    keys = torch.arange(max_length, device=lengths.device)  # (n,)
    return keys < lengths[..., None, None]  # (..., 1, n)


@shaped
def sliding_window_mask(n: Count, width: Count, causal: bool = False) -> Bool[Tensor, "n n"]:
    """Each token attends to the ``width`` tokens around it, ``|i - j| <= (width - 1) / 2``.

    ``width`` is odd and counts the token itself, as in chapter 2's ``window_weights``. With
    ``causal`` it is any number and counts the tokens that end with the token itself,
    ``0 <= i - j < width``. A window may be wider than the sequence. Returns ``(n, n)``.
    Raises ``ValueError`` for an even width without ``causal``: it has no centre.
    """
    if not causal and width % 2 == 0:
        raise ValueError(f"width: expected an odd number unless causal=True, got {width}")
    back = steps_back(n, n)
    if causal:
        return (back >= 0) & (back < width)
    return back.abs() <= width // 2


def block_mask(n: int, block: int) -> Bool[Tensor, "n n"]:
    """Each token attends within its block: tokens 0 … block−1, the next ``block``, and so on.

    Entry (i, j) is ``i // block == j // block``; the last block may be shorter. Returns ``(n, n)``.
    """
    return shifted_window_mask(n, block, shift=0)


@shaped
def shifted_window_mask(n: Count, block: Count, shift: int) -> Bool[Tensor, "n n"]:
    """Blocks that begin at ``shift``, ``shift + block``, ``shift + 2 block``, and so on.

    Entry (i, j) is ``(i - shift) // block == (j - shift) // block``, rounded down. Nothing wraps
    around: the first ``shift`` tokens are a block of their own, and the last may be shorter. Swin
    shifts cyclically, so that all its windows are full, and then forbids attention between tokens
    that only the shift brought together; what it allows is this mask. Returns ``(n, n)``.
    Raises ``ValueError`` unless ``0 <= shift < block``.
    """
    if require_count("shift", shift, least=0) >= block:
        raise ValueError(f"shift: expected less than a block of {block}, got {shift}")
    # Each token's block, (n,); −1 for those before the first border.
    number = (torch.arange(n) - shift).div(block, rounding_mode="floor")
    return number[:, None] == number  # (n, n)


def combine(*masks: Bool[Tensor, "*#batch #m #n"]) -> Bool[Tensor, "*batch m n"]:
    """Return the logical *and* of the masks, broadcast to a common shape.

    Raises ``ValueError`` for no mask, for one that is not boolean, and where two do not broadcast.
    """
    first, *others = require_masks(masks)
    together = first.clone()
    for mask in others:
        together = together & mask
    return together


@shaped
def masked_softmax(
    scores: Float[Tensor, "*#batch m n"], mask: Bool[Tensor, "*#batch #m #n"]
) -> Float[Tensor, "*batch m n"]:
    """The scores as weights over the allowed keys, ``A_ij = M_ij e^S_ij / Σ_l M_il e^S_il``.

    Weights are exactly 0 where the mask is False, and in a whole row with no allowed key; neither
    they nor their gradients are NaN. Keeps the dtype, float16 and bfloat16 included.

    Raises ``ValueError`` for a mask that is not boolean or does not broadcast to the scores, and
    for a NaN score that the mask would hide.
    """
    return softmax_over_keys(scores, mask)


@torch.enable_grad()
@shaped
def leak(
    f: Callable[[Tensor], Tensor],
    x: Float[Tensor, "*batch n d"],
    mask: Bool[Tensor, "*#batch #m #n"],
) -> float:
    """Return how far f looks where it must not: the largest ``|∂ out_i / ∂ x_j|``, ``M_ij`` False.

    f maps x, ``(..., n, d)``, to ``(..., m, d')``, each sequence of a batch by itself. What is
    returned is the largest entry of all masked d' × d blocks: 0.0 where f obeys the mask near x,
    or nothing is masked, and NaN where a derivative is. Its unit is that of out over that of x.
    In self-attention allow the diagonal: token i makes query i. For layers take the masks' product.

    Raises ``ValueError`` where f(x) has no gradient: a graph that is cut shows no leak.
    """
    if not callable(f):
        raise ValueError(f"f: expected a function of a sequence, got {type(f).__name__}")
    x = x.detach().clone().requires_grad_()
    out = require_output(f(x), x)  # (..., m, d')
    pairs = out.new_zeros(*out.shape[:-1], x.shape[-2])  # (..., m, n)
    require_mask(mask, pairs)
    allowed, _ = torch.broadcast_tensors(mask, pairs)
    worst = x.new_zeros(())
    for i in range(out.shape[-2]):
        for feature in out[..., i, :].unbind(-1):  # (...)
            (slope,) = grad(feature.sum(), x, retain_graph=True)
            slope = slope.masked_fill(allowed[..., i, :, None], 0)
            worst = torch.maximum(worst, slope.abs().max())  # NaN stays
    return float(worst)


def require_lengths(lengths: Tensor | Sequence[int], max_length: int) -> Int[Tensor, "..."]:
    """The lengths as a tensor; ``ValueError`` unless they are whole and from 0 to max_length."""
    numbers = lengths if isinstance(lengths, Tensor) else torch.tensor(lengths)
    if numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
        raise ValueError(f"lengths: expected whole numbers, got dtype {numbers.dtype}")
    outside = (numbers < 0) | (numbers > max_length)
    if seen(outside):
        where = tuple(outside.nonzero()[0].tolist())
        got = f"{int(numbers[where])} at index {where}"
        raise ValueError(f"lengths: expected 0 to {max_length}, got {got}")
    return numbers


def require_masks(masks: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The masks; ``ValueError`` unless there is one, all are boolean, and they broadcast."""
    if not masks:
        raise ValueError("combine: expected one mask or more, got none")
    for mask in masks:
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
            got = f"dtype {mask.dtype}" if isinstance(mask, Tensor) else type(mask).__name__
            raise ValueError(f"combine: expected boolean tensors, True where allowed, got {got}")
    names = {-1: "the keys", -2: "the queries"}
    for axis in range(-1, -1 - max(mask.ndim for mask in masks), -1):
        sizes = [mask.shape[axis] for mask in masks if mask.ndim >= -axis]
        if len(set(sizes) - {1}) > 1:
            along = f"axis {axis} ({names.get(axis, 'a batch axis')})"
            raise ValueError(f"combine: expected one size, or 1, along {along}, got {sizes}")
    return masks


def require_output(out: Tensor, x: Tensor) -> Tensor:
    """Return out = f(x); ``ValueError`` unless a gradient leads back from it, be it 0."""
    require_float_tensor("f(x)", out, "... m d_out")
    gradient = None
    if out.requires_grad:
        (gradient,) = grad(out.sum(), x, retain_graph=True, allow_unused=True)
    if gradient is None:
        raise ValueError("leak: expected f(x) to have a gradient, got a tensor cut off from x")
    return out
