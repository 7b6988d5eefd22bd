"""What the chapters show with: one style, the plots they share, and their own source code."""

from attncourse.figures.bars import Bars
from attncourse.figures.code import show_source, source
from attncourse.figures.curves import Curves
from attncourse.figures.matrix import Matrix
from attncourse.figures.plots import weight_matrix
from attncourse.figures.slider import Slider, slider
from attncourse.figures.style import (
    BLACK,
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    YELLOW,
    set_style,
)

__all__ = [
    "BLACK",
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "SKY",
    "YELLOW",
    "Bars",
    "Curves",
    "Matrix",
    "Slider",
    "set_style",
    "show_source",
    "slider",
    "source",
    "weight_matrix",
]
