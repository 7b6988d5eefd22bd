"""The exercises of chapter 1, from text to vectors."""

from attncourse.bank.tokens import cosine_similarity, embed, one_hot, tokenize

EXERCISES = (
    tokenize.EXERCISE,
    one_hot.EXERCISE,
    embed.EXERCISE,
    cosine_similarity.EXERCISE,
)
