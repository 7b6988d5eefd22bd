"""The exercises of chapter 4, self-attention without parameters."""

from attncourse.bank.self_attention import (
    attention_weights,
    is_permutation_equivariant,
    self_attention,
)

EXERCISES = (
    attention_weights.EXERCISE,
    self_attention.EXERCISE,
    is_permutation_equivariant.EXERCISE,
)
