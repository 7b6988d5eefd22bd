"""Chapter 4: the package's functions against oracles, and other right answers to its exercises."""

import copy
import itertools
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncourse.bank.self_attention.is_permutation_equivariant import (
    ORDERS_AS_THEY_ARE,
    ROTATION_FIRST,
    ROTATION_SECOND,
    SWAPS_FIRST,
)
from attncourse.checks import examine
from attncourse.lookup import soft_lookup, softmax
from attncourse.mixing import causal_mean_weights, is_row_stochastic, mix
from attncourse.self_attention import (
    as_graph,
    attention_weights,
    is_permutation_equivariant,
    random_order,
    self_attention,
)
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def over_batch(f):
    """``f``, written for one sequence, on every sequence of a batch."""

    def batched(X):
        return f(X) if X.ndim == 2 else np.stack([batched(x) for x in X])

    return batched


@over_batch
def weights_loops(X):
    n = len(X)
    A = np.zeros((n, n))
    for i in range(n):
        scores = [float(sum(X[i, c] * X[j, c] for c in range(X.shape[1]))) for j in range(n)]
        shares = [np.exp(score - max(scores)) for score in scores]
        A[i] = np.array(shares) / sum(shares)
    return A


def weights_scipy(X):
    from scipy.special import softmax as scipy_softmax

    return scipy_softmax(X @ X.swapaxes(-2, -1), axis=-1)


def weights_torch(X):
    import torch

    x = torch.from_numpy(1.0 * X)
    return (x @ x.mT).softmax(-1)


def weights_einsum(X):
    scores = np.einsum("...ic,...jc->...ij", X, X)
    weights = np.exp(scores - scores.max(-1)[..., None])
    return np.einsum("...ij,...i->...ij", weights, 1 / np.einsum("...ij->...i", weights))


def weights_from_columns(X):
    """Scores are symmetric, so columns may be normalised and the result transposed."""
    return softmax(X @ X.swapaxes(-1, -2), axis=-2).swapaxes(-1, -2)


def weights_logsumexp(X):
    scores = X.astype(np.float64) @ np.moveaxis(X, -1, -2)
    return np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))


def weights_guarded(X):
    scores = X @ np.swapaxes(X, -1, -2)
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return weights / (weights.sum(-1, keepdims=True) + 1e-12)


@over_batch
def attention_loops(X):
    A = weights_loops(X)
    return np.array([sum(A[i, j] * X[j] for j in range(len(X))) for i in range(len(X))])


def attention_lookup(X):
    return soft_lookup(X, X, X)


def attention_torch(X):
    import torch

    x = torch.from_numpy(1.0 * X)
    return torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=1.0)


def attention_normalised_last(X):
    """Dividing by the row sums after mixing is the same: they do not depend on j."""
    scores = X @ X.swapaxes(-1, -2)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights @ X) / weights.sum(-1, keepdims=True)


def attention_einsum(X):
    return np.einsum("...ij,...jd->...id", weights_scipy(X), X)


def equivariant_matrices(f, X, rng=None, atol=1e-8):
    rng = rng or np.random.default_rng()
    n = X.shape[-2]
    for _ in range(5):
        P = np.eye(n)
        while np.array_equal(P, np.eye(n)):
            P = np.eye(n)[rng.permutation(n)]
        if not np.allclose(f(P @ X), P @ f(X), rtol=0, atol=atol):
            return False
    return True


def equivariant_loops(f, X, rng=None, atol=1e-8):
    rng = np.random.default_rng() if rng is None else rng
    n, tries = X.shape[-2], 0
    while tries < 4:
        order = list(range(n))
        rng.shuffle(order)
        if order == list(range(n)):
            continue
        tries += 1
        after, before = f(X[..., order, :]), f(X)
        for place, token in enumerate(order):
            if np.abs(after[..., place, :] - before[..., token, :]).max() > atol:
                return False
    return True


def equivariant_undone(f, X, rng=None, atol=1e-8):
    """Shuffles the input and puts the output back in order."""
    rng = rng if rng is not None else np.random.default_rng(0)
    agree = []
    for _ in range(6):
        order = np.argsort(rng.random(X.shape[-2]))
        if np.all(np.diff(order) == 1):
            order = order[::-1]
        back = np.take(f(np.take(X, order, axis=-2)), np.argsort(order), axis=-2)
        agree.append(np.isclose(back, f(X), rtol=0, atol=atol).all())
    return np.all(agree)


def equivariant_generators(f, X, rng=None, atol=1e-8):
    """Swaps of neighbours generate every permutation; a few random ones for good measure."""
    n = X.shape[-2]
    orders = [[*range(k), k + 1, k, *range(k + 2, n)] for k in range(n - 1)]
    orders += [random_order(n, rng or np.random.default_rng()) for _ in range(3)]
    U = f(X)
    return bool(max(np.abs(f(X[..., o, :]) - U[..., o, :]).max() for o in orders) <= atol)


