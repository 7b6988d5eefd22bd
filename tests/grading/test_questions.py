"""Answers to manually graded questions are found wherever a tool or a student has put them."""

import json
from dataclasses import replace

import pytest

from attncourse.grading.graded_notebook import autograded_notebook, untouched_answers
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.report import Report
from attncourse.grading.submission.notebook import Assignment, read_cells
from attncourse.grading.submission.plan import parts_in_order, plan
from helpers.small_course import NAME, RIGHT, cell, graded, notebook, solution

QUESTION = (
    "## Why twice?\n\nExplain in *one* sentence.\n\n| points | for |\n| --: | --- |\n| 3 | why |"
)
SECOND_QUESTION = "## And thrice?\n\nSay what would change, and what would not."
ANSWER = "Because **doubling** is adding a number to itself, which needs no table at all."
OTHER_ANSWER = (
    "Thrice adds it once more; the function stays one line, and its test gets another number."
)
STUB = "YOUR ANSWER HERE"
SOLVED = "\n\n### BEGIN SOLUTION\nBecause.\n### END SOLUTION"


def question_cell(grade_id: str, text: str, answer: str) -> dict:
    return cell(
        f"{text}\n\n{answer}".replace(f"\n\n{SOLVED}", SOLVED),
        grade_id,
        code=False,
        solution=True,
        grade=True,
        points=3,
    )


def assignment_cells(first: str, second: str = "") -> list[dict]:
    """Return the assignment's cells with these answers, the second question only with an answer."""
    more = [question_cell("thrice", SECOND_QUESTION, second)] if second else []
    return [
        cell("# Small\nA title.", code=False),
        solution("twice", RIGHT[1]),
        graded("points_twice", "4 * (twice(2) == 4)", 4),
        question_cell("why", QUESTION, first),
        graded("more_twice", "assert twice(3) == 6", 1),
        *more,
        cell("## The end\n\nThat was all.", code=False),
        cell("1 + 1"),
    ]


ASSIGNMENT_OF_ONE = Assignment(NAME, read_cells(notebook(*assignment_cells(SOLVED))))
ASSIGNMENT_OF_TWO = Assignment(NAME, read_cells(notebook(*assignment_cells(SOLVED, SOLVED))))


def new_cell(text: str, code: bool = False) -> dict:
    return cell(text, code=code)


def without_metadata(cells: list[dict]) -> list[dict]:
    return [raw_cell | {"metadata": {}} for raw_cell in cells]


def with_cells(position: int, *cells: dict) -> list[dict]:
    """Return the unanswered assignment's cells with these in between."""
    all_cells = assignment_cells(STUB)
    return [*all_cells[:position], *cells, *all_cells[position:]]


def without_cell(grade_id: str, cells: list[dict]) -> list[dict]:
    """Return the cells but for the one with this grade id."""
    return [c for c in cells if c["metadata"].get("nbgrader", {}).get("grade_id") != grade_id]


def with_cell_type(kind: str) -> list[dict]:
    """Return the answered assignment's cells, with the question's cell of another type."""
    cells = assignment_cells(ANSWER)
    cells[3] |= {"cell_type": kind, "outputs": [], "execution_count": None}
    return cells


def reformatted(cells: list[dict]) -> list[dict]:
    """Return the cells as an editor leaves them that formats Markdown."""
    return [
        c | {"source": c["source"].replace("\n\n", "\n \n").replace("| 3 |", "|  3 |")}
        for c in cells
    ]


