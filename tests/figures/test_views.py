"""Views and sliders as a reader has them: in Chromium, by pointer and by key, wide and narrow."""

from __future__ import annotations

import re

import numpy as np
import pytest
import vendor
from playwright.sync_api import Locator

from attncourse.figures import Bars, Curves, Matrix, attention_view, slider
from helpers.figure_reader import FigureReader, needs_browser

pytestmark = needs_browser

WORDS = ["I", "like", "sushi", "because", "it", "makes", "me", "happy"]
RNG = np.random.default_rng(5)
MAPS = RNG.dirichlet(np.full(8, 0.3), size=(2, 8))
MAPS[1, 4] = [0.02, 0.02, 0.86, 0.02, 0.02, 0.02, 0.02, 0.02]
VIEW_OPTIONS = {"title": "Who?", "heads": ["alike", "asked"]}


def arcs(**more):
    return attention_view(MAPS, WORDS, **VIEW_OPTIONS, start=("asked", "it"), arcs=True, **more)


def causal(n: int) -> np.ndarray:
    weights = np.tril(np.random.default_rng(n).uniform(1, 3, size=(n, n)))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.fixture
def opened(browser):
    """Yield a function that opens a page with figures; afterwards no page has had an error."""
    pages = []

    def opens(*figures, root=".attncourse-view", **options) -> FigureReader:
        reader = FigureReader(browser, *figures, **options)
        reader.figure = reader.page.locator(root).first
        pages.append(reader)
        return reader

    yield opens
    for reader in pages:
        assert [entry for entry in reader.wrong if not entry.startswith("data:image/png")] == []
        reader.close()


def arrow(reader: FigureReader, *keys: str) -> None:
    for key in keys:
        reader.page.keyboard.press(key)


# --- a table of numbers ---------------------------------------------------------------------------

CELLS_SCRIPT = """root => [...root.querySelectorAll(".av-grid tbody td")].map(cell => [
    cell.textContent, cell.style.getPropertyValue("--w"),
    ...["b", "c", "x"].map(kind => cell.classList.contains(kind)),
    getComputedStyle(cell).backgroundColor, getComputedStyle(cell).color])"""


def luminance(colour: str) -> float:
    numbers = [float(n) for n in re.findall(r"[\d.]+", colour.replace("color(srgb", ""))][:3]
    rgb = np.array(numbers) / (1 if colour.startswith("color(") else 255)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_each_weight_is_ink_under_readable_figures(opened, mode):
    weights = np.linspace(0, 1, 101)
    views = []
    for part in np.array_split(weights, 4):
        ramp = np.stack([part, 1 - part], axis=-1)
        views.append(attention_view(ramp, [f"q{i}" for i in range(len(part))], ["a", "b"]))
    written = opened(*views, color_scheme=mode, java_script_enabled=False)
    alive = opened(*views, color_scheme=mode)
    luminances = []
    for k in range(4):
        static, moving = (page.page.locator(".attncourse-view").nth(k) for page in (written, alive))
        cells = moving.evaluate(CELLS_SCRIPT)
        assert [cell[:5] for cell in cells] == [cell[:5] for cell in static.evaluate(CELLS_SCRIPT)]
        for *_, ground, figures in cells[::2]:
            low, high = sorted([luminance(ground), luminance(figures)])
            assert (high + 0.05) / (low + 0.05) >= 4.5
            luminances.append(luminance(ground))
    steps = np.diff(luminances)
    assert (steps < 0).all() if mode == "light" else (steps > 0).all()


def test_masked_cells_are_described_and_hatched(opened):
    view = attention_view(causal(5), WORDS[:5], mask=np.tri(5, dtype=bool))
    reader = opened(view)
    cell = reader.figure.locator("tbody tr").nth(1).locator("td").nth(3)
    cell.hover()
    assert reader.says == "query “like” may not attend to key “because”, which is masked"
    assert "gradient" in cell.evaluate("cell => getComputedStyle(cell).backgroundImage")
    assert cell.inner_text() == "–"
    reader.figure.locator("thead th").nth(4).hover()
    assert reader.says.startswith("key “it” gets most from “it”")


