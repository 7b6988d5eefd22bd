"""Figures that move, chapters 1 to 4, 7, 9, 11: whatever a reader does, the package's numbers."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
import torch

from attncourse.figures import moving
from attncourse.lookup import kernel_regression, softmax
from attncourse.mixing import is_row_stochastic, mix
from attncourse.multihead import merge_heads
from attncourse.positions import apply_rope, sinusoidal_encoding
from attncourse.scaling import attention_entropy, scale_scores, softmax_jacobian
from attncourse.self_attention import attention_weights, self_attention
from attncourse.tokens import cosine_similarity, unit_rows
from helpers.figure_reader import FigureReader, needs_browser
from helpers.figure_samples import CIRCLE, MAPS, RNG, VALUES, W_O, WORDS, heads

TRIANGLE = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 3.5]])
ARROW_WORDS, SENTENCES = ["dog", "bites", "man"], [[0, 1, 2], [2, 1, 0], [0, 1, 0]]
ARROWS = np.array([[1.6, 0.9], [-0.9, 1.2], [1.5, -0.7]])
AGES, PRICES = [1.0, 3.0, 5.0, 9.0, 14.0], [31.0, 24.0, 18.0, 12.0, 45.0]
X = RNG.normal(size=(5, 4))
MARKUP_WORD = "<img src=x onerror=alert(1)>"


FIGURES = {
    "mean_shift_circle": lambda: moving.mean_shift_circle(CIRCLE),
    "width_slider": moving.width_slider,
    "position_dial": moving.position_dial,
    "heads_off": heads,
    "three_weights": lambda: moving.three_weights(TRIANGLE),
    "two_means": lambda: moving.two_means(ARROW_WORDS, ARROWS, SENTENCES),
    "soft_prices": lambda: moving.soft_prices(AGES, PRICES, 6.5),
    "worked_row": lambda: moving.worked_row(X, WORDS, 1),
}
CONTROLS = {
    "mean_shift_circle": 4,
    "width_slider": 4,
    "position_dial": 8,
    "heads_off": 4,
    "three_weights": 5,
    "two_means": 7,
    "soft_prices": 2,
    "worked_row": 5,
}
every_figure = pytest.mark.parametrize("name", FIGURES)


def control(reader: FigureReader, name: str):
    return reader.figure.locator(f'.am-stage [data-part="{name}"]')


def assert_close(computed, expected, atol=1e-6) -> None:
    np.testing.assert_allclose(computed, expected, rtol=0, atol=atol)


# --- without a browser ----------------------------------------------------------------------------


@every_figure
def test_equal_arguments_equal_bytes_and_nothing_from_outside(name):
    html = FIGURES[name]()._repr_html_()
    assert html == FIGURES[name]()._repr_html_()
    assert " id=" not in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    json.loads(data)


@pytest.mark.parametrize(
    "figure",
    [
        moving.worked_row(X, [MARKUP_WORD, "</script>", '"&<', "مرحبا", "x"]),
        heads([MARKUP_WORD[:9], "</b>", '"&<', "x", "y"], names=[MARKUP_WORD, "</script>", "&"]),
    ],
)
def test_words_are_escaped(figure):
    html = figure._repr_html_()
    assert html.count("</script>") == 2
    assert "<img" not in html
    assert "</b>" not in html


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("mean_shift_circle", [[[1.0, 0.0], [2.0, 0.0]]], "length 1"),
        ("mean_shift_circle", [[[1.0, 0.0, 0.0]]], r"\(n, 2\)"),
        ("mean_shift_circle", [[[1.0, math.nan]]], "NaN"),
        ("mean_shift_circle", [[]], "shape"),
        ("mean_shift_circle", [np.tile([1.0, 0.0], (201, 1))], "200"),
        ("mean_shift_circle", [CIRCLE, 41], "kappa"),
        ("mean_shift_circle", [CIRCLE, math.nan], "kappa"),
        ("width_slider", [[1.0]], "2 to 10"),
        ("width_slider", [[1.0, math.inf]], "finite"),
        ("width_slider", [[1.0, 11.0]], "at most 10"),
        ("width_slider", [[1.0, 0.0], 48], "power of 2"),
        ("position_dial", [[1.0, 0.0], [0.0, 0.0]], "lengths"),
        ("position_dial", [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], "two numbers"),
        ("position_dial", [[1.0, 0.0], [0.0, 1.0], 61], "from 0 to 60"),
        ("position_dial", [[1.0, 0.0], [0.0, 1.0], 1.5], "whole"),
        ("position_dial", [[1.0, 0.0], [0.0, 1.0], 1, 1, math.inf], "base"),
        ("heads_off", [MAPS, VALUES, WORDS, W_O[:5]], "W_o"),
        ("heads_off", [MAPS * 2, VALUES, WORDS, W_O], "sum to 1"),
        ("heads_off", [MAPS, VALUES, WORDS[:4], W_O], "5 words"),
        ("heads_off", [MAPS, VALUES, "words", W_O], "5 words"),
        ("heads_off", [MAPS, VALUES, WORDS, W_O, ["a"]], "names"),
        ("heads_off", [MAPS, VALUES, WORDS, W_O, (), [3]], "from 0 to 2"),
        ("heads_off", [MAPS, VALUES, ["a" * 40] * 5, W_O], "letters"),
        ("heads_off", [MAPS, VALUES * math.nan, WORDS, W_O], "NaN"),
        ("heads_off", [np.full((5, 5, 5), 0.2), VALUES, WORDS, W_O], "at most 4"),
        ("three_weights", [[[0, 0], [1, 1], [2, 2]]], "one line"),
        ("three_weights", [[[1, 1], [1, 1], [1, 1]]], "one line"),
        ("three_weights", [TRIANGLE[:2]], r"\(3, 2\)"),
        ("three_weights", [TRIANGLE, (3, 0, 0)], "weights"),
        ("two_means", [["a"], [[1.0, 1.0]], SENTENCES], "2 to 4 words"),
        ("two_means", [ARROW_WORDS, 2 * ARROWS, SENTENCES], "up to 2.5 and 1.75"),
        ("two_means", [ARROW_WORDS, ARROWS, [[0, 1], [3]]], "2 or 3 lists"),
        ("two_means", [ARROW_WORDS, ARROWS, [[0, 1], []]], "2 or 3 lists"),
        ("soft_prices", [AGES, PRICES[:4], 6], "2 to 8 keys"),
        ("soft_prices", [[-1.0, 2.0], [1.0, 2.0], 1], "above 0"),
        ("soft_prices", [[1.0, 2.0], [1.0, 1e3], 1], "at most 999"),
        ("soft_prices", [AGES, PRICES, 17], "from 0 to 16"),
        ("soft_prices", [AGES, PRICES, 6, 0], "0.01 to 100"),
        ("worked_row", [X, WORDS[:4]], "5 words"),
        ("worked_row", [np.ones((17, 2)), ["a"] * 17], "16"),
        ("worked_row", [np.ones((2, 5)), ["a"] * 2], "4 features"),
        ("worked_row", [X * 1e4, WORDS], "1000"),
        ("worked_row", [X, WORDS, 5], "chosen"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(moving, name)(*arguments)


# --- what is computed is what the package computes ------------------------------------------------


def count_groups(points, near=0.05):
    """Return the number of groups as chapter 4 counts them."""
    label = np.full(len(points), -1)
    for i in range(len(points)):
        if label[i] < 0:
            mine = (label < 0) & (np.linalg.norm(points - points[i], axis=1) < near)
            label[mine] = label.max() + 1
    return label.max() + 1


@needs_browser
def test_a_step_on_the_circle_is_the_packages(opened):
    reader = opened(moving.mean_shift_circle(CIRCLE))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points = unit_rows(rng.normal(size=(seed + 1, 2)))
        kappa = rng.uniform(0.5, 40)
        computed = reader.compute({"points": points.tolist(), "kappa": kappa})
        weights = attention_weights(np.sqrt(kappa) * points)
        assert_close(computed["weights"], weights)
        assert_close(computed["output"], mix(weights, points))
        assert_close(computed["moved"], unit_rows(mix(weights, points)))
        assert computed["count"] == count_groups(points)


def points_drawn(reader: FigureReader) -> np.ndarray:
    """Return the points as they are drawn on the circle."""
    drawn = reader.figure.locator(".am-stage .am-point").evaluate_all(
        "dots => dots.map(dot => [dot.cx.baseVal.value, dot.cy.baseVal.value])"
    )
    return (np.array(drawn) - 165) / 115 * [1, -1]


@needs_browser
def test_the_buttons_move_the_points_by_the_kappa_of_the_slider(opened):
    reader = opened(moving.mean_shift_circle(CIRCLE, kappa=3))
    points, taken = CIRCLE, 0
    assert_close(points_drawn(reader), points, 1e-5)  # SVG keeps single precision
    for kappa, name, steps in ((3, "Step", 1), (17.5, "Step", 1), (17.5, "10 steps", 10)):
        control(reader, "kappa").fill(str(kappa))
        reader.button(name).click()
        for _ in range(steps):
            points = unit_rows(mix(attention_weights(np.sqrt(kappa) * points), points))
        taken += steps
        assert_close(points_drawn(reader), points, 1e-5)
        assert_close(reader.now["weights"], attention_weights(np.sqrt(kappa) * points))
        assert f"{taken} step" in reader.says
        assert f"{count_groups(points)} group" in reader.says
    reader.button("Back").click()
    assert_close(points_drawn(reader), CIRCLE, 1e-5)


def width_measures(draws: np.ndarray, width: int, divisor: str) -> dict:
    """Return chapter 7's measures of the weights of scores of size √width after division."""
    scores = torch.tensor(draws) * math.sqrt(width)
    if divisor == "√d":
        scores = scale_scores(scores[None], width)[0]
    elif divisor == "d":
        scores = scores / width
    weights = scores.softmax(-1)
    norm = torch.linalg.matrix_norm(softmax_jacobian(weights), ord=2).item()
    largest, entropy = weights.max().item(), attention_entropy(weights).item()
    return {"scores": scores.numpy(), "weights": weights.numpy(), "largest": largest,
            "entropy": entropy, "norm": norm}  # fmt: skip


