"""The exercises of chapter 9, several heads.

In float64 cases d_head is a power of 4, so that 1/√d_head is exact in every precision. Batches of
as many sequences as heads are among the cases: there a batch axis that meets the axis of the heads
gives wrong numbers and no error.
"""

from attncourse.bank.multihead import (
    merge_heads,
    multi_head_attention,
    naive_to_batched,
    split_heads,
)

EXERCISES = (
    split_heads.EXERCISE,
    merge_heads.EXERCISE,
    multi_head_attention.EXERCISE,
    naive_to_batched.EXERCISE,
)
