"""Parts of a slider's panels: checked numbers, scales, axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from matplotlib.ticker import MaxNLocator

WIDTH, HEIGHT = 320, 224  # of a panel, in CSS pixels where there is room for two side by side
LEFT, TOP, RIGHT, BOTTOM = 50, 8, 306, 184  # of what lies between the axes
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def finite_numbers(name: str, numbers, *dimensions: int) -> np.ndarray:
    """Return ``numbers`` as floats; raise ``ValueError`` unless finite and of this shape."""
    array = np.asarray(numbers, dtype=float)
    if array.ndim not in dimensions:
        wanted = " or ".join(map(str, dimensions))
        raise ValueError(f"{name}: expected {wanted} dimensions, got shape {array.shape}")
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN, infinity or none at all")
    return array


def increasing(name: str, numbers) -> np.ndarray:
    """Return ``numbers`` as floats; raise ``ValueError`` unless each is larger than the last."""
    array = finite_numbers(name, numbers, 1)
    if len(array) < 2 or (np.diff(array) <= 0).any():
        raise ValueError(f"{name}: expected two or more numbers, each larger than the one before")
    return array


def are_whole(numbers: np.ndarray) -> bool:
    """True if all numbers are whole."""
    return bool((numbers == np.round(numbers)).all())


def short_labels(name: str, labels: Sequence[str], count: int, longest: int) -> list[str]:
    """Return ``labels``; raise ``ValueError`` unless they are ``count`` strings that have room."""
    labels = list(labels)
    if len(labels) != count:
        raise ValueError(f"{name}: expected {count} labels, got {len(labels)}")
    for label in labels:
        if not isinstance(label, str) or len(label) > longest:
            raise ValueError(f"{name}: expected text of at most {longest} signs, got {label!r}")
    return labels


@dataclass(frozen=True)
class Scale:
    """From a number to its place on an axis: ``low`` lies at ``start``, ``high`` at ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    whole: bool = False  # marks at whole numbers only

    def __call__(self, numbers) -> np.ndarray:
        """Return the places of ``numbers``, any shape, in pixels."""
        place = np.log10 if self.log else np.asarray
        low, high, at = place(self.low), place(self.high), place(np.asarray(numbers, dtype=float))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round numbers on the axis, a handful."""
        if self.log:
            decades = range(
                int(np.ceil(np.log10(self.low) - 1e-9)), int(np.log10(self.high) + 1e-9) + 1
            )
            return [10.0**k for k in decades]
        ticks = MaxNLocator(5, steps=[1, 2, 5, 10], integer=self.whole).tick_values(
            self.low, self.high
        )
        slack = 1e-9 * (self.high - self.low)
        return [float(t) for t in ticks if self.low - slack <= t <= self.high + slack]


def tick_label(value: float) -> str:
    """Return a tick's label: short, with a minus sign; far from 1, a power of ten as such."""
    exponent = round(math.log10(value)) if value > 0 else 0
    if abs(exponent) > 3 and math.isclose(value, 10.0**exponent):
        return "10" + str(exponent).translate(RAISED)
    return f"{round(value, 10):g}".replace("-", "−")


def path(xs, ys) -> str:
    """Return the ``d`` of a polyline through points given in pixels."""
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))


def svg_text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    """Return the SVG of a text; ``more`` are further attributes."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def bottom_axis(marks: list, label: str, left: float = LEFT, right: float = RIGHT) -> str:
    """Return the axis below a panel: ``tick_marks`` are places in pixels with their labels."""
    lines = "".join(f"M{at:.1f},{BOTTOM}v4" for at, _ in marks)
    words = "".join(svg_text(at, BOTTOM + 17, mark) for at, mark in marks)
    name = svg_text((left + right) / 2, HEIGHT - 6, label)
    return f'<path class="as-axis" d="M{left:.1f},{BOTTOM}H{right:.1f}{lines}"/>{words}{name}'


def left_axis(marks: list, label: str, left: float = LEFT) -> str:
    """Return the axis left of a panel: ``tick_marks`` are places in pixels with their labels."""
    lines = "".join(f"M{left:.1f},{at:.1f}h-4" for at, _ in marks)
    words = "".join(svg_text(left - 7, at + 4, mark, "end") for at, mark in marks)
    middle = (TOP + BOTTOM) / 2
    name = svg_text(12, middle, label, more=f' transform="rotate(-90 12 {middle:g})"')
    return f'<path class="as-axis" d="M{left:.1f},{TOP}V{BOTTOM}{lines}"/>{words}{name}'


def tick_marks(scale: Scale) -> list[tuple[float, str]]:
    """Return the places of a scale's round numbers, in pixels, and how they are written."""
    return [(float(scale(tick)), tick_label(tick)) for tick in scale.ticks()]
