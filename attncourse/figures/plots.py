"""The static plots that chapters share."""

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt


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
