"""A slider's HTML holds the frames it was given, for every reader, and runs no one's text."""

from __future__ import annotations

import base64
import html
import io
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from attncourse.figures import Bars, Curves, Matrix, labels, shades, slider
from attncourse.figures.matrix import IMAGE
from attncourse.figures.svg import BOTTOM, LEFT, RIGHT, TOP, tick_label

VALUES = [0.1, 0.25, 1.0, 2.5, 10.0]
X = np.array([0.0, 0.5, 1.5, 2.0, 3.5, 5.0, 8.0])
RNG = np.random.default_rng(7)
HEIGHTS = RNG.normal(scale=3, size=(5, 7))
AMOUNTS = RNG.dirichlet(np.ones(3), size=5)
WEIGHTS = RNG.dirichlet(np.ones(11), size=(5, 2))
MANY_WEIGHTS = RNG.dirichlet(np.ones(61), size=(5, 13))
SENTENCES = [f"sentence {k}" for k in range(5)]
MARKUP_TEXT = """</script><script>alert("1")</script><!--<img src=x onerror='a&b'>$name"""


def curves(**changes) -> Curves:
    defaults = dict(
        x=X,
        lines={"moves": HEIGHTS, "stays": X / 4},
        xlabel="x axis",
        ylabel="y axis",
        alt="what it shows",
        points=[X, -X / 3],
        dots=np.column_stack([X[:5], X[1:6]]),
    )
    return Curves(**{**defaults, **changes})


def bars(**changes) -> Bars:
    defaults = dict(
        labels=["one", "two", "three"], amounts=AMOUNTS, xlabel="weight", alt="three bars"
    )
    return Bars(**{**defaults, "reference": 0.3, "reference_name": "equal", **changes})


def matrix(**changes) -> Matrix:
    return Matrix(**{"weights": WEIGHTS, "alt": "a matrix", **changes})


def slider_figure(*panels, **changes):
    defaults = dict(name="width w", values=VALUES, panels=panels or [curves(), bars(), matrix()],
                 says=SENTENCES)  # fmt: skip
    return slider(**{**defaults, **changes})


def figure_html(figure) -> str:
    return figure._repr_html_()


def page_data_of(figure) -> dict:
    return json.loads(
        re.search(r'<script type="application/json">(.*?)</script>', figure_html(figure))[1]
    )


class ClosedElements(HTMLParser):
    """Each element's tag and attributes, its text, and whether every one is closed."""

    def __init__(self, text: str):
        super().__init__()
        self.found, self.open, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag != "input":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, words):
        if not self.open or self.open[-1] not in {"script", "style"}:
            self.words.append(words)

    def all(self, tag: str, of_class: str = "") -> list[dict]:
        elements = [attributes for name, attributes in self.found if name == tag]
        return [a for a in elements if of_class in a.get("class", "").split() or not of_class]


def test_curves_in_the_page_are_the_frames():
    panel = curves()
    [panel_data] = page_data_of(slider_figure(panel))["panels"]
    low, high = panel_data["range"]
    back = low + np.array(panel_data["lines"][0]) / 1000 * (high - low)
    np.testing.assert_allclose(back, HEIGHTS, atol=(high - low) / 1900)
    assert low < min(HEIGHTS.min(), -X.max() / 3)
    assert high > HEIGHTS.max()
    left, right = panel_data["x"][0], panel_data["x"][-1]
    share = (np.array(panel_data["x"]) - left) / (right - left)
    np.testing.assert_allclose(share, X / 8, atol=1e-3)
    bottom, step = panel_data["y"]
    np.testing.assert_allclose(panel_data["dots"], panel.places(), atol=0.06)
    heights = (bottom - np.array(panel_data["dots"])[:, 1]) / (1000 * step) * (high - low) + low
    np.testing.assert_allclose(heights, X[1:6], atol=(high - low) / 1000)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (1e6, "10⁶"),
        (1e-4, "10⁻⁴"),
        (1000, "1000"),
        (0.001, "0.001"),
        (-2.5, "−2.5"),
        (20000, "20000"),
    ],
)
def test_tick_labels_are_short(value, label):
    assert tick_label(value) == label


def pixel_opacities(text: str, size: int) -> np.ndarray:
    """Return the opacity of each number's square of pixels in a PNG of one ink."""
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGBA"))
    assert (pixels[..., :3] == shades.INK).all()
    side = pixels.shape[1] // size
    squares = pixels[..., 3].reshape(-1, side, size, side)
    assert (squares == squares[:, :1, :, :1]).all()
    return squares[:, 0, :, 0] / 255


