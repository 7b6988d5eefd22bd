"""Parts of drawings: places, colours, arrow heads, words with subscripts."""

import re
from html import escape
from math import hypot

import numpy as np

from attncourse.figures.theme import COLOUR_ROLES

LETTER, BOLD = 0.56, 0.61  # the width of an ordinary letter, in units of its size
SHORT = re.compile(r"[_^](\{[^}]*\}|\w)")  # a subscript or a superscript


class Place:
    """Where something stands: its rectangle, for arrows to begin and end at."""

    def __init__(self, x: float, y: float, width: float, height: float):
        """Keep the left and upper edge, the width and the height, in pixels."""
        self.x, self.y, self.width, self.height = x, y, width, height

    @property
    def middle(self) -> tuple[float, float]:
        """Return the place's middle, x and y."""
        return self.x + self.width / 2, self.y + self.height / 2

    def edge(self, towards: tuple[float, float], gap: float = 3) -> tuple[float, float]:
        """Return the point a gap outside the rim, on the line from the middle towards a point."""
        (x, y), (to_x, to_y) = self.middle, towards
        dx, dy = to_x - x, to_y - y
        half_width, half_height = self.width / 2 + gap, self.height / 2 + gap
        share = min(half_width / abs(dx) if dx else np.inf, half_height / abs(dy) if dy else np.inf)
        share = min(share, 1)
        return x + share * dx, y + share * dy


def paint(role: str) -> str:
    """Return the CSS colour of a role in the course's visual language."""
    if role not in COLOUR_ROLES:
        raise ValueError(f"role: expected one of {', '.join(COLOUR_ROLES)}, got {role!r}")
    return f"var(--{role})"


def centre(where: Place | tuple[float, float]) -> tuple[float, float]:
    """Return the middle of a place, or the point itself."""
    return where.middle if isinstance(where, Place) else where


def arrow_head(before: tuple[float, float], tip: tuple[float, float], thick: float) -> str:
    """Return an arrow's head at ``tip``, as SVG's ``d``."""
    (x0, y0), (x, y) = before, tip
    long = hypot(x - x0, y - y0) or 1
    size = min(6 + thick, long)
    ux, uy = (x - x0) / long * size, (y - y0) / long * size
    return (
        f"M{x:.1f},{y:.1f}L{x - ux - uy / 2:.1f},{y - uy + ux / 2:.1f}"
        f"L{x - ux + uy / 2:.1f},{y - uy - ux / 2:.1f}Z"
    )


def lowered(words: str) -> str:
    """Return words as SVG; after ``_`` they are lowered, after ``^`` raised, and smaller."""
    text, end = "", 0
    for short in SHORT.finditer(words):
        down = 3 if short[0][0] == "_" else -5
        inside = escape(short[1].strip("{}"))
        text += escape(words[end : short.start()])
        text += f'<tspan dy="{down}" font-size="80%">{inside}</tspan>'
        text += f'<tspan dy="{-down}">&#8203;</tspan>'
        end = short.end()
    return text + escape(words[end:])


def wide(words: str, size: float, bold: bool = False) -> float:
    """Return about how many pixels words take."""
    plain = SHORT.sub(lambda short: short[1].strip("{}"), words)
    return (BOLD if bold else LETTER) * size * len(plain)
