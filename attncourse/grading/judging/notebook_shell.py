"""What a cell runs in: a notebook's names, and its output collected."""

import ast
import inspect
import io
import linecache
import sys
import types
from collections.abc import Callable
from typing import Any

SHOWN = 20_000  # characters of printed output that a reply carries


class Printed(io.TextIOBase):
    """Collects what is printed, up to a number of characters for the whole submission."""

    def __init__(self, left: int):
        self.left = left
        self.pieces: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.left > 0:
            self.pieces.append(text[: self.left])
        self.left -= len(text)
        return len(text)

    def taken(self) -> str:
        """What was printed since the last time, shortened."""
        text = "".join(self.pieces)
        self.pieces.clear()
        return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def execute(source: str, filename: str, namespace: dict[str, Any]) -> None:
    """Runs a cell as a notebook would, but for the value of its last line."""
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)  # for inspect.getsource
    code = compile(
        source, filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    result = eval(code, namespace)
    if code.co_flags & inspect.CO_COROUTINE:
        import asyncio

        asyncio.run(result)


def notebook_namespace() -> dict[str, Any]:
    """The names that a notebook starts with, in a module of its own."""
    module = types.ModuleType("__main__")
    module.__dict__.update(display=ignore, get_ipython=lambda: Shell())
    sys.modules["__main__"] = module
    sys.argv = ["notebook"]
    sys.stdin = io.StringIO()
    return module.__dict__


def ignore(*values: Any, **options: Any) -> None:
    """Stands for what only shows something."""


class Shell:
    """What ``get_ipython()`` returns here: every method does nothing."""

    def __getattr__(self, name: str) -> Callable:
        return ignore
