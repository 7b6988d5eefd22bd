"""A course's folders: which assignments there are, and who handed in what."""

import hashlib
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from shlex import quote

from attncourse.grading.course.changes import added_cells
from attncourse.grading.course.choosing import HandedFile, Ungraded, listed_paths
from attncourse.grading.course.dates import Zone
from attncourse.grading.course.forgotten import Forgotten
from attncourse.grading.course.handed_in import (
    IGNORED_FILE_NAMES,
    NothingThere,
    find_notebook,
    read_file,
)
from attncourse.grading.course.late import read_stamp
from attncourse.grading.course.variants import solved_in_variant
from attncourse.grading.errors import UserError
from attncourse.grading.harmless import printable
from attncourse.grading.names import did_you_mean
from attncourse.grading.report import Report
from attncourse.grading.spreadsheet import records_in
from attncourse.grading.submission.notebook import Assignment, read_assignment

FORGOTTEN = (
    "{0} was forgotten, and is not graded: delete submitted/{0}, or attncourse forget {0} --back"
)
MAX_CHARACTERS_OF_ID = 128  # characters of a student's name, as many as nbgrader's tables hold


@dataclass(frozen=True)
class Submission:
    """What a student's folder holds for an assignment.

    ``data`` is None where there is nothing to grade: ``status`` is then "missing", or "unreadable"
    for what is there and is no file that could be read; ``reason`` says why. ``named`` is False
    where ``student`` stands in for a name that no gradebook can hold.
    """

    student: str
    data: bytes | None = None
    status: str = ""
    reason: str = ""
    note: str = ""
    timestamp: str = ""
    named: bool = True


def find_assignment(course: Path, name: str) -> Assignment:
    """Return the assignment of that name, read from its solved notebook, in its variant."""
    source = course / "solutions"
    if not source.is_dir():
        raise UserError(f"no folder {source}: run this in the course's folder or name it: --course")
    require_known(name, folders_in(source))
    path = source / name / f"{name}.ipynb"
    assignment = read_assignment(path, solved_in_variant(course, path))
    return replace(assignment, added=added_cells(course, name))


def folders_in(place: Path) -> list[str]:
    """Return the names of the folders in a folder, in order, hidden ones left out."""
    if not place.is_dir():
        return []
    return sorted(p.name for p in place.iterdir() if p.is_dir() and not p.name.startswith("."))


def releasable_assignments(course: Path) -> list[str]:
    """Return the names of assignments with a solved notebook; raise ``UserError`` for none."""
    source = course / "solutions"
    names = [name for name in folders_in(source) if (source / name / f"{name}.ipynb").is_file()]
    if not names:
        raise UserError(f"no assignment in {source}: run this in the course's folder: --course")
    return names


def require_known(name: str, known: list[str]) -> None:
    """Raise ``UserError`` if no assignment has this name, with the nearest one that is known."""
    if name not in known:
        hint = did_you_mean(name, known, 0.4) or "."
        listed = f"There are: {', '.join(known)}" if known else "There are none"
        raise UserError(f"no assignment is called {name}{hint} {listed}")


def find_students(course: Path, name: str, student: str | None = None) -> list[str]:
    """Return the ids of students with a folder in ``submitted``, or the one asked for, in order."""
    folder = course / "submitted"
    if not folder.is_dir():
        raise UserError(
            f"no folder {folder}: put notebooks at submitted/STUDENT/{name}/{name}.ipynb"
        )
    students = student_folders(folder, places=True)
    if student is not None and student not in students:
        hint = did_you_mean(student, students)
        raise UserError(f"no student is called {student} in {folder}{hint}")
    if student is not None and Forgotten(course).has_id(student):
        raise UserError(FORGOTTEN.format(student))
    out = folders_of_forgotten(course)
    students = [student_id for student_id in students if student_id not in out]
    if not students:
        raise UserError(f"{folder} is empty: put notebooks at {folder}/STUDENT/{name}/{name}.ipynb")
    return [s for s in students if student in (None, s)]


def folders_of_forgotten(course: Path) -> list[str]:
    """Return the folders in ``submitted`` that are forgotten people's, whose work is not graded."""
    forgotten = Forgotten(course)
    return [
        folder
        for folder in student_folders(course / "submitted", places=True)
        if forgotten.has_id(folder)
    ]


