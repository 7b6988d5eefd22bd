"""Chapter 15's drawings against what they claim."""

from __future__ import annotations

import re

import torch

from attncourse.figures.drawings import vision as drawings
from attncourse.tasks.windows import seen_from
from attncourse.vision import patchify


def test_the_three_is_one_of_scikit_learns():
    from sklearn.datasets import load_digits

    loaded = load_digits()
    assert loaded.images[3].astype(int).tolist() == [list(row) for row in drawings.THREE]
    assert loaded.target[3] == 3


def test_the_sentence_holds_the_patches_in_reading_order():
    picture = drawings.cut()
    cells = re.findall(
        r'<rect x="(\d+)" y="(\d+)" width="8" height="8" class="ad-weight" fill-opacity="([\d.]+)"',
        picture.svg(),
    )
    patches = patchify(torch.tensor(drawings.THREE).float()[None], 2)
    shown = torch.tensor([float(ink) for *_, ink in cells]).reshape(16, 4)
    torch.testing.assert_close(shown, patches / 16, atol=0.006, rtol=0)
    lefts = [int(x) for x, *_ in cells[::4]]
    assert lefts == sorted(lefts)


def test_the_windows_drawn_are_those_of_the_layers():
    for layer, picture in enumerate(drawings.windows().drawings):
        filled = {
            ((int(y) - 34) // 25, (int(x) - 29) // 25)
            for x, y in re.findall(r'd="M(\d+),(\d+)h17v17h-17Z" class="ad-fill"', picture.svg())
        }
        expected = seen_from(3, 3, size=8, window=4, layers=1, shift=0)
        if layer:  # the second layer alone
            i = (torch.arange(8) - 2).div(4, rounding_mode="floor") == 0
            expected = i[:, None] & i
        assert filled == {tuple(place) for place in expected.nonzero().tolist()}


def test_the_model_names_its_steps_and_drawings_are_described():
    pictures = [*drawings.model().drawings, *drawings.windows().drawings]
    assert all(len(picture.says) > 60 for picture in pictures)
    for step in ("patches", "projected", "class token + n", "blocks, no mask", "scores"):
        assert step in pictures[1].svg()
