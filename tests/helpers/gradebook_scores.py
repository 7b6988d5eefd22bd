"""Scores in a gradebook, and a question that a person marks."""

import json
from pathlib import Path

import rubrics

from attncourse.grading.gradebook.connection import find_gradebook, open_gradebook
from helpers.small_course import NAME, cell, notebook

MARKS = {"grade_id": "explain_it", "grade": True, "solution": True, "points": 3}
TEXT = """\
## 5 · Why?

<!-- facts: explain_it -->

Explain it.

| points | for |
| --: | --- |
| 2 | what |
| 1 | why |

### BEGIN SOLUTION
So.
### END SOLUTION"""


def question(text: str = TEXT) -> dict:
    marks, text = rubrics.question_cell(MARKS, text, "a.py")
    made = cell(text, "explain_it", code=False)
    return made | {"metadata": {"nbgrader": marks}}


def with_question(data: bytes, answer: str = "") -> bytes:
    made = question()
    made["source"] = answer or made["source"]
    return notebook(*json.loads(data)["cells"], made)


def write_solved(course: Path, data: bytes) -> None:
    (course / "solutions" / NAME / f"{NAME}.ipynb").write_bytes(data)


def score(course: Path, student: str, grade_id: str, points: float, comment: str = "") -> None:
    """Enters what a person gives in the formgrader."""
    with open_gradebook(find_gradebook(course)) as gradebook:
        grade = gradebook.find_grade(grade_id, NAME, NAME, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        if comment:
            cell_id = grade_id.removeprefix("points_")
            gradebook.find_comment(cell_id, NAME, NAME, student).manual_comment = comment
        gradebook.db.commit()


def scores(course: Path) -> dict[str, tuple]:
    """Each graded cell of Ada's: automatic and manual score, and whether a person has to look."""
    with open_gradebook(find_gradebook(course)) as gradebook:
        grades = gradebook.find_submission_notebook(NAME, NAME, "ada").grades
        return {g.name: (g.auto_score, g.manual_score, bool(g.needs_manual_grade)) for g in grades}
