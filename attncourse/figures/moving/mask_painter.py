"""A mask to paint: scores on one side, what is left of the weights on the other."""

from collections.abc import Sequence
from html import escape

import numpy as np

from attncourse.figures.moving.attention_stepper import stepper_number, vector
from attncourse.figures.moving.controls import choice, controls, slider_control
from attncourse.figures.moving.figure import Moving
from attncourse.lookup import softmax
from attncourse.support.arrays import as_floats

MAX_TOKENS = 8  # a phone has room for as many numbers beside each other
PRESETS = ["All", "Causal", "One too wide", "Padding", "Window of 3", "Blocks", "None"]
N_BRIEF_PRESETS = 5  # as many of them where there is one grid alone
MAX_NUMBER = 99  # of a score or a value, for the same reason


def mask_painter(
    scores, values, tokens: Sequence[str], start: str = "Causal", brief: bool = False
) -> Moving:
    """Return scores on which a reader paints what may be seen; the weights renormalise at once.

    scores: ``(n, n)``, row i of query i, already scaled, n from 2 to 8. values: ``(n, d_v)``, with
    d_v of 1 or 2. Numbers are from −99 to 99. tokens: n words. start: the mask that it begins with,
    one of ``PRESETS``: causal, one column wider than that, padding (the last third of the keys is
    hidden), a window of 3, blocks of n/2. Below stand what each token receives, 0 where it has no
    key, and which tokens can have reached it after 1, 2, … layers: where the product of as many
    masks is not 0. brief: the weights alone, which are painted on themselves, and the first masks.

    Raises ``ValueError`` for other sizes, for a start that is not offered, and for numbers that are
    not finite or too large.
    """
    scores, values = as_floats("scores", scores, "n n"), as_floats("values", values, "n d_v")
    n = len(scores)
    require_paintable(scores, values, tokens)
    names = PRESETS[:N_BRIEF_PRESETS] if brief else PRESETS
    if start not in names:
        raise ValueError(f"start: expected one of {', '.join(names)}, got {start!r}")
    offered = presets(n)[: len(names)]
    first = names.index(start)
    mask, words = np.array(offered[first][0]), offered[first][1]
    weights = np.array(
        [masked_softmax_row(row, seen) for row, seen in zip(scores, mask, strict=True)]
    )
    if brief:
        body = f'<div class="mp-pair">{mask_grid("Weights", "w", weights, mask, tokens)}</div>'
    else:
        body = both_grids(scores, weights, mask, tokens)
        body += controls(
            slider_control("layers", "What each token can know after … layers:", 1, n, 1)
        )
        body += knowledge(weights @ values, mask, tokens)
    return Moving(
        "mask_painter",
        "Paint the mask",
        controls(choice("preset", "Masks", names, first)) + body,
        "Where JavaScript runs, the mask can be painted, cell by cell or from presets, and the "
        f"weights follow. Here: {words}",
        {
            "scores": scores.tolist(),
            "values": values.tolist(),
            "tokens": list(tokens),
            "presets": offered,
            "first": first,
            "brief": brief,
        },
    )


def require_paintable(scores: np.ndarray, values: np.ndarray, tokens: Sequence[str]) -> None:
    """Raise ``ValueError`` for scores, values and tokens that ``mask_painter`` cannot show."""
    n = len(scores)
    if scores.shape != (n, n) or not 2 <= n <= MAX_TOKENS:
        raise ValueError(
            f"scores: expected (n, n) with n from 2 to {MAX_TOKENS}, got {scores.shape}"
        )
    if len(values) != n or not 1 <= values.shape[1] <= 2:
        raise ValueError(f"values: expected shape ({n}, 1) or ({n}, 2), got {values.shape}")
    if len(tokens) != n:
        raise ValueError(f"tokens: expected {n}, one for each score of a row, got {len(tokens)}")
    for name, numbers in (("scores", scores), ("values", values)):
        if np.abs(numbers).max() > MAX_NUMBER:
            raise ValueError(
                f"{name}: expected numbers from −{MAX_NUMBER} to {MAX_NUMBER}, got {numbers}"
            )


def both_grids(
    scores: np.ndarray, weights: np.ndarray, mask: np.ndarray, tokens: Sequence[str]
) -> str:
    """Return the HTML of the scores, to paint on, beside the weights that follow."""
    return (
        '<div class="mp-pair">'
        f"{mask_grid('Scores: what may be seen', 's', scores, mask, tokens)}"
        f"{mask_grid('Weights over the rest', 'w', weights, mask, tokens)}</div>"
    )


def masked_softmax_row(scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the weights of one row over the keys that are seen, all 0 where none is."""
    weights = np.zeros(len(scores))
    if seen.any():
        weights[seen] = softmax(scores[seen])
    return weights


def presets(n: int) -> list[tuple[list, str]]:
    """Return the masks to begin from, ``(n, n)``, and what is said of each."""
    i, j = np.ogrid[:n, :n]
    half, real = -(-n // 2), n - -(-n // 3)
    masks = {
        "Every token sees every token.": i == i + 0 * j,
        "Causal: each token sees itself and those before it.": j <= i,
        "One too wide: each token sees the next one, too, which it is to guess.": j <= i + 1,
        f"Padding: the last {n - real} tokens are filling, and nobody sees them.": j + 0 * i < real,
        "Window: each token sees itself and its two neighbours.": abs(i - j) < 2,
        f"Blocks of {half}: each token sees its own block, through any number of layers.": i // half
        == j // half,
        "Nothing may be seen. Paint what may.": i + j < 0,
    }
    return [(mask.tolist(), words) for words, mask in masks.items()]


def mask_grid(title: str, kind: str, numbers: np.ndarray, mask: np.ndarray, tokens) -> str:
    """Return a table with a row for each query and a column for each key.

    What is masked is hatched.
    """
    keys = "".join(f'<th scope="col"><span>{escape(token)}</span></th>' for token in tokens)
    rows = ""
    for i, token in enumerate(tokens):
        cells = ""
        for j in range(len(tokens)):
            look = "" if mask[i, j] else ' class="mp-masked"'
            if kind == "w":
                inside = f'<i style="--weight:{numbers[i, j]:.4f}"></i><b>{numbers[i, j]:.2f}</b>'
            else:
                inside = f"<b>{stepper_number(numbers[i, j])}</b>"
            cells += f'<td data-at="{kind}{i}-{j}"{look}>{inside}</td>'
        rows += f'<tr><th scope="row">{escape(token)}</th>{cells}</tr>'
    return (
        f'<table class="mp-grid" style="--n:{len(tokens)}"><caption>{title}</caption>'
        f"<thead><tr><td></td>{keys}</tr></thead><tbody>{rows}</tbody></table>"
    )


def knowledge(output: np.ndarray, mask: np.ndarray, tokens: Sequence[str]) -> str:
    """Return a table of what each token receives, and which tokens it can know."""
    rows = ""
    for i, token in enumerate(tokens):
        chips = "".join(
            f'<span class="{"mp-direct" if mask[i, j] else "mp-never"}">{escape(other)}</span> '
            for j, other in enumerate(tokens)
        )
        rows += (
            f'<tr data-row="{i}"><th scope="row">{escape(token)}</th>'
            f'<td class="am-value">{vector(output[i])}</td><td class="mp-chips">{chips}</td></tr>'
        )
    return (
        '<table class="mp-known"><thead><tr><th scope="col">token</th>'
        '<th scope="col">receives</th><th scope="col">can know</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        '<p class="mp-key"><span class="mp-direct">directly</span> '
        '<span class="mp-through">through others</span> '
        '<span class="mp-never">not at all</span></p>'
    )
