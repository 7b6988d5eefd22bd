"""The exercise ``window_partition``: tokens grouped in square windows."""

import torch

from attncourse import vision
from attncourse.bank.vision.cases import (
    IMAGE_SIDES,
    SIZES_THAT_DO_NOT_FIT,
    moving_criteria,
    refusal_criterion,
    table_rows_of,
)
from attncourse.bank.vision.mistakes import (
    ANOTHER_ORDER,
    AXES_FROM_THE_FRONT,
    COLUMN_BY_COLUMN,
    LAST_DROPPED,
    ONE_SIDE_TESTED,
    OVERLAPPING_PIECES,
    RESHAPED,
    SIDE_FOR_NUMBER,
    SIDE_NOT_REFUSED,
    SIDES_EXCHANGED,
    SQUARE_ASSUMED,
    TRANSPOSED_INSIDE,
    cut_every_nth_pixel,
    cut_into_blocks,
    move_axes,
    other_orders,
    refuse_side,
    require_axes,
)
from attncourse.checks.exercise import Case, composition, exercise
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Count, normal, row
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable(
    {"x": f"... {IMAGE_SIDES} d".replace("patch", "w"), "window": Count("w")}, how=normal
)

BY_HAND = Case((torch.arange(32).double().reshape(4, 4, 2), 2), note="four windows of 2 × 2")

WINDOW_SIZES = """
rows=5 columns=7 w=2 d=3
rows=2 columns=5 w=2 d=4
rows=5 columns=2 w=2 d=4
rows=3 columns=2 w=2 d=6
rows=2 columns=2 w=2 d=3
rows=2 columns=3 w=3 d=9
"""
WINDOW_SIZES_IN_BATCHES = """
rows=5 columns=7 w=2 d=3 | 2
rows=2 columns=5 w=2 d=3 | 4
rows=5 columns=2 w=2 d=3 | 4
rows=3 columns=2 w=3 d=5 | 6
rows=2 columns=3 w=2 d=5 | 5
"""

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_window_partition(
    refuse=refuse_side,
    take=lambda x, w: x,
    cut=cut_into_blocks,
    order="rspqd",
    move=lambda x, to: move_axes(x, "drpsq", to),
    join=lambda x: x.flatten(-3, -2).flatten(-4, -3),
    finish=lambda windows, x, w: windows,
):
    """Return ``window_partition`` made of decisions, for features before height and width."""

    def window_partition(x, window):
        refuse(x.shape[-3], x.shape[-2], window)
        x = take(x.movedim(-1, -3), window)
        return finish(join(move(cut(x, window), order)), x, window)

    return window_partition


def tokens_in_order(order):
    """Return the options that take the axes in this order, then reshape once."""
    return {"order": order, "join": lambda x: x, "finish": reshape_to_windows}


def reshape_to_windows(windows, x, w):
    return windows.reshape(*x.shape[:-3], -1, w * w, x.shape[-3])


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    vision.window_partition,
    section="Chapter 15, “Windows: a price that grows with the area”",
    difficulty=3,
    minutes=15,
    criteria=moving_criteria(
        CASES,
        BY_HAND,
        "windows in reading order, and tokens in each",
        WINDOW_SIZES,
        WINDOW_SIZES_IN_BATCHES,
        (
            row("rows=1 columns=1 w=5 d=3", note="one window"),
            *table_rows_of(
                "rows=4 columns=5 w=1 d=3\nrows=4 columns=3 w=1 d=2\nrows=3 columns=1 w=1 d=5",
                note="windows of one token",
            ),
            row("rows=1 columns=2 w=3 d=5", note="two windows"),
            row("rows=1 columns=2 w=2 d=1", note="two windows"),
            row("rows=5 columns=4 w=3 d=2", turned=True, note="not contiguous in memory"),
        ),
        refusal_criterion(*((shape[-2:], w) for shape, w in SIZES_THAT_DO_NOT_FIT), last=(3,)),
        rows=5,
        columns=7,
        w=2,
        d=3,
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_window_partition,
        RESHAPED.here(finish=lambda windows, x, w: x.movedim(-3, -1).reshape(windows.shape)),
        COLUMN_BY_COLUMN.here(order="srpqd")
        .called("windows counted column by column")
        .said(
            "Your second window lies below the first. Reading order goes along the top row first."
        ),
        TRANSPOSED_INSIDE.here(order="rsqpd")
        .called("rows and columns exchanged inside a window")
        .said("In your windows the tokens stand column by column. They go row by row."),
        mistake("""windows of tokens that lie far apart
            Your windows hold every (H/w)-th token, or the axes of windows and tokens are exchanged.
            Tokens of one window are neighbours.""")
        .by(order="pqrsd")
        .by(cut=cut_every_nth_pixel),
        SIDE_FOR_NUMBER.called("the side taken for the number of windows").said(
            "You make `window` rows and columns of windows. It is the side of one, in tokens."
        ),
        SQUARE_ASSUMED.said(
            "You use the height for both sides. There are H / window rows and W / window columns "
            "of windows."
        ),
        OVERLAPPING_PIECES.said(
            "Your windows begin at every token. They lie side by side: the step is their side."
        ),
        AXES_FROM_THE_FRONT.here(move=lambda x, to: torch.einsum(f"bdrpsq->b{to}", x))
        .by(take=lambda x, w: require_axes(x, 4))
        .by(take=lambda x, w: require_axes(x, 3))
        .by(
            take=lambda x, w: require_axes(x, 4),
            finish=lambda windows, x, w: windows.reshape(-1, *windows.shape[-2:]),
        )
        .said(
            "`b, H, W, d = x.shape` or a `permute` of six axes fits exactly one batch axis, and "
            "without `b` none. Count from the end, and unpack `*batch, H, W, d = x.shape`."
        ),
        SIDES_EXCHANGED.said(
            "You cut the grid into W / window rows of H / window windows. Rows go with the height."
        ),
        LAST_DROPPED.naming(patches="windows", patch="window"),
        ANOTHER_ORDER.here(tokens_in_order("rpqsd")).by_any(
            tokens_in_order,
            other_orders("rspqd", "rpqsd", "srpqd", "rsqpd", "srqpd", "rpsqd", "rsdpq"),
        ),
        mistake("""windows and batch in one axis
            You return (batch · windows, window², d). Here the batch axes stay as they are.
        """).by(finish=lambda windows, x, w: windows.reshape(-1, *windows.shape[-2:])),
        mistake("""the tokens are not joined
            Your windows are squares (window, window, d). A sequence has one axis: flatten them.""")
        .by(join=lambda x: x.flatten(-5, -4))
        .by(join=lambda x: x.flatten(-3, -2))
        .by(join=lambda x: x),
        mistake("""features before tokens
            Your features stand before the tokens of a window, or stood there when you joined the
            axes, as after `unfold`. A token is a row: features come last.""")
        .by(finish=lambda windows, x, w: windows.mT)
        .by(finish=lambda windows, x, w: windows.mT.reshape(windows.shape)),
        mistake("""the windows are shifted
            You roll the tokens before you cut. Plain windows begin at the top left corner.
        """).by(take=lambda x, w: x.roll((-(w // 2), -(w // 2)), (-2, -1))),
        SIDE_NOT_REFUSED.naming(patch="window", pixels="tokens"),
        ONE_SIDE_TESTED.naming(patches="windows", pixels="tokens"),
    ),
)
