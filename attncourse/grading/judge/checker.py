"""Grading one submission: its cells run in its process, the instructor's tests run here."""

import builtins
import numbers
import os
import re
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attncourse.alarm import Clock, Stopwatch, TimeUp, within
from attncourse.checks import observe
from attncourse.grading.judge.desk import binds, desk_for, disturbed, loads
from attncourse.grading.judge.guard import compiled, guards
from attncourse.grading.judge.remote.conversation import DEAF, GRACE, Ended, OutOfTime
from attncourse.grading.judge.remote.session import Session
from attncourse.grading.judge.sentence import NOWHERE, Said, said_of
from attncourse.grading.judge.wire.decoding import known_name
from attncourse.grading.judge.wire.frames import WireError
from attncourse.grading.judge.worker.calls import seed
from attncourse.grading.judge.worker.notebook_shell import Printed
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment
from attncourse.grading.submission.plan import Step
from attncourse.grading.submission.source import shorten

# Terminals obey them, and the direction marks among them turn text around.
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
RESTARTS = 20
REPLAY = 1.0  # seconds for a cell that did not end, when it runs again in a fresh process
MESSAGE = 2000  # characters of an error's text that are worth keeping
LAST_MINUTE = 10.0  # seconds, and those of the cells, for late tests where the time is over
NOTHING = object()
TEST = "<test>"  # what a traceback calls the test that runs

Launch = Callable[[Stopwatch, bool], Session]
Begins = Callable[[str, float], None]


@dataclass
class StepOutcome:
    """What came of a step. ``kind``: "number", "none", "other", "error", "timeout" or "lost"."""

    kind: str
    message: str = ""
    value: float = 0.0
    error: str = ""  # the exception's class, or the library's above one of the submission's own
    hidden: bool = False  # whether the submission may have seen a hidden test
    said: Said = NOWHERE  # by the instructor's assertion where the test failed
    verdicts: list[dict[str, Any]] = field(default_factory=list)


Heard = Callable[[int, StepOutcome], None]


