"""Chapter 2: fixed linear mixing, ``U = A X``.

``X`` holds one token vector per row, shape ``(n, d)``. ``A`` holds one row of weights per output,
shape ``(m, n)``: row i says how much of every token goes into output i.
"""

import numpy as np
from jaxtyping import Float

from attncourse.support.arrays import as_floats
from attncourse.support.shapes import Count, shaped


@shaped(n="one column of A for each row of X")
def mix(
    A: Float[np.ndarray, "*#batch m n"], X: Float[np.ndarray, "*#batch n d"]
) -> Float[np.ndarray, "*batch m d"]:
    """The mixed tokens ``U = A X``: row i of U is the sum over j of ``A[i, j] X[j]``.

    A: weights, ``(..., m, n)``. X: tokens, ``(..., n, d)``. Returns ``(..., m, d)``; batch axes
    broadcast. The rows of A need not sum to 1: that is asked of weights, not of this product.

    Raises ``ValueError`` where A has not one column per row of X.
    """
    return A @ X  # (..., m, n) @ (..., n, d) -> (..., m, d)


@shaped
def normalize_rows(A: Float[np.ndarray, "*batch m n"]) -> Float[np.ndarray, "*batch m n"]:
    """A with every row divided by its sum, so that it sums to 1; a row of zeros stays zero.

    Raises ``ValueError`` for a negative entry: no share of a mixture is negative.
    """
    if (A < 0).any():
        where = tuple(int(i) for i in np.argwhere(A < 0)[0])
        raise ValueError(f"normalize_rows: expected no negative entry, got {A[where]} at {where}")
    sums = A.sum(axis=-1, keepdims=True)  # (..., m, 1)
    return A / np.where(sums == 0, 1, sums)


def is_row_stochastic(A: Float[np.ndarray, "*batch m n"], atol: float = 1e-8) -> bool:
    """True if A holds mixing weights: no entry below ``-atol``, every row sum within ``atol`` of 1.

    The tolerance is absolute. NaN anywhere gives ``False``.
    """
    A = as_floats("A", A, "... m n", allow_nan=True)
    nonnegative = (-atol <= A).all()  # a comparison with NaN is False
    sums_to_one = (np.abs(A.sum(axis=-1) - 1) <= atol).all()
    return bool(nonnegative and sums_to_one)


@shaped
def uniform_weights(n: Count) -> Float[np.ndarray, "n n"]:
    """Weights of the plain average: every entry is 1/n, so every token becomes the mean."""
    return np.full((n, n), 1 / n)


@shaped
def causal_mean_weights(n: Count) -> Float[np.ndarray, "n n"]:
    """Weights of the running average: row i holds ``1/(i+1)`` for tokens 0 … i and 0 after them.

    A token sees itself and what came before, never what comes after.
    """
    return normalize_rows(np.tril(np.ones((n, n))))


@shaped
def window_weights(n: Count, width: Count) -> Float[np.ndarray, "n n"]:
    """Weights of the moving average over the ``width`` tokens centred on each token.

    ``width`` is odd and counts the tokens of an interior window, the token itself included. At the
    edges the window is cut off and its rows are renormalised. A window may be wider than the
    sequence. Away from the edges the matrix is Toeplitz: multiplying by it is a convolution.

    Raises ``ValueError`` for an even width, which has no centre.
    """
    if width % 2 == 0:
        raise ValueError(f"window_weights: expected an odd width, got {width}")
    positions = np.arange(n)
    distance = np.abs(positions[:, None] - positions[None, :])  # (n, n)
    return normalize_rows((distance <= width // 2).astype(float))
