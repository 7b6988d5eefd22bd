"""Plots inside a page: nothing is lost, everything follows the page, and text can be read."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator

import numpy as np
import pytest
from bs4 import BeautifulSoup
from chromium import ABSENT, BROWSER, launched
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_svg import LARGEST, SMALLEST, SvgError, inline
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image
from playwright.sync_api import Browser, Page
from svg_trim import LONG, brief, short

from attncourse.figures import (
    BLUE,
    GREY,
    ORANGE,
    head_grid,
    label_lines,
    panels,
    set_style,
    style,
    weight_matrix,
)
from helpers.plot_colours import LETTERS, PAGES, sheet
from helpers.project import ROOT

PHONE = 358  # pixels that an article is wide where the screen has 390
RNG = np.random.default_rng(3)


def svg_of(fig: Figure) -> str:
    file = io.StringIO()
    fig.savefig(file, format="svg", bbox_inches="tight", pad_inches=0.03, metadata={"Date": None})
    return file.getvalue()


def two_curves() -> Figure:
    fig, ax = plt.subplots()
    for k in range(6):
        ax.plot(np.arange(9), np.exp(-np.arange(9) / (2 + k)), label=f"line {k}")
    ax.fill_between([0, 4], [0, 0.1], [0.2, 0.6], color=GREY, alpha=0.3, linewidth=0)
    ax.axhline(0.5, color="black", linewidth=1, linestyle=":")
    ax.axhline(0.7, color="0.6")
    ax.scatter([2, 3], [0.8, 0.9], color="white", edgecolors="black")
    ax.bar([6, 7], [0.7, 0.6], color="black")
    ax.text(4, 0.8, "black", color="black")
    ax.set(xlabel="step $t^2$", ylabel="height")
    label_lines(ax)
    return fig


def matrix() -> Figure:
    fig, ax = plt.subplots(figsize=(4.3, 3.8))
    mask = np.tril(np.ones((6, 6), dtype=bool))
    weights = mask * RNG.random((6, 6))
    tokens = ["I", "like", "sushi", "because", "it", "makes"]
    weight_matrix(weights / weights.sum(axis=1, keepdims=True), tokens, ax=ax, mask=mask)
    fig.colorbar(ax.images[0], label="weight")
    return fig


def pixel_picture() -> Figure:
    fig, ax = plt.subplots()
    fig.colorbar(ax.imshow(RNG.normal(size=(5, 7)), cmap="RdBu"))
    ax.text(3, 2, "on the picture", color="black")
    ax.plot([0, 6], [0, 4], color="0.5")
    return fig


def three_panels() -> Figure:
    fig, axes = panels(3)
    for k, ax in enumerate(axes):
        ax.plot(RNG.normal(size=20).cumsum(), color=(BLUE, ORANGE, GREY)[k])
        ax.set(title=f"panel {k}", xlabel="x", ylabel="y")
    return fig


def head_maps() -> Figure:
    return head_grid(RNG.dirichlet(np.ones(8), size=(8, 8)), list("abcdefgh"))


FIGURES = (two_curves, matrix, pixel_picture, three_panels, head_maps)


@pytest.fixture(scope="module")
def drawn_svgs() -> Iterator[dict[str, str]]:
    """Return each figure's SVG by name, as matplotlib writes it."""
    with plt.rc_context():
        set_style()
        yield {draw.__name__: svg_of(draw()) for draw in FIGURES}
    plt.close("all")


def attributes_of(soup: BeautifulSoup, attribute: str) -> list[str]:
    return [element[attribute] for element in soup.select(f"[{attribute}]")]


# From text to text


