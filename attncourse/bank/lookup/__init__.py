"""The exercises of chapter 3, soft lookup."""

from attncourse.bank.lookup import kernel_regression, soft_lookup, softmax

EXERCISES = (
    softmax.EXERCISE,
    soft_lookup.EXERCISE,
    kernel_regression.EXERCISE,
)
