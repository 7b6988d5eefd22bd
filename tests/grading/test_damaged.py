"""Damaged submissions get the points that a fair person would give."""

import pytest

from attncourse.grading.course.folders import find_assignment
from attncourse.grading.demo import fill_solution_cells
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.sample import CLASS
from attncourse.grading.submission.notebook import Assignment, read_cells
from corpus.damaged import DAMAGED, FULL, Damaged
from helpers.project import ROOT
from helpers.small_course import NAME, small

LIMITS = Limits(submission=60, cell=10)
SMALL_ASSIGNMENT = Assignment(NAME, read_cells(small()))


def test_there_are_enough_damaged_cases_with_unique_names():
    assert len({case.name for case in DAMAGED}) == len(DAMAGED) >= 35


@pytest.mark.parametrize("case", DAMAGED, ids=lambda case: case.name)
def test_a_damaged_submission_gets_fair_points(case: Damaged):
    if case.kqv:
        released = (ROOT / "exercises" / "05_kqv" / "05_kqv.ipynb").read_text(encoding="utf-8")
        intact = fill_solution_cells(released, CLASS["amara-matrices"]).encode()
        assignment = find_assignment(ROOT, "05_kqv")
        full = {grade_id: cell.points for grade_id, cell in assignment.graded.items()}
    else:
        intact, assignment, full = small(), SMALL_ASSIGNMENT, FULL
    data = case.make(intact)
    assert data != intact
    report = grade_submission(data, assignment, limits=LIMITS)
    points = {grade_id: cell.points for grade_id, cell in report.cells.items()}
    assert points == (full if case.deserves is None else case.deserves), report.notes
    notes = (*report.notes, *report.attention)
    assert any(case.says in note for note in notes) or not case.says, notes
