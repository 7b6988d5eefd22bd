"""Splits and bootstraps: facts that hold for every right answer, whatever its random numbers.

For a split these are which pairs stay together and how large the sides are; for a bootstrap, which
rows the statistic got, and between which of its values the interval lies. The callers return what
was drawn; the facts are worked out where the verdict is made (``Case.facts``).
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from attncourse.checks.trying.compare import as_numbers, wrong_type
from attncourse.checks.trying.outcome import Unusable

MAX_STATISTIC_CALLS = 200_000  # calls of a statistic, above which a loop is taken for endless
MAX_OTHER_CALLS = 2  # calls that are no resample: of the sample itself, for example


def splits_made(
    implementation: Callable, properties: tuple, sequences: list, options: dict, seeds: tuple
) -> dict[str, list]:
    """Return the splits with these seeds, and further ones that some ``properties`` need.

    For ``EQUAL`` the same splits "again"; for ``DEFAULTS`` one with the options "left out" and one
    with the values that these have to have.
    """

    def splits_of_seeds() -> list:
        """Return a split for each seed."""
        return [sides_of(implementation(sequences, **options, seed=seed)) for seed in seeds]

    splits: dict[str, list] = {"splits": splits_of_seeds()}
    if EQUAL in properties:
        splits["again"] = splits_of_seeds()
    if DEFAULTS in properties:
        splits["left out"] = [
            sides_of(implementation(sequences)),
            sides_of(implementation(sequences, 1, 0.2, 0)),
        ]
    return splits


EQUAL, DEFAULTS = "equal seeds give equal splits", "left out, the options are 1, 0.2 and 0"


def split_kept(
    properties: tuple, n: int, pairs: list, size: float, allowed: float, results: dict[str, list]
) -> dict[str, bool]:
    """Return, for each of the ``properties``, whether the splits of n sequences have it.

    ``pairs`` are the pairs of indices that have to stay together, or that some seed has to part.
    The test side has ``size`` sequences, give or take ``allowed``.
    """
    splits = split_indices(results["splits"])
    tested = [set(test) for _, test in splits]
    tests = {
        "near-copies stay together": lambda: all(
            (i in test) == (j in test) for test in tested for i, j in pairs
        ),
        "others can be parted": lambda: all(
            any((i in test) != (j in test) for test in tested) for i, j in pairs
        ),
        "every index is on one side, once": lambda: all(
            sorted([*train, *test]) == list(range(n)) for train, test in splits
        ),
        "both sides are sorted": lambda: all(
            a < b for split in splits for side in split for a, b in pairwise(side)
        ),
        "the test side is as large as asked": lambda: all(
            abs(len(test) - size) <= allowed for _, test in splits
        ),
        EQUAL: lambda: tested == [set(test) for _, test in split_indices(results["again"])],
        "other seeds give other splits": lambda: (
            len({tuple(sorted(test)) for test in tested}) > len(splits) // 2
        ),
        DEFAULTS: lambda: equal_splits(*split_indices(results["left out"])),
    }
    return {name: bool(tests[name]()) for name in properties}


def split_indices(splits: list) -> list[tuple[list[int], list[int]]]:
    """Return the two sides of each split as lists of ``int``."""
    return [tuple(np.asarray(side, dtype=np.int64).tolist() for side in split) for split in splits]


def sides_of(split: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return train and test side as arrays of whole numbers; ``Unusable`` if they are none."""
    if not isinstance(split, tuple | list) or len(split) != 2:
        raise Unusable(wrong_type(split, "two arrays of indices, (train, test)"))
    sides = []
    for side in split:
        array = np.asarray(side) if isinstance(side, list | range) else as_numbers(side)
        if array is not None and array.size == 0 and array.ndim == 1:
            array = array.astype(int)
        if array is None or array.ndim != 1 or array.dtype.kind not in "iu":
            raise Unusable(wrong_type(side, "an array of indices on each side"))
        sides.append(array)
    return sides[0], sides[1]


def equal_splits(first: tuple, second: tuple) -> bool:
    """True if two splits have the same indices on each side, in whatever order."""
    return all(sorted(a) == sorted(b) for a, b in zip(first, second, strict=True))


