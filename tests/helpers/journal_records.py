"""A journal's results, read as anybody may read an SQLite database: while it is written, too."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from attncourse.grading.driver.journal import ResultRow
from helpers.small_course import NAME

FILE = "journal.db"


def journal_of(course: Path) -> Path:
    """The journal of the small assignment."""
    return course / "reports" / NAME / FILE


def query(path: Path, statement: str) -> list[tuple]:
    """The rows of a query; nothing of a journal that is not there, or only just being made."""
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(statement).fetchall()
    except sqlite3.OperationalError:
        return []


def number_of_results(course: Path) -> int:
    return len(query(journal_of(course), "select number from result"))


def records(course: Path) -> list[dict[str, Any]]:
    """Each result's key, student and report, in the order in which they were written."""
    columns = "key, student, conditions, report, checksum"
    rows = query(journal_of(course), f"select {columns} from result order by number")
    found = []
    for key, student, conditions, report, checksum in rows:
        assert ResultRow(key, student.encode(), conditions, report.encode()).checksum == checksum
        found.append({"key": key.hex(), "student": student, "report": json.loads(report)})
    return found
