"""A class's results: points from the gradebook if it has them, details from the reports."""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

from attncourse.grading.course.dates import Zone, span_in_words, zone_of
from attncourse.grading.course.folders import folders_in, require_known
from attncourse.grading.course.late import SECONDS_OF_DAY, days_begun
from attncourse.grading.course.settings import read_settings
from attncourse.grading.course.variants import variants_in
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.connection import gradebook_to_read
from attncourse.grading.gradebook.read import (
    AssignmentScores,
    Person,
    SubmissionScores,
    has_gradebook,
    read_assignment_ids,
    read_scores,
)
from attncourse.grading.harmless import one_line
from attncourse.grading.report import CellResult, Report, count, report_from_json
from attncourse.grading.results.failures import Failure, failures_in

Remark = Callable[[str], None]  # who hears what an export or a zip leaves out
MISSING = "nothing handed in"  # which the counts say already
# What a note says of a file that had to be mended before it could be graded.
MENDED = (
    "a second copy",
    "the notebook is called",
    "notebook was found",
    "not graded",
    "merge conflict",
    "its cells were graded",
    "found inside",
    "left out",
    "were replaced",
    "was read as",
    "instead of UTF-8",
)
SCORED_BEFORE = "scored by a person before it was graded again"
NO_POINTS = ("unreadable", "interrupted")  # what has no points at all, or not all of them


@dataclass
class StudentResult(SubmissionScores):
    """A student's result in an assignment: the points that count, and what the report says.

    ``status`` is the report's, or "graded" if only the gradebook knows of a submission. ``source``
    says where ``cells`` come from, "gradebook" or "report". The other fields are as in the
    gradebook.
    """

    person: Person
    assignment: str
    status: str
    cells: dict[str, CellResult]
    source: str = "gradebook"
    mistakes: tuple[tuple[str, str], ...] = ()
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    attention: tuple[str, ...] = ()

    @property
    def student(self) -> str:
        """Return the id of the student."""
        return self.person.id

    @property
    def handed_in(self) -> bool:
        """True if there is a submission."""
        return self.status != "missing"

    @property
    def needs_person(self) -> bool:
        """True if a person should look at the submission."""
        return bool(self.attention) or self.status in NO_POINTS

    @property
    def why(self) -> str:
        """Return why a person should look at the submission, in one line; "" if nobody has to."""
        reasons = "; ".join(self.attention)
        return reasons or (self.status if self.status in NO_POINTS else "")

    @property
    def waits(self) -> str:
        """Return a line with the cells that still wait for a person's score; "" without any."""
        return f"waits for a person's score: {', '.join(self.waiting)}" if self.waiting else ""

    @property
    def older(self) -> str:
        """Return a line with the cells that a person scored before the last grading; or ""."""
        return f"{SCORED_BEFORE}: {', '.join(self.stale)}" if self.stale else ""

    @property
    def lateness(self) -> str:
        """Return how late the submission was and what it costs, in words; "" if it was in time."""
        return lateness_in_words(self.late, self.penalty, self.extension)

    @property
    def raw(self) -> float:
        """Return the sum of the points, before a late penalty."""
        return math.fsum(cell.points for cell in self.cells.values())

    @property
    def score(self) -> float:
        """Return the final score: the points less the late penalty, at least 0."""
        return max(0.0, self.raw - self.penalty)

    @property
    def maximum(self) -> float:
        """Return the points of all cells."""
        return math.fsum(cell.maximum for cell in self.cells.values())


