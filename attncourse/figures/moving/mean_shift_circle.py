"""Chapter 4: unit vectors on a circle, which self-attention gathers step by step."""

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import (
    beside_controls,
    button,
    controls,
    drag_hint,
    live,
    picture_row,
    slider_control,
    svg_arrow,
)
from attncourse.figures.moving.figure import Moving
from attncourse.lookup import softmax
from attncourse.support.arrays import as_floats, require_finite

MIDDLE, RADIUS, HILL = 165, 115, 44  # of the circle, and the highest hill around it, in pixels
NEAR = 0.05  # how far apart two points of one group are, at most
CIRCLE_DESCRIPTION = (
    "A circle with points on it. An arrow runs from each point to its output, a mean of all points "
    "by their weights. Around the circle a line is the further out the denser the points lie."
)


def mean_shift_circle(points: np.ndarray, kappa: float = 10.0) -> Moving:
    """Return points on a circle that move to ``U = softmax(κ X Xᵀ) X``, scaled back to length 1.

    points: ``(n, 2)``, each of length 1, at most 200. kappa: how sharply they listen at first, from
    0.5 to 40. The line around the circle is the density Σ exp(κ y · x_j), its highest place always
    equally far out.

    Raises ``ValueError`` for points of another length and for a κ that the slider does not have.
    """
    X = as_floats("points", points, "n d").astype(float)
    require_finite(points=X)
    if X.shape[1] != 2 or len(X) > 200:
        raise ValueError(f"points: expected shape (n, 2), n at most 200, got {X.shape}")
    lengths = np.linalg.norm(X, axis=1)
    if (np.abs(lengths - 1) > 1e-3).any():
        worst = lengths[np.abs(lengths - 1).argmax()]
        raise ValueError(f"points: expected vectors of length 1, got one of length {worst:g}")
    if not 0.5 <= kappa <= 40:
        raise ValueError(f"kappa: expected a number from 0.5 to 40, got {kappa!r}")
    circle = Diagram("Points on a circle", CIRCLE_DESCRIPTION, width=330, height=330)
    circle.parts.append(
        f'<path data-part="hills" class="ad-fill" style="stroke:var(--quiet);fill:var(--quiet)" '
        f'd="{hills(X, kappa)}"/><circle class="ad-thin" cx="{MIDDLE}" cy="{MIDDLE}" r="{RADIUS}" '
        'style="stroke:var(--quiet);fill:var(--page)"/>'
    )
    live(circle, "arrows", shift_arrows(X, kappa))
    drawn = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="am-point"/>' for x, y in circle_pixels(X)
    )
    live(circle, "points", "".join(drawn))
    return Moving(
        "mean_shift_circle",
        "Self-attention, again and again",
        beside_controls(
            picture_row(circle),
            "<p>An arrow leads from each point to its output "
            '<span class="am-value">U</span>, a blend of all points. A step moves the point there, '
            "and back onto the circle. Grey: how densely points lie. "
            + drag_hint("Drag a point.")
            + "</p>",
            controls(slider_control("kappa", "κ", 0.5, 40, kappa, 0.5)),
            controls(button("step", "Step"), button("more", "10 steps"), button("reset", "Back")),
        ),
        "In a browser that runs scripts, a button moves every point where its arrow leads, and a "
        "slider changes κ, how sharply the points listen.",
        {"points": X.tolist(), "middle": MIDDLE, "radius": RADIUS, "hill": HILL, "near": NEAR},
        f"Before the first step: {len(X)} points. Each arrow leads to a point’s output.",
    )


def hills(X: np.ndarray, kappa: float) -> str:
    """Draw the density around the circle as a closed line, at most ``HILL`` pixels out."""
    turn = np.linspace(0, 2 * np.pi, 121)
    ring = np.column_stack([np.cos(turn), np.sin(turn)])  # (121, 2)
    density = np.exp(kappa * (ring @ X.T - 1)).sum(axis=1)  # (121,), none above n
    out = 1 + density / density.max() * HILL / RADIUS
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in circle_pixels(ring * out[:, None])) + "Z"


def shift_arrows(X: np.ndarray, kappa: float) -> str:
    """Return an arrow from each point to its output."""
    U = softmax(kappa * X @ X.T) @ X
    ways = np.hstack([circle_pixels(X), circle_pixels(U)])  # (n, 4)
    return "".join(svg_arrow(*way, role="value", thick=1) for way in ways)


def circle_pixels(points: np.ndarray) -> np.ndarray:
    """Return points in pixels; the second feature grows upwards."""
    return MIDDLE + RADIUS * points * [1, -1]
