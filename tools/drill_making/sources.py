"""The right answers that drills are made of: the published ones, and those of the tests.

Each is plain text without comments, so that none tells where a line was changed, and none says what
is no longer so. What it needs, imports and functions before it, is its setup.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course import ROOT, Chapter

from attncourse import STEMS
from attncourse.checks import Exercise
from attncourse.checks.index import index
from attncourse.practice.excerpt import MOST_LINES, count_of
from drill_making.by_hand import FOLDER as BY_HAND
from drill_making.by_hand import right_answers_by_hand
from drill_making.line_changes import Spelling, code_of

LINE_WIDTH = 80  # of a line of code
ALLOWED_LINE_COUNTS = range(
    4, 41
)  # of an answer, blank ones not counted; pages show a part of a long one
ALLOWED_MODULES = {"math", "numpy", "torch", "itertools", "functools", "collections", "__future__"}
ALLOWED_MODULES |= {"copy", "random", "re", "string"}
PUBLISHED_ORIGIN = "solutions"
CELL_HEAD = re.compile(r"(?m)^# %%.*$")
SOLUTION_MARKS = re.compile(r"(?m)^\s*### (BEGIN|END) SOLUTION\n?")


@dataclass(frozen=True)
class RightAnswer:
    """An answer of an exercise: its text under the exercise's name, and what has to run before."""

    target: str
    text: str
    setup: str
    origin: str

    @property
    def name(self) -> str:
        """Return the exercise's name without its chapter."""
        return self.target.split(".")[1]

    @property
    def lines(self) -> list[str]:
        """Return the answer's lines."""
        return self.text.splitlines()


def right_answers(chapter: Chapter, exercise: Exercise) -> list[RightAnswer]:
    """Return the readable right answers of an exercise: short ones, the published one first."""
    answers = [published_answer(chapter, exercise), *other_answers(exercise)]
    by_text: dict[str, RightAnswer] = {}
    for answer in answers:
        if answer and is_readable(answer):
            by_text.setdefault(answer.text, answer)
    return sorted(by_text.values(), key=lambda answer: count_of(answer.lines) > MOST_LINES)


def is_readable(answer: RightAnswer) -> bool:
    """True if an answer has lines to choose from, not too many, and needs no unknown function."""
    is_of_a_test = answer.origin.startswith("test_")
    return count_of(answer.lines) in ALLOWED_LINE_COUNTS and not (
        is_of_a_test and has_helpers(answer)
    )


def has_helpers(answer: RightAnswer) -> bool:
    """True if the code calls a function that no reader knows: one of the tests' own."""
    defined = re.findall(r"(?m)^(?:def|class) (\w+)", answer.setup)
    known = {target.split(".")[1] for target in index()}
    return not set(defined) <= known


def published_answer(chapter: Chapter, exercise: Exercise) -> RightAnswer | None:
    """Return the answer of the solved notebook."""
    text = (ROOT / "solutions" / chapter.folder / f"{chapter.folder}.py").read_text(
        encoding="utf-8"
    )
    cells = [SOLUTION_MARKS.sub("", cell) for cell in code_cells(text)]
    module = readable_module(cells)
    return answer_from(exercise, module, exercise.name, PUBLISHED_ORIGIN, exercise.stem)


def code_cells(text: str) -> Iterator[str]:
    """Yield the code cells of a py:percent file, without its checks and tests."""
    heads = [*CELL_HEAD.finditer(text)]
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        if "[markdown]" not in head[0] and '"locked"' not in head[0]:
            yield text[head.end() + 1 : following.start() if following else len(text)]


def readable_module(cells: list[str]) -> str:
    """Return the cells that Python can parse, as one text."""
    readable_cells = []
    for cell in cells:
        try:
            ast.parse(cell)
        except SyntaxError:
            continue
        readable_cells.append(cell)
    return "\n\n".join(readable_cells)


def other_answers(exercise: Exercise) -> Iterator[RightAnswer | None]:
    """Yield the other right answers: those written in steps, then those of the chapter's tests."""
    answers = right_answers_by_hand(exercise.stem).get(exercise.target, [])
    with suppress(ModuleNotFoundError):
        tests = importlib.import_module(f"test_{exercise.stem}")
        answers = [*answers, *tests.RIGHT.get(exercise.target, ())]
    for answer in answers:
        name = getattr(answer, "__name__", "")
        if not name.isidentifier():  # a lambda, which is too short to be read
            continue
        module = importlib.import_module(getattr(answer, "__module__", "") or "builtins")
        file = Path(getattr(module, "__file__", "") or "")
        if not file.name.startswith("test_") and file.parent != BY_HAND:
            continue
        text = file.read_text(encoding="utf-8")
        yield answer_from(exercise, text, name, f"{file.name}:{name}", exercise.stem)