@dataclass(frozen=True)
class ClassResults:
    """An assignment's results, in the order of the students' ids.

    ``explanations`` holds, for each mistake that was seen, what one student read of it.
    """

    assignment: str
    results: tuple[StudentResult, ...]
    explanations: dict[tuple[str, str], str] = field(default_factory=dict)
    variant: str = ""  # of the assignment, where it was released in one
    zone: Zone = None  # the class's
    leftover: tuple[str, ...] = ()  # of whom there is a report, and nothing else any more

    @cached_property
    def by_student(self) -> dict[str, StudentResult]:
        """Return the results by student's id."""
        return {result.student: result for result in self.results}

    @property
    def waiting(self) -> str:
        """Return a line with the cells that wait for a person's score, of how many students each.

        It is empty if none does.
        """
        return tally_in_words(name for result in self.results for name in result.waiting)

    @property
    def stale(self) -> str:
        """Return, as ``waiting`` does, the cells that a person scored before the last grading."""
        return tally_in_words(name for result in self.results for name in result.stale)

    @property
    def left_out(self) -> list[str]:
        """Return a line, in a list, on people of whom only a report is left; [] without any."""
        students = ", ".join(map(one_line, self.leftover))
        sentence = (
            f"{students}: left out, for the gradebook and submitted/ know them no more; to delete "
        )
        return [f"{sentence}what is left: attncourse forget ID"] if students else []

    @property
    def cells(self) -> dict[str, float]:
        """Return the points of each graded cell, in the assignment's order."""
        maxima: dict[str, float] = {}
        for result in self.results:
            for name, cell in result.cells.items():
                maxima.setdefault(name, cell.maximum)
        return maxima


def lateness_in_words(seconds: float, penalty: float, extension: float = 0.0) -> str:
    """Return how late something was and what that costs; "" if it was in time."""
    if not seconds and not penalty:
        return ""
    words = f"{span_in_words(seconds)} late" if seconds else "late"
    if seconds > SECONDS_OF_DAY and seconds % SECONDS_OF_DAY:
        words += f", {days_begun(seconds, 0)} days begun"
    if extension:
        words += f", with {span_in_words(extension * 86400)} more than others"
    return words + (f": {count(penalty, 'point')} taken off" if penalty else "")


def tally_in_words(names: Iterable[str]) -> str:
    """Return a line on how many students have each of these cells."""
    counts = sorted(Counter(names).items())
    return ", ".join(f"{name} of {count(number, 'student')}" for name, number in counts)


def people_in(classes: Iterable[ClassResults]) -> dict[str, Person]:
    """Return everybody who is in one of these classes, by id."""
    return {r.student: r.person for results_of_class in classes for r in results_of_class.results}


def class_results(
    course: Path, name: str, db: str | None = None, *, gradebook: bool = True
) -> ClassResults:
    """Return the results of an assignment; raise ``UserError`` if there are none.

    With ``gradebook`` False, a course without a gradebook is read from its reports alone.
    """
    zone = zone_of(read_settings(course))
    entered, assignments = (
        None,
        {*folders_in(course / "solutions"), *folders_in(course / "reports")},
    )
    if gradebook or has_gradebook(course, db):
        with gradebook_to_read(course, db) as connection:
            ids = read_assignment_ids(connection)
            assignments |= set(ids)
            if name in ids:
                entered = read_scores(connection, ids[name], zone)
    require_known(name, sorted(assignments))
    merged = replace(
        without_leftover(course, merged_results(course, name, entered), entered), zone=zone
    )
    if not any(result.handed_in or result.notes for result in merged.results):
        raise UserError(f"nothing is graded of {name} yet: attncourse grade {name}")
    return merged


def merged_results(course: Path, name: str, entered: AssignmentScores | None) -> ClassResults:
    """Return every student's result, from reports and the gradebook's scores.

    ``entered`` is None where there is no gradebook.
    """
    people = {person.id: person for person in entered.people} if entered else {}
    submissions, maxima = (entered.submissions, entered.maxima) if entered else ({}, {})
    results_by_student: dict[str, StudentResult] = {}
    explanations: dict[tuple[str, str], str] = {}
    for student, report in reports_in(course, name):
        person = people.get(student, Person(student))
        results_by_student[student] = from_report(person, name, report)
        if isinstance(report, Report):
            for verdict in report.verdicts:
                key = (verdict.get("target", ""), verdict.get("mistake") or "")
                if key[1] and verdict.get("explanation"):
                    explanations.setdefault(key, verdict["explanation"])
    for person in people.values():
        scores = submissions.get(person.id)
        empty = StudentResult(person, name, "missing" if scores is None else "graded", {})
        result = results_by_student.get(person.id, empty)
        results_by_student[person.id] = with_points(result, maxima, scores)
    results = tuple(results_by_student[student] for student in sorted(results_by_student))
    return ClassResults(name, results, explanations, variants_in(course).get(name, ""))


