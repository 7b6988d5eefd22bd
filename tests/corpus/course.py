"""Courses of corpus submissions on disk, and the points that a gradebook holds of them."""

import sqlite3
import zlib
from collections.abc import Iterable
from pathlib import Path

from corpus.assignment import Hostile, Work

SCORES = """
    SELECT s.student_id, b.name, coalesce(g.manual_score, g.auto_score)
    FROM grade g
    JOIN base_cell b ON b.id = g.cell_id
    JOIN submitted_notebook n ON n.id = g.notebook_id
    JOIN submitted_assignment s ON s.id = n.assignment_id
    JOIN assignment a ON a.id = s.assignment_id
    WHERE a.name = ?
"""


def make_course(folder: Path, work: Work, submissions: Iterable[tuple[str, Hostile]]) -> Path:
    """A course with one assignment, with these submissions, and with the answers in its history."""
    place = folder / "solutions" / work.name
    place.mkdir(parents=True)
    (place / f"{work.name}.ipynb").write_bytes(work.source)
    history = folder / ".git" / "objects" / "7c"
    history.mkdir(parents=True)
    (history / ("1d9e" * 10)[:38]).write_bytes(zlib.compress(b"blob 1\0" + work.source))
    for student, case in submissions:
        hand_in(folder, student, case)
    return folder


def hand_in(folder: Path, student: str, case: Hostile) -> None:
    """Puts a submission where a student of that name hands it in."""
    place = folder / "submitted" / student / case.work.name
    place.mkdir(parents=True)
    notebook = place / f"{case.work.name}.ipynb"
    if case.link:
        notebook.symlink_to(case.link)
    else:
        notebook.write_bytes(case.notebook())
    for name, text in case.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)


def scores(course: Path, work: Work) -> dict[str, dict[str, float]]:
    """Each student's points by graded cell; students with a cell that has none are left out.

    An answer that a person grades is named only if it has points before anybody has read it.
    """
    points_by_student: dict[str, dict[str, float]] = {}
    with sqlite3.connect(f"file:{course / 'gradebook.db'}?mode=ro", uri=True) as database:
        for student, cell, points in database.execute(SCORES, [work.name]):
            if cell in work.points or points:
                points_by_student.setdefault(student, {})[cell] = points
    return {
        student: cells
        for student, cells in points_by_student.items()
        if cells.keys() >= work.points.keys() and None not in cells.values()
    }


def unearned(case: Hostile, points_given: dict[str, float]) -> float:
    """Return the sum of points beyond what a submission deserves, cell by cell."""
    return sum(max(0, points - case.deserves.get(cell, 0)) for cell, points in points_given.items())


def lost(case: Hostile, points_given: dict[str, float]) -> float:
    """Return the sum of points that a submission deserves and did not get, cell by cell."""
    return sum(max(0, points - points_given.get(cell, 0)) for cell, points in case.deserves.items())
