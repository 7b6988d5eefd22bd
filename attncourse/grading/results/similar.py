"""Pairs of submissions that are alike, for a person to look at: it is no accusation.

Short right answers are alike by nature. So what two answers share counts by how rare it is in the
class, in bits: what two of 32 have counts 4, what all have counts nothing. And it is said how many
pairs would be as alike by chance: the answers to each exercise are dealt out anew, many times. That
leaves every answer as common as it is, and parts those who have answered alike throughout.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import attncourse
from attncourse import STEMS
from attncourse.grading.course.folders import (
    find_assignment,
    find_students,
    read_record,
    read_submissions,
)
from attncourse.grading.errors import Unreadable, UserError
from attncourse.grading.results.likeness import (
    bits_of_likeness,
    likeness_matrix,
    most_of_versions,
    pairs_by_chance,
)
from attncourse.grading.submission.fingerprints import (
    MAX_COMPARED_CHARS,
    Prints,
    fingerprints,
    fingerprints_by_exercise,
    fingerprints_of_given,
)
from attncourse.grading.submission.notebook import Assignment, read_submission_cells
from attncourse.grading.submission.syntax import parse_or_none

MAX_PAIRS_BY_CHANCE = 0.2  # pairs expected by chance, up to which a pair is one to look at
PUBLISHED, PACKAGE, PAGE = "(published answer)", "(package)", "(in one piece)"
EMPTY: Prints = frozenset()
Answers = dict[str, Prints]  # by exercise


@dataclass(frozen=True)
class Likeness:
    """Two students, or a student and a published answer, and how alike their answers are.

    ``bits`` say how telling that is, ``by_chance`` how many pairs are expected to be as alike by
    chance, ``exercises`` how alike each answer is, 0 to 1.
    """

    first: str
    second: str
    bits: float
    by_chance: float
    exercises: dict[str, float]


@dataclass(frozen=True)
class Likenesses:
    """All pairs, the most alike first; how many were compared, and who could not be, and why."""

    pairs: tuple[Likeness, ...]
    compared: int
    left_out: tuple[str, ...] = ()

    @property
    def to_look_at(self) -> list[Likeness]:
        """Return the pairs that are more alike than chance explains."""
        return [pair for pair in self.pairs if pair.by_chance <= MAX_PAIRS_BY_CHANCE]


def similar_pairs(course: Path, name: str) -> Likenesses:
    """Return the pairs of an assignment's submissions, with each other and published answers."""
    assignment, rows = find_assignment(course, name), read_record(course, name)
    students: dict[str, tuple[Answers, ...]] = {}
    left_out, groups = [], set()
    for submission in read_submissions(course, name, find_students(course, name)):
        label = submission.student
        if group := rows.get(label, {}).get("group"):
            if (group, submission.data) in groups:  # one work of several, who are no pair
                continue
            groups.add((group, submission.data))
            label = f"{label} ({group})"
        try:
            if submission.data is None:
                raise Unreadable(submission.reason)
            # Any version may be the one that counts: they are compared in all.
            versions = read_submission_cells(submission.data).versions
            answers = tuple(
                answers_of_version
                for v in versions
                if (answers_of_version := fingerprints_by_exercise(v, assignment))
            )
            if not answers:
                raise Unreadable("nothing was written")
        except Unreadable as problem:
            left_out.append(f"{label}: {problem}")
            continue
        except (RecursionError, MemoryError):
            left_out.append(f"{label}: its code is nested too deeply, or too long")
            continue
        students[label] = answers
        if any(
            sum(len(c.source) for c in version if c.code) > MAX_COMPARED_CHARS
            for version in versions
        ):
            left_out.append(
                f"{label}: the part of its code that is beyond {MAX_COMPARED_CHARS} characters"
            )
    if len(students) < 2:
        raise UserError(f"{name}: there are no two submissions to compare")
    likenesses = compare_all(students, published_answers(assignment, course))
    return Likenesses(likenesses, len(students), tuple(left_out))


