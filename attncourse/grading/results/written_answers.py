"""Written answers as a table, to be read side by side, scored in a spreadsheet and entered."""

import getpass
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from attncourse.grading.course.folders import find_assignment
from attncourse.grading.errors import UserError
from attncourse.grading.files import one_process_at_a_time, replace_file
from attncourse.grading.gradebook.connection import find_gradebook, gradebook_to_read
from attncourse.grading.gradebook.manual_grading import ManualChange, enter_manual_changes
from attncourse.grading.gradebook.read import (
    read_assignment_ids,
    read_manual_comments,
    read_manual_scores,
)
from attncourse.grading.report import count
from attncourse.grading.spreadsheet import csv_table, records_in, rows_in
from attncourse.grading.submission.parts import as_released
from attncourse.grading.submission.questions import answer_lines

WRITTEN_HEAD = ("student", "question", "answer", "points", "of", "comment")
WRITTEN_FILE = "written.csv"
MANUAL_SCORES_FILE = "manual_scores.csv"
MANUAL_SCORES_HEAD = ("time", "who", "student", "question", "field", "before", "after")


class WrittenAnswer(NamedTuple):
    """A student's written answer to a question, and the points and comment that a person gave.

    ``text`` is the student's own; "" where nothing was written: such an answer has no points by
    itself, and waits for nobody.
    """

    student: str
    question: str
    text: str
    points: float | None
    maximum: float
    comment: str


def write_answers(course: Path, name: str, db: str | None = None) -> tuple[Path, int]:
    """Write the answers to an assignment's questions as a table; return its path and their number.

    An answer in which nothing was written has a row, and is not counted.

    Raises ``UserError`` if the assignment asks none, or nothing is graded yet.
    """
    answers = read_answers(course, name, db)
    rows = [
        (a.student, a.question, a.text, a.points, a.maximum, a.comment)
        for question in dict.fromkeys(a.question for a in answers)
        for a in most_alike_in_turn([a for a in answers if a.question == question])
    ]
    place = course / "reports" / name / WRITTEN_FILE
    return replace_file(place, csv_table([WRITTEN_HEAD, *rows])), sum(bool(a.text) for a in answers)


def read_answers(course: Path, name: str, db: str | None) -> list[WrittenAnswer]:
    """Return the answers to each question, from graded notebooks and gradebook."""
    questions = {
        cell.grade_id: cell
        for cell in find_assignment(course, name).cells
        if cell.solution and cell.grade and not cell.code
    }
    if not questions:
        raise UserError(f"{name} asks nothing that a person marks")
    with gradebook_to_read(course, db) as connection:
        ids = read_assignment_ids(connection)
        if name not in ids:
            raise UserError(f"{name} is not graded yet: attncourse grade {name}")
        points = read_manual_scores(connection, ids[name])
        comments = read_manual_comments(connection, ids[name])
    answers = []
    for path in sorted((course / "autograded").glob(f"*/{name}/{name}.ipynb")):
        student, texts = path.parts[-3], cell_texts(path)
        for question, cell in questions.items():
            key = student, question
            if question in texts and key in points:
                text = text_without_question(texts[question], as_released(cell))
                marks = points[key], cell.points, comments.get(key, "")
                answers.append(WrittenAnswer(*key, text, *marks))
    return sorted(answers, key=lambda a: [*questions].index(a.question))


def cell_texts(path: Path) -> dict[str, str]:
    """Return the text of each marked cell of a notebook, by its grade id."""
    texts = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if grade_id := cell["metadata"].get("nbgrader", {}).get("grade_id"):
            texts[grade_id] = "".join(cell["source"])
    return texts


def text_without_question(text: str, released: str) -> str:
    """Return what a student wrote in a question's cell."""
    written = answer_lines(text, released)
    lines = [x for x in text.split("\n") if not x.strip() or " ".join(x.split()) in written]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def most_alike_in_turn(answers: list[WrittenAnswer]) -> list[WrittenAnswer]:
    """Return the answers from the longest on, each followed by the one that shares most words."""
    remaining = sorted(answers, key=lambda a: (-len(a.text), a.student))
    words = {a: frozenset(re.findall(r"\w+", a.text.lower())) for a in remaining}
    ordered = remaining[:1]
    del remaining[:1]
    while remaining:
        last = words[ordered[-1]]
        following = max(remaining, key=lambda a: len(last & words[a]) / (len(last | words[a]) or 1))
        remaining.remove(following)
        ordered.append(following)
    return ordered


# --- entering -------------------------------------------------------------------------------------


def enter_answers(course: Path, name: str, path: Path, db: str | None = None) -> list[str]:
    """Enter points and comments from such a table; return what was entered, in lines.

    An empty cell leaves what there is. Raises ``UserError`` before anything is entered, for a row
    that is nobody's answer or has points that the question does not have.
    """
    if not path.is_file():
        raise UserError(f"{path} is not there: attncourse written {name} makes one")
    head = (rows_in(path) or [[]])[0]
    if not {"student", "question", "points", "comment"} <= set(head):
        raise UserError(f"{path}: expected the head {','.join(WRITTEN_HEAD)} in its first line")
    known_answers = {(a.student, a.question): a for a in read_answers(course, name, db)}
    changes: list[ManualChange] = []
    _, rows = records_in(path)
    for number, row in enumerate(rows, start=2):
        if any(value.strip() for value in row.values()):
            changes += changes_in(row, known_answers, f"{path}, line {number}")
    enter_manual_changes(find_gradebook(course, db), name, changes)
    note_changes(course, name, changes)
    scores = [change for change in changes if change.field == "points"]
    scored = len(scores)
    entered = {(change.student, change.cell) for change in scores}
    waiting = sum(
        answer.points is None and bool(answer.text) and key not in entered
        for key, answer in known_answers.items()
    )
    lines = [f"{count(scored, 'score')} and {count(len(changes) - scored, 'comment')} entered"]
    if waiting:
        lines.append(f"{count(waiting, 'answer')} without points yet")
    return lines


def changes_in(
    row: dict[str, str], answers: dict[tuple[str, str], WrittenAnswer], where: str
) -> Iterable[ManualChange]:
    """Yield the changes of points and comment that a row asks for."""
    key = row["student"].strip(), row["question"].strip()
    if key not in answers:
        raise UserError(f"{where}: there is no answer of {key[0] or 'nobody'} to {key[1]}")
    answer = answers[key]
    if entered := row["points"].strip().replace(",", "."):
        points = -1.0
        with suppress(ValueError):
            points = float(entered)
        if not 0 <= points <= answer.maximum:
            range_in_words = f"from 0 to {answer.maximum:g} points"
            raise UserError(f"{where}: expected {range_in_words}, got {entered}")
        if points != answer.points:
            yield ManualChange(*key, "points", answer.points, points)
    comment = row["comment"].strip()
    if comment and comment != answer.comment.strip():
        yield ManualChange(*key, "comment", answer.comment, comment)


def note_changes(course: Path, name: str, changes: list[ManualChange]) -> None:
    """Add to the log who entered which changes, and when."""
    if not changes:
        return
    user = user_here()
    place = course / "reports" / name / MANUAL_SCORES_FILE
    with one_process_at_a_time(place):
        before = [] if not place.is_file() else [[*row.values()] for row in records_in(place)[1]]
        now = datetime.now(UTC).isoformat(timespec="seconds")
        replace_file(
            place, csv_table([MANUAL_SCORES_HEAD, *before, *((now, user, *c) for c in changes)])
        )


def user_here() -> str:
    """Return the name of the user who runs this, as far as this machine knows it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
