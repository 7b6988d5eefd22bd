"""The mask painter of chapter 10: what is painted, the package weighs the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from attncourse.figures.moving import mask_painter
from attncourse.masking import (
    block_mask,
    causal_mask,
    masked_softmax,
    padding_mask,
    sliding_window_mask,
)
from helpers.figure_reader import FigureReader, needs_browser

TOKENS = ["I", "am", "hungry", "and", "you"]
SCORES = [
    [2.0, 0.5, 1.0, 0.2, 0.1],
    [1.2, 1.5, 0.3, 1.0, 0.6],
    [0.4, 1.8, 0.9, 0.5, 1.1],
    [0.2, 0.6, 1.4, 1.0, 0.8],
    [1.0, 0.3, 2.0, 1.6, 0.7],
]
VALUES = [[1, 0], [0, 1], [1, 1], [-1, 0], [2, 1]]
N_TOKENS = len(TOKENS)


@pytest.fixture
def reader(browser):
    made = FigureReader(browser, mask_painter(SCORES, VALUES, TOKENS))
    yield made
    assert made.wrong == []
    made.close()


def reachable(mask: np.ndarray, layers: int) -> np.ndarray:
    """Return where the product of the masks, as zeros and ones, is not 0: the chapter's rule."""
    return np.linalg.matrix_power(mask.astype(int), layers) > 0


