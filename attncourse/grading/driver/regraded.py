"""Changed points after grading again: of whom, from what to what, and why."""

from pathlib import Path
from typing import NamedTuple

from attncourse.grading.files import replace_file
from attncourse.grading.report import TOLERANCE, Report
from attncourse.grading.results.class_results import read_report
from attncourse.grading.spreadsheet import csv_table

CHANGED_POINTS_FILE = "changed_points.csv"
CHANGED_POINTS_HEAD = ("student", "cell", "before", "now", "why")


class PointChange(NamedTuple):
    """A graded cell of a student that has other points than before."""

    student: str
    cell: str
    before: float
    now: float
    why: str


def earlier_report(course: Path, name: str, student: str) -> Report | None:
    """Return the report on a student that an earlier grading has left; None if unreadable."""
    path = course / "reports" / name / f"{student}.json"
    report = read_report(path) if path.is_file() else None
    return report if isinstance(report, Report) and report.status != "missing" else None


def changes_between(before: Report | None, now: Report) -> list[PointChange]:
    """Return the cells whose points differ in two reports; a cell that is in one alone counts 0."""
    if before is None:
        return []
    names = dict.fromkeys([*before.cells, *now.cells])
    changes = []
    for name in names:
        old, new = before.cells.get(name), now.cells.get(name)
        earlier, later = (cell.points if cell else 0.0 for cell in (old, new))
        if abs(earlier - later) < TOLERANCE:
            continue
        why = new.message or "right now" if new else "the test is gone"
        if new and not old:
            why = f"the test is new{': ' if new.message else ''}{new.message}"
        changes.append(PointChange(now.student, name, earlier, later, " ".join(why.split())))
    return changes


def write_changes(course: Path, name: str, changes: list[PointChange]) -> Path:
    """Write the list of changes, in place of that of the grading before; return its path."""
    return replace_file(
        course / "reports" / name / CHANGED_POINTS_FILE,
        csv_table([CHANGED_POINTS_HEAD, *sorted(changes)]),
    )
