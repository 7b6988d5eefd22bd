"""One room opens, reads and writes nbgrader's database."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from attncourse.grading.course.settings import require_nbgrader
from attncourse.grading.gradebook import tables
from helpers.project import ROOT

GRADING = ROOT / "attncourse" / "grading"
DATABASES = ("sqlalchemy", "sqlite3", "nbgrader.api")
# The journal is a database of its own.
ELSEWHERE = {"driver/journal.py": {"sqlite3"}}


def imports_in(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def databases_in(path: Path) -> set[str]:
    """The databases' modules that a file imports."""
    return {
        database
        for module in imports_in(path)
        for database in DATABASES
        if module == database or module.startswith(f"{database}.")
    }


def test_no_other_room_imports_what_opens_a_database():
    found = {}
    for path in GRADING.rglob("*.py"):
        place = path.relative_to(GRADING)
        databases = databases_in(path) - ELSEWHERE.get(place.as_posix(), set())
        if databases and place.parts[0] != "gradebook":
            found[place.as_posix()] = databases
    assert found == {}
    assert databases_in(GRADING / "gradebook" / "connection.py") == set(DATABASES)


@pytest.mark.parametrize("table", tables.METADATA.sorted_tables, ids=lambda table: table.name)
def test_the_tables_that_are_read_are_nbgraders(table):
    require_nbgrader()
    from nbgrader.api import Base

    theirs = Base.metadata.tables[table.name].columns
    kinds = {column.name: type(column.type) for column in table.columns}
    assert kinds == {name: type(theirs[name].type) for name in kinds}
