"""The journal: each result is written down as it arrives, so that no run is ever lost."""

import json
import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from attncourse.grading.driver.old_journal import (
    OLD_JOURNAL,
    TAKEN_OVER,
    lines_without_student,
    read_old_journal,
    students_in_lines,
)
from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors
from attncourse.grading.report import Report, count, report_from_json, to_json

JOURNAL, DAMAGED_JOURNAL = "journal.db", "journal.db.damaged"
APPLICATION_ID = 0x6174746E  # "attn", in the file's header: it is a journal of this program
JOURNAL_FORMAT = 2  # 1 was a file of lines
BYTES_OF_PAGE = 8192  # two for a report
SECONDS_TO_FLUSH = 0.5  # between two flushes to the disk
MAX_ROWS_SKIPPED = 10_000  # at one damaged place: the most that a page of the tree leads to is 900
CLOSING_MILLISECONDS = 100  # that closing waits for whoever reads
JOURNAL_ADVICE = ": what is in the journal is safe; put this right and grade again"
TABLES = (
    "create table about (assignment text not null)",
    "create table result (number integer primary key, key blob not null, student text not null,"
    " conditions blob not null, report text not null, checksum integer not null)",
)
JOURNAL_COLUMNS = "number, checksum, key, student, conditions, report"


class ResultRow(NamedTuple):
    """A row of the results' table: ``report`` is JSON, ``conditions`` are empty if unknown."""

    key: bytes
    student: bytes
    conditions: bytes
    report: bytes

    @property
    def checksum(self) -> int:
        """Return the checksum of all columns; -1 where damage has left one of them no bytes."""
        checksum = 0
        for value in self:
            if not isinstance(value, bytes):
                return -1
            checksum = zlib.crc32(value, checksum)
        return checksum


