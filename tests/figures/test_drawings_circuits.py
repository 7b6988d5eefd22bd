"""Chapter 19's drawing: the vector is carried to the same block and word of the other run."""

from __future__ import annotations

from xml.etree import ElementTree

from attncourse.figures.drawings import circuits as drawings


def parts(name: str) -> list[ElementTree.Element]:
    svg = ElementTree.fromstring(drawings.patching().svg().replace("&#8203;", ""))
    return [node for node in svg.iter() if node.tag.endswith(name)]


def places_of(word: str) -> list[tuple[float, float]]:
    return [
        (float(node.get("x")), float(node.get("y")))
        for node in parts("text")
        if "".join(node.itertext()) == word
    ]


def test_one_vector_goes_from_a_word_to_the_other_at_one_height():
    (france,), (italy,) = places_of("France"), places_of("Italy")
    dots = [(float(c.get("cx")), float(c.get("cy"))) for c in parts("circle")]
    assert [x for x, _ in dots] == [france[0], italy[0]]
    (_, read), (_, written) = dots
    assert france[1] - read == italy[1] - written > 0  # after the same block
    above = sorted(y for _, y in places_of("block 2"))
    below = sorted(y for _, y in places_of("block 1"))
    for (_, dot), high, low in zip(dots, above, below, strict=True):
        assert high < dot + 6 < low + 6  # between the two blocks


def test_both_runs_read_the_same_words_but_one():
    for word in ("The", "capital", "of", "is"):
        assert len(places_of(word)) == 2
    assert len(places_of("Paris")) == len(places_of("?")) == 1
