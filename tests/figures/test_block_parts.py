"""Chapter 12's moving figure: with any parts on, at any depth, the package's numbers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from attncourse.figures.moving import block_parts
from attncourse.figures.moving.block_parts import WEIGHT_NAMES, example_block
from attncourse.multihead import MultiHeadAttention
from attncourse.transformer import EncoderBlock, FeedForward, layer_norm
from helpers.figure_reader import needs_browser

RNG = np.random.default_rng(3)
X, LAYERS = example_block()


def block_module(layer: dict) -> tuple[MultiHeadAttention, FeedForward]:
    """Return the package's attention and feed-forward layer with these weights."""
    d, d_ff = np.shape(layer["W_1"])
    attention, feed = MultiHeadAttention(d, 1, bias=False), FeedForward(d, d_ff, bias=False)
    for module in (attention, feed):
        module.double()
        for name, parameter in module.named_parameters():
            parameter.data = torch.tensor(np.array(layer[name.split(".")[0]])).T
    return attention, feed


@torch.no_grad()
def tokens_after_layers(x, layers, residual: bool, norm: bool, feed: bool) -> list[np.ndarray]:
    """Return the tokens after each layer, computed with the package."""
    X = torch.tensor(np.array(x))
    rows = [X.numpy()]
    for layer in layers:
        branches = block_module(layer)
        for branch in branches[: 1 + feed]:
            Y = branch(layer_norm(X) if norm else X)
            X = X + Y if residual else Y
        rows.append(X.numpy())
    return rows


def relative_spread(X) -> float:
    return np.linalg.norm(X - X.mean(0)) / np.linalg.norm(X)


def random_layers(rng, count: int, d: int, d_ff: int) -> list[dict]:
    shapes = dict.fromkeys(WEIGHT_NAMES[:4], (d, d)) | {"W_1": (d, d_ff), "W_2": (d_ff, d)}
    return [{n: rng.normal(size=s).tolist() for n, s in shapes.items()} for _ in range(count)]


@needs_browser
def test_the_script_computes_what_the_package_computes(opened):
    reader = opened(block_parts())
    for seed, (residual, norm, feed) in enumerate(product((False, True), repeat=3)):
        rng = np.random.default_rng(seed)
        n, d, d_ff = (int(a) for a in rng.integers(1, [6, 6, 9]))
        x, layers = rng.normal(size=(n, d)).tolist(), random_layers(rng, 2, d, d_ff)
        inputs = {"x": x, "layers": layers, "residual": residual, "norm": norm, "feed": feed}
        computed, expected_rows = (
            reader.compute(inputs),
            tokens_after_layers(x, layers, residual, norm, feed),
        )
        for row, expected in zip(computed["rows"], expected_rows, strict=True):
            np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-6)


@needs_browser
def test_all_parts_on_compute_the_packages_block(opened):
    block = EncoderBlock(4, 1).double()
    layer = {name: RNG.normal(size=(4, 4)) for name in WEIGHT_NAMES[:4]}
    layer |= {"W_1": RNG.normal(size=(4, 16)), "W_2": RNG.normal(size=(16, 4))}
    for name, parameter in block.named_parameters():
        key = name.split(".")[1]
        if name.endswith("weight"):
            parameter.data = torch.tensor(layer[key]).T
        elif not name.startswith("norm"):
            parameter.data.zero_()
    inputs = {"x": X.tolist(), "layers": [{n: W.tolist() for n, W in layer.items()}]}
    inputs |= {"residual": True, "norm": True, "feed": True}
    output = opened(block_parts()).compute(inputs)["rows"][1]
    np.testing.assert_allclose(output, block(torch.tensor(X)).detach(), atol=1e-6)


@needs_browser
def test_buttons_and_slider_choose_parts_and_depth(opened):
    reader = opened(block_parts())
    on = {"residual": False, "norm": False, "feed-forward": False}
    depth = reader.figure.locator('.am-stage [data-part="depth"]')
    for name, to in (("residual", 4), ("norm", 8), ("feed-forward", 0), ("residual", 3),
                     ("norm", 1), ("feed-forward", 5), ("residual", 8)):  # fmt: skip
        reader.button(name).click()
        depth.fill(str(to))
        on[name] = not on[name]
        rows = tokens_after_layers(X, LAYERS, on["residual"], on["norm"], on["feed-forward"])
        cells = reader.figure.locator('.am-stage [data-part="rows"] td').all_inner_texts()
        shown = [float(cell.replace("−", "-")) for cell in cells]
        np.testing.assert_allclose(shown, rows[to].ravel(), rtol=0, atol=0.00051)
        line = reader.figure.locator('.am-stage [data-part="apart"] td').all_inner_texts()
        np.testing.assert_allclose(
            [float(cell) for cell in line], [100 * relative_spread(X) for X in rows], atol=0.51
        )
        bars = reader.figure.locator('.am-stage [data-part="bars"] i').evaluate_all(
            "bars => bars.map(bar => parseFloat(bar.style.height))"
        )
        np.testing.assert_allclose(bars, [100 * relative_spread(X) for X in rows], atol=0.01)
        parts_on = [part for part, is_on in on.items() if is_on]
        assert all((part in reader.says) == (part in parts_on) for part in on)
        assert f"After {to} blocks" in reader.says
        assert reader.button(name).get_attribute("aria-pressed") == str(on[name]).lower()


@needs_browser
def test_it_works_by_keyboard_and_fits_a_phone(opened):
    reader = opened(block_parts(), width=360)
    assert reader.overflow() == 0
    assert reader.small_text() == []
    assert reader.figure.bounding_box()["height"] <= 560  # with its controls on one screen
    reader.button("residual").focus()
    reader.page.keyboard.press("Enter")
    assert "Attention with residual." in reader.says
    for _ in range(4):  # norm, feed-forward, the bars, the slider
        reader.page.keyboard.press("Tab")
    reader.page.keyboard.press("ArrowRight")
    assert "After 5 blocks" in reader.says


def test_without_a_script_the_first_state_is_shown():
    html = block_parts(depth=3)._repr_html_()
    rows = tokens_after_layers(X, LAYERS, False, False, False)
    assert html == block_parts(depth=3)._repr_html_()
    for number in rows[3].ravel():
        assert f"{number:.3f}".replace("-", "−") in html
    assert f"{100 * relative_spread(rows[3]):.1f}\u00a0% of their size" in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": np.ones((7, 4))}, "at most 6 tokens"),
        ({"x": np.ones(4)}, "x"),
        ({"x": X * np.nan}, "NaN"),
        ({"x": X[:, :3]}, "expected shape"),
        ({"layers": []}, "12 layers"),
        ({"layers": LAYERS * 2}, "12 layers"),
        ({"layers": [{"W_q": X}]}, "expected W_q, W_k"),
        ({"layers": [LAYERS[0] | {"W_2": np.ones((3, 4))}]}, r"W_2: expected shape \(8, 4\)"),
        ({"tokens": "word"}, "4 words"),
        ({"tokens": ("a", "b")}, "4 words"),
        ({"depth": 9}, "up to 8, got 9"),
        ({"depth": 1.5}, "whole number"),
        ({"depth": -1}, "whole number"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        block_parts(**arguments)


def test_words_are_escaped():
    evil = ("<img src=x onerror=alert(1)>", "</script>", '"&<', "مرحبا")
    html = block_parts(tokens=evil)._repr_html_()
    assert html.count("</script>") == 2
    assert "<img" not in html
