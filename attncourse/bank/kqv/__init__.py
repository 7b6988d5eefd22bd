"""The exercises of chapter 5, queries, keys and values.

In float64 cases d_k is a power of 4, so that 1/√d_k is exact in every precision: a scale that was
computed in float32 is no mistake.
"""

from attncourse.bank.kqv import (
    attention_head,
    attention_scores,
    project,
    scaled_dot_product_attention,
)

EXERCISES = (
    project.EXERCISE,
    attention_scores.EXERCISE,
    scaled_dot_product_attention.EXERCISE,
    attention_head.EXERCISE,
)
