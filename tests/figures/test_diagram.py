"""Drawings: what they hold, how they refuse, and that they need nothing from outside."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from attncourse.figures.diagram import WIDEST, Diagram, beside
from attncourse.figures.ink import Place, lowered


def drawing(**more) -> Diagram:
    return Diagram("a title", "what it shows", **more)


def parsed_svg(diagram: Diagram) -> ElementTree.Element:
    return ElementTree.fromstring(diagram.svg().replace("&#8203;", ""))


def text_labels(diagram: Diagram) -> list[str]:
    return ["".join(node.itertext()) for node in parsed_svg(diagram).iter("text")]


def test_a_drawing_says_what_it_shows_and_holds_its_labels():
    picture = drawing()
    picture.box(10, 10, "Q", "(n, d_k)", "query")
    picture.text(100, 150, "<b> & more")
    root = parsed_svg(picture)
    assert root.get("role") == "img"
    assert root.get("aria-label") == "what it shows"
    assert text_labels(picture) == ["Q", "(n, dk)", "<b> & more"]


def test_cells_are_dark_by_weight_and_hatched_if_masked():
    weights, masked = np.array([[0.25, 0.75], [1.0, 0.0]]), [[False, False], [False, True]]
    picture = drawing()
    picture.matrix(40, 40, weights, shade=True, masked=masked, form=".2f")
    shades = [
        float(node.get("fill-opacity"))
        for node in parsed_svg(picture).iter("rect")
        if node.get("class") == "ad-weight"
    ]
    assert shades == [0.25, 0.75, 1.0]
    assert text_labels(picture) == ["0.25", "0.75", "1.00"]
    assert len(list(parsed_svg(picture).iter("path"))) == 1  # the hatching


@pytest.mark.parametrize("towards", [(100, 20), (20, 100), (-60, 20), (20, -60), (90, 77)])
def test_an_arrow_leaves_a_box_at_its_rim(towards):
    place = Place(0, 0, 40, 40)
    x, y = place.edge(towards, gap=0)
    assert max(abs(x - 20), abs(y - 20)) == pytest.approx(20)
    assert (x - 20) * (towards[1] - 20) == pytest.approx((y - 20) * (towards[0] - 20))


def test_subscripts_and_superscripts_are_drawn():
    assert re.sub(r"<[^>]*>|&#8203;", "", lowered("Q K^T/√d_{model} <")) == "Q KT/√dmodel &lt;"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda d: d.box(300, 10, "Q"), "outside"),
        (lambda d: d.box(10, 10, "a label that is far too long"), "wider than its box"),
        (lambda d: d.text(5, 20, "long words", anchor="end"), "outside"),
        (lambda d: d.text(50, 20, "small", size=9), "at least 12"),
        (lambda d: d.matrix(10, 10, np.ones((2, 20))), "outside"),
        (lambda d: d.box(10, 10, "Q", role="red"), "one of query, key, value"),
        (lambda d: drawing(width=WIDEST + 1), "at most 340"),
        (lambda d: Diagram("title", " "), "says what it shows"),
    ],
)
def test_unreadable_diagrams_are_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw(drawing())


def test_drawings_side_by_side_load_nothing():
    html = beside(drawing(), drawing())._repr_html_()
    assert html.count("<svg") == 2
    assert html.startswith('<div class="attncourse-diagram')
    assert not re.search(r"https?://(?!www\.w3\.org)|url\(|\bid=", html)
    assert html == beside(drawing(), drawing())._repr_html_()
