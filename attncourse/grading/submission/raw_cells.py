"""The cells in a text, as JSON has them: of a notebook, one inside something, or a script."""

import ast
import json
import re
from contextlib import suppress
from itertools import islice, pairwise
from textwrap import dedent
from typing import Any

from attncourse.grading.errors import Unreadable
from attncourse.grading.report import count
from attncourse.grading.submission.foreign_formats import format_name, name_of_json
from attncourse.grading.submission.source import PROMPTED, cell_magic, python_alone
from attncourse.grading.submission.syntax import first_line, parse_or_none, same_code

NO_CELLS = "valid JSON, but not a notebook: it has no list of cells"
JSON = re.compile(r"\s*(?:\{|\[\s*(?:[\[{\]\"\d-]|true|false|null|\Z))")  # how it begins
# A comma before a closing bracket, and strings, which are to be left alone.
SPARE_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[\]}])', re.S)
DECODER = json.JSONDecoder(
    strict=False,  # line ends and tabs as they are inside strings
    parse_int=lambda digits: int(digits) if len(digits) < 20 else float(digits),
)

# jupytext's and Spyder's marks between cells, those of nbconvert --to script, and of Databricks.
MARK = re.compile(r"^(?:# ?%%(?=[ \[]|$)|# In\[[ \d*]*\]:|# COMMAND -{5,})(?P<header>.*)$", re.M)
SETTINGS = re.compile(r"\A(?:#!.*\n)?(?:# -\*-.*\n)?# ---\n(?:#.*\n)*?# ---\n")
COMMENTED = re.compile(r"(?:#.*\n)*(?:#.*)?\Z")  # a cell that jupytext has made comments
NBGRADER = re.compile(r"nbgrader=(\{[^{}]*\})")
# Code in Markdown, as jupytext, MyST, R Markdown, Quarto and nbconvert write it.
FENCE = re.compile(
    r"(?P<fence>```+|~~~+) *\{? *(?:code-cell\} *$|(?:code-cell\}? *)?(?:ipython3?|python3?|py)\b)"
)
# Of a cell in MyST, and in Quarto.
OPTIONS = re.compile(r"\A(?:---\n(?:.*\n)*?---\n|(?::[\w-]+:.*\n)+|(?:#\| .*\n)+)")
HEADER = re.compile(r"\A---\n(?:.*\n)*?---\n")
MAX_CELLS = 5000
MAX_STATEMENTS = 1000  # statements; with more of them a script is one cell
# Statements that prose does not hold by accident.
CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)
BEGINS = re.compile(r"^(?:(?:async )?def|class|import|from|@\w|[A-Za-z_]\w* *=[^=])", re.M)
Raw = dict[str, Any]


def raw_cells(text: str) -> tuple[list[Raw], list[str]]:
    """Return a file's cells as JSON has them, and notes."""
    if not JSON.match(text):
        for kind, cells_of in READINGS:
            if (cells := cells_of(text)) is not None:
                return cells, [f"it is {kind}, not a notebook: its cells were graded"]
        if not text[:100].lstrip().startswith('"'):
            raise Unreadable(f"this is {format_name(text)}")
    content, notes = tolerant_json(text)
    if isinstance(content, str):  # a notebook's text as JSON
        return raw_cells(content)
    cells_found, depth = find_cells(content)
    cells = [cell for cell in cells_found or () if isinstance(cell, dict)]
    if cells_found is None or (cells_found and not cells):
        raise Unreadable(name_of_json(content) or NO_CELLS)
    if depth:
        notes.append("the notebook was found inside of another file's text")
    if len(cells) < len(cells_found):
        lost = count(len(cells_found) - len(cells), "piece")
        notes.append(f"no cells, and left out: {lost} of its list of cells")
    return cells, notes


# --- JSON ---------------------------------------------------------------------------------------