def path_opacities(paths: list[dict], m: int, n: int) -> np.ndarray:
    """Return the opacity at the centre of each square, from the paths drawn over them."""
    ink = np.zeros((m, n))
    for path in paths:
        for left, row, run in re.findall(r"M(\d+) (\d+).5h(\d+)", path["d"]):
            squares = ink[int(row), int(left) : int(left) + int(run)]
            assert (squares == 0).all()  # none is drawn twice
            assert len(squares) == int(run)
            squares += float(path["stroke-opacity"])
    return ink


def test_bars_and_pictures_in_the_page_are_the_frames():
    for weights in (WEIGHTS, MANY_WEIGHTS):
        panels = [matrix(weights=weights), matrix(weights=weights, own_scale=True)]
        of_bars, *of_matrices = page_data_of(slider_figure(bars(), *panels))["panels"]
        np.testing.assert_allclose(of_bars["bars"], AMOUNTS, atol=0.00051)
        every = np.full(5, weights.max()), weights.max(axis=(1, 2))
        for panel_data, tops in zip(of_matrices, every, strict=True):
            assert panel_data["tops"] == [f"{top:.2g}" for top in tops]
            for frame, top in enumerate(tops):
                if weights is MANY_WEIGHTS:
                    share = pixel_opacities(panel_data["pixels"][frame], 61)
                else:
                    rows = panel_data["squares"][frame].split(" ")
                    share = [[int(sign, 36) / 32 for sign in row] for row in rows]
                np.testing.assert_allclose(share, weights[frame] / top, atol=1 / 64 + 1 / 500)


@pytest.mark.parametrize("start", VALUES)
def test_without_javascript_the_first_frame_is_shown(start):
    figure = slider_figure(start=start)
    frame = VALUES.index(start)
    page, page_data = ClosedElements(figure_html(figure)), page_data_of(figure)
    line, bar = page.all("path", "as-line")[0], page.all("rect", "as-bar")
    bottom, step = page_data["panels"][0]["y"]
    ys = [float(y) for y in re.findall(r",([\d.]+)", line["d"])]
    expected = bottom - np.array(page_data["panels"][0]["lines"][0][frame]) * step
    np.testing.assert_allclose(ys, expected, atol=0.051)
    widths = np.array([float(attributes["width"]) for attributes in bar])
    np.testing.assert_allclose(widths / page_data["panels"][1]["unit"], AMOUNTS[frame], atol=0.001)
    paths = [attributes for attributes in page.all("path") if "stroke-opacity" in attributes]
    np.testing.assert_allclose(
        path_opacities(paths, 2, 11), WEIGHTS[frame] / WEIGHTS.max(), atol=1 / 63
    )
    words = " ".join(page.words)
    assert f"width w = {start:g}." in words
    assert f"sentence {frame}" in words
    assert all(f"{amount:.3f}" in words for amount in np.round(AMOUNTS[frame], 3))
    [dot] = page.all("circle", "as-dot")[:1]
    assert [float(dot["cx"]), float(dot["cy"])] == page_data["panels"][0]["dots"][frame]


def test_a_large_matrix_starts_with_its_own_picture():
    figure = slider_figure(matrix(weights=MANY_WEIGHTS), start=0.25)
    [picture] = ClosedElements(figure_html(figure)).all("image", "as-picture")
    assert picture["href"] == IMAGE + page_data_of(figure)["panels"][0]["pixels"][1]


def test_the_slider_is_a_labelled_range():
    page = ClosedElements(figure_html(slider_figure(start=0.25)))
    [control] = page.all("input")
    assert control["type"] == "range"
    assert (control["min"], control["max"], control["step"], control["value"]) == (
        "0",
        "4",
        "1",
        "1",
    )
    assert control["aria-valuetext"] == "width w = 0.25. sentence 1"
    [label] = page.all("label")
    assert "hidden" in label
    plots = page.all("svg", "as-plot")
    assert [plot["aria-label"] for plot in plots] == ["what it shows", "three bars", "a matrix"]
    assert {plot["role"] for plot in plots} == {"img"}
    assert page.found[0][1]["class"].startswith("attncourse-slider ")


def test_equal_pages_share_no_ids_and_load_nothing():
    panels = [curves(), bars(), matrix(), matrix(weights=np.ones((5, 30, 30)))]
    first, second = figure_html(slider_figure(*panels)), figure_html(slider_figure(*panels))
    assert first == second
    assert figure_html(slider_figure(*panels, start=0.1)) != first
    page = ClosedElements(first)
    assert not [attributes for _, attributes in page.found if "id" in attributes]
    links = [a[name] for _, a in page.found for name in ("href", "src") if name in a]
    assert links
    assert all(link.startswith(IMAGE) for link in links)
    assert not re.search(r"https?:|url\(|@import|fetch|import\(", first)
    assert slider_figure()._repr_png_() == slider_figure()._repr_png_()


