"""Running one step of a plan: a cell in the submission's process, a test here."""

import builtins
import numbers
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any

import numpy as np

from attncourse.checks import observe
from attncourse.checks.reading.cells import skipped_lines_note
from attncourse.checks.trying.trials import NoReference
from attncourse.grading.judge.assertion_message import assertion_message_of
from attncourse.grading.judge.budget import Budget
from attncourse.grading.judge.guard import compile_cell, guard_functions
from attncourse.grading.judge.instructor_namespace import instructor_namespace_for, names_loaded
from attncourse.grading.judge.outcomes import (
    MAX_MESSAGE_CHARS,
    StepOutcome,
    describe_verdict,
    error_in_words,
    shortened_value,
)
from attncourse.grading.judge.remote.conversation import UNINTERRUPTED, Ended, OutOfTime
from attncourse.grading.judge.remote.session import Session
from attncourse.grading.judge.wire.decoding import known_name
from attncourse.grading.judge.wire.frames import WireError
from attncourse.grading.judge.worker.notebook_shell import Printed
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment
from attncourse.grading.submission.plan import Step
from attncourse.support.alarm import Stopwatch, TimeUp, within

TEST = "<test>"  # what a traceback calls the test that runs

Announce = Callable[[str, float], None]


class StepRunner:
    """Runs steps, one at a time, with ``session``, that of the present process.

    The names that tests see are kept here. ``announce`` is called with what begins and how many
    seconds of processor time it may take.
    """

    def __init__(
        self, assignment: Assignment, seed: int, limits: Limits, budget: Budget, announce: Announce
    ):
        self.instructor = instructor_namespace_for(assignment)
        self.seed, self.limits, self.budget, self.announce = seed, limits, budget, announce
        self.present: Session | None = None
        self.changed: list[tuple[str, str]] = []  # tests, and who changed what they did not ask for
        names = {"__name__": "__main__", "__builtins__": builtins, "display": lambda *_, **__: None}
        self.namespace = names | guard_functions(self.gave_empty)
        self.borrowed: set[str] = set()  # names that were taken from the submission
        self.bound_in: Session | None = None  # the session with the process of their objects
        self.laid_out: set[int] = set()  # given cells that have run here

    @property
    def session(self) -> Session:
        """Return the session with the present process; raises ``Ended`` if there is none."""
        if self.present is None:
            raise Ended("is not there")
        return self.present

    def run_cell(self, step: Step, limit: float) -> StepOutcome:
        """Run a cell in the submission's process, its output dropped; return its outcome."""
        self.announce(step.name, limit)
        try:
            with redirect_stdout(Printed(0)):
                self.session.run_cell(step.name, step.source, limit)
        except (TimeUp, Ended) as problem:
            return self.outcome_of_error(problem)
        except Exception as error:
            outcome = self.outcome_of_error(error)
            if lines := getattr(error, "attncourse_skipped", ()):
                first = outcome.message.partition("\n")[0]
                outcome.message = f"{first} ({skipped_lines_note(map(shortened_value, lines))})"
            return outcome
        return StepOutcome("none")

    def run_test(self, step: Step) -> StepOutcome:
        """Run a test here, with proxies for the submission's names; return its outcome."""
        self.session.gave_empty, self.session.overdue = False, ""
        self.session.unasked.clear()
        self.announce(step.name, self.limits.cell)
        with observe(self.seed) as verdicts:
            outcome = self.run_test_in_time(step)
        # What the test handed over computes with what the test knows: see ``remote/lent.py``.
        self.session.lent_functions.release_since()
        if not outcome.cut:  # a test may catch what a call raises, and a check does
            ended = self.session.ended and f"the submission {self.session.ended}"
            outcome.cut = self.session.overdue or ended
        outcome.hidden = self.is_deferred(step)
        outcome.verdicts = [describe_verdict(v, step.grade_id, outcome.hidden) for v in verdicts]
        if self.session.unasked:
            answers = "an answer" if outcome.hidden else ", ".join(sorted(self.session.unasked))
            self.changed.append((step.name, answers))
        return outcome

    def run_test_in_time(self, step: Step) -> StepOutcome:
        """Run a test within its own time and the submission's; return what came of it.

        The outcome is without verdicts. Raises ``OutOfTime`` once the submission's time is over.
        """
        # One call may take as long as the test. Its own process is the one to stop it, and then
        # goes on: so this clock always rings later, and not by chance first.
        longest = Stopwatch(self.limits.cell + self.limits.grace, self.budget.seconds_used)
        watch = min(longest, self.budget, key=Stopwatch.left)
        try:
            # Nobody reads what a test prints; the test itself may, with a redirection inside of
            # this one.
            with redirect_stdout(Printed(0)), redirect_stderr(Printed(0)):
                value = within(watch, lambda: self.evaluate_test(step))
        except OutOfTime:
            raise
        except BaseException as error:  # a test cell may end as it likes, the others run
            # By the clock that rang: the work of this very line may give it a little more.
            if isinstance(error, TimeUp) and (watch is self.budget or not self.budget.left()):
                raise OutOfTime from None
            outcome = self.outcome_of_error(error, None if longest.left() else longest)
            if outcome.kind == "error":
                outcome.assertion = assertion_message_of(error, step.source, TEST)
            return outcome
        if value is None:
            return StepOutcome("none")
        if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
            with suppress(OverflowError):
                return StepOutcome("number", value=float(value))
        return StepOutcome("other", f"a value of type {type(value).__name__}")

    def evaluate_test(self, step: Step) -> Any:
        """Run a test, after the given cells that it needs; return the value of its last line.

        That is None where the last line is no expression.
        """
        for source in self.instructor.missing_given_cells(step.grade_id, self.laid_out):
            self.bind_students_names(source)
            body, _ = compile_cell(source, self.instructor.students_names(source))
            exec(body, self.namespace)
        self.bind_students_names(step.source, step.grade_id)
        body, last = compile_cell(
            step.source, self.instructor.students_names(step.source, step.grade_id), TEST
        )
        exec(body, self.namespace)
        return None if last is None else eval(last, self.namespace)

    def bind_students_names(self, source: str, grade_id: str = "") -> None:
        """Bind the names that a piece of the instructor's code takes from the submission, anew."""
        instructor_names = self.namespace.keys() - self.borrowed
        names = [
            n
            for n in names_loaded(source)
            if self.instructor.is_students(n, grade_id, instructor_names)
        ]
        names += self.names_of_ended_process()
        for name in names:
            self.namespace.pop(name, None)
        if names:
            values = self.session.values_of(names)
            self.borrowed |= values.keys()
            self.namespace.update(values)

    def names_of_ended_process(self) -> list[str]:
        """Return the bound names that stand for objects of a process that has ended since.

        An instructor's function may use them. At the second call for one process, the list is
        empty.
        """
        if self.bound_in is self.session:
            return []
        self.bound_in = self.session
        # The names are taken from the submission again: proxies of an ended process would raise.
        borrowed_values = {
            name: self.namespace[name] for name in self.borrowed & self.namespace.keys()
        }
        return [
            name for name, v in borrowed_values.items() if hasattr(type(v), "attncourse_handle")
        ]

    def outcome_of_error(self, error: BaseException, watch: Stopwatch | None = None) -> StepOutcome:
        """Return the outcome of a step that raised ``error``.

        The time limit that a sentence names is that of ``watch``, or of the last request.
        """
        if isinstance(error, TimeUp):
            # Whatever it still sends would come when another request waits for its answer.
            if not self.session.ended and self.session.midway:
                self.session.close(UNINTERRUPTED)
            if watch is None:
                self.session.longest = max(self.session.longest, self.session.limit)
                words = self.session.time_limit_in_words()
            else:
                words = watch.in_words(self.limits.cell / self.limits.stretch)
            sentence = f"did not end within {words}"
            return StepOutcome("timeout", sentence, cut=sentence)
        if isinstance(error, Ended | WireError | NoReference):
            subject = "" if isinstance(error, NoReference) else "the submission "
            sentence = f"was not run to its end: {subject}{error}"
            return StepOutcome("lost", sentence, cut=sentence)
        missing = (type(error) is NameError and error.name) or ""  # one from there has no name
        kind = known_name(type(error))
        return StepOutcome(
            "error", error_in_words(error)[:MAX_MESSAGE_CHARS], error=kind, missing=missing
        )

    def is_deferred(self, step: Step) -> bool:
        """True if a step is a hidden test, or one that needs one: it runs behind all others."""
        return step.kind == "test" and step.grade_id in self.instructor.deferred

    def gave_empty(self) -> bool:
        """True if the present test has handed the submission something empty."""
        return self.session is not None and self.session.gave_empty
