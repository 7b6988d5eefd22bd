"""The moving figure of chapter 13 against ``filter_logits``, whatever a reader does."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

from attncourse.figures.moving import sampling
from attncourse.gpt import filter_logits
from helpers.figure_reader import needs_browser

LOGITS = [2.0, 1.0, 1.0, 0.25, -1.0, -3.0]
WORDS = ["sushi", "pizza", "bread", "salad", "soup", "cake"]


def expected_shares(logits, temperature, k, p) -> tuple[np.ndarray, np.ndarray]:
    logits = torch.tensor(logits, dtype=torch.float64)
    scores = logits / (temperature or 1)
    filtered = filter_logits(scores, k if temperature else 1, p)
    return filtered.numpy(), filtered.softmax(-1).numpy()


def test_equal_arguments_equal_bytes_and_words_are_never_markup():
    words = ["</script>", "<b>&", '"x', "d", "e", "f"]
    html = sampling(LOGITS, words)._repr_html_()
    assert html == sampling(LOGITS, words)._repr_html_()
    assert html.count("</script>") == 2
    assert "<b>&" not in html
    assert " id=" not in html
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert json.loads(data)["tokens"] == words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"logits": [1.0]}, "2 to 12"),
        ({"logits": [[1.0, 2.0]]}, "logits"),
        ({"logits": [0.0] * 13, "tokens": ["a"] * 13}, "2 to 12"),
        ({"logits": [1.0, float("nan"), 0, 0, 0, 0]}, "NaN"),
        ({"tokens": WORDS[:3]}, "6 words"),
        ({"tokens": "abcdef"}, "6 words"),
        ({"tokens": [*WORDS[:5], "a" * 20]}, "14 letters"),
        ({"temperature": -0.5}, "from 0 to 3"),
        ({"temperature": 9}, "from 0 to 3"),
        ({"top_k": 7}, "from 1 to 6"),
        ({"top_p": 0.0}, "above 0"),
    ],
)
def test_bad_input_is_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        sampling(**{"logits": LOGITS, "tokens": WORDS} | arguments)


@needs_browser
def test_shares_are_those_of_the_package(opened):
    reader = opened(sampling(LOGITS, WORDS))
    rng = np.random.default_rng(3)
    settings = [(1, 6, 1), (0, 6, 1), (1, 2, 1), (2, 4, 0.7), (0.3, 6, 0.05), (3, 1, 1)]
    settings += [
        (rng.uniform(0.1, 3), int(rng.integers(1, 7)), rng.uniform(0.1, 1)) for _ in "12345"
    ]
    for temperature, k, p in settings:
        for logits in (LOGITS, rng.normal(size=6).round(3).tolist()):
            computed = reader.compute(
                {"logits": logits, "temperature": temperature, "k": k, "p": p}
            )
            filtered, shares = expected_shares(logits, temperature, k, p)
            np.testing.assert_allclose(computed["shares"], shares, atol=1e-6)
            page_filtered = [-np.inf if x is None else x for x in computed["filtered"]]
            np.testing.assert_allclose(page_filtered, filtered, atol=1e-6)


@needs_browser
def test_sliders_move_by_keyboard_and_say_which_words_remain(opened):
    reader = opened(sampling(LOGITS, WORDS))
    assert "6 of 6 tokens can come" in reader.says
    slider = reader.figure.locator('.am-stage [data-part="k"]')
    slider.focus()
    for _ in range(3):
        slider.press("ArrowLeft")
    assert "3 of 6 tokens can come" in reader.says
    np.testing.assert_allclose(reader.now["shares"], expected_shares(LOGITS, 1, 3, 1)[1], atol=1e-6)
    reader.button("Draw ten").click()
    drawn = reader.says.removeprefix("Drawn: ").removesuffix(".").split()
    assert len(drawn) == 10
    assert set(drawn) <= set(WORDS[:3])
    reader.button("Back").click()
    assert "6 of 6" in reader.says


@needs_browser
def test_the_first_state_is_what_the_script_draws(opened):
    figure = sampling(LOGITS, WORDS, temperature=0.5, top_k=4, top_p=0.9)
    still, moving = (opened(figure, java_script_enabled=on) for on in (False, True))
    bars = [r.figure.locator("[data-part=bars]").inner_text() for r in (still, moving)]
    assert bars[0] == bars[1]
    assert "change the bars" in still.figure.inner_text()


@needs_browser
def test_it_fits_a_phone(opened):
    reader = opened(sampling(LOGITS, WORDS), width=360)
    assert reader.overflow() <= 0
    assert reader.small_text() == []