def test_a_page_of_ordinary_size_stays_below_forty_kilobytes():
    x = np.linspace(0, 1, 100)
    lines = np.sin(x * np.arange(1, 22)[:, None])
    weights = np.exp(-((np.linspace(0, 1, 25)[:, None] - np.linspace(0, 1, 60)) ** 2)
                     / np.geomspace(1e-3, 10, 21)[:, None, None] ** 2)  # fmt: skip
    panels = [Curves(x, {"line": lines}, "x", "y", "alt"), Matrix(weights, "alt", own_scale=True)]
    figure = slider("width", range(21), panels, ["words"] * 21)
    assert len(figure_html(figure).encode()) < 40_000
    assert len(figure_html(slider_figure()).encode()) < 16_000


@pytest.mark.parametrize(("moving", "staying"), [(0, 3), (1, 2), (2, 2), (3, 2)])
def test_lines_differ_without_colours(moving, staying):
    lines = {f"{k}" * 60: HEIGHTS + k for k in range(moving)}  # too long to stand beside them
    panel = curves(lines={**lines, **{f"s{k}": X + k for k in range(staying)}})
    drawn = [
        path for path in ClosedElements(panel.svg(0)).all("path") if "stroke-dasharray" in path
    ]
    assert len(drawn) == len({path["stroke-dasharray"] for path in drawn}) == moving + staying
    key = ClosedElements("".join(panel.key(0))).all("path")
    assert [path["stroke-dasharray"] for path in drawn] == [
        path["stroke-dasharray"] for path in key if "stroke-dasharray" in path
    ]


FRACTIONS = np.linspace(0, 1, 50)
RISING_CURVES = np.linspace(-1, 1, 5)[:, None] * FRACTIONS  # five straight lines


def test_names_stand_beside_their_own_curve():
    lines = {"rising": RISING_CURVES, "curve": RISING_CURVES**2 - 2, "level": np.full(50, 1.5)}
    dots = np.column_stack([np.linspace(0.6, 0.9, 5), np.linspace(1, -1, 5)])
    panel = curves(
        x=FRACTIONS, lines=lines, points=[FRACTIONS[::7], FRACTIONS[::7] - 1.2], dots=dots
    )
    [panel_data] = page_data_of(slider_figure(panel))["panels"]
    names, seen = list(lines), 0
    for frame in range(5):
        ys = [line if line.ndim == 1 else line[frame] for line in lines.values()]
        boxes = []
        for name, spots in zip(names, panel_data["names"], strict=True):
            if spots[frame] is None:
                continue
            seen += 1
            (x, y), half = spots[frame], labels.LETTER * len(name) / 2
            assert x - half >= LEFT
            assert x + half <= RIGHT
            assert TOP <= y - 10 < y <= BOTTOM
            across = np.linspace(x - half, x + half, 60)
            heights = np.array(
                [np.interp(across, panel.across(FRACTIONS), panel.up(line)) for line in ys]
            )
            away = np.maximum(heights - y, y - 10 - heights)  # above or below the letters
            assert away.min() > 0
            near = away.min(axis=1)
            assert near.argmin() == names.index(name)
            marks = [*zip(*panel.points, strict=True), dots[frame]]
            for at, up in marks:
                assert not (abs(panel.across(at) - x) < half and y - 10 < panel.up(up) < y)
            boxes.append((x - half, x + half, y - 10, y))
        for k, box in enumerate(boxes):
            for other_box in boxes[:k]:
                beside = box[0] >= other_box[1] or other_box[0] >= box[1]
                assert beside or box[2] >= other_box[3] or other_box[2] >= box[3]
    assert seen >= 13
    first = [name for name in ClosedElements(panel.svg(0)).all("text", "as-name")]
    for name, spots in zip(first, panel_data["names"], strict=True):
        assert name["visibility"] == ("visible" if spots[0] else "hidden")
        if spots[0]:
            assert [float(name["x"]), float(name["y"])] == spots[0]


def test_names_do_not_share_a_gap_that_has_room_for_one():
    pixels, none = np.ones(RIGHT - LEFT + 1), np.empty((0, 2))
    heights = np.array([60, 88, 40, 108])[:, None] * pixels  # names fit between 60 and 88 only
    names = ["a" * 36, "b" * 36, "c" * 36, "d" * 36]  # and are as wide as the panel
    places = [spots[0] for spots in labels.spots(names, [heights], [none])]
    assert places[0] is not None
    assert places[1] is None
    assert labels.spots(["b" * 36], [heights[[1, 0, 2, 3]]], [none])[0][0] is not None


