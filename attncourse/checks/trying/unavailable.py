"""What an answer lacks while it is graded: our solutions, files that nobody hands in, a person.

A submission can import the chapters before its own and no other, so an answer that calls this
package's solution earns nothing. A check in a notebook runs where that can be imported, and has to
give the same verdict: while it calls an answer, the functions of its chapter and of later ones
raise.
"""

import bdb
import builtins
import dis
import inspect
import re
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from attncourse import STEMS
from attncourse.checks.reading.cells import cells_here
from attncourse.checks.trying.watch import Unusable, body_calling, replace_body

ABSENT_WHILE_GRADED = "is not there while your work is graded: this assignment asks you to write it"
CHAPTER_ABSENT = f"attncourse.{{}} {ABSENT_WHILE_GRADED}"
FILE_ABSENT = (
    "is not there while your work is graded: what you use of it has to stand in your notebook"
)
# Python's message where ``block_import`` has put None in the place of a module.
HALTED_IMPORT = re.compile(r"import of attncourse\.(\w+) halted")
NOBODY = "nobody is there to answer input() when your work is checked: take it out"
DEBUGGER = "stops in a debugger, where nobody is there to go on: take `breakpoint()` out"
CHECKOUT_FOLDER = Path(__file__).resolve().parents[2]


class Absent(Unusable, ImportError):
    """Raised when an answer calls what is not there while it is graded.

    It is an ``ImportError``, which the import raises in grading: an answer that catches that there
    catches it here, too.
    """


def absent_chapters(stem: str) -> tuple[str, ...]:
    """Return the chapters that work on this one cannot import: this chapter and all after it."""
    return STEMS[STEMS.index(stem) :]


@contextmanager
def block_own_solutions(stem: str) -> Iterator[None]:
    """Block this package's chapters from this one on, inside the ``with`` block.

    They cannot be imported, and functions that were imported before raise ``Absent``.
    """

    def refusal(sentence: str) -> Callable:
        """Return a function that raises ``Absent`` with this sentence."""

        def refuse(*args: Any, **kwargs: Any) -> Any:
            """Raise ``Absent``, whatever the arguments are."""
            raise Absent(sentence)

        return refuse

    with ExitStack() as stack:
        for later in absent_chapters(stem):
            module = stack.enter_context(block_import(f"attncourse.{later}"))
            body = body_calling(refusal(CHAPTER_ABSENT.format(later)))
            for function in {*module_functions(module)} - _lent_functions:
                # Python takes a new body only with as many free variables as the old one has.
                refusing = body.replace(co_freevars=function.__code__.co_freevars)
                stack.enter_context(replace_body(function, refusing))
        yield


@contextmanager
def block_import(name: str) -> Iterator[types.ModuleType | None]:
    """Have the import of a module fail; yield the module if it was imported before, else None."""
    before = sys.modules.get(name)
    vars(sys)["modules"][name] = None  # ``vars``, since the type of ``sys.modules`` allows no None
    try:
        yield before
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before


@cache
def module_functions(module: types.ModuleType | None) -> tuple[types.FunctionType, ...]:
    """Return the functions and methods that a module defines, without their wrappers."""
    if module is None:
        return ()
    functions: dict[types.FunctionType, None] = {}
    to_search = list(vars(module).values())
    while to_search:
        thing = to_search.pop()
        if isinstance(thing, type) and thing.__module__ == module.__name__:
            to_search += vars(thing).values()
        elif isinstance(thing, property):
            to_search += [thing.fget]
        elif isinstance(thing, staticmethod | classmethod):
            to_search += [thing.__func__]
        elif isinstance(thing, types.FunctionType) and thing.__module__ == module.__name__:
            functions[inspect.unwrap(thing)] = None
    return tuple(functions)


def block_solutions_for(stem: str, implementation: Any) -> AbstractContextManager[None]:
    """Return ``block_own_solutions`` for a notebook's answer, for others an empty context.

    An implementation of this package, such as a reference, may use its chapter.
    """
    is_ours = (getattr(implementation, "__module__", "") or "").startswith("attncourse.")
    return nullcontext() if is_ours or cells_here() is None else block_own_solutions(stem)


@contextmanager
def lend_functions(functions: Iterable[Callable]) -> Iterator[None]:
    """Exempt functions, and all that they call, from ``block_own_solutions`` inside the block.

    An answer is judged with them in place of wrong answers.
    """
    _lent_functions.update(function for thing in functions for function in functions_reached(thing))
    try:
        yield
    finally:
        _lent_functions.clear()


_lent_functions: set[types.FunctionType] = set()  # that ``lend_functions`` exempts


def functions_reached(thing: Any) -> set[types.FunctionType]:
    """Return a function or a class's methods, and all functions that they reach by global names."""
    functions: set[types.FunctionType] = set()
    to_search = [thing]
    while to_search:
        function = inspect.unwrap(to_search.pop())
        if isinstance(function, type):
            to_search += [f for f in vars(function).values() if isinstance(f, types.FunctionType)]
        elif isinstance(function, types.FunctionType) and function not in functions:
            functions.add(function)
            names = names_in_code(function.__code__) & function.__globals__.keys()
            to_search += [function.__globals__[name] for name in names]
    return functions