def test_a_view_starts_at_its_start_and_moves_on_from_there(opened):
    weights = np.stack([causal(5), causal(5)[:, ::-1]])
    reader = opened(attention_view(weights, WORDS[:5], start=("head 1", "it")))
    assert reader.says.startswith("head 1: query “it” attends most to ")
    assert reader.figure.locator("select").input_value() == "1"
    reader.page.keyboard.press("Tab")
    reader.page.keyboard.press("Tab")
    reader.page.keyboard.press("Tab")
    arrow(reader, "ArrowRight", "ArrowRight")
    assert (
        reader.says
        == f"head 1: query “it” attends to key “like” with weight {weights[1, 4, 1]:.2f}"
    )
    reader.figure.locator("tbody td").first.hover()
    reader.page.mouse.move(900, 880)
    assert "query “it” attends to key “like”" in reader.says  # where the keyboard is


def test_a_box_that_scrolls_fades_until_its_end_is_reached(opened):
    view = attention_view(np.full((2, 30), 1 / 30), ["a", "b"], [f"key {i}" for i in range(30)])
    reader = opened(view, width=390)
    box = reader.figure.locator(".av-scroll")
    assert "av-more" in box.get_attribute("class")
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    reader.page.wait_for_function("!document.querySelector('.av-more')")
    assert reader.overflow() <= 0
    narrow = opened(attention_view(np.eye(3), WORDS[:3]), width=390)
    assert narrow.figure.locator(".av-more").count() == 0


def test_a_large_map_is_a_picture_in_ink_with_hatches(opened):
    weights, mask = causal(40), np.tri(40, dtype=bool)
    reader = opened(attention_view(weights, [f"t{i}" for i in range(40)], mask=mask, start=7))
    canvas_data = reader.figure.locator("canvas").evaluate("""canvas => {
        const {width, height} = canvas;
        const {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
        const opacities = data.filter((_, i) => i % 4 === 3);
        return [width, Array.from(opacities, one => String.fromCharCode(one)).join("")];
    }""")
    width, letters = canvas_data
    alpha = np.array([ord(letter) for letter in letters])
    side = width // 40
    opacity = alpha.reshape(40, side, 40, side) / 255
    allowed_pixels = opacity[mask.nonzero()[0], :, mask.nonzero()[1]]  # (pairs, side, side)
    assert (allowed_pixels == allowed_pixels[:, :1, :1]).all()
    shown = np.rint(1000 * weights[mask]) / 1000 / weights.max()
    np.testing.assert_allclose(allowed_pixels[:, 0, 0], shown, atol=1 / 255)
    hatched = opacity[(~mask).nonzero()[0], :, (~mask).nonzero()[1]]
    assert (hatched.max(axis=(1, 2)) > 0.3).all()
    assert (hatched.min(axis=(1, 2)) == 0).all()
    assert reader.says.startswith("query “t7” attends most to")
    mark = reader.figure.locator(".av-mark").bounding_box()
    assert mark["width"] == pytest.approx(reader.figure.locator("canvas").bounding_box()["width"])
    for mode, flip in (("light", "none"), ("dark", "invert(1)")):
        reader.page.emulate_media(color_scheme=mode)
        style = "canvas => getComputedStyle(canvas).filter"
        assert reader.figure.locator("canvas").evaluate(style) == flip


# --- a sentence with arcs -------------------------------------------------------------------------

DRAWN_ARCS_SCRIPT = """root => [...root.querySelectorAll(".av-arcs path")].filter(path =>
    getComputedStyle(path).strokeOpacity > 0).map(path => {
  const {left, right, top, bottom} = path.getBoundingClientRect();
  return {left, right, top, bottom, thick: +path.getAttribute("stroke-width"),
          dark: +getComputedStyle(path).strokeOpacity};
})"""


def middle(box: dict) -> tuple[float, float]:
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def word_button(reader: FigureReader, name: str):
    return reader.figure.get_by_role("button", name=name, exact=True)


