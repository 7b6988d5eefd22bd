"""Chapter 9's drawings against what they claim: numbers by PyTorch, the triangle by geometry."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import torch
from matplotlib.path import Path

from attncourse.figures.drawings import multihead as drawings
from attncourse.figures.drawings.multihead import FILLS, HEAD_TOKENS
from attncourse.multihead import split_heads


def parts(diagram) -> ElementTree.Element:
    return ElementTree.fromstring(diagram.svg().replace("&#8203;", ""))


def style(node) -> dict[str, str]:
    return dict(pair.split(":") for pair in node.get("style", "").split(";") if pair)


def squares(diagram) -> list[tuple[int, float, str]]:
    """Return (number, y, colour) of each square, in the order of drawing."""
    numbered_squares, colour = [], None
    for node in parts(diagram):
        if node.tag == "rect" and style(node)["stroke"] == "none":
            colour = style(node)["fill"]
        elif node.tag == "text" and node.text.isdigit():
            numbered_squares.append((int(node.text), float(node.get("y")), colour))
    return numbered_squares


def test_squares_stand_where_torch_puts_the_numbers():
    x = torch.arange(12).reshape(2, 6)
    right, wrong = drawings.split().drawings
    ways = {
        right: (x, x.unflatten(-1, (3, 2)), split_heads(x.double(), 3)),
        wrong: (x, x.reshape(3, 2, 2)),
    }
    for diagram, steps in ways.items():
        drawn = [number for number, _, _ in squares(diagram)]
        assert drawn == [int(number) for step in steps for number in step.flatten()]


def test_a_head_has_one_colour_in_the_right_way_only():
    def colours_of_blocks(diagram):
        last = squares(diagram)[-12:]
        return [{colour for _, _, colour in last[i : i + 4]} for i in (0, 4, 8)]

    right, wrong = drawings.split().drawings
    assert colours_of_blocks(right) == [{fill} for fill, _ in FILLS]
    assert all(len(colours) == 2 for colours in colours_of_blocks(wrong))


def test_each_direction_separates_the_two_orders_but_for_a_dot():
    for diagram in drawings.triangle().drawings:
        nodes = parts(diagram)
        area = next(node for node in nodes if node.get("class") == "ad-fill")
        corners = [[float(a) for a in p.split(",")] for p in re.findall(r"[\d.]+,[\d.]+",
                                                                      area.get("d"))]  # fmt: skip
        dots = [node for node in nodes if node.tag == "circle" and node.get("r") == "4.5"]
        wrong = []
        for node in dots:
            at = np.array([float(node.get("cx")), float(node.get("cy"))])
            inward = at + 0.02 * (np.mean(corners, axis=0) - at)  # dots lie on the rim
            says_z = Path(corners).contains_point(inward)
            needs_z = style(node)["fill"] != "var(--page)"
            wrong += [at] if says_z != needs_z else []
        cross = next(node for node in nodes if style(node).get("stroke") == "var(--key)")
        start = [float(a) for a in re.match(r"M([\d.]+),([\d.]+)", cross.get("d")).groups()]
        assert len(dots) == 4
        assert len(wrong) == 1
        assert np.allclose(wrong[0], np.add(start, 9))


def test_each_head_of_the_example_finds_another_word_for_makes():
    maps = drawings.example_maps()
    assert maps.shape == (3, 4, 4)
    assert np.allclose(maps.sum(axis=-1), 1)
    assert [HEAD_TOKENS[j] for j in maps[:, HEAD_TOKENS.index("makes")].argmax(-1)] == [
        "it",
        "me",
        "happy",
    ]
    assert maps[:, 1].max(axis=-1).min() > 0.9


def test_words_of_drawings_stay_inside():
    for picture in (drawings.in_parallel(), drawings.triangle(), drawings.split()):
        for diagram in picture.drawings:
            assert len(diagram.says) > 100
            assert diagram.width <= 340
