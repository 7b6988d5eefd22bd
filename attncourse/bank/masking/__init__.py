"""The exercises of chapter 10, masking.

Masks hold truth values and compare exactly.
"""

from attncourse.bank.masking import (
    causal_mask,
    leak,
    masked_softmax,
    padding_mask,
    sliding_window_mask,
)

EXERCISES = (
    causal_mask.EXERCISE,
    padding_mask.EXERCISE,
    sliding_window_mask.EXERCISE,
    masked_softmax.EXERCISE,
    leak.EXERCISE,
)