def assert_measured(computed: dict, expected: dict) -> None:
    assert computed.keys() == expected.keys()
    for name, value in expected.items():
        assert_close(computed[name], value)


@needs_browser
def test_width_measures_agree_at_every_width(opened):
    reader = opened(moving.width_slider())
    for seed in range(30):
        rng = np.random.default_rng(seed)
        draws, width = rng.normal(size=rng.integers(2, 11)), int(2 ** rng.integers(11))
        for name, divisor in (("1", 1), ("√d", math.sqrt(width)), ("d", width)):
            inputs = {"draws": draws.tolist(), "width": width, "divisor": divisor}
            assert_measured(reader.compute(inputs), width_measures(draws, width, name))


@needs_browser
@pytest.mark.parametrize("scores", [[0, 0, 0], [2, 2, -1], [1e300, -1e300, 0], [5, 5]])
def test_the_gradient_agrees_at_equal_and_saturated_weights(opened, scores):
    computed = opened(moving.width_slider()).compute({"draws": scores, "width": 1, "divisor": 1})
    p = softmax(np.array(scores, dtype=float))
    assert_close(computed["norm"], np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1])
    assert 0 <= computed["entropy"] <= math.log(len(scores)) + 1e-12


@needs_browser
def test_slider_and_buttons_choose_width_and_divisor(opened):
    reader = opened(moving.width_slider())
    draws = np.array(moving.width_slider().data["draws"])
    for exponent, name in ((0, "1"), (10, "1"), (10, "√d"), (7, "√d"), (7, "d"), (10, "d")):
        control(reader, "width").fill(str(exponent))
        reader.button(name).click()
        expected = width_measures(draws, 2**exponent, name)
        assert_measured(reader.now, expected)
        assert f"Width {2**exponent}, divided by {name}:" in reader.says
        assert f"the largest weight is {expected['largest']:.3f}" in reader.says
        cells = reader.figure.locator(".am-stage .am-chosen").all_inner_texts()
        assert cells == [f"{expected[measure]:.3f}" for measure in ("largest", "entropy", "norm")]
        texts = reader.figure.locator(".am-stage [data-part=bars] text").all_text_contents()
        assert_close([float(t.replace("−", "-")) for t in texts[::2]], expected["scores"], 0.051)
        assert_close([float(t) for t in texts[1::2]], expected["weights"], 0.0051)


