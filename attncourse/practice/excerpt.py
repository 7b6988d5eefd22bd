"""The part of a drill's code that a page shows: all of it, or of long code where the line stands.

What is left out is a comment, with its number of lines and what they define or set. In notebooks,
where one can run it, code is whole.
"""

import ast
import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from attncourse.practice.drills import Drill, MendElsewhere

MOST_LINES = 20  # that are shown, blank ones not counted
IN_A_WINDOW = 13  # lines of statements shown where a function has too many
MOST_NAMES = 4  # of what the lines left out set

Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Excerpt:
    """The lines that are shown, and the place of the wrong one among them, counted from 0.

    ``elsewhere`` are the other statements that mend the drill, by their places among the lines:
    those of which every line is shown.
    """

    lines: tuple[str, ...]
    line: int
    elsewhere: tuple[MendElsewhere, ...] = ()


def excerpt_of(drill: Drill) -> Excerpt:
    """Return what a page shows of a drill's code."""
    rows = shown_rows(drill.code, drill.line, drill.id)
    lines: list[str] = []
    places: dict[int, int] = {}  # of rows of the code among the lines
    for first, last in runs_of(range(len(drill.code)), rows):
        if first in rows:
            places |= {row: len(lines) + row - first for row in range(first, last + 1)}
            lines += drill.code[first : last + 1]
        else:
            lines.append(left_out(drill.code, first, last))
    others = tuple(
        replace(mend, first=places[mend.first], last=places[mend.last])
        for mend in drill.elsewhere
        if all(row in places for row in range(mend.first, mend.last + 1))
    )
    return Excerpt(tuple(lines), places[drill.line], others)


def shown_rows(code: Sequence[str], line: int, seed: str) -> set[int]:
    """Return the rows of code that are shown: all, or whole statements around a line.

    ``seed`` decides where among them the line stands, since in the middle it would be found.
    """
    if count_of(code) <= MOST_LINES:
        return set(range(len(code)))
    node = ast.parse("\n".join(code)).body[0]
    assert isinstance(node, Definition), "a drill is a function or a class"
    rows = set(range(node.body[0].lineno - 1))
    methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
    inner = next((method for method in methods if line in rows_of(method)), None)
    if inner is None:
        return rows | window_rows(node.body, line, random.Random(seed))
    if count_of([code[row] for row in rows_of(inner)]) < MOST_LINES:
        return rows | set(rows_of(inner))
    rows |= set(range(inner.lineno - 1, inner.body[0].lineno - 1))
    return rows | window_rows(inner.body, line, random.Random(seed))


def window_rows(body: Sequence[ast.stmt], line: int, luck: random.Random) -> set[int]:
    """Return the rows of statements beside each other, one of which holds the line."""
    holding = next((i for i, part in enumerate(body) if line in rows_of(part)), None)
    if holding is None:  # the line is the definition's own
        holding = 0
    statement = body[holding]
    if len(rows_of(statement)) > IN_A_WINDOW and (inner := inner_body(statement, line)):
        rows = set(range(statement.lineno - 1, inner[0].lineno - 1))
        return rows | window_rows(inner, line, luck)
    first, last = holding, holding
    while True:
        ways = []
        for start, stop in ((first - 1, last), (first, last + 1)):
            if start >= 0 and stop < len(body) and size_of(body[start : stop + 1]) <= IN_A_WINDOW:
                ways.append((start, stop))
        if not ways:
            return set(range(body[first].lineno - 1, end_of(body[last])))
        first, last = luck.choice(ways)


def inner_body(statement: ast.stmt, line: int) -> list[ast.stmt] | None:
    """Return the statements within one among which a line is, the first ones if it is in none."""
    for name in ("body", "orelse"):
        inner = getattr(statement, name, None) or []
        if any(line in rows_of(part) for part in inner):
            return inner
    return getattr(statement, "body", None)


def left_out(code: Sequence[str], first: int, last: int) -> str:
    """Return the comment that stands for the rows from first to last."""
    lines = [row for row in code[first : last + 1] if row.strip()]
    indent = min(len(row) - len(row.lstrip()) for row in lines)
    number = f"{len(lines)} line{'s' if len(lines) > 1 else ''}"
    names = list(dict.fromkeys(names_set("\n".join(code), range(first, last + 1))))
    what = names if len(names) <= MOST_NAMES else [*names[: MOST_NAMES - 1], "…"]
    return f"{' ' * indent}# … {number}{': ' if what else ''}{', '.join(what)}"


def names_set(text: str, rows: Collection[int]) -> Iterator[str]:
    """The methods that begin in some rows; of other rows the names that they set, or *return*."""
    nodes = nodes_in(text, rows)
    methods = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    inside = {row for method in methods for row in rows_of(method)}
    for node in nodes:
        if node in methods:
            yield node.name
        elif node.lineno - 1 in inside:
            continue
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield ast.unparse(node)
        elif isinstance(node, ast.Return):
            yield "return"


def nodes_in(text: str, rows: Collection[int]) -> list[ast.stmt | ast.expr]:
    """Return the statements and expressions that begin in some rows, in the order of the text."""
    every = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt | ast.expr)]
    beginning = [node for node in every if node.lineno - 1 in rows]
    return sorted(beginning, key=lambda node: (node.lineno, node.col_offset))


def runs_of(rows: Iterable[int], shown: Collection[int]) -> Iterator[tuple[int, int]]:
    """The first and last of rows beside each other that are all shown, or all left out."""
    run: list[int] = []
    for row in rows:
        if run and (row in shown) != (run[0] in shown):
            yield run[0], run[-1]
            run = []
        run.append(row)
    yield run[0], run[-1]


def rows_of(node: ast.stmt) -> range:
    """Return the rows of a statement, counted from 0."""
    return range(node.lineno - 1, end_of(node))


def end_of(node: ast.stmt) -> int:
    """Return the last line of a statement, counted from 1."""
    return node.end_lineno or node.lineno


def size_of(statements: Sequence[ast.stmt]) -> int:
    """Return how many lines the statements take, with what stands between them."""
    return end_of(statements[-1]) - statements[0].lineno + 1


def count_of(lines: Iterable[str]) -> int:
    """Return how many of the lines are not blank."""
    return sum(bool(line.strip()) for line in lines)
