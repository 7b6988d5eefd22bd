"""Decisions and mistakes that several of the chapter's exercises share."""

from itertools import permutations

import torch
from torch.nn import functional as F

from attncourse.checks.exercise import composition
from attncourse.checks.writing.recipes import mistake


def refuse_side(height, width, side):
    if height % side or width % side:
        raise ValueError("the side of a patch divides height and width")


def assert_side(height, width, side):
    assert height % side == 0
    assert width % side == 0


def accept_any_side(height, width, side):
    pass


def cut_into_blocks(x, p):
    """Return x, ``(..., H, W)``, cut into ``(..., r, p, s, q)``."""
    return x.unflatten(-1, (-1, p)).unflatten(-3, (-1, p))


def crop_to_whole_patches(x, p):
    return x[..., : x.shape[-2] // p * p, : x.shape[-1] // p * p]


def fill_to_whole_patches(x, p):
    return F.pad(x, (0, -x.shape[-1] % p, 0, -x.shape[-2] % p))


def cut_as_square(x, p):
    """Return x cut as if its width were its height."""
    n = x.shape[-2] // p
    return x.reshape(*x.shape[:-2], n, p, n, p)


def cut_into_p_patches(x, p):
    """Return x cut into p patches a side."""
    return x.unflatten(-1, (p, -1)).unflatten(-3, (p, -1))


def cut_every_nth_pixel(x, p):
    """Return x with every (H/p)-th row and (W/p)-th column in a patch."""
    return cut_into_p_patches(x, p).transpose(-4, -3).transpose(-2, -1)


def cut_with_sides_exchanged(x, p):
    """Return x cut into W / p rows and H / p columns."""
    return x.reshape(*x.shape[:-2], x.shape[-1] // p, p, x.shape[-2] // p, p)


def require_axes(x, axes):
    """Return x, unless Python says that it has not so many axes."""
    if axes == 2:
        _, _ = x.shape
    elif axes == 3:
        _, _, _ = x.shape
    else:
        _, _, _, _ = x.shape
    return x


def cut_overlapping_patches(x, p):
    return x.unfold(-2, p, 1).unfold(-2, p, 1).transpose(-3, -2)


def move_axes(x, axes, to):
    return torch.einsum(f"...{axes}->...{to}", x)


def join_to_rows(x):
    """Return ``(..., r, s, c, p, q)`` as ``(..., n, c · patch²)``."""
    return x.flatten(-3).flatten(-3, -2)


def reshape_in_memory_order(x, p):
    """Return the numbers handed out in the order of memory."""
    return x.reshape(*x.shape[:-3], x.shape[-2] * x.shape[-1] // p**2, -1)


def move_with_one_batch_axis(x, to):
    """Return the axes in another order, of x with exactly one batch axis."""
    return torch.einsum(f"bcrpsq->b{to}", x)


@composition
def compose_patchify(
    refuse=refuse_side,
    take=lambda x, p: x,
    cut=cut_into_blocks,
    order="rscpq",
    move=lambda x, to: move_axes(x, "crpsq", to),
    join=join_to_rows,
    finish=lambda patches, images, p: patches,
):
    """Return ``patchify`` made of decisions; ``order`` is that of the axes before the reshape."""

    def patchify(images, patch):
        refuse(images.shape[-2], images.shape[-1], patch)
        x = take(images, patch)
        return finish(join(move(cut(x, patch), order)), x, patch)

    return patchify


def square_grid(patches, p, height, width):
    """Return rows and columns of a square of patches."""
    n = round(patches.shape[-2] ** 0.5)
    return n, n


RESHAPED = mistake("""reshaped in the order of memory
    A reshape alone hands out the numbers row by row across the whole image, so your pieces are
    strips. Cut height and width into two axes each, and let axes change places before you join.
""").by(finish=lambda patches, images, p: reshape_in_memory_order(images, p))
COLUMN_BY_COLUMN = mistake("""patches counted column by column
    Your second patch lies below the first. Reading order goes along the top row first.
""").by(order="srcpq")
TRANSPOSED_INSIDE = mistake("""rows and columns exchanged inside a patch
    In your patches the pixels stand column by column. They go row by row there too.
""").by(order="rscqp")
CHANNELS_LAST = mistake("""channels last inside a patch
    You put the channels of one pixel side by side. A patch holds all pixels of channel 0, then all
    of channel 1: channel, row, column.""").by(order="rspqc")
CHANNEL_BY_CHANNEL = mistake("""the axis of the channels left in front
    You cut well and then flatten with the channels in front, so a row mixes several patches of one
    channel. The channels belong inside the patch: move their axis behind rows and columns.
""").by(order="crspq", join=lambda x: x.reshape(*x.shape[:-5], x.shape[-4] * x.shape[-3], -1))
SIDE_NOT_REFUSED = (
    mistake("""sizes that do not fit are not refused
    `H // patch` rounds down: pixels are lost, or torch fails far from the cause. An `assert` raises
    AssertionError and is skipped under `python -O`. Test both sides, raise ValueError.""")
    .by(refuse=accept_any_side)
    .by(refuse=assert_side)
    .by(refuse=accept_any_side, take=crop_to_whole_patches)
    .by(refuse=accept_any_side, take=fill_to_whole_patches)
)
ONE_SIDE_TESTED = (
    mistake("""not both sides are tested
    You test the height or the width, or whether the pixels are enough for whole patches. Both sides
    must be divisible.""")
    .by(refuse=lambda height, width, side: refuse_side(height, height, side))
    .by(
        *(
            {"refuse": test, "take": take}
            for test in (
                lambda height, width, side: refuse_side(height, height, side),
                lambda height, width, side: refuse_side(width, width, side),
                lambda height, width, side: refuse_side(height * width, 0, side**2),
                lambda height, width, side: refuse_side(height * width, 0, side),
            )
            for take in (lambda x, p: x, crop_to_whole_patches, fill_to_whole_patches)
        )
    )
)
SIDE_FOR_NUMBER = mistake("""the side taken for the number of patches
    You make `patch` rows and columns of patches. It is the side of one, in pixels.
""").by(cut=cut_into_p_patches)
SQUARE_ASSUMED = mistake("""a square image assumed
    You use the height for both sides. There are H / patch rows and W / patch columns of
    patches.""").by(cut=cut_as_square)
OVERLAPPING_PIECES = mistake("""the pieces overlap
    Your patches begin at every pixel. They lie side by side: the step is the side of a patch.
""").by(cut=cut_overlapping_patches)
AXES_FROM_THE_FRONT = (
    mistake("""axes counted from the front
    `b, c, H, W = images.shape` or a `permute` of six axes fits exactly one batch axis, and without
    `b` none. Count from the end, and unpack `*batch, c, H, W = images.shape`.""")
    .by(move=move_with_one_batch_axis)
    .by(finish=lambda patches, images, p: patches.reshape(-1, *patches.shape[-2:]))
    .by(take=lambda x, p: require_axes(x, 4))
    .by(take=lambda x, p: require_axes(x, 3))
)
SIDES_EXCHANGED = (
    mistake("""height and width exchanged
    You cut the image into W / patch rows of H / patch patches. Rows go with the height.""")
    .by(cut=cut_with_sides_exchanged)
    .by(take=lambda x, p: x.mT)
)
LAST_DROPPED = mistake("""the last row and column of patches are left out
    Your loop stops too early: `range(0, H - patch, patch)` ends before the last patch. `range(0, H,
    patch)` reaches it.""").by(take=lambda x, p: x[..., :-p, :-p])


def other_orders(right, *named):
    """Return all other orders of these axes but those that have a name of their own."""
    return tuple(o for o in map("".join, permutations(right)) if o not in (right, *named))


def join_in_order(order):
    """Return the options that take the axes in this order, then reshape once."""
    join = {
        "finish": lambda x, images, p: x.reshape(*images.shape[:-3], -1, images.shape[-3] * p**2)
    }
    return {"order": order} | join


ANOTHER_ORDER = (
    mistake("""the axes are joined in another order
    Your axes change places in another way than is needed before they are joined. Write down the
    order that the result has, the axis that runs fastest last, and permute to that.""")
    .by(join_in_order("rpscq"))
    .by_any(
        join_in_order,
        other_orders("rscpq", "rpscq", "srcpq", "rscqp", "rspqc", "srcqp", "crspq", "crpsq"),
    )
)
PIXELS_FAR_APART = mistake("""patches of pixels that lie far apart
    The axes of patches and of pixels are exchanged: your patches hold every (H / patch)-th row.
    Pixels of one patch are neighbours: `reshape(…, H // patch, patch, W // patch, patch)`.
""").by(cut=cut_every_nth_pixel)