def test_a_name_stays_while_there_is_room_for_it():
    along, none = np.linspace(0, 1, RIGHT - LEFT + 1), np.empty((0, 2))
    level, falling = 100 + 0 * along, 50 + 25 * along
    above = [
        np.array([level, second_curve, level + 20]) for second_curve in (falling, falling[::-1])
    ]
    below = np.array([level, level - 15, level + 70])
    first_place, second_place, third_place = labels.spots(["name"], [*above, below], [none] * 3)[0]
    alone = labels.spots(["name"], above[1:], [none])[0][0]
    assert first_place == second_place
    assert abs(alone[0] - first_place[0]) > 50  # where it would stand without the frame before
    assert third_place[1] > 100 > first_place[1]  # there is no room above any more


def test_a_key_names_curves_that_have_no_name():
    separated = curves(
        x=FRACTIONS, lines={"a": RISING_CURVES, "b": RISING_CURVES + 9}, points=None, dots=None
    )
    assert all(all(spots) for spots in separated.names)
    assert separated.key(0) == []
    same = curves(
        x=FRACTIONS, lines={"a": RISING_CURVES, "b": RISING_CURVES}, points=None, dots=None
    )
    assert not any(any(spots) for spots in same.names)  # nobody could tell whose name it is
    assert [re.sub("<.*>", "", entry).strip() for entry in same.key(0)] == ["a", "b"]


def test_markup_in_any_text_is_escaped():
    panels = [
        curves(
            lines={MARKUP_TEXT: HEIGHTS, "s": X},
            xlabel=MARKUP_TEXT,
            ylabel=MARKUP_TEXT,
            alt=MARKUP_TEXT,
            title=MARKUP_TEXT,
            points_name=MARKUP_TEXT,
            dots_name=MARKUP_TEXT,
        ),
        bars(
            labels=["<b>", "&amp;", "$now"],
            xlabel=MARKUP_TEXT,
            alt=MARKUP_TEXT,
            title=MARKUP_TEXT,
            reference_name=MARKUP_TEXT,
        ),
        matrix(xlabel=MARKUP_TEXT, ylabel=MARKUP_TEXT, alt=MARKUP_TEXT, title=MARKUP_TEXT),
    ]
    figure = slider_figure(*panels, name=MARKUP_TEXT, says=[MARKUP_TEXT] * 5)
    same = curves(lines={"m" * 60: HEIGHTS, "s": X})  # so that the axes' marks are as many
    plain = ClosedElements(figure_html(slider_figure(same, bars(), matrix())))
    evil = ClosedElements(figure_html(figure))
    assert [tag for tag, _ in evil.found] == [tag for tag, _ in plain.found]
    assert [sorted(a) for _, a in evil.found] == [sorted(a) for _, a in plain.found]
    assert page_data_of(figure)["says"] == [MARKUP_TEXT] * 5
    assert page_data_of(figure)["name"] == MARKUP_TEXT
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", figure_html(figure), re.DOTALL)
    assert len(scripts) == 2
    assert not re.search("[<>&]", scripts[0])
    assert (
        scripts[1]
        == re.findall(r"<script>(.*?)</script>", figure_html(slider_figure()), re.DOTALL)[0]
    )
    assert "alert" not in re.sub(r"\s", "", scripts[1])
    assert " ".join(evil.words).count(MARKUP_TEXT) >= 14
    assert html.escape(MARKUP_TEXT) in figure_html(figure)


