"""The journal: each result, written down as it arrives, so that no run is ever lost.

A result has a key, made of all that it depends on: where that is the same, nothing runs again.
A file of JSON lines, ``reports/ASSIGNMENT/journal.jsonl``. The first says which format and which
assignment; each other one is the result of one run, with a checksum. Lines are only ever added.
"""

import hashlib
import json
import os
import platform
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors, replace_bytes
from attncourse.grading.limits import Limits
from attncourse.grading.report import Report, report_from_json, to_json
from attncourse.grading.submission.notebook import Assignment

JOURNAL, FORMAT = "journal.jsonl", 1
SYNC = 0.5  # seconds between two flushes to the disk
KEY = slice(9, 73)  # where a record has its key: {"key": "…64 digits…"
SUM = 20  # bytes of a line's end: , "sum": "…8 digits…"}

WAY_OUT = ": what is in the journal is safe; put this right and grade again"
PACKAGES = ("numpy", "torch")  # whose versions a result depends on
writing = partial(explained_file_errors, way_out=WAY_OUT)


class Journal:
    """One assignment's results by key. Of two with the same key, the later one counts.

    What is kept in memory is where each result stands. ``notes`` say what was found damaged.
    """

    def __init__(self, path: Path, assignment: str) -> None:
        self.path = path
        self.notes: list[str] = []
        self._places: dict[bytes, tuple[int, int]] = {}
        self._synced = 0.0
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        with writing(path):
            self._file = os.open(path, flags, 0o644)
        try:
            with writing(path):
                self._end = self._read(assignment)
        except BaseException:
            os.close(self._file)
            raise

    def __len__(self) -> int:
        return len(self._places)

    def find(self, key: str) -> Report | None:
        """The result with that key, or None."""
        place = self._places.get(bytes.fromhex(key))
        if place is None:
            return None
        with writing(self.path):
            line = os.pread(self._file, place[1], place[0])
        try:
            return report_from_json(json.loads(line)["report"])
        except (ValueError, KeyError, TypeError):
            return None  # of an earlier schema: it is graded again

    def class_seed(self, shared: bytes) -> int | None:
        """The seed of the newest result, if that was made under these conditions, else None."""
        newest = max(self._places.values(), default=None)
        if newest is None:
            return None
        with writing(self.path):
            line = os.pread(self._file, newest[1], newest[0])
        with suppress(ValueError, KeyError, TypeError):
            record = json.loads(line)
            if record.get("conditions") == shared.hex():
                return report_from_json(record["report"]).seed
        return None

    def write(self, key: str, report: Report, shared: bytes = b"") -> None:
        """Adds a result, in one write; a disk that has no room for all of it gets none of it."""
        plain: dict[str, Any] = {"key": key, "student": report.student, "conditions": shared.hex()}
        plain["report"] = to_json(report)
        self._places[bytes.fromhex(key)] = self._append(plain)

    def close(self) -> None:
        """Makes sure that everything is on the disk."""
        try:
            with writing(self.path):
                os.fsync(self._file)
        finally:
            os.close(self._file)

    def _append(self, content: dict) -> tuple[int, int]:
        line = sealed(content)
        try:
            with writing(self.path):
                if os.write(self._file, line) < len(line):
                    raise OSError("the disk is full")
        except BaseException:
            os.ftruncate(self._file, self._end)
            raise
        place = (self._end, len(line))
        self._end += len(line)
        if time.monotonic() - self._synced > SYNC:
            with writing(self.path):
                os.fdatasync(self._file) if hasattr(os, "fdatasync") else os.fsync(self._file)
            self._synced = time.monotonic()
        return place

    def _read(self, assignment: str) -> int:
        """Finds every record; cuts off a last line that is not whole. Returns the file's length."""
        header = {"journal": FORMAT, "assignment": assignment}
        with open(self._file, "rb", closefd=False) as lines:
            lines.seek(0)
            first = lines.readline()
            if not first.endswith(b"\n") and sealed(header).startswith(first):
                os.ftruncate(self._file, 0)  # empty, or torn while it was made
                self._end = 0
                self._append(header)
                return self._end
            self._check(first, header)
            end, damaged = len(first), 0
            for line in lines:
                if not line.endswith(b"\n"):
                    os.ftruncate(self._file, end)
                    self.notes.append("the journal's last record was torn and is cut off")
                    break
                if intact(line) and line.startswith(b'{"key": "'):
                    self._places[bytes.fromhex(line[KEY].decode())] = (end, len(line))
                else:
                    damaged += 1
                end += len(line)
        if damaged:
            self.notes.append(f"damaged records in the journal that are left out: {damaged}")
        return end

    def _check(self, first: bytes, header: dict) -> None:
        """Raises ``UserError`` where the first line is not this header."""
        way_out = f"move it away (mv '{self.path}' '{self.path}.old') and grade again"
        try:
            header_found = json.loads(first)
        except ValueError:
            header_found = None
        if not isinstance(header_found, dict) or "journal" not in header_found:
            raise UserError(f"{self.path} is not a journal of this program: {way_out}")
        for name, what in (("journal", "version"), ("assignment", "assignment")):
            if header_found.get(name) != header[name]:
                header_found, wanted = header_found.get(name), header[name]
                raise UserError(
                    f"{self.path} is of {what} {header_found}, expected {wanted}: {way_out}"
                )


