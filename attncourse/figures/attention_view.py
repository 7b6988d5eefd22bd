"""An attention map to touch: numbers, colours and lines in one self-contained piece of HTML."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from attncourse.figures.attention_html import view_html
from attncourse.figures.maps import as_maps, as_masked, as_names, as_start, as_tokens
from attncourse.figures.weights import MOST_LABELS, head_grid, weight_matrix

MOST_WEIGHTS = 1_000_000  # two characters each
MOST_CHIPS = 12  # tokens in a drawing of arcs


def attention_view(
    weights,
    tokens: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    title: str = "Attention weights",
    layers: Sequence[str] | None = None,
    heads: Sequence[str] | None = None,
    mask=None,
    start: str | int | tuple[str, str | int] | None = None,
    arcs: bool = False,
    compact: bool = False,
) -> "AttentionView":
    """Return the weights to look at and to touch: HTML in a notebook, elsewhere a figure.

    weights: ``(m, n)``, ``(heads, m, n)`` or ``(layers, heads, m, n)``, as arrays, lists or
    tensors; row i belongs to query i and sums to 1, or is all 0. tokens: the m queries. keys: the
    n keys, where they are other tokens than the queries. layers, heads: names to choose by, in
    place of *layer 0*, *head 0* and so on. Above 32 tokens on a side there is a picture, and the
    largest weights of each query, in place of numbers and lines.

    mask: True where attention is allowed, of the weights' shape or one that broadcasts to it; the
    other entries are hatched. start: what the view opens on, a query or ``(head, query)``, the
    query by its token or its position. arcs: the sentence as a line of chips with arcs to the
    keys, in place of lines between two columns; for at most 12 tokens that are both queries and
    keys. compact: the table is folded, under the drawing.

    Raises ``ValueError`` where weights and tokens do not fit together, for weights that are not
    attention weights, for more than a million of them, for a mask that forbids what has a weight,
    and for a start that is not there.
    """
    maps = as_maps(weights)
    if maps.size > MOST_WEIGHTS:
        raise ValueError(
            f"weights: expected at most {MOST_WEIGHTS} in all, got {maps.size}; "
            "take fewer layers, heads or tokens"
        )
    if not isinstance(title, str) or not title.strip():
        raise ValueError(f"title: expected some words, got {title!r}")
    queries, keys = as_tokens(tokens, keys, *maps.shape[2:])
    layers = as_names("layers", layers, maps.shape[0], "layer")
    heads = as_names("heads", heads, maps.shape[1], "head")
    if arcs and (queries != keys or len(keys) > MOST_CHIPS):
        raise ValueError(
            f"arcs: expected at most {MOST_CHIPS} tokens that are both queries and keys, "
            f"got {len(queries)} queries and {len(keys)} keys"
        )
    masked, place = as_masked(mask, maps), as_start(start, heads, queries)
    return AttentionView(maps, queries, keys, title, layers, heads, masked, place, arcs, compact)


@dataclass(frozen=True, eq=False, repr=False)
class AttentionView:
    """The view that ``attention_view`` returns. weights, masked: ``(layers, heads, m, n)``."""

    weights: np.ndarray
    queries: list[str]
    keys: list[str]
    title: str
    layers: list[str]
    heads: list[str]
    masked: np.ndarray
    start: tuple[int, int] | None = None  # head and query
    arcs: bool = False
    compact: bool = False

    def __repr__(self) -> str:
        """Return what a saved notebook holds as plain text."""
        layers, heads, m, n = self.weights.shape
        return f"<attention view: {layers} × {heads} maps of {m} queries × {n} keys>"

    def figure(self) -> Figure:
        """Return the same weights as a matplotlib figure: a map, or a grid of layers × heads."""
        layers, heads, m, n = self.weights.shape
        fig = Figure(layout="constrained")
        if layers * heads > 1:
            names = {"layers": self.layers, "heads": self.heads}
            return head_grid(self.weights, self.queries, self.keys, **names, fig=fig)
        fig.set_size_inches(min(12.0, 1.6 + 0.4 * n), min(12.0, 1.6 + 0.4 * m))
        ax = weight_matrix(
            self.weights[0, 0], self.queries, self.keys, ax=fig.subplots(), title=self.title
        )
        if max(m, n) > MOST_LABELS:
            ax.set(xticks=[], yticks=[])
        return fig

    def _repr_html_(self) -> str:
        return view_html(self)

    def _repr_png_(self) -> bytes:
        image = io.BytesIO()
        self.figure().savefig(image, format="png", dpi=150)
        return image.getvalue()
