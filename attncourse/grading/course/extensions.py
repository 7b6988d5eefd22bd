"""More time for single students: kept in ``extensions.csv``, and entered where nbgrader looks.

nbgrader keeps an extension with a submission, which there is none of before the student has handed
in. So the file is what counts: whichever way a submission is graded, its extension is entered with
it. One that only the gradebook has, from nbgrader's ``grant_extension``, stays. Days are counted by
the class's clocks: two days from noon end at noon. The column ``late_days`` is what a student takes
of the days that the term allows, ``days`` what a person has given besides.
"""

import math
import os
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attncourse.grading.course.dates import Zone, days_after, zone_of
from attncourse.grading.course.gradebook import Book, opened
from attncourse.grading.course.release import due_in
from attncourse.grading.errors import UserError
from attncourse.grading.files import in_turn, replace_file
from attncourse.grading.harmless import one_line
from attncourse.grading.names import NameIndex, did_you_mean
from attncourse.grading.spreadsheet import csv_table, records_in

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

FILE = "extensions.csv"
HEAD = ("student", "assignment", "days")
LATE_DAYS = "late_days"
LONGEST = 3650  # days


class More(NamedTuple):
    """The further days of a student: given by a person, and taken of those that the term allows."""

    given: float
    taken: float = 0

    def length(self, due: datetime | None, zone: Zone) -> timedelta:
        """Return the length of the extension after a due date."""
        days = self.given + self.taken
        return days_after(due, days, zone) - due if due else timedelta(days=days)


NONE = More(0)
Extensions = dict[tuple[str, str], More]


def read_extensions(course: Path) -> Extensions:
    """The extensions by student and assignment."""
    path = course / FILE
    if not os.path.lexists(path):
        return {}
    head, rows = records_in(path)
    if not set(HEAD) <= set(head):
        raise UserError(f"{path}: expected the head {','.join(HEAD)} in its first line")
    extensions: Extensions = {}
    for number, row in enumerate(rows, start=2):
        if not any(row.values()):
            continue
        where = f"{path}, line {number}"
        student, name, days, taken = (row.get(key, "").strip() for key in (*HEAD, LATE_DAYS))
        try:
            more = More(days_in(days), days_in(taken or "0"))
        except ValueError:
            said = one_line(f"{days} {taken}".strip(), 40) or "nothing"
            raise UserError(f"{where}: expected a number of days, got {said}") from None
        if not (student and name):
            raise UserError(f"{where}: expected a student and an assignment")
        extensions[student, name] = more
    return extensions


def days_in(text: str) -> float:
    """A number of days; raises ``ValueError`` for what is none."""
    days = float(text.replace(",", "."))
    if not (math.isfinite(days) and 0 <= days <= LONGEST):
        raise ValueError(f"expected 0 to {LONGEST} days, got {days:g}")
    return days


def grant_extension(book: Book, student: str, name: str, days: float) -> datetime | None:
    """Gives a student more time, or with 0 days none; returns when the work is due then, if known.

    A second extension takes the place of the first. Grading again counts it.
    """
    try:
        days = days_in(str(days))
    except ValueError as error:
        raise UserError(f"--days: {error}; 0 takes an extension back") from None
    require_student(book, student)
    with in_turn(book.course / FILE):
        extensions = read_extensions(book.course)
        more = extensions.pop((student, name), NONE)._replace(given=days)
        extensions |= {(student, name): more} if any(more) else {}
        write_extensions(book.course, extensions)
    zone = zone_of(book.config)
    with opened(book) as gradebook:
        entered = enter_extension(gradebook, student, name, more, zone)
    named = due_in(book, name)  # which counts from the next grading on
    return named + more.length(named, zone) if named else entered


def write_extensions(course: Path, found: Extensions) -> Path:
    shared = any(more.taken for more in found.values())
    rows = [(*who, *more[: 1 + shared]) for who, more in sorted(found.items())]
    return replace_file(course / FILE, csv_table([(*HEAD, LATE_DAYS) if shared else HEAD, *rows]))


def enter_extension(
    gradebook: "Gradebook", student: str, name: str, more: More, zone: Zone
) -> datetime | None:
    """Enters an extension with the submission, if there is one; when the work is due then."""
    from nbgrader.api import MissingEntry

    try:
        due = gradebook.find_assignment(name).duedate
    except MissingEntry:
        return None
    length = more.length(due, zone) if any(more) else None
    with suppress(MissingEntry):
        submission = gradebook.find_submission(name, student)
        if submission.extension != length:
            submission.extension = length  # pyrefly: ignore [read-only]  a column of SQLAlchemy's
            gradebook.db.commit()
    return due and due + (length or timedelta())


def require_student(book: Book, student: str) -> None:
    """Raises ``UserError`` for an id that neither the gradebook nor a folder knows."""
    folder, names = book.course / "submitted", NameIndex()
    known = {path.name for path in folder.glob("[!.]*") if path.is_dir()}
    with opened(book) as gradebook:
        for person in gradebook.students:
            known.add(person.id)
            called = f"{person.first_name or ''} {person.last_name or ''}".strip()
            for name in (called, person.last_name or "", person.email or ""):
                names.add(person.id, name)
    if student not in known:
        called = " or ".join(sorted(names.of(student)))
        hint = f"; did you mean {called}?" if called else did_you_mean(student, known)
        raise UserError(f"no student is called {student}, in the gradebook or in {folder}{hint}")
