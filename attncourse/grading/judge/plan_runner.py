"""Running one submission's plan: which steps, in which order, in which process."""

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace

from attncourse.grading.judge.budget import Budget
from attncourse.grading.judge.deferred_tests import SavedNames, is_disturbed
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.instructor_namespace import names_bound
from attncourse.grading.judge.outcomes import StepOutcome, earns_all, earns_more
from attncourse.grading.judge.process import Launch, Process
from attncourse.grading.judge.remote.conversation import OutOfTime
from attncourse.grading.judge.step_runner import Announce, StepRunner
from attncourse.grading.judge.worker.calls import seed_generators
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment
from attncourse.grading.submission.plan import Step

UNDEFINED_NAME = re.compile(r"name '(\w+)' is not defined")
LAST_MINUTE_SECONDS = 10.0  # and those of the cells, for deferred tests where the time is over

OnOutcome = Callable[[int, StepOutcome], None]


@dataclass(frozen=True)
class Means:
    """What each run of a plan needs; ``announce`` is called with each step and its time limit."""

    assignment: Assignment
    seed: int
    limits: Limits
    budget: Budget
    launch: Launch
    announce: Announce


class PlanRunner:
    """One run of a plan; ``on_outcome`` is called with each step's number and outcome.

    ``doubted`` are steps that did not end by themselves in an earlier run: each runs in a process
    in which no test has run.
    """

    def __init__(
        self,
        steps: list[Step],
        means: Means,
        on_outcome: OnOutcome = lambda number, outcome: None,
        doubted: Collection[int] = (),
    ):
        self.steps, self.means, self.on_outcome, self.doubted = steps, means, on_outcome, doubted
        self.runner = StepRunner(
            means.assignment, means.seed, means.limits, means.budget, means.announce
        )
        self.process = Process(steps, self.runner, means.launch, careful=bool(doubted))
        self.deferred = [n for n, step in enumerate(steps) if self.runner.is_deferred(step)]
        self.saved_names = SavedNames(self.runner)
        self.outcomes: dict[int, StepOutcome] = {}
        self.cut: set[int] = set()
        self.trouble: dict[int, str] = {}
        self.running = 0  # the step that runs, or ran last
        self.cells_took = 0.0  # seconds, the first time; 0 once they were granted again

    def run(self) -> Findings:
        """Run every step and return what was found."""
        # Tests draw their numbers here: a second run is to draw the same.
        seed_generators(self.means.seed)
        try:
            self.process.start_fresh()
            self.run_in_order()
            self.run_deferred_tests()
            self.rerun_with_later_names()
        except OutOfTime:
            self.cut.add(self.running)
            self.trouble[self.running] = self.overrun_sentence()
            self.run_last_minute_tests()
        finally:
            self.process.end_present()
        return Findings(
            steps=tuple(self.steps),
            outcomes=self.outcomes,
            seed=self.means.seed,
            cut=frozenset(self.cut),
            trouble=self.trouble,
            changed=tuple(self.runner.changed),
            longest=self.process.longest,
            flooded=self.means.limits.output if self.process.flooded else 0.0,
        )

    def run_step(self, number: int) -> StepOutcome:
        """Run one step, in a fresh process where the last one has ended; return its outcome.

        Raises ``OutOfTime`` once the submission's time is over.
        """
        self.running = number
        if not self.means.budget.left():
            raise OutOfTime
        # What was cut may have been an earlier test's doing: this time it gets a process without
        # one.
        if self.process.session is None or (self.process.tested and number in self.doubted):
            self.process.start_fresh()
        self.catch_up_to(number)
        outcome = self.process.run_step(number)
        if outcome.cut:
            self.cut.add(number)
        if self.runner.session.ended:
            self.trouble[number] = self.process.ending_in_words(self.steps[number])
            self.process.end_present()
        return outcome

    def catch_up_to(self, before: int) -> None:
        """Have the present process run those cells before a step that it has not run."""
        for number, outcome, ran_again in self.process.run_missing_cells(before):
            if outcome.cut:
                self.cut.add(number)
            if ran_again:
                self.outcomes[number] = outcome

    def keep_better_outcome(self, number: int, outcome: StepOutcome) -> None:
        """Keep a step's outcome if it is the first, or earns more than the one that is kept."""
        if number not in self.outcomes or earns_more(outcome, self.outcomes[number]):
            self.outcomes[number] = outcome
            self.on_outcome(number, outcome)

    # --- the parts of a run, in their order -----------------------------------------------------

    def run_in_order(self) -> None:
        """Run every step in its place, except for the deferred tests, for which names are saved."""
        for number, step in enumerate(self.steps):
            if number in self.deferred:
                self.saved_names.save(number)
                continue
            began = self.means.budget.seconds_used()
            self.outcomes[number] = self.run_step(number)
            if step.kind != "test":
                self.cells_took += self.means.budget.seconds_used() - began
            self.on_outcome(number, self.outcomes[number])

    def run_deferred_tests(self) -> None:
        """Run the deferred tests.

        Where a later cell may change what one of them needs, they run in a fresh process, each
        after the cells before it. What these cells raise a second time is not noted, and their time
        is not counted as the submission's, which could not know of it.
        """
        if is_disturbed(self.steps, self.deferred):
            self.process.end_present()
            self.grant_time()
        for number in self.deferred:
            self.run_deferred_test(number)

    def rerun_with_later_names(self) -> None:
        """Run once more the cells that missed a name which a later cell binds, as in a notebook.

        In a fresh process all cells run, and then again those that missed a name, with the later
        ones that bind the same names: what a notebook binds last stays. The tests that gave less
        than full marks run there, so that no test runs twice in one process.
        """
        missed = [n for n in self.process.cells if self.outcomes[n].error == "NameError"]
        if not any(self.is_bound_later(number) for number in missed):
            return
        self.process.repeated_cells = cells_to_run_again(self.steps, missed)
        self.process.start_fresh()
        self.catch_up_to(len(self.steps))
        if all(self.outcomes[number].kind != "none" for number in missed):
            return
        for number, step in enumerate(self.steps):
            on_time = step.kind == "test" and number not in self.deferred
            if on_time and not earns_all(self.outcomes[number]):
                self.keep_better_outcome(number, self.run_step(number))
        for number in self.deferred:
            self.run_deferred_test(number)

    def is_bound_later(self, number: int) -> bool:
        """True if a later cell binds the name that this step missed, or has an ``import *``."""
        undefined = UNDEFINED_NAME.search(self.outcomes[number].message)
        behind = (self.steps[n].source for n in self.process.cells if n > number)
        return undefined is not None and any(
            undefined[1] in names_bound(s) or "import *" in s for s in behind
        )

    def run_last_minute_tests(self) -> None:
        """Run the deferred tests that stand before the last step that ran, though the time is over.

        Those behind it had no turn before the time was over, and get none now.
        """
        reached = max([self.running, *self.outcomes])
        missing = [n for n in self.deferred if n < reached and n not in self.outcomes]
        self.process.end_present()
        self.grant_time(LAST_MINUTE_SECONDS * self.means.limits.stretch)
        with suppress(OutOfTime):
            for number in missing:
                self.run_deferred_test(number)

    # --- what they need -------------------------------------------------------------------------

    def run_deferred_test(self, number: int) -> None:
        """Run a deferred test with the names of its own place, unless it has full points by now."""
        if earns_all(self.outcomes.get(number)):
            return
        self.saved_names.restore(number)
        outcome = self.run_step(number)
        self.saved_names.keep_bound(number)
        self.keep_better_outcome(number, outcome)

    def grant_time(self, seconds: float = 0.0) -> None:
        """Add seconds to the submission's time; at the first call, those its cells took as well."""
        self.means.budget.extend(seconds + self.cells_took)
        self.cells_took = 0.0

    def overrun_sentence(self) -> str:
        """Return a sentence on what was running when the submission's time was over."""
        step, limits = self.steps[self.running], self.means.limits
        where = step.name if len(self.outcomes) < len(self.steps) else "the submission"
        sentence = f"{where} was running when the time for the submission was over"
        words = self.means.budget.in_words(limits.submission / limits.stretch)
        return sentence if self.running in self.deferred else f"{sentence} ({words})"


def run_steps_again(steps: list[Step], means: Means) -> Findings:
    """Run these steps in the time that a submission has left, and return what was found."""
    budget_left = Budget(means.budget.left())
    findings = PlanRunner(steps, replace(means, budget=budget_left)).run()
    means.budget.ended_seconds += budget_left.ended_seconds
    return findings


def cells_to_run_again(steps: list[Step], missed: list[int]) -> list[int]:
    """Return the numbers of cells that missed a name, and of later ones binding the same names."""
    bound = {n: names_bound(step.source) for n, step in enumerate(steps) if step.kind != "test"}
    return [n for n in bound if n in missed or any(m < n and bound[m] & bound[n] for m in missed)]
