"""The cells that a text holds, as JSON has them: a notebook's, an embedded one's, a script's."""

import json
import re
from typing import Any

from attncourse.grading.errors import Unreadable
from attncourse.grading.submission.script import cells_of_script

NO_CELLS = "valid JSON, but not a notebook: it has no list of cells"
# A comma before a closing bracket, and strings, which are to be left alone.
SPARE_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[\]}])', re.S)
SURROGATES = re.compile("[\ud800-\udfff]")
DECODER = json.JSONDecoder(
    strict=False,  # line ends and tabs as they are inside strings
    parse_int=lambda digits: int(digits) if len(digits) < 20 else float(digits),
)


def raw_cells(text: str) -> tuple[list[dict[str, Any]], list[str]]:
    """A file's cells as JSON has them, be it a notebook, one inside of something, or a script."""
    if not text.lstrip().startswith(("{", "[")):
        found = cells_of_script(text)
        if found is not None:
            return found, ["it is a Python script, not a notebook: its cells were graded"]
    content, notes = from_json(text)
    found, depth = find_cells(content)
    if found is None:
        raise Unreadable(NO_CELLS)
    if depth:
        notes.append("the notebook was found inside of another file's text")
    cells = [cell for cell in found if isinstance(cell, dict)]
    if found and not cells:
        raise Unreadable(NO_CELLS)
    if len(cells) < len(found):
        notes.append(f"{len(found) - len(cells)} cells are no cells and were left out")
    return cells, notes


def from_json(text: str) -> tuple[Any, list[str]]:
    """The first JSON value of a text; commas too many and what follows it are forgiven."""
    notes = []
    try:
        try:
            content, end = DECODER.raw_decode(text, start_of(text))
        except json.JSONDecodeError as error:
            mended = SPARE_COMMA.sub(lambda found: found[1] or "", text)
            if len(mended) == len(text):
                raise
            try:
                content, end = DECODER.raw_decode(mended, start_of(mended))
            except json.JSONDecodeError:
                raise error from None
            notes.append("commas too many in the file were left out")
            text = mended
    except json.JSONDecodeError as error:
        raise Unreadable(f"line {error.lineno}: {why(error, text)}") from None
    except RecursionError:
        raise Unreadable("not a notebook: nested too deeply") from None
    if text[end:].strip():
        line = text.count("\n", 0, end) + 1
        notes.append(f"what follows the notebook's end in line {line} was left out")
    return content, notes


def start_of(text: str) -> int:
    return len(text) - len(text.lstrip())


def why(error: json.JSONDecodeError, text: str) -> str:
    ends = error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip())
    return "the file breaks off there" if ends else f"not valid JSON ({error.msg})"


def find_cells(content: Any, depth: int = 0) -> tuple[list[Any] | None, int]:
    """A notebook's list of cells (format 4, or 3 and older), and how deep inside it was found."""
    if not isinstance(content, dict):
        return None, depth
    if isinstance(content.get("cells"), list):
        return content["cells"], depth
    if isinstance(content.get("worksheets"), list):
        sheets = [sheet for sheet in content["worksheets"] if isinstance(sheet, dict)]
        lists = [sheet["cells"] for sheet in sheets if isinstance(sheet.get("cells"), list)]
        return [cell for cells in lists for cell in cells], depth
    for value in content.values() if depth < 3 else ():
        found, deep = find_cells(value, depth + 1)
        if found is not None:
            return found, deep
    return None, depth


def encodable(text: str) -> str:
    """A text with plain line ends and without what no file can hold."""
    return SURROGATES.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
