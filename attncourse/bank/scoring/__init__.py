"""The exercises of chapter 6, ways to compare a query with a key."""

from attncourse.bank.scoring import additive_score, attend, bilinear_score, dot_score

EXERCISES = (
    dot_score.EXERCISE,
    bilinear_score.EXERCISE,
    additive_score.EXERCISE,
    attend.EXERCISE,
)