@pytest.mark.parametrize("width", [1280, 390])
def test_arcs_lead_to_keys_as_thick_as_weights(opened, width):
    reader = opened(arcs(), attention_view(MAPS, WORDS), width=width)  # a page has other views
    assert reader.says == "asked: query “it” attends most to “sushi” 0.86, “I” 0.02, “like” 0.02"
    tall = width == 390
    boxes = [middle(word_button(reader, word).bounding_box()) for word in WORDS]
    along = 1 if tall else 0
    assert [box[along] for box in boxes] == sorted(box[along] for box in boxes)
    edges = [word_button(reader, word).bounding_box()["x" if tall else "y"] for word in WORDS]
    assert np.ptp(edges) < 1  # chips stand in a line, or in a column
    drawn = reader.figure.evaluate(DRAWN_ARCS_SCRIPT)
    assert len(drawn) == 8  # nothing else is drawn than what "it" attends to
    ends = ("top", "bottom") if tall else ("left", "right")
    for arc, word in zip(drawn, WORDS, strict=True):
        weight = MAPS[1, 4, WORDS.index(word)]
        assert arc["thick"] == pytest.approx(1 + 11 * weight)
        assert arc["dark"] == pytest.approx(0.15 + 0.85 * weight)
        if word != "it":
            expected = sorted([boxes[4][along], boxes[WORDS.index(word)][along]])
            np.testing.assert_allclose([arc[end] for end in ends], expected, atol=1.5)
        assert (arc["right"] if tall else arc["bottom"]) <= min(edges) + 1
    shares = reader.figure.locator(".av-share").all_inner_texts()
    assert shares == [f"{weight:.2f}" for weight in MAPS[1, 4]]
    assert reader.overflow() <= 0
    assert reader.small_text() == []


def test_a_word_is_chosen_by_pointer_by_click_and_by_key(opened):
    reader = opened(arcs(compact=True))
    sentence_of = lambda word: f"query “{word}” attends most to"  # noqa: E731
    word_button(reader, "me").hover()
    assert sentence_of("me") in reader.says
    reader.page.mouse.move(900, 880)
    assert sentence_of("it") in reader.says  # a click decides, a pointer only tries
    word_button(reader, "me").click()
    reader.page.mouse.move(900, 880)
    assert sentence_of("me") in reader.says
    assert word_button(reader, "me").get_attribute("aria-pressed") == "true"
    assert reader.figure.locator("[aria-pressed=true]").count() == 1
    arrow(reader, "ArrowRight")
    assert sentence_of("happy") in reader.says
    arrow(reader, "ArrowRight", "ArrowLeft", "ArrowUp")
    assert sentence_of("makes") in reader.says
    arrow(reader, "Home")
    assert sentence_of("I") in reader.says
    assert word_button(reader, "I").evaluate("chip => chip === document.activeElement")
    assert reader.figure.locator(".av-chips [tabindex='0']").count() == 1
    reader.figure.locator("select").select_option("alike")
    assert reader.says.startswith("alike: query “I” attends most to")
    shares = reader.figure.locator(".av-share").all_inner_texts()
    assert shares == [f"{weight:.2f}" for weight in MAPS[0, 0]]
    # The table is folded, and works as ever where it is opened.
    assert not reader.figure.locator("table").is_visible()
    reader.figure.locator("summary").press("Enter")
    reader.figure.locator("tbody td").nth(8 * 3 + 5).click()
    assert "query “because” attends to key “makes”" in reader.says
    arrow(reader, "ArrowUp", "Home", "ArrowLeft")
    assert sentence_of("sushi") in reader.says


def test_equal_weights_name_no_key_that_stands_out(opened):
    """Among all keys, or among those that may be seen; two or three are named."""
    words = [f"t{i}" for i in range(6)]
    weights = np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None]
    endings = [
        "most to “t0” 0.33, “t1” 0.33, “t2” 0.33",
        "4 alike, 0.25",
        "5 alike, 0.20",
        "all alike, 0.17",
    ]
    for i, end in zip(range(2, 6), endings, strict=True):
        reader = opened(attention_view(weights, words, start=f"t{i}"))
        attends = "attends" if i == 2 else "attends to"
        assert reader.says == f"query “t{i}” {attends} {end}"
    even = attention_view(np.full((40, 40), 1 / 40), [f"t{i}" for i in range(40)])
    still = opened(even, java_script_enabled=False)
    assert set(still.figure.locator(".av-most tbody td").all_inner_texts()) == {"all alike, 0.025"}
    reader = opened(even)
    assert reader.figure.locator(".av-most tbody td").first.text_content() == "all alike, 0.025"


