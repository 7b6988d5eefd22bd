"""Chapter 2: three vectors, three weights, and the point that they blend to."""

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import beside_controls, button, controls, live, picture_row
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import as_floats, require_finite

MIDDLE, REACH = 165, 110  # of the picture, and how far from it the corners are, in pixels


def three_weights(points: np.ndarray, weights=(0.5, 0.2, 0.3)) -> Moving:
    """Return a blend of three vectors, which a reader drags, or types the weights of.

    points: ``(3, 2)``, not on one line. weights: the first ones, ``(3,)``, within −2 to 2. Where a
    weight is below 0, or they do not sum to 1, the blend is drawn hollow and a sentence says which
    rule is broken.

    Raises ``ValueError`` for other points or weights.
    """
    X = as_floats("points", points, "three two").astype(float)
    a = as_floats("weights", weights, "three").astype(float)
    require_finite(points=X, weights=a)
    if X.shape != (3, 2) or a.shape != (3,) or np.abs(a).max() > 2:
        raise ValueError(
            f"three_weights: expected points (3, 2) and 3 weights from −2 to 2, "
            f"got {X.shape} and {a.tolist()}"
        )
    side_1, side_2 = X[1] - X[0], X[2] - X[0]
    area = abs(side_1[0] * side_2[1] - side_1[1] * side_2[0])
    if area < 1e-6 * np.ptp(X, axis=0).max() ** 2 or area == 0:
        raise ValueError(f"points: expected three that are not on one line, got {X.tolist()}")
    centre = (X.max(axis=0) + X.min(axis=0)) / 2
    unit = 2 * REACH / np.ptp(X, axis=0).max()
    return Moving(
        "three_weights",
        "Three weights, one blend",
        beside_controls(
            picture_row(blend_triangle(X, a, centre, unit)),
            controls("Drag the dot, or type:", *(field(j, weight) for j, weight in enumerate(a))),
            controls(button("share", "Divide by their sum"), button("reset", "Back")),
        ),
        "In a browser that runs scripts, the blend can be dragged and the weights can be typed.",
        {"points": X.tolist(), "weights": a.tolist(), "centre": centre.tolist(), "unit": unit}
        | {"middle": MIDDLE, "inverse": np.linalg.inv(np.vstack([X.T, np.ones(3)])).tolist()},
        "Weights of " + ", ".join(f"{weight:g}" for weight in a) + ".",
    )


def field(j: int, weight: float) -> str:
    """Return a weight to type, or to change by the arrow keys."""
    return (
        f'<label><span class="am-value">x<sub>{j}</sub></span> '
        f'<input type="number" aria-label="weight of x{j}" step="0.05" min="-2" max="2" '
        f'data-part="weight-{j}" value="{weight:g}" autocomplete="off"></label>'
    )


def blend_triangle(X: np.ndarray, a: np.ndarray, centre: np.ndarray, unit: float) -> Diagram:
    """Return the three points, the triangle of their blends, and the blend of these weights."""
    picture = Diagram(
        "Three vectors and their blend",
        "A triangle between three points. A dot is their blend: inside while the weights are a "
        "mixture, hollow where they are not.",
        width=330,
        height=330,
    )
    corners = MIDDLE + unit * (X - centre) * [1, -1]
    outline = "L".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    picture.path(f"M{outline}Z", "value", filled=True)
    for j, (x, y) in enumerate(corners):
        picture.dot(x, y, "value", radius=5)
        side = 1 if x >= MIDDLE else -1
        picture.text(x + 16 * side, y + (-8 if y < MIDDLE else 18), f"x_{j}", "value", size=15)
    x, y = MIDDLE + unit * (a @ X - centre) * [1, -1]
    fair = (a >= 0).all() and abs(a.sum() - 1) < 1e-9
    fill = "var(--ink)" if fair else "none"
    threads = "".join(f"M{u:.1f},{v:.1f}L{x:.1f},{y:.1f}" for u, v in corners)
    live(
        picture,
        "blend",
        f'<path class="ad-thin" style="stroke-dasharray:3 4" d="{threads}"/>'
        f'<circle class="am-grip" cx="{x:.1f}" cy="{y:.1f}" r="9" style="fill:{fill}"/>',
    )
    return picture