PLACES_OF_ANSWER = {
    "in place": assignment_cells(ANSWER),
    "in a cell below": with_cells(4, new_cell(ANSWER)),
    "in a cell above": with_cells(3, new_cell(ANSWER)),
    "in two cells": with_cells(4, new_cell(ANSWER[:20]), new_cell(ANSWER[20:])),
    "as comments": with_cells(4, new_cell("# " + ANSWER, True)),
    "as a text in code": with_cells(4, new_cell(f'"""{ANSWER}"""', True)),
    "as words in a code cell": with_cells(4, new_cell(ANSWER, True)),
    "at the end": [*assignment_cells(STUB), new_cell(ANSWER)],
    "at the start": [new_cell(ANSWER), *assignment_cells(STUB)],
    "question deleted": without_cell("why", with_cells(3, new_cell(ANSWER))),
    "question deleted, answer at the end": [
        *without_cell("why", assignment_cells(STUB)),
        new_cell(ANSWER),
    ],
    "no metadata": without_metadata(assignment_cells(ANSWER)),
    "no metadata, in a cell below": without_metadata(with_cells(4, new_cell(ANSWER))),
    "no metadata, formatted": without_metadata(reformatted(assignment_cells(ANSWER))),
    "upside down": with_cells(4, new_cell(ANSWER))[::-1],
    "turned code": with_cell_type("code"),
    "turned raw": with_cell_type("raw"),
}


def answer_of(
    cells: list[dict], grade_id: str = "why", assignment: Assignment = ASSIGNMENT_OF_ONE
) -> str:
    """Return the text in the question's cell of the graded notebook; "" where it is unanswered."""
    text = autograded_notebook(notebook(*cells), assignment, Report("", NAME, "graded", {}))
    if untouched_answers(text)[grade_id]:
        return ""
    graded_cells = [c for c in json.loads(text)["cells"] if "nbgrader" in c["metadata"]]
    cells_by_id = {c["metadata"]["nbgrader"]["grade_id"]: c for c in graded_cells}
    return "".join(cells_by_id[grade_id]["source"])


@pytest.mark.parametrize("cells", PLACES_OF_ANSWER.values(), ids=PLACES_OF_ANSWER)
def test_an_answer_anywhere_is_shown_to_the_grader(cells):
    shown = answer_of(cells)
    for word in ANSWER.split():
        assert word.strip("*") in shown
    assert STUB not in shown


@pytest.mark.parametrize("cells", PLACES_OF_ANSWER.values(), ids=PLACES_OF_ANSWER)
def test_a_moved_answer_changes_no_points(cells):
    report = grade_submission(notebook(*cells), ASSIGNMENT_OF_ONE)
    assert report.points == 5, report.notes
    assert report.attention == ()


@pytest.mark.parametrize(
    "cells",
    [
        assignment_cells(STUB),
        without_metadata(assignment_cells(STUB)),
        without_metadata(reformatted(assignment_cells(STUB))),
        [new_cell("# Ada Lovelace"), *assignment_cells(STUB)],
        [
            *assignment_cells(STUB),
            new_cell("a = 3\nprint(twice(a), 'is twice what I took')", True),
        ],
        [*assignment_cells(STUB), new_cell("My notes on this.")],
    ],
)
def test_an_unanswered_question_has_no_answer(cells):
    assert answer_of(cells) == ""


# --- the course's own text in another wording: a typo mended, a variant, an older release -------

TASK_TEXT = """## 1 · `twice`

Write `twice(x)`, which returns a number that is as large as two of what it gets.

| | shape | |
| --- | --- | --- |
| `x` | one number | any number |

<details><summary>Hints</summary>

1. What is added to a number to make it two of it?

</details>"""
REWORDED = TASK_TEXT.replace("a number that is as large as two of what it gets", "the double of x")
LONGER = TASK_TEXT.replace(
    "\n\n<details>", "\n\nWhole numbers stay whole, and so do the others as they are.\n\n<details>"
)
OTHER_RELEASES = {
    "a sentence reworded": REWORDED,
    "a sentence more": LONGER,
    "a sentence less": TASK_TEXT.replace("1. What is added to a number to make it two of it?", ""),
    "the heading alone": "## 1 · `twice`\n\nA function of one number, which gives two of it back.",
}
ASSIGNMENT_WITH_TASK = Assignment(
    NAME, read_cells(notebook(new_cell(TASK_TEXT), *assignment_cells(SOLVED)))
)
OLD_QUESTION = QUESTION.replace("*one* sentence", "*one* long sentence").replace("why |", "a why |")


