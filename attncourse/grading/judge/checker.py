"""Grading one submission: which of its steps run, in which order, in which process."""

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from attncourse.alarm import Stopwatch
from attncourse.grading.judge.desk import binds
from attncourse.grading.judge.late import disturbed
from attncourse.grading.judge.outcomes import StepOutcome, earns_all, earns_more
from attncourse.grading.judge.remote.conversation import DEAF, OutOfTime
from attncourse.grading.judge.remote.session import Session
from attncourse.grading.judge.trial import Begins, Trial
from attncourse.grading.judge.worker.calls import seed
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment
from attncourse.grading.submission.plan import Step

REPLAY = 1.0  # seconds for a cell that did not end, when it runs again in a fresh process
LAST_MINUTE = 10.0  # seconds, and those of the cells, for late tests where the time is over
NOTHING = object()

Launch = Callable[[Stopwatch, bool], Session]
Heard = Callable[[int, StepOutcome], None]


class Checker(Trial):
    """One run of a plan. ``launch`` starts a fresh process for the submission.

    ``first`` are the outcomes of a run before it, and ``doubted`` the steps that did not end by
    themselves there: these have a process of their own now, and what comes of this run is final.
    """

    def __init__(
        self,
        steps: list[Step],
        assignment: Assignment,
        seed: int,
        limits: Limits,
        first: dict[int, StepOutcome] | None = None,
        doubted: Collection[int] = (),
    ):
        super().__init__(assignment, seed, limits)
        self.steps = steps
        self.first = first or {}
        self.doubted = set(doubted)
        self.cut: set[int] = set()  # steps that did not end by themselves
        self.outcomes: dict[int, StepOutcome] = {}
        self.fatal: set[int] = set()
        self.trouble: dict[int, str] = {}
        self.tested = False  # whether a test has run in the present process
        self.at = 0  # the present step
        self.order = list(range(len(steps)))  # in which a process has the steps' cells
        self.reached = 0  # how many of these the present process has had
        self.took = 0.0  # seconds of processor time for the cells, the first time
        self.aside: dict[int, tuple[dict, set]] = {}  # late tests: what there was in their places
        self.left: dict[int, dict[str, Any]] = {}  # what late tests have bound
        self.used: dict[str, Any] = {"call": 0.0}

    def run(self, launch: Launch, heard: Heard, begins: Begins) -> None:
        """Runs every step; ``heard`` is called with each outcome as it comes.

        ``begins`` hears what is begun, and how many seconds of processor time it has.
        """
        self.launch, self.begins = launch, begins
        seed(self.seed)
        try:
            self.restart()
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
            self.cut.add(self.at)
            step = self.steps[self.at]
            where = step.name if self.outcomes_missing() else "the submission"
            words = self.whole.in_words(self.limits.submission / self.limits.stretch)
            told = f"{where} was running when the time for the submission was over"
            self.trouble[self.at] = told if self.is_late(step) else f"{told} ({words})"
            self.last_minute(heard)
        finally:
            self.hang_up()
        self.agree()

    def agree(self) -> None:
        """Takes over what the first run is to be believed in.

        What came before the first thing that was cut there is final, and nobody draws twice. From
        there on this run counts; but where it was cut itself, the better one does, and so it does
        behind what was cut here alone.
        """
        doubtful = min(self.cut - self.doubted, default=len(self.steps))
        for number, before in self.first.items():
            now = self.outcomes.get(number, StepOutcome("lost"))
            either = number >= doubtful or number in self.cut
            if number < min(self.doubted) or (either and earns_more(before, now)):
                self.outcomes[number] = before
        if self.doubted:
            self.trouble = {n: told for n, told in self.trouble.items() if n in self.doubted}

    def outcomes_missing(self) -> bool:
        return len(self.outcomes) < len(self.steps)

    def hang_up(self) -> None:
        if self.session is not None:
            self.used["call"] = max(self.used["call"], self.session.longest)
            self.used["output"] = self.session.printed_too_much or self.used.get("output", False)
            self.gone += self.session.clock.used()
            self.session.close("is over")
            self.session = None

    def step(self, number: int) -> StepOutcome:
        """The outcome of one step, in a fresh process where the last one is gone."""
        self.at = number
        if not self.whole.left():
            raise OutOfTime
        if self.session is None or (self.tested and number in self.doubted):
            self.restart()
        self.catch_up(number)
        self.reached = max(self.reached, number + 1)
        step = self.steps[number]
        own = self.own(number)
        outcome = self.cell(step, self.limits.cell) if own else self.test(step)
        self.tested |= not own
        if outcome.cut:
            self.cut.add(number)
        if self.session.ended:
            self.fatal.add(number)
            self.trouble[number] = self.tell(step)
            self.hang_up()
        return outcome

    def tell(self, step: Step) -> str:
        """A sentence on how the process ended that can be forwarded to the student."""
        if self.is_late(step):
            return f"{step.name} could not be run to its end"
        if self.session.ended == DEAF:
            return f"{step.name} did not end within {self.session.in_words()} and {DEAF}"
        used = self.session.clock.used()
        return f"{step.name} {self.session.ended} (after {used:.1f} s of processor time)"

    def restart(self) -> None:
        """Begins a fresh process."""
        self.hang_up()
        self.tested = False
        self.reached = 0
        self.session = self.launch(self.whole, self.desk.seeds)
        self.session.forbids = self.desk.forbids
        self.session.careful = bool(self.doubted)

    def catch_up(self, before: int) -> None:
        """Runs the cells before a step that this process has not had, but for such as end it.

        Where cells run a second time, each test comes after all of them.
        """
        before = before if len(self.order) == len(self.steps) else len(self.order)
        while self.reached < before:
            number, again = self.order[self.reached], self.reached >= len(self.steps)
            self.reached += 1
            if not self.own(number) or number in self.fatal:
                continue
            late = self.outcomes[number].kind == "timeout"
            outcome = self.cell(self.steps[number], REPLAY if late else self.limits.cell)
            if outcome.cut:
                self.cut.add(number)
            if self.session.ended:
                self.fatal.add(number)
                self.restart()
            elif again:
                self.outcomes[number] = outcome

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
        self.restart()
        self.catch_up(len(self.steps))
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

    def own(self, number: int) -> bool:
        return self.steps[number].kind != "test"

    def last(self, heard: Heard) -> None:
        """Runs the tests that were left for last.

        Where a later cell changes what one of them relies on, they run in a fresh process, each
        after the cells before it. Nothing that those cells say a second time is listened to, and
        their time is not the submission's: it could not know.
        """
        if disturbed(self.steps, list(self.aside)):
            self.hang_up()
            self.grant()
        for number in self.aside:
            self.run_late(number, heard)

    def last_minute(self, heard: Heard) -> None:
        """Runs those whose places were before the step at which the time was over."""
        come_to = max(self.at, *self.outcomes, 0)
        missing = [n for n in self.aside if n < come_to and n not in self.outcomes]
        self.hang_up()
        self.grant(LAST_MINUTE)
        with suppress(OutOfTime):
            for number in missing:
                self.run_late(number, heard)

    def grant(self, seconds: float = 0.0) -> None:
        """Allows the time for running the cells once more, once."""
        self.whole.extend(seconds + self.took)
        self.took = 0.0

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


def mended_order(steps: list[Step], missed: list[int]) -> list[int]:
    """The cells that missed a name, and those behind one of them that bind the same names."""
    bound = {n: binds(step.source) for n, step in enumerate(steps) if step.kind != "test"}
    return [n for n in bound if n in missed or any(m < n and bound[m] & bound[n] for m in missed)]
