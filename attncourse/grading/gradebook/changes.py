"""Changing an assignment's cells in a gradebook that has submissions to it."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attncourse.grading.files import replace_file
from attncourse.grading.harmless import one_line
from attncourse.grading.report import count
from attncourse.grading.spreadsheet import csv_table, line_of_cell, rows_in

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

REMOVED_CELLS_FILE = "removed_cells.csv"
REMOVED_CELLS_HEAD = ("student", "cell", "manual_score", "extra_credit", "comment")


def follow_changes(gradebook: "Gradebook", course: Path, name: str, cells: list[Any]) -> list[str]:
    """Give a gradebook with submissions the present cells of a notebook; return notes.

    Without submissions nothing is done: nbgrader records the cells itself.
    """
    from nbgrader import utils

    notebook = gradebook.find_notebook(name, name)
    if not notebook.submissions:
        return []
    kinds = (
        ("grade", notebook.grade_cells, utils.is_grade),
        ("solution", notebook.solution_cells, utils.is_solution),
        ("task", notebook.task_cells, utils.is_task),
        ("source", notebook.source_cells, lambda cell: True),
    )
    gone, notes = [], []
    for kind, existing, belongs in kinds:
        new_cells = {c.metadata.nbgrader["grade_id"]: c for c in cells if belongs(c)}
        gone += [cell for cell in existing if cell.name not in new_cells]
        for grade_id in new_cells.keys() - {cell.name for cell in existing}:
            add_recorded_cell(gradebook, notebook, kind, new_cells[grade_id])
    if rows := [row for cell in gone for row in entered_by_people(cell)]:
        place = append_rows(course / "reports" / name / REMOVED_CELLS_FILE, rows)
        notes.append(f"what a person has entered for cells that are gone is in {place}")
    for cell in gone:
        for row in (*getattr(cell, "grades", ()), *getattr(cell, "comments", ()), cell):
            gradebook.db.delete(row)
    gradebook.db.commit()
    return notes + list(scores_above_points(notebook, cells))


def add_recorded_cell(gradebook: "Gradebook", notebook: Any, kind: str, cell: Any) -> None:
    """Record a cell, with empty rows for each submission as nbgrader makes them."""
    from nbgrader.api import Comment, Grade

    marks = cell.metadata.nbgrader
    described: dict[str, Any] = {} if kind == "solution" else {"cell_type": cell.cell_type}
    described |= {"max_score": float(marks["points"])} if kind in ("grade", "task") else {}
    make = getattr(gradebook, f"add_{kind}_cell")
    new_cell = make(marks["grade_id"], notebook.name, notebook.assignment.name, **described)
    rows = {"grade": [Grade], "solution": [Comment], "task": [Grade, Comment]}.get(kind, ())
    for submission, row in product(notebook.submissions, rows):
        gradebook.db.add(row(cell_id=new_cell.id, notebook_id=submission.id))


def entered_by_people(cell: Any) -> Iterator[tuple]:
    """Yield, as rows, the scores, extra credit and comments that people have entered for a cell."""
    for grade in getattr(cell, "grades", ()):
        if grade.manual_score is not None or grade.extra_credit:
            yield grade.student.id, cell.name, grade.manual_score, grade.extra_credit, None
    for comment in getattr(cell, "comments", ()):
        if comment.manual_comment:
            yield comment.student.id, cell.name, None, None, comment.manual_comment


def append_rows(place: Path, rows: list[tuple]) -> Path:
    """Append rows to a table's file, which is made if there is none; return its path."""
    before = rows_in(place) if place.is_file() else []
    new = [[one_line(v) if isinstance(v, str) else v for v in row] for row in rows]
    old = [[line_of_cell(cell) for cell in row] for row in before or [list(REMOVED_CELLS_HEAD)]]
    return replace_file(place, csv_table([*old, *new]))


def scores_above_points(notebook: Any, cells: list[Any]) -> Iterator[str]:
    """Yield a sentence for each cell that a person gave more points than it has now; they stay."""
    now = {c.metadata.nbgrader["grade_id"]: c.metadata.nbgrader.get("points") for c in cells}
    for cell in (*notebook.grade_cells, *notebook.task_cells):
        points = float(now.get(cell.name) or 0)
        above = [g.student.id for g in cell.grades if (g.manual_score or 0) > points]
        if cell.name in now and above:
            students, most = ", ".join(map(one_line, above)), count(points, "point")
            yield f"{cell.name}: the score a person gave is above its {most}: {students}"
