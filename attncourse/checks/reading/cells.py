"""The way from an answer's cell in a notebook to the object that a check is given.

The cell may not have compiled, may have stopped or been interrupted before the definition, may not
have been run since it was changed; another cell may have taken the name. An older definition is
then what memory holds, and a verdict on that would be about code that nobody sees. So the runs of
a session's cells are kept, and what is judged is what the newest attempt gave, or nothing. What a
grader makes of a cell that stopped is made of it here: the definitions below the line run, too.

IPython tells of each run, since 7.0 alike in JupyterLab, VS Code and Colab. Where it does not (a
script, a plain interpreter) nothing is claimed.
"""

import ast
import asyncio
import builtins
import dis
import inspect
import json
import linecache
import os
import re
import sys
import time
import types
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

NOT_THERE = ...  # what a check is given in place of a name that is bound to nothing
NOT_ENDED = float("inf")
NOT_DEFINED_ANY_MORE = "no cell of your notebook defines `{}` any more, as it was saved last"
MAY_BIND_ANYTHING = re.compile(r"import \*|%run|exec\(")  # bind what is not said
MAX_NOTEBOOK_BYTES = 50_000_000  # saved
TIMEIT_KEEPS_NAMES = "`%%timeit` keeps what its cell defines to itself: the cell was run without it"
UNANSWERED = "YOUR ANSWER HERE"  # stands in a question's cell as it is released
MAX_STATEMENT_CHARACTERS = 60
STUB_ERROR = "NotImplementedError"  # what an answer raises that is not written
ERRORS_IN_VERDICTS = (STUB_ERROR, "CheckFailed")  # of which a verdict speaks
STORES, DELETES = {"STORE_NAME", "STORE_GLOBAL"}, {"DELETE_NAME", "DELETE_GLOBAL"}
COMPILE_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
COMPARED_TYPES = types.FunctionType | type  # what is compared before and after a run


class Unjudged(NamedTuple):
    """Why there is nothing to judge, and what to do; ``open`` where nothing was tried.

    A ``stub`` is what was handed out, and nothing else.
    """

    why: str
    to_do: str
    open: bool = False
    stub: bool = False


def running_shell() -> Any:
    """Return the IPython that runs this session, or None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython and hasattr(ipython, "get_ipython") else None


# --- runs -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class CellRun:
    """One run of a cell: its number in the notebook, its text, and how it ended.

    ``source`` is Python, without the magic that a cell begins with, which is ``magic``. ``failed``
    is the line in which it stopped, and ``error`` what it said; ``before`` holds what functions and
    classes its names stood for when it began. Of one that was ``unseen``, because it ran before the
    checks were imported, the text alone is known.
    """

    number: int
    raw: str
    source: str
    magic: str = ""
    cell: str = ""
    ended: float = NOT_ENDED
    error: str = ""
    interrupted: bool = False
    failed: int = 0
    before: dict[str, Any] = field(default_factory=dict)
    unreached: frozenset[str] = frozenset()
    unseen: bool = False
    finished: bool = False
    note: str = ""  # what a check did with it that the cell itself did not

    @cached_property
    def problem(self) -> SyntaxError | None:
        """Why it is no Python."""
        try:
            compile(self.source, "<cell>", "exec", COMPILE_FLAGS, dont_inherit=True)
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxError(str(error))
        return None

    @cached_property
    def statements(self) -> list["Statement"]:
        """Return the statements at the cell's top level; none where it is no Python."""
        return [] if self.problem else [Statement(n) for n in ast.parse(self.source).body]

    @cached_property
    def bound(self) -> dict[str, "Statement"]:
        """Return each name that it binds, with the last statement that does."""
        return {name: statement for statement in self.statements for name in statement.stores}

    @property
    def place(self) -> str:
        """Return the cell as a notebook names it: ``cell [3]``."""
        return f"cell [{self.number}]"

    def tries(self, name: str) -> bool:
        """True if the cell would bind or delete the name; a guess where it is no valid Python."""
        if self.problem is None:
            return name in self.bound or any(
                name in statement.deletes for statement in self.statements
            )
        return means_to_bind(self.source, name)

    def end(self, error: BaseException | None, names: dict[str, Any]) -> None:
        """Keep how it ended, and which names it did not come to bind."""
        self.ended = time.time()  # noqa: TID251
        if error is not None and self.problem is None:
            self.error = error_in_a_line(error)
            self.interrupted = isinstance(error, KeyboardInterrupt)
            self.failed = stopped_line(error, names)
        if self.error or self.magic:
            self.unreached = frozenset(n for n in self.bound if not self.has_bound(n, names))
        self.before = {}

    def lacks(self, name: str, value: Any) -> bool:
        """True if the run ended before it bound this name."""
        if not self.unseen:
            return name in self.unreached
        lines = linecache.getlines(code.co_filename) if (code := code_of(value)) else ()
        return bool(lines) and "".join(lines).strip() != self.source.strip()

    def is_stub(self, name: str) -> bool:
        """True if the run stopped in a definition that is still as it was handed out."""
        if self.error != STUB_ERROR or name not in self.unreached:
            return False
        statement = self.bound[name]
        raises = any(
            f"raise {STUB_ERROR}" in ast.unparse(n) for n in getattr(statement.node, "body", ())
        )
        return raises and statement.holds(self.failed)

    def below(self, name: str) -> str:
        """Describe how a run ended below the definition of a name; "" if it ended by itself."""
        if not self.error or name not in self.bound or self.error.startswith(ERRORS_IN_VERDICTS):
            return ""
        if self.interrupted:
            return "its cell did not end: it was interrupted below the definition"
        return f"its cell stopped with {self.error} below the definition"

    def has_bound(self, name: str, names: dict[str, Any]) -> bool:
        """True if a run that stopped, or whose magic may hide its names, bound this one."""
        statement = self.bound[name]
        if self.failed and not statement.holds(self.failed):
            return statement.last < self.failed
        return names.get(name, NOT_THERE) is not self.before.get(name, NOT_THERE)