@pytest.mark.parametrize("name", [draw.__name__ for draw in FIGURES])
def test_a_figure_is_one_described_picture_with_ids_of_its_own(drawn_svgs, name):
    alt = 'Says "a < b" & more'
    text = inline(drawn_svgs[name], "one", alt)
    assert text == inline(drawn_svgs[name], "one", alt)
    soup = BeautifulSoup(text, "html.parser")
    [root] = soup.contents
    assert (root["role"], root["aria-label"]) == ("img", alt)
    assert len(soup.select("[role]")) == 1
    ids = attributes_of(soup, "id")
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"one-\d+", name) for name in ids)
    used = set(re.findall(r'(?:url\(|href=")#([\w.-]+)', text))
    assert used == set(ids)
    second = inline(drawn_svgs[name], "two", alt)
    assert second.replace("two-", "one-") == text
    assert not set(ids) & set(attributes_of(BeautifulSoup(second, "html.parser"), "id"))


@pytest.mark.parametrize("name", [draw.__name__ for draw in FIGURES])
def test_metadata_that_a_page_does_not_need_is_left_out(drawn_svgs, name):
    text = inline(drawn_svgs[name], "one", "alt")
    assert len(text) < 0.75 * len(drawn_svgs[name])
    assert not re.search(r"<\?|<!|xmlns|xlink|metadata|<style|matplotlib|\n", text)
    assert "figure_1" not in text
    if "<image" not in text:
        assert not re.search(r"#fff|white", text)  # no background


def test_colours_are_those_of_the_page(drawn_svgs):
    text = inline(drawn_svgs["two_curves"], "one", "alt")
    literal_colours = {colour.lower() for colour in re.findall(r"[ :]#[0-9a-f]{6}\b", text, re.I)}
    assert literal_colours == set()
    for name in ("query", "key", "value", "purple", "sky", "yellow", "grey"):
        assert f"stroke:var(--attn-{name})" in text or f"fill:var(--attn-{name})" in text, name
    assert "color-mix(in srgb,currentColor 40%,var(--pst-color-background))" in text  # 0.6
    assert "stroke:currentColor" in text  # black
    assert "fill:var(--pst-color-background)" in text  # white


def test_a_pixel_picture_keeps_colours_and_writing(drawn_svgs):
    text = inline(drawn_svgs["pixel_picture"], "one", "alt")
    pixels = re.findall(r'href="data:image/png;base64,([^"]*)"', text)
    drawn_pixels = re.findall(r'href="data:image/png;base64,([^"]*)"', drawn_svgs["pixel_picture"])
    assert pixels == ["".join(part.split()) for part in drawn_pixels]
    written = BeautifulSoup(text, "html.parser").select('[fill="#000"] > g[transform]:not([style])')
    assert len(written) == 1  # matplotlib leaves black out
    assert "stroke:#808080" in text
    assert "fill:currentColor" in text  # the axes' own numbers


def test_other_colours_stay():
    mine = '<svg viewBox="0 0 1 1"><path d="M0 0L1 1" style="fill: #12ab9f; stroke: none"/></svg>'
    assert "fill:#12ab9f;stroke:none" in inline(mine, "one", "alt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no <b", "what is no XML"),
        ("<p/>", "expected an SVG with a viewBox, got <p>"),
        ("<svg/>", "expected an SVG with a viewBox, got <svg>"),
    ],
)
def test_svg_that_is_no_figure_is_refused(text, message):
    with pytest.raises(SvgError, match=message):
        inline(text, "one", "alt")


@pytest.mark.parametrize("name", ["weights", "Greys"])
def test_grey_pixels_are_refused(drawn_svgs, name):
    fig, ax = plt.subplots()
    ax.imshow(RNG.random((5, 7)), cmap=name)
    with pytest.raises(SvgError, match=r"draw attncourse\.figures\.weight_cells"):
        inline(svg_of(fig), "one", "alt")


def test_marks_outside_every_panel_are_refused(drawn_svgs):
    fig, _ = panels(2)
    fig.suptitle("above both")
    with pytest.raises(SvgError, match="drawn in panels, got something outside"):
        inline(svg_of(fig), "one", "alt")
    plt.close(fig)


NUMBERS = st.floats(-999, 999).map(lambda number: f"{number:.6f}")
STEPS = st.one_of(
    st.tuples(st.sampled_from("ML"), NUMBERS, NUMBERS),
    st.tuples(st.just("Q"), *[NUMBERS] * 4),
    st.tuples(st.just("C"), *[NUMBERS] * 6),
    st.just(("z",)),
)


