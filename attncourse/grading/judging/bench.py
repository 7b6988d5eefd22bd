"""Where a lane works, once the zygote is on its own: submissions come in, reports go out."""

import base64
import json
import os
import secrets
import socket
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from attncourse.grading.errors import Unreadable
from attncourse.grading.judging.checker import Checker, Outcome
from attncourse.grading.judging.lane import hear, say
from attncourse.grading.judging.marking import judge_cell, make_report
from attncourse.grading.judging.session import Session
from attncourse.grading.judging.view import make_view
from attncourse.grading.limits import Limits
from attncourse.grading.report import Report, nothing, to_json
from attncourse.grading.submission.notebook import Assignment, Cell, read
from attncourse.grading.submission.plan import plan

SEED_SERVES = 50  # submissions


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
        self.spare_pid = 0  # once the zygote has told it
        self.workers: list[int] = []

    def serve(self) -> None:
        """Grades what the driver sends until it hangs up."""
        while (request := hear(self.driver)) is not None:
            try:
                self.settle()
                self.work_within(Limits(**request["limits"]))
                assignment = assignment_of(request["assignment"])
                notebook = base64.b64decode(request["notebook"])
                report = self.grade(notebook, assignment, request["student"], request["seed"])
                say(self.driver, {"report": to_json(report)})
            except Refused as problem:
                say(self.driver, {"refused": str(problem)})

    def settle(self) -> None:
        """Tells the zygote, the first time, which chapters there are, and has it jail itself."""
        if self.settled:
            return
        folder = self.order["folder"]
        view = os.path.join(folder, "view")
        make_view(Path(view), tuple(self.order["chapters"]))
        about = {"limits": asdict(self.limits), "sandbox": self.sandbox}
        self.tell({"folder": folder, "view": view, **about})
        answer = self.answer()
        if "error" in answer:
            raise Refused(f"{answer['error']} (--unsafe-no-sandbox grades without a jail)")
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
        try:
            reading = read(notebook)
        except Unreadable as error:
            return nothing(assignment, "unreadable", f"unreadable notebook: {error}", student)
        reports = [
            replace(
                self.grade_version(cells, reading.notes, assignment, student, seed), version=number
            )
            for number, cells in enumerate(reading.versions)
        ]
        best = max(reports, key=lambda report: report.points)
        duration = time.monotonic() - started
        limits = {"submission": use_of(duration, self.limits.submission), **best.limits}
        return replace(best, duration=duration, limits=limits, sandbox=self.sandbox)

    def grade_version(
        self,
        cells: tuple[Cell, ...],
        notes: tuple[str, ...],
        assignment: Assignment,
        student: str,
        seed: int,
    ) -> Report:
        steps, mended = plan(cells, assignment)
        checker = Checker(steps, assignment, seed, self.limits)

        def told(number: int, outcome: Outcome) -> None:
            cell = assignment.graded.get(steps[number].grade_id)
            if steps[number].kind == "test" and cell is not None:
                result = judge_cell(cell, outcome)
                say(self.driver, {"progress": {steps[number].grade_id: asdict(result)}})

        checker.run(self.launch, told)
        report = make_report(checker, assignment, student, [*notes, *mended])
        used = [self.end(pid) for pid in self.workers]
        self.workers.clear()
        return replace(report, limits=self.limits_met(checker, used))

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
            "call": use_of(checker.used["call"], self.limits.call),
            "cpu": use_of(cpu, self.limits.cpu),
            "memory": use_of(memory, self.limits.memory),
            "output": {**printed, "met": bool(printed["met"])},
        }

    # --- the zygote -----------------------------------------------------------------------------

    def launch(self, deadline: float, seeds: bool) -> Session:
        """A conversation with a fresh worker; the next one is made meanwhile."""
        connection = self.spare
        self.workers.append(self.made())
        self.begin()
        return Session(connection, self.limits, deadline, carry_seed=seeds)

    def made(self) -> int:
        """The process id of the next worker, which exists then."""
        self.spare_pid = self.spare_pid or self.answer()["pid"]
        return self.spare_pid

    def begin(self) -> None:
        """Has the zygote make a worker; its answer is fetched when the worker is needed."""
        ours, theirs = socket.socketpair()
        order = {"do": "start", "limits": asdict(self.limits)}
        socket.send_fds(self.zygote, [json.dumps(order).encode()], [theirs.fileno()])
        theirs.close()
        self.spare, self.spare_pid = ours, 0

    def end(self, pid: int) -> dict[str, Any]:
        """Ends a worker; what it used."""
        self.made()  # its answer comes first
        self.tell({"do": "stop", "pid": pid})
        return self.answer()

    def tell(self, order: dict[str, Any]) -> None:
        self.zygote.send(json.dumps(order).encode())

    def answer(self) -> dict[str, Any]:
        data = self.zygote.recv(1 << 16)
        if not data:
            raise SystemExit("the process that starts the workers has ended")
        return json.loads(data)


def use_of(used: float, limit: float) -> dict[str, Any]:
    return {"limit": limit, "used": round(used, 3), "met": used >= limit}


def assignment_of(told: dict[str, Any]) -> Assignment:
    """An assignment as the driver sent it."""
    return Assignment(told["name"], tuple(Cell(**cell) for cell in told["cells"]))
