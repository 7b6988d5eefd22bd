"""Pictures that are held: by mouse and by finger, what is dragged sets what its slider sets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attncourse.figures import moving
from helpers.figure_reader import FigureReader, needs_browser
from helpers.figure_samples import CIRCLE

pytestmark = needs_browser


def pixels(reader: FigureReader, picture: str, x: float, y: float) -> tuple[float, float]:
    """Where a place of a drawing is on the screen."""
    svg = reader.figure.locator(f"svg:has({picture})").last
    svg.scroll_into_view_if_needed()
    return tuple(
        svg.evaluate(
            "(svg, [x, y]) => { const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());"
            " return [at.x, at.y]; }",
            [x, y],
        )
    )


def drag(reader: FigureReader, picture: str, start, *ways) -> None:
    reader.page.mouse.move(*pixels(reader, picture, *start))
    reader.page.mouse.down()
    for way in ways:
        reader.page.mouse.move(*pixels(reader, picture, *way), steps=3)
    reader.page.mouse.up()


def value(reader: FigureReader, name: str) -> float:
    return float(reader.figure.locator(f".am-stage [data-part={name}]").input_value())


def test_query_and_key_are_turned_on_the_dial(opened):
    reader = opened(moving.position_dial())
    pace = reader.now["pace"][1]
    start = {"s": (math.atan2(0.9, 0.6), 12), "t": (math.atan2(0.35, 0.9), 5)}
    for name, other, to in (("s", "t", 30), ("t", "s", 17), ("s", "t", 2)):
        angle, at = start[name]
        begins, ends = (angle + place * pace for place in (at, to))
        path = [
            (170 + 70 * math.cos(a), 124 - 70 * math.sin(a)) for a in np.linspace(begins, ends, 9)
        ]
        before = value(reader, other)
        drag(reader, "[data-part=q]", *path)
        assert (value(reader, name), value(reader, other)) == (to, before)
        start[name] = (angle, to)
        assert f"{'Query' if name == 's' else 'key'} at {to}" in reader.says


def test_the_spread_of_the_scores_is_held(opened):
    figure = moving.width_slider()
    reader = opened(figure)
    data = figure.data
    row = int(np.argmax(np.abs(data["draws"])))
    for divisor, powers in ((0, (4, 2, 0)), (2, (3, 6))):
        reader.figure.locator("[data-part=divisor]").nth(divisor).click()
        for power in powers:
            width = 2**power
            wanted = data["draws"][row] * width**0.5 / [1, width**0.5, width][divisor]
            place = data["top"] + (row + 0.5) * data["row"]
            drag(reader, "[data-part=bars]", (data["zero"], place),
                 (data["zero"] + wanted * data["unit"], place))  # fmt: skip
            assert value(reader, "width") == power
            assert reader.now["scores"][row] == pytest.approx(wanted)


def test_the_squares_corner_is_held(opened):
    figure = moving.length_slider()
    reader = opened(figure)
    side, high = figure.data["side"], figure.data["high"]
    for power in (15, 17, 16):
        corner = 2 + side * 2.0 ** (power - high)
        drag(reader, "[data-part=square]", (corner - 3, corner - 3), (corner, corner))
        assert value(reader, "length") == power
        assert reader.now["n"] == 2**power


def test_the_depth_is_held_at_the_bars(opened):
    reader = opened(moving.block_parts())
    cells = reader.figure.locator("[data-part=bars] td:has(i)")
    for at in (5, 0, 7):
        cells.nth(3).scroll_into_view_if_needed()
        first, last = cells.nth(3).bounding_box(), cells.nth(at).bounding_box()
        reader.page.mouse.move(first["x"] + 5, first["y"] + 20)
        reader.page.mouse.down()
        reader.page.mouse.move(last["x"] + 5, last["y"] + 20, steps=4)
        reader.page.mouse.up()
        assert value(reader, "depth") == at
        assert f"After {at} blocks" in reader.says


def test_a_point_is_held_and_turned_by_key(opened):
    figure = moving.mean_shift_circle(CIRCLE)
    reader = opened(figure)
    middle, radius = figure.data["middle"], figure.data["radius"]

    def place(angle: float) -> tuple[float, float]:
        return middle + radius * math.cos(angle), middle - radius * math.sin(angle)

    begins = math.atan2(CIRCLE[3][1], CIRCLE[3][0])
    drag(reader, "[data-part=points]", place(begins), place(begins + 0.4), place(begins + 0.9))
    spot = reader.figure.locator("[data-part=points] > *").nth(3)
    degrees = math.degrees(begins + 0.9)
    shown = float(spot.get_attribute("aria-valuenow"))
    assert abs((shown - degrees + 180) % 360 - 180) <= 1
    spots = reader.figure.locator("[data-part=points] > *")
    spots.first.focus()
    before = float(spots.nth(1).get_attribute("aria-valuenow"))
    for key in ("ArrowUp", "ArrowLeft", "ArrowLeft"):
        reader.page.keyboard.press(key)
    after = float(spots.nth(1).get_attribute("aria-valuenow"))
    assert abs((after - before - 10 + 180) % 360 - 180) <= 1
    points = np.array(points_of(reader))
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)
    moved = {i for i in range(len(CIRCLE)) if np.abs(points[i] - CIRCLE[i]).max() > 1e-9}
    assert moved == {1, 3}
    reader.button("Back").click()
    np.testing.assert_allclose(points_of(reader), CIRCLE)


def points_of(reader: FigureReader) -> list:
    """The points on the circle, from where they are drawn."""
    return reader.figure.evaluate("root => root.points()")


def test_a_finger_holds_sideways_and_leaves_the_page_to_scroll(opened):
    reader = opened(moving.length_slider(), width=390, has_touch=True)
    square = reader.figure.locator("svg:has([data-part=square])")
    assert square.evaluate("svg => getComputedStyle(svg).touchAction") == "pan-y"
    box = square.bounding_box()
    reader.page.touchscreen.tap(box["x"] + box["width"] - 3, box["y"] + box["height"] - 3)
    assert value(reader, "length") == 17