def test_a_key_shows_who_attends_to_it(opened):
    reader = opened(arcs())
    reader.figure.locator("thead th").nth(2).hover()
    assert reader.says.startswith("asked: key “sushi” gets most from")
    shares = reader.figure.locator(".av-share").all_inner_texts()
    assert shares == [f"{weight:.2f}" for weight in MAPS[1, :, 2]]


def test_the_table_stands_open_without_javascript(opened):
    reader = opened(arcs(compact=True), java_script_enabled=False)
    assert reader.figure.locator("table").first.is_visible()
    assert "Where JavaScript runs" in reader.says
    assert reader.figure.locator("tbody td").nth(8 * 12 + 2).inner_text() == "0.86"


def test_a_folded_table_is_not_printed(opened):
    folded, plain = opened(arcs(compact=True)), opened(attention_view(MAPS, WORDS, **VIEW_OPTIONS))
    for reader in (folded, plain):
        reader.page.emulate_media(media="print", color_scheme="dark")
        page = reader.figure.evaluate("root => getComputedStyle(root).backgroundColor")
        assert page == "rgb(255, 255, 255)"
        assert not reader.figure.locator("select").is_visible()
    assert folded.figure.locator(".av-arcs").is_visible()
    assert plain.figure.locator("table").is_visible()
    assert not plain.figure.locator(".av-lines").is_visible()


def test_unusual_sentences_fit(opened):
    odd = ["<b>", "a" * 60, "שלום", " ", "it", "it"]
    weights = RNG.dirichlet(np.ones(6), size=6)
    for width in (1280, 390):
        reader = opened(attention_view(weights, odd, arcs=True, start=5), width=width)
        assert reader.overflow() <= 0
        assert "query “it” (5) attends most to" in reader.says
        assert reader.figure.locator(".av-chips button").all_inner_texts()[0] == "<b>"
    alone = opened(attention_view([[1]], ["one"], arcs=True, start="one"))
    assert len(alone.figure.evaluate(DRAWN_ARCS_SCRIPT)) == 1
    nothing = opened(attention_view([[1, 0], [0, 0]], ["a", "b"], arcs=True, start="b"))
    assert nothing.says == "query “b” attends to no key"
    assert nothing.figure.evaluate(DRAWN_ARCS_SCRIPT) == []


# --- sliders --------------------------------------------------------------------------------------

X = np.linspace(0, 1, 50)
RISING_CURVES = np.linspace(0.2, 2, 5)[:, None] * X
SQUARES, PIXELS = RNG.dirichlet(np.ones(11), size=(5, 7)), RNG.dirichlet(np.ones(40), size=(5, 20))


def sliders():
    curve = Curves(
        X,
        {"first": RISING_CURVES, "second": RISING_CURVES - 2, "level": X * 0 + 3},
        "x",
        "y",
        "alt",
    )
    few, many = Matrix(SQUARES, "alt", own_scale=True), Matrix(PIXELS, "alt")
    bars = Bars(["a", "b", "c"], RNG.dirichlet(np.ones(3), size=5), "weight", "alt")
    return [slider("w", range(5), list(panels), ["words"] * 5)
            for panels in ((curve,), (curve, few), (few, many, bars))]  # fmt: skip


AFTER_PAINT_SCRIPT = (
    "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
)
TEXT_SCRIPT = """root => [...root.querySelectorAll("div, p, text, td, th, span, select, button")]
    .filter(node => node.textContent.trim()).map(node => parseFloat(getComputedStyle(node).fontSize)
        * (node.ownerSVGElement?.getScreenCTM().a ?? 1))"""
TEXT_SIZES_SCRIPT = """root => [...root.querySelectorAll(".as-plot")].map(plot =>
    plot.getScreenCTM().a * parseFloat(getComputedStyle(plot.querySelector("text")).fontSize))"""


