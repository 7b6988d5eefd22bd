"""The static plots that chapters share."""

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from attncourse.figures.maps import as_maps, as_names, as_tokens
from attncourse.figures.style import BLUE, GREY

MOST_LABELS = 32  # tokens on a side; above, the axes count positions


def weight_matrix(
    weights,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    ax: plt.Axes | None = None,
    title: str = "",
    numbers: bool | None = None,
) -> plt.Axes:
    """A heat map of weights ``(m, n)``: row i is query i, column j is key j, from 0 to 1.

    The entries are written in where there is room (``numbers`` decides otherwise). Raises
    ``ValueError`` where the labels do not fit the matrix.
    """
    weights = np.asarray(weights, dtype=float)
    if weights.ndim != 2:
        raise ValueError(f"weights: expected shape (m, n), got {weights.shape}")
    keys = queries if keys is None and weights.shape[0] == weights.shape[1] else keys
    for name, labels, size in (("queries", queries, 0), ("keys", keys, 1)):
        if labels is not None and len(labels) != weights.shape[size]:
            raise ValueError(f"{name}: expected {weights.shape[size]} labels, got {len(labels)}")
    ax = plt.gca() if ax is None else ax
    ax.imshow(weights, vmin=0, vmax=max(1.0, float(weights.max())), cmap="cividis")
    ax.set(title=title, xlabel="key j", ylabel="query i")
    ax.set_xticks(range(weights.shape[1]), keys or range(weights.shape[1]))
    ax.set_yticks(range(weights.shape[0]), queries or range(weights.shape[0]))
    if keys:
        ax.tick_params(axis="x", rotation=45)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if numbers if numbers is not None else max(weights.shape) <= 7:
        for (i, j), weight in np.ndenumerate(weights):
            ink = "black" if weight > 0.55 * ax.images[0].norm.vmax else "white"
            ax.text(j, i, f"{weight:.2f}", ha="center", va="center", color=ink, fontsize="small")
    return ax


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
    """A small heat map for each head, all on the scale from 0 to 1.

    weights: ``(heads, m, n)``, drawn in rows of ``columns``, or ``(layers, heads, m, n)``, a row
    for each layer. Tokens stand at the outer maps only. heads, layers: names in place of *head 0*
    and *layer 0*. Raises ``ValueError`` where weights are no attention weights or do not fit the
    tokens.
    """
    maps = as_maps(weights)
    n_layers, n_heads, m, n = maps.shape
    queries, keys = as_tokens(tokens, keys, m, n)
    heads = as_names("heads", heads, n_heads, "head")
    layers = as_names("layers", layers, n_layers, "layer")
    wide = min(columns, n_heads) if n_layers == 1 else n_heads
    tall = -(-n_layers * n_heads // wide)
    fig = plt.figure() if fig is None else fig
    side = min(3.0, 0.9 + 0.12 * max(m, n))
    fig.set_size_inches(wide * side + 1.2, tall * (side + 0.3) + 0.6)
    axes = fig.subplots(tall, wide, squeeze=False)
    for place, ax in enumerate(axes.flat):
        layer, head = divmod(place, n_heads)
        if layer >= n_layers:
            ax.set_axis_off()
            continue
        label = heads[head] if n_layers == 1 else f"{layers[layer]}, {heads[head]}"
        weight_matrix(maps[layer, head], ax=ax, title=label, numbers=False)
        many = max(m, n) > MOST_LABELS
        below, left = place + wide >= n_layers * n_heads, place % wide == 0
        ax.set(xlabel="key" if below else "", ylabel="query" if left else "")
        ax.set_xticks(*((range(n), keys) if below and not many else ([],)))
        ax.set_yticks(*((range(m), queries) if left and not many else ([],)))
        ax.tick_params(axis="x", rotation=90)
    fig.colorbar(axes[0, 0].images[0], ax=axes, shrink=0.7, label="weight")
    return fig


def token_graph(
    weights, tokens: Sequence[str], *, threshold: float = 0.1, ax: plt.Axes | None = None
) -> plt.Axes:
    """The weights ``(n, n)`` as a directed graph of tokens on a circle, clockwise from the top.

    An arrow runs from each query to each key with a weight of at least ``threshold``, wider for
    larger weights; a grey loop is a token's weight on itself. Raises ``ValueError`` where weights
    and tokens do not fit together.
    """
    maps = as_maps(weights)
    n = maps.shape[-1]
    if maps.shape != (1, 1, n, n):
        raise ValueError(f"weights: expected shape (n, n), got {np.shape(weights)}")
    tokens, _ = as_tokens(tokens, None, n, n)
    ax = plt.gca() if ax is None else ax
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    place = np.stack([np.cos(angle), np.sin(angle)], axis=-1)  # (n, 2)
    for i, j in np.argwhere(maps[0, 0] >= threshold):
        width = 8 * maps[0, 0, i, j]
        if i == j:
            loop = plt.Circle(1.24 * place[i], 0.13, fill=False, color=GREY, linewidth=width)
            ax.add_patch(loop).set_zorder(0)
            continue
        arrow = {
            "arrowstyle": "-|>", "mutation_scale": 16, "color": BLUE, "linewidth": width,
            "shrinkA": 21, "shrinkB": 21, "connectionstyle": "arc3,rad=0.14",
        }  # fmt: skip
        ax.annotate("", xy=place[j], xytext=place[i], arrowprops=arrow).set_zorder(1)
    ax.scatter(*place.T, s=1700, color="white", edgecolors="black", zorder=2)
    for i, token in enumerate(tokens):
        ax.text(*place[i], f"{token}\n{i}", ha="center", va="center", zorder=3)
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    ax.axis("off")
    return ax


def curve_with_spread(
    x,
    runs,
    *,
    label: str,
    centre: str = "median",
    half: bool = False,
    brief: bool = False,
    color: str | None = None,
    ax: plt.Axes | None = None,
) -> plt.Axes:
    """A line through the runs' middle, with a band for their spread; the legend says which.

    x: ``(n,)``. runs: ``(seeds, n)``. With ``centre="median"`` the band reaches from the smallest
    to the largest run, or with ``half`` from the lower to the upper quartile; with ``"mean"`` one
    standard deviation (of the sample) to each side. ``brief`` leaves what the band means to the
    legend's title or the caption, where several curves would say the same.
    Raises ``ValueError`` for other shapes, for a single run, which has no spread, and for the
    half of a mean.
    """
    x, runs = np.asarray(x, dtype=float), np.asarray(runs, dtype=float)
    if x.ndim != 1 or runs.ndim != 2 or runs.shape[1] != len(x) or len(runs) < 2:
        raise ValueError(
            "runs: expected shape (seeds, n) with two seeds or more for x of shape (n,), "
            f"got {runs.shape} for {x.shape}"
        )
    if centre == "median":
        ends, spread = ((0.25, 0.75), "middle half") if half else ((0, 1), "range")
        low, middle, high = np.quantile(runs, (ends[0], 0.5, ends[1]), axis=0)
    elif centre == "mean" and not half:
        middle, sd = runs.mean(axis=0), runs.std(axis=0, ddof=1)
        low, high, spread = middle - sd, middle + sd, "± 1 s.d."
    else:
        wanted = '"median" for the middle half' if half else '"median" or "mean"'
        raise ValueError(f"centre: expected {wanted}, got {centre!r}")
    ax = plt.gca() if ax is None else ax
    words = "" if brief else f" ({centre} and {spread} of {len(runs)} runs)"
    (line,) = ax.plot(x, middle, color=color, label=label + words)
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    return ax
