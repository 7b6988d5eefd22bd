"""One submission in the gradebook: when it came, more time for it, its late penalty."""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from attncourse.grading.course.dates import Zone, zone_of
from attncourse.grading.course.extensions import (
    EXTENSIONS_FILE,
    NO_EXTENSION,
    ExtensionDays,
    days_in,
    read_extensions,
    write_extensions,
)
from attncourse.grading.course.late import LatePenalty, seconds_late
from attncourse.grading.errors import UserError
from attncourse.grading.files import one_process_at_a_time
from attncourse.grading.gradebook.assignments import due_in_settings
from attncourse.grading.gradebook.connection import CourseGradebook, open_gradebook
from attncourse.grading.names import NameIndex, did_you_mean

if TYPE_CHECKING:
    from nbgrader.api import Gradebook


def grant_extension(book: CourseGradebook, student: str, name: str, days: float) -> datetime | None:
    """Give a student more time, with 0 days none; return when the work is due then, if known.

    A second extension takes the place of the first. Grading again counts it.
    """
    try:
        days = days_in(str(days))
    except ValueError as error:
        raise UserError(f"--days: {error}; 0 takes an extension back") from None
    require_student(book, student)
    with one_process_at_a_time(book.course / EXTENSIONS_FILE):
        extensions = read_extensions(book.course)
        extension = extensions.pop((student, name), NO_EXTENSION)._replace(granted=days)
        extensions |= {(student, name): extension} if any(extension) else {}
        write_extensions(book.course, extensions)
    zone = zone_of(book.config)
    with open_gradebook(book) as gradebook:
        entered = enter_extension(gradebook, student, name, extension, zone)
    due = due_in_settings(book, name)  # which counts from the next grading on
    return due + extension.length(due, zone) if due else entered


def enter_extension(
    gradebook: "Gradebook", student: str, name: str, extension: ExtensionDays, zone: Zone
) -> datetime | None:
    """Enter an extension with a submission, if there is one; return when the work is due then."""
    from nbgrader.api import MissingEntry

    try:
        due = gradebook.find_assignment(name).duedate
    except MissingEntry:
        return None
    length = extension.length(due, zone) if any(extension) else None
    with suppress(MissingEntry):
        submission = gradebook.find_submission(name, student)
        if submission.extension != length:
            submission.extension = length  # pyrefly: ignore [read-only]  a column of SQLAlchemy's
            gradebook.db.commit()
    return due and due + (length or timedelta())


def require_student(book: CourseGradebook, student: str) -> None:
    """Raise ``UserError`` for an id that neither the gradebook nor a folder has."""
    folder, names = book.course / "submitted", NameIndex()
    folders = {path.name for path in folder.glob("[!.]*") if path.is_dir()}
    with open_gradebook(book) as gradebook:
        for person in gradebook.students:
            folders.add(person.id)
            called = f"{person.first_name or ''} {person.last_name or ''}".strip()
            for name in (called, person.last_name or "", person.email or ""):
                names.add(person.id, name)
    if student not in folders:
        called = " or ".join(sorted(names.people_called(student)))
        hint = f"; did you mean {called}?" if called else did_you_mean(student, folders)
        raise UserError(f"no student is called {student}, in the gradebook or in {folder}{hint}")


# Below are what nbgrader's own steps ask for, which name the database by its address. What it
# objects to goes through as it is: nbgrader's run then goes on with the next submission.


def enter_hand_in(
    address: str,
    course_id: str,
    student: str,
    name: str,
    *,
    when: datetime | None,
    extension: ExtensionDays | None,
    zone: Zone,
) -> None:
    """Enter when a student handed in, and an extension; None for what is not known.

    nbgrader has read the time itself, and of some files in another zone.
    """
    from nbgrader.api import Gradebook, MissingEntry

    with Gradebook(address, course_id) as gradebook:
        if extension is not None:
            enter_extension(gradebook, student, name, extension, zone)
        if when is not None:
            with suppress(MissingEntry):
                submission: Any = gradebook.find_submission(name, student)
                submission.timestamp = when
                gradebook.db.commit()


def enter_late_penalty(
    address: str, student: str, name: str, notebook_name: str, penalty: LatePenalty
) -> None:
    """Enter the points that a submission's notebook loses for being late."""
    from nbgrader.api import Gradebook

    with Gradebook(address) as gradebook:
        submission = gradebook.find_submission(name, student)
        times = submission.timestamp, submission.assignment.duedate, submission.extension
        notebooks: Any = submission.notebooks
        for notebook in notebooks:
            if notebook.name == notebook_name:
                late = seconds_late(*times, penalty.zone)
                notebook.late_submission_penalty = penalty(student, notebook.score, late)
        gradebook.db.commit()


def leave_tasks_to_person(address: str, course_id: str, student: str, name: str) -> None:
    """Have a person score the tasks of a renamed notebook, which nbgrader counts as missing."""
    from nbgrader.api import Gradebook, TaskCell

    with Gradebook(address, course_id) as gradebook:
        submission = gradebook.find_submission_notebook(name, name, student)
        grades: Any = submission.grades
        for grade in grades:
            if isinstance(grade.cell, TaskCell):
                grade.auto_score = None
                grade.needs_manual_grade = grade.manual_score is None
        gradebook.db.commit()
