"""What plots are drawn with: colours for every eye, weights as ink, panels, labels at lines."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from attncourse.figures import (
    COLOURS,
    hatch_masked,
    label_lines,
    panels,
    set_style,
    style,
    weight_matrix,
)
from attncourse.figures.cells import cells_outline, number_ink
from attncourse.figures.plots import spread_heights
from helpers.plot_colours import PAGES, contrast, linear, sheet

COLOUR_NAMES = {
    "query": style.QUERY,
    "key": style.KEY,
    "value": style.VALUE,
    "ink": style.INK,
    "purple": style.PURPLE,
    "sky": style.SKY,
    "yellow": style.YELLOW,
    "grey": style.GREY,
}
# How a colour is seen without one kind of cone (Machado, Oliveira and Fernandes, 2009).
COLOUR_VISION = {
    "all cones": np.eye(3),
    "no long": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no short": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


@pytest.fixture(autouse=True)
def style_sheet():
    with plt.rc_context():
        set_style()
        yield
    plt.close("all")


def lab(rgb: np.ndarray) -> np.ndarray:
    """Return the CIE L*a*b* coordinates of a linear RGB colour."""
    matrix = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    xyz = np.array(matrix) @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# Colours


def test_the_style_sheet_has_the_plots_colours():
    light = sheet("light")
    assert {name: light[name] for name in COLOUR_NAMES} == COLOUR_NAMES
    assert set(COLOURS) | {style.GREY, style.INK} == set(COLOUR_NAMES.values())
    assert sheet("dark").keys() >= COLOUR_NAMES.keys()
    assert all(sheet("dark")[name] != light[name] for name in COLOUR_NAMES)


@pytest.mark.parametrize("scheme", PAGES)
def test_every_colour_stands_out_from_the_page(scheme):
    for name in COLOUR_NAMES:
        least = 4.5 if name in ("query", "key", "value", "ink") else 3
        assert contrast(sheet(scheme)[name], PAGES[scheme]) >= least, name


@pytest.mark.parametrize("eye", COLOUR_VISION)
@pytest.mark.parametrize("scheme", PAGES)
def test_colours_differ_for_every_kind_of_colour_vision(scheme, eye):
    seen = {name: lab(COLOUR_VISION[eye] @ linear(sheet(scheme)[name])) for name in COLOUR_NAMES}
    for first, second in itertools.combinations(COLOUR_NAMES, 2):
        assert np.linalg.norm(seen[first] - seen[second]) >= 10, (first, second)


def test_lines_differ_without_colour():
    fig, ax = plt.subplots()
    for k in range(len(COLOURS)):
        ax.plot([0, 1], [k, k], color="black")
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    dark = np.asarray(canvas.buffer_rgba())[..., :3].sum(axis=2) < 600
    looks = []
    for line in ax.lines:
        (left, y), (right, _) = ax.transData.transform(line.get_xydata())
        row = dark[dark.shape[0] - round(y) - 2 : dark.shape[0] - round(y) + 2].any(axis=0)
        marks = np.flatnonzero(np.diff(row[round(left) + 2 : round(right) - 2].astype(int)))
        looks.append((len(marks), row[round(left) : round(right)].mean()))
    assert looks[0][0] == 0  # the first is solid
    for look, other_look in itertools.combinations(looks, 2):  # more pieces, or longer ones
        ratio = max(look[0], other_look[0]) / max(1, min(look[0], other_look[0]))
        assert ratio > 1.1 or abs(look[1] - other_look[1]) > 0.05, (look, other_look)


def mixed_colour(shade: float, scheme: str) -> np.ndarray:
    ink, page = to_rgb(sheet(scheme)["ink"]), to_rgb(PAGES[scheme])
    return shade * np.array(ink) + (1 - shade) * np.array(page)


@pytest.mark.parametrize("scheme", PAGES)
def test_numbers_can_be_read_on_every_weight(scheme):
    shown = {
        style.DEEP: sheet(scheme)["deep"],
        style.FIXED: "#000000",
        style.PAPER: PAGES[scheme],
    }
    used = set()
    for level in range(style.LEVELS + 1):
        ink = number_ink(level / style.LEVELS)
        assert contrast(shown[ink], mixed_colour(level / style.LEVELS, scheme)) >= 4.5, level
        used.add(ink)
    assert used == shown.keys()


# Weights


def drawn_pixels(fig: Figure) -> np.ndarray:
    """Return a figure's pixels, (rows, columns, RGB), from 0 to 1."""
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3] / 255


