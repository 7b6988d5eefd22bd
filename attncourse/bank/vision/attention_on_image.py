"""The exercise ``attention_on_image``: the class token's attention, laid over the image."""

import numpy as np

from attncourse import vision
from attncourse.bank.vision.cases import table_rows_of
from attncourse.bank.vision.mistakes import AXES_FROM_THE_FRONT, SQUARE_ASSUMED, square_grid
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    SCATTERED,
    CaseTable,
    Count,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def weights_with_class_token(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return rows of an attention map; the class token's own weight is not small."""
    weights = rng.uniform(0.2, 1, (*shape[:-1], shape[-1] + 1))
    weights[..., 0] *= shape[-1] / 2
    return weights / weights.sum(-1, keepdims=True)


CASES = CaseTable(
    {"weights": "... height*width", "height": Count("height"), "width": Count("width")},
    how=weights_with_class_token,
)
ROWS = standard(CASES, height=3, width=5)
BY_HAND = Case((tensor([0.5, 0.1, 0.2, 0.1, 0.1, 0, 0]), 2, 3), note="half of it on itself")
ALMOST_ALL = Case(
    (tensor([0.999, 1e-4, 2e-4, 3e-4, 4e-4, 0, 0]), 3, 2), note="almost all on itself"
)

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_attention_on_image(
    weights_of_patches=lambda weights: weights[..., 1:],
    share=lambda rest, weights: rest / rest.sum(-1, keepdim=True),
    lay=lambda shares, height, width: shares.unflatten(-1, (height, width)),
    finish=lambda picture: picture,
):
    """Return ``attention_on_image`` made of decisions."""

    def attention_on_image(weights, height, width):
        return finish(lay(share(weights_of_patches(weights), weights), height, width))

    return attention_on_image


def stretch_to_1(shares):
    """Return the shares moved and stretched, from 0 to 1 over the image."""
    low = shares.amin(-1, keepdim=True)
    return (shares - low) / (shares.amax(-1, keepdim=True) - low)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    vision.attention_on_image,
    section="Chapter 15, “Where the class token looks”",
    difficulty=2,
    minutes=10,
    criteria=(
        CASES.criterion("the patches' shares of the attention, in their places", 3).on(
            BY_HAND,
            *table_rows_of("height=3 width=5\nheight=5 width=3\nheight=4 width=4"),
        ),
        CASES.criterion("a class token that looks at itself; one patch, row or column", 1).on(
            ALMOST_ALL,
            row("height=1 width=1", note="one patch"),
            row("height=1 width=17", note="one row of patches"),
            row("height=6 width=1", note="one column of patches"),
        ),
        CASES.criterion(SCATTERED, 1).on(*ROWS.not_contiguous),
        CASES.criterion("batches", 1).on(
            *ROWS.contiguous,
            *table_rows_of("height=3 width=5 | 3\nheight=3 width=5 | 5\nheight=3 width=3 | 16"),
            row("height=2 width=3", batch=(7,), note="as many maps as tokens"),
        ),
        CASES.criterion("float32", 1).on(ROWS.single, once_more(BY_HAND)),
        CASES.criterion("gradients reach the weights", 1).on(*ROWS.gradients),
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
        compose_attention_on_image,
        mistake("""the shares do not sum to 1
            You leave the class token's own weight out and the others as they are. Divide them by
            their sum.""")
        .by(share=lambda rest, weights: rest)
        .by(share=lambda rest, weights: rest / weights.sum(-1, keepdim=True)),
        mistake("""the last token left out
            You drop the last weight. The class token stands first: `weights[..., 1:]`.
        """).by(weights_of_patches=lambda weights: weights[..., :-1]),
        mistake("""divided by the largest
            Your largest share is 1. Divide by the sum, so that all together are 1.
        """).by(share=lambda rest, weights: rest / rest.amax(-1, keepdim=True)),
        mistake("""spread from 0 to 1
            You take the least weight off and divide by the range, as for a picture's contrast.
            Shares keep their proportions: divide by the sum.""").by(
            share=lambda rest, weights: stretch_to_1(rest)
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
        mistake("""the image stands on its head, or is mirrored
            Your first row of patches lies at the bottom, or the first column at the right. Row 0 is
            the top one, column 0 the left one.""")
        .by(finish=lambda picture: picture.flip(-2))
        .by(finish=lambda picture: picture.flip(-1)),
        SQUARE_ASSUMED.here(
            lay=lambda shares, height, width: shares.unflatten(
                -1, square_grid(shares[..., None], 0, 0, 0)
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
        AXES_FROM_THE_FRONT.here(
            lay=lambda shares, height, width: shares.reshape(-1, height, width)
        )
        .by(lay=lambda shares, height, width: shares.reshape(len(shares), height, width))
        .by(lay=lambda shares, height, width: shares.reshape(height, width))
        .said(
            "`reshape(-1, height, width)` makes one batch axis of none or of several. Keep them: "
            "`shares.unflatten(-1, (height, width))`."
        ),
    ),
)
