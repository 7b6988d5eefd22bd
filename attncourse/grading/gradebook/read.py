"""Reading points from a gradebook, without changing it."""

import importlib.util
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attncourse.grading.course.dates import Zone, moment_in_tables, time_between
from attncourse.grading.course.late import seconds_late
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.connection import find_gradebook, gradebook_to_read

if TYPE_CHECKING:
    from sqlalchemy import Connection, FromClause, Row

NO_TIME, DAY = timedelta(), timedelta(days=1)


@dataclass(frozen=True)
class Person:
    """A student as the gradebook has them; a field that it does not have is an empty text."""

    id: str
    last_name: str = ""
    first_name: str = ""
    email: str = ""
    lms_id: str = ""

    @property
    def name(self) -> str:
        """Return last and first name with a comma between, as far as they are known."""
        return ", ".join(part for part in (self.last_name, self.first_name) if part)

    @property
    def full_name(self) -> str:
        """Return first and last name, as far as they are known, or else the id."""
        return " ".join(part for part in (self.first_name, self.last_name) if part) or self.id


@dataclass(kw_only=True)
class SubmissionScores:
    """A submission in the gradebook: points by grade id, who gave them, comments.

    ``manual`` are the cells that a person has scored, ``waiting`` those that a person has to,
    ``stale`` those scored before they were graded again; ``comments`` are people's, by grade id.
    ``late`` are the seconds after it was due, ``extension`` the days by which that is later for
    this student.
    """

    timestamp: str = ""
    penalty: float = 0.0
    late: float = 0.0
    extension: float = 0.0
    points: dict[str, float] = field(default_factory=dict)
    manual: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    comments: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AssignmentScores:
    """An assignment in the gradebook: all students, its graded cells, and the submissions."""

    people: tuple[Person, ...]
    maxima: dict[str, float]
    submissions: dict[str, SubmissionScores]


class HandInTime(NamedTuple):
    """When a student handed in, when that was due, and the points taken off for lateness."""

    student: str
    timestamp: datetime | None
    extension: timedelta | None
    due: datetime | None
    penalty: float


def has_gradebook(course: Path, db: str | None = None) -> bool:
    """True if there is a gradebook to read; one that is named by its address has to be there."""
    if importlib.util.find_spec("nbgrader") is None:
        return db is not None
    book = find_gradebook(course, db)
    return db is not None or book.file is None or book.file.is_file()


def read_people(connection: "Connection") -> list[Person]:
    """Return the students in the gradebook, ordered by id."""
    from sqlalchemy import select

    from attncourse.grading.gradebook.tables import student

    columns = student.c
    names = (columns.last_name, columns.first_name, columns.email, columns.lms_user_id)
    rows = connection.execute(select(columns.id, *names).order_by(columns.id))
    return [Person(*(value or "" for value in row)) for row in rows]


def read_assignment_ids(connection: "Connection") -> dict[str, str]:
    """Return the ids of assignments in the gradebook, by name."""
    from sqlalchemy import select

    from attncourse.grading.gradebook.tables import assignment

    query = select(assignment.c.name, assignment.c.id).order_by(assignment.c.name)
    return {name: assignment_id for name, assignment_id in connection.execute(query)}


def graded_assignments(course: Path, db: str | None = None) -> list[str]:
    """Return the names of the assignments that the gradebook has submissions to."""
    from sqlalchemy import select

    from attncourse.grading.gradebook.tables import assignment, submitted_assignment

    query = (
        select(assignment.c.name)
        .join(submitted_assignment, submitted_assignment.c.assignment_id == assignment.c.id)
        .distinct()
        .order_by(assignment.c.name)
    )
    with gradebook_to_read(course, db) as connection:
        names = [name for (name,) in connection.execute(query)]
    if not names:
        raise UserError("nothing is graded yet: attncourse grade ASSIGNMENT")
    return names


def finite_points(points: object) -> float:
    """Return points as a number; raise ``ValueError`` if they are none, which SQLite may hold."""
    number = points if isinstance(points, float) else float(str(points))
    if not math.isfinite(number):
        raise ValueError(f"{number} points")
    return number


def read_hand_ins(connection: "Connection", assignment_id: str) -> list[HandInTime]:
    """Return each submission to an assignment: when it came and was due, points taken off."""
    from sqlalchemy import func, select

    from attncourse.grading.gradebook.tables import (
        assignment,
        submitted_assignment,
        submitted_notebook,
    )

    submission = submitted_assignment.c
    columns = (submission.student_id, submission.timestamp, submission.extension)
    penalty = func.sum(func.coalesce(submitted_notebook.c.late_submission_penalty, 0))
    query = (
        select(*columns, assignment.c.duedate, penalty)
        .select_from(submitted_assignment)
        .join(assignment, assignment.c.id == submission.assignment_id)
        .outerjoin(submitted_notebook, submitted_notebook.c.assignment_id == submission.id)
        .where(submission.assignment_id == assignment_id)
        .group_by(submission.id, *columns, assignment.c.duedate)
    )
    return [HandInTime(*row[:-1], float(row[-1] or 0)) for row in connection.execute(query)]


