"""The process of a lane once its zygote is on its own: submissions come in, reports go out."""

import json
import os
import secrets
import socket
import time
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from attncourse.alarm import Clock, Stopwatch
from attncourse.grading.errors import Unreadable
from attncourse.grading.judge.checker import Checker
from attncourse.grading.judge.follow import follow_ons
from attncourse.grading.judge.marking import Followed, judge_cell, make_report
from attncourse.grading.judge.outcomes import StepOutcome, outcome_of
from attncourse.grading.judge.remote.session import Session
from attncourse.grading.judge.wire.frames import hear, receive, send, tell
from attncourse.grading.limits import MB, Limits
from attncourse.grading.report import Report, nothing, to_json
from attncourse.grading.submission.notebook import Assignment, Cell, Reading, read
from attncourse.grading.submission.plan import plan

SEED_SERVES = 50  # submissions
CHECKER = 1000  # MB that the checker may take, beyond what it starts with
SPENT = 300  # MB that a checker has grown by when another one takes its place


class Refused(Exception):
    """The zygote cannot work here. The message says why."""


class Bench:
    """A lane's loop, and the zygote at its side."""

    def __init__(self, driver: socket.socket, zygote: socket.socket, order: dict[str, Any]):
        self.driver = driver
        self.zygote = zygote
        self.order = order
        self.sandbox = order["sandbox"]
        self.limits = Limits(processes=order["processes"])
        self.settled = False
        self.seed = self.seed_left = 0
        self.spare: socket.socket | None = None  # the checker's end of the next worker
        self.spare_pid = 0  # once the zygote has named it
        self.spare_clock = Clock()
        self.workers: list[int] = []
        self.used: list[dict[str, Any]] = []  # by workers that have ended
        self.first: dict[str, Any] = {}  # what an earlier run of this submission found, by version
        self.final = False  # whether this one is the last
        self.undone: dict[int, Any] = {}  # what this one found, if not all ended by itself
        self.size = resident()

    def serve(self) -> None:
        """Grades what the driver sends until it hangs up."""
        hold_memory()
        with suppress(EOFError):
            while True:
                request, books = receive(self.driver)
                send(self.driver, self.answer_to(request, *map(bytes, books)))

    def answer_to(self, request: dict[str, Any], notebook: bytes, course: bytes) -> dict[str, Any]:
        """The report that a request asks for, or why there can be none."""
        try:
            self.settle()
        except Refused as problem:
            return {"refused": str(problem)}
        self.work_within(Limits(**request["limits"]))
        assignment = assignment_of(course)
        self.first, self.final, self.undone = request["first"], request["final"], {}
        report = self.grade(notebook, assignment, request["student"], request["seed"])
        spent = resident() > self.size + SPENT * MB
        return {"report": to_json(report), "undone": self.undone, "spent": spent}

    def settle(self) -> None:
        """Tells the zygote, the first time, which chapters there are, and has it jail itself."""
        if self.settled:
            return
        about = {name: self.order[name] for name in ("folder", "chapters", "sandbox", "hidden")}
        tell(self.zygote, about | {"limits": asdict(self.limits)})
        answer, _ = self.answer()
        if "error" in answer:
            raise Refused(answer["error"])
        self.settled = True

    def work_within(self, limits: Limits) -> None:
        """Has the workers from now on made with these limits."""
        if self.spare is not None and limits != self.limits:
            self.spare.close()
            self.end(self.made())
            self.spare = None
        self.limits = limits
        if self.spare is None:
            self.begin()

    # --- one submission -------------------------------------------------------------------------

    def grade(
        self, notebook: bytes, assignment: Assignment, student: str, seed: int | None
    ) -> Report:
        """The report on a submission; of several versions of it, on the one that earns most."""
        started = time.monotonic()
        seed = self.draw() if seed is None else seed
        self.begins("the notebook", self.limits.cell)
        try:
            reading = read(notebook)
        except Unreadable as error:
            return nothing(assignment, "unreadable", f"unreadable notebook: {error}", student)
        except MemoryError:
            reason = "unreadable notebook: it takes more memory than there is for one"
            return nothing(assignment, "unreadable", reason, student)
        reports = [
            self.grade_version(number, reading, assignment, student, seed)
            for number in range(len(reading.versions))
        ]
        best = max(reports, key=lambda report: report.points)
        return replace(best, duration=time.monotonic() - started, sandbox=self.sandbox)

    def grade_version(
        self, number: int, reading: Reading, assignment: Assignment, student: str, seed: int
    ) -> Report:
        """The report on one of the versions, which share the time of a submission.

        What came of its steps is kept: where something did not end by itself, the driver hands it
        back with the request to run this once more.
        """
        steps, mended = plan(reading.versions[number], assignment)
        limits = self.limits
        limits = replace(limits, submission=limits.submission / len(reading.versions))
        first = self.first.get(str(number), {"outcomes": {}, "cut": ()})
        known = {int(n): outcome_of(told) for n, told in first["outcomes"].items()}
        checker = Checker(steps, assignment, seed, limits, known, first["cut"])

        def heard(number: int, outcome: StepOutcome) -> None:
            cell = assignment.graded.get(steps[number].grade_id)
            if steps[number].kind == "test" and cell is not None:
                result = judge_cell(cell, outcome)
                send(self.driver, {"progress": {steps[number].grade_id: asdict(result)}})

        checker.run(self.launch, heard, self.begins)
        followed: list[Followed] = []
        if self.final or not checker.cut:
            followed += follow_ons(checker, assignment, self.launch, self.begins)
        if checker.cut:
            outcomes = {n: vars(outcome) for n, outcome in checker.outcomes.items()}
            self.undone[number] = {"outcomes": outcomes, "cut": sorted(checker.cut)}
        self.begins("the report", self.limits.cell)
        report = make_report(checker, assignment, student, [*reading.notes, *mended], followed)
        self.end_workers()
        report = replace(report, limits=self.limits_met(checker, self.used), version=number)
        self.used.clear()
        return report

    def begins(self, what: str, seconds: float) -> None:
        """Has the driver watch over what may take so many seconds of processor time."""
        send(self.driver, {"begins": what, "seconds": seconds})

    def draw(self) -> int:
        """A secret seed, a fresh one every few submissions: what the reference and the usual
        mistakes make of its cases is then computed once. Nothing passes from one submission to
        the next, so it is as fresh to each."""
        if self.seed_left == 0:
            self.seed, self.seed_left = secrets.randbits(32), SEED_SERVES
        self.seed_left -= 1
        return self.seed

    def limits_met(self, checker: Checker, used: list[dict[str, Any]]) -> dict[str, Any]:
        """How each limit stood."""
        cpu = max((use["cpu"] for use in used), default=0.0)
        memory = max((use["memory"] for use in used), default=0.0)
        printed = {"limit": self.limits.output, "used": None, "met": checker.used.get("output")}
        return {
            "submission": use_of(checker.whole.worked(), checker.limits.submission)
            | {"met": not checker.whole.left()},
            "call": use_of(checker.used["call"], self.limits.call),
            "cpu": use_of(cpu, self.limits.cpu),
            "memory": use_of(memory, self.limits.memory),
            "output": {**printed, "met": bool(printed["met"])},
        }

    # --- the zygote -----------------------------------------------------------------------------

    def launch(self, whole: Stopwatch, seeds: bool) -> Session:
        """A conversation with a fresh worker; the next one is made meanwhile."""
        connection = self.spare
        self.end_workers()
        self.workers.append(self.made())
        clock = self.spare_clock
        self.begin()
        return Session(connection, self.limits, whole, carry_seed=seeds, clock=clock)

    def end_workers(self) -> None:
        """Ends the workers that nobody talks to any more."""
        self.used += [self.end(pid) for pid in self.workers]
        self.workers.clear()

    def made(self) -> int:
        """The process id, in the jail, of the next worker, which exists then."""
        if not self.spare_pid:
            made, fds = self.answer()
            self.spare_pid, self.spare_clock = made["pid"], clock_of(fds)
        return self.spare_pid

    def begin(self) -> None:
        """Has the zygote make a worker; its answer is fetched when the worker is needed."""
        ours, theirs = socket.socketpair()
        tell(self.zygote, {"do": "start", "limits": asdict(self.limits)}, [theirs.fileno()])
        theirs.close()
        self.spare, self.spare_pid = ours, 0

    def end(self, pid: int) -> dict[str, Any]:
        """Ends a worker; what it used."""
        self.made()  # its answer comes first
        tell(self.zygote, {"do": "stop", "pid": pid})
        return self.answer()[0]

    def answer(self) -> tuple[dict[str, Any], list[int]]:
        """What the zygote says next."""
        try:
            return hear(self.zygote)
        except EOFError:
            raise SystemExit("the process that starts the workers has ended") from None


