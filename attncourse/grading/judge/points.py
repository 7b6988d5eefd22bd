"""The points of a test, and a sentence on those that are missing."""

from dataclasses import replace
from typing import Any

from attncourse.checks.showing.verdict import right_given_words
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.report import CellResult, score_in_words
from attncourse.grading.submission.notebook import Cell


def judge_cell(cell: Cell, outcome: StepOutcome | None) -> CellResult:
    """Return the points that a graded cell earned, and why they are not full.

    Points that are not clearly earned are not given. Of a hidden test nothing is said in the
    submission's words: it could pass on what it saw there in a message, in a class's name, in a
    number. The instructor's source says why it failed.
    """
    if outcome is None:
        return CellResult(0.0, cell.points, "was not run to its end")
    if outcome.kind == "none":
        return CellResult(cell.points, cell.points)
    hidden = outcome.hidden or cell.hides
    if outcome.kind == "number" and 0 <= outcome.value <= cell.points:  # which NaN is not
        points = float(outcome.value)
        failed_at = [v["mistake"] or why_wrong(v) for v in outcome.verdicts if v["failed"]]
        lost = ("" if hidden else "; ".join(failed_at)) or f"{points:g} of {cell.points:g} points"
        return CellResult(points, cell.points, "" if points == cell.points else lost)
    expected = f"a number from 0 to {cell.points:g}"
    open_messages = {
        "number": f"gave {outcome.value}, not {expected}",
        "other": f"gave {outcome.message}, not {expected}",
    }
    hidden_messages = {
        "error": hidden_failure(outcome),
        "timeout": "did not end in time",
        "lost": "was not run to its end",
    }
    message = (
        hidden_messages.get(outcome.kind, f"a hidden test gave no {expected.removeprefix('a ')}")
        if hidden
        else open_messages.get(outcome.kind, outcome.message or "failed")
    )
    return CellResult(0.0, cell.points, message)


def points_without_ours(
    cell: Cell, outcome: StepOutcome | None, with_ours: CellResult, replaced: tuple[str, ...]
) -> CellResult:
    """Return the points of a test's first run, in a course where follow-on answers earn nothing.

    A message says that the answer is right with ours in place of the ``replaced`` ones.
    """
    result = judge_cell(cell, outcome)
    if result.points >= with_ours.points:
        return result
    is_right = with_ours.points == with_ours.maximum
    score = "right" if is_right else score_in_words(with_ours.points, with_ours.maximum)
    message = f"{score}{right_given_words(replaced)}, which earns nothing more in this course"
    return replace(result, message=message)


def hidden_failure(outcome: StepOutcome) -> str:
    """Return a sentence that a hidden test failed, with the instructor's assertion if any."""
    sentence, reached = outcome.assertion
    if outcome.error == "AssertionError" and reached:
        return f"a hidden test failed: {sentence}" if sentence else "a hidden test failed"
    lead_in = ": " if reached else " on the way to: "
    return f"a hidden test failed ({outcome.error}){lead_in + sentence if sentence else ''}"


def why_wrong(verdict: dict[str, Any]) -> str:
    """Return the first line of what is wrong with an answer whose mistake has no name."""
    return failure_line(verdict["symptom"] or verdict["reason"] or ", ".join(verdict["failed"]))


def failure_line(message: Any) -> str:
    """Return the first line of a message, "failed" where it is empty."""
    lines = str(message or "").splitlines()
    return lines[0] if lines else "failed"
