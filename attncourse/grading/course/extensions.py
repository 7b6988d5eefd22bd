"""More time for single students: kept in ``extensions.csv``, and entered where nbgrader looks.

nbgrader keeps an extension with a submission, which there is none of before the student has handed
in. So the file is what counts: whichever way a submission is graded, its extension is entered with
it. One that only the gradebook has, from nbgrader's ``grant_extension``, stays.
"""

import csv
import difflib
import io
import math
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from attncourse.grading.course.gradebook import Book, opened
from attncourse.grading.course.release import due_in
from attncourse.grading.errors import UserError
from attncourse.grading.files import in_turn, replace_file
from attncourse.grading.harmless import one_line
from attncourse.grading.spreadsheet import cell as defused
from attncourse.grading.spreadsheet import line_of, rows_in

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

FILE = "extensions.csv"
HEAD = ("student", "assignment", "days")
LONGEST = 3650  # days

Extensions = dict[tuple[str, str], timedelta]


def read_extensions(course: Path) -> Extensions:
    """The extensions by student and assignment."""
    path = course / FILE
    if not os.path.lexists(path):
        return {}
    head, *rows = rows_in(path) or [[]]
    if not set(HEAD) <= set(head):
        raise UserError(f"{path}: expected the head {','.join(HEAD)} in its first line")
    found: Extensions = {}
    for number, row in enumerate(rows, start=2):
        if not any(row):
            continue
        cells = dict.fromkeys(HEAD, "") | dict(zip(head, map(line_of, row), strict=False))
        student, name, days = (cells[key].strip() for key in HEAD)
        try:
            length = length_of(float(days.replace(",", ".")))
        except ValueError:
            said = one_line(days, 40) or "nothing"
            raise UserError(
                f"{path}, line {number}: expected a number of days, got {said}"
            ) from None
        if not (student and name):
            raise UserError(f"{path}, line {number}: expected a student and an assignment")
        found[student, name] = length
    return found


def length_of(days: float) -> timedelta:
    """The length of an extension; raises ``ValueError`` for what is none."""
    if not (math.isfinite(days) and 0 < days <= LONGEST):
        raise ValueError(f"expected more than 0 and at most {LONGEST} days, got {days:g}")
    return timedelta(days=days)


def extend(book: Book, student: str, name: str, days: float) -> datetime | None:
    """Gives a student more time, or with 0 days none; returns when the work is due then, if known.

    A second extension takes the place of the first. Grading again counts it.
    """
    try:
        length = length_of(days) if days else None
    except ValueError as error:
        raise UserError(f"--days: {error}; 0 takes an extension back") from None
    require_student(book, student)
    with in_turn(book.course / FILE):
        found = read_extensions(book.course)
        if length is None:
            found.pop((student, name), None)
        else:
            found[student, name] = length
        write_extensions(book.course, found)
    with opened(book) as gradebook:
        entered = enter_extension(gradebook, student, name, length)
    named = due_in(book, name)  # which counts from the next grading on
    return named + (length or timedelta()) if named else entered


def write_extensions(course: Path, found: Extensions) -> Path:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    for (student, name), length in sorted(found.items()):
        writer.writerow((defused(student), defused(name), f"{length / timedelta(days=1):g}"))
    return replace_file(course / FILE, out.getvalue())


def enter_extension(
    gradebook: "Gradebook", student: str, name: str, length: timedelta | None
) -> datetime | None:
    """Enters an extension with the submission, if there is one; when the work is due then."""
    from nbgrader.api import MissingEntry

    try:
        due = gradebook.find_assignment(name).duedate
    except MissingEntry:
        return None
    try:
        submission = gradebook.find_submission(name, student)
    except MissingEntry:
        pass
    else:
        if submission.extension != length:
            submission.extension = length
            gradebook.db.commit()
    return due and due + (length or timedelta())


def require_student(book: Book, student: str) -> None:
    """Raises ``UserError`` for an id that neither the gradebook nor a folder knows."""
    folder, names = book.course / "submitted", {}
    known = {path.name for path in folder.glob("[!.]*") if path.is_dir()}
    with opened(book) as gradebook:
        for person in gradebook.students:
            known.add(person.id)
            called = f"{person.first_name or ''} {person.last_name or ''}".strip()
            for name in (called, person.last_name or "", person.email or ""):
                names.setdefault(name.casefold(), set()).add(person.id)
    if student not in known:
        meant = sorted(names.get(student.strip().casefold() or "-", ()))
        near = meant or difflib.get_close_matches(student, known, n=1)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UserError(f"no student is called {student}, in the gradebook or in {folder}{hint}")