class Journal:
    """The results of one assignment by key; of two with the same key, the later one counts.

    Only the rows' numbers are in memory. ``notes`` say what was found damaged, and what was taken
    over.
    """

    def __init__(self, path: Path, assignment: str) -> None:
        """Open the journal at ``path``, or make it; raise ``UserError`` if it is another's."""
        self.path = path
        self.notes: list[str] = []
        self._numbers: dict[bytes, int] = {}
        self._flushed = 0.0
        with explained_journal_errors(path):
            create_file(path)
            self._connection = self._open(assignment)
        try:
            with explained_journal_errors(path):
                self._take_over(assignment)
        except BaseException:
            self._connection.close()
            raise

    def __len__(self) -> int:
        """Return the number of keys that there is a result for."""
        return len(self._numbers)

    def find(self, key: str) -> Report | None:
        """Return the report with that key, or None."""
        row = self._row(self._numbers.get(bytes.fromhex(key)))
        if row is None:
            return None
        try:
            return report_from_json(json.loads(row.report))
        except (ValueError, KeyError, TypeError):
            return None  # of an earlier schema: it is graded again

    def class_seed(self, shared: bytes) -> int | None:
        """Return the seed of the newest result, if it has these conditions; else None."""
        row = self._row(max(self._numbers.values(), default=None))
        if row is not None and row.conditions == shared:
            with suppress(ValueError, KeyError, TypeError):
                return report_from_json(json.loads(row.report)).seed
        return None

    def write(self, key: str, report: Report, shared: bytes = b"") -> None:
        """Add a result in one transaction: where the disk has no room for it, nothing is added."""
        row = ResultRow(
            key=bytes.fromhex(key),
            student=student_bytes(report.student),
            conditions=shared,
            report=json.dumps(to_json(report)).encode(),
        )
        with explained_journal_errors(self.path):
            is_flushed = self._has_log and time.monotonic() - self._flushed > SECONDS_TO_FLUSH
            if is_flushed:  # with all that was written before it
                self._connection.execute("pragma synchronous = full")
            self._numbers[row.key] = insert_row(self._connection, row)
            if is_flushed:
                self._connection.execute("pragma synchronous = normal")
                self._flushed = time.monotonic()

    def close(self) -> None:
        """Move everything from the write-ahead log into the one file, and close it."""
        try:
            with explained_journal_errors(self.path):
                self._connection.execute("pragma synchronous = full")
                self._connection.execute(f"pragma busy_timeout = {CLOSING_MILLISECONDS}")
                # Where somebody reads, or there is no room, the log stays, and all is safe in it.
                with suppress(sqlite3.OperationalError):
                    self._connection.execute("pragma journal_mode = delete")
        finally:
            self._connection.close()

    def _row(self, number: int | None) -> ResultRow | None:
        """Return the row with a number; None for None, or if the row is damaged."""
        if number is None:
            return None
        with explained_journal_errors(self.path):
            query = f"select {JOURNAL_COLUMNS} from result where number = ?"
            record = self._connection.execute(query, (number,)).fetchone()
        return intact_row(record) if record else None

    def _open(self, assignment: str) -> sqlite3.Connection:
        """Return a connection to the database; what is damaged in it has been left out."""
        # Looked at before anything is written; to look may need what this file system has not.
        with (
            suppress(sqlite3.OperationalError),
            closing(connect_journal(self.path, "rw")) as untouched,
        ):
            self._check_header(untouched, assignment)
        connection, self._has_log = connect_to_write(self.path)
        try:
            create_tables(connection, assignment)
            self._check_header(connection, assignment)
            if not self._read_numbers(connection):
                n_results = save_readable_rows(connection, self.path, assignment)
                self.notes.append(
                    f"the journal was damaged: {count(n_results, 'result')} could be read and "
                    f"{'is' if n_results == 1 else 'are'} kept in it; the damaged file is "
                    f"{self.path.with_name(DAMAGED_JOURNAL)}"
                )
                connection, self._has_log = connect_to_write(self.path)
                self._read_numbers(connection)
        except BaseException:
            connection.close()
            raise
        if not self._has_log:
            self.notes.append(
                "this file system allows the journal no write-ahead log: each result is flushed to "
                "the disk by itself, which takes longer"
            )
        return connection

    def _read_numbers(self, connection: sqlite3.Connection) -> bool:
        """Note which row each result is in; return False if anything is damaged."""
        is_intact = True
        self._numbers.clear()
        try:
            for record in connection.execute(
                f"select {JOURNAL_COLUMNS} from result order by number"
            ):
                if (row := intact_row(record)) is None:
                    is_intact = False
                else:
                    self._numbers[row.key] = record[0]
        except sqlite3.OperationalError:  # locked or unreadable, not damaged
            raise
        except sqlite3.DatabaseError:  # malformed
            is_intact = False
        return is_intact

    def _check_header(self, connection: sqlite3.Connection, assignment: str) -> None:
        """Raise ``UserError`` if a database is no journal of this version and assignment."""
        if not has_tables(connection):
            return
        if pragma(connection, "application_id") != APPLICATION_ID:
            raise UserError(f"{self.path} is not a journal of this program: {move_away(self.path)}")
        version = pragma(connection, "user_version")
        if version != JOURNAL_FORMAT:
            raise UserError(
                f"{self.path} is of version {version}, expected {JOURNAL_FORMAT}: "
                f"{move_away(self.path)}"
            )
        names = [name for (name,) in connection.execute("select assignment from about")]
        if names != [assignment.encode()]:
            assignments = b", ".join(name for name in names if isinstance(name, bytes))
            raise UserError(
                f"{self.path} is of assignment {assignments.decode('utf-8', 'replace')}, expected "
                f"{assignment}: {move_away(self.path)}"
            )

    def _take_over(self, assignment: str) -> None:
        """Enter the results of an older journal, a file of lines, which stays beside this one."""
        old = self.path.with_name(OLD_JOURNAL)
        if not os.path.lexists(old):
            return
        records, notes = read_old_journal(old, assignment)
        rows: dict[bytes, ResultRow] = {}
        for record in records:
            row = ResultRow(
                key=bytes.fromhex(record["key"]),
                student=student_bytes(record["student"]),
                conditions=bytes.fromhex(record.get("conditions", "")),
                report=json.dumps(record["report"]).encode(),
            )
            rows.pop(row.key, None)  # so that the newest result stands last
            rows[row.key] = row
        # A process that was killed behind this transaction has left the old file as it was.
        new = [row for key, row in rows.items() if key not in self._numbers]
        self._connection.execute("pragma synchronous = full")  # before the old one has that name
        with self._connection:
            self._connection.execute("begin immediate")
            for row in new:
                self._numbers[row.key] = insert_row(self._connection, row)
        if self._has_log:
            self._connection.execute("pragma synchronous = normal")
        taken_over = old.with_name(TAKEN_OVER)
        os.replace(old, taken_over)
        self.notes += notes
        self.notes.append(
            f"the journal of an earlier version was taken over, {count(len(new), 'result')}; "
            f"{taken_over} is it, and may be deleted"
        )


