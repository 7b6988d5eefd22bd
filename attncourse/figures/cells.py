"""Matrices as squares of ink that stay shapes in an SVG: weights, and what a mask forbids."""

from typing import Literal

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import Normalize, to_rgb
from matplotlib.image import AxesImage
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from attncourse.figures.style import DEEP, FIXED, GREY, LEVELS, PAPER, WEIGHT

# Up to here a number is read best as on paper, and up to there in black on any page.
Aspect = Literal["auto", "equal"]
LIGHT, HALF = 14 / LEVELS, 19 / LEVELS


class Cells(AxesImage):
    """An image of weights, drawn as ink whose opacity is the weight.

    As a picture of pixels it would keep the colours of a light page.
    """

    def draw(self, renderer: RendererBase) -> None:
        """Draw all cells of one shade as one path, as Matplotlib asks of an artist."""
        if not self.get_visible():
            return
        renderer.open_group("cells", gid=self.get_gid())
        shades = self.shades()
        for level in np.unique(shades[shades > 0]):
            gc = renderer.new_gc()
            # pyrefly: ignore [missing-attribute]  matplotlib's stubs leave out what is private
            self._set_gc_clip(gc)
            gc.set_linewidth(0)
            gc.set_antialiased(False)  # no hairlines between neighbours
            ink = (*to_rgb(WEIGHT), float(level))
            renderer.draw_path(gc, cells_outline(shades == level), self.axes.transData, ink)
            gc.restore()
        renderer.close_group("cells")

    def shades(self) -> np.ndarray:
        """Return the opacity of each cell, ``(m, n)``, in steps."""
        weights = self.get_array()
        assert weights is not None, "weight_cells sets them"
        share = np.ma.filled(self.norm(weights), 0.0)
        return np.rint(np.clip(share, 0, 1) * LEVELS) / LEVELS


def weight_cells(
    ax: Axes, weights: np.ndarray, top: float = 1.0, aspect: Literal["auto", "equal"] = "equal"
) -> Cells:
    """Draw weights ``(m, n)``, from 0 to ``top``, as `Axes.imshow` would; returns the image."""
    image = Cells(ax, cmap="weights", norm=Normalize(0, top))
    image.set_data(weights)
    image.set_extent(image.get_extent())
    image.set_clip_path(ax.patch)
    ax.add_image(image)
    ax.set_aspect(aspect)
    return image


def number_ink(shade: float) -> str:
    """Return the colour in which a number is read on a cell of this opacity, from 0 to 1."""
    return DEEP if shade <= LIGHT else FIXED if shade <= HALF else PAPER


def cells_outline(where: np.ndarray) -> Path:
    """Return one path around every true cell, ``(m, n)``; neighbours in a row are joined."""
    edges = np.diff(np.pad(where.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    (rows, starts), (_, ends) = np.nonzero(edges == 1), np.nonzero(edges == -1)
    left, right, top, bottom = starts - 0.5, ends - 0.5, rows - 0.5, rows + 0.5
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    vertices = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)  # (runs, 5, 2)
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    return Path(vertices.reshape(-1, 2), np.tile(codes, len(rows)).astype(Path.code_type))


def hatch_masked(mask, ax: Axes | None = None) -> Axes:
    """Hatch the cells ``(m, n)`` of a matrix in which ``mask`` is false: those that may not count.

    Raises ``ValueError`` where the mask is no matrix of true and false.
    """
    mask = np.asarray(mask)
    if mask.ndim != 2 or mask.dtype != bool:
        raise ValueError(f"mask: expected bool of shape (m, n), got {mask.dtype} of {mask.shape}")
    ax = plt.gca() if ax is None else ax
    if not mask.all():
        look = {"facecolor": "none", "edgecolor": GREY, "linewidth": 0, "hatch": "////"}
        ax.add_patch(PathPatch(cells_outline(~mask), **look))
    return ax
