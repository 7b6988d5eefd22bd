"""Grading one submission: its cells run in its process, the instructor's tests run here."""

import builtins
import io
import numbers
import random
import re
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attncourse.alarm import TimeUp, within
from attncourse.checks import observe
from attncourse.grading.judging.desk import compiled, desk_for, loads
from attncourse.grading.judging.session import Ended, OutOfTime, Session
from attncourse.grading.judging.wire import WireError
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment
from attncourse.grading.submission.plan import Step

# Terminals obey them, and the direction marks among them turn text around.
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
RESTARTS = 20
REPLAY = 1.0  # seconds for a cell that did not end, when it runs again in a fresh process
MESSAGE = 2000  # characters of an error's text that are worth keeping

Launch = Callable[[float, bool], Session]


@dataclass
class Outcome:
    """What came of a step. ``kind``: "number", "none", "other", "error", "timeout" or "lost"."""

    kind: str
    message: str = ""
    value: float = 0.0
    error: str = ""  # the exception's class
    verdicts: list[dict[str, Any]] = field(default_factory=list)


class Checker:
    """One run of a plan. ``launch`` starts a fresh process for the submission."""

    def __init__(self, steps: list[Step], assignment: Assignment, seed: int, limits: Limits):
        self.steps = steps
        self.desk = desk_for(assignment)
        self.seed = seed
        self.limits = limits
        self.deadline = time.monotonic() + limits.submission
        self.outcomes: dict[int, Outcome] = {}
        self.fatal: set[int] = set()
        self.trouble: list[str] = []
        self.session: Session | None = None
        self.restarts = 0
        self.tested = False  # whether a test has run in the present process
        self.namespace = trusted_namespace()
        self.borrowed: set[str] = set()  # names that were taken from the submission
        self.laid_out: set[int] = set()
        self.used: dict[str, Any] = {"call": 0.0}

    def run(self, launch: Launch, told: Callable[[int, Outcome], None]) -> None:
        """Runs every step; ``told`` hears of each outcome as it comes."""
        self.launch = launch
        seed_all(self.seed)
        try:
            self.session = self.start()
            for number in range(len(self.steps)):
                self.outcomes[number] = self.step(number)
                told(number, self.outcomes[number])
            self.again(told)
        except OutOfTime:
            where = self.steps[len(self.outcomes)].name if self.outcomes_missing() else ""
            self.trouble.append(
                f"{where or 'the submission'} was running when the {self.limits.submission:g} s "
                "for the submission were over"
            )
        finally:
            self.hang_up()

    def outcomes_missing(self) -> bool:
        return len(self.outcomes) < len(self.steps)

    def start(self) -> Session:
        return self.launch(self.deadline, self.desk.seeds)

    def hang_up(self) -> None:
        if self.session is not None:
            self.used["call"] = max(self.used["call"], self.session.longest)
            self.used["output"] = self.session.printed_too_much or self.used.get("output", False)
            self.session.close("is over")
            self.session = None

    def step(self, number: int) -> Outcome:
        """The outcome of one step, in a fresh process where the last one is gone."""
        if time.monotonic() >= self.deadline:
            raise OutOfTime
        if self.session is None and not self.restart(number):
            return Outcome("lost", "was not run to its end")
        step = self.steps[number]
        outcome = self.take(step)
        if self.session.ended and self.may_be_anothers(step):
            self.hang_up()
            if self.restart(number):
                outcome = self.take(step)
        self.tested |= step.kind == "test"
        if self.session is not None and self.session.ended:
            self.fatal.add(number)
            self.trouble.append(self.tell(step))
            self.hang_up()
        return outcome

    def may_be_anothers(self, step: Step) -> bool:
        """Whether a process that ended in a step can have earned more for it than it has said.

        What a test called before may have ended it, or a case of this one whose predecessors'
        outcomes were still to be sent.
        """
        if step.kind == "test":
            return not self.session.careful or (self.tested and not self.session.stalled)
        return self.tested

    def take(self, step: Step) -> Outcome:
        """The outcome of one step in the present process."""
        return self.test(step) if step.kind == "test" else self.cell(step, self.limits.cell)

    def tell(self, step: Step) -> str:
        """A sentence on how the process ended that can be forwarded to the student."""
        why = self.session.ended
        if self.session.stalled:
            limit = self.limits.cell if step.kind != "test" else self.limits.call
            why = f"did not end within {limit:g} s and could not be interrupted"
        return f"{step.name} {why}"

    def restart(self, before: int) -> bool:
        """A fresh process in which the cells before have run, but for those that end it."""
        if self.restarts == RESTARTS:
            return False
        self.restarts += 1
        self.tested = False
        self.session = self.start()
        self.session.careful = True
        for number in range(before):
            step = self.steps[number]
            if step.kind != "test" and number not in self.fatal:
                late = self.outcomes[number].kind == "timeout"
                self.cell(step, REPLAY if late else self.limits.cell)
                if self.session.ended:
                    self.fatal.add(number)
                    self.hang_up()
                    return self.restart(before)
        return True

    def again(self, told: Callable[[int, Outcome], None]) -> None:
        """Cells that missed a name which a later cell defines get it now, as in a notebook.

        The tests that gave less than full marks are run again after them.
        """
        missed = [n for n, o in self.outcomes.items() if o.error == "NameError" and self.own(n)]
        if not missed or self.session is None:
            return
        helped = False
        for number in missed:
            outcome = self.step(number)
            helped |= outcome.kind == "none"
            self.outcomes[number] = outcome
        for number, step in enumerate(self.steps):
            if helped and step.kind == "test" and self.session is not None:
                second = self.step(number)
                if earns_more(second, self.outcomes[number]):
                    self.outcomes[number] = second
                    told(number, second)

    def own(self, number: int) -> bool:
        return self.steps[number].kind != "test"

    # --- steps ----------------------------------------------------------------------------------

    def cell(self, step: Step, limit: float) -> Outcome:
        """What comes of a cell in the submission's process."""
        try:
            with redirect_stdout(io.StringIO()):
                self.session.run_cell(step.name, step.source, limit)
        except (TimeUp, Ended) as problem:
            return self.failure(problem, self.limits.cell)
        except Exception as error:
            return self.failure(error, self.limits.cell)
        return Outcome("none")

    def test(self, step: Step) -> Outcome:
        """What comes of a test, run here with proxies for the submission's names."""
        with observe(self.seed) as verdicts:
            outcome = self.outcome(step)
        outcome.verdicts = [describe(verdict, step.grade_id) for verdict in verdicts]
        return outcome

    def outcome(self, step: Step) -> Outcome:
        printed = io.StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(io.StringIO()):
                left = max(self.deadline - time.monotonic(), 0.01)
                value = within(min(left, self.limits.cell), lambda: self.evaluate(step))
        except OutOfTime:
            raise
        except BaseException as error:  # a test cell may end as it likes, the others run
            if isinstance(error, TimeUp) and time.monotonic() >= self.deadline:
                raise OutOfTime from None
            return self.failure(error, self.limits.call)
        if value is None:
            return Outcome("none")
        if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
            with suppress(OverflowError):
                return Outcome("number", value=float(value))
        return Outcome("other", f"a value of type {type(value).__name__}")

    def evaluate(self, step: Step) -> Any:
        """The value of a test's last line where that is an expression, else None."""
        for source in self.desk.needed(step.grade_id, self.laid_out):
            self.bind(source)
            body, _ = compiled(source)
            exec(body, self.namespace)
        self.bind(step.source, step.grade_id)
        body, last = compiled(step.source)
        exec(body, self.namespace)
        return None if last is None else eval(last, self.namespace)

    def bind(self, source: str, grade_id: str = "") -> None:
        """Binds the names that a piece of the instructor's code takes from the submission."""
        own = self.namespace.keys() - self.borrowed
        wanted = [n for n in loads(source) if self.desk.is_students(n, grade_id, own)]
        for name in wanted:
            self.namespace.pop(name, None)
        if wanted:
            found = self.session.names(wanted)
            self.borrowed |= found.keys()
            self.namespace.update(found)

    def failure(self, error: BaseException, limit: float) -> Outcome:
        if isinstance(error, TimeUp):
            if not self.session.ended and self.session.midway:
                self.session.close("could not be interrupted")
            return Outcome("timeout", f"did not end within {limit:g} s")
        if isinstance(error, Ended | WireError):
            return Outcome("lost", f"was not run to its end: the submission {error}")
        return Outcome("error", text_of(error)[:MESSAGE], error=type(error).__name__)


