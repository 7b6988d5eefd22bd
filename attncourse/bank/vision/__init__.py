"""The exercises of chapter 15: images as patches, windows, tokens and maps.

Cutting and putting back move numbers and do not change them. So an answer is told by the order of
the axes alone: c channels, r rows and s columns of patches, and in a patch p rows and q columns.
"""

from attncourse.bank.vision import (
    attention_on_image,
    embed_image,
    patchify,
    unpatchify,
    window_partition,
)

EXERCISES = (
    patchify.EXERCISE,
    unpatchify.EXERCISE,
    embed_image.EXERCISE,
    attention_on_image.EXERCISE,
    window_partition.EXERCISE,
)