def read_scores(connection: "Connection", assignment_id: str, zone: Zone) -> AssignmentScores:
    """Return the scores of the assignment with this id, times by the class's clocks."""
    cells = read_cells_with_points(connection, assignment_id)
    has_several_notebooks = len({cell.notebook for cell in cells}) > 1
    labels = {c.id: f"{c.notebook}/{c.name}" if has_several_notebooks else c.name for c in cells}
    submissions = {}
    for hand_in in read_hand_ins(connection, assignment_id):
        due, extension = hand_in.due, hand_in.extension
        longer = (
            time_between(due, due + extension, zone) if due and extension else extension or NO_TIME
        )
        submissions[hand_in.student] = SubmissionScores(
            timestamp=moment_in_tables(zone, hand_in.timestamp) if hand_in.timestamp else "",
            penalty=hand_in.penalty,
            late=seconds_late(hand_in.timestamp, due, extension, zone),
            extension=longer / DAY,
        )
    grades = [row for row in read_grades(connection, assignment_id) if row[1] in labels]
    for student, cell, *grade in sorted(grades, key=lambda row: labels[row[1]]):
        enter_grade(submissions[student], labels[cell], *grade)
    for (student, name), comment in read_manual_comments(connection, assignment_id).items():
        submissions[student].comments[name] = comment
    people = tuple(read_people(connection))
    return AssignmentScores(people, {labels[c.id]: float(c.maximum) for c in cells}, submissions)


def enter_grade(
    scores: SubmissionScores,
    label: str,
    automatic: object,
    manual: object,
    extra_credit: object,
    needs_person: bool,
) -> None:
    """Add a row of nbgrader's grades to a submission's scores.

    ``label`` is the cell's grade id; ``needs_person`` says that a person has to score it.
    """
    base = automatic if manual is None else manual
    scores.points[label] = 0.0 if base is None else finite_points(base)
    if base is not None and extra_credit:
        scores.points[label] += finite_points(extra_credit)
    if manual is not None:
        scores.manual += (label,)
    if needs_person and manual is not None:
        scores.stale += (label,)
    if needs_person and manual is None:
        scores.waiting += (label,)


def read_cells_with_points(connection: "Connection", assignment_id: str) -> list["Row"]:
    """Return id, name, notebook and points of an assignment's cells that have points."""
    from sqlalchemy import func, select

    from attncourse.grading.gradebook.tables import base_cell, grade_cell, notebook, task_cell

    maximum = func.coalesce(grade_cell.c.max_score, task_cell.c.max_score)
    query = (
        select(
            base_cell.c.id,
            base_cell.c.name,
            notebook.c.name.label("notebook"),
            maximum.label("maximum"),
        )
        .select_from(base_cell)
        .join(notebook, notebook.c.id == base_cell.c.notebook_id)
        .outerjoin(grade_cell, grade_cell.c.id == base_cell.c.id)
        .outerjoin(task_cell, task_cell.c.id == base_cell.c.id)
        .where(notebook.c.assignment_id == assignment_id, maximum.is_not(None))
        .order_by(notebook.c.name, base_cell.c.name)
    )
    return list(connection.execute(query))


def with_submission(table: Any) -> "FromClause":
    """Return a table of grades or comments, joined with the submissions that they belong to."""
    from attncourse.grading.gradebook.tables import submitted_assignment, submitted_notebook

    return table.join(submitted_notebook, submitted_notebook.c.id == table.c.notebook_id).join(
        submitted_assignment, submitted_assignment.c.id == submitted_notebook.c.assignment_id
    )


def read_grades(connection: "Connection", assignment_id: str) -> Iterable["Row"]:
    """Return a row for each grade of an assignment.

    It has the student, the cell's id, automatic and manual score, extra credit, and whether a
    person has to look.
    """
    from sqlalchemy import select

    from attncourse.grading.gradebook.tables import grade, submitted_assignment

    scores = (grade.c.auto_score, grade.c.manual_score, grade.c.extra_credit)
    query = (
        select(
            submitted_assignment.c.student_id,
            grade.c.cell_id,
            *scores,
            grade.c.needs_manual_grade,
        )
        .select_from(with_submission(grade))
        .where(submitted_assignment.c.assignment_id == assignment_id)
    )
    return connection.execute(query)


def read_manual_scores(
    connection: "Connection", assignment_id: str
) -> dict[tuple[str, str], float | None]:
    """Return a person's scores by student and cell; None where nobody has given one."""
    from sqlalchemy import select

    from attncourse.grading.gradebook.tables import base_cell, grade, submitted_assignment

    query = (
        select(submitted_assignment.c.student_id, base_cell.c.name, grade.c.manual_score)
        .select_from(with_submission(grade).join(base_cell, base_cell.c.id == grade.c.cell_id))
        .where(submitted_assignment.c.assignment_id == assignment_id)
    )
    return {(student, cell): score for student, cell, score in connection.execute(query)}


def read_manual_comments(
    connection: "Connection", assignment_id: str
) -> dict[tuple[str, str], str]:
    """Return people's comments by student and cell, without empty ones."""
    from sqlalchemy import func, select

    from attncourse.grading.gradebook.tables import base_cell, comment, submitted_assignment

    text = comment.c.manual_comment
    query = (
        select(submitted_assignment.c.student_id, base_cell.c.name, text)
        .select_from(with_submission(comment).join(base_cell, base_cell.c.id == comment.c.cell_id))
        .where(submitted_assignment.c.assignment_id == assignment_id, func.coalesce(text, "") != "")
        .order_by(base_cell.c.name)
    )
    return {(student, cell): written for student, cell, written in connection.execute(query)}
