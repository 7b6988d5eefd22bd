"""Written answers as one table: read side by side, marked in a spreadsheet, entered again.

Answers to a question stand in an order in which each is followed by the one most like it, so that
like answers get like points. Points and comments go into nbgrader's gradebook, where its formgrader
shows them; who entered which when is kept in ``LOG``.
"""

import getpass
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attncourse.grading.course.folders import find_assignment
from attncourse.grading.course.gradebook import find_book, gradebook_to_read, opened
from attncourse.grading.errors import UserError
from attncourse.grading.files import in_turn, replace_file
from attncourse.grading.report import count
from attncourse.grading.results.scores import COMMENTS, assignments, rows_of
from attncourse.grading.spreadsheet import csv_table, records_in, rows_in

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

HEAD = ("student", "question", "answer", "points", "of", "comment")
FILE = "written.csv"
LOG = "manual_scores.csv"
LOG_HEAD = ("time", "who", "student", "question", "field", "before", "after")
MARKS = """
    select s.student_id, c.name, g.manual_score
    from grade g join base_cell c on c.id = g.cell_id
    join submitted_notebook n on n.id = g.notebook_id
    join submitted_assignment s on s.id = n.assignment_id where s.assignment_id = :id"""


class WrittenAnswer(NamedTuple):
    """A student's written answer to a question, and the points and comment that a person gave."""

    student: str
    question: str
    text: str
    points: float | None
    maximum: float
    comment: str


def write_answers(course: Path, name: str, db: str | None = None) -> tuple[Path, int]:
    """Write the answers to an assignment's questions as a table; return its place and their number.

    Raises ``UserError`` where the assignment asks none, or nothing is graded yet.
    """
    answers = read_answers(course, name, db)
    rows = [
        (a.student, a.question, a.text, a.points, a.maximum, a.comment)
        for question in dict.fromkeys(a.question for a in answers)
        for a in most_alike_in_turn([a for a in answers if a.question == question])
    ]
    place = course / "reports" / name / FILE
    return replace_file(place, csv_table([HEAD, *rows])), len(rows)


def read_answers(course: Path, name: str, db: str | None) -> list[WrittenAnswer]:
    """Return what was written to each question, from the graded notebooks and the gradebook."""
    questions = {
        cell.grade_id: cell.points
        for cell in find_assignment(course, name).cells
        if cell.solution and cell.grade and not cell.code
    }
    if not questions:
        raise UserError(f"{name} asks nothing that a person marks")
    with gradebook_to_read(course, db) as connection:
        keys = assignments(connection)
        if name not in keys:
            raise UserError(f"{name} is not graded yet: attncourse grade {name}")
        points = {tuple(row[:2]): row[2] for row in rows_of(connection, MARKS, id=keys[name])}
        comments = {tuple(row[:2]): row[2] for row in rows_of(connection, COMMENTS, id=keys[name])}
    answers = []
    for path in sorted((course / "autograded").glob(f"*/{name}/{name}.ipynb")):
        student, texts = path.parts[-3], cell_texts(path)
        for question, maximum in questions.items():
            who = student, question
            if question in texts and who in points:
                marks = points[who], maximum, comments.get(who, "")
                answers.append(WrittenAnswer(*who, texts[question], *marks))
    return sorted(answers, key=lambda a: [*questions].index(a.question))


def cell_texts(path: Path) -> dict[str, str]:
    """Return the text of each marked cell of a notebook by its grade id."""
    texts = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if grade_id := cell["metadata"].get("nbgrader", {}).get("grade_id"):
            texts[grade_id] = "".join(cell["source"])
    return texts


def most_alike_in_turn(answers: list[WrittenAnswer]) -> list[WrittenAnswer]:
    """Return the answers, the longest first, each followed by the one that shares most words."""
    left = sorted(answers, key=lambda a: (-len(a.text), a.student))
    words = {a: frozenset(re.findall(r"\w+", a.text.lower())) for a in left}
    ordered = left[:1]
    del left[:1]
    while left:
        last = words[ordered[-1]]
        following = max(left, key=lambda a: len(last & words[a]) / (len(last | words[a]) or 1))
        left.remove(following)
        ordered.append(following)
    return ordered


# --- entering -------------------------------------------------------------------------------------


def enter_answers(course: Path, name: str, path: Path, db: str | None = None) -> list[str]:
    """Enter points and comments from such a table; return what was entered, in lines.

    An empty cell leaves what there is. Raises ``UserError`` before anything is entered where a row
    names nobody's answer or has points that the question does not have.
    """
    if not path.is_file():
        raise UserError(f"{path} is not there: attncourse written {name} makes one")
    head = (rows_in(path) or [[]])[0]
    if not {"student", "question", "points", "comment"} <= set(head):
        raise UserError(f"{path}: expected the head {','.join(HEAD)} in its first line")
    known_answers = {(a.student, a.question): a for a in read_answers(course, name, db)}
    changes: list[tuple[Any, ...]] = []
    _, rows = records_in(path)
    for number, row in enumerate(rows, start=2):
        if any(value.strip() for value in row.values()):
            changes += changes_in(row, known_answers, f"{path}, line {number}")
    with opened(find_book(course, db)) as gradebook:
        for change in changes:
            enter_change(gradebook, name, *change)
        gradebook.db.commit()
    note_changes(course, name, changes)
    scored = sum(field == "points" for _, _, field, *_ in changes)
    waiting = sum(a.points is None for a in known_answers.values()) - sum(
        field == "points" and before is None for _, _, field, before, _ in changes
    )
    lines = [f"{count(scored, 'score')} and {count(len(changes) - scored, 'comment')} entered"]
    if waiting:
        lines.append(f"{count(waiting, 'answer')} without points yet")
    return lines


def changes_in(
    row: dict[str, str], there: dict[tuple[str, str], WrittenAnswer], where: str
) -> Iterable[tuple[Any, ...]]:
    """Yield what a row changes: student, question, field, before and after."""
    who = row["student"].strip(), row["question"].strip()
    if who not in there:
        raise UserError(f"{where}: there is no answer of {who[0] or 'nobody'} to {who[1]}")
    answer = there[who]
    if entered := row["points"].strip().replace(",", "."):
        points = -1.0
        with suppress(ValueError):
            points = float(entered)
        if not 0 <= points <= answer.maximum:
            wanted = f"from 0 to {answer.maximum:g} points"
            raise UserError(f"{where}: expected {wanted}, got {entered}")
        if points != answer.points:
            yield (*who, "points", answer.points, points)
    comment = row["comment"].strip()
    if comment and comment != answer.comment.strip():
        yield (*who, "comment", answer.comment, comment)


def enter_change(
    gradebook: "Gradebook", name: str, student: str, question: str, field: str, _: Any, after: Any
) -> None:
    where = question, name, name, student
    if field == "points":
        grade: Any = gradebook.find_grade(*where)
        grade.manual_score, grade.needs_manual_grade = after, False
    else:
        comment: Any = gradebook.find_comment(*where)
        comment.manual_comment = after


def note_changes(course: Path, name: str, changes: list[tuple[Any, ...]]) -> None:
    """Add to the log who entered what and when, as far as this machine knows who one is."""
    if not changes:
        return
    who = user_here()
    place = course / "reports" / name / LOG
    with in_turn(place):
        before = [] if not place.is_file() else [[*row.values()] for row in records_in(place)[1]]
        now = datetime.now(UTC).isoformat(timespec="seconds")
        replace_file(place, csv_table([LOG_HEAD, *before, *((now, who, *c) for c in changes)]))


def user_here() -> str:
    """Return the name of whoever runs this, as far as this machine knows it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
