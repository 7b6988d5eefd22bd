"""Chapter 20's drawings: what is used how often, where the next word comes, who is chosen."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from attncourse.figures.drawings import serving as drawings


def parts(picture, name: str) -> list[ElementTree.Element]:
    svg = ElementTree.fromstring(picture.svg().replace("&#8203;", ""))
    return [node for node in svg.iter() if node.tag.endswith(name)]


def words(picture) -> list[str]:
    return ["".join(node.itertext()) for node in parts(picture, "text")]


def test_reading_uses_a_weight_as_often_as_there_are_rows():
    read, write = drawings.reading_and_writing().drawings
    for picture, rows in ((read, drawings.READ), (write, 1)):
        cells = [p.get("style") for p in parts(picture, "path") if "fill:" in p.get("style")]
        blue = sum("--query" in style for style in cells)
        assert blue == 2 * rows * drawings.WIDE  # what goes in, and what comes out
        assert len(cells) - blue == drawings.WIDE**2
    assert f"each weight is used {drawings.READ} times" in words(read)
    assert "each weight is used once" in words(write)


@pytest.mark.parametrize("left", [False, True])
def test_left_padding_puts_last_tokens_in_one_column(left):
    picture = drawings.padding().drawings[left]
    last = [
        float(node.get("x")) for node in parts(picture, "text") if "".join(node.itertext()) in "?!"
    ]
    assert len(last) == len(drawings.LINES)
    assert (len(set(last)) == 1) == left
    hatched = [p for p in parts(picture, "path") if p.get("class") == "ad-thin"]
    assert len(hatched) == sum(6 - len(line) for line in drawings.LINES)


def test_the_draft_is_accepted_up_to_its_first_refused_token():
    picture = drawings.guess_and_check()
    labels = [label for label, _ in picture.boxes]
    above, below = labels[:4], labels[5:]
    assert above == list(drawings.DRAFT)
    assert below == [*drawings.DRAFT[: drawings.KEPT], drawings.INSTEAD]
    assert [end for start, end in picture.leads() if start in above] == ["the model"] * 4
    assert [end for start, end in picture.leads() if start == "the model"] == below


def test_only_chosen_experts_work_with_weights_that_sum_to_1():
    picture = drawings.experts()
    chosen = [str(i) for i in drawings.CHOSEN]
    assert picture.leads() == [pair for i in chosen for pair in (("a token", i), (i, "sum"))]
    assert sum(map(float, drawings.CHOSEN.values())) == pytest.approx(1)
    assert len([label for label, _ in picture.boxes if label.isdigit()]) == 8
