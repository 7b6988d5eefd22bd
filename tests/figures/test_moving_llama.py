"""Figures that move, chapter 18: what a reader sees is what the package computes."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise

import numpy as np
import pytest

from attncourse.figures import Table, moving
from attncourse.figures.moving.block_today import PART_LABELS, counted
from attncourse.gpt import GPT, GPTConfig
from attncourse.llama import Llama, LlamaConfig, merge_pairs
from attncourse.pretrained.byte_pairs import learn_merges, symbols_of
from attncourse.tasks.training import count_parameters
from helpers.figure_reader import FigureReader, needs_browser

TEXT = "the cat sat on the mat and the rat sat on the cat while the thin hat ran to the theatre"
RANKS = learn_merges([" " + word for word in TEXT.split()], 30)
SIZES = {
    "d_model": 12, "n_heads": 6, "n_kv_heads": 2, "n_layers": 3,
    "d_ff": 17, "n_vocab": 29, "max_length": 11,
}  # fmt: skip
MARKUP_WORD = "<img src=x onerror=alert(1)></script>"
ANSWERS = [
    {"question": "Who?", "pieces": ["She", " did", "."], "written": [0.5, 0.25, 0.9],
     "chances": [[["She", 0.5], ["He", 0.4]], [["was", 0.6], [" did", 0.25]], [[".", 0.9]]]},
    {"question": MARKUP_WORD, "pieces": [MARKUP_WORD, " it"], "written": [0.1, 0.2],
     "chances": [[[MARKUP_WORD, 0.1]], [[" it", 0.2], ["\n", 0.1]]]},
]  # fmt: skip
WEIGHTS = np.random.default_rng(3).normal(size=32)

FIGURES = {
    "word_pieces": lambda: moving.word_pieces(RANKS, " that"),
    "kept_answers": lambda: moving.kept_answers(ANSWERS),
    "four_bits": lambda: moving.four_bits(WEIGHTS),
    "block_today": lambda: moving.block_today(SIZES),
}
every_figure = pytest.mark.parametrize("name", FIGURES)


@every_figure
def test_equal_arguments_equal_bytes_and_nothing_from_outside(name):
    html = FIGURES[name]()._repr_html_()
    assert html == FIGURES[name]()._repr_html_()
    assert " id=" not in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    assert html.count("</script>") == 2
    assert "<img" not in html
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    json.loads(data)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: moving.word_pieces({("a", "b"): 1}), "without a gap"),
        (lambda: moving.word_pieces(RANKS, ""), "1 to 14 bytes"),
        (lambda: moving.word_pieces(RANKS, "a" * 15), "1 to 14 bytes"),
        (lambda: moving.word_pieces(RANKS, "ééééééé" + "a"), "1 to 14 bytes"),
        (lambda: moving.kept_answers([ANSWERS[0] | {"written": [0.5]}]), "as many pieces"),
        (lambda: moving.kept_answers([ANSWERS[0] | {"written": [2, 0, 0]}]), "probabilities"),
        (lambda: moving.kept_answers([ANSWERS[0] | {"written": [math.nan, 0, 0]}]), "probab"),
        (lambda: moving.kept_answers(ANSWERS, 2), "one of 2"),
        (lambda: moving.four_bits([1.0]), "2 to 32"),
        (lambda: moving.four_bits([1.0, 1.0]), "different"),
        (lambda: moving.four_bits([1.0, math.nan]), "NaN"),
        (lambda: moving.four_bits(WEIGHTS, 9), "from 2 to 8"),
        (lambda: moving.four_bits(WEIGHTS, True), "from 2 to 8"),
        (lambda: moving.block_today(SIZES | {"d_ff": 0}), "d_ff"),
        (lambda: moving.block_today({}), "d_model"),
        (lambda: moving.block_today(SIZES | {"n_kv_heads": 4}), "divide"),
        (lambda: Table(("a",), []), "2 to 4"),
        (lambda: Table(("a", "b"), [("1",)]), "2 cells"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_tables_and_words_are_escaped():
    rows = [
        (("no mask", "10_masking.html"), "1.1"),
        ((MARKUP_WORD, MARKUP_WORD), "−10.0"),
        ("none", "–"),
    ]
    table = Table(("decision", "nats"), rows)
    html = table._repr_html_()
    assert "<img" not in html
    assert '<a href="10_masking.html">no mask</a>' in html
    assert html.count('class="at-number"') == 4  # the second column, its head too
    assert str(table).splitlines()[1].split() == ["no", "mask", "1.1"]
    corner = Table(("", "nats"), [("on 11-18", "-1.5e-05")])._repr_html_()
    assert "<thead><tr><td></td><th" in corner  # no header without a name
    assert ">on 11-18<" in corner
    assert ">−1.5e-05<" in corner


def test_the_numbers_of_a_block_are_those_of_the_models():
    """Chapter 13's model, and today's; each change alone changes what it should."""
    old = GPTConfig(29, 11, d_model=12, n_heads=6, n_layers=3, d_ff=48)
    assert counted(SIZES)["all"] == count_parameters(GPT(old))
    today = counted(SIZES, **dict.fromkeys(PART_LABELS, True))
    llama = Llama(LlamaConfig(29, 11, 12, 6, 2, 3, 17))
    assert today["all"] == count_parameters(llama)
    block = llama.blocks[0]
    assert today["attention"] == count_parameters(block.attention)
    assert today["feed-forward"] == count_parameters(block.feed_forward)
    assert today["norms"] == count_parameters(block.norm_1) + count_parameters(block.norm_2)
    plain = counted(SIZES)
    changed = {
        part: {key for key, n in counted(SIZES, **{part: True}).items() if n != plain[key]}
        for part in PART_LABELS
    }
    assert changed == {
        "turned": {"tables", "all"},
        "rms": {"norms", "all"},
        "shared": {"attention", "all"},
        "gated": {"feed-forward", "all"},
        "bare": {"attention", "feed-forward", "all"},
    }


# --- in a browser ---------------------------------------------------------------------------------


@needs_browser
@pytest.mark.parametrize(
    "word", [" that", "that", " theatre", "tttttt", "sat on", " é", "日本", "\t\n", "🙂", "the cat"]
)
def test_a_words_pieces_are_those_of_merge_pairs(opened, word):
    reader = opened(moving.word_pieces(RANKS, " the"))
    rows = reader.compute({"word": word})["rows"]
    assert rows[0] == symbols_of(word)
    assert rows[-1] == merge_pairs(symbols_of(word), RANKS)
    for before, after in pairwise(rows):
        assert "".join(before) == "".join(after)
        assert len(after) < len(before)


@needs_browser
def test_a_typed_word_is_shown_in_pieces_or_refused(opened):
    reader = opened(moving.word_pieces(RANKS, " the"))
    field = reader.figure.get_by_label("A word:")
    field.fill(" theatre")
    pieces = merge_pairs(symbols_of(" theatre"), RANKS)
    assert reader.says.endswith(f"{' + '.join(pieces).replace('Ġ', '␣')}.")
    assert reader.figure.locator(".wp-row").last.inner_text().split() == [
        p.replace("Ġ", "␣") for p in pieces
    ]
    for text, message in (("", "Type a word"), ("x" * 40, "at most 14")):
        field.fill(text)
        assert message in reader.says
        assert field.get_attribute("aria-invalid") == "true"


@needs_browser
def test_an_answer_comes_word_by_word(opened):
    reader = opened(moving.kept_answers(ANSWERS))
    answer = reader.figure.locator("[data-part=answer]")
    assert answer.inner_text() == "She"
    reader.button("Next word").click()
    assert answer.inner_text() == "She did"
    assert "25.0\u00a0%" in reader.says
    assert reader.now == {"together": 0.85, "place": 1}
    reader.button("All").click()
    assert reader.button("All").is_disabled()
    assert "all that was kept" in reader.says
    answer.get_by_role("button", name="She").click()
    assert "50.0\u00a0%" in reader.says
    reader.figure.get_by_label("Question").select_option("1")
    assert answer.inner_text() == MARKUP_WORD
    reader.button("Next word").click()
    assert "↵" in reader.figure.locator("[data-part=rivals]").inner_text()
    reader.button("Again").click()
    assert answer.inner_text() == MARKUP_WORD


@needs_browser
def test_rounded_weights_are_those_of_numpy(opened):
    reader = opened(moving.four_bits(WEIGHTS))
    for bits in range(2, 9):
        reader.figure.locator("[data-part=bits]").fill(str(bits))
        step = np.ptp(WEIGHTS) / (2**bits - 1)
        codes = np.rint((WEIGHTS - WEIGHTS.min()) / step)
        back = WEIGHTS.min() + codes * step
        now = reader.now
        assert now["codes"] == codes.tolist()
        np.testing.assert_allclose(now["back"], back, atol=1e-5)
        off = np.linalg.norm(back - WEIGHTS) / np.linalg.norm(WEIGHTS)
        assert now["off"] == pytest.approx(off, abs=1e-5)
        assert f"{bits} bits, {2**bits} levels" in reader.says
    half = reader.compute({"weights": [0.0, 0.5, 1.5, 2.5, 3.0], "bits": 2})
    assert half["codes"] == [0, 0, 2, 2, 3]  # halves go to the even level


@needs_browser
def test_parts_of_the_block_are_switched_one_by_one(opened):
    reader = opened(moving.block_today(SIZES))
    on: dict[str, bool] = {}
    for part, words in PART_LABELS.items():
        reader.button(words).click()
        on[part] = True
        expected = counted(SIZES, **on)
        assert list(reader.now.values()) == list(expected.values())
        cells = reader.figure.locator("[data-part=numbers] td").all_inner_texts()
        assert cells == [f"{n:,}" for n in expected.values()]
    assert "Today’s block" in reader.says
    assert "fewer heads" not in reader.says
    reader.button("RMS norm").click()
    assert "4 of 5" in reader.says


@needs_browser
@every_figure
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_whole_figure(opened, name, scheme):
    reader = opened(FIGURES[name](), width=390, color_scheme=scheme)
    assert reader.overflow() <= 0
    assert reader.small_text() == []
    assert reader.figure.bounding_box()["height"] <= 800


@needs_browser
@every_figure
def test_without_scripts_it_says_what_would_move(browser, name):
    reader = FigureReader(browser, FIGURES[name](), java_script_enabled=False)
    assert "In a browser that runs scripts" in reader.figure.inner_text()
    reader.close()
