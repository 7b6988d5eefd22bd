"""Bars that a slider changes: one row of weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from attncourse.figures.style import BLACK
from attncourse.figures.svg import (
    BOTTOM,
    RIGHT,
    TOP,
    Scale,
    bottom_axis,
    finite_numbers,
    short_labels,
    svg_text,
    tick_marks,
)


@dataclass
class Bars:
    """One bar for each item.

    labels: n texts. amounts: ``(frames, n)``, none negative. reference: an amount to compare with,
    drawn as a dashed line under the name ``reference_name``. alt: what the panel shows, in words.
    Each bar has its amount beside it, to three decimals. Raises ``ValueError`` where the labels
    are not n or too long, or an amount is negative or not finite.
    """

    labels: Sequence[str]
    amounts: np.ndarray
    xlabel: str
    alt: str
    title: str = ""
    reference: float | None = None
    reference_name: str = ""

    def __post_init__(self):
        """Check amounts and labels, and work out where the bars lie."""
        self.amounts = finite_numbers("amounts", self.amounts, 2).round(3)
        self.labels = short_labels("labels", self.labels, self.amounts.shape[1], longest=20)
        if self.amounts.min() < 0 or self.amounts.max() == 0:
            raise ValueError("amounts: expected none below 0 and not all 0, "
                             f"got {self.amounts.min():g} to {self.amounts.max():g}")  # fmt: skip
        left = 14 + 6.6 * max(map(len, self.labels))  # about as wide as the labels
        self.across = Scale(0, max(self.amounts.max(), self.reference or 0), left, RIGHT - 42)
        self.height = (BOTTOM - TOP) / len(self.labels)

    def frames(self) -> dict[str, int]:
        """Return the number of frames."""
        return {"amounts": len(self.amounts)}

    def data(self) -> dict:
        """Return the data that the browser draws from.

        They are ``bars[frame]``, of ``unit`` pixels for each 1.
        """
        unit = float(self.across(1) - self.across(0))
        return {
            "kind": "bars",
            "unit": round(unit, 3),
            "bars": self.amounts.tolist(),
        }

    def svg(self, frame: int) -> str:
        """Return the content of the panel's ``<svg>`` for one frame."""
        left, right = self.across.start, self.across.end
        parts = [bottom_axis(tick_marks(self.across), self.xlabel, left, right)]
        for j, (label, amount) in enumerate(zip(self.labels, self.amounts[frame], strict=True)):
            top, middle = TOP + j * self.height, TOP + (j + 0.5) * self.height
            end = self.across(amount)
            parts += [
                svg_text(left - 6, middle + 4, label, "end"),
                f'<rect class="as-bar" x="{left:.1f}" y="{top + 0.15 * self.height:.1f}" '
                f'width="{end - left:.1f}" height="{0.7 * self.height:.1f}"/>',
                svg_text(RIGHT, middle + 4, f"{amount:.3f}", "end", ' class="as-amount"'),
            ]
        if self.reference is not None:
            at = self.across(self.reference)
            parts.append(
                f'<path class="as-fixed" stroke-dasharray="5 3" d="M{at:.1f},{TOP}V{BOTTOM}"/>'
            )
        return "".join(parts)

    def key(self, frame: int) -> list[str]:
        """Return the key to the dashed line, as HTML."""
        if self.reference is None:
            return []
        mark = '<path class="as-fixed" stroke-dasharray="5 3" d="M0,6H26"/>'
        sample = f'<svg width="26" height="12" aria-hidden="true">{mark}</svg> '
        return [sample + escape(self.reference_name)]

    def draw(self, ax, frame: int) -> None:
        """Draw one frame on matplotlib's axes."""
        ax.barh(range(len(self.labels)), self.amounts[frame], color=BLACK, alpha=0.6)
        ax.set_yticks(range(len(self.labels)), self.labels)
        if self.reference is not None:
            look = {"color": BLACK, "linestyle": "--", "linewidth": 1}
            ax.axvline(self.reference, label=self.reference_name, **look)
        ax.set(
            xlabel=self.xlabel,
            xlim=(0, 1.05 * self.across.high),
            ylim=(len(self.labels) - 0.5, -0.5),
        )
