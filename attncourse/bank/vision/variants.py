"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import CHANNELS_LAST as WITH_CHANNELS_LAST
from attncourse.checks.variants.variant import Variant, rewordings

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
