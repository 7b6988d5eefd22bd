"""Small cases of chapter 15: images of few pixels, whole numbers."""

import torch

from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor


def numbers_from_1(*shape: int) -> torch.Tensor:
    """Return a tensor of the numbers from 1 on."""
    numbers = torch.arange(1, torch.Size(shape).numel() + 1)
    return numbers.reshape(shape).double()


def patchify_cases() -> list[Case]:
    """Return cases of ``patchify``: two patches beside each other, and a side that is odd."""
    return [
        Case((numbers_from_1(1, 2, 4), 2)),
        Case((numbers_from_1(2, 2, 4), 2)),
        Case((numbers_from_1(1, 3, 4), 2), raises=ValueError),
        Case((numbers_from_1(1, 4, 3), 2), raises=ValueError),
    ]


def window_partition_cases() -> list[Case]:
    """Return cases of ``window_partition``: two windows, and a side that is odd."""
    return [
        Case((numbers_from_1(2, 4, 1), 2)),
        Case((numbers_from_1(4, 2, 1), 2)),
        Case((numbers_from_1(2, 4, 2), 2)),
        Case((numbers_from_1(4, 4, 1), 2)),
        Case((numbers_from_1(3, 4, 1), 2), raises=ValueError),
        Case((numbers_from_1(4, 3, 1), 2), raises=ValueError),
    ]


def attention_on_image_cases() -> list[Case]:
    """Return cases of ``attention_on_image``: a class token and four patches, in two images."""
    weights = ((0.5, 0.2, 0.1, 0.1, 0.1), (0.2, 0.4, 0.2, 0.2, 0.0))
    return [Case((tensor(weights), 2, 2)), Case((tensor(weights[:1]), 2, 2))]


CASES = {
    "vision.patchify": patchify_cases,
    "vision.window_partition": window_partition_cases,
    "vision.attention_on_image": attention_on_image_cases,
}
