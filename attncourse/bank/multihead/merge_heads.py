"""The exercise ``merge_heads``: the heads' features side by side again."""

import torch

from attncourse import multihead
from attncourse.bank.multihead.cases import moving_criteria
from attncourse.bank.multihead.mistakes import (
    AXES_FROM_THE_FRONT,
    AXES_NOT_PUT_BACK,
    FEATURES_INTERLEAVED,
    HEADS_ADDED_UP,
    OTHER_TWO_AXES,
    join_side_by_side,
    move_heads_first,
)
from attncourse.checks.exercise import Case, composition, exercise
from attncourse.checks.writing import cases
from attncourse.checks.writing.cases import CaseTable, normal
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"x": "... h n d_head"}, how=normal)
BY_HAND = Case((torch.arange(12).reshape(3, 2, 2).double(),), note="three heads, two tokens")

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_merge_heads(
    take=lambda x: x, move=move_heads_first, join=join_side_by_side, finish=lambda merged: merged
):
    """Return ``merge_heads`` made of decisions."""
    return lambda x: finish(join(move(take(x))))


def merged_shape(x):
    """Return the shape (..., n, h * d_head) for x of shape (..., h, n, d_head)."""
    *batch, h, n, d_head = x.shape
    return *batch, n, h * d_head


def refuse_other_batch_axes(x):
    b, h, n, d_head = x.shape
    return x.reshape(b, h, n, d_head)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    multihead.merge_heads,
    section="Chapter 9, “One projection for all heads”",
    difficulty=1,
    minutes=8,
    criteria=moving_criteria(CASES, BY_HAND, "the heads' features side by side, head 0 first"),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        compose_merge_heads,
        AXES_NOT_PUT_BACK,
        FEATURES_INTERLEAVED,
        HEADS_ADDED_UP,
        AXES_FROM_THE_FRONT.naming(
            **{"b, n, d = x.shape": "b, h, n, d = x.shape", "*batch, n, d =": "*batch, h, n, d ="}
        )
        .by(join=lambda x: x.flatten(2))
        .by(join=lambda x: x.flatten(1))
        .by(join=lambda x: torch.cat(x.unbind(-2), 2))
        .by(take=refuse_other_batch_axes)
        .by(move=lambda x: x.transpose(1, 2).reshape(merged_shape(x)), join=lambda x: x)
        .by(move=lambda x: torch.cat(x.unbind(1), -1), join=lambda x: x)
        .by(finish=lambda merged: merged.reshape(-1, *merged.shape[-2:])),
        OTHER_TWO_AXES.here(move=lambda x: x.mT.reshape(merged_shape(x)), join=lambda x: x).by(
            move=lambda x: x.transpose(-3, -1).reshape(merged_shape(x)), join=lambda x: x
        ),
        mistake(""".view where the memory is out of order
            `.view` never moves a number, and after the transpose the numbers of a row no longer lie
            together. `.reshape` and `.flatten` copy where they must.
        """).by(join=lambda x: x.view(*x.shape[:-2], x.shape[-2] * x.shape[-1])),
        mistake("""a token is not one row
            You return (..., n, h, d/h), or join two other axes, to (..., h·n, d/h) or (..., h,
            n·d/h). Bring the heads behind the tokens, then join the last two: `.flatten(-2)`.""")
        .by(move=lambda x: x, join=lambda x: x.flatten(-3, -2))
        .by(join=lambda x: x)
        .by(join=lambda x: x.flatten(-3, -2))
        .by(move=lambda x: x),
    ),
)
