"""Functions that draw random numbers: what any right generator gives in the same way."""

from collections.abc import Callable

import numpy as np

from attncourse.checks.compare import as_numbers, wrong_type
from attncourse.checks.outcome import Unusable


def typical_sizes(implementation: Callable, calls, seeds) -> np.ndarray:
    """How large the random numbers are that the implementation returns: one size for each call.

    It is called as ``implementation(*call, seed)``. The size is the mean over the seeds, rounded
    to a power of 2, so that right answers with other random numbers agree; it is 0 where the
    seeds do not even agree on the sign.
    """
    return np.array([rounded(values_of(implementation, call, seeds)) for call in calls])


def repeated(implementation: Callable, call, seeds) -> dict[str, bool]:
    """Whether the seed, the last argument, and nothing else decides what is returned."""
    values, again = (values_of(implementation, call, seeds) for _ in range(2))
    return {
        "calls with equal seeds return the same number": bool((values == again).all()),
        "calls with other seeds return other numbers": len(set(values)) > 1,
    }


def scattered(implementation: Callable, call, seeds) -> dict[str, bool]:
    """Whether the numbers that different seeds return differ much or little."""
    values = values_of(implementation, call, seeds)
    low, high = float(values.min()), float(values.max())
    return {f"{len(values)} seeds agree within a factor of 2": 0 < low and high < 2 * low}


def rounded(values: np.ndarray) -> float:
    """The mean, rounded to a power of 2; 0 where the values have not one sign."""
    mean = float(values.mean())
    if not np.isfinite(mean):
        return mean
    if abs(np.sign(values).sum()) < len(values):
        return 0.0
    return float(np.sign(mean) * 2.0 ** round(np.log2(abs(mean))))


def values_of(implementation: Callable, call, seeds) -> np.ndarray:
    """The number that ``implementation(*call, seed)`` returns, for each seed."""
    values = []
    for seed in seeds:
        value = implementation(*call, seed)
        number = as_numbers(value)
        if number is None:
            raise Unusable(wrong_type(value, "a number"))
        if number.shape:
            raise Unusable(f"returned shape {number.shape}, expected one number")
        values.append(float(number))
    return np.array(values)
