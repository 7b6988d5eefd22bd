"""The start page's playground: any sentence, and the package's weights for it."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from attncourse.figures.moving import playground
from attncourse.figures.moving.playground import (
    ASKED,
    FEATURES,
    GIVEN,
    KNOWN,
    MAX_WORDS,
    OFFERED,
    SENTENCE,
    STRENGTH,
    W_K,
    W_Q,
    W_V,
    dictionary,
    feature_matrix,
    feature_rows,
)
from attncourse.kqv import attention_weights, project
from attncourse.masking import causal_mask, sliding_window_mask
from helpers.figure_reader import FigureReader, needs_browser

VIEWS = ["one: X", "two: Q, K", "three: Q, K, V"]
MASKS = {"none": "none", "causal": "causal", "window": "window of 3"}
WORDS = [*list(dictionary())[::7], "zebra", "Zebra!", "because", "it", "constructor", "__proto__"]


@pytest.fixture
def reader(browser):
    made = FigureReader(browser, playground())
    made.figure.locator(".pg-more summary").click()
    yield made
    assert made.wrong == []
    made.close()


def by_package(tokens, temperature, scale, mask, views) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights and outputs, computed with the functions of the chapters."""
    X, unknown_words = feature_rows(tokens)
    X = torch.tensor(X)
    W = [
        feature_matrix(W_Q, ASKED, STRENGTH),
        feature_matrix(W_K, ASKED),
        feature_matrix(W_V, GIVEN),
    ]
    Q, K, V = (
        project(X, torch.tensor(np.vstack([w, np.zeros((len(unknown_words), w.shape[1]))])))
        for w in W
    )
    if views < 2:
        Q = K = X
    if views < 3:
        V = X
    n = len(tokens)
    masks = {"none": None, "causal": causal_mask(n), "window": sliding_window_mask(n, 3)}
    factor = (1 / K.shape[-1] ** 0.5 if scale else 1) / temperature
    weights = attention_weights(Q, K, masks[mask], scale=factor)
    return weights, weights @ V


def assert_same(computed: dict, *settings) -> None:
    weights, output = by_package(*settings)
    np.testing.assert_allclose(computed["weights"], weights, rtol=0, atol=1e-6)
    np.testing.assert_allclose(computed["output"], output, rtol=0, atol=1e-6)


def write(reader: FigureReader, sentence: str) -> None:
    reader.figure.get_by_label("Sentence").fill(sentence)


def chips(reader: FigureReader) -> list[str]:
    return reader.figure.locator(".am-stage .pg-chip bdi").all_inner_texts()


# --- without a browser ----------------------------------------------------------------------------


def test_equal_bytes_and_it_asks_for_sushi_first():
    html = playground()._repr_html_()
    assert html == playground()._repr_html_()
    weights, output = by_package(SENTENCE.split(), 1.0, True, "none", 2)
    shown = [float(w) for w in re.findall(r"</bdi><b>(\d\.\d\d)</b>", html)]
    np.testing.assert_allclose(shown, weights[4], atol=0.0051)
    assert weights[4].argmax() == 2
    bars = re.findall(r'<th scope="row">(\w+)</th><td>([\d.]+)</td>', html)
    assert {name: float(x) for name, x in bars} == pytest.approx(
        {name: float(output[4, FEATURES.index(name)]) for name, _ in bars}, abs=0.0051
    )


def test_only_unknown_words_have_their_own_feature():
    X, unknown_words = feature_rows(["Sushi,", "zebra", "ZEBRA!", "quux"])
    assert unknown_words == ["zebra", "quux"]
    assert X[0, [FEATURES.index("thing"), FEATURES.index("food")]].tolist() == [STRENGTH] * 2
    assert X[0].sum() == 2 * STRENGTH
    np.testing.assert_array_equal(X[1], X[2])
    assert X[1:].sum(axis=1).tolist() == [STRENGTH] * 3
    assert X[1] @ X[3] == 0


def test_no_word_is_listed_twice():

    words = " ".join(KNOWN.values()).split()
    assert len(words) == len(set(words))


