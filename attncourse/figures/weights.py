"""Weights that a slider changes: as bars for one row, as a picture for a matrix."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from attncourse.figures.style import BLACK, BLUE
from attncourse.figures.svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Scale,
    bottom_axis,
    finite,
    increasing,
    is_whole,
    left_axis,
    marks,
    picture,
    short,
    text,
)

IMAGE = "data:image/png;base64,"


@dataclass
class Bars:
    """One bar for each item.

    labels: n texts. amounts: ``(frames, n)``, none negative. reference: an amount to compare with,
    drawn as a dashed line under the name ``reference_name``. alt: what the panel shows, in words.
    Each bar has its amount beside it, to three decimals. Raises ``ValueError`` where the labels are not
    n or too long, or an amount is negative or not finite.
    """

    labels: Sequence[str]
    amounts: Sequence
    xlabel: str
    alt: str
    title: str = ""
    reference: float | None = None
    reference_name: str = ""

    def __post_init__(self):
        self.amounts = np.round(finite("amounts", self.amounts, 2), 3)
        self.labels = short("labels", self.labels, self.amounts.shape[1], longest=20)
        if self.amounts.min() < 0 or self.amounts.max() == 0:
            raise ValueError("amounts: expected none below 0 and not all 0, "
                             f"got {self.amounts.min():g} to {self.amounts.max():g}")  # fmt: skip
        left = 14 + 6.6 * max(map(len, self.labels))  # about as wide as the labels
        self.across = Scale(0, float(self.amounts.max()), left, RIGHT - 42)
        self.height = (BOTTOM - TOP) / len(self.labels)

    def frames(self) -> dict[str, int]:
        """How many frames there are."""
        return {"amounts": len(self.amounts)}

    def data(self) -> dict:
        """What the browser draws from: ``bars[frame]``, of ``unit`` pixels for each 1."""
        unit = float(self.across(1) - self.across(0))
        return {
            "kind": "bars",
            "unit": round(unit, 3),
            "bars": self.amounts.tolist(),
        }

    def svg(self, frame: int) -> str:
        """What stands inside the panel's ``<svg>`` for one frame."""
        left, right = self.across.start, self.across.end
        parts = [bottom_axis(marks(self.across), self.xlabel, left, right)]
        for j, (label, amount) in enumerate(zip(self.labels, self.amounts[frame], strict=True)):
            top, middle = TOP + j * self.height, TOP + (j + 0.5) * self.height
            end = self.across(amount)
            parts += [
                text(left - 6, middle + 4, label, "end"),
                f'<rect class="as-bar" x="{left:.1f}" y="{top + 0.15 * self.height:.1f}" '
                f'width="{end - left:.1f}" height="{0.7 * self.height:.1f}"/>',
                text(RIGHT, middle + 4, f"{amount:.3f}", "end", ' class="as-amount"'),
            ]
        if self.reference is not None:
            at = self.across(self.reference)
            parts.append(
                f'<path class="as-fixed" stroke-dasharray="5 3" d="M{at:.1f},{TOP}V{BOTTOM}"/>'
            )
        return "".join(parts)

    def key(self, frame: int) -> list[str]:
        """What the dashed line means, as HTML."""
        if self.reference is None:
            return []
        mark = '<path class="as-fixed" stroke-dasharray="5 3" d="M0,6H26"/>'
        sample = f'<svg width="26" height="12" aria-hidden="true">{mark}</svg> '
        return [sample + escape(self.reference_name)]

    def draw(self, ax, frame: int) -> None:
        """One frame on matplotlib's axes."""
        ax.barh(range(len(self.labels)), self.amounts[frame], color=BLUE)
        ax.set_yticks(range(len(self.labels)), self.labels)
        if self.reference is not None:
            ax.axvline(self.reference, color=BLACK, linestyle="--", linewidth=1)
        ax.set(
            xlabel=self.xlabel,
            xlim=(0, 1.05 * self.across.high),
            ylim=(len(self.labels) - 0.5, -0.5),
        )


