"""Reading the journal of earlier versions, a file of JSON lines, so that it can be taken over."""

import json
import zlib
from pathlib import Path
from typing import Any

from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors, replace_bytes

OLD_JOURNAL, TAKEN_OVER = "journal.jsonl", "journal.jsonl.old"
OLD_FORMAT = 1
LENGTH_OF_CHECKSUM = len(b', "sum": "01234567"}\n')


def read_old_journal(path: Path, assignment: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the records of an old journal, and notes on what is damaged in it.

    Raises ``UserError`` for what is no such journal, or another assignment's.
    """
    with explained_file_errors(path, doing="read"), path.open("rb") as file:
        header, *lines = file.readlines() or [b""]
    if not header.endswith(b"\n") and not lines:
        return [], []  # torn while it was made, before there was a result
    require_header(path, header, assignment)
    notes, records, n_damaged = [], [], 0
    for line in lines:
        if not line.endswith(b"\n"):
            notes.append("the old journal's last record was torn and is left out")
        elif (record := intact_record(line)) is not None:
            records.append(record)
        else:
            n_damaged += 1
    if n_damaged:
        notes.append(f"damaged records in the old journal that are left out: {n_damaged}")
    return records, notes


def require_header(path: Path, line: bytes, assignment: str) -> None:
    """Raise ``UserError`` if a file's first line is not that of this assignment's journal."""
    way_out = f"move it away (mv '{path}' '{path}.old') and grade again"
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or "journal" not in header:
        raise UserError(f"{path} is not a journal of this program: {way_out}")
    for name, noun, expected in (
        ("journal", "version", OLD_FORMAT),
        ("assignment", "assignment", assignment),
    ):
        if header.get(name) != expected:
            raise UserError(
                f"{path} is of {noun} {header.get(name)}, expected {expected}: {way_out}"
            )


def intact_record(line: bytes) -> dict[str, Any] | None:
    """Return the record in a line, or None if its checksum is wrong."""
    body, end = line[:-LENGTH_OF_CHECKSUM], line[-LENGTH_OF_CHECKSUM:]
    if end != b', "sum": "%08x"}\n' % zlib.crc32(body):
        return None
    try:
        record = json.loads(line)
        is_whole = isinstance(record["report"], dict) and len(bytes.fromhex(record["key"])) == 32
        bytes.fromhex(record.get("conditions", ""))
        str(record["student"])
    except (ValueError, KeyError, TypeError):
        return None
    return record if is_whole else None


def students_in_lines(path: Path) -> list[str]:
    """Return the students whose results an old journal has, one for each result."""
    with explained_file_errors(path, doing="read"), path.open("rb") as lines:
        return [student_of_line(line) for line in lines][1:]


def student_of_line(line: bytes) -> str:
    """Return the student whose result a line holds; "" where it is damaged."""
    try:
        return str(json.loads(line)["student"])
    except (ValueError, KeyError, TypeError):
        return ""


def lines_without_student(path: Path, student: str) -> None:
    """Write an old journal anew without a student's results, and without damaged lines."""
    with explained_file_errors(path), path.open("rb") as lines:
        header, *records = lines
    others = [line for line in records if student_of_line(line) not in ("", student)]
    replace_bytes(path, b"".join([header, *others]))
