"""Small cases of chapter 16: ten labels, six short sequences that are shown."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attncourse.checks.callers.resampling import sides_of
from attncourse.checks.exercise import Case

TRUE_LABELS = (0, 0, 0, 0, 1, 1, 1, 2)
PREDICTED_LABELS = ((0, 0, 1, 2, 1, 1, 0, 2), (0, 0, 0, 1, 1, 2, 2, 2), (0, 0, 0, 3, 1, 1, 0, 2))


def balanced_accuracy_cases() -> list[Case]:
    """Return cases of ``balanced_accuracy``: classes of four, three and one."""
    return [
        Case((np.array(TRUE_LABELS), np.array(predictions))) for predictions in PREDICTED_LABELS
    ]


def sides_of_split(
    implementation: Callable, sequences: list, distance: int, share: float, seed: int
):
    """Return the two sides of a split, as lists of indices."""
    train, test = sides_of(implementation(sequences, distance, share, seed))
    return {"train": train, "test": test}


def split_case(*sequences: str, distance: int = 1, share: float = 0.5, seed: int = 0) -> Case:
    """Return the case of one split."""
    return Case(
        ([*sequences], distance, share, seed),
        use=sides_of_split,
        shown=f"split_by_similarity({[*sequences]}, {distance}, {share}, {seed})",
    )


def split_by_similarity_cases() -> list[Case]:
    """Return cases of ``split_by_similarity``: pairs, a chain, a longer one, with some seeds."""
    pairs = ("CASA", "GGGG", "CASC", "GGGT")
    chain = ("CASA", "CASC", "CATC", "GGGG", "LLLL", "KKKK")
    ends = ("CASA", "GGGG", "ACASA", "GGGGT", "LLL", "KK")
    two_apart = ("CASA", "GGGG", "CATC", "GGTT")
    meeting = ("CASA", "CTSC", "GGGG", "CASC", "LLLL", "KKKK")
    sequence_lists = (pairs, chain, ends, two_apart, meeting)
    cases = [split_case(*sequences, seed=seed) for seed in range(3) for sequences in sequence_lists]
    distant_cases = [split_case(*two_apart, distance=2, seed=seed) for seed in range(2)]
    return [*cases, *distant_cases, split_case("AA", "CC", "GG", "TT", "LL", share=0.8)]


def interval_of_mean(
    implementation: Callable, numbers: Any, level: float, n_resamples: int
) -> list:
    """Return the interval of the mean of some numbers, with a generator of a seed."""
    ends = implementation(
        np.mean, numbers, level=level, n_resamples=n_resamples, rng=np.random.default_rng(0)
    )
    return [float(end) for end in ends]


def bootstrap_interval_cases() -> list[Case]:
    """Return cases of ``bootstrap_interval``: the mean of four numbers."""
    numbers = np.array((0.0, 1.0, 4.0, 7.0))
    return [
        Case(
            (numbers, level, n_resamples),
            use=interval_of_mean,
            shown=f"bootstrap_interval(np.mean, numbers, level={level}, "
            f"n_resamples={n_resamples}, rng=np.random.default_rng(0))",
        )
        for level, n_resamples in ((0.5, 200), (0.8, 500))
    ]


CASES = {
    "sequences.balanced_accuracy": balanced_accuracy_cases,
    "sequences.split_by_similarity": split_by_similarity_cases,
    "sequences.bootstrap_interval": bootstrap_interval_cases,
}
