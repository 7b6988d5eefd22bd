"""The package's source as a page shows it: the idea, without what only guards it.

Left out are docstrings, checks of arguments (``@shaped``, ``require_…(…)``, ``if …: raise``) with
what serves nothing else, and annotations; the shapes stay, as a comment under the signature. A
check that returns its argument is printed as the argument. All other lines, comments included,
are the source's own, so that what is shown cannot drift away from what runs.
"""

import ast
import inspect
import io
import re
import sys
import textwrap
import tokenize
from collections.abc import Callable
from itertools import groupby

from attncourse.figures.guards import (
    FUNCTION_NODES,
    Statement,
    checked_argument,
    guard_statements,
    is_check,
    is_silence,
    walk_listing,
)
from attncourse.figures.signature import GLUE, signature_head, wrap

MAX_LISTING_COLUMNS = 72


def source(*things: Callable) -> str:
    """Return these functions and classes without their guards, in lines of at most 72 characters.

    Methods stand under the first line of their class. Raises ``ValueError`` where a line of code
    does not fit: then the package wants a shorter one.
    """
    texts = []
    for owner, members in groupby(things, class_of_method):
        those = [whole_source(member) for member in members]
        if owner is not None:
            head = re.search(r"^class .*?:\n", whole_source(owner), re.MULTILINE | re.DOTALL)
            first = head[0] if head else ""
            those = [first + textwrap.indent("\n\n".join(those), "    ")]
        texts += map(idea, those)
    return "\n\n\n".join(texts)


def whole_source(thing: Callable) -> str:
    """Return the source of a function or class as it stands."""
    return textwrap.dedent(inspect.getsource(inspect.unwrap(thing))).rstrip()


def class_of_method(thing: Callable) -> type | None:
    """Return the class that a method belongs to, None for a class and a function."""
    name = thing.__qualname__.rpartition(".")[0]
    return getattr(sys.modules[thing.__module__], name) if name else None


def idea(code: str) -> str:
    """Return the source of one function or class without docstrings, checks and annotations."""
    edits = Edits(code)
    return fitted(edits.applied(), edits.name)


class Edits:
    """The changes that a listing makes to its source: found in its tree, made in its text."""

    def __init__(self, code: str):
        """Find all that is left out of a listing of this function or class."""
        self.code = code + "\n"
        self.lines = self.code.splitlines(keepends=True)
        self.made: list[tuple[int, int, str]] = []
        (self.top,) = ast.parse(code).body
        self.name: str = getattr(self.top, "name", "")
        left_out = guard_statements(self.top)
        for node in walk_listing(self.top, left_out):
            if node in left_out:
                self.cut(*self.around(node))
            elif is_check(node):
                self.put(node, ast.get_source_segment(code, checked_argument(node)) or "")
            elif is_silence(node):
                first, _ = self.end_of_head(node)
                self.cut(node.lineno, first)
                for number in range(first + 1, end_line(node) + 1):
                    self.edit((number, 0), (number, 4), "")
            elif isinstance(node, FUNCTION_NODES):
                for decorator in node.decorator_list:
                    if re.match(r"shaped\b", ast.unparse(decorator)):
                        self.cut(decorator.lineno, end_line(decorator))
                start = node.lineno, node.col_offset
                self.edit(
                    start, self.end_of_head(node), signature_head(code, node, MAX_LISTING_COLUMNS)
                )

    def applied(self) -> str:
        """Return the code with all edits made, the last first, so that earlier places stay."""
        text = self.code
        for start, end, new in sorted(self.made, reverse=True):
            text = text[:start] + new + text[end:]
        return text.rstrip()

    def edit(self, start: tuple[int, int], end: tuple[int, int], new: str) -> None:
        """Note a change between two places: a line, from 1, and a column, which counts bytes."""
        self.made.append((self.place(*start), self.place(*end), new))

    def place(self, line: int, column: int) -> int:
        """Return how many characters of the code stand before a column of a line."""
        within = self.lines[line - 1].encode()[:column].decode() if column else ""
        return len("".join(self.lines[: line - 1])) + len(within)

    def put(self, node: ast.expr, new: str) -> None:
        """Note that an expression is replaced."""
        end = end_line(node), node.end_col_offset or 0
        self.edit((node.lineno, node.col_offset), end, new)

    def cut(self, first: int, last: int) -> None:
        """Take out whole lines."""
        self.edit((first, 0), (last + 1, 0), "")

    def around(self, node: Statement) -> tuple[int, int]:
        """Return a statement's lines, with comments above and the gap before its block's next."""
        first, last = node.lineno, end_line(node)
        while self.lines[first - 2].lstrip().startswith("#"):
            first -= 1
        below = next((n for n in range(last, len(self.lines)) if self.lines[n].strip()), last)
        text = "".join(self.lines[below : below + 1])
        same_block = len(text) - len(text.lstrip()) == node.col_offset
        return first, below if same_block else last

    def end_of_head(self, node: ast.stmt) -> tuple[int, int]:
        """Return the place after the colon that ends a signature or the first line of a block."""
        depth = 0
        rest = io.StringIO("".join(self.lines[node.lineno - 1 :]))
        for token in tokenize.generate_tokens(rest.readline):
            depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
            if token.string == ":" and depth == 0:
                break
        row, column = token.end
        return node.lineno + row - 1, len(token.line[:column].encode())


def end_line(node: Statement | ast.expr) -> int:
    """Return the last line of a node; trees that are parsed from text have it."""
    return node.end_lineno or node.lineno


def fitted(code: str, name: str) -> str:
    """Return the code in lines of at most 72 characters.

    A comment that is too long goes above its line.

    Raises ``ValueError`` where the code itself is too long.
    """
    comments = {
        token.start[0]: token.start[1]
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type == tokenize.COMMENT
    }
    lines, block = [], []
    for number, line in enumerate(code.splitlines(), start=1):
        indent = " " * (len(line) - len(line.lstrip()))
        if line.lstrip().startswith("#"):
            block.append(line)
            continue
        lines += refilled(block)
        block = []
        if len(line) > MAX_LISTING_COLUMNS and number in comments:
            said = indent + line[comments[number] :]
            line = line[: comments[number]].rstrip()
            lines += refilled([said])
        if len(line) > MAX_LISTING_COLUMNS:
            said = f"expected lines of at most {MAX_LISTING_COLUMNS} characters, got {len(line)}"
            raise ValueError(f"{name}: {said}: {line.strip()}")
        lines.append(line)
    return "\n".join(lines + refilled(block))


def refilled(comments: list[str]) -> list[str]:
    """Return lines of comments, from the first that is too long on filled anew."""
    fit = next((i for i, line in enumerate(comments) if len(line) > MAX_LISTING_COLUMNS), None)
    if fit is None:
        return comments
    indent = comments[0].partition("#")[0] + "# "
    text = " ".join(line.lstrip(" #") for line in comments[fit:])
    text = re.sub(r"\([^()]*\)", lambda shape: shape[0].replace(" ", GLUE), text)
    return comments[:fit] + wrap(text, MAX_LISTING_COLUMNS, indent).splitlines()
