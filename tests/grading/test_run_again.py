"""Cells that run a second time, and runs that are repeated after one was cut."""

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
ADD_TESTS = graded("open_add", "assert add(1, 2) == 3", 2), graded("hidden_add", HIDDEN, 1)
ADD = "def add(a, b):\n    return a + b"
LIMITS = Limits(submission=30, cell=3, call=3)


def points_of_cells(*cells: dict, limits: Limits = LIMITS, tests=ADD_TESTS) -> dict[str, float]:
    """Return the points of a notebook of these cells, whose assignment asks for ``add``."""
    assignment = Assignment("01_again", read_cells(notebook(solution("add", ADD), *tests)))
    report = grade_submission(notebook(*cells, *tests), assignment, limits=limits, seed=1)
    return {name: result.points for name, result in report.cells.items()}


ADD_WITH_LATER_NAME = solution(  # a later cell defines the function that it calls
    "add",
    dedented("""
        ZERO = zero()

        def add(a, b):
            return a + b + ZERO
    """),
)
FULL_POINTS = {"open_add": 2, "hidden_add": 1}


def test_a_name_defined_later_is_found_in_the_second_run():
    assert points_of_cells(ADD_WITH_LATER_NAME, cell("def zero():\n    return 0")) == FULL_POINTS


@pytest.mark.parametrize("place", ["before", "behind"])
def test_a_draft_that_missed_a_name_does_not_replace_the_answer(place):
    draft = cell(
        dedented("""
            def add(a, b):
                return a * b

            print(add(START, 1))
        """)
    )
    start = cell("START = 3")
    order = [draft, start, solution("add", ADD)]
    if place == "behind":  # the answer stands between the draft and what it missed
        order = [draft, solution("add", ADD), start]
    assert points_of_cells(*order) == FULL_POINTS


class Launched(Exception):
    """Raised when a second process is started."""


def launch(*arguments: object) -> Session:
    """Take the place of the function that starts a process."""
    raise Launched


@pytest.mark.parametrize(
    ("later", "runs_again"),
    [("z = 1", False), ("zero()", False), ("def zero(): ...", True), ("from a import *", True)],
)
def test_cells_run_again_only_for_a_name_defined_later(later, runs_again):
    """``runs_again`` tells if a second process starts for a cell that missed ``zero``."""
    assignment = Assignment("01_again", read_cells(notebook(solution("add", ADD), *ADD_TESTS)))
    steps = [Step("cell 1", "ZERO = zero()"), Step("cell 2", later)]
    means = Means(assignment, 1, LIMITS, Budget(30), launch, lambda *begun: None)
    runner = PlanRunner(steps, means)
    missed = StepOutcome("error", "NameError: name 'zero' is not defined", error="NameError")
    runner.outcomes = {0: missed, 1: StepOutcome("none")}
    with pytest.raises(Launched) if runs_again else nullcontext():
        runner.rerun_with_later_names()


def test_a_second_run_knows_no_arguments_of_the_first():
    memory = dedented("""
        ASKED, TOLD = [], {}
        def add(a, b):
            ASKED.append((a, b))
            return TOLD.get((a, b), 0)
    """)
    work_out = cell("TOLD = {}\nLATER\nTOLD |= {(a, b): a + b for a, b in ASKED}")
    tests = (ADD_TESTS[0], ADD_TESTS[1])
    earned = points_of_cells(solution("add", memory), work_out, cell("LATER = 1"), tests=tests)
    assert earned == {"open_add": 0, "hidden_add": 0}


BURN_TIME = (
    "import time\nbegan = time.process_time()\nwhile time.process_time() - began < 0.4: pass\n"
)


def test_time_for_running_cells_again_is_not_counted():
    slow = [cell(f"{BURN_TIME}k{number} = 1") for number in range(3)]
    disturbing_cell = cell("add = add")  # behind the hidden test: this runs in a fresh process
    assignment = Assignment("01_again", read_cells(notebook(solution("add", ADD), *ADD_TESTS)))
    data = notebook(*slow, solution("add", ADD), *ADD_TESTS, disturbing_cell)
    report = grade_submission(
        data, assignment, limits=Limits(submission=1.8, cell=3, call=3), seed=1
    )
    assert {name: result.points for name, result in report.cells.items()} == FULL_POINTS
    assert report.status == "graded"
    assert report.limits["submission"]["used"] > 2


