"""Figures of the chapters: one style, shared plots, and listings of the package's own code."""

from attncourse.figures.attention_view import AttentionView, attention_view
from attncourse.figures.bars import Bars
from attncourse.figures.cells import hatch_masked, weight_cells
from attncourse.figures.code import show_source
from attncourse.figures.curves import Curves
from attncourse.figures.diagram import Diagram, beside
from attncourse.figures.listing import source
from attncourse.figures.matrix import Matrix
from attncourse.figures.panels import panels
from attncourse.figures.plots import curve_with_spread, label_lines, token_graph
from attncourse.figures.slider import Slider, slider
from attncourse.figures.style import (
    BLACK,
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    INK,
    KEY,
    ORANGE,
    PAPER,
    PURPLE,
    QUERY,
    SKY,
    VALUE,
    WEIGHT,
    YELLOW,
    set_style,
)
from attncourse.figures.tables import Table
from attncourse.figures.weights import head_grid, weight_matrix

__all__ = [
    "BLACK",
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "INK",
    "KEY",
    "ORANGE",
    "PAPER",
    "PURPLE",
    "QUERY",
    "SKY",
    "VALUE",
    "WEIGHT",
    "YELLOW",
    "AttentionView",
    "Bars",
    "Curves",
    "Diagram",
    "Matrix",
    "Slider",
    "Table",
    "attention_view",
    "beside",
    "curve_with_spread",
    "hatch_masked",
    "head_grid",
    "label_lines",
    "panels",
    "set_style",
    "show_source",
    "slider",
    "source",
    "token_graph",
    "weight_cells",
    "weight_matrix",
]
