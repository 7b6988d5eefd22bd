"""The stepper of chapter 5: its numbers are the package's, whatever a reader makes of it."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import numpy as np
import pytest
import torch

from attncourse.figures.moving import attention_stepper
from attncourse.figures.moving.figure import lean
from attncourse.kqv import attention_scores, attention_weights, project
from helpers.figure_reader import FigureReader, needs_browser
from helpers.figure_samples import NUMBERS, TOKENS


@pytest.fixture
def reader(browser):
    made = FigureReader(browser, attention_stepper(**NUMBERS, tokens=TOKENS))
    yield made
    assert made.wrong == []
    made.close()


def by_package(numbers: dict) -> dict[str, np.ndarray]:
    X, W_q, W_k, W_v = (torch.tensor(m, dtype=torch.float64) for m in numbers.values())
    Q, K, V = project(X, W_q), project(X, W_k), project(X, W_v)
    weights = attention_weights(Q, K)
    scores = attention_scores(Q, K) / Q.shape[-1] ** 0.5
    matrices = {"Q": Q, "K": K, "V": V, "scores": scores, "weights": weights, "output": weights @ V}
    return {name: tensor.numpy() for name, tensor in matrices.items()}


def assert_same(computed: dict, numbers: dict) -> None:
    expected = by_package(numbers)
    assert computed.keys() == expected.keys()
    for name, matrix in expected.items():
        np.testing.assert_allclose(computed[name], matrix, rtol=0, atol=1e-6, err_msg=name)


def cell_text(reader: FigureReader, name: str) -> str:
    return reader.figure.locator(f'.am-stage [data-at="{name}"]').inner_text().strip()


def random_numbers(seed: int, n=3, d=3, d_k=2, d_v=2) -> dict:
    rng = np.random.default_rng(seed)
    shapes = {"X": (n, d), "W_q": (d, d_k), "W_k": (d, d_k), "W_v": (d, d_v)}
    return {name: rng.integers(-36, 37, shape).tolist() for name, shape in shapes.items()}


def quartered(numbers: dict) -> dict:
    return {name: (np.array(matrix) / 4).tolist() for name, matrix in numbers.items()}


# --- without a browser ----------------------------------------------------------------------------


def test_equal_bytes_and_the_worked_example_first():
    html = attention_stepper(**NUMBERS, tokens=TOKENS)._repr_html_()
    assert html == attention_stepper(**NUMBERS, tokens=TOKENS)._repr_html_()
    cells = dict(re.findall(r'data-at="(\w+)">([^<]*)<', html))
    expected = by_package(NUMBERS)
    assert cells["q"] == "(0, 1)"
    assert cells["k2"] == "(1, 2)"
    assert [cells[f"s{j}"] for j in range(3)] == ["0", "1", "2"]
    assert cells["u"] == "({:.2f}, {:.2f})".format(*expected["output"][0])
    assert [f"{w:.2f}" for w in expected["weights"][0]] == re.findall(r"<b>([\d.]+)</b>", html)


def test_tokens_are_never_markup_in_a_script():
    html = attention_stepper(**NUMBERS, tokens=["</script>", "<b>x", "&"])._repr_html_()
    assert html.count("</script>") == 2
    assert "<b>x" not in html
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert json.loads(data)["tokens"] == ["</script>", "<b>x", "&"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[1, 0, 0]]}, "one row for each token"),
        ({"X": [[1.0] * 5] * 3}, "at most 4"),
        ({"W_q": [[1, 0]]}, "W_q"),
        ({"W_v": [[1, 0, 2]] * 3}, "W_v"),
        ({"W_k": [[1]] * 3}, "of one shape"),
        ({"X": [[1, 0, np.nan]] * 3}, "X"),
        ({"X": [[1, 0, 10]] * 3}, "from −9 to 9"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        attention_stepper(**{**NUMBERS, **change}, tokens=TOKENS)


# --- as a reader has it ---------------------------------------------------------------------------


@needs_browser
@pytest.mark.parametrize("sizes", [{}, {"n": 4, "d": 2, "d_k": 1}, {"n": 1, "d": 4, "d_v": 1}])
def test_it_computes_what_the_package_does(reader, sizes):
    for seed in range(20):
        numbers = quartered(random_numbers(seed, **sizes))
        assert_same(reader.compute(numbers), numbers)


@needs_browser
def test_each_stage_adds_its_part_of_the_picture(reader):
    seen = []
    for _ in range(5):
        shown = [n for n in ("X00", "Q00", "q", "k0", "s0", "w0", "v0", "u")
                 if reader.figure.locator(f'.am-stage [data-at="{n}"]').is_visible()]  # fmt: skip
        seen.append(shown)
        reader.button("Next ▸").click()
    all_parts = ["X00", "Q00", "q", "k0", "s0", "w0", "v0", "u"]
    assert seen == [all_parts[:1], all_parts[:3], all_parts[:5], all_parts[:6], all_parts]


@needs_browser
def test_typed_numbers_and_the_chosen_token_are_shown(reader):
    reader.button("Whole").click()
    numbers = quartered(random_numbers(5))
    for name, matrix in numbers.items():
        for i, j in np.ndindex(np.shape(matrix)):
            cell = reader.figure.locator(f'[data-at="{name}{i}{j}"] input')
            cell.fill(str(matrix[i][j]))
    assert_same(reader.now, numbers)
    expected = by_package(numbers)
    for i, token in enumerate(TOKENS):
        reader.button(token).click()
        for j in range(3):
            assert cell_text(reader, f"w{j}") == f"{expected['weights'][i, j]:.2f}"
            shown = cell_text(reader, f"c{j}").replace("−", "-")
            assert float(shown) == pytest.approx(expected["scores"][i, j], abs=0.0051)
        blend = [float(x) for x in cell_text(reader, "u").replace("−", "-").strip("()").split(",")]
        np.testing.assert_allclose(blend, expected["output"][i], atol=0.0051)
    reader.button("Numbers of the page").click()
    assert_same(reader.now, NUMBERS)


@needs_browser
def test_each_stage_writes_out_its_arithmetic(reader):
    sentences = [reader.says]  # it opens on the first stage
    for _ in range(4):
        reader.button("Next ▸").click()
        sentences.append(reader.says)
    assert "(1, 0, 0)" in sentences[0]
    assert "q = x W_q: 1·0 + 0·0 + 0·1 = 0 and 1·1 + 0·1 + 0·0 = 1" in sentences[1]
    assert "“hungry”: q · k = 0·1 + 1·2 = 2, and ÷ √2 = 1.41" in sentences[2]
    assert "e^0 + e^0.71 + e^1.41 = 1 + 2.03 + 4.11 = 7.14" in sentences[3]
    assert "“hungry”: 4.11 / 7.14 = 0.58" in sentences[3]
    assert "u = 0.14·(4, 0) + 0.28·(2, 2) + 0.58·(4, 4) = (3.43, 2.87)" in sentences[4]


@needs_browser
@pytest.mark.parametrize("typed", ["", "1e400", "10", "-9.01"])
def test_a_number_that_is_none_or_huge_gets_a_sentence(reader, typed):
    reader.button("Whole").click()
    before = reader.now
    cell = reader.figure.get_by_label("W_k, row 0, column 1")
    cell.fill(typed)
    assert "no number from −9 to 9" in reader.says
    assert cell.get_attribute("aria-invalid") == "true"
    assert reader.now == before
    cell.fill("3")
    assert "no number" not in reader.says
    assert reader.now["K"][0][1] == 3


@needs_browser
def test_letters_are_not_taken_as_numbers(reader):
    cell = reader.figure.get_by_label("X, hungry, column 0")
    cell.press("Control+a")
    cell.press_sequentially("eee")  # what a number field lets through of NaN, Infinity, 1e9e9
    assert "no number from −9 to 9" in reader.says


@needs_browser
def test_the_largest_numbers_stay_finite(browser):
    most = {name: np.full(np.shape(matrix), 9).tolist() for name, matrix in NUMBERS.items()}
    most["X"][0] = [-9, 9, -9]
    reader = FigureReader(browser, attention_stepper(**most, tokens=TOKENS), width=390)
    assert_same(reader.now, most)
    for stage in ("x", "q, k, v", "Scores", "Weights", "Blend", "Whole"):
        reader.button(stage).click()
        text = reader.figure.inner_text()
        assert "NaN" not in text
        assert "Infinity" not in text
    assert reader.overflow() <= 0
    assert reader.wrong == []
    reader.close()


@needs_browser
def test_it_works_by_keyboard_alone(reader):
    reader.button("I").focus()
    reader.page.keyboard.press("ArrowRight")
    assert reader.button("am").get_attribute("aria-pressed") == "true"
    for _ in range(2):
        reader.page.keyboard.press("Tab")
    reader.page.keyboard.press("Tab")
    reader.page.keyboard.press("Enter")
    assert reader.button("x").get_attribute("aria-pressed") == "true"
    assert "“am” comes in as x" in reader.says


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser, scheme):
    figure = attention_stepper(**NUMBERS, tokens=TOKENS)
    reader = FigureReader(browser, figure, width=390, color_scheme=scheme)
    heights = set()
    for stage in ("Whole", "x", "q, k, v", "Scores", "Weights", "Blend"):
        reader.button(stage).click()
        assert reader.overflow() <= 0
        assert reader.small_text() == []
        heights.add(round(reader.figure.bounding_box()["height"]))
    assert len(heights) == 1  # what stands below stays where it is
    assert not reader.figure.locator(".am-stage .st-left").is_visible()
    reader.close()


@needs_browser
def test_without_scripts_and_on_paper_it_shows_the_first_state(browser):
    figure = attention_stepper(**NUMBERS, tokens=TOKENS)
    still = FigureReader(browser, figure, java_script_enabled=False)
    assert "any token may ask" in still.page.inner_text(".am-still")
    assert still.page.is_visible(".am-stage .st-right")
    assert still.page.inner_text('[data-at="X12"]') == "2"
    still.close()
    printed = FigureReader(browser, figure)
    printed.button("hungry").click()
    printed.page.emulate_media(media="print")
    printed.page.wait_for_selector(".am-first")
    assert printed.page.is_visible(".am-still")
    assert not printed.page.is_visible(".am-stage")
    query = printed.page.locator('.am-first [data-at="q"]')
    assert query.is_visible()
    assert query.inner_text() == "(0, 1)"
    printed.close()


@needs_browser
def test_no_markup_runs_and_two_figures_are_independent(browser):
    nasty = ["<img src=x onerror=alert(1)>", "مرحبا", '"&<']
    first = attention_stepper(**NUMBERS, tokens=nasty)
    second = attention_stepper(**quartered(random_numbers(1)), tokens=TOKENS)
    reader = FigureReader(browser, first, second)
    reader.button("Scores").click()
    assert nasty[0] in reader.says
    assert_same(reader.now, NUMBERS)
    second_figure = reader.page.locator(".attncourse-moving").nth(1)
    assert_same(second_figure.evaluate("root => root.now"), quartered(random_numbers(1)))
    assert reader.page.locator(".attncourse-moving img").count() == 0
    assert reader.wrong == []
    reader.close()


def test_the_moving_figures_scripts_are_small_together():
    folder = files("attncourse.figures").joinpath("moving")
    scripts = [file for file in folder.iterdir() if file.name.endswith(".js")]
    # These compute whole models, or show one.
    models = ("live_model.js", "transformer.js", "line_writer.js", "head_explorer.js")
    scripts = [f for f in scripts if f.name not in models and not f.name.startswith("real_model")]
    carried = [len(lean(file.read_text(encoding="utf-8")).encode()) for file in scripts]
    assert len(carried) > 3
    assert max(carried) < 5_300
    assert sum(carried) < 3_000 * len(carried)


@needs_browser
def test_a_pressed_score_shows_products_and_rivals(reader):
    reader.button("Whole").click()
    numbers = quartered(random_numbers(7))
    for name, matrix in numbers.items():
        for i, j in np.ndindex(np.shape(matrix)):
            reader.figure.locator(f'[data-at="{name}{i}{j}"] input').fill(str(matrix[i][j]))
    box, expected = reader.figure.get_by_role("group", name="Why this score"), by_package(numbers)
    assert not box.is_visible()
    for i, j, letter in ((0, 2, "s"), (1, 0, "c"), (2, 2, "w")):
        reader.button(TOKENS[i]).click()
        reader.figure.locator(f'[data-at="{letter}{j}"]').click()
        assert f"Why does “{TOKENS[i]}” give “{TOKENS[j]}” this score?" in box.inner_text()
        why = reader.figure.evaluate("root => root.why")
        np.testing.assert_allclose(why["products"], expected["Q"][i] * expected["K"][j])
        assert why["sum"] == pytest.approx(expected["scores"][i, j] * 2**0.5)
        np.testing.assert_allclose(why["weights"], expected["weights"][i])
        drawn = box.locator("rect").evaluate_all("all => all.map(one => +one.getAttribute('y'))")
        assert len(drawn) == 6  # two numbers of the query, two of the key, two products
        names = box.locator("tbody th").all_inner_texts()
        order = np.argsort(-expected["weights"][i], kind="stable")
        assert names == [TOKENS[k] for k in order]
        assert box.locator(".ss-own th").all_inner_texts() == [TOKENS[j]]
    reader.figure.locator('[data-at="w2"]').click()
    assert not box.is_visible()


TOUCHES_SCRIPT = """box => {
    const edges = all => all.map(one => one.getBoundingClientRect());
    const lines = [...box.querySelectorAll("svg > text")], values = [...box.querySelectorAll("svg g text")];
    return edges(lines).flatMap(a => edges(values).filter(b => a.top < b.bottom + 1 && b.top < a.bottom + 1
        && a.left < b.right && b.left < a.right)).length;
}"""  # noqa: E501


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_value_touches_no_caption(browser, width):
    """Of positive and of negative numbers; where the box opens it is on the screen."""
    reader = FigureReader(browser, attention_stepper(**NUMBERS, tokens=TOKENS), width=width)
    reader.page.set_viewport_size({"width": width, "height": 700})
    reader.button("Whole").click()
    reader.page.evaluate("() => { scrollTo(0, 0); document.body.style.padding = '300px 0'; }")
    box = reader.figure.get_by_role("group", name="Why this score")
    reader.figure.locator('[data-at="s2"]').click()
    edges = box.evaluate("box => box.getBoundingClientRect().toJSON()")
    assert edges["top"] >= 0
    assert edges["bottom"] <= 700
    for numbers in (NUMBERS, quartered(random_numbers(7)), quartered(random_numbers(8))):
        state = [x for matrix in numbers.values() for row in matrix for x in row]
        cells = reader.figure.locator(".st-flow input")
        for cell, x in zip(cells.all(), state, strict=False):
            cell.evaluate("(cell, x) => { cell.value = x; cell.oninput(); }", str(x))
        assert box.locator("svg g text").count() == 6
        assert box.evaluate(TOUCHES_SCRIPT) == 0
    reader.close()


@needs_browser
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_a_keys_name_is_whole_where_there_is_room(browser, width):
    reader = FigureReader(browser, attention_stepper(**NUMBERS, tokens=TOKENS), width=width)
    reader.button("Whole").click()
    reader.figure.locator('[data-at="s2"]').click()
    names = reader.figure.locator(".ss-rivals tbody th")
    names.evaluate_all(
        """(all, names) => all.forEach((one, i) => { one.textContent = names[i]; })""",
        ["3: ␣France", "1: ␣capital", "3: ␣because"],
    )
    cut = "all => all.map(one => one.scrollWidth - one.clientWidth)"
    if width > 320:
        assert names.evaluate_all(cut) == [0, 0, 0]
    bar = reader.figure.locator(".ss-rivals tbody td:last-child").first
    assert bar.bounding_box()["width"] >= 25
    table = reader.figure.locator(".ss-rivals")
    right = "one => one.getBoundingClientRect().right"
    assert table.evaluate(right) <= reader.figure.locator(".am-stage").evaluate(right)
    reader.close()


@needs_browser
@pytest.mark.parametrize(("width", "narrow"), [(1280, False), (390, True)])
def test_it_says_where_numbers_can_be_changed(browser, width, narrow):
    """On a phone the numbers stand in two of the stages only, and the scores in others."""
    reader = FigureReader(browser, attention_stepper(**NUMBERS, tokens=TOKENS), width=width)
    hint = reader.figure.locator(".am-stage > .am-row").last
    assert ("at x or q, k, v" in hint.inner_text()) == narrow
    assert ("at Whole or Scores" in hint.inner_text()) == narrow
    for stage in ("Whole", "x", "q, k, v", "Scores", "Weights", "Blend"):
        reader.button(stage).click()
        if narrow:
            fields = reader.figure.locator(".st-flow input >> visible=true").count()
            assert (fields > 0) == (stage in ("x", "q, k, v"))
            if stage in ("Whole", "Scores"):
                assert reader.figure.locator('[data-at="s1"]').is_visible()
    reader.close()


@needs_browser
def test_a_score_is_pressed_by_keyboard(reader):
    reader.button("Whole").click()
    score = reader.figure.locator('[data-at="s1"]')
    score.focus()
    reader.page.keyboard.press("Enter")
    assert score.get_attribute("aria-pressed") == "true"
    box, heights = reader.figure.get_by_role("group", name="Why this score"), set()
    for token in TOKENS:
        reader.button(token).click()
        heights.add(round(box.bounding_box()["height"]))
    assert len(heights) == 1
    assert reader.small_text() == []
