"""Chapter 3: a soft lookup among a few entries, by what is asked for and a temperature."""

from collections.abc import Sequence

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import (
    beside_controls,
    controls,
    live,
    picture_row,
    slider_control,
)
from attncourse.figures.moving.figure import Moving
from attncourse.lookup import softmax
from attncourse.support.arrays import as_floats, require_finite

LEFT, RIGHT, TOP, BOTTOM = 34, 318, 14, 186  # of the axes, in pixels
N_PLACES = 143  # of the curve
COLD, HOT = -2, 2  # the temperature, as a power of 10
SEEN = 0.02  # the weight from which on a thread leads from a car to the answer


def soft_prices(
    keys: Sequence[float], values: Sequence[float], query: float, temperature: float = 0.05
) -> Moving:
    """Return the blend of a few values by how near their keys are, and its whole curve.

    keys, values: 2 to 8 numbers above 0, at most 999; the axes begin at 0. query: what is asked
    first, on the axis. temperature: the first one, 0.01 to 100; scores are minus half the squared
    distances.
    Raises ``ValueError`` for others.
    """
    k, v = (
        as_floats(name, a, "n").astype(float) for name, a in (("keys", keys), ("values", values))
    )
    require_finite(keys=k, values=v)
    if not 2 <= len(k) <= 8 or len(k) != len(v) or not is_on_axes(k, v):
        raise ValueError(
            f"expected 2 to 8 keys and values above 0, at most 999, got {list(k)} and {list(v)}"
        )
    ends = [float(np.ceil(k.max() * 1.1)), float(np.ceil(v.max() * 1.1))]
    if not 0 <= query <= ends[0]:
        raise ValueError(f"query: expected a number from 0 to {ends[0]:g}, got {query!r}")
    if not 10**COLD <= temperature <= 10**HOT:
        raise ValueError(f"temperature: expected a number from 0.01 to 100, got {temperature!r}")
    return Moving(
        "soft_prices",
        "Asking for a car that is not there",
        beside_controls(
            picture_row(prices_picture(k, v, query, temperature, ends)),
            controls(
                "Drag the dashed line, or:",
                slider_control("query", "age, years", 0, ends[0], query, 0.1),
                slider_control(
                    "heat", "temperature", COLD, HOT, round(np.log10(temperature), 1), 0.1
                ),
            ),
            "<p>Dots: cars that are known. Line: the price that the lookup gives to each age.</p>",
        ),
        "In a browser that runs scripts, the car that is asked for and the temperature can be "
        "changed.",
        {
            "keys": k.tolist(),
            "values": v.tolist(),
            "ends": ends,
            "box": [LEFT, RIGHT, TOP, BOTTOM],
            "places": N_PLACES,
            "seen": SEEN,
        },
        f"{query:g} years, temperature {temperature:g}: "
        f"{soft_answers(np.array([query]), k, v, temperature)[0]:.1f} thousand.",
    )


def is_on_axes(k: np.ndarray, v: np.ndarray) -> bool:
    """True if all keys and values lie on the figure's axes: above 0 and at most 999."""
    return bool((np.minimum(k, v) > 0).all() and (np.maximum(k, v) <= 999).all())


def axis_ticks(end: float) -> list[int]:
    """Round numbers along an axis from 0, four to eight of them."""
    step = next(s for s in (1, 2, 4, 5, 10, 20, 50, 100, 200) if end / s < 7)
    return list(range(0, int(end) + 1, step))


def soft_answers(
    queries: np.ndarray, k: np.ndarray, v: np.ndarray, temperature: float
) -> np.ndarray:
    """Return the blended values for some queries, by a softmax of squared distances."""
    return softmax(-((queries[:, None] - k) ** 2) / 2, temperature=temperature) @ v


def prices_picture(k, v, query: float, temperature: float, ends: list[float]) -> Diagram:
    """Draw the axes and the known entries, which stay, and what moves: curve, threads, answer."""
    drawing = Diagram(
        "Prices by age",
        "Dots are cars, by age and price. A curve is the price that the lookup gives to each age; "
        "a blue line marks the age asked for, a ring the answer.",
        width=330,
        height=222,
    )

    def at(x, y):
        return LEFT + (RIGHT - LEFT) * x / ends[0], BOTTOM - (BOTTOM - TOP) * y / ends[1]

    drawing.path(f"M{LEFT},{TOP}V{BOTTOM}H{RIGHT}", "quiet", thick=1)
    for x in axis_ticks(ends[0]):
        drawing.text(at(x, 0)[0], BOTTOM + 16, f"{x}", "quiet", size=12)
    for y in axis_ticks(ends[1]):
        drawing.text(LEFT - 6, at(0, y)[1] + 4, f"{y}", "quiet", size=12, anchor="end")
    drawing.text((LEFT + RIGHT) / 2, BOTTOM + 33, "age, years", "key", size=12)
    drawing.text(LEFT + 6, TOP, "price, thousands", "value", size=12, anchor="start")
    xs = np.linspace(0, ends[0], N_PLACES)
    curve = np.column_stack(at(xs, soft_answers(xs, k, v, temperature)))
    answer = at(query, soft_answers(np.array([query]), k, v, temperature)[0])
    line = "L".join(f"{x:.1f},{y:.1f}" for x, y in curve)
    weights = softmax(-((query - k) ** 2) / 2, temperature=temperature)
    cars = list(zip(*at(k, v), weights, strict=True))
    dots = "".join(
        f'<circle class="am-car" cx="{x:.1f}" cy="{y:.1f}" r="{4 + 7 * a:.1f}"/>'
        for x, y, a in cars
    )
    threads = "".join(
        f"M{x:.1f},{y:.1f}L{answer[0]:.1f},{answer[1]:.1f}" for x, y, a in cars if a > SEEN
    )
    live(
        drawing,
        "moves",
        f'<path class="am-asked" d="M{answer[0]:.1f},{TOP}V{BOTTOM}"/>'
        f'<path class="ad-thin" d="{threads}"/>'
        f'<path class="am-curve" d="M{line}"/>{dots}'
        f'<circle class="am-answer" cx="{answer[0]:.1f}" cy="{answer[1]:.1f}" r="7"/>',
    )
    return drawing
