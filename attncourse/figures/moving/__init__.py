"""Figures that move: the reader changes a number, the page computes, by a few lines of JavaScript.

One figure is one module here and one script of the same name. `Moving` puts them together with
what they share: `moving.js` (softmax attention, checked input), `moving.css`, the first state.
"""

from attncourse.figures.moving.attention_stepper import attention_stepper
from attncourse.figures.moving.figure import Moving
from attncourse.figures.moving.mask_painter import mask_painter
from attncourse.figures.moving.mean_shift_circle import mean_shift_circle
from attncourse.figures.moving.playground import playground
from attncourse.figures.moving.width_slider import width_slider

__all__ = [
    "Moving",
    "attention_stepper",
    "mask_painter",
    "mean_shift_circle",
    "playground",
    "width_slider",
]
