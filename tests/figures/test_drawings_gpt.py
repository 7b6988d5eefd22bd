"""Chapter 13's drawings against what they claim."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from attncourse.figures.drawings import gpt as drawings


def texts(diagram) -> list[str]:
    root = ElementTree.fromstring(diagram.svg().replace("&#8203;", ""))
    return ["".join(node.itertext()) for node in root if node.tag.endswith("text")]


def test_each_row_has_its_token_and_a_name():
    picture = drawings.shifted()
    labels = texts(picture)
    assert [word for word in labels if word in drawings.STORY] == list(drawings.STORY)
    assert [word for word in labels if word.startswith("row")] == [f"row {t}" for t in range(6)]


def test_a_cache_leaves_one_row_and_one_key():
    plain, cached = drawings.cached().drawings
    filled = [len(re.findall(r'h20v20h-20Z" class="ad-fill"', p.svg())) for p in (plain, cached)]
    keys = [len(re.findall(r'h20v14h-20Z" class="ad-fill"', p.svg())) for p in (plain, cached)]
    assert filled == [28, 7]
    assert keys == [7, 1]
    assert "28 scores for one token" in texts(plain)
    assert "kept: 6 keys, 6 values" in texts(cached)


def test_the_model_names_its_steps_and_shares_sum_to_1():
    model, chances = drawings.model().drawings
    labels = " ".join(texts(model))
    for step in ("ids", "token + position", "blocks, causal", "logits", "next token"):
        assert step in labels
    assert sum(share for _, share in drawings.CHANCES) == pytest.approx(1, abs=0.02)
    assert texts(chances).count("1/3") == 3


def test_every_drawing_is_described():
    pictures = [drawings.shifted(), *drawings.model().drawings, *drawings.cached().drawings]
    for picture in pictures:
        assert len(picture.says) > 60