def clock_of(fds: list[int]) -> Clock:
    """A worker's clock, by its descriptor; one that stands still where that says nothing."""
    number = 0
    for fd in fds:
        with suppress(OSError, ValueError, IndexError):
            about = Path(f"/proc/self/fdinfo/{fd}").read_text()
            number = int(about.split("Pid:")[1].split()[0])
        os.close(fd)
    return Clock(max(number, 0))


def use_of(used: float, limit: float) -> dict[str, Any]:
    return {"limit": limit, "used": round(used, 3), "met": used >= limit}


@lru_cache(maxsize=4)
def assignment_of(text: bytes) -> Assignment:
    """An assignment as the driver sent it."""
    found = json.loads(text)
    cells, added = tuple(Cell(**cell) for cell in found["cells"]), tuple(found["added"])
    return Assignment(**found | {"cells": cells, "added": added})


def hold_memory(size: int = CHECKER) -> None:
    """Has the kernel refuse this process more than so many MB beyond what it has."""
    with suppress(ImportError, OSError, ValueError):  # elsewhere than on Linux
        import resource

        most = pages(0) + size * MB
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def resident() -> int:
    """The bytes of memory that this process has; 0 where nobody counts."""
    with suppress(OSError):
        return pages(1)
    return 0


def pages(which: int) -> int:
    """One of the sizes of this process, in bytes: of its addresses, of what lies in memory."""
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[which]) * os.sysconf("SC_PAGE_SIZE")
