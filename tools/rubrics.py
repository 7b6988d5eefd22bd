"""Questions for a person's judgement: cells `explain_…` in the sources, and what must hold of them.

Such a cell is Markdown and holds all of it: the question, a rubric as a table whose rows begin
with their points, and between `### BEGIN SOLUTION` and `### END SOLUTION` an answer that earns
them all. nbgrader releases it with *YOUR ANSWER HERE* in the answer's place and shows it to
whoever grades.
"""

from __future__ import annotations

import re

from course import CourseError

PREFIX = "explain_"
QUESTION_MARKS = {"grade": True, "solution": True}
TABLE_ROW = re.compile(r"^\| *(\d+) *\|", re.MULTILINE)
SOLUTION_BLOCK = re.compile(
    r"^### BEGIN SOLUTION\n.*\S.*\n### END SOLUTION$", re.MULTILINE | re.DOTALL
)


def is_question(short: dict | None) -> bool:
    """True if a cell's short metadata is that of a question."""
    return short is not None and str(short.get("grade_id", "")).startswith(PREFIX)


def question_cell(short: dict, text: str, path: str) -> tuple[dict, str]:
    """Return nbgrader's full metadata of a question, and its text with the points filled in."""
    grade_id, points = short["grade_id"], short.get("points")
    place = f"{path}: {grade_id}"
    marks = {k: v for k, v in short.items() if k not in ("grade_id", "points") and v}
    if marks != QUESTION_MARKS or not isinstance(points, int) or points < 1:
        raise CourseError(f"{place} has {short}, it should have {QUESTION_MARKS} and points")
    total = sum(int(row) for row in TABLE_ROW.findall(text))
    if total != points:
        raise CourseError(f"{place}: the rubric adds up to {total} points, the cell has {points}")
    if not SOLUTION_BLOCK.search(text):
        raise CourseError(f"{place}: no answer from ### BEGIN SOLUTION to ### END SOLUTION")
    marker = f"<!-- facts: {grade_id} -->"
    if marker not in text:
        raise CourseError(f"{place}: there is no marker {marker}")
    full = {"grade_id": grade_id, "schema_version": 3, "task": False, "locked": False}
    facts_line = f"*{points} points, given by a person · three sentences*"
    return {**full, **QUESTION_MARKS, "points": points}, text.replace(marker, facts_line)
