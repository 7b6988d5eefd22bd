"""Chapter 4: self-attention without parameters, ``A = softmax(X Xᵀ)``, ``U = A X``.

``X`` holds one token vector per row, shape ``(n, d)``. Every token is a query, a key and a value
at once: row i of ``A``, shape ``(n, n)``, says how much token i listens to every token.
"""

from collections.abc import Callable, Sequence

import networkx as nx
import numpy as np
from jaxtyping import Float

from attncourse.lookup import softmax
from attncourse.mixing import mix
from attncourse.support.arrays import require_finite
from attncourse.support.shapes import Positive, shaped


@shaped
def attention_weights(X: Float[np.ndarray, "*batch n d"]) -> Float[np.ndarray, "*batch n n"]:
    """The weights ``A = softmax(X Xᵀ)``: row i belongs to token i as a query and sums to 1.

    X: tokens, ``(..., n, d)``. Returns ``(..., n, n)``. The scores are plain dot products,
    divided by nothing. They are symmetric, the weights in general are not.

    The "Gaussian" pairwise function of Wang et al. (2018), "Non-local Neural Networks", eq. 2.
    """
    require_finite(X=X)
    scores = X @ X.mT  # (..., n, d) @ (..., d, n) -> (..., n, n)
    return softmax(scores, axis=-1)


def self_attention(X: Float[np.ndarray, "*batch n d"]) -> Float[np.ndarray, "*batch n d"]:
    """The tokens after listening to each other, ``U = softmax(X Xᵀ) X``.

    X: tokens, ``(..., n, d)``. Returns the same shape: row i is a mixture of all tokens, by the
    weights that token i gives them.
    """
    return mix(attention_weights(X), X)  # (..., n, n) @ (..., n, d)


@shaped
def is_permutation_equivariant(
    f: Callable[[np.ndarray], np.ndarray],
    X: Float[np.ndarray, "*batch n d"],
    rng: np.random.Generator | None = None,
    atol: float = 1e-8,
) -> bool:
    """True if ``f`` of the shuffled tokens is the shuffled ``f`` of the tokens: f(P X) = P f(X).

    X: tokens, ``(..., n, d)``; ``f`` maps them to ``(..., n, d')``, one row per token, and
    anything else is not equivariant. Tries 8 random permutations, never the identity, which every
    function would pass. The tolerance ``atol`` is absolute: for numbers far above 1, whose rounding
    exceeds it, raise it. True is evidence, not a proof.

    Raises ``ValueError`` for a single token, which has no order to change.
    """
    require_finite(X=X)
    n = X.shape[-2]
    if n < 2:
        raise ValueError(
            f"is_permutation_equivariant: expected at least two tokens, got X of shape {X.shape}"
        )
    if not callable(f):
        raise ValueError(f"f: expected a function, got {f!r}")
    if not (rng is None or isinstance(rng, np.random.Generator)):
        raise ValueError(f"rng: expected a numpy.random.Generator or None, got {rng!r}")
    rng = rng or np.random.default_rng()
    U = np.array(f(X.copy()))  # (..., n, d')
    if U.shape[:-1] != X.shape[:-1]:
        return False
    for _ in range(8):
        order = random_order(n, rng)
        moved = f(X[..., order, :])
        if not np.allclose(moved, U[..., order, :], rtol=0, atol=atol):
            return False
    return True


def random_order(n: int, rng: np.random.Generator) -> np.ndarray:
    """A random order of 0 … n−1 that moves something: not the identity."""
    while True:
        order = rng.permutation(n)
        if (order != np.arange(n)).any():
            return order


@shaped(n="a square matrix")
def as_graph(A: Float[np.ndarray, "n n"], tokens: Sequence[str], threshold: Positive) -> nx.DiGraph:
    """The attention matrix as a directed graph: an edge from each query to the keys it listens to.

    Node i is position i and has the attribute ``token``, since a word may occur twice. The edge
    i → j has the attribute ``weight`` ``A[i, j]`` and exists where that is at least
    ``threshold``; a token that listens to itself has a loop.

    Raises ``ValueError`` where A is not square or has not one row for each token.
    """
    n = len(A)
    if isinstance(tokens, str) or len(tokens) != n:
        raise ValueError(f"as_graph: expected {n} tokens, one for each row of A, got {tokens!r}")
    graph = nx.DiGraph()
    for i, token in enumerate(tokens):
        graph.add_node(i, token=token)
    for query, key in np.argwhere(A >= threshold).tolist():
        graph.add_edge(query, key, weight=float(A[query, key]))
    return graph
