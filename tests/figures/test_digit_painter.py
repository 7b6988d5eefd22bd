"""The moving figure of chapter 15: in the page it reads what the package's model reads."""

from __future__ import annotations

import json
import math
import re
from functools import partial

import numpy as np
import pytest
import torch
import vendor
from torch.nn import functional as F

from attncourse.figures.moving import DigitPainter
from attncourse.figures.moving.figure import lean
from attncourse.figures.theme import read_asset
from attncourse.tasks.digits import normalise_ink, vit
from attncourse.vision import VisionTransformer, attention_on_image
from helpers.figure_reader import FigureReader, needs_browser

RNG = np.random.default_rng(4)
INK = RNG.integers(0, 17, (10, 8, 8))


def random_transformer(
    seed: int = 0, side=8, patch=2, d=12, heads=3, layers=2, channels=1
) -> VisionTransformer:
    """A model whose random weights are large enough for its maps and logits to differ."""
    torch.manual_seed(seed)
    model = VisionTransformer(side, patch, channels, 10, d, heads, layers).eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=1.5 / math.sqrt(d))
    return model


@torch.no_grad()
def by_package(model: VisionTransformer, ink) -> dict[str, np.ndarray]:
    image = normalise_ink(torch.as_tensor(np.array(ink), dtype=torch.float32))[None]
    logits, maps = model(image), model.weights(image)
    across = model.image_size // model.patch
    looks = attention_on_image(maps[-1, :, 0].mean(0), across, across).flatten()
    return {
        "logits": logits.numpy(),
        "chances": logits.softmax(-1).numpy(),
        "looks": looks.numpy(),
        "maps": maps.numpy(),
    }


def assert_agrees_with_package(computed: dict, model: VisionTransformer, ink) -> None:
    for name, expected in by_package(model, ink).items():
        np.testing.assert_allclose(computed[name], expected, rtol=0, atol=1e-3, err_msg=name)


@pytest.fixture
def opened(browser):
    readers = []

    def opens(*figures, **options) -> FigureReader:
        readers.append(
            FigureReader(
                browser, *(figures or [DigitPainter(random_transformer(), INK)]), **options
            )
        )
        return readers[-1]

    yield opens
    for reader in readers:
        assert reader.wrong == []
        reader.close()


# --- without a browser ----------------------------------------------------------------------------


def test_equal_arguments_equal_bytes_and_nothing_from_outside():
    html = DigitPainter(random_transformer(), INK)._repr_html_()
    assert html == DigitPainter(random_transformer(), INK)._repr_html_()
    assert " id=" not in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert json.loads(data)["presets"] == INK.reshape(10, 64).tolist()


def test_the_first_state_shows_what_the_model_answers():
    model = random_transformer()
    expected = by_package(model, INK[3])
    html = DigitPainter(model, INK)._repr_html_()
    shown = [float(width) / 100 for width in re.findall(r'<i style="width:([\d.]+)%', html)]
    np.testing.assert_allclose(shown, expected["chances"], atol=1e-3)
    looks = [float(share) for share in re.findall(r"--look:([\d.]+)", html)]
    np.testing.assert_allclose(looks, expected["looks"], atol=1e-3)
    assert f"It reads a {expected['chances'].argmax()}, " in html


def test_the_trained_model_fits_into_400_kb():
    html = DigitPainter(vit(), INK)._repr_html_()
    assert len(html.encode()) < 400_000
    assert len(lean(read_asset("moving/digit_painter.js")).encode()) < 4_500


def tanh() -> VisionTransformer:
    model = random_transformer()
    model.blocks[1].feed_forward.activation = partial(F.gelu, approximate="tanh")
    return model


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": torch.nn.Linear(2, 3)}, "a VisionTransformer, got Linear"),
        ({"model": random_transformer(channels=3)}, "one channel"),
        ({"model": random_transformer(side=16)}, "at most 12 pixels"),
        ({"model": random_transformer(d=120)}, "at most 150000 numbers"),
        ({"model": tanh()}, "exact GELU"),
        ({"presets": INK[:, :6]}, "8 × 8"),
        ({"presets": INK[0]}, "presets"),
        ({"presets": np.tile(INK, (2, 1, 1))}, "at most 10"),
        ({"presets": INK + 1}, "0 to 16"),
        ({"presets": INK / 2}, "whole numbers"),
        ({"presets": INK * math.nan}, "NaN"),
        ({"chosen": 10}, "0 to 9"),
    ],
)
def test_bad_input_is_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        DigitPainter(**{"model": random_transformer(), "presets": INK} | arguments)


# --- as a reader has it ---------------------------------------------------------------------------


@needs_browser
@pytest.mark.parametrize("sizes", [{}, {"side": 6, "patch": 3}, {"layers": 1, "heads": 1}])
def test_it_computes_what_the_package_does(opened, sizes):
    model = random_transformer(1, **sizes)
    side = model.image_size
    reader = opened(DigitPainter(model, INK[:, :side, :side]))
    for ink in (INK[0, :side, :side], np.zeros((side, side)), np.full((side, side), 16)):
        assert_agrees_with_package(reader.compute({"ink": ink.flatten().tolist()}), model, ink)


