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
NAMED = re.compile(r"`((?:\.\./)*[\w/]+\.\w+)(?::([\w.]+))?`")


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_what_it_names_is_there(readme):
    named = NAMED.findall(readme.read_text("utf-8"))
    assert any(name for _, name in named), "expected places as `path.py:name`"
    missing = [f"{path}:{name}" for path, name in named if not is_there(readme.parent, path, name)]
    assert missing == []


@pytest.mark.parametrize("room", ["checks", "grading"])
def test_its_table_has_every_room(room):
    rooms = {path.parent.name for path in (PACKAGE / room).glob("*/__init__.py")}
    text = (PACKAGE / room / "README.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)/` \|", text, re.M)) == rooms


def test_every_tool_is_on_the_tools_page():
    text = (ROOT / "tools" / "README.md").read_text("utf-8")
    tools = {path.name for path in (ROOT / "tools").glob("*.py")}
    assert {name for name in tools if f"`{name}" not in text} == set()


def test_every_script_and_style_of_the_book_is_on_the_tools_page():
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


def test_contributing_links_each():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    links = {str(path.relative_to(ROOT)) for path in READMES}
    assert links
    assert {link for link in links if f"]({link})" not in text} == set()


@pytest.mark.parametrize(
    ("path", "name", "there"),
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
def test_what_is_there_is_found_and_nothing_else(path, name, there):
    assert is_there(PACKAGE, path, name) is there


def is_there(folder: Path, path: str, name: str) -> bool:
    """Whether there is such a file, seen from a folder or from the root, and defines the name."""
    places = [place for place in (folder / path, ROOT / path) if place.is_file()]
    return any(not name or name in defined(place) for place in places)


@cache
def defined(path: Path) -> set[str]:
    """The names that a file binds at its top, and those of its classes as ``Class.name``."""
    tree = ast.parse(path.read_text("utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    inner = {f"{node.name}.{name}" for node in classes for name in bound(node.body)}
    return bound(tree.body) | inner


def bound(body: list[ast.stmt]) -> set[str]:
    found = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = (n for target in targets if target is not None for n in ast.walk(target))
        found |= {n.id for n in names if isinstance(n, ast.Name)}
    return found
