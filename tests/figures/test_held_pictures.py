"""Pictures that are held: by mouse and by finger, what is dragged sets what its slider sets."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from attncourse.figures import moving
from helpers.figure_reader import FigureReader, needs_browser
from helpers.figure_samples import CIRCLE

pytestmark = needs_browser


def screen_place(reader: FigureReader, picture: str, x: float, y: float) -> tuple[float, float]:
    """Return the screen coordinates of a point of a drawing."""
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
    reader.page.mouse.move(*screen_place(reader, picture, *start))
    reader.page.mouse.down()
    for way in ways:
        reader.page.mouse.move(*screen_place(reader, picture, *way), steps=3)
    reader.page.mouse.up()


def control_value(reader: FigureReader, name: str) -> float:
    return float(reader.figure.locator(f".am-stage [data-part={name}]").input_value())


def test_dragging_on_the_dial_moves_query_and_key(opened):
    reader = opened(moving.position_dial())
    pace = reader.now["pace"][1]
    start = {"s": (math.atan2(0.9, 0.6), 12), "t": (math.atan2(0.35, 0.9), 5)}
    for name, still, to in (("s", "t", 30), ("t", "s", 17), ("s", "t", 2)):
        angle, at = start[name]
        begins, ends = (angle + place * pace for place in (at, to))
        path = [
            (170 + 70 * math.cos(a), 124 - 70 * math.sin(a)) for a in np.linspace(begins, ends, 9)
        ]
        before = control_value(reader, still)
        drag(reader, "[data-part=q]", *path)
        assert (control_value(reader, name), control_value(reader, still)) == (to, before)
        start[name] = (angle, to)
        assert f"{'Query' if name == 's' else 'key'} at {to}" in reader.says


def test_dragging_a_bar_sets_the_width(opened):
    figure = moving.width_slider()
    reader = opened(figure)
    data = figure.data
    row = int(np.argmax(np.abs(data["draws"])))
    for divisor, powers in ((0, (4, 2, 0)), (2, (3, 6))):
        reader.figure.locator("[data-part=divisor]").nth(divisor).click()
        for power in powers:
            width = 2**power
            score = data["draws"][row] * width**0.5 / [1, width**0.5, width][divisor]
            place = data["top"] + (row + 0.5) * data["row"]
            drag(reader, "[data-part=bars]", (data["zero"], place),
                 (data["zero"] + score * data["unit"], place))  # fmt: skip
            assert control_value(reader, "width") == power
            assert reader.now["scores"][row] == pytest.approx(score)


def test_dragging_the_squares_corner_sets_the_length(opened):
    figure = moving.length_slider()
    reader = opened(figure)
    side, high = figure.data["side"], figure.data["high"]
    for power in (15, 17, 16):
        corner = 2 + side * 2.0 ** (power - high)
        drag(reader, "[data-part=square]", (corner - 3, corner - 3), (corner, corner))
        assert control_value(reader, "length") == power
        assert reader.now["n"] == 2**power


def test_dragging_the_bars_sets_the_depth(opened):
    reader = opened(moving.block_parts())
    cells = reader.figure.locator("[data-part=bars] td:has(i)")
    for at in (5, 0, 7):
        cells.nth(3).scroll_into_view_if_needed()
        first, last = cells.nth(3).bounding_box(), cells.nth(at).bounding_box()
        reader.page.mouse.move(first["x"] + 5, first["y"] + 20)
        reader.page.mouse.down()
        reader.page.mouse.move(last["x"] + 5, last["y"] + 20, steps=4)
        reader.page.mouse.up()
        assert control_value(reader, "depth") == at
        assert f"After {at} blocks" in reader.says


def test_a_point_on_the_circle_is_dragged_and_moved_by_keys(opened):
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
    """Return the points on the circle, computed from where they are drawn."""
    return reader.figure.evaluate("root => root.points()")


def stroke(reader: FigureReader, *path: tuple[float, float]) -> None:
    """Move a finger along points of the screen, with touch events as a device sends them."""
    finger, touch = reader.context.new_cdp_session(reader.page), "Input.dispatchTouchEvent"
    for i, ((x, y), (to_x, to_y)) in enumerate(itertools.pairwise(path)):
        if not i:
            finger.send(touch, {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        for share in np.linspace(0, 1, 6)[1:]:
            points = [{"x": x + share * (to_x - x), "y": y + share * (to_y - y)}]
            finger.send(touch, {"type": "touchMove", "touchPoints": points})
    finger.send(touch, {"type": "touchEnd", "touchPoints": []})
    finger.detach()


def figure_on_phone(opened, figure) -> FigureReader:
    """Open the figure on a phone, in the middle of a page that is long enough to scroll."""
    reader = opened(figure, width=390, has_touch=True)
    reader.page.evaluate("""() => { document.body.style.padding = '900px 0'; scrollTo(0, 800); }""")
    return reader


def scroll_position(reader: FigureReader) -> float:
    """Return where the page is, once it is at rest: a stroke moves it on for a while."""
    return reader.page.evaluate("""() => new Promise((done) => {
      let last = scrollY, still = 0;
      const look = () => {
        still = scrollY === last ? still + 1 : 0;
        last = scrollY;
        if (still < 12) requestAnimationFrame(look); else done(last);
      };
      look();
    })""")


def dial_place(place: float, angle: float, radius: float = 75) -> tuple[float, float]:
    """Return where on the dial the arrow of a position ends; ``angle`` is that of position 0."""
    turned = angle + place * 10_000 ** (-2 / 8)
    return 170 + radius * math.cos(turned), 124 - radius * math.sin(turned)


def test_a_finger_drags_the_square_by_its_corner(opened):
    """Diagonally, up and down: the page does not go away under it."""
    figure = moving.length_slider()
    reader = figure_on_phone(opened, figure)
    side, high = figure.data["side"], figure.data["high"]
    corner = 2 + side
    for power, start in ((15, (corner, corner)), (17, None), (16, (corner - 4, corner))):
        end = 2 + side * 2.0 ** (power - high)
        begin = start or (2 + side / 4, 2 + side / 4)
        path = [screen_place(reader, "[data-part=square]", *at) for at in (begin, (end, end))]
        before = scroll_position(reader)
        stroke(reader, *path)
        assert control_value(reader, "length") == power
        assert scroll_position(reader) == before


@pytest.mark.parametrize("begins", [22, 12, 30])
def test_a_finger_turns_an_arrow_whichever_way_it_points(opened, begins):
    reader = figure_on_phone(opened, moving.position_dial(s=begins, brief=True))
    query = math.atan2(0.9, 0.6)
    path = [
        screen_place(reader, "[data-part=q]", *dial_place(at, query))
        for at in np.linspace(begins, begins + 8, 5)
    ]
    before = scroll_position(reader)
    stroke(reader, *path)
    assert (control_value(reader, "s"), control_value(reader, "t")) == (begins + 8, 5)
    assert scroll_position(reader) == before


@pytest.mark.parametrize("turn", [0.5, -0.5])
def test_a_finger_moves_a_point_of_the_circle_up_and_down(opened, turn):
    figure = moving.mean_shift_circle(CIRCLE)
    reader = figure_on_phone(opened, figure)
    middle, radius = figure.data["middle"], figure.data["radius"]
    i = int(np.argmax(np.abs(np.array(CIRCLE)[:, 0])))  # where the circle goes up and down
    begins = math.atan2(CIRCLE[i][1], CIRCLE[i][0])
    path = [
        screen_place(reader, "[data-part=points]",
               middle + radius * math.cos(angle), middle - radius * math.sin(angle))
        for angle in np.linspace(begins, begins + turn, 4)
    ]  # fmt: skip
    before = scroll_position(reader)
    stroke(reader, *path)
    moved = np.abs(np.array(points_of(reader)) - CIRCLE).max(axis=1) > 1e-9
    assert moved.nonzero()[0].tolist() == [i]
    np.testing.assert_allclose(
        points_of(reader)[i], [math.cos(begins + turn), math.sin(begins + turn)], atol=0.02
    )
    assert scroll_position(reader) == before


def test_a_finger_moves_a_blend_and_an_arrow_straight_up(opened):
    blend = figure_on_phone(opened, moving.three_weights(np.array([[1.0, 0], [3, 4], [-1, 8]])))
    words = figure_on_phone(
        opened, moving.two_means(["dog", "man"], [[1.2, 0.4], [-0.8, 0.9]], [[0, 1], [1]])
    )
    for reader, held in ((blend, ".am-grip"), (words, "[data-word='0']")):
        grip = reader.figure.locator(held).first
        grip.scroll_into_view_if_needed()
        box = grip.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        before = scroll_position(reader)
        stroke(reader, (x, y), (x, y - 45))
        after = reader.figure.locator(held).first.bounding_box()
        assert after["y"] + after["height"] / 2 == pytest.approx(y - 45, abs=3)
        assert after["x"] + after["width"] / 2 == pytest.approx(x, abs=3)
        assert scroll_position(reader) == before


SIDEWAYS_FIGURES = {
    "soft_prices": (lambda: moving.soft_prices([1, 5, 9], [30, 12, 40], 3), "svg", "query"),
    "width_slider": (moving.width_slider, "svg", "width"),
    "block_parts": (moving.block_parts, "[data-part=bars]", "depth"),
}


@pytest.mark.parametrize("name", SIDEWAYS_FIGURES)
def test_sideways_drags_the_figure_up_and_down_scrolls_the_page(opened, name):
    made, picture, slider = SIDEWAYS_FIGURES[name]
    reader = figure_on_phone(opened, made())
    place = reader.figure.locator(f".am-stage {picture}").first
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    x, y = box["x"] + 0.4 * box["width"], box["y"] + 0.6 * box["height"]
    first, before = control_value(reader, slider), scroll_position(reader)
    stroke(reader, (x, y), (x + 2, y - 150))
    reader.page.wait_for_function("before => scrollY > before + 50", arg=before)
    assert control_value(reader, slider) == first
    scroll_position(reader)  # else its place on the screen would not hold
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    x, y = box["x"] + 0.2 * box["width"], box["y"] + 0.6 * box["height"]
    before = scroll_position(reader)
    stroke(reader, (x, y), (x + 60, y + 6), (x + 100, y + 12))
    assert control_value(reader, slider) != first
    assert scroll_position(reader) == before


def test_a_finger_beside_the_draggable_part_scrolls(opened):
    """In the middle of a circle, in the dial's corner, at a corner of the triangle."""
    for figure, part, at in (
        (moving.position_dial(brief=True), "[data-part=q]", (30, 200)),
        (moving.mean_shift_circle(CIRCLE), "[data-part=points]", None),
        (moving.three_weights(np.array([[1.0, 0], [3, 4], [-1, 8]])), ".am-grip", (30, 290)),
    ):
        reader = figure_on_phone(opened, figure)
        x, y = screen_place(reader, part, *(at or (figure.data["middle"],) * 2))
        before, shown = scroll_position(reader), reader.figure.locator("[role=status]").inner_text()
        stroke(reader, (x, y), (x + 2, y - 150))
        reader.page.wait_for_function("before => scrollY > before + 50", arg=before)
        assert reader.says == shown


