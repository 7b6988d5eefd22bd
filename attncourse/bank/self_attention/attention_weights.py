"""The exercise ``attention_weights``: the softmax of every token's products with all tokens."""

from attncourse import self_attention as chapter
from attncourse.bank.self_attention.cases import criteria_of_tokens
from attncourse.bank.self_attention.mistakes import OF_SELF_ATTENTION, OVER_COLUMNS, weights_of
from attncourse.checks.exercise import composition, exercise
from attncourse.checks.writing import softmaxes as soft
from attncourse.checks.writing.numpy_mistakes import swapped
from attncourse.checks.writing.recipes import made, mistake

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_attention_weights(tokens=lambda X: X, finish=lambda A, X: A, **options):
    """Return ``attention_weights`` made of decisions."""
    weights = weights_of(**options)
    return lambda X: finish(weights(tokens(X)), X)


OF_THE_WEIGHTS_ALONE = (
    soft.LOGARITHM,
    soft.ROUNDED,
    soft.WHOLE_NUMBERS,
    mistake("""the columns sum to 1, not the rows
        You normalised over the queries, or wrote `.T`, the same where scores are symmetric. Row i
        belongs to token i as a query: `softmax(scores, axis=-1)`.""").by(OVER_COLUMNS),
    mistake("""features are compared, not tokens
        You compute `X.T @ X`, the dot products of columns: shape (d, d). The score of tokens i and
        j is the dot product of rows i and j: `X @ Xᵀ`, shape (n, n).
    """).by(compare=lambda X, Y: swapped(X) @ Y),
    mistake("""the tokens are mixed already
        You return `A @ X`, shape (n, d), which is the next exercise. The weights A alone are asked
        for, shape (n, n).""").by(finish=lambda A, X: A @ X),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    chapter.attention_weights,
    section="Chapter 4, “Every token asks”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=criteria_of_tokens("row i is the softmax of token i's scores"),
    mistakes=made(compose_attention_weights, *OF_SELF_ATTENTION, *OF_THE_WEIGHTS_ALONE),
)
