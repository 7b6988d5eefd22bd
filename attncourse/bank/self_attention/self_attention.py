"""The exercise ``self_attention``: tokens mixed by their own weights."""

from attncourse import self_attention as chapter
from attncourse.bank.self_attention.cases import criteria_of_tokens
from attncourse.bank.self_attention.mistakes import OF_SELF_ATTENTION, OVER_COLUMNS, weights_of
from attncourse.checks.exercise import composition, exercise
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing import softmaxes as soft
from attncourse.checks.writing.numpy_mistakes import dots, result, swapped
from attncourse.checks.writing.recipes import made, mistake

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_self_attention(tokens=lambda X: X, mix=lambda A, X: A @ X, finish=result, **options):
    """Return ``self_attention`` made of decisions."""
    weights = weights_of(**options)

    def answer(X):
        x = tokens(X)
        A = weights(x)
        return finish(mix(A, x), X, A)

    return answer


def mix_in_place(anew: bool):
    """Return a ``mix`` that writes each output over its token; ``anew``: with new weights each."""

    def mix(A, X):
        U = X.astype(float)
        for i in range(X.shape[-2]):
            A = soft.Softmax()(dots(U, U)) if anew else A
            U[..., i, :] = (A[..., i, :, None] * U).sum(-2)
        return U

    return mix


OF_THE_MIXTURE = (
    mistake("""column i mixes output i, not row i
        Your softmax runs over columns, or you return `Aᵀ X`, the same where scores are symmetric.
        Softmax over the last axis, then `A @ X`: row i is what token i hears.""").by(OVER_COLUMNS),
    mistake("""stops at the weights
        You return the weights A, shape (n, n). One product is missing: `A @ X`, the tokens mixed by
        them, shape (n, d).""").by(finish=lambda U, X, A: A),
    mistake("""the weights come back too
        You return the output and the weights. Return one thing, the output.
    """).by(finish=lambda U, X, A: (U, A)),
    mistake("""mixed twice
        You mix the tokens, and what comes out once more. One product `A @ X` is all.
    """).by(mix=lambda A, X: A @ (A @ X)),
    mistake("""the softmax comes after mixing
        You mix first, then take a softmax of the result or divide it by its sum. It is the weights
        that sum to 1: softmax of the scores, then the product with X.""")
    .by(mix=lambda A, X: soft.Softmax()(dots(X, X) @ X))
    .by(finish=lambda U, X, A: U / U.sum(-1, keepdims=True)),
    mistake("""features listen to each other, not tokens
        You compute `X @ softmax(X.T @ X)`: d × d weights that mix columns of X. Tokens are the
        rows: `softmax(X @ Xᵀ) @ X`, with n × n weights.
    """).by(compare=lambda X, Y: swapped(X) @ Y, mix=lambda A, X: X @ A),
    mistake("""tokens are overwritten while they are still needed
        You write an output over its token, and the next tokens listen to it. All outputs are
        mixtures of the tokens that came in: write them into an array of their own.""")
    .by(mix=mix_in_place(anew=False))
    .by(mix=mix_in_place(anew=True)),
    numpy_mistakes.INPUT_ADDED,
    numpy_mistakes.ONE_VECTOR.by(finish=lambda U, X, A: U.mean(-2)).said(
        "You add all rows up into one, or average them. Every token has a row of its own: keep the "
        "token axis."
    ),
    numpy_mistakes.AVERAGED_AGAIN,
    numpy_mistakes.CUT,
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    chapter.self_attention,
    section="Chapter 4, “Every token asks”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=criteria_of_tokens("mixes the tokens by their own weights"),
    mistakes=made(compose_self_attention, *OF_SELF_ATTENTION, *OF_THE_MIXTURE),
)
