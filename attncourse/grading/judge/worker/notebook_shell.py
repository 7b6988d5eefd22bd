"""The surroundings of a cell: a notebook's names, what it prints, Colab's stand-in."""

import __future__

import ast
import importlib
import inspect
import io
import linecache
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from attncourse.checks.trying.unavailable import refuse_input
from attncourse.grading.submission.syntax import bound_names, first_line

MAX_PRINTED_CHARS = 20_000  # that a reply carries


class Printed(io.TextIOBase):
    """Collects what is printed, until the submission has printed as many characters as it may."""

    def __init__(self, max_chars: int):
        self.chars_left = max_chars
        self.pieces: list[str] = []

    def writable(self) -> bool:
        """Return True, as a text stream does that can be printed to."""
        return True

    def write(self, text: str) -> int:
        """Collect a text, or as much of it as may be printed; return its length."""
        if self.chars_left > 0:
            self.pieces.append(text[: self.chars_left])
        self.chars_left -= len(text)
        return len(text)

    def take_text(self) -> str:
        """Return what was printed since the last call, shortened."""
        text = "".join(self.pieces)
        self.pieces.clear()
        return text if len(text) <= MAX_PRINTED_CHARS else text[:MAX_PRINTED_CHARS] + "…"


FUTURE_FLAGS = sum(
    {getattr(__future__, name).compiler_flag for name in __future__.all_feature_names}
)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
IMPORTS = (ast.Import, ast.ImportFrom)


class Skipped(Exception):
    """Raised for a cell in which a line failed and whose definitions below ran all the same.

    ``lines`` are the lines that failed; the cause is the first one's exception.
    """

    def __init__(self, lines: list[str]):
        super().__init__(lines)
        self.lines = lines


def run_cell_source(source: str, filename: str, namespace: dict[str, Any]) -> None:
    """Run a cell as a notebook would, without showing the value of its last line.

    Where a line fails, the definitions below it run all the same: a student's answer does not
    depend on a plot, a file or a library that is not here. ``Skipped`` is raised then.
    """
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)  # for inspect.getsource
    code = compile_piece(source, filename)
    try:
        run_code(code, namespace)
    except (Exception, SystemExit) as error:
        failed = failing_line(error, code)
        skipped = [failed]
        went_on = False
        for node in definitions_below(source, after=failed):
            went_on = True
            piece = compile_piece(ast.Module([node], []), filename)
            try:
                run_code(piece, namespace)
            except (Exception, SystemExit):
                skipped.append(node.lineno)
        if not went_on:
            raise
        raise Skipped([lines[n - 1].strip() for n in skipped if n <= len(lines)]) from error


def compile_piece(source: str | ast.Module, filename: str) -> types.CodeType:
    """Return the code of a cell, or of a piece of one, to be run.

    What a cell imports from ``__future__`` holds for the cells after it, as in a notebook. Here
    annotations are not evaluated from the start, as from Python 3.14 on: a name in them may be
    absent.
    """
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | _imported_from_the_future[0]
    code = compile(source, filename, "exec", flags=flags, dont_inherit=True)
    _imported_from_the_future[0] |= code.co_flags & FUTURE_FLAGS
    return code


_imported_from_the_future = [__future__.annotations.compiler_flag]


def failing_line(error: BaseException, code: types.CodeType) -> int:
    """Return the number of the cell's line that raised an exception, itself or by a call.

    Where no line of the cell did, it is a number above all.
    """
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code is not code:
        step = step.tb_next
    return step.tb_lineno if step is not None else sys.maxsize


def definitions_below(source: str, after: int) -> Iterator[ast.stmt]:
    """Yield the statements of a cell below line ``after`` that only define names.

    Loops bind names as well, but do more.
    """
    for node in ast.parse(source).body:
        defines = isinstance(node, IMPORTS) or bound_names(ast.Module([node], []))
        if defines and first_line(node) > after and not isinstance(node, LOOPS):
            yield node


def run_code(code: types.CodeType, namespace: dict[str, Any]) -> None:
    """Run a cell's code; where it uses ``await``, in an event loop of its own."""
    result = eval(code, namespace)
    if code.co_flags & inspect.CO_COROUTINE:
        import asyncio

        asyncio.run(result)


def notebook_namespace() -> dict[str, Any]:
    """Return the names that a notebook starts with, as the namespace of a new ``__main__``."""
    module = types.ModuleType("__main__")
    shell = Shell(module.__dict__)
    module.__dict__.update(display=ignore_display, get_ipython=lambda: shell, input=refuse_input)
    stand_in_for_colab()
    sys.modules["__main__"] = module
    sys.argv = ["notebook"]
    sys.stdin = io.StringIO()
    return module.__dict__


def ignore_display(*values: Any, **options: Any) -> None:
    """Do nothing, in place of a function that only shows something."""


class Shell:
    """The object that ``get_ipython()`` returns here.

    Files are written and run; the rest does nothing.
    """

    def __init__(self, namespace: dict[str, Any]):
        self._namespace = namespace

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """Write a file for ``%%writefile``; with ``-a`` to the file's end."""
        *options, path = line.split() or [""]
        if name in ("writefile", "file") and path:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a" if "-a" in options else "w", encoding="utf-8") as file:
                file.write(cell)
            importlib.invalidate_caches()

    def run_line_magic(self, name: str, line: str, *rest: Any) -> None:
        """Run a file for ``%run``: what it binds is the notebook's."""
        path = next((word for word in line.split() if word.endswith(".py")), "")
        if name == "run" and path:
            run_cell_source(Path(path).read_text("utf-8"), path, self._namespace)

    def __getattr__(self, name: str) -> Callable:
        """Return a function that does nothing, for all else that a shell can do."""
        return ignore_display


# --- google.colab ---------------------------------------------------------------------------------

ANSWERS = {"upload": dict, "get": str}  # what is given back instead of files and secrets


class Silent(types.ModuleType):
    """A module that has every attribute, each such a module; a call of one does nothing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what a call gives where there are no files, no secrets and nobody to ask."""
        return ANSWERS.get(self.__name__, lambda: None)()

    def __getattr__(self, name: str) -> "Silent":
        """Return another silent module, whatever is looked for."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Silent(name)


class Colab(MetaPathFinder, Loader):
    """An importer of ``google.colab`` and what is below it, asked after all others.

    Before it is imported it is not there: ``"google.colab" in sys.modules`` tells where one is.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        """Return a spec for ``google.colab``, and for ``google`` above it; else None."""
        if name == "google" or name.startswith("google.colab"):
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return a silent module; ``google`` itself is an ordinary one."""
        return types.ModuleType(spec.name) if spec.name == "google" else Silent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: there is no code to run."""
        pass


def stand_in_for_colab() -> None:
    """Have ``google.colab`` importable from now on."""
    sys.meta_path.append(Colab())