class Checker:
    """One run of a plan. ``launch`` starts a fresh process for the submission."""

    def __init__(self, steps: list[Step], assignment: Assignment, seed: int, limits: Limits):
        self.steps = steps
        self.desk = desk_for(assignment)
        self.seed = seed
        self.limits = limits
        self.outcomes: dict[int, StepOutcome] = {}
        self.fatal: set[int] = set()
        self.trouble: list[str] = []
        self.session: Session | None = None
        self.restarts = 0
        self.tested = False  # whether a test has run in the present process
        self.at = 0  # the present step
        self.order = list(range(len(steps)))  # in which a process has the steps' cells
        self.reached = 0  # how many of these the present process has had
        self.took = 0.0  # seconds of processor time for the cells, the first time
        self.granted = 0.0  # seconds beyond the limit, to run them again
        self.changed: list[tuple[str, str]] = []  # tests, and who changed what they did not ask for
        self.aside: dict[int, tuple[dict, set]] = {}  # late tests: what there was in their places
        self.left: dict[int, dict[str, Any]] = {}  # what late tests have bound
        self.namespace = trusted_namespace() | guards(self.gave_empty)
        self.borrowed: set[str] = set()  # names that were taken from the submission
        self.bound_in: Session | None = None  # the process whose objects these stand for
        self.laid_out: set[int] = set()
        self.used: dict[str, Any] = {"call": 0.0}
        self.gone = 0.0  # processor time of the submission's processes that are no more
        self.kept = 0.0  # and the time for which others kept the processor from them
        self.here = Clock(os.getpid())
        self.whole = self.watch(limits.submission)
        self.starved = False  # whether something ran out of time that had little of the processor

    def spent(self) -> float:
        """Seconds of processor time, here and in the submission's processes."""
        now = 0.0 if self.session is None else self.session.clock.used()
        return time.process_time() + self.gone + now

    def queued(self) -> float:
        """Seconds for which others have kept the processor from these."""
        now = 0.0 if self.session is None else self.session.clock.queued()
        return self.here.queued() + self.kept + now

    def watch(self, seconds: float) -> Stopwatch:
        """Measures what is done here and in the submission's processes."""
        return Stopwatch(seconds, self.spent, self.queued)

    def run(self, launch: Launch, heard: Heard, begins: Begins) -> None:
        """Runs every step; ``heard`` is called with each outcome as it comes.

        ``begins`` hears what is begun, and how many seconds of processor time it has.
        """
        self.launch, self.begins = launch, begins
        seed(self.seed)
        try:
            self.session = self.start()
            for number, step in enumerate(self.steps):
                if self.is_late(step):
                    self.aside[number] = dict(self.namespace), set(self.laid_out)
                    continue
                began = self.spent()
                self.outcomes[number] = self.step(number)
                if self.own(number):
                    self.took += self.spent() - began
                heard(number, self.outcomes[number])
            self.last(heard)
            self.again(heard)
        except OutOfTime:
            where = self.steps[self.at].name if self.outcomes_missing() else ""
            self.starved |= self.whole.starved()
            self.trouble.append(
                f"{where or 'the submission'} was running when the time for the submission "
                f"was over ({self.in_words(self.whole, self.limits.submission)})"
            )
            self.last_minute(heard)
        finally:
            self.hang_up()

    def outcomes_missing(self) -> bool:
        return len(self.outcomes) < len(self.steps)

    def start(self) -> Session:
        session = self.launch(self.whole, self.desk.seeds)
        session.forbids = self.desk.forbids
        return session

    def hang_up(self) -> None:
        if self.session is not None:
            self.used["call"] = max(self.used["call"], self.session.longest)
            self.used["output"] = self.session.printed_too_much or self.used.get("output", False)
            self.gone += self.session.clock.used()
            self.kept += self.session.clock.queued()
            self.session.close("is over")
            self.session = None

    def step(self, number: int) -> StepOutcome:
        """The outcome of one step, in a fresh process where the last one is gone."""
        self.at = number
        if not self.whole.left():
            raise OutOfTime
        if not (self.restart(number) if self.session is None else self.catch_up(number)):
            return StepOutcome("lost", "was not run to its end")
        self.reached = max(self.reached, number + 1)
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

    def is_late(self, step: Step) -> bool:
        return step.kind == "test" and step.grade_id in self.desk.late

    def gave_empty(self) -> bool:
        return self.session is not None and self.session.gave_empty

    def may_be_anothers(self, step: Step) -> bool:
        """Whether a process that ended in a step can have earned more for it than it has said.

        What a test called before may have ended it, or a case of this one whose predecessors'
        outcomes were still to be sent.
        """
        if step.kind == "test":
            return not self.session.careful or self.tested
        return self.tested

    def take(self, step: Step) -> StepOutcome:
        """The outcome of one step in the present process."""
        return self.test(step) if step.kind == "test" else self.cell(step, self.limits.cell)

    def tell(self, step: Step) -> str:
        """A sentence on how the process ended that can be forwarded to the student."""
        if self.is_late(step):
            return f"{step.name} could not be run to its end"
        why = self.session.ended
        if why == DEAF:
            limits = self.limits
            limit = min(limits.cell, limits.call) if step.kind == "test" else limits.cell
            why = f"did not end within {self.in_words(self.session.watch, limit)} and {DEAF}"
        return f"{step.name} {why}"

    def in_words(self, watch: Stopwatch, limit: float) -> str:
        """A limit that was up, in words: as it was set, for a machine of the usual speed."""
        return watch.in_words(limit / self.limits.stretch)

    def restart(self, before: int) -> bool:
        """A fresh process in which the cells before have run, but for those that end it."""
        if self.restarts == RESTARTS:
            return False
        self.restarts += 1
        self.tested = False
        self.reached = 0
        self.session = self.start()
        self.session.careful = True
        return self.catch_up(before)

    def catch_up(self, before: int) -> bool:
        """Runs the cells before a step that this process has not had, but for such as end it.

        Where cells run a second time, each test comes after all of them.
        """
        before = before if len(self.order) == len(self.steps) else len(self.order)
        for place in range(self.reached, before):
            number = self.order[place]
            step = self.steps[number]
            if step.kind != "test" and number not in self.fatal:
                late = self.outcomes[number].kind == "timeout"
                outcome = self.cell(step, REPLAY if late else self.limits.cell)
                if self.session.ended:
                    self.fatal.add(number)
                    self.hang_up()
                    return self.restart(before)
                if place >= len(self.steps):
                    self.outcomes[number] = outcome
        self.reached = max(self.reached, before)
        return True

    def again(self, heard: Heard) -> None:
        """Cells that missed a name which a later cell defines get it now, as in a notebook.

        In a fresh process all cells run, and then once more those that missed a name, with the
        later ones that bind the same names: what a notebook binds last stays. The tests that gave
        less than full marks are run there, so that nobody is asked twice in one process.
        """
        missed = [n for n, o in self.outcomes.items() if o.error == "NameError" and self.own(n)]
        if not missed:
            return
        self.order += mended_order(self.steps, missed)
        self.run_anew()
        if not self.restart(len(self.steps)):
            return
        if all(self.outcomes[number].kind != "none" for number in missed):
            return
        for number in list(self.outcomes):
            known = self.own(number) or self.is_late(self.steps[number])
            if not known and not earns_all(self.outcomes[number]):
                second = self.step(number)
                if earns_more(second, self.outcomes[number]):
                    self.outcomes[number] = second
                    heard(number, second)
        for number in self.aside:
            self.run_late(number, heard)

    def run_anew(self) -> None:
        """Gives up the present process; the next one's time for the same cells is ours."""
        self.hang_up()
        self.granted += self.took
        self.whole.extend(self.took)

    def own(self, number: int) -> bool:
        return self.steps[number].kind != "test"

    def last(self, heard: Heard) -> None:
        """Runs the tests that were left for last.

        Where a later cell changes what one of them relies on, they run in a fresh process, each
        after the cells before it. Nothing that those cells say a second time is listened to.
        """
        if disturbed(self.steps, list(self.aside)):
            self.run_anew()
        for number in self.aside:
            self.run_late(number, heard)

    def last_minute(self, heard: Heard) -> None:
        """Runs those whose places were before the step at which the time was over."""
        come_to = max(self.at, *self.outcomes, 0)
        missing = [n for n in self.aside if n < come_to and n not in self.outcomes]
        self.hang_up()
        self.whole = self.watch(LAST_MINUTE + self.took)
        with suppress(OutOfTime):
            for number in missing:
                self.run_late(number, heard)

    def run_late(self, number: int, heard: Heard) -> None:
        """Runs a test that was left for last, unless that has brought all there is."""
        if earns_all(self.outcomes.get(number)):
            return
        self.lay_out(number)
        outcome = self.step(number)
        before = self.aside[number][0]
        changed = [n for n, v in self.namespace.items() if before.get(n, NOTHING) is not v]
        self.left[number] = {name: self.namespace[name] for name in changed}
        if number not in self.outcomes or earns_more(outcome, self.outcomes[number]):
            self.outcomes[number] = outcome
            heard(number, outcome)

    def lay_out(self, number: int) -> None:
        """Makes the trusted names what they were in a late test's place.

        What late tests before it have bound is there as well, but for what was bound anew.
        """
        names, self.laid_out = dict(self.aside[number][0]), set(self.aside[number][1])
        for earlier, bound in self.left.items():
            before = self.aside[earlier][0]
            names |= {
                name: value
                for name, value in bound.items()
                if names.get(name, NOTHING) is before.get(name, NOTHING) and earlier < number
            }
        self.namespace.clear()  # the same dict: it is the globals of the instructor's functions
        self.namespace.update(names)

    # --- steps ----------------------------------------------------------------------------------

    def cell(self, step: Step, limit: float) -> StepOutcome:
        """What comes of a cell in the submission's process."""
        self.begins(step.name, limit)
        try:
            with redirect_stdout(Printed(0)):
                self.session.run_cell(step.name, step.source, limit)
        except (TimeUp, Ended) as problem:
            return self.failure(problem, self.limits.cell)
        except Exception as error:
            outcome = self.failure(error, self.limits.cell)
            if lines := getattr(error, "attncourse_skipped", ()):
                outcome.message = f"{first_line(outcome.message)} ({went_on(lines)})"
            return outcome
        return StepOutcome("none")

    def test(self, step: Step) -> StepOutcome:
        """What comes of a test, run here with proxies for the submission's names."""
        self.session.gave_empty = False
        self.session.unasked.clear()
        self.begins(step.name, self.limits.cell)
        with observe(self.seed) as verdicts:
            outcome = self.outcome(step)
        self.session.lent.end()
        outcome.hidden = self.is_late(step)
        outcome.verdicts = [describe(v, step.grade_id, outcome.hidden) for v in verdicts]
        if self.session.unasked:
            who = "an answer" if outcome.hidden else ", ".join(sorted(self.session.unasked))
            self.changed.append((step.name, who))
        return outcome

    def outcome(self, step: Step) -> StepOutcome:
        left = max(self.limits.submission - self.whole.worked(), 0.01)
        # One call may take as long as the test. Its own process is the one to stop it, and then
        # goes on: so this clock always rings later, and not by chance first.
        longest = self.limits.cell + GRACE
        watch = self.watch(min(left, longest))
        try:
            with redirect_stdout(Printed(0)), redirect_stderr(Printed(0)):
                value = within(watch, lambda: self.evaluate(step))
        except OutOfTime:
            raise
        except BaseException as error:  # a test cell may end as it likes, the others run
            over = not self.whole.left() or (left <= longest and not watch.left())
            if isinstance(error, TimeUp) and over:
                raise OutOfTime from None
            late = {} if watch.left() else {"watch": watch}
            outcome = self.failure(error, self.limits.cell if late else self.limits.call, **late)
            if outcome.kind == "error":
                outcome.said = said_of(error, step.source, TEST)
            return outcome
        if value is None:
            return StepOutcome("none")
        if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
            with suppress(OverflowError):
                return StepOutcome("number", value=float(value))
        return StepOutcome("other", f"a value of type {type(value).__name__}")

    def evaluate(self, step: Step) -> Any:
        """The value of a test's last line where that is an expression, else None."""
        for source in self.desk.needed(step.grade_id, self.laid_out):
            self.bind(source)
            body, _ = compiled(source, self.desk.foreign(source))
            exec(body, self.namespace)
        self.bind(step.source, step.grade_id)
        body, last = compiled(step.source, self.desk.foreign(step.source, step.grade_id), TEST)
        exec(body, self.namespace)
        return None if last is None else eval(last, self.namespace)

    def bind(self, source: str, grade_id: str = "") -> None:
        """Binds the names that a piece of the instructor's code takes from the submission."""
        own = self.namespace.keys() - self.borrowed
        wanted = [n for n in loads(source) if self.desk.is_students(n, grade_id, own)]
        wanted += self.stale()
        for name in wanted:
            self.namespace.pop(name, None)
        if wanted:
            found = self.session.names(wanted)
            self.borrowed |= found.keys()
            self.namespace.update(found)

    def stale(self) -> list[str]:
        """Names that an instructor's function may use, of objects in a process that is no more."""
        if self.bound_in is self.session:
            return []
        self.bound_in = self.session
        there = {name: self.namespace[name] for name in self.borrowed & self.namespace.keys()}
        return [name for name, v in there.items() if hasattr(type(v), "attncourse_handle")]

    def failure(
        self, error: BaseException, limit: float, watch: Stopwatch | None = None
    ) -> StepOutcome:
        """What a step comes to that raised this; the limit is that of ``watch``, or of the last
        request."""
        if isinstance(error, TimeUp):
            if not self.session.ended and self.session.midway:
                self.session.close(DEAF)
            if watch is None:
                watch = self.session.watch
                self.session.longest = max(self.session.longest, limit)
            self.starved |= watch.starved()
            return StepOutcome("timeout", f"did not end within {self.in_words(watch, limit)}")
        if isinstance(error, Ended | WireError):
            return StepOutcome("lost", f"was not run to its end: the submission {error}")
        return StepOutcome("error", text_of(error)[:MESSAGE], error=known_name(type(error)))