def rotated(vector, position: float, pair: int, d: int, base: float) -> np.ndarray:
    """Return a vector in one pair of d features, rotated by its position with the package."""
    x = torch.zeros(1, d, dtype=torch.float64)
    x[0, 2 * pair : 2 * pair + 2] = torch.tensor(vector, dtype=torch.float64)
    place = torch.tensor([position], dtype=torch.float64)
    return apply_rope(x, place, base)[0, 2 * pair : 2 * pair + 2].numpy()


@needs_browser
def test_hands_queries_and_keys_turn_as_the_package_turns_them(opened):
    reader = opened(moving.position_dial())
    for seed in range(30):
        rng = np.random.default_rng(seed)
        d, base = 2 * int(rng.integers(1, 9)), float(rng.uniform(2, 20000))
        q, k = rng.normal(size=(2, 2))
        s, t, pair = int(rng.integers(100)), int(rng.integers(100)), int(rng.integers(d // 2))
        inputs = {"s": s, "t": t, "pair": pair, "d": d, "base": base}
        computed = reader.compute({"q": q.tolist(), "k": k.tolist(), **inputs})
        assert_close(computed["encoding"], sinusoidal_encoding(s + 1, d, base)[s].numpy())
        turned = rotated(q, s, pair, d, base), rotated(k, t, pair, d, base)
        assert_close(computed["query"], turned[0])
        assert_close(computed["key"], turned[1])
        assert_close(computed["score"], turned[0] @ turned[1])


@needs_browser
def test_the_score_depends_on_the_distance_alone(opened):
    q, k = (0.3, -1.2), (2.0, 0.7)
    reader = opened(moving.position_dial(q, k, s=3, t=20))
    for pair, name in enumerate(("1", "0.1", "0.01", "0.001")):
        reader.button(name).click()
        scores, drawn = [], set()
        for s, t in ((0, 17), (30, 47), (43, 60)):
            control(reader, "s").fill(str(s))
            control(reader, "t").fill(str(t))
            assert_close(reader.now["query"], rotated(q, s, pair, 8, 10000))
            assert_close(reader.now["key"], rotated(k, t, pair, 8, 10000))
            assert_close(reader.now["encoding"], sinusoidal_encoding(61, 8)[s].numpy())
            assert "distance s − t = −17," in reader.says
            scores.append(reader.now["score"])
            drawn.add(control(reader, "dot").get_attribute("cx"))
            hand = control(reader, "hand-1").get_attribute("d")
            x, y = (float(part) for part in hand.split("l")[1].split(","))
            assert_close([x / 28, -y / 28], [math.sin(s / 10), math.cos(s / 10)])
        assert_close(scores, scores[0])
        assert len(drawn) == 1


@needs_browser
def test_query_and_key_move_on_and_stop_at_the_ends(opened):
    reader = opened(moving.position_dial(s=59, t=1))
    score = reader.now["score"]
    reader.button("Both on by 1").click()
    assert "Query at 60, key at 2," in reader.says
    assert_close(reader.now["score"], score)
    assert reader.button("Both on by 1").is_disabled()
    for _ in range(2):
        reader.button("Both back by 1").click()
    assert reader.button("Both back by 1").is_disabled()


def concatenation_and_output(maps, values, W_o, on) -> tuple[np.ndarray, np.ndarray]:
    """Return concatenation and output, with zeros from the heads that are off."""
    A, V, W = (torch.tensor(np.array(x)) for x in (maps, values, W_o))
    head_outputs = torch.tensor(on, dtype=torch.float64)[:, None, None] * (A @ V)
    concat = merge_heads(head_outputs)
    return concat.numpy(), (concat @ W).numpy()


def assert_joined(computed: dict, maps, values, W_o, on) -> None:
    concat, output = concatenation_and_output(maps, values, W_o, on)
    all_heads = concatenation_and_output(maps, values, W_o, [True] * len(maps))[1]
    assert_close(computed["concat"], concat)
    assert_close(computed["output"], output)
    change = np.linalg.norm(output - all_heads, axis=1) / np.linalg.norm(all_heads, axis=1)
    assert_close(computed["change"], change)


@needs_browser
def test_heads_that_are_off_hand_zeros_to_the_last_matrix(opened):
    reader = opened(heads())
    for seed in range(20):
        rng = np.random.default_rng(seed)
        h, n, d_head, d = (int(x) for x in rng.integers(1, [5, 8, 4, 9]))
        inputs = {
            "maps": rng.dirichlet(np.ones(n), size=(h, n)).tolist(),
            "values": rng.normal(size=(h, n, d_head)).tolist(),
            "W_o": rng.normal(size=(h * d_head, d)).tolist(),
            "on": [bool(x) for x in rng.integers(2, size=h)],
        }
        assert_joined(reader.compute(inputs), **inputs)


@needs_browser
def test_a_switch_turns_its_head_off(opened):
    reader = opened(heads())
    on = [True, True, True]
    for i in (1, 0, 2, 1):
        control(reader, f"switch-{i}").click()
        on[i] = not on[i]
        assert_joined(reader.now, MAPS, VALUES, W_O, on)
        concat, output = concatenation_and_output(MAPS, VALUES, W_O, on)
        for name, numbers in (("concat", concat), ("output", output)):
            cells = control(reader, name).locator("tbody td").all_inner_texts()
            shown = [float(c.replace("−", "-")) for c in cells if "%" not in c]
            assert_close(shown, numbers.ravel(), 0.051)
        for j, state in enumerate(on):
            pressed = control(reader, f"switch-{j}").get_attribute("aria-pressed")
            assert pressed == str(state).lower()
            assert not any(on) or (f"head {j}" in reader.says) != state
        assert ("All heads are off" in reader.says) != any(on)
    reader.button("All on").click()
    assert_joined(reader.now, MAPS, VALUES, W_O, [True] * 3)


@needs_browser
def test_heads_can_be_off_from_the_start(opened):
    figure = heads(off=[0, 2])
    first = re.findall(r"<td[^>]*>([^<]*)</td>", figure._repr_html_())
    reader = opened(figure)
    assert_joined(reader.now, MAPS, VALUES, W_O, [False, True, False])
    shown = control(reader, "concat").locator("tbody td").all_inner_texts()
    shown += control(reader, "output").locator("tbody td").all_inner_texts()
    assert [cell for cell in first if cell] == shown  # what stands without a script is the same
    assert [control(reader, f"switch-{i}").inner_text() for i in range(3)] == ["off", "on", "off"]
    assert "Off: “head 0”, “head 2”." in reader.says
    reader.button("All on").click()
    assert_joined(reader.now, MAPS, VALUES, W_O, [True] * 3)


@needs_browser
def test_the_brief_dial_computes_what_the_full_one_does(opened):
    reader = opened(moving.position_dial(s=3, t=20, brief=True))
    score = reader.now["score"]
    assert_close(score, rotated((0.6, 0.9), 3, 1, 8, 1e4) @ rotated((0.9, 0.35), 20, 1, 8, 1e4))
    reader.button("Both on by 1").click()
    assert "Query at 4, key at 21," in reader.says
    assert_close(reader.now["score"], score)
    control(reader, "s").fill("9")
    assert abs(reader.now["score"] - score) > 0.01
    assert reader.figure.locator('.am-stage [data-part="curve"]').count() == 0


@needs_browser
def test_blends_and_the_rules_of_a_mixture_are_the_packages(opened):
    reader = opened(moving.three_weights(TRIANGLE))
    for seed in range(40):
        rng = np.random.default_rng(seed)
        weights = rng.dirichlet(np.ones(3)) + (seed % 4) / 10 * rng.normal(size=3)
        points = rng.normal(size=(3, 2))
        computed = reader.compute({"points": points.tolist(), "weights": weights.tolist()})
        assert_close(computed["blend"], mix(weights[None], points)[0])
        assert_close(computed["sum"], weights.sum())
        assert computed["negative"] == np.flatnonzero(weights < 0).tolist()
        assert computed["fair"] == is_row_stochastic(weights[None], atol=1e-9)


@needs_browser
@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([0.25, 0.75, 0], "a mixture"),
        ([-0.25, 0.75, 0.5], "No mixture: weight 0 is negative."),
        ([0.5, 0.5, 0.5], "No mixture: the weights sum to 1.500, not to 1."),
        ([1.5, -0.25, -0.5], "weight 1 is negative, weight 2 is negative, the weights sum to 0.75"),
        ([2, 2, 2], "outside the picture"),
    ],
)
def test_typed_weights_move_the_blend(opened, weights, says):
    reader = opened(moving.three_weights(TRIANGLE))
    for j, weight in enumerate(weights):
        control(reader, f"weight-{j}").fill(str(weight))
    assert_close(reader.now["blend"], mix(np.array([weights], dtype=float), TRIANGLE)[0])
    assert says in reader.says
    hollow = "page" in reader.figure.locator(".am-stage .am-grip").get_attribute("style")
    assert hollow != is_row_stochastic(np.array([weights], dtype=float))


