"""From a submission's bytes to its report: no files, no database, no network."""

import ast
import json
import re
import secrets
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from attncourse import STEMS
from attncourse.grading.errors import UserError
from attncourse.grading.judge.lanes import LANES, Lane, LaneLost, LaneSettings
from attncourse.grading.limits import Limits
from attncourse.grading.machine import require_linux
from attncourse.grading.report import CellResult, Report, report_from_json, report_without_points
from attncourse.grading.submission.notebook import Assignment
from attncourse.grading.submission.syntax import parse_or_none

NOT_RUN_TO_END = "was not run to its end, twice"
TARGET = re.compile(r"""\b(?:check|examine)\(\s*["'](\w+)\.""")


def grade_submission(
    notebook: bytes,
    assignment: Assignment,
    *,
    student: str = "",
    limits: Limits = Limits(),
    seed: int | None = None,
    sandbox: bool = True,
    hidden: tuple[str, ...] = (),
    alone: bool = False,
) -> Report:
    """Return the report on a submission. Never raises for what a submission does.

    Args:
        notebook: The submission's file.
        assignment: The instructor's notebook.
        student: The name that the report is under.
        limits: What the submission may use up.
        seed: The same one gives the same cases; without one, they are fresh.
        sandbox: Whether submissions are jailed.
        hidden: The course's folders, which a submission must not see wherever they lie.
        alone: Whether no other lane may be at work meanwhile.

    Raises:
        UserError: Where submissions cannot run here, with ``sandbox`` where they cannot safely.

    Where something did not end by itself (its time was up, its process was gone, the lane was), the
    whole runs once more with no other lane at work, at once with ``alone``. That is final.
    """
    require_linux()
    settings = lane_settings(assignment, limits, sandbox, hidden)
    request = first_request(notebook, assignment, student, limits, seed)
    earned: dict[str, CellResult] = {}
    report: Report | None = None
    lost: LaneLost | None = None
    for final in (False, True):
        lane = LANES.take(settings, alone or final)
        try:
            answer = ask_lane(lane, settings, request | {"final": final}, earned)
        except LaneLost as problem:
            lost = problem
            continue
        report = report_from_json(answer["report"])
        if not answer["undone"]:
            break
        limits_left = limits_of_second_run(limits, report.limits["submission"])
        if limits_left is None:
            break
        request |= {"first": answer["undone"], "limits": asdict(limits_left)}
    if report is not None:
        return report
    if not lane.work_began:
        raise UserError(f"no lane can start on this machine: the judge {lost}")
    sentence = f"{NOT_RUN_TO_END}: the judge {lost}"
    report = report_without_points(assignment, "interrupted", sentence, student)
    return replace(report, cells=report.cells | earned, sandbox=sandbox)


def first_request(
    notebook: bytes, assignment: Assignment, student: str, limits: Limits, seed: int | None
) -> dict[str, Any]:
    """Return the request for the first run, with a fresh seed where none is given."""
    return {
        "notebook": notebook,
        "assignment": assignment_as_json(assignment),
        "limits": asdict(limits),
        "student": student,
        "seed": secrets.randbits(32) if seed is None else seed,
        "first": {},
    }


def ask_lane(
    lane: Lane, settings: LaneSettings, request: dict[str, Any], earned: dict[str, CellResult]
) -> dict[str, Any]:
    """Return the lane's answer; give the lane back for the next request, or end it if it is spent.

    What tests earn meanwhile is entered in ``earned``, by grade id: it counts if the lane is lost.
    Raises ``LaneLost`` for that, and ``UserError`` if the lane cannot have workers on this machine.
    """

    def keep_best(results: dict[str, dict]) -> None:
        """Enter the results of tests in ``earned`` that earn more than what is there."""
        for grade_id, fields in results.items():
            result = CellResult(**fields)
            if grade_id not in earned or result.points > earned[grade_id].points:
                earned[grade_id] = result

    try:
        answer = lane.ask(request, keep_best)
    except BaseException:
        LANES.end_busy(lane)
        raise
    if answer.get("spent", True):
        LANES.end_busy(lane)
    else:
        LANES.give_back(settings, lane)
    if "refused" in answer:
        raise UserError(answer["refused"])
    return answer


def limits_of_second_run(limits: Limits, time: dict[str, float]) -> Limits | None:
    """Return the limits of a second run, after one that took ``time``; None where none is left.

    Both together may take twice the time of a submission.
    """
    share = min(2 - time["used"] / time["limit"], 1)
    return replace(limits, submission=share * limits.submission) if share > 0 else None


def lane_settings(
    assignment: Assignment, limits: Limits, sandbox: bool, hidden: tuple[str, ...] = ()
) -> LaneSettings:
    """Return the settings with which a lane for this assignment is started."""
    return LaneSettings(
        libraries=libraries_imported(assignment),
        chapters=chapters_before(assignment),
        sandbox=sandbox,
        processes=limits.processes,
        hidden=hidden,
    )


def start_lanes(
    assignments: Sequence[Assignment], limits: Limits, sandbox: bool, hidden: tuple[str, ...] = ()
) -> None:
    """Start a lane for each assignment, for ``grade_submission`` to take; do not wait for them."""
    require_linux()
    LANES.start_missing(
        [lane_settings(assignment, limits, sandbox, hidden) for assignment in assignments]
    )


@lru_cache(maxsize=4)
def assignment_as_json(assignment: Assignment) -> bytes:
    """Return an assignment as the JSON that a lane is sent."""
    return json.dumps(asdict(assignment)).encode()


@lru_cache(maxsize=8)
def libraries_imported(assignment: Assignment) -> tuple[str, ...]:
    """Return the modules outside the standard library that the instructor's notebook imports.

    NumPy is the first of them in any case. A worker starts with them loaded.
    """
    modules = {"numpy": None}
    for cell in assignment.cells:
        tree = parse_or_none(cell.source) if cell.code else None
        for node in ast.walk(tree or ast.Module([], [])):
            if isinstance(node, ast.Import):
                modules |= dict.fromkeys(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules[node.module] = None
    not_listed = {*sys.stdlib_module_names, "attncourse", "IPython"}
    return tuple(name for name in modules if name.split(".")[0] not in not_listed)


@lru_cache(maxsize=8)
def chapters_before(assignment: Assignment) -> tuple[str, ...]:
    """Return the chapters that a submission may import: those before the assignment's first.

    Where the assignment belongs to no chapter, these are all chapters.
    """
    targets = [stem for cell in assignment.cells for stem in TARGET.findall(cell.source)]
    assigned = [stem for stem in STEMS if stem in targets or assignment.name.endswith(stem)]
    return STEMS[: STEMS.index(assigned[0])] if assigned else STEMS
