"""The exercise ``mix``: tokens mixed with the weights in the rows of a matrix."""

import numpy as np

from attncourse import mixing
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.cases import CaseTable, Drawn, normal, once_more, row, standard
from attncourse.checks.writing.numpy_mistakes import over, result, swapped
from attncourse.checks.writing.recipes import made, mistake
from attncourse.checks.writing.softmaxes import Softmax

# --- cases ---------------------------------------------------------------------------------------


def random_weights(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return random weights whose rows sum to 1."""
    A = rng.uniform(0.1, 1, shape)
    return A / A.sum(-1, keepdims=True)


CASES = CaseTable(
    {"A": Drawn("... m n", random_weights), "X": "... n d"}, tensors=False, how=normal
)
ROWS = standard(CASES)
A_BY_HAND = np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.2, 0.2, 0.6]])
X_BY_HAND = np.array([[1, 0], [3, 4], [-1, 8]])
WHOLE_A = np.array([[1, 2, 0], [0, 1, 3], [4, 0, 1]])
BY_HAND = Case((A_BY_HAND, X_BY_HAND.astype(float)))
ONE_A = {"A": Drawn("m n", random_weights)}

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_mix(weights=lambda A: A, product=np.matmul, finish=result):
    """Return ``mix`` made of decisions."""
    return lambda A, X: finish(product(weights(A), X), X)


OF_MIXING = (
    mistake("""A is transposed
        Your output i uses column i of A, that is `A.T @ X`. The weights of output i stand in row i:
        U[i] is the sum over j of A[i, j] X[j], which is `A @ X`.""")
    .by(weights=swapped)
    .by(weights=lambda A: A.T),
    mistake("""every matrix with every other
        `np.dot` and `np.tensordot` of two batches pair every matrix of the one with every matrix of
        the other. `@` (np.matmul) takes the batch axes together, one matrix of A for one of X.
    """).by(product=lambda A, X: np.dot(A, X)),
    mistake("""the sum runs over the features
        `X @ A` and `A @ X.T` sum over the columns of X, its features. The sum runs over tokens, the
        columns of A and the rows of X: `A @ X`.""")
    .by(product=lambda A, X: X @ A)
    .by(product=lambda A, X: A @ swapped(X))
    .by(product=lambda A, X: A @ X.T)
    .by(product=lambda A, X: X @ swapped(A)),
    mistake("""entries multiplied one by one
        `*` multiplies entries at the same place. An output is a sum over tokens: the matrix
        product `@`.""").by(product=lambda A, X: A * X),
    mistake("""the weights are normalised first
        You divide the rows of A by their sums before mixing, or take their softmax. `mix` takes the
        weights as they are; whether they sum to 1 is for the one who made them to see to.""")
    .by(weights=lambda A: over(A, A.sum(-1, keepdims=True)))
    .by(weights=lambda A: A / A.sum(-1, keepdims=True))
    .by(weights=lambda A: Softmax()(A))
    .by(product=lambda A, X: A @ X / A.sum(-1, keepdims=True)),
    mistake("""not every token is added up
        Your loop overwrites the sum (`=` in place of `+=`), or leaves out the first or the last
        token. Output i adds up A[i, j] X[j] for every j.""")
    .by(product=lambda A, X: A[..., -1:] @ X[..., -1:, :])
    .by(product=lambda A, X: A[..., :-1] @ X[..., :-1, :])
    .by(product=lambda A, X: A[..., 1:] @ X[..., 1:, :]),
    numpy_mistakes.INPUT_ADDED,
    numpy_mistakes.ONE_VECTOR,
    numpy_mistakes.TRANSPOSED,
    numpy_mistakes.CUT.by(product=lambda A, X: (A @ X).astype(A.dtype)),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    mixing.mix,
    section="Chapter 2, “A row of weights for every token”",
    difficulty=1,
    minutes=5,
    criteria=(
        CASES.criterion("mixes tokens with the rows of A", 3).on(
            BY_HAND, row("m=7 n=7 d=5"), row("m=5 n=5 d=5")
        ),
        CASES.criterion("any number of outputs and tokens", 1).on(
            row("m=5 n=7 d=3", note="fewer outputs than tokens"),
            row("m=1 n=1 d=3", note="n = 1"),
            row("m=5 n=7 d=3", turned=True, note="not contiguous in memory"),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches,
            row("m=5 n=5 d=7", batch=(2, 3), arguments=ONE_A, note="two batch axes on X"),
        ),
        CASES.criterion("any weights and any size of number", 1).on(
            row("m=5 n=5 d=3", arguments={"A": Drawn("m n", normal)}, note="any A"),
            *ROWS.numbers,
            Case((A_BY_HAND, X_BY_HAND), note="integers in X"),
            Case((WHOLE_A, X_BY_HAND + 0.5), note="integers in A"),
            once_more(BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(compose_mix, *OF_MIXING),
)
