"""Functions that draw random numbers: facts that hold for every right answer, however it draws.

The callers return the numbers that were drawn; the facts are worked out where the verdict is made
(``Case.facts``).
"""

from collections.abc import Callable

import numpy as np

from attncourse.checks.trying.compare import as_numbers, wrong_type
from attncourse.checks.trying.outcome import Unusable


def numbers_drawn(implementation: Callable, calls, seeds) -> np.ndarray:
    """Return ``implementation(*call, seed)``: a row for each call, a column for each seed."""
    return np.array([values_of(implementation, call, seeds) for call in calls])


def typical_sizes(values: np.ndarray) -> np.ndarray:
    """Return each row's mean over the seeds, rounded by ``rounded_to_power_of_two``.

    So right answers with other random numbers agree.
    """
    return np.array([rounded_to_power_of_two(row) for row in np.asarray(values, dtype=float)])


def repeated(values: np.ndarray) -> dict[str, bool]:
    """Return two facts: whether the seed, and nothing else, decides the result.

    ``values`` holds the numbers of two equal calls, a row each, with a column for each seed.
    """
    once, again = np.asarray(values, dtype=float)
    return {
        "calls with equal seeds return the same number": bool((once == again).all()),
        "calls with other seeds return other numbers": len(set(once.tolist())) > 1,
    }


def scattered(values: np.ndarray) -> dict[str, bool]:
    """Return the fact whether one row's results, of different seeds, agree within a factor of 2."""
    (row,) = np.asarray(values, dtype=float)
    low, high = float(row.min()), float(row.max())
    return {f"{len(row)} seeds agree within a factor of 2": 0 < low and high < 2 * low}


def rounded_to_power_of_two(values: np.ndarray) -> float:
    """Return the mean, rounded to a power of 2 (in the exponent); 0 where the signs differ."""
    mean = float(values.mean())
    if not np.isfinite(mean):
        return mean
    if abs(np.sign(values).sum()) < len(values):  # not all positive and not all negative
        return 0.0
    return float(np.sign(mean) * 2.0 ** round(np.log2(abs(mean))))


def values_of(implementation: Callable, call, seeds) -> np.ndarray:
    """Return the number that ``implementation(*call, seed)`` returns, for each seed."""
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