def equivariant_in_few_tries(f, X, rng=None, atol=1e-8):
    """Three orders, shuffled in place: of the numbers of the tokens, not of the tokens."""
    rng = np.random.default_rng() if rng is None else rng
    order = np.arange(X.shape[-2])
    largest = 0.0
    for _ in range(3):
        rng.shuffle(order)
        while (order == np.arange(len(order))).all():
            rng.shuffle(order)
        largest = max(largest, np.max(np.abs(f(X[..., order, :]) - f(X)[..., order, :])))
    return not largest > atol


RIGHT = {
    "self_attention.attention_weights": [
        weights_loops,
        weights_scipy,
        weights_torch,
        weights_einsum,
        weights_from_columns,
        weights_logsumexp,
        weights_guarded,
    ],
    "self_attention.self_attention": [
        attention_loops,
        attention_lookup,
        attention_torch,
        attention_normalised_last,
        attention_einsum,
    ],
    "self_attention.is_permutation_equivariant": [
        equivariant_matrices,
        equivariant_loops,
        equivariant_undone,
        equivariant_generators,
        equivariant_in_few_tries,
    ],
}

# --- the package -----------------------------------------------------------------------------


def test_weights_by_hand():
    # Scores: 1 0 1 / 0 1 1 / 1 1 2.
    e = np.e
    A = attention_weights([[1, 0], [0, 1], [1, 1]])
    rows = [[e, 1, e], [1, e, e], [1, 1, e]]
    sums = [2 * e + 1, 2 * e + 1, 2 + e]
    np.testing.assert_allclose(A, np.array(rows) / np.array(sums)[:, None], rtol=0, atol=1e-15)


