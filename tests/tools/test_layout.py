"""Every chapter of `_toc.yml` has its whole row: page, code, answers, task, checks, tests."""

from __future__ import annotations

import ast
import re
from collections import Counter

import course as settings
import pytest
from navigation import LINES, WORDS, reading_minutes

from attncourse import checks
from helpers.project import ROOT

CHAPTERS = settings.load(ROOT).chapters


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.folder)
def test_the_row_of_a_chapter_is_complete(chapter):
    stem, folder = chapter.stem, chapter.folder
    row = [
        f"book/{folder}.md",
        f"book/{folder}.ipynb",
        f"attncourse/{stem}.py",
        f"solutions/{folder}/{folder}.py",
        f"solutions/{folder}/{folder}.ipynb",
        f"exercises/{folder}/{folder}.ipynb",
        f"attncourse/bank/{stem}/__init__.py",
        f"tests/test_{stem}.py",
    ]
    assert [path for path in row if not (ROOT / path).is_file()] == []


BESIDE_EXERCISES = {"__init__", "cases", "mistakes", "shared", "variants"}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.folder)
def test_an_exercise_is_a_file_of_its_name(chapter):
    """What several exercises share is in at most two files beside them, and in their variants."""
    files = {path.stem for path in (ROOT / "attncourse" / "bank" / chapter.stem).glob("*.py")}
    names = [exercise.name for exercise in checks.chapter(chapter.stem)]
    expected = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name in names}
    assert files - BESIDE_EXERCISES == expected
    assert len(files & {"cases", "mistakes", "shared"}) <= 2


def test_tests_stand_in_the_rooms_of_their_modules():
    top = {path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("test_*.py")}
    assert sorted(top - {path.stem for path in (ROOT / "attncourse").glob("*.py")}) == []


def test_no_two_tests_have_one_name():
    """Tests are imported by their file's name, whichever folder they are in."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if "fixtures" not in path.parts]
    names = [path.stem for path in files if path.stem != "__init__"]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_a_tests_name_is_shorter_than_60_characters():
    files = (path for path in (ROOT / "tests").rglob("test_*.py") if "fixtures" not in path.parts)
    names = [
        name for path in files for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
    ]
    assert [name for name in names if len(name) >= 60] == []


def test_no_test_imports_another():
    """Helpers are in ``tests/helpers``; only right answers come from chapters' tests."""
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "fixtures" not in path.parts]
    imports = re.compile(r"^(?:from|import) (test_\w+)", re.MULTILINE)
    taken = {name for path in files for name in imports.findall(path.read_text("utf-8"))}
    assert taken <= {f"test_{chapter.stem}" for chapter in CHAPTERS}


def test_no_two_classes_have_one_name():
    """Classes inside functions and answers are excepted: an answer has its exercise's name."""
    places: dict[str, list[str]] = {}
    rooms = (ROOT / name for name in ("attncourse", "benchmarks", "tests", "tools"))
    files = sorted(path for room in rooms for path in room.rglob("*.py"))
    for path in (path for path in files if path.parent.name != "by_hand"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


# Functions of the package that still share a name: a page, a command or a chapter calls them by it,
# or nobody has found a better one yet. None is added; one that gets a name of its own goes.
# fmt: off
SHARED_NAMES = {
    "answers", "as_ids", "attention_weights", "cached", "check", "cloud", "copy",
    "data_flow", "dot", "kept", "main", "masked", "model", "one_hot", "price_list", "product",
    "progress", "ring", "run", "split", "square", "train", "turned",
    "unit", "unit_rows", "weights", "within", "without",
}
# fmt: on


def test_no_more_functions_share_a_name():
    """The banks are excepted: their functions have the names of decisions."""
    names: Counter[str] = Counter()
    for path in (ROOT / "attncourse").rglob("*.py"):
        if not path.is_relative_to(ROOT / "attncourse" / "bank"):
            tree = ast.parse(path.read_text("utf-8"))
            names.update({n.name for n in tree.body if isinstance(n, ast.FunctionDef)})
    assert {name for name, modules in names.items() if modules > 1} == SHARED_NAMES


def test_no_chapter_is_outside_the_table_of_contents():
    folders = {chapter.folder for chapter in CHAPTERS}
    pages = {path.stem for path in (ROOT / "book").glob("[0-9][0-9]_*.md")}
    tasks = {path.name for path in (ROOT / "exercises").iterdir() if path.is_dir()}
    answers = {path.name for path in (ROOT / "solutions").iterdir() if path.is_dir()}
    assert pages == folders
    assert tasks == folders
    assert answers == folders


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("book/01_tokens", "book/07_tokens", "chapter 1 is book/07_tokens"),
        (
            "- file: book/syllabus",
            "- file: book/05_more",
            "book/05_more is called like a chapter and stands in a part without numbered: true",
        ),
        ("- file: book/01_tokens", "- file: book/extra", "chapter 1 is book/extra"),
    ],
)
def test_a_page_out_of_place_is_named(old, new, message, tmp_path):
    (tmp_path / "_config.yml").write_text((ROOT / "_config.yml").read_text())
    (tmp_path / "_toc.yml").write_text((ROOT / "_toc.yml").read_text().replace(old, new))
    with pytest.raises(settings.CourseError, match=re.escape(message)):
        settings.load(tmp_path)


def test_folded_content_takes_no_reading_time():
    shown = "---\n# A page\n" + "word " * (WORDS * 10)
    cell = "\n```{code-cell} ipython3\n%s" + "x = 1\n" * (LINES * 10) + "```\n"
    core = "\n---\n" + shown
    assert reading_minutes(core) == 10
    assert reading_minutes(core + cell % "") == 20
    assert reading_minutes(core + cell % ":tags: [hide-input]\n") == 10
    assert reading_minutes(core + cell % "---\ntags: [remove-input]\n---\n") == 10
    answer = "\n:::{dropdown} Yes\n" + "word " * 2000 + "\n:::\n"
    assert reading_minutes(core + answer) == 10
    deeper = "\n## Deeper\n### A proof\n" + "word " * 2000
    assert reading_minutes(core + deeper) == 10
    assert reading_minutes(core + deeper + "\n## Further reading\n" + "word " * WORDS * 5) == 15
