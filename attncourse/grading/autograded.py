"""The notebook that nbgrader's formgrader and feedback show: a submission with its results."""

import json
from typing import Any

from attncourse.grading.errors import Unreadable
from attncourse.grading.notebook import Assignment, Cell, read_cells
from attncourse.grading.plan import arrange
from attncourse.grading.report import Report

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def autograded(notebook: bytes, assignment: Assignment, report: Report) -> str:
    """A submission as nbgrader's autograde leaves it: the instructor's tests, and their results.

    Of a submission that cannot be read, the tests alone.
    """
    try:
        cells = read_cells(notebook)
    except Unreadable as error:
        cells = (Cell(f"This notebook could not be read: {error}.", code=False),)
    arranged, _ = arrange(cells, assignment)
    content = {
        "cells": [to_json(n, cell, report) for n, (_, cell) in enumerate(arranged)],
        "metadata": {"kernelspec": KERNEL},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def to_json(number: int, cell: Cell, report: Report) -> dict[str, Any]:
    """One cell in the notebook format, with nbgrader's metadata and the result of a test."""
    metadata: dict[str, Any] = {}
    if cell.grade_id:
        marks = {name: getattr(cell, name) for name in ("grade_id", "grade", "solution", "locked")}
        metadata["nbgrader"] = {"schema_version": 3, "task": False, **marks}
        if cell.grade:
            metadata["nbgrader"]["points"] = cell.points
    made = {"id": f"cell-{number}", "metadata": metadata, "source": cell.source}
    if not cell.code:
        return {"cell_type": "markdown", **made}
    return {"cell_type": "code", "execution_count": None, "outputs": outputs(cell, report), **made}


def outputs(cell: Cell, report: Report) -> list[dict[str, Any]]:
    """What a test gave: the verdicts as text, and why points are missing."""
    found = report.cells.get(cell.grade_id) if cell.grade else None
    if found is None:
        return []
    name = cell.grade_id.removeprefix("points_")
    texts = [v["text"] for v in report.verdicts if v["target"].split(".")[-1] == name]
    if found.message and not texts:
        texts = [found.message]
    text = "\n\n".join([*texts, f"{found.points:g} of {found.maximum:g} points"])
    return [{"output_type": "stream", "name": "stdout", "text": text + "\n"}]
