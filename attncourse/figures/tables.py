"""Results as a table: at most four columns, which a phone shows whole."""

import re
from collections.abc import Sequence
from html import escape

from attncourse.figures.theme import modes

COLUMNS_OF_A_GRID = 4
LOOK = (
    ".attncourse-table{color:var(--ink);margin:.5em 0;overflow-x:auto}"
    ".attncourse-table table{border-collapse:collapse;font-size:.9rem;margin:0}"
    ".attncourse-table :is(th,td){text-align:left;vertical-align:top;padding:.25em .7em .25em 0;"
    "border-bottom:1px solid var(--rim);background:none}"
    ".attncourse-table td{overflow-wrap:anywhere}"
    ".attncourse-table thead th{font-weight:600}.attncourse-table tbody th{font-weight:400}"
    ".attncourse-table .at-number{text-align:right;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}.attncourse-table thead .at-number{white-space:normal}"
)


class Table:
    """Rows under a head; cells are text, and a column of numbers stands on the right.

    A cell may be a pair, the text and the address that it links.

    head: a name for each column, 2 to 4. rows: as many cells each. Raises ``ValueError`` for more
    columns, and for a row of another length.
    """

    def __init__(self, head: Sequence[str], rows: Sequence[Sequence[object]]):
        """Keep the columns' heads and the rows; a cell that is a pair has words and a link."""
        if not 2 <= len(head) <= COLUMNS_OF_A_GRID:
            raise ValueError(f"head: expected 2 to {COLUMNS_OF_A_GRID} columns, got {len(head)}")
        self.head = [str(name) for name in head]
        self.links = [[c[1] if isinstance(c, tuple) else "" for c in row] for row in rows]
        self.rows = [[str(c[0] if isinstance(c, tuple) else c) for c in row] for row in rows]
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"rows: expected {len(self.head)} cells each, got {row}")

    def __repr__(self) -> str:
        """Return the table as text, columns one under another."""
        lines = [self.head, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        return "\n".join(
            "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        right = [all(map(is_number_cell, column)) for column in zip(*self.rows, strict=True)]
        right = right or [False] * len(self.head)
        names = zip(self.head, right, strict=True)
        head = "".join(table_cell(HEAD_CELL if name else "td", name, r) for name, r in names)
        body = "".join(
            f"<tr>{''.join(map(table_cell, ROW_CELLS, row, right, links))}</tr>"
            for row, links in zip(self.rows, self.links, strict=True)
        )
        style = modes("attncourse-table") + LOOK
        return (
            f'<div class="attncourse-table" tabindex="0"><style>{style}</style><table><thead><tr>'
            f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )


HEAD_CELL = 'th scope="col"'
ROW_CELLS = ('th scope="row"', "td", "td", "td")


def table_cell(kind: str, words: str, right: bool, address: str = "") -> str:
    """Return the HTML of a cell, ``td`` or ``th``, with a link where it has an address."""
    look = ' class="at-number"' if right else ""
    words = re.sub(r"(?<!\w)-(?=\d)", "−", words)  # a minus as long as a plus
    shown = f'<a href="{escape(address)}">{escape(words)}</a>' if address else escape(words)
    return f"<{kind}{look}>{shown}</{kind.split()[0]}>"


def is_number_cell(words: str) -> bool:
    """True if a cell is a number, perhaps with a sign or a percent sign, or a dash for none."""
    return words.replace("−", "-").replace(",", "").strip("+-% ×").replace(
        ".", "", 1
    ).isdigit() or (words in ("", "–"))
