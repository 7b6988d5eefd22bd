"""How alike answers are, how telling that is, and how much of it is chance.

A table has a row for each answer; the rows of one student, the versions of an answer, follow each
other, and ``firsts`` says where they begin. The first ``n`` are students, the others published.
"""

from collections import Counter

import numpy as np

from attncourse.grading.submission.fingerprints import Prints

MAX_DEALS = 400
MAX_PAIRS = 20_000_000  # pairs in all deals
AT_ONCE = 2000  # columns of a table that is never there as a whole


def most_of_versions(pairs: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Return the largest value over the versions of two persons, a row and a column each."""
    return np.maximum.reduceat(np.maximum.reduceat(pairs, firsts, axis=0), firsts, axis=1)


def likeness_matrix(answers: list[Prints], n: int, firsts: np.ndarray) -> np.ndarray:
    """Return how alike any two answers are, 0 to 1: shared fingerprints over all of both.

    A fingerprint that few of the first ``n`` students have counts for more, one that all of them
    have for nothing.
    """
    owners = np.searchsorted(firsts, np.arange(len(answers)), side="right") - 1
    holders: dict[tuple[str, ...], list[int]] = {}
    for row, prints in enumerate(answers):
        for fingerprint in prints:
            holders.setdefault(fingerprint, []).append(row)
    groups = Counter(map(tuple, holders.values()))  # fingerprints that the same rows have
    written = max(len({o for o, p in zip(owners, answers, strict=True) if p and o < n}), 1)
    shared = np.zeros((len(answers), len(answers)))
    for start in range(0, len(groups), AT_ONCE):
        chunk = list(groups.items())[start : start + AT_ONCE]
        holds, rare = np.zeros((len(answers), len(chunk))), np.zeros(len(chunk))
        for column, (group, number) in enumerate(chunk):
            holds[list(group), column] = 1
            have = len({owner for owner in owners[list(group)] if owner < n})
            rare[column] = number * np.log2((written + 1) / max(have, 1))
        shared += (holds * rare) @ holds.T
    is_own = np.diag(shared)
    return shared / np.maximum(is_own[:, None] + is_own - shared, 1e-9)


def bits_of_likeness(alike: np.ndarray, n: int, firsts: np.ndarray) -> np.ndarray:
    """Return how telling it is, in bits, that two answers are as alike as they are.

    0 where the others among the first ``n`` are as alike to them, and log2(n / 2) where two of
    these are the same and nobody else has the like.
    """
    written = np.maximum.reduceat(np.diag(alike), firsts)[:n] > 0
    students = np.maximum.reduceat(alike, firsts, axis=1)
    others = np.sort(students[:, :n][:, written], axis=1)
    less = [
        np.searchsorted(row, similarity - 1e-9)
        for row, similarity in zip(others, alike, strict=True)
    ]
    rank = np.clip(written.sum() - np.array(less), 1, None)  # how many are as alike, or more
    bits = alike * np.log2(max(written.sum(), 1) / rank)
    return np.minimum(bits, bits.T)


def pairs_by_chance(
    bits_by_exercise: dict[str, np.ndarray], n: int, pairs: tuple, bits: np.ndarray, seed: int
) -> np.ndarray:
    """Return how many pairs would reach as many bits if answers were dealt out at random.

    ``pairs`` are two arrays of row numbers; the result has one number for each of the ``bits``.
    """
    rng = np.random.default_rng(seed)
    deals = int(np.clip(MAX_PAIRS // max(len(bits), 1), 20, MAX_DEALS))
    order, dealt = np.arange(len(next(iter(bits_by_exercise.values())))), []
    for _ in range(deals):
        total = np.zeros(len(bits))
        for bits_of_exercise in bits_by_exercise.values():
            order[:n] = rng.permutation(n)
            total += bits_of_exercise[order[pairs[0]], order[pairs[1]]]
        dealt.append(total)
    every = np.sort(np.concatenate(dealt))
    return (len(every) - np.searchsorted(every, bits - 1e-9)) / deals
