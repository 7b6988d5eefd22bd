"""Chapter 17's drawings against what they claim."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from attncourse.figures.drawings import efficient as drawings


def texts(diagram) -> list[str]:
    root = ElementTree.fromstring(diagram.svg().replace("&#8203;", ""))
    return ["".join(node.itertext()) for node in root if node.tag.endswith("text")]


def test_one_tile_is_held_and_the_earlier_ones_are_finished():
    tiles, memory = drawings.walk().drawings
    svg = tiles.svg()
    held = re.findall(r'd="M(\d+),(\d+)h42v42h-42Z"[^>]*class="ad-fill"', svg)
    i, j = drawings.NOW
    assert held == [(str(76 + 48 * j), str(54 + 48 * i))]
    drawn = re.findall(r'<path d="M\d+,\d+h42v42h-42Z"[^>]*>', svg)
    assert len(drawn) == drawings.BLOCKS**2
    finished = [square for square in drawn if "dasharray" not in square and "ad-fill" not in square]
    assert len(finished) == drawings.BLOCKS * i + j
    numbers = [int(word) for word in texts(tiles) if word.isdigit()]
    assert numbers == list(range(1, drawings.BLOCKS**2 + 1))
    caption = " ".join(texts(memory))
    for part in ("a tile of scores", "normaliser", "largest score", "small, fast memory"):
        assert part in caption


def test_the_three_shapes_have_the_cells_that_they_say():
    full, window, product = drawings.shapes().drawings
    n, half = drawings.N, drawings.HALF
    cells = [
        len(re.findall(r'h12v12h-12Z"[^>]*class="ad-fill"', p.svg()))
        for p in (full, window, product)
    ]
    band = sum(min(n, i + half + 1) - max(0, i - half) for i in range(n))
    assert cells == [n * n, band, 2 * n * drawings.RANK]


def test_a_pipe_is_as_wide_as_its_memory_is_fast():
    (picture,) = drawings.memories().drawings
    thick = [float(v) for v in re.findall(r'd="M146,[\d.]+H274v([\d.]+)H146Z"', picture.svg())]
    fastest = drawings.MEMORIES[0][2]
    for wide, (_, _, speed) in zip(thick, drawings.MEMORIES, strict=True):
        assert wide == max(round(thick[0] * speed / fastest, 1), 1)
    assert [word for word in texts(picture) if word.endswith("B")] == [
        "20 MB", "19 TB", "40 GB", "1.5 TB", "12.8 GB",
    ]  # fmt: skip


def test_every_drawing_is_described():
    drawn = drawings.walk(), drawings.shapes(), drawings.memories()
    for picture in (drawing for many in drawn for drawing in many.drawings):
        assert len(picture.says) > 60
