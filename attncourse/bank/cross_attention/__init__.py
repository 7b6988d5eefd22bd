"""The exercises of chapter 8, cross-attention and attention pooling.

In float64 cases d_k, and the width of what is pooled, is a power of 4, so that its root is exact in
every precision: a scale that was computed in float32 is no mistake.
"""

from attncourse.bank.cross_attention import attention_pooling, cross_attention

EXERCISES = (
    cross_attention.EXERCISE,
    attention_pooling.EXERCISE,
)