@needs_browser
def test_presets_clear_and_reset(opened):
    model = random_transformer()
    reader = opened(DigitPainter(model, INK))
    for i in (7, 0):
        reader.button(str(i)).click()
        assert reader.now["ink"] == INK[i].flatten().tolist()
        assert_agrees_with_package(reader.now, model, INK[i])
        best = by_package(model, INK[i])["chances"].argmax()
        assert f"It reads a {best}, " in reader.says
    reader.button("Clear").click()
    assert set(reader.now["ink"]) == {0}
    assert reader.says.startswith("Nothing is painted")
    lines = reader.figure.locator(".am-stage .dp-bars tr")
    assert [line[-1] for line in lines.all_inner_texts()] == ["–"] * 10
    assert reader.figure.locator(".am-stage .dp-best").count() == 0
    reader.button("Reset").click()
    assert reader.now["ink"] == INK[0].flatten().tolist()


@needs_browser
def test_the_mouse_paints_round_dots_and_rubs_them_out(opened):
    model = random_transformer()
    reader = opened(DigitPainter(model, INK))
    reader.button("Clear").click()
    paint = reader.figure.locator(".am-stage .dp-paint")
    paint.scroll_into_view_if_needed()
    box, mouse = paint.bounding_box(), reader.page.mouse

    def place(row, column):
        return box["x"] + box["width"] * column / 8, box["y"] + box["height"] * row / 8

    mouse.move(*place(1, 3.5))
    mouse.down()
    mouse.move(*place(7, 3.5))
    mouse.up()
    ink = np.reshape(reader.now["ink"], (8, 8))
    assert (ink[1:7, 3] == 16).all()
    assert (ink[:, [0, 1, 5, 6, 7]] == 0).all()
    assert 0 < ink[3, 2] < 16
    assert_agrees_with_package(reader.now, model, ink)
    mouse.move(*place(4, 7.5))  # not pressed: nothing is painted
    np.testing.assert_array_equal(np.reshape(reader.now["ink"], (8, 8)), ink)
    reader.button("Rub out").click()
    mouse.move(*place(4, 1))
    mouse.down()
    mouse.move(*place(4, 6))
    mouse.up()
    now = np.reshape(reader.now["ink"], (8, 8))
    assert now[4, 3] < 16
    assert (now[1:3] == ink[1:3]).all()


@needs_browser
def test_a_finger_paints(opened):
    reader = opened(width=390, has_touch=True)
    reader.button("Clear").click()
    box = reader.figure.locator(".am-stage .dp-paint").bounding_box()
    reader.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    ink = np.reshape(reader.now["ink"], (8, 8))
    assert ink[3, 3] == ink[4, 4] > 4
    style = "node => getComputedStyle(node).touchAction"
    assert reader.figure.locator(".am-stage .dp-paint").evaluate(style) == "none"


@needs_browser
def test_the_keyboard_paints(opened):
    model = random_transformer()
    reader = opened(DigitPainter(model, INK))
    reader.button("Clear").click()
    reader.figure.locator('.am-stage .dp-paint td[tabindex="0"]').focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Space", "ArrowRight", "Space", "Space"):
        reader.page.keyboard.press(key)
    ink = np.zeros((8, 8))
    ink[2, 1], ink[2, 2] = 8, 16
    np.testing.assert_array_equal(np.reshape(reader.now["ink"], (8, 8)), ink)
    assert_agrees_with_package(reader.now, model, ink)
    label = "() => document.activeElement.ariaLabel"
    assert reader.page.evaluate(label) == "row 2, column 2: ink 16 of 16"
    reader.page.keyboard.press("Enter")
    assert reader.now["ink"][18] == 0
    for _ in range(9):
        reader.page.keyboard.press("ArrowUp")
    assert reader.page.evaluate(label).startswith("row 0, column 2")


@needs_browser
def test_without_a_script_it_says_what_would_move(opened):
    still, moving = (opened(java_script_enabled=on) for on in (False, True))
    assert "you can paint" in still.figure.inner_text()
    assert still.says == moving.says
    bars = [r.figure.locator(".am-stage .dp-bars").inner_text() for r in (still, moving)]
    assert bars[0] == bars[1]


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_everybody_can_use_it(opened, scheme, width):
    reader = opened(width=width, color_scheme=scheme)
    reader.page.evaluate((vendor.library("axe-core") / "axe.min.js").read_text(encoding="utf-8"))
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    look = """tags => axe.run(document, {runOnly: tags}).then(found => found.violations.map(
        one => [one.id, ...one.nodes.map(node => node.target.join(" "))]))"""
    reader.button("Rub out").click()
    assert reader.page.evaluate(look, tags) == []
    assert reader.overflow() <= 0
    assert reader.small_text() == []
