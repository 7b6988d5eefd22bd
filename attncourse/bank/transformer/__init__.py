"""The exercises of chapter 12, what a layer needs besides attention.

The blocks are judged on their own wiring: attention is chapter 9's, norms and feed-forward layers
are looked at through the weights that the check puts into them. d_head is a power of 4 in float64
cases, as in chapter 9. What dropout does in training is told by which numbers it adds, in more
than a thousand places: that one of them never comes up has a chance below 1e-30.
"""

from attncourse.bank.transformer import (
    decoder_block,
    encoder_block,
    feed_forward,
    layer_norm,
    noam_schedule,
)

EXERCISES = (
    layer_norm.EXERCISE,
    feed_forward.EXERCISE,
    encoder_block.EXERCISE,
    decoder_block.EXERCISE,
    noam_schedule.EXERCISE,
)
