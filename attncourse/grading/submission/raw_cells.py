"""The cells that a text holds, as JSON has them: a notebook's, an embedded one's, a script's."""

import ast
import json
import re
from contextlib import suppress
from itertools import islice
from typing import Any

from attncourse.grading.errors import Unreadable
from attncourse.grading.submission.source import plain
from attncourse.grading.submission.syntax import first_line, parse

NO_CELLS = "valid JSON, but not a notebook: it has no list of cells"
# A comma before a closing bracket, and strings, which are to be left alone.
SPARE_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[\]}])', re.S)
DECODER = json.JSONDecoder(
    strict=False,  # line ends and tabs as they are inside strings
    parse_int=lambda digits: int(digits) if len(digits) < 20 else float(digits),
)

# jupytext's and Spyder's marks between cells, and those of nbconvert --to script.
MARK = re.compile(r"^(?:# ?%%(?=[ \[]|$)|# In\[[ \d*]*\]:)(?P<header>.*)$", re.M)
SETTINGS = re.compile(r"\A(?:#!.*\n)?(?:# -\*-.*\n)?# ---\n(?:#.*\n)*?# ---\n")
NBGRADER = re.compile(r"nbgrader=(\{[^{}]*\})")
MOST_CELLS = 5000
MANY = 1000  # statements; with more of them a script is one cell
# Statements that prose does not hold by accident.
CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)


def raw_cells(text: str) -> tuple[list[dict[str, Any]], list[str]]:
    """A file's cells as JSON has them, be it a notebook, one inside of something, or a script."""
    if not text.lstrip().startswith(("{", "[")):
        found = cells_of_script(text)
        if found is not None:
            return found, ["it is a Python script, not a notebook: its cells were graded"]
    content, notes = from_json(text)
    found, depth = find_cells(content)
    cells = [cell for cell in found or () if isinstance(cell, dict)]
    if found is None or (found and not cells):
        raise Unreadable(NO_CELLS)
    if depth:
        notes.append("the notebook was found inside of another file's text")
    if len(cells) < len(found):
        notes.append(f"{len(found) - len(cells)} cells are no cells and were left out")
    return cells, notes


# --- JSON ---------------------------------------------------------------------------------------


def from_json(text: str) -> tuple[Any, list[str]]:
    """The first JSON value of a text; commas too many and what follows it are forgiven."""
    notes = []
    try:
        try:
            content, end = decoded(text)
        except json.JSONDecodeError as error:
            mended = SPARE_COMMA.sub(lambda found: found[1] or "", text)
            try:
                content, end = decoded(mended)
            except json.JSONDecodeError:
                raise error from None  # whose line is that of the file
            notes.append("commas too many in the file were left out")
            text = mended
    except json.JSONDecodeError as error:
        ends = error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip())
        why = "the file breaks off there" if ends else f"not valid JSON ({error.msg})"
        raise Unreadable(f"line {error.lineno}: {why}") from None
    except RecursionError:
        raise Unreadable("not a notebook: nested too deeply") from None
    if text[end:].strip():
        line = text.count("\n", 0, end) + 1
        notes.append(f"what follows the notebook's end in line {line} was left out")
    return content, notes


def decoded(text: str) -> tuple[Any, int]:
    """The first JSON value of a text, and where it ends."""
    return DECODER.raw_decode(text, len(text) - len(text.lstrip()))


def find_cells(content: Any, depth: int = 0) -> tuple[list[Any] | None, int]:
    """A notebook's list of cells (format 4, or 3 and older), and how deep inside it was found."""
    match content:
        case {"cells": list(cells)}:
            return cells, depth
        case {"worksheets": list(sheets)}:
            lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
            return [cell for cells in lists if isinstance(cells, list) for cell in cells], depth
        case dict() if depth < 3:
            inside = (find_cells(value, depth + 1) for value in content.values())
            return next((found for found in inside if found[0] is not None), (None, depth))
    return None, depth


# --- a script -----------------------------------------------------------------------------------


def cells_of_script(text: str) -> list[dict[str, Any]] | None:
    """The cells that a script was made from; None where this is no script."""
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
    """One cell of a script, by what its mark says of it."""
    kind, metadata, body = "code", {}, body.strip("\n")
    if re.search(r"\[(?:markdown|md|raw)\]", header):
        kind, body = "markdown", re.sub(r"^# ?", "", body, flags=re.M)
    if marks := NBGRADER.search(header):
        with suppress(ValueError, RecursionError):
            metadata["nbgrader"] = json.loads(marks[1])
    return {"cell_type": kind, "source": body, "metadata": metadata}


def statements(text: str) -> list[dict[str, Any]] | None:
    """One cell for each statement, so that one that fails costs itself and not all after it."""
    tree = parse(plain(text))
    if tree is None or not any(isinstance(node, CODE) for node in tree.body):
        return None
    if len(tree.body) > MANY:
        return [made("", text)]
    lines = text.split("\n")
    starts = sorted({first_line(node) - 1 for node in tree.body})
    ends = [*starts[1:], len(lines)]
    return [made("", "\n".join(lines[start:end])) for start, end in zip(starts, ends, strict=True)]
