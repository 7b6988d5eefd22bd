"""Chapter 4's drawings of unit vectors on a circle, and of where self-attention sends them."""

import numpy as np

from attncourse.figures.diagram import Diagram, Drawings, beside
from attncourse.lookup import softmax


def on_the_circle() -> Drawings:
    """Draw one step of one token, and the arrows of all at κ = 1 and at κ = 5."""
    step = Diagram(
        "One step of one token",
        "Five unit vectors on a circle. Lines from one of them to the others are as thick as its "
        "weights. Its output U i lies inside the circle, towards three others that lie close "
        "together. From there a dashed arrow leads outwards, back onto the circle.",
        width=214,
        height=222,
    )
    points = at_angles([2, 70, 84, 125, 235])
    weights = softmax(1.5 * points[0] @ points.T)  # (5,)
    place, output = placed(points, (94, 118), 86), weights @ points
    end, back = placed(np.stack([output, output / np.linalg.norm(output)]), (94, 118), 86)
    step.path(round_line((94, 118), 86), "quiet", thick=1)
    for (x, y), weight in zip(place[1:], weights[1:], strict=True):
        step.path(f"M{place[0][0]:.1f},{place[0][1]:.1f}L{x:.1f},{y:.1f}", thick=0.4 + 8 * weight)
    for x, y in place:
        step.dot(round(x, 1), round(y, 1))
    step.arrow(tuple(place[0]), tuple(end), role="value", thick=2.5)
    step.arrow(tuple(end), tuple(back), role="value", dashed=True)
    step.text(place[0][0] + 8, place[0][1] + 8, "X_i", anchor="start", bold=True)
    step.text(end[0] - 6, end[1] + 14, "U_i", "value", anchor="end", bold=True)
    step.text(back[0] + 8, back[1] + 2, "next", "value", anchor="start")
    several = at_angles([5, 20, 50, 62, 95, 150, 165, 172, 200, 250, 262, 310])
    return beside(step, *(arrows(several, kappa) for kappa in (1, 5)))


def arrows(points: np.ndarray, kappa: float) -> Diagram:
    """Draw an arrow from each point ``(n, 2)`` on the circle to its output."""
    far = kappa < 5
    drawing = Diagram(
        f"Outputs at kappa {kappa:g}",
        f"Twelve points on a circle, an arrow from each to its output. "
        f"{'All arrows are long and end' if far else 'All arrows are short and lean to'}"
        f"{' half-way to the middle.' if far else ' where other points lie densely.'}",
        width=196,
        height=222,
    )
    U = softmax(kappa * points @ points.T) @ points
    middle = (98, 118)
    drawing.text(98, 16, f"κ = {kappa:g}", bold=True)
    drawing.path(round_line(middle, 86), "quiet", thick=1)
    for start, end in zip(placed(points, middle, 86), placed(U, middle, 86), strict=True):
        drawing.dot(*start.round(1), radius=3)
        drawing.arrow(tuple(start), tuple(end), role="value")
    return drawing


def at_angles(degrees: list[float]) -> np.ndarray:
    """Return unit vectors ``(n, 2)``."""
    turn = np.radians(degrees)
    return np.column_stack([np.cos(turn), np.sin(turn)])


def placed(points: np.ndarray, middle: tuple[float, float], radius: float) -> np.ndarray:
    """Return points in pixels; the second feature grows upwards."""
    return middle + radius * points * [1, -1]


def round_line(middle: tuple[float, float], radius: float) -> str:
    """Return a circle as SVG's ``d``."""
    (x, y), r = middle, radius
    return f"M{x - r},{y}a{r},{r} 0 1 0 {2 * r},0a{r},{r} 0 1 0 {-2 * r},0"
