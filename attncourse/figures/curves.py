"""Curves that a slider moves, beside curves and points that stay."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape

import numpy as np

from attncourse.figures.labels import spots
from attncourse.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE
from attncourse.figures.svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Scale,
    bottom_axis,
    finite_numbers,
    increasing,
    left_axis,
    path,
    svg_text,
    tick_marks,
)

HEIGHT_STEPS = 1000  # a curve's heights are whole numbers from 0 to this
# No two lines of a panel have the same dashes: they are told apart without colours too.
DASHES = ("", "7 3", "2 3", "9 3 2 3", "1 5")
MOVING = (("as-line as-0", BLUE), ("as-line as-1", ORANGE), ("as-line as-2", GREEN))
FIXED = ("as-fixed", BLACK)
SAMPLE = '<svg width="26" height="12" aria-hidden="true">{}</svg> '


@dataclass
class Curves:
    """Curves over a common x, with marks.

    x: ``(k,)``, increasing. lines: by name, ``(frames, k)``, or ``(k,)`` for one that stays as it
    is. points: ``(2, p)``, the x and y of marks that stay. dots: ``(frames, 2)``, the x and y of
    one mark that moves. log: whether the x axis is logarithmic. alt: what the panel shows, in
    words. Raises ``ValueError`` for numbers that are not finite, an x that does not increase, a
    line that is not as long as x, marks outside x, and more lines than can be told apart.
    """

    x: np.ndarray
    lines: Mapping[str, np.ndarray]
    xlabel: str
    ylabel: str
    alt: str
    title: str = ""
    points: np.ndarray | None = None
    points_name: str = "points"
    dots: np.ndarray | None = None
    dots_name: str = "now"
    log: bool = False

    def __post_init__(self):
        """Check the lines, of which the axes' ranges follow."""
        self.x = increasing("x", self.x)
        if self.log and self.x[0] <= 0:
            raise ValueError(f"x: expected numbers above 0 for a log axis, got {self.x[0]:g}")
        self.lines = {name: finite_numbers(name, line, 1, 2) for name, line in self.lines.items()}
        for name, line in self.lines.items():
            if line.shape[-1] != len(self.x):
                raise ValueError(f"{name}: expected one number for each of the {len(self.x)} x, "
                                 f"got shape {line.shape}")  # fmt: skip
        moving = sum(line.ndim == 2 for line in self.lines.values())
        most, stay = 2 if moving else 3, len(self.lines) - moving
        if moving > len(MOVING) or stay > most:
            raise ValueError(f"lines: expected at most {len(MOVING)} that move and {most} that "
                             f"stay, got {moving} and {stay}")  # fmt: skip
        heights = list(self.lines.values())
        if self.points is not None:
            self.points = self.within("points", self.points, axis=0)
            heights.append(self.points[1])
        if self.dots is not None:
            self.dots = self.within("dots", self.dots, axis=1)
            heights.append(self.dots[:, 1])
        low, high = min(h.min() for h in heights), max(h.max() for h in heights)
        room = 0.05 * (high - low) or 0.5
        self.across = Scale(self.x[0], self.x[-1], LEFT, RIGHT, self.log)
        self.up = Scale(low - room, high + room, BOTTOM, TOP)

    def within(self, name: str, places, axis: int) -> np.ndarray:
        """Return those of ``places`` whose x lies between the ends of the curves."""
        array = finite_numbers(name, places, 2)
        if array.shape[axis] != 2:
            wanted = ("(2, number)", "(frames, 2)")[axis]
            raise ValueError(f"{name}: expected shape {wanted}, got {array.shape}")
        across = array.take(0, axis)
        if across.min() < self.x[0] or across.max() > self.x[-1]:
            raise ValueError(f"{name}: expected x from {self.x[0]:g} to {self.x[-1]:g}, "
                             f"got {across.min():g} to {across.max():g}")  # fmt: skip
        return array

    def frames(self) -> dict[str, int]:
        """Return the number of frames of each thing that moves."""
        counts = {name: len(line) for name, line in self.lines.items() if line.ndim == 2}
        return counts if self.dots is None else {**counts, "dots": len(self.dots)}

    def styled(self) -> list[tuple]:
        """Return each line's name, numbers, class, colour and dashes; moving ones get the first."""
        moving, looks = iter(zip(MOVING, DASHES, strict=False)), []
        staying = iter(DASHES[sum(line.ndim == 2 for line in self.lines.values()) :])
        for name, line in self.lines.items():
            look, dashes = next(moving) if line.ndim == 2 else (FIXED, next(staying))
            looks.append((name, line, *look, dashes))
        return looks

    def steps(self, line: np.ndarray) -> np.ndarray:
        """Return heights as whole numbers: 0 is the panel's bottom, ``HEIGHT_STEPS`` its top."""
        share = (line - self.up.low) / (self.up.high - self.up.low)
        return np.round(share * HEIGHT_STEPS).astype(int)

    def places(self) -> list[list[float]]:
        """Return where the dots are in the drawing, in pixels; none without dots."""
        if self.dots is None:
            return []
        where = np.column_stack([self.across(self.dots[:, 0]), self.up(self.dots[:, 1])])
        return np.round(where, 1).tolist()

    @cached_property
    def names(self) -> list[list]:
        """Where each line's name stands in each frame, ``None`` where there is no room for it."""
        pixels = np.arange(LEFT, RIGHT + 1)
        points = np.empty((2, 0)) if self.points is None else self.points
        fixed = np.column_stack([self.across(points[0]), self.up(points[1])])
        curves, marks = [], []
        for frame in range(max(self.frames().values())):
            now = (line if line.ndim == 1 else line[frame] for line in self.lines.values())
            ys = [np.interp(pixels, self.across(self.x), self.up(line)) for line in now]
            curves.append(np.array(ys))
            dots = [] if self.dots is None else [self.places()[frame]]
            marks.append(np.vstack([fixed, *dots]))
        return spots(list(self.lines), curves, marks)

    def data(self) -> dict:
        """Return the browser's data, in which ``lines[i][frame]`` counts steps up from ``y[0]``."""
        moving = [self.steps(line).tolist() for line in self.lines.values() if line.ndim == 2]
        return {
            "kind": "curves",
            "x": np.round(self.across(self.x), 1).tolist(),
            "y": [BOTTOM, (BOTTOM - TOP) / HEIGHT_STEPS],
            "range": [float(f"{end:.6g}") for end in (self.up.low, self.up.high)],
            "lines": moving,
            "names": self.names,
            "dots": [] if self.dots is None else self.places(),
        }

    def svg(self, frame: int) -> str:
        """Return the content of the panel's ``<svg>`` for one frame."""
        parts = [
            left_axis(tick_marks(self.up), self.ylabel),
            bottom_axis(tick_marks(self.across), self.xlabel),
        ]
        if self.points is not None:
            at = zip(self.across(self.points[0]), self.up(self.points[1]), strict=True)
            d = "".join(f"M{x:.1f},{y:.1f}h0" for x, y in at)
            parts.append(f'<path class="as-points" d="{d}"/>')
        for _, line, kind, _, dashes in self.styled():
            steps = self.steps(line if line.ndim == 1 else line[frame])
            d = path(self.across(self.x), BOTTOM - steps * (BOTTOM - TOP) / HEIGHT_STEPS)
            parts.append(f'<path class="{kind}" stroke-dasharray="{dashes}" d="{d}"/>')
        for (name, _, kind, _, _), frames in zip(self.styled(), self.names, strict=True):
            x, y = frames[frame] or (0, 0)
            shown = "visible" if frames[frame] else "hidden"
            more = f' class="as-name {kind}" visibility="{shown}"'
            parts.append(svg_text(x, y, name, more=more))
        if self.dots is not None:
            x, y = self.places()[frame]
            parts.append(f'<circle class="as-dot" cx="{x}" cy="{y}" r="5.5"/>')
        return "".join(parts)

    def key(self, frame: int) -> list[str]:
        """Return the key to each kind of mark, as HTML."""
        samples = [
            (f'<path class="{kind}" stroke-dasharray="{dashes}" d="M0,6H26"/>', name)
            for name, _, kind, _, dashes in self.styled()
        ]
        if all(all(frames) for frames in self.names):  # they say it all
            samples = []
        if self.points is not None:
            samples.append(('<path class="as-points" d="M13,6h0"/>', self.points_name))
        if self.dots is not None:
            samples.append(('<circle class="as-dot" cx="13" cy="6" r="4.5"/>', self.dots_name))
        return [SAMPLE.format(mark) + escape(name) for mark, name in samples]

    def draw(self, ax, frame: int) -> None:
        """Draw one frame on matplotlib's axes."""
        if self.points is not None:
            ax.plot(*self.points, ".", color=GREY, markersize=4, label=self.points_name)
        for name, line, _, colour, dashes in self.styled():
            width = 1 if line.ndim == 1 else 1.8
            now = line if line.ndim == 1 else line[frame]
            style = (0, [float(dash) / 2 for dash in dashes.split()]) if dashes else "solid"
            ax.plot(self.x, now, color=colour, linestyle=style, linewidth=width, label=name)
        if self.dots is not None:
            ax.plot(*self.dots[frame], "o", color=ORANGE, label=self.dots_name)
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel, xscale="log" if self.log else "linear",
               ylim=(self.up.low, self.up.high))  # fmt: skip
