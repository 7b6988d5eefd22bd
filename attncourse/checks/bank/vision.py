"""The exercises of chapter 15: images as patches, windows, tokens and maps.

Cutting and putting back move numbers and do not change them. So an answer is told by the order of
the axes alone: c channels, r rows and s columns of patches, and in a patch p rows and q columns.
"""

from itertools import permutations

import numpy as np
import torch
from torch.nn import functional as F

from attncourse import vision
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import CHANNELS_LAST as WITH_CHANNELS_LAST
from attncourse.checks.variants.variant import Variant, rewordings
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    SCATTERED,
    CaseTable,
    Count,
    Drawn,
    Row,
    between,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.modules import tensor, uniform_values
from attncourse.checks.writing.recipes import made, mistake

# --- cases: patchify, unpatchify, window_partition -------------------------------------------

SIDES = "rows*patch columns*patch"
PATCH_CASES = CaseTable({"images": f"... c {SIDES}", "patch": Count("patch")}, how=normal)
BACK_CASES = CaseTable(
    {
        "patches": "... rows*columns c*patch*patch",
        "patch": Count("patch"),
        "height": Count("rows*patch"),
        "width": Count("columns*patch"),
    },
    how=normal,
)
WINDOW_CASES = CaseTable(
    {"x": f"... {SIDES} d".replace("patch", "w"), "window": Count("w")}, how=normal
)

COUNTED = torch.arange(16).double()
PATCH_BY_HAND = Case((COUNTED.reshape(1, 4, 4), 2), note="four patches of 2 × 2")
BACK_BY_HAND = Case((COUNTED.reshape(4, 4), 2, 4, 4), note="four patches of 2 × 2")
WINDOW_BY_HAND = Case((torch.arange(32).double().reshape(4, 4, 2), 2), note="four windows of 2 × 2")


def rows_of(sizes: str, **special) -> list[Row]:
    """A row for each line: lengths, and behind a bar the batch."""
    found = []
    for line in sizes.strip().splitlines():
        lengths, _, batch = line.partition("|")
        found.append(row(lengths, batch=tuple(map(int, batch.split())), **special))
    return found


# Every two axes are as long as each other in one of these; in the first no two are.
OF_IMAGES = """
c=3 rows=5 columns=7 patch=2
c=3 rows=2 columns=5 patch=2
c=1 rows=2 columns=2 patch=2
c=4 rows=2 columns=3 patch=2
c=6 rows=2 columns=3 patch=2
c=5 rows=3 columns=2 patch=3
c=1 rows=3 columns=2 patch=2
c=1 rows=2 columns=3 patch=2
"""
IMAGE_BATCHES = """
c=3 rows=5 columns=7 patch=2 | 2
c=3 rows=2 columns=3 patch=2 | 3
c=3 rows=2 columns=5 patch=2 | 4
c=3 rows=5 columns=2 patch=2 | 4
c=2 rows=2 columns=3 patch=2 | 6
c=2 rows=2 columns=3 patch=2 | 8
"""
OF_WINDOWS = """
rows=5 columns=7 w=2 d=3
rows=2 columns=5 w=2 d=4
rows=5 columns=2 w=2 d=4
rows=3 columns=2 w=2 d=6
rows=2 columns=2 w=2 d=3
rows=2 columns=3 w=3 d=9
"""
WINDOW_BATCHES = """
rows=5 columns=7 w=2 d=3 | 2
rows=2 columns=5 w=2 d=3 | 4
rows=5 columns=2 w=2 d=3 | 4
rows=3 columns=2 w=3 d=5 | 6
rows=2 columns=3 w=2 d=5 | 5
"""
ONE_PATCH = [row("c=3 rows=1 columns=1 patch=5", note="one patch")]
PIXELS = rows_of(
    "c=3 rows=4 columns=5 patch=1\nc=3 rows=3 columns=4 patch=1", note="patches of one pixel"
)
STRIPS = rows_of(
    "c=2 rows=1 columns=2 patch=2\nc=2 rows=2 columns=1 patch=2\nc=2 rows=1 columns=2 patch=3",
    note="two patches",
)


def cutting(
    table: CaseTable, by_hand: Case, order: str, sizes: str, batches: str, special, *more, **fixed
) -> tuple[Criterion, ...]:
    """The criteria of an exercise that moves numbers: ``order`` says where they stand."""
    rows = standard(table, **fixed)
    name = next(iter(table.floats))
    return (
        table.criterion(order, 3).on(by_hand, *rows_of(sizes)),
        table.criterion("one patch, one pixel, any memory layout", 1).on(*special),
        table.criterion("batches", 1).on(*rows.contiguous, *rows_of(batches)),
        table.criterion(SCATTERED, 1).on(*rows.not_contiguous),
        table.criterion("float32 and large entries", 1).on(*rows.numbers, once_more(by_hand)),
        table.criterion(f"gradients reach {name}", 1).on(*rows.gradients),
        *more,
        unchanged(),
    )


def refuses(*sizes: tuple, last: tuple = ()) -> Criterion:
    """Heights and widths that the size of a patch or window does not divide."""
    return Criterion("refuses sizes that do not fit", 1).on(
        lambda rng: [
            Case(
                (uniform_values(rng, *shape, *last), side), raises=ValueError, note=f"{side} a side"
            )
            for shape, side in sizes
        ]
    )