@dataclass(frozen=True)
class Statement:
    """A statement at a cell's top level."""

    node: ast.stmt

    @cached_property
    def operations(self) -> list[dis.Instruction]:
        """Return the instructions of Python that the statement is compiled to."""
        try:
            module = ast.Module([self.node], [])
            return [*dis.get_instructions(compile(module, "<cell>", "exec", COMPILE_FLAGS))]
        except SyntaxError:  # from __future__, which has to come first
            return []

    @cached_property
    def stores(self) -> frozenset[str]:
        """Return the names that it leaves behind."""
        return frozenset(o.argval for o in self.operations if o.opname in STORES) - self.deletes

    @cached_property
    def deletes(self) -> frozenset[str]:
        """Return the names that it takes away: of except … as, its own."""
        return frozenset(o.argval for o in self.operations if o.opname in DELETES)

    @property
    def first(self) -> int:
        """Return the statement's first line in its cell, decorators included."""
        decorators = getattr(self.node, "decorator_list", ())
        return min([self.node.lineno, *(d.lineno for d in decorators)])

    @property
    def last(self) -> int:
        """Return the statement's last line in its cell."""
        return self.node.end_lineno or self.node.lineno

    @property
    def defines(self) -> bool:
        """True if a grader runs this below a failed line: it binds names, and is no loop."""
        return bool(self.stores) and not isinstance(self.node, ast.For | ast.AsyncFor | ast.While)

    def holds(self, line: int) -> bool:
        """True if a line of the cell belongs to the statement."""
        return self.first <= line <= self.last

    def same_but_for(self, name: str, other: "Statement") -> bool:
        """True if two statements are the same definition under different names."""
        if not isinstance(self.node, DEFINITIONS) or type(self.node) is not type(other.node):
            return False
        text = re.sub(rf"\b{re.escape(self.node.name)}\b", name, ast.unparse(self.node))
        return self.node.name != name and text == ast.unparse(other.node)

    def __str__(self) -> str:
        """Return the statement's first line as Python writes it, shortened."""
        return short_line(ast.unparse(self.node).splitlines()[0])

    def same_as(self, other: "Statement") -> bool:
        """True if another statement is the same code, however it is spaced."""
        return ast.dump(self.node) == ast.dump(other.node)


