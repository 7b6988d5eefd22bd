"""Chapter 6's and 8's figures to touch: what they compute is what the package computes."""

from __future__ import annotations

import copy
import json
import re

import numpy as np
import pytest
import torch

from attncourse.figures.drawings import cross_attention as drawings
from attncourse.figures.moving import line_writer, other_sentence
from attncourse.figures.moving.line_writer import right_translation
from attncourse.figures.moving.live_model import round_to_16_bits
from attncourse.kqv import attention_weights
from attncourse.scoring import AdditiveScore, BilinearScore
from attncourse.tasks.characters import to_ids, to_texts
from attncourse.tasks.dates import ISO, WRITTEN
from attncourse.tasks.days import N_IDS, day_lines
from attncourse.tasks.translator import Seq2Seq
from helpers.figure_reader import FigureReader, needs_browser

WORDS = ["The", "man", "walked", "the", "dog"]
MARKUP_WORD = "<img src=x onerror=alert(1)>"
RNG = np.random.default_rng(3)
QUERIES, KEYS, VALUES = np.eye(2), RNG.normal(size=(5, 2)), RNG.normal(size=(5, 3))


def question_figure(
    queries=QUERIES, keys=KEYS, values=VALUES, names=("a?", "b?"), words=WORDS, **more
):
    more = {"features": ("x", "y"), "parts": ("p", "q", "r"), **more}
    return other_sentence(queries, keys, values, names, words, **more)


