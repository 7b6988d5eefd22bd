"""Pairs of returned and expected arrays, and how close they are."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from attncourse.checks.trying.compare import (
    ROUNDING_DIFFERENCE,
    as_numbers,
    entries_far_apart,
    equal_but_for_rounding,
    scale_of,
)
from attncourse.checks.trying.trials import Trial


@dataclass(frozen=True)
class Pair:
    """A returned array beside the expected one, in its ``place`` where a result has parts."""

    returned: np.ndarray
    expected: np.ndarray
    trial: Trial
    place: int = 0

    @cached_property
    def right(self) -> bool:
        """True if the returned array has the shape and, but for rounding, the numbers expected."""
        return self.returned.shape == self.expected.shape and equal_but_for_rounding(
            self.returned, self.expected
        )


def number_pairs(trials: tuple[Trial, ...]) -> list[Pair]:
    """Return a pair for each trial that returned numbers where numbers were expected.

    Of a result with gradients it is the output itself, without the gradients.
    """
    pairs = []
    for t in trials:
        if t.outcome.kind != "value" or t.expected.kind != "value":
            continue
        pairs += pairs_of_results(*returned_and_expected(t), t)
    return pairs


def pairs_of_parts(trial: Trial) -> list[Pair]:
    """Return the pairs of all parts of a trial's result; none where one of them has no numbers.

    The gradients beside a result are parts, too, and so is each of several results.
    """
    if trial.outcome.kind != "value" or trial.expected.kind != "value":
        return []
    parts = parts_side_by_side(trial.outcome.value, trial.expected.value)
    pairs = [pairs_of_results(returned, expected, trial) for returned, expected in parts]
    return [replace(*pair, place=place) for place, pair in enumerate(pairs)] if all(pairs) else []


def parts_side_by_side(returned: Any, expected: Any) -> list[tuple[Any, Any]]:
    """Return each part of what was expected, with what was returned for it; None for nothing."""
    if isinstance(expected, dict):
        parts = [
            (returned.get(key) if isinstance(returned, dict) else None, expected[key])
            for key in expected
        ]
    elif isinstance(expected, list | tuple):
        has_as_many = isinstance(returned, list | tuple) and len(returned) == len(expected)
        parts = [*zip(returned if has_as_many else [None] * len(expected), expected, strict=True)]
    else:
        return [(returned, expected)]
    return [pair for part in parts for pair in parts_side_by_side(*part)]


def returned_and_expected(trial: Trial) -> tuple[Any, Any]:
    """Return the returned value and the expected one; of named results the first."""
    returned, expected = trial.outcome.value, trial.expected.value
    if isinstance(expected, dict) and isinstance(returned, dict):
        key = next(iter(expected))
        return returned.get(key), expected[key]
    return returned, expected


def pairs_of_results(returned: object, expected: object, trial: Trial) -> list[Pair]:
    """Return the pair of two values in a list; [] where one of them holds no numbers."""
    first, second = (as_numbers(v) if v is not None else None for v in (returned, expected))
    if first is None or second is None:
        return []
    return [Pair(first, second, trial)]


def close_in_single_precision(p: Pair) -> bool:
    """True if a result is right up to the digits that single precision loses."""
    if p.returned.shape != p.expected.shape:
        return False
    return p.right or largest_difference(p) <= ROUNDING_DIFFERENCE * scale_of(p.expected)


def largest_difference(p: Pair) -> float:
    """Return the largest difference of two entries; ∞ where one alone is not a finite number."""
    with np.errstate(all="ignore"):
        gaps = np.where(
            p.returned == p.expected, 0, np.abs(p.returned.astype(float) - p.expected.astype(float))
        )
    return float(gaps.max(initial=0.0)) if np.isfinite(gaps).all() else np.inf


def nearly_equal(a: np.ndarray, b: np.ndarray) -> bool:
    """True if ``a`` differs from ``b`` by at most 1e-7 of the largest finite number of ``b``.

    An ``a`` of single or half precision may differ by 1e-4 of it.
    """
    with np.errstate(all="ignore"):
        b = b.astype(float)
        limit = 1e-4 if a.dtype in (np.float32, np.float16) else 1e-7
        scale = np.abs(b[np.isfinite(b)]).max(initial=0.0) or 1.0
        return not entries_far_apart(a.astype(float), b, limit * scale).any()
