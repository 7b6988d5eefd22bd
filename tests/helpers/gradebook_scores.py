"""Scores in a gradebook, and a manually graded question."""

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


def question_cell(text: str = TEXT) -> dict:
    marks, text = rubrics.question(MARKS, text, "a.py")
    raw_cell = cell(text, "explain_it", code=False)
    return raw_cell | {"metadata": {"nbgrader": marks}}


def with_question(data: bytes, answer: str = "") -> bytes:
    added_cell = question_cell()
    added_cell["source"] = answer or added_cell["source"]
    return notebook(*json.loads(data)["cells"], added_cell)


def write_solved(course: Path, data: bytes) -> None:
    (course / "solutions" / NAME / f"{NAME}.ipynb").write_bytes(data)


def enter_score(
    course: Path, student: str, grade_id: str, points: float, comment: str = ""
) -> None:
    """Enter a score and a comment as a person does in the formgrader."""
    with open_gradebook(find_gradebook(course)) as gradebook:
        grade = gradebook.find_grade(grade_id, NAME, NAME, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        if comment:
            cell_id = grade_id.removeprefix("points_")
            gradebook.find_comment(cell_id, NAME, NAME, student).manual_comment = comment
        gradebook.db.commit()


def adas_scores(course: Path) -> dict[str, tuple]:
    """Return Ada's automatic and manual score of each cell, and if a person has to look at it."""
    with open_gradebook(find_gradebook(course)) as gradebook:
        grades = gradebook.find_submission_notebook(NAME, NAME, "ada").grades
        return {g.name: (g.auto_score, g.manual_score, bool(g.needs_manual_grade)) for g in grades}
