"""The process of a lane once its zygote is on its own: submissions come in, reports go out."""

import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from attncourse.grading.errors import Unreadable
from attncourse.grading.judge.budget import Budget
from attncourse.grading.judge.carried_errors import follow_ons
from attncourse.grading.judge.findings import Findings, agreed_findings
from attncourse.grading.judge.marking import make_report
from attncourse.grading.judge.outcomes import StepOutcome, outcome_from_json
from attncourse.grading.judge.overwritten import overwritten_answers
from attncourse.grading.judge.plan_runner import Means, PlanRunner
from attncourse.grading.judge.points import judge_cell
from attncourse.grading.judge.wire.frames import receive, send
from attncourse.grading.judge.workers import Refused, Workers
from attncourse.grading.limits import MB, Limits
from attncourse.grading.report import Report, report_without_points, to_json
from attncourse.grading.submission.notebook import Assignment, Cell, Reading, read_submission_cells
from attncourse.grading.submission.plan import plan
from attncourse.grading.submission.varied import other_variant

QUIET_SECONDS = 0.02  # in which the driver is not told of what may take as long as the last
CHECKER_MB = 1000  # that the checker may take, beyond what it starts with
SPENT_MB = 300  # that a checker has grown by when another one takes its place


class LaneLoop:
    """A lane's loop: it checks, and the workers at its side compute."""

    def __init__(self, driver: socket.socket, zygote: socket.socket, order: dict[str, Any]):
        self.driver = driver
        self.order = order
        self.workers = Workers(zygote, Limits(processes=order["processes"]))
        self.earned: dict[str, Any] = {}  # of which the driver was not told yet
        self.announced_seconds = 0.0  # how long what was announced last may take
        self.announced_at = 0.0  # when it began
        # What the checker grows by is counted from here: see SPENT_MB.
        self.size = resident_bytes()

    def serve(self) -> None:
        """Grade what the driver sends until it hangs up."""
        hold_memory()
        with suppress(EOFError):
            while True:
                request, buffers = receive(self.driver)
                send(self.driver, self.answer_to(request, *map(bytes, buffers)))

    def answer_to(self, request: dict[str, Any], notebook: bytes, course: bytes) -> dict[str, Any]:
        """Return the report that a request asks for, or why there can be none.

        ``undone`` is what came of the steps where not all ended by itself: the driver hands it back
        with the request to run this once more.
        """
        try:
            self.workers.settle()
        except Refused as problem:
            return {"refused": str(problem)}
        self.workers.work_within(Limits(**request["limits"]))
        report, undone = self.grade(notebook, assignment_of(course), request)
        report = replace(report, sandbox=self.order["sandbox"])
        spent = resident_bytes() > self.size + SPENT_MB * MB
        return {"report": to_json(report), "undone": undone, "spent": spent}

    def grade(
        self, notebook: bytes, assignment: Assignment, request: dict[str, Any]
    ) -> tuple[Report, dict[str, Any]]:
        """Return the report on a submission, and what is undone of it, by version.

        Of several versions, the report is on the one that earns most.
        """
        started, student = time.monotonic(), request["student"]
        self.earned, self.announced_seconds = {}, 0.0
        self.announce("the notebook", self.workers.limits.cell)
        try:
            reading = read_submission_cells(notebook)
        except Unreadable as error:
            return report_without_points(
                assignment, "unreadable", f"unreadable notebook: {error}", student
            ), {}
        except MemoryError:
            reason = "unreadable notebook: it takes more memory than there is for one"
            return report_without_points(assignment, "unreadable", reason, student), {}
        reports, undone = [], {}
        for number in range(len(reading.versions)):
            report, version_undone = self.grade_version(number, reading, assignment, request)
            reports.append(report)
            if version_undone:
                undone[number] = version_undone
        best = max(reports, key=lambda report: report.points)
        return replace(best, duration=time.monotonic() - started), undone

    def grade_version(
        self,
        number: int,
        reading: Reading,
        assignment: Assignment,
        request: dict[str, Any],
    ) -> tuple[Report, dict[str, Any]]:
        """Return the report on one version, and what is undone of it.

        The versions share a submission's time; the request has what an earlier run left undone.
        """
        steps, mended = plan(reading.versions[number], assignment)
        handed_in = [cell.source for cell in reading.versions[number]]
        asked_for = [cell.source for cell in assignment.cells]
        mended = [*mended, *other_variant(handed_in, asked_for)]
        earlier = request["first"].get(str(number), {"outcomes": {}, "cut": ()})
        limits = self.workers.limits
        # A merge conflict earns nobody more time.
        limits = replace(limits, submission=limits.submission / len(reading.versions))
        budget = Budget(limits.submission)
        seed, launch = request["seed"], self.workers.launch
        means = Means(assignment, seed, limits, budget, launch, self.announce)

        def on_outcome(number: int, outcome: StepOutcome) -> None:
            cell = assignment.graded.get(steps[number].grade_id)
            if steps[number].kind == "test" and cell is not None:
                self.earned[steps[number].grade_id] = vars(judge_cell(cell, outcome))

        doubted = set(earlier["cut"])
        outcomes = {int(n): outcome_from_json(data) for n, data in earlier["outcomes"].items()}
        second = PlanRunner(steps, means, on_outcome, doubted).run()
        findings = agreed_findings(outcomes, doubted, second)
        overwritten, carried, cut = [], [], set(findings.cut)
        # Where a step was cut, all of this runs again: in that run these are looked for.
        if request["final"] or not cut:
            overwritten, overwritten_cut = overwritten_answers(findings, means)
            carried, follow_ons_cut = follow_ons(findings, means)
            if overwritten_cut or follow_ons_cut:
                cut.add(len(steps))  # behind them all
        self.announce("the report", limits.cell)
        notes = [*reading.notes, *mended]
        report = make_report(findings, assignment, request["student"], notes, carried, overwritten)
        # Only an ended worker tells what it used.
        self.workers.end_all()
        met = limits_met(findings, limits, budget, self.workers.used)
        self.workers.used.clear()
        report = replace(report, limits=met, version=number)
        if not cut:
            return report, {}
        undone = {n: vars(outcome) for n, outcome in findings.outcomes.items()}
        return report, {"outcomes": undone, "cut": sorted(cut)}

    def announce(self, what: str, seconds: float) -> None:
        """Have the driver watch over what may take so many seconds of processor time.

        It is told what was earned before with it. Of a cell that follows at once on another, it is
        told nothing.
        """
        now = time.monotonic()
        if (
            self.earned
            or seconds != self.announced_seconds
            or now - self.announced_at > QUIET_SECONDS
        ):
            send(self.driver, {"begins": what, "seconds": seconds, "earned": self.earned})
            self.earned, self.announced_seconds, self.announced_at = {}, seconds, now