# --- as a reader has it ---------------------------------------------------------------------------


@needs_browser
def test_it_computes_what_the_package_does(reader):
    rng = np.random.default_rng(2)
    for _ in range(60):
        tokens = rng.choice(WORDS, rng.integers(1, MAX_WORDS + 1)).tolist()
        settings = {
            "tokens": tokens,
            "temperature": float(rng.choice([0.1, 0.7, 1, 4])),
            "scale": bool(rng.integers(2)),
            "mask": str(rng.choice(list(MASKS))),
            "views": int(rng.integers(1, 4)),
        }
        computed = reader.compute(settings)
        assert_same(computed, *settings.values())
        np.testing.assert_array_equal(computed["X"], feature_rows(tokens)[0])


@needs_browser
def test_settings_on_the_page_are_computed_and_shown(reader):
    rng = np.random.default_rng(3)
    for views, (mask, label) in zip((3, 1, 2), MASKS.items(), strict=True):
        tokens = rng.choice(WORDS, 7).tolist()
        write(reader, "  ".join(tokens))
        reader.button(VIEWS[views - 1]).click()
        reader.button(label).click()
        scale, temperature = bool(views % 2), views / 2
        reader.figure.get_by_label("÷ √d").set_checked(scale)
        reader.figure.get_by_label("Temperature").fill(str(temperature))
        settings = tokens, temperature, scale, mask, views
        assert_same(reader.now, *settings)
        assert chips(reader) == tokens
        chip = reader.figure.locator(".am-stage .pg-chip").nth(5)
        chip.click()
        weights, output = by_package(*settings)
        shown = reader.figure.locator(".am-stage .pg-chip b").all_inner_texts()
        np.testing.assert_allclose([float(w) for w in shown], weights[5], atol=0.0051)
        bars = reader.figure.locator(".am-stage .pg-gets td:nth-child(2)").all_inner_texts()
        largest = np.sort(output[5].numpy())[::-1][: len(bars)]
        np.testing.assert_allclose([float(x) for x in bars], largest, atol=0.0051)


@needs_browser
def test_it_opens_on_it_and_sushi_with_an_arc_between_them(reader):
    assert "“it” listens most to “sushi” (0.89)" in reader.says
    assert reader.figure.locator(".pg-words path").count() == 1
    reader.button("one: X").click()
    assert "“it” listens most to itself" in reader.says
    assert reader.figure.locator(".pg-words path").count() == 7


@needs_browser
def test_a_pronoun_is_the_query_until_a_word_is_chosen(reader):
    chosen = reader.figure.locator(".am-stage .pg-chip[aria-pressed=true] bdi")
    for sentence, pronoun, heard in zip(
        OFFERED, ("it", "She", "They", "it"), ("sushi", "cat", "woman", "dog"), strict=True
    ):
        reader.figure.get_by_label("or take").select_option(sentence)
        assert reader.figure.get_by_label("Sentence").input_value() == sentence
        assert chosen.inner_text() == pronoun
        assert f"“{pronoun}” listens most to “{heard}”" in reader.says
    write(reader, "The book is new and it was cheap")
    assert "“it” listens most to “book”" in reader.says
    reader.figure.locator(".am-stage .pg-chip").nth(3).click()
    write(reader, "The big book is new and it was cheap")
    assert chosen.inner_text() == "new"  # the word, not its place
    write(reader, "They love it")
    assert chosen.inner_text() == "They"


@needs_browser
def test_it_says_which_words_it_does_not_know(reader):
    write(reader, "The ball does not fit because it is big")
    strange = reader.figure.locator(".am-stage .pg-strange bdi").all_inner_texts()
    assert strange == ["The", "does", "not", "fit", "because"]
    reader.figure.locator(".am-stage .pg-chip").nth(4).click()
    assert "“fit” listens to all words alike: it is not among the words" in reader.says
    write(reader, "She loves music")
    assert "“She” listens to all words alike: none is what it asks for." in reader.says
    summary = reader.figure.locator(".pg-behind summary").inner_text()
    assert f"The {len(dictionary())} words that it knows" in summary


