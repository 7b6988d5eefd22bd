"""Opening nbgrader's gradebook: which database it is, and whether it is this course's."""

import errno
import logging
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from attncourse.grading.course.settings import COURSE_ID, read_settings, require_nbgrader
from attncourse.grading.errors import UserError
from attncourse.grading.files import locked_file

if TYPE_CHECKING:
    from nbgrader.api import Gradebook
    from sqlalchemy import Connection
    from sqlalchemy.engine import URL
    from traitlets.config import Config

URL_VARIABLE = "ATTNCOURSE_DB"  # of the environment
SHARED_COURSE_IDS = {"", "default_course"}  # nbgrader enters them where it knows of no course


@dataclass(frozen=True)
class CourseGradebook:
    """A course's gradebook: the course's folder, the database's address, nbgrader's settings."""

    course: Path
    url: "URL"
    config: "Config"

    @property
    def course_id(self) -> str:
        """Return the id by which nbgrader knows the course."""
        return str(self.config.CourseDirectory.get("course_id", COURSE_ID))

    @property
    def address(self) -> str:
        """Return the database's address with its password: never to be shown."""
        return self.url.render_as_string(hide_password=False)

    @property
    def file(self) -> Path | None:
        """Return the file of an SQLite gradebook; None for another database."""
        path = self.url.database if self.url.get_backend_name() == "sqlite" else None
        return Path(path) if path else None

    def __str__(self) -> str:
        """Return the address without its password, as it may be shown."""
        if self.file is not None:
            with suppress(ValueError):
                return str(self.course / self.file.relative_to(self.course.resolve()))
            return str(self.file)
        return self.url.update_query_dict({}).render_as_string(hide_password=True).split("?")[0]


def sqlite_address(file: Path) -> str:
    """Return the address of an SQLite database in a file whose path may have any signs."""
    from sqlalchemy.engine import URL

    return URL.create("sqlite", database=str(file)).render_as_string()


def find_gradebook(course: Path, db: str | None = None) -> CourseGradebook:
    """Return the gradebook named by ``db``, else by the environment, settings or folder."""
    require_nbgrader()
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    config = read_settings(course)
    address = db or os.environ.get(URL_VARIABLE) or str(config.CourseDirectory.get("db_url", ""))
    try:
        url = make_url(address or f"sqlite:///{(course / 'gradebook.db').resolve()}")
        kind = url.get_backend_name()
    except (ArgumentError, ValueError):  # a port that is no number, say
        raise UserError(
            "the database's address cannot be read: expected sqlite:///gradebook.db or "
            "postgresql://USER:PASSWORD@HOST/NAME"
        ) from None
    if kind == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
        url = url.update_query_dict({"connect_timeout": "10", **url.query})
    return CourseGradebook(course, url, config)


@contextmanager
def explained_database_errors(book: CourseGradebook, doing: str = "write") -> Iterator[None]:
    """Raise ``UserError`` for a database's error in the block, in one line without a password."""
    from sqlalchemy.exc import SQLAlchemyError

    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # nbgrader prints what it then raises
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, ImportError, ValueError, OSError) as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        if book.url.password:
            reason = reason.replace(str(book.url.password), "***")
        raise UserError(f"cannot {doing} {book}: {reason}{database_advice(reason)}") from error
    finally:
        logging.disable(level)


def database_advice(reason: str) -> str:
    """Return advice on a database's complaint; "" for one that is not known here."""
    for words, advice in (
        ("database is locked", "another process holds it (the formgrader, nbgrader?): end it"),
        ("not a database", "move it away"),
        ("malformed", "restore it from a backup, or move it away"),
        ("readonly", "make the file and its folder writable"),
        (r"no such column|column \S+ does not exist", "of an older nbgrader: nbgrader db upgrade"),
        ("unable to open", "is its folder there, and writable?"),
        ("is full", "make room on the disk"),
        ("No module named 'psycopg", "pip install 'attncourse[postgres]'"),
    ):
        if re.search(words, reason):
            return f" ({advice})"
    return ""


