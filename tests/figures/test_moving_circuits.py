"""The explorer of chapter 19: what it sorts by is what ``head_scores`` says of the same maps."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from attncourse.figures import moving
from attncourse.interpret import (
    first_token_pattern,
    head_scores,
    induction_pattern,
    previous_token_pattern,
)
from attncourse.tasks.explored import pack_maps, unpack_maps
from helpers.figure_reader import FigureReader, needs_browser

LAYERS, HEADS, N = 3, 4, 7
TOKENS = ["Tom", " saw", " Ann", " <b>", " saw", " Ann", "."]
IDS = torch.tensor([0, 1, 2, 3, 1, 2, 4])


def random_maps(seed: int = 0) -> torch.Tensor:
    scores = 3 * torch.randn(LAYERS, HEADS, N, N, generator=torch.Generator().manual_seed(seed))
    hidden = torch.ones(N, N, dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, -torch.inf).softmax(-1)


FIRST_SENTENCE = {"tokens": TOKENS, "pair": [5, 2], "maps": pack_maps(random_maps())}
TEXTS = ["".join(TOKENS), "another"]


def explorer(**changed):
    return moving.head_explorer(FIRST_SENTENCE | changed, LAYERS, HEADS, TEXTS)


def test_a_byte_a_weight_is_at_most_half_a_step_off():
    back = unpack_maps(FIRST_SENTENCE["maps"], N, LAYERS, HEADS)
    assert np.abs(back - random_maps().numpy()).max() <= 0.5 / 255 + 1e-6
    assert back[..., *np.triu_indices(N, 1)].max() == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: moving.head_explorer(FIRST_SENTENCE, LAYERS, HEADS + 1),
            "a byte for each of 3 · 5 · 7 · 8",
        ),
        (
            lambda: moving.head_explorer(FIRST_SENTENCE, LAYERS, HEADS, order="size"),
            "order: expected one of",
        ),
        (
            lambda: moving.head_explorer(FIRST_SENTENCE | {"pair": None}, LAYERS, HEADS),
            "order: expected one",
        ),
        (
            lambda: moving.head_explorer(FIRST_SENTENCE, LAYERS, HEADS, query=7),
            "from 0 to 6, got 7",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_words_are_escaped_and_equal_arguments_equal_bytes():
    html = explorer()._repr_html_()
    assert html == explorer()._repr_html_()
    assert " <b>" not in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


@needs_browser
@pytest.mark.parametrize(
    ("order", "pattern"),
    [
        ("previous", previous_token_pattern(N)),
        ("first", first_token_pattern(N)),
        ("induction", induction_pattern(IDS)),
        ("pronoun", (torch.arange(N)[:, None] == 5) & (torch.arange(N) == 2)),
        ([6, 3], (torch.arange(N)[:, None] == 6) & (torch.arange(N) == 3)),
    ],
)
def test_heads_are_sorted_by_what_head_scores_says(opened, order, pattern):
    reader = opened(explorer())
    sorted_heads = reader.compute(FIRST_SENTENCE, order)
    held = torch.from_numpy(unpack_maps(FIRST_SENTENCE["maps"], N, LAYERS, HEADS))
    right = head_scores(held, pattern).flatten()
    assert sorted(head for head, _ in sorted_heads) == list(range(LAYERS * HEADS))
    for (head, score), (_, after) in zip(sorted_heads, [*sorted_heads[1:], (0, -1)], strict=True):
        assert score == pytest.approx(right[head].item(), abs=1e-9)
        assert score >= after


@needs_browser
def test_a_head_a_word_and_an_order_are_chosen(opened):
    reader = opened(explorer())
    held = unpack_maps(FIRST_SENTENCE["maps"], N, LAYERS, HEADS)
    best = int(held[..., 5, 2].argmax())
    assert reader.now["head"] == best
    assert reader.says.startswith(f"Head {best // HEADS}.{best % HEADS}: “Ann” looks at")
    slider = reader.figure.locator("[data-part=rank]")
    slider.focus()
    reader.page.keyboard.press("ArrowRight")
    assert reader.now["rank"] == 2
    reader.figure.locator("[data-part=words] button").nth(6).click()
    head = reader.now["head"]
    np.testing.assert_allclose(reader.now["row"], held.reshape(-1, N, N)[head, 6], atol=1e-9)
    reader.figure.locator("[data-part=order]").select_option("6,3")
    best = int(held[..., 6, 3].argmax())
    assert reader.now["head"] == best
    assert reader.now["score"] == pytest.approx(held[..., 6, 3].max(), abs=1e-9)
    box = reader.figure.locator("[data-part=field]").bounding_box()
    reader.page.mouse.click(box["x"] + 18 * 3 + 5, box["y"] + 5)
    assert reader.now["rank"] == 4


@needs_browser
def test_the_other_sentences_come_with_the_books_script(browser, tmp_path):
    second_sentence = {
        "tokens": ["one", " two", " one"],
        "pair": None,
        "maps": pack_maps(random_maps(1)[..., :3, :3]),
    }
    (tmp_path / "_static").mkdir()
    data = {"layers": LAYERS, "heads": HEADS, "sentences": [FIRST_SENTENCE, second_sentence]}
    (tmp_path / "_static" / "real_heads.js").write_text(
        f"window.attncourseRealHeads = {json.dumps(data)};"
    )
    html = explorer()._repr_html_()
    page_of = '<!doctype html><html lang="en" {}><meta charset="utf-8"><title>t</title><body>{}'
    for name, root, sentences in (("with", 'data-content_root="./"', 2), ("without", "", 1)):
        (tmp_path / f"{name}.html").write_text(page_of.format(root, html))
        page = browser.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
        page.goto((tmp_path / f"{name}.html").as_uri())
        choice = page.locator("[data-part=sentence]")
        if sentences == 2:
            page.wait_for_function("() => window.attncourseRealHeads")
            choice.select_option("1")
            assert "“one” looks at" in page.locator(".am-say").inner_text()
        assert choice.locator("option").count() == sentences
        assert wrong == []
        page.close()


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_figure_and_controls_at_once(opened, scheme):
    sentence = json.loads(json.dumps(FIRST_SENTENCE))
    reader = opened(
        moving.head_explorer(sentence, LAYERS, HEADS, TEXTS), width=390, color_scheme=scheme
    )
    assert reader.overflow() <= 0
    assert reader.small_text() == []
    assert reader.figure.bounding_box()["height"] <= 560


@needs_browser
def test_without_scripts_it_says_what_would_move(browser):
    reader = FigureReader(browser, explorer(), java_script_enabled=False)
    assert "In a browser that runs scripts" in reader.figure.inner_text()
    reader.close()