HELD_FIGURES = {
    "position_dial": (lambda: moving.position_dial(brief=True), ".pd-disc"),
    "length_slider": (moving.length_slider, ".ls-map svg"),
    "width_slider": (moving.width_slider, "svg"),
    "block_parts": (moving.block_parts, "[data-part=bars]"),
    "mean_shift_circle": (lambda: moving.mean_shift_circle(CIRCLE), "svg"),
    "soft_prices": (SIDEWAYS_FIGURES["soft_prices"][0], "svg"),
    "three_weights": (lambda: moving.three_weights(np.array([[1.0, 0], [3, 4], [-1, 8]])), "svg"),
    "two_means": (
        lambda: moving.two_means(["dog", "man"], [[1.2, 0.4], [-0.8, 0.9]], [[0, 1], [1]]),
        "svg",
    ),
}


@pytest.mark.parametrize("name", HELD_FIGURES)
def test_draggable_parts_say_so_and_are_not_selected_as_text(opened, name):
    made, picture = HELD_FIGURES[name]
    reader = opened(made())
    assert reader.figure.get_by_text(
        re.compile("^(drag|turn) |[.] drag ", re.IGNORECASE)
    ).last.is_visible()
    box = reader.figure.locator(f".am-stage {picture}").first.bounding_box()
    mouse = reader.page.mouse
    for x, y in ((0.2, 0.1), (0.5, 0.5), (0.8, 0.3)):
        mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        mouse.down()
        mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.95 * box["height"], steps=5)
        mouse.up()
        assert reader.page.evaluate("() => String(getSelection())") == ""
    still = opened(made(), java_script_enabled=False)
    assert not still.figure.get_by_text(
        re.compile("^(drag|turn) ", re.IGNORECASE)
    ).last.is_visible()


def test_the_dials_empty_corner_turns_nothing(opened):
    reader = opened(moving.position_dial(brief=True))
    before = reader.says
    for corner in ((8, 30), (330, 222)):
        reader.page.mouse.click(*screen_place(reader, "[data-part=q]", *corner))
    assert reader.says == before
    cursor = "node => getComputedStyle(node).cursor"
    dial = reader.figure.locator("svg:has([data-part=q])")
    assert dial.evaluate(cursor) == "auto"
    assert dial.locator(".pd-disc").evaluate(cursor) == "grab"