# --- decisions -------------------------------------------------------------------------------


def refused(height, width, side):
    if height % side or width % side:
        raise ValueError("the side of a patch divides height and width")


def asserted(height, width, side):
    assert height % side == 0
    assert width % side == 0


def never(height, width, side):
    pass


def blocks(x, p):
    """(..., H, W) cut into (..., r, p, s, q)."""
    return x.unflatten(-1, (-1, p)).unflatten(-3, (-1, p))


def cropped(x, p):
    return x[..., : x.shape[-2] // p * p, : x.shape[-1] // p * p]


def filled_up(x, p):
    return F.pad(x, (0, -x.shape[-1] % p, 0, -x.shape[-2] % p))


def by_height_alone(x, p):
    """As for a square image."""
    n = x.shape[-2] // p
    return x.reshape(*x.shape[:-2], n, p, n, p)


def by_number(x, p):
    """p patches a side."""
    return x.unflatten(-1, (p, -1)).unflatten(-3, (p, -1))


def far_apart(x, p):
    """Every (H/p)-th row and (W/p)-th column for a patch."""
    return by_number(x, p).transpose(-4, -3).transpose(-2, -1)


def exchanged(x, p):
    """W / p rows and H / p columns."""
    return x.reshape(*x.shape[:-2], x.shape[-1] // p, p, x.shape[-2] // p, p)


def unpacked(x, axes):
    """x, which has to have so many axes, or Python says that it has not."""
    if axes == 2:
        _, _ = x.shape
    elif axes == 3:
        _, _, _ = x.shape
    else:
        _, _, _, _ = x.shape
    return x


def overlapping(x, p):
    return x.unfold(-2, p, 1).unfold(-2, p, 1).transpose(-3, -2)


def moved(x, axes, to):
    return torch.einsum(f"...{axes}->...{to}", x)


def rows_of_patches(x):
    """(..., r, s, c, p, q) as (..., n, c · patch²)."""
    return x.flatten(-3).flatten(-3, -2)


def straight(x, p):
    """Numbers handed out in the order of memory."""
    return x.reshape(*x.shape[:-3], x.shape[-2] * x.shape[-1] // p**2, -1)


def one_batch_axis(x, to):
    return torch.einsum(f"bcrpsq->b{to}", x)


@composition
def patching(
    refuse=refused,
    take=lambda x, p: x,
    cut=blocks,
    order="rscpq",
    move=lambda x, to: moved(x, "crpsq", to),
    join=rows_of_patches,
    finish=lambda patches, images, p: patches,
):
    """``patchify`` made of decisions; ``order`` is that of the axes before they are joined."""

    def patchify(images, patch):
        refuse(*images.shape[-2:], patch)
        x = take(images, patch)
        return finish(join(move(cut(x, patch), order)), x, patch)

    return patchify


def laid_out(x, p, rows, columns, c=None):
    c = x.shape[-1] // p**2 if c is None else c
    return x.reshape(*x.shape[:-2], rows, columns, c, p, p)


def as_image(x):
    """(..., c, r, p, s, q) as (..., c, H, W)."""
    return x.flatten(-2).flatten(-3, -2)


def square(patches, p, height, width):
    n = round(patches.shape[-2] ** 0.5)
    return n, n


@composition
def unpatching(
    grid=lambda patches, p, height, width: (height // p, width // p),
    cut=laid_out,
    axes="rscpq",
    move=lambda x, axes: moved(x, axes, "crpsq"),
    join=as_image,
    finish=lambda images, height, width: images,
):
    """``unpatchify`` made of decisions; ``axes`` are those that the patches are taken to have."""

    def unpatchify(patches, patch, height, width):
        x = cut(patches, patch, *grid(patches, patch, height, width))
        return finish(join(move(x, axes)), height, width)

    return unpatchify


@composition
def windowing(
    refuse=refused,
    take=lambda x, w: x,
    cut=blocks,
    order="rspqd",
    move=lambda x, to: moved(x, "drpsq", to),
    join=lambda x: x.flatten(-3, -2).flatten(-4, -3),
    finish=lambda windows, x, w: windows,
):
    """``window_partition`` made of decisions, on features that stand before height and width."""

    def window_partition(x, window):
        refuse(*x.shape[-3:-1], window)
        x = take(x.movedim(-1, -3), window)
        return finish(join(move(cut(x, window), order)), x, window)

    return window_partition


def tokens_in(order):
    """The axes in this order, and one reshape to windows of tokens."""
    return {"order": order, "join": lambda x: x, "finish": as_windows}


def as_windows(windows, x, w):
    return windows.reshape(*x.shape[:-3], -1, w * w, x.shape[-3])


def image_in(order):
    """The axes of patches in this order, and one reshape to an image."""
    return {
        "move": lambda x, axes: moved(x, axes, order),
        "join": lambda x: x,
        "finish": lambda x, height, width: x.reshape(*x.shape[:-5], -1, height, width),
    }


# --- usual mistakes of cutting ---------------------------------------------------------------

RESHAPED = mistake("""reshaped in the order of memory
    A reshape alone hands out the numbers row by row across the whole image, so your pieces are
    strips. Cut height and width into two axes each, and let axes change places before you join.
""").by(finish=lambda patches, images, p: straight(images, p))
COLUMN_BY_COLUMN = mistake("""patches counted column by column
    Your second patch lies below the first. Reading order goes along the top row first.
""").by(order="srcpq")
TURNED_INSIDE = mistake("""rows and columns exchanged inside a patch
    In your patches the pixels stand column by column. They go row by row there too.
""").by(order="rscqp")
CHANNELS_LAST = mistake("""channels last inside a patch
    You put the channels of one pixel side by side. A patch holds all pixels of channel 0, then all
    of channel 1: channel, row, column.""").by(order="rspqc")
CHANNEL_BY_CHANNEL = mistake("""the axis of the channels left in front
    You cut well and then flatten with the channels in front, so a row mixes several patches of one
    channel. The channels belong inside the patch: move their axis behind rows and columns.
""").by(order="crspq", join=lambda x: x.reshape(*x.shape[:-5], x.shape[-4] * x.shape[-3], -1))
NOT_REFUSED = (
    mistake("""sizes that do not fit are not refused
    `H // patch` rounds down: pixels are lost, or torch fails far from the cause. An `assert` raises
    AssertionError and is skipped under `python -O`. Test both sides, raise ValueError.""")
    .by(refuse=never)
    .by(refuse=asserted)
    .by(refuse=never, take=cropped)
    .by(refuse=never, take=filled_up)
)
HALF_TESTED = (
    mistake("""only one side is tested
    You test the height or the width, or whether the pixels are enough for whole patches. Both sides
    must be divisible.""")
    .by(refuse=lambda height, width, side: refused(height, height, side))
    .by(
        *(
            {"refuse": test, "take": take}
            for test in (
                lambda height, width, side: refused(height, height, side),
                lambda height, width, side: refused(width, width, side),
                lambda height, width, side: refused(height * width, 0, side**2),
                lambda height, width, side: refused(height * width, 0, side),
            )
            for take in (lambda x, p: x, cropped, filled_up)
        )
    )
)
BY_NUMBER = mistake("""the side taken for the number of patches
    You make `patch` rows and columns of patches. It is the side of one, in pixels.
""").by(cut=by_number)
SQUARE = mistake("""a square image assumed
    You use the height for both sides. There are H / patch rows and W / patch columns of
    patches.""").by(cut=by_height_alone)
OVERLAPPING = mistake("""the pieces overlap
    Your patches begin at every pixel. They lie side by side: the step is the side of a patch.
""").by(cut=overlapping)
FROM_THE_FRONT = (
    mistake("""axes counted from the front
    `b, c, H, W = images.shape` or a `permute` of six axes fits exactly one batch axis, and without
    `b` none. Count from the end, and unpack `*batch, c, H, W = images.shape`.""")
    .by(move=one_batch_axis)
    .by(finish=lambda patches, images, p: patches.reshape(-1, *patches.shape[-2:]))
    .by(take=lambda x, p: unpacked(x, 4))
    .by(take=lambda x, p: unpacked(x, 3))
)
EXCHANGED = (
    mistake("""height and width exchanged
    You cut the image into W / patch rows of H / patch patches. Rows go with the height.""")
    .by(cut=exchanged)
    .by(take=lambda x, p: x.mT)
)
LAST_DROPPED = mistake("""the last row and column of patches are left out
    Your loop stops too early: `range(0, H - patch, patch)` ends before the last patch. `range(0, H,
    patch)` reaches it.""").by(take=lambda x, p: x[..., :-p, :-p])


def orders(right, *named):
    """All other orders of these axes but those that have a name of their own."""
    return tuple(o for o in map("".join, permutations(right)) if o not in (right, *named))


def joined_in(order):
    """The axes in this order, and one reshape to the shape that is asked for."""
    join = {
        "finish": lambda x, images, p: x.reshape(*images.shape[:-3], -1, images.shape[-3] * p**2)
    }
    return {"order": order} | join


ANOTHER_ORDER = (
    mistake("""the axes are joined in another order
    Your axes change places in another way than is needed before they are joined. Write down the
    order that the result has, the axis that runs fastest last, and permute to that.""")
    .by(joined_in("rpscq"))
    .by_any(
        joined_in, orders("rscpq", "rpscq", "srcpq", "rscqp", "rspqc", "srcqp", "crspq", "crpsq")
    )
)
FAR_APART = mistake("""patches of pixels that lie far apart
    The axes of patches and of pixels are exchanged: your patches hold every (H / patch)-th row.
    Pixels of one patch are neighbours: `reshape(…, H // patch, patch, W // patch, patch)`.
""").by(cut=far_apart)

# --- exercises -------------------------------------------------------------------------------

FITS = (((3, 5, 7), 2), ((1, 4, 7), 2), ((2, 7, 4), 2), ((1, 4, 9), 6), ((2, 1, 3, 4), 6))

PATCHIFY = exercise(
    vision.patchify,
    section="Chapter 15, “An image is a sentence of patches”",
    difficulty=3,
    minutes=20,
    criteria=cutting(
        PATCH_CASES,
        PATCH_BY_HAND,
        "patches in reading order, inside one channel, row, column",
        OF_IMAGES,
        IMAGE_BATCHES,
        (
            *ONE_PATCH,
            *PIXELS,
            *STRIPS,
            row("c=2 rows=5 columns=4 patch=3", turned=True, note="not contiguous in memory"),
        ),
        refuses(*FITS),
        c=3,
        rows=5,
        columns=7,
        patch=2,
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        patching,
        RESHAPED,
        COLUMN_BY_COLUMN,
        TURNED_INSIDE,
        CHANNELS_LAST,
        CHANNEL_BY_CHANNEL,
        BY_NUMBER,
        SQUARE,
        OVERLAPPING,
        FROM_THE_FRONT,
        EXCHANGED,
        FAR_APART,
        LAST_DROPPED,
        ANOTHER_ORDER,
        mistake("""one patch a column
            You return (..., c·patch², n), as `F.unfold` does. A token is a row: `.mT`.
        """).by(finish=lambda patches, images, p: patches.mT),
        mistake("""the axes are not joined
            Your patches keep axes of their own. Flatten twice: rows and columns of patches into n,
            channel, row and column of a pixel into c·patch².""")
        .by(join=lambda x: x)
        .by(join=lambda x: x.flatten(-5, -4))
        .by(join=lambda x: x.flatten(-3)),
        mistake("""the channels are mixed
            You average the channels or keep one of them. A patch holds the numbers of all.""")
        .by(take=lambda x, p: x.mean(-3, keepdim=True))
        .by(take=lambda x, p: x[..., :1, :, :]),
        NOT_REFUSED,
        HALF_TESTED,
    ),
)

UNPATCHIFY = exercise(
    vision.unpatchify,
    section="Chapter 15, “An image is a sentence of patches”",
    difficulty=3,
    minutes=15,
    criteria=cutting(
        BACK_CASES,
        BACK_BY_HAND,
        "every pixel back in its place",
        OF_IMAGES,
        IMAGE_BATCHES,
        (
            *ONE_PATCH,
            *PIXELS,
            *STRIPS,
            row("c=2 rows=5 columns=4 patch=3", turned=True, note="not contiguous in memory"),
        ),
        c=3,
        rows=5,
        columns=7,
        patch=2,
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        unpatching,
        RESHAPED.here(
            cut=lambda x, p, rows, columns: x.reshape(*x.shape[:-2], -1, rows, p, columns, p),
            move=lambda x, axes: x,
        ).said(
            "A reshape alone keeps the order of memory, and there a patch lies in one run. Name "
            "the five axes, let them change places, then join."
        ),
        COLUMN_BY_COLUMN.here(cut=lambda x, p, r, s: laid_out(x, p, s, r), axes="srcpq"),
        TURNED_INSIDE.here(axes="rscqp"),
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
            move=lambda x, axes: moved(x, axes, "crspq"),
            join=lambda x: x,
            finish=lambda x, height, width: x.reshape(*x.shape[:-4], height, width),
        ),
        FAR_APART.here(move=lambda x, axes: moved(x, axes, "cprqs")).said(
            "You join row inside and row of patches in this order, so neighbouring pixels end up "
            "far apart. The row of patches comes first, the row inside it second."
        ),
        ANOTHER_ORDER.here(image_in("cpsrq")).by_any(
            image_in, orders("crpsq", "cpsrq", "crspq", "cprqs", "crqsp", "rscpq")
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
            cut=lambda x, p, r, s: laid_out(x, p, r, s, -1),
        ),
        SQUARE.here(grid=square).said(
            "You take the root of n for both sides. Rows are height / patch, columns width / patch."
        ),
        mistake("""a fixed number of channels
            You write 3 channels, or 1, into the code. c is the length of a patch over patch².""")
        .by(cut=lambda x, p, r, s: laid_out(x, p, r, s, 3))
        .by(cut=lambda x, p, r, s: laid_out(x, p, r, s, 1))
        .by(cut=lambda x, p, r, s: laid_out(x, p, r, s, 1 if x.shape[-1] % 3 else 3)),
        FROM_THE_FRONT.here(move=lambda x, axes: torch.einsum("brscpq->bcrpsq", x))
        .by(finish=lambda images, height, width: images.reshape(-1, *images.shape[-3:]))
        .by(cut=lambda x, p, r, s: laid_out(unpacked(x, 3), p, r, s))
        .by(cut=lambda x, p, r, s: laid_out(unpacked(x, 2), p, r, s))
        .said(
            "`b, n, p = patches.shape` or a `permute` of six axes fits exactly one batch axis, and "
            "without `b` none. Count from the end, and unpack `*batch, n, _ = patches.shape`."
        ),
    ),
)

WINDOW_PARTITION = exercise(
    vision.window_partition,
    section="Chapter 15, “Windows: a price that grows with the area”",
    difficulty=3,
    minutes=15,
    criteria=cutting(
        WINDOW_CASES,
        WINDOW_BY_HAND,
        "windows in reading order, and tokens in each",
        OF_WINDOWS,
        WINDOW_BATCHES,
        (
            row("rows=1 columns=1 w=5 d=3", note="one window"),
            *rows_of(
                "rows=4 columns=5 w=1 d=3\nrows=4 columns=3 w=1 d=2\nrows=3 columns=1 w=1 d=5",
                note="windows of one token",
            ),
            row("rows=1 columns=2 w=3 d=5", note="two windows"),
            row("rows=1 columns=2 w=2 d=1", note="two windows"),
            row("rows=5 columns=4 w=3 d=2", turned=True, note="not contiguous in memory"),
        ),
        refuses(*((shape[-2:], w) for shape, w in FITS), last=(3,)),
        rows=5,
        columns=7,
        w=2,
        d=3,
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        windowing,
        RESHAPED.here(finish=lambda windows, x, w: x.movedim(-3, -1).reshape(windows.shape)),
        COLUMN_BY_COLUMN.here(order="srpqd")
        .called("windows counted column by column")
        .said(
            "Your second window lies below the first. Reading order goes along the top row first."
        ),
        TURNED_INSIDE.here(order="rsqpd")
        .called("rows and columns exchanged inside a window")
        .said("In your windows the tokens stand column by column. They go row by row."),
        mistake("""windows of tokens that lie far apart
            Your windows hold every (H/w)-th token, or the axes of windows and tokens are exchanged.
            Tokens of one window are neighbours.""")
        .by(order="pqrsd")
        .by(cut=far_apart),
        BY_NUMBER.called("the side taken for the number of windows").said(
            "You make `window` rows and columns of windows. It is the side of one, in tokens."
        ),
        SQUARE.said(
            "You use the height for both sides. There are H / window rows and W / window columns "
            "of windows."
        ),
        OVERLAPPING.said(
            "Your windows begin at every token. They lie side by side: the step is their side."
        ),
        FROM_THE_FRONT.here(move=lambda x, to: torch.einsum(f"bdrpsq->b{to}", x))
        .by(take=lambda x, w: unpacked(x, 4))
        .by(take=lambda x, w: unpacked(x, 3))
        .by(
            take=lambda x, w: unpacked(x, 4),
            finish=lambda windows, x, w: windows.reshape(-1, *windows.shape[-2:]),
        )
        .said(
            "`b, H, W, d = x.shape` or a `permute` of six axes fits exactly one batch axis, and "
            "without `b` none. Count from the end, and unpack `*batch, H, W, d = x.shape`."
        ),
        EXCHANGED.said(
            "You cut the grid into W / window rows of H / window windows. Rows go with the height."
        ),
        LAST_DROPPED.naming(patches="windows", patch="window"),
        ANOTHER_ORDER.here(tokens_in("rpqsd")).by_any(
            tokens_in, orders("rspqd", "rpqsd", "srpqd", "rsqpd", "srqpd", "rpsqd", "rsdpq")
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
        NOT_REFUSED.naming(patch="window", pixels="tokens"),
        HALF_TESTED.naming(patches="windows", pixels="tokens"),
    ),
)

# --- cases: embed_image, attention_on_image --------------------------------------------------


def one_more(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Positions for n patches and the class token."""
    return between(rng, (shape[0] + 1, *shape[1:]))


def shares_of(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Rows of an attention map, one longer than this, the class token's own weight not small."""
    weights = rng.uniform(0.2, 1, (*shape[:-1], shape[-1] + 1))
    weights[..., 0] *= shape[-1] / 2
    return weights / weights.sum(-1, keepdims=True)


EMBED_CASES = CaseTable(
    {
        "images": f"... c {SIDES}",
        "patch": Count("patch"),
        "weight": "c*patch*patch d",
        "bias": "d",
        "class_token": "d",
        "positions": Drawn("rows*columns d", one_more),
    }
)
EMBED_ROWS = standard(EMBED_CASES, c=3, rows=5, columns=7, patch=2, d=11)
EACH = callers.each_gradient(images=0, weight=2, bias=3, class_token=4, positions=5)
# One row and two patches of one pixel: 10 and 20 times 3, and one number for everything else.
EMBED_BY_HAND = Case(
    (
        tensor([[[10, 20], [30, 40]], [[1, 2], [3, 4]]]),
        1,
        tensor([[3, 1], [0, 2]]),
        tensor([0.5, 0.25]),
        tensor([7, 8]),
        tensor([[100, 0], [200, 10], [300, 20], [400, 30], [500, 40]]),
    ),
    note="four pixels of two channels",
)
OF_TOKENS = """
c=2 rows=4 columns=3 patch=2 d=5
c=5 rows=2 columns=2 patch=2 d=5
c=4 rows=2 columns=3 patch=2 d=7
c=6 rows=2 columns=3 patch=2 d=4
c=1 rows=2 columns=2 patch=2 d=5
c=1 rows=3 columns=2 patch=2 d=3
"""
OF_FEW_TOKENS = """
c=3 rows=3 columns=2 patch=1 d=6
c=3 rows=1 columns=2 patch=3 d=6
c=3 rows=1 columns=1 patch=2 d=12
c=2 rows=2 columns=1 patch=3 d=3
c=1 rows=1 columns=3 patch=2 d=2
c=1 rows=1 columns=2 patch=1 d=1
"""
TOKEN_BATCHES = """
c=2 rows=4 columns=3 patch=2 d=5 | 3
c=2 rows=2 columns=3 patch=2 d=7 | 4
c=2 rows=3 columns=2 patch=2 d=7 | 4
c=2 rows=2 columns=3 patch=2 d=5 | 8
c=2 rows=2 columns=3 patch=2 d=5 | 7
c=2 rows=2 columns=3 patch=2 d=3 | 3
c=2 rows=2 columns=3 patch=2 d=3 | 2
"""
EMBED = row("c=3 rows=2 columns=5 patch=2 d=7", batch=(2,))

MAP_CASES = CaseTable(
    {"weights": "... height*width", "height": Count("height"), "width": Count("width")},
    how=shares_of,
)
MAP_ROWS = standard(MAP_CASES, height=3, width=5)
MAP_BY_HAND = Case((tensor([0.5, 0.1, 0.2, 0.1, 0.1, 0, 0]), 2, 3), note="half of it on itself")
ALMOST_ALL = Case(
    (tensor([0.999, 1e-4, 2e-4, 3e-4, 4e-4, 0, 0]), 3, 2), note="almost all on itself"
)

# --- decisions -------------------------------------------------------------------------------


def in_front(first, tokens):
    return torch.cat([first, tokens], -2)


@composition
def embedding(
    cut=vision.patchify,
    project=lambda patches, weight, bias: patches @ weight + bias,
    first=lambda token, tokens: token.expand(*tokens.shape[:-2], 1, -1),
    join=in_front,
    place=lambda x, positions: x + positions,
    finish=lambda x, bias, positions: x,
):
    """``embed_image`` made of decisions."""

    def embed_image(images, patch, weight, bias, class_token, positions):
        tokens = project(cut(images, patch), weight, bias)
        x = place(join(first(class_token, tokens), tokens), positions)
        return finish(x, bias, positions)

    return embed_image


@composition
def laying(
    own=lambda weights: weights[..., 1:],
    share=lambda rest, weights: rest / rest.sum(-1, keepdim=True),
    lay=lambda shares, height, width: shares.unflatten(-1, (height, width)),
    finish=lambda picture: picture,
):
    """``attention_on_image`` made of decisions."""

    def attention_on_image(weights, height, width):
        return finish(lay(share(own(weights), weights), height, width))

    return attention_on_image


def spread_out(shares):
    """From 0 to 1 over the image."""
    low = shares.amin(-1, keepdim=True)
    return (shares - low) / (shares.amax(-1, keepdim=True) - low)


EMBED_IMAGE = exercise(
    vision.embed_image,
    section="Chapter 15, “A token that reads the others”",
    difficulty=3,
    minutes=20,
    criteria=(
        EMBED_CASES.criterion("class token first, then the patches, plus positions", 4).on(
            EMBED_BY_HAND,
            *rows_of(OF_TOKENS),
        ),
        EMBED_CASES.criterion("one pixel, one patch, one feature; a part of 0", 1).on(
            *rows_of(OF_FEW_TOKENS),
            *(
                EMBED.but(zero=zero, note=f"{', '.join(zero)} of 0")
                for zero in (("weight", "bias"), ("bias",), ("class_token",), ("positions",))
            ),
            row("c=3 rows=1 columns=1 patch=3 d=5", note="one patch"),
        ),
        EMBED_CASES.criterion("batches", 1).on(*EMBED_ROWS.contiguous, *rows_of(TOKEN_BATCHES)),
        EMBED_CASES.criterion(SCATTERED, 1).on(*EMBED_ROWS.not_contiguous),
        EMBED_CASES.criterion("float32 and large entries", 1).on(
            *EMBED_ROWS.numbers, once_more(EMBED_BY_HAND)
        ),
        EMBED_CASES.criterion("gradients reach the image and every parameter", 1).on(
            EMBED.but(use=EACH, note="a batch of 2, each gradient alone"),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        embedding,
        mistake("""the class token stands last
            You append the class token. It comes first, and so does its row of positions.
        """).by(join=lambda first, tokens: torch.cat([tokens, first], -2)),
        mistake("""the class token has no position
            You add positions to the patches and put the class token in front afterwards. It has a
            row of positions too, row 0: first join, then add.""")
        .by(place=lambda x, positions: in_front(x[..., :1, :], x[..., 1:, :] + positions[1:]))
        .by(place=lambda x, positions: in_front(x[..., :1, :], x[..., 1:, :] + positions[:-1])),
        mistake("""the last position for the class token
            You give positions 0 to n − 1 to the patches and the last one to the class token. The
            class token has position 0, the patches those from 1 on.
        """).by(place=lambda x, positions: x + positions.roll(1, 0)),
        mistake("""the patches' positions begin at row 0
            The class token and the first patch both get row 0. The class token has that, and the
            patches those from 1 on: first join, then add.""").by(
            place=lambda x, positions: (
                x + torch.cat([positions[:1], positions[:1], positions[1:-1]])
            )
        ),
        mistake("""positions are added twice
            You add positions to the patches, and again to all tokens. Once is enough.""").by(
            place=lambda x, positions: (
                in_front(x[..., :1, :], x[..., 1:, :] + positions[1:]) + positions
            )
        ),
        mistake("""no positions
            You leave positions out: the patches could stand in any order.
        """).by(place=lambda x, positions: x),
        mistake("""no bias
            You project the patches without the bias.
        """).by(project=lambda patches, weight, bias: patches @ weight),
        mistake("""the bias is added to the class token too
            The class token is no patch: it is not projected and gets no bias.""").by(
            project=lambda patches, weight, bias: patches @ weight,
            finish=lambda x, bias, positions: x + bias,
        ),
        mistake("""no class token
            You return n tokens, those of the patches. A token that belongs to none comes first.""")
        .by(join=lambda first, tokens: tokens, place=lambda x, positions: x + positions[1:])
        .by(join=lambda first, tokens: tokens, place=lambda x, positions: x + positions[:-1]),
        mistake("""the class token in place of the first patch
            You overwrite the first patch. The class token is one more: n + 1 tokens.""").by(
            join=lambda first, tokens: in_front(first, tokens[..., 1:, :]),
            place=lambda x, positions: x + positions[: x.shape[-2]],
        ),
        mistake("""the class token is added to every patch
            You add the class token. It is a token of its own, in front of the others.""").by(
            join=lambda first, tokens: tokens + first, place=lambda x, positions: x + positions[1:]
        ),
        RESHAPED.here(cut=patching(**RESHAPED.ways[0])),
        COLUMN_BY_COLUMN.here(cut=patching(**COLUMN_BY_COLUMN.ways[0])),
        TURNED_INSIDE.here(cut=patching(**TURNED_INSIDE.ways[0])),
        CHANNELS_LAST.here(cut=patching(**CHANNELS_LAST.ways[0])),
        CHANNEL_BY_CHANNEL.here(cut=patching(**CHANNEL_BY_CHANNEL.ways[0])),
        EXCHANGED.here(cut=patching(**EXCHANGED.ways[0])).by(cut=patching(**EXCHANGED.ways[1])),
        mistake("""the weight transposed
            `F.linear` and `nn.Linear` keep a weight as (d_out, d_in). Here it is (c·patch², d):
            `patches @ weight`.
        """).by(project=lambda patches, weight, bias: patches @ weight.T + bias),
        mistake("""the weight reshaped, not transposed
            You give the weight a convolution's shape, (d, c, patch, patch), by `reshape` alone,
            which mixes its rows and columns. Transpose it first: `weight.T.reshape(d, c, patch,
            patch)`.
        """).by(
            project=lambda patches, weight, bias: (
                patches @ weight.reshape(weight.shape[::-1]).T + bias
            )
        ),
        mistake("""the tokens reshaped, not transposed
            Your features come out as (..., d, n), as a convolution leaves them, and `reshape` deals
            them out in the order of memory: a token gets numbers of others. Transpose them.
        """).by(
            project=lambda patches, weight, bias: (x := patches @ weight + bias).mT.reshape(x.shape)
        ),
        mistake("""tokens multiplied by √d
            You scale the tokens by √d, as some language models do. Here nothing is scaled.""")
        .by(finish=lambda x, bias, positions: (x - positions) * x.shape[-1] ** 0.5 + positions)
        .by(finish=lambda x, bias, positions: x * x.shape[-1] ** 0.5)
        .by(project=lambda x, weight, bias: (x @ weight + bias) * len(bias) ** 0.5),
        FROM_THE_FRONT.here(first=lambda token, tokens: token.expand(len(tokens), 1, -1))
        .by(cut=lambda images, patch: vision.patchify(unpacked(images, 4), patch))
        .by(first=lambda token, tokens: token[None])
        .by(join=lambda first, tokens: torch.cat([first, tokens], 1))
        .said(
            "`expand(len(images), 1, -1)` and axis 1 fit exactly one batch axis, "
            "`class_token[None]` none. Any number may come: axis −2, and "
            "`class_token.expand(*tokens.shape[:-2], 1, -1)`."
        ),
    ),
)

ATTENTION_ON_IMAGE = exercise(
    vision.attention_on_image,
    section="Chapter 15, “Where the class token looks”",
    difficulty=2,
    minutes=10,
    criteria=(
        MAP_CASES.criterion("the patches' shares of the attention, in their places", 3).on(
            MAP_BY_HAND,
            *rows_of("height=3 width=5\nheight=5 width=3\nheight=4 width=4"),
        ),
        MAP_CASES.criterion("a class token that looks at itself; one patch, row or column", 1).on(
            ALMOST_ALL,
            row("height=1 width=1", note="one patch"),
            row("height=1 width=17", note="one row of patches"),
            row("height=6 width=1", note="one column of patches"),
        ),
        MAP_CASES.criterion(SCATTERED, 1).on(*MAP_ROWS.not_contiguous),
        MAP_CASES.criterion("batches", 1).on(
            *MAP_ROWS.contiguous,
            *rows_of("height=3 width=5 | 3\nheight=3 width=5 | 5\nheight=3 width=3 | 16"),
            row("height=2 width=3", batch=(7,), note="as many maps as tokens"),
        ),
        MAP_CASES.criterion("float32", 1).on(MAP_ROWS.single, once_more(MAP_BY_HAND)),
        MAP_CASES.criterion("gradients reach the weights", 1).on(*MAP_ROWS.gradients),
        unchanged(),
    ),
    excludes=(
        FLOATS_ONLY,
        ("a row of very * numbers", "A row of an attention map sums to 1."),
        ("height = tokens", "There is one token more than patches."),
        ("tokens = width", "There is one token more than patches."),
        ("entries that cancel", "Attention weights are not negative."),
    ),
    mistakes=made(
        laying,
        mistake("""the shares do not sum to 1
            You leave the class token's own weight out and the others as they are. Divide them by
            their sum.""")
        .by(share=lambda rest, weights: rest)
        .by(share=lambda rest, weights: rest / weights.sum(-1, keepdim=True)),
        mistake("""the last token left out
            You drop the last weight. The class token stands first: `weights[..., 1:]`.
        """).by(own=lambda weights: weights[..., :-1]),
        mistake("""divided by the largest
            Your largest share is 1. Divide by the sum, so that all together are 1.
        """).by(share=lambda rest, weights: rest / rest.amax(-1, keepdim=True)),
        mistake("""spread from 0 to 1
            You take the least weight off and divide by the range, as for a picture's contrast.
            Shares keep their proportions: divide by the sum.""").by(
            share=lambda rest, weights: spread_out(rest)
        ),
        mistake("""divided by 1 minus the class token's weight
            That is the sum of the others only where the row sums to 1 exactly, and its gradient is
            another one. Divide by the sum.
        """).by(share=lambda rest, weights: rest / (1 - weights[..., :1])),
        mistake("""a second softmax
            You send the weights through a softmax. They come from one: divide by the sum.
        """).by(share=lambda rest, weights: rest.softmax(-1)),
        mistake("""one sum for the whole batch
            You divide by the sum over all images. Each row of weights has a sum of its own:
            `sum(-1, keepdim=True)`.""")
        .by(share=lambda rest, weights: rest / rest.sum())
        .by(share=lambda rest, weights: rest / rest.sum(0, keepdim=True)),
        mistake("""a guard in the divisor
            You add a small number to the sum, and the shares no longer sum to 1. The sum is never 0
            here.""")
        .by(share=lambda rest, weights: rest / (rest.sum(-1, keepdim=True) + 1e-6))
        .by_any(
            lambda eps: {"share": lambda rest, weights: rest / (rest.sum(-1, keepdim=True) + eps)},
            Between(1e-9, 1.0),
        ),
        mistake("""patches laid down column by column
            You fill the image column by column. Patches are counted in reading order.
        """).by(lay=lambda shares, height, width: shares.unflatten(-1, (width, height)).mT),
        mistake("""height and width exchanged
            You return (..., width, height). Rows come first.""")
        .by(lay=lambda shares, height, width: shares.unflatten(-1, (width, height)))
        .by(finish=lambda picture: picture.mT),
        mistake("""the image stands on its head
            Your first row of patches lies at the bottom, or the first column at the right. Row 0 is
            the top one, column 0 the left one.""")
        .by(finish=lambda picture: picture.flip(-2))
        .by(finish=lambda picture: picture.flip(-1)),
        SQUARE.here(
            lay=lambda shares, height, width: shares.unflatten(
                -1, square(shares[..., None], 0, 0, 0)
            )
        ).said("You take the root of n for both sides. The image may be higher than wide."),
        mistake("""the shares are not laid over the image
            You return a row (..., n). Cut the last axis into (height, width).
        """).by(lay=lambda shares, height, width: shares),
        mistake("""an average over the heads
            You average over an axis in front of the tokens. Every row gets a picture of its
            own.""")
        .by(finish=lambda picture: picture.mean(-3))
        .by(finish=lambda picture: picture.mean(0)),
        FROM_THE_FRONT.here(lay=lambda shares, height, width: shares.reshape(-1, height, width))
        .by(lay=lambda shares, height, width: shares.reshape(len(shares), height, width))
        .by(lay=lambda shares, height, width: shares.reshape(height, width))
        .said(
            "`reshape(-1, height, width)` makes one batch axis of none or of several. Keep them: "
            "`shares.unflatten(-1, (height, width))`."
        ),
    ),
)

EXERCISES = (PATCHIFY, UNPATCHIFY, EMBED_IMAGE, ATTENTION_ON_IMAGE, WINDOW_PARTITION)

VARIANTS = (
    Variant(
        "channels_last",
        "An image is `(..., H, W, c)` here: the **channels come last**, where in the book they "
        "come "
        "before the rows. A patch is as in the book: channel, row, column.",
        "the channels of an image come last here",
        "Your answer takes images as (..., c, H, W), as the book and its published answers do. In "
        "this assignment they are (..., H, W, c), as matplotlib has them; `x.movedim(-1, -3)` "
        "leads "
        "from these to those.",
        {
            "patchify": Adapter({"images": WITH_CHANNELS_LAST}),
            "unpatchify": Adapter(result=WITH_CHANNELS_LAST, drops=("channels last in the image",)),
            "embed_image": Adapter({"images": WITH_CHANNELS_LAST}),
        },
        rewordings("""
            An image is `(..., c, H, W)`: c channels, H rows, W columns
            → An image is `(..., H, W, c)`: H rows, W columns, c channels
            | `images` | `(..., c, H, W)` | → | `images` | `(..., H, W, c)` |
            | returns | `(..., c, H, W)` | | → | returns | `(..., H, W, c)` | |
            torch.arange(16.0).reshape(1, 4, 4) → torch.arange(16.0).reshape(4, 4, 1)
            Expect the numbers 0 to 7 in order, in two rows
            → Expect the numbers 0 to 7 in order, each on an axis of its own, in two rows
            torch.tensor([[[10.0, 20.0]]]) → torch.tensor([[[10.0], [20.0]]])
            `b, c, H, W = images.shape` → `b, H, W, c = images.shape`
            `*batch, c, H, W = images.shape` → `*batch, H, W, c = images.shape`
            You return (..., c, W, H). Rows → You return (..., W, H, c). Rows
            `x.reshape(*batch, c, H // patch, patch, W // patch, patch)`
            → `x.reshape(*batch, H // patch, patch, W // patch, patch, c)`
            flatten the last three axes, and those two
            → that of the channels next, then flatten the last three axes, and those two
            into the order c, row of patches, row inside, column of patches, column inside
            → into the order row of patches, row inside, column of patches, column inside, c
            You cut well and then flatten with the channels in front
            → You cut well and then flatten as if the channels stood in front
        """),
    ),
)