def earns_more(a: Outcome, b: Outcome) -> bool:
    rank = {"none": 2, "number": 1}
    return (rank.get(a.kind, 0), a.value) > (rank.get(b.kind, 0), b.value)


def trusted_namespace() -> dict[str, Any]:
    """The names that the instructor's code starts with."""
    return {
        "__name__": "__main__",
        "__builtins__": builtins,
        "display": lambda *values, **options: None,
    }


def seed_all(seed: int) -> None:
    """Seeds the generators that a test may draw from."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(seed)  # the CPU's


def describe(verdict: Any, grade_id: str) -> dict[str, Any]:
    """What a report keeps of a verdict."""
    diagnosis = verdict.diagnosis
    failed = [c for c in verdict.criteria if not c.passed]
    names = ("name", "passed", "earned", "possible", "message")
    return {
        "cell": grade_id,
        "target": verdict.target,
        "passed": bool(verdict.passed),
        "earned": verdict.earned,
        "possible": verdict.possible,
        "criteria": [
            {name: shortened(getattr(c, name)) for name in names} for c in verdict.criteria
        ],
        "misconception": diagnosis.name if diagnosis else "",
        "explanation": diagnosis.explanation if diagnosis else "",
        "failed": [c.name for c in failed],
        "reason": shortened(last_line(failed[0].message) if failed else "", 500),
        "seed": verdict.seed,
        "text": shortened(str(verdict), 10_000),
    }


def last_line(text: str) -> str:
    return text.splitlines()[-1] if text else ""


def shortened(value: Any, limit: int = MESSAGE) -> Any:
    """A text that a submission may have made, cut and without control characters; others as is."""
    if not isinstance(value, str):
        return value
    value = CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)
    return value[:limit] + "…" if len(value) > limit else value


def text_of(error: BaseException) -> str:
    """An exception's class and message."""
    text = shortened(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
