"""Syntax trees of what students write, and the one rule for which names a cell binds.

The text is parsed and never compiled: a few lines can be made to compile to gigabytes.
"""

import ast
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from typing import NamedTuple, TypeVar

MAX_PARSED_CHARS = 100_000  # characters; a longer cell runs as it is
MAX_REMEMBERED_CHARACTERS = 4000
# What of a node is a scope of its own.
INSIDE: dict[type[ast.AST], tuple[str, ...]] = {
    ast.FunctionDef: ("body",),
    ast.AsyncFunctionDef: ("body",),
    ast.ClassDef: ("body",),
    ast.Lambda: ("body",),
    ast.comprehension: ("target",),
}
NO_TREE = (SyntaxError, ValueError, RecursionError, MemoryError)
_quiet = threading.Lock()  # the warnings' filters belong to all threads

Result = TypeVar("Result")


def remembered_by_class(function: Callable[[str], Result]) -> Callable[[str], Result]:
    """Decorate a function of a cell's text: it remembers results for cells that a class shares."""
    short, long = lru_cache(8192)(function), lru_cache(64)(function)  # some 40 MB at the most

    def call_remembered(source: str) -> Result:
        """Return the function's result, remembered among those of short or of long texts."""
        return short(source) if len(source) <= MAX_REMEMBERED_CHARACTERS else long(source)

    return wraps(function)(call_remembered)


def parse_or_none(source: str) -> ast.Module | None:
    """Return a cell's syntax tree; None if it is no Python, or is too long or deep."""
    if len(source) > MAX_PARSED_CHARS:
        return None
    try:
        tree = parse_quietly(source)
    except NO_TREE:
        return None
    return None if any(isinstance(node, ast.Return) for node in outer_nodes(tree)) else tree


def parse_quietly(source: str) -> ast.Module:
    """Return a syntax tree, without Python's warnings; raise one of ``NO_TREE`` for no Python."""
    with _quiet, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\d" in a string: not ours to complain about
        return ast.parse(source)


def is_text(node: ast.stmt) -> bool:
    """True if a statement is a string alone, as a docstring is."""
    match node:
        case ast.Expr(ast.Constant(str())):
            return True
    return False


def same_code(first: str, second: str) -> bool:
    """True if two texts are the same Python, comments and layout aside."""
    first_tree, second_tree = parse_or_none(first), parse_or_none(second)
    if first_tree is None or second_tree is None:
        return False
    try:
        return ast.dump(first_tree) == ast.dump(second_tree)
    except RecursionError:
        return False


def first_line(node: ast.stmt) -> int:
    """Return the number of a statement's first line, that of its first decorator if any."""
    return min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])


# --- names --------------------------------------------------------------------------------------


class CellNames(NamedTuple):
    """The names that a cell binds for the cells after it, and those it reads, without locals."""

    bound: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()


def cell_names(tree: ast.Module) -> CellNames:
    """Return the names that a cell binds and reads."""
    bound = bound_names(tree)
    nodes = list(ast.walk(tree))
    used = [node for node in nodes if isinstance(node, ast.Name)]
    read = {node.id for node in used if isinstance(node.ctx, ast.Load)}
    local = {node.id for node in used if isinstance(node.ctx, ast.Store)}
    local |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return CellNames(bound, frozenset(read - (local - bound)))


def bound_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that a cell binds for the cells after it.

    Names in comprehensions, lambdas, functions and classes are not; ``except … as`` takes its name
    away again, and so does ``del``. What a function declares global is.
    """
    names_bound: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Delete):
            names_bound -= {node.id for node in statement.targets if isinstance(node, ast.Name)}
        else:
            names_bound |= {name for node in outer_nodes(statement) for name in bound_by(node)}
    return frozenset(names_bound)


def outer_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree outside of functions and classes, and these nodes themselves.

    What stands in a function's head (decorators, defaults) or in a comprehension's conditions
    belongs to the scope around it.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        inside = INSIDE.get(type(node), ())
        if isinstance(node, ast.AnnAssign) and node.value is None:  # x: int binds nothing
            inside = ("target",)
        for field, value in ast.iter_fields(node):
            if field not in inside:
                items = value if isinstance(value, list) else [value]
                waiting.extend(item for item in items if isinstance(item, ast.AST))


def bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds in the scope it stands in."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Import(names=items) | ast.ImportFrom(names=items):
            names = (item.asname or item.name for item in items if item.name != "*")
            yield from (name.split(".")[0] for name in names)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
            for inner in ast.walk(node):
                yield from inner.names if isinstance(inner, ast.Global) else ()
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
