"""Exports of a gradebook: which results, in which format, to which files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from attncourse.grading.class_ import canvas, gradescope, moodle
from attncourse.grading.class_.results import ClassResults, Result, class_results
from attncourse.grading.class_.scores import graded_assignments
from attncourse.grading.class_.spreadsheet import Value, table
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_file

FORMATS = ("csv", "canvas", "moodle", "gradescope")
FILES = {"csv": "grades.csv", "canvas": "canvas.csv", "moodle": "moodle.csv"}
FIRST = (
    *("student", "last_name", "first_name", "email", "assignment", "timestamp", "status"),
    *("score", "max_score", "raw_score", "late_penalty", "manual", "points_from"),
)
WAY_OUT = "; name another place"
LAST = ("misconceptions", "to_look_at", "notes")


@dataclass(frozen=True)
class Exported:
    """What was written where, how many rows or files, and what was left out, as sentences."""

    path: Path
    number: int
    remarks: tuple[str, ...] = field(default=())


def export(
    course: Path,
    name: str | None,
    form: str,
    *,
    output: Path | None = None,
    db: str | None = None,
    roster: Path | None = None,
    identifier: str = "username",
) -> Exported:
    """Writes an assignment's results, or with ``name`` None all assignments', in a format.

    ``form`` is one of ``FORMATS``. ``roster`` is an export of Canvas', ``identifier`` the column
    by which Moodle knows a student.
    """
    if form not in FORMATS:
        raise UserError(f"--format: expected one of {', '.join(FORMATS)}, got {form}")
    if roster and form != "canvas":
        raise UserError("--roster goes with --format canvas")
    names = [name] if name is not None else graded_assignments(course, db)
    classes = [class_results(course, n, db) for n in names]
    if form == "gradescope":
        return write_gradescope(course, classes, output)
    place = output or course / "reports" / (name or "") / FILES[form]
    if place.is_dir():
        raise UserError(f"{place} is a folder: name a file with --output")
    remarks: list[str] = []
    rows = make_rows(classes, form, roster, identifier, remarks.append)
    encoding = "utf-8-sig" if form == "csv" else "utf-8"
    replace_file(place, table(rows), encoding=encoding, errors="replace", way_out=WAY_OUT)
    return Exported(place, len(rows) - (2 if form == "canvas" else 1), tuple(remarks))


def make_rows(
    classes: list[ClassResults],
    form: str,
    roster: Path | None,
    identifier: str,
    remark: Callable[[str], None],
) -> list[list[Value]]:
    """The rows of a table, heads included; what is left out is told to ``remark``."""
    if form == "canvas":
        return canvas.rows(classes, roster, remark)
    if form == "moodle":
        return moodle.rows(classes, identifier, remark)
    return list(plain_rows(classes))


def plain_rows(classes: list[ClassResults]) -> Iterator[list[Value]]:
    """The CSV format of our own: a row for each student and assignment.

    The points of each graded cell stand in a column of its name; it is empty where the row's
    assignment has no such cell.
    """
    cells = list(dict.fromkeys(name for found in classes for name in found.cells))
    yield [*FIRST, *cells, *LAST]
    for found in classes:
        for r in found.results:
            points = [r.cells[name].points if name in r.cells else None for name in cells]
            yield [*about(r), *points, *said(r)]


def about(r: Result) -> list[Value]:
    """Who, what and how many points."""
    person = r.person
    who = [person.id, person.last_name, person.first_name, person.email]
    figures = [r.score, r.maximum, r.raw, r.penalty]
    manual = "; ".join(r.manual)
    return [*who, r.assignment, r.timestamp, r.status, *figures, manual, r.source]


def said(r: Result) -> list[Value]:
    """What grading had to say, a line each."""
    seen = "\n".join(f"{target}: {name}" for target, name in r.misconceptions)
    return [seen, "\n".join(r.attention), "\n".join(r.notes)]


def write_gradescope(course: Path, classes: list[ClassResults], output: Path | None) -> Exported:
    """Writes a results.json for each submission, of several assignments into a folder each."""
    number, remarks = 0, []
    place = output or course / "reports"
    for found in classes:
        folder = place / found.assignment if len(classes) > 1 else place
        folder = folder if output else place / found.assignment / "gradescope"
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file: name a folder with --output")
        for student, content in gradescope.files(course, found, remarks.append):
            replace_file(folder / student / "results.json", content, way_out=WAY_OUT)
            number += 1
    return Exported(folder if len(classes) == 1 else place, number, tuple(remarks))