@needs_browser
def test_the_blend_is_where_it_was_dragged_to(opened):
    reader = opened(moving.three_weights(TRIANGLE))
    box = reader.figure.locator(".am-stage svg").bounding_box()
    for x, y in ((0.5, 0.5), (0.3, 0.7), (0.62, 0.4), (0.9, 0.95)):
        reader.page.mouse.move(box["x"] + 0.45 * box["width"], box["y"] + 0.5 * box["height"])
        reader.page.mouse.down()
        reader.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=3)
        reader.page.mouse.up()
        grip = reader.figure.locator(".am-stage .am-grip")
        drawn = [float(grip.get_attribute(axis)) / 330 for axis in ("cx", "cy")]
        assert_close(drawn, [x, y], 2e-3)  # the weights are rounded to thousandths
        weights = [float(control(reader, f"weight-{j}").input_value()) for j in range(3)]
        assert_close(sum(weights), 1)
        assert_close(reader.now["blend"], mix(np.array([weights]), TRIANGLE)[0])
        assert reader.now["fair"] == (min(weights) >= 0)


@needs_browser
def test_dividing_by_the_sum_and_going_back(opened):
    reader = opened(moving.three_weights(TRIANGLE))
    for j, weight in enumerate((1.5, 0.5, 2)):
        control(reader, f"weight-{j}").fill(str(weight))
    reader.button("Divide by their sum").click()
    assert_close(reader.now["blend"], mix(np.array([[3, 1, 4]]) / 8, TRIANGLE)[0])
    assert reader.now["fair"]
    for j, weight in enumerate((0.5, -0.5, 0)):
        control(reader, f"weight-{j}").fill(str(weight))
    reader.button("Divide by their sum").click()
    assert "close to 0" in reader.says
    reader.button("Back").click()
    assert_close(reader.now["blend"], mix(np.array([[0.5, 0.2, 0.3]]), TRIANGLE)[0])


