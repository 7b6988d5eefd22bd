"""A person is asked to look at submissions in which something may have been lost."""

import json
import sys

import pytest

from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.submission.notebook import Assignment, read_assignment, read_cells
from attncourse.grading.submission.plan import other_assignment_note
from helpers.dedented_text import dedented
from helpers.project import ROOT
from helpers.small_course import NAME, RIGHT, STUB, cell, notebook, released, small

SMALL_ASSIGNMENT = Assignment(NAME, read_cells(small()))
CHAPTERS = sorted(ROOT.glob("exercises/*/*.ipynb"))
PYTHON_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def attention_of(data: bytes, assignment: Assignment = SMALL_ASSIGNMENT) -> tuple[str, ...]:
    return grade_submission(data, assignment).attention


def test_right_and_wrong_answers_need_no_attention():
    for data in (small(), small(add="def add(a, b): return a"), small(twice=STUB)):
        assert attention_of(data) == ()


@pytest.mark.parametrize(
    "data", [released(), small("def add(a, b): return 7", "def twice(a): return 1"), notebook()]
)
def test_a_submission_without_points_needs_attention(data):
    report = grade_submission(data, SMALL_ASSIGNMENT)
    assert report.points == 0
    assert "earned no points" in report.attention


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("def twice(a):\n    return 2 * (a", "cell twice is no Python: SyntaxError"),
        ("def twice(a):\nreturn 2 * a", "cell twice is no Python: IndentationError"),
        ("def twice(a):\n\tb = 2\n        return a", "cell twice is no Python: TabError"),
    ],
)
def test_an_answer_that_is_no_python_needs_attention(answer, reason):
    assert any(reason in remark for remark in attention_of(small(twice=answer)))
    loose = notebook(cell(RIGHT[0]), cell("x = 1"), cell(answer))
    assert any(reason.replace("twice", "3") in remark for remark in attention_of(loose))
    notes = notebook(cell(RIGHT[0]), cell("notes ("), cell(RIGHT[1]))
    assert not any("no Python" in remark for remark in attention_of(notes))


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
        SMALL_ASSIGNMENT,
    )
    remark = f"cell twice needs Python 3.14 or newer, and was run by {PYTHON_VERSION}"
    assert remark in report.attention
    assert remark in report.notes
    report = grade_submission(notebook(cell("x = t'{1}'"), *map(cell, RIGHT)), SMALL_ASSIGNMENT)
    assert f"cell 1 needs Python 3.14 or newer, and was run by {PYTHON_VERSION}" in report.attention
    assert report.points == report.maximum


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_another_chapters_notebook_is_known_by_content(path):
    for other_path in CHAPTERS:
        solved = ROOT / "solutions" / other_path.parent.name / other_path.name
        assignment = read_assignment(solved, solved.read_bytes())
        for data in (path.read_bytes(), without_metadata(path)):
            note = other_assignment_note(read_cells(data), assignment)
            title = json.loads(path.read_bytes())["cells"][0]["source"][0].strip("# \n")
            assert note == (
                ""
                if path == other_path
                else f"this is the notebook of “{title}”: hand in {assignment.name}.ipynb"
            )


def without_metadata(path) -> bytes:
    content = json.loads(path.read_bytes())
    for raw_cell in content["cells"]:
        raw_cell["metadata"] = {}
    return json.dumps(content).encode()


def test_a_wrong_notebook_is_reported_to_student_and_grader():
    data = CHAPTERS[0].read_bytes()
    report = grade_submission(data, SMALL_ASSIGNMENT)
    remark = f"this is the notebook of “{title_of(data)}”: hand in {NAME}.ipynb"
    assert remark in report.notes
    assert remark in report.attention
    assert not any("put back" in note for note in report.notes)


def title_of(data: bytes) -> str:
    return json.loads(data)["cells"][0]["source"][0].strip("# \n")


@pytest.mark.parametrize(
    "cells", [[], [cell(RIGHT[0])], [cell("# Notes", code=False), cell("print(1)")]]
)
def test_a_notebook_without_tests_is_of_no_other_chapter(cells):
    assert other_assignment_note(read_cells(notebook(*cells)), SMALL_ASSIGNMENT) == ""
