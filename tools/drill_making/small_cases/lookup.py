"""Small cases of chapter 3: two queries of two features, a score that is large."""

import numpy as np

from attncourse.checks.exercise import Case


def soft_lookup_cases() -> list[Case]:
    """Return cases of ``soft_lookup``: small scores, then one of which no exponential is."""
    keys, values = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[6.0, 0.0], [0.0, 3.0]])
    queries = ([[2.0, 0.0], [0.0, 1.0]], [[1000.0, 0.0], [0.0, 1.0]])
    return [Case((np.array(query), keys, values)) for query in queries]


CASES = {"lookup.soft_lookup": soft_lookup_cases}