def sealed(content: dict) -> bytes:
    """One line of JSON that ends in the checksum of what stands before it."""
    body = json.dumps(content).encode()[:-1]
    return b'%s, "sum": "%08x"}\n' % (body, zlib.crc32(body))


def intact(line: bytes) -> bool:
    """True if a line is as ``sealed`` wrote it."""
    body, end = line[: -SUM - 1], line[-SUM - 1 :]
    return end == b', "sum": "%08x"}\n' % zlib.crc32(body)


def records_of(path: Path) -> list[str]:
    """The students whose results a journal has, one for each result."""
    if not path.is_file():
        return []
    with writing(path), path.open("rb") as lines:
        return [student_of(line) for line in lines][1:]


def student_of(line: bytes) -> str:
    try:
        return str(json.loads(line)["student"])
    except (ValueError, KeyError, TypeError):
        return ""  # damaged


def without_student(path: Path, student: str) -> None:
    """Writes a journal anew without a student's results, and without what is damaged in it."""
    with writing(path), path.open("rb") as lines:
        header, *records = lines
    others = [line for line in records if student_of(line) not in ("", student)]
    replace_bytes(path, b"".join([header, *others]), way_out=WAY_OUT)


@contextmanager
def open_journal(folder: Path, assignment: str) -> Iterator[Journal]:
    """The journal in a folder, for this process alone."""
    with only_process(folder):
        journal = Journal(folder / JOURNAL, assignment)
        try:
            yield journal
        finally:
            journal.close()


@contextmanager
def only_process(folder: Path, way_out: str = WAY_OUT) -> Iterator[None]:
    """Lets one process at a time work on the assignment of a folder in ``reports``.

    The lock ends with the process, however it ends; its file names who has it.
    """
    import fcntl  # not on Windows

    path = folder / "journal.lock"
    with explained_file_errors(path, way_out):
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 20, 0).decode().strip() or "unknown"
            raise UserError(
                f"{folder.name} is being collected or is being graded already, by process "
                f"{holder}: wait for it, or stop it, and try again"
            ) from None
        with explained_file_errors(path, way_out):
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(file)


def conditions(assignment: Assignment, limits: Limits, sandbox: bool) -> bytes:
    """Return a hash of what all submissions of a run share: task, checks, limits, jail and
    versions.
    """
    shared = {
        "assignment": asdict(assignment),
        "limits": asdict(limits),
        "sandbox": sandbox,
        "python": platform.python_version(),
        "packages": {name: library_version(name) for name in PACKAGES},
        "sources": sources_hash(),
    }
    return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).digest()


def result_key(shared: bytes, student: str, notebook: bytes) -> str:
    """The key of one submission's result, 64 digits."""
    digest = hashlib.sha256(shared)
    digest.update(hashlib.sha256(student.encode()).digest())
    digest.update(notebook)
    return digest.hexdigest()


def library_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


@cache
def sources_hash() -> str:
    """A hash of the installed package's own text: chapters, checks and grading."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()