def tolerant_json(text: str) -> tuple[Any, list[str]]:
    """Return the first JSON value in a text, and notes; surplus commas and text are forgiven."""
    notes = []
    try:
        try:
            content, end = decoded_json(text)
        except json.JSONDecodeError as error:
            mended = SPARE_COMMA.sub(lambda match: match[1] or "", text)
            try:
                content, end = decoded_json(mended)
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


def decoded_json(text: str) -> tuple[Any, int]:
    """Return the first JSON value in a text, and where it ends."""
    return DECODER.raw_decode(text, len(text) - len(text.lstrip()))


def find_cells(content: Any, depth: int = 0) -> tuple[list[Any] | None, int]:
    """Return a notebook's list of cells (format 4, or 3 and older) in JSON, and its depth there.

    None if there is none.
    """
    match content:
        case {"cells": list(cells)}:
            return cells, depth
        case [{"cell_type": _}, *_]:
            return content, depth
        case {"cells": dict(cells)}:
            return list(cells.values()), depth
        case {"worksheets": list(sheets)}:
            lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
            return [cell for cells in lists if isinstance(cells, list) for cell in cells], depth
        case dict() if depth < 3:
            inside = (find_cells(value, depth + 1) for value in content.values())
            return next(
                (cells_and_depth for cells_and_depth in inside if cells_and_depth[0] is not None),
                (None, depth),
            )
    return None, depth


# --- a script -----------------------------------------------------------------------------------


def marked_script_cells(text: str) -> list[Raw] | None:
    """Return the cells of a script whose cells are marked by comments; None without marks."""
    text = SETTINGS.sub("", text)
    marks = list(islice(MARK.finditer(text), MAX_CELLS + 1))
    if not marks:
        return None
    cells = [script_cell("", text[: marks[0].start()])] if text[: marks[0].start()].strip() else []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    both = zip(marks, ends, strict=True)
    return cells + [script_cell(mark["header"], text[mark.end() : end]) for mark, end in both]


def script_cell(header: str, body: str) -> Raw:
    """Return a script's cell, whose mark is ``header``."""
    kind, metadata, body = "code", {}, body.strip("\n")
    if body.startswith("# MAGIC "):  # Databricks' other kinds of cells
        body = re.sub(r"^# MAGIC ?", "", body, flags=re.M)
        header, body = ("[markdown]", body[3:]) if body.startswith("%md") else ("", f"%{body}")
    elif body.startswith("# %%") and COMMENTED.match(body):
        body = re.sub(r"^# ?", "", body, flags=re.M)
    elif magic := cell_magic(body):
        body = "%%{} {}\n{}".format(*magic)
    if re.search(r"\[(?:markdown|md|raw)\]", header):
        kind, body = "markdown", re.sub(r"^# ?", "", body, flags=re.M)
    if marks := NBGRADER.search(header):
        with suppress(ValueError, RecursionError):
            metadata["nbgrader"] = json.loads(marks[1])
    return {"cell_type": kind, "source": body, "metadata": metadata}


def marimo_cells(text: str) -> list[Raw] | None:
    """Return the cells of a marimo notebook, each of which is a function; None for no such."""
    tree = parse_or_none(text) if "marimo.App(" in text else None
    if tree is None:
        return None
    cells, lines = [], text.split("\n")
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if marimo_decorators(node) == {"cell"}:
                cells.append(marimo_cell(lines, node))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if marimo_decorators(
                node
            ):
                cells.append(script_cell("", "\n".join(lines[node.lineno - 1 : node.end_lineno])))
            case ast.With() if "setup" in ast.unparse(node.items[0]):
                cells.append(marimo_cell(lines, node))
            case ast.Expr(
                ast.Call(ast.Attribute(attr="_unparsable_cell"), [ast.Constant(code), *_])
            ):
                cells.append(script_cell("", dedent(str(code))))
    return cells


