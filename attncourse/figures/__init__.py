"""What the chapters show with: one style, the plots they share, and their own source code."""

from attncourse.figures.code import show_source, source
from attncourse.figures.plots import weight_matrix
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
    "set_style",
    "show_source",
    "source",
    "weight_matrix",
]
