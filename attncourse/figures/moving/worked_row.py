"""Chapter 4: one row of self-attention, worked: dot products, exponentials, weights, the blend."""

from html import escape

import numpy as np

from attncourse.figures.moving.controls import choice, controls, role_cell, scrolling, signed
from attncourse.figures.moving.figure import Moving
from attncourse.lookup import softmax
from attncourse.support.arrays import as_floats, require_finite


def worked_row(X: np.ndarray, tokens: list[str], chosen: int = 0) -> Moving:
    """Show how one token of ``U = softmax(X Xᵀ) X`` is computed; a reader chooses which.

    X: ``(n, d)``, at most 16 tokens of at most 4 features, of scores within 1e6. tokens: n words.
    chosen: the token that asks at first. Where a score is beyond 20, the largest of the row is
    subtracted before the exponential, as the package does always.

    Raises ``ValueError`` for another shape, larger numbers, or a token that is not there.
    """
    X = as_floats("X", X, "n d").astype(float)
    require_finite(X=X)
    n, d = X.shape
    if n > 16 or d > 4:
        raise ValueError(f"X: expected at most 16 tokens of at most 4 features, got {X.shape}")
    if isinstance(tokens, str) or len(tokens) != n:
        raise ValueError(f"tokens: expected {n} words, one for each row of X, got {tokens!r}")
    if np.abs(X).max() > 1e3:
        raise ValueError(f"X: expected numbers of at most 1000, got {np.abs(X).max():g}")
    if isinstance(chosen, bool) or not isinstance(chosen, int) or not 0 <= chosen < n:
        raise ValueError(f"chosen: expected a token from 0 to {n - 1}, got {chosen!r}")
    shift = bool(np.abs(X @ X.T).max() > 20)
    return Moving(
        "worked_row",
        "One row, worked",
        controls(choice("token", "who asks", [escape(token) for token in tokens], chosen))
        + worked_table(X, tokens, chosen, shift),
        "In a browser that runs scripts, buttons choose which token asks.",
        {"X": X.tolist(), "tokens": list(tokens), "chosen": chosen, "shift": shift},
        f"Row of “{tokens[chosen]}”.",
    )


def worked_table(X: np.ndarray, tokens: list[str], chosen: int, shift: bool) -> str:
    """Return a line for each token as a key, in four columns, and their sums below."""
    scores = X @ X[chosen]  # (n,)
    raw = np.exp(scores - (scores.max() if shift else 0))
    shares = softmax(scores)
    parts = shares[:, None] * X  # (n, d)
    strongest = np.abs(X).max() or 1
    lines = "".join(
        f'<tr><th scope="row">{escape(token)}</th>'
        + role_cell("key", score / np.abs(scores).max() if scores.any() else 0, signed(score, 2))
        + f"<td>{large(e)}</td>"
        + f'<td><span>{signed(share, 2)}</span><i style="opacity:{share:.3f}"></i></td>'
        + "".join(role_cell("value", x / strongest, signed(x, 2)) for x in part)
        + "</tr>"
        for token, score, e, share, part in zip(tokens, scores, raw, shares, parts, strict=True)
    )
    below = "".join(role_cell("value", x / strongest, signed(x, 2)) for x in parts.sum(axis=0))
    power = "exp, less the largest" if shift else "exp"
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("score", power, "weight"))
    span = f'<th scope="colgroup" colspan="{X.shape[1]}">weight times vector</th>'
    total = f"<td></td><td>{large(raw.sum())}</td><td>1.00</td>{below}"
    return scrolling(
        f"<thead><tr><td></td>{heads}{span}</tr></thead><tbody>{lines}"
        f'<tr class="am-sum"><th scope="row">sum</th>{total}</tr></tbody>',
        "scores, exponentials, weights and the blend",
    )


def large(number: float) -> str:
    """Return a number with three digits, or as many as it has before the point."""
    return f"{number:.2f}" if number < 100 else f"{number:.0f}" if number < 1e5 else f"{number:.1e}"
