"""From a submission's bytes to its report: no files, no database, no network."""

import time
from typing import Any

from attncourse.grading.errors import Unreadable
from attncourse.grading.limits import Limits
from attncourse.grading.notebook import Assignment, Cell, read_cells
from attncourse.grading.plan import Step, plan
from attncourse.grading.process import GRACE, Run, run_worker
from attncourse.grading.report import CellResult, Report

RESTARTS = 3


def grade(
    notebook: bytes, assignment: Assignment, *, student: str = "", limits: Limits = Limits()
) -> Report:
    """The report on a submission. Never raises for anything that a submission does."""
    started = time.monotonic()
    try:
        cells = read_cells(notebook)
    except Unreadable as error:
        return nothing(assignment, "unreadable", f"unreadable notebook: {error}", student)
    steps, notes = plan(cells, assignment)
    outcomes, trouble = run_steps(steps, limits)
    tests = {step.grade_id: outcomes.get(n) for n, step in enumerate(steps) if step.grade_id}
    verdicts = [v for found in tests.values() if found for v in verdicts_of(found)]
    seen = {(v["target"], v["misconception"]): None for v in verdicts if v["misconception"]}
    return Report(
        student=student,
        assignment=assignment.name,
        status="interrupted" if trouble else "graded",
        cells={g: judge_cell(cell, tests[g]) for g, cell in assignment.graded.items()},
        misconceptions=tuple(seen),
        notes=(*notes, *remarks(steps, outcomes, verdicts), *trouble),
        verdicts=tuple(verdicts),
        duration=time.monotonic() - started,
    )


def nothing(assignment: Assignment, status: str, reason: str, student: str = "") -> Report:
    """The report on a submission of which nothing could be run: zero, and why."""
    cells = {g: CellResult(0.0, cell.points, reason) for g, cell in assignment.graded.items()}
    return Report(student, assignment.name, status, cells, notes=(reason,))


def run_steps(steps: list[Step], limits: Limits) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Each step's outcome by its number, and what kept some from having one.

    A step that takes the worker down costs itself: the others run in a fresh one, as long as the
    submission's time lasts. A step that has an outcome keeps it.
    """
    deadline = time.monotonic() + limits.submission
    outcomes: dict[int, dict[str, Any]] = {}
    trouble: list[str] = []
    fatal: set[int] = set()
    for _ in range(1 + RESTARTS):
        todo = [n for n in range(len(steps)) if n not in fatal]
        left = deadline - time.monotonic()
        run = run_worker([steps[n] for n in todo], limits.cell, left)
        for n, found in run.outcomes.items():
            if 0 <= n < len(todo):
                outcomes.setdefault(todo[n], found)
        if run.ending == "done":
            return outcomes, trouble
        during = todo[run.during] if run.during in range(len(todo)) else None
        name = steps[during].name if during is not None else ""
        trouble.append(tell(run, name, limits))
        left = deadline - time.monotonic()
        if during is None or run.ending in ("out of time", "flooded") or left < GRACE:
            return outcomes, trouble
        fatal.add(during)
    return outcomes, trouble


def tell(run: Run, name: str, limits: Limits) -> str:
    """A sentence on how a run ended that can be forwarded to the student."""
    where = f"{name} " if name else "the submission "
    last = run.errors.splitlines()[-1] if run.errors and not name else ""
    return {
        "died": f"{where}ended its process" + (f" ({last})" if last else ""),
        "stalled": f"{where}did not end within {limits.cell:g} s and could not be interrupted",
        "out of time": f"{where}was running when the {limits.submission:g} s for the submission "
        "were over",
        "flooded": f"{where}sent more data than a submission may",
    }[run.ending]


def remarks(
    steps: list[Step], outcomes: dict[int, dict[str, Any]], verdicts: list[dict[str, Any]]
) -> list[str]:
    """What went wrong in the submission's own cells, and answers without a known misconception.

    Exceptions in cells that the assignment gave come from the answers, which have their own.
    """
    said, empty = [], []
    for n, step in enumerate(steps):
        found = outcomes.get(n, {})
        if step.grade_id or found.get("kind") not in ("error", "timeout"):
            continue
        if found.get("message") == "NotImplementedError" and not step.given:
            empty.append(step.name.removeprefix("cell "))
        elif found["kind"] == "timeout" or not step.given:
            said.append(f"{step.name}: {first_line(found.get('message'))}")
    for verdict in verdicts:
        name = verdict["target"].split(".")[-1]
        if verdict["reason"].startswith("not written yet"):
            empty.append(name)
        elif verdict["failed"] and not verdict["misconception"]:
            said.append(f"{name}: {why(verdict)}")
    return said + ([f"not attempted: {', '.join(dict.fromkeys(empty))}"] if empty else [])


def judge_cell(cell: Cell, outcome: dict[str, Any] | None) -> CellResult:
    """The points of a graded cell. What is not clearly earned is not earned."""
    points, message = 0.0, ""
    kind = outcome.get("kind") if outcome else None
    value = outcome.get("value") if outcome else None
    if kind is None:
        message = "was not run to its end"
    elif kind == "none":
        points = cell.points
    elif kind == "number" and is_points(value, cell.points):
        points = float(value)
        score = f"{points:g} of {cell.points:g} points"
        message = "" if points == cell.points else told(outcome) or score
    elif kind == "number":
        message = f"gave {value}, not a number from 0 to {cell.points:g}"
    elif kind == "other":
        message = f"gave {outcome.get('message')}, not a number from 0 to {cell.points:g}"
    else:
        message = str(outcome.get("message") or "failed")
    return CellResult(points, cell.points, message)


def is_points(value: Any, maximum: float) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= maximum  # which NaN and infinity are not


def told(outcome: dict[str, Any]) -> str:
    """Why points are missing, from the verdicts behind them."""
    return "; ".join(
        verdict["misconception"] or why(verdict)
        for verdict in verdicts_of(outcome)
        if verdict["failed"]
    )


def why(verdict: dict[str, Any]) -> str:
    return first_line(verdict["reason"] or ", ".join(map(str, verdict["failed"])))


def verdicts_of(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    """The verdicts in an outcome that have the form of one; a lying worker sends others."""
    wanted = {"target": str, "misconception": str, "failed": list, "reason": str, "text": str}
    found = outcome.get("verdicts")
    return [
        verdict
        for verdict in (found if isinstance(found, list) else [])
        if isinstance(verdict, dict)
        and all(isinstance(verdict.get(key), kind) for key, kind in wanted.items())
    ]


def first_line(message: Any) -> str:
    lines = str(message or "").splitlines()
    return lines[0] if lines else "failed"
