"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import PERCENT
from attncourse.checks.variants.variant import Variant, rewordings

IN_PERCENT = Adapter(result=PERCENT)
VARIANTS = (
    Variant(
        "percent",
        "Weights are **percentages** here: those of one output sum to 100, where in the book they "
        "sum to 1.",
        "weights are percentages here",
        "Your answer has weights that sum to 1, as the book and its published answers have. In "
        "this assignment they are percentages: half of a token is 50, and a row sums to 100.",
        {
            "mix": Adapter({"A": PERCENT}),
            "normalize_rows": IN_PERCENT,
            "uniform_weights": IN_PERCENT,
            "causal_mean_weights": IN_PERCENT,
            "window_weights": IN_PERCENT,
        },
        rewordings(r"""
            U_i = \sum_j A_{ij} X_j . → U_i = \sum_j \frac{A_{ij}}{100} X_j .
            whether its rows sum to 1 is not → whether its rows sum to 100 is not
            mix(np.array([[0.5, 0.5], [0.0, 1.0]]) → mix(np.array([[50, 50], [0, 100]])
            those of one output sum to 1. Write → those of one output sum to 100. Write
            by dividing every⏎row by its sum → by dividing every⏎row by its sum, times 100
            every row sums to 1, except → every row sums to 100, except
            Expect `[[0.25 0.75] [0. 0.]]` → Expect `[[25. 75.] [0. 0.]]`
            Expect a 4 × 4 matrix of 0.25 → Expect a 4 × 4 matrix of 25
            Expect rows `[1, 0, 0]`, `[1/2, 1/2, 0]`, `[1/3, 1/3, 1/3]`
            → Expect rows `[100, 0, 0]`, `[50, 50, 0]`, and three times 33.3
            so that those rows sum to 1 too → so that those rows sum to 100 too
            Expect thirds in the middle rows and halves → Expect 33.3 in the middle rows and 50
            Each row still has to sum to 1 → Each row still has to sum to 100
            row sums to 1 → row sums to 100
            rows sum to 1 → rows sum to 100
            columns sum to 1 → columns sum to 100
            all of them together sum to 1. → all of them together sum to 100.
            whether they sum to 1 is → whether they sum to 100 is
            U[i] is the sum over j of A[i, j] X[j], which is `A @ X`
            → U[i] is the sum over j of A[i, j] X[j] / 100, which is `A @ X / 100`
            `A.T @ X` → `A.T @ X / 100`
            You return `X + A @ X` → You return `X + A @ X / 100`
            the columns of A and the rows of X: `A @ X`
            → the columns of A and the rows of X: `A @ X / 100`
            has a budget of 1 of its own → has a budget of 100 of its own
            share a budget of 1 → share a budget of 100
            every weight is 1/n → every weight is 100/n
            each gets 1/n → each gets 100/n
            or do not follow 1/n → or do not follow 100/n
            Your entries are 1/n² → Your entries are 100/n²
            all n entries of a row are 1/n → all n entries of a row are 100/n
            Your entries are 1, one → Your entries are 100, one
            near an end sum to less than 1 → near an end sum to less than 100
            average of token 0 alone, a 1, → average of token 0 alone, a 100,
            Shares of a whole sum to 1 → Shares of a whole sum to 100
        """),
    ),
)
