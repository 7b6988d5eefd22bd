"""Hidden tests run after all others, with the names as they were in the tests' own places.

Where a later cell may have changed what a deferred test needs, the runner is told so and takes a
fresh process.
"""

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
    """The instructor's names as they stood where each deferred test would have run."""

    def __init__(self, runner: "StepRunner"):
        self.runner = runner
        self.names_at: dict[int, tuple[dict[str, Any], set[int]]] = {}
        self.bound: dict[int, dict[str, Any]] = {}  # by the tests that have run since

    def save(self, number: int) -> None:
        """Save the present names as those of the deferred test with this number."""
        self.names_at[number] = dict(self.runner.namespace), set(self.runner.laid_out)

    def restore(self, number: int) -> None:
        """Put back the names that were saved for this test.

        What earlier deferred tests have bound since is added, unless a cell between has bound it
        anew.
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
        """Note what this deferred test has bound, for those that run after it."""
        before, names = self.names_at[number][0], self.runner.namespace
        changed = [name for name, value in names.items() if before.get(name, NO_VALUE) is not value]
        self.bound[number] = {name: names[name] for name in changed}


class TouchedNames(NamedTuple):
    """The global names that a cell reads, imports and changes.

    ``data`` are those that it assigns other than functions and classes: a method may change them.
    """

    reads: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()


def is_disturbed(steps: list[Step], deferred: list[int]) -> bool:
    """True if a cell below a deferred test may change what that test relies on.

    A test relies on the names that it reads, and on those that the cells which bind these read.
    """
    places = [number for number, step in enumerate(steps) if step.kind != "test"]
    if not deferred or not places or places[-1] < deferred[0]:
        return False
    cells = {number: names_touched(steps[number].source) for number in places}
    return any(
        is_changed_later(
            names_touched(steps[number].source),
            [cell for place, cell in cells.items() if place < number],
            [cell for place, cell in cells.items() if place > number],
        )
        for number in deferred
    )


def is_changed_later(
    test: TouchedNames, before: list[TouchedNames], after: list[TouchedNames]
) -> bool:
    """True if a cell of ``after`` may change a name that a test needs, given those ``before``."""
    relied = names_reached(test.reads - test.changes, before)
    bound = relied & set().union(*(cell.changes for cell in before))
    data = relied & set().union(*(cell.data for cell in before))  # a method may change it
    return any(cell.changes & relied or cell.imports & bound or cell.reads & data for cell in after)


def names_reached(
    names: Iterable[str], cells: Iterable[TouchedNames], instead: Mapping[str, Iterable[str]] = {}
) -> set[str]:
    """Return these names, those that the cells which bind them read, and so on.

    For a name in ``instead``, the names given there count in place of what its cells read.
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
def names_touched(source: str) -> TouchedNames:
    """Return the global names that a cell reads, imports and changes; none if it is no Python."""
    tree = parse_or_none(source)
    if tree is None:
        return TouchedNames()
    try:
        top = symtable.symtable(source, "<cell>", "exec")
        inner = [symbol for table in scopes_below(top) for symbol in table.get_symbols()]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return TouchedNames()
    top_symbols, inner_globals = top.get_symbols(), [s for s in inner if s.is_global()]
    changed = {s.get_name() for s in [*top_symbols, *inner_globals] if s.is_assigned()}
    return TouchedNames(
        reads=frozenset(s.get_name() for s in [*top_symbols, *inner_globals] if s.is_referenced()),
        imports=frozenset(s.get_name() for s in top_symbols if s.is_imported()),
        changes=frozenset(changed | objects_changed(tree)),
        data=frozenset(
            s.get_name() for s in top_symbols if s.is_assigned() and not s.is_namespace()
        ),
    )


def names_touched_by_cells(steps: Sequence[Step]) -> list[TouchedNames]:
    """Return the names that each step touches, tests left out."""
    return [names_touched(step.source) for step in steps if step.kind != "test"]


def scopes_below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """Yield the scopes inside a scope, at any depth."""
    for child in table.get_children():
        yield child
        yield from scopes_below(child)


def objects_changed(tree: ast.AST) -> set[str]:
    """Return the names of objects of which code sets or deletes an attribute or an item."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            while isinstance(node, ast.Attribute | ast.Subscript):
                node = node.value
            if isinstance(node, ast.Name):
                names.add(node.id)
    return names