def means_to_bind(source: str, name: str) -> bool:
    """True if a text that is no valid Python looks as if it was to bind the name."""
    word = re.escape(name)
    head = rf"(?:async\s+)?(?:def|class)\s+{word}\b|{word}\s*(?::[^=\n]*)?=(?!=)"
    typo = rf"\w+\s+{word}\s*\([^\n]*(?::[ \t]*(?:#[^\n]*)?$|\n[ \t]+\S)"  # de project(x):
    named = rf"(?:from|import)\b[^\n]*\b{word}\b"
    return re.search(rf"^(?:{head}|{typo}|{named})", source, re.M) is not None


class CellRuns:
    """The runs of one IPython's cells, the newest last."""

    def __init__(self, ipython: Any):
        """Take the runs so far from IPython's history, and listen to those that follow."""
        self.ipython = weakref.ref(ipython)
        self.runs: list[CellRun] = []
        self.open: list[CellRun] = []  # that have not ended: a magic may run a cell inside of one
        history = self.history
        for number, raw in enumerate(history[1:-1], 1):
            self.add(number, raw, "").unseen = True
        if len(history) > 1:  # which imports this
            self.open.append(self.add(len(history) - 1, history[-1], ""))
        ipython.events.register("pre_run_cell", self.begins)
        ipython.events.register("post_run_cell", self.ends)
        ipython.ast_transformers.append(Missing())

    @property
    def names(self) -> dict[str, Any]:
        """Return the notebook's variables; none once its shell is gone."""
        ipython = self.ipython()
        return ipython.user_ns if ipython else {}

    @property
    def history(self) -> list[str]:
        """IPython's own ``In``, from 1 on: a notebook may call something else so."""
        manager = getattr(self.ipython(), "history_manager", None)
        return manager.input_hist_parsed if manager else [""]

    def add(self, number: int, raw: str, cell: str) -> CellRun:
        """Note a run of a cell, with what the names that it binds hold before."""
        run = CellRun(number, raw, *python_of(raw, self.ipython()), cell)
        names = self.names
        run.before = {n: names[n] for n in run.bound if isinstance(names.get(n), COMPARED_TYPES)}
        self.runs.append(run)
        return run

    def begins(self, info: Any) -> None:
        """Note that a cell begins to run: IPython calls this."""
        cell = getattr(info, "cell_id", "") or ""
        self.open.append(self.add(len(self.history), info.raw_cell or "", cell))

    def ends(self, result: Any) -> None:
        """Note how the innermost open cell ended: IPython calls this."""
        if self.open:
            error = getattr(result, "error_before_exec", None) or getattr(
                result, "error_in_exec", None
            )
            run = self.open.pop()
            run.number = len(self.history) - 1  # it is written down by now
            run.end(error, self.names)

    def newest(self, name: str) -> CellRun | None:
        """Return the last ended attempt at a name; None where a cell that runs has bound it.

        A cell that no longer is Python is one where an earlier text of it was.
        """
        cells_of_name: set[str] = {run.cell for run in self.runs if run.cell and name in run.bound}
        for run in reversed(self.runs):
            if run in self.open:
                if run.tries(name) and run.has_bound(name, self.names):
                    return None
            elif run.tries(name) or (run.problem and run.cell in cells_of_name):
                return run
        return None

    def settle(self, name: str) -> None:
        """Have the newest attempt at a name give what it gives a grader."""
        run = self.newest(name)
        if run is None or run.problem or run.interrupted or run.finished or name not in run.bound:
            return
        if run.lacks(name, self.names.get(name, NOT_THERE)):
            self.finish(run)

    def finish(self, run: CellRun) -> None:
        """Run what a run did not come to: all that binds names below the line in which it stopped.

        Where that line is not known, or a magic kept the names to itself, that is all of the cell.
        """
        failed, bound = ([run.failed] if run.failed else []), set()
        for statement in run.statements:
            if statement.first <= max(failed, default=0) or (failed and not statement.defines):
                continue
            try:
                self.execute(run, statement)
                bound |= statement.stores
            except (Exception, SystemExit) as error:
                failed.append(statement.node.lineno)
                run.error = run.error or error_in_a_line(error)
        run.unreached = frozenset(run.bound if run.unseen else run.unreached) - bound
        run.finished, run.unseen = True, False
        lines = run.source.splitlines()
        notes = [TIMEIT_KEEPS_NAMES] if run.magic == "timeit" else []
        if failed:
            notes.append(f"{run.error} ({went_on([lines[n - 1].strip() for n in failed])})")
        run.note = "; ".join(notes)

    def again(self, name: str) -> CellRun | None:
        """Run the cell that gave a name its value once more, down to there; None if none did."""
        if (taken := self.taken(name)) is None:
            return None
        run, statement = taken
        before = self.names.pop(name)
        for earlier in run.statements[: run.statements.index(statement) + 1]:
            with suppress(Exception, SystemExit):
                self.execute(run, earlier)
        self.names.setdefault(name, before)
        return run

    def execute(self, run: CellRun, statement: Statement) -> None:
        """Run one statement of a cell, among the notebook's names."""
        ipython: Any = self.ipython()
        file, flags = ipython.compile.cache(run.source), COMPILE_FLAGS | ipython.compile.flags
        module = ast.Module([statement.node], [])
        code = compile(module, file, "exec", flags, dont_inherit=True)
        waits = eval(code, self.names)
        if code.co_flags & inspect.CO_COROUTINE:
            with ThreadPoolExecutor(1) as pool:  # in this thread another loop runs
                pool.submit(asyncio.run, waits).result()

    def note(self, name: str) -> str:
        """Return a note on the newest run that was to bind a name: how it was run, or how it ended.

        Where nothing was, that it stopped below what it gave: a grade says so, too.
        """
        run = self.newest(name)
        return (run.note or run.below(name)) if run else ""

    def why_unjudged(self, name: str, value: Any) -> Unjudged | None:
        """Return why a name's value is not what its newest attempt would give; None where it is."""
        run = self.newest(name)
        if run is None:
            return None if value is not ... else never_run(name)
        again = f"run the cell of `{name}` again, then this check."
        if run.is_stub(name):
            what = f"`{name}` is not written yet"
            return Unjudged(what, "Replace `raise NotImplementedError()`.", open=True, stub=True)
        if stopped := self.stopped(run, name, value):
            older = f"; an older `{name}` is still in memory, and is not judged"
            what = f"the newest `{name}` did not run: {stopped}{'' if value is ... else older}"
            mends = run.problem or (run.error and not run.interrupted)
            return Unjudged(what, f"Mend that, {again}" if mends else capitalised(again))
        if value is ...:
            what = f"`{name}` is no longer there: {run.place} deletes it"
            return Unjudged(what, capitalised(again))
        if name in run.bound and not callable(value):
            what = f"`{name}` is {kind_of(value)}, nothing that can be called"
            taken = f"{what}: `{run.bound[name]}` in {run.place} took its name"
            return Unjudged(taken, f"Give that another name, {again}")
        return self.changed(name, run)

    def stopped(self, run: CellRun, name: str, value: Any) -> str:
        """Describe what kept a run from giving a name its value; "" where nothing did."""
        if run.problem:
            return error_in_a_line(run.problem)
        if name not in run.bound or not run.lacks(name, value):
            return ""
        if run.interrupted:
            return "its cell was interrupted before it came to it"
        with_what = f" with {run.error}" if run.error else ""
        return f"its cell stopped{with_what} before it came to it"

    def changed(self, name: str, run: CellRun) -> Unjudged | None:
        """Return why a value is not judged where its cells now hold another definition."""
        if name not in run.bound:
            return None
        after = self.runs[self.runs.index(run) + 1 :]
        later = [other for other in after if run.cell and other.cell == run.cell]
        if later and later[-1] not in self.open and name not in later[-1].bound:
            others = [
                n
                for n, statement in later[-1].bound.items()
                if isinstance(statement.node, DEFINITIONS)
            ]
            instead = f": it defines `{others[-1]}`" if others else ""
            what = f"nothing is called `{name}` any more in the cell that it came from{instead}"
            return Unjudged(what, f"Define `{name}` in it, run it, then this check.")
        if not run.cell:
            for other in after:
                for statement in other.bound.values():
                    if statement.same_but_for(name, run.bound[name]):
                        new_name = getattr(statement.node, "name", "")
                        what = f"nothing is called `{name}` any more, if {other.place} is its cell"
                        what += f": it defines `{new_name}`, which is the same"
                        return Unjudged(
                            what, f"Define `{name}` in its cell, run it, then this check."
                        )
        cells = self.saved_after(run)
        definitions = [cell.bound[name] for cell in cells if name in cell.bound]
        if not cells or any(statement.same_as(run.bound[name]) for statement in definitions):
            return None
        if definitions or any(cell.tries(name) for cell in cells):
            what = f"the cell of `{name}` was changed after it was run"
            return Unjudged(what, "Run it, then this check.")
        return Unjudged(
            NOT_DEFINED_ANY_MORE.format(name),
            f"Define `{name}` in its cell, run it, then this check.",
        )

    def gone(self, name: str) -> Unjudged | None:
        """Return why a value is not judged, where the notebook's file no longer has its cell."""
        run = self.newest(name)
        cells = self.saved_after(run) if run and name in run.bound else []
        if not cells or any(
            name in c.bound or c.tries(name) or MAY_BIND_ANYTHING.search(c.raw) for c in cells
        ):
            return None
        return Unjudged(
            NOT_DEFINED_ANY_MORE.format(name),
            f"Define `{name}` in a cell, run it, then this check.",
        )

    def saved_after(self, run: CellRun) -> list[CellRun]:
        """Return the code cells of the notebook's file, if it is known and newer than a run."""
        time, cells = self.saved()
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        if time <= run.ended:
            return []
        return [CellRun(0, text, *python_of(text, self.ipython())) for text in code]

    def saved(self) -> tuple[float, list[dict[str, Any]]]:
        """Return when the notebook was saved, and its cells then; none of an unknown file.

        It has to hold the cell that runs now: a path may be inherited from another notebook.
        """
        path = self.names.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")
        try:
            state = Path(path).stat()
            if not path or state.st_size > MAX_NOTEBOOK_BYTES:
                return 0.0, []
            cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
            texts = {"".join(cell["source"]).strip() for cell in cells}
        except (OSError, ValueError, KeyError, TypeError):
            return 0.0, []
        known = self.open and self.open[-1].raw.strip() in texts
        return (state.st_mtime, cells) if known else (0.0, [])

    def answered(self) -> frozenset[str] | None:
        """Return the questions that are answered in the saved notebook; None if not known."""
        marks = [(c["metadata"].get("nbgrader", {}), c) for c in self.saved()[1]]
        questions = [(m["grade_id"], c) for m, c in marks if m.get("grade") and m.get("solution")]
        answered_names = {name for name, c in questions if UNANSWERED not in "".join(c["source"])}
        return frozenset(answered_names) if questions else None

    def writes(self, file: str) -> bool:
        """True if a cell may have written a file of this name."""
        return any(
            file in run.raw and re.search(r"%%file|write|open\(", run.raw) for run in self.runs
        )

    def taken(self, name: str) -> tuple[CellRun, Statement] | None:
        """Return where a name got its value, if a statement took it from something else."""
        for run in reversed(self.runs):
            if name in run.bound and name not in run.unreached:
                return run, run.bound[name]
        return None


DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_sessions: dict[int, CellRuns] = {}


def cells_here() -> CellRuns | None:
    """Return the runs of the cells of the notebook that calls this; None elsewhere.

    From the first call on the runs of a session's cells are known. An IPython that is merely there,
    and runs no cell now, is no notebook.
    """
    ipython = running_shell()
    if ipython is None or not hasattr(ipython, "events"):
        return None
    cell_runs = _sessions.get(id(ipython))
    if cell_runs is None or cell_runs.ipython() is not ipython:
        cell_runs = _sessions[id(ipython)] = CellRuns(ipython)
    return cell_runs if in_a_cell(ipython) else None


def in_a_cell(ipython: Any) -> bool:
    """True if code of a cell is on the stack."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals is ipython.user_global_ns:
            return True
        frame = frame.f_back
    return False


# --- a check of a name that is not there ----------------------------------------------------------


class Missing(ast.NodeTransformer):
    """Has a check of a name that is not there say so, in place of Python's ``NameError``.

    ``check("kqv.project", project)`` asks for the name as ``globals().get("project", ...)``.
    """

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Have ``check`` and ``examine`` get ``...`` for an answer whose name is unbound."""
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("check", "examine"):
            node.args[1:2] = [asked_expression(value) for value in node.args[1:2]]
            for word in node.keywords:
                word.value = (
                    asked_expression(word.value) if word.arg == "implementation" else word.value
                )
        return self.generic_visit(node)

    def inside(self, node: ast.AST) -> ast.AST:
        """Leave functions and lambdas as they are, which have names of their own."""
        return node  # names of its own

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = inside


