"""Chapter 16's drawings against what they claim."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from attncourse.figures.drawings import sequences as drawings
from attncourse.sequences import ALPHABET, encode_cdr3


def texts(diagram) -> list[str]:
    root = ElementTree.fromstring(diagram.svg().replace("&#8203;", ""))
    return ["".join(node.itertext()) for node in root if node.tag.endswith("text")]


def test_the_loop_and_its_peptide_are_written_out():
    loop, model = drawings.reading().drawings
    letters = [word for word in texts(loop) if len(word) == 1]
    assert "".join(letters) == drawings.LOOP + drawings.PEPTIDE
    assert set(letters) <= set(ALPHABET)
    assert len(encode_cdr3(drawings.LOOP, 13)) == 13
    assert "schematic, not to scale" in texts(loop)
    assert "".join(word for word in texts(model) if len(word) == 1) == drawings.LOOP
    assert sum(drawings.RESIDUE_WEIGHTS) == pytest.approx(1)
    bars = re.findall(r"M(\d+),(\d+)h16V196h-16Z", model.svg())
    assert [int(x) for x, _ in bars] == [20 + 20 * k for k in range(13)]
    for (_, top), weight in zip(bars, drawings.RESIDUE_WEIGHTS, strict=True):
        assert 196 - int(top) == pytest.approx(180 * weight, abs=0.5)


def test_one_split_cuts_families_and_the_other_does_not():
    number = sum(size for *_, size in drawings.FAMILIES)
    for kind, picture, leaks in zip(
        drawings.TESTED, drawings.splits().drawings, (4, 0), strict=True
    ):
        squares = re.findall(r'h14v14h-14Z"', picture.svg())
        circles = re.findall(r'a7,7 0 1,0 14,0a7,7 0 1,0 -14,0Z?"', picture.svg())
        assert len(squares) == len(drawings.TESTED[kind]) == 5
        assert len(circles) == number - 5
        assert len(drawings.leaking(kind)) == leaks
        assert f"{leaks} of 5 tested have a near-copy in train" in texts(picture)


def test_every_drawing_is_described():
    for picture in (*drawings.reading().drawings, *drawings.splits().drawings):
        assert len(picture.says) > 60