def cell_colours(fig: Figure, ax, m: int, n: int, dx: float = 0) -> np.ndarray:
    """Return the colour at the centre of each cell, or ``dx`` beside it, ``(m, n, 3)``."""
    picture = drawn_pixels(fig)
    places = [[ax.transData.transform((j + dx, i)) for j in range(n)] for i in range(m)]
    return np.array([[picture[-1 - int(y), int(x)] for x, y in row] for row in places])


def test_weights_are_ink_as_dense_as_the_weight():
    weights = np.random.default_rng(0).dirichlet(np.ones(7), size=5)
    fig = Figure(layout="constrained")
    ax = weight_matrix(weights, ax=fig.subplots(), numbers=False)
    expected = mixed_colour(1, "light") * weights[..., None] + (1 - weights[..., None])
    np.testing.assert_allclose(
        cell_colours(fig, ax, 5, 7), expected, atol=0.5 / style.LEVELS + 0.005
    )
    np.testing.assert_array_equal(ax.images[0].get_array(), weights)
    fig.colorbar(ax.images[0])  # as for any other image
    drawn_pixels(fig)


def test_the_colour_map_is_ink():
    shades = np.linspace(0, 1, style.LEVELS + 1)
    colours = colormaps["weights"](shades)
    np.testing.assert_allclose(colours[:, :3], [to_rgb(style.INK)] * len(shades))
    np.testing.assert_allclose(colours[:, 3], shades, atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 7), st.integers(1, 11), st.integers(0, 2**32 - 1))
def test_outlines_enclose_exactly_the_true_cells(m, n, seed):
    where = np.random.default_rng(seed).random((m, n)) < 0.5
    parts = cells_outline(where).to_polygons(closed_only=False) if where.any() else []
    covered = np.zeros((m, n), dtype=int)
    for polygon in parts:
        (left, top), (right, bottom) = polygon.min(axis=0), polygon.max(axis=0)
        covered[int(top + 0.5) : int(bottom + 0.5), int(left + 0.5) : int(right + 0.5)] += 1
    np.testing.assert_array_equal(covered, where)


def test_masked_cells_are_hatched_and_have_no_number():
    mask = np.tril(np.ones((5, 5), dtype=bool))
    weights = mask / mask.sum(axis=1, keepdims=True)
    fig = Figure(layout="constrained")
    ax = weight_matrix(weights, ax=fig.subplots(), mask=mask, numbers=True)
    places = {tuple(text.get_position()) for text in ax.texts}
    assert places == {(j, i) for i, j in np.argwhere(mask)}
    for text in list(ax.texts):
        text.remove()
    picture = drawn_pixels(fig)
    for (i, j), allowed in np.ndenumerate(mask):
        (x0, y0), (x1, y1) = ax.transData.transform([(j - 0.4, i + 0.4), (j + 0.4, i - 0.4)])
        cell = picture[-1 - int(y1) : -1 - int(y0), int(x0) : int(x1)]
        assert (cell.std() > 0.02) == (not allowed), (i, j)
    hatch_masked(np.ones((2, 2), dtype=bool), plt.gca())
    assert len(plt.gca().patches) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weight_matrix([1.0]), r"expected shape \(m, n\), got \(1,\)"),
        (lambda: weight_matrix(np.eye(3), ["a"]), "queries: expected 3 labels, got 1"),
        (lambda: weight_matrix(np.eye(3), mask=np.ones((2, 3))), r"mask: expected shape \(3, 3\)"),
        (lambda: hatch_masked(np.eye(2)), r"expected bool of shape \(m, n\), got float64"),
        (lambda: hatch_masked([True]), r"got bool of \(1,\)"),
        (lambda: panels(0), "one panel or more, got 0"),
        (lambda: panels(3, width=[1, 2]), "one number or 3, got 2"),
        (lambda: label_lines(plt.gca()), "expected lines with labels, got none"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("n", "size"), [(5, (4.3, 3.0)), (9, (4.3, 3.0)), (9, (6, 6)), (30, (9, 9))]
)
def test_numbers_are_written_where_they_fit(n, size):
    fig, ax = plt.subplots(figsize=size)
    weight_matrix(np.full((n, n), 0.11), ax=ax)
    assert (len(ax.texts) > 0) == (n == 5 or size == (6, 6))
    fig.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(box.overlaps(other_box) for box, other_box in itertools.combinations(boxes, 2))


