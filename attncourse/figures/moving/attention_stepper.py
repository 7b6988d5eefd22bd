"""One head, step by step: x, then q, k and v, then scores, weights, and the blend of values."""

from collections.abc import Sequence
from html import escape
from math import sqrt

import numpy as np

from attncourse.figures.ink import arrow_head
from attncourse.figures.moving.controls import button, choice, controls
from attncourse.figures.moving.figure import Moving
from attncourse.lookup import softmax
from attncourse.support.arrays import as_floats

# In X and the matrices: a cell has room for one digit and a fraction.
MAX_STEPPER_NUMBER = 9
STAGES = ["Whole", "x", "q, k, v", "Scores", "Weights", "Blend"]
COLOURS = {"Q": "am-query", "K": "am-key", "V": "am-value"}
DOWN = '<td aria-hidden="true">↓</td>'


def attention_stepper(X, W_q, W_k, W_v, tokens: Sequence[str]) -> Moving:
    """Return a head's way from ``x`` to ``u`` in stages, with numbers that a reader may change.

    X: the tokens, ``(n, d_model)`` with n and d_model from 1 to 4. W_q, W_k: ``(d_model, d_k)``.
    W_v: ``(d_model, d_v)``; d_k and d_v are at most 2, which a phone has room for. Numbers are from
    −9 to 9. tokens: n words. The first token asks at the beginning. What is shown is
    ``softmax(Q Kᵀ / √d_k) V`` (Vaswani et al., 2017, section 3.2.1).

    Raises ``ValueError`` where sizes do not fit together, are too large, or a number is.
    """
    numbers = {"X": X, "W_q": W_q, "W_k": W_k, "W_v": W_v}
    numbers = {name: as_floats(name, matrix, "m n") for name, matrix in numbers.items()}
    require_fit(numbers, tokens)
    X, W_q, W_k, W_v = numbers.values()
    views = {"Q": X @ W_q, "K": X @ W_k, "V": X @ W_v}
    return Moving(
        "attention_stepper",
        f"One attention head at work on “{' '.join(tokens)}”",
        controls(choice("asks", "Who asks?", [f"<bdi>{escape(t)}</bdi>" for t in tokens], 0))
        + controls(choice("stage", "Stage", STAGES, 1), button("next", "Next ▸"))
        + f'<div class="st-flow">{left(numbers, views, tokens)}'
        + f"{stepper_columns(views, tokens)}</div>"
        + '<div class="ss-box" data-part="why" role="group" aria-label="Why this score" hidden>'
        + "</div>"
        + controls(
            "<span>Change any number with dots below it"
            '<span class="st-narrow"> (at x or q, k, v)</span>. Press a score'
            '<span class="st-narrow"> (at Whole or Scores)</span>.</span>',
            button("page", "Numbers of the page"),
        ),
        "Where JavaScript runs, the picture grows by a stage at a time, any token may ask, and all "
        "numbers of X and the three matrices can be changed.",
        {"tokens": list(tokens), "numbers": {k: m.tolist() for k, m in numbers.items()}},
        before=["score_sum"],
    )


def require_fit(numbers: dict[str, np.ndarray], tokens: Sequence[str]) -> None:
    """Raise ``ValueError`` unless the matrices fit each other, the tokens and the figure."""
    X, W_q, W_k, _ = numbers.values()
    n, d_model = X.shape
    if len(tokens) != n or not 1 <= n <= 4 or not 1 <= d_model <= 4:
        raise ValueError(
            f"X: expected one row for each token and at most 4 rows and columns, got shape "
            f"{X.shape} and {len(tokens)} tokens"
        )
    for name, W in list(numbers.items())[1:]:
        if len(W) != d_model or not 1 <= W.shape[1] <= 2:
            raise ValueError(
                f"{name}: expected shape ({d_model}, 1) or ({d_model}, 2), got {W.shape}"
            )
    if W_q.shape != W_k.shape:
        raise ValueError(f"expected W_q and W_k of one shape, got {W_q.shape} and {W_k.shape}")
    for name, matrix in numbers.items():
        if np.abs(matrix).max() > MAX_STEPPER_NUMBER:
            raise ValueError(
                f"{name}: expected numbers from −{MAX_STEPPER_NUMBER} to {MAX_STEPPER_NUMBER}, "
                f"got {np.abs(matrix).max()}"
            )


def left(numbers: dict, views: dict, tokens: Sequence[str]) -> str:
    """Draw the tokens and their three views: X, the matrices below it, Q, K and V below those."""
    fan = "".join(
        stepper_arrow(colour, (176, 2), (x, 26))
        for colour, x in zip(COLOURS.values(), (92, 176, 260), strict=True)
    )
    columns = [
        f'<div class="{colour}" data-lit="2">{matrix_table(f"W_{name.lower()}", numbers)}'
        f'<span aria-hidden="true">↓</span>{matrix_table(name, views, tokens)}</div>'
        for name, colour in COLOURS.items()
    ]
    names = "".join(f"<span>{escape(token)}</span>" for token in tokens)
    return (
        '<div class="st-left"><div class="st-x" data-lit="1">'
        f"{matrix_table('X', numbers, tokens)}</div>"
        f'<svg viewBox="0 0 304 28" aria-hidden="true" data-lit="2">{fan}</svg>'
        f'<div class="st-three"><div class="st-names" data-lit="2" aria-hidden="true">{names}</div>'
        f"{''.join(columns)}</div></div>"
    )


