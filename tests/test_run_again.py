"""Cells that run a second time: what a later cell defines, what time they have, who is asked."""

from dataclasses import replace

import pytest
from small_course import cell, graded, notebook, solution

from attncourse.grading.judge.judge import grade
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment, read_cells

HIDDEN = "### BEGIN HIDDEN TESTS\nassert add(5, 6) == 11\n### END HIDDEN TESTS"
TESTS = graded("open_add", "assert add(1, 2) == 3", 2), graded("hidden_add", HIDDEN, 1)
ADD = "def add(a, b):\n    return a + b"
LIMITS = Limits(submission=30, cell=3, call=3)


def points(*cells: dict, limits: Limits = LIMITS, tests=TESTS) -> dict[str, float]:
    """What a notebook of these cells gets, whose assignment asks for ``add``."""
    asked = Assignment("01_again", read_cells(notebook(solution("add", ADD), *tests)))
    report = grade(notebook(*cells, *tests), asked, limits=limits, seed=1)
    return {name: result.points for name, result in report.cells.items()}


FULL = {"open_add": 2, "hidden_add": 1}


def test_a_name_that_a_later_cell_defines_is_there_the_second_time():
    late = solution("add", "ZERO = zero()\n\ndef add(a, b):\n    return a + b + ZERO")
    assert points(late, cell("def zero():\n    return 0")) == FULL


@pytest.mark.parametrize("where", ["before", "behind"])
def test_a_draft_that_missed_a_name_does_not_replace_the_answer(where):
    draft = cell("def add(a, b):\n    return a * b\n\nprint(add(START, 1))")
    start = cell("START = 3")
    order = [draft, start, solution("add", ADD)]
    if where == "behind":  # the answer stands between the draft and what it missed
        order = [draft, solution("add", ADD), start]
    assert points(*order) == FULL


def test_what_was_asked_is_not_known_the_second_time():
    memory = (
        "ASKED, TOLD = [], {}\n"
        "def add(a, b):\n"
        "    ASKED.append((a, b))\n"
        "    return TOLD.get((a, b), 0)"
    )
    work_out = cell("TOLD = {}\nLATER\nTOLD |= {(a, b): a + b for a, b in ASKED}")
    both = (TESTS[0], TESTS[1])
    found = points(solution("add", memory), work_out, cell("LATER = 1"), tests=both)
    assert found == {"open_add": 0, "hidden_add": 0}


BURN = "import time\nbegan = time.process_time()\nwhile time.process_time() - began < 0.8: pass\n"


def test_the_time_for_running_cells_again_is_not_the_submissions():
    slow = [cell(f"{BURN}k{number} = 1") for number in range(3)]
    changes = cell("add = add")  # behind the hidden test: this runs in a fresh process
    asked = Assignment("01_again", read_cells(notebook(solution("add", ADD), *TESTS)))
    data = notebook(*slow, solution("add", ADD), *TESTS, changes)
    report = grade(data, asked, limits=Limits(submission=3.5, cell=3, call=3), seed=1)
    assert {name: result.points for name, result in report.cells.items()} == FULL
    assert report.status == "graded"
    assert report.limits["submission"]["used"] > 4


def test_the_time_for_names_that_were_missing_is_the_submissions():
    """It could have been written in order; and it is told what it took."""
    slow = [cell(f"{BURN}k{number} = 1") for number in range(2)]
    late = solution("add", "ZERO = zero()\n\ndef add(a, b):\n    return a + b + ZERO")
    data = notebook(*slow, late, cell("def zero():\n    return 0"), *TESTS)
    asked = Assignment("01_again", read_cells(notebook(solution("add", ADD), *TESTS)))
    limits = Limits(submission=30, cell=3, call=3)
    report = grade(data, asked, limits=limits, seed=1)
    assert report.points == 3
    assert report.limits["submission"]["used"] > 3.2
    report = grade(data, asked, limits=replace(limits, submission=2.5), seed=1)
    assert report.status == "interrupted"
    assert "time for the submission was over" in report.notes[-1]


def test_versions_share_the_time_of_a_submission():
    idle = "import time\ntime.sleep(3)\n"
    text = "<<<<<<< HEAD\nA = 1\n=======\nA = 2\n>>>>>>> other\n"
    data = notebook(cell(text), *(cell(idle) for _ in range(12)), solution("add", ADD), *TESTS)
    asked = Assignment("01_again", read_cells(notebook(solution("add", ADD), *TESTS)))
    report = grade(data, asked, limits=Limits(submission=6, cell=3, call=3), seed=1)
    assert report.status == "interrupted"
    assert report.duration < 40  # 24 s for what sleeps; twice that, and more, where each has all
