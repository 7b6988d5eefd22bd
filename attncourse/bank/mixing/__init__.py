"""The exercises of chapter 2, fixed linear mixing."""

from attncourse.bank.mixing import (
    causal_mean_weights,
    is_row_stochastic,
    mix,
    normalize_rows,
    uniform_weights,
    window_weights,
)

EXERCISES = (
    mix.EXERCISE,
    normalize_rows.EXERCISE,
    is_row_stochastic.EXERCISE,
    uniform_weights.EXERCISE,
    causal_mean_weights.EXERCISE,
    window_weights.EXERCISE,
)
