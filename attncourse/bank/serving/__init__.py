"""The exercises of chapter 20: a padded batch, fewer bits, checked guesses, a gate for experts."""

from attncourse.bank.serving import pad_left, quantize, speculative_accept, top_k_gate

EXERCISES = (
    pad_left.EXERCISE,
    quantize.EXERCISE,
    speculative_accept.EXERCISE,
    top_k_gate.EXERCISE,
)
