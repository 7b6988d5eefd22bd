"""The exercise ``pairs_from_halves``: rows of a weight in another order of pairs."""

import torch

from attncourse import llama
from attncourse.checks.exercise import REFUSED, Case, Criterion, composition, exercise, unchanged
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Count, once_more, row
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"weight": "h*d_head d_in", "n_heads": Count("h")})
EIGHT_ROWS = torch.arange(16).double().reshape(8, 2)
BY_HAND = Case((EIGHT_ROWS, 1), note="one head of 8 features")
TWO_HEADS = Case((EIGHT_ROWS, 2), note="two heads of 4 features")


def refused_case(rows: int, heads: int, note: str) -> Case:
    return Case((torch.ones(rows, 3).double(), heads), note=note, raises=ValueError)


# --- decisions and mistakes ----------------------------------------------------------------------


def refuse_uneven(weight, n_heads):
    if len(weight) % n_heads or len(weight) // n_heads % 2:
        raise ValueError(REFUSED)


def refuse_undivided_rows(weight, n_heads):
    """Refuse a number of rows that the heads do not divide, and no odd number in a head."""
    if len(weight) % n_heads:
        raise ValueError(REFUSED)


def assert_even(weight, n_heads):
    assert len(weight) % (2 * n_heads) == 0


def cut_into_heads(weight, n_heads):
    """Return the weight as ``(h, d_head, d_in)``: a head's rows stand together."""
    return weight.unflatten(0, (n_heads, -1))


def interleave_halves(head):
    """Return the head's rows, ``(…, 2i)`` from the first half, ``(…, 2i + 1)`` from the second."""
    return head.unflatten(-2, (2, -1)).transpose(-3, -2).flatten(-3, -2)


def stack_heads(heads, weight):
    return heads.flatten(0, 1)


@composition
def compose_pairs_from_halves(
    refuse=refuse_uneven,
    cut=cut_into_heads,
    order=interleave_halves,
    join=stack_heads,
    finish=lambda rows, weight: rows,
):
    """Return ``pairs_from_halves`` made of decisions."""

    def pairs_from_halves(weight, n_heads):
        refuse(weight, n_heads)
        return finish(join(order(cut(weight, n_heads)), weight), weight)

    return pairs_from_halves


def pairs_to_halves(head):
    return head.unflatten(-2, (-1, 2)).transpose(-3, -2).flatten(-3, -2)


