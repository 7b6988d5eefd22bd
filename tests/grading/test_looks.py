"""What a person is asked to look at: what may have been lost on the way, and nothing else."""

import json
import sys

import pytest

from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.submission.notebook import Assignment, read_assignment, read_cells
from attncourse.grading.submission.plan import other_assignment_note
from helpers.dedented_text import dedented
from helpers.project import ROOT
from helpers.small_course import NAME, RIGHT, STUB, cell, notebook, released, small

SMALL = Assignment(NAME, read_cells(small()))
CHAPTERS = sorted(ROOT.glob("exercises/*/*.ipynb"))
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def looks(data: bytes, assignment: Assignment = SMALL) -> tuple[str, ...]:
    return grade_submission(data, assignment).attention


def test_right_and_wrong_work_needs_no_look():
    for data in (small(), small(add="def add(a, b): return a"), small(twice=STUB)):
        assert looks(data) == ()


@pytest.mark.parametrize(
    "data", [released(), small("def add(a, b): return 7", "def twice(a): return 1"), notebook()]
)
def test_no_points_at_all_need_a_look(data):
    report = grade_submission(data, SMALL)
    assert report.points == 0
    assert "earned no points" in report.attention


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("def twice(a):\n    return 2 * (a", "cell twice is no Python: SyntaxError"),
        ("def twice(a):\nreturn 2 * a", "cell twice is no Python: IndentationError"),
        ("def twice(a):\n\tb = 2\n        return a", "cell twice is no Python: TabError"),
    ],
)
def test_an_answer_that_is_no_python_needs_a_look(answer, said):
    assert any(said in look for look in looks(small(twice=answer)))
    loose = notebook(cell(RIGHT[0]), cell("x = 1"), cell(answer))
    assert any(said.replace("twice", "3") in look for look in looks(loose))
    notes = notebook(cell(RIGHT[0]), cell("notes ("), cell(RIGHT[1]))
    assert not any("no Python" in look for look in looks(notes))


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="nothing is newer than this Python")
def test_an_answer_for_a_newer_python_says_which():
    report = grade_submission(
        small(
            twice=dedented("""
                def twice(a):
                    x = t'{a}'
                    return 2 * a
            """)
        ),
        SMALL,
    )
    said = f"cell twice needs Python 3.14 or newer, and was run by {HERE}"
    assert said in report.attention
    assert said in report.notes
    report = grade_submission(notebook(cell("x = t'{1}'"), *map(cell, RIGHT)), SMALL)
    assert f"cell 1 needs Python 3.14 or newer, and was run by {HERE}" in report.attention
    assert report.points == report.maximum


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_another_chapters_notebook_is_known_by_content(path):
    for other in CHAPTERS:
        solved = ROOT / "solutions" / other.parent.name / other.name
        assignment = read_assignment(solved, solved.read_bytes())
        for data in (path.read_bytes(), without_marks(path)):
            said = other_assignment_note(read_cells(data), assignment)
            title = json.loads(path.read_bytes())["cells"][0]["source"][0].strip("# \n")
            assert said == (
                ""
                if path == other
                else f"this is the notebook of “{title}”: hand in {assignment.name}.ipynb"
            )


def without_marks(path) -> bytes:
    content = json.loads(path.read_bytes())
    for found in content["cells"]:
        found["metadata"] = {}
    return json.dumps(content).encode()


def test_what_is_missing_is_told_to_student_and_grader():
    data = CHAPTERS[0].read_bytes()
    report = grade_submission(data, SMALL)
    said = f"this is the notebook of “{title_of(data)}”: hand in {NAME}.ipynb"
    assert said in report.notes
    assert said in report.attention
    assert not any("put back" in note for note in report.notes)


def title_of(data: bytes) -> str:
    return json.loads(data)["cells"][0]["source"][0].strip("# \n")


@pytest.mark.parametrize(
    "cells", [[], [cell(RIGHT[0])], [cell("# Notes", code=False), cell("print(1)")]]
)
def test_a_notebook_without_tests_is_not_taken_for_another_s(cells):
    assert other_assignment_note(read_cells(notebook(*cells)), SMALL) == ""