def assert_same(computed: dict, scores, values, mask, layers=1) -> None:
    mask = np.array(mask)
    weights = masked_softmax(torch.tensor(scores, dtype=torch.float64), torch.tensor(mask))
    output = weights @ torch.tensor(values, dtype=torch.float64)
    np.testing.assert_allclose(computed["weights"], weights, rtol=0, atol=1e-6)
    np.testing.assert_allclose(computed["output"], output, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(computed["reach"], reachable(mask, layers))
    assert computed["lonely"] == np.flatnonzero(~mask.any(axis=1)).tolist()


def cell(reader: FigureReader, i: int, j: int, kind: str = "s"):
    return reader.figure.locator(f'.am-stage [data-at="{kind}{i}-{j}"]')


# --- without a browser ----------------------------------------------------------------------------


def test_equal_bytes_and_a_first_state_that_is_causal():
    html = mask_painter(SCORES, VALUES, TOKENS)._repr_html_()
    assert html == mask_painter(SCORES, VALUES, TOKENS)._repr_html_()
    shown = [float(w) for w in re.findall(r"<b>(\d\.\d\d)</b></td>", html)]
    causal = masked_softmax(torch.tensor(SCORES), causal_mask(N_TOKENS))
    np.testing.assert_allclose(shown, causal.flatten(), atol=0.0051)
    masked = re.findall(r'data-at="s(\d)-(\d)" class="mp-masked"', html)
    assert {(int(i), int(j)) for i, j in masked} == set(
        zip(*np.triu_indices(N_TOKENS, 1), strict=True)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SCORES[:3], VALUES, TOKENS), "scores"),
        (([[1.0]], [[1.0]], ["a"]), "from 2 to 8"),
        ((np.ones((9, 9)), np.ones((9, 1)), ["a"] * 9), "from 2 to 8"),
        ((SCORES, VALUES[:4], TOKENS), "values"),
        ((SCORES, VALUES, TOKENS[:4]), "tokens"),
        (([[1, np.nan], [0, 0]], [[1], [1]], ["a", "b"]), "scores"),
        (([[1, 100], [0, 0]], [[1], [1]], ["a", "b"]), "from −99 to 99"),
        ((SCORES, VALUES, TOKENS, "causal"), "one of All, Causal"),
        ((SCORES, VALUES, TOKENS, "Blocks", True), "Window of 3, got 'Blocks'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        mask_painter(*arguments)


# --- as a reader has it ---------------------------------------------------------------------------


@needs_browser
def test_it_computes_what_the_package_does(reader):
    rng = np.random.default_rng(3)
    for _ in range(40):
        scores, values = (
            rng.normal(0, rng.choice([5, 900]), (N_TOKENS, N_TOKENS)).tolist(),
            rng.normal(size=(N_TOKENS, 2)).tolist(),
        )
        mask = (rng.random((N_TOKENS, N_TOKENS)) < rng.choice([0.0, 0.3, 0.7])).tolist()
        layers = int(rng.integers(1, N_TOKENS + 1))
        computed = reader.compute(
            {"scores": scores, "values": values, "mask": mask, "layers": layers}
        )
        assert_same(computed, scores, values, mask, layers)


@needs_browser
def test_painting_cells_and_layers_changes_what_is_computed(reader):
    rng = np.random.default_rng(4)
    mask = rng.random((N_TOKENS, N_TOKENS)) < 0.5
    mask[2] = False
    for i, j in np.argwhere(mask != np.tri(N_TOKENS, dtype=bool)):
        cell(reader, i, j).click()
    slider = reader.figure.get_by_label("Layers")
    for layers in (1, 2, 4):
        slider.fill(str(layers))
        assert reader.now["mask"] == mask.tolist()
        assert_same(reader.now, SCORES, VALUES, mask, layers)
        chips = reader.figure.locator(".am-stage .mp-chips span")
        looks = [chip.get_attribute("class") for chip in chips.all()]
        reach = reachable(mask, layers)
        assert [look != "mp-never" for look in looks] == reach.ravel().tolist()
        direct = [look == "mp-direct" for look in looks]
        assert direct == (reach & mask).ravel().tolist()
    weights = masked_softmax(torch.tensor(SCORES), torch.tensor(mask))
    for i, j in np.argwhere(mask):
        assert cell(reader, i, j, "w").inner_text() == f"{weights[i, j]:.2f}"


@needs_browser
@pytest.mark.parametrize(
    ("preset", "mask"),
    [
        ("All", torch.ones(N_TOKENS, N_TOKENS, dtype=torch.bool)),
        ("Causal", causal_mask(N_TOKENS)),
        ("One too wide", torch.ones(N_TOKENS, N_TOKENS, dtype=torch.bool).tril(1)),
        ("Padding", padding_mask([3], N_TOKENS)[0].expand(N_TOKENS, N_TOKENS)),
        ("Window of 3", sliding_window_mask(N_TOKENS, 3)),
        ("Blocks", block_mask(N_TOKENS, 3)),
        ("None", torch.zeros(N_TOKENS, N_TOKENS, dtype=torch.bool)),
    ],
)
def test_presets_are_the_masks_of_the_package(reader, preset, mask):
    reader.button("None" if preset == "All" else "All").click()
    reader.button(preset).click()
    assert reader.now["mask"] == mask.tolist()
    assert reader.button(preset).get_attribute("aria-pressed") == "true"
    assert_same(reader.now, SCORES, VALUES, mask.numpy())


@needs_browser
def test_a_row_without_a_key_gets_a_sentence_and_zeros(reader):
    cell(reader, 0, 0).click()
    assert "“I” has no key left: all weights are 0" in reader.says
    assert reader.now["output"][0] == [0, 0]
    reader.button("None").click()
    assert "“I”, “am”, “hungry”, “and” and “you” have no key left" in reader.says
    assert np.all(np.array(reader.now["weights"]) == 0)
    assert "NaN" not in reader.figure.inner_text()
    cell(reader, 3, 1).click()
    assert "“and” listens to “am” 1.00" in reader.says
    assert reader.now["output"][3] == VALUES[1]


@needs_browser
def test_the_grid_works_by_keyboard_alone(reader):
    reader.button("None").focus()
    keys = reader.page.keyboard
    for key in ("Tab", "ArrowRight", "ArrowRight", "ArrowDown", "Space"):
        keys.press(key)
    mask = np.tri(N_TOKENS, dtype=bool)
    mask[1, 2] = True
    assert reader.now["mask"] == mask.tolist()
    assert "“am” listens to" in reader.says
    focused = reader.page.evaluate("() => document.activeElement.ariaLabel")
    assert focused == "am asks hungry: score 0.3, allowed"
    assert cell(reader, 1, 2).get_attribute("aria-selected") == "true"
    for key in ("End", "ArrowRight", "ArrowUp", "ArrowUp", "Enter"):  # stops at the rim
        keys.press(key)
    mask[0, N_TOKENS - 1] = True
    assert reader.now["mask"] == mask.tolist()
    assert reader.figure.locator(".am-stage td[tabindex='0']").count() == 1


@needs_browser
def test_dragging_paints_several_cells_alike(reader):
    mouse = reader.page.mouse
    places = [cell(reader, 0, j).bounding_box() for j in range(4)]
    middles = [(p["x"] + p["width"] / 2, p["y"] + p["height"] / 2) for p in places]
    mouse.move(*middles[1])
    mouse.down()
    for middle in (*middles[2:], middles[1]):
        mouse.move(*middle, steps=4)
    mouse.up()
    mask = np.tri(N_TOKENS, dtype=bool)
    mask[0, 1:4] = True
    assert reader.now["mask"] == mask.tolist()
    mouse.move(*middles[3])
    mouse.down()
    mouse.move(5, 5)
    mouse.up()  # outside, where the grid does not hear of it
    for middle in middles:
        mouse.move(*middle)  # nothing is painted without a button held
    assert reader.now["mask"] == mask.tolist()
    cell(reader, 0, 2).click()
    assert reader.now["mask"][0] == [True, True, False, True, False]


@needs_browser
def test_in_the_brief_form_cells_are_painted_on_the_weights(browser):
    figure = mask_painter(SCORES, VALUES, TOKENS, "One too wide", brief=True)
    still = re.findall(r'data-at="w(\d)-(\d)" class="mp-masked"', figure._repr_html_())
    assert {(int(i), int(j)) for i, j in still} == set(
        zip(*np.triu_indices(N_TOKENS, 2), strict=True)
    )
    reader = FigureReader(browser, figure, width=390)
    mask = np.tri(N_TOKENS, k=1, dtype=bool)
    assert reader.says.startswith("One too wide: each token sees the next one")
    for i, j in ((0, 1), (2, 4)):
        cell(reader, i, j, "w").click()
        mask[i, j] = not mask[i, j]
        assert_same(reader.now, SCORES, VALUES, mask)
    for key in ("ArrowLeft", "Enter"):  # from the cell that was clicked last
        reader.page.keyboard.press(key)
    mask[2, 3] = False
    assert_same(reader.now, SCORES, VALUES, mask)
    assert cell(reader, 0, 0, "w").inner_text() == "1.00"  # and the name says what is seen
    label = cell(reader, 0, 0, "w").get_attribute("aria-label")
    assert label == "I asks I: weight 1.00, allowed"
    reader.button("Causal").click()
    assert_same(reader.now, SCORES, VALUES, np.tri(N_TOKENS, dtype=bool))
    assert reader.figure.bounding_box()["height"] <= 560
    assert reader.wrong == []
    reader.close()


@needs_browser
def test_a_finger_paints_and_the_page_stays_where_it_is(browser):
    figure = mask_painter(SCORES, VALUES, TOKENS)
    reader = FigureReader(browser, figure, figure, width=390, has_touch=True, is_mobile=True)
    places = [cell(reader, i, 0).bounding_box() for i in range(N_TOKENS)]
    x, y = ([p[a] + p[b] / 2 for p in places] for a, b in (("x", "width"), ("y", "height")))
    touch = reader.page.context.new_cdp_session(reader.page)

    def finger(kind, *points):
        touch.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
        reader.page.evaluate("() => new Promise(requestAnimationFrame)")  # moves of a frame are one

    finger("Start", {"x": x[4], "y": y[4]})
    for a, b in list(zip(x, y, strict=True))[3:0:-1]:
        finger("Move", {"x": a, "y": b})
    finger("End")
    mask = np.tri(N_TOKENS, dtype=bool)
    mask[1:, 0] = False
    assert reader.now["mask"] == mask.tolist()
    assert reader.page.evaluate("() => scrollY") == 0
    reader.close()


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_has_room_for_eight_tokens_and_large_numbers(browser, scheme):
    rng = np.random.default_rng(0)
    words = ["incomprehensibilities", "am", "שלום", "<b>x", "e", "f", "g", "h"]
    figure = mask_painter(rng.uniform(-99, 99, (8, 8)), rng.uniform(-99, 99, (8, 2)), words)
    reader = FigureReader(browser, figure, width=390, color_scheme=scheme)
    reader.figure.get_by_label("Layers").fill("3")
    assert reader.overflow() <= 0
    assert reader.small_text() == []
    assert reader.figure.locator(".am-stage b", has_text="x").count() == 0
    assert reader.wrong == []
    reader.close()


@needs_browser
def test_without_scripts_and_on_paper_it_shows_the_first_state(browser):
    figure = mask_painter(SCORES, VALUES, TOKENS)
    still = FigureReader(browser, figure, java_script_enabled=False)
    assert "the mask can be painted" in still.page.inner_text(".am-still")
    assert still.page.is_visible(".am-stage .mp-grid")
    assert not still.page.is_visible("[role=status]")
    still.close()
    printed = FigureReader(browser, figure)
    printed.button("None").click()
    printed.page.emulate_media(media="print")
    printed.page.wait_for_selector(".am-first")
    assert printed.page.is_visible(".am-still")
    assert printed.page.locator(".am-first .mp-masked:visible").count() == N_TOKENS * (N_TOKENS - 1)
    assert not printed.page.is_visible(".am-stage")
    printed.close()
