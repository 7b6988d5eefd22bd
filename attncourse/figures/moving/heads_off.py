"""Chapter 9: the heads of one layer, which a reader switches off one by one."""

from collections.abc import Sequence
from html import escape

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.ink import wide
from attncourse.figures.moving.controls import button, controls, role_cell, scrolling, signed
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import as_floats, require_finite

LEAST, WIDEST = 102, 158  # of a map in pixels: three or two beside each other on a phone
CELL, LINE = 9, 15  # the width of a cell that a map asks for; the height of a line
OFF = ' class="am-off"'


def heads_off(
    maps: np.ndarray,
    values: np.ndarray,
    tokens: list[str],
    W_o: np.ndarray,
    names: Sequence[str] = (),
    off: Sequence[int] = (),
) -> Moving:
    """Return the maps of some heads, their outputs side by side, and ``U = concat(heads) W_o``.

    maps: weights, ``(h, n, n)``. values: ``(h, n, d_head)``. tokens: n words. W_o:
    ``(h·d_head, d_model)``. names: what the heads are called. off: those that it begins without,
    counted from 0. At most 4 heads, 8 tokens, and 8 features in all. A head that is off puts zeros
    into its columns of the concatenation; the last column says by how much of its length each row
    of U has changed.

    Raises ``ValueError`` for other shapes, for maps whose rows do not sum to 1, and for words that
    a map has no room for.
    """
    A = as_floats("maps", maps, "h n n").astype(float)
    V = as_floats("values", values, "h n d_head").astype(float)
    W = as_floats("W_o", W_o, "d d_model").astype(float)
    require_finite(maps=A, values=V, W_o=W)
    require_small_layer(A, V, W)
    h, n, _ = A.shape
    if isinstance(tokens, str) or len(tokens) != n:
        raise ValueError(f"tokens: expected {n} words, one for each row, got {tokens!r}")
    names = list(names) or [f"head {i}" for i in range(h)]
    if len(names) != h:
        raise ValueError(f"names: expected {h}, one for each head, got {names!r}")
    if not set(off) <= set(range(h)):
        raise ValueError(f"off: expected heads from 0 to {h - 1}, got {list(off)}")
    on = [i not in off for i in range(h)]
    outputs = A @ V  # (h, n, d_head)
    whole = np.concatenate(list(outputs), axis=-1)  # (n, h·d_head)
    concat = np.concatenate([outputs[i] * on[i] for i in range(h)], axis=-1)
    change = np.linalg.norm((concat - whole) @ W, axis=1) / row_lengths(whole @ W)
    heads = "".join(one_head(i, A[i], tokens, names[i], on[i]) for i in range(h))
    mixed = [("times W<sub>o</sub>", W.shape[1], True)]
    over = [(escape(name), V.shape[2], on[i]) for i, name in enumerate(names)]
    return Moving(
        "heads_off",
        "Heads, switched off one by one",
        f'<div class="am-row am-heads">{heads}</div>'
        + controls(button("all", "All on"))
        + '<div class="am-row am-tables">'
        + strength_table("concat", concat, tokens, over, strongest(whole))
        + strength_table("output", concat @ W, tokens, mixed, strongest(whole @ W), change)
        + "</div>",
        "In a browser that runs scripts, a button under each map switches its head off.",
        {"maps": A.tolist(), "values": V.tolist(), "W_o": W.tolist(), "tokens": list(tokens)}
        | {"names": names, "on": on},
        f"On: {', '.join(f'“{name}”' for i, name in enumerate(names) if on[i]) or 'none'}. "
        "Rows of the maps are queries, columns keys, in the same order.",
    )


def require_small_layer(maps: np.ndarray, values: np.ndarray, W_o: np.ndarray) -> None:
    """Raise ``ValueError`` for a layer that is too large for the figure, or whose parts differ."""
    h, n, _ = maps.shape
    fits = maps.shape == (h, n, n) and values.shape[:2] == (h, n)
    fits = fits and len(W_o) == h * values.shape[2]
    if not fits or h > 4 or n > 8 or max(W_o.shape) > 8:
        raise ValueError(
            "heads_off: expected at most 4 heads, 8 tokens and 8 features, maps (h, n, n), values "
            f"(h, n, d_head), W_o (h·d_head, d_model), got {maps.shape}, {values.shape}, "
            f"{W_o.shape}"
        )
    if (maps < 0).any() or np.abs(maps.sum(axis=-1) - 1).max() > 1e-4:
        raise ValueError("maps: expected weights, rows of numbers from 0 that sum to 1")


def row_lengths(rows: np.ndarray) -> np.ndarray:
    """Return the length of each row, 1 for a row of zeros."""
    lengths = np.linalg.norm(rows, axis=1)
    return np.where(lengths > 0, lengths, 1)


def strongest(numbers: np.ndarray) -> float:
    """Return the largest size among some numbers, or 1 where all are 0: what a scale divides by."""
    return np.abs(numbers).max() or 1


def one_head(i: int, weights: np.ndarray, tokens: list[str], name: str, on: bool) -> str:
    """Return a head's map, black where the weight is 1, with its switch below."""
    left = max(wide(token, 13) for token in tokens) + 14  # m and w are wider than most
    width = min(WIDEST, max(LEAST, left + 2 + CELL * len(tokens)))
    across = (width - left - 2) / len(tokens)
    if across < 6:
        raise ValueError(
            f"tokens: expected words of at most 12 letters, got {max(tokens, key=len)!r}"
        )
    says = f"The map of {name}: a row for each query, a column for each key, darker for more."
    picture = Diagram(f"The map of {name}", says, width, 6 + LINE * len(tokens))
    picture.matrix(left, 3, weights, rows=tokens, cell=(across, LINE), form="", shade=True)
    return (
        f'<div data-part="head-{i}"{"" if on else OFF} style="--wide:{width:g}px">'
        f'<p class="am-query">{escape(name)}</p>'
        f'<div class="attncourse-diagram">{picture.svg()}</div>'
        f"{controls(button(f'switch-{i}', 'on' if on else 'off', on))}</div>"
    )


def strength_table(
    part: str, numbers: np.ndarray, tokens: list[str], over: list, most: float, change=()
) -> str:
    """Return numbers in cells as dark as their part of ``most``, a row for each token.

    over: headings, how many columns each reaches over, and whether its head is on. change: by how
    much of its length each row has changed, for a last column.
    """
    lines = "".join(
        f'<tr><th scope="row">{escape(token)}</th>'
        + "".join(role_cell("value", x / most, signed(x, 1)) for x in row)
        + (f"<td>{signed(100 * change[i], 0)} %</td>" if len(change) else "")
        + "</tr>"
        for i, (token, row) in enumerate(zip(tokens, numbers, strict=True))
    )
    last = '<th scope="col">change</th>' if len(change) else ""
    span = "".join(
        f'<th scope="colgroup" colspan="{m}"{"" if on else OFF}>{title}</th>'
        for title, m, on in over
    )
    rows = f"<thead><tr><td></td>{span}{last}</tr></thead><tbody>{lines}</tbody>"
    return f'<div data-part="{part}">{scrolling(rows, part)}</div>'
