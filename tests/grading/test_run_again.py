"""Cells that run a second time: what a later cell defines, what time they have, who is asked."""

import re
from contextlib import nullcontext
from dataclasses import replace

import pytest

from attncourse.grading.judge.budget import Budget
from attncourse.grading.judge.findings import Findings, agreed_findings
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.plan_runner import Means, PlanRunner
from attncourse.grading.judge.remote.session import Session
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment, read_cells
from attncourse.grading.submission.plan import Step
from helpers.dedented_text import dedented
from helpers.small_course import cell, graded, notebook, solution

HIDDEN = "### BEGIN HIDDEN TESTS\nassert add(5, 6) == 11\n### END HIDDEN TESTS"
TESTS = graded("open_add", "assert add(1, 2) == 3", 2), graded("hidden_add", HIDDEN, 1)
ADD = "def add(a, b):\n    return a + b"
LIMITS = Limits(submission=30, cell=3, call=3)


def points(*cells: dict, limits: Limits = LIMITS, tests=TESTS) -> dict[str, float]:
    """What a notebook of these cells gets, whose assignment asks for ``add``."""
    asked = Assignment("01_again", read_cells(notebook(solution("add", ADD), *tests)))
    report = grade_submission(notebook(*cells, *tests), asked, limits=limits, seed=1)
    return {name: result.points for name, result in report.cells.items()}


LATE = solution(  # what it calls is defined in a later cell
    "add",
    dedented("""
        ZERO = zero()

        def add(a, b):
            return a + b + ZERO
    """),
)
FULL = {"open_add": 2, "hidden_add": 1}


def test_a_name_defined_later_is_there_the_second_time():
    assert points(LATE, cell("def zero():\n    return 0")) == FULL


@pytest.mark.parametrize("where", ["before", "behind"])
def test_a_draft_that_missed_a_name_does_not_replace_the_answer(where):
    draft = cell(
        dedented("""
            def add(a, b):
                return a * b

            print(add(START, 1))
        """)
    )
    start = cell("START = 3")
    order = [draft, start, solution("add", ADD)]
    if where == "behind":  # the answer stands between the draft and what it missed
        order = [draft, solution("add", ADD), start]
    assert points(*order) == FULL


class Launched(Exception):
    """A second process was asked for."""


def launch(*asked: object) -> Session:
    raise Launched


@pytest.mark.parametrize(
    ("later", "again"),
    [("z = 1", False), ("zero()", False), ("def zero(): ...", True), ("from a import *", True)],
)
def test_cells_run_again_only_for_a_name_that_comes_later(later, again):
    """``again``: whether there is a second process for a cell that missed ``zero``."""
    asked = Assignment("01_again", read_cells(notebook(solution("add", ADD), *TESTS)))
    steps = [Step("cell 1", "ZERO = zero()"), Step("cell 2", later)]
    means = Means(asked, 1, LIMITS, Budget(30), launch, lambda *begun: None)
    runner = PlanRunner(steps, means)
    missed = StepOutcome("error", "NameError: name 'zero' is not defined", error="NameError")
    runner.outcomes = {0: missed, 1: StepOutcome("none")}
    with pytest.raises(Launched) if again else nullcontext():
        runner.rerun_with_later_names()


def test_what_was_asked_is_not_known_the_second_time():
    memory = dedented("""
        ASKED, TOLD = [], {}
        def add(a, b):
            ASKED.append((a, b))
            return TOLD.get((a, b), 0)
    """)
    work_out = cell("TOLD = {}\nLATER\nTOLD |= {(a, b): a + b for a, b in ASKED}")
    both = (TESTS[0], TESTS[1])
    found = points(solution("add", memory), work_out, cell("LATER = 1"), tests=both)
    assert found == {"open_add": 0, "hidden_add": 0}


BURN = "import time\nbegan = time.process_time()\nwhile time.process_time() - began < 0.4: pass\n"


def test_time_for_running_cells_again_is_not_counted():
    slow = [cell(f"{BURN}k{number} = 1") for number in range(3)]
    changes = cell("add = add")  # behind the hidden test: this runs in a fresh process
    asked = Assignment("01_again", read_cells(notebook(solution("add", ADD), *TESTS)))
    data = notebook(*slow, solution("add", ADD), *TESTS, changes)
    report = grade_submission(data, asked, limits=Limits(submission=1.8, cell=3, call=3), seed=1)
    assert {name: result.points for name, result in report.cells.items()} == FULL
    assert report.status == "graded"
    assert report.limits["submission"]["used"] > 2


def test_time_for_missing_names_is_the_submissions():
    """It could have been written in order; and it is told what it took."""
    slow = [cell(f"{BURN}k{number} = 1") for number in range(2)]
    data = notebook(*slow, LATE, cell("def zero():\n    return 0"), *TESTS)
    asked = Assignment("01_again", read_cells(notebook(solution("add", ADD), *TESTS)))
    limits = Limits(submission=30, cell=3, call=3)
    report = grade_submission(data, asked, limits=limits, seed=1)
    assert report.points == 3
    assert report.limits["submission"]["used"] > 1.6
    report = grade_submission(data, asked, limits=replace(limits, submission=1.25), seed=1)
    assert report.status == "interrupted"
    assert "time for the submission was over" in report.notes[-1]


