"""Answers that take a function: the function that they are handed is made here, out of data."""

from collections.abc import Callable
from typing import Any

import numpy as np


def call_on_function(implementation: Callable, kind: str, *args, **tensors) -> Any:
    """Return the implementation's result for a function of x and further arguments.

    The function is ``LENT_FUNCTIONS[kind]`` with these tensors. It is made here, in the
    submission's process: through one that is called across the processes no gradient would flow.
    """
    function = LENT_FUNCTIONS[kind]

    # No ``partial``: a submission could read the tensors and the function off its attributes.
    def f(x: Any) -> Any:
        """Return the function's value for x and the tensors of the case."""
        return function(x, **tensors)

    return implementation(f, *args)


def orders_tried(implementation: Callable, X: Any, seeds: tuple) -> dict[str, list]:
    """Return, for each seed, the inputs with which an implementation calls the function it tests.

    All seeds are used twice: the lists stand under "once" and under "again".
    """

    def orders(seed: int) -> list[np.ndarray]:
        """Return the inputs of one run, in the order of the calls."""
        inputs: list[np.ndarray] = []

        def f(x: Any) -> Any:
            """Return x, and note it: an equivariant function, so that no test of it ends early."""
            inputs.append(np.array(x, dtype=float))
            return np.array(x)

        implementation(f, X.copy(), rng=np.random.default_rng(seed))
        return inputs

    return {name: [orders(seed) for seed in seeds] for name in ("once", "again")}


def same_orders(orders_by_run: dict[str, list]) -> dict[str, bool]:
    """Return two facts: equal generators try equal orders of the tokens, others other orders."""
    once, again = (
        [[x.tolist() for x in order] for order in orders_by_run[n]] for n in ("once", "again")
    )
    return {
        "equal generators try equal orders": once == again,
        "other generators try other orders": all(order != once[0] for order in once[1:]),
    }


def several_orders(orders_by_run: dict[str, list]) -> dict[str, bool]:
    """Return the fact whether each run tries more than two orders: the given one and one more."""
    tried = [
        {tuple(np.argsort(x[:, 0])) for x in orders_of_call}
        for orders_of_call in orders_by_run["once"]
    ]
    return {"several orders are tried": all(len(orders) > 2 for orders in tried)}


def linear_mix(x: Any, A: Any, W: Any) -> Any:
    """Return A x W, of shape (..., m, d_out) for x of shape (..., n, d)."""
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