@needs_browser
@pytest.mark.parametrize("entry", ["", "1e400", "2.01", "-2.01"])
def test_a_weight_that_is_no_number_or_huge_gets_a_sentence(opened, entry):
    reader = opened(moving.three_weights(TRIANGLE))
    before, field = reader.now, control(reader, "weight-1")
    field.fill(entry)
    assert "Weight 1: a number from −2 to 2, please." in reader.says
    assert field.get_attribute("aria-invalid") == "true"
    assert reader.now == before
    field.fill("0.2")
    assert "a mixture" in reader.says
    assert field.get_attribute("aria-invalid") == "false"


@needs_browser
def test_means_and_cosines_of_arrows_are_the_packages(opened):
    reader = opened(moving.two_means(ARROW_WORDS, ARROWS, SENTENCES))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        vectors, pair = rng.normal(size=(3, 2)), rng.integers(3, size=(2, 1 + seed % 4))
        vectors[0] *= seed % 5 > 0
        computed = reader.compute({"vectors": vectors.tolist(), "sentences": pair.tolist()})
        assert_close(computed["cosines"], cosine_similarity(vectors, vectors))
        assert_close(computed["means"], vectors[pair].mean(axis=1))


@needs_browser
def test_dragged_arrows_keep_one_mean_for_two_sentences(opened):
    reader = opened(moving.two_means(ARROW_WORDS, ARROWS, SENTENCES))
    vectors = ARROWS.copy()
    box = reader.figure.locator(".am-stage svg").bounding_box()
    scale = box["width"] / 330
    for word, x, y in ((2, -1.0, -1.0), (1, 0.5, -1.5), (0, 9.0, 0.25)):
        start = reader.figure.locator(f'.am-stage [data-word="{word}"]').bounding_box()
        reader.page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
        reader.page.mouse.down()
        to = box["x"] + scale * (165 + 56 * x), box["y"] + scale * (108 - 56 * y)
        reader.page.mouse.move(*to, steps=3)
        reader.page.mouse.up()
        vectors[word] = min(x, 2.5), y
        assert_close(reader.now["means"], [vectors.mean(axis=0)] * 2, 0.01)
        assert_close(reader.now["cosines"], cosine_similarity(vectors, vectors), 0.03)
        assert "one place" in reader.says
    reader.button("bites").click()
    control(reader, "x").fill("2")
    control(reader, "y").fill("-1.5")
    vectors[1] = 2, -1.5
    reader.button("dog bites dog").click()
    assert_close(
        reader.now["means"], [vectors[s].mean(axis=0) for s in ([0, 1, 2], [0, 1, 0])], 0.02
    )
    assert "two places" in reader.says
    at = control(reader, "means").locator("circle").nth(1)
    drawn = np.array([float(at.get_attribute(axis)) for axis in ("cx", "cy")])
    assert_close((drawn - [165, 108]) / 56 * [1, -1], reader.now["means"][1])


