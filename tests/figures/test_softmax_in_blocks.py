"""The moving figure of chapter 17 against ``online_softmax`` and attention, whatever is typed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attncourse.efficient import online_softmax
from attncourse.figures.moving import softmax_in_blocks
from helpers.figure_reader import needs_browser

SCORES = [1.0, 0.0, 3.0, 2.0, -1.0, 4.0, 2.0]
VALUES = [4.0, 0.0, 8.0, 2.0, 6.0, 1.0, 5.0]


def expected_steps(scores, values, block) -> list[tuple[float, float, float]]:
    """Return the largest score, normaliser and output after each block."""
    s, v = torch.tensor(scores).double(), torch.tensor(values).double()
    rows = []
    for stop in range(block, len(s) + block, block):
        maximum, normaliser = online_softmax(s[None, :stop].split(block, -1))
        rows.append((float(maximum), float(normaliser), float(s[:stop].softmax(0) @ v[:stop])))
    return rows


def test_equal_arguments_equal_bytes():
    html = softmax_in_blocks(SCORES, VALUES)._repr_html_()
    assert html == softmax_in_blocks(SCORES, VALUES)._repr_html_()
    assert " id=" not in html


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [1.0, 2.0]}, "a value for each"),
        ({"scores": [60.0] * 7}, "−50 to 50"),
        ({"scores": [math.nan] * 7}, "NaN"),
        ({"block": 0}, "2 to 6 blocks"),
        ({"block": 7}, "2 to 6 blocks"),
        ({"block": 1}, "2 to 6 blocks"),
    ],
)
def test_bad_input_is_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        softmax_in_blocks(**{"scores": SCORES, "values": VALUES} | arguments)


@needs_browser
def test_every_step_is_the_packages(opened):
    reader = opened(softmax_in_blocks(SCORES, VALUES))
    rng = np.random.default_rng(0)
    for block in (1, 2, 3, 7):
        for scores in (SCORES, (20 * rng.normal(size=7)).tolist(), [-50.0] * 7):
            inputs = {"scores": scores, "values": VALUES, "block": block}
            steps = reader.compute(inputs)["steps"]
            for step, (maximum, normaliser, output) in zip(
                steps, expected_steps(scores, VALUES, block), strict=True
            ):
                assert step["maximum"] == pytest.approx(maximum, abs=1e-6)
                assert step["normaliser"] == pytest.approx(normaliser, abs=1e-6)
                assert step["output"] == pytest.approx(output, abs=1e-6)


@needs_browser
def test_steps_are_chosen_by_keyboard_and_scores_typed(opened):
    reader = opened(softmax_in_blocks(SCORES, VALUES))
    assert "nothing to rescale" in reader.says
    button = reader.button("Next block")
    button.focus()
    button.press("Enter")
    assert "rises to 3.0" in reader.says
    button.press("Enter")
    button.press("Enter")
    assert "All blocks seen" in reader.says
    last = reader.now["steps"][-1]["output"]
    assert last == pytest.approx(expected_steps(SCORES, VALUES, 2)[-1][2])
    assert button.is_disabled()
    field = reader.figure.locator('.am-stage [data-part="score-2"]')
    field.fill("")
    assert "Score 2: a number" in reader.says
    field.fill("7")
    changed = [*SCORES[:2], 7.0, *SCORES[3:]]
    assert reader.now["steps"][-1]["output"] == pytest.approx(
        expected_steps(changed, VALUES, 2)[-1][2]
    )
    reader.button("Reset").click()
    assert reader.now["at"] == 1
    assert field.input_value() == "3"


@needs_browser
def test_without_a_script_all_rows_are_shown(opened):
    still = opened(softmax_in_blocks(SCORES, VALUES), java_script_enabled=False)
    text = still.figure.inner_text()
    assert "the blocks come one by one" in text
    assert f"{expected_steps(SCORES, VALUES, 2)[-1][2]:.3f}" in text


@needs_browser
def test_it_fits_a_phone(opened):
    reader = opened(softmax_in_blocks(SCORES, VALUES), width=360)
    assert reader.overflow() <= 0
    assert reader.small_text() == []
