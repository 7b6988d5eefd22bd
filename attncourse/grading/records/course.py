"""A course's folders: which assignments there are, and who handed in what."""

import difflib
import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attncourse.grading.errors import UserError
from attncourse.grading.submission.notebook import Assignment, read_assignment

LARGEST = 50_000_000  # bytes of a notebook that are still read
LONGEST = 128  # characters of a student's name, as many as nbgrader's tables hold


@dataclass(frozen=True)
class Submission:
    """What a student handed in.

    ``data`` is None where there is nothing to grade: ``status`` is then "missing", or
    "unreadable" for what is there and is no file that could be read; ``reason`` says why.
    ``named`` is False where ``student`` stands in for a name that no gradebook can hold.
    """

    student: str
    data: bytes | None = None
    status: str = ""
    reason: str = ""
    note: str = ""
    timestamp: str = ""
    named: bool = True


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


def find_students(course: Path, name: str, student: str | None = None) -> list[str]:
    """Who has a folder in ``submitted``, or the one who was asked for; in order."""
    folder = course / "submitted"
    if not folder.is_dir():
        raise UserError(
            f"no folder {folder}: put notebooks at submitted/STUDENT/{name}/{name}.ipynb"
        )
    with os.scandir(folder) as entries:
        students = sorted(e.name for e in entries if e.name[0] != "." and is_place(e))
    if student is not None and student not in students:
        near = difflib.get_close_matches(student, students, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(f"no student is called {student} in {folder}{hint}")
    if not students:
        raise UserError(f"{folder} is empty: put notebooks at {folder}/STUDENT/{name}/{name}.ipynb")
    return [s for s in students if student in (None, s)]


def is_place(entry: os.DirEntry) -> bool:
    """Whether it is a student's folder, or a link that stands for one."""
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and not entry.is_file())


def read_submissions(course: Path, name: str, students: list[str]) -> Iterator[Submission]:
    """Each student's submission, read when it is asked for."""
    for student in students:
        yield read_submission(course, name, student)


def read_submission(course: Path, name: str, student: str) -> Submission:
    """A student's notebook; one that was renamed counts if it is the only one."""
    if fault := unusable(student):
        reason = f"the folder's name {fault}"
        return Submission(stand_in(student), status="unreadable", reason=reason, named=False)
    home = course / "submitted" / student
    place = home / name
    for folder in (home, place):
        if folder.is_symlink():
            reason = f"{folder.relative_to(course)} is a symbolic link, not a folder"
            return Submission(student, status="unreadable", reason=reason)
    try:
        path, reason = choose(place, name)
        if path is None:
            return Submission(student, status="missing", reason=reason)
        note = f"the notebook is called {path.name}" if path.name != f"{name}.ipynb" else ""
        return Submission(student, read_file(path), note=note, timestamp=read_stamp(place))
    except OSError as error:
        reason = f"unreadable notebook: {error.strerror or error}"
        return Submission(student, status="unreadable", reason=reason)


def unusable(student: str) -> str:
    """What is wrong with a name that neither a table nor a file could be called by."""
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in student):
        return "holds bytes or control characters that no name has"
    if len(student) > LONGEST or len(student.encode()) > 200:
        return f"is longer than {LONGEST} characters"
    return ""


def stand_in(student: str) -> str:
    """A name that can be shown and written, as distinct as the one it stands for."""
    raw = os.fsencode(student)
    shown = raw.decode("utf-8", "backslashreplace")[:30]
    shown = "".join(c if c.isprintable() else "?" for c in shown)
    return f"{shown} ({hashlib.sha256(raw).hexdigest()[:8]})"


def choose(place: Path, name: str) -> tuple[Path | None, str]:
    """The notebook that counts, or why there is none."""
    if not place.is_dir():
        return None, "nothing handed in"
    exact = f"{name}.ipynb"
    with os.scandir(place) as entries:
        found = sorted(e.name for e in entries if e.name.endswith(".ipynb") and e.name[0] != ".")
    if exact in found or len(found) == 1:
        return place / (exact if exact in found else found[0]), ""
    if found:
        return None, f"several notebooks and none is {exact}: {', '.join(found[:5])}"
    return None, "nothing handed in"


def read_file(path: Path, largest: int = LARGEST) -> bytes:
    """A plain file's bytes. Raises ``OSError`` for what is none, or too large."""
    if path.is_symlink():
        raise OSError(f"{path.name} is a symbolic link, not a file")
    # Without waiting: opening a pipe would wait for somebody to write into it.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(file, "rb") as content:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path.name} is not a plain file")
        if found.st_size > largest:
            raise OSError(f"{path.name} has {found.st_size / 1e6:.0f} MB, over {largest / 1e6:g}")
        return content.read(largest)


def read_stamp(place: Path) -> str:
    """The text of ``timestamp.txt``, which says when it was handed in; or nothing."""
    try:
        return read_file(place / "timestamp.txt", 1000).decode("utf-8", "replace").strip()
    except OSError:
        return ""