@given(n=st.integers(1, 7), d=st.integers(1, 5), seed=st.integers(0, 99))
def test_weights_and_outputs_against_loops(n, d, seed):
    X = np.random.default_rng(seed).normal(size=(3, 2, n, d))
    A, U = attention_weights(X), self_attention(X)
    assert A.shape == (3, 2, n, n)
    assert U.shape == X.shape
    np.testing.assert_allclose(A, weights_loops(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(U, attention_loops(X), rtol=0, atol=1e-12)


def test_self_attention_is_torchs_with_scale_one():
    import torch

    X = np.random.default_rng(3).normal(size=(2, 7, 5))
    x = torch.from_numpy(X)
    expected = torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=1.0)
    np.testing.assert_allclose(self_attention(X), expected, rtol=0, atol=1e-12)


@given(n=st.integers(1, 11), d=st.integers(1, 5), seed=st.integers(0, 99))
def test_weights_are_row_stochastic_with_symmetric_odds(n, d, seed):
    X = np.random.default_rng(seed).normal(size=(n, d))
    A = attention_weights(X)
    assert is_row_stochastic(A, atol=1e-12)
    # Where scores are symmetric, A[i, j] / A[i, i] = exp(s_ij - s_ii) and s_ij = s_ji.
    log_odds = np.log(A) - np.log(np.diag(A))[:, None] + (X**2).sum(-1)[:, None]
    np.testing.assert_allclose(log_odds, log_odds.T, rtol=0, atol=1e-10)


def test_weights_are_not_symmetric():
    A = attention_weights(np.random.default_rng(3).normal(size=(7, 5)))
    assert np.abs(A - A.T).max() > 0.1


@given(n=st.integers(2, 11), d=st.integers(2, 5), seed=st.integers(0, 99))
def test_of_equal_lengths_every_token_attends_most_to_itself(n, d, seed):
    X = np.random.default_rng(seed).normal(size=(n, d))
    A = attention_weights(3 * X / np.linalg.norm(X, axis=-1, keepdims=True))
    assert (np.diag(A) >= A.max(-1) - 1e-12).all()


def test_a_long_vector_in_the_same_direction_wins():
    A = attention_weights([[1.0, 0.0], [3.0, 1.0]])
    assert A[0, 1] > A[0, 0]


@given(n=st.integers(2, 13), seed=st.integers(0, 99))
def test_self_attention_is_equivariant_to_rounding(n, seed):
    rng = np.random.default_rng(seed)
    X, order = rng.normal(size=(n, 5)), random_order(n, rng)
    U = self_attention(X)
    np.testing.assert_allclose(self_attention(X[order]), U[order], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        attention_weights(X[order]), attention_weights(X)[np.ix_(order, order)], atol=1e-12
    )
    assert is_permutation_equivariant(self_attention, X, rng, atol=1e-12)


def test_on_unit_vectors_it_is_the_gradient_of_the_log_density():
    X = np.random.default_rng(5).normal(size=(7, 3))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    h = 1e-5
    density = lambda y: np.log(np.exp(X @ y).sum())  # noqa: E731
    gradient = [[(density(x + h * e) - density(x - h * e)) / (2 * h) for e in np.eye(3)] for x in X]
    np.testing.assert_allclose(self_attention(X), gradient, rtol=0, atol=1e-9)


def test_large_numbers_stay_finite_and_float32_is_kept():
    X = 1e4 * np.random.default_rng(3).normal(size=(7, 5))
    assert is_row_stochastic(attention_weights(X))
    A = attention_weights(X.astype(np.float32) / 1e4)
    assert A.dtype == np.float32
    np.testing.assert_allclose(A, attention_weights(X / 1e4), atol=1e-5)


@pytest.mark.parametrize(
    ("f", "answer"),
    [
        (lambda X: X, True),
        (self_attention, True),
        (lambda X: X @ np.ones((3, 2)), True),
        (lambda X: mix(np.full((5, 5), 0.2), X), True),  # the mean, on every row: also invariant
        (lambda X: X.mean(-2), False),  # no row for each token
        (lambda X: X.mean(-2, keepdims=True), False),
        (lambda X: mix(causal_mean_weights(5), X), False),
        (lambda X: np.sort(X, axis=-2), False),  # invariant
        (lambda X: X + np.arange(5)[:, None], False),
        (lambda X: X[..., ::-1, :], False),
        (lambda X: X + 1e-10 * np.arange(5)[:, None], True),
        (lambda X: X + 1e-5 * np.arange(5)[:, None], False),
        (lambda X: X * np.nan, False),
    ],
)
@pytest.mark.parametrize("batch", [(), (2,), (5,), (2, 3)])
def test_equivariance_is_recognised(f, answer, batch):
    X = np.random.default_rng(7).normal(size=(*batch, 5, 3))
    before = X.copy()
    for seed in range(5):
        assert is_permutation_equivariant(f, X, np.random.default_rng(seed)) is answer
    assert is_permutation_equivariant(f, X) is answer
    np.testing.assert_array_equal(X, before)


def test_equivariance_tolerance_is_absolute_and_the_callers():
    drift = lambda X: 1000 + X + 1e-4 * np.arange(5)[:, None]  # noqa: E731
    X = np.random.default_rng(7).normal(size=(5, 3))
    assert not is_permutation_equivariant(drift, X)
    assert is_permutation_equivariant(drift, X, atol=1e-3)


def test_equivariance_of_large_numbers_needs_larger_tolerance():
    mean = lambda X: np.tile(X.mean(-2), (len(X), 1))  # noqa: E731
    X = 1e9 * np.random.default_rng(7).normal(size=(15, 4))
    assert not is_permutation_equivariant(mean, X, np.random.default_rng(0))
    assert is_permutation_equivariant(mean, X, np.random.default_rng(0), atol=1.0)


@given(n=st.integers(2, 9), d=st.integers(1, 5), seed=st.integers(0, 99))
def test_no_two_tokens_prefer_each_other_to_themselves(n, d, seed):
    """Where i gives j at least what it gives itself, j gives i at most what j gives itself."""
    rng = np.random.default_rng(seed)
    A = attention_weights(rng.normal(size=(n, d)) * np.exp(rng.normal(size=(n, 1))))
    self_weights = np.diag(A)
    prefers = (A >= self_weights[:, None]) & ~np.eye(
        n, dtype=bool
    )  # i hears j at least as well as itself
    assert (A.T <= self_weights + 1e-12)[prefers].all()


def test_overwriting_an_argument_does_not_change_the_result():
    def overwriting(X):
        X *= np.arange(1, 6)[:, None]
        return X

    X = np.random.default_rng(7).normal(size=(5, 3))
    before = X.copy()
    assert not is_permutation_equivariant(overwriting, X)
    np.testing.assert_array_equal(X, before)


def test_a_random_order_is_any_but_the_identity():
    rng = np.random.default_rng(3)
    orders = {tuple(random_order(3, rng).tolist()) for _ in range(200)}
    assert orders == set(itertools.permutations(range(3))) - {(0, 1, 2)}
    assert tuple(random_order(2, rng)) == (1, 0)


def first_orders(row, count):
    """What the generator of a case draws first, as ``rng.permutation`` does."""
    rng = copy.deepcopy(row.arguments["rng"])
    return [rng.permutation(row.sizes["n"]) for _ in range(count)]


def test_the_checks_generators_draw_the_orders_it_says():
    def rotation(order):
        return (np.diff(order) % len(order) == 1).all()

    assert all((p == [0, 1]).all() for p in first_orders(ORDERS_AS_THEY_ARE, 16))
    assert [rotation(p) for p in first_orders(ROTATION_FIRST, 12)] == [True] + 11 * [False]
    second = [rotation(p) for p in first_orders(ROTATION_SECOND, 12)]
    assert second == [False, True] + 10 * [False]
    assert all((p == np.arange(3)).sum() == 1 for p in first_orders(SWAPS_FIRST, 12))


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (
            lambda f, X, p, q: (f(X[..., p, :]), f(X)[..., q, :]),
            "each side has an order of its own",
        ),
        (lambda f, X, p, q: (f(X)[..., p, :], f(X)), "f never sees shuffled tokens"),
        (
            lambda f, X, p, q: (f(X[..., p, :])[..., p, :], f(X)),
            "the order is applied twice, not undone",
        ),
    ],
)
def test_wrong_comparisons_in_the_equivariance_test_are_named(wrong, name):
    def answer(f, X, rng=None, atol=1e-8):
        rng = np.random.default_rng(8) if rng is None else rng
        n = X.shape[-2]
        for _ in range(6):
            a, b = wrong(f, X, random_order(n, rng), random_order(n, rng))
            if not np.allclose(a, b, rtol=0, atol=atol):
                return False
        return True

    for seed in (0, 4):
        target = "self_attention.is_permutation_equivariant"
        assert examine(target, answer, seed=seed).diagnosis.name == name


