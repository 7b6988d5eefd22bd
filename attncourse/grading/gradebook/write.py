"""Writing many submissions' points into the gradebook at once, with nbgrader's models.

nbgrader's own steps ask for, write and commit each cell of each submission. Here a batch is a few
queries and one transaction: all of it is in the gradebook, or none. What a person has entered
(scores, extra credit, comments) is read and never written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from attncourse.grading.course.dates import zone_of
from attncourse.grading.course.extensions import read_extensions
from attncourse.grading.course.folders import Submission
from attncourse.grading.course.late import LatePenalty, seconds_late, time_in_stamp
from attncourse.grading.gradebook.connection import CourseGradebook, open_gradebook
from attncourse.grading.graded_notebook import untouched_answers
from attncourse.grading.report import Report

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

NO_RESPONSE = "No response."  # nbgrader's words
MAX_VALUES_IN_QUERY = 1000  # values in one query
Row = dict[str, Any]


@dataclass(frozen=True)
class Graded:
    """A submission, its report, and its graded notebook, "" where there is none.

    ``source`` says where the report comes from: "run", "journal", "folder" or "failure". ``same``
    are the grade ids of answers that are as in the grading before: a person who has scored them has
    seen these.
    """

    submission: Submission
    report: Report
    notebook: str = ""
    source: str = "run"
    same: frozenset[str] = frozenset()


@dataclass(frozen=True)
class NotebookCells:
    """A notebook of the assignment as the gradebook has it: grade ids by its cells' keys.

    ``graded`` says whether submissions are graded by it; others are entered without points.
    """

    id: str
    points: dict[str, str]
    tasks: frozenset[str]
    comments: dict[str, str]
    graded: bool


@dataclass(frozen=True)
class GradebookEntry:
    """A submission on its way into the gradebook: its row there, ``owner``, and its result.

    ``unchanged`` says, by grade id, whether an answer is as it was released.
    """

    owner: Row
    result: Graded
    unchanged: dict[str, bool]


class BatchRows:
    """Rows of one of nbgrader's tables for a batch, by the values of the ``key`` columns.

    ``rows`` has those in the table and those to be added; each has the ``key`` columns, the other
    ``columns`` and, where the table has one of its own, an ``id``.
    """

    def __init__(
        self, db: "Session", model: Any, key: tuple[str, ...], columns: tuple[str, ...] = ()
    ) -> None:
        """Prepare to read and write rows of a table; nothing is read yet."""
        self._db, self._model, self._key = db, model, key
        self._columns = tuple(dict.fromkeys(("id", *key, *columns)))
        self._new: list[Row] = []
        self._changed: list[Row] = []
        self.rows: dict[tuple, Row] = {}

    def read(self, values: Sequence[str]) -> None:
        """Read the rows whose last key column has one of these values."""
        from sqlalchemy import select

        chosen = [getattr(self._model, name) for name in self._columns]
        column = getattr(self._model, self._key[-1])
        for start in range(0, len(values), MAX_VALUES_IN_QUERY):
            query = select(*chosen).where(column.in_(values[start : start + MAX_VALUES_IN_QUERY]))
            for row in self._db.execute(query).mappings():
                self.rows[self._key_of(row)] = dict(row)

    def put(self, row: Row) -> Row:
        """Add or change a row; return all of it. Columns that it does not name stay."""
        key = self._key_of(row)
        old = self.rows.get(key)
        if old is None:
            empty = dict.fromkeys(self._columns) | {"id": uuid4().hex}
            self.rows[key] = empty | row
            self._new.append({"id": self.rows[key]["id"], **row})
        elif any(old[name] != value for name, value in row.items()):
            self._changed.append({**row, "id": old["id"]})
            self.rows[key] = old | row
        return self.rows[key]

    def write(self) -> None:
        """Write new and changed rows to the database, without a commit."""
        from sqlalchemy import insert, update

        if self._new:
            self._db.execute(insert(self._model), self._new)
        if self._changed:
            self._db.execute(update(self._model), self._changed)
        self._new, self._changed = [], []

    def _key_of(self, row: Any) -> tuple:
        """Return a row's values of the key columns."""
        return tuple(row[name] for name in self._key)


def save_batch(
    book: CourseGradebook, name: str, results: Sequence[Graded], penalty: LatePenalty
) -> None:
    """Enter the points of a batch of submissions, in one transaction.

    Who handed in nothing becomes known as a student and gets no submission, so that the formgrader
    shows it as missing; a submission that was there and has been withdrawn stays and earns 0. A
    result whose student's name no gradebook can hold is left out.
    """
    from nbgrader.api import Student

    with_names = [result for result in results if result.submission.named]
    with open_gradebook(book) as gradebook:
        db: Any = gradebook.db  # a scoped session, which does what a session does
        assignment = gradebook.find_assignment(name)
        notebooks = [notebook_cells(notebook, name) for notebook in assignment.notebooks]
        students = BatchRows(db, Student, ("id",))
        students.read([result.submission.student for result in with_names])
        for result in with_names:
            students.put({"id": result.submission.student})
        students.write()
        zone = zone_of(book.config)
        extensions = read_extensions(book.course).items()
        due = assignment.duedate
        extended = {
            student: extension.length(due, zone)
            for (student, assignment_name), extension in extensions
            if assignment_name == name
        }
        entries = enter_submissions(db, assignment.id, with_names, extended, zone)
        for cells_of_notebook in notebooks:
            enter_notebook(db, cells_of_notebook, entries, due, penalty)
        db.commit()


