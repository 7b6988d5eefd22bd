"""A Python script that was handed in under a notebook's name, as the cells it was made from."""

import ast
import json
import re
from itertools import islice
from typing import Any

from attncourse.grading.submission.magics import plain
from attncourse.grading.submission.syntax import parse

# jupytext's and Spyder's marks between cells, and those of nbconvert --to script.
MARK = re.compile(r"^(?:# ?%%(?=[ \[]|$)|# In\[[ \d*]*\]:)(?P<header>.*)$", re.M)
SETTINGS = re.compile(r"\A(?:#!.*\n)?(?:# -\*-.*\n)?# ---\n(?:#.*\n)*?# ---\n")
NBGRADER = re.compile(r"nbgrader=(\{[^{}]*\})")
MOST_CELLS = 5000
MANY = 1000  # statements; with more of them a script is one cell


def cells_of_script(text: str) -> list[dict[str, Any]] | None:
    """The cells of a script as a notebook's JSON has them; None where this is no script."""
    text = SETTINGS.sub("", text)
    marks = list(islice(MARK.finditer(text), MOST_CELLS + 1))
    if not marks:
        return statements(text)
    cells = [made("", text[: marks[0].start()])] if text[: marks[0].start()].strip() else []
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=True):
        cells.append(made(mark["header"], text[mark.end() : end]))
    return cells


def made(header: str, body: str) -> dict[str, Any]:
    body = body.strip("\n")
    kind = "code"
    if re.search(r"\[(?:markdown|md|raw)\]", header):
        kind, body = "markdown", re.sub(r"^# ?", "", body, flags=re.M)
    metadata = {}
    marks = NBGRADER.search(header)
    if marks:
        try:
            metadata["nbgrader"] = json.loads(marks[1])
        except (ValueError, RecursionError):
            metadata = {}
    return {"cell_type": kind, "source": body, "metadata": metadata}


def statements(text: str) -> list[dict[str, Any]] | None:
    """One cell for each statement, so that one that fails costs itself and not all after it."""
    tree = parse(plain(text))
    if tree is None or not any(binds(node) for node in tree.body):
        return None
    lines = text.split("\n")
    if len(tree.body) > MANY:
        return [made("", text)]
    starts = sorted({first_line(node) - 1 for node in tree.body})
    ends = [*starts[1:], len(lines)]
    return [made("", "\n".join(lines[start:end])) for start, end in zip(starts, ends, strict=True)]


def first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])


def binds(node: ast.stmt) -> bool:
    """Whether a statement is one that prose does not hold by accident."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return isinstance(node, kinds | ast.Import | ast.ImportFrom | ast.Assign)
