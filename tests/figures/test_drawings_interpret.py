"""Chapter 14's drawings against what they claim: the score that is shown, the place of the note."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import torch

from attncourse.figures.drawings import interpret as drawings
from attncourse.figures.drawings.interpret import ASKS, FOLLOWS, ROW, SEQUENCE, STORY
from attncourse.interpret import head_scores, induction_pattern


def words(diagram) -> list[str]:
    svg = ElementTree.fromstring(diagram.svg().replace("&#8203;", ""))
    return ["".join(node.itertext()) for node in svg.iter() if node.tag.endswith("text")]


def test_the_score_in_the_drawing_is_that_of_its_row():
    n = len(STORY)
    maps = torch.zeros(1, 1, n, n)
    maps[0, 0, -1] = torch.tensor(ROW)
    pattern = torch.zeros(n, n, dtype=torch.bool)
    pattern[-1, 0] = True
    assert sum(ROW) == pytest.approx(1)
    score = head_scores(maps, pattern).item()
    assert f"score = {score:.2f}" in words(drawings.instruments().drawings[0])


def test_the_arrow_leads_where_the_pattern_is_true():
    kinds = sorted(set(SEQUENCE))
    pattern = induction_pattern(torch.tensor([kinds.index(token) for token in SEQUENCE]))
    assert pattern[ASKS].nonzero().flatten().tolist() == [FOLLOWS]
    note, find = drawings.two_steps().drawings
    for picture in (note, find):
        labels = words(picture)
        assert [w for w in labels if w.startswith("after ")] == [
            f"after {t}" for t in SEQUENCE[:-1]
        ]
    assert f"copy it: next comes {SEQUENCE[FOLLOWS]}" in words(find)
    assert f"b  layer 1: who came after a {SEQUENCE[ASKS]}?" in words(find)