def test_graph_edges_run_from_query_to_key():
    A = np.array([[0.2, 0.8, 0.0], [0.1, 0.6, 0.3], [0.5, 0.25, 0.25]])
    graph = as_graph(A, ["the", "dog", "the"], 0.25)
    assert isinstance(graph, nx.DiGraph)
    assert dict(graph.nodes(data="token")) == {0: "the", 1: "dog", 2: "the"}
    edges = {(i, j): w for i, j, w in graph.edges(data="weight")}
    assert edges == {(0, 1): 0.8, (1, 1): 0.6, (1, 2): 0.3, (2, 0): 0.5, (2, 1): 0.25, (2, 2): 0.25}


@given(n=st.integers(1, 11), threshold=st.floats(0.01, 0.9), seed=st.integers(0, 99))
def test_graph_adjacency_is_the_thresholded_matrix(n, threshold, seed):
    A = attention_weights(np.random.default_rng(seed).normal(size=(n, 3)))
    graph = as_graph(A, [f"t{i}" for i in range(n)], threshold)
    adjacency = nx.to_numpy_array(graph, nodelist=range(n))
    np.testing.assert_array_equal(adjacency, np.where(A >= threshold, A, 0))


X = np.ones((3, 2))


test_bad_input_is_refused = refused(
    [
        (lambda: attention_weights(np.ones(3)), r"\(\.\.\., n, d\)", r"\(3,\)"),
        (lambda: attention_weights(np.ones((0, 3))), "at least one entry", r"\(0, 3\)"),
        (lambda: attention_weights([[1, np.nan]]), "expected numbers", r"NaN at index \(0, 1\)"),
        (lambda: attention_weights([[1, np.inf]]), "finite", r"inf at index \(0, 1\)"),
        (lambda: attention_weights([["a"]]), "real numbers", "dtype <U1"),
        (lambda: self_attention(np.ones(3)), r"\(\.\.\., n, d\)", r"\(3,\)"),
        (lambda: self_attention([[1, 2], [3]]), r"shape \(\.\.\. n d\)", "inhomogeneous"),
        (
            lambda: is_permutation_equivariant(np.tanh, np.ones((1, 3))),
            "at least two tokens",
            r"\(1, 3\)",
        ),
        (lambda: is_permutation_equivariant(3, X), "a function", "got 3"),
        (lambda: is_permutation_equivariant(np.tanh, X, rng=3), "Generator", "got 3"),
        (lambda: is_permutation_equivariant(np.tanh, [[np.nan]]), "expected numbers", "NaN"),
        (lambda: as_graph(X, ["a", "b", "c"], 0.1), "square", r"\(3, 2\)"),
        (lambda: as_graph(np.eye(3), ["a", "b"], 0.1), "3 tokens", r"\['a', 'b'\]"),
        (lambda: as_graph(np.eye(3), "abc", 0.1), "3 tokens", "'abc'"),
        (lambda: as_graph(np.eye(3), list("abc"), 0), "above 0", "got 0"),
        (lambda: as_graph(np.eye(3), list("abc"), "x"), "above 0", "got 'x'"),
        (lambda: as_graph(np.ones(3), list("abc"), 0.1), r"\(n, n\)", r"\(3,\)"),
    ]
)


def test_importing_the_chapter_loads_no_torch():
    code = "import sys, attncourse.self_attention; print('torch' in sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "False"
