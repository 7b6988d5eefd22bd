"""Damaged submissions get the points that a fair person would give them."""

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
SMALL = Assignment(NAME, read_cells(small()))


def test_there_are_many_and_each_is_one_of_a_kind():
    assert len({case.name for case in DAMAGED}) == len(DAMAGED) >= 35


@pytest.mark.parametrize("case", DAMAGED, ids=lambda case: case.name)
def test_it_gets_what_a_fair_person_would_give(case: Damaged):
    if case.kqv:
        released = (ROOT / "exercises" / "05_kqv" / "05_kqv.ipynb").read_text(encoding="utf-8")
        intact = fill_solution_cells(released, CLASS["amara-matrices"]).encode()
        assignment = find_assignment(ROOT, "05_kqv")
        full = {grade_id: cell.points for grade_id, cell in assignment.graded.items()}
    else:
        intact, assignment, full = small(), SMALL, FULL
    data = case.make(intact)
    assert data != intact
    report = grade_submission(data, assignment, limits=LIMITS)
    points = {grade_id: cell.points for grade_id, cell in report.cells.items()}
    assert points == (full if case.deserves is None else case.deserves), report.notes
    said = (*report.notes, *report.attention)
    assert any(case.says in note for note in said) or not case.says, said
