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
class Options(CaseTable):
    """Attention with options beside the tensors: those of the row, after ``extra``.

    The option ``measured`` is how many numbers no tensor may hold that the call makes.
    """

    spec: Any = None
    how: Callable = normal
    extra: Any = ()

    def case(self, rng: Rng, row: Row) -> Case:
        options = {**dict(self.extra), **row.options}
        limit = options.pop("measured", None)
        case = super().case(rng, row)
        named = {**case.kwargs, **options}
        told = "; ".join([*(f"{name}={value}" for name, value in options.items()), row.note])
        note = told.removesuffix("; ")
        if limit is not None:
            return replace(case, kwargs=named, note=note, use=partial(callers.call_measured, limit))
        return replace(case, kwargs=named, note=note)


QKV = {"query": "... m d_k", "key": "... n d_k", "value": "... n d_v"}
SELF = {"query": "... n d_k", "key": "... n d_k", "value": "... n d_v"}

# No tensor of this many numbers: 160 tokens, of 4 features. They take 200 kB, four times what the
# objects take that a loop over tokens makes, and an answer that goes pair by pair ends in seconds.
MANY = row("m=160 n=160 d_k=4 d_v=4", options={"measured": 160 * 160}, note="160 tokens")


def largest(scores):
    return scores.amax(-1, keepdim=True)


def higher(old, scores):
    return torch.maximum(old, largest(scores))


def finite(maximum):
    """The maximum, and 0 for −∞."""
    return maximum.masked_fill(maximum == -math.inf, 0)


def shrunk(old, new):
    return (old - new).exp()


def weighed(scores, seen, old):
    return (scores - seen).exp()


def of_this_block(old, scores):
    return largest(scores)


# The first block's maximum, which no later one raises: NaN says that there is none yet.
NEVER_RENEWED = {
    "begin": math.nan,
    "raise_to": lambda old, scores: torch.where(old.isnan(), largest(scores), old),
    "shrink": lambda old, new: 1.0,
}

SCALES = (
    mistakes.DIVIDED_BY_D_K,
    mistakes.NO_SCALE,
    mistakes.MULTIPLIED_BY_ROOT,
    mistakes.ANOTHER_POWER,
    mistakes.ANOTHER_FACTOR,
)
