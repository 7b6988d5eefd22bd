"""Deferred tests see the names as they were at their own place; where they cannot, it is said."""

import ast
import symtable
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from attncourse.grading.submission.plan import Step
from attncourse.grading.submission.syntax import parse_or_none

if TYPE_CHECKING:
    from attncourse.grading.judge.step_runner import StepRunner

NO_VALUE = object()


class SavedNames:
    """The instructor's names as they were in the places of the deferred tests."""

    def __init__(self, runner: "StepRunner"):
        self.runner = runner
        self.names_at: dict[int, tuple[dict[str, Any], set[int]]] = {}
        self.bound: dict[int, dict[str, Any]] = {}  # by the tests that have run since

    def save(self, number: int) -> None:
        """Keep the names for the test with this number."""
        self.names_at[number] = dict(self.runner.namespace), set(self.runner.laid_out)

    def restore(self, number: int) -> None:
        """Make the names what they were in the place of this test.

        What deferred tests before it have bound is there as well, but for what was bound anew.
        """
        names, laid_out = dict(self.names_at[number][0]), set(self.names_at[number][1])
        for earlier, bound in self.bound.items():
            before = self.names_at[earlier][0]
            names |= {
                name: value
                for name, value in bound.items()
                if names.get(name, NO_VALUE) is before.get(name, NO_VALUE) and earlier < number
            }
        self.runner.laid_out = laid_out
        self.runner.namespace.clear()  # the same dict: the globals of the instructor's functions
        self.runner.namespace.update(names)

    def keep_bound(self, number: int) -> None:
        """Keep what this test has bound, for the deferred tests behind it."""
        before, names = self.names_at[number][0], self.runner.namespace
        changed = [name for name, value in names.items() if before.get(name, NO_VALUE) is not value]
        self.bound[number] = {name: names[name] for name in changed}


class Touched(NamedTuple):
    """The global names that a cell reads, imports and changes; ``data`` are those not of code."""

    reads: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()


def is_disturbed(steps: list[Step], deferred: list[int]) -> bool:
    """True if a cell below a deferred test may change what that test relies on.

    It relies on the names that it reads, and on those that the cells which bind these read.
    """
    places = [number for number, step in enumerate(steps) if step.kind != "test"]
    if not deferred or not places or places[-1] < deferred[0]:
        return False
    cells = {number: names_touched(steps[number].source) for number in places}
    return any(
        is_spoilt(
            names_touched(steps[number].source),
            [cell for place, cell in cells.items() if place < number],
            [cell for place, cell in cells.items() if place > number],
        )
        for number in deferred
    )


def is_spoilt(test: Touched, before: list[Touched], after: list[Touched]) -> bool:
    """True if one of the cells after a test changes what it relies on."""
    relied = names_reached(test.reads - test.changes, before)
    bound = relied & set().union(*(cell.changes for cell in before))
    data = relied & set().union(*(cell.data for cell in before))  # a method may change it
    return any(cell.changes & relied or cell.imports & bound or cell.reads & data for cell in after)


def names_reached(
    names: Iterable[str], cells: Iterable[Touched], instead: Mapping[str, Iterable[str]] = {}
) -> set[str]:
    """Return these names, and those that are read where they are bound, and so on.

    ``instead`` says for some names what is read in place of what their cells read.
    """
    changers: dict[str, list[Iterable[str]]] = {
        name_replaced: [read] for name_replaced, read in instead.items()
    }
    for cell in cells:
        for name in cell.changes - instead.keys():
            changers.setdefault(name, []).append(cell.reads)
    reached, todo = set(), list(names)
    while todo:
        name = todo.pop()
        reached.add(name)
        todo += chain.from_iterable(changers.pop(name, ()))
    return reached


@lru_cache(maxsize=1024)
def names_touched(source: str) -> Touched:
    """Return the global names that a cell reads, binds and changes.

    None where it is no valid Python.
    """
    tree = parse_or_none(source)
    if tree is None:
        return Touched()
    try:
        top = symtable.symtable(source, "<cell>", "exec")
        inner = [symbol for table in scopes_below(top) for symbol in table.get_symbols()]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Touched()
    top_symbols, inner_globals = top.get_symbols(), [s for s in inner if s.is_global()]
    changed = {s.get_name() for s in [*top_symbols, *inner_globals] if s.is_assigned()}
    return Touched(
        reads=frozenset(s.get_name() for s in [*top_symbols, *inner_globals] if s.is_referenced()),
        imports=frozenset(s.get_name() for s in top_symbols if s.is_imported()),
        changes=frozenset(changed | parts_changed(tree)),
        data=frozenset(
            s.get_name() for s in top_symbols if s.is_assigned() and not s.is_namespace()
        ),
    )


def touched_by(steps: Sequence[Step]) -> list[Touched]:
    """Return ``names_touched`` of every step that is not a test."""
    return [names_touched(step.source) for step in steps if step.kind != "test"]


def scopes_below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """Yield the scopes inside a scope, at any depth."""
    for child in table.get_children():
        yield child
        yield from scopes_below(child)


def parts_changed(tree: ast.AST) -> set[str]:
    """Return the names of objects of which an attribute or an item is set or deleted."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            while isinstance(node, ast.Attribute | ast.Subscript):
                node = node.value
            names |= {node.id} if isinstance(node, ast.Name) else set()
    return names
