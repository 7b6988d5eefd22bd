"""Chapter 8's drawings against what they claim: the page's numbers, the shapes of three maps."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import torch

from attncourse.figures.drawings import cross_attention as drawings
from attncourse.kqv import attention_weights


def parts(diagram) -> ElementTree.Element:
    return ElementTree.fromstring(diagram.svg().replace("&#8203;", ""))


def thicknesses(diagram, colour: str) -> list[float]:
    """Return the widths of the straight lines without an arrow head, in the order of drawing."""
    widths = []
    for node in parts(diagram):
        if node.tag == "path" and re.fullmatch(r"M[\d.,]+L[\d.,]+", node.get("d")):
            style = dict(pair.split(":") for pair in node.get("style").split(";") if pair)
            if style["stroke"] == f"var(--{colour})":
                widths.append(float(style["stroke-width"]))
    return widths


def test_lines_are_as_thick_as_the_pages_weights():
    X = torch.tensor([[1.0, 0, 0], [0, 1, 1]])
    Y = torch.eye(4)[[3, 0, 2, 3, 1]]  # article, person, action, article, animal
    W_q = torch.tensor([[2.0, 0], [0, 2], [0, 1]])
    W_k = torch.tensor([[2.0, 0], [1, 0], [0, 2], [0, 0]])
    expected = attention_weights(X @ W_q, Y @ W_k)  # (2, 5)
    assert np.allclose(drawings.weights(), expected, atol=1e-6)
    across = drawings.two_sequences().drawings[1]
    drawn = torch.tensor(thicknesses(across, "query"))
    assert torch.allclose(drawn, 0.6 + 9 * expected.flatten(), atol=1e-3)
    for weight in expected[expected > 0.1]:
        assert f">{weight:.2f}<" in across.svg()
        assert f"{weight:.2f}" in across.says


def test_maps_have_a_row_per_query_and_a_column_per_key():
    maps = drawings.three_uses().drawings[1]
    cells = [n for n in parts(maps) if n.tag == "rect" and n.get("class") == "ad-thin"]
    n, m = drawings.SOURCE, drawings.TARGET
    assert len(cells) == n * n + m * m + m * n
    hatched = [p for p in parts(maps) if p.tag == "path" and p.get("class") == "ad-thin"]
    assert len(hatched) == m * (m - 1) // 2 + 1  # above the diagonal, and the sample


def test_mean_weights_are_equal_a_querys_are_not():
    mean, by_query = (np.array(thicknesses(d, "value")) for d in drawings.pooling().drawings)
    for drawn in (mean, by_query):
        assert np.isclose(((drawn[:7] - 0.6) / 8).sum(), 1, atol=1e-2)
    assert np.ptp(mean[:7]) == 0
    assert by_query[:7].argmax() == 4


def test_every_drawing_fits_a_phone_and_is_described():
    for picture in (drawings.two_sequences(), drawings.three_uses(), drawings.pooling()):
        for diagram in picture.drawings:
            assert len(diagram.says) > 100
            assert diagram.width <= 340
