"""The HTML of an attention view: a table with numbers, its style, its data and its script.

``attention_view.js`` makes the table a grid for the keyboard, adds a drawing of the weights and a
choice of maps; without JavaScript the table stands. Nothing in it has an id or depends on
anything but the view, so views do not clash and a page can be rebuilt byte for byte.
"""

import json
import re
from functools import cache
from html import escape

import numpy as np

from attncourse.figures.attention_table import tables
from attncourse.figures.theme import modes, read_asset

MOST_IN_A_TABLE = 32  # tokens on a side; above, numbers and lines are too many to read

CODE_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
WEIGHT_CODES = np.array([first + second for first in CODE_DIGITS for second in CODE_DIGITS])
MASKED = len(WEIGHT_CODES) - 1  # "zz"; a weight is at most 1000 steps

# What shows the weights beside the table: for each kind of display the scripts that draw it.
DISPLAYS = {
    "fan": ("attention_grid.js", "attention_fan.js"),
    "arcs": ("attention_grid.js", "attention_arcs.js"),
    "picture": ("attention_picture.js",),
}


def view_html(view) -> str:
    """Return the piece of HTML that shows an ``AttentionView``."""
    small = max(view.weights.shape[2:]) <= MOST_IN_A_TABLE
    unit = 100 if small else 1000
    display = "arcs" if view.arcs else "fan" if small else "picture"
    steps = np.rint(view.weights * unit).astype(int)  # (layers, heads, m, n), from 0 to unit
    most = 1.0 if small else max(float(view.weights.max()), 1 / unit)
    data = {
        "queries": view.queries,
        "keys": None if view.keys == view.queries else view.keys,
        "layers": view.layers,
        "heads": view.heads,
        "start": view.start,
        "unit": unit,
        "most": most,
        "weights": "".join(WEIGHT_CODES[np.where(view.masked, MASKED, steps).ravel()]),
    }
    title, data = escape(view.title), escape(json.dumps(data, ensure_ascii=False))
    body = (
        f'<div class="av-scroll" tabindex="0" role="group" aria-label="{title}: table">'
        f"{tables(view, steps / unit, small)}</div>"
    )
    hint = f'<p class="av-note">{note(view, most, small)}</p>'
    if view.compact:  # open for a reader without JavaScript
        body = f"<details open><summary>All weights as a table</summary>{hint}{body}</details>"
        hint = ""
    return (
        f'<div class="attncourse-view tex2jax_ignore mathjax_ignore" role="group" '
        f'aria-label="{title}" data-display="{display}" data-view="{data}">'
        f"<style>{style(display)}</style>"
        f'<p class="av-title"><bdi>{title}</bdi></p>{hint}'
        '<p class="av-say" role="status">Where JavaScript runs, a token or a weight that is '
        f'pointed at says what it attends to.</p><div class="av-body">{body}</div>'
        f"<script>{script(display)}</script></div>"
    )


def note(view, most: float, small: bool) -> str:
    """Return a sentence or two of HTML on what the view shows."""
    m, n = view.weights.shape[2:]
    hatched = " Hatched weights are masked." if view.masked.any() else ""
    if small:
        return f"How much each query (row) attends to each key (column).{hatched}"
    return (
        f"{m} queries × {n} keys are too many for numbers and lines. The picture has a point "
        f"for every weight, from 0 (blank) to {most:.3f} (full ink); the table has the "
        f"largest weights of each query.{hatched}"
    )


@cache
def style(display: str) -> str:
    """Return the style sheet of views with this display, without comments and spare blanks."""
    sheet = modes("attncourse-view") + read_asset("attention_view.css")
    if display == "arcs":
        sheet += read_asset("attention_arcs.css")
    return re.sub(r"\s*([{};,])\s*|(?<=:)\s+", r"\1", strip_comments(sheet))


@cache
def script(display: str) -> str:
    """Return the JavaScript of views with this display, in a scope of its own."""
    whole = read_asset("attention_view.js").replace("KIND", display)
    for place, name in zip(("DISPLAY()", "DRAWING()"), DISPLAYS[display], strict=False):
        whole = whole.replace(place, read_asset(name))
    return f"(()=>{{{strip_comments(whole)}}})()"


def strip_comments(text: str) -> str:
    """Return CSS or JavaScript without its indentation and the lines that are comments."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/*")))
