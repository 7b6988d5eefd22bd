"""What `attncourse collect` keeps of where each submission came from, as a table by student."""

import csv
import io
from pathlib import Path

from attncourse.grading.spreadsheet import line_of


def place_of_record(course: Path, name: str) -> Path:
    return course / "submitted" / ".collected" / f"{name}.csv"


def record_of(course: Path, name: str) -> dict[str, dict[str, str]]:
    """The rows of ``submitted/.collected/ASSIGNMENT.csv`` by student."""
    place = place_of_record(course, name)
    if not place.is_file():
        return {}
    rows = csv.DictReader(io.StringIO(place.read_text(encoding="utf-8"), newline=""))
    read = ({head: line_of(row[head] or "") for head in rows.fieldnames or ()} for row in rows)
    return {row["student"]: row for row in read if row.get("student")}
