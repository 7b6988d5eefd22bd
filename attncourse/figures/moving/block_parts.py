"""Chapter 12: a stack of blocks whose parts a reader switches on, and what it does to tokens."""

from html import escape

import numpy as np

from attncourse.figures.moving.controls import (
    button,
    controls,
    role_cell,
    scrolling,
    signed,
    slider_control,
)
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import as_floats, require_finite

WEIGHT_NAMES = ("W_q", "W_k", "W_v", "W_o", "W_1", "W_2")
SWITCHED_PARTS = ("residual", "norm", "feed-forward")
BLOCK_TOKENS = ("it", "makes", "me", "happy")


def block_parts(
    x: np.ndarray | None = None,
    layers: list[dict] | None = None,
    tokens: tuple[str, ...] = BLOCK_TOKENS,
    depth: int = 4,
) -> Moving:
    """Return tokens after so many blocks, whose parts a reader switches on one by one.

    x: ``(n, d)``, at most 6 tokens of 6 features. layers: for each block ``W_q``, ``W_k``, ``W_v``
    and ``W_o``, ``(d, d)``, ``W_1`` ``(d, d_ff)`` and ``W_2`` ``(d_ff, d)``, for rows on the left;
    there is one head, no bias, and norms come before branches. Unless given, both are random.
    How far the tokens are apart is ‖X − mean token‖ / ‖X‖, by the root of the sum of squares.

    Raises ``ValueError`` for other shapes, and for a depth that there are no layers for.
    """
    x = example_block()[0] if x is None else as_floats("x", x, "n d").astype(float)
    layers = example_block()[1] if layers is None else layers
    require_finite(x=x)
    n, d = x.shape
    if not 1 <= n <= 6 or not 1 <= d <= 6 or not 1 <= len(layers) <= 12:
        raise ValueError(
            "block_parts: expected at most 6 tokens, 6 features and 12 layers, got x of shape "
            f"{x.shape} and {len(layers)} layers"
        )
    layers = [read_layer(layer, d) for layer in layers]
    if isinstance(tokens, str) or len(tokens) != n:
        raise ValueError(f"tokens: expected {n} words, one for each row, got {tokens!r}")
    if not isinstance(depth, int) or not 0 <= depth <= len(layers):
        raise ValueError(f"depth: expected a whole number up to {len(layers)}, got {depth}")
    rows = attended(x, layers)
    shares = [token_difference(X) for X in rows]
    return Moving(
        "block_parts",
        "What is left of the differences between tokens, block by block",
        controls(
            "Attention, and", *(button(f"part-{name}", name, False) for name in SWITCHED_PARTS)
        )
        + scrolling(by_depth(shares, depth), "how far apart, by depth")
        + controls(
            "Drag across the bars, or:", slider_control("depth", "blocks", 0, len(layers), depth)
        )
        + scrolling(token_rows(rows[depth], tokens), "rows of the tokens"),
        "In a browser that runs scripts, buttons switch the parts on and a slider sets the depth.",
        {
            "x": x.tolist(),
            "layers": [{name: W.tolist() for name, W in layer.items()} for layer in layers],
            "depth": depth,
        },
        f"Attention alone. After {depth} blocks the tokens are apart by "
        f"{100 * shares[depth]:.1f} % of their size.",
    )


def example_block() -> tuple[np.ndarray, list[dict]]:
    """Return four random tokens of four features, and eight layers with Xavier's weights."""
    rng = np.random.default_rng(12)
    shapes = dict.fromkeys(WEIGHT_NAMES[:4], (4, 4)) | {"W_1": (4, 8), "W_2": (8, 4)}

    def drawn(shape: tuple[int, int]) -> np.ndarray:
        bound = (6 / sum(shape)) ** 0.5
        return rng.uniform(-bound, bound, shape).round(3)

    x = rng.normal(size=(4, 4)).round(2)
    return x, [{name: drawn(shape) for name, shape in shapes.items()} for _ in range(8)]


def read_layer(layer: dict, d: int) -> dict[str, np.ndarray]:
    """Return the six matrices of a layer, looked at."""
    if not isinstance(layer, dict) or set(layer) != set(WEIGHT_NAMES):
        raise ValueError(f"layers: expected {', '.join(WEIGHT_NAMES)} in each, got {layer!r:.60}")
    read = {
        name: as_floats(name, layer[name], "rows columns").astype(float) for name in WEIGHT_NAMES
    }
    require_finite(**read)
    d_ff = read["W_1"].shape[1]
    for name, W in read.items():
        wanted = {"W_1": (d, d_ff), "W_2": (d_ff, d)}.get(name, (d, d))
        if W.shape != wanted:
            raise ValueError(f"{name}: expected shape {wanted}, got {W.shape}")
    return read


def attended(x: np.ndarray, layers: list[dict]) -> list[np.ndarray]:
    """Return the tokens before the first block and after each, where a block is attention alone."""
    rows = [x]
    for layer in layers:
        X = rows[-1]
        scores = (X @ layer["W_q"]) @ (X @ layer["W_k"]).T / X.shape[1] ** 0.5
        raw = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = raw / raw.sum(axis=-1, keepdims=True)
        rows.append(weights @ (X @ layer["W_v"]) @ layer["W_o"])
    return rows


def token_difference(X: np.ndarray) -> float:
    """Return the share of X, 0 to 1, that is not the same for all tokens."""
    return float(np.linalg.norm(X - X.mean(axis=0)) / (np.linalg.norm(X) or 1))


def token_rows(X: np.ndarray, tokens: tuple[str, ...]) -> str:
    """Return the tokens' rows as coloured numbers."""
    strongest = np.abs(X).max() or 1
    lines = "".join(
        f'<tr><th scope="row">{escape(token)}</th>'
        + "".join(role_cell("value", number / strongest, signed(number, 3)) for number in row)
        + "</tr>"
        for token, row in zip(tokens, X, strict=True)
    )
    return f'<tbody data-part="rows">{lines}</tbody>'


def by_depth(shares: list[float], depth: int) -> str:
    """Return a bar and a number for each depth: how different the tokens are after it."""
    heads = "".join(f'<th scope="col">{i}</th>' for i in range(len(shares)))
    bars = "".join(f'<td><i style="height:{100 * share:.0f}%"></i></td>' for share in shares)
    chosen = [' class="am-chosen"' if i == depth else "" for i in range(len(shares))]
    cells = "".join(
        f"<td{mark}>{100 * share:.0f}</td>" for mark, share in zip(chosen, shares, strict=True)
    )
    return (
        f'<thead><tr><th scope="row">blocks</th>{heads}</tr></thead>'
        f'<tbody><tr data-part="bars"><td></td>{bars}</tr>'
        f'<tr data-part="apart"><th scope="row">apart, %</th>{cells}</tr></tbody>'
    )
