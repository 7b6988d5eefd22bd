"""Exports of a gradebook: results in one of several formats, written to files."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from attncourse.grading.course.newer_hand_ins import newer_hand_ins
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_file
from attncourse.grading.gradebook.read import graded_assignments
from attncourse.grading.results import canvas, gradescope, moodle, totals
from attncourse.grading.results.class_results import ClassResults, StudentResult, class_results
from attncourse.grading.slips import require_trust
from attncourse.grading.spreadsheet import Value, csv_table

EXPORT_ADVICE = "; name another place"
# The CSV format of our own: what stands before the points of each cell, and what behind them.
COLUMNS_BEFORE_CELLS: dict[str, Callable[[StudentResult], Value]] = {
    "student": lambda r: r.student,
    "last_name": lambda r: r.person.last_name,
    "first_name": lambda r: r.person.first_name,
    "email": lambda r: r.person.email,
    "assignment": lambda r: r.assignment,
    "timestamp": lambda r: r.timestamp,
    "status": lambda r: r.status,
    "score": lambda r: r.score,
    "max_score": lambda r: r.maximum,
    "raw_score": lambda r: r.raw,
    "late_penalty": lambda r: r.penalty,
    "days_late": lambda r: r.late / 86400,
    "extension_days": lambda r: r.extension,
    "manual": lambda r: "; ".join(r.manual),
    "points_from": lambda r: r.source,
}
COLUMNS_BEHIND_CELLS: dict[str, Callable[[StudentResult], Value]] = {
    "mistakes": lambda r: "\n".join(f"{target}: {name}" for target, name in r.mistakes),
    "to_look_at": lambda r: "\n".join(t for t in (*r.attention, r.waits, r.older) if t),
    "notes": lambda r: "\n".join(r.notes),
}


class OneFile(NamedTuple):
    """A format that is one file: the file's name, and the function that makes its rows.

    The function takes class results, a function that hears remarks, and those of the ``options``
    that the format has. ``heads`` is how many rows are no student's.
    """

    file: str
    rows: Callable[..., Iterable[list[Value]]]
    options: tuple[str, ...] = ()
    heads: int = 1


FILES = {
    "csv": OneFile("grades.csv", lambda classes, remark: plain_rows(classes)),
    "canvas": OneFile("canvas.csv", canvas.canvas_rows, ("roster", "column", "trust"), heads=2),
    "moodle": OneFile("moodle.csv", moodle.moodle_rows, ("identifier",)),
    "totals": OneFile("totals.csv", totals.totals_rows, ("course",)),
}
FORMATS = (*FILES, "gradescope")  # which is a folder of files


@dataclass(frozen=True)
class Exported:
    """The result of an export: its path, how many rows or files, remarks on what is left out."""

    path: Path
    number: int
    remarks: tuple[str, ...] = ()


def write_export(
    course: Path,
    name: str | None,
    form: str,
    *,
    output: Path | None = None,
    db: str | None = None,
    roster: Path | None = None,
    column: str | None = None,
    identifier: str | None = None,
    trust: str = "",
) -> Exported:
    """Write an assignment's results or, with ``name`` None, all assignments', in a format.

    ``form`` is one of ``FORMATS``. ``roster`` is an export of Canvas', ``column`` the one of its
    columns to fill, ``identifier`` the column by which Moodle knows a student.
    """
    if form not in FORMATS:
        formats = ", ".join((*FORMATS, "gradescope-autograder"))
        raise UserError(f"--format: expected one of {formats}, got {form}")
    if column and (roster is None or name is None):
        raise UserError("--column goes with one assignment and --roster, whose column it is")
    if form == "totals" and name is not None:
        raise UserError("totals are of all assignments: --all --format totals")
    require_trust(trust)
    if roster and form != "canvas":
        raise UserError("--roster goes with --format canvas")
    if identifier and form != "moodle":
        raise UserError("--id goes with --format moodle")
    names = [name] if name is not None else graded_assignments(course, db)
    classes = [class_results(course, n, db) for n in names]
    remarks = [
        f"{c.assignment}: a person's score is still missing for {c.waiting}, and is 0 here"
        for c in classes
        if c.waiting
    ]
    remarks += [sentence for results_of_class in classes for sentence in results_of_class.left_out]
    for results_of_class in classes:
        graded = {r.student for r in results_of_class.results if r.handed_in}
        remarks += newer_hand_ins(course, results_of_class.assignment, graded)
    if form == "gradescope":
        return write_gradescope(course, classes, output, remarks)
    export_format = FILES[form]
    place = output or course / "reports" / (name or "") / export_format.file
    options = {"roster": roster, "column": column, "identifier": identifier, "trust": trust}
    options |= {"course": course}
    rows = list(
        export_format.rows(
            classes, remarks.append, **{name: options[name] for name in export_format.options}
        )
    )
    encoding = "utf-8-sig" if form == "csv" else "utf-8"
    replace_file(place, csv_table(rows), encoding=encoding, errors="replace", way_out=EXPORT_ADVICE)
    return Exported(place, len(rows) - export_format.heads, tuple(remarks))


def plain_rows(classes: list[ClassResults]) -> Iterator[list[Value]]:
    """Yield the rows of the course's own CSV: the head, then one for each student and assignment.

    The points of each graded cell are in a column of its name, which is empty where the row's
    assignment has no such cell.
    """
    cells = list(
        dict.fromkeys(name for results_of_class in classes for name in results_of_class.cells)
    )
    yield [*COLUMNS_BEFORE_CELLS, *cells, *COLUMNS_BEHIND_CELLS]
    for r in (r for results_of_class in classes for r in results_of_class.results):
        points = [r.cells[name].points if name in r.cells else None for name in cells]
        before, behind = (
            [value(r) for value in of.values()]
            for of in (COLUMNS_BEFORE_CELLS, COLUMNS_BEHIND_CELLS)
        )
        yield [*before, *points, *behind]


def write_gradescope(
    course: Path, classes: list[ClassResults], output: Path | None, remarks: list[str]
) -> Exported:
    """Write a results.json for each submission; of several assignments, into a folder each."""
    place = output or course / "reports"
    number, folder = 0, place
    for results_of_class in classes:
        folder = place / results_of_class.assignment if len(classes) > 1 or not output else place
        folder = folder if output else folder / "gradescope"
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file: name a folder with --output")
        for student, content in gradescope.results_files(course, results_of_class, remarks.append):
            replace_file(folder / student / "results.json", content, way_out=EXPORT_ADVICE)
            number += 1
    return Exported(folder if len(classes) == 1 else place, number, tuple(remarks))
