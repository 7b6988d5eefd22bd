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
from attncourse.grading.judge.wire.frames import receive_frame, send_frame
from attncourse.grading.judge.workers import Refused, Workers
from attncourse.grading.limits import MB, Limits
from attncourse.grading.report import Report, report_without_points, to_json
from attncourse.grading.submission.notebook import Assignment, Cell, Reading, read_submission_cells
from attncourse.grading.submission.plan import plan
from attncourse.grading.submission.varied import other_variant

QUIET_SECONDS = 0.02  # in which the driver is not told of what may take as long as the last
CHECKER_MB = 1000  # that the checker may take, beyond what it starts with
SPENT_MB = 300  # that a checker has grown by when another one takes its place
ADDRESS_SPACE, RESIDENT = 0, 1  # fields of /proc/self/statm, in pages


class LaneLoop:
    """A lane's loop: it reads and tests submissions, whose cells run in the workers beside it."""

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
        """Answer the driver's requests until it hangs up."""
        limit_memory()
        with suppress(EOFError):
            while True:
                request, buffers = receive_frame(self.driver)
                send_frame(self.driver, self.answer_to(request, *map(bytes, buffers)))

    def answer_to(self, request: dict[str, Any], notebook: bytes, course: bytes) -> dict[str, Any]:
        """Return the answer to a request: "refused" with the reason, or a "report" with two fields.

        "undone" holds the outcomes of a run in which something did not end by itself, empty where
        all did: the driver sends them back with the request for the second run. "spent" says that
        this process has grown so much that another one is to take its place.
        """
        try:
            self.workers.wait_for_zygote()
        except Refused as problem:
            return {"refused": str(problem)}
        self.workers.use_limits(Limits(**request["limits"]))
        report, undone = self.grade(notebook, assignment_of(course), request)
        report = replace(report, sandbox=self.order["sandbox"])
        spent = resident_bytes() > self.size + SPENT_MB * MB
        return {"report": to_json(report), "undone": undone, "spent": spent}

    def grade(
        self, notebook: bytes, assignment: Assignment, request: dict[str, Any]
    ) -> tuple[Report, dict[str, Any]]:
        """Return the report on a submission, and what is undone of it, by the version's number.

        A file with a merge conflict has two versions: the report is on the one that earns more.
        """
        started = time.monotonic()
        student = request["student"]
        self.earned = {}
        self.announced_seconds = 0.0
        self.announce("the notebook", self.workers.limits.cell)
        try:
            reading = read_submission_cells(notebook)
        except Unreadable as error:
            reason = f"unreadable notebook: {error}"
            return report_without_points(assignment, "unreadable", reason, student), {}
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
        """Return the report on one version, and its outcomes if something is undone, else {}.

        The versions share a submission's time. The request holds the outcomes of the first run, in
        which some steps were cut.
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
            """Note the points of a test for the driver, which keeps them if this lane is lost."""
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

    def announce(self, task: str, seconds: float) -> None:
        """Tell the driver what begins, how many seconds it may take, and what was earned before it.

        The driver ends the lane if it takes longer. A cell that follows at once on another with the
        same limit is not announced, for speed.
        """
        now = time.monotonic()
        if (
            self.earned
            or seconds != self.announced_seconds
            or now - self.announced_at > QUIET_SECONDS
        ):
            send_frame(self.driver, {"begins": task, "seconds": seconds, "earned": self.earned})
            self.earned, self.announced_seconds, self.announced_at = {}, seconds, now


def limits_met(
    findings: Findings, limits: Limits, budget: Budget, uses: list[dict[str, float]]
) -> dict[str, Any]:
    """Return, by limit, how much of it was used and whether it was met.

    Of the workers' ``uses`` the largest counts.
    """
    used = {name: max((use[name] for use in uses), default=0.0) for name in ("cpu", "memory")}
    whole_submission = reported_limit(budget.worked(), limits.submission) | {
        "met": not budget.left()
    }
    output = {"limit": limits.output, "used": None, "met": bool(findings.flooded)}
    return {
        "submission": whole_submission,
        "call": reported_limit(findings.longest, limits.call),
        "cpu": reported_limit(used["cpu"], limits.cpu),
        "memory": reported_limit(used["memory"], limits.memory),
        "output": output,
    }


def reported_limit(used: float, limit: float) -> dict[str, Any]:
    """Return a limit as a report keeps it: what was allowed, what was used, whether it was met."""
    return {"limit": limit, "used": round(used, 3), "met": used >= limit}


@lru_cache(maxsize=4)
def assignment_of(text: bytes) -> Assignment:
    """Return the assignment that the driver sent as JSON."""
    data = json.loads(text)
    cells, added = tuple(Cell(**cell) for cell in data["cells"]), tuple(data["added"])
    return Assignment(**data | {"cells": cells, "added": added})


def limit_memory(size: int = CHECKER_MB) -> None:
    """Have the kernel refuse this process more than ``size`` MB of addresses beyond its own."""
    with suppress(ImportError, OSError, ValueError):  # elsewhere than on Linux
        import resource

        limit = memory_size(ADDRESS_SPACE) + size * MB
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or limit < hard:
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def resident_bytes() -> int:
    """Return the bytes that this process has in memory; 0 where the system does not say."""
    with suppress(OSError):
        return memory_size(RESIDENT)
    return 0


def memory_size(field: int) -> int:
    """Return a size of this process in bytes: ``ADDRESS_SPACE``, or what is ``RESIDENT``."""
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[field]) * os.sysconf("SC_PAGE_SIZE")