def path_points(path: str) -> list[list[float]]:
    """Return a path's steps with both coordinates: H and V are turned into L."""
    at, steps = [0.0, 0.0], []
    for letter, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        numbers = [float(part) for part in rest.split()]
        if letter == "H":
            letter, numbers = "L", [*numbers, at[1]]
        elif letter == "V":
            letter, numbers = "L", [at[0], *numbers]
        at = numbers[-2:] or at
        steps.append([ord(letter), *numbers])
    return steps


@given(st.lists(STEPS, max_size=8), NUMBERS, NUMBERS)
def test_a_shortened_path_draws_the_same(steps, x, y):
    again = [("L", x, y), ("L", x, "1.5"), ("L", "2.25", "1.5")]
    path = " \n".join(" ".join(step) for step in [("M", x, y), *steps, *again])
    shorter = brief(LONG.sub(short, path))
    assert len(shorter) < len(path)
    for before, after in zip(path_points(path), path_points(shorter), strict=True):
        np.testing.assert_allclose(after, before, atol=0.00501)
    assert "-0 " not in f"{shorter} "


def test_other_paths_stay_unchanged():
    assert brief("m 0 0 l 1 1 a 1 2 3 4 5 6 7") == "m 0 0 l 1 1 a 1 2 3 4 5 6 7"


# Panels


def panel_widths(text: str, width: float) -> list[list[float]]:
    """Return the panels' widths row by row, by the rules of CSS flexible boxes."""
    [page_width] = re.findall(r'class="attn-plots"[^>]*max-width:(\d+)px', text)
    rules = re.findall(r"flex:(\d+) 1 min\(100%,(\d+)px\);max-width:(\d+)px", text)
    width, rows = min(width, float(page_width)), [[]]
    for grow, basis, most in (map(float, rule) for rule in rules):
        basis = min(basis, width)
        if rows[-1] and sum(b for _, b, _ in rows[-1]) + basis + 8 * len(rows[-1]) > width:
            rows.append([])
        rows[-1].append((grow, basis, most))
    widths = []
    for row in rows:
        free = width - sum(b for _, b, _ in row) - 8 * (len(row) - 1)
        total = sum(grow for grow, _, _ in row)
        widths.append([min(b + free * grow / total, most) for grow, b, most in row])
    return widths


def test_stacked_panels_have_aligned_axes():
    fig, axes = panels(4, columns=2)
    for ax in axes:
        ax.imshow(np.eye(3))
        ax.set(ylabel="output", title="four")
    fig.canvas.draw()
    shown = [ax.get_window_extent().x0 - ax.figure.bbox.x0 for ax in axes]
    assert np.ptp(shown) < 1
    panel_svgs = BeautifulSoup(inline(svg_of(fig), "f", "four"), "html.parser").find_all("svg")
    left, _, wide, _ = np.array(
        [[float(v) for v in panel["viewbox"].split()] for panel in panel_svgs]
    ).T
    assert np.ptp(wide) < 0.2  # points
    assert left[1] - left[0] == pytest.approx(wide[0], abs=0.2)


@settings(deadline=None, max_examples=12)
@given(st.integers(2, 6), st.integers(1, 4), st.floats(1.5, 3.4))
def test_a_row_has_at_most_as_many_panels_as_asked(n, columns, width):
    fig, _ = panels(n, columns=columns, width=width)
    text = inline(svg_of(fig), "one", "alt")
    plt.close(fig)
    views = re.findall(r'viewBox="([^"]*)"', text)
    assert len(views) == n
    assert {view.split()[2] for view in views} == {f"{72 * width:.1f}"}
    for page in range(300, 2000, 50):
        rows = panel_widths(text, page)
        assert max(map(len, rows)) <= columns
        for panel in (panel for row in rows for panel in row):
            assert panel <= LARGEST * 96 * width + 1
            assert panel >= min(page, SMALLEST * 96 * width) - 1
    assert len(panel_widths(text, 2000)[0]) == min(n, columns)