def notebook_cells(notebook: Any, name: str) -> NotebookCells:
    """Return the cells that the gradebook has of one of nbgrader's notebooks."""
    answers = {*notebook.solution_cells, *notebook.task_cells}
    return NotebookCells(
        id=notebook.id,
        points={cell.id: cell.name for cell in (*notebook.grade_cells, *notebook.task_cells)},
        tasks=frozenset(cell.id for cell in notebook.task_cells),
        comments={cell.id: cell.name for cell in answers},
        graded=notebook.name == name,
    )


def enter_submissions(
    db: "Session",
    assignment: str,
    results: list[Graded],
    extended: dict[str, timedelta],
    zone: ZoneInfo | None,
) -> list[GradebookEntry]:
    """Enter submissions, their times and extensions; return an entry for each."""
    from nbgrader.api import SubmittedAssignment

    key = ("assignment_id", "student_id")
    rows = BatchRows(db, SubmittedAssignment, key, ("timestamp", "extension"))
    rows.read([result.submission.student for result in results])
    entries = []
    for result in results:
        row: dict[str, Any] = {"assignment_id": assignment, "student_id": result.submission.student}
        if result.report.status == "missing" and tuple(row.values()) not in rows.rows:
            continue
        if stamp := result.submission.timestamp:  # else what was known before holds, as in nbgrader
            row["timestamp"] = time_in_stamp(stamp, zone)
        extension = extended.get(result.submission.student)
        owner = rows.put(row | ({} if extension is None else {"extension": extension}))
        entries.append(GradebookEntry(owner, result, untouched_answers(result.notebook)))
    rows.write()
    return entries


def enter_notebook(
    db: "Session",
    notebook: NotebookCells,
    entries: list[GradebookEntry],
    due: datetime | None,
    penalty: LatePenalty,
) -> None:
    """Enter one notebook for each submission: points, comments, late penalty."""
    from nbgrader.api import Comment, Grade, SubmittedNotebook

    submitted = BatchRows(
        db, SubmittedNotebook, ("notebook_id", "assignment_id"), ("late_submission_penalty",)
    )
    submitted.read([entry.owner["id"] for entry in entries])
    submitted_rows = [
        submitted.put({"notebook_id": notebook.id, "assignment_id": e.owner["id"]}) for e in entries
    ]
    submitted.write()
    ids = [submitted_row["id"] for submitted_row in submitted_rows]
    scores = ("auto_score", "manual_score", "extra_credit", "needs_manual_grade")
    grades = BatchRows(db, Grade, ("cell_id", "notebook_id"), scores)
    comments = BatchRows(db, Comment, ("cell_id", "notebook_id"), ("auto_comment",))
    for rows in (grades, comments):
        rows.read(ids)
    for entry, submitted_row in zip(entries, submitted_rows, strict=True):
        total = enter_points(grades, notebook, entry, submitted_row["id"])
        enter_comments(comments, notebook, entry, submitted_row["id"])
        if notebook.graded:
            stamp, extension = entry.owner["timestamp"], entry.owner["extension"]
            late = seconds_late(stamp, due, extension, penalty.zone)
            off = penalty(entry.result.submission.student, total, late)
            key = {"notebook_id": notebook.id, "assignment_id": entry.owner["id"]}
            submitted.put(key | {"late_submission_penalty": off})
    for rows in (grades, comments, submitted):
        rows.write()


def enter_points(
    grades: BatchRows, notebook: NotebookCells, entry: GradebookEntry, submitted_id: str
) -> float:
    """Enter the points of each cell of a submission; return their sum, as nbgrader counts it."""
    total = 0.0
    for cell, grade_id in notebook.points.items():
        row = {"cell_id": cell, "notebook_id": submitted_id}
        if notebook.graded and cell not in notebook.tasks:
            old = grades.rows.get((cell, submitted_id))
            points = points_of(grade_id, entry)
            needed = points is None
            if old is not None and old["manual_score"] is not None:
                needed = grade_id not in entry.result.same or old["needs_manual_grade"]
            row |= {"auto_score": points, "needs_manual_grade": needed}
        total += counted_score(grades.put(row))
    return total


def points_of(grade_id: str, entry: GradebookEntry) -> float | None:
    """Return a cell's automatic points; None if an answer is there that a person has to score."""
    report = entry.result.report
    if report.status == "missing":
        return 0.0
    if grade_id in report.cells:
        return report.cells[grade_id].points
    return 0.0 if entry.unchanged.get(grade_id) else None


def counted_score(grade: Row) -> float:
    """Return a grade's score: a person's, or else the automatic one, with extra credit."""
    base = grade["manual_score"] if grade["manual_score"] is not None else grade["auto_score"]
    return 0.0 if base is None else base + (grade["extra_credit"] or 0.0)


def enter_comments(
    comments: BatchRows, notebook: NotebookCells, entry: GradebookEntry, submitted_id: str
) -> None:
    """Enter nbgrader's comment "No response." on each answer that is as it was released."""
    for cell, grade_id in notebook.comments.items():
        row: Row = {"cell_id": cell, "notebook_id": submitted_id}
        if notebook.graded and grade_id in entry.unchanged:
            row["auto_comment"] = NO_RESPONSE if entry.unchanged[grade_id] else None
        comments.put(row)
