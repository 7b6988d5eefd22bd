"""How plots look on a page: its colours, light and dark, and the size of letters."""

from __future__ import annotations

import re

import numpy as np
from matplotlib.colors import to_rgb

from helpers.project import ROOT

PAGES = {"light": "#ffffff", "dark": "#121212"}  # the theme's
# The height of a letter's square, in pixels, of every text that matplotlib drew.
LETTERS = """() => [...document.querySelectorAll('.attn-plot g[transform*="scale("]')].map(g => {
    const m = g.getScreenCTM(); return 100 * Math.hypot(m.a, m.b); })"""


def sheet(scheme: str) -> dict[str, str]:
    """The course's colours as the book's style sheet has them, light or dark."""
    css = (ROOT / "book" / "assets" / "attncourse.css").read_text(encoding="utf-8")
    starts = {"light": r"^html", "dark": r'html\[data-theme="dark"\]'}
    blocks = re.findall(rf"{starts[scheme]} \{{([^}}]*)\}}", css, re.MULTILINE)
    return {k: v for block in blocks for k, v in re.findall(r"--attn-(\w+): (#\w+);", block)}


def linear(colour) -> np.ndarray:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(colour, other_colour) -> float:
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (colour, other_colour))
    return (high + 0.05) / (low + 0.05)
