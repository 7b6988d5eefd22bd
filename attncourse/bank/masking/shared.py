"""Definitions that several of the chapter's exercises share."""

import math

import torch

from attncourse.checks.exercise import Case
from attncourse.checks.writing.cases import CaseTable
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.recipes import mistake

CAUSAL_BY_HAND, WINDOW_BY_HAND = Case((3,)), Case((5, 3))
FIXED = CaseTable({})  # nothing is drawn


def as_it_is(mask):
    return mask


def additive_mask(mask: torch.Tensor, number: float = -math.inf) -> torch.Tensor:
    return torch.zeros(mask.shape).masked_fill(~mask, number)


def band(m: int, n: int, low: float, high: float) -> torch.Tensor:
    """Return a mask, True where ``low <= j - i <= high``."""
    steps = torch.arange(n) - torch.arange(m)[:, None]
    return (steps >= low) & (steps <= high)


def finish_mask(mask, truth=as_it_is, form=as_it_is, kind=as_it_is):
    """Return a mask as decided: what True means, the axes, the dtype."""
    return kind(form(truth(mask)))


MASK_OF_NUMBERS = (
    mistake("""a mask of numbers
    Your mask is right, but it holds numbers, 0 and 1. Masks in this course are boolean (`~` would
    turn a whole 1 into −2): compare (`<=`, `<`), or end with `.bool()`.""")
    .by(kind=lambda mask: mask.float())
    .by(
        *(
            {"kind": lambda mask, dtype=dtype: mask.to(dtype)}
            for dtype in (torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8)
        )
    )
)
ADDITIVE_MASK = (
    mistake("""0 and −∞
    You return the numbers that would be added to the scores, 0 and −∞ (or a low number). A boolean
    mask is asked for, True where attention is allowed.""")
    .by(kind=additive_mask)
    .by_any(
        lambda number: {"kind": lambda mask: additive_mask(mask, number)}, Between(-3.4e38, -1.0)
    )
)
NO_TENSOR = (
    mistake("""no tensor comes back
    You return a NumPy array, or lists. Masks are torch tensors: `torch.from_numpy(…)` or
    `torch.tensor(…)` makes one.""")
    .by(kind=lambda mask: mask.numpy())
    .by(kind=lambda mask: mask.tolist())
)
MASK_INVERTED = mistake("""the mask is inverted
    Your mask is True where attention is forbidden, as in `nn.MultiheadAttention`. In this course,
    and in `F.scaled_dot_product_attention`, True means allowed.""").by(truth=lambda mask: ~mask)
OF_WHAT_COMES_BACK = (MASK_OF_NUMBERS, ADDITIVE_MASK, NO_TENSOR, MASK_INVERTED)
