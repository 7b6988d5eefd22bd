"""The command ``attncourse grade``: checks before the run, its progress, its last lines."""

import gc
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from attncourse.grading.course import folders
from attncourse.grading.course.changes import added_cells
from attncourse.grading.course.dates import zone_of
from attncourse.grading.course.settings import follow_on_earns, read_settings
from attncourse.grading.course.solution import outdated_solution
from attncourse.grading.driver.executors import open_executor
from attncourse.grading.driver.journal import Journal, has_journal, open_journal
from attncourse.grading.driver.regraded import PointChange, write_changes
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.assignments import record_assignment, require_release
from attncourse.grading.gradebook.connection import find_gradebook, gradebook_to_read
from attncourse.grading.harmless import made_visible
from attncourse.grading.limits import Limits
from attncourse.grading.report import Report, count

if TYPE_CHECKING:
    from rich.console import Console

    from attncourse.grading.gradebook.read import SubmissionScores
    from attncourse.grading.gradebook.write import Graded

MAX_CHANGES_SHOWN = 20  # cells with other points than before that are told one by one
MAX_REASON_CHARS = 160  # of why somebody has other points
MAX_TABLE_ROWS = 60  # rows of a table that a person still reads


@dataclass
class Tally:
    """The counts of a grading run. ``reports`` are kept if the class fits into a table."""

    total: int
    counts: Counter[str] = field(default_factory=Counter)  # by where they come from
    statuses: Counter[str] = field(default_factory=Counter)
    full: int = 0
    attention: int = 0
    reports: list[Report] = field(default_factory=list)

    def add(self, graded: "Graded") -> None:
        """Count a result."""
        report = graded.report
        self.counts[graded.source] += 1
        self.statuses[report.status] += 1
        self.full += report.points == report.maximum
        self.attention += bool(report.attention)
        if self.total <= MAX_TABLE_ROWS:
            self.reports.append(report)


def grade_course(
    course: Path,
    name: str,
    student: str | None = None,
    *,
    limits: Limits,
    lanes: int = 0,
    db: str | None = None,
    force: bool = False,
    dask: str | None = None,
    sandbox: bool = True,
) -> Tally:
    """Grade a course's submissions with a progress bar, save everything, show the result."""
    assignment = folders.find_assignment(course, name)
    students = folders.find_students(course, name, student)
    folder, hidden = course / "reports" / name, (str(course.resolve()),)
    with open_executor(lanes, dask) as (executor, lanes):
        if dask is None and not has_journal(folder):  # lanes get ready meanwhile
            from attncourse.grading.judge.judge import start_lanes

            start_lanes([assignment] * lanes, limits, sandbox, hidden)
        from attncourse.grading.driver.progress import show_progress
        from attncourse.grading.driver.run import Order, grade_class
        from attncourse.grading.results.terminal import wide_console

        console, tally, regraded = wide_console(), Tally(len(students)), []
        with show_progress(console, f"grading {name}", len(students)) as step:
            book = find_gradebook(course, db)
            require_release(book, name)
            with open_journal(folder, name) as journal, saying_where_results_are(tally, journal):
                changed = record_assignment(book, name)
                added, follow_on = added_cells(course, name), follow_on_earns(course)
                assignment = replace(assignment, added=added, follow_on=follow_on)
                order = Order(assignment, limits, sandbox, force, hidden, student is not None)
                gc.freeze()  # the collector need not look through all of nbgrader again and again
                submissions = folders.read_submissions(course, name, students)
                results = grade_class(order, submissions, book, journal, executor, lanes, regraded)
                for graded in results:
                    tally.add(graded)
                    step()
    changes = (f"the assignment changed: {change}" for change in changed)
    old = outdated_solution(course, name)
    out = map(folders.FORGOTTEN.format, folders.folders_of_forgotten(course))
    for note in (*old, *journal.notes, *changes, *folders.nobodys_files(course, name), *out):
        print_plain(console, f"note: {note}")
    show_class(console, tally, name, late_submissions(course, name, db))
    for line in write_and_list_changes(course, name, regraded):
        print_plain(console, line)
    if questions := [c.grade_id for c in assignment.cells if c.grade and c.solution]:
        text = f"a person gives the points of {', '.join(questions)}: open nbgrader's formgrader"
        print_plain(console, f"note: {text}")
    if student is None and tally.total and tally.statuses["missing"] == tally.total:
        print_plain(console, f"note: nobody has handed in {name}: everybody has 0 points in it")
    print_plain(console, closing_line(tally, str(book)))
    gc.freeze()  # or the interpreter looks through all of nbgrader once more before it ends
    return tally


