"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import COLUMNS
from attncourse.checks.variants.variant import Variant, rewordings

DROPPED_MISTAKE = "features listen to each other, not tokens"
VARIANTS = (
    Variant(
        "columns",
        "The tokens are **columns** of `X` here, shape `(d, n)` or `(..., d, n)`, where in the "
        "book they are rows. The weights are as in the book: row i of `A` belongs to token i.",
        "tokens are columns here",
        "Your answer takes a token for a row of X, as the book and its published answers do. In "
        "this assignment every column of X, shape (d, n), is a token: the scores are `X.T @ X`, "
        "with the last two axes exchanged for a batch.",
        {
            "attention_weights": Adapter(
                {"X": COLUMNS}, drops=("features are compared, not tokens",)
            ),
            "self_attention": Adapter({"X": COLUMNS}, COLUMNS, drops=(DROPPED_MISTAKE,)),
        },
        rewordings(r"""
            $$S = X X^\top, \qquad A_{ij} → $$S = X^\top X, \qquad A_{ij}
            | `X` | `(..., n, d)` | one row per token |
            → | `X` | `(..., d, n)` | one column per token |
            | returns | `(..., n, d)` | one new vector → | returns | `(..., d, n)` | one new vector
            A token is a row of `X`, shape `(n, d)`. Row i
            → In exercises 1 and 2 a token is a column of `X`, shape `(d, n)`, in exercise 3 a row.
                Row i
            Two tokens with the scores → Two tokens, (1, 0) and (2, 1), with the scores
            attention_weights(np.array([[1.0, 0.0], [2.0, 1.0]]))
            → attention_weights(np.array([[1.0, 2.0], [0.0, 1.0]]))
            self_attention(np.array([[1.0, 0.0], [2.0, 1.0]]))
            → self_attention(np.array([[1.0, 2.0], [0.0, 1.0]]))
            Expect `[[1.731 0.731] [1.953 0.953]]` → Expect `[[1.731 1.953] [0.731 0.953]]`
            $$U_i = \sum_j A_{ij} X_j , \qquad A = \operatorname{softmax}(X X^\top) .$$
            → $$U_i = \sum_j A_{ij} X_j , \qquad A = \operatorname{softmax}(X^\top X) ,$$⏎⏎where
                $X_j$ is column j of X, and $U_i$ column i of what is returned.
            dot product of the rows as they are → dot product of the columns as they are
            `A @ X`, the tokens mixed by them, shape (n, d)
            → `X @ A.T`, the tokens mixed by them, shape (d, n)
            or you return `Aᵀ X`, the same → or you return `X @ A`, the same
            then `A @ X`: row i is what token i hears
            → then `X @ A.T`: column i is what token i hears
            dot products between rows of X → dot products between columns of X
            `X @ np.swapaxes(X, -1, -2)`: for one sequence simply `X @ X.T`
            → `np.swapaxes(X, -1, -2) @ X`: for one sequence simply `X.T @ X`
            You return `A @ X`, shape (n, d), which → You return `X @ A.T`, shape (d, n), which
            You return `X + A @ X` → You return `X + X @ A.T`
            Every token has a row of its own → Every token has a column of its own
            You add all rows up into one → You add all columns up into one
            `A` is (n, n) and `X` is (n, d). There is one product of the two, in one order, that has
                shape (n, d)
            → `A` is (n, n) and `X` is (d, n). `A` or its transpose, on the right of `X`: one of
                these has shape (d, n)
        """),
    ),
)
