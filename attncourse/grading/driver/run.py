"""Grading a class: read, run what has to run, write down each result, save in batches.

However many submissions there are, only a few are in memory. A result is in the journal before
anything is made of it, so that a run that ends early, in whatever way, is continued by the
next: that one runs what the journal does not have, and writes all files and rows again.
"""

import secrets
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

from attncourse.grading.course.dates import zone_of
from attncourse.grading.course.folders import Submission, with_remarks
from attncourse.grading.driver.journal import Journal
from attncourse.grading.driver.regraded import PointChange
from attncourse.grading.driver.result_key import hash_of_conditions, result_key
from attncourse.grading.driver.saver import Saver
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.connection import CourseGradebook
from attncourse.grading.gradebook.write import Graded
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.machine import slowness
from attncourse.grading.report import report_without_points
from attncourse.grading.submission.notebook import Assignment

MAX_TRIES = 2  # times that a submission is sent to an executor which fails on it
WAITING_PER_LANE = 8  # submissions waiting for each lane
MAX_BYTES_WAITING = 64_000_000  # bytes of submissions that wait in memory at a time
NOT_RUN = "could not be run, the machinery failed twice"


@dataclass(frozen=True)
class Order:
    """What a run is asked for. ``force`` runs submissions again that the journal has.

    ``hidden`` are the course's folders, which no submission sees. ``one_student`` says that the run
    is for a single student.
    """

    assignment: Assignment
    limits: Limits
    sandbox: bool = True
    force: bool = False
    hidden: tuple[str, ...] = ()
    one_student: bool = False


@dataclass
class SentSubmission:
    """A submission that was sent to an executor, with its key, for the given number of times."""

    submission: Submission
    data: bytes
    key: str
    tries: int = 1


class Runner:
    """Sends submissions to an executor, and writes their reports into the journal."""

    def __init__(self, order: Order, journal: Journal, executor: Executor, lanes: int) -> None:
        """Choose the seed of the run: a new one, or the class's for a single student."""
        self._order, self._journal, self._executor = order, journal, executor
        self._shared = hash_of_conditions(order.assignment, order.limits, order.sandbox)
        # The same cases for a class: right results are worked out once. Whoever looks at one
        # student again takes the class's, so that the same answer gets the same points.
        seed = journal.class_seed(self._shared) if order.one_student else None
        self._seed = secrets.randbits(32) if seed is None else seed
        self._limits = order.limits.stretched(slowness())  # which no result's key depends on
        self._back: SimpleQueue[tuple[SentSubmission, Future]] = SimpleQueue()
        self._room = WAITING_PER_LANE * lanes
        self._n_sent = self._bytes = 0

    def results(self, submissions: Iterable[Submission]) -> Iterator[Graded]:
        """Yield each submission's result as it arrives, from folder, journal or executor."""
        for submission in submissions:
            if submission.data is None:
                reason, student = submission.reason, submission.student
                report = report_without_points(
                    self._order.assignment, submission.status, reason, student
                )
                yield Graded(submission, report, source="folder")
                continue
            data = submission.data
            sent = SentSubmission(
                submission, data, result_key(self._shared, submission.student, data)
            )
            known = None if self._order.force else self._journal.find(sent.key)
            if known is not None:
                yield Graded(submission, known, source="journal")
            else:
                self._send(sent)
            full = self._n_sent >= self._room or self._bytes > MAX_BYTES_WAITING
            yield from self._results_back(wait=full)
        while self._n_sent:
            yield from self._results_back(wait=True)

    def _send(self, sent: SentSubmission) -> None:
        """Send a submission to the executor; a result comes back by the queue."""
        order, submission = self._order, sent.submission
        try:
            future = self._executor.submit(
                grade_submission,
                sent.data,
                order.assignment,
                student=submission.student,
                limits=self._limits,
                seed=self._seed,
                sandbox=order.sandbox,
                hidden=order.hidden,
                alone=sent.tries > 1,
            )
        except Exception as error:  # an executor that has broken takes nothing any more
            future = Future()
            future.set_exception(error)
        self._n_sent += 1
        self._bytes += len(sent.data)
        future.add_done_callback(lambda ended: self._back.put((sent, ended)))

    def _results_back(self, wait: bool) -> Iterator[Graded]:
        """Yield the results that have come back; with ``wait``, wait for one first.

        That one may be sent again in place of a result.
        """
        while self._n_sent:
            try:
                sent, future = self._back.get(block=wait)
            except Empty:
                return
            wait = False
            self._n_sent -= 1
            self._bytes -= len(sent.data)
            if (graded := self._result_of(sent, future)) is not None:
                yield graded

    def _result_of(self, sent: SentSubmission, future: Future) -> Graded | None:
        """Return the result that came back, written to the journal; None if it is sent again."""
        submission = sent.submission
        try:
            report = future.result()
        except UserError:
            raise
        except Exception as error:
            if sent.tries < MAX_TRIES:
                self._send(replace(sent, tries=sent.tries + 1))
                return None
            message = " ".join(str(error).split())[:200]
            reason = (
                f"{NOT_RUN} ({type(error).__name__}{': ' if message else ''}{message}): grade again"
            )
            report = report_without_points(
                self._order.assignment, "interrupted", reason, submission.student
            )
            return Graded(submission, report, source="failure")  # and the next run tries it again
        self._journal.write(sent.key, report, self._shared)
        return Graded(submission, report)


def grade_class(
    order: Order,
    submissions: Iterable[Submission],
    book: CourseGradebook,
    journal: Journal,
    executor: Executor,
    lanes: int,
    changes: list[PointChange] | None = None,
) -> Iterator[Graded]:
    """Grade and save submissions; yield each result as it arrives, all saved at the end.

    Cells that have other points than before are appended to ``changes``.
    """
    runner, zone = Runner(order, journal, executor, lanes), zone_of(book.config)
    with Saver(book, order.assignment, changes) as saver:
        for graded in runner.results(submissions):
            report = with_remarks(graded.submission, graded.report, zone)
            reported = replace(graded, report=report)
            saver.add(reported)
            yield reported
        saver.start_saving()
        saver.wait_until_saved()
