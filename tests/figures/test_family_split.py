"""The moving figure of chapter 16 against the package, whatever a reader does."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from attncourse.figures.moving import family_split
from attncourse.figures.moving.family_split import LOOPS, nested
from attncourse.sequences import encode_cdr3, similarity_clusters
from attncourse.tasks.receptor_readers import near_copies
from helpers.figure_reader import needs_browser


def test_equal_arguments_equal_bytes_and_letters_are_escaped():
    words = ["<b>&", '"x', "</script>", "d"]
    html = family_split(words)._repr_html_()
    assert html == family_split(words)._repr_html_()
    assert html.count("</script>") == 2
    assert "<b>&" not in html
    assert " id=" not in html
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert sorted(json.loads(data)["sequences"]) == sorted(words)


def test_clusters_stand_together_at_every_distance():
    assert all(len(encode_cdr3(loop, 14)) == 14 for loop in LOOPS)
    listed = [LOOPS[i] for i in nested(LOOPS)]
    for distance in range(5):
        for cluster in similarity_clusters(listed, distance):
            assert max(cluster) - min(cluster) == len(cluster) - 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sequences": ["A"]}, "2 to 24"),
        ({"sequences": "AAAA"}, "2 to 24"),
        ({"sequences": ["A"] * 25}, "2 to 24"),
        ({"sequences": ["A", ""]}, "1 to 14"),
        ({"sequences": ["A", "C" * 15]}, "1 to 14"),
        ({"sequences": ["A", 3]}, "1 to 14"),
        ({"max_distance": 5}, "0 to 4"),
        ({"max_distance": -1}, "max_distance"),
        ({"test_fraction": 1.0}, "between 0 and 1"),
    ],
)
def test_bad_input_is_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        family_split(**arguments)


@needs_browser
def test_clusters_and_near_copies_are_those_of_the_package(opened):
    reader = opened(family_split())
    rng = np.random.default_rng(2)
    made = ["".join(rng.choice(list("ACD"), rng.integers(1, 7))) for _ in range(13)]
    for sequences in (list(LOOPS), made):
        n = len(sequences)
        for distance in range(5):
            for fraction in (0.2, 0.5):
                keys = rng.permutation(n).tolist()
                computed = reader.compute(
                    {"sequences": sequences, "distance": distance, "keys": keys}
                    | {"fraction": fraction}
                )
                clusters = similarity_clusters(sequences, distance)
                assert computed["count"] == len(clusters)
                for cluster in clusters:
                    assert len({computed["clusters"][i] for i in cluster}) == 1
                    assert len({computed["similar"][i] for i in cluster}) == 1
                largest = max(map(len, clusters))
                assert abs(sum(computed["similar"]) - fraction * n) <= largest
                assert abs(sum(computed["random"]) - fraction * n) <= 0.5
                assert not any(computed["similarLeaks"])
                test = [s for s, is_ in zip(sequences, computed["random"], strict=True) if is_]
                train = [s for s, is_ in zip(sequences, computed["random"], strict=True) if not is_]
                share = sum(computed["leaks"]) / len(test)
                assert share == pytest.approx(near_copies(test, train, distance), abs=1e-6)


@needs_browser
def test_the_slider_moves_by_keyboard_and_says_what_it_shows(opened):
    reader = opened(family_split())
    slider = reader.figure.locator('.am-stage [data-part="distance"]')
    for distance in (2, 3, 4):
        slider.press("ArrowRight")
        count = len(similarity_clusters(LOOPS, distance))
        assert f"At a distance of {distance} there are {count} clusters" in reader.says
    before = reader.now["random"]
    for _ in range(5):
        reader.button("Draw").click()
    assert sum(reader.now["random"]) == sum(before)
    assert "tested at random" in reader.says


@needs_browser
def test_without_a_script_the_clusters_stand_there(opened):
    still, moving = (opened(family_split(), java_script_enabled=on) for on in (False, True))
    cells = [
        r.figure.locator("[data-part=rows] tbody tr td:nth-child(2)").all_inner_texts()
        for r in (still, moving)
    ]
    assert cells[0] == cells[1]
    assert "a slider changes the edit distance" in still.figure.inner_text()


@needs_browser
def test_it_fits_a_phone(opened):
    reader = opened(family_split(), width=360)
    assert reader.overflow() <= 0
    assert reader.small_text() == []
