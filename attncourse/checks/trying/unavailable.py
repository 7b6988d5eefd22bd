"""What an answer lacks while it is graded: our solutions, files that nobody hands in, a person.

A submission finds the chapters before its own and no other, so an answer that hands its work to
ours earns nothing. A check in a notebook runs where ours can be imported, and has to say the same:
while it calls an answer, our functions of this chapter and of later ones refuse.
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
from attncourse.checks.trying.watch import Unusable, body_of, body_replaced

ABSENT_WHILE_GRADED = "is not there while your work is graded: this assignment asks you to write it"
CHAPTER_ABSENT = f"attncourse.{{}} {ABSENT_WHILE_GRADED}"
FILE_ABSENT = (
    "is not there while your work is graded: what you use of it has to stand in your notebook"
)
HALTED_IMPORT = re.compile(
    r"import of attncourse\.(\w+) halted"
)  # Python's, for ``not_importable``
NOBODY = "nobody is there to answer input() when your work is checked: take it out"
DEBUGGER = "stops in a debugger, where nobody is there to go on: take `breakpoint()` out"
CHECKOUT_FOLDER = Path(__file__).resolve().parents[2]


class Absent(Unusable, ImportError):
    """Raised when an answer calls what is not there while it is graded.

    It is what the import raises there, so that who is prepared for that is here, too.
    """


def absent_chapters(stem: str) -> tuple[str, ...]:
    """Return the chapters whose modules are not there for work on this one."""
    return STEMS[STEMS.index(stem) :]


@contextmanager
def without_ours(stem: str) -> Iterator[None]:
    """Take away our functions of this chapter and of those after it, inside the ``with`` block.

    They cannot be imported, and what has been imported of them raises ``Absent``.
    """

    def refusal(sentence: str) -> Callable:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise Absent(sentence)

        return refuse

    with ExitStack() as stack:
        for later in absent_chapters(stem):
            module = stack.enter_context(not_importable(f"attncourse.{later}"))
            body = body_of(refusal(CHAPTER_ABSENT.format(later)))
            for function in {*module_functions(module)} - _lent:
                refusing = body.replace(co_freevars=function.__code__.co_freevars)
                stack.enter_context(body_replaced(function, refusing))
        yield


@contextmanager
def not_importable(name: str) -> Iterator[types.ModuleType | None]:
    """Have importing a module fail; yield the module, where it is in use."""
    before = sys.modules.get(name)
    vars(sys)["modules"][name] = None
    try:
        yield before
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before


@cache
def module_functions(module: types.ModuleType | None) -> tuple[types.FunctionType, ...]:
    """Return the functions and methods that a module defines, under all their wrappers."""
    if module is None:
        return ()
    functions: dict[types.FunctionType, None] = {}
    waiting = list(vars(module).values())
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, type) and thing.__module__ == module.__name__:
            waiting += vars(thing).values()
        elif isinstance(thing, property):
            waiting += [thing.fget]
        elif isinstance(thing, staticmethod | classmethod):
            waiting += [thing.__func__]
        elif isinstance(thing, types.FunctionType) and thing.__module__ == module.__name__:
            functions[inspect.unwrap(thing)] = None
    return tuple(functions)


def without_ours_alone(stem: str, implementation: Any) -> AbstractContextManager[None]:
    """Return ``without_ours`` for a notebook's own answer."""
    ours = (getattr(implementation, "__module__", "") or "").startswith("attncourse.")
    return nullcontext() if ours or cells_here() is None else without_ours(stem)


@contextmanager
def lending_functions(ours: Iterable[Callable]) -> Iterator[None]:
    """Have these of ours be there meanwhile, with all that they call: an answer is given them."""
    _lent.update(function for thing in ours for function in functions_reached(thing))
    try:
        yield
    finally:
        _lent.clear()


_lent: set[types.FunctionType] = set()


def functions_reached(thing: Any) -> set[types.FunctionType]:
    """Return the functions of a function or a class, and those that they call by a global name."""
    functions: set[types.FunctionType] = set()
    todo = [thing]
    while todo:
        function = inspect.unwrap(todo.pop())
        if isinstance(function, type):
            todo += [f for f in vars(function).values() if isinstance(f, types.FunctionType)]
        elif isinstance(function, types.FunctionType) and function not in functions:
            functions.add(function)
            names = names_in_code(function.__code__) & function.__globals__.keys()
            todo += [function.__globals__[name] for name in names]
    return functions


@lru_cache(maxsize=1024)
def names_in_code(code: types.CodeType) -> frozenset[str]:
    """Return the global names that code uses, with those of the functions in it."""
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
    """Return why what an answer is, or calls, is not there where it is graded; "" if it is.

    It is not where it comes from a later chapter of ours or from a file beside the notebook. A file
    that ``is_written`` by a cell of the notebook is there: graded cells write it again.
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
def taken_away(names: dict[str, Any], said: dict[str, str]) -> Iterator[None]:
    """Have some of these names be bound to nothing meanwhile; whoever reads one is told why."""
    before = {name: names.pop(name) for name in said}
    _gone.update(said)
    try:
        yield
    finally:
        _gone.clear()
        names.update(before)


_gone: dict[str, str] = {}


SHARED_ROOM = "support"  # the room that a submission finds besides the chapters before


def file_of(thing: Any) -> Path | None:
    """Return the file of a function, a class or a module; None for a notebook's own."""
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
    """Return where Python's own modules are."""
    return tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")})


# --- a person -------------------------------------------------------------------------------------


def nobody_answers(prompt: object = "") -> str:
    """Stand in for ``input`` while an answer is tried."""
    raise EOFError(NOBODY)


@contextmanager
def nobody_there() -> Iterator[None]:
    """Have ``input()`` and ``breakpoint()`` refuse: a check, which calls often, cannot wait."""
    before = builtins.input, sys.breakpointhook
    builtins.input, sys.breakpointhook = nobody_answers, stop_here
    try:
        yield
    finally:
        builtins.input, sys.breakpointhook = before


def stop_here(*args: Any, **kwargs: Any) -> None:
    """Stand in for ``breakpoint`` while an answer is tried."""
    raise Absent(DEBUGGER)


def is_absent(error: BaseException) -> str:
    """Return the sentence of an exception about something unavailable; "" for any other."""
    if isinstance(error, bdb.BdbQuit):
        return DEBUGGER
    if _gone and isinstance(error, NameError):
        return _gone.get(error.name or "", "")
    said = str(error) if isinstance(error, ImportError | EOFError) else ""
    if halted := HALTED_IMPORT.match(said):
        return CHAPTER_ABSENT.format(halted[1])
    return said if is_told(said) else ""


def is_told(text: str) -> bool:
    """True if a text is one of the sentences about something unavailable."""
    return text in (NOBODY, DEBUGGER) or text.endswith((ABSENT_WHILE_GRADED, FILE_ABSENT))
