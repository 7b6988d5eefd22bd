"""The HTML of an attention view: a table with numbers, its style, its data and its script.

``attention_view.js`` makes the table a grid for the keyboard, adds lines from queries to keys and
a choice of maps; without JavaScript the table stands. Nothing in it has an id or depends on
anything but the view, so views do not clash and a page can be rebuilt byte for byte.
"""

import json
import re
from functools import cache
from html import escape
from importlib.resources import files

import numpy as np

MOST_IN_A_TABLE = 32  # tokens on a side; above, numbers and lines are too many to read
MOST_CELLS = 2_500  # of all maps together, that are written out for readers without JavaScript

# The colour map cividis, which the static figures have, at equal steps. From BLACK_FROM on black
# is easier to read on it than white. Both stand in the JavaScript too.
CIVIDIS = np.array(
    [(0, 34, 78), (53, 69, 108), (102, 105, 112), (148, 142, 119), (200, 184, 102), (254, 232, 56)]
)
BLACK_FROM = 0.47
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
CODES = np.array([first + second for first in DIGITS for second in DIGITS])


def view_html(view) -> str:
    """The piece of HTML that shows an ``AttentionView``."""
    m, n = view.weights.shape[2:]
    small = max(m, n) <= MOST_IN_A_TABLE
    unit = 100 if small else 1000
    steps = np.rint(view.weights * unit).astype(int)  # (layers, heads, m, n), from 0 to unit
    most = 1.0 if small else max(float(view.weights.max()), 1 / unit)
    data = {
        "queries": view.queries,
        "keys": None if view.keys == view.queries else view.keys,
        "layers": view.layers,
        "heads": view.heads,
        "unit": unit,
        "most": most,
        "weights": "".join(CODES[steps.ravel()]),
    }
    note = "How much each query (row) attends to each key (column)."
    if not small:
        note = (
            f"{m} queries × {n} keys are too many for numbers and lines. The picture has a point "
            f"for every weight, from 0 (dark blue) to {most:.3f} (yellow); the table has the "
            "largest weights of each query."
        )
    title, data = escape(view.title), escape(json.dumps(data, ensure_ascii=False))
    return (
        f'<div class="attncourse-view" role="group" aria-label="{title}" data-view="{data}">'
        f"<style>{style()}</style>"
        f'<p class="av-title"><bdi>{title}</bdi></p><p class="av-note">{note}</p>'
        '<p class="av-say" role="status"></p><div class="av-body">'
        f'<div class="av-scroll" tabindex="0" role="group" aria-label="{title}: table">'
        f"{tables(view, steps, unit)}</div></div>"
        f"<script>{script('grid' if small else 'picture')}</script></div>"
    )


def tables(view, steps: np.ndarray, unit: int) -> str:
    """The maps as tables: all of them where they are few, else the first."""
    n_layers, n_heads = steps.shape[:2]
    write = number_table if unit == 100 else largest_table
    few = unit == 100 and steps.size <= MOST_CELLS
    text = ""
    for layer, head in np.ndindex(n_layers, n_heads) if few else [(0, 0)]:
        names = [view.layers[layer]] * (n_layers > 1) + [view.heads[head]] * (n_heads > 1)
        caption = f"<caption>{escape(' · '.join(names))}</caption>" if names else ""
        text += write(caption, steps[layer, head] / unit, view.queries, view.keys)
    if not few and n_layers * n_heads > 1:
        text += f"<noscript>The other {n_layers * n_heads - 1} maps need JavaScript.</noscript>"
    return text


def number_table(caption: str, weights: np.ndarray, queries: list[str], keys: list[str]) -> str:
    """A table of the weights ``(m, n)``, each on its colour."""
    head = "".join(f'<th scope="col">{token_html(key)}</th>' for key in keys)
    body = "".join(
        f'<tr><th scope="row">{token_html(query)}</th>{"".join(map(cell, row))}</tr>'
        for query, row in zip(queries, weights, strict=True)
    )
    return (
        f'<table class="av-grid">{caption}<thead><tr><td>query ↓ key →</td>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def largest_table(caption: str, weights: np.ndarray, queries: list[str], keys: list[str]) -> str:
    """A table with the three largest weights of each query."""
    body = ""
    for query, row in zip(queries, weights, strict=True):
        best = [j for j in np.argsort(-row, kind="stable")[:3] if row[j] > 0]
        text = ", ".join(f'"{token_html(keys[j])}" {row[j]:.3f}' for j in best) or "no key"
        body += f'<tr><th scope="row">{token_html(query)}</th><td>{text}</td></tr>'
    head = '<th scope="col">query</th><th scope="col">attends most to</th>'
    return (
        f'<table class="av-most">{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def cell(weight: float) -> str:
    black = ' class="b"' if weight >= BLACK_FROM else ""
    return f'<td{black} style="background:{colour(weight)}">{weight:.2f}</td>'


def colour(weight: float) -> str:
    """The colour of a weight from 0 to 1."""
    at = np.linspace(0, 1, len(CIVIDIS))
    red, green, blue = (round(float(np.interp(weight, at, part))) for part in CIVIDIS.T)
    return f"#{red:02x}{green:02x}{blue:02x}"


def token_html(token: str) -> str:
    """A token as it is read: never as markup, in its own direction, and visible if it is blank."""
    text = token if token.strip() else f"'{token}'"
    return f"<bdi>{escape(text)}</bdi>"


@cache
def style() -> str:
    return re.sub(r"\s*([{};,])\s*|(?<=:)\s+", r"\1", asset("attention_view.css"))


@cache
def script(display: str) -> str:
    """The JavaScript of views with this display, ``grid`` or ``picture``, in a scope of its own."""
    whole = asset("attention_view.js").replace("DISPLAY()", asset(f"attention_{display}.js"))
    return f"(()=>{{{whole}}})()"


def asset(name: str) -> str:
    """A file that lies beside this module, without its comments and indentation."""
    text = files("attncourse.figures").joinpath(name).read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/*")))
