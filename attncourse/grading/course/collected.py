"""What `attncourse collect` keeps of where each submission came from, as a table by student."""

from pathlib import Path

from attncourse.grading.errors import UserError
from attncourse.grading.spreadsheet import line_of, rows_in


def place_of_record(course: Path, name: str) -> Path:
    return course / "submitted" / ".collected" / f"{name}.csv"


def record_of(course: Path, name: str) -> dict[str, dict[str, str]]:
    """The rows of ``submitted/.collected/ASSIGNMENT.csv`` by student."""
    place = place_of_record(course, name)
    if not place.is_file():
        return {}
    head, *rows = rows_in(place) or [[]]
    if rows and "student" not in head:
        raise UserError(f"{place} is not what collect keeps: move it away, and collect again")
    read = [dict(zip(head, map(line_of, row), strict=False)) for row in rows]
    return {row["student"]: row for row in read if row.get("student")}
