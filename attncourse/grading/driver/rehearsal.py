"""Rehearsing an assignment before students have it: its answers run against its own tests."""

from pathlib import Path

from attncourse.grading.course.folders import folders_in, require_known
from attncourse.grading.course.variants import read_notebook_bytes
from attncourse.grading.driver.result_key import hash_of_conditions, result_key
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_file
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.machine import slowness
from attncourse.grading.report import count, score_in_words
from attncourse.grading.submission.notebook import Assignment, read_assignment

STAMP_NAME = ".rehearsed"  # in an assignment's folder in reports/: what has passed, as a hash


def rehearse_assignment(course: Path, name: str) -> None:
    """Raise ``UserError`` if a solved notebook fails a test of its own, with each, and why.

    It runs in the book's convention also where the assignment is in a variant, for its answers are
    in that.
    """
    path = course / "solutions" / name / f"{name}.ipynb"
    require_known(name, folders_in(course / "solutions"))
    data = read_notebook_bytes(path)
    assignment = read_assignment(path, data)
    mark, place = mark_of(assignment, data), course / "reports" / name / STAMP_NAME
    if place.is_file() and place.read_text(encoding="utf-8").strip() == mark:
        return
    if failed := failures_of(assignment, data):
        raise UserError(
            f"{path} fails {count(len(failed), 'test')} of its own, and everybody would: "
            f"{'; '.join(failed)}. Mend the test or the answer; --untested releases it as it is"
        )
    replace_file(place, mark + "\n")


def mark_of(assignment: Assignment, data: bytes) -> str:
    """Return a hash of what a rehearsal depends on: notebook, checks, versions of libraries."""
    return result_key(hash_of_conditions(assignment, Limits(), sandbox=False), "", data)


def failures_of(assignment: Assignment, data: bytes) -> list[str]:
    """Return a line for each cell whose points the instructor's own answers do not get.

    Raises ``UserError`` where this machine did not run all of it: that proves nothing of a test.
    """
    limits = Limits().stretched(slowness())
    # Without a jail: the notebook is the instructor's own.
    report = grade_submission(data, assignment, limits=limits, sandbox=False)
    if report.status != "graded":
        raise UserError(
            f"solutions of {assignment.name}: {'; '.join(report.attention or report.notes)}. "
            "Try again; --untested releases it as it is"
        )
    return [
        f"{grade_id} ({score_in_words(cell.points, cell.maximum)}): "
        + " ".join(cell.message.split())
        for grade_id, cell in report.cells.items()
        if cell.points < cell.maximum
    ]
