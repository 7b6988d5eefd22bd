"""Releasing an assignment to students through nbgrader, and recording it in the gradebook."""

import logging
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attncourse.grading.course.changes import differences, follow, keep_added
from attncourse.grading.course.dates import due_of
from attncourse.grading.course.folders import find_assignment, folders_in
from attncourse.grading.course.gradebook import (
    Book,
    explained_database_errors,
    find_book,
    knows,
    opened,
)
from attncourse.grading.course.settings import importable
from attncourse.grading.course.variants import (
    PUBLISHED,
    choose_variant,
    solved_in_variant,
    variants_in,
)
from attncourse.grading.errors import UserError
from attncourse.grading.names import did_you_mean

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

VARIED = "attncourse.grading.nbgrader.steps.VariantExporter"  # by name: it is built upon this


def release_assignment(
    course: Path, name: str, db: str | None = None, variant: str = ""
) -> tuple[list[Path], list[str]]:
    """Makes the students' version as ``nbgrader generate_assignment`` does.

    In the variant that is named, or in the one of the last release. Returns the files it wrote,
    and what changed since submissions were graded.
    """
    book = find_book(course, db)
    find_assignment(course, name)
    due = due_in(book, name)
    known = knows(book, name)  # or it is another course's gradebook
    before = variants_in(course).get(name, PUBLISHED)
    choose_variant(course, name, variant or before)
    changed = record(book, name) if known else []
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    config = Config(book.config)
    config.CourseDirectory.root = str(course.resolve())
    config.CourseDirectory.db_url = book.address
    config.CourseDirectory.course_id = book.course_id
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "exercises"
    config.GenerateAssignment.exporter_class = VARIED
    config.GenerateAssignment.preprocessors = release_steps()
    config.NbGraderAPI.log_level = logging.CRITICAL
    with importable(course), opened(book) as gradebook:
        result = NbGraderAPI(config=config).generate_assignment(name)
        if result["success"]:
            gradebook.db.expire_all()
            enter_due(gradebook, name, due)
    place = course / "exercises" / name
    if not result["success"]:
        choose_variant(course, name, before)
        said = str(result.get("error") or result.get("log") or "no reason given").strip()
        raise UserError(f"nbgrader cannot release {name}: {said.splitlines()[-1]}")
    return sorted(path for path in place.rglob("*") if path.is_file()), changed


def release_steps() -> list[Any]:
    """Return nbgrader's steps of a release, with ours in the place of the one that takes answers
    out.
    """
    from nbgrader.converters import GenerateAssignment
    from nbgrader.preprocessors import ClearSolutions

    from attncourse.grading.course.mending import clear_solutions_or_break

    trait: Any = GenerateAssignment.preprocessors
    steps = trait.default_args[0]
    ours = clear_solutions_or_break()
    return [ours if step is ClearSolutions else step for step in steps]


def releasable(course: Path) -> list[str]:
    """The assignments that have a solved notebook; raises ``UserError`` where there are none."""
    source = course / "solutions"
    names = [name for name in folders_in(source) if (source / name / f"{name}.ipynb").is_file()]
    if not names:
        raise UserError(f"no assignment in {source}: run this in the course's folder: --course")
    return names


def require_release(book: Book, name: str) -> None:
    """Raises ``UserError`` for an assignment that students were never given."""
    released = book.course / "exercises" / name / f"{name}.ipynb"
    if not knows(book, name) and not released.is_file():
        raise UserError(f"{name} was never released: attncourse release {name}")


def record(book: Book, name: str) -> list[str]:
    """Records the assignment's cells as ``nbgrader generate_assignment`` does, if they changed.

    Returns what changed since submissions were entered, in sentences. When it is due is
    entered too, where the settings say so; else that stays as the formgrader has it.
    """
    import nbformat
    from nbgrader import preprocessors as steps

    from attncourse.grading.course.mending import clear_solutions_or_break

    source, due = book.course / "solutions" / name / f"{name}.ipynb", due_in(book, name)
    with importable(book.course), explained_database_errors(book):
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
    said: list[str] = []
    with opened(book) as gradebook:
        old, new = recorded(gradebook, name), to_record(notebook)
        if old:
            keep_added(book.course, name, [grade_id for grade_id in new if grade_id not in old])
        if old is not None and old != new:
            said = follow(gradebook, book.course, name, marked_cells(notebook))
            entered = gradebook.find_notebook(name, name).submissions
            said = [*differences(old, new), *said] if entered else []
        if old != new:
            gradebook.update_or_create_assignment(name)
            steps.SaveCells(config=book.config).preprocess(notebook, resources)
        enter_due(gradebook, name, due)
    return said


def due_in(book: Book, name: str) -> datetime | None:
    """When an assignment is due by the settings. A misspelled name, for which nobody would ever be
    late, is a ``UserError``; an assignment that is still to be written may have its date.
    """
    due, known = due_of(book.config, name), set(folders_in(book.course / "solutions"))
    dated = {str(named) for named in book.config.Assignments.get("due", {})}
    for named in sorted(dated - known):
        if hint := did_you_mean(named, known - dated):
            raise UserError(f"c.Assignments.due: no assignment is called {named}{hint}")
    return due


def enter_due(gradebook: "Gradebook", name: str, due: datetime | None) -> None:
    """Enters when an assignment is due, where nbgrader looks for it."""
    if due is not None and gradebook.find_assignment(name).duedate != due:
        # pyrefly: ignore [bad-argument-type]  nbgrader says that each of these is a dict
        gradebook.update_or_create_assignment(name, duedate=due)


def recorded(gradebook: "Gradebook", name: str) -> dict[str, tuple] | None:
    """The checksum and points of each cell of an assignment, where the gradebook knows it."""
    from nbgrader.api import MissingEntry

    try:
        notebook = gradebook.find_notebook(name, name)
    except MissingEntry:
        return None
    points = {cell.name: cell.max_score for cell in notebook.grade_cells}
    return {cell.name: (cell.checksum, points.get(cell.name)) for cell in notebook.source_cells}


def to_record(notebook: Any) -> dict[str, tuple]:
    """The checksum and points of each of nbgrader's cells in a notebook."""
    marks = [cell.metadata.nbgrader for cell in marked_cells(notebook)]
    return {
        mark["grade_id"]: (mark.get("checksum"), float(mark["points"]) if mark["grade"] else None)
        for mark in marks
    }


def marked_cells(notebook: Any) -> list[Any]:
    """The cells of a notebook that nbgrader keeps a record of."""
    cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    kinds = ("grade", "solution", "locked", "task")
    return [cell for cell in cells if any(cell.metadata.nbgrader.get(kind) for kind in kinds)]