def without_leftover(
    course: Path, merged: ClassResults, entered: AssignmentScores | None
) -> ClassResults:
    """Return the results without people who are in neither gradebook nor ``submitted``."""
    if entered is None:
        return merged
    ids = {person.id for person in entered.people}
    gone_students = {r.student for r in merged.results if r.student not in ids}
    gone_students -= {who for who in gone_students if os.path.lexists(course / "submitted" / who)}
    results = tuple(r for r in merged.results if r.student not in gone_students)
    return replace(merged, results=results, leftover=tuple(sorted(gone_students)))


def reports_in(course: Path, name: str) -> Iterator[tuple[str, Report | str]]:
    """Yield each student with a report on an assignment in ``reports``, in order, and the report.

    In the place of a report that cannot be read stands a sentence that says why.
    """
    place = course / "reports" / name
    if place.is_dir():
        for path in sorted(place.glob("*.json")):
            if not path.name.startswith("."):
                yield path.stem, read_report(path)


def read_report(path: Path) -> Report | str:
    """Return the report in a file, or a sentence on why it cannot be read and what to do."""
    try:
        return report_from_json(report_validator()(json.loads(path.read_text(encoding="utf-8"))))
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:100]
    name = path.parent.name
    place = f"reports/{name}/{path.name}"
    return f"its report cannot be read: {place}: {why}: attncourse grade {name} writes it again"


@cache
def report_validator() -> Callable[[object], dict]:
    """Return a function that returns a report's data; it raises ``ValueError`` for bad data.

    Bad is what the report's schema does not describe.
    """
    import fastjsonschema  # which is not there on Gradescope

    schema = Path(__file__).parents[1] / "report.schema.json"
    return fastjsonschema.compile(json.loads(schema.read_text(encoding="utf-8")))


def from_report(person: Person, name: str, report: Report | str) -> StudentResult:
    """Return a student's result with the points of a report, until the gradebook has some."""
    if isinstance(report, str):
        return StudentResult(person, name, "graded", {}, attention=(report,))
    mended = [note for note in report.notes if any(word in note for word in MENDED)]
    if report.status in NO_POINTS:
        mended = [note for note in report.notes if note not in report.attention]
    attention = [reason for reason in report.attention if reason != MISSING] + mended
    if not report.sandbox:
        attention.append("graded without a sandbox")
    return StudentResult(
        person=person,
        assignment=name,
        status=report.status,
        cells=dict(report.cells),
        source="report",
        mistakes=report.mistakes,
        failures=failures_in(report),
        notes=report.notes,
        attention=tuple(dict.fromkeys(attention)),
    )


def with_points(
    result: StudentResult, maxima: dict[str, float], scores: SubmissionScores | None
) -> StudentResult:
    """Return a result with the gradebook's points; without a submission it has none."""
    if scores is None and result.handed_in:
        return result  # graded, but not entered into this gradebook
    scores = scores or SubmissionScores()
    order = [g for g in result.cells if g in maxima] + [g for g in maxima if g not in result.cells]
    messages = {g: cell.message for g, cell in result.cells.items()}
    cells = {
        g: CellResult(scores.points.get(g, 0.0), maxima[g], messages.get(g, "")) for g in order
    }
    return replace(result, cells=cells, source="gradebook", **vars(scores))
