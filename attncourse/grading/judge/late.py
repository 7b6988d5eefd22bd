"""Tests that are left for last: whether they find what they would have found in their places."""

import ast
import symtable
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from attncourse.grading.submission.plan import Step
from attncourse.grading.submission.syntax import parse


class Touched(NamedTuple):
    """The global names that a cell reads, imports and changes; ``data`` are those not of code."""

    reads: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()


def disturbed(steps: list[Step], late: list[int]) -> bool:
    """Whether a cell behind a late test changes what that test relies on, or may.

    It relies on the names that it reads, and on those that the cells which bind these read.
    """
    places = [number for number, step in enumerate(steps) if step.kind != "test"]
    if not late or not places or places[-1] < late[0]:
        return False
    cells = {number: touched(steps[number].source) for number in places}
    return any(
        spoilt(
            touched(steps[number].source),
            [cell for place, cell in cells.items() if place < number],
            [cell for place, cell in cells.items() if place > number],
        )
        for number in late
    )


def spoilt(test: Touched, before: list[Touched], after: list[Touched]) -> bool:
    """Whether one of the cells after a test changes what it relies on."""
    changers: dict[str, list[Touched]] = {}
    for cell in before:
        for name in cell.changes:
            changers.setdefault(name, []).append(cell)
    relied: set[str] = set()
    todo = list(test.reads - test.changes)
    while todo:
        name = todo.pop()
        if name not in relied:
            relied.add(name)
            for cell in changers.pop(name, ()):
                todo += cell.reads
    bound = relied & set().union(*(cell.changes for cell in before))
    data = relied & set().union(*(cell.data for cell in before))  # a method may change it
    return any(cell.changes & relied or cell.imports & bound or cell.reads & data for cell in after)


@lru_cache(maxsize=1024)
def touched(source: str) -> Touched:
    """What a cell has to do with global names; nothing where it is no Python."""
    tree = parse(source)
    if tree is None:
        return Touched()
    try:
        top = symtable.symtable(source, "<cell>", "exec")
        inner = [symbol for table in below(top) for symbol in table.get_symbols()]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Touched()
    own, theirs = top.get_symbols(), [s for s in inner if s.is_global()]
    changed = {s.get_name() for s in [*own, *theirs] if s.is_assigned()}
    return Touched(
        reads=frozenset(s.get_name() for s in [*own, *theirs] if s.is_referenced()),
        imports=frozenset(s.get_name() for s in own if s.is_imported()),
        changes=frozenset(changed | parts_changed(tree)),
        data=frozenset(s.get_name() for s in own if s.is_assigned() and not s.is_namespace()),
    )


def below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """The scopes inside a scope."""
    for child in table.get_children():
        yield child
        yield from below(child)


def parts_changed(tree: ast.AST) -> set[str]:
    """The names of objects that get an attribute or an item."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            while isinstance(node, ast.Attribute | ast.Subscript):
                node = node.value
            found |= {node.id} if isinstance(node, ast.Name) else set()
    return found
