"""Functions of functions: the function that they are given is made here, out of data."""

from collections.abc import Callable
from typing import Any

import numpy as np


def call_on_function(implementation: Callable, kind: str, *args, **tensors) -> Any:
    """Return what the implementation makes of ``LENT_FUNCTIONS[kind]`` with these tensors.

    The function is made here, beside the submission: through one of the checker's own, which is
    called across the processes, no gradient would flow.
    """
    function = LENT_FUNCTIONS[kind]

    def f(x: Any) -> Any:  # a partial would have its tensors and its name read off
        return function(x, **tensors)

    return implementation(f, *args)


def orders_tried(implementation: Callable, X: Any, seeds: tuple) -> dict[str, list]:
    """Return the inputs that the tested function receives: for each seed, then for each again."""

    def orders(seed: int) -> list[np.ndarray]:
        seen: list[np.ndarray] = []

        def f(x: Any) -> Any:  # equivariant: nothing ends the trial early
            seen.append(np.array(x, dtype=float))
            return np.array(x)

        implementation(f, X.copy(), rng=np.random.default_rng(seed))
        return seen

    return {name: [orders(seed) for seed in seeds] for name in ("once", "again")}


def same_orders(orders_by_run: dict[str, list]) -> dict[str, bool]:
    """Return whether equal generators try equal orders of the tokens, and others other orders."""
    once, again = (
        [[x.tolist() for x in order] for order in orders_by_run[n]] for n in ("once", "again")
    )
    return {
        "equal generators try equal orders": once == again,
        "other generators try other orders": all(order != once[0] for order in once[1:]),
    }


def several_orders(orders_by_run: dict[str, list]) -> dict[str, bool]:
    """Say whether more than one order other than the given one is tried."""
    tried = [
        {tuple(np.argsort(x[:, 0])) for x in orders_of_call}
        for orders_of_call in orders_by_run["once"]
    ]
    return {"several orders are tried": all(len(orders) > 2 for orders in tried)}


def linear_mix(x: Any, A: Any, W: Any) -> Any:
    """Return A x W, of shape (..., m, d') for x (..., n, d)."""
    return A @ x @ W


def squashed_mix(x: Any, A: Any, W: Any) -> Any:
    """Return tanh(A x W)."""
    return (A @ x @ W).tanh()


def mixed_product(x: Any, A: Any, B: Any) -> Any:
    """Return (A x) · (B x), entry by entry."""
    return (A @ x) * (B @ x)


def small_attention(x: Any, W_q: Any, W_k: Any, W_v: Any, allowed: Any) -> Any:
    """Return softmax(x W_q (x W_k)ᵀ) x W_v, over the allowed keys."""
    scores = x @ W_q @ (x @ W_k).mT
    return scores.masked_fill(~allowed, -float("inf")).softmax(-1) @ (x @ W_v)


def small_attention_masked_late(x: Any, W_q: Any, W_k: Any, W_v: Any, allowed: Any) -> Any:
    """Return attention masked after the softmax: softmax(x W_q (x W_k)ᵀ) · allowed, times x W_v."""
    weights = (x @ W_q @ (x @ W_k).mT).softmax(-1) * allowed
    return weights @ (x @ W_v)


LENT_FUNCTIONS = {
    f.__name__: f
    for f in (
        linear_mix,
        squashed_mix,
        mixed_product,
        small_attention,
        small_attention_masked_late,
    )
}