def published_answers(assignment: Assignment, course: Path) -> dict[str, Answers]:
    """Return the answers that anybody can read, by where that is.

    That is in the solved notebook, in the package, and in what the chapter's page has *in one
    piece*, if the course has its book.
    """
    cells = {c.grade_id: c.source for c in assignment.cells if c.solution and c.code}
    given_fingerprints = fingerprints_of_given(assignment)
    answers_by_source: dict[str, Answers] = {PUBLISHED: {}, PACKAGE: {}, PAGE: {}}
    for name, source in cells.items():
        tree = parse_or_none(source)
        answers_by_source[PUBLISHED][name] = (
            fingerprints(tree) - given_fingerprints if tree else frozenset()
        )
    stem = next((s for s in STEMS if assignment.name.endswith(s)), "")
    path = Path(attncourse.__file__).parent / f"{stem}.py"
    package = path.read_text(encoding="utf-8") if path.is_file() else ""
    page = course / "book" / f"{assignment.name}.md"
    piece = listing_cell(page.read_text(encoding="utf-8")) if page.is_file() else ""
    for where, source in ((PACKAGE, package), (PAGE, piece)):
        tree = parse_or_none(source)
        if tree:
            for node in tree.body:
                if isinstance(node, DEFINITIONS) and node.name in cells:
                    node.decorator_list = []
                    tree.body = [node]
                    answers_by_source[where][node.name] = fingerprints(tree) - given_fingerprints
    return {name: answers for name, answers in answers_by_source.items() if answers}


DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def listing_cell(page: str) -> str:
    """Return the cell of a page that has the whole mechanism in one piece; "" if none does."""
    cell = r"^```\{code-cell\}[^\n]*\n---\n((?:(?!^---$).)*?)^---\n(.*?)^```$"
    cells = re.findall(cell, page, re.DOTALL | re.MULTILINE)
    return next((code for options, code in cells if "in-one-piece" in options), "")


def compare_all(
    students: dict[str, tuple[Answers, ...]], others: dict[str, Answers], seed: int = 0
) -> tuple[Likeness, ...]:
    """Return the pairs of students, and of students with ``others``, the most alike first.

    A student has several answers to an exercise where a file holds several versions.
    """
    everybody = students | {name: (answers,) for name, answers in others.items()}
    names, n = list(everybody), len(students)
    rows = [answers for versions in everybody.values() for answers in versions]
    firsts = np.cumsum([0, *map(len, everybody.values())])[:-1]  # each one's first row
    exercises = list(dict.fromkeys(e for answers in rows for e in answers))
    each = {
        e: likeness_matrix([answers.get(e, EMPTY) for answers in rows], n, firsts)
        for e in exercises
    }
    bits_by_exercise = {
        e: most_of_versions(bits_of_likeness(matrix, n, firsts), firsts)
        for e, matrix in each.items()
    }
    likeness_by_exercise = {e: most_of_versions(matrix, firsts) for e, matrix in each.items()}
    total = sum(bits_by_exercise.values(), start=np.zeros((len(names), len(names))))
    first, second = np.triu_indices(len(names), 1)
    is_student = first < n  # the published answers among themselves are nobody's
    first, second = first[is_student], second[is_student]
    bits = total[first, second]
    are_students = second < n
    chance = np.empty(len(bits))
    # Pairs of students, and those of students with what is published, each among their own kind.
    for among in (are_students, ~are_students):
        chance[among] = pairs_by_chance(
            bits_by_exercise, n, (first[among], second[among]), bits[among], seed
        )
    pairs = []
    for i, j, shared, by_luck in zip(first, second, bits, chance, strict=True):
        shares = {
            e: matrix[i, j]
            for e, matrix in likeness_by_exercise.items()
            if min(matrix[i, i], matrix[j, j])
        }
        pairs.append(Likeness(names[i], names[j], shared, by_luck, shares))
    return tuple(sorted(pairs, key=lambda pair: (pair.by_chance, -pair.bits)))