def test_versions_share_the_time_of_a_submission():
    text = "<<<<<<< HEAD\nA = 1\n=======\nA = 2\n>>>>>>> other\n"
    asked = Assignment("01_again", read_cells(notebook(solution("add", ADD), *TESTS)))
    for cells, limit in (((), 6), ((cell(text),), 3)):
        data = notebook(*cells, solution("add", ADD), *TESTS)
        report = grade_submission(data, asked, limits=replace(LIMITS, submission=6), seed=1)
        assert report.limits["submission"]["limit"] == limit


# --- what did not end by itself -------------------------------------------------------------------


def of(*points: float) -> dict[int, StepOutcome]:
    """Outcomes of tests by number: these points, none where they are negative."""
    return {n: StepOutcome("number", value=p) for n, p in enumerate(points) if p >= 0}


@pytest.mark.parametrize(
    ("first", "cut_first", "second", "cut", "counts"),
    [
        ((1, 1, 0, 0), {2}, (0, 0, 1, 1), set(), (1, 1, 1, 1)),  # a moment's disturbance
        ((1, 1, 0, 0), {2}, (1, 1, 0, 1), {2}, (1, 1, 0, 1)),  # the submission's own doing
        ((0, 0, 1, 0), {3}, (1, 1, 0, 0), {3}, (0, 0, 1, 0)),  # nobody draws twice before that
        ((1, 1, 1, 1), {0}, (0, 0, 0, 0), {0}, (1, 0, 0, 0)),  # nor behind it
        ((0, 0, 2, 1), {2}, (0, 0, 1, 1), {2}, (0, 0, 2, 1)),  # of two that were cut the better
        ((1, 0, 1, 1), {1}, (1, 1, 0, 0), {2}, (1, 1, 1, 1)),  # disturbed here, and then there
        ((1, 1, -1, -1), {2}, (1, 1, 1, -1), {3}, (1, 1, 1, -1)),  # the time was over, twice
        ((1, 0, 1, 1), {4}, (0, 1, 1, 1), {1}, (1, 0, 1, 1)),  # what was made of the steps
    ],
)
def test_what_two_runs_come_to(first, cut_first, second, cut, counts):
    steps = tuple(Step(f"test t{n}", "pass", "test", f"t{n}") for n in range(4))
    trouble = dict.fromkeys(cut, "was cut")
    now = Findings(steps, of(*second), cut=frozenset(cut), trouble=trouble)
    found = agreed_findings(of(*first), cut_first, now)
    assert found.outcomes == of(*counts)
    assert found.trouble == dict.fromkeys(cut & cut_first, "was cut")


ONCE = """
import builtins
from attncourse.checks.trying.trials import NoReference
if not hasattr(builtins, "met_{name}"):
    builtins.met_{name} = True
    {does}
assert add(1, 2) == 3"""
AT_ONCE = "raise NoReference('no result of ours')"
WAITS = "while True: pass"
ENDS = "import os; os._exit(9)"


@pytest.mark.parametrize("does", [AT_ONCE, WAITS], ids=["no reference", "no time"])
def test_a_test_that_goes_wrong_once_costs_nothing(does):
    """The judge's own process remembers it, as it would what it had worked out."""
    name = f"n{abs(hash(does))}"
    tests = graded("once", ONCE.format(name=name, does=does), 2), TESTS[1]
    cells = [solution("add", ADD), *tests]
    asked = Assignment("01_again", read_cells(notebook(*cells)))
    report = grade_submission(
        notebook(*cells), asked, limits=replace(LIMITS, cell=1, call=1), seed=1
    )
    assert (report.points, report.status, report.attention) == (3, "graded", ())


DIES = """
import os
def add(a, b):
    if (a, b) == (5, 6):
        os._exit(1)
    return a + b"""


def test_failing_twice_is_told_with_processor_time():
    report = grade_submission(
        notebook(solution("add", DIES.replace("(5, 6)", "(1, 2)")), *TESTS),
        Assignment("01_again", read_cells(notebook(solution("add", ADD), *TESTS))),
        limits=LIMITS,
        seed=1,
    )
    assert report.status == "interrupted"
    assert report.points == 1
    (told,) = report.attention
    assert re.fullmatch(
        r"test open_add ended its process \(after \d\.\d s of processor time\)", told
    ), told


def test_a_check_that_was_cut_says_so():
    """Its verdict counts the case as wrong, whatever became of it."""
    slow = dedented("""
        def mix(A, X):
            while len(A) > 2: pass
            return A @ X
    """)
    check = "from attncourse.checks import examine\nexamine('mixing.mix', mix).earned"
    cells = [solution("mix", "mix = 1"), graded("points_mix", check, 9)]
    asked = Assignment("02_mixing", read_cells(notebook(*cells)))
    data = notebook(solution("mix", slow), cells[1])
    report = grade_submission(data, asked, limits=replace(LIMITS, cell=2, call=1), seed=1)
    assert any(note.startswith("mix: a call did not end within ") for note in report.notes), report
