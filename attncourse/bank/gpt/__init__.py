"""The exercises of chapter 13, a language model.

Answers that draw tokens are judged by cases in which one token alone can come, and by counts. There
every right share is a whole number of sixths, and 1536 draws are rounded to sixths. By the
inequality of Hoeffding a share is off by a twelfth with a chance below
2·exp(−2 · 1536 / 12²) = 1.1e-9, so a right answer fails one of the 60 shares of a check with a
chance below 1e-7.
"""

from attncourse.bank.gpt import (
    attend_with_cache,
    filter_logits,
    generate,
    next_token_loss,
    perplexity,
    sample_token,
)

EXERCISES = (
    next_token_loss.EXERCISE,
    filter_logits.EXERCISE,
    sample_token.EXERCISE,
    generate.EXERCISE,
    perplexity.EXERCISE,
    attend_with_cache.EXERCISE,
)
