"""The exercise ``unpatchify``: patches put back into an image."""

import torch

from attncourse import vision
from attncourse.bank.vision.cases import (
    COUNTED_NUMBERS,
    IMAGE_SIZES,
    IMAGE_SIZES_IN_BATCHES,
    ONE_PATCH,
    PIXEL_ROWS,
    STRIP_ROWS,
    moving_criteria,
)
from attncourse.bank.vision.mistakes import (
    ANOTHER_ORDER,
    AXES_FROM_THE_FRONT,
    CHANNEL_BY_CHANNEL,
    CHANNELS_LAST,
    COLUMN_BY_COLUMN,
    PIXELS_FAR_APART,
    RESHAPED,
    SQUARE_ASSUMED,
    TRANSPOSED_INSIDE,
    move_axes,
    other_orders,
    require_axes,
    square_grid,
)
from attncourse.checks.exercise import Case, composition, exercise
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Count, normal, row
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable(
    {
        "patches": "... rows*columns c*patch*patch",
        "patch": Count("patch"),
        "height": Count("rows*patch"),
        "width": Count("columns*patch"),
    },
    how=normal,
)

BY_HAND = Case((COUNTED_NUMBERS.reshape(4, 4), 2, 4, 4), note="four patches of 2 × 2")

# --- decisions and mistakes ----------------------------------------------------------------------


def lay_out_patches(x, p, rows, columns, c=None):
    c = x.shape[-1] // p**2 if c is None else c
    return x.reshape(*x.shape[:-2], rows, columns, c, p, p)


def join_to_image(x):
    """Return ``(..., c, r, p, s, q)`` as ``(..., c, H, W)``."""
    return x.flatten(-2).flatten(-3, -2)


@composition
def compose_unpatchify(
    grid=lambda patches, p, height, width: (height // p, width // p),
    cut=lay_out_patches,
    axes="rscpq",
    move=lambda x, axes: move_axes(x, axes, "crpsq"),
    join=join_to_image,
    finish=lambda images, height, width: images,
):
    """Return ``unpatchify`` made of decisions; ``axes`` are those that a patch is cut into."""

    def unpatchify(patches, patch, height, width):
        x = cut(patches, patch, *grid(patches, patch, height, width))
        return finish(join(move(x, axes)), height, width)

    return unpatchify


def image_in_order(order):
    """Return the options that take the patches' axes in this order, then reshape once."""
    return {
        "move": lambda x, axes: move_axes(x, axes, order),
        "join": lambda x: x,
        "finish": lambda x, height, width: x.reshape(*x.shape[:-5], -1, height, width),
    }


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    vision.unpatchify,
    section="Chapter 15, “An image is a sentence of patches”",
    difficulty=3,
    minutes=15,
    criteria=moving_criteria(
        CASES,
        BY_HAND,
        "every pixel back in its place",
        IMAGE_SIZES,
        IMAGE_SIZES_IN_BATCHES,
        (
            *ONE_PATCH,
            *PIXEL_ROWS,
            *STRIP_ROWS,
            row("c=2 rows=5 columns=4 patch=3", turned=True, note="not contiguous in memory"),
        ),
        c=3,
        rows=5,
        columns=7,
        patch=2,
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_unpatchify,
        RESHAPED.here(
            cut=lambda x, p, rows, columns: x.reshape(*x.shape[:-2], -1, rows, p, columns, p),
            move=lambda x, axes: x,
        ).said(
            "A reshape alone keeps the order of memory, and there a patch lies in one run. Name "
            "the five axes, let them change places, then join."
        ),
        COLUMN_BY_COLUMN.here(cut=lambda x, p, r, s: lay_out_patches(x, p, s, r), axes="srcpq"),
        TRANSPOSED_INSIDE.here(axes="rscqp"),
        CHANNELS_LAST.here(
            cut=lambda x, p, r, s: x.unflatten(-1, (p, p, -1)).unflatten(-4, (r, s)), axes="rspqc"
        ),
        CHANNEL_BY_CHANNEL.here(
            cut=lambda x, p, r, s: x.reshape(*x.shape[:-2], -1, r, s, p, p), axes="crspq"
        ).said(
            "You take the channels for the outermost axis. A patch is one row, channel by "
            "channel: c stands behind the two axes that count patches."
        ),
        mistake("""height and width exchanged
            You lay out W / patch rows of H / patch patches. Rows go with the height.""")
        .by(grid=lambda patches, p, height, width: (width // p, height // p))
        .by(
            grid=lambda patches, p, height, width: (width // p, height // p),
            finish=lambda x, height, width: x.reshape(*x.shape[:-2], height, width),
        ),
        mistake("""the pixels of a patch stay in one run
            You join the axes as (rows, columns, row inside, column inside), so a patch lies in one
            run. A row of the image goes through several patches: row and row inside stand side by
            side, then column and column inside.""").by(
            move=lambda x, axes: move_axes(x, axes, "crspq"),
            join=lambda x: x,
            finish=lambda x, height, width: x.reshape(*x.shape[:-4], height, width),
        ),
        PIXELS_FAR_APART.here(move=lambda x, axes: move_axes(x, axes, "cprqs")).said(
            "You join row inside and row of patches in this order, so neighbouring pixels end up "
            "far apart. The row of patches comes first, the row inside it second."
        ),
        ANOTHER_ORDER.here(image_in_order("cpsrq")).by_any(
            image_in_order, other_orders("crpsq", "cpsrq", "crspq", "cprqs", "crqsp", "rscpq")
        ),
        mistake("""the image is turned
            You return (..., c, W, H). Rows of pixels come before columns.
        """).by(finish=lambda images, height, width: images.mT),
        mistake("""channels last in the image
            You return (..., H, W, c), which matplotlib likes. Here c comes before the rows.
        """).by(finish=lambda images, height, width: images.movedim(-3, -1)),
        mistake("""sizes that are too large
            Your axes hold more numbers than the patches have. Height and width are in pixels:
            divide them by patch. c is the length of a patch over patch².""")
        .by(grid=lambda patches, p, height, width: (height, width))
        .by(
            grid=lambda patches, p, height, width: (height, width),
            cut=lambda x, p, r, s: lay_out_patches(x, p, r, s, -1),
        ),
        SQUARE_ASSUMED.here(grid=square_grid).said(
            "You take the root of n for both sides. Rows are height / patch, columns width / patch."
        ),
        mistake("""a fixed number of channels
            You write 3 channels, or 1, into the code. c is the length of a patch over patch².""")
        .by(cut=lambda x, p, r, s: lay_out_patches(x, p, r, s, 3))
        .by(cut=lambda x, p, r, s: lay_out_patches(x, p, r, s, 1))
        .by(cut=lambda x, p, r, s: lay_out_patches(x, p, r, s, 1 if x.shape[-1] % 3 else 3)),
        AXES_FROM_THE_FRONT.here(move=lambda x, axes: torch.einsum("brscpq->bcrpsq", x))
        .by(finish=lambda images, height, width: images.reshape(-1, *images.shape[-3:]))
        .by(cut=lambda x, p, r, s: lay_out_patches(require_axes(x, 3), p, r, s))
        .by(cut=lambda x, p, r, s: lay_out_patches(require_axes(x, 2), p, r, s))
        .said(
            "`b, n, p = patches.shape` or a `permute` of six axes fits exactly one batch axis, and "
            "without `b` none. Count from the end, and unpack `*batch, n, _ = patches.shape`."
        ),
    ),
)
