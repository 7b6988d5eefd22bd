"""Chapter 18: a block of 32 weights, and what fewer bits a number make of them."""

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import controls, live, picture_row, slider_control
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import as_floats, require_finite

WIDTH, HEIGHT, EDGE = 340, 210, 14


def four_bits(weights, bits: int = 4) -> Moving:
    """Return 32 numbers as dots, levels that so many bits allow, and where each dot lands.

    weights: ``(n,)`` with n from 2 to 32, not all equal. bits: from 2 to 8. A number becomes the
    nearest of ``2**bits`` levels from the smallest to the largest of the block.

    Raises ``ValueError`` for other weights or bits.
    """
    row = as_floats("weights", weights, "n").astype(float)
    require_finite(weights=row)
    if row.ndim != 1 or not 2 <= len(row) <= 32 or row.min() == row.max():
        raise ValueError(f"weights: expected 2 to 32 different numbers, got shape {row.shape}")
    if isinstance(bits, bool) or not isinstance(bits, int) or not 2 <= bits <= 8:
        raise ValueError(f"bits: expected a whole number from 2 to 8, got {bits!r}")
    picture = Diagram(
        "Rounded to levels",
        f"{len(row)} weights as hollow dots; full dots are the levels nearest to them.",
        width=WIDTH,
        height=HEIGHT,
    )
    live(picture, "levels")
    live(picture, "dots", rounding_dots(row, round_to_levels(row, bits)))
    return Moving(
        "four_bits",
        "Fewer bits a number",
        controls(slider_control("bits", "bits", 2, 8, bits)) + picture_row(picture),
        "In a browser that runs scripts, a slider sets the number of bits.",
        {"weights": [round(float(w), 6) for w in row], "size": [WIDTH, HEIGHT, EDGE]},
        f"{bits} bits, {2**bits} levels: off by {100 * off(row, bits):.1f} % of the weights' size.",
    )


def round_to_levels(row: np.ndarray, bits: int) -> np.ndarray:
    """Return each number at the nearest level."""
    step = (row.max() - row.min()) / (2**bits - 1)
    return row.min() + np.rint((row - row.min()) / step) * step


def off(row: np.ndarray, bits: int) -> float:
    """Return the size of the error over that of the weights, each a root of a sum of squares."""
    return float(np.linalg.norm(round_to_levels(row, bits) - row) / np.linalg.norm(row))


def rounding_dots(row: np.ndarray, to: np.ndarray) -> str:
    """Draw hollow dots at the weights, full ones where they land, and a line between."""
    low, high = row.min(), row.max()
    across = (WIDTH - 2 * EDGE) / (len(row) - 1)
    down = (HEIGHT - 2 * EDGE) / (high - low)
    parts = []
    for i, (w, v) in enumerate(zip(row, to, strict=True)):
        x, y, z = (
            EDGE + i * across,
            HEIGHT - EDGE - (w - low) * down,
            HEIGHT - EDGE - (v - low) * down,
        )
        parts.append(
            f'<path d="M{x:.1f},{y:.1f}V{z:.1f}" style="stroke:var(--quiet)"/>'
            f'<circle cx="{x:.1f}" cy="{z:.1f}" r="3" style="fill:var(--query)"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" style="fill:none;stroke:var(--ink)"/>'
        )
    return "".join(parts)
