"""Notebooks and courses of a few cells, for the tests of grading."""

import json
from pathlib import Path

NAME = "01_small"


def cell(source: str, grade_id: str = "", *, code: bool = True, **marks) -> dict:
    """Return a notebook cell; with a grade id, it has nbgrader's full metadata."""
    metadata = {}
    if grade_id:
        full = {"grade": False, "locked": False, "solution": False, "task": False}
        metadata["nbgrader"] = full | {"schema_version": 3, "grade_id": grade_id} | marks
    raw_cell = {"cell_type": "code" if code else "markdown", "metadata": metadata, "source": source}
    raw_cell |= {"outputs": [], "execution_count": None} if code else {}
    return raw_cell | {"id": grade_id or f"cell-{abs(hash(source)) % 10**8}"}


def solution(grade_id: str, source: str) -> dict:
    return cell(source, grade_id, solution=True)


def graded(grade_id: str, source: str, points: float) -> dict:
    return cell(source, grade_id, grade=True, locked=True, points=points)


def notebook(*cells: dict) -> bytes:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}}
    return json.dumps({**content, "cells": list(cells)}, indent=1).encode()


TESTS = (
    cell("limit = 3", "setup", locked=True),
    graded("points_add", "2 if add(1, 2) == limit else 1 if add(0, 0) == 0 else 0", 2),
    graded(
        "hidden_add",
        "# More tests.\n### BEGIN HIDDEN TESTS\nassert add(5, 6) == 11\n### END HIDDEN TESTS",
        1,
    ),
    graded("points_twice", "4 * (twice(2) == 4)", 4),
)
RIGHT = (
    "### BEGIN SOLUTION\ndef add(a, b):\n    return a + b\n### END SOLUTION",
    "### BEGIN SOLUTION\ndef twice(a):\n    return 2 * a\n### END SOLUTION",
)


def small(add: str = RIGHT[0], twice: str = RIGHT[1]) -> bytes:
    """Return the small assignment's notebook with these answers."""
    setup, *tests = TESTS
    return notebook(
        cell("# Small\nA title.", code=False),
        setup,
        solution("add", add),
        solution("twice", twice),
        *tests,
    )


STUB = "# YOUR CODE HERE\nraise NotImplementedError()"


def released() -> bytes:
    """Return the small assignment as students get it, without answers and hidden tests."""
    hidden = "### BEGIN HIDDEN TESTS\nassert add(5, 6) == 11\n### END HIDDEN TESTS"
    content = json.loads(small(STUB, STUB))
    for raw in content["cells"]:
        raw["source"] = raw["source"].replace(hidden, "")
    return json.dumps(content, indent=1).encode()


def make_course(folder: Path, **submissions: bytes) -> Path:
    """Make a course that released the small assignment, and hand in these students' bytes."""
    for part, data in (("solutions", small()), ("exercises", released())):
        place = folder / part / NAME
        place.mkdir(parents=True)
        (place / f"{NAME}.ipynb").write_bytes(data)
    for student, data in submissions.items():
        hand_in(folder, student, data)
    return folder


def hand_in(course: Path, student: str, data: bytes) -> Path:
    """Write a student's notebook into the folder of submissions, and return its path."""
    path = course / "submitted" / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
