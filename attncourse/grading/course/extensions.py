"""More time for single students: read from and written to ``extensions.csv``.

It is entered where nbgrader looks for it, too.
"""

import math
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from attncourse.grading.course.dates import Zone, days_after
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_file
from attncourse.grading.harmless import one_line
from attncourse.grading.spreadsheet import csv_table, records_in

EXTENSIONS_FILE = "extensions.csv"
EXTENSIONS_HEAD = ("student", "assignment", "days")
LATE_DAYS_COLUMN = "late_days"
MAX_EXTENSION_DAYS = 3650


class ExtensionDays(NamedTuple):
    """A student's further days: ``granted`` by a person, ``taken`` of the late days of the term."""

    granted: float
    taken: float = 0

    def length(self, due: datetime | None, zone: Zone) -> timedelta:
        """Return how much later the work is due than at ``due``, by the course's clocks."""
        days = self.granted + self.taken
        return days_after(due, days, zone) - due if due else timedelta(days=days)


NO_EXTENSION = ExtensionDays(0)
Extensions = dict[tuple[str, str], ExtensionDays]


def read_extensions(course: Path) -> Extensions:
    """Return the extensions by (student, assignment); none where there is no table."""
    path = course / EXTENSIONS_FILE
    if not os.path.lexists(path):
        return {}
    head, rows = records_in(path)
    if not set(EXTENSIONS_HEAD) <= set(head):
        raise UserError(f"{path}: expected the head {','.join(EXTENSIONS_HEAD)} in its first line")
    extensions: Extensions = {}
    for number, row in enumerate(rows, start=2):
        if not any(row.values()):
            continue
        where = f"{path}, line {number}"
        student, name, days, taken = (
            row.get(key, "").strip() for key in (*EXTENSIONS_HEAD, LATE_DAYS_COLUMN)
        )
        try:
            extension = ExtensionDays(days_in(days), days_in(taken or "0"))
        except ValueError:
            entry = one_line(f"{days} {taken}".strip(), 40) or "nothing"
            raise UserError(f"{where}: expected a number of days, got {entry}") from None
        if not (student and name):
            raise UserError(f"{where}: expected a student and an assignment")
        extensions[student, name] = extension
    return extensions


def days_in(text: str) -> float:
    """Return a number of days from a cell; raise ``ValueError`` if it is none."""
    days = float(text.replace(",", "."))
    if not (math.isfinite(days) and 0 <= days <= MAX_EXTENSION_DAYS):
        raise ValueError(f"expected 0 to {MAX_EXTENSION_DAYS} days, got {days:g}")
    return days


def write_extensions(course: Path, extensions: Extensions) -> Path:
    """Write the table of extensions in place of the one before; return its path."""
    head: tuple[str, ...] = EXTENSIONS_HEAD
    rows: list[tuple] = [(*who, extension.granted) for who, extension in sorted(extensions.items())]
    if any(extension.taken for extension in extensions.values()):
        head = (*EXTENSIONS_HEAD, LATE_DAYS_COLUMN)
        rows = [(*who, *extension) for who, extension in sorted(extensions.items())]
    return replace_file(course / EXTENSIONS_FILE, csv_table([head, *rows]))
