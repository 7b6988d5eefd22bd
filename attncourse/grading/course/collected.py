"""What `attncourse collect` keeps of where each submission came from, as a table by student."""

from pathlib import Path

from attncourse.grading.errors import UserError
from attncourse.grading.spreadsheet import records_in


def place_of_record(course: Path, name: str) -> Path:
    return course / "submitted" / ".collected" / f"{name}.csv"


def record_of(course: Path, name: str) -> dict[str, dict[str, str]]:
    """The rows of ``submitted/.collected/ASSIGNMENT.csv`` by student."""
    place = place_of_record(course, name)
    head, rows = records_in(place)
    if rows and "student" not in head:
        raise UserError(f"{place} is not what collect keeps: move it away, and collect again")
    return {row["student"]: row for row in rows if row.get("student")}