def answer_from(
    exercise: Exercise, module: str, name: str, origin: str, stem: str
) -> RightAnswer | None:
    """Return the answer of this name in a module's text; None where it cannot stand alone."""
    tree = ast.parse(module)
    definitions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    node = definitions.get(name)
    kind = ast.ClassDef if inspect.isclass(exercise.reference) else ast.FunctionDef
    if not isinstance(node, kind) or not is_plain_definition(node):
        return None
    lines = module.splitlines()
    setup = needed_before(tree, node, definitions, lines, stem)
    if setup is None:
        return None
    code = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    code = re.sub(rf"\b{re.escape(name)}\b", exercise.name, code) if name != exercise.name else code
    text = tidy_code(code)
    if not Spelling(text, ast.parse(text).body[0]).is_known:
        text = tidy_code(code_of(ast.parse(text).body[0]))
    return RightAnswer(exercise.target, text, setup, origin)


def is_plain_definition(node: ast.AST) -> bool:
    """True unless a definition imports, is decorated, or has definitions inside a function."""
    if getattr(node, "decorator_list", ()):
        return False
    return not any(isinstance(n, ast.Import | ast.ImportFrom | ast.Global) for n in ast.walk(node))


def needed_before(
    tree: ast.Module, node: ast.AST, definitions: dict, lines: list[str], stem: str
) -> str | None:
    """Return the imports, constants and definitions that a definition reads.

    None where they cannot be had outside of their file.
    """
    bound: dict[str, ast.stmt] = {}
    for statement in tree.body:
        for name in names_bound_at_top(statement):
            bound.setdefault(name, statement)
    needed, unread = [], [node]
    while unread:
        for name in sorted(names_read_not_bound(unread.pop())):
            statement = bound.get(name)
            if statement is None or statement is node or statement in needed:
                continue
            if isinstance(statement, ast.Import | ast.ImportFrom):
                if not is_allowed(statement, name, stem):
                    return None
            elif not isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.Assign):
                return None
            else:
                unread.append(statement)
            needed.append(statement)
    imports = {
        import_of_name(s, name)
        for s in needed
        if isinstance(s, ast.Import | ast.ImportFrom)
        for name in names_bound_at_top(s)
        if any(name in names_read_not_bound(n) for n in [node, *needed])
    }
    rest = sorted(
        (s for s in needed if not isinstance(s, ast.Import | ast.ImportFrom)),
        key=lambda s: s.lineno,
    )
    texts = ["\n".join(sorted(imports))]
    for s in rest:
        first = min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", ()))])
        texts.append(tidy_code("\n".join(lines[first - 1 : s.end_lineno])))
    return "\n\n\n".join(filter(None, texts))


def names_bound_at_top(statement: ast.stmt) -> list[str]:
    """Return the names that a statement at the top of a file binds."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(a.asname or a.name).split(".")[0] for a in statement.names]
    if isinstance(statement, ast.Assign):
        return [n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    return []


def names_read_not_bound(node: ast.AST) -> set[str]:
    """Return the names that a statement reads and does not bind itself."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    bound = {n.id for n in names if not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    return {n.id for n in names} - bound


def import_of_name(statement: ast.Import | ast.ImportFrom, name: str) -> str:
    """Return the import statement of one name alone."""
    alias = next(a for a in statement.names if (a.asname or a.name).split(".")[0] == name)
    return ast.unparse(
        ast.Import([alias])
        if isinstance(statement, ast.Import)
        else ast.ImportFrom(statement.module, [alias], 0)
    )


def is_allowed(statement: ast.Import | ast.ImportFrom, name: str, stem: str) -> bool:
    """True where an import is of a library, or of a chapter before this one."""
    if isinstance(statement, ast.Import):
        return all(a.name.split(".")[0] in ALLOWED_MODULES for a in statement.names)
    parts = (statement.module or "").split(".")
    if parts[0] in ALLOWED_MODULES:
        return True
    earlier = STEMS[: STEMS.index(stem)]
    return parts[0] == "attncourse" and len(parts) == 2 and parts[1] in earlier


@cache
def tidy_code(text: str) -> str:
    """Return the code without comments and docstrings, in lines of ``LINE_WIDTH``."""
    code = without_comments(text)
    tree = ast.parse(code)
    docs = [
        n.body[0]
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef | ast.ClassDef)
        and len(n.body) > 1
        and isinstance(n.body[0], ast.Expr)
        and isinstance(n.body[0].value, ast.Constant)
        and isinstance(n.body[0].value.value, str)
    ]
    lines = code.splitlines()
    for doc in sorted(docs, key=lambda d: -d.lineno):
        del lines[doc.lineno - 1 : doc.end_lineno]
    ruff = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--isolated",
        f"--line-length={LINE_WIDTH}",
        "-",
    ]
    run = subprocess.run(
        ruff, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
    )
    return run.stdout.strip("\n")


def without_comments(text: str) -> str:
    """Return code without its comments, line for line."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text + "\n").readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    return "\n".join(lines)
