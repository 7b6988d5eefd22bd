"""Chapter 7: eight scores that grow with the width, and what the softmax makes of them."""

from collections.abc import Sequence

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import (
    beside_controls,
    choice,
    controls,
    live,
    picture_row,
    signed,
    slider_control,
)
from attncourse.figures.moving.figure import Moving
from attncourse.lookup import softmax
from attncourse.support.arrays import as_floats, require_finite

# Eight standard normal numbers: numpy's default_rng(12).normal(size=8), rounded.
DRAWS = (-0.01, 1.05, 0.74, 0.72, 1.62, -1.21, -0.63, -1.32)
ZERO, UNIT, FULL = 142, 7, 12  # where score 0 is, how long 1 is, in pixels; the longest bar's score
START, LONG, TOP, ROW = 252, 50, 26, 26  # weight 0, how long a weight of 1 is; the rows
SLIDER_DESCRIPTION = (
    "Eight keys, one below the other. For each a bar for its score, left and right of a line for "
    "0, and a bar for its weight."
)


def width_slider(draws: Sequence[float] | np.ndarray = DRAWS, d_k: int = 64) -> Moving:
    """Return scores of a query at a width from 1 to 1024, divided by 1, √d_k or d_k.

    draws: ``(n,)``, 2 to 10 numbers of order one; at width d_k the scores are √d_k times these,
    since a dot product of random vectors has standard deviation √d_k. d_k: the first width, a power
    of 2. Shows scores, weights, and for each divisor the largest weight, the entropy in nats, and
    the norm of the softmax's Jacobian (its largest eigenvalue).

    Raises ``ValueError`` for other draws or another width.
    """
    draws = as_floats("draws", draws, "n").astype(float)
    require_finite(draws=draws)
    if not 2 <= len(draws) <= 10 or np.abs(draws).max() > 10:
        raise ValueError(f"draws: expected 2 to 10 numbers of at most 10, got {draws.tolist()}")
    if d_k not in [2**e for e in range(11)]:
        raise ValueError(f"d_k: expected a power of 2 from 1 to 1024, got {d_k!r}")
    return Moving(
        "width_slider",
        "How wide, and divided by what?",
        controls(
            slider_control("width", "width d", 0, 10, np.log2(d_k)),
            choice("divisor", "scores divided by", ["1", "√d", "d"], 0),
        )
        + beside_controls(picture_row(score_bars(draws, d_k)), measures_table(draws, d_k)),
        "In a browser that runs scripts, a slider changes the width from 1 to 1024, and three "
        "buttons choose what the scores are divided by.",
        {"draws": draws.tolist(), "zero": ZERO, "unit": UNIT, "full": FULL, "begins": START}
        | {"long": LONG, "top": TOP, "row": ROW},
        f"Scores of {len(draws)} random keys at width {d_k}, divided by 1.",
    )


def score_bars(draws: np.ndarray, d_k: int) -> Diagram:
    """Return a row for each key: its score as a bar and a number, and its weight."""
    scores = draws * np.sqrt(d_k)
    picture = Diagram("Scores and weights", SLIDER_DESCRIPTION, height=TOP + 6 + ROW * len(draws))
    picture.text(ZERO, 15, "score", bold=True)
    picture.text(ZERO + 24, 15, "drag a bar", "quiet", anchor="start", more="am-controls")
    picture.text(START, 15, "weight", bold=True, anchor="start")
    for j in range(len(draws)):
        picture.text(42, TOP + j * ROW + 18, f"key {j}", "key", anchor="end")
    live(picture, "bars", "".join(map(score_row, range(len(draws)), scores, softmax(scores))))
    picture.path(f"M{ZERO},{TOP}V{TOP + ROW * len(draws)}", "quiet", thick=1)
    return picture


def score_row(j: int, score: float, weight: float) -> str:
    """Return the two bars of key j with their numbers.

    A bar that would be too long ends in a point.
    """
    y, side = TOP + j * ROW + 3, -1 if score < 0 else 1
    end = ZERO + np.clip(score, -FULL, FULL) * UNIT
    tip = f"l{side * 7},10l{-side * 7},10" if abs(score) > FULL else "v20"
    anchor = "end" if side > 0 else "start"
    return (
        f'<path class="am-bar" d="M{ZERO},{y}H{end:.1f}{tip}H{ZERO}Z"/>'
        f'<text x="{ZERO - side * 5}" y="{y + 15}" text-anchor="{anchor}">{signed(score, 1)}</text>'
        f'<path class="am-bar" d="M{START},{y}h{weight * LONG:.1f}v20h{-weight * LONG:.1f}Z"/>'
        f'<text x="{START + weight * LONG + 5:.1f}" y="{y + 15}">{signed(weight, 2)}</text>'
    )


def measures(scores: np.ndarray) -> tuple[float, float, float]:
    """Return largest weight, entropy in nats, and the norm of the Jacobian diag(p) − p pᵀ."""
    p = softmax(scores)
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum()
    return p.max(), entropy, np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1]


def measures_table(draws: np.ndarray, d_k: int) -> str:
    """Return the three measures, a row each, for the three divisors."""
    columns = [measures(draws * np.sqrt(d_k) / divisor) for divisor in (1, np.sqrt(d_k), d_k)]
    numbers = np.transpose(columns)  # (3 measures, 3 divisors)
    names = "largest weight", "entropy, nats", "slope, ‖J‖"
    rows = "".join(
        f'<tr><th scope="row">{name}</th>'
        + "".join(f'<td class="am-measure">{number:.3f}</td>' for number in line)
        for name, line in zip(names, numbers, strict=True)
    )
    heads = "".join(f'<th scope="col">÷ {divisor}</th>' for divisor in ("1", "√d", "d"))
    return f"<table><thead><tr><td></td>{heads}<tbody>{rows}</table>"
