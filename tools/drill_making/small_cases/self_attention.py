"""Small cases of chapter 4: several functions at once, since True alone tells little."""

from collections.abc import Callable

import numpy as np

from attncourse.bank.self_attention.is_permutation_equivariant import FUNCTIONS
from attncourse.checks.callers import orders_tried, same_orders
from attncourse.checks.exercise import Case

SEED = 0  # without one, wrong code would give another result at every call
GENERATOR = f"rng: `np.random.default_rng({SEED})`, a new one for each"
THREE = ((1.0, 0.0), (2.0, 5.0), (0.0, 3.0))
SEVEN = tuple((2.0 * i, 2.0 * i + 1) for i in range(7))


def of_several(names: tuple[str, ...], options: dict) -> Callable:
    """Return the caller that asks of several functions, one after the other."""

    def of_each(implementation: Callable, X) -> list:
        said = []
        for name in names:
            rng = np.random.default_rng(SEED)
            said.append(implementation(unnamed(FUNCTIONS[name][1]), X, rng=rng, **options))
        return said

    return of_each


def unnamed(function: Callable) -> Callable:
    """Return a function whose own name does not say what it does."""
    return lambda X: function(X)


def functions(X: tuple, *names: str, **options: float) -> Case:
    """Return the case of some functions of tokens."""
    given = "".join(f", {name}={value}" for name, value in options.items())
    return Case(
        (np.array(X),),
        use=of_several(names, options),
        note="; ".join([*(f"{name}: {FUNCTIONS[name][0]}" for name in names), GENERATOR]),
        shown=f"[is_permutation_equivariant(f, X, rng{given}) for f in ({', '.join(names)})]",
    )


def generators() -> Case:
    """Return the case of equal generators, and of others."""
    return Case(
        (np.array(SEVEN), (1, 2)),
        use=orders_tried,
        facts=same_orders,
        shown="is_permutation_equivariant(f, X, rng) with equal generators, and with others",
    )


def equivariance() -> list[Case]:
    """Return cases of ``is_permutation_equivariant``, with right answers of both kinds."""
    return [
        functions(THREE, "scaled_features", "mean_everywhere", "first_everywhere"),
        functions(THREE, "scaled_features", "mean_everywhere", "numbered"),
        functions(THREE, "scaled_features", "sorted_features", "numbered"),
        functions(THREE, "scaled_features", "mean_everywhere", "numbered_in_one_feature"),
        functions(THREE, "mixed_by_scores", "sorted_features", "first_everywhere"),
        functions(THREE, "scaled_features", "mean_everywhere", "first_raised"),
        functions(THREE, "scaled_features", "sorted_features", "first_raised"),
        functions(THREE, "scaled_features", "mean_everywhere", "ring_mean"),
        functions(SEVEN, "scaled_features", "sorted_features", "window_mean"),
        functions(SEVEN, "scaled_features", "sorted_features", "ring_mean"),
        functions(SEVEN, "scaled_features", "sorted_features", "middle_sorted"),
        functions(SEVEN, "scaled_features", "mean_everywhere", "middle_sorted"),
        functions(THREE, "scaled_features", "numbered", "drifting", atol=0.005),
        functions(THREE, "mean_everywhere", "sorted_features", "drifting", atol=0.005),
        functions(THREE, "scaled_features", "mean_everywhere", "numbered", atol=0.0),
        functions(THREE, "mixed_by_scores", "mean_everywhere", "numbered"),
        generators(),
    ]


CASES = {"self_attention.is_permutation_equivariant": equivariance}