def rows_resampled(
    implementation: Callable, n: int, options: dict, kinds: tuple, seed: int
) -> dict[str, np.ndarray]:
    """Return "rows", the row numbers that each resample gives to the statistic, and "sizes".

    ``kinds`` are the kinds of the arrays: "array", "matrix", "list" or "words", all of n rows. The
    rows of all resamples are joined; "sizes" has a row for each resample, with each array's length.
    """
    seen: list[np.ndarray] = []

    def statistic(*arrays: Any) -> float:
        """Return the mean of the first array's row numbers, and note the rows of all arrays."""
        if len(seen) >= MAX_STATISTIC_CALLS * len(kinds):
            raise Unusable(f"called the statistic more than {MAX_STATISTIC_CALLS} times")
        if len(arrays) != len(kinds):
            raise Unusable(f"gave the statistic {len(arrays)} arrays, expected {len(kinds)}")
        numbers = [row_numbers(a, kind) for a, kind in zip(arrays, kinds, strict=True)]
        seen.extend(numbers)
        return float(numbers[0].mean()) if len(numbers[0]) else 0.0

    implementation(
        statistic,
        *(distinct_rows(kind, n) for kind in kinds),
        **options,
        rng=np.random.default_rng(seed),
    )
    sizes = np.array([len(rows) for rows in seen], dtype=int).reshape(-1, len(kinds))
    return {"sizes": sizes, "rows": np.concatenate([np.zeros(0, int), *seen])}


def drawn_as_asked(
    properties: tuple, n: int, n_resamples: int, results: dict[str, np.ndarray]
) -> dict[str, bool]:
    """Return, for each of the ``properties``, whether resamples of n rows have it.

    ``n_resamples`` is how many were asked for. A property says "more than half" where a right
    answer may fail in single resamples, by chance.
    """
    sizes = np.asarray(results["sizes"], dtype=np.int64)
    rows = np.asarray(results["rows"], dtype=np.int64)
    parts = iter(np.split(rows, np.cumsum(sizes.ravel())[:-1]))
    resamples = [[next(parts) for _ in row] for row in sizes]
    counts = np.zeros(n)
    for arrays in resamples:
        counts += np.bincount(arrays[0][arrays[0] < n], minlength=n)[:n]
    expected = counts.sum() / n
    tests = {
        "as many resamples as asked": lambda: (
            n_resamples <= len(resamples) <= n_resamples + MAX_OTHER_CALLS
        ),
        "each has as many rows as the sample": lambda: (
            len(resamples) > 0 and all(len(a) == n for arrays in resamples for a in arrays)
        ),
        "rows are drawn with replacement": lambda: (
            sum(len(set(arrays[0].tolist())) < len(arrays[0]) for arrays in resamples)
            > n_resamples // 2
        ),
        "resamples differ": lambda: (
            len({tuple(np.sort(arrays[0]).tolist()) for arrays in resamples}) > n_resamples // 2
        ),
        # Seven standard deviations: no right answer fails by chance.
        "every row is drawn as often": lambda: bool(
            expected and np.all(np.abs(counts - expected) <= 7 * expected**0.5)
        ),
        "the arrays are resampled together": lambda: all(
            np.array_equal(arrays[0], array) for arrays in resamples for array in arrays[1:]
        ),
    }
    return {name: bool(tests[name]()) for name in properties}


def distinct_rows(kind: str, n: int) -> Any:
    """Return n rows of this kind, of which row i holds i, which ``row_numbers`` reads again."""
    numbers = np.arange(n)
    if kind == "matrix":
        return np.stack([numbers, numbers + 0.5, -numbers], axis=1)
    if kind == "list":
        return numbers.tolist()
    return np.array([f"row {i}" for i in numbers]) if kind == "words" else numbers


def row_numbers(array: Any, kind: str) -> np.ndarray:
    """Return the numbers of a resample's rows, as ``distinct_rows`` has written them.

    Raises ``Unusable`` where a row holds no such number.
    """
    try:
        array = np.asarray(array)
        if kind == "words":
            return np.array([int(str(word).split()[1]) for word in array.tolist()], dtype=int)
        rows = (array[:, 0] if kind == "matrix" else array).astype(int)
        return rows.reshape(len(rows))
    except Exception:
        raise Unusable("gave the statistic other rows than those of the arrays") from None


