"""The steps of CONTRIBUTING.md, run in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attncourse import STEMS
from helpers.project import ROOT

COPIED_FOLDERS = ("attncourse", "book", "exercises", "solutions", "tests", "tools")
BIN = Path(sys.executable).parent


@pytest.fixture
def repository_copy(tmp_path) -> Path:
    """Return a copy of the repository without history and builds, with its compiled files."""
    written = shutil.ignore_patterns("*.pyc.*")  # by others at this moment, and gone the next
    for name in COPIED_FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=written)
    for path in ROOT.iterdir():
        if path.is_file() and path.suffix in (".md", ".py", ".yml", ".toml", ".txt"):
            shutil.copy(path, tmp_path)
    shutil.copy(ROOT / "LICENSE", tmp_path)
    release_cache = "_build/.released"  # of the chapters that stay as they are
    if (ROOT / release_cache).exists():
        shutil.copytree(ROOT / release_cache, tmp_path / release_cache)
    return tmp_path


def run_in_copy(root: Path, *command: str) -> str:
    """Run a tool of the environment in the copy, with the copy's package first on the path."""
    process = subprocess.run(
        [BIN / command[0], *command[1:]],
        cwd=root,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert process.returncode == 0, f"{' '.join(command)}\n{process.stdout}\n{process.stderr}"
    return process.stdout


def add_an_exercise(root: Path) -> None:
    """Write what CONTRIBUTING.md asks for: a file of the bank, and lines at the end of others."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    steps = re.findall(
        r"`([\w/.]+\.py)`(?:, here at\s+its end)?:\n\n```python\n(.*?)```", text, re.S
    )
    assert [path for path, _ in steps] == [
        "attncourse/mixing.py",
        "attncourse/bank/mixing/exponential_weights.py",
        "attncourse/bank/mixing/__init__.py",
        "tests/test_mixing.py",
        "solutions/02_mixing/02_mixing.py",
    ]
    for path, code in steps:
        text = f"{(root / path).read_text()}\n\n" if (root / path).exists() else ""
        (root / path).write_text(text + code)


def add_numbered(fixture: Path, target: Path, number: int) -> None:
    """Add the fixture's files with the chapter's number in place of 0."""
    for path in fixture.rglob("*"):
        if path.is_file() and path.suffix in (".md", ".py"):
            place = target / str(path.relative_to(fixture)).replace("00_", f"{number:02d}_")
            place.parent.mkdir(parents=True, exist_ok=True)
            text = re.sub(
                r"\b(chapter|exercises) 0\b", rf"\1 {number}", path.read_text(), flags=re.I
            )
            place.write_text(text)


def add_a_chapter(root: Path) -> None:
    """Add a chapter of one exercise, ``smallest``, after the last one."""
    last, number = STEMS[-1], len(STEMS) + 1
    add_numbered(ROOT / "tests/fixtures/chapter", root, number)

    def edit(path: str, old: str, new: str) -> None:
        text = (root / path).read_text()
        assert text.count(old) == 1, f"{path} has {text.count(old)} times {old!r}"
        (root / path).write_text(text.replace(old, new))

    page = f"      - file: book/{number - 1:02d}_{last}\n"
    edit("_toc.yml", page, f"{page}      - file: book/{number:02d}_smallest\n")
    edit("attncourse/__init__.py", f'    "{last}",\n', f'    "{last}",\n    "smallest",\n')
    # The contracts may name modules whose chapters are still to come.
    contracts = (root / "pyproject.toml").read_text()
    top = re.search(r'layers = \[\n    "attncourse\.(\w+)",\n', contracts)
    smallest = top[0].replace("layers = [\n", 'layers = [\n    "attncourse.smallest",\n')
    edit("pyproject.toml", top[0], smallest)
    edit(
        "pyproject.toml",
        f'"attncourse.{top[1]} : ',
        f'"attncourse.smallest : attncourse.{top[1]} : ',
    )
    edit(
        "pyproject.toml",
        f'"attncourse.{top[1]}"]',
        f'"attncourse.{top[1]}", "attncourse.smallest"]',
    )


@pytest.mark.slow
def test_an_exercise_and_a_chapter_are_added_as_documented(repository_copy):
    """What `make exercises` and `make test` then run, on what was added."""
    add_an_exercise(repository_copy)
    add_a_chapter(repository_copy)
    where = run_in_copy(
        repository_copy, "python", "-c", "import attncourse; print(attncourse.__file__)"
    )
    assert Path(where.strip()).is_relative_to(repository_copy)
    run_in_copy(repository_copy, "python", "tools/exercises.py")
    run_in_copy(repository_copy, "python", "tools/exercises.py", "--check")
    run_in_copy(repository_copy, "lint-imports", "--no-cache")
    added = {"mixing": "exponential_weights", "smallest": "spread"}
    tests = ["checks/test_checks", "tools/test_layout", *(f"test_{stem}" for stem in added)]
    names = " or ".join(["layout", *added.values()])
    files = [f"tests/{test}.py" for test in tests]
    pytest_command = [
        "python",
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-vv",
        "-k",
        names,
        *files,
    ]
    out = run_in_copy(repository_copy, *pytest_command)
    for stem, name in added.items():
        assert re.search(rf"test_mistake_is_caught_and_named\w*\[{stem}\.{name}\b.* PASSED", out)
        assert re.search(rf"test_right_answer_passes\[{stem}\.{name}\b.* PASSED", out)
        exercise = next((repository_copy / "exercises").glob(f"*_{stem}/*.ipynb")).read_text()
        assert f"def {name}" in exercise
        assert "YOUR CODE HERE" in exercise