def asked_expression(value: ast.expr) -> ast.expr:
    """Return the expression that looks a name up, and gives ``...`` where nothing has it."""
    if not isinstance(value, ast.Name) or hasattr(builtins, value.id):
        return value
    made = ast.parse(f"globals().get({value.id!r}, ...)", mode="eval").body
    return ast.fix_missing_locations(ast.copy_location(made, value))


def never_run(name: str) -> Unjudged:
    """Return the verdict's words on an answer whose cell has not run in this kernel."""
    what = f"`{name}` is not there: its cell has not been run since the kernel started"
    return Unjudged(what, "Run that cell, then this check.", open=True)


# --- texts ----------------------------------------------------------------------------------------


def python_of(raw: str, ipython: Any) -> tuple[str, str]:
    """Return a cell as Python, and the magic that it begins with; of other languages nothing."""
    try:
        source = ipython.transform_cell(raw)
    except Exception:
        return raw, ""
    magic = re.match(r"\s*get_ipython\(\)\.run_cell_magic\(", source)
    if not magic:
        return source, ""
    with suppress(SyntaxError, ValueError, AttributeError, IndexError):
        name, _, body = (ast.literal_eval(a) for a in ast.parse(source).body[0].value.args)
        return (python_of(body, ipython)[0], name) if name in RUN_THEIR_CELL else ("", name)
    return "", ""


