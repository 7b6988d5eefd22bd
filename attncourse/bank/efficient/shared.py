"""Definitions that several of the chapter's exercises share."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from attncourse.checks import callers
from attncourse.checks.exercise import Case, Rng
from attncourse.checks.writing import mistakes
from attncourse.checks.writing.cases import CaseTable, Row, normal, row


@dataclass(frozen=True)
class OptionTable(CaseTable):
    """A table of attention with options beside the tensors: the row's, after ``extra``.

    The option ``measured`` is how many numbers no tensor may hold that the call makes.
    """

    spec: Any = None
    how: Callable = normal
    extra: Any = ()

    def case(self, rng: Rng, row: Row) -> Case:
        options = {**dict(self.extra), **row.options}
        limit = options.pop("measured", None)
        case = super().case(rng, row)
        kwargs = {**case.kwargs, **options}
        note_text = "; ".join([*(f"{name}={value}" for name, value in options.items()), row.note])
        note = note_text.removesuffix("; ")
        if limit is not None:
            return replace(
                case, kwargs=kwargs, note=note, use=partial(callers.call_measured, limit)
            )
        return replace(case, kwargs=kwargs, note=note)


ATTENTION_SHAPES = {"query": "... m d_k", "key": "... n d_k", "value": "... n d_v"}
SELF_ATTENTION_SHAPES = {"query": "... n d_k", "key": "... n d_k", "value": "... n d_v"}

# No tensor of this many numbers: 160 tokens, of 4 features. They take 200 kB, four times what the
# objects take that a loop over tokens makes, and an answer that goes pair by pair ends in seconds.
MANY_TOKENS = row("m=160 n=160 d_k=4 d_v=4", options={"measured": 160 * 160}, note="160 tokens")


def row_maximum(scores):
    return scores.amax(-1, keepdim=True)


def raise_maximum(old, scores):
    return torch.maximum(old, row_maximum(scores))


def finite_maximum(maximum):
    """Return the maximum, and 0 for −∞."""
    return maximum.masked_fill(maximum == -math.inf, 0)


def shrink_factor(old, new):
    """Return the factor by which sums shrink when the maximum rises."""
    return (old - new).exp()


def exponentials(scores, reference, old):
    return (scores - reference).exp()


def maximum_of_block(old, scores):
    return row_maximum(scores)


# The first block's maximum, which no later one raises: NaN says that there is none yet.
MAXIMUM_OF_FIRST_BLOCK = {
    "begin": math.nan,
    "raise_to": lambda old, scores: torch.where(old.isnan(), row_maximum(scores), old),
    "shrink": lambda old, new: 1.0,
}

SCALE_MISTAKES = (
    mistakes.DIVIDED_BY_D_K,
    mistakes.NO_SCALE,
    mistakes.MULTIPLIED_BY_ROOT,
    mistakes.ANOTHER_POWER,
    mistakes.ANOTHER_FACTOR,
)