def interleave_second_first(head):
    """Return the rows, even ones from the second half and odd ones from the first."""
    return interleave_halves(head.roll(head.shape[-2] // 2, -2))


def cut_every_h_th_row(weight, n_heads):
    """Return heads whose rows stand n_heads apart."""
    return weight.unflatten(0, (-1, n_heads)).transpose(0, 1)


def interleave_first_head_only(heads):
    """Return the heads, of which the first alone is interleaved."""
    return torch.cat([interleave_halves(heads[:1]), heads[1:]])


def interleave_columns(head):
    d = head.shape[-1]
    return head[..., torch.arange(d).reshape(2, -1).T.reshape(-1)] if d % 2 == 0 else head


def write_into_weight(heads, weight):
    """Return the caller's weight, written over."""
    with torch.no_grad():
        weight.copy_(heads.flatten(0, 1).clone())
    return weight


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    llama.pairs_from_halves,
    section="Chapter 18, “Two conventions of turning”",
    difficulty=2,
    minutes=15,
    criteria=(
        CASES.criterion("rows i and i + d_head/2 become rows 2i and 2i + 1", 3).on(
            BY_HAND,
            row("h=1 d_head=6 d_in=5", note="one head"),
            row("h=1 d_head=2 d_in=3", note="two features: nothing changes"),
            row("h=1 d_head=12 d_in=12", note="a square matrix"),
        ),
        CASES.criterion("each head by itself", 3).on(
            TWO_HEADS,
            row("h=3 d_head=10 d_in=7"),
            row("h=4 d_head=4 d_in=4", note="as many heads as features"),
            row("h=5 d_head=2 d_in=3", note="heads of two features: nothing changes"),
        ),
        Criterion("refuses what does not divide with ValueError", 1).on(
            lambda rng: [
                refused_case(9, 2, "9 rows for 2 heads"),
                refused_case(10, 2, "2 heads of 5 rows: odd"),
                refused_case(3, 3, "heads of one row"),
                refused_case(4, 8, "more heads than rows"),
            ]
        ),
        CASES.criterion("one column; float32, large and small entries", 1).on(
            row("h=1 d_head=4 d_in=1", note="one column"),
            row("h=2 d_head=6 d_in=5", turned=True, note="not contiguous in memory"),
            row("h=3 d_head=4 d_in=5", dtype="float32", note="float32"),
            row("h=3 d_head=4 d_in=5", factor={"weight": 1e7}, note="in the millions"),
            row("h=3 d_head=4 d_in=5", factor={"weight": 5e-7}, cancel=True, note="small"),
            row("h=3 d_head=4 d_in=5", zero=("weight",), note="a weight of 0"),
            once_more(BY_HAND),
        ),
        unchanged(),
    ),
    excludes=(
        FLOATS_ONLY,
        ("d_out = h", "A head has an even number of rows."),
        ("a gradient on *", "Weights are converted once, and nothing is learned through it."),
    ),
    mistakes=made(
        compose_pairs_from_halves,
        mistake("""the way back
            You bring pairs into halves: rows 2i and 2i + 1 end up half a head apart. It is the
            other way round: rows i and i + d_head/2 become neighbours.""").by(
            order=pairs_to_halves
        ),
        mistake("""the heads are mixed
            You reorder all rows as if they were one head. The first half of *each head* is paired
            with its second half: cut the rows into heads first.""").by(
            cut=lambda weight, n_heads: weight.unsqueeze(0)
        ),
        mistake("""rows of a head taken from all over
            You take rows that stand n_heads apart for one head. A head's d_head rows stand
            together: `weight.unflatten(0, (n_heads, -1))`.""")
        .by(cut=cut_every_h_th_row)
        .by(
            cut=cut_every_h_th_row,
            join=lambda heads, weight: heads.transpose(0, 1).flatten(0, 1),
        ),
        mistake("""the second half comes first
            Row 2i comes from the second half of the head. It is the other way round: row 2i from
            the first half, row 2i + 1 from the second.""").by(order=interleave_second_first),
        mistake("""nothing is reordered
            You return the rows in the order in which they came. Rows i and i + d_head/2 of a head
            are to become neighbours.""").by(order=lambda heads: heads),
        mistake("""only the first head
            You reorder the rows of one head and leave the others. All heads are reordered alike.
        """).by(order=interleave_first_head_only),
        mistake("""the first head's rows again
            Your row numbers begin at 0 in every head, so that each gets the rows of the first. Head
            h begins at row h · d_head.
        """).by(order=lambda heads: interleave_halves(heads[:1].expand_as(heads))),
        mistake("""columns are reordered, not rows
            You reorder the columns, which belong to the features that come in. What is turned are
            the features that come out, the rows.""").by(order=interleave_columns),
        mistake("""the second half is read backwards
            You pair row i with the last but i. It is paired with row i + d_head/2.""").by(
            order=lambda heads: interleave_halves(
                torch.cat([a := heads[:, : heads.shape[1] // 2], heads[:, a.shape[1] :].flip(1)], 1)
            )
        ),
        mistake("""the heads keep an axis
            You return `(n_heads, d_head, d_in)`, or an axis more. Put the heads' rows below one
            another again: `(n_heads · d_head, d_in)`.""").by(join=lambda heads, weight: heads),
        mistake("""the result is transposed
            You return columns for rows. The result has the shape of `weight`.""").by(
            finish=lambda rows, weight: rows.mT
        ),
        mistake("""the sign of one half is changed
            You change the sign of a half, as code that turns by halves does. Rows are moved and
            nothing else: no number changes.""")
        .by(
            order=lambda heads: (
                interleave_halves(heads)
                * (1 - 2 * (torch.arange(heads.shape[1]) % 2)).to(heads)[:, None]
            )
        )
        .by(
            order=lambda heads: (
                interleave_halves(heads)
                * (2 * (torch.arange(heads.shape[1]) % 2) - 1).to(heads)[:, None]
            )
        ),
        mistake("""what does not divide is not refused
            Where n_heads does not divide the rows, or a head has an odd number of them, raise
            `ValueError` (an `assert` raises AssertionError).""")
        .by(refuse=lambda weight, n_heads: None)
        .by(refuse=assert_even)
        .by(refuse=refuse_undivided_rows)
        .by(
            refuse=lambda weight, n_heads: refuse_uneven(
                weight[: 2 * len(weight)],
                1 if len(weight) % n_heads == 0 else n_heads,
            )
        ),
        mistake("""weight is changed
            You write the reordered rows into the weight that came in. Return a new tensor.""").by(
            join=write_into_weight
        ),
        mistake("""computed in float32
            You return float32 whatever came in. Rows are moved, and their dtype stays.""").by(
            finish=lambda rows, weight: rows.float()
        ),
    ),
)
