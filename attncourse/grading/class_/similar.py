"""Pairs of submissions that are alike, for a person to look at: no accusation.

Short right answers are alike by nature. So what two answers share counts by how rare it is in the
class, in bits: what two of 32 have counts 4, what all have counts nothing. And it is said how many
pairs would be as alike by chance: the answers to each exercise are dealt out anew, many times. That
leaves every answer as common as it is, and parts those who have answered alike throughout.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import attncourse
from attncourse import STEMS
from attncourse.grading.course.folders import find_assignment, find_students, read_submissions
from attncourse.grading.errors import Unreadable, UserError
from attncourse.grading.submission.fingerprints import Prints, answers_of, fingerprints, given_by
from attncourse.grading.submission.notebook import Assignment, read
from attncourse.grading.submission.syntax import parse

FEW = 0.2  # pairs expected by chance, up to which a pair is one to look at
PUBLISHED, PACKAGE = "(published answer)", "(package)"
DEALS = 400
MOST = 20_000_000  # pairs in all deals
Answers = dict[str, Prints]  # by exercise


@dataclass(frozen=True)
class Pair:
    """Two who answered alike: how many bits that tells, how many pairs are expected to be as alike
    by chance, and how alike they are in each exercise, from 0 to 1.
    """

    first: str
    second: str
    bits: float
    by_chance: float
    exercises: dict[str, float]


@dataclass(frozen=True)
class Class:
    """Every pair, the most alike first; who was compared, and who could not be, and why."""

    pairs: tuple[Pair, ...]
    compared: int
    left_out: tuple[str, ...] = ()

    @property
    def to_look_at(self) -> list[Pair]:
        """The pairs that are more alike than chance explains."""
        return [pair for pair in self.pairs if pair.by_chance <= FEW]


def similar(course: Path, name: str) -> Class:
    """The pairs of an assignment's class, and of its students with the published answers."""
    assignment = find_assignment(course, name)
    students, left_out = {}, []
    for submission in read_submissions(course, name, find_students(course, name)):
        try:
            if submission.data is None:
                raise Unreadable(submission.reason)
            versions = read(submission.data).versions
            answers = answers_of(versions[0], assignment)
        except Unreadable as problem:
            left_out.append(f"{submission.student}: {problem}")
            continue
        if answers:
            students[submission.student] = answers
        else:
            left_out.append(f"{submission.student}: nothing was written")
    if len(students) < 2:
        raise UserError(f"{name}: there are no two submissions to compare")
    return Class(compare(students, published(assignment)), len(students), tuple(left_out))


def published(assignment: Assignment) -> dict[str, Answers]:
    """The answers that anybody can read: in the solved notebook, and in the package."""
    cells = {c.grade_id: c.source for c in assignment.cells if c.solution and c.code}
    given = given_by(assignment)
    found: dict[str, Answers] = {PUBLISHED: {}, PACKAGE: {}}
    for name, source in cells.items():
        tree = parse(source)
        found[PUBLISHED][name] = fingerprints(tree) - given if tree else frozenset()
    stem = next((s for s in STEMS if assignment.name.endswith(s)), "")
    path = Path(attncourse.__file__).parent / f"{stem}.py"
    tree = parse(path.read_text(encoding="utf-8")) if path.is_file() else None
    for node in tree.body if tree else ():
        if getattr(node, "name", "") in cells:
            node.decorator_list = []
            tree.body = [node]
            found[PACKAGE][node.name] = fingerprints(tree) - given
    return {name: answers for name, answers in found.items() if answers}


def compare(
    students: dict[str, Answers], others: dict[str, Answers], seed: int = 0
) -> tuple[Pair, ...]:
    """The pairs of students, and of students with others, the most alike first."""
    everybody = students | others
    names, n = list(everybody), len(students)
    exercises = list(dict.fromkeys(e for answers in everybody.values() for e in answers))
    same = {e: alike([everybody[s].get(e, frozenset()) for s in names], n) for e in exercises}
    told = {e: bits_of(one, n) for e, one in same.items()}
    total = sum(told.values())
    first, second = np.triu_indices(len(names), 1)
    kept = first < n  # the published answers among themselves are nobody's
    first, second = first[kept], second[kept]
    bits = total[first, second]
    own = second < n
    chance = np.empty(len(bits))
    for among in (own, ~own):  # pairs of students, and students with what is published
        chance[among] = by_chance(told, n, (first[among], second[among]), bits[among], seed)
    pairs = [
        Pair(
            names[i],
            names[j],
            float(total[i, j]),
            float(chance[number]),
            {e: float(one[i, j]) for e, one in same.items() if min(one[i, i], one[j, j])},
        )
        for number, (i, j) in enumerate(zip(first, second, strict=True))
    ]
    return tuple(sorted(pairs, key=lambda pair: (pair.by_chance, -pair.bits)))


def alike(answers: list[Prints], n: int) -> np.ndarray:
    """How alike each two answers are, from 0 to 1: the part that they share of all that they have.

    What is rare among the first ``n`` counts for more, what all of these have for nothing.
    """
    columns = {one: k for k, one in enumerate(dict.fromkeys(p for a in answers for p in a))}
    there = np.zeros((len(answers), len(columns)))
    for row, prints in zip(there, answers, strict=True):
        row[[columns[p] for p in prints]] = 1
    written = max(int((there[:n].sum(axis=1) > 0).sum()), 1)
    rare = np.log2((written + 1) / np.clip(there[:n].sum(axis=0), 1, None))
    shared = (there * rare) @ there.T
    own = np.diag(shared)
    return shared / np.maximum(own[:, None] + own - shared, 1e-9)


def bits_of(alike: np.ndarray, n: int) -> np.ndarray:
    """How much it tells, in bits, that two answers are as alike as they are.

    It is nothing where the others among the first ``n`` are as alike to them, and log2(n / 2) where
    two of these are the same and nobody else has the like.
    """
    written = np.diag(alike)[:n] > 0
    others = np.sort(alike[:, :n][:, written], axis=1)
    less = [np.searchsorted(row, one - 1e-9) for row, one in zip(others, alike, strict=True)]
    rank = np.clip(written.sum() - np.array(less), 1, None)  # how many are as alike, or more
    bits = alike * np.log2(max(written.sum(), 1) / rank)
    return np.minimum(bits, bits.T)


def by_chance(
    told: dict[str, np.ndarray], n: int, pairs: tuple, bits: np.ndarray, seed: int
) -> np.ndarray:
    """How many of these pairs have as many bits where each exercise's answers are dealt anew."""
    rng = np.random.default_rng(seed)
    deals = int(np.clip(MOST // max(len(bits), 1), 20, DEALS))
    order, dealt = np.arange(len(next(iter(told.values())))), []
    for _ in range(deals):
        total = np.zeros(len(bits))
        for one in told.values():
            order[:n] = rng.permutation(n)
            total += one[order[pairs[0]], order[pairs[1]]]
        dealt.append(total)
    every = np.sort(np.concatenate(dealt))
    return (len(every) - np.searchsorted(every, bits - 1e-9)) / deals
