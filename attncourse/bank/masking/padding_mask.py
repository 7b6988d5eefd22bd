"""The exercise ``padding_mask``: a mask in which nobody attends to padding."""

import numpy as np
import torch

from attncourse import masking
from attncourse.bank.masking.shared import FIXED, OF_WHAT_COMES_BACK, as_it_is, finish_mask
from attncourse.checks.exercise import Case, Criterion, composition, exercise, unchanged
from attncourse.checks.writing import cases
from attncourse.checks.writing.cases import CaseTable, Drawn, Row, once_more, row
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def lengths(*numbers: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype)


def row_of_lengths(n: int, *batch: int, **special) -> Row:
    """Return a row of sequences of any lengths from 0 to n."""
    drawn = Drawn("...", lambda rng, shape: rng.integers(0, n + 1, shape))
    return row(f"n={n}", batch=batch, arguments={"lengths": drawn}, **special)


BY_HAND = Case((lengths(3, 1, 4), 5))
CASES = CaseTable({"lengths": Drawn("..."), "max_length": cases.Count("n")})

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_padding_mask(
    read=as_it_is,
    align=lambda lengths: lengths[..., None, None],
    width=lambda lengths, n: n,
    allow=lambda j, length, n: j < length,
    **back,
):
    """Return ``padding_mask`` made of decisions."""

    def padding_mask(lengths, max_length):
        n = width(lengths, max_length)
        return finish_mask(allow(torch.arange(n), align(read(lengths)), n), **back)

    return padding_mask


def loop_over_lengths(lengths):
    """Return the lengths by a loop, which takes a single axis."""
    return torch.stack([length if length > 0 else 0 * length for length in lengths])


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    masking.padding_mask,
    section="Chapter 10, “Padding”",
    difficulty=1,
    minutes=8,
    criteria=(
        Criterion("the first lengths[b] keys of sequence b", 2).on(
            lambda rng: [
                BY_HAND,
                Case((torch.from_numpy(rng.permutation(np.arange(1, 7))[:4].copy()), 7)),
                Case((lengths(4, 1, 18, 11, 3), 19), note="many tokens"),
            ]
        ),
        FIXED.criterion("full, empty and single sequences", 1).on(
            Case((lengths(5, 2), 5), note="a sequence without padding"),
            Case((lengths(2, 0, 3), 4), note="an empty sequence"),
            Case((lengths(1), 1), note="one sequence of one token"),
            Case((lengths(3, 3, 3), 3), note="no padding at all"),
            Case((lengths(1, 2, 1), 2), note="up to two tokens"),
            Case((lengths(2, 4, 1, dtype=torch.int32), 6), note="lengths of dtype int32"),
        ),
        CASES.criterion("two batch axes and more", 1).on(
            row_of_lengths(5, 2, 3, note="two batch axes"),
            row_of_lengths(3, 4, 2, turned=True, note="two batch axes, not contiguous in memory"),
            row_of_lengths(7, 2, 1, 3, note="three batch axes"),
            row_of_lengths(
                4, 2, 5, 3, turned=True, note="three batch axes, not contiguous in memory"
            ),
            once_more(BY_HAND),
        ),
        unchanged(),
    ),
    excludes=(("one batch axis, not contiguous", "A single axis has one order in memory."),),
    mistakes=made(
        compose_padding_mask,
        *OF_WHAT_COMES_BACK,
        mistake("""positions are not counted from 0
            A sequence of length 3 has the positions 0, 1 and 2: `j < length`. You count one too
            many or too few, or leave out position 0.""")
        .by(allow=lambda j, length, n: j <= length)
        .by(allow=lambda j, length, n: j < length - 1)
        .by(allow=lambda j, length, n: (j > 0) & (j < length))
        .by(allow=lambda j, length, n: (j > 0) & (j <= length)),
        mistake("""no padding or no token is taken for something else
            A slice from −0 or up to −0, `lengths or …` and `clamp(min=1)` make another number of 0:
            a sequence without padding has no False, an empty one no True. Use `j < length`.""")
        .by(allow=lambda j, length, n: (j < length) & (length < n))
        .by(allow=lambda j, length, n: (j < length) | (length == 0))
        .by(read=lambda lengths: lengths.clamp(min=1)),
        mistake("""the axis of 1 does not stand for the queries
            The mask is (b, 1, max_length): the batch, an axis of 1 that stands for all queries, the
            keys. Yours has no such axis, one more, or has it elsewhere.""")
        .by(form=lambda mask: mask[..., 0, :])
        .by(align=lambda lengths: lengths[:, None])
        .by(form=lambda mask: mask.mT)
        .by(form=lambda mask: mask[..., None, :])
        .by(form=lambda mask: mask[..., 0, :][None]),
        mistake("""a row for every query
            You return (b, n, n). An axis of 1 stands for all queries, however many; empty rows for
            padded ones are a risk of NaN, and what those compute is thrown away.""")
        .by(form=lambda mask: mask & mask.mT)
        .by(form=lambda mask: mask.expand(*mask.shape[:-2], mask.shape[-1], -1)),
        mistake("""padding expected on the left
            You allow the *last* lengths[b] keys. Here the tokens stand first, the padding behind.
        """).by(allow=lambda j, length, n: j >= n - length),
        mistake("""max_length is ignored
            Your mask is as wide as the longest sequence. It has max_length columns: perhaps more.
        """).by(width=lambda lengths, n: max(1, int(lengths.max()))),
        mistake("""the lengths are not those of their sequences
            You mask every sequence at one length, or sort them. Each has a row of its own, in the
            order in which they come: compare with `lengths[..., None, None]`.""")
        .by(read=lambda lengths: torch.full_like(lengths, int(lengths.max())))
        .by(read=lambda lengths: torch.full_like(lengths, int(lengths.flatten()[0])))
        .by(read=lambda lengths: lengths.sort(descending=True)[0])
        .by(read=lambda lengths: lengths.sort()[0]),
        mistake("""only one batch axis
            `lengths[:, None, None]`, `unsqueeze(1)`, a loop over the first axis or a flattening fit
            lengths (b,) alone. `lengths[..., None, None]` counts from the end.""")
        .by(align=lambda lengths: lengths[:, None, None])
        .by(align=lambda lengths: lengths.reshape(-1, 1, 1))
        .by(align=lambda lengths: loop_over_lengths(lengths)[:, None, None])
        .by(form=lambda mask: mask[..., 0, :].unsqueeze(1)),
    ),
)
