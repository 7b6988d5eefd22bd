"""Chapter 3: soft lookup, a dictionary that returns a blend.

A dictionary has n entries, each a key and a value: ``keys`` has shape ``(n, d)``, ``values`` has
shape ``(n,)`` or ``(n, d_v)``. A query of shape ``(d,)`` is compared with every key; softmax turns
the n scores into weights that sum to 1; the answer is the weighted average of the values.
"""

import numpy as np
from jaxtyping import Float

from attncourse.mixing import mix
from attncourse.support.arrays import require_finite
from attncourse.support.shapes import Positive, shaped


@shaped
def softmax(
    x: Float[np.ndarray, "*batch n"], axis: int = -1, temperature: Positive = 1.0
) -> Float[np.ndarray, "*batch n"]:
    """Positive weights that sum to 1 along ``axis``: ``exp(x_i / T) / Σ_j exp(x_j / T)``.

    x: scores, any shape with at least one axis. Returns the same shape and dtype. Below T = 1 the
    largest score gains, above it the weights even out. The largest score of each slice is
    subtracted first: that changes no weight, and no exponent is then above 0.

    Raises ``ValueError`` for a score that is not finite, a temperature that is not above 0, or an
    axis that x does not have.
    """
    require_finite(x=x)
    if not isinstance(axis, int | np.integer) or not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis: expected an int, -{x.ndim} to {x.ndim - 1}, got {axis!r}")
    with np.errstate(over="ignore"):  # a gap that overflows is -inf, and its weight 0
        gaps = x - x.max(axis=axis, keepdims=True)  # at most 0
        T = np.float64(temperature)  # which may be 0 in x's own dtype
        weights = np.exp(gaps / T)
    weights = weights / weights.sum(axis=axis, keepdims=True)
    return weights.astype(x.dtype)


@shaped(d="queries as long as the keys", n="one value for each key")
def soft_lookup(
    query: Float[np.ndarray, "*#batch m d"] | Float[np.ndarray, "d"],
    keys: Float[np.ndarray, "*#batch n d"],
    values: Float[np.ndarray, "*#batch n d_v"] | Float[np.ndarray, "n"],
    temperature: Positive = 1.0,
) -> Float[np.ndarray, "*batch m d_v"]:
    """The values, averaged with weights ``softmax(q · k_j / T)``: one average for each query.

    query: ``(..., m, d)``, or ``(d,)`` for a single one. keys: ``(..., n, d)``. values:
    ``(..., n, d_v)``, or ``(n,)`` where each value is a number. Returns ``(..., m, d_v)``, without
    the axis m for a single query and without the axis d_v for values that are numbers. Batch
    axes broadcast.

    Raises ``ValueError`` where a query is not as long as a key, or where the values are not as
    many as the keys.
    """
    require_finite(query=query, keys=keys, values=values)
    Q = query if query.ndim > 1 else query[None, :]  # (..., m, d)
    V = values if values.ndim > 1 else values[:, None]  # (..., n, d_v)
    A = softmax(Q @ keys.mT, temperature=temperature)  # (..., m, n)
    U = mix(A, V)  # (..., m, n) @ (..., n, d_v) -> (..., m, d_v)
    U = U if query.ndim > 1 else U[..., 0, :]
    return U if values.ndim > 1 else U[..., 0]


@shaped(n="one y for each x")
def kernel_regression(
    x_query: Float[np.ndarray, "*#batch m"],
    x: Float[np.ndarray, "*#batch n"],
    y: Float[np.ndarray, "*#batch n"],
    bandwidth: Positive,
) -> Float[np.ndarray, "*batch m"]:
    """The curve through noisy points ``(x_j, y_j)``, at ``x_query``: an average of nearby y.

    The weights are ``softmax(-(x_query_i - x_j)² / (2 h²))`` over j, h the bandwidth, in the unit
    of x. Far from every point nearly all go to the nearest. x_query: ``(..., m)``. x and y:
    ``(..., n)``. Returns ``(..., m)``. Batch axes broadcast.

    Raises ``ValueError`` for a bandwidth that is not above 0 or where x and y differ in length.
    Nadaraya (1964); Watson (1964).
    """
    require_finite(x_query=x_query, x=x, y=y)
    distance = x_query[..., :, None] - x[..., None, :]  # (..., m, n)
    scores = -(distance**2) / 2  # (..., m, n)
    A = softmax(scores, temperature=bandwidth * bandwidth)
    return mix(A, y[..., :, None])[..., 0]  # (..., m, 1) -> (..., m)