def mended_order(steps: list[Step], missed: list[int]) -> list[int]:
    """The cells that missed a name, and those behind one of them that bind the same names."""
    bound = {n: binds(step.source) for n, step in enumerate(steps) if step.kind != "test"}
    return [n for n in bound if n in missed or any(m < n and bound[m] & bound[n] for m in missed)]


def earns_all(outcome: StepOutcome | None) -> bool:
    return outcome is not None and outcome.kind == "none"


def earns_more(a: StepOutcome, b: StepOutcome) -> bool:
    rank = {"none": 2, "number": 1}
    return (rank.get(a.kind, 0), a.value) > (rank.get(b.kind, 0), b.value)


def trusted_namespace() -> dict[str, Any]:
    """The names that the instructor's code starts with."""
    return {
        "__name__": "__main__",
        "__builtins__": builtins,
        "display": lambda *values, **options: None,
    }


def went_on(lines: list[str]) -> str:
    """What was left out of a cell whose definitions ran all the same."""
    shown = ", ".join(f"`{shorten(shortened(line))}`" for line in lines)
    return f"skipped: {shown}; the definitions below it were run"


def first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def describe(verdict: Any, grade_id: str, silent: bool = False) -> dict[str, Any]:
    """What a report keeps of a verdict; of a ``silent`` one no words."""
    if silent:
        criteria = tuple(replace(c, message="", brief="") for c in verdict.criteria)
        verdict = replace(
            verdict, criteria=criteria, diagnosis=None, symptom="", rest="", example="", guide=""
        )
    diagnosis = verdict.diagnosis
    failed = [] if silent else [c for c in verdict.criteria if not c.passed]
    names = ("name", "passed", "earned", "possible", "message", "brief")
    return {
        "cell": grade_id,
        "target": verdict.target,
        "variant": verdict.variant,
        "passed": bool(verdict.passed),
        "earned": verdict.earned,
        "possible": verdict.possible,
        "criteria": [
            {name: shortened(getattr(c, name)) for name in names} for c in verdict.criteria
        ],
        "misconception": diagnosis.name if diagnosis else "",
        "explanation": diagnosis.explanation if diagnosis else "",
        "symptom": shortened(verdict.symptom, 500),
        "rest": shortened(verdict.rest, 500),
        "worth": verdict.worth,
        "failed": [c.name for c in failed],
        "reason": shortened(verdict.reason, 500),
        "unwritten": verdict.unwritten,
        "section": verdict.section,
        "read": verdict.read,
        "guide": verdict.guide,
        "given": list(verdict.given),
        "seed": verdict.seed,
        "text": "" if silent else shortened(str(verdict), 10_000),
    }


def shortened(value: Any, limit: int = MESSAGE) -> Any:
    """A text that a submission may have made, cut and without control characters; others as is."""
    if not isinstance(value, str):
        return value
    kept = CONTROL.sub("\N{REPLACEMENT CHARACTER}", value[:limit])
    return kept + "…" if len(value) > limit else kept


def text_of(error: BaseException) -> str:
    """An exception's class and message; nobody can show some whole numbers."""
    text = ""
    with suppress(Exception):
        text = shortened(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
