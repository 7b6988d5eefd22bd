"""The exercises of chapter 18: the parts of a language model of today."""

from attncourse.bank.llama import llama_block, merge_pairs, pairs_from_halves, rms_norm, swi_glu

EXERCISES = (
    merge_pairs.EXERCISE,
    rms_norm.EXERCISE,
    swi_glu.EXERCISE,
    pairs_from_halves.EXERCISE,
    llama_block.EXERCISE,
)
