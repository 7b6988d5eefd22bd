"""Chapter 6's drawings against the package: the numbers in the circuits, the fan's weights."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from attncourse.figures.drawings import scoring as drawings
from attncourse.scoring import AdditiveScore, BilinearScore, dot_score
from attncourse.tasks.dates import write_date
from attncourse.tasks.days import FORMS, NEW_YEAR


def parts(diagram) -> ElementTree.Element:
    return ElementTree.fromstring(diagram.svg().replace("&#8203;", ""))


def words(diagram) -> list[str]:
    return ["".join(node.itertext()).replace("−", "-") for node in parts(diagram).iter("text")]


def numbers(diagram) -> list[float]:
    return [float(word) for word in words(diagram) if re.fullmatch(r"-?\d+(\.\d+)?", word)]


def score(diagram) -> float:
    return float(next(word for word in words(diagram) if "score" in word).split()[1])


def test_the_dot_product_drawn_is_computed_right():
    query, key, products = torch.tensor(numbers(drawings.dot())).reshape(3, 2)
    assert torch.equal(products, query * key)
    assert score(drawings.dot()) == dot_score(query[None], key[None]).item()


def test_the_bilinear_score_drawn_is_computed_right():
    drawn = torch.tensor(numbers(drawings.bilinear()))
    key, query, matrix = drawn[None, :3], drawn[None, 3:5], drawn[5:].reshape(2, 3)
    module = BilinearScore(2, 3)
    module.load_state_dict({"W": matrix})
    assert score(drawings.bilinear()) == module(query, key).item() != 0


def test_the_additive_score_drawn_is_computed_right():
    query, key, left, right, total, hidden = torch.tensor(numbers(drawings.additive())).reshape(
        6, 2
    )
    module = AdditiveScore(2, 2, 2)
    matrices = torch.eye(2), torch.diag(right / key)
    module.load_state_dict({
        "W_q.weight": matrices[0], "W_k.weight": matrices[1], "w.weight": torch.ones(1, 2),
    })  # fmt: skip
    assert torch.equal(module.W_q(query), left)
    assert torch.equal(left + right, total)
    torch.testing.assert_close(hidden, total.tanh(), atol=0.005, rtol=0)
    drawn = module(query[None], key[None]).item()
    assert score(drawings.additive()) == pytest.approx(drawn, abs=1e-6)


def test_queries_and_keys_keep_their_colours():
    paths = [p for p in parts(drawings.additive()).iter("path") if "--" in p.get("style")]
    starts = [(p.get("style"), float(p.get("d")[1:].split(",")[0])) for p in paths]
    places_by_side = {
        side: [x for style, x in starts if f"--{side}" in style] for side in ("query", "key")
    }
    assert (
        len(places_by_side["query"]) == len(places_by_side["key"]) == 4
    )  # two arrows, each a line and a head
    assert max(places_by_side["query"]) < min(places_by_side["key"])


def test_a_day_is_read_and_its_translation_written():
    read, iso = write_date(NEW_YEAR + 62, FORMS[0])
    without, with_attention = drawings.bottleneck().drawings
    for diagram in (without, with_attention):
        single = [word.replace("␣", " ") for word in words(diagram) if len(word) == 1]
        assert "".join(single[1::2]) == read
        assert "".join(single[::2]) == iso[5:]


def test_the_fan_is_as_thick_as_its_weights():
    def values(diagram):
        return [
            float(re.search(r"stroke-width:([\d.]+)", node.get("style"))[1])
            for node in parts(diagram).iter("path")
            if "--value" in node.get("style", "") and "stroke-width" in node.get("style", "")
        ]

    without, with_attention = drawings.bottleneck().drawings
    assert values(without) == []
    *fan, _ = values(with_attention)  # the last leads on to the decoder
    assert sum(drawings.KEY_WEIGHTS) == pytest.approx(1)
    assert np.argsort(fan).tolist() == np.argsort(drawings.KEY_WEIGHTS).tolist()
    assert drawings.READ[int(np.argmax(fan))] == "m"
