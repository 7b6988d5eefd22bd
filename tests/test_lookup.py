"""Chapter 3: the package's functions against oracles, and other right answers to its exercises."""

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from attncourse.lookup import kernel_regression, soft_lookup, softmax
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def softmax_loops(x, axis=-1, temperature=1.0):
    def softmax_of_row(scores):
        top = max(scores)
        e = [math.exp((s - top) / temperature) for s in scores]
        return np.array([v / sum(e) for v in e])

    return np.apply_along_axis(softmax_of_row, axis, x)


def softmax_scipy(x, axis=-1, temperature=1.0):
    return scipy.special.softmax(x / temperature, axis=axis)


def softmax_torch(x, axis=-1, temperature=1.0):
    import torch

    return torch.softmax(torch.from_numpy(1.0 * x) / temperature, dim=axis)


def softmax_logsumexp(x, axis=-1, temperature=1.0):
    z = np.asarray(x, dtype=np.float64) / temperature
    return np.exp(z - scipy.special.logsumexp(z, axis=axis, keepdims=True))


def softmax_moved(x, axis=-1, temperature=1.0):
    z = np.moveaxis(x, axis, 0) / temperature
    e = np.exp(z - z.max(0))
    return np.moveaxis(e / (e.sum(0) + 1e-12), 0, axis)


def softmax_pairwise(x, axis=-1, temperature=1.0):
    """1 / Σ_j exp(x_j − x_i): no maximum, but no overflow that does harm."""
    z = np.moveaxis(x, axis, -1) / temperature
    w = 1 / np.exp(z[..., None, :] - z[..., :, None]).sum(-1)
    return np.moveaxis(w, -1, axis)


def lookup_plain(query, keys, values, temperature=1.0):
    return softmax(query @ np.swapaxes(keys, -1, -2), temperature=temperature) @ values


def lookup_loops(query, keys, values, temperature=1.0):
    if query.ndim == 1:
        scores = [sum(a * b for a, b in zip(query, key, strict=True)) for key in keys]
        e = [math.exp((s - max(scores)) / temperature) for s in scores]
        return sum(np.float64(w) / sum(e) * v for w, v in zip(e, values, strict=True))
    if query.ndim == 2:
        return np.stack([lookup_loops(q, keys, values, temperature) for q in query])
    batch = query.shape[0]
    K = keys if keys.ndim == query.ndim else [keys] * batch
    V = values if values.ndim == query.ndim else [values] * batch
    return np.stack([lookup_loops(query[b], K[b], V[b], temperature) for b in range(batch)])


def lookup_einsum(query, keys, values, temperature=1.0):
    Q, V = np.atleast_2d(query), values[:, None] if values.ndim == 1 else values
    A = scipy.special.softmax(np.einsum("...md,...nd->...mn", Q, keys) / temperature, -1)
    U = np.einsum("...mn,...nv->...mv", A, V)
    U = U[0] if query.ndim == 1 else U
    return U[..., 0] if values.ndim == 1 else U


def lookup_torch(query, keys, values, temperature=1.0):
    import torch

    q, k, v = (torch.from_numpy(1.0 * a) for a in (query, keys, values))
    return torch.softmax(torch.matmul(q, k.mT) / temperature, -1) @ v


def lookup_scaled_query(query, keys, values, temperature=1.0):
    z = np.asarray(query, np.float64) / temperature @ keys.swapaxes(-2, -1)
    e = np.exp(z - z.max(-1, keepdims=True))
    return (e @ values) / e.sum(-1).reshape(e.shape[:-1] + ((1,) if values.ndim > 1 else ()))


def curve_loops(x_query, x, y, bandwidth):
    if x_query.ndim > 1:
        triples = zip(x_query, x, y, strict=True)
        return np.stack([curve_loops(a, b, c, bandwidth) for a, b, c in triples])
    out = []
    for q in x_query.astype(float):
        z = [-(((q - p) / bandwidth) ** 2) / 2 for p in x.astype(float)]
        w = [math.exp(s - max(z)) for s in z]
        out.append(sum(a * b for a, b in zip(w, y, strict=True)) / sum(w))
    return np.array(out)


def curve_scipy(x_query, x, y, bandwidth):
    gaps = x_query[..., :, None] - x[..., None, :]
    A = scipy.special.softmax(-0.5 * (gaps / bandwidth) ** 2, axis=-1)
    return (A @ y[..., None])[..., 0]