def places_taken(
    implementation: Callable, n_resamples: int, level: float | None, seed: int
) -> np.ndarray:
    """Return which quantiles the interval's ends are, as shares of 1 rounded to 1/200.

    The statistic returns 0, 1, 2, … in a random order, so an end divided by ``n_resamples`` is a
    share. Definitions of a quantile differ by less than half a step of 1/200. With None for
    ``level`` that option is left out.
    """
    values = iter(np.random.default_rng(seed).permutation(n_resamples).tolist())
    options = {} if level is None else {"level": level}
    interval = implementation(
        lambda array: float(next(values, n_resamples / 2)),
        np.arange(5.0),
        **options,
        n_resamples=n_resamples,
        rng=np.random.default_rng(seed),
    )
    ends = np.array(ends_of(interval)) / n_resamples
    return np.round(ends * 200) / 200


def ends_of(interval: Any) -> tuple[float, float]:
    """Return the two numbers of an interval; ``Unusable`` where it has not two."""
    array = None
    if isinstance(interval, tuple | list) and len(interval) == 2:
        parts = [as_numbers(end) for end in interval]
        ends = [float(p.reshape(())) for p in parts if p is not None and p.size == 1]
        array = np.array(ends)
    elif not isinstance(interval, tuple | list):
        array = as_numbers(interval)
    if array is None or array.shape != (2,):
        raise Unusable(wrong_type(interval, "two numbers, (low, high)"))
    return float(array[0]), float(array[1])


def interval_of(implementation: Callable, name: str, arrays: tuple, options: dict, seed: int):
    """Return the interval of the statistic of this name in ``STATISTICS``, as an array of two."""
    rng = np.random.default_rng(seed)
    return np.array(ends_of(implementation(STATISTICS[name], *arrays, **options, rng=rng)))


def legacy_state() -> np.ndarray:
    """Return the state of NumPy's global generator, 624 numbers."""
    state: Any = np.random.get_state()
    return state[1]


def intervals_drawn(implementation: Callable, seeds: tuple, n: int) -> dict[str, Any]:
    """Return "runs", the intervals with generators of these seeds, and those "without" one.

    Each generator is used twice in a row, and all of that is done twice. "untouched" says whether
    the calls without a generator left NumPy's global one as it was.
    """

    def interval(rng: Any) -> tuple[float, float]:
        """Return one interval of the mean."""
        sample = np.arange(n) ** 2.0  # sums of these are exact in any order
        return ends_of(implementation(np.mean, sample, n_resamples=50, rng=rng))

    def two_intervals(seed: int) -> list:
        """Return a new generator's first two intervals."""
        rng = np.random.default_rng(seed)
        return [interval(rng), interval(rng)]

    runs = [[two_intervals(seed) for seed in seeds] for _ in range(2)]
    before = legacy_state().copy()
    without = [interval(None) for _ in range(3)]
    untouched = np.array_equal(before, legacy_state())
    return {"runs": np.array(runs), "without": np.array(without), "untouched": bool(untouched)}


def interval_repeated(results: dict[str, Any]) -> dict[str, bool]:
    """Return four facts: whether the generator, and nothing else, decides the interval."""
    runs, again = np.asarray(results["runs"], dtype=float).tolist()
    without = np.asarray(results["without"], dtype=float).tolist()
    return {
        "equal generators give the same interval": runs == again,
        "other generators give other intervals": len({tuple(run[0]) for run in runs}) > 1,
        "a generator that goes on gives another interval": all(a != b for a, b in runs),
        "without a generator two calls differ": len(set(map(tuple, without))) > 1
        or results["untouched"] is False,
    }


def mean(array: Any) -> float:
    """Return the mean of all numbers: a statistic to resample."""
    return float(np.mean(array))


def largest_gap(first: Any, second: Any) -> float:
    """Return the largest difference of two arrays' entries: a statistic of two arguments."""
    return float(np.max(np.abs(np.asarray(first) - np.asarray(second))))


def largest(array: Any) -> float:
    """Return the largest entry by the array's own ``max``, which a list has not."""
    return float(array.max())


def number_of_rows(*arrays: Any) -> int:
    """Return the length of the first array: a statistic that is the same for every resample."""
    return len(arrays[0])


STATISTICS = {f.__name__: f for f in (mean, largest, largest_gap, number_of_rows)}
