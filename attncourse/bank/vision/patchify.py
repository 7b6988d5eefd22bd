"""The exercise ``patchify``: images cut into square patches."""

from attncourse import vision
from attncourse.bank.vision.cases import (
    COUNTED_NUMBERS,
    IMAGE_SIDES,
    IMAGE_SIZES,
    IMAGE_SIZES_IN_BATCHES,
    ONE_PATCH,
    PIXEL_ROWS,
    SIZES_THAT_DO_NOT_FIT,
    STRIP_ROWS,
    moving_criteria,
    refusal_criterion,
)
from attncourse.bank.vision.mistakes import (
    ANOTHER_ORDER,
    AXES_FROM_THE_FRONT,
    CHANNEL_BY_CHANNEL,
    CHANNELS_LAST,
    COLUMN_BY_COLUMN,
    LAST_DROPPED,
    ONE_SIDE_TESTED,
    OVERLAPPING_PIECES,
    PIXELS_FAR_APART,
    RESHAPED,
    SIDE_FOR_NUMBER,
    SIDE_NOT_REFUSED,
    SIDES_EXCHANGED,
    SQUARE_ASSUMED,
    TRANSPOSED_INSIDE,
    compose_patchify,
)
from attncourse.checks.exercise import Case, exercise
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Count, normal, row
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"images": f"... c {IMAGE_SIDES}", "patch": Count("patch")}, how=normal)

BY_HAND = Case((COUNTED_NUMBERS.reshape(1, 4, 4), 2), note="four patches of 2 × 2")

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    vision.patchify,
    section="Chapter 15, “An image is a sentence of patches”",
    difficulty=3,
    minutes=20,
    criteria=moving_criteria(
        CASES,
        BY_HAND,
        "patches in reading order, inside one channel, row, column",
        IMAGE_SIZES,
        IMAGE_SIZES_IN_BATCHES,
        (
            *ONE_PATCH,
            *PIXEL_ROWS,
            *STRIP_ROWS,
            row("c=2 rows=5 columns=4 patch=3", turned=True, note="not contiguous in memory"),
        ),
        refusal_criterion(*SIZES_THAT_DO_NOT_FIT),
        c=3,
        rows=5,
        columns=7,
        patch=2,
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_patchify,
        RESHAPED,
        COLUMN_BY_COLUMN,
        TRANSPOSED_INSIDE,
        CHANNELS_LAST,
        CHANNEL_BY_CHANNEL,
        SIDE_FOR_NUMBER,
        SQUARE_ASSUMED,
        OVERLAPPING_PIECES,
        AXES_FROM_THE_FRONT,
        SIDES_EXCHANGED,
        PIXELS_FAR_APART,
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
        SIDE_NOT_REFUSED,
        ONE_SIDE_TESTED,
    ),
)
