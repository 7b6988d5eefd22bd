"""The package ``mine``: what notebooks define, as modules, one for each chapter."""

import ast
import hashlib
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from attncourse import MILESTONES, STEMS
from attncourse.grading.files import explained_file_errors, replace_file
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Cell
from attncourse.grading.submission.source import python_alone
from attncourse.grading.submission.syntax import bound_names, cell_names, first_line, parse_or_none
from attncourse.support.stopwatch import CLOCK_SECONDS_PER_WORK

INSTALLS = "#@title"  # the cell that Colab needs
MADE_BY_MARK = "# Made by attncourse assemble: "  # and a hash of what follows
PACKAGE_ADVICE = "; name another folder with -o"
REACHED_FILE = "reached.json"  # in the package's folder: the milestones
CHECK = """
import importlib, json, sys
from attncourse.checks import examine
found = {}
for target in sys.argv[1:]:
    stem, name = target.split(".")
    try:
        answer = getattr(importlib.import_module(f"mine.{stem}"), name)
        verdict = examine(target, answer, explain=False)
        found[target] = "" if verdict.passed else verdict.reason
    except BaseException as error:
        found[target] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(found))
"""


class Definition(NamedTuple):
    """A statement of a notebook that defines something, with its source."""

    node: ast.stmt
    text: str

    @property
    def bound(self) -> frozenset[str]:
        """Return the names that the statement defines."""
        return bound_names(ast.Module([self.node], []))

    @property
    def read(self) -> frozenset[str]:
        """Return the names that the statement needs."""
        return cell_names(ast.Module([self.node], [])).read


@dataclass(frozen=True)
class ChapterParts:
    """What one chapter's notebook defines, and for each exercise why it is not the student's.

    ``why`` is empty for a part that is the student's; ``ours_needed`` has, for some of those, the
    parts of ours with which alone it is right.
    """

    stem: str
    path: Path
    code: tuple[Definition, ...]
    why: dict[str, str]
    ours_needed: dict[str, list[str]] = field(default_factory=dict)

    @property
    def mine(self) -> list[str]:
        """Return the names of exercises whose answers are the student's."""
        return [name for name, reason in self.why.items() if not reason]

    @property
    def ours(self) -> list[str]:
        """Return the names of exercises whose answers are ours."""
        return [name for name, reason in self.why.items() if reason]

    def changed(self, **why: str) -> "ChapterParts":
        """Return the chapter with other reasons for these exercises."""
        return replace(self, why=self.why | why)


def definitions_in(cells: Iterable[Cell]) -> tuple[Definition, ...]:
    """Return a notebook's imports, functions, classes and constants, and nothing that runs."""
    definitions = []
    for cell in cells:
        is_students = cell.code and not cell.test and not cell.source.startswith(INSTALLS)
        source = python_alone(cell.source) if is_students else ""
        lines, tree = source.split("\n"), parse_or_none(source)
        if tree:
            for node in tree.body:
                if only_binds_a_name(node):
                    text = "\n".join(lines[first_line(node) - 1 : node.end_lineno])
                    definitions.append(Definition(node, text))
    return tuple(definitions)


def only_binds_a_name(node: ast.stmt) -> bool:
    """True if a statement binds a name and does nothing else."""
    if isinstance(node, ast.ImportFrom):
        return node.module != "attncourse.checks"
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return isinstance(node.value, ast.Lambda) or is_constant_node(node.value)
    kinds = ast.Import | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return isinstance(node, kinds)


def is_constant_node(node: ast.expr | None) -> bool:
    """True if an expression is a literal."""
    if node is None:
        return False
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        return False
    return True


def chapter_source(chapter: ChapterParts, chapters: Sequence[ChapterParts]) -> str:
    """Return a chapter's module: imports, our answers for what is not right, the student's code."""
    mine_by_stem = {c.stem: c.mine for c in chapters}
    heads, bodies = [], []
    for piece in chapter.code:
        if isinstance(piece.node, ast.ImportFrom):
            heads += import_lines(piece.node, mine_by_stem)
        elif isinstance(piece.node, ast.Import):
            heads.append(piece.text)
        elif not piece.bound & set(chapter.ours):
            bodies.append(piece.text)
    heads += [f"from attncourse.{chapter.stem} import {name}" for name in chapter.ours]
    title = f"Chapter {STEMS.index(chapter.stem) + 1}, {chapter.stem}: "
    title += f"{len(chapter.mine)} of {len(chapter.why)} parts are mine."
    top = "\n".join(dict.fromkeys(heads))
    return "\n\n\n".join([f'"""{title}"""\n\n{top}'.rstrip(), *bodies]) + "\n"


