"""Small cases of chapter 4: several functions at once, since True alone tells little."""

from collections.abc import Callable

import numpy as np

from attncourse.bank.self_attention.is_permutation_equivariant import FUNCTIONS
from attncourse.checks.callers import orders_tried, same_orders
from attncourse.checks.exercise import Case

ORDER_SEED = 0  # without one, wrong code would give another result at every call
GENERATOR_NOTE = f"rng: `np.random.default_rng({ORDER_SEED})`, a new one for each"
THREE_VECTORS = ((1.0, 0.0), (2.0, 5.0), (0.0, 3.0))
SEVEN_VECTORS = tuple((2.0 * i, 2.0 * i + 1) for i in range(7))


def caller_for_functions(names: tuple[str, ...], options: dict) -> Callable:
    """Return the caller that asks of several functions, one after the other."""

    def call_on_each(implementation: Callable, X) -> list:
        answers = []
        for name in names:
            rng = np.random.default_rng(ORDER_SEED)
            answers.append(implementation(without_name(FUNCTIONS[name][1]), X, rng=rng, **options))
        return answers

    return call_on_each


def without_name(function: Callable) -> Callable:
    """Return a function whose own name does not say what it does."""
    return lambda X: function(X)


def functions_case(X: tuple, *names: str, **options: float) -> Case:
    """Return the case of some functions of tokens."""
    keywords = "".join(f", {name}={value}" for name, value in options.items())
    return Case(
        (np.array(X),),
        use=caller_for_functions(names, options),
        note="; ".join([*(f"{name}: {FUNCTIONS[name][0]}" for name in names), GENERATOR_NOTE]),
        shown=f"[is_permutation_equivariant(f, X, rng{keywords}) for f in ({', '.join(names)})]",
    )


def order_generators_case() -> Case:
    """Return the case of equal generators, and of others."""
    return Case(
        (np.array(SEVEN_VECTORS), (1, 2)),
        use=orders_tried,
        facts=same_orders,
        shown="is_permutation_equivariant(f, X, rng) with equal generators, and with others",
    )


def is_permutation_equivariant_cases() -> list[Case]:
    """Return cases of ``is_permutation_equivariant``, with right answers of both kinds."""
    return [
        functions_case(THREE_VECTORS, "scaled_features", "mean_everywhere", "first_everywhere"),
        functions_case(THREE_VECTORS, "scaled_features", "mean_everywhere", "numbered"),
        functions_case(THREE_VECTORS, "scaled_features", "sorted_features", "numbered"),
        functions_case(
            THREE_VECTORS, "scaled_features", "mean_everywhere", "numbered_in_one_feature"
        ),
        functions_case(THREE_VECTORS, "mixed_by_scores", "sorted_features", "first_everywhere"),
        functions_case(THREE_VECTORS, "scaled_features", "mean_everywhere", "first_raised"),
        functions_case(THREE_VECTORS, "scaled_features", "sorted_features", "first_raised"),
        functions_case(THREE_VECTORS, "scaled_features", "mean_everywhere", "ring_mean"),
        functions_case(SEVEN_VECTORS, "scaled_features", "sorted_features", "window_mean"),
        functions_case(SEVEN_VECTORS, "scaled_features", "sorted_features", "ring_mean"),
        functions_case(SEVEN_VECTORS, "scaled_features", "sorted_features", "middle_sorted"),
        functions_case(SEVEN_VECTORS, "scaled_features", "mean_everywhere", "middle_sorted"),
        functions_case(THREE_VECTORS, "scaled_features", "numbered", "drifting", atol=0.005),
        functions_case(THREE_VECTORS, "mean_everywhere", "sorted_features", "drifting", atol=0.005),
        functions_case(THREE_VECTORS, "scaled_features", "mean_everywhere", "numbered", atol=0.0),
        functions_case(THREE_VECTORS, "mixed_by_scores", "mean_everywhere", "numbered"),
        order_generators_case(),
    ]


CASES = {"self_attention.is_permutation_equivariant": is_permutation_equivariant_cases}
