"""Figures that move: the reader changes a number, the page computes, by a few lines of JavaScript.

One figure is one module here and one script of the same name. `Moving` puts them together with
what they share: `moving.js` (softmax attention, checked input), `moving.css`, the first state.
"""

from attncourse.figures.moving.attention_stepper import attention_stepper
from attncourse.figures.moving.block_parts import block_parts
from attncourse.figures.moving.block_today import block_today
from attncourse.figures.moving.cache_pages import cache_pages
from attncourse.figures.moving.digit_painter import DigitPainter
from attncourse.figures.moving.family_split import family_split
from attncourse.figures.moving.figure import Moving
from attncourse.figures.moving.four_bits import four_bits
from attncourse.figures.moving.head_explorer import head_explorer
from attncourse.figures.moving.heads_off import heads_off
from attncourse.figures.moving.induction_steps import induction_steps
from attncourse.figures.moving.kept_answers import kept_answers
from attncourse.figures.moving.length_slider import length_slider
from attncourse.figures.moving.line_writer import line_writer
from attncourse.figures.moving.live_model import LiveModel
from attncourse.figures.moving.loop_reader import LoopReader
from attncourse.figures.moving.mask_painter import mask_painter
from attncourse.figures.moving.mean_shift_circle import mean_shift_circle
from attncourse.figures.moving.other_sentence import other_sentence
from attncourse.figures.moving.playground import playground
from attncourse.figures.moving.position_dial import position_dial
from attncourse.figures.moving.real_model import real_model
from attncourse.figures.moving.sampling import sampling
from attncourse.figures.moving.soft_prices import soft_prices
from attncourse.figures.moving.softmax_in_blocks import softmax_in_blocks
from attncourse.figures.moving.story_heads import StoryHeads
from attncourse.figures.moving.three_weights import three_weights
from attncourse.figures.moving.two_means import two_means
from attncourse.figures.moving.two_models import two_models
from attncourse.figures.moving.width_slider import width_slider
from attncourse.figures.moving.word_pieces import word_pieces
from attncourse.figures.moving.worked_row import worked_row

__all__ = [
    "DigitPainter",
    "LiveModel",
    "LoopReader",
    "Moving",
    "StoryHeads",
    "attention_stepper",
    "block_parts",
    "block_today",
    "cache_pages",
    "family_split",
    "four_bits",
    "head_explorer",
    "heads_off",
    "induction_steps",
    "kept_answers",
    "length_slider",
    "line_writer",
    "mask_painter",
    "mean_shift_circle",
    "other_sentence",
    "playground",
    "position_dial",
    "real_model",
    "sampling",
    "soft_prices",
    "softmax_in_blocks",
    "three_weights",
    "two_means",
    "two_models",
    "width_slider",
    "word_pieces",
    "worked_row",
]
