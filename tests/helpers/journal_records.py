"""A journal's results: some to write, and how anybody may read them, while they are written too."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from attncourse.grading.driver.journal import ResultRow, open_journal
from attncourse.grading.report import CellResult, Report
from helpers.small_course import NAME

FILE = "journal.db"


def journal_of(course: Path) -> Path:
    """Return the path of the small assignment's journal."""
    return course / "reports" / NAME / FILE


def query(path: Path, statement: str) -> list[tuple]:
    """Return the rows of a query, none where the journal is absent or just being made."""
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
    """Return each result's key, student and report, in the order of writing."""
    columns = "key, student, conditions, report, checksum"
    rows = query(journal_of(course), f"select {columns} from result order by number")
    found = []
    for key, student, conditions, report, checksum in rows:
        assert ResultRow(key, student.encode(), conditions, report.encode()).checksum == checksum
        found.append({"key": key.hex(), "student": student, "report": json.loads(report)})
    return found


def made_report(student: str, points: float = 1.5) -> Report:
    verdict = {"cell": "c", "target": "a.b", "criteria": [{"name": "values", "passed": True}]}
    return Report(
        student,
        NAME,
        "graded",
        {"points_add": CellResult(points, 2.0, "said «why»\n")},
        mistakes=(("a.b", "divided by d"),),
        notes=("one", "two"),
        verdicts=(verdict,),
        seed=7,
        limits={"submission": {"limit": 120.0, "used": 0.25, "met": False}},
    )


def key(number: int) -> str:
    return f"{number:064x}"


def write_results(folder: Path) -> None:
    """Write a thousand results, and print a line for each."""
    with open_journal(folder, NAME) as journal:
        for n in range(1000):
            journal.write(key(n), made_report(f"s{n}", n / 8))
            print(n, flush=True)


if __name__ == "__main__":
    write_results(Path(sys.argv[1]))
