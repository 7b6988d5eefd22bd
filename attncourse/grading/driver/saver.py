"""Saving results in batches, in a thread of its own, while others are graded."""

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Self

from attncourse.grading.course.folders import Submission
from attncourse.grading.course.late import LatePenalty
from attncourse.grading.driver.regraded import PointChange, changes_between, earlier_report
from attncourse.grading.files import explained_file_errors, replace_bytes, replace_file
from attncourse.grading.gradebook.connection import CourseGradebook
from attncourse.grading.gradebook.write import Graded, save_batch
from attncourse.grading.graded_notebook import autograded_notebook, same_answers
from attncourse.grading.report import Report, to_json
from attncourse.grading.submission.notebook import Assignment

MAX_BATCH = 500  # submissions in one transaction
MAX_BYTES_OF_BATCH = 64_000_000  # bytes of submissions in one batch
SECONDS_OF_BATCH = 2.0  # seconds after which a batch is saved that is not full


class Saver:
    """Writes results while others are graded: each one's files, and a batch's points at once.

    Leaving its block waits for what is being saved. Cells with other points than in the report
    before are appended to ``changes``.
    """

    def __init__(
        self,
        book: CourseGradebook,
        assignment: Assignment,
        changes: list[PointChange] | None = None,
    ) -> None:
        """Prepare to save the results of an assignment."""
        self._book, self._assignment = book, assignment
        self._changes = [] if changes is None else changes
        self._penalty = LatePenalty(book.course, book.config)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="saver")
        self._saving: Future[None] | None = None
        self._batch: list[Future[Graded]] = []
        self._bytes, self._begun = 0, 0.0

    def __enter__(self) -> Self:
        """Return the saver itself."""
        return self

    def __exit__(self, *problem: object) -> None:
        """Wait for what is being saved."""
        self._pool.shutdown()

    def add(self, graded: Graded) -> None:
        """Have a result's files written; start saving the batch if it is full or old."""
        if not self._batch:
            self._begun = time.monotonic()
        self._batch.append(self._pool.submit(self._write_files, graded))
        self._bytes += len(graded.submission.data or b"")
        full = len(self._batch) >= MAX_BATCH or self._bytes > MAX_BYTES_OF_BATCH
        if full or time.monotonic() - self._begun > SECONDS_OF_BATCH:
            self.start_saving()

    def start_saving(self) -> None:
        """Start saving the batch, after the one before; raise what that one could not do."""
        self.wait_until_saved()
        if self._batch:
            self._saving = self._pool.submit(self._save_batch, self._batch)
        self._batch, self._bytes = [], 0

    def wait_until_saved(self) -> None:
        """Wait for the batch that is being saved."""
        if self._saving is not None:
            self._saving.result()

    def _save_batch(self, batch: list[Future[Graded]]) -> None:
        """Enter a batch in the gradebook, once the files of all its submissions are written."""
        save_batch(
            self._book, self._assignment.name, [future.result() for future in batch], self._penalty
        )

    def _write_files(self, graded: Graded) -> Graded:
        """Write the graded notebook and the report of a result; return the result with both."""
        course, name = self._book.course, self._assignment.name
        submission, report = graded.submission, graded.report
        notebook, unchanged_answers = "", frozenset()
        if report.status != "missing" and submission.named:
            notebook, report = self._graded_notebook(submission, report)
            unchanged_answers = same_answers(
                write_notebook(course, name, submission, notebook), notebook
            )
        if graded.source == "run":
            before = earlier_report(course, name, report.student)
            self._changes += changes_between(before, report)
        text = json.dumps(to_json(report), indent=1, ensure_ascii=False) + "\n"
        replace_file(course / "reports" / name / f"{report.student}.json", text)
        return replace(graded, report=report, notebook=notebook, same=unchanged_answers)

    def _graded_notebook(self, submission: Submission, report: Report) -> tuple[str, Report]:
        """Return the graded notebook and the report; the tests alone if it cannot be shown."""
        try:
            return autograded_notebook(submission.data or b"", self._assignment, report), report
        except Exception as error:  # whatever it is, the class goes on
            reason = f"the submission cannot be shown ({type(error).__name__}): open its own file"
            report = replace(report, attention=(*report.attention, reason))
            return autograded_notebook(b"", self._assignment, report), report


def write_notebook(course: Path, name: str, submission: Submission, notebook: str) -> str:
    """Write the graded notebook for the formgrader; return the one that was there before.

    Without it, nbgrader takes the points for none.
    """
    place = course / "autograded" / submission.student / name
    path, content = place / f"{name}.ipynb", notebook.encode("utf-8", "backslashreplace")
    with explained_file_errors(path):
        before = path.read_text("utf-8", "replace") if path.is_file() else ""
    replace_bytes(path, content)
    stamp = place / "timestamp.txt"  # nbgrader tells by it whether this is the latest
    if submission.timestamp:
        replace_file(stamp, submission.timestamp + "\n")
    else:
        with explained_file_errors(stamp):
            stamp.unlink(missing_ok=True)
    return before
