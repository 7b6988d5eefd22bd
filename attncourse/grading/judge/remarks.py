"""Remarks on a run beside its points: for the student, and for the person who grades."""

import re
import sys
from collections.abc import Collection
from typing import Any

from attncourse.checks.reading.cells import STUB_ERROR
from attncourse.checks.showing.verdict import NOT_ATTEMPTED
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.missing_names import is_nowhere
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.points import failure_line, why_wrong
from attncourse.grading.report import UNFORESEEN, CellResult, exercise_of
from attncourse.grading.submission.imports import unusual_imports
from attncourse.grading.submission.newer import version_needed
from attncourse.grading.submission.notebook import Assignment

NO_PYTHON = ("SyntaxError", "IndentationError", "TabError")
NEEDS_PYTHON = " needs Python "
NETWORK = re.compile(
    r"name resolution|Name or service not known|Failed to resolve|Network is unreachable"
)
NO_NETWORK = "there is no network where a notebook is graded"
MAX_IMPORTS_SHOWN = 5  # of the unusual ones
MAX_NOTES = 100  # of a kind, of which an honest submission has a few
UNASKED = "for which the test did not ask: the test went on with its own"


def remarks(findings: Findings, verdicts: list[dict[str, Any]]) -> list[str]:
    """Return sentences for the student on errors in own cells and on unexplained wrong answers.

    An error in a cell that the assignment gave comes from an answer, which has its own sentence; so
    does a NameError about an answer that is not there.
    """
    sentences, empty = [], unwritten_answers(findings, verdicts)
    tests = [(exercise_of(test), outcome) for test, outcome in findings.test_outcomes().items()]
    absent = [*empty, *(name for name, outcome in tests if is_nowhere(name, outcome))]
    for step, outcome in findings.steps_with_outcomes():
        if step.kind == "test" or outcome is None or outcome.kind not in ("error", "timeout"):
            continue
        missing = outcome.error == "NameError" and any(f"'{n}'" in outcome.message for n in absent)
        follows = step.is_given or missing or outcome.error == STUB_ERROR
        if outcome.kind == "timeout" or not follows:
            why_not = f": {NO_NETWORK}" if NETWORK.search(outcome.message) else ""
            sentences.append(f"{step.name}{why_not}: {failure_line(outcome.message)}")
    for name, outcome in tests:
        if outcome is not None and outcome.cut and not outcome.hidden and outcome.verdicts:
            sentences.append(f"{name}: {outcome.cut}")
    for verdict in verdicts:
        name = verdict["target"].split(".")[-1]
        if name not in empty and verdict["failed"] and not verdict["mistake"]:
            sentences.append(f"{name}: {why_wrong(verdict)}")
    sentences += [
        f"{test}: {who} changed an argument in place, {UNASKED}" for test, who in findings.changed
    ]
    if findings.flooded:
        sentences.append(f"printed more than {findings.flooded:g} MB: the rest was dropped")
    sentences = list(dict.fromkeys(sentences))
    return sentences + ([f"{NOT_ATTEMPTED}: {', '.join(empty)}"] if empty else [])


def unwritten_answers(findings: Findings, verdicts: list[dict[str, Any]]) -> list[str]:
    """Return the exercises whose answers are as released, so that they raise NotImplementedError.

    A function raises it when a check calls it. A class that was released without a body raises it
    when its cell is run, so that is looked for among the cells.
    """
    empty = [v["target"].split(".")[-1] for v in verdicts if v["unwritten"]]
    for step, outcome in findings.steps_with_outcomes():
        name = step.name.removeprefix("cell ")
        stub = step.kind == "cell" and outcome is not None and outcome.error == STUB_ERROR
        if stub and not name.isdigit():
            empty.append(name)
    return list(dict.fromkeys(empty))


def unforeseen_remarks(
    tests: dict[str, StepOutcome | None],
    cells: dict[str, CellResult],
    verdicts: list[dict[str, Any]],
) -> list[str]:
    """Return sentences on hidden tests that fail answers which pass their own checks."""
    passed = {v["target"].split(".")[-1] for v in verdicts if v["passed"] and not v["given"]}
    hidden = [g for g, outcome in tests.items() if outcome and outcome.hidden]
    lost = [(exercise_of(g), cells[g]) for g in hidden if g in cells]
    return [
        f"{name}{UNFORESEEN}{cell.message}"
        for name, cell in lost
        if name in passed and cell.points < cell.maximum
    ]


def unexplained_losses(
    cells: dict[str, CellResult], others: list[str], mistakes: Collection[tuple[str, str]]
) -> list[str]:
    """Return why points are missing, for exercises that neither ``others`` nor a mistake names."""
    names = " ".join([*others, *(exercise_of(target) for target, _ in mistakes)])
    lost = {}
    for grade_id, cell in cells.items():
        if cell.points < cell.maximum:
            lost.setdefault(exercise_of(grade_id), failure_line(cell.message))
    return [
        f"{name}: {why}"
        for name, why in lost.items()
        if not re.search(rf"\b{re.escape(name)}\b", names)
    ]


def unread_cells(findings: Findings, assignment: Assignment) -> list[str]:
    """Return a sentence on each cell that is no Python here, if it matters.

    It does where the cell holds an answer, and where a newer Python would run it.
    """
    names = [c.grade_id for c in assignment.cells if c.code and c.solution and c.grade_id]
    answer = re.compile(rf"^[ \t]*(?:def|class)\s+(?:{'|'.join(map(re.escape, names))})\b", re.M)
    sentences = []
    for step, outcome in findings.steps_with_outcomes():
        if step.kind != "cell" or outcome is None or outcome.error not in NO_PYTHON:
            continue
        if version := version_needed(step.source):
            running_version = ".".join(map(str, sys.version_info[:2]))
            sentences.append(
                f"{step.name}{NEEDS_PYTHON}{version} or newer, and was run by {running_version}"
            )
        elif step.name.removeprefix("cell ") in names or (names and answer.search(step.source)):
            sentences.append(f"{step.name} is no Python: {failure_line(outcome.message)}")
    return sentences


def suspicions(findings: Findings, assignment: Assignment) -> tuple[str, ...]:
    """Return why a person should look for a reason beyond the tests: unusual imports."""
    instructor_sources = {cell.source for cell in assignment.cells}
    students_cells = [
        s for s in findings.steps if s.kind == "cell" and s.source not in instructor_sources
    ]
    unusual_by_cell = unusual_imports([s.source for s in students_cells], instructor_sources)
    names = [
        f"{n} in {s.name}"
        for s, several in zip(students_cells, unusual_by_cell, strict=True)
        for n in several
    ]
    more = f" and {len(names) - MAX_IMPORTS_SHOWN} more" if len(names) > MAX_IMPORTS_SHOWN else ""
    return (f"imports {', '.join(names[:MAX_IMPORTS_SHOWN])}{more}: see what for",) if names else ()


def first_notes(notes: list[str]) -> list[str]:
    """Return the notes; of more than ``MAX_NOTES`` the first, and how many more there are."""
    if len(notes) <= MAX_NOTES:
        return notes
    return [*notes[:MAX_NOTES], f"and {len(notes) - MAX_NOTES} notes more"]