RUN_THEIR_CELL = {"time", "timeit", "capture", "prun"}


def stopped_line(error: BaseException, names: dict[str, Any]) -> int:
    """Return the line of the cell in which it stopped; 0 where that is not known."""
    line, step = 0, error.__traceback__
    while step is not None:
        frame = step.tb_frame
        is_of_cell = frame.f_code.co_name.startswith(
            ("<module>", "<cell line")
        )  # the latter in IPython 8
        if frame.f_globals is names and is_of_cell:
            line = step.tb_lineno
        step = step.tb_next
    return line


def error_in_a_line(error: BaseException) -> str:
    """Return an error as Python says it, with its line's text where it has one."""
    said = (getattr(error, "msg", "") or str(error)).splitlines() or [""]
    text = f"{type(error).__name__}: {said[0]}" if said[0] else type(error).__name__
    line = short_line(getattr(error, "text", None) or "")
    return f"{text} in the line `{line}`" if line else text


def code_of(value: Any) -> types.CodeType | None:
    """Return the code of a function, or of a class's first method."""
    members = vars(value).values() if isinstance(value, type) else [value]
    return next(
        (member.__code__ for member in members if isinstance(member, types.FunctionType)), None
    )


def capitalised(text: str) -> str:
    """Return a text with a capital letter in front."""
    return text[:1].upper() + text[1:]


def kind_of(value: Any) -> str:
    """Describe a value: its class, and the value itself where that is short."""
    shown = "" if hasattr(value, "__len__") and not isinstance(value, str) else repr(value)
    a = "an" if type(value).__name__[0] in "aeiouAEIOU" else "a"
    return f"{a} {type(value).__name__}" + (f" ({shown})" if 0 < len(shown) <= 20 else "")


def went_on(lines: Iterable[str]) -> str:
    """Return a note on the lines of a cell that were skipped so that its definitions could run."""
    skipped = ", ".join(f"`{short_line(line)}`" for line in lines)
    return f"skipped: {skipped}; the definitions below it were run"


def short_line(line: str) -> str:
    """Return a line of code, shortened to ``MAX_STATEMENT_CHARACTERS``, with single blanks."""
    line = " ".join(line.split())
    return (
        line
        if len(line) <= MAX_STATEMENT_CHARACTERS
        else line[: MAX_STATEMENT_CHARACTERS - 1] + "…"
    )
