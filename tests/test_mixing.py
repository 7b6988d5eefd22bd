"""Chapter 2: the package's functions against oracles, and other right answers to its exercises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncourse.mixing import (
    causal_mean_weights,
    is_row_stochastic,
    mix,
    normalize_rows,
    uniform_weights,
    window_weights,
)
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def mix_loops(A, X):
    if A.ndim == 2 and X.ndim == 2:
        U = np.zeros((A.shape[0], X.shape[1]))
        for i in range(A.shape[0]):
            for j in range(X.shape[0]):
                U[i] += A[i, j] * X[j]
        return U
    batch = np.broadcast_shapes(A.shape[:-2], X.shape[:-2])
    A = np.broadcast_to(A, batch + A.shape[-2:])
    X = np.broadcast_to(X, batch + X.shape[-2:])
    return np.stack([mix_loops(a, x) for a, x in zip(A, X, strict=True)])


def mix_einsum(A, X):
    return np.einsum("...mn,...nd->...md", A, X)


def mix_broadcast(A, X):
    return (A[..., :, :, None] * X[..., None, :, :]).sum(-2)


def mix_torch(A, X):
    import torch

    return torch.matmul(torch.from_numpy(A * 1.0), torch.from_numpy(X * 1.0))


def rows_loops(A):
    if np.min(A) < 0:
        raise ValueError("negative")
    out = np.array(A, dtype=float, order="C")
    for row in out.reshape(-1, A.shape[-1]):
        if row.sum() > 0:
            row /= row.sum()
    return out


def rows_nan_to_num(A):
    if np.any(A < 0):
        raise ValueError
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(A / A.sum(-1, keepdims=True))


def rows_einsum(A):
    if (np.sign(A) == -1).any():
        raise ValueError
    sums = np.einsum("...n->...", A)[..., None]
    return np.divide(A, sums, out=np.zeros(A.shape), where=sums != 0)


def rows_guarded(A):
    if A.min() < 0:
        raise ValueError("no negative shares")
    return A / (A.sum(axis=-1, keepdims=True) + 1e-12)


def stochastic_loops(A, atol=1e-8):
    for row in np.reshape(A, (-1, A.shape[-1])):
        if not all(x >= -atol for x in row) or not abs(sum(row) - 1) <= atol:
            return False
    return True


def stochastic_isclose(A, atol=1e-8):
    return bool((-atol <= A).all() and np.isclose(A.sum(-1), 1, rtol=0, atol=atol).all())


def stochastic_numpy_bool(A, atol=1e-8):
    return np.logical_and((-atol <= A).all(), (np.abs(1 - A.sum(-1)) <= atol).all())


def stochastic_einsum(A, atol=1e-8):
    sums = np.einsum("...n->...", A)
    return not (np.isnan(A).any() or (-atol > A).any() or (np.abs(sums - 1) > atol).any())


def window_loops(n, width):
    if width % 2 != 1:
        raise ValueError
    A = np.zeros((n, n))
    for i in range(n):
        inside = [j for j in range(n) if abs(i - j) <= (width - 1) / 2]
        A[i, inside] = 1 / len(inside)
    return A


def window_tri(n, width):
    if width % 2 == 0:
        raise ValueError("odd, please")
    half = width // 2
    return normalize_rows(np.tri(n, k=half) - np.tri(n, k=-half - 1))


def window_toeplitz(n, width):
    from scipy.linalg import toeplitz

    if width % 2 == 0:
        raise ValueError
    A = toeplitz((np.arange(n) < (width + 1) / 2).astype(float))
    return A / A.sum(1, keepdims=True)


def window_convolve(n, width):
    if not width & 1:
        raise ValueError
    half = width // 2
    padded = np.pad(np.eye(n), ((0, 0), (half, half)))
    A = sum(padded[:, k : k + n] for k in range(width))
    return A / A.sum(-1)[:, None]


RIGHT = {
    "mixing.mix": [mix_loops, mix_einsum, mix_broadcast, mix_torch],
    "mixing.normalize_rows": [rows_loops, rows_nan_to_num, rows_einsum, rows_guarded],
    "mixing.is_row_stochastic": [
        stochastic_loops,
        stochastic_isclose,
        stochastic_numpy_bool,
        stochastic_einsum,
    ],
    "mixing.uniform_weights": [
        lambda n: np.ones((n, n)) / n,
        lambda n: np.array([[1 / n] * n for _ in range(n)]),
        lambda n: normalize_rows(np.ones((n, n))),
        lambda n: np.tile(np.float64(1) / n, (n, n)),
    ],
    "mixing.causal_mean_weights": [
        lambda n: np.tri(n) / np.arange(1, n + 1)[:, None],
        lambda n: np.array([[(j <= i) / (i + 1) for j in range(n)] for i in range(n)]),
        lambda n: np.cumsum(np.eye(n), axis=0) / np.arange(1.0, n + 1).reshape(-1, 1),
        lambda n: np.diag(1 / np.arange(1, n + 1)) @ np.tril(np.ones((n, n))),
    ],
    "mixing.window_weights": [window_loops, window_tri, window_toeplitz, window_convolve],
}

# --- the package -----------------------------------------------------------------------------


def random_weights(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def test_mix_hand_worked():
    U = mix([[0.5, 0.5], [0, 1]], [[2, 4], [6, 8]])
    np.testing.assert_array_equal(U, [[4, 6], [6, 8]])


@given(m=st.integers(1, 7), n=st.integers(1, 7), d=st.integers(1, 5), seed=st.integers(0, 99))
def test_mix_against_loop(m, n, d, seed):
    rng = np.random.default_rng(seed)
    A, X = rng.normal(size=(2, m, n)), rng.normal(size=(3, 1, n, d))
    U = mix(A, X)
    assert U.shape == (3, 2, m, d)
    np.testing.assert_allclose(U, mix_loops(A, X), rtol=0, atol=1e-12)


def test_mixed_tokens_lie_in_the_convex_hull():
    from scipy.spatial import Delaunay

    rng = np.random.default_rng(5)
    X = rng.normal(size=(7, 2))
    U = mix(random_weights(rng, 101, 7), X)
    assert (Delaunay(X).find_simplex(U) >= 0).all()
    assert (Delaunay(X).find_simplex(mix(2 * random_weights(rng, 101, 7), X)) < 0).any()


@given(n=st.integers(1, 13), seed=st.integers(0, 99))
def test_products_of_row_stochastic_matrices_are_row_stochastic(n, seed):
    rng = np.random.default_rng(seed)
    A, B = random_weights(rng, n, n), random_weights(rng, n, n)
    assert is_row_stochastic(A @ B)


@given(n=st.integers(1, 17), half=st.integers(0, 9))
def test_every_weight_function_is_row_stochastic(n, half):
    for A in (uniform_weights(n), causal_mean_weights(n), window_weights(n, 2 * half + 1)):
        assert A.shape == (n, n)
        assert is_row_stochastic(A, atol=1e-12)


def test_uniform_weights_average():
    X = np.random.default_rng(3).normal(size=(7, 3))
    np.testing.assert_allclose(mix(uniform_weights(7), X), np.tile(X.mean(0), (7, 1)), atol=1e-14)


def test_causal_mean_is_the_running_mean():
    X = np.random.default_rng(3).normal(size=(7, 3))
    running = np.cumsum(X, axis=0) / np.arange(1, 8)[:, None]
    np.testing.assert_allclose(mix(causal_mean_weights(7), X), running, atol=1e-14)


def test_window_is_a_convolution_away_from_the_edges():
    x = np.random.default_rng(3).normal(size=13)
    mixed = mix(window_weights(13, 5), x[:, None])[:, 0]
    np.testing.assert_allclose(mixed[2:-2], np.convolve(x, np.ones(5) / 5, "valid"), atol=1e-14)
    assert mixed[0] == pytest.approx(x[:3].mean())


def test_normalize_rows_keeps_proportions_zero_rows_and_dtype():
    A = np.array([[1, 3], [0, 0]], dtype=np.float32)
    out = normalize_rows(A)
    np.testing.assert_array_equal(out, [[0.25, 0.75], [0, 0]])
    assert out.dtype == np.float32
    np.testing.assert_array_equal(A, [[1, 3], [0, 0]])


@pytest.mark.parametrize(
    ("A", "answer"),
    [
        ([[0.5, 0.5], [0, 1]], True),
        ([[0.5, 0.4], [0, 1]], False),
        ([[1.5, -0.5], [0, 1]], False),
        ([[1 + 5e-9, 0], [0, 1]], True),
        ([[1 + 2e-8, 0], [0, 1]], False),
        ([[np.nan, 1], [0, 1]], False),
        ([[0.5, 0.1], [0.5, 0.9]], False),
    ],
)
def test_is_row_stochastic(A, answer):
    assert is_row_stochastic(A) is answer


test_bad_input_is_refused = refused(
    [
        (
            lambda: mix(np.ones((3, 4)), np.ones((5, 2))),
            "one column of A for each row",
            r"\(3, 4\)",
        ),
        (lambda: mix(np.ones(3), np.ones((3, 2))), r"\(\.\.\., m, n\)", r"\(3,\)"),
        (lambda: mix(np.ones((0, 3)), np.ones((3, 2))), "at least one entry", r"\(0, 3\)"),
        (
            lambda: mix(np.eye(2), [[1, np.nan], [0, 1]]),
            "expected numbers",
            r"NaN at index \(0, 1\)",
        ),
        (lambda: mix(np.eye(2), [["a", "b"], ["c", "d"]]), "real numbers", "dtype <U1"),
        (lambda: mix(np.eye(2), [[1, 2], [3]]), r"shape \(\.\.\. n d\)", "inhomogeneous"),
        (lambda: mix(np.eye(2), np.eye(2) * 1j), "real numbers", "complex"),
        (lambda: normalize_rows([[1, -2]]), "no negative entry", r"-2\.0 at \(0, 1\)"),
        (lambda: normalize_rows([[1, np.nan]]), "expected numbers", "NaN"),
        (lambda: is_row_stochastic(np.ones(3)), r"\(\.\.\., m, n\)", r"\(3,\)"),
        (lambda: uniform_weights(0), "at least 1", "got 0"),
        (lambda: causal_mean_weights(2.5), "whole number", "2.5"),
        (lambda: window_weights(5, 4), "odd width", "got 4"),
        (lambda: window_weights(5, -1), "at least 1", "got -1"),
        (lambda: window_weights(True, 3), "whole number", "True"),
    ]
)
