"""Tables of text: cells that a spreadsheet shows and does not run, and rows that one has saved.

A spreadsheet takes a cell that begins with = + - or @ for a formula, and may split a file at
another separator than the one it was written with. See OWASP, "CSV Injection",
https://owasp.org/www-community/attacks/CSV_Injection, and CWE-1236.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors
from attncourse.grading.harmless import shortened_text

Value = str | float | int | None
Rows = list[list[Value]]

FORMULA_SIGNS = "=+-@"
WIDE_FORMULA_SIGNS = "\u2212" + "".join(
    chr(n) for n in range(0xFE00, 0x10000) if unicodedata.normalize("NFKC", chr(n)) in FORMULA_SIGNS
)
SIGN = f"[{re.escape(FORMULA_SIGNS)}{WIDE_FORMULA_SIGNS}]"
# Spaces, quotes and what cannot be seen: a spreadsheet may drop them and read on.
UNSEEN = r"\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
QUOTES = r"\"'`\u2018-\u201f"
BREAKS = r"\t\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
FORMULA = re.compile(rf"[\s\x00-\x1f\x7f-\x9f{QUOTES}{UNSEEN}]*{SIGN}|[\t\r\n]")
BLANK = rf"(?:[^\S{BREAKS}]|[{QUOTES}{UNSEEN}\x00-\x08])*"
INSIDE = re.compile(rf"(?<=[;{BREAKS}])(?={BLANK}{SIGN})")
ADDED = re.compile(rf"(?<=[;{BREAKS}])'(?={BLANK}{SIGN})")
MAX_CELL_CHARS = 32_000  # characters; what is beyond 32767 runs over into other cells in Excel


def csv_cell(value: Value) -> str:
    """Return the text of a CSV cell; a text that could begin a formula is defused.

    A number stays one.
    """
    if value is None:
        return ""
    if isinstance(value, int | float):
        return plain_number(value)
    value = INSIDE.sub("'", shortened_text(value, MAX_CELL_CHARS))
    return f"'{value}" if FORMULA.match(value) else value


def line_of_cell(cell: str) -> str:
    """Return the text of which ``csv_cell`` made this cell, if it was one line."""
    if cell.startswith("'") and FORMULA.match(cell[1:]):
        cell = cell[1:]
    return ADDED.sub("", cell)


def plain_number(value: float) -> str:
    """Return a number as text, without an exponent or superfluous digits, with a point."""
    return f"{round(value, 6):.6f}".rstrip("0").rstrip(".") if value else "0"


def csv_table(rows: Iterable[Sequence[Value]]) -> str:
    """Return rows as CSV text with line ends of RFC 4180, every cell defused."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return out.getvalue()


def rows_in(path: Path) -> list[list[str]]:
    """Return the rows of a table's file, however a spreadsheet has saved it.

    The separator is the comma, semicolon or tab that its first line has most of. Raises
    ``UserError`` if it cannot be read.
    """
    text = text_of_file(path)
    if separator_line := re.match(r"sep=([,;\t])\r?\n", text):  # for Excel
        text, separator = text[separator_line.end() :], separator_line[1]
    else:
        separator = max(",;\t", key=re.split(r"[\r\n]", text, maxsplit=1)[0].count)
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise UserError(f"{path} is no table of comma-separated values: {error}") from None


def records_in(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return the head of a table's file, and each row by the head's names; none without a file."""
    head, *rows = (rows_in(path) if path.is_file() else []) or [[]]
    return head, [dict(zip(head, map(line_of_cell, row), strict=False)) for row in rows]


def text_of_file(path: Path) -> str:
    """Return a file's text, in whichever usual encoding; raise ``UserError`` if it has none."""
    with explained_file_errors(path, doing="read"):
        data = path.read_bytes()
    if data.startswith(b"PK\x03\x04"):
        raise UserError(f"{path} is a spreadsheet's own file: save it as CSV")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")  # what a spreadsheet on Windows saves
