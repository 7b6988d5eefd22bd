"""The exercises of chapter 17, attention with less memory and with less work.

What an answer makes on its way is watched in cases of their own, which return nothing else: a wrong
result is then told apart from a right one that was made of too large a tensor.
"""

from attncourse.bank.efficient import (
    kv_cache_bytes,
    linear_attention,
    online_softmax,
    tiled_attention,
    windowed_attention,
)

EXERCISES = (
    online_softmax.EXERCISE,
    tiled_attention.EXERCISE,
    windowed_attention.EXERCISE,
    linear_attention.EXERCISE,
    kv_cache_bytes.EXERCISE,
)
