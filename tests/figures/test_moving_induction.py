"""Chapter 14's moving figure: whatever a reader types, ``induction_pattern``'s row."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

from attncourse.figures import moving
from attncourse.figures.moving.induction_steps import induction_row
from attncourse.interpret import induction_pattern
from helpers.figure_reader import FigureReader, needs_browser

WORDS = ["7", "2", "9", "4", "7", "2", "9"]
TYPED_TOKENS = [
    WORDS,
    ["a", "a"],
    ["a", "b"],
    ["a", "b", "a", "b", "a", "c", "a"],
    ["x", "x", "x", "x"],
    list("abcdefga"),
]


@pytest.fixture
def reader(browser):
    made = FigureReader(browser, moving.induction_steps(WORDS, 4))
    yield made
    assert made.wrong == []
    made.close()


def control(reader: FigureReader, name: str):
    return reader.figure.locator(f'.am-stage [data-part="{name}"]')


def expected_weights(tokens: list[str], asks: int) -> np.ndarray:
    ids = torch.tensor([tokens.index(token) for token in tokens])
    row = induction_pattern(ids)[asks].double()
    return (row / max(1, row.sum())).numpy()


@pytest.mark.parametrize("tokens", TYPED_TOKENS, ids=" ".join)
def test_the_row_of_weights_is_the_packages(tokens):
    for asks in range(len(tokens)):
        np.testing.assert_allclose(
            induction_row(tokens, asks), expected_weights(tokens, asks), atol=1e-12
        )


def test_equal_arguments_equal_bytes_and_no_markup_of_words():
    html = moving.induction_steps(["<b>", "</b>", "<b>"], 2)._repr_html_()
    assert html == moving.induction_steps(["<b>", "</b>", "<b>"], 2)._repr_html_()
    assert "<b>" not in html
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert json.loads(data)["tokens"] == ["<b>", "</b>", "<b>"]
    assert "After “7” comes “2”, with a share of 1.00." in moving.induction_steps(WORDS, 4).says


@pytest.mark.parametrize(
    ("tokens", "asks", "message"),
    [
        (["a"], 0, "expected 2 to 12 words"),
        (["a"] * 13, 0, "expected 2 to 12 words"),
        ("a b", 0, "expected 2 to 12 words"),
        (["a", "b c"], 0, "words of 1 to 8 letters"),
        (["a", ""], 0, "words of 1 to 8 letters"),
        (["a", "b" * 9], 0, "words of 1 to 8 letters"),
        (["a", 3], 0, "words of 1 to 8 letters"),
        (WORDS, 7, "expected a token from 0 to 6, got 7"),
        (WORDS, True, "expected a token from 0 to 6, got True"),
    ],
)
def test_bad_input_is_refused(tokens, asks, message):
    with pytest.raises(ValueError, match=message):
        moving.induction_steps(tokens, asks)


@needs_browser
def test_what_the_script_computes_is_the_packages(reader):
    for tokens in TYPED_TOKENS:
        for asks in range(len(tokens)):
            computed = reader.compute({"tokens": tokens, "asks": asks})
            np.testing.assert_allclose(
                computed["weights"], expected_weights(tokens, asks), atol=1e-6
            )
            for word, share in zip(computed["words"], computed["shares"], strict=True):
                share_of_word = sum(
                    w for w, t in zip(computed["weights"], tokens, strict=True) if t == word
                )
                assert share == pytest.approx(share_of_word)


@needs_browser
def test_words_are_typed_chosen_and_stepped_through(reader):
    assert reader.says == "After “7” comes “2”, with a share of 1.00."
    control(reader, "words").fill("a b a c a")
    assert reader.says == "After “a” comes “b”, with a share of 0.50."
    reader.button("1 · write notes").click()
    assert reader.says == "Layer 0: each token notes who stood before it."
    assert "0.50" not in reader.figure.locator("tbody").inner_text()
    reader.button("1 · write notes").press("ArrowRight")
    assert "looks where the note says “after a”" in reader.says
    assert "0.50" in reader.figure.locator("tbody").inner_text()
    reader.button("b").click()
    assert reader.says == "“b” has not come before: there is nothing to copy."
    reader.button("b").press("ArrowRight")
    assert "“a” looks" in reader.says
    control(reader, "words").fill("one")
    assert reader.says.startswith("Please type 2 to 12 words")
    assert reader.figure.locator("thead button").count() == 5


@needs_browser
def test_the_first_state_is_the_same_with_and_without_a_script(reader):
    cells = """(root, stage) => [...root.querySelectorAll(stage + " :is(td, th)")]
        .map(cell => cell.textContent)"""
    drawn = reader.figure.evaluate(cells, ".am-stage")
    reader.page.emulate_media(media="print")
    reader.figure.locator(".am-first").wait_for(state="attached")
    assert reader.figure.evaluate(cells, ".am-first") == drawn


@needs_browser
def test_it_fits_a_phone(browser):
    phone = FigureReader(browser, moving.induction_steps(["longword"] * 12, 4), width=390)
    wide = "() => document.documentElement.scrollWidth"
    assert phone.page.evaluate(wide) <= 390
    phone.close()