@needs_browser
def test_prices_are_soft_lookups_at_every_temperature(opened):
    reader = opened(moving.soft_prices(AGES, PRICES, 6.5))
    keys, values = np.array(AGES), np.array(PRICES)
    for query, heat in ((0, -2), (6.5, -1.3), (7, -2), (12.3, 0), (16, 2), (3, 1.4)):
        control(reader, "query").fill(str(query))
        control(reader, "heat").fill(str(heat))
        weights = softmax(-((query - keys) ** 2) / 2, temperature=10**heat)
        assert_close(reader.now["weights"], weights)
        price = kernel_regression(np.array([float(query)]), keys, values, 10 ** (heat / 2))[0]
        assert_close(reader.now["answer"], price)
        assert f"The price is {price:.1f} thousand." in reader.says
        ring = reader.figure.locator(".am-stage .am-answer")
        assert_close((186 - float(ring.get_attribute("cy"))) / 172 * 50, price)
    box = reader.figure.locator(".am-stage svg").bounding_box()
    reader.page.mouse.click(box["x"] + box["width"] * (34 + 284 / 2) / 330, box["y"] + 50)
    assert_close(float(control(reader, "query").input_value()), 8.0, 0.11)


@needs_browser
@pytest.mark.parametrize("size", [1, 30, 1000])
def test_a_row_is_worked_out_in_words(opened, size):
    rng = np.random.default_rng(size)
    tokens = rng.uniform(-size, size, size=(6, 3))
    reader = opened(moving.worked_row(tokens, list("abcdef")))
    for i, name in enumerate("abcdef"):
        reader.button(name).click()
        scores = tokens @ tokens[i]
        assert_close(reader.now["scores"], scores, 1e-6 * size**2)
        assert_close(reader.now["shares"], attention_weights(tokens)[i])
        assert_close(reader.now["output"], self_attention(tokens)[i])
        assert_close(reader.now["parts"], attention_weights(tokens)[i][:, None] * tokens)
        raw = np.exp(scores - (scores.max() if size > 1 else 0))
        np.testing.assert_allclose(reader.now["raw"], raw, rtol=1e-6, atol=1e-300)
        text = reader.figure.inner_text()
        assert "NaN" not in text
        assert "Infinity" not in text
        cells = reader.figure.locator(".am-stage .am-sum td").all_inner_texts()
        shown = [float(cell.replace("−", "-")) for cell in cells[3:]]
        assert_close(shown, self_attention(tokens)[i], 0.0051)
        assert f"“{name}” ({i}) listens most to" in reader.says