HEIGHTS_WITH_NAN = np.where(np.arange(7) == 3, np.nan, HEIGHTS)
BAD_INPUT = {
    "one value": (
        lambda: slider_figure(values=[1.0]),
        "values: expected two or more numbers, each larger",
    ),
    "values fall": (lambda: slider_figure(values=VALUES[::-1]), "values: expected two or more"),
    "values NaN": (
        lambda: slider_figure(values=[*VALUES[:4], np.nan]),
        "values: expected finite numbers",
    ),
    "few frames": (
        lambda: slider_figure(curves(lines={"moves": HEIGHTS[:4]})),
        "panel 0, moves: expected 5 frames, one for each value, got 4",
    ),
    "few dots": (lambda: slider_figure(curves(dots=[[1, 2]])), "panel 0, dots: expected 5 frames"),
    "few rows": (
        lambda: slider_figure(bars(), bars(amounts=AMOUNTS[:3])),
        "panel 1, amounts: expected 5",
    ),
    "few matrices": (
        lambda: slider_figure(matrix(weights=WEIGHTS[:2])),
        "panel 0, weights: expected 5",
    ),
    "nothing moves": (
        lambda: slider_figure(curves(lines={"s": X}, dots=None)),
        "nothing in it moves",
    ),
    "no panels": (lambda: slider_figure(panels=[]), "panels: expected one or more, got none"),
    "few sentences": (lambda: slider_figure(says=SENTENCES[:4]), "says: expected 5 sentences"),
    "an empty one": (
        lambda: slider_figure(says=[*SENTENCES[:4], " "]),
        "says: expected 5 sentences",
    ),
    "start": (lambda: slider_figure(start=0.3), "start: expected one of the values, got 0.3"),
    "NaN": (
        lambda: curves(lines={"moves": HEIGHTS_WITH_NAN}),
        "moves: expected finite numbers, got NaN",
    ),
    "x unsorted": (lambda: curves(x=X[::-1]), "x: expected two or more numbers, each larger"),
    "x twice": (lambda: curves(x=np.r_[X[:6], X[5]]), "x: expected two or more numbers"),
    "x below 0": (lambda: curves(log=True), "x: expected numbers above 0 for a log axis, got 0"),
    "short line": (
        lambda: curves(lines={"moves": HEIGHTS[:, :6]}),
        r"moves: expected one number for each of the 7 x, got shape \(5, 6\)",
    ),
    "many that stay": (
        lambda: curves(lines={"moves": HEIGHTS, "a": X, "b": X, "c": X}),
        "lines: expected at most 3 that move and 2 that stay, got 1 and 3",
    ),
    "many lines": (
        lambda: curves(lines={f"{k}": HEIGHTS for k in range(4)}),
        "lines: expected at most 3 that move and 2 that stay, got 4 and 0",
    ),
    "points": (lambda: curves(points=X), r"points: expected 2 dimensions, got shape \(7,\)"),
    "three rows": (lambda: curves(points=[X, X, X]), "points: expected shape"),
    "dots in 3-D": (lambda: curves(dots=np.ones((5, 3))), "dots: expected shape"),
    "points outside": (
        lambda: curves(points=[X + 1, X]),
        "points: expected x from 0 to 8, got 1 to 9",
    ),
    "labels": (lambda: bars(labels=["one"]), "labels: expected 3 labels, got 1"),
    "long label": (lambda: bars(labels=["o" * 21] * 3), "labels: expected text of at most 20"),
    "below 0": (lambda: bars(amounts=-AMOUNTS), "amounts: expected none below 0"),
    "a matrix": (lambda: matrix(weights=AMOUNTS), "weights: expected 3 dimensions"),
    "weights": (lambda: matrix(weights=WEIGHTS - 1), "weights: expected none below 0, got -"),
    "queries": (lambda: matrix(queries=[1, 2, 3]), "queries: expected 2 numbers, evenly spaced"),
    "keys": (lambda: matrix(keys=np.arange(11) ** 2), "keys: expected 11 numbers, evenly spaced"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_arguments_that_do_not_fit_are_refused_in_words(case):
    make, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        make()


def test_the_static_figure_draws_the_frames_asked_for():
    figure = slider_figure(start=0.25)
    axes = np.reshape(figure.figure().axes, (3, 3))
    assert [ax.get_title() for ax in axes[0]] == ["width w = 0.1", "width w = 0.25", "width w = 10"]
    for ax, frame in zip(axes[0], (0, 1, 4), strict=True):
        drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
        np.testing.assert_array_equal(drawn["moves"], HEIGHTS[frame])
        np.testing.assert_array_equal(drawn["stays"], X / 4)
    for ax, frame in zip(axes[1], (0, 1, 4), strict=True):
        np.testing.assert_allclose([b.get_width() for b in ax.patches], AMOUNTS[frame], atol=6e-4)
        assert ax.get_ylim() == (2.5, -0.5)
    for ax, frame in zip(axes[2], (0, 1, 4), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), WEIGHTS[frame])
        assert ax.images[0].get_extent() == [-0.5, 10.5, 1.5, -0.5]
    [legend] = figure.figure().legends
    assert [text.get_text() for text in legend.texts] == [
        "points",
        "moves",
        "stays",
        "now",
        "equal",
    ]
    assert len(figure.figure(frames=[3]).axes) == 3
    assert [ax.get_title() for ax in slider_figure(start=0.1).figure().axes[:3]][1] == "width w = 1"


def test_figures_need_no_torch():
    code = "import sys, attncourse.figures; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