@contextmanager
def open_gradebook(book: CourseGradebook) -> Iterator["Gradebook"]:
    """Yield nbgrader's own object for the database; missing tables are made."""
    from nbgrader import api

    # For new tables, nbgrader starts a program only to ask for this number: seconds.
    api.get_alembic_version = tables_version
    with explained_database_errors(book):
        make_sqlite_file(book)
        with api.Gradebook(book.address, book.course_id) as gradebook:
            yield gradebook


def tables_version() -> str:
    """Return nbgrader's newest version of its tables."""
    import nbgrader
    from alembic.script import ScriptDirectory

    folder = Path(nbgrader.__file__).parent / "alembic"
    return ScriptDirectory(str(folder)).get_current_head() or ""


def make_sqlite_file(book: CourseGradebook) -> None:
    """Make a new SQLite gradebook at one stroke, so that none is ever there in part."""
    from nbgrader.api import Gradebook

    if book.file is None or book.file.exists():
        return
    new_file = book.file.with_name(f".{book.file.name}.new")
    address = sqlite_address(new_file)
    file = locked_file(new_file)  # another process may be about to make it as well
    try:
        if not book.file.exists():
            os.ftruncate(file, 0)  # what a killed run has left
            with closing(Gradebook(address, book.course_id)):
                pass
            move_if_free(new_file, book.file)
    finally:
        new_file.unlink(missing_ok=True)
        os.close(file)


def move_if_free(file: Path, place: Path) -> None:
    """Move a file to a place; raise ``FileExistsError`` if there is a file already."""
    try:
        os.link(file, place)  # refuses, where another program was quicker
    except FileExistsError:
        raise
    except OSError:  # a file system without a second name for a file: a stick, a network's drive
        if place.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place)) from None
        os.rename(file, place)


def has_assignment(book: CourseGradebook, name: str) -> bool:
    """True if the gradebook has this assignment; raise ``UserError`` for another course's."""
    from sqlalchemy import false, func, inspect, select, update

    from attncourse.grading.gradebook.tables import assignment, course

    if book.file is not None and not book.file.exists():
        return False
    with connect_to(book) as connection:
        if not inspect(connection).get_table_names():
            return False
        require_own_gradebook(book, connection)
        query = select(func.count()).where(assignment.c.name == name)
        n_assignments = connection.execute(query).scalar_one()
        connection.rollback()
        if book.file is not None:
            connection.exec_driver_sql("begin immediate")  # is it free?
        connection.execute(update(course).where(false()).values(id=course.c.id))  # writable?
        connection.rollback()
        return bool(n_assignments)


@contextmanager
def gradebook_to_read(course: Path, db: str | None = None) -> Iterator["Connection"]:
    """Yield a connection that only reads, to the course's gradebook or the one at ``db``."""
    book = find_gradebook(course, db)
    if book.file is not None and not book.file.is_file():
        raise UserError(f"there is no gradebook {book}: grade first: attncourse grade ASSIGNMENT")
    with connect_to(book, to_read=True) as connection:
        require_own_gradebook(book, connection)
        yield connection


@contextmanager
def connect_to(book: CourseGradebook, *, to_read: bool = False) -> Iterator["Connection"]:
    """Yield a connection without nbgrader, which would change tables; ``to_read`` only reads."""
    from sqlalchemy import create_engine

    with explained_database_errors(book, "read" if to_read else "write"):
        if to_read and book.file is not None:
            address = f"file:{quote(str(book.file.resolve()))}?mode=ro"
            engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(address, uri=True))
        else:
            engine = create_engine(book.address)
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()


def require_own_gradebook(book: CourseGradebook, connection: "Connection") -> None:
    """Raise ``UserError`` if tables are not nbgrader's, or are another course's."""
    from sqlalchemy import inspect, select, union

    from attncourse.grading.gradebook.tables import assignment, course

    tables = set(inspect(connection).get_table_names())
    if not {"course", "assignment", "grade"} <= tables:
        held = "holds other tables than" if tables else "is not a gradebook of"
        raise UserError(f"{book} {held} nbgrader's: name another with --db")
    query = union(select(course.c.id), select(assignment.c.course_id))
    owners = {str(owner) for (owner,) in connection.execute(query)} - SHARED_COURSE_IDS
    if owners and book.course_id not in owners:
        raise UserError(
            f"{book} is the gradebook of another course ({', '.join(sorted(owners))}; "
            f"this one is {book.course_id}): name this course's with --course or --db"
        )
