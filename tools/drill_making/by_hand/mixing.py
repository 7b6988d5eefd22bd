"""Chapter 2: right answers in steps, and wrong lines for them."""

import numpy as np


def mix_by_token(A, X):
    batch = np.broadcast_shapes(A.shape[:-2], X.shape[:-2])
    U = np.zeros((*batch, A.shape[-2], X.shape[-1]))
    for i in range(A.shape[-2]):
        for j in range(A.shape[-1]):
            weight = A[..., i, j, None]
            U[..., i, :] += weight * X[..., j, :]
    return U


def mix_by_sums(A, X):
    weights = A[..., :, :, None]
    vectors = X[..., None, :, :]
    products = weights * vectors
    return products.sum(axis=-2)


def mix_row_by_row(A, X):
    rows = []
    for i in range(A.shape[-2]):
        weights = A[..., i, :]
        weighted = weights[..., None] * X
        rows.append(weighted.sum(axis=-2))
    return np.stack(rows, axis=-2)


RIGHT_ANSWERS = {"mixing.mix": [mix_by_token, mix_by_sums, mix_row_by_row]}
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "mixing.window_weights": (
        (
            "inside = [j for j in range(n) if abs(i - j) <= (width - 1) / 2]",
            "inside = [j for j in range(n) if i // width == j // width]",
        ),
        (
            "padded = np.pad(np.eye(n), ((0, 0), (half, half)))",
            'padded = np.pad(np.eye(n), ((0, 0), (half, half)), mode="wrap")',
        ),
        ("if width % 2 == 0:", "if width < 2:"),
        ("if width % 2 != 1:", "if width % 4 != 1:"),
    ),
    "mixing.mix": (
        ("weight = A[..., i, j, None]", "weight = A[..., j, i, None]"),
        ("U[..., i, :] += weight * X[..., j, :]", "U[..., i, :] = weight * X[..., j, :]"),
        ("U[..., i, :] += weight * X[..., j, :]", "U[..., j, :] += weight * X[..., i, :]"),
        ("for j in range(A.shape[-1]):", "for j in range(A.shape[-1] - 1):"),
        ("for j in range(A.shape[-1]):", "for j in range(1, A.shape[-1]):"),
        ("U = np.zeros((*batch, A.shape[-2], X.shape[-1]))", "U = X.copy()"),
        (
            "U = np.zeros((*batch, A.shape[-2], X.shape[-1]))",
            "U = np.zeros((*batch, A.shape[-2], X.shape[-1]), dtype=int)",
        ),
        ("weights = A[..., :, :, None]", "weights = A.mT[..., :, :, None]"),
        (
            "weights = A[..., :, :, None]",
            "weights = (A / A.sum(axis=-1, keepdims=True))[..., :, :, None]",
        ),
        ("return products.sum(axis=-2)", "return products.sum(axis=-1)"),
        ("return products.sum(axis=-2)", "return products.sum(axis=-3)"),
        ("return products.sum(axis=-2)", "return products.mean(axis=-2)"),
        ("return products.sum(axis=-2)", "return products[..., :-1, :].sum(axis=-2)"),
        ("return products.sum(axis=-2)", "return products.sum(axis=-2) + X"),
        ("return products.sum(axis=-2)", "return products.sum(axis=(-3, -2))"),
        ("weights = A[..., i, :]", "weights = A[..., :, i]"),
        ("weights = A[..., i, :]", "weights = A[..., i, :] / A[..., i, :].sum()"),
        (
            "weights = A[..., i, :]",
            "weights = A[..., i, :] / A[..., i, :].sum(axis=-1, keepdims=True)",
        ),
        ("rows.append(weighted.sum(axis=-2))", "rows.append(weighted.sum(axis=-1))"),
        (
            "rows.append(weighted.sum(axis=-2))",
            "rows.append(X[..., i, :] + weighted.sum(axis=-2))",
        ),
        ("return np.stack(rows, axis=-2)", "return np.stack(rows, axis=-1)"),
        ("return np.stack(rows, axis=-2)", "return np.sum(rows, axis=0)"),
    ),
    "mixing.is_row_stochastic": (
        (
            "sums_to_one = (np.abs(A.sum(axis=-1) - 1) <= atol).all()",
            "sums_to_one = (A.sum(axis=-1) == 1).all()",
        ),
        (
            "sums_to_one = (np.abs(A.sum(axis=-1) - 1) <= atol).all()",
            "sums_to_one = (A.sum(axis=-1) - 1 <= atol).all()",
        ),
        (
            "sums_to_one = (np.abs(A.sum(axis=-1) - 1) <= atol).all()",
            "sums_to_one = (np.abs(A.sum(axis=-1) - 1) < atol).all()",
        ),
        (
            "sums_to_one = (np.abs(A.sum(axis=-1) - 1) <= atol).all()",
            "sums_to_one = np.allclose(A.sum(axis=-1), 1, atol=atol)",
        ),
        ("return bool(nonnegative and sums_to_one)", "return bool(nonnegative or sums_to_one)"),
    ),
}
