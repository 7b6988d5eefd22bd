"""Python's syntax trees of what students write.

The text is parsed and never compiled: a few lines can be made to compile to gigabytes.
"""

import ast
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from typing import TypeVar

LONGEST = 100_000  # characters; a longer cell runs as it is
SHORT = 4000
_quiet = threading.Lock()  # the warnings' filters belong to all threads


Result = TypeVar("Result")


def remembered(function: Callable[[str], Result]) -> Callable[[str], Result]:
    """A function of a cell's text that sees the cells that a class shares only once."""
    short, long = lru_cache(8192)(function), lru_cache(64)(function)  # some 40 MB at the most

    def looked_up(source: str) -> Result:
        return short(source) if len(source) <= SHORT else long(source)

    return wraps(function)(looked_up)


def parse(source: str) -> ast.Module | None:
    """The syntax tree, or None where there is none (or too much of it)."""
    if len(source) > LONGEST:
        return None
    try:
        with _quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a string: not ours to complain about
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None if any(isinstance(node, ast.Return) for node in outer(tree)) else tree


def outer(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes outside of functions and classes, which are there themselves."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        scopes = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.comprehension
        if not isinstance(node, scopes):
            waiting.extend(ast.iter_child_nodes(node))


def same_code(first: str, second: str) -> bool:
    """Whether two texts are the same Python, comments and layout aside."""
    trees = parse(first), parse(second)
    if None in trees:
        return False
    try:
        return ast.dump(trees[0]) == ast.dump(trees[1])
    except RecursionError:
        return False