# --- as a reader has it ---------------------------------------------------------------------------

DRAWN_SCRIPT = """(root, stage) => [...root.querySelectorAll(
    stage + " :is(path, circle, text, td, i)")].map(node => [
        ["text", "TD"].includes(node.tagName) ? node.textContent.trim() : "",
        ...["d", "cx", "cy", "style"].map(key => node.getAttribute(key) ?? "")])"""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


@needs_browser
@every_figure
def test_the_first_state_is_the_same_with_and_without_a_script(opened, name):
    """What Python drew, and what the script draws in its place before anybody has moved."""
    reader = opened(FIGURES[name]())
    drawn = reader.figure.evaluate(DRAWN_SCRIPT, ".am-stage")
    reader.page.emulate_media(media="print")
    reader.figure.locator(".am-first").wait_for(state="attached")
    first = reader.figure.evaluate(DRAWN_SCRIPT, ".am-first")
    assert len(drawn) == len(first) > 5
    for script_row, html_row in zip(drawn, first, strict=True):
        assert script_row[0] == html_row[0]
        for script_text, html_text in zip(script_row[1:4], html_row[1:4], strict=True):
            numbers = [list(map(float, NUMBER.findall(text))) for text in (script_text, html_text)]
            assert_close(*numbers, atol=0.11)


@needs_browser
@every_figure
def test_without_a_script_and_on_paper_the_first_state_is_shown(opened, name):
    still = opened(FIGURES[name](), java_script_enabled=False)
    assert "In a browser that runs scripts" in still.page.inner_text(".am-still")
    assert still.page.locator("button:visible, input:visible").count() == 0
    assert still.page.locator(".am-stage :is(svg, table):visible").count() > 0
    assert len(still.says) > 10
    printed = opened(FIGURES[name]())
    printed.page.emulate_media(media="print")
    printed.figure.locator(".am-first").wait_for(state="attached")
    assert printed.page.is_visible(".am-still")
    assert not printed.page.is_visible(".am-stage")
    assert printed.page.locator(".am-first :is(svg, table):visible").count() > 0
    assert printed.page.locator("button:visible, input:visible").count() == 0


@needs_browser
@every_figure
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(opened, name, scheme):
    reader = opened(FIGURES[name](), width=390, color_scheme=scheme)
    assert reader.overflow() <= 0
    assert reader.small_text() == []


@needs_browser
@every_figure
def test_every_control_has_a_name_and_is_reached_by_keyboard(opened, name):
    reader = opened(FIGURES[name]())
    fields = reader.figure.locator(".am-stage :is(button, input):visible:enabled")
    assert fields.count() == CONTROLS[name]
    fields.evaluate_all("nodes => nodes.forEach((node, i) => { node.dataset.place = i; })")
    reached = set()
    for _ in range(fields.count() + 4):
        reader.page.keyboard.press("Tab")
        reached.add(reader.page.evaluate("document.activeElement.dataset.place ?? ''"))
    assert {str(i) for i in range(fields.count())} <= reached
    for field in fields.all():
        words = field.evaluate("node => node.ariaLabel ?? (node.labels?.[0] ?? node).innerText")
        assert words.strip()


@needs_browser
def test_keys_move_what_the_mouse_moves(opened):
    reader = opened(moving.mean_shift_circle(CIRCLE))
    reader.button("Step").focus()
    reader.page.keyboard.press("Enter")
    assert reader.says.startswith("1 step,")
    control(reader, "kappa").focus()
    reader.page.keyboard.press("ArrowRight")
    assert "κ = 10.5" in reader.says
    reader = opened(moving.three_weights(TRIANGLE))
    control(reader, "weight-2").focus()
    reader.page.keyboard.press("ArrowUp")
    assert_close(reader.now["blend"], mix(np.array([[0.5, 0.2, 0.35]]), TRIANGLE)[0])
    reader = opened(heads())
    control(reader, "switch-2").focus()
    reader.page.keyboard.press("Space")
    assert "Off: “head 2”." in reader.says


