"""The exercise ``embed_image``: an image as tokens."""

import numpy as np
import torch

from attncourse import vision
from attncourse.bank.vision.cases import IMAGE_SIDES, table_rows_of
from attncourse.bank.vision.mistakes import (
    AXES_FROM_THE_FRONT,
    CHANNEL_BY_CHANNEL,
    CHANNELS_LAST,
    COLUMN_BY_COLUMN,
    RESHAPED,
    SIDES_EXCHANGED,
    TRANSPOSED_INSIDE,
    compose_patchify,
    require_axes,
)
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    SCATTERED,
    CaseTable,
    Count,
    Drawn,
    between,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def positions_with_class_token(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return positions for n patches and the class token."""
    return between(rng, (shape[0] + 1, *shape[1:]))


CASES = CaseTable(
    {
        "images": f"... c {IMAGE_SIDES}",
        "patch": Count("patch"),
        "weight": "c*patch*patch d",
        "bias": "d",
        "class_token": "d",
        "positions": Drawn("rows*columns d", positions_with_class_token),
    }
)
ROWS = standard(CASES, c=3, rows=5, columns=7, patch=2, d=11)
EACH_GRADIENT = callers.each_gradient(images=0, weight=2, bias=3, class_token=4, positions=5)
# One row and two patches of one pixel: 10 and 20 times 3, and one number for everything else.
BY_HAND = Case(
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
TOKEN_SIZES = """
c=2 rows=4 columns=3 patch=2 d=5
c=5 rows=2 columns=2 patch=2 d=5
c=4 rows=2 columns=3 patch=2 d=7
c=6 rows=2 columns=3 patch=2 d=4
c=1 rows=2 columns=2 patch=2 d=5
c=1 rows=3 columns=2 patch=2 d=3
"""
FEW_TOKEN_SIZES = """
c=3 rows=3 columns=2 patch=1 d=6
c=3 rows=1 columns=2 patch=3 d=6
c=3 rows=1 columns=1 patch=2 d=12
c=2 rows=2 columns=1 patch=3 d=3
c=1 rows=1 columns=3 patch=2 d=2
c=1 rows=1 columns=2 patch=1 d=1
"""
TOKEN_SIZES_IN_BATCHES = """
c=2 rows=4 columns=3 patch=2 d=5 | 3
c=2 rows=2 columns=3 patch=2 d=7 | 4
c=2 rows=3 columns=2 patch=2 d=7 | 4
c=2 rows=2 columns=3 patch=2 d=5 | 8
c=2 rows=2 columns=3 patch=2 d=5 | 7
c=2 rows=2 columns=3 patch=2 d=3 | 3
c=2 rows=2 columns=3 patch=2 d=3 | 2
"""
BATCH_ROW = row("c=3 rows=2 columns=5 patch=2 d=7", batch=(2,))

# --- decisions and mistakes ----------------------------------------------------------------------


def put_in_front(first, tokens):
    return torch.cat([first, tokens], -2)


@composition
def compose_embed_image(
    cut=vision.patchify,
    project=lambda patches, weight, bias: patches @ weight + bias,
    first=lambda token, tokens: token.expand(*tokens.shape[:-2], 1, -1),
    join=put_in_front,
    place=lambda x, positions: x + positions,
    finish=lambda x, bias, positions: x,
):
    """Return ``embed_image`` made of decisions."""

    def embed_image(images, patch, weight, bias, class_token, positions):
        tokens = project(cut(images, patch), weight, bias)
        x = place(join(first(class_token, tokens), tokens), positions)
        return finish(x, bias, positions)

    return embed_image


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    vision.embed_image,
    section="Chapter 15, “A token that reads the others”",
    difficulty=3,
    minutes=20,
    criteria=(
        CASES.criterion("class token first, then the patches, plus positions", 4).on(
            BY_HAND,
            *table_rows_of(TOKEN_SIZES),
        ),
        CASES.criterion("one pixel, one patch, one feature; a part of 0", 1).on(
            *table_rows_of(FEW_TOKEN_SIZES),
            *(
                BATCH_ROW.but(zero=zero, note=f"{', '.join(zero)} of 0")
                for zero in (("weight", "bias"), ("bias",), ("class_token",), ("positions",))
            ),
            row("c=3 rows=1 columns=1 patch=3 d=5", note="one patch"),
        ),
        CASES.criterion("batches", 1).on(*ROWS.contiguous, *table_rows_of(TOKEN_SIZES_IN_BATCHES)),
        CASES.criterion(SCATTERED, 1).on(*ROWS.not_contiguous),
        CASES.criterion("float32 and large entries", 1).on(*ROWS.numbers, once_more(BY_HAND)),
        CASES.criterion("gradients reach the image and every parameter", 1).on(
            BATCH_ROW.but(use=EACH_GRADIENT, note="a batch of 2, each gradient alone"),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_embed_image,
        mistake("""the class token stands last
            You append the class token. It comes first, and so does its row of positions.
        """).by(join=lambda first, tokens: torch.cat([tokens, first], -2)),
        mistake("""the class token has no position
            You add positions to the patches and put the class token in front afterwards. It has a
            row of positions too, row 0: first join, then add.""")
        .by(place=lambda x, positions: put_in_front(x[..., :1, :], x[..., 1:, :] + positions[1:]))
        .by(place=lambda x, positions: put_in_front(x[..., :1, :], x[..., 1:, :] + positions[:-1])),
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
                put_in_front(x[..., :1, :], x[..., 1:, :] + positions[1:]) + positions
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
            join=lambda first, tokens: put_in_front(first, tokens[..., 1:, :]),
            place=lambda x, positions: x + positions[: x.shape[-2]],
        ),
        mistake("""the class token is added to every patch
            You add the class token. It is a token of its own, in front of the others.""").by(
            join=lambda first, tokens: tokens + first, place=lambda x, positions: x + positions[1:]
        ),
        RESHAPED.here(cut=compose_patchify(**RESHAPED.ways[0])),
        COLUMN_BY_COLUMN.here(cut=compose_patchify(**COLUMN_BY_COLUMN.ways[0])),
        TRANSPOSED_INSIDE.here(cut=compose_patchify(**TRANSPOSED_INSIDE.ways[0])),
        CHANNELS_LAST.here(cut=compose_patchify(**CHANNELS_LAST.ways[0])),
        CHANNEL_BY_CHANNEL.here(cut=compose_patchify(**CHANNEL_BY_CHANNEL.ways[0])),
        SIDES_EXCHANGED.here(cut=compose_patchify(**SIDES_EXCHANGED.ways[0])).by(
            cut=compose_patchify(**SIDES_EXCHANGED.ways[1])
        ),
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
        AXES_FROM_THE_FRONT.here(first=lambda token, tokens: token.expand(len(tokens), 1, -1))
        .by(cut=lambda images, patch: vision.patchify(require_axes(images, 4), patch))
        .by(first=lambda token, tokens: token[None])
        .by(join=lambda first, tokens: torch.cat([first, tokens], 1))
        .said(
            "`expand(len(images), 1, -1)` and axis 1 fit exactly one batch axis, "
            "`class_token[None]` none. Any number may come: axis −2, and "
            "`class_token.expand(*tokens.shape[:-2], 1, -1)`."
        ),
    ),
)