# Panels


@pytest.mark.parametrize(("n", "columns"), [(1, None), (3, None), (4, 2), (7, None), (8, 3)])
def test_panels_are_axes_that_lie_in_parts_of_their_own(n, columns):
    fig, axes = panels(n, columns=columns)
    for k, ax in enumerate(axes):
        ax.plot([0, 1], [k, 1000 * k])
        ax.set(xlabel="x", ylabel="a long name", title=f"panel {k}")
    fig.draw_without_rendering()
    boxes = [ax.get_tightbbox() for ax in axes]
    parts = [ax.figure.bbox for ax in axes]
    for box, part in zip(boxes, parts, strict=True):
        assert part.x0 - 1 <= box.x0
        assert box.x1 <= part.x1 + 1
        assert part.y0 - 1 <= box.y0
        assert box.y1 <= part.y1 + 1
    assert len({round(part.x0) for part in parts}) == min(n, columns or 4)
    assert (
        sum(part.width * part.height for part in parts) <= fig.bbox.width * fig.bbox.height * 1.01
    )


def test_panels_of_several_widths_and_with_shared_axes():
    fig, (wide, narrow) = panels(2, width=(3, 1.5), height=2, sharey=True)
    assert tuple(fig.get_size_inches()) == (4.5, 2)
    assert wide.figure.bbox.width == pytest.approx(2 * narrow.figure.bbox.width)
    wide.plot([0, 17])
    assert narrow.get_ylim() == wide.get_ylim()


# Labels


@settings(deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=9), st.floats(0.1, 20))
def test_labels_move_apart_as_little_as_possible(heights, least):
    """The least squares with a smallest distance: isotonic regression, by its min-max formula."""
    heights = np.array(heights)
    order = np.argsort(heights, kind="stable")
    free_heights = heights[order] - least * np.arange(len(heights))
    n = range(len(heights))
    best = [
        max(min(free_heights[a : b + 1].mean() for b in n if b >= i) for a in n if a <= i)
        for i in n
    ]
    np.testing.assert_allclose(
        spread_heights(heights, least)[order], best + least * np.arange(len(heights)), atol=1e-6
    )


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(100, 200), min_size=2, max_size=7), st.booleans())
def test_labels_of_lines_do_not_touch_and_stand_at_their_ends(ends, log):
    fig, ax = plt.subplots()
    ends = np.array(ends) / 100
    for k, end in enumerate(ends):
        ax.plot([0, 1, 2], [1, 2, end], label=f"line {k}")
    ax.plot([0, 1], [1, 1], label="_none")
    ax.set(xlabel="x", yscale="log" if log else "linear")
    label_lines(ax)
    fig.draw_without_rendering()
    assert [text.get_text() for text in ax.texts] == [f"line {k}" for k in range(len(ends))]
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # without the lines to them
    right = ax.get_window_extent().x1
    for lower, upper in itertools.combinations(boxes, 2):
        assert min(lower.y1, upper.y1) - max(lower.y0, upper.y0) <= 0.4 * lower.height
    middles = np.array([(box.y0 + box.y1) / 2 for box in boxes])
    assert (np.diff(middles[np.argsort(ends, kind="stable")]) > 0).all()
    assert all(box.x0 > right - 0.08 * ax.bbox.width for box in boxes)
    assert max(box.x1 for box in boxes) <= fig.bbox.x1 + 1  # the layout has made room
    plt.close(fig)


def test_a_line_that_ends_early_has_its_label_there():
    _, ax = plt.subplots()
    ax.plot([0, 1, 2, 3], [1, 2, 3, 4], label="long")
    ax.plot([0, 1], [1, 5], label="short")
    ax.set_xlim(0, 2)
    label_lines(ax)
    np.testing.assert_allclose([text.xy for text in ax.texts], [(2, 3), (1, 5)])
    ax.plot([9], [9], label="outside")
    with pytest.raises(ValueError, match="'outside' has no point in the axes"):
        label_lines(ax)
