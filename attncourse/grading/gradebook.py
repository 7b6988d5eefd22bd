"""nbgrader's gradebook: what is graded is written here, by the driver and by nobody else."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attncourse.grading.autograded import autograded
from attncourse.grading.course import Submission
from attncourse.grading.errors import UserError
from attncourse.grading.notebook import Assignment
from attncourse.grading.report import Report

Result = tuple[Submission, Report]

COURSE_ID = "attention"  # as in nbgrader_config.py


def require_nbgrader() -> None:
    """Raises ``UserError`` where nbgrader is not installed."""
    if importlib.util.find_spec("nbgrader") is None:
        raise UserError("nbgrader is not installed: pip install 'attncourse[grade]'")
    # nbgrader makes its tables with the `alembic` command, which lies beside this Python.
    here = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "")
    if here not in path.split(os.pathsep):
        os.environ["PATH"] = f"{here}{os.pathsep}{path}"


def database(course: Path) -> str:
    """The address of a course's gradebook."""
    return f"sqlite:///{(course / 'gradebook.db').resolve()}"


def save(course: Path, assignment: Assignment, results: Iterable[Result]) -> None:
    """Writes every report into the gradebook in the course's folder, and ``autograded/``.

    A score that a person has given stays and is marked for review, as nbgrader itself does. Who
    handed in nothing gets no submission, so that the formgrader shows it as missing.
    """
    require_nbgrader()
    from nbgrader.api import Gradebook

    with explained(course), Gradebook(database(course), COURSE_ID) as gradebook:
        for submission, report in results:
            gradebook.update_or_create_student(report.student)
            if submission.path is not None:
                write_points(gradebook, course, report)
                write_notebook(course, submission.path, assignment, report)
        gradebook.db.commit()


@contextmanager
def explained(course: Path) -> Iterator[None]:
    """Turns what the database objects to into one line."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, ValueError, OSError) as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        raise UserError(f"cannot write {course / 'gradebook.db'}: {reason}") from error


def write_points(gradebook, course: Path, report: Report) -> None:
    """Writes one report's points, without committing them."""
    name = report.assignment
    stamp = course / "submitted" / report.student / name / "timestamp.txt"
    when = {"timestamp": stamp.read_text().strip()} if stamp.is_file() else {}
    with gradebook.db.no_autoflush:  # which would warn: nbgrader fills in a new row step by step
        submission = gradebook.update_or_create_submission(name, report.student, **when)
    for notebook in submission.notebooks:
        if notebook.name != name:
            continue
        for grade in notebook.grades:
            found = report.cells.get(grade.name)
            grade.auto_score = found.points if found else None
            grade.needs_manual_grade = grade.manual_score is not None or found is None


def write_notebook(course: Path, path: Path, assignment: Assignment, report: Report) -> None:
    """Writes what the formgrader shows; without it, nbgrader takes the points for none."""
    place = course / "autograded" / report.student / assignment.name
    place.mkdir(parents=True, exist_ok=True)
    target = place / f"{assignment.name}.ipynb"
    target.unlink(missing_ok=True)  # nbgrader's own are read-only
    data = path.read_bytes() if os.access(path, os.R_OK) else b""
    target.write_text(autograded(data, assignment, report), encoding="utf-8")
    stamp = path.parent / "timestamp.txt"
    if stamp.is_file():
        (place / stamp.name).unlink(missing_ok=True)
        shutil.copy(stamp, place)


def record_assignment(course: Path, name: str) -> None:
    """Records the assignment's cells as ``nbgrader generate_assignment`` does, if they changed."""
    require_nbgrader()
    import nbformat
    from nbgrader import preprocessors as steps
    from nbgrader.api import Gradebook

    notebook = nbformat.read(course / "solutions" / name / f"{name}.ipynb", as_version=4)
    resources = {
        "nbgrader": {"notebook": name, "assignment": name, "db_url": database(course)},
    }
    for step in (steps.LockCells, steps.ClearSolutions, steps.ClearOutput, steps.ComputeChecksums):
        notebook, resources = step().preprocess(notebook, resources)
    try:
        with explained(course), Gradebook(database(course), COURSE_ID) as gradebook:
            if recorded(gradebook, name) == to_record(notebook):
                return
            gradebook.update_or_create_assignment(name)
            steps.SaveCells().preprocess(notebook, resources)
    except RuntimeError:
        raise UserError(
            f"the graded cells of {name} changed after submissions were graded: "
            f"run `nbgrader db assignment remove {name} --force` and grade again"
        ) from None


def recorded(gradebook, name: str) -> dict[str, tuple]:
    """The checksum and points of each cell that the gradebook knows of an assignment."""
    from nbgrader.api import MissingEntry

    try:
        notebook = gradebook.find_notebook(name, name)
    except MissingEntry:
        return {}
    points = {cell.name: cell.max_score for cell in notebook.grade_cells}
    return {cell.name: (cell.checksum, points.get(cell.name)) for cell in notebook.source_cells}


def to_record(notebook) -> dict[str, tuple]:
    """The checksum and points of each of nbgrader's cells in a notebook."""
    marks = [cell.metadata.nbgrader for cell in notebook.cells if "nbgrader" in cell.metadata]
    return {
        mark["grade_id"]: (mark.get("checksum"), float(mark["points"]) if mark["grade"] else None)
        for mark in marks
        if mark["grade"] or mark["solution"] or mark["locked"]
    }