# --- the database ---------------------------------------------------------------------------------


@contextmanager
def explained_journal_errors(
    path: Path, way_out: str = JOURNAL_ADVICE, doing: str = "write"
) -> Iterator[None]:
    """Raise ``UserError`` for errors of SQLite or the file system in the block, with advice."""
    try:
        with explained_file_errors(path, way_out, doing):
            yield
    except sqlite3.OperationalError as error:  # no room, no right to write, another holds it
        raise UserError(f"cannot {doing} {path}: {error}{way_out}") from error
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error):
            raise UserError(
                f"{path} is not a journal of this program: {move_away(path)}"
            ) from error
        raise UserError(f"{path} cannot be read: {error}: {move_away(path)}") from error


def move_away(path: Path) -> str:
    """Return the advice to move the journal away, so that a new one begins."""
    return f"move it away (mv '{path}' '{path}.old') and grade again"


def create_file(path: Path) -> None:
    """Make an empty file if there is none; raise ``OSError`` for a link."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644))


def connect_journal(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection that commits each statement, and returns texts as bytes.

    Damage may have made of a text what is none.
    """
    address = f"file:{quote(str(path.resolve()))}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    connection.text_factory = bytes
    return connection


def connect_to_write(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Return a connection to write by, and True if it has a write-ahead log.

    The log needs memory which processes share by a file, as not every network's file system has.
    There a rollback journal has to do, and a lock that keeps everybody else out.
    """
    connection = connect_journal(path, "rw")
    try:
        connection.execute(f"pragma page_size = {BYTES_OF_PAGE}")  # of a file that is new
        with suppress(sqlite3.OperationalError):
            connection.execute("pragma journal_mode = wal")
            connection.execute("begin immediate")  # in that mode one that cannot write says so
            connection.execute("commit")
            if pragma(connection, "journal_mode") == b"wal":
                connection.execute("pragma synchronous = normal")
                return connection, True
        connection.close()
        connection = connect_journal(path, "rw")
        connection.execute("pragma locking_mode = exclusive")
        connection.execute("pragma journal_mode = delete")
        connection.execute("pragma synchronous = full")
    except BaseException:
        connection.close()
        raise
    return connection, False


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    """Return the value of one of SQLite's settings."""
    return connection.execute(f"pragma {name}").fetchone()[0]


def has_tables(connection: sqlite3.Connection) -> bool:
    """True if a database is more than a new file."""
    return bool(connection.execute("select count(*) from sqlite_master").fetchone()[0])


def create_tables(connection: sqlite3.Connection, assignment: str) -> None:
    """Make the tables of a new journal in one transaction; one that has tables stays as it is."""
    if has_tables(connection):
        return
    with connection:
        connection.execute("begin immediate")
        for statement in TABLES:
            connection.execute(statement)
        connection.execute("insert into about values (?)", (assignment,))
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
        connection.execute(f"pragma user_version = {JOURNAL_FORMAT}")


def insert_row(connection: sqlite3.Connection, row: ResultRow) -> int:
    """Add a result's row; return its number."""
    columns = (row.key, row.student.decode(), row.conditions, row.report.decode(), row.checksum)
    statement = (
        "insert into result (key, student, conditions, report, checksum) values (?, ?, ?, ?, ?)"
    )
    return connection.execute(statement, columns).lastrowid or 0


def intact_row(record: tuple) -> ResultRow | None:
    """Return a record of the table as a row, or None if its checksum is wrong."""
    _, checksum, *columns = record
    row = ResultRow(*columns)
    return row if row.checksum == checksum else None


def student_bytes(student: str) -> bytes:
    """Return a student's id in UTF-8, as the table holds it; half characters are written out."""
    return student.encode("utf-8", "backslashreplace")


# --- what is damaged ------------------------------------------------------------------------------


def readable_rows(connection: sqlite3.Connection) -> Iterator[tuple]:
    """Yield, in order, the records of a damaged table that can still be read."""
    query = f"select {JOURNAL_COLUMNS} from result where number > ? order by number limit 1"
    number = n_skipped = 0
    while n_skipped < MAX_ROWS_SKIPPED:
        try:
            record = connection.execute(query, (number,)).fetchone()
        except sqlite3.DatabaseError:  # this page is damaged, a later one may not be
            record = (number,)
        if record is None:
            return
        if record[0] > number:
            yield record
            number = record[0]
            n_skipped = 0
        else:  # a damaged page may lead back as well
            number += 1
            n_skipped += 1


def save_readable_rows(connection: sqlite3.Connection, path: Path, assignment: str) -> int:
    """Write a journal anew from what can be read of it; return the number of results.

    The damaged one is kept under another name, with its log.
    """
    saved = path.with_name(f".{path.name}.new")
    saved.unlink(missing_ok=True)  # what a killed run has left
    create_file(saved)
    with closing(connect_journal(saved, "rw")) as new:
        create_tables(new, assignment)
        n_saved = 0
        with new:
            new.execute("begin immediate")
            for record in readable_rows(connection):
                if (row := intact_row(record)) is not None:
                    insert_row(new, row)
                    n_saved += 1
    shutil.copy2(path, path.with_name(DAMAGED_JOURNAL))
    for ending in ("-wal", "-journal"):
        log = path.with_name(path.name + ending)
        if log.exists():
            shutil.copy2(log, path.with_name(DAMAGED_JOURNAL + ending))
    connection.close()
    for ending in ("-wal", "-shm", "-journal"):  # or SQLite would apply them to the new one
        path.with_name(path.name + ending).unlink(missing_ok=True)
    os.replace(saved, path)
    return n_saved


# --- for those who do not grade -------------------------------------------------------------------


def has_journal(folder: Path) -> bool:
    """True if there is a journal in an assignment's folder, of lines or a database."""
    return (folder / JOURNAL).exists() or (folder / OLD_JOURNAL).exists()


def students_in_journal(folder: Path) -> dict[Path, list[str]]:
    """Return, by file, the students whose results a folder's journals hold, one for each result."""
    students = {
        path: students_in_lines(path)
        for path in (folder / OLD_JOURNAL, folder / TAKEN_OVER)
        if path.is_file()
    }
    path = folder / JOURNAL
    if path.is_file() and path.stat().st_size:
        with (
            explained_journal_errors(path, "", doing="read"),
            closing(connect_journal(path, "ro")) as connection,
        ):
            rows = connection.execute("select student from result")
            students[path] = [bytes(student).decode("utf-8", "replace") for (student,) in rows]
    return students


def remove_student_results(path: Path, student: str) -> None:
    """Remove a student's results, and what is damaged, from one of a folder's journals."""
    if path.name != JOURNAL:
        lines_without_student(path, student)
        return
    with explained_journal_errors(path, ""), closing(connect_journal(path, "rw")) as connection:
        # A write-ahead log would keep the removed rows; "vacuum" takes their bytes out of the file.
        connection.execute("pragma journal_mode = delete")
        records = connection.execute(f"select {JOURNAL_COLUMNS} from result").fetchall()
        for record in records:
            row = intact_row(record)
            if row is None or row.student == student_bytes(student):
                connection.execute("delete from result where number = ?", record[:1])
        connection.execute("vacuum")  # SQLite leaves the text of what it deletes


@contextmanager
def open_journal(folder: Path, assignment: str) -> Iterator[Journal]:
    """Yield the journal in a folder, which no other process can open meanwhile."""
    with only_process(folder):
        journal = Journal(folder / JOURNAL, assignment)
        try:
            yield journal
        finally:
            journal.close()


@contextmanager
def only_process(folder: Path, way_out: str = JOURNAL_ADVICE) -> Iterator[None]:
    """Keep other processes, in the block, from the assignment of a folder in ``reports``.

    Raises ``UserError`` if one is at work there. The lock ends with the process, however it ends;
    its file names the process.
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
