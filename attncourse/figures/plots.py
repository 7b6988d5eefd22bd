"""The static plots that chapters share."""

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D

from attncourse.figures.maps import as_maps, as_tokens
from attncourse.figures.style import GREY, INK, KEY, PAPER, QUERY, VALUE, WEIGHT

READABLE = (QUERY, KEY, VALUE)  # as text too; the other colours are for lines
GAP = 4  # points between the end of a line and its label


def token_graph(
    weights, tokens: Sequence[str], *, threshold: float = 0.1, ax: plt.Axes | None = None
) -> plt.Axes:
    """Draw the weights ``(n, n)`` as a directed graph of tokens on a circle, clockwise.

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
            "arrowstyle": "-|>", "mutation_scale": 16, "color": WEIGHT, "linewidth": width,
            "shrinkA": 21, "shrinkB": 21, "connectionstyle": "arc3,rad=0.14",
        }  # fmt: skip
        ax.annotate("", xy=place[j], xytext=place[i], arrowprops=arrow).set_zorder(1)
    ax.scatter(*place.T, s=1700, color=PAPER, edgecolors=INK, zorder=2)
    for i, token in enumerate(tokens):
        x, y = place[i]
        ax.text(x, y, f"{token}\n{i}", ha="center", va="center", zorder=3)
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
    """Return a line through the runs' middle, with a band for their spread; the legend says which.

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


def label_lines(ax: plt.Axes | None = None, *, spacing: float = 1.15) -> plt.Axes:
    """Write each line's label at its right end, in place of a legend.

    Labels keep ``spacing`` times their height from each other: where ends lie too close, the labels
    move apart, and a thin line leads from the end to its label. Call it last, when the limits of
    the axes are as they will stay. Lines without a label, or with one that begins with ``_``, get
    none. Raises ``ValueError`` where there is no line to label.
    """
    ax = plt.gca() if ax is None else ax
    lines = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    if not lines:
        raise ValueError("label_lines: expected lines with labels, got none")
    ax.figure.canvas.figure.draw_without_rendering()  # lays the axes out
    size = plt.rcParams["font.size"]
    box, point = ax.get_window_extent(), ax.figure.dpi / 72
    ends = np.array([end(ax, line) for line in lines])  # (lines, 2), pixels
    last = ends[:, 0].max()
    ends[ends[:, 0] > last - 0.08 * box.width, 0] = last  # these stand in one column
    heights = ends[:, 1].copy()
    for column in np.unique(ends[:, 0]):
        mine = ends[:, 0] == column
        heights[mine] = spread_heights(ends[mine, 1], spacing * size * point)
    places = ax.transData.inverted().transform(ends)
    for line, place, moved in zip(lines, places, (heights - ends[:, 1]) / point, strict=True):
        leads, colour = abs(moved) > 0.3 * size, line.get_color()
        look = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "relpos": (0, 0.5)}
        ax.annotate(
            str(line.get_label()),
            place,
            xytext=(GAP + (2 * GAP if leads else 0), moved),
            textcoords="offset points",
            va="center",
            color=colour if colour in READABLE else INK,
            arrowprops=look | {"shrinkA": 1, "shrinkB": 1} if leads else None,
            annotation_clip=False,
        )
    return ax


def end(ax: plt.Axes, line: Line2D) -> np.ndarray:
    """Return the last point of a line within the limits of the axes' x, in pixels."""
    points = np.column_stack(line.get_data()).astype(float)
    low, high = sorted(ax.get_xlim())
    points = points[
        np.isfinite(points).all(axis=1) & (points[:, 0] >= low) & (points[:, 0] <= high)
    ]
    if not len(points):
        raise ValueError(f"label_lines: the line {line.get_label()!r} has no point in the axes")
    return ax.transData.transform(points[np.argmax(points[:, 0])])


def spread_heights(heights: np.ndarray, least: float) -> np.ndarray:
    """Return the heights, moved as little as leaves ``least`` between any two, in their order."""
    order = np.argsort(heights, kind="stable")
    groups: list[list[float]] = []  # of neighbours that touch: their wished places
    for place in heights[order]:
        groups.append([place])
        while len(groups) > 1 and top(groups[-2], least) + least > bottom(groups[-1], least):
            groups[-2:] = [groups[-2] + groups[-1]]
    moved = [bottom(group, least) + k * least for group in groups for k in range(len(group))]
    return np.array(moved)[np.argsort(order)]


def bottom(group: list[float], least: float) -> float:
    """Return where a group's lowest member stands: ``least`` apart, around their middle."""
    return float(np.mean(group)) - least * (len(group) - 1) / 2


def top(group: list[float], least: float) -> float:
    """Return the height of a group's highest label, where labels lie ``least`` apart."""
    return bottom(group, least) + least * (len(group) - 1)