@lru_cache(maxsize=1024)
def names_in_code(code: types.CodeType) -> frozenset[str]:
    """Return the global names that code reads, those of the functions inside it included."""
    inner = (
        names_in_code(constant)
        for constant in code.co_consts
        if isinstance(constant, types.CodeType)
    )
    names_read = (o.argval for o in dis.get_instructions(code) if o.opname in READING_OPERATIONS)
    return frozenset(names_read).union(*inner)


READING_OPERATIONS = {"LOAD_GLOBAL", "LOAD_NAME"}


# --- files ----------------------------------------------------------------------------------------


def why_unavailable(stem: str, thing: Any, is_written: Callable[[str], bool]) -> str:
    """Return why a function, class or module is not there while work is graded; "" if it is.

    It is not if it comes from this package's chapters from ``stem`` on, or from a file beside the
    notebook. A file that ``is_written``, by a cell, is there: the cell writes it again in grading.
    """
    file = file_of(thing)
    if file is None:
        return ""
    if file.is_relative_to(CHECKOUT_FOLDER):
        place = ".".join(file.relative_to(CHECKOUT_FOLDER).with_suffix("").parts)
        graded = place in STEMS and place not in absent_chapters(stem)
        return "" if graded or file.parent.name == SHARED_ROOM else CHAPTER_ABSENT.format(place)
    library = {"site-packages", "dist-packages"} & {*file.parts}
    if library or any(file.is_relative_to(folder) for folder in library_folders()):
        return ""
    if is_written(file.name):
        return ""
    return f"`{file.stem}` {FILE_ABSENT}"


@contextmanager
def hide_names(names: dict[str, Any], sentences: dict[str, str]) -> Iterator[None]:
    """Remove from a namespace, inside the block, the names that ``sentences`` says are missing.

    ``unavailable_sentence`` finds that sentence for the ``NameError`` of an answer that reads one.
    """
    before = {name: names.pop(name) for name in sentences}
    _hidden_names.update(sentences)
    try:
        yield
    finally:
        _hidden_names.clear()
        names.update(before)


_hidden_names: dict[str, str] = {}  # the names that ``hide_names`` has removed, and why


SHARED_ROOM = "support"  # the folder that a submission can import besides earlier chapters


def file_of(thing: Any) -> Path | None:
    """Return the Python file of a function, class or module; None for one from a cell or for C."""
    if isinstance(thing, types.ModuleType):
        name = getattr(thing, "__file__", None) or ""
    elif isinstance(thing, type):
        functions = [f for f in vars(thing).values() if isinstance(f, types.FunctionType)]
        module = sys.modules.get(thing.__module__)
        name = functions[0].__code__.co_filename if functions else ""
        name = name or getattr(module, "__file__", None) or ""
    else:
        code = getattr(inspect.unwrap(thing), "__code__", None) if callable(thing) else None
        name = getattr(code, "co_filename", "")
    if not name.endswith(".py") or not Path(name).is_file() or "ipykernel_" in name:
        return None  # ipykernel's are cells, which its debugger writes to files
    return Path(name).resolve()


@cache
def library_folders() -> tuple[Path, ...]:
    """Return the folders of Python's own modules."""
    return tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")})


# --- a person -------------------------------------------------------------------------------------


def refuse_input(prompt: object = "") -> str:
    """Raise ``EOFError``, in place of ``input``, while an answer is tried."""
    raise EOFError(NOBODY)


@contextmanager
def refuse_questions() -> Iterator[None]:
    """Have ``input()`` and ``breakpoint()`` raise inside the block: nobody answers a check."""
    before = builtins.input, sys.breakpointhook
    builtins.input, sys.breakpointhook = refuse_input, refuse_breakpoint
    try:
        yield
    finally:
        builtins.input, sys.breakpointhook = before


def refuse_breakpoint(*args: Any, **kwargs: Any) -> None:
    """Raise ``Absent``, in place of ``breakpoint``, while an answer is tried."""
    raise Absent(DEBUGGER)


def unavailable_sentence(error: BaseException) -> str:
    """Return the sentence of an exception that says that something is unavailable; else ""."""
    if isinstance(error, bdb.BdbQuit):
        return DEBUGGER
    if _hidden_names and isinstance(error, NameError):
        return _hidden_names.get(error.name or "", "")
    message = str(error) if isinstance(error, ImportError | EOFError) else ""
    if halted := HALTED_IMPORT.match(message):
        return CHAPTER_ABSENT.format(halted[1])
    return message if is_unavailable_sentence(message) else ""


def is_unavailable_sentence(text: str) -> bool:
    """True if a text is one of this module's sentences about something unavailable."""
    return text in (NOBODY, DEBUGGER) or text.endswith((ABSENT_WHILE_GRADED, FILE_ABSENT))
