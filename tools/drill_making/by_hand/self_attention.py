"""Chapter 4: right answers in steps, and wrong lines for them."""

import numpy as np


def equivariant_in_steps(f, X, rng=None, atol=1e-8):
    if rng is None:
        rng = np.random.default_rng()
    n = X.shape[-2]
    for _ in range(6):
        order = rng.permutation(n)
        if (order == np.arange(n)).all():
            order = order[::-1]
        shuffled_first = f(X[..., order, :])
        shuffled_after = f(X)[..., order, :]
        difference = np.abs(shuffled_first - shuffled_after)
        if difference.max() > atol:
            return False
    return True


RIGHT_ANSWERS = {"self_attention.is_permutation_equivariant": [equivariant_in_steps]}
SHUFFLED_FIRST_LINE = "shuffled_first = f(X[..., order, :])"
SHUFFLED_AFTER_LINE = "shuffled_after = f(X)[..., order, :]"
DIFFERENCE_LINE = "difference = np.abs(shuffled_first - shuffled_after)"
TOO_FAR_LINE = "if difference.max() > atol:"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "self_attention.is_permutation_equivariant": (
        (SHUFFLED_AFTER_LINE, "shuffled_after = f(X)"),
        (SHUFFLED_FIRST_LINE, "shuffled_first = f(X)[..., order, :]"),
        (SHUFFLED_FIRST_LINE, "shuffled_first = f(X[..., order])"),
        (SHUFFLED_FIRST_LINE, "shuffled_first = X[..., order, :]"),
        (SHUFFLED_AFTER_LINE, "shuffled_after = X[..., order, :]"),
        (SHUFFLED_AFTER_LINE, "shuffled_after = f(X)[..., rng.permutation(n), :]"),
        (SHUFFLED_AFTER_LINE, "shuffled_after = f(X)[..., np.argsort(order), :]"),
        (SHUFFLED_AFTER_LINE, "shuffled_after = f(X[..., order, :])"),
        ("order = rng.permutation(n)", "order = np.arange(n)"),
        ("order = rng.permutation(n)", "order = np.arange(n)[::-1]"),
        ("order = rng.permutation(n)", "order = np.random.permutation(n)"),
        ("order = rng.permutation(n)", "order = np.roll(np.arange(n), 1)"),
        (DIFFERENCE_LINE, "difference = shuffled_first - shuffled_after"),
        (DIFFERENCE_LINE, "difference = np.abs((shuffled_first - shuffled_after).sum())"),
        (DIFFERENCE_LINE, "difference = np.abs((shuffled_first - shuffled_after)[..., 0, :])"),
        (DIFFERENCE_LINE, "difference = np.abs(shuffled_first / shuffled_after - 1)"),
        (TOO_FAR_LINE, "if difference.max() >= atol:"),
        (TOO_FAR_LINE, "if difference.max() > 0:"),
        (TOO_FAR_LINE, "if difference.max() > 1e-8:"),
        (TOO_FAR_LINE, "if difference.mean() > atol:"),
        (TOO_FAR_LINE, "if difference.max() < atol:"),
        (TOO_FAR_LINE, "if difference.max() > (atol or 1e-8):"),
        ("return False", "return True"),
        ("return False", "return None"),
        ("for _ in range(6):", "for _ in range(1):"),
        ("if rng is None:", "if rng is not None:"),
        ("return True", "return bool(difference.max() < atol)"),
    ),
}
