"""Copying a gradebook to another database: all rows, or none."""

from pathlib import Path
from typing import Any

from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.connection import (
    CourseGradebook,
    connect_to,
    explained_database_errors,
    find_gradebook,
    gradebook_to_read,
    open_gradebook,
)

MAX_TABLES_NAMED = 5


def copy_gradebook(course: Path, to: str, db: str | None = None) -> dict[str, int]:
    """Copy a gradebook to an empty database; return how many rows each table has.

    All rows are there, or none, and the first gradebook stays as it is. Raises ``UserError`` if the
    other database holds anything.
    """
    from sqlalchemy import func, insert, select

    from attncourse.grading.gradebook.tables import student

    source, target = find_gradebook(course, db), find_gradebook(course, to)
    if source.url == target.url:
        raise UserError(f"{target} is the gradebook already: name another database with --to")
    with gradebook_to_read(course, db) as connection:
        n_students = connection.execute(select(func.count()).select_from(student)).scalar_one()
    if contents := database_contents(target):
        raise UserError(
            f"{target} is not empty ({contents}): nothing was moved; name an empty database with "
            "--to"
        )
    with open_gradebook(target):
        pass  # which makes nbgrader's tables, and the course
    from nbgrader.api import Base

    numbers = {}
    with (
        connect_to(source, to_read=True) as old,
        connect_to(target) as new,
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
    assert numbers["student"] == n_students
    return numbers


def database_contents(book: CourseGradebook) -> str:
    """Return what a database holds, in words; "" if it is empty or not there yet."""
    from sqlalchemy import func, inspect, select

    from attncourse.grading.gradebook.tables import assignment, student

    if book.file is not None and not book.file.exists():
        return ""
    with connect_to(book) as connection:
        names = inspect(connection).get_table_names()
        if names and "student" not in names:
            return f"its tables are {', '.join(sorted(names)[:MAX_TABLES_NAMED])}"
        if names:
            for table in (student, assignment):
                number = connection.execute(select(func.count()).select_from(table)).scalar_one()
                if number:
                    return f"{table.name}: {number}"
    return ""
