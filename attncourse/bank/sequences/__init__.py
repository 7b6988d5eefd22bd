"""The exercises of chapter 16, receptors and honest scores.

Splits and bootstraps are random, so they are judged by what every right one does: which sequences
stay together, which rows a statistic is given, between which of its values an interval lies. A
property that holds by chance is tried often enough: a right answer fails one with a chance below
1e-6.
"""

from attncourse.bank.sequences import (
    balanced_accuracy,
    bootstrap_interval,
    encode_cdr3,
    split_by_similarity,
)

EXERCISES = (
    encode_cdr3.EXERCISE,
    split_by_similarity.EXERCISE,
    balanced_accuracy.EXERCISE,
    bootstrap_interval.EXERCISE,
)