@needs_browser
def test_zero_one_and_forty_words_are_handled(reader):
    write(reader, "   ")
    assert reader.says == "There is no word yet. Write a sentence."
    assert chips(reader) == []
    assert reader.now is None
    write(reader, "sushi")
    assert "One word alone listens to itself" in reader.says
    assert reader.now["weights"] == [[1]]
    forty = [f"word{i}" for i in range(40)]
    write(reader, " ".join(forty))
    assert reader.says.startswith(f"The first {MAX_WORDS} of 40 words are shown.")
    assert chips(reader) == forty[:MAX_WORDS]
    assert_same(reader.now, forty[:MAX_WORDS], 1.0, True, "none", 2)


@needs_browser
@pytest.mark.parametrize(
    "sentence",
    [
        "<img src=x onerror=alert(1)> <script>alert(2)</script> &amp; it",
        "החתול אכל את הדג it",
        "🦊 !!! ?? __proto__ constructor toString NaN 1e999",
        "a" * 400 + " it sushi",
        "é e\u0301 \u202egnp.exe",
    ],
)
def test_markup_other_scripts_and_odd_words_are_words(browser, sentence):
    reader = FigureReader(browser, playground(), width=390)
    for view in VIEWS:
        write(reader, sentence)
        reader.button(view).click()
        assert len(chips(reader)) == len(sentence.split())
        weights = np.array(reader.now["weights"])
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-9)
        assert "NaN" not in reader.says
        assert "undefined" not in reader.figure.inner_text()
        assert reader.overflow() <= 0
    assert (
        reader.page.locator(
            ".attncourse-moving :is(img, script:not(:nth-last-child(-n+2)))"
        ).count()
        == 0
    )
    assert reader.wrong == []
    reader.close()


@needs_browser
def test_a_right_to_left_sentence_is_laid_out_right_to_left(reader):
    write(reader, "החתול אכל את")
    first, second = (reader.figure.locator(".am-stage .pg-chip").nth(i) for i in (0, 1))
    assert first.bounding_box()["x"] > second.bounding_box()["x"]


@needs_browser
def test_it_works_by_keyboard_alone(reader):
    reader.button("two: Q, K").focus()
    reader.page.keyboard.press("ArrowRight")
    assert reader.button("three: Q, K, V").get_attribute("aria-pressed") == "true"
    assert len(reader.now["names"]) == len(GIVEN)
    chip = reader.figure.locator(".am-stage .pg-chip").nth(7)
    chip.focus()
    reader.page.keyboard.press("Enter")
    assert reader.says.startswith("“happy” listens most to “I”")
    assert reader.page.evaluate("() => document.activeElement.innerText").startswith("happy")
    reader.figure.get_by_label("Temperature").focus()
    reader.page.keyboard.press("Home")
    weights, _ = by_package(SENTENCE.split(), 0.1, True, "none", 3)
    np.testing.assert_allclose(reader.now["weights"], weights, atol=1e-6)


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_has_room_for_sixteen_words(browser, scheme):
    reader = FigureReader(browser, playground(), width=390, color_scheme=scheme)
    write(reader, " ".join(["incomprehensibilities"] * 3 + ["it", "sushi"] * 9))
    for summary in reader.figure.locator(".am-stage summary").all():
        summary.click()
    assert reader.overflow() <= 0
    assert reader.small_text() == []
    reader.close()


@needs_browser
def test_without_scripts_and_on_paper_it_shows_the_first_state(browser):
    still = FigureReader(browser, playground(), java_script_enabled=False)
    assert "the sentence is yours" in still.page.inner_text(".am-still")
    assert still.page.locator(".pg-chip:visible").count() == 8
    assert not still.page.is_visible("input")
    assert "“it” asks for a thing" in still.page.inner_text("[role=status]")
    still.close()
    printed = FigureReader(browser, playground())
    write(printed, "other words")
    printed.page.emulate_media(media="print")
    printed.page.wait_for_selector(".am-first")
    assert printed.page.locator(".am-first .pg-chip:visible").count() == 8
    assert not printed.page.is_visible(".am-stage")
    printed.close()
