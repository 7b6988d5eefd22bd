"""The command ``attncourse feedback``: a page for each student, a zip to give back, the links."""

from dataclasses import dataclass, field
from pathlib import Path

from attncourse.grading.course.folders import find_assignment, folders_in, read_submission
from attncourse.grading.course.newer_hand_ins import graded_digest, notebook_digest
from attncourse.grading.errors import UserError
from attncourse.grading.feedback.page import student_page
from attncourse.grading.feedback.returned import StudentPage, give_back
from attncourse.grading.files import replace_file
from attncourse.grading.gradebook.read import Person
from attncourse.grading.graded_notebook import autograded_notebook, graded_cell_texts
from attncourse.grading.harmless import one_line
from attncourse.grading.names import did_you_mean
from attncourse.grading.report import Report, count
from attncourse.grading.results.class_results import StudentResult, class_results, read_report
from attncourse.grading.results.grade_questions import open_questions_in_words
from attncourse.grading.results.page import feedback_page, write_page
from attncourse.grading.results.summary import Summary
from attncourse.grading.submission.notebook import Assignment


@dataclass
class Given:
    """What giving feedback has done: lines on what was written, remarks on who was left out."""

    lines: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def give_feedback(
    course: Path,
    name: str,
    student: str | None = None,
    *,
    db: str | None = None,
    download: Path | None = None,
) -> Given:
    """Write students' feedback pages from what grading has left; run nothing.

    With ``download``, the platform's own zip, a zip is made that the platform takes back.
    """
    results_of_class, output = class_results(course, name, db, gradebook=False), Given()
    assignment = find_assignment(course, name)
    ungraded = set(folders_in(course / "submitted")) - set(results_of_class.by_student)
    chosen = [r for r in results_of_class.results if student in (None, r.student)]
    output.remarks += [no_report(name, who) for who in sorted(ungraded) if student in (None, who)]
    if not chosen and not output.remarks:
        hint = did_you_mean(student or "", results_of_class.by_student)
        raise UserError(f"no student is called {student} in the results of {name}{hint}")
    missing = [r.student for r in chosen if not r.handed_in]
    pages = []
    for r in (r for r in chosen if r.handed_in):
        try:
            pages.append(write_student_page(course, assignment, r))
        except UserError as problem:
            if student is not None or isinstance(problem.__cause__, OSError):
                raise  # where the disk refuses one, it refuses all
            output.remarks.append(str(problem))
    if missing:
        shown = ", ".join(one_line(who) for who in missing)
        output.remarks.append(f"nothing handed in, so there is no page: {shown}")
    if not pages:
        raise UserError("; ".join(output.remarks))
    folder = course / "feedback"
    output.lines.append(
        f"{count(len(pages), 'page')} written to {folder}/STUDENT/{name}/{name}.html"
    )
    if download is not None:
        people = {r.student: r.person for r in results_of_class.results}
        people |= {who: Person(who) for who in sorted(ungraded)}
        # They may have places in the download, too.
        students_without_page = sorted(people.keys() - {page.student for page in pages})
        whole_class = pages + [
            StudentPage(people[who], read_submission(course, name, who).data)
            for who in students_without_page
        ]
        place, number = give_back(course, name, download, whole_class, output.remarks.append)
        output.lines.append(f"{count(number, 'page')} to give back in {place}")
    if open_questions := open_questions_in_words(course, name):
        output.remarks.append(open_questions)
    report = write_page(course, Summary(results_of_class))
    output.lines.append(f"linked from {report}")
    return output


def write_student_page(course: Path, assignment: Assignment, r: StudentResult) -> StudentPage:
    """Write a student's page; raise ``UserError`` if notebook and report do not belong together."""
    name, student = assignment.name, one_line(r.student)
    place = feedback_page(course, r.student, name)
    if place is None:
        raise UserError(f"{student} is left out: no folder can be called so")
    again = f"attncourse grade {name} --student {student}"
    path = course / "reports" / name / f"{r.student}.json"
    if not path.is_file():
        raise UserError(no_report(name, r.student))
    report = read_report(path)
    if not isinstance(report, Report):
        raise UserError(f"{student}: {report}")
    submission = read_submission(course, name, r.student)
    if submission.data is None and report.status not in ("unreadable", "missing"):
        raise UserError(f"what {student} handed in is gone ({submission.reason}): put it back")
    before = course / "autograded" / r.student / name / f"{name}.ipynb"
    if handed_in_again(before, submission.data or b"", assignment, report):
        raise UserError(f"{student} has handed in again since the report was made: {again}")
    content = student_page(assignment, submission.data or b"", r, report)
    replace_file(place, content)
    return StudentPage(r.person, submission.data, content)


def no_report(name: str, student: str) -> str:
    """Return why a student gets no page, and the command that helps."""
    shown_name = one_line(student)
    return f"there is no report on {shown_name}: attncourse grade {name} --student {shown_name}"


def handed_in_again(before: Path, data: bytes, assignment: Assignment, report: Report) -> bool:
    """True if a notebook is not the graded one: verdicts would stand beside other work.

    ``before`` is the graded notebook in ``autograded/``. If it does not say that it was made of
    this file, it is compared with what grading would make today.
    """
    try:
        graded = before.read_text(encoding="utf-8")
        if graded_digest(graded) == notebook_digest(data):
            return False
        return graded_cell_texts(graded) != graded_cell_texts(
            autograded_notebook(data, assignment, report)
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False  # there is nothing to compare with
