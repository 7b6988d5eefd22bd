"""Points as they stand in a gradebook, read without changing it.

nbgrader's own ``Gradebook`` writes when it is opened (tables, the course) and asks once for every
student; these are a few queries for a class of any size. A score is what nbgrader makes of it: a
person's before the automatic one, extra credit on top.
"""

import importlib.util
import math
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attncourse.grading.course.dates import Zone, moment_in_tables, span_in_words, time_between
from attncourse.grading.course.gradebook import find_book, gradebook_to_read
from attncourse.grading.course.late import seconds_late
from attncourse.grading.errors import UserError
from attncourse.grading.report import count

if TYPE_CHECKING:
    from sqlalchemy import Connection

NONE, DAY = timedelta(), timedelta(days=1)
GRADED = """
    select distinct a.name from assignment a
    join submitted_assignment s on s.assignment_id = a.id order by a.name"""
STUDENTS = "select id, last_name, first_name, email, lms_user_id from student order by id"
SUBMISSIONS = """
    select s.student_id, s.timestamp, s.extension, a.duedate,
        sum(coalesce(n.late_submission_penalty, 0)) as penalty
    from submitted_assignment s join assignment a on a.id = s.assignment_id
    left join submitted_notebook n on n.assignment_id = s.id where s.assignment_id = :id
    group by s.id, s.student_id, s.timestamp, s.extension, a.duedate"""
CELLS = """
    select c.id, c.name, n.name as notebook, coalesce(g.max_score, t.max_score) as maximum
    from base_cell c join notebook n on n.id = c.notebook_id
    left join grade_cells g on g.id = c.id left join task_cells t on t.id = c.id
    where n.assignment_id = :id and coalesce(g.max_score, t.max_score) is not null
    order by n.name, c.name"""
GRADES = """
    select s.student_id, g.cell_id, g.auto_score, g.manual_score, g.extra_credit,
        g.needs_manual_grade
    from grade g join submitted_notebook n on n.id = g.notebook_id
    join submitted_assignment s on s.id = n.assignment_id where s.assignment_id = :id"""

COMMENTS = """
    select s.student_id, c.name, m.manual_comment from comment m
    join base_cell c on c.id = m.cell_id join submitted_notebook n on n.id = m.notebook_id
    join submitted_assignment s on s.id = n.assignment_id
    where s.assignment_id = :id and coalesce(m.manual_comment, '') != '' order by c.name"""


@dataclass(frozen=True)
class Person:
    """A student as the gradebook knows them; what it does not know is an empty text."""

    id: str
    last_name: str = ""
    first_name: str = ""
    email: str = ""
    lms_id: str = ""

    @property
    def name(self) -> str:
        """ "Last, First", as far as it is known."""
        return ", ".join(part for part in (self.last_name, self.first_name) if part)

    @property
    def full_name(self) -> str:
        """ "First Last", as far as it is known, or else the id."""
        return " ".join(part for part in (self.first_name, self.last_name) if part) or self.id


@dataclass(kw_only=True)
class Standing:
    """One submission in the gradebook: points by grade id, who gave them, what a person wrote.

    ``manual`` are the cells that a person has scored, ``waiting`` those that one has to, ``stale``
    those that one has scored before they were graded again; ``comments`` are a person's.
    ``late`` are seconds after it was due, ``extension`` the days by which that is later for it.
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


def how_late(seconds: float, penalty: float, extension: float = 0.0) -> str:
    """Say how late something was and what that costs; empty if it was in time."""
    if not seconds and not penalty:
        return ""
    said = f"{span_in_words(seconds)} late" if seconds else "late"
    if extension:
        said += f", with {span_in_words(extension * 86400)} more than others"
    return said + (f": {count(penalty, 'point')} taken off" if penalty else "")


@dataclass(frozen=True)
class Scores:
    """An assignment in the gradebook: all students, the graded cells, who has what."""

    people: tuple[Person, ...]
    maxima: dict[str, float]
    standings: dict[str, Standing]


def has_gradebook(course: Path, db: str | None = None) -> bool:
    """True if there is a gradebook to read; one named by its address has to be there."""
    if importlib.util.find_spec("nbgrader") is None:
        return db is not None
    book = find_book(course, db)
    return db is not None or book.file is None or book.file.is_file()


def rows_of(connection: "Connection", query: str, **given: str) -> Any:
    from sqlalchemy import text

    return connection.execute(text(query), given)


def people_in(connection: "Connection") -> list[Person]:
    """The students whom the gradebook knows."""
    return [Person(*(value or "" for value in row)) for row in rows_of(connection, STUDENTS)]


def assignments(connection: "Connection") -> dict[str, str]:
    """The ids of the assignments in the gradebook, by name."""
    return dict(map(tuple, rows_of(connection, "select name, id from assignment order by name")))


def graded_assignments(course: Path, db: str | None = None) -> list[str]:
    """The names of the assignments that the gradebook has submissions of."""
    with gradebook_to_read(course, db) as connection:
        names = [name for (name,) in rows_of(connection, GRADED)]
    if not names:
        raise UserError("nothing is graded yet: attncourse grade ASSIGNMENT")
    return names


def finite_points(points: object) -> float:
    """Points; SQLite keeps whatever was written. Raises ``ValueError`` for what is no number."""
    number = float(str(points))
    if not math.isfinite(number):
        raise ValueError(f"{number} points")
    return number


def submissions(connection: "Connection", key: str) -> Any:
    """Of each submission to the assignment with this id the student, when it was handed in, how
    much more time there was, when it was due, and the points taken off.
    """
    from sqlalchemy import DateTime, Interval, text

    sql = text(SUBMISSIONS).columns(timestamp=DateTime(), extension=Interval(), duedate=DateTime())
    return connection.execute(sql, {"id": key})


def scores(connection: "Connection", key: str, zone: Zone) -> Scores:
    """Read the scores of the assignment with this id, with times by the class's clocks."""
    cells = list(rows_of(connection, CELLS, id=key))
    several = len({cell.notebook for cell in cells}) > 1
    labels = {c.id: f"{c.notebook}/{c.name}" if several else c.name for c in cells}
    standings = {}
    for student, stamp, more, due, penalty in submissions(connection, key):
        when = moment_in_tables(zone, stamp) if stamp else ""
        late = seconds_late(stamp, due, more, zone)
        longer = time_between(due, due + more, zone) if due and more else more or NONE
        standings[student] = Standing(
            timestamp=when, penalty=float(penalty or 0), late=late, extension=longer / DAY
        )
    grades = [row for row in rows_of(connection, GRADES, id=key) if row.cell_id in labels]
    for student, cell, auto, manual, extra, waits in sorted(grades, key=lambda g: labels[g[1]]):
        standing, label = standings[student], labels[cell]
        base = auto if manual is None else manual
        standing.points[label] = (
            0.0 if base is None else finite_points(base) + finite_points(extra or 0)
        )
        if manual is not None:
            standing.manual += (label,)
        if waits and manual is None:
            standing.waiting += (label,)
        if waits and manual is not None:
            standing.stale += (label,)
    for student, name, comment in rows_of(connection, COMMENTS, id=key):
        standings[student].comments[name] = comment
    people = tuple(people_in(connection))
    return Scores(people, {labels[c.id]: float(c.maximum) for c in cells}, standings)
