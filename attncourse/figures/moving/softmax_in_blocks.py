"""Chapter 17: a softmax that sees a row of scores block by block, and what it keeps."""

import math

import numpy as np

from attncourse.figures.moving.controls import button, controls, signed
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import as_floats, require_finite

MAX_SCORE = 50.0  # of a score that can be typed


def softmax_in_blocks(scores: np.ndarray, values: np.ndarray, block: int = 2) -> Moving:
    """Return a row for each block of keys: largest score so far, factor, normaliser, output so far.

    scores: ``(n,)``, between −50 and 50, to be changed by the reader. values: a number for each
    key, ``(n,)``. block: how many keys come at a time; there are 2 to 6 blocks.

    Raises ``ValueError`` for other scores, values or blocks.
    """
    row = as_floats("scores", scores, "n").astype(float)
    v = as_floats("values", values, "n").astype(float)
    require_finite(scores=row, values=v)
    if row.ndim != 1 or row.shape != v.shape or np.abs(row).max(initial=0) > MAX_SCORE:
        raise ValueError(
            f"scores: expected a row from −50 to 50 and a value for each, got shapes {row.shape} "
            f"and {v.shape}"
        )
    if block < 1 or not 2 <= math.ceil(len(row) / block) <= 6 or block > 4:
        raise ValueError(f"block: expected 2 to 6 blocks of 1 to 4 keys, got {block}")
    lines = ""
    for start, step in zip(range(0, len(row), block), block_steps(row, v, block), strict=True):
        part = range(start, min(start + block, len(row)))
        fields = "".join(
            f'<input type="number" step="0.5" min="-50" max="50" data-part="score-{j}" '
            f'value="{row[j]:g}" aria-label="score {j}" autocomplete="off">'
            f'<span class="am-printed">{signed(row[j], 1)}</span> '
            for j in part
        )
        worth = ", ".join(f"{v[j]:g}".replace("-", "−") for j in part)
        texts = [signed(number, digits) for number, digits in step]
        texts[1] = texts[1] if start else "–"  # nothing was summed before
        cells = "".join(f"<td>{words}</td>" for words in texts)
        lines += f'<tr><th scope="row">{fields}</th><td class="am-value">{worth}</td>{cells}</tr>'
    names = ("scores", "values", "largest", "factor", "sum", "output")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return Moving(
        "softmax_in_blocks",
        "A softmax in blocks",
        f'<table data-part="steps"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'
        + controls(
            button("back", "Step back"), button("next", "Next block"), button("reset", "Reset")
        ),
        "In a browser that runs scripts, the scores can be typed and the blocks come one by one.",
        {"scores": row.tolist(), "values": v.tolist(), "block": block},
        "All blocks have been seen. The last row is the whole softmax.",
    )


def block_steps(
    scores: np.ndarray, values: np.ndarray, block: int
) -> list[list[tuple[float, int]]]:
    """Return after each block its largest score, factor, normaliser and output, with digits."""
    steps, maximum, normaliser, total = [], -math.inf, 0.0, 0.0
    for start in range(0, len(scores), block):
        s, v = scores[start : start + block], values[start : start + block]
        larger = max(maximum, float(s.max()))
        factor, weights = math.exp(maximum - larger), np.exp(s - larger)
        normaliser = normaliser * factor + float(weights.sum())
        total = total * factor + float(weights @ v)
        maximum = larger
        steps.append([(maximum, 1), (factor, 3), (normaliser, 3), (total / normaliser, 3)])
    return steps
