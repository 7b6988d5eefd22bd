"""Moving on: a gradebook to another database, and a term's work to the archive."""

import shutil
from pathlib import Path
from typing import Any

from attncourse.grading.collect.groups import FILE as GROUPS
from attncourse.grading.course.extensions import FILE as EXTENSIONS
from attncourse.grading.course.folders import folders_in, unusable
from attncourse.grading.course.forgotten import FILE as FORGOTTEN
from attncourse.grading.course.gradebook import (
    Book,
    connected,
    explained_database_errors,
    find_book,
    gradebook_to_read,
    opened,
)
from attncourse.grading.course.variants import FILE as VARIANTS
from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors as file_explained
from attncourse.grading.results.scores import rows_of

WORK = ("submitted", "autograded", "feedback", "reports", EXTENSIONS, GROUPS, FORGOTTEN, VARIANTS)
# What grades it, and weighs it.
WITH = ("solutions", "exercises", "nbgrader_config.py", "course_settings.py", "weights.csv")


def copy_gradebook(course: Path, to: str, db: str | None = None) -> dict[str, int]:
    """Copy all of a gradebook to an empty database: points, a person's scores, comments.

    Returns how many rows each table has. All rows are there, or none. What was copied from stays.
    Raises ``UserError`` where the other database holds anything.
    """
    from sqlalchemy import insert, select

    source, target = find_book(course, db), find_book(course, to)
    if source.url == target.url:
        raise UserError(f"{target} is the gradebook already: name another database with --to")
    with gradebook_to_read(course, db) as connection:
        students = next(iter(rows_of(connection, "select count(*) from student")))[0]
    if held := rows_held(target):
        raise UserError(
            f"{target} is not empty ({held}): nothing was moved; name an empty database with --to"
        )
    with opened(target):
        pass  # which makes nbgrader's tables, and the course
    from nbgrader.api import Base

    numbers = {}
    with (
        connected(source, to_read=True) as old,
        connected(target) as new,
        explained_database_errors(target),
    ):
        for table in reversed(Base.metadata.sorted_tables):
            new.execute(table.delete())  # the course that opening has entered
        for table in Base.metadata.sorted_tables:
            records = old.execute(select(table)).mappings()
            rows: list[dict[str, Any]] = [dict(row) for row in records]
            if rows:
                new.execute(insert(table), rows)
            numbers[table.name] = len(rows)
        new.commit()
    assert numbers["student"] == students
    return numbers


def rows_held(book: Book) -> str:
    """Return what a database has in it, in words; nothing where it is empty or not there yet."""
    from sqlalchemy import inspect, text

    if book.file is not None and not book.file.exists():
        return ""
    with connected(book) as connection:
        names = inspect(connection).get_table_names()
        if names and "student" not in names:
            return f"its tables are {', '.join(sorted(names)[:5])}"
        if names:
            for name in ("student", "assignment"):
                number = connection.execute(text(f"select count(*) from {name}")).scalar_one()
                if number:
                    return f"{name}: {number}"
    return ""


def begin_term(course: Path, name: str, db: str | None = None) -> Path:
    """Move a term's work to ``terms/NAME``, where every command still reads it; return the folder.

    Raises ``UserError`` where a term of that name is there, where there is nothing to move, and
    where the gradebook is a server's, which is named by its address.
    """
    if unusable(name) or Path(name).name != name or name.startswith("."):
        raise UserError(f"a term's name is that of a folder, as in 2026-autumn; got {name}")
    place, book = course / "terms" / name, find_book(course, db)
    if place.exists():
        raise UserError(f"{place} is there already: nothing was moved; give the term another name")
    if book.file is None:
        raise UserError(
            f"{book} is a server's: begin the term with another database, and keep this one for "
            "the old term; attncourse move-gradebook --to sqlite:///gradebook.db brings it here"
        )
    existing = [course / entry for entry in WORK if (course / entry).exists()]
    if book.file.exists():
        existing.append(book.file)
    if not existing:
        raise UserError(f"there is no term's work in {course}: nothing to move")
    for lock in (
        course / "reports" / entry / "journal.lock" for entry in folders_in(course / "reports")
    ):
        if lock.is_file():
            require_free(lock)
    with file_explained(place, "; what was moved is there, the rest is where it was"):
        place.mkdir(parents=True)
        for entry in WITH:
            if (course / entry).is_dir():
                shutil.copytree(course / entry, place / entry)
            elif (course / entry).is_file():
                shutil.copy2(course / entry, place / entry)
        for path in existing:
            path.rename(place / path.name)
    return place


def require_free(lock: Path) -> None:
    """Raise ``UserError`` where a process collects or grades an assignment just now."""
    from attncourse.grading.driver.journal import only_process

    with only_process(lock.parent, ""):
        pass
