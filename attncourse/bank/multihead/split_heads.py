"""The exercise ``split_heads``: the features cut into a sequence for each head."""

import torch

from attncourse import multihead
from attncourse.bank.multihead.cases import moving_criteria
from attncourse.bank.multihead.mistakes import (
    AXES_FROM_THE_FRONT,
    DIVISION_TURNED_ROUND,
    EVERY_H_TH,
    OTHER_TWO_AXES,
    RESHAPED,
    WIDTH_FOR_NUMBER,
    WIDTH_NOT_REFUSED,
    cut_into_runs,
    cut_with_batch_in_front,
    cut_with_one_batch_axis,
    move_heads_first,
    refuse_width,
)
from attncourse.checks.exercise import Case, Criterion, composition, exercise
from attncourse.checks.writing import cases
from attncourse.checks.writing.cases import CaseTable, Count, normal
from attncourse.checks.writing.modules import uniform_values
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"x": "... n h*d_head", "n_heads": Count("h")}, how=normal)
BY_HAND = Case((torch.arange(12).reshape(2, 6).double(), 3), note="two tokens, three heads")

# --- decisions and mistakes ----------------------------------------------------------------------


def cut_without_batch_axis(x, h):
    n, d = x.shape
    return x.reshape(n, h, d // h)


@composition
def compose_split_heads(
    width_of=lambda x: x.shape[-1],
    refuse=refuse_width,
    take=lambda x, h: x,
    cut=cut_into_runs,
    move=move_heads_first,
    finish=lambda heads: heads,
):
    """Return ``split_heads`` made of decisions; ``refuse`` sees what ``width_of`` gives."""

    def split_heads(x, n_heads):
        refuse(width_of(x), n_heads)
        return finish(move(cut(take(x, n_heads), n_heads)))

    return split_heads


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    multihead.split_heads,
    section="Chapter 9, “One projection for all heads”",
    difficulty=2,
    minutes=10,
    criteria=moving_criteria(
        CASES,
        BY_HAND,
        "head i gets features i·d/h to (i+1)·d/h − 1 of every token",
        Criterion("refuses a width that n_heads does not divide", 1).on(
            lambda rng: [
                Case((uniform_values(rng, *shape), h), raises=ValueError, note=f"{h} heads")
                for shape, h in (((5, 7), 2), ((6, 8), 3), ((2, 4, 7), 2))
            ]
        ),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        compose_split_heads,
        mistake("""the axes are left as they are
            You return (..., n, h, d/h). The heads come before the tokens: `.transpose(-3, -2)`.
        """).by(move=lambda x: x),
        RESHAPED.by(
            cut=lambda x, h: x.reshape(*x.shape[:-2], h, -1, x.shape[-2]).mT, move=lambda x: x
        ),
        EVERY_H_TH,
        WIDTH_FOR_NUMBER,
        AXES_FROM_THE_FRONT.by(cut=cut_with_one_batch_axis)
        .by(cut=cut_with_batch_in_front, move=lambda x: x.transpose(1, 2))
        .by(move=lambda x: x.movedim(-2, 0))
        .by(move=lambda x: x.movedim(-2, 1))
        .by(cut=cut_without_batch_axis)
        .by(finish=lambda heads: heads.reshape(-1, *heads.shape[-3:])),
        OTHER_TWO_AXES,
        DIVISION_TURNED_ROUND,
        mistake("""heads that are not parts of the features
            Every head sees every token, and d/h of its features. You repeat x for every head, or
            cut the sequence into h pieces.""")
        .by(cut=lambda x, h: x.unsqueeze(-2).expand(*x.shape[:-1], h, -1))
        .by(cut=lambda x, h: torch.stack(x.chunk(h, -2), -3), move=lambda x: x),
        mistake("""a list of heads
            You return a tuple or a list of h tensors. Put them on an axis of their own:
            `torch.stack(parts, dim=-3)`.""").by(finish=lambda heads: heads.unbind(-3)),
        WIDTH_NOT_REFUSED.by(
            refuse=lambda d, h: None, take=lambda x, h: x[..., : x.shape[-1] // h * h]
        ),
        mistake("""another axis is tested
            Your test for divisibility looks at the tokens, or at the batch. The features are the
            last axis: `x.shape[-1]`.""")
        .by(width_of=lambda x: x.shape[-2])
        .by(width_of=lambda x: x.shape[1])
        .by(width_of=lambda x: x.shape[0]),
    ),
)
