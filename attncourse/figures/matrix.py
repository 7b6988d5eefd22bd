"""A weight matrix that a slider changes, in ink."""

from dataclasses import dataclass

import numpy as np

from attncourse.figures.shades import MAX_SQUARES, levels, pixels, shade_paths, signs
from attncourse.figures.svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Scale,
    are_whole,
    bottom_axis,
    finite_numbers,
    increasing,
    left_axis,
    tick_marks,
)

IMAGE = "data:image/png;base64,"


@dataclass
class Matrix:
    """A weight matrix in ink: row i is query i, column j is key j, more ink is more weight.

    weights: ``(frames, m, n)``, none negative. queries, keys: where rows and columns lie on their
    axes, m and n increasing numbers; without them they are counted from 0. own_scale: whether full
    ink is each frame's own largest weight, or the largest of all frames. alt: what the panel
    shows, in words. Raises ``ValueError`` where a weight is negative or not finite, or
    queries and keys do not fit the rows and columns.
    """

    weights: np.ndarray
    alt: str
    title: str = ""
    queries: np.ndarray | None = None
    keys: np.ndarray | None = None
    ylabel: str = "query i"
    xlabel: str = "key j"
    own_scale: bool = False

    def __post_init__(self):
        """Check the weights and what numbers their rows and columns."""
        self.weights = finite_numbers("weights", self.weights, 3)
        if self.weights.min() < 0:
            raise ValueError(f"weights: expected none below 0, got {self.weights.min():g}")
        m, n = self.weights.shape[1:]
        rows = increasing("queries", range(m) if self.queries is None else self.queries)
        columns = increasing("keys", range(n) if self.keys is None else self.keys)
        self.rows, self.columns = rows, columns
        for name, ends, size in (("queries", rows, m), ("keys", columns, n)):
            if len(ends) != size or np.ptp(np.diff(ends)) > 1e-6 * (ends[-1] - ends[0]):
                raise ValueError(
                    f"{name}: expected {size} numbers, evenly spaced, got {len(ends)}, "
                    f"{np.diff(ends).min():g} to {np.diff(ends).max():g} apart"
                )
        tops = self.weights.max(axis=(1, 2))
        self.tops = tops if self.own_scale else np.full(len(tops), tops.max())
        self.right = LEFT + min(RIGHT - LEFT, max(n / m, 0.5) * (BOTTOM - TOP))

    def frames(self) -> dict[str, int]:
        """Return the number of frames."""
        return {"weights": len(self.weights)}

    def ink(self, frame: int) -> np.ndarray:
        """Return the shades of one frame, ``(m, n)``."""
        return levels(self.weights[frame] / (self.tops[frame] or 1))

    def data(self) -> dict:
        """Return the browser's data: each frame's shades, and the weight of full ink.

        ``squares`` are shades as text, ``pixels`` a PNG in base64, which is smaller for many.
        """
        kind, write = ("squares", signs) if self.few() else ("pixels", pixels)
        frames = [write(self.ink(frame)) for frame in range(len(self.weights))]
        return {"kind": "matrix", kind: frames, "tops": self.shown()}

    def few(self) -> bool:
        """True if there are so few cells that each is drawn as a square of its own."""
        return self.weights[0].size <= MAX_SQUARES

    def shown(self) -> list[str]:
        """Return the weight of full ink in each frame, as the legend shows it."""
        return [f"{top:.2g}" for top in self.tops]

    def scales(self) -> tuple[Scale, Scale]:
        """Return scales from queries and keys to the middles of rows and columns, evenly spaced."""
        high, wide = (BOTTOM - TOP) / len(self.rows), (self.right - LEFT) / len(self.columns)
        (up, down), (left, right) = self.rows[[0, -1]], self.columns[[0, -1]]
        return (
            Scale(up, down, TOP + high / 2, BOTTOM - high / 2, whole=are_whole(self.rows)),
            Scale(
                left, right, LEFT + wide / 2, self.right - wide / 2, whole=are_whole(self.columns)
            ),
        )

    def svg(self, frame: int) -> str:
        """Return the content of the panel's ``<svg>`` for one frame."""
        down, across = self.scales()
        wide, high = self.right - LEFT, BOTTOM - TOP
        if self.few():
            m, n = self.weights.shape[1:]
            move = f"translate({LEFT} {TOP}) scale({wide / n:.4f} {high / m:.4f})"
            cells = shade_paths(signs(self.ink(frame)))
            picture = f'<g class="as-picture" transform="{move}">{cells}</g>'
        else:
            picture = (
                f'<image class="as-picture" x="{LEFT}" y="{TOP}" width="{wide:.1f}" '
                f'height="{high}" preserveAspectRatio="none" '
                f'href="{IMAGE}{pixels(self.ink(frame))}"/>'
            )
        return (
            f'<path class="as-rim" d="M{LEFT},{TOP}H{self.right:.1f}V{BOTTOM}"/>'
            + picture
            + left_axis(tick_marks(down), self.ylabel)
            + bottom_axis(tick_marks(across), self.xlabel, LEFT, self.right)
        )

    def key(self, frame: int) -> list[str]:
        """Return the shades and what they stand for, as HTML."""
        return [
            f'weight: 0 <i class="as-ramp"></i> <span class="as-top">{self.shown()[frame]}</span>'
        ]

    def draw(self, ax, frame: int) -> None:
        """Draw one frame on matplotlib's axes."""
        ends = []
        for numbers in (self.columns, self.rows[::-1]):
            half = (numbers[-1] - numbers[0]) / (len(numbers) - 1) / 2
            ends += [numbers[0] - half, numbers[-1] + half]
        top = self.tops[frame] or 1
        ax.imshow(self.weights[frame], vmin=0, vmax=top, aspect="auto", extent=ends, cmap="Greys")
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
