"""Hand-ins that came after grading: what lies in ``submitted`` is not what the points are for."""

import hashlib
import json
from collections.abc import Collection, Iterator
from pathlib import Path

from attncourse.grading.course.folders import folders_in, read_submission
from attncourse.grading.course.forgotten import Forgotten
from attncourse.grading.harmless import one_line


def notebook_digest(notebook: bytes) -> str:
    """Return the digest of a submitted file, which its graded notebook keeps."""
    return hashlib.sha256(notebook).hexdigest()


def graded_digest(graded: str) -> str | None:
    """Return the digest of the file that a graded notebook was made of; None if it has none."""
    return json.loads(graded)["metadata"].get("attncourse", {}).get("made_of")


def newer_hand_ins(course: Path, name: str, graded: Collection[str]) -> list[str]:
    """Return a sentence on students whose newest hand-in is not in the points; none without any.

    ``graded`` are the students who have points.
    """
    students = ", ".join(map(one_line, waiting_students(course, name, graded)))
    sentence = f"{name}: handed in and not graded yet, so it is not in the points here: {students}"
    return [f"{sentence}: attncourse grade {name}"] if students else []


def waiting_students(course: Path, name: str, graded: Collection[str]) -> Iterator[str]:
    """Yield the students whose notebook in ``submitted`` is another one than the graded one.

    Bytes are compared, not times: a copy of the course has other times. Where no digest was kept,
    there is nothing to compare.
    """
    forgotten = Forgotten(course)
    for student in folders_in(course / "submitted"):
        before = course / "autograded" / student / name / f"{name}.ipynb"
        if student in graded and not before.is_file():
            continue
        submission = read_submission(course, name, student)
        waits = submission.status != "missing"
        if student in graded:
            waits = submission.data is not None and is_another(before, submission.data)
        if waits and not forgotten.has_id(student):
            yield student


def is_another(graded: Path, data: bytes) -> bool:
    """True if a graded notebook says that it was made of another file."""
    try:
        before = graded_digest(graded.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False
    return before is not None and before != notebook_digest(data)