def curve_logpdf(x_query, x, y, bandwidth):
    from scipy.stats import norm

    log_k = norm.logpdf(x_query[..., :, None], loc=x[..., None, :], scale=bandwidth)
    return np.einsum("...mn,...n->...m", softmax(log_k), y)


def curve_as_lookup(x_query, x, y, bandwidth):
    """The squared distance written out: q² − 2qx + x², where q² changes no weight."""
    query = np.stack([x_query, np.ones_like(x_query)], axis=-1)  # (..., m, 2)
    keys = np.stack([x, -(x**2) / 2], axis=-1)  # (..., n, 2)
    return soft_lookup(query, keys, y[..., None], temperature=bandwidth**2)[..., 0]


def curve_running(x_query, x, y, bandwidth):
    """Logarithms of the kernel added up one point after the other."""
    top = np.full(x_query.shape, -np.inf)
    total, blend = np.zeros((2, *x_query.shape))
    for p, height in zip(np.moveaxis(x, -1, 0), np.moveaxis(y, -1, 0), strict=True):
        z = -((x_query - p[..., None]) ** 2) / (2.0 * bandwidth**2)
        new = np.maximum(top, z)
        total = total * np.exp(top - new) + np.exp(z - new)
        blend = blend * np.exp(top - new) + np.exp(z - new) * height[..., None]
        top = new
    return blend / total


def curve_shifted_kernel(x_query, x, y, bandwidth):
    squares = (x_query[..., None] - x[..., None, :]) ** 2
    squares = squares - squares.min(-1, keepdims=True)
    K = np.exp(-squares / (2 * bandwidth**2))
    return (K * y[..., None, :]).sum(-1) / (K.sum(-1) + 1e-12)


RIGHT = {
    "lookup.softmax": [
        softmax_loops,
        softmax_scipy,
        softmax_torch,
        softmax_logsumexp,
        softmax_moved,
        softmax_pairwise,
    ],
    "lookup.soft_lookup": [
        lookup_plain,
        lookup_loops,
        lookup_einsum,
        lookup_torch,
        lookup_scaled_query,
    ],
    "lookup.kernel_regression": [
        curve_loops,
        curve_scipy,
        curve_logpdf,
        curve_running,
        curve_as_lookup,
        curve_shifted_kernel,
    ],
}

# --- softmax ---------------------------------------------------------------------------------


def test_softmax_hand_worked():
    np.testing.assert_allclose(softmax(np.log([1, 3, 4])), [1 / 8, 3 / 8, 1 / 2], atol=1e-15)
    np.testing.assert_allclose(
        softmax(np.log([1, 3]), temperature=0.5), [1 / 10, 9 / 10], atol=1e-15
    )


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    axis=st.integers(0, 3),
    temperature=st.floats(0.05, 50),
    seed=st.integers(0, 99),
)
def test_softmax_against_scipy(shape, axis, temperature, seed):
    axis = axis % len(shape)
    x = 5 * np.random.default_rng(seed).normal(size=shape)
    expected = scipy.special.softmax(x / temperature, axis=axis)
    for same_axis in (axis, axis - len(shape)):
        computed = softmax(x, same_axis, temperature)
        np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(computed.sum(axis), 1, rtol=0, atol=1e-13)


@given(shift=st.floats(-1e6, 1e6), seed=st.integers(0, 99))
def test_softmax_does_not_see_a_shift(shift, seed):
    x = np.random.default_rng(seed).normal(size=(3, 7))
    np.testing.assert_allclose(softmax(x + shift), softmax(x), rtol=0, atol=1e-9)


def test_softmax_temperature_limits():
    x = np.array([1.0, 4.0, 2.0, 4.0])
    np.testing.assert_allclose(softmax(x, temperature=1e-3), [0, 0.5, 0, 0.5], atol=1e-15)
    np.testing.assert_allclose(softmax(x, temperature=1e9), np.full(4, 0.25), atol=1e-8)
    np.testing.assert_array_equal(softmax([1.0, 2.0], temperature=5e-324), [0, 1])
    np.testing.assert_array_equal(softmax(np.float32([1, 2]), temperature=1e-50), [0, 1])


