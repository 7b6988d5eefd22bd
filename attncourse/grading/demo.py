"""The sample class as a course of its own, ready to be graded."""

import json
import shutil
from pathlib import Path

from attncourse.grading.course.folders import find_assignment
from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors
from attncourse.grading.limits import Limits
from attncourse.grading.sample import CLASS

ASSIGNMENT = "05_kqv"
LIMITS = Limits(submission=90, cell=2, call=2)
# The course's own settings may name a gradebook, dates and plugins of a real class.
SETTINGS = """c = get_config()  # nbgrader provides this
c.CourseDirectory.course_id = "attention"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
"""


def make_course(source: Path, folder: Path) -> None:
    """Make a course in ``folder``: the assignment of ``source``, and the sample class's answers.

    What an earlier demo left in ``folder`` is removed; a folder that holds anything else is not
    touched.
    """
    find_assignment(source, ASSIGNMENT)
    released = source / "exercises" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    if not released.exists():
        raise UserError(f"{released} is missing: make it with make exercises")
    with explained_file_errors(folder, way_out=": name another with --folder"):
        make_demo_course(source, folder, released)


def make_demo_course(source: Path, folder: Path, released: Path) -> None:
    """Make the demo's course in an empty folder, with the ``released`` notebook handed in."""
    remove_demo_course(folder)
    for part in ("solutions", "exercises"):
        place = folder / part / ASSIGNMENT
        place.mkdir(parents=True)
        shutil.copy(source / part / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", place)
    (folder / "nbgrader_config.py").write_text(SETTINGS, encoding="utf-8")
    notebook = released.read_text(encoding="utf-8")
    for student, answers in CLASS.items():
        place = folder / "submitted" / student / ASSIGNMENT
        place.mkdir(parents=True)
        (place / f"{ASSIGNMENT}.ipynb").write_text(
            fill_solution_cells(notebook, answers), encoding="utf-8"
        )


def gradebook_url(folder: Path) -> str:
    """Return the address of the demo's gradebook, which is in its folder, whatever settings say."""
    from attncourse.grading.gradebook.connection import sqlite_address

    return sqlite_address(folder.resolve() / "gradebook.db")


def remove_demo_course(folder: Path) -> None:
    """Remove a course that an earlier demo made; its students tell that it is one."""
    if not folder.exists():
        return
    is_demo = all((folder / "submitted" / student).is_dir() for student in CLASS)
    if not folder.is_dir() or (any(folder.iterdir()) and not is_demo):
        raise UserError(f"{folder} holds something else than a demo: name another with --folder")
    shutil.rmtree(folder)


def fill_solution_cells(notebook: str, answers: dict[str, str]) -> str:
    """Return a released notebook whose solution cells hold these answers, by grade id."""
    content = json.loads(notebook)
    for cell in content["cells"]:
        mark = cell["metadata"].get("nbgrader", {})
        if mark.get("solution") and mark.get("grade_id") in answers:
            cell["source"] = answers[mark["grade_id"]]
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