def test_a_panel_has_what_was_drawn_in_it(drawn_svgs):
    soup = BeautifulSoup(inline(drawn_svgs["three_panels"], "one", "alt"), "html.parser")
    parts = soup.select(".attn-plots > svg.attn-plot")
    for k, part in enumerate(parts):
        colours = {name for name in ("query", "key", "grey") if f"--attn-{name})" in str(part)}
        assert colours == {("query", "key", "grey")[k]}
        left, _, width, _ = map(float, part["viewbox"].split())
        for mark in part.select("use[x]"):
            assert left <= float(mark["x"]) <= left + width


# In the browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip(ABSENT)
    with launched() as made:
        yield made


@pytest.fixture
def page(browser) -> Iterator[Page]:
    made = browser.new_page(viewport={"width": 1000, "height": 900})
    yield made
    made.close()


def show_page(page: Page, body: str, scheme: str = "light", width: int = 688) -> None:
    """Show the body on a page of the book, without the theme."""
    css = (ROOT / "book" / "assets" / "attncourse.css").read_text(encoding="utf-8")
    theme = f"html {{--pst-color-background: {PAGES[scheme]}; background: {PAGES[scheme]}}}"
    page.set_content(
        f'<!doctype html><html data-theme="{scheme}"><style>{css}{theme}body {{margin: 0}}</style>'
        f'<div class="bd-article" style="width: {width}px"><figure style="margin: 0">{body}'
        "</figure></div></html>"
    )


def pixels(page: Page) -> np.ndarray:
    image = Image.open(io.BytesIO(page.locator("figure").screenshot())).convert("RGB")
    return np.asarray(image, dtype=float)


def block_means(image: np.ndarray, side: int = 4) -> np.ndarray:
    """Return the mean colours of squares, which depend little on how edges are smoothed."""
    rows, columns = (size // side for size in image.shape[:2])
    cut = image[: rows * side, : columns * side]
    return cut.reshape(rows, side, columns, side, 3).mean(axis=(1, 3))


def svg_in_page_colours(svg: str, scheme: str) -> str:
    """Return the figure with a page's colours put in by text, except inside pictures."""
    ink, paper = sheet(scheme)["ink"], PAGES[scheme]
    light, now = sheet("light"), sheet(scheme)
    deep = {style.DEEP: now["deep"], style.FIXED: "#000001", style.PAPER: paper}
    new = deep | {light[name]: now[name] for name in light if name in now and name != "deep"}
    for level in range(256):
        part = (255 - level) / 255
        ends = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in (ink, paper)]
        mix = [round(part * a + (1 - part) * b) for a, b in zip(*ends, strict=True)]
        new.setdefault(f"#{level:02x}{level:02x}{level:02x}", "#{:02x}{:02x}{:02x}".format(*mix))
    svg = svg.replace("<svg ", f'<svg fill="{ink}" ', 1)  # black is what it does not write
    return re.sub(r"#[0-9a-f]{6}\b", lambda code: new.get(code[0], code[0]), svg)


@pytest.mark.parametrize("scheme", PAGES)
@pytest.mark.parametrize("name", ["two_curves", "matrix"])
def test_the_page_shows_what_matplotlib_drew(drawn_svgs, page, name, scheme):
    text = inline(drawn_svgs[name], "one", "alt")
    show_page(page, text, scheme)
    shown = pixels(page)
    wide = page.locator(".attn-plot").bounding_box()["width"]
    source = html.escape(svg_in_page_colours(drawn_svgs[name], scheme).partition("?>")[2])
    page.set_content(
        f"<!doctype html><style>body {{margin: 0; background: {PAGES[scheme]}}}"
        f"figure {{margin: 0; width: 688px}} img {{display: block; margin: 0 auto}}</style>"
        f'<figure><img width="{wide}" src="data:image/svg+xml,"></figure>'
        f'<script type="text/plain">{source}</script>'
    )
    page.evaluate(
        """text => new Promise(done => { const image = document.querySelector("img");
        image.onload = done; image.src = URL.createObjectURL(new Blob([text],
        {type: "image/svg+xml"})); })""",
        html.unescape(source),
    )
    expected_pixels = pixels(page)
    tall = min(len(expected_pixels), len(shown))
    assert abs(len(expected_pixels) - len(shown)) <= 1
    difference = np.abs(block_means(expected_pixels[:tall]) - block_means(shown[:tall])).max(axis=2)
    assert expected_pixels.std() > 20  # something is there
    assert difference.max() < 45
    assert np.quantile(difference, 0.99) < 20


