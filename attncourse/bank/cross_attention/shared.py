"""Definitions that several of the chapter's exercises share."""

import torch

from attncourse.checks.exercise import Rng
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import between, hole
from attncourse.checks.writing.decisions import shared_out
from attncourse.checks.writing.recipes import mistake


def tokens_far_from_0(rng: Rng, shape: tuple[int, ...]):
    """Return tokens whose first feature is large, so that the scores of a row lie far from 0."""
    tokens = between(rng, shape)
    tokens[..., 0] = 2e4
    return tokens


PADDING_MASK = {"mask": hole("... 1 n")}


def change_weights(change):
    """Return the option that changes what ``weights`` returns."""
    return {"shares": lambda attention, *args: change(shared_out(attention, *args))}


def products_by_einsum(letters):
    """Return the mistake of products with a letter for one batch axis."""
    return mistakes.ONE_BATCH_AXIS.by(compare=lambda q, k: torch.einsum(letters, q, k)).by(
        compare=lambda q, k: torch.einsum(letters, q, k),
        mix=lambda weights, v: torch.einsum("bmn,bnd->bmd", weights, v),
    )


def hide_with_axis(scores, mask, n_axes):
    """Return masked scores; a mask of ``n_axes`` axes gets one more, for the queries."""
    needs_axis = mask is not None and mask.ndim == n_axes
    return decisions.hide(scores, mask.unsqueeze(-2) if needs_axis else mask)


OVER_OTHERS = (mistakes.OVER_QUERIES, mistakes.OVER_AXIS_1, mistakes.OVER_AXIS_0)
OF_THE_PRODUCT = (
    *(s for s in mistakes.OF_THE_PRODUCT if s is not mistakes.ONE_BATCH_AXIS),
    mistakes.RESHAPED,
    mistakes.KEY_NOT_TURNED,
)
WEIGHTS_TRANSPOSED = mistake("""weights is transposed
    Your `weights` returns the map transposed, a row for each key. Return the map that `forward`
    mixes with: row i belongs to query i.""").by(change_weights(lambda maps: maps.mT))
OF_BOTH_MODULES = (
    *mistakes.OF_THE_SCALE,
    mistakes.DIVIDED_BY_ROOT_M,
    mistakes.SCALED_AFTERWARDS,
    *(  # where a whole column is masked, it matters what was filled in
        s.by(s.ways[0] | mistakes.filled_with(-1e9)) if s in OVER_OTHERS else s
        for s in mistakes.OF_THE_SOFTMAX
    ),
    *mistakes.MORE_OF_THE_SOFTMAX,
    mistakes.NEITHER,
    mistakes.BEST_ONLY,
    *(s for s in mistakes.OF_THE_MASK if s is not mistakes.NOT_LOW_ENOUGH),
    mistakes.NOT_LOW_ENOUGH.by(mistakes.filled_with(-1e4)),
    mistakes.TOO_LITTLE_OFF,
    *mistakes.OF_THE_MASKS_SHAPE,
    mistake("""an axis is added to a mask of two axes
        You take a mask of two axes for (b, n) and put an axis between them. Such a mask has a row
        for each query here; padding comes as (b, 1, n). It broadcasts as it is: add nothing.""")
    .by(hide=lambda s, mask: hide_with_axis(s, mask, 2))
    .by(hide=lambda s, mask: hide_with_axis(s, mask, s.ndim - 1)),
    mistakes.GUARD_AFTER_THE_MASK,
    mistakes.COSINE,
)
