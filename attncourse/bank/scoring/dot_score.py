"""The exercise ``dot_score``: chapter 5's scores under another name."""

from dataclasses import replace

from attncourse import scoring
from attncourse.bank.kqv import attention_scores

# Chapter 5's scores under the name that they have among others: asked and judged as there.
EXERCISE = replace(
    attention_scores.EXERCISE,
    target="scoring.dot_score",
    reference=scoring.dot_score,
    section="Chapter 6, “The dot product, and what it takes for granted”",
    minutes=5,
)