def nobodys_files(course: Path, name: str) -> list[str]:
    """Return a line on files in ``submitted`` that are in no student's folder; none without any."""
    files = student_folders(course / "submitted", places=False)
    loose_files = [
        HandedFile(PurePosixPath(file)) for file in files if file not in IGNORED_FILE_NAMES
    ]
    if not loose_files:
        return []
    way_out = "give one a name that can be typed, and name it to attncourse collect"
    if typed := next((f.path for f in loose_files if f.shown == str(f.path)), None):
        way_out = f"attncourse collect {name} {quote(str(course / 'submitted' / typed))}"
    return [f"in no student's folder and not graded: {listed_paths(loose_files)}: {way_out}"]


def student_folders(folder: Path, *, places: bool) -> list[str]:
    """Return what is a student's folder in ``submitted``, or a link to one, and what is not."""
    with os.scandir(folder) as entries:
        visible_entries = [entry for entry in entries if entry.name[0] != "."]
        real = {e.name for e in visible_entries if e.is_dir(follow_symlinks=False)}
    links = {
        e.name for e in visible_entries if e.is_symlink() and not Path(e).is_file()
    }  # or to themselves
    return sorted(e.name for e in visible_entries if (e.name in real | links) == places)


def read_submissions(course: Path, name: str, students: list[str]) -> Iterator[Submission]:
    """Yield each student's submission, read only when it is asked for."""
    for student in students:
        yield read_submission(course, name, student)


def read_submission(course: Path, name: str, student: str) -> Submission:
    """Return a student's submission, found though it may not be quite in its place."""
    if fault := why_unusable_name(student):
        reason = f"the folder's name {fault}"
        return Submission(
            shown_folder_name(student), status="unreadable", reason=reason, named=False
        )
    home = course / "submitted" / student
    place = home / name
    try:
        for folder in (home, place):
            if folder.is_symlink():
                raise Ungraded(f"{folder.relative_to(course)} is a symbolic link, not a folder")
        data, note, folder = find_notebook(home, name, course / "solutions")
        stamp = timestamp_in(folder) or timestamp_in(place)
        return Submission(student, data, note=note, timestamp=stamp)
    except NothingThere as problem:
        return Submission(student, status="missing", reason=str(problem))
    except Ungraded as problem:
        reason = str(problem)
    except OSError as error:
        reason = f"unreadable notebook: {error.strerror or error}"
    return Submission(student, status="unreadable", reason=reason)


def why_unusable_name(student: str) -> str:
    """Return what is wrong with a student's name that no table or file can hold; "" if nothing."""
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in student):
        return "holds bytes or control characters that no name has"
    if len(student) > MAX_CHARACTERS_OF_ID or len(student.encode()) > 200:
        return f"is longer than {MAX_CHARACTERS_OF_ID} characters, or 200 bytes"
    return ""


def shown_folder_name(student: str) -> str:
    """Return a name in place of one that cannot be shown and written, distinct for each."""
    raw = os.fsencode(student)
    name = printable(raw.decode("utf-8", "backslashreplace"), 30)
    return f"{name} ({hashlib.sha256(raw).hexdigest()[:8]})"


def timestamp_in(place: Path) -> str:
    """Return the text of ``timestamp.txt`` in a folder, when it was handed in; "" without one."""
    try:
        return read_file(place / "timestamp.txt", 1000).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def record_path(course: Path, name: str) -> Path:
    """Return the path of the table in which collecting keeps what came from where."""
    return course / "submitted" / ".collected" / f"{name}.csv"


def read_record(course: Path, name: str) -> dict[str, dict[str, str]]:
    """Return the rows of ``submitted/.collected/ASSIGNMENT.csv`` by student; none without it."""
    place = record_path(course, name)
    head, rows = records_in(place)
    if rows and "student" not in head:
        raise UserError(f"{place} is not what collect keeps: move it away, and collect again")
    return {row["student"]: row for row in rows if row.get("student")}


def with_remarks(submission: Submission, report: Report, zone: Zone) -> Report:
    """Return the report with notes on how the hand-in was found, which is no part of the run."""
    notes, attention = report.notes, report.attention
    if submission.note:
        notes = (submission.note, *notes)
    try:
        stamp_note = read_stamp(submission.timestamp, zone)[1]
        notes = (*notes, stamp_note) if stamp_note else notes
    except ValueError as error:
        attention = (*attention, f"{error}: counted as handed in on time")
    return replace(report, notes=notes, attention=attention)
