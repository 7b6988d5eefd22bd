"""Answers to questions that a person grades are found wherever a tool or a student has put them."""

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
SECOND = "## And thrice?\n\nSay what would change, and what would not."
ANSWER = "Because **doubling** is adding a number to itself, which needs no table at all."
OTHER = "Thrice adds it once more; the function stays one line, and its test gets another number."
STUB = "YOUR ANSWER HERE"
SOLVED = "\n\n### BEGIN SOLUTION\nBecause.\n### END SOLUTION"


def asked(grade_id: str, text: str, answer: str) -> dict:
    return cell(
        f"{text}\n\n{answer}".replace(f"\n\n{SOLVED}", SOLVED),
        grade_id,
        code=False,
        solution=True,
        grade=True,
        points=3,
    )


def made(first: str, second: str = "") -> list[dict]:
    """The assignment's cells with these answers; the second question only where it has one."""
    more = [asked("thrice", SECOND, second)] if second else []
    return [
        cell("# Small\nA title.", code=False),
        solution("twice", RIGHT[1]),
        graded("points_twice", "4 * (twice(2) == 4)", 4),
        asked("why", QUESTION, first),
        graded("more_twice", "assert twice(3) == 6", 1),
        *more,
        cell("## The end\n\nThat was all.", code=False),
        cell("1 + 1"),
    ]


ONE = Assignment(NAME, read_cells(notebook(*made(SOLVED))))
TWO = Assignment(NAME, read_cells(notebook(*made(SOLVED, SOLVED))))


def new(text: str, code: bool = False) -> dict:
    return cell(text, code=code)


def bare(cells: list[dict]) -> list[dict]:
    return [one | {"metadata": {}} for one in cells]


def with_cells(at: int, *cells: dict) -> list[dict]:
    found = made(STUB)
    return [*found[:at], *cells, *found[at:]]


def without(grade_id: str, cells: list[dict]) -> list[dict]:
    return [c for c in cells if c["metadata"].get("nbgrader", {}).get("grade_id") != grade_id]


def retyped(kind: str) -> list[dict]:
    cells = made(ANSWER)
    cells[3] |= {"cell_type": kind, "outputs": [], "execution_count": None}
    return cells


def squeezed(cells: list[dict]) -> list[dict]:
    """As an editor that formats Markdown leaves it."""
    return [
        c | {"source": c["source"].replace("\n\n", "\n \n").replace("| 3 |", "|  3 |")}
        for c in cells
    ]


WAYS = {
    "in place": made(ANSWER),
    "in a cell below": with_cells(4, new(ANSWER)),
    "in a cell above": with_cells(3, new(ANSWER)),
    "in two cells": with_cells(4, new(ANSWER[:20]), new(ANSWER[20:])),
    "as comments": with_cells(4, new("# " + ANSWER, True)),
    "as a text in code": with_cells(4, new(f'"""{ANSWER}"""', True)),
    "as words in a code cell": with_cells(4, new(ANSWER, True)),
    "at the end": [*made(STUB), new(ANSWER)],
    "at the start": [new(ANSWER), *made(STUB)],
    "question deleted": without("why", with_cells(3, new(ANSWER))),
    "question deleted, answer at the end": [*without("why", made(STUB)), new(ANSWER)],
    "no metadata": bare(made(ANSWER)),
    "no metadata, in a cell below": bare(with_cells(4, new(ANSWER))),
    "no metadata, formatted": bare(squeezed(made(ANSWER))),
    "upside down": with_cells(4, new(ANSWER))[::-1],
    "turned code": retyped("code"),
    "turned raw": retyped("raw"),
}


def answer_of(cells: list[dict], grade_id: str = "why", assignment: Assignment = ONE) -> str:
    """The text in the question's cell of what a person grades; "" where it counts as none."""
    text = autograded_notebook(notebook(*cells), assignment, Report("", NAME, "graded", {}))
    if untouched_answers(text)[grade_id]:
        return ""
    found = [c for c in json.loads(text)["cells"] if "nbgrader" in c["metadata"]]
    marks = {c["metadata"]["nbgrader"]["grade_id"]: c for c in found}
    return "".join(marks[grade_id]["source"])