@pytest.mark.parametrize("text", OTHER_RELEASES.values(), ids=OTHER_RELEASES)
def test_a_task_in_another_wording_is_no_answer(text):
    cells = [new_cell(text), *assignment_cells(STUB)]
    assert answer_of(cells, assignment=ASSIGNMENT_WITH_TASK) == ""
    assert parts_in_order(read_cells(notebook(*cells)), ASSIGNMENT_WITH_TASK)[1] == []
    answered = [new_cell(f"{text}\n\n{ANSWER}"), *assignment_cells(STUB)]
    if text.endswith("</details>"):
        assert ANSWER in answer_of(answered, assignment=ASSIGNMENT_WITH_TASK)
    assert "Because" in answer_of(
        [new_cell(text), *assignment_cells(ANSWER)], assignment=ASSIGNMENT_WITH_TASK
    )


def test_a_reworded_question_is_no_answer():
    cells = assignment_cells(STUB)
    old = question_cell("why", OLD_QUESTION, STUB)
    assert answer_of([*cells[:3], old, *cells[4:]]) == ""
    answered = question_cell("why", OLD_QUESTION, ANSWER)
    assert ANSWER in answer_of([*cells[:3], answered, *cells[4:]])
    assert ANSWER in answer_of([*cells[:3], old, new_cell(ANSWER), *cells[4:]])
    below = question_cell("why", OLD_QUESTION, f"{STUB}\n\n{ANSWER}")
    assert ANSWER in answer_of([*cells[:3], below, *cells[4:]])


def test_a_note_says_where_an_answer_was_found():
    parts, notes = parts_in_order(
        read_cells(notebook(*PLACES_OF_ANSWER["in two cells"])), ASSIGNMENT_OF_ONE
    )
    assert notes == ["the answer to why was found in cell 5, 6"]
    assert [part.number for part in parts] == [1, 2, 3, 4, 7, 8, 9]
    assert (
        parts_in_order(read_cells(notebook(*PLACES_OF_ANSWER["in place"])), ASSIGNMENT_OF_ONE)[1]
        == []
    )


def test_two_questions_get_the_answers_near_them():
    cells = assignment_cells(STUB, STUB)
    cells_nearby = [*cells[:4], new_cell(ANSWER), *cells[4:6], new_cell(OTHER_ANSWER), *cells[6:]]
    assert OTHER_ANSWER not in answer_of(cells_nearby, "why", ASSIGNMENT_OF_TWO)
    assert OTHER_ANSWER in answer_of(cells_nearby, "thrice", ASSIGNMENT_OF_TWO)
    for cells_elsewhere in (
        [*cells, new_cell(ANSWER), new_cell(OTHER_ANSWER)],
        [new_cell(ANSWER + OTHER_ANSWER), *without_metadata(cells)],
    ):
        for grade_id in ("why", "thrice"):
            assert all(
                w in answer_of(cells_elsewhere, grade_id, ASSIGNMENT_OF_TWO)
                for w in ("adding", "once more")
            )
    answer_alone = [*without_cell("why", without_cell("thrice", cells)), new_cell(ANSWER)]
    assert all(
        answer_of(answer_alone, grade_id, ASSIGNMENT_OF_TWO) == ANSWER
        for grade_id in ("why", "thrice")
    )
    steps, _ = plan(read_cells(notebook(*cells_nearby)), ASSIGNMENT_OF_TWO)
    assert not any("Because" in step.source for step in steps)


def test_the_instructors_notebook_is_answered():
    assert "Because." in answer_of(assignment_cells(SOLVED))
    assert replace(ASSIGNMENT_OF_ONE, name="x").graded.keys() == {"points_twice", "more_twice"}