@needs_browser
def test_points_glide_unless_motion_is_not_wanted(opened):
    times = "dot => getComputedStyle(dot).transitionDuration"
    still = opened(moving.mean_shift_circle(CIRCLE))
    assert still.figure.locator(".am-stage .am-point").first.evaluate(times) == "0s"
    reader = opened(moving.mean_shift_circle(CIRCLE), reduced_motion="no-preference")
    dots = reader.figure.locator(".am-stage .am-point")
    assert "0.35s" in dots.first.evaluate(times)
    for name in ("Step", "Back", "Step"):  # faster than they glide
        reader.button(name).click()
    reader.page.wait_for_function(
        "() => document.getAnimations().every(one => one.playState === 'finished')"
    )
    seen = "dots => dots.map(dot => [getComputedStyle(dot).cx, getComputedStyle(dot).cy])"
    places = [[float(x.removesuffix("px")) for x in dot] for dot in dots.evaluate_all(seen)]
    expected = unit_rows(mix(attention_weights(np.sqrt(10) * CIRCLE), CIRCLE))
    assert_close((np.array(places) - 165) / 115 * [1, -1], expected, 1e-4)


@needs_browser
def test_two_figures_are_independent_and_markup_never_runs(opened):
    nasty = [MARKUP_WORD, "</script>", '"&<', "مرحبا", "x"]
    reader = opened(moving.worked_row(X, nasty), moving.worked_row(2 * X, WORDS))
    reader.button(MARKUP_WORD).click()
    assert MARKUP_WORD in reader.says
    assert_close(reader.now["output"], self_attention(X)[0])
    second_figure = reader.page.locator(".attncourse-moving").nth(1)
    assert_close(second_figure.evaluate("root => root.now.output"), self_attention(2 * X)[0])
    assert reader.page.locator("img").count() == 0


@needs_browser
@pytest.mark.parametrize(
    "figure",
    [
        moving.mean_shift_circle(np.array([[0.6, 0.8]])),
        moving.mean_shift_circle(np.array([[1.0, 0.0], [-1.0, 0.0]]), kappa=0.5),
        moving.mean_shift_circle(np.tile([0.0, 1.0], (200, 1)), kappa=40),
        moving.width_slider([0.0, 0.0]),
        moving.width_slider([10.0] * 5 + [-10.0] * 5, d_k=1024),
        moving.position_dial((0.01, 0.0), (100.0, 0.0), s=0, t=60, base=1e9),
        moving.heads_off([[[1.0]]], [[[0.0]]], ["a"], [[0.0]]),
        moving.three_weights(TRIANGLE * 1e6, (2, -2, 2)),
        moving.two_means(["a", "b"], np.zeros((2, 2)), [[0], [1]]),
        moving.soft_prices([1.0, 1.0], [999.0, 1e-6], 0.0, 0.01),
        moving.worked_row([[0.0]], ["nothing"]),
    ],
)
def test_extreme_settings_give_finite_numbers(opened, figure):
    reader = opened(figure, width=390)
    for button in reader.figure.locator(".am-stage button:enabled").all():
        if button.is_enabled():
            button.click()
        html = reader.figure.locator(".am-stage").inner_html() + reader.says
        assert not re.search("NaN|Infinity|undefined", html)
    assert reader.overflow() <= 0


@needs_browser
@pytest.mark.parametrize("name", ["three_weights", "soft_prices"])
def test_a_finger_that_scrolls_past_changes_nothing(opened, name):
    reader = opened(FIGURES[name](), width=390, has_touch=True)
    reader.page.evaluate("() => { document.body.style.height = '4000px'; }")
    finger = reader.context.new_cdp_session(reader.page)
    picture = reader.figure.locator(".am-stage svg").first
    box = picture.bounding_box()
    x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"]

    def stroke(dx: float, dy: float) -> None:
        touch = "Input.dispatchTouchEvent"
        finger.send(touch, {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        for share in (0.2, 0.4, 0.6, 0.8, 1.0):
            points = [{"x": x + share * dx, "y": y + share * dy}]
            finger.send(touch, {"type": "touchMove", "touchPoints": points})
        finger.send(touch, {"type": "touchEnd", "touchPoints": []})

    before = reader.now
    stroke(3, -150)
    reader.page.wait_for_function("() => scrollY > 50")
    assert reader.now == before
    reader.page.evaluate("() => scrollTo(0, 0)")
    stroke(60, 2)
    assert (dragged := reader.now) != before
    picture.tap(position={"x": 0.4 * box["width"], "y": 0.5 * box["height"]})
    assert reader.now not in (before, dragged)


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_pressed_button_shows_in_forced_colours(opened, scheme):
    reader = opened(heads(), forced_colors="active", color_scheme=scheme)
    reader.figure.locator(".am-stage [data-part^=switch]").first.click()
    buttons = reader.figure.locator(".am-stage button[aria-pressed]")
    looks = buttons.evaluate_all(
        """all => { document.activeElement.blur();
            return all.map(one => [one.ariaPressed, getComputedStyle(one).outlineStyle]); }"""
    )
    assert {pressed for pressed, _ in looks} == {"true", "false"}
    assert all((outline == "solid") == (pressed == "true") for pressed, outline in looks)
