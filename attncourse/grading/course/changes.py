"""An assignment that changed after it was handed in: what changed, and which cells are new."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attncourse.grading.files import replace_file
from attncourse.grading.report import count
from attncourse.grading.spreadsheet import csv_table, records_in

RecordedCells = dict[str, tuple[Any, float | None]]  # checksum and points by grade id
ADDED_CELLS_FILE = "added_cells.csv"


def changes_of_cells(old: RecordedCells, new: RecordedCells) -> Iterator[str]:
    """Yield a sentence for each graded cell that is new, gone or changed between two records."""
    before = {name: points for name, (_, points) in old.items() if points is not None}
    after = {name: points for name, (_, points) in new.items() if points is not None}
    for name in (name for name in after if name not in before):
        yield f"{name} is new, {count(after[name], 'point')}"
    for name in (name for name in before if name not in after):
        yield f"{name} is gone, {count(before[name], 'point')}"
    in_both = [name for name in after if name in before]
    for name in in_both:
        if before[name] != after[name]:
            yield f"{name} has {count(after[name], 'point')}, it had {before[name]:g}"
    reworded = [n for n in in_both if old[n][0] != new[n][0] and before[n] == after[n]]
    if reworded:
        yield f"another text: {', '.join(reworded)}"


def keep_added(course: Path, name: str, ids: list[str]) -> None:
    """Note the ids of cells that an assignment has got since its release, which copies lack."""
    if ids:
        before = added_cells(course, name)
        rows = [("cell",), *((cell_id,) for cell_id in (*before, *ids))]
        replace_file(course / "reports" / name / ADDED_CELLS_FILE, csv_table(rows))


def added_cells(course: Path, name: str) -> tuple[str, ...]:
    """Return the ids of cells that an assignment has got since its release."""
    _, rows = records_in(course / "reports" / name / ADDED_CELLS_FILE)
    return tuple(dict.fromkeys(row["cell"] for row in rows if row.get("cell")))
