"""The exercises of chapter 21: norms, a sink, absorbed keys, a memory, chosen keys, bytes."""

from attncourse.bank.today import (
    absorbed_scores,
    cache_bytes_of,
    delta_rule,
    normed_scores,
    select_keys,
    sink_softmax,
)

EXERCISES = (
    normed_scores.EXERCISE,
    sink_softmax.EXERCISE,
    absorbed_scores.EXERCISE,
    delta_rule.EXERCISE,
    select_keys.EXERCISE,
    cache_bytes_of.EXERCISE,
)
