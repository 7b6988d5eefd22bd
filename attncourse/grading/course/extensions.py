"""More time for single students: kept in ``extensions.csv``, and entered where nbgrader looks.

nbgrader keeps an extension with a submission, which there is none of before the student has handed
in. So the file is what counts: whichever way a submission is graded, its extension is entered with
it. One that only the gradebook has, from nbgrader's ``grant_extension``, stays. Days are counted by
the class's clocks: two days from noon end at noon. The column ``late_days`` is what a student takes
of the days that the term allows, ``days`` what a person has given besides.
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
    """The further days of a student: given by a person, and taken of those that the term allows."""

    granted: float
    taken: float = 0

    def length(self, due: datetime | None, zone: Zone) -> timedelta:
        """Return the length of the extension after a due date."""
        days = self.granted + self.taken
        return days_after(due, days, zone) - due if due else timedelta(days=days)


NO_EXTENSION = ExtensionDays(0)
Extensions = dict[tuple[str, str], ExtensionDays]


def read_extensions(course: Path) -> Extensions:
    """Return the extensions by student and assignment."""
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
            more = ExtensionDays(days_in(days), days_in(taken or "0"))
        except ValueError:
            said = one_line(f"{days} {taken}".strip(), 40) or "nothing"
            raise UserError(f"{where}: expected a number of days, got {said}") from None
        if not (student and name):
            raise UserError(f"{where}: expected a student and an assignment")
        extensions[student, name] = more
    return extensions


def days_in(text: str) -> float:
    """Return a number of days; raise ``ValueError`` for what is none."""
    days = float(text.replace(",", "."))
    if not (math.isfinite(days) and 0 <= days <= MAX_EXTENSION_DAYS):
        raise ValueError(f"expected 0 to {MAX_EXTENSION_DAYS} days, got {days:g}")
    return days


def write_extensions(course: Path, extensions: Extensions) -> Path:
    """Write the table of extensions, in the place of the one before."""
    head: tuple[str, ...] = EXTENSIONS_HEAD
    rows: list[tuple] = [(*who, more.granted) for who, more in sorted(extensions.items())]
    if any(more.taken for more in extensions.values()):
        head = (*EXTENSIONS_HEAD, LATE_DAYS_COLUMN)
        rows = [(*who, *more) for who, more in sorted(extensions.items())]
    return replace_file(course / EXTENSIONS_FILE, csv_table([head, *rows]))