@pytest.mark.parametrize("cells", WAYS.values(), ids=WAYS)
def test_the_answer_is_shown_to_the_person_who_grades(cells):
    shown = answer_of(cells)
    for word in ANSWER.split():
        assert word.strip("*") in shown
    assert STUB not in shown


@pytest.mark.parametrize("cells", WAYS.values(), ids=WAYS)
def test_the_rest_runs_as_ever(cells):
    report = grade_submission(notebook(*cells), ONE)
    assert report.points == 5, report.notes
    assert report.attention == ()


@pytest.mark.parametrize(
    "cells",
    [
        made(STUB),
        bare(made(STUB)),
        bare(squeezed(made(STUB))),
        [new("# Ada Lovelace"), *made(STUB)],
        [
            *made(STUB),
            new("a = 3\nprint(twice(a), 'is twice what I took')", True),
        ],
        [*made(STUB), new("My notes on this.")],
    ],
)
def test_what_nobody_answered_has_no_answer(cells):
    assert answer_of(cells) == ""


# --- the course's own text in another wording: a typo mended, a variant, an older release ---------

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
LONG = Assignment(NAME, read_cells(notebook(new(TASK_TEXT), *made(SOLVED))))
OLD_QUESTION = QUESTION.replace("*one* sentence", "*one* long sentence").replace("why |", "a why |")


@pytest.mark.parametrize("text", OTHER_RELEASES.values(), ids=OTHER_RELEASES)
def test_a_task_in_another_wording_is_no_answer(text):
    cells = [new(text), *made(STUB)]
    assert answer_of(cells, assignment=LONG) == ""
    assert parts_in_order(read_cells(notebook(*cells)), LONG)[1] == []
    answered = [new(f"{text}\n\n{ANSWER}"), *made(STUB)]
    if text.endswith("</details>"):
        assert ANSWER in answer_of(answered, assignment=LONG)
    assert "Because" in answer_of([new(text), *made(ANSWER)], assignment=LONG)


def test_a_question_in_another_wording_is_not_answered_by_it():
    cells = made(STUB)
    old = asked("why", OLD_QUESTION, STUB)
    assert answer_of([*cells[:3], old, *cells[4:]]) == ""
    answered = asked("why", OLD_QUESTION, ANSWER)
    assert ANSWER in answer_of([*cells[:3], answered, *cells[4:]])
    assert ANSWER in answer_of([*cells[:3], old, new(ANSWER), *cells[4:]])
    below = asked("why", OLD_QUESTION, f"{STUB}\n\n{ANSWER}")
    assert ANSWER in answer_of([*cells[:3], below, *cells[4:]])


def test_a_note_says_where_it_was_found():
    parts, notes = parts_in_order(read_cells(notebook(*WAYS["in two cells"])), ONE)
    assert notes == ["the answer to why was found in cell 5, 6"]
    assert [part.number for part in parts] == [1, 2, 3, 4, 7, 8, 9]
    assert parts_in_order(read_cells(notebook(*WAYS["in place"])), ONE)[1] == []


def test_two_questions_get_what_stands_with_each():
    cells = made(STUB, STUB)
    near = [*cells[:4], new(ANSWER), *cells[4:6], new(OTHER), *cells[6:]]
    assert OTHER not in answer_of(near, "why", TWO)
    assert OTHER in answer_of(near, "thrice", TWO)
    for away in ([*cells, new(ANSWER), new(OTHER)], [new(ANSWER + OTHER), *bare(cells)]):
        for grade_id in ("why", "thrice"):
            assert all(w in answer_of(away, grade_id, TWO) for w in ("adding", "once more"))
    alone = [*without("why", without("thrice", cells)), new(ANSWER)]
    assert all(answer_of(alone, grade_id, TWO) == ANSWER for grade_id in ("why", "thrice"))
    steps, _ = plan(read_cells(notebook(*near)), TWO)
    assert not any("Because" in step.source for step in steps)


def test_the_instructor_s_own_notebook_is_answered():
    assert "Because." in answer_of(made(SOLVED))
    assert replace(ONE, name="x").graded.keys() == {"points_twice", "more_twice"}
