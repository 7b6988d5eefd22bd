"""The present process of a submission, and which of the cells that process has run."""

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
    """The processes of a submission, one at a time: a fresh one runs the cells of the last again.

    Cells that ended a process are not repeated. ``launch`` starts a process. With ``careful``, each
    case's outcome arrives before the next case starts, so that it is known which one ended a
    process.
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
        """Return the session with the present process; None between two processes."""
        return self.runner.present

    def start_fresh(self) -> None:
        """End the present process, if there is one, and start a fresh one that has run no cell."""
        self.end_present()
        self.had_count, self.tested = 0, False
        session = self.launch(self.runner.budget, self.runner.instructor.seeds)
        self.runner.present = session
        session.forbids, session.careful = self.runner.instructor.forbids, self.careful
        # Of the old process the budget keeps what it had used; the new one's time counts from here.
        self.runner.budget.count_process(session.clock)

    def end_present(self) -> None:
        """End the present process, if there is one."""
        if self.session is not None:
            self.longest = max(self.longest, self.session.longest)
            self.flooded |= self.session.printed_too_much
            self.runner.budget.count_process(Clock())
            self.session.close("is over")
            self.runner.present = None

    def run_missing_cells(self, before: int) -> Iterator[tuple[int, StepOutcome, bool]]:
        """Run the cells before a step that the present process has not run.

        Yields each cell's number, its outcome, and whether it ran again as one of
        ``repeated_cells``, without ending its process. If there are ``repeated_cells`` (cells that
        missed a name which a later cell binds), all cells and then these run, whichever step is
        next.
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
            outcome = self.runner.run_cell(self.steps[number], limit)
            if self.runner.session.ended:
                self.fatal.add(number)
                self.start_fresh()
                again = False
            yield number, outcome, again

    def run_step(self, number: int) -> StepOutcome:
        """Run a step in the present process, which has run the cells before; return its outcome."""
        step = self.steps[number]
        if step.kind == "test":
            outcome = self.runner.run_test(step)
            self.tested = True
        else:
            outcome = self.runner.run_cell(step, self.runner.limits.cell)
            self.had_count += 1
            if outcome.kind == "timeout":
                self.endless.add(number)
        if self.runner.session.ended:
            self.fatal.add(number)
        return outcome

    def ending_in_words(self, step: Step) -> str:
        """Return a sentence on how the process ended in this step, for the student to read."""
        if self.runner.is_deferred(step):
            return f"{step.name} could not be run to its end"
        session = self.runner.session
        if session.ended == UNINTERRUPTED:
            limit = session.time_limit_in_words()
            return f"{step.name} did not end within {limit} and {UNINTERRUPTED}"
        used = session.clock.used()
        return f"{step.name} {session.ended} (after {used:.1f} s of processor time)"