def test_softmax_stays_finite():
    rows = np.array([[1e4, 1e4 + 1], [-1e4, -1e4 + 1], [0, 1], [-1e308, 1e308]])
    out = softmax(rows)
    np.testing.assert_allclose(out[:3], np.tile(softmax([0, 1]), (3, 1)), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(out[3], [0, 1])


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_softmax_gradient(temperature):
    """The Jacobian is (diag(p) − p pᵀ) / T, by central differences."""
    x = np.random.default_rng(7).normal(size=5)
    p = softmax(x, temperature=temperature)
    step = 1e-6 * np.eye(5)
    ahead, behind = (softmax(x + s * step, temperature=temperature) for s in (1, -1))
    measured = (ahead - behind).T / 2e-6
    np.testing.assert_allclose(measured, (np.diag(p) - np.outer(p, p)) / temperature, atol=1e-8)


def test_softmax_keeps_dtype_and_argument():
    x = np.random.default_rng(3).normal(size=(3, 5)).astype(np.float32)
    before = x.copy()
    assert softmax(x, 0, 0.5).dtype == np.float32
    assert softmax([1, 2, 3]).dtype == np.float64
    np.testing.assert_array_equal(x, before)


# --- soft_lookup -----------------------------------------------------------------------------


def test_soft_lookup_hand_worked():
    keys = np.log([[1.0, 2.0], [3.0, 2.0], [4.0, 2.0]])  # a query (1, 0) reads weights 1 : 3 : 4
    assert soft_lookup([1, 0], keys, [8, 16, 40]) == pytest.approx(27)
    np.testing.assert_allclose(soft_lookup([[1, 0], [0, 1]], keys, [8, 16, 40]), [27, 64 / 3])


@given(
    m=st.integers(1, 5),
    n=st.integers(1, 7),
    d=st.integers(1, 5),
    d_v=st.integers(1, 3),
    temperature=st.floats(0.1, 10),
    seed=st.integers(0, 99),
)
def test_soft_lookup_against_loop(m, n, d, d_v, temperature, seed):
    rng = np.random.default_rng(seed)
    query, keys, values = (rng.normal(size=s) for s in ((m, d), (n, d), (n, d_v)))
    U = soft_lookup(query, keys, values, temperature)
    assert U.shape == (m, d_v)
    np.testing.assert_allclose(U, lookup_loops(query, keys, values, temperature), atol=1e-12)
    single = soft_lookup(query[0], keys, values[:, 0], temperature)
    assert single.shape == ()
    np.testing.assert_allclose(single, U[0, 0], atol=1e-12)


def test_soft_lookup_batches():
    rng = np.random.default_rng(5)
    query, keys = rng.normal(size=(2, 3, 5, 7)), rng.normal(size=(3, 11, 7))
    values = rng.normal(size=(3, 11, 2))
    U = soft_lookup(query, keys, values)
    assert U.shape == (2, 3, 5, 2)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_allclose(
            U[i, j], soft_lookup(query[i, j], keys[j], values[j]), atol=1e-13
        )
    assert soft_lookup(query[0, 0, 0], keys, values).shape == (3, 2)
    assert soft_lookup(query, keys, values[0, :, 0]).shape == (2, 3, 5)


def test_soft_lookup_is_attention():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(9)
    query, keys, values = (rng.normal(size=(2, n, d)) for n, d in ((3, 5), (7, 5), (7, 2)))
    want = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(a) for a in (query, keys, values)), scale=1 / 0.7
    )
    np.testing.assert_allclose(soft_lookup(query, keys, values, 0.7), want.numpy(), atol=1e-12)


# --- kernel_regression -----------------------------------------------------------------------


def test_kernel_regression_hand_worked():
    # Distances 0 and 2 at h = 1: weights 1 : exp(−2).
    w = math.exp(-2)
    assert kernel_regression([0], [0, 2], [3, 5], 1.0)[0] == pytest.approx((3 + 5 * w) / (1 + w))
    np.testing.assert_allclose(kernel_regression([1], [0, 2], [3, 5], 0.1), [4])


@given(m=st.integers(1, 7), n=st.integers(1, 11), h=st.floats(0.05, 20), seed=st.integers(0, 99))
def test_kernel_regression_against_loop(m, n, h, seed):
    rng = np.random.default_rng(seed)
    x_query, x, y = rng.normal(size=m), rng.normal(size=n), rng.normal(size=n)
    out = kernel_regression(x_query, x, y, h)
    assert out.shape == (m,)
    np.testing.assert_allclose(out, curve_loops(x_query, x, y, h), atol=1e-11)
    assert (y.min() - 1e-12 <= out).all()
    assert (out <= y.max() + 1e-12).all()


def test_kernel_regression_limits_of_the_bandwidth():
    rng = np.random.default_rng(11)
    x_query, x, y = rng.uniform(0, 9, 5), np.arange(10.0), rng.normal(size=10)
    np.testing.assert_allclose(kernel_regression(x_query, x, y, 1e7), y.mean(), atol=1e-9)
    nearest = y[np.abs(x_query[:, None] - x).argmin(1)]
    np.testing.assert_allclose(kernel_regression(x_query, x, y, 1e-3), nearest, atol=1e-12)


