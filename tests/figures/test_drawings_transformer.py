"""Chapter 12's drawings: every box is there, and arrows lead as the code computes."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from attncourse.figures.drawings import transformer as drawings

ALL_DRAWINGS = (drawings.block, drawings.grown, drawings.encoder_decoder)


def texts(diagram) -> list[str]:
    root = ElementTree.fromstring(diagram.svg().replace("&#8203;", ""))
    return ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")]


def thick_lines(diagram) -> list[tuple[float, float]]:
    """Return the (start, end) of each thick line, in y: where the residual stream runs."""
    ends = re.findall(r'd="M62,([\d.]+)L62,([\d.]+)"[^>]*stroke-width:3', diagram.svg())
    return [(float(a), float(b)) for a, b in ends]


def boxes_on_the_stream(diagram) -> int:
    """Return the number of boxes on the residual stream, without the first."""
    rects = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', diagram.svg())
    return sum(float(x) < 62 < float(x) + float(w) for x, _, w in rects) - 1


def test_norms_stand_on_the_stream_only_in_post_norm():
    pre, post = drawings.block().drawings
    assert boxes_on_the_stream(pre) == 0
    assert boxes_on_the_stream(post) == 2
    for diagram in (pre, post):
        lines = thick_lines(diagram)
        assert lines[-1][1] == 352
        assert all(a < b for a, b in lines)
        named = [t for t in texts(diagram) if t in ("norm1", "norm2", "attention", "feed-forward")]
        pre_norm_order = ["norm1", "attention", "norm2", "feed-forward"]
        assert named == (
            pre_norm_order if diagram is pre else ["attention", "norm1", "feed-forward", "norm2"]
        )


def test_the_block_grows_by_one_part_each_time():
    stages = drawings.grown().drawings
    assert [stage.title.split(": ")[1] for stage in stages] == list(drawings.DRAWN_PARTS)
    counts = [
        (texts(s)[1:].count("attention"), texts(s)[1:].count("norm"), s.svg().count("a8,8"),
         texts(s)[1:].count("feed-forward"))
        for s in stages
    ]  # fmt: skip
    assert counts == [(1, 0, 0, 0), (1, 0, 2, 0), (1, 1, 2, 0), (1, 2, 4, 1)]


def test_only_the_cross_attention_reads_the_memory():
    left, right = drawings.encoder_decoder().drawings
    assert texts(left).count("memory") == texts(right).count("memory") == 1
    assert [t for t in texts(right) if "attention" in t] == ["self-attention", "cross-attention"]
    reads = [where for memory, where in right.leads() if memory == "memory"]
    assert reads == ["cross-attention"]


@pytest.mark.parametrize("draw", ALL_DRAWINGS)
def test_words_of_drawings_stay_inside(draw):
    for diagram in draw().drawings:
        assert len(diagram.says) > 60
        assert diagram.width <= 340
    assert draw()._repr_html_() == draw()._repr_html_()
