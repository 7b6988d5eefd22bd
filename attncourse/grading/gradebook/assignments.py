"""An assignment in the gradebook: its cells, its due date, and whether it was released."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from attncourse.grading.course.changes import changes_of_cells, keep_added
from attncourse.grading.course.dates import due_of
from attncourse.grading.course.folders import folders_in
from attncourse.grading.course.settings import course_modules_importable
from attncourse.grading.course.variants import solved_in_variant
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.changes import follow_changes
from attncourse.grading.gradebook.connection import (
    CourseGradebook,
    explained_database_errors,
    has_assignment,
    open_gradebook,
)
from attncourse.grading.names import did_you_mean

if TYPE_CHECKING:
    from nbgrader.api import Gradebook


def require_release(book: CourseGradebook, name: str) -> None:
    """Raise ``UserError`` for an assignment that was never released to students."""
    released = book.course / "exercises" / name / f"{name}.ipynb"
    if not has_assignment(book, name) and not released.is_file():
        raise UserError(f"{name} was never released: attncourse release {name}")


def record_assignment(book: CourseGradebook, name: str) -> list[str]:
    """Record an assignment's cells as ``nbgrader generate_assignment`` does, if they changed.

    Return what changed since submissions were entered, in sentences. The due date is entered, too,
    if the settings have one; else that stays as the formgrader has it.
    """
    import nbformat
    from nbgrader import preprocessors as steps

    from attncourse.grading.course.mending import clear_solutions_or_break

    source, due = book.course / "solutions" / name / f"{name}.ipynb", due_in_settings(book, name)
    with course_modules_importable(book.course), explained_database_errors(book):
        notebook: Any = nbformat.reads(
            solved_in_variant(book.course, source).decode(), as_version=4
        )
        resources: Any = {
            "nbgrader": {"notebook": name, "assignment": name, "db_url": book.address}
        }
        for kind in (
            steps.LockCells,
            clear_solutions_or_break(),
            steps.ClearOutput,
            steps.ComputeChecksums,
        ):
            notebook, resources = kind(config=book.config).preprocess(notebook, resources)
    sentences: list[str] = []
    with open_gradebook(book) as gradebook:
        old, new = recorded_cells(gradebook, name), cells_to_record(notebook)
        if old:
            keep_added(book.course, name, [grade_id for grade_id in new if grade_id not in old])
        if old is not None and old != new:
            sentences = follow_changes(gradebook, book.course, name, marked_cells(notebook))
            entered = gradebook.find_notebook(name, name).submissions
            sentences = [*changes_of_cells(old, new), *sentences] if entered else []
        if old != new:
            gradebook.update_or_create_assignment(name)
            steps.SaveCells(config=book.config).preprocess(notebook, resources)
        enter_due_date(gradebook, name, due)
    return sentences


def due_in_settings(book: CourseGradebook, name: str) -> datetime | None:
    """Return when an assignment is due by the settings; None if they do not say.

    Raises ``UserError`` for a misspelled name, for which nobody would ever be late; an assignment
    that is still to be written may have its date.
    """
    due, assignments = due_of(book.config, name), set(folders_in(book.course / "solutions"))
    dated = {str(dated_assignment) for dated_assignment in book.config.Assignments.get("due", {})}
    for dated_assignment in sorted(dated - assignments):
        if hint := did_you_mean(dated_assignment, assignments - dated):
            raise UserError(f"c.Assignments.due: no assignment is called {dated_assignment}{hint}")
    return due


def enter_due_date(gradebook: "Gradebook", name: str, due: datetime | None) -> None:
    """Enter an assignment's due date where nbgrader looks for it; None for no date."""
    if due is not None and gradebook.find_assignment(name).duedate != due:
        # pyrefly: ignore [bad-argument-type]  nbgrader says that each of these is a dict
        gradebook.update_or_create_assignment(name, duedate=due)


def recorded_cells(gradebook: "Gradebook", name: str) -> dict[str, tuple] | None:
    """Return checksum and points of each recorded cell by its grade id; None for no assignment."""
    from nbgrader.api import MissingEntry

    try:
        notebook = gradebook.find_notebook(name, name)
    except MissingEntry:
        return None
    points = {cell.name: cell.max_score for cell in notebook.grade_cells}
    return {cell.name: (cell.checksum, points.get(cell.name)) for cell in notebook.source_cells}


def cells_to_record(notebook: Any) -> dict[str, tuple]:
    """Return checksum and points of each marked cell of a notebook, by its grade id."""
    marks = [cell.metadata.nbgrader for cell in marked_cells(notebook)]
    return {
        mark["grade_id"]: (mark.get("checksum"), float(mark["points"]) if mark["grade"] else None)
        for mark in marks
    }


def marked_cells(notebook: Any) -> list[Any]:
    """Return the cells of a notebook that nbgrader keeps a record of."""
    cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    kinds = ("grade", "solution", "locked", "task")
    return [cell for cell in cells if any(cell.metadata.nbgrader.get(kind) for kind in kinds)]