def test_kernel_regression_far_away_is_the_nearest_value():
    out = kernel_regression([1e6, -1e6, 1e12, 50.0], [0, 1, 2], [5, 7, 9], 0.5)
    np.testing.assert_allclose(out, [9, 5, 9, 9], rtol=0, atol=1e-12)


def test_kernel_regression_is_a_soft_lookup():
    rng = np.random.default_rng(13)
    x_query, x, y = rng.normal(size=(2, 5)), rng.normal(size=(2, 7)), rng.normal(size=(2, 7))
    out = kernel_regression(x_query, x, y, 0.6)
    np.testing.assert_allclose(out, curve_as_lookup(x_query, x, y, 0.6), atol=1e-12)


def test_gaussian_kernel_on_unit_keys_is_dot_product_attention():
    rng = np.random.default_rng(17)
    query, keys, values = rng.normal(size=(5, 3)), rng.normal(size=(7, 3)), rng.normal(size=(7, 2))
    unit = keys / np.linalg.norm(keys, axis=1, keepdims=True)

    def gaussian(keys, h):
        squares = ((query[:, None, :] - keys[None, :, :]) ** 2).sum(-1)
        return softmax(-squares / (2 * h**2)) @ values

    np.testing.assert_allclose(
        gaussian(unit, 0.6), soft_lookup(query, unit, values, 0.36), atol=1e-12
    )
    assert np.abs(gaussian(keys, 0.6) - soft_lookup(query, keys, values, 0.36)).max() > 0.1


# --- bad input -------------------------------------------------------------------------------


test_bad_input_is_refused = refused(
    [
        (lambda: softmax([1.0, np.inf]), "expected finite numbers", r"inf at index \(1,\)"),
        (lambda: softmax([1.0, np.nan]), "expected numbers", "NaN"),
        (lambda: softmax(3.0), r"shape \(\.\.\., n\)", r"\(\)"),
        (lambda: softmax([]), "at least one entry", r"\(0,\)"),
        (lambda: softmax([1.0], temperature=0), "above 0", "got 0"),
        (lambda: softmax([1.0], temperature=-1.0), "above 0", "got -1.0"),
        (lambda: softmax([1.0], temperature=np.inf), "finite", "inf"),
        (lambda: softmax([[1.0]], axis=2), "-2 to 1", "got 2"),
        (lambda: softmax([[1.0]], axis=0.5), "expected an int", "0.5"),
        (lambda: softmax(["a"]), "real numbers", "dtype <U1"),
        (
            lambda: soft_lookup(np.ones(3), np.ones((5, 2)), np.ones(5)),
            "queries as long as the keys",
            r"\(3,\) and keys of shape \(5, 2\)",
        ),
        (
            lambda: soft_lookup(np.ones(2), np.ones((5, 2)), np.ones(3)),
            "one value for each key",
            r"keys of shape \(5, 2\) and values of shape \(3,\)",
        ),
        (
            lambda: soft_lookup(np.ones((4, 2)), np.ones((5, 2)), np.ones((3, 5))),
            "one value for each key",
            r"\(3, 5\)",
        ),
        (lambda: soft_lookup(np.ones(2), np.ones(2), np.ones(2)), r"\(\.\.\., n, d\)", r"\(2,\)"),
        (lambda: soft_lookup([np.inf], [[1.0]], [1.0]), "query: expected finite", "inf"),
        (lambda: soft_lookup([1.0], [[-np.inf]], [1.0]), "keys: expected finite", "-inf"),
        (lambda: soft_lookup([1.0], [[1.0]], [np.inf]), "values: expected finite", "inf"),
        (lambda: soft_lookup([1.0], [[1.0]], [1.0], temperature=0.0), "above 0", "0.0"),
        (lambda: kernel_regression([0.0], [0, 1], [1, 2, 3], 1.0), "one y for each x", r"\(3,\)"),
        (lambda: kernel_regression([0.0], [0, 1], [1, 2], 0), "bandwidth: .* above 0", "got 0"),
        (lambda: kernel_regression([0.0], [0, 1], [1, 2], np.nan), "bandwidth", "nan"),
        (lambda: kernel_regression(0.0, [0, 1], [1, 2], 1.0), r"x_query: expected shape", r"\(\)"),
        (lambda: kernel_regression([np.inf], [0, 1], [1, 2], 1.0), "x_query: .*finite", "inf"),
    ]
)
