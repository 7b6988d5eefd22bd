"""The exercise ``causal_mean_weights``: the weights of the average of all tokens so far."""

import numpy as np

from attncourse import mixing
from attncourse.bank.mixing.shared import (
    ANY_NUMBER,
    ONE_TOKEN,
    ROWS_NOT_NORMALISED,
    SHARES_CUT_TO_WHOLE,
    divide_by_row_number,
    repeated_call_cases,
)
from attncourse.checks.exercise import Criterion, composition, exercise
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.numpy_mistakes import EACH_ROW, over, result
from attncourse.checks.writing.recipes import made, mistake

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_causal_mean_weights(seen=np.tri, along=EACH_ROW, divide=over, finish=result):
    """Return ``causal_mean_weights`` made of decisions: which tokens are seen, the divisor."""

    def causal_mean_weights(n):
        W = seen(n)
        return finish(divide(W, W.sum(**along)))

    return causal_mean_weights


def running_halves(n):
    """Return weights of which each new token takes a half."""
    W = np.eye(n)
    for i in range(1, n):
        W[i] = (W[i - 1] + W[i]) / 2
    return W


OF_RUNNING = (
    numpy_mistakes.COLUMNS.called("the columns sum to 1"),
    numpy_mistakes.LOST_AXIS.called("what divides lies along the wrong axis").said(
        "What you divide by, sums or counts, is a row of n numbers, and dividing by it lines that "
        "of row i up with column i. It has to stand in a column, one beside each row: "
        "`keepdims=True`, or `[:, None]`."
    ),
    numpy_mistakes.TRANSPOSED.said(
        "Your column i holds the weights of output i. They belong in row i."
    ),
    ROWS_NOT_NORMALISED,
    mistake("""a token does not see itself
        Row i averages tokens 0 … i, token i among them. Yours stops before it, which leaves row 0
        empty, or asks for a case of its own.""")
    .by(seen=lambda n: np.tri(n, k=-1))
    .by(seen=lambda n: np.tri(n, k=-2))
    .by(seen=lambda n: np.maximum(np.tri(n, k=-1), np.eye(n, 1) @ np.eye(1, n)))
    .by(seen=lambda n: np.tri(n, k=-1), divide=np.divide)
    .by(**divide_by_row_number(lambda i: i + 1), seen=lambda n: np.tri(n, k=-1)),
    mistake("""the future counts too
        Row i averages tokens 0 … i and stops there. Yours includes token i + 1, or all n: `np.tril`
        with k = 0 keeps the diagonal and nothing above it.""")
    .by(seen=lambda n: np.tri(n, k=1))
    .by(**divide_by_row_number(lambda i: i + 1), seen=lambda n: np.ones((n, n)))
    .by_any(lambda k: {"seen": lambda n: np.tri(n, k=k)}, (2, 3, 99)),
    mistake("""a softmax of zeros and ones
        You take the softmax of a matrix of 0 and 1, and exp(0) = 1: later tokens get a weight too.
        Divide the rows of the lower triangle by their sums, or put −∞ in place of 0.""")
    .by(seen=lambda n: np.exp(np.tri(n)))
    .by(seen=lambda n: np.exp(np.tri(n) / np.arange(1, n + 1))),
    SHARES_CUT_TO_WHOLE,
    mistake("""the future, not the past
        Your matrix is upper triangular: token i averages what comes after it. Row i may hold
        weights in columns 0 … i only, the lower triangle.""").by(seen=lambda n: np.tri(n).T),
    mistake("""every token keeps to itself
        You return the identity, which averages nothing. Row i averages tokens 0 … i.
    """).by(seen=lambda n: np.eye(n)),
    mistake("""a row stays empty
        Your loop begins with row 1 or ends before the last. Row 0 is the average of token 0 alone,
        a 1, and the last row averages all n tokens.""")
    .by(seen=lambda n: np.tri(n) * (np.arange(n) > 0)[:, None])
    .by(seen=lambda n: np.tri(n) * (np.arange(n) < n - 1)[:, None]),
    mistake("""divided by another number than i + 1
        Rows count from 0, so row i averages i + 1 tokens: divide it by `i + 1`, not by n or i.""")
    .by(divide_by_row_number(lambda i: i))
    # Not in the family below: its members are no part of a pair unless they fit by themselves.
    .by(divide_by_row_number(lambda i: 0 * i + len(i)))
    .by_any(divide_by_row_number, (lambda i: np.maximum(i, 1), lambda i: i + 2)),
    mistake("""the newest token counts half
        You average the mean so far with the new token, and older tokens count less and less. All i
        + 1 tokens have the same weight.""").by(seen=running_halves),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    mixing.causal_mean_weights,
    section="Chapter 2, “Four matrices”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=(
        Criterion("row i averages tokens 0 … i", 2).on(repeated_call_cases),
        ANY_NUMBER,
        ONE_TOKEN,
    ),
    mistakes=made(compose_causal_mean_weights, *OF_RUNNING),
)