def import_lines(node: ast.ImportFrom, names_by_stem: dict[str, list[str]]) -> list[str]:
    """Return an import from an earlier chapter, of the student's own answers if there are any."""
    root, _, stem = (node.module or "").partition(".")
    mine = [a for a in node.names if root == "attncourse" and a.name in names_by_stem.get(stem, ())]
    other_names = [a for a in node.names if a not in mine]
    pairs = ((f"mine.{stem}", mine), (node.module, other_names))
    return [ast.unparse(ast.ImportFrom(m, names, node.level)) for m, names in pairs if names]


# --- the folder -----------------------------------------------------------------------------------


def package_files(chapters: Sequence[ChapterParts]) -> dict[str, str]:
    """Return the texts of the package's files, by name."""
    texts = {f"{c.stem}.py": chapter_source(c, chapters) for c in chapters}
    texts["__init__.py"] = '"""My answers where they are right, and ours for the rest."""\n'
    return {name: f"{MADE_BY_MARK}{short_digest(text)}\n{text}" for name, text in texts.items()}


def write_package(folder: Path, chapters: Sequence[ChapterParts]) -> tuple[Path, ...]:
    """Write the package; return the paths of copies of files that were changed by hand."""
    copies = []
    for name, text in package_files(chapters).items():
        path = folder / name
        with explained_file_errors(path, PACKAGE_ADVICE):
            if path.exists() and not is_as_written(path):
                names = (path.with_name(f"{path.name}.{n}.bak") for n in itertools.count(1))
                copies.append(next(free for free in names if not free.exists()))
                shutil.copyfile(path, copies[-1])
        replace_file(path, text, way_out=PACKAGE_ADVICE)
    return tuple(copies)


def milestones_reached(folder: Path) -> dict[str, int]:
    """Return the milestones that a package has reached, each with how many parts were ours."""
    try:
        data = json.loads((folder / REACHED_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # nobody has tried, or it was changed by hand
        return {}
    recorded = data if isinstance(data, dict) else {}
    return {m: recorded[m] for m in MILESTONES.values() if isinstance(recorded.get(m), int)}


def record_milestone(folder: Path, name: str, n_ours: int) -> None:
    """Record that a package has reached a milestone with ``n_ours`` parts that are the course's."""
    replace_file(
        folder / REACHED_FILE, json.dumps(milestones_reached(folder) | {name: n_ours}) + "\n"
    )


def is_as_written(path: Path) -> bool:
    """True if a file is as this program wrote it."""
    head, _, text = path.read_text(encoding="utf-8", errors="replace").partition("\n")
    return head == MADE_BY_MARK + short_digest(text)


def short_digest(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def try_parts(
    chapters: Sequence[ChapterParts], targets: list[str], limits: Limits
) -> dict[str, str]:
    """Return, for each of these parts, what is wrong with it in the package; "" if nothing.

    They are tried in a process of its own, since the parts are imported there.
    """
    if not targets:
        return {}
    with tempfile.TemporaryDirectory(prefix="attncourse-mine-") as place:
        write_package(Path(place, "mine"), chapters)
        command = [sys.executable, "-c", CHECK, *targets]
        # A busy machine takes that long for as much work.
        max_seconds = CLOCK_SECONDS_PER_WORK * limits.submission
        try:
            ended = subprocess.run(command, cwd=place, capture_output=True, timeout=max_seconds)
        except subprocess.TimeoutExpired:
            return dict.fromkeys(targets, "it did not end in time")
        try:
            return json.loads(ended.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            error_lines = ended.stderr.decode("utf-8", "replace").splitlines()
            return dict.fromkeys(targets, error_lines[-1] if error_lines else "the process ended")
