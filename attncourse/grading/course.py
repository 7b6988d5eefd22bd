"""A course's folders: which assignments there are, who handed in what, and grading it all."""

import difflib
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from attncourse.grading.errors import UserError
from attncourse.grading.judge import grade, nothing
from attncourse.grading.limits import Limits
from attncourse.grading.notebook import Assignment, read_assignment
from attncourse.grading.report import Report


@dataclass(frozen=True)
class Submission:
    """What a student handed in; ``path`` is None where there is no notebook, for ``reason``."""

    student: str
    path: Path | None
    reason: str = ""
    note: str = ""


def find_assignment(course: Path, name: str) -> Assignment:
    """The assignment of that name, from the instructor's solved notebook."""
    source = course / "solutions"
    if not source.is_dir():
        raise UserError(
            f"no folder {source}: run this in the course's folder, or name it: --course"
        )
    known = sorted(p.name for p in source.iterdir() if p.is_dir() and not p.name.startswith("."))
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UserError(f"no assignment is called {name}.{hint} There are: {', '.join(known)}")
    path = source / name / f"{name}.ipynb"
    if not path.exists():
        raise UserError(f"{path} is missing: make it with make exercises")
    return read_assignment(path)


def find_submissions(course: Path, name: str, student: str | None = None) -> list[Submission]:
    """What each student, or one, has in ``submitted/STUDENT/ASSIGNMENT/``."""
    folder = course / "submitted"
    if not folder.is_dir():
        raise UserError(
            f"no folder {folder}: put notebooks at submitted/STUDENT/{name}/{name}.ipynb"
        )
    students = sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if student is not None and student not in students:
        near = difflib.get_close_matches(student, students, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(f"no student is called {student} in {folder}{hint}")
    if not students:
        raise UserError(f"{folder} is empty: put notebooks at {folder}/STUDENT/{name}/{name}.ipynb")
    return [find_submission(folder, s, name) for s in students if student in (None, s)]


def find_submission(folder: Path, student: str, name: str) -> Submission:
    """A student's notebook; one that was renamed counts if it is the only one."""
    place = folder / student / name
    exact = place / f"{name}.ipynb"
    if exact.is_file():
        return Submission(student, exact)
    found = sorted(place.glob("*.ipynb")) if place.is_dir() else []
    if len(found) == 1:
        return Submission(student, found[0], note=f"the notebook is called {found[0].name}")
    if found:
        names = ", ".join(path.name for path in found)
        return Submission(student, None, f"several notebooks and none is {name}.ipynb: {names}")
    return Submission(student, None, "nothing handed in")


def grade_submission(submission: Submission, assignment: Assignment, limits: Limits) -> Report:
    """The report on one submission, read from its file."""
    if submission.path is None:
        return nothing(assignment, "missing", submission.reason, submission.student)
    try:
        data = submission.path.read_bytes()
    except OSError as error:
        reason = f"unreadable notebook: {error.strerror}"
        return nothing(assignment, "unreadable", reason, submission.student)
    report = grade(data, assignment, student=submission.student, limits=limits)
    if submission.note:
        report = replace(report, notes=(submission.note, *report.notes))
    return report


def grade_all(
    submissions: Iterable[Submission],
    assignment: Assignment,
    executor: Executor,
    limits: Limits,
    done: Callable[[Report], None] = lambda report: None,
) -> list[Report]:
    """The reports, in the order of the submissions; ``done`` is told of each as it comes."""
    waiting = [executor.submit(grade_submission, s, assignment, limits) for s in submissions]
    try:
        for future in as_completed(waiting):
            done(future.result())
    except BaseException:
        for future in waiting:
            future.cancel()
        raise
    return [future.result() for future in waiting]