def marimo_decorators(node: Any) -> set[str]:
    """Return the names of marimo's decorators on a function or class."""
    names = [getattr(decorator, "func", decorator) for decorator in node.decorator_list]
    cell_decorators = {"cell", "function", "class_definition"}
    return cell_decorators & {
        decorator.attr for decorator in names if isinstance(decorator, ast.Attribute)
    }


def marimo_cell(lines: list[str], node: Any) -> Raw:
    """Return a cell with the statements of a marimo function, comments included."""
    body = [inner for inner in node.body if not isinstance(inner, ast.Return)]
    match body:
        case [ast.Expr(ast.Call(ast.Attribute(ast.Name("mo"), "md"), [ast.Constant(prose)]))]:
            return script_cell("", str(prose)) | {"cell_type": "markdown"}
    last = node.body[-1]
    start = next(n for n in range(node.lineno, len(lines) + 1) if lines[n - 1].rstrip()[-1:] == ":")
    end = last.lineno - 1 if isinstance(last, ast.Return) else node.end_lineno
    source, again = dedent("\n".join(lines[start:end])), ast.unparse(ast.Module(body, []))
    # Where a text in it goes over several lines, that is not what was written.
    return script_cell("", source if same_code(source, again) else again)


def fenced_cells(text: str) -> list[Raw] | None:
    """Return the cells of Markdown with fenced code in it; None without such code."""
    cells, prose, code, fence = [], [], [], ""
    for line in HEADER.sub("", text).split("\n"):
        if fence and line.strip() == fence:
            source = OPTIONS.sub("", "\n".join(code))
            cells += [script_cell("[markdown]", "\n".join(prose)), script_cell("", source)]
            prose, code, fence = [], [], ""
        elif fence:
            code.append(line)
        elif match := FENCE.match(line):
            fence = match["fence"]
        else:
            prose.append(line)
    present_cells = [
        cell for cell in [*cells, script_cell("[markdown]", "\n".join(prose))] if cell["source"]
    ]
    holds_python = any(
        statement_cells(c["source"])
        for c in present_cells[:MAX_STATEMENTS]
        if c["cell_type"] == "code"
    )
    return present_cells if holds_python else None


def statement_cells(text: str) -> list[Raw] | None:
    """Return a cell for each statement of Python, so that one that fails costs only itself.

    None for a text that is no Python.
    """
    tree = None if PROMPTED.match(text) else parse_or_none(python_alone(text))
    if tree is None:
        return definition_blocks(text)
    if not any(isinstance(node, CODE) for node in tree.body):
        return None
    if len(tree.body) > MAX_STATEMENTS:
        return [script_cell("", text)]
    lines = text.split("\n")
    starts = sorted({first_line(node) - 1 for node in tree.body})
    bounds = pairwise([0, *starts, len(lines)])
    return [cell for a, b in bounds for cell in with_comments(lines[a:b]) if cell["source"]]


def with_comments(lines: list[str]) -> list[Raw]:
    """Return a statement's cell, and a text cell of the comments below it, as exporters write."""
    end = len(lines)
    while end and (not lines[end - 1] or lines[end - 1].startswith("#")):
        end -= 1
    return [
        script_cell("", "\n".join(lines[:end])),
        script_cell("[markdown]", "\n".join(lines[end:])),
    ]


def definition_blocks(text: str) -> list[Raw] | None:
    """Return a cell for each definition in a text that is not all Python; None without any."""
    starts = [0, *(match.start() for match in islice(BEGINS.finditer(text), MAX_STATEMENTS))]
    pieces = [text[a:b] for a, b in pairwise([*starts, len(text)])]
    trees = filter(None, (parse_or_none(python_alone(piece)) for piece in pieces))
    if not any(isinstance(node, CODE[:3]) for tree in trees for node in tree.body):
        return None
    return [script_cell("", piece) for piece in pieces]


READINGS = (
    ("a Python script", marked_script_cells),
    ("a marimo file", marimo_cells),
    ("Markdown with code in it", fenced_cells),
    ("a Python script", statement_cells),
)
