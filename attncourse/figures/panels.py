"""A figure of several panels that stand beside each other, or one below the other on a phone."""

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

PANEL = "panel"  # how the groups of an SVG are called that the book lays out one by one
MOST_IN_A_ROW = 4
# Inches for 1, 2, 3, 4 panels beside each other: as much as a page of the book has room for.
PANEL_WIDTHS = (4.3, 3.4, 2.6, 2.0)


def panels(
    n: int,
    *,
    width: float | Sequence[float] | None = None,
    height: float = 2.4,
    columns: int | None = None,
    sharex: bool = False,
    sharey: bool = False,
    fig: Figure | None = None,
) -> tuple[Figure, np.ndarray]:
    """Return a figure and its ``n`` axes, as `plt.subplots` gives them, each in a panel of its own.

    In the book the panels flow: ``columns`` of them stand beside each other where there is room,
    fewer on a phone, with letters of one size. Every panel therefore has its own labels, and
    nothing is drawn outside of them. width: inches of a panel, or of each in a row; by default as
    many as fit. height: inches. columns: by default all, at most 4.

    Raises ``ValueError`` for fewer than one panel, and for widths that are not one or ``columns``.
    """
    if n < 1:
        raise ValueError(f"n: expected one panel or more, got {n}")
    columns = min(n, MOST_IN_A_ROW if columns is None else columns)
    width = PANEL_WIDTHS[min(columns, MOST_IN_A_ROW) - 1] if width is None else width
    widths = [width] * columns if isinstance(width, int | float) else list(width)
    if len(widths) != columns:
        raise ValueError(f"width: expected one number or {columns}, got {len(widths)}")
    rows = -(-n // columns)
    fig = plt.figure(layout="constrained") if fig is None else fig
    fig.set_size_inches(sum(widths), rows * height)
    places = fig.subfigures(rows, columns, width_ratios=widths, squeeze=False, wspace=0, hspace=0)
    axes = np.empty(n, dtype=object)
    for number, (place, _) in enumerate(zip(places.flat, axes, strict=False)):
        place.set_gid(f"{PANEL}_{number}")
        # A figure is trimmed to what it holds, but panels below each other stay equally wide.
        place.get_tightbbox = lambda *_, box=place.bbox, **__: box
        axes[number] = place.add_subplot()
        if number and sharex:
            axes[number].sharex(axes[0])
        if number and sharey:
            axes[number].sharey(axes[0])
    return fig, axes
