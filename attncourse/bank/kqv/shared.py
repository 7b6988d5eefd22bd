"""Definitions that several of the chapter's exercises share."""

import torch

from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.recipes import mistake

PAIR = {"query": "... m d_k", "key": "... n d_k"}


def causal_mask_of(scores):
    return torch.ones_like(scores, dtype=torch.bool).tril()


CAUSAL = (
    mistake("""causal where nobody asked for it
    You hide later keys without a mask, or besides it. `None` allows everything; which keys a query
    may see is for the caller to say.""")
    .by(hide=lambda s, mask: decisions.hide(s, causal_mask_of(s) if mask is None else mask))
    .by(hide=lambda s, mask: decisions.hide(decisions.hide(s, mask), causal_mask_of(s)))
)

OF_THE_MASK = (
    *(s for s in mistakes.OF_THE_MASK if s is not mistakes.NOT_LOW_ENOUGH),
    mistakes.NOT_LOW_ENOUGH.by(mistakes.filled_with(-1e4)),
)
COLUMNS_BLEND = mistake("""column i blends output i, not row i
    You mix with the transposed weights. Row i holds the weights of query i: leave it a row.
""").by(mix=lambda weights, value: weights.mT @ value)
