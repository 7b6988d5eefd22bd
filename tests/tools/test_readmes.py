"""What a room's README names is there: `path.py:name`, from the README's folder."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import typer

from attncourse.grading import cli
from helpers.project import ROOT

PACKAGE = ROOT / "attncourse"
READMES = [*sorted(PACKAGE.rglob("README.md")), ROOT / "tools" / "README.md"]
POINTER_PATTERN = re.compile(r"`((?:\.\./)*[\w/]+\.\w+)(?::([\w.]+))?`")


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_files_and_names_in_a_readme_exist(readme):
    named = POINTER_PATTERN.findall(readme.read_text("utf-8"))
    assert any(name for _, name in named), "expected places as `path.py:name`"
    missing = [
        f"{path}:{name}" for path, name in named if not target_exists(readme.parent, path, name)
    ]
    assert missing == []


@pytest.mark.parametrize("room", ["checks", "grading"])
def test_a_readmes_table_has_every_room(room):
    rooms = {path.parent.name for path in (PACKAGE / room).glob("*/__init__.py")}
    text = (PACKAGE / room / "README.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)/` \|", text, re.M)) == rooms


def test_every_tool_is_on_the_tools_page():
    text = (ROOT / "tools" / "README.md").read_text("utf-8")
    tools = {path.name for path in (ROOT / "tools").glob("*.py")}
    assert {name for name in tools if f"`{name}" not in text} == set()


def test_the_books_scripts_and_styles_are_on_the_tools_page():
    text = (ROOT / "tools" / "README.md").read_text("utf-8")
    assets = {path.name for path in (ROOT / "book" / "assets").iterdir()}
    served = {name for name in assets if name.endswith((".js", ".css"))}
    assert served
    assert {name for name in served if f"/{name}`" not in text} == set()


def test_every_command_is_on_the_page_of_grading():
    text = (PACKAGE / "grading" / "README.md").read_text("utf-8")
    table = text.partition("## The commands")[2].partition("## ")[0]
    listed = {name for row in table.splitlines() for name in re.findall("`([^`]+)`", row[:40])}
    assert typer.main.get_command(cli.app).commands.keys() <= listed


def test_contributing_links_every_readme():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    links = {str(path.relative_to(ROOT)) for path in READMES}
    assert links
    assert {link for link in links if f"]({link})" not in text} == set()


@pytest.mark.parametrize(
    ("path", "name", "exists"),
    [
        ("support/alarm.py", "ring", True),
        ("support/stopwatch.py", "Stopwatch.left", True),
        ("support/stopwatch.py", "CLOCK_SECONDS_PER_WORK", True),
        ("support/alarm.py", "", True),
        ("../Makefile", "", True),
        ("support/alarm.py", "left", False),
        ("support/stopwatch.py", "Stopwatch.rang", False),
        ("alarms.py", "ring", False),
    ],
)
def test_only_existing_files_and_names_are_found(path, name, exists):
    assert target_exists(PACKAGE, path, name) is exists


def target_exists(folder: Path, path: str, name: str) -> bool:
    """True if the file exists, seen from a folder or the root, and defines the name."""
    places = [place for place in (folder / path, ROOT / path) if place.is_file()]
    return any(not name or name in defined_names(place) for place in places)


@cache
def defined_names(path: Path) -> set[str]:
    """Return the names that a file binds at top level, and its classes' as ``Class.name``."""
    tree = ast.parse(path.read_text("utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    inner = {f"{node.name}.{name}" for node in classes for name in bound_names(node.body)}
    return bound_names(tree.body) | inner


def bound_names(body: list[ast.stmt]) -> set[str]:
    bound = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        nodes = (n for target in targets if target is not None for n in ast.walk(target))
        bound |= {n.id for n in nodes if isinstance(n, ast.Name)}
    return bound