@dataclass
class Matrix:
    """A weight matrix as a picture: row i is query i, column j is key j, lighter is more.

    weights: ``(frames, m, n)``, none negative. queries, keys: where rows and columns lie on their
    axes, m and n increasing numbers; without them they are counted from 0. own_scale: whether the
    lightest shade is each frame's own largest weight, or the largest of all frames. alt: what the
    panel shows, in words. Raises ``ValueError`` where a weight is negative or not finite, or
    queries and keys do not fit the rows and columns.
    """

    weights: Sequence
    alt: str
    title: str = ""
    queries: Sequence[float] | None = None
    keys: Sequence[float] | None = None
    ylabel: str = "query i"
    xlabel: str = "key j"
    own_scale: bool = False

    def __post_init__(self):
        self.weights = finite("weights", self.weights, 3)
        if self.weights.min() < 0:
            raise ValueError(f"weights: expected none below 0, got {self.weights.min():g}")
        m, n = self.weights.shape[1:]
        self.queries = increasing("queries", range(m) if self.queries is None else self.queries)
        self.keys = increasing("keys", range(n) if self.keys is None else self.keys)
        for name, ends, size in (("queries", self.queries, m), ("keys", self.keys, n)):
            if len(ends) != size or np.ptp(np.diff(ends)) > 1e-6 * (ends[-1] - ends[0]):
                raise ValueError(
                    f"{name}: expected {size} numbers, evenly spaced, got {len(ends)}, "
                    f"{np.diff(ends).min():g} to {np.diff(ends).max():g} apart"
                )
        tops = self.weights.max(axis=(1, 2))
        self.tops = tops if self.own_scale else np.full(len(tops), tops.max())
        self.right = LEFT + min(RIGHT - LEFT, max(n / m, 0.5) * (BOTTOM - TOP))

    def frames(self) -> dict[str, int]:
        """How many frames there are."""
        return {"weights": len(self.weights)}

    def picture(self, frame: int) -> str:
        return picture(self.weights[frame] / (self.tops[frame] or 1))

    def data(self) -> dict:
        """What the browser draws from: a PNG in base64 and the lightest shade's weight, each."""
        pictures = [self.picture(frame) for frame in range(len(self.weights))]
        return {"kind": "matrix", "pictures": pictures, "tops": self.shown()}

    def shown(self) -> list[str]:
        return [f"{top:.2g}" for top in self.tops]

    def scales(self) -> tuple[Scale, Scale]:
        """From queries and keys to the middles of their rows and columns, evenly spaced."""
        high, wide = (BOTTOM - TOP) / len(self.queries), (self.right - LEFT) / len(self.keys)
        rows, columns = self.queries[[0, -1]], self.keys[[0, -1]]
        return (
            Scale(*rows, TOP + high / 2, BOTTOM - high / 2, whole=is_whole(self.queries)),
            Scale(*columns, LEFT + wide / 2, self.right - wide / 2, whole=is_whole(self.keys)),
        )

    def svg(self, frame: int) -> str:
        """What stands inside the panel's ``<svg>`` for one frame."""
        down, across = self.scales()
        return (
            f'<image class="as-picture" x="{LEFT}" y="{TOP}" width="{self.right - LEFT:.1f}" '
            f'height="{BOTTOM - TOP}" preserveAspectRatio="none" '
            f'href="{IMAGE}{self.picture(frame)}"/>'
            + left_axis(marks(down), self.ylabel)
            + bottom_axis(marks(across), self.xlabel, LEFT, self.right)
        )

    def key(self, frame: int) -> list[str]:
        """The shades and what they stand for, as HTML."""
        shades = picture(np.linspace(0, 1, 64)[None, :])
        image = f'<image width="64" height="12" preserveAspectRatio="none" href="{IMAGE}{shades}"/>'
        sample = f'<svg width="64" height="12" aria-hidden="true">{image}</svg>'
        return [f'weight: 0 {sample} <span class="as-top">{self.shown()[frame]}</span>']

    def draw(self, ax, frame: int) -> None:
        """One frame on matplotlib's axes."""
        ends = []
        for numbers in (self.keys, self.queries[::-1]):
            half = (numbers[-1] - numbers[0]) / (len(numbers) - 1) / 2
            ends += [numbers[0] - half, numbers[-1] + half]
        top = self.tops[frame] or 1
        ax.imshow(self.weights[frame], vmin=0, vmax=top, aspect="auto", extent=ends, cmap="cividis")
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
