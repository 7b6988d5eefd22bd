"""A module of checks as text and as a tree, and pieces of it as they stand there."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property

MAX_SOURCE_COLUMNS = 88
Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class CheckModule:
    """A module of checks as text and as a tree."""

    name: str
    rewritten: str | None = None

    @cached_property
    def text(self) -> str:
        """The module's source; "" where it has none."""
        if self.rewritten is not None:
            return self.rewritten
        try:
            return inspect.getsource(sys.modules[self.name])
        except (KeyError, TypeError, OSError):  # written in C, or gone
            return ""

    @cached_property
    def tree(self) -> ast.Module:
        """The module's syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[bytes]:
        """The text's lines as bytes, in which a tree counts its columns."""
        return [line.encode() for line in self.text.splitlines()]

    @cached_property
    def functions(self) -> dict[str, list[ast.Lambda | Definition]]:
        """All functions and classes by name, outer ones before those within them."""
        functions_by_name: dict[str, list[ast.Lambda | Definition]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Lambda | Definition):
                functions_by_name.setdefault(getattr(node, "name", "<lambda>"), []).append(node)
        return functions_by_name

    @cached_property
    def defined(self) -> dict[str, Definition]:
        """The module's own functions and classes."""
        return {node.name: node for node in self.tree.body if isinstance(node, Definition)}

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """A piece of code as it stands."""
        lines = self.lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]  # first: it may be the first line too
        lines[0] = lines[0][node.col_offset :]
        return b"\n".join(lines).decode()

    def expression(self, node: ast.expr) -> str:
        """An expression as written, its further lines moved left with the first."""
        text, first = self.segment(node), self.lines[node.lineno - 1]
        indent = len(first) - len(first.lstrip())
        text = re.sub(rf"\n {{0,{indent}}}", "\n", text)
        try:
            ast.parse(text)
        except SyntaxError:  # its lines were held together by brackets around it
            text = "(\n" + textwrap.indent(text, "    ") + "\n)"
        return in_one_line(text)

    def body(self, node: Definition) -> str:
        """Return the body of a function or class without its docstring."""
        statements = node.body[1:] if ast.get_docstring(node) else node.body
        if statements[0].lineno == node.lineno:
            return self.segment(statements[0])
        first = min(
            [
                statements[0].lineno,
                *(d.lineno for d in getattr(statements[0], "decorator_list", [])),
            ]
        )
        return textwrap.dedent("\n".join(self.text.splitlines()[first - 1 : node.end_lineno]))

    def definition(self, node: Definition) -> str:
        """Return a definition's source with its body as a reader sees it."""
        head = ast.unparse(ast.Module([replaced_body(node)], []))
        return head.removesuffix("...").rstrip() + "\n" + textwrap.indent(self.body(node), "    ")

    def with_words(
        self, node: ast.Lambda | Definition, words: dict[str, str]
    ) -> tuple[CheckModule, ast.Lambda | Definition]:
        """The module and the function with words in place of the names that they explain."""
        if not any(words.values()):
            return self, node
        taken = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        lines = list(self.lines)
        reads = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id not in taken]
        for read in sorted(reads, key=lambda n: (n.lineno, n.col_offset), reverse=True):
            line, place = lines[read.lineno - 1], slice(read.col_offset, read.end_col_offset)
            word = words.get(read.id, "").encode()
            if word and line[place] == read.id.encode():  # some Pythons misplace those of f-strings
                lines[read.lineno - 1] = line[: place.start] + word + line[place.stop :]
        name = getattr(node, "name", "<lambda>")
        changed = CheckModule(self.name, b"\n".join(lines).decode())
        return changed, changed.functions[name][self.functions[name].index(node)]

    def reached(self, node: ast.AST, seen: tuple[str, ...] = ()) -> Iterator[str]:
        """The module's own functions that a piece of code uses, and what these use in turn."""
        for name in names_read_in_order(node):
            if name in self.defined and name not in seen:
                yield name
                yield from self.reached(self.defined[name], (*seen, name))


def in_one_line(text: str) -> str:
    """An expression without the line breaks that its place in the checks asked for."""
    joined = re.sub(r"(?<=[(\[{])\n\s*|,?\n\s*(?=[)\]}])", "", text)
    joined = re.sub(r"\n\s*", " ", joined)
    same = "#" not in text and ast.dump(ast.parse(joined)) == ast.dump(ast.parse(text))
    return joined if same and len(joined) <= MAX_SOURCE_COLUMNS else text


def names_read_in_order(node: ast.AST) -> list[str]:
    """The names that a piece of code reads, each once, in order."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return list(dict.fromkeys(n.id for n in names))


def replaced_body(node: Definition) -> Definition:
    """The node's head with `...` for a body."""
    copy = deepcopy(node)
    copy.body = [ast.Expr(ast.Constant(...))]
    return copy


@cache
def check_module(name: str) -> CheckModule:
    """Return the module of that name, read once."""
    return CheckModule(name)
