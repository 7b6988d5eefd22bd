"""What counts of a run in which our solutions stood in the place of wrong answers.

The submission's process could read ours then. So nothing is kept that it can write a text into:
whole points, which criteria hold, and a mistake's name and explanation as they stand in the bank.
By these an answer can tell a few bits of ours, which earn it nothing.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from attncourse.checks import find_exercise
from attncourse.grading.judge.outcomes import StepOutcome, verdict_from_row
from attncourse.grading.judge.points import judge_cell
from attncourse.grading.submission.notebook import Assignment, Cell

Tests = Mapping[str, StepOutcome | None]


def counted_with_ours(second: Tests, first: Tests, assignment: Assignment) -> dict[str, Any]:
    """Return the outcomes that count of an answer that is not right with ours either.

    They are those that earn more than ``first``, or as much and name a mistake where that names
    none. In a variant only an answer that is right counts: there ours does the variant's part of
    one that merely hands on what it gets.
    """
    counted: dict[str, Any] = {}
    for test, outcome in second.items():
        cell, before = assignment.graded.get(test), first[test]
        if outcome is None or cell is None or is_in_variant(outcome):
            continue
        bounded = bounded_outcome(outcome, before, cell)
        if bounded is None or earns_less(bounded, before, cell):
            continue
        if earns_less(before, bounded, cell) or (names_mistake(bounded) > names_mistake(before)):
            counted[test] = bounded
    return counted


def bounded_outcome(
    outcome: StepOutcome, before: StepOutcome | None, cell: Cell
) -> StepOutcome | None:
    """Return a test's outcome without what the submission can have written; None if none is left.

    A number that is not whole could hold a text in its digits, and counts only where it is full.
    """
    points = judge_cell(cell, outcome).points
    is_whole_number = outcome.kind == "number" and outcome.verdicts and points == int(points)
    if points < cell.points and not is_whole_number:
        return None
    rows = before.verdicts if before else []
    verdicts = [bounded_verdict(v, messages_of(v["target"], rows)) for v in outcome.verdicts]
    return StepOutcome("number", value=points, hidden=outcome.hidden, verdicts=verdicts)


def messages_of(target: str, verdicts: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what the verdicts on an exercise said of each criterion, by the criterion's name."""
    return {c["name"]: c for v in verdicts if v["target"] == target for c in v["criteria"]}


def bounded_verdict(row: dict[str, Any], before: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a verdict as it is kept: its points, and words of the bank and of the first run."""
    explanations = {
        m.name: m.explanation for m in find_exercise(row["target"], row["variant"]).mistakes
    }
    mistake = row["mistake"] if row["mistake"] in explanations else ""
    criteria = []
    for criterion in row["criteria"]:
        words = {} if criterion["passed"] or mistake else before.get(criterion["name"], {})
        texts = {name: words.get(name, "") for name in ("message", "brief")}
        criteria.append(criterion | texts)
    failing = [c for c in criteria if not c["passed"] and c["brief"]]
    bounded_row = row | {
        "criteria": criteria,
        "mistake": mistake,
        "explanation": explanations.get(mistake, ""),
        "symptom": "",
        "rest": "",
        "worth": 0,
        "reason": failing[0]["brief"] if failing else "",
        "guide": row["guide"] if mistake else "",
        "given": [],
    }
    return bounded_row | {"text": str(replace(verdict_from_row(bounded_row), given=()))}


def is_in_variant(outcome: StepOutcome | None) -> bool:
    """True if a test judged an exercise in a variant."""
    return outcome is not None and any(row["variant"] for row in outcome.verdicts)


def names_mistake(outcome: StepOutcome | None) -> bool:
    """True if a verdict of a test names a mistake."""
    return outcome is not None and any(row["mistake"] for row in outcome.verdicts)


def earns_less(a: StepOutcome | None, b: StepOutcome | None, cell: Cell | None) -> bool:
    """True if one outcome of a cell earns less than another; never where it is not graded."""
    return cell is not None and judge_cell(cell, a).points < judge_cell(cell, b).points