# A panel in the book has 324 pixels, where two stand side by side, and on a phone 316.
@pytest.mark.parametrize("width", [1280, 718, 374])
def test_text_has_one_size_in_one_or_three_panels(opened, width):
    reader = opened(*sliders(), root="body", width=width)
    sizes = reader.figure.evaluate(TEXT_SIZES_SCRIPT)
    assert len(sizes) == 6
    assert max(sizes) - min(sizes) < 0.2
    assert 12 <= min(sizes) <= 13
    tops = [box["y"] for box in map(Locator.bounding_box, reader.page.locator(".as-plot").all())]
    assert (tops[1] == tops[2]) == (width > 374)  # two panels stand side by side
    assert reader.small_text() == []
    assert reader.overflow() <= 0


def test_text_grows_with_the_readers_own_size(opened):
    for figure, root in ((sliders()[0], ".attncourse-slider"), (arcs(), ".attncourse-view")):
        reader = opened(figure, root=root)
        before = reader.figure.evaluate(TEXT_SCRIPT)
        reader.page.evaluate("document.documentElement.style.fontSize = '32px'")
        reader.page.evaluate(AFTER_PAINT_SCRIPT)
        after = reader.figure.evaluate(TEXT_SCRIPT)
        assert min(b / a for a, b in zip(before, after, strict=True)) > 1.9


def test_the_script_draws_what_the_html_shows(opened):
    made = sliders()[2]
    reader = opened(made, root=".attncourse-slider")
    reader.figure.locator("input").focus()
    arrow(reader, "Home")
    for frame in range(5):
        few, many = made.panels[:2]
        pictures = reader.figure.locator(".as-picture")
        now = pictures.nth(0).inner_html().replace("></path>", "/>")
        assert now == re.search(r"<g [^>]*>(.*)</g>", few.svg(frame))[1]
        assert pictures.nth(1).get_attribute("href") in many.svg(frame)
        assert f"weight: 0 {few.shown()[frame]}" in " ".join(
            reader.figure.locator(".as-key").nth(0).inner_text().split()
        )
        arrow(reader, "ArrowRight")


def test_names_move_with_their_curves_and_stay_inside(opened):
    made = sliders()[0]
    reader = opened(made, root=".attncourse-slider")
    reader.figure.locator("input").focus()
    arrow(reader, "Home")
    for frame in range(5):
        plot = reader.figure.locator(".as-plot").bounding_box()
        names = reader.figure.locator(".as-name")
        for k, spots in enumerate(made.panels[0].names):
            assert names.nth(k).is_visible() == bool(spots[frame])
            if spots[frame]:
                assert [float(names.nth(k).get_attribute(axis)) for axis in "xy"] == [*spots[frame]]
                box = names.nth(k).bounding_box()
                assert plot["x"] <= box["x"]
                assert box["x"] + box["width"] <= plot["x"] + plot["width"]
        arrow(reader, "ArrowRight")


def test_pictures_follow_the_theme(opened):
    reader = opened(sliders()[2], root=".attncourse-slider")
    look = """root => [getComputedStyle(root.querySelector("image")).filter,
        getComputedStyle(root.querySelector(".as-picture path")).stroke,
        getComputedStyle(root.querySelector(".as-bar")).fill]"""
    assert reader.figure.evaluate(look) == ["none", "rgb(31, 35, 40)", "rgb(31, 35, 40)"]
    reader.page.emulate_media(color_scheme="dark")
    assert reader.figure.evaluate(look) == ["invert(1)", "rgb(230, 237, 243)", "rgb(230, 237, 243)"]
    reader.page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert reader.figure.evaluate(look)[0] == "none"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_views_are_accessible(opened, mode):
    views = [arcs(compact=True), attention_view(causal(5), WORDS[:5], mask=np.tri(5, dtype=bool)),
             attention_view(causal(40), [f"t{i}" for i in range(40)]), *sliders()]  # fmt: skip
    reader = opened(*views, root="body", color_scheme=mode)
    reader.page.evaluate((vendor.library("axe-core") / "axe.min.js").read_text(encoding="utf-8"))
    violations = reader.page.evaluate(
        """() => axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}).then(
            found => found.violations.map(
                one => [one.id, ...one.nodes.map(node => node.target.join(" "))]))"""
    )
    assert violations == []