def test_time_for_missing_names_counts_for_the_submission():
    """Cells in another order would need no second run, so its time counts."""
    slow = [cell(f"{BURN_TIME}k{number} = 1") for number in range(2)]
    data = notebook(*slow, ADD_WITH_LATER_NAME, cell("def zero():\n    return 0"), *ADD_TESTS)
    assignment = Assignment("01_again", read_cells(notebook(solution("add", ADD), *ADD_TESTS)))
    limits = Limits(submission=30, cell=3, call=3)
    report = grade_submission(data, assignment, limits=limits, seed=1)
    assert report.points == 3
    assert report.limits["submission"]["used"] > 1.6
    report = grade_submission(data, assignment, limits=replace(limits, submission=1.25), seed=1)
    assert report.status == "interrupted"
    assert "time for the submission was over" in report.notes[-1]


def test_versions_share_the_time_of_a_submission():
    conflict = "<<<<<<< HEAD\nA = 1\n=======\nA = 2\n>>>>>>> other\n"
    assignment = Assignment("01_again", read_cells(notebook(solution("add", ADD), *ADD_TESTS)))
    for cells, limit in (((), 6), ((cell(conflict),), 3)):
        data = notebook(*cells, solution("add", ADD), *ADD_TESTS)
        report = grade_submission(data, assignment, limits=replace(LIMITS, submission=6), seed=1)
        assert report.limits["submission"]["limit"] == limit


# --- what did not end by itself -----------------------------------------------------------------


def outcomes_of_points(*points: float) -> dict[int, StepOutcome]:
    """Return outcomes of tests by number with these points, none where they are negative."""
    return {n: StepOutcome("number", value=p) for n, p in enumerate(points) if p >= 0}


@pytest.mark.parametrize(
    ("first_points", "cut_first", "second_points", "cut_second", "expected"),
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
def test_agreed_findings_combine_two_runs(
    first_points, cut_first, second_points, cut_second, expected
):
    steps = tuple(Step(f"test t{n}", "pass", "test", f"t{n}") for n in range(4))
    reasons = dict.fromkeys(cut_second, "was cut")
    second_findings = Findings(
        steps, outcomes_of_points(*second_points), cut=frozenset(cut_second), trouble=reasons
    )
    agreed = agreed_findings(outcomes_of_points(*first_points), cut_first, second_findings)
    assert agreed.outcomes == outcomes_of_points(*expected)
    assert agreed.trouble == dict.fromkeys(cut_second & cut_first, "was cut")


TEST_FAILING_ONCE = """
import builtins
from attncourse.checks.trying.trials import NoReference
if not hasattr(builtins, "met_{name}"):
    builtins.met_{name} = True
    {statement}
assert add(1, 2) == 3"""
RAISE_AT_ONCE = "raise NoReference('no result of ours')"
LOOP_FOR_EVER = "while True: pass"
EXIT_PROCESS = "import os; os._exit(9)"


@pytest.mark.parametrize(
    "statement", [RAISE_AT_ONCE, LOOP_FOR_EVER], ids=["no reference", "no time"]
)
def test_a_test_that_fails_once_costs_no_points(statement):
    """A name in ``builtins`` of the lane remembers that the test has failed once."""
    name = f"n{abs(hash(statement))}"
    tests = (
        graded("once", TEST_FAILING_ONCE.format(name=name, statement=statement), 2),
        ADD_TESTS[1],
    )
    cells = [solution("add", ADD), *tests]
    assignment = Assignment("01_again", read_cells(notebook(*cells)))
    report = grade_submission(
        notebook(*cells), assignment, limits=replace(LIMITS, cell=1, call=1), seed=1
    )
    assert (report.points, report.status, report.attention) == (3, "graded", ())


ADD_THAT_EXITS = """
import os
def add(a, b):
    if (a, b) == (5, 6):
        os._exit(1)
    return a + b"""


def test_ending_twice_is_reported_with_processor_time():
    report = grade_submission(
        notebook(solution("add", ADD_THAT_EXITS.replace("(5, 6)", "(1, 2)")), *ADD_TESTS),
        Assignment("01_again", read_cells(notebook(solution("add", ADD), *ADD_TESTS))),
        limits=LIMITS,
        seed=1,
    )
    assert report.status == "interrupted"
    assert report.points == 1
    (remark,) = report.attention
    assert re.fullmatch(
        r"test open_add ended its process \(after \d\.\d s of processor time\)", remark
    ), remark


def test_a_check_that_was_cut_is_noted():
    """The verdict counts the cut case as wrong, so a note has to say why."""
    slow = dedented("""
        def mix(A, X):
            while len(A) > 2: pass
            return A @ X
    """)
    check = "from attncourse.checks import examine\nexamine('mixing.mix', mix).earned"
    cells = [solution("mix", "mix = 1"), graded("points_mix", check, 9)]
    assignment = Assignment("02_mixing", read_cells(notebook(*cells)))
    data = notebook(solution("mix", slow), cells[1])
    report = grade_submission(data, assignment, limits=replace(LIMITS, cell=2, call=1), seed=1)
    assert any(note.startswith("mix: a call did not end within ") for note in report.notes), report
