"""The exercises of chapter 7, scaling."""

from attncourse.bank.scaling import (
    attention_entropy,
    scale_scores,
    score_variance,
    softmax_jacobian,
)

EXERCISES = (
    score_variance.EXERCISE,
    scale_scores.EXERCISE,
    attention_entropy.EXERCISE,
    softmax_jacobian.EXERCISE,
)