def write_and_list_changes(course: Path, name: str, changes: list[PointChange]) -> list[str]:
    """Write the list of changed points to a file; return it in lines, the first twenty."""
    if not changes:
        return []
    place = write_changes(course, name, changes)
    n_students = len({change.student for change in changes})
    lines = [
        f"  {change.student}: {change.cell} {change.before:g} to {change.now:g}: "
        f"{textwrap.shorten(change.why, MAX_REASON_CHARS, placeholder=' …')}"
        for change in sorted(changes)[:MAX_CHANGES_SHOWN]
    ]
    more = f", the first {MAX_CHANGES_SHOWN} here" if len(changes) > MAX_CHANGES_SHOWN else ""
    return [
        f"other points than before: {count(n_students, 'student')}, all in {place}{more}",
        *lines,
    ]


@contextmanager
def saying_where_results_are(tally: Tally, journal: Journal) -> Iterator[None]:
    """Add to what stops grading in the block, Ctrl-C too, how many results are in the journal."""
    try:
        yield
    except (KeyboardInterrupt, UserError) as stop:
        n_kept = tally.counts["run"] + tally.counts["journal"]
        sentence = (
            f"{n_kept} of {tally.total} results are in {journal.path}, "
            "and the same command goes on from there"
        )
        if isinstance(stop, KeyboardInterrupt):
            raise KeyboardInterrupt(sentence) from None
        raise UserError(f"{stop}; {sentence}") from stop


def late_submissions(course: Path, name: str, db: str | None) -> dict[str, "SubmissionScores"]:
    """Return, by student, the submissions that came late, as the gradebook has them now."""
    from attncourse.grading.gradebook.read import read_assignment_ids, read_scores

    zone = zone_of(read_settings(course))
    with gradebook_to_read(course, db) as connection:
        ids = read_assignment_ids(connection)
        submissions = read_scores(connection, ids[name], zone).submissions
    return {student: scores for student, scores in submissions.items() if scores.late}


def show_class(
    console: "Console", tally: Tally, name: str, late: dict[str, "SubmissionScores"]
) -> None:
    """Print the table of a class or, for a large one, its figures."""
    from attncourse.grading.results.terminal import class_table

    if tally.total <= MAX_TABLE_ROWS:
        reports = sorted(tally.reports, key=lambda report: report.student)
        shown_students = {report.student for report in reports}
        late = {student: late[student] for student in late.keys() & shown_students}
        console.print(class_table(reports, console.width, late), crop=False)
        return
    counts = ", ".join(f"{n} {status}" for status, n in sorted(tally.statuses.items()))
    print_plain(
        console,
        f"{tally.total} students: {counts}; {tally.full} with full marks, {len(late)} late, "
        f"{tally.attention} to look at. The class at a glance: attncourse report {name}",
    )


def print_plain(console: "Console", line: str) -> None:
    """Print a line without markup: names in it are files' and students'."""
    console.print(made_visible(line), soft_wrap=True, highlight=False, markup=False)


def closing_line(tally: Tally, book: str) -> str:
    """Return in one line how many submissions ran, how many did not have to, where points are."""
    counts = tally.counts
    parts = [f"{counts['run']} graded", f"{counts['journal']} from the journal"]
    if counts["folder"]:
        parts.append(f"{counts['folder']} with nothing to grade")
    if counts["failure"]:
        parts.append(f"{counts['failure']} could not be run: grade again")
    return f"{', '.join(parts)}; points are in {book}"