def limits_met(
    findings: Findings, limits: Limits, budget: Budget, uses: list[dict[str, float]]
) -> dict[str, Any]:
    """Return the use of each limit; of the workers' ``uses`` the largest counts."""
    used = {name: max((use[name] for use in uses), default=0.0) for name in ("cpu", "memory")}
    whole = use_of(budget.worked(), limits.submission) | {"met": not budget.left()}
    output = {"limit": limits.output, "used": None, "met": bool(findings.flooded)}
    return {
        "submission": whole,
        "call": use_of(findings.longest, limits.call),
        "cpu": use_of(used["cpu"], limits.cpu),
        "memory": use_of(used["memory"], limits.memory),
        "output": output,
    }


def use_of(used: float, limit: float) -> dict[str, Any]:
    """Return what a report keeps of one limit."""
    return {"limit": limit, "used": round(used, 3), "met": used >= limit}


@lru_cache(maxsize=4)
def assignment_of(text: bytes) -> Assignment:
    """Return the assignment that the driver sent as these bytes."""
    data = json.loads(text)
    cells, added = tuple(Cell(**cell) for cell in data["cells"]), tuple(data["added"])
    return Assignment(**data | {"cells": cells, "added": added})


def hold_memory(size: int = CHECKER_MB) -> None:
    """Have the kernel refuse this process more than so many MB beyond what it has."""
    with suppress(ImportError, OSError, ValueError):  # elsewhere than on Linux
        import resource

        limit = memory_size(0) + size * MB
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or limit < hard:
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def resident_bytes() -> int:
    """Return the bytes of memory that this process has; 0 where nobody counts."""
    with suppress(OSError):
        return memory_size(1)
    return 0


def memory_size(which: int) -> int:
    """Return one of the sizes of this process in bytes: 0 is its addresses, 1 what is in memory."""
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[which]) * os.sysconf("SC_PAGE_SIZE")