@pytest.mark.parametrize("scheme", PAGES)
def test_a_plot_follows_the_page_at_once(drawn_svgs, page, scheme):
    show_page(
        page, inline(drawn_svgs["matrix"], "one", "alt"), "dark" if scheme == "light" else "light"
    )
    page.evaluate(f"document.documentElement.dataset.theme = '{scheme}'")
    ink = tuple(int(sheet(scheme)["ink"][i : i + 2], 16) for i in (1, 3, 5))
    look = "e => getComputedStyle(e)."
    cells = page.locator("[shape-rendering] path[style*=currentColor]").first
    assert cells.evaluate(look + "fill") == f"rgb{ink}"
    key = page.locator(".attn-plot").evaluate(
        "e => getComputedStyle(e).getPropertyValue('--attn-key')"
    )
    assert key == sheet(scheme)["key"]


VARIABLES = ("--attn-key", "--pst-color-background")


def test_on_paper_a_dark_plot_is_light(drawn_svgs, page):
    show_page(page, inline(drawn_svgs["matrix"], "one", "alt"), "dark")
    page.emulate_media(media="print")
    look = page.locator(".attn-plot").evaluate_handle("e => getComputedStyle(e)")
    printed = [
        look.evaluate(f"e => e.getPropertyValue('{name}')") for name in ("color", *VARIABLES)
    ]
    assert printed == ["rgb(31, 35, 40)", sheet("light")["key"], "#fff"]


@pytest.mark.parametrize("name", [draw.__name__ for draw in FIGURES])
def test_letters_have_twelve_pixels_on_a_phone(drawn_svgs, page, name):
    show_page(page, inline(drawn_svgs[name], "one", "alt"), width=PHONE)
    sizes = page.evaluate(LETTERS)
    assert len(sizes) > 10
    assert min(sizes) >= 11.8
    assert max(sizes) <= 17
    widths = page.locator(".attn-plot").evaluate_all("all => all.map(e => e.clientWidth)")
    assert max(widths) <= PHONE
    show_page(page, inline(drawn_svgs[name], "one", "alt"))
    assert min(page.evaluate(LETTERS)) >= 11.8
    assert max(page.evaluate(LETTERS)) <= 17


@pytest.mark.parametrize(
    ("name", "rows"), [("three_panels", {PHONE: 3, 688: 1}), ("head_maps", {PHONE: 4, 688: 2})]
)
def test_panels_stack_where_there_is_no_room(drawn_svgs, page, name, rows):
    text = inline(drawn_svgs[name], "one", "alt")
    for width, count in rows.items():
        show_page(page, text, width=width)
        boxes = page.locator(".attn-plot").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect()).map(b => [b.x, b.y, b.width, b.height])"
        )
        assert len({round(y) for _, y, _, _ in boxes}) == count
        assert len({round(height) for *_, height in boxes}) == 1
        planned = [panel for row in panel_widths(text, width) for panel in row]
        np.testing.assert_allclose([w for _, _, w, _ in boxes], planned, atol=1)


def test_maps_of_roles_stand_two_in_a_row_on_a_phone():
    """Chapter 14's three tall panels: one below the other they would be three screens."""
    page = (ROOT / "book" / "14_interpret.md").read_text(encoding="utf-8")
    cell = page[page.index("fig-interpret-roles") :]
    (width,) = re.match(r".*?panels\(3, width=([\d.]+), ", cell, re.DOTALL).groups()
    least = SMALLEST * 96 * float(width)
    assert 2 * least + 8 <= PHONE
