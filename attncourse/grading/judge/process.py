"""The process that a submission's steps run in, and which of its cells that has had."""

from collections.abc import Callable, Iterator

from attncourse.grading.judge.budget import Budget
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.remote.conversation import UNINTERRUPTED
from attncourse.grading.judge.remote.session import Session
from attncourse.grading.judge.step_runner import StepRunner
from attncourse.grading.submission.plan import Step
from attncourse.support.alarm import Clock

REPLAY_SECONDS = 1.0  # for a cell that did not end, when it runs again in a fresh process

Launch = Callable[[Budget, bool], Session]


class Process:
    """One process after the other: where the last has ended, a fresh one runs the cells again.

    Cells that ended a process are not repeated. ``launch`` starts a process; ``careful`` says
    whether each case's outcome arrives before the next case starts.
    """

    def __init__(self, steps: list[Step], runner: StepRunner, launch: Launch, careful: bool):
        self.steps, self.runner, self.launch, self.careful = steps, runner, launch, careful
        self.cells = [n for n, step in enumerate(steps) if step.kind != "test"]
        self.repeated_cells: list[int] = []  # those that a process has once more, after all cells
        self.had_count = 0  # how many of both the present process has had
        self.tested = False  # whether a test has run in it
        self.endless: set[int] = set()  # cells that did not end in time
        self.fatal: set[int] = set()  # and those that ended their process
        self.longest = 0.0
        self.flooded = False

    @property
    def session(self) -> Session | None:
        """The talk with the present process; None between two processes."""
        return self.runner.present

    def begin(self) -> None:
        """End the present process, if there is one, and take a fresh one."""
        self.hang_up()
        self.had_count, self.tested = 0, False
        session = self.launch(self.runner.budget, self.runner.instructor.seeds)
        self.runner.present = session
        session.forbids, session.careful = self.runner.instructor.forbids, self.careful
        # Of the old process the budget keeps what it had used; the new one's time counts from here.
        self.runner.budget.moves_to(session.clock)

    def hang_up(self) -> None:
        """End the present process, if there is one."""
        if self.session is not None:
            self.longest = max(self.longest, self.session.longest)
            self.flooded |= self.session.printed_too_much
            self.runner.budget.moves_to(Clock())
            self.session.close("is over")
            self.runner.present = None

    def replay(self, before: int) -> Iterator[tuple[int, StepOutcome, bool]]:
        """Run the cells before a step that this process has not had.

        Yields each one's number, what came of it, and whether it is one of ``repeated_cells`` and
        did not end its process. Where there are ``repeated_cells`` (cells that missed a name which
        a later cell defines), all cells and then these run before any test.
        """
        order = [*self.cells, *self.repeated_cells]
        while self.had_count < len(order) and (
            self.repeated_cells or order[self.had_count] < before
        ):
            number, again = order[self.had_count], self.had_count >= len(self.cells)
            self.had_count += 1
            # It would end this process as well.
            if number in self.fatal:
                continue
            limits = self.runner.limits
            # It has shown that it does not end: the submission's time is for the other cells.
            limit = REPLAY_SECONDS * limits.stretch if number in self.endless else limits.cell
            outcome = self.runner.cell(self.steps[number], limit)
            if self.runner.session.ended:
                self.fatal.add(number)
                self.begin()
                again = False
            yield number, outcome, again

    def run(self, number: int) -> StepOutcome:
        """Run a step in this process, which has run all cells before it; return the outcome."""
        step = self.steps[number]
        if step.kind == "test":
            outcome = self.runner.test(step)
            self.tested = True
        else:
            outcome = self.runner.cell(step, self.runner.limits.cell)
            self.had_count += 1
            self.endless |= {number} if outcome.kind == "timeout" else set()
        self.fatal |= {number} if self.runner.session.ended else set()
        return outcome

    def last_words(self, step: Step) -> str:
        """Return a sentence on how it ended that can be forwarded to the student."""
        if self.runner.is_deferred(step):
            return f"{step.name} could not be run to its end"
        session = self.runner.session
        if session.ended == UNINTERRUPTED:
            return f"{step.name} did not end within {session.in_words()} and {UNINTERRUPTED}"
        used = session.clock.used()
        return f"{step.name} {session.ended} (after {used:.1f} s of processor time)"
