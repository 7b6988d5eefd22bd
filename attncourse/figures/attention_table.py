"""The tables of an attention view: what stands in it for a reader without JavaScript."""

from html import escape

import numpy as np

# Of all maps together, for readers without JavaScript.
MAX_CELLS_WRITTEN_OUT = 2_500

# A cell is ink as strong as its weight. From DARK_FROM on, black is easier to read on it than
# white in dark mode, from LIGHT_FROM on white than black in light. Both stand in the JavaScript.
DARK_FROM, LIGHT_FROM = 0.43, 0.625


def tables(view, shares: np.ndarray, small: bool) -> str:
    """Return the maps as tables: all of them where they are few, else the one that is shown first.

    shares: the weights, rounded, (layers, heads, m, n). small: whether there is room for numbers.
    """
    n_layers, n_heads = shares.shape[:2]
    write = number_table if small else largest_table
    few = small and shares.size <= MAX_CELLS_WRITTEN_OUT
    text = ""
    heads = np.ndindex(n_layers, n_heads) if few else [(0, (view.start or (0,))[0])]
    for layer, head in heads:
        names = [view.layers[layer]] if n_layers > 1 else []
        if n_heads > 1:
            names.append(view.heads[head])
        caption = f"<caption>{escape(' · '.join(names))}</caption>" if names else ""
        masked = view.masked[layer, head]
        text += write(caption, shares[layer, head], masked, view.queries, view.keys)
    if not few and n_layers * n_heads > 1:
        text += f"<noscript>The other {n_layers * n_heads - 1} maps need JavaScript.</noscript>"
    return text


def number_table(
    caption: str, weights: np.ndarray, masked: np.ndarray, queries: list[str], keys: list[str]
) -> str:
    """Return a table of the weights ``(m, n)``, each on its shade; masked ones are hatched."""
    head = "".join(f'<th scope="col">{token_html(key)}</th>' for key in keys)
    body = "".join(
        f'<tr><th scope="row">{token_html(query)}</th>'
        f"{''.join(map(weight_cell, row, hatched))}</tr>"
        for query, row, hatched in zip(queries, weights, masked, strict=True)
    )
    corner = '<td><span class="av-q">query ↓</span> <span class="av-k">key →</span></td>'
    return (
        f'<table class="av-grid">{caption}<thead><tr>{corner}{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def largest_table(
    caption: str, weights: np.ndarray, masked: np.ndarray, queries: list[str], keys: list[str]
) -> str:
    """Return a table with the three largest weights of each query."""
    body = ""
    for query, row in zip(queries, weights, strict=True):
        best = [j for j in np.argsort(-row, kind="stable")[:3] if row[j] > 0]
        text = ", ".join(f"“{token_html(keys[j])}” {row[j]:.3f}" for j in best) or "no key"
        seen = row[row > 0]
        if len(seen) > 3 and np.ptp(seen) < 5e-4:  # none stands out
            text = f"{'all' if len(seen) == len(row) else len(seen)} alike, {seen[0]:.3f}"
        body += f'<tr><th scope="row">{token_html(query)}</th><td>{text}</td></tr>'
    head = '<th scope="col">query</th><th scope="col">attends most to</th>'
    return (
        f'<table class="av-most">{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def weight_cell(weight: float, masked: bool) -> str:
    """Return a weight from 0 to 1 as a cell of a table."""
    if masked:
        return '<td class="x">–</td>'
    name = "b c" if weight >= LIGHT_FROM else "b" if weight >= DARK_FROM else ""
    kind = f' class="{name}"' if name else ""
    return f'<td{kind} style="--w:{100 * weight:.0f}%">{weight:.2f}</td>'


def token_html(token: str) -> str:
    """Return a token as it is read: no markup, in its own direction, visible if it is blank."""
    text = token if token.strip() else f"‘{token}’"
    return f"<bdi>{escape(text)}</bdi>"
