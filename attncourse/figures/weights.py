"""Maps of weights: one, or one for each head."""

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from attncourse.figures.cells import hatch_masked, number_ink, weight_cells
from attncourse.figures.maps import as_maps, as_names, as_tokens
from attncourse.figures.panels import panels
from attncourse.figures.style import GREY

MOST_LABELS = 32  # tokens on a side; above, the axes count positions
MOST_PANELS = 24  # with tokens; laying out a hundred takes a minute
MOST_NUMBERS = 12  # cells on a side that are asked whether a number fits
ROOM = 0.37  # inches that a number needs in a cell
# Inches between tokens at an axis, for each letter of the longest, and for the words in the corner.
PITCH, LETTER, CORNER = 0.15, 0.085, 0.62


def weight_matrix(
    weights,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    ax: plt.Axes | None = None,
    title: str = "",
    numbers: bool | None = None,
    mask=None,
) -> plt.Axes:
    """Return a map of weights ``(m, n)``: row i is query i, from paper (0) to ink (1).

    The entries are written in where there is room (``numbers`` decides otherwise). Where ``mask``
    ``(m, n)`` is false, a cell is hatched and has no number. Raises ``ValueError`` where labels or
    mask do not fit the matrix.
    """
    weights = np.asarray(weights, dtype=float)
    if weights.ndim != 2:
        raise ValueError(f"weights: expected shape (m, n), got {weights.shape}")
    keys = queries if keys is None and weights.shape[0] == weights.shape[1] else keys
    for name, labels, size in (("queries", queries, 0), ("keys", keys, 1)):
        if labels is not None and len(labels) != weights.shape[size]:
            raise ValueError(f"{name}: expected {weights.shape[size]} labels, got {len(labels)}")
    allowed = np.ones(weights.shape, dtype=bool) if mask is None else np.asarray(mask)
    if allowed.shape != weights.shape:
        raise ValueError(f"mask: expected shape {weights.shape}, got {allowed.shape}")
    ax = plt.gca() if ax is None else ax
    image = weight_cells(ax, weights, max(1.0, float(weights.max())))
    hatch_masked(allowed, ax)
    ax.set(title=title, xlabel="key j", ylabel="query i")
    label_axis(ax, "x", keys, weights.shape[1], turned=45)
    label_axis(ax, "y", queries, weights.shape[0])
    ax.spines[:].set(visible=True, color=GREY, linewidth=0.6)
    ax.tick_params(length=0)
    if numbers if numbers is not None else side(ax, *weights.shape) >= ROOM:
        for (i, j), shade in np.ndenumerate(image.shades()):
            if allowed[i, j]:
                words = f"{weights[i, j]:.2f}"
                ax.text(j, i, words, ha="center", va="center", color=number_ink(shade))
    return ax


def side(ax: plt.Axes, m: int, n: int) -> float:
    """Return the side of a cell in inches, as the figure is now."""
    if max(m, n) > MOST_NUMBERS:
        return 0.0
    ax.figure.canvas.figure.draw_without_rendering()  # lays the axes out
    box = ax.get_window_extent()
    return min(box.width / n, box.height / m) / ax.figure.dpi


def label_axis(
    ax: plt.Axes, which: str, tokens: Sequence[str] | None, size: int, turned: float = 0
) -> None:
    """Put a token at each row or column; without tokens, or with too many, positions."""
    if tokens is None or size > MOST_LABELS:
        step = -(-size // 8)
        ax.set(**{f"{which}ticks": range(0, size, step)})
        return
    look = {"rotation": turned, "rotation_mode": "anchor", "ha": "right"} if turned else {}
    look |= {"va": "center"} if turned == 90 else {}
    ax.set(**{f"{which}ticks": range(size)})
    getattr(ax, f"set_{which}ticklabels")([str(token) for token in tokens], **look)


def head_grid(
    weights,
    tokens: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    heads: Sequence[str] | None = None,
    layers: Sequence[str] | None = None,
    columns: int = 4,
    fig: Figure | None = None,
) -> Figure:
    """Return a small map for each head, all on the scale from 0 to 1, in panels (`panels`).

    weights: ``(heads, m, n)``, drawn in rows of ``columns``, or ``(layers, heads, m, n)``, a row
    for each layer. heads, layers: names in place of *head 0* and *layer 0*. More than 24 maps stand
    close together and without tokens. Raises ``ValueError`` where weights are no attention weights
    or do not fit the tokens.
    """
    maps = as_maps(weights)
    n_layers, n_heads, m, n = maps.shape
    queries, keys = as_tokens(tokens, keys, m, n)
    heads = as_names("heads", heads, n_heads, "head")
    layers = as_names("layers", layers, n_layers, "layer")
    many = max(m, n) > MOST_LABELS
    if n_layers * n_heads > MOST_PANELS:
        return overview(maps, heads, layers, columns, plt.figure() if fig is None else fig)
    letters = [0 if many else max(map(len, names)) for names in (queries, keys)]
    fig, axes = panels(
        n_layers * n_heads,
        width=1.9 if many else 0.12 + PITCH * n + max(CORNER, LETTER * letters[0]),
        height=2.0 if many else 0.4 + PITCH * m + max(CORNER / 2, LETTER * letters[1]),
        columns=min(columns, n_heads) if n_layers == 1 else n_heads,
        fig=fig,
    )
    for place, ax in enumerate(axes):
        layer, head = divmod(place, n_heads)
        label = heads[head] if n_layers == 1 else f"{layers[layer]}, {heads[head]}"
        weight_matrix(maps[layer, head], queries, keys, ax=ax, title=label, numbers=False)
        label_axis(ax, "x", keys, n, turned=90)
        ax.set(xlabel="", ylabel="")
        ax.annotate("query ↑\nkey →", (0, 0), xytext=(-3, -3), va="top", ha="right",
                    xycoords="axes fraction", textcoords="offset points")  # fmt: skip
    return fig


def overview(maps: np.ndarray, heads, layers, columns: int, fig: Figure) -> Figure:
    """Draw many small maps ``(layers, heads, m, n)``: names at the rims, no tokens."""
    n_layers, n_heads = maps.shape[:2]
    wide = n_heads if n_layers > 1 else max(columns, 8)
    tall = -(-n_layers * n_heads // wide)
    fig.set_layout_engine("none")
    fig.set_size_inches(wide + 1, 1.2 * tall + 0.4)
    edges = {"left": 1 / (wide + 1), "right": 0.99, "bottom": 0.02, "top": 1 - 0.3 / (1.2 * tall)}
    axes = fig.subplots(tall, wide, squeeze=False, gridspec_kw=edges)
    for ax in axes.flat[n_layers * n_heads :]:
        ax.set_axis_off()
    for (layer, head), ax in zip(np.ndindex(n_layers, n_heads), axes.flat, strict=False):
        title = heads[head] if layer == 0 else ""
        weight_matrix(maps[layer, head], ax=ax, title=title, numbers=False)
        ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
        if n_layers > 1 and head == 0:
            ax.set_ylabel(layers[layer], rotation=0, ha="right", va="center")
    return fig
