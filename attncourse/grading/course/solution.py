"""The solved notebook for students after the deadline: answers in, nbgrader's marks out."""

import json
import re
from pathlib import Path
from typing import Any

from attncourse.grading.course.folders import find_assignment
from attncourse.grading.course.variants import variants_in
from attncourse.grading.errors import Unreadable, UserError
from attncourse.grading.files import replace_file
from attncourse.grading.submission.notebook import read_cells
from attncourse.grading.submission.parts import HIDDEN_TESTS

CHECKOUT_SECONDS = 5  # seconds
MARKS = ("nbgrader", "attncourse_broken")  # in a cell's metadata, which no reader needs
MARKERS = re.compile(r"^.*\b(?:BEGIN|END) (?:SOLUTION|HIDDEN TESTS|MARK SCHEME)\b.*\n?", re.M)


def write_solution(
    course: Path, name: str, output: Path | None = None, *, hidden: bool = False
) -> Path:
    """Write the solved notebook for students; return its path. A file that is there stays.

    With ``hidden``, it has the hidden tests.
    """
    find_assignment(course, name)
    if variant := variants_in(course).get(name):
        raise UserError(
            f"{name} was released in the variant {variant}, which the answers in solutions/ do not "
            "fit: write a solution of your own"
        )
    place = output or course / "reports" / name / f"{name}_solution.ipynb"
    if output is not None and place.is_file():
        raise UserError(f"{place} is there already: move it away, or name another with --output")
    solved = json.loads((course / "solutions" / name / f"{name}.ipynb").read_text("utf-8"))
    text = json.dumps(without_nbgrader_marks(solved, hidden), indent=1, ensure_ascii=False) + "\n"
    return replace_file(place, text, way_out="; name another place")


def outdated_solution(course: Path, name: str) -> list[str]:
    """Return a line if the source of a solved notebook differs from it, or is newer; none if not.

    A few seconds between them do not count: one checkout writes both.
    """
    source, notebook = (course / "solutions" / name / f"{name}{end}" for end in (".py", ".ipynb"))
    try:
        written, made_cells = (read_cells(path.read_bytes()) for path in (source, notebook))
        newer = source.stat().st_mtime > notebook.stat().st_mtime + CHECKOUT_SECONDS
    except (OSError, Unreadable):  # there is none, or it is no notebook's
        return []
    code = {cell.source.strip() for cell in made_cells if cell.code}
    points = {cell.grade_id: cell.points for cell in made_cells}
    is_same = {cell.grade_id for cell in written if cell.code} >= {
        c.grade_id for c in made_cells if c.code
    }
    for cell in written:
        is_same &= not cell.code or cell.source.strip() in code
        is_same &= cell.points in (0, points.get(cell.grade_id))
    if is_same and not newer:
        return []
    return [f"{source} is newer than the notebook made from it, and does not count: make exercises"]


def without_nbgrader_marks(solved: dict[str, Any], hidden: bool = False) -> dict[str, Any]:
    """Return a solved notebook without nbgrader's marks, and without cells that are empty then."""
    cells = []
    for cell in solved["cells"]:
        source = "".join(cell["source"])
        text = MARKERS.sub("", source if hidden else HIDDEN_TESTS.sub("", source)).strip("\n")
        metadata = {k: v for k, v in cell["metadata"].items() if k not in MARKS}
        emptied = source != text and all(not line or line[0] == "#" for line in text.split("\n"))
        if text and not (emptied and cell["cell_type"] == "code"):
            cells.append({**cell, "metadata": metadata, "source": text.splitlines(True)})
    return {**solved, "cells": cells}