def matrix_table(name: str, all_numbers: dict, tokens: Sequence[str] = ()) -> str:
    """Return a matrix as a table, with its name and shape above it and a row for each token."""
    numbers = all_numbers[name]
    rows = ""
    for i, row in enumerate(numbers):
        head = f'<th scope="row">{escape(tokens[i])}</th>' if len(tokens) else ""
        cells = "".join(
            f'<td data-at="{name}{i}{j}">{stepper_number(entry)}</td>'
            for j, entry in enumerate(row)
        )
        asks = f' data-row="{i}"' if len(tokens) else ""
        rows += f"<tr{asks}>{head}{cells}</tr>"
    symbol = name if "_" not in name else f"W<sub>{name[2:]}</sub>"
    m, n = numbers.shape
    return f'<table class="st-m"><caption>{symbol} <span>({m}, {n})</span></caption>{rows}</table>'


def stepper_columns(views: dict, tokens: Sequence[str]) -> str:
    """Draw the way from a query to its blend: one column for each token that is asked."""
    Q, K, V = views.values()
    n, d_k = K.shape
    scores = K @ Q[0]  # (n,)
    weights = softmax(scores / sqrt(d_k))
    x = [round(230 * (j + 0.5) / n) for j in range(n)]
    out = "".join(stepper_arrow("am-query", (115, 2), (at, 26)) for at in x)
    back = "".join(
        f'<path class="am-value" data-at="f{j}" d="M{at} 2L115 26" '
        f'style="stroke-width:{0.5 + 6 * weights[j]:.2f}"/>'
        for j, at in enumerate(x)
    )

    def line(head: str, stages: str, kind: str, letter: str, contents) -> str:
        cells = "".join(
            f'<td><span class="st-chip {kind}" data-at="{letter}{j}">{entry}</span></td>'
            for j, entry in enumerate(contents)
        )
        return f'<tr data-lit="{stages}"><th scope="row">{head}</th>{cells}</tr>'

    def wide(head: str, stages: str, inside: str, hidden: str = "") -> str:
        return (
            f'<tr data-lit="{stages}"{hidden}><th scope="row">{head}</th>'
            f'<td colspan="{n}">{inside}</td></tr>'
        )

    def fan(paths: str, stages: str) -> str:
        return wide("", stages, f'<svg viewBox="0 0 230 28">{paths}</svg>', ' aria-hidden="true"')

    def arrows(stages: str, sign: str = "↓") -> str:
        cells = DOWN.replace("↓", sign) * n
        return f'<tr class="st-down" data-lit="{stages}" aria-hidden="true"><td></td>{cells}</tr>'

    shade = [f'<i style="--weight:{w:.4f}"></i><b>{w:.2f}</b>' for w in weights]
    chip = '<span class="st-chip {}" data-at="{}">{}</span>'
    names = "".join(f'<th scope="col">{escape(token)}</th>' for token in tokens)
    return (
        '<table class="st-right">'
        + wide("query <i>q</i>", "2 3", chip.format("am-query", "q", vector(Q[0])))
        + fan(out, "3")
        + f'<tr data-lit="2 3 4 5"><td></td>{names}</tr>'
        + line("keys <i>k</i>", "3", "am-key", "k", map(vector, K))
        + arrows("3 4 5")
        + line("<i>q</i> · <i>k</i>", "3", "st-plain", "s", map(stepper_number, scores))
        + line(f"÷ √{d_k}", "3 4", "st-plain", "c", map(stepper_number, scores / sqrt(d_k)))
        + arrows("4 5")
        + line("weights", "4 5", "st-weight", "w", shade)
        + arrows("5", "×")
        + line("values <i>v</i>", "5", "am-value", "v", map(vector, V))
        + fan(back, "5")
        + wide("blend <i>u</i>", "5", chip.format("am-value", "u", vector(weights @ V)))
        + "</table>"
    )


def stepper_arrow(colour: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return the SVG of an arrow, whose line ends inside its head."""
    (x, y), (to_x, to_y) = start, end
    near = x + 0.85 * (to_x - x), y + 0.85 * (to_y - y)  # inside the head
    return (
        f'<path class="{colour}" d="M{x} {y}L{near[0]:.1f} {near[1]:.1f}"/>'
        f'<path class="{colour} st-head" d="{arrow_head(start, end, 2)}"/>'
    )


def stepper_number(entry: float) -> str:
    """Return a number with at most two decimals, as the script writes it."""
    text = f"{entry:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("-", "−")


def vector(entries) -> str:
    """Return numbers as a vector in brackets."""
    return f"({', '.join(map(stepper_number, entries))})"
