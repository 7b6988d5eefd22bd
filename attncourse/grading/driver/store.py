"""The files that grading writes: each is whole or as it was before."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attncourse.grading.course.folders import Submission
from attncourse.grading.errors import UserError
from attncourse.grading.report import Report, to_json


def write_report(course: Path, report: Report) -> None:
    """Writes ``reports/ASSIGNMENT/STUDENT.json``."""
    text = json.dumps(to_json(report), indent=1, ensure_ascii=False) + "\n"
    replace_file(course / "reports" / report.assignment / f"{report.student}.json", text)


def write_notebook(course: Path, name: str, submission: Submission, notebook: str) -> None:
    """Writes what the formgrader shows; without it, nbgrader takes the points for none."""
    place = course / "autograded" / submission.student / name
    replace_file(place / f"{name}.ipynb", notebook)
    stamp = place / "timestamp.txt"  # nbgrader tells by it whether this is the latest
    if submission.timestamp:
        replace_file(stamp, submission.timestamp + "\n")
    else:
        with explained(stamp):
            stamp.unlink(missing_ok=True)


def replace_file(path: Path, text: str) -> None:
    """Puts a file in the place of another at one stroke.

    The new one has the same name for a while at each run, so that what a killed run has left of
    it goes away with the next.
    """
    made = path.with_name(f".{path.name}.new")
    with explained(path):
        try:
            write(made, text)
            os.replace(made, path)
        except BaseException:
            with suppress(OSError):
                made.unlink()
            raise


def write(path: Path, text: str) -> None:
    """Writes a file, in a folder that is made where there is none."""
    options = {"encoding": "utf-8", "errors": "backslashreplace"}
    try:
        path.write_text(text, **options)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, **options)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns what the file system objects to into one line."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