def translator(seed: int, score=None, d=7) -> Seq2Seq:
    """Return a translator with weights of order one, so that it writes something."""
    torch.manual_seed(seed)
    model = Seq2Seq(*N_IDS, d, score, d_embed=5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(
                torch.from_numpy(round_to_16_bits(torch.randn(parameter.shape).numpy()))
            )
    return model


def translators(seed: int) -> dict[str, Seq2Seq]:
    return {"without": translator(seed), "with": translator(seed, AdditiveScore(7, 14, 3))}


def translator_figure(seed=0, line="3 mar, 18 nov", examples=("the 3rd of march",)):
    return line_writer(translators(seed), WRITTEN, ISO, line, examples)


# --- without a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize("made", [question_figure, translator_figure])
def test_equal_arguments_equal_bytes_and_nothing_from_outside(made):
    html = made()._repr_html_()
    assert html == made()._repr_html_()
    assert " id=" not in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    json.loads(data)


def test_words_are_escaped():
    html = question_figure(
        names=(MARKUP_WORD[:9], "</b>"), words=["<b>x", "&", '"', "y", "z"]
    )._repr_html_()
    assert html.count("</script>") == 2
    assert "<b>x" not in html
    assert "</b>" not in html


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: question_figure(keys=KEYS[:4]), "keys"),
        (lambda: question_figure(queries=np.eye(3)), "queries"),
        (lambda: question_figure(values=VALUES[:, :2]), "values"),
        (lambda: question_figure(queries=5 * QUERIES), "−4 to 4"),
        (lambda: question_figure(keys=KEYS * np.nan), "finite|NaN"),
        (lambda: question_figure(features=("x",)), "2 features"),
        (
            lambda: question_figure(keys=np.ones((7, 2)), values=np.ones((7, 3)), words=["w"] * 7),
            "6 words",
        ),
        (lambda: translator_figure(line=""), "1 to 24"),
        (lambda: translator_figure(line="3 Mar"), "characters"),
        (lambda: translator_figure(examples=["a" * 25]), "1 to 24"),
        (lambda: line_writer({"one": translator(0)}, WRITTEN, ISO, "3 mar"), "2 or 3"),
        (
            lambda: line_writer(
                {"a": translator(0), "b": translator(0, BilinearScore(7, 14))}, WRITTEN, ISO, "x"
            ),
            "AdditiveScore",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_right_answer_is_that_of_the_task():
    lines, _ = day_lines(300, torch.Generator().manual_seed(1))
    assert [right_translation(read) for read, _ in lines] == [iso for _, iso in lines]
    assert right_translation("hello") == ""


def test_the_sentence_says_the_pages_numbers():
    figure = drawings.ask_the_sentence()
    X = torch.tensor([[1.0, 0, 0], [0, 1, 1]])
    Y = torch.eye(4)[[3, 0, 2, 3, 1]]
    W_q = torch.tensor([[2.0, 0], [0, 2], [0, 1]])
    W_k = torch.tensor([[2.0, 0], [1, 0], [0, 2], [0, 0]])
    W_v = torch.tensor([[1.0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_allclose(figure.data["queries"][:2], X @ W_q)
    np.testing.assert_allclose(figure.data["keys"], Y @ W_k)
    np.testing.assert_allclose(figure.data["values"], Y @ W_v)
    assert "“man”, 0.70. The answer: alive 0.88, human 0.70, deed 0.04." in figure._repr_html_()


# --- as a reader has it ---------------------------------------------------------------------------


@needs_browser
def test_a_question_gets_the_packages_weights_and_answer(browser):
    reader = FigureReader(browser, question_figure())
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 8))
        q, K, V = rng.normal(size=2), rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
        computed = reader.compute({"query": q.tolist(), "keys": K.tolist(), "values": V.tolist()})
        weights = attention_weights(torch.tensor(q)[None], torch.tensor(K))[0].numpy()
        np.testing.assert_allclose(computed["weights"], weights, atol=1e-9)
        np.testing.assert_allclose(computed["output"], weights @ V, atol=1e-9)
    assert reader.wrong == []
    reader.close()


@needs_browser
def test_buttons_and_sliders_set_the_query(browser):
    reader = FigureReader(browser, drawings.ask_the_sentence())
    first = reader.says
    reader.button("did what?").click()
    assert "“walked”, 0.95" in reader.says
    reader.button("nothing").click()
    assert [f"{w:.2f}" for w in reader.now["weights"]] == ["0.20"] * 5
    slider = reader.figure.locator('.am-stage [data-part="feature-0"]')
    slider.fill("-1.5")
    assert reader.button("nothing").get_attribute("aria-pressed") == "false"
    assert "your own (−1.5, 0)" in reader.figure.locator('[data-part="asks"]').first.inner_html()
    slider.fill("2")
    assert reader.button("who?").get_attribute("aria-pressed") == "true"
    assert reader.says == first
    assert reader.wrong == []
    reader.close()


@needs_browser
def test_it_writes_and_looks_as_the_translator_does(browser):
    lines = [read for read, _ in day_lines(6, torch.Generator().manual_seed(2))[0]] + ["x", "9"]
    for seed in range(3):
        reader = FigureReader(browser, translator_figure(seed))
        for m, model in enumerate(translators(seed).values()):
            exact = copy.deepcopy(model).double()
            for line in lines:
                ids = to_ids([line], WRITTEN)
                computed = reader.compute({"ids": ids[0].tolist(), "m": m})
                expected = exact.translate(ids, 12)
                written = [i for i in expected[0].tolist() if i]
                assert computed["written"] == written
                if model.score is None:
                    assert computed["weights"] == []
                    continue
                with torch.no_grad():
                    weights = exact.weights(ids, expected[:, : len(written)])[0]
                looks = np.array(computed["weights"])[: len(written)]
                np.testing.assert_allclose(looks, weights[: len(written)], atol=1e-6)
        assert reader.wrong == []
        reader.close()


@needs_browser
def test_a_line_that_is_typed_is_what_is_written(browser):
    reader = FigureReader(browser, translator_figure(1))
    field = reader.figure.get_by_label("It reads")
    for name, m in (("with", 1), ("without", 0)):
        reader.button(name).click()
        for line in ("7 aug", "the 22nd of september"):
            field.fill(line.upper())  # capitals are read as small letters
            model = list(translators(1).values())[m]
            (words,) = to_texts(model.translate(to_ids([line], WRITTEN), 12), ISO)
            assert reader.now["words"] == words
            assert (
                f"It writes {words or 'nothing'}. Right is {right_translation(line)}."
                in reader.says
            )
    field.fill("7 äug")
    assert "does not know “ä”" in reader.says
    field.fill("  ")
    assert "Write a day" in reader.says
    reader.button("the 3rd of march").click()
    assert reader.now["text"] == "the 3rd of march"
    assert reader.wrong == []
    reader.close()


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("made", [drawings.ask_the_sentence, translator_figure])
def test_a_phones_first_screen_has_room_for_it(browser, made, scheme):
    reader = FigureReader(browser, made(), width=390, color_scheme=scheme)
    assert reader.figure.bounding_box()["height"] <= 560
    assert reader.overflow() <= 0
    assert reader.small_text() == []
    reader.close()


@needs_browser
@pytest.mark.parametrize("made", [drawings.ask_the_sentence, translator_figure])
def test_without_javascript_the_first_state_is_shown(browser, made):
    still = FigureReader(browser, made(), java_script_enabled=False)
    assert "Where JavaScript runs" in still.page.inner_text(".am-still")
    first = still.page.inner_text(".am-say")
    drawn = re.sub(r"\s+", "", still.page.locator(".am-stage svg").text_content())
    moves = FigureReader(browser, made())
    assert moves.says == first
    assert re.sub(r"\s+", "", moves.figure.locator(".am-stage svg").text_content()) == drawn
    still.close()
    moves.close()
