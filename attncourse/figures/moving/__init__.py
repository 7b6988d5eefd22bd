"""Figures that move: the reader changes a number, the page computes, by a few lines of JavaScript.

One figure is one module here and one script of the same name. `Moving` puts them together with
what they share: `moving.js` (softmax attention, checked input), `moving.css`, the first state.
"""

from attncourse.figures.moving.attention_stepper import attention_stepper
from attncourse.figures.moving.block_parts import block_parts
from attncourse.figures.moving.block_today import block_today
from attncourse.figures.moving.digit_painter import DigitPainter
from attncourse.figures.moving.family_split import family_split
from attncourse.figures.moving.figure import Moving
from attncourse.figures.moving.four_bits import four_bits
from attncourse.figures.moving.heads_off import heads_off
from attncourse.figures.moving.induction_steps import induction_steps
from attncourse.figures.moving.kept_answers import kept_answers
    "line_writer",
