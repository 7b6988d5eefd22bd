"""Drawings of what flows where: boxes with shapes, arrows, matrices with numbers, as inline SVG.

A drawing is described in pixels from its upper left corner. It is at most 340 wide, which a phone
shows without shrinking; wider pictures are several drawings `beside` each other, which a phone
stacks. Queries are blue, keys orange, values green, weights ink as dark as they are large.
"""

from collections.abc import Sequence
from html import escape
from math import hypot

import numpy as np

from attncourse.figures.ink import Place, arrow_head, centre, lowered, paint, wide
from attncourse.figures.theme import modes
from attncourse.figures.theme import read_asset as file_beside

NEAR = 8  # pixels from a box, where an arrow begins or ends at it
WIDEST = 340  # of a drawing, in CSS pixels: what a phone has room for


class Diagram:
    """A drawing, empty at first; each method adds a part and returns where it stands.

    title: what it is called. says: what it shows, in words, for readers who cannot see it. A part
    that leaves the drawing, or a label that leaves its box, raises ``ValueError``.
    """

    def __init__(self, title: str, says: str, width: float = WIDEST, height: float = 200):
        """Begin an empty drawing; ``says`` is its alternative text, sizes are in pixels."""
        if not title.strip() or not says.strip():
            raise ValueError("a drawing has a title and a sentence that says what it shows")
        if not 0 < width <= WIDEST:
            raise ValueError(f"width: expected at most {WIDEST}, which a phone shows, got {width}")
        self.title, self.says, self.width, self.height = title, says, width, height
        self.parts: list[str] = []
        self.boxes: list[tuple[str, Place]] = []
        self.arrows: list[tuple[Place | tuple[float, float], Place | tuple[float, float]]] = []

    def box(self, x, y, label, shape="", role="ink", width=76, height=None) -> Place:
        """Return a rounded box with a label and, below it, the shape of what is in it."""
        height = height or (42 if shape else 28)
        self._require_inside(label, x, y, width, height)
        for words, size, bold in ((label, 14, True), (shape, 12, False)):
            if wide(words, size, bold) > width + 2:
                raise ValueError(f"{words!r} is wider than its box of {width:g}")
        rim = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"'
        colour = paint(role)
        self.parts.append(f'<rect {rim} style="stroke:{colour};fill:{colour}" class="ad-fill"/>')
        middle = x + width / 2
        self.text(middle, y + (18 if shape else 19), label, role, size=14, bold=True)
        if shape:
            self.text(middle, y + 34, shape, size=12)
        self.boxes.append((label, Place(x, y, width, height)))
        return self.boxes[-1][1]

    def matrix(
        self, x, y, numbers, role="ink", rows=(), columns=(), *, cell=(34, 24), form="g",
        lit=None, shade=False, masked=None,
    ) -> Place:  # fmt: skip
        """Draw numbers ``(m, n)`` in cells, with names left of the rows and above the columns.

        lit: the row that is emphasised. shade: cells are ink as dark as their number, from 0 to 1.
        masked: ``(m, n)``, True where a cell is hatched. form: how a number is written, ``""`` for
        not at all. Returns the place of the cells.
        """
        numbers = np.atleast_2d(np.asarray(numbers, dtype=float))
        (m, n), (width, height), colour = numbers.shape, cell, paint(role)
        self._require_inside("matrix", x, y, n * width, m * height)
        for i, j in np.ndindex(m, n):
            left, top, number = x + j * width, y + i * height, numbers[i, j]
            at = f'x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}"'
            hidden = masked is not None and masked[i][j]
            if shade and not hidden:
                self.parts.append(f'<rect {at} class="ad-weight" fill-opacity="{number:.2f}"/>')
            elif not shade:
                strong = 0.32 if i == lit else 0.1
                self.parts.append(
                    f'<rect {at} style="stroke:none;fill:{colour}" fill-opacity="{strong}"/>'
                )
            if hidden:
                self.hatch(left, top, width, height)
            elif form:
                words = "0" if number == 0 else format(number, form).replace("-", "−")
                over = "ad-over" if shade and number > 0.5 else ""
                self.text(left + width / 2, top + height / 2 + 4.5, words, bold=i == lit, more=over)
            self.parts.append(f'<rect {at} class="ad-thin" style="stroke:{colour}"/>')
        for i, name in enumerate(rows):
            self.text(x - 6, y + (i + 0.5) * height + 4.5, name, anchor="end", bold=i == lit)
        for j, name in enumerate(columns):
            self.text(x + (j + 0.5) * width, y - 7, name)
        if lit is not None:
            self.parts.append(
                f'<rect x="{x:g}" y="{y + lit * height:g}" width="{n * width:g}" '
                f'height="{height:g}" style="stroke:{colour};stroke-width:2.5"/>'
            )
        return Place(x, y, n * width, m * height)

    def hatch(self, x, y, width, height) -> None:
        """Hatch a rectangle with diagonal lines: it is masked."""
        lines = ""
        for at in np.arange(6, width + height, 6):
            x0, y0 = (at, 0) if at <= width else (width, at - width)
            x1, y1 = (0, at) if at <= height else (at - height, height)
            lines += f"M{x + x0:g},{y + y0:g}L{x + x1:g},{y + y1:g}"
        self.parts.append(f'<path class="ad-thin" d="{lines}"/>')

    def arrow(
        self, start, end, label="", role="ink", *, via=(), bend=0.0, thick=1.5, dashed=False
    ) -> None:
        """Draw an arrow between two places or points, straight, through ``via``, or bent.

        bend: how far the middle is pushed to the left of the way, in pixels.
        """
        self.arrows.append((start, end))
        corners = [centre(start), *via, centre(end)]
        points = [
            start.edge(corners[1]) if isinstance(start, Place) else start,
            *via,
            end.edge(corners[-2], gap=5) if isinstance(end, Place) else end,
        ]
        (x0, y0), (x1, y1) = points[0], points[-1]
        if bend:
            long = hypot(x1 - x0, y1 - y0)
            turn = (x0 + x1) / 2 + bend * (y1 - y0) / long, (y0 + y1) / 2 - bend * (x1 - x0) / long
            way, last = f"M{x0:g},{y0:g}Q{turn[0]:g},{turn[1]:g} {x1:g},{y1:g}", turn
        else:
            way, last = "M" + "L".join(f"{x:g},{y:g}" for x, y in points), points[-2]
        colour, dash = paint(role), ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<path d="{way}" style="stroke:{colour};stroke-width:{thick:g}"{dash}/>'
            f'<path class="ad-head" style="fill:{colour}" '
            f'd="{arrow_head(last, points[-1], thick)}"/>'
        )
        if label:
            middle = points[len(points) // 2 - 1], points[len(points) // 2]
            x, y = (sum(axis) / 2 for axis in zip(*middle, strict=True))
            self.text(x + 5, y - 5, label, role, size=12, anchor="start")

    def text(
        self, x, y, words, role="ink", *, size=13, anchor="middle", bold=False, more=""
    ) -> None:
        """Write words with the line they stand on; ``_q`` and ``^2`` are lowered and raised."""
        if size < 12:
            raise ValueError(f"size: expected at least 12 pixels, which can be read, got {size}")
        long = wide(words, size, bold)
        left = x - {"start": 0, "middle": long / 2, "end": long}[anchor]
        self._require_inside(words, left, y - size, long, size)
        look = f' class="{more}"' if more else ""
        colour = "" if role == "ink" else f";fill:{paint(role)}"
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{look} '
            f'style="font-size:{size}px{";font-weight:600" if bold else ""}{colour}">'
            f"{lowered(words)}</text>"
        )

    def path(self, d: str, role="ink", *, thick=1.5, filled=False, dashed=False) -> None:
        """Draw a line or a shape, given as SVG's ``d``."""
        colour = paint(role)
        more = (' class="ad-fill"' if filled else "") + (
            ' stroke-dasharray="5 4"' if dashed else ""
        )
        fill = f";fill:{colour}" if filled else ""
        self.parts.append(
            f'<path d="{d}"{more} style="stroke:{colour};stroke-width:{thick:g}{fill}"/>'
        )

    def dot(self, x, y, role="ink", radius=4, hollow=False) -> Place:
        """Return a point."""
        colour = paint(role)
        fill = "var(--page)" if hollow else colour
        self.parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" style="stroke:{colour};fill:{fill}"/>'
        )
        return Place(x - radius, y - radius, 2 * radius, 2 * radius)

    def leads(self) -> list[tuple[str, str]]:
        """Return which box leads to which, by their labels, in the arrows' order."""
        ends = [(self.label_at(start), self.label_at(end)) for start, end in self.arrows]
        return [(first, second) for first, second in ends if first and second and first != second]

    def label_at(self, where: Place | tuple[float, float]) -> str:
        """Return the label of the box at a place or point, or one that touches it.

        "" if there is none.
        """
        x, y = centre(where)
        for label, box in self.boxes:
            if (
                box.x - NEAR <= x <= box.x + box.width + NEAR
                and box.y - NEAR <= y <= box.y + box.height + NEAR
            ):
                return label
        return ""

    def svg(self) -> str:
        """Return the drawing as one ``<svg>``, which shrinks a little before it leaves its row."""
        look = f"flex-basis:{0.85 * self.width:g}px;max-width:{self.width:g}px"
        return (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" style="{look}" '
            f'aria-label="{escape(self.says)}"><title>{escape(self.title)}</title>'
            f"<desc>{escape(self.says)}</desc>{''.join(self.parts)}</svg>"
        )

    def _repr_html_(self) -> str:
        return beside(self)._repr_html_()

    def __repr__(self) -> str:
        """Return what a saved notebook holds as plain text."""
        return f"drawing: {self.title}"

    def _require_inside(self, what, x, y, width, height) -> None:
        right, bottom = x + width, y + height
        if x < -1 or y < -1 or right > self.width + 1 or bottom > self.height + 1:
            raise ValueError(
                f"{what!r} reaches from ({x:.0f}, {y:.0f}) to ({right:.0f}, {bottom:.0f}), outside "
                f"the drawing's {self.width:g} × {self.height:g}"
            )


class Drawings:
    """Drawings beside each other where there is room, below each other on a phone."""

    def __init__(self, drawings: Sequence[Diagram]):
        """Keep the drawings, which stand side by side where there is room."""
        self.drawings = drawings

    def __repr__(self) -> str:
        """Return a line for each drawing."""
        return "\n".join(map(repr, self.drawings))

    def _repr_html_(self) -> str:
        style = modes("attncourse-diagram") + file_beside("diagram.css")
        return (
            f'<div class="attncourse-diagram tex2jax_ignore mathjax_ignore"><style>{style}</style>'
            f"{''.join(drawing.svg() for drawing in self.drawings)}</div>"
        )


def beside(*drawings: Diagram) -> Drawings:
    """Return the drawings as one picture, side by side where there is room."""
    return Drawings(drawings)
