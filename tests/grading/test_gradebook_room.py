"""Only one room opens, reads and writes nbgrader's database."""

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
ALLOWED_IMPORTS = {"driver/journal.py": {"sqlite3"}}


def imports_in(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def databases_in(path: Path) -> set[str]:
    """Return the database modules that a file imports."""
    return {
        database
        for module in imports_in(path)
        for database in DATABASES
        if module == database or module.startswith(f"{database}.")
    }


def test_no_other_room_imports_a_database_module():
    databases_by_file = {}
    for path in GRADING.rglob("*.py"):
        relative_path = path.relative_to(GRADING)
        databases = databases_in(path) - ALLOWED_IMPORTS.get(relative_path.as_posix(), set())
        if databases and relative_path.parts[0] != "gradebook":
            databases_by_file[relative_path.as_posix()] = databases
    assert databases_by_file == {}
    assert databases_in(GRADING / "gradebook" / "connection.py") == set(DATABASES)


@pytest.mark.parametrize("table", tables.METADATA.sorted_tables, ids=lambda table: table.name)
def test_our_tables_have_nbgraders_columns_and_types(table):
    require_nbgrader()
    from nbgrader.api import Base

    nbgrader_columns = Base.metadata.tables[table.name].columns
    types = {column.name: type(column.type) for column in table.columns}
    assert types == {name: type(nbgrader_columns[name].type) for name in types}
