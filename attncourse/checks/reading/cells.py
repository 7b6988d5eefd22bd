"""Which run of which cell gave the object that a check is handed, in a notebook.

The answer's cell may not have compiled, may have stopped or been interrupted before the definition,
may not have been run since it was changed; another cell may have bound the name. Memory then holds
an older definition, and a verdict on that would be about code that nobody sees. So the runs of a
session's cells are kept, and only what the newest attempt gave is judged. A cell that stopped is
treated as a grader treats it: the definitions below the failed line run, too.

IPython reports each run, since 7.0 alike in JupyterLab, VS Code and Colab. Where it does not (a
script, a plain interpreter) every answer is judged.
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

NOT_THERE = ...  # handed to a check in place of a name that is bound to nothing
NOT_ENDED = float("inf")
NOT_DEFINED_ANY_MORE = "no cell of your notebook defines `{}` any more, as it was saved last"
MAY_BIND_ANYTHING = re.compile(r"import \*|%run|exec\(")  # which names cannot be read off
MAX_NOTEBOOK_BYTES = 50_000_000  # of a saved notebook; a larger one is not read
TIMEIT_KEEPS_NAMES = "`%%timeit` keeps what its cell defines to itself: the cell was run without it"
UNANSWERED = "YOUR ANSWER HERE"  # the text of a question's cell as it is released
MAX_STATEMENT_CHARACTERS = 60
STUB_ERROR = "NotImplementedError"  # what an answer raises that is not written
ERRORS_IN_VERDICTS = (STUB_ERROR, "CheckFailed")  # need no note, since a verdict tells them
STORES, DELETES = {"STORE_NAME", "STORE_GLOBAL"}, {"DELETE_NAME", "DELETE_GLOBAL"}
COMPILE_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
COMPARED_TYPES = types.FunctionType | type  # of values that are compared before and after a run


class Unjudged(NamedTuple):
    """Why an answer is not judged, and what to do about it.

    ``open`` says that the exercise was not attempted, ``stub`` that its cell is as it was released.
    """

    why: str
    to_do: str
    open: bool = False
    stub: bool = False


def running_shell() -> Any:
    """Return the IPython shell of this process, or None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython and hasattr(ipython, "get_ipython") else None


# --- runs -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class CellRun:
    """One run of a cell: its number in the notebook, its text, and how it ended.

    ``raw`` is the cell's text; ``source`` is that as Python, without the ``magic`` in its first
    line. ``cell`` is the cell's id, "" where it is not known. ``failed_line`` is the line in which
    the run stopped (0 if it did not), ``error`` the text of what was raised. ``former_values``
    holds, while the cell runs, the functions and classes that its names stood for when it began;
    ``unbound_names`` are those that it did not come to bind. A run is ``unseen`` if it was before
    the checks were imported: only its text is known. It is ``finished`` once a check has run the
    rest of it.
    """

    number: int
    raw: str
    source: str
    magic: str = ""
    cell: str = ""
    ended: float = NOT_ENDED
    error: str = ""
    interrupted: bool = False
    failed_line: int = 0
    former_values: dict[str, Any] = field(default_factory=dict)
    unbound_names: frozenset[str] = frozenset()
    unseen: bool = False
    finished: bool = False
    note: str = ""  # how a check ran it, for the verdict

    @cached_property
    def problem(self) -> SyntaxError | None:
        """Return the error that shows that the source is no valid Python; None if it is."""
        try:
            compile(self.source, "<cell>", "exec", COMPILE_FLAGS, dont_inherit=True)
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxError(str(error))
        return None

    @cached_property
    def statements(self) -> list["Statement"]:
        """Return the statements at the cell's top level; [] where it is no valid Python."""
        return [] if self.problem else [Statement(n) for n in ast.parse(self.source).body]

    @cached_property
    def binding_statements(self) -> dict[str, "Statement"]:
        """Return each name that the cell binds, with the last statement that binds it."""
        return {name: statement for statement in self.statements for name in statement.stores}

    @property
    def place(self) -> str:
        """Return the cell as a notebook names it: ``cell [3]``."""
        return f"cell [{self.number}]"

    def would_bind(self, name: str) -> bool:
        """True if the cell would bind or delete the name; a guess where it is no valid Python."""
        if self.problem is None:
            return name in self.binding_statements or any(
                name in statement.deletes for statement in self.statements
            )
        return looks_like_binding(self.source, name)

    def record_end(self, error: BaseException | None, names: dict[str, Any]) -> None:
        """Note how the run ended, and which names it did not come to bind.

        ``names`` are the notebook's variables now.
        """
        self.ended = time.time()  # noqa: TID251
        if error is not None and self.problem is None:
            self.error = error_in_a_line(error)
            self.interrupted = isinstance(error, KeyboardInterrupt)
            self.failed_line = stopped_line(error, names)
        if self.error or self.magic:
            self.unbound_names = frozenset(
                n for n in self.binding_statements if not self.has_bound(n, names)
            )
        self.former_values = {}

    def ended_before(self, name: str, value: Any) -> bool:
        """True if the run ended before it bound this name; ``value`` is what the name has now."""
        if not self.unseen:
            return name in self.unbound_names
        # Of a run that was not seen only the text is known: did the value come from this text?
        lines = linecache.getlines(code.co_filename) if (code := code_of(value)) else ()
        return bool(lines) and "".join(lines).strip() != self.source.strip()

    def is_stub(self, name: str) -> bool:
        """True if the run stopped in the name's definition, which is still the released stub."""
        if self.error != STUB_ERROR or name not in self.unbound_names:
            return False
        statement = self.binding_statements[name]
        raises = any(
            f"raise {STUB_ERROR}" in ast.unparse(n) for n in getattr(statement.node, "body", ())
        )
        return raises and statement.has_line(self.failed_line)

    def failure_below(self, name: str) -> str:
        """Return how the run failed below the definition of a name; "" if it did not.

        Errors that a verdict tells anyway are left out.
        """
        if (
            not self.error
            or name not in self.binding_statements
            or self.error.startswith(ERRORS_IN_VERDICTS)
        ):
            return ""
        if self.interrupted:
            return "its cell did not end: it was interrupted below the definition"
        return f"its cell stopped with {self.error} below the definition"

    def has_bound(self, name: str, names: dict[str, Any]) -> bool:
        """True if a run that stopped, or whose magic may keep names to itself, bound this one.

        The statement stands above the failed line; or else the name now has another value than
        before the run.
        """
        statement = self.binding_statements[name]
        if self.failed_line and not statement.has_line(self.failed_line):
            return statement.last_line < self.failed_line
        return names.get(name, NOT_THERE) is not self.former_values.get(name, NOT_THERE)


@dataclass(frozen=True)
class Statement:
    """A statement at a cell's top level."""

    node: ast.stmt

    @cached_property
    def operations(self) -> list[dis.Instruction]:
        """Return the bytecode instructions of the statement."""
        try:
            module = ast.Module([self.node], [])
            return [*dis.get_instructions(compile(module, "<cell>", "exec", COMPILE_FLAGS))]
        except SyntaxError:  # from __future__, which has to come first
            return []

    @cached_property
    def stores(self) -> frozenset[str]:
        """Return the names that the statement binds and does not delete again."""
        return frozenset(o.argval for o in self.operations if o.opname in STORES) - self.deletes

    @cached_property
    def deletes(self) -> frozenset[str]:
        """Return the names that the statement deletes; ``except … as name`` deletes its own."""
        return frozenset(o.argval for o in self.operations if o.opname in DELETES)

    @property
    def first_line(self) -> int:
        """Return the statement's first line in its cell, decorators included."""
        decorators = getattr(self.node, "decorator_list", ())
        return min([self.node.lineno, *(d.lineno for d in decorators)])

    @property
    def last_line(self) -> int:
        """Return the statement's last line in its cell."""
        return self.node.end_lineno or self.node.lineno

    @property
    def is_run_below_failure(self) -> bool:
        """True if a grader runs it below a failed line: it binds names and is no loop."""
        return bool(self.stores) and not isinstance(self.node, ast.For | ast.AsyncFor | ast.While)

    def has_line(self, line: int) -> bool:
        """True if a line of the cell belongs to the statement."""
        return self.first_line <= line <= self.last_line

    def is_renamed_in(self, name: str, definition: "Statement") -> bool:
        """True if a definition of ``name`` is this statement but for the name it defines."""
        if not isinstance(self.node, DEFINITIONS) or type(self.node) is not type(definition.node):
            return False
        text = re.sub(rf"\b{re.escape(self.node.name)}\b", name, ast.unparse(self.node))
        return self.node.name != name and text == ast.unparse(definition.node)

    def __str__(self) -> str:
        """Return the statement's first line as Python writes it, shortened."""
        return short_line(ast.unparse(self.node).splitlines()[0])

    def is_same_code(self, statement: "Statement") -> bool:
        """True if another statement is the same code, apart from blanks and comments."""
        return ast.dump(self.node) == ast.dump(statement.node)


def looks_like_binding(source: str, name: str) -> bool:
    """True if a text that is no valid Python looks as if it were meant to bind the name."""
    word = re.escape(name)
    head = rf"(?:async\s+)?(?:def|class)\s+{word}\b|{word}\s*(?::[^=\n]*)?=(?!=)"
    typo = rf"\w+\s+{word}\s*\([^\n]*(?::[ \t]*(?:#[^\n]*)?$|\n[ \t]+\S)"  # de project(x):
    import_pattern = rf"(?:from|import)\b[^\n]*\b{word}\b"
    return re.search(rf"^(?:{head}|{typo}|{import_pattern})", source, re.M) is not None


class CellRuns:
    """The runs of the cells of one IPython shell, the newest last."""

    def __init__(self, ipython: Any):
        """Take the earlier runs from IPython's history, and have it report those that follow."""
        self.ipython = weakref.ref(ipython)
        self.runs: list[CellRun] = []
        # Runs that have not ended, the innermost last: a magic may run a cell inside another.
        self.open: list[CellRun] = []
        history = self.history
        for number, raw in enumerate(history[1:-1], 1):
            self.add(number, raw, "").unseen = True
        if len(history) > 1:  # the last entry is the cell that imports this, and still runs
            self.open.append(self.add(len(history) - 1, history[-1], ""))
        ipython.events.register("pre_run_cell", self.note_begin)
        ipython.events.register("post_run_cell", self.note_end)
        ipython.ast_transformers.append(UnboundAnswers())

    @property
    def names(self) -> dict[str, Any]:
        """Return the notebook's variables, {} once its shell is gone."""
        ipython = self.ipython()
        return ipython.user_ns if ipython else {}

    @property
    def history(self) -> list[str]:
        """Return the cells' texts by number, from 1 on: IPython's ``In``, which may be rebound."""
        manager = getattr(self.ipython(), "history_manager", None)
        return manager.input_hist_parsed if manager else [""]

    def add(self, number: int, raw: str, cell: str) -> CellRun:
        """Return a new run of a cell, with the values that its names have before; keep it, too."""
        run = CellRun(number, raw, *python_of(raw, self.ipython()), cell)
        names = self.names
        run.former_values = {
            n: names[n] for n in run.binding_statements if isinstance(names.get(n), COMPARED_TYPES)
        }
        self.runs.append(run)
        return run

    def note_begin(self, info: Any) -> None:
        """Note that a cell begins to run: IPython calls this."""
        cell = getattr(info, "cell_id", "") or ""
        self.open.append(self.add(len(self.history), info.raw_cell or "", cell))

    def note_end(self, result: Any) -> None:
        """Note how the innermost open cell ended: IPython calls this."""
        if self.open:
            error = getattr(result, "error_before_exec", None) or getattr(
                result, "error_in_exec", None
            )
            run = self.open.pop()
            run.number = len(self.history) - 1  # IPython has added it by now
            run.record_end(error, self.names)

    def newest_run(self, name: str) -> CellRun | None:
        """Return the newest run, of those that ended, that was to bind a name.

        None if there is none, or if a cell that still runs has bound the name since. A cell that is
        no valid Python now counts if an earlier text of the same cell bound the name.
        """
        cells_of_name: set[str] = {
            run.cell for run in self.runs if run.cell and name in run.binding_statements
        }
        for run in reversed(self.runs):
            if run in self.open:
                if run.would_bind(name) and run.has_bound(name, self.names):
                    return None
            elif run.would_bind(name) or (run.problem and run.cell in cells_of_name):
                return run
        return None

    def complete_newest(self, name: str) -> None:
        """Run the rest of a name's newest run, if it stopped before it: as a grader does."""
        run = self.newest_run(name)
        if (
            run is None
            or run.problem
            or run.interrupted
            or run.finished
            or name not in run.binding_statements
        ):
            return
        if run.ended_before(name, self.names.get(name, NOT_THERE)):
            self.run_rest(run)

    def run_rest(self, run: CellRun) -> None:
        """Run the statements that bind names below the line in which a run stopped, and note that.

        If that line is not known, or a magic kept the names to itself, the whole cell is run. A
        statement that fails is skipped, too.
        """
        failed = [run.failed_line] if run.failed_line else []
        bound: set[str] = set()
        for statement in run.statements:
            if statement.first_line <= max(failed, default=0) or (
                failed and not statement.is_run_below_failure
            ):
                continue
            try:
                self.execute(run, statement)
                bound |= statement.stores
            except (Exception, SystemExit) as error:
                failed.append(statement.node.lineno)
                run.error = run.error or error_in_a_line(error)
        run.unbound_names = (
            frozenset(run.binding_statements if run.unseen else run.unbound_names) - bound
        )
        run.finished, run.unseen = True, False
        lines = run.source.splitlines()
        notes = [TIMEIT_KEEPS_NAMES] if run.magic == "timeit" else []
        if failed:
            notes.append(
                f"{run.error} ({skipped_lines_note([lines[n - 1].strip() for n in failed])})"
            )
        run.note = "; ".join(notes)

    def run_again(self, name: str) -> CellRun | None:
        """Run once more the cell that gave a name its value, down to that statement.

        Return its run, or None if no cell did. If the name gets no value now, it keeps the old one.
        """
        if (binding := self.binding_of(name)) is None:
            return None
        run, statement = binding
        before = self.names.pop(name)
        for earlier in run.statements[: run.statements.index(statement) + 1]:
            with suppress(Exception, SystemExit):
                self.execute(run, earlier)
        self.names.setdefault(name, before)
        return run

    def execute(self, run: CellRun, statement: Statement) -> None:
        """Run one statement of a cell with the notebook's variables; an ``await`` in it, too."""
        ipython: Any = self.ipython()
        file, flags = ipython.compile.cache(run.source), COMPILE_FLAGS | ipython.compile.flags
        module = ast.Module([statement.node], [])
        code = compile(module, file, "exec", flags, dont_inherit=True)
        waits = eval(code, self.names)
        if code.co_flags & inspect.CO_COROUTINE:
            # In a thread of its own: in this one the kernel's event loop is running.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(asyncio.run, waits).result()

    def note(self, name: str) -> str:
        """Return how a check ran a name's newest run, or how it failed below the name; or ""."""
        run = self.newest_run(name)
        return (run.note or run.failure_below(name)) if run else ""

    def why_unjudged(self, name: str, value: Any) -> Unjudged | None:
        """Return why a name's value is not what its newest run would give; None where it is."""
        run = self.newest_run(name)
        if run is None:
            return None if value is not ... else never_run(name)
        again = f"run the cell of `{name}` again, then this check."
        if run.is_stub(name):
            reason = f"`{name}` is not written yet"
            return Unjudged(reason, "Replace `raise NotImplementedError()`.", open=True, stub=True)
        if stopped := self.why_stopped(run, name, value):
            older = f"; an older `{name}` is still in memory, and is not judged"
            reason = f"the newest `{name}` did not run: {stopped}{'' if value is ... else older}"
            mends = run.problem or (run.error and not run.interrupted)
            return Unjudged(reason, f"Mend that, {again}" if mends else capitalised(again))
        if value is ...:
            reason = f"`{name}` is no longer there: {run.place} deletes it"
            return Unjudged(reason, capitalised(again))
        if name in run.binding_statements and not callable(value):
            reason = f"`{name}` is {kind_of(value)}, nothing that can be called"
            taken = f"{reason}: `{run.binding_statements[name]}` in {run.place} took its name"
            return Unjudged(taken, f"Give that another name, {again}")
        return self.why_changed(name, run)

    def why_stopped(self, run: CellRun, name: str, value: Any) -> str:
        """Return what stopped a run before it gave a name its value; "" if nothing did."""
        if run.problem:
            return error_in_a_line(run.problem)
        if name not in run.binding_statements or not run.ended_before(name, value):
            return ""
        if run.interrupted:
            return "its cell was interrupted before it came to it"
        with_what = f" with {run.error}" if run.error else ""
        return f"its cell stopped{with_what} before it came to it"

    def why_changed(self, name: str, run: CellRun) -> Unjudged | None:
        """Return why a value is not judged whose cell no longer holds its definition, or None.

        Either a later run of the cell no longer defines the name, or a later cell defines the same
        under another name, or the saved notebook has another text.
        """
        if name not in run.binding_statements:
            return None
        after = self.runs[self.runs.index(run) + 1 :]
        later = [later_run for later_run in after if run.cell and later_run.cell == run.cell]
        if later and later[-1] not in self.open and name not in later[-1].binding_statements:
            others = [
                n
                for n, statement in later[-1].binding_statements.items()
                if isinstance(statement.node, DEFINITIONS)
            ]
            instead = f": it defines `{others[-1]}`" if others else ""
            reason = f"nothing is called `{name}` any more in the cell that it came from{instead}"
            return Unjudged(reason, f"Define `{name}` in it, run it, then this check.")
        if not run.cell:
            for later_run in after:
                for statement in later_run.binding_statements.values():
                    if statement.is_renamed_in(name, run.binding_statements[name]):
                        new_name = getattr(statement.node, "name", "")
                        reason = (
                            f"nothing is called `{name}` any more, if {later_run.place} is its cell"
                        )
                        reason += f": it defines `{new_name}`, which is the same"
                        return Unjudged(
                            reason, f"Define `{name}` in its cell, run it, then this check."
                        )
        cells = self.cells_saved_after(run)
        definitions = [
            cell.binding_statements[name] for cell in cells if name in cell.binding_statements
        ]
        if not cells or any(
            statement.is_same_code(run.binding_statements[name]) for statement in definitions
        ):
            return None
        if definitions or any(cell.would_bind(name) for cell in cells):
            reason = f"the cell of `{name}` was changed after it was run"
            return Unjudged(reason, "Run it, then this check.")
        return Unjudged(
            NOT_DEFINED_ANY_MORE.format(name),
            f"Define `{name}` in its cell, run it, then this check.",
        )

    def why_gone(self, name: str) -> Unjudged | None:
        """Return why a value is not judged that no cell of the saved notebook gives any more."""
        run = self.newest_run(name)
        cells = self.cells_saved_after(run) if run and name in run.binding_statements else []
        if not cells or any(
            name in c.binding_statements or c.would_bind(name) or MAY_BIND_ANYTHING.search(c.raw)
            for c in cells
        ):
            return None
        return Unjudged(
            NOT_DEFINED_ANY_MORE.format(name),
            f"Define `{name}` in a cell, run it, then this check.",
        )

    def cells_saved_after(self, run: CellRun) -> list[CellRun]:
        """Return the saved notebook's code cells as runs; [] if it is unknown or not newer."""
        time, cells = self.saved_notebook()
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        if time <= run.ended:
            return []
        return [CellRun(0, text, *python_of(text, self.ipython())) for text in code]

    def saved_notebook(self) -> tuple[float, list[dict[str, Any]]]:
        """Return the time of the notebook's file and its cells; (0.0, []) for an unknown file.

        A file without the cell that runs now does not count: a process may have inherited the path
        from another notebook.
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
        is_saved = self.open and self.open[-1].raw.strip() in texts
        return (state.st_mtime, cells) if is_saved else (0.0, [])

    def answered_questions(self) -> frozenset[str] | None:
        """Return the names of the questions that the saved notebook answers; None if not known."""
        marks = [(c["metadata"].get("nbgrader", {}), c) for c in self.saved_notebook()[1]]
        questions = [(m["grade_id"], c) for m, c in marks if m.get("grade") and m.get("solution")]
        answered_names = {name for name, c in questions if UNANSWERED not in "".join(c["source"])}
        return frozenset(answered_names) if questions else None

    def may_have_written(self, file: str) -> bool:
        """True if a cell may have written a file of this name: it mentions it and writes files."""
        return any(
            file in run.raw and re.search(r"%%file|write|open\(", run.raw) for run in self.runs
        )

    def binding_of(self, name: str) -> tuple[CellRun, Statement] | None:
        """Return the newest run that bound a name, and the statement; None if no run did."""
        for run in reversed(self.runs):
            if name in run.binding_statements and name not in run.unbound_names:
                return run, run.binding_statements[name]
        return None


DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_sessions: dict[int, CellRuns] = {}  # by the shell's id


def cells_here() -> CellRuns | None:
    """Return the cell runs of the notebook that calls this; None outside of a notebook.

    The first call begins to record them. An IPython that runs no cell now is no notebook.
    """
    ipython = running_shell()
    if ipython is None or not hasattr(ipython, "events"):
        return None
    cell_runs = _sessions.get(id(ipython))
    if cell_runs is None or cell_runs.ipython() is not ipython:
        cell_runs = _sessions[id(ipython)] = CellRuns(ipython)
    return cell_runs if in_a_cell(ipython) else None


def in_a_cell(ipython: Any) -> bool:
    """True if code of one of the shell's cells is on the stack of this thread."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals is ipython.user_global_ns:
            return True
        frame = frame.f_back
    return False


# --- a check of a name that is not there ----------------------------------------------------------


class UnboundAnswers(ast.NodeTransformer):
    """Rewrites cells so that a check of an unbound name gives a verdict, not a ``NameError``.

    ``check("kqv.project", project)`` becomes
    ``check("kqv.project", globals().get("project", ...))``.
    """

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return a call, rewritten if it is one of ``check`` or ``examine``."""
        function_name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if function_name in ("check", "examine"):
            node.args[1:2] = [lookup_expression(value) for value in node.args[1:2]]
            for keyword in node.keywords:
                if keyword.arg == "implementation":
                    keyword.value = lookup_expression(keyword.value)
        return self.generic_visit(node)

    def leave_unchanged(self, node: ast.AST) -> ast.AST:
        """Return a function or class unchanged: a name in it may be a local one."""
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = leave_unchanged


def lookup_expression(value: ast.expr) -> ast.expr:
    """Return an expression that gives ``...`` for an unbound name; other expressions unchanged."""
    if not isinstance(value, ast.Name) or hasattr(builtins, value.id):
        return value
    expression = ast.parse(f"globals().get({value.id!r}, ...)", mode="eval").body
    return ast.fix_missing_locations(ast.copy_location(expression, value))


def never_run(name: str) -> Unjudged:
    """Return why an answer is not judged whose cell has not run in this kernel."""
    reason = f"`{name}` is not there: its cell has not been run since the kernel started"
    return Unjudged(reason, "Run that cell, then this check.", open=True)


# --- texts ----------------------------------------------------------------------------------------


def python_of(raw: str, ipython: Any) -> tuple[str, str]:
    """Return a cell as Python, and the name of the magic in its first line, or "".

    A cell that its magic does not run as Python, ``%%bash``, gives "" as its source.
    """
    try:
        source = ipython.transform_cell(raw)
    except Exception:
        return raw, ""
    magic = re.match(r"\s*get_ipython\(\)\.run_cell_magic\(", source)
    if not magic:
        return source, ""
    with suppress(SyntaxError, ValueError, AttributeError, IndexError):
        name, _, body = (ast.literal_eval(a) for a in ast.parse(source).body[0].value.args)
        return (python_of(body, ipython)[0], name) if name in PYTHON_MAGICS else ("", name)
    return "", ""


PYTHON_MAGICS = {"time", "timeit", "capture", "prun"}


def stopped_line(error: BaseException, names: dict[str, Any]) -> int:
    """Return the line of the cell in which an error stopped it; 0 where that is not known."""
    line, step = 0, error.__traceback__
    while step is not None:
        frame = step.tb_frame
        # IPython 8 calls a cell's code "<cell line: …>".
        is_of_cell = frame.f_code.co_name.startswith(("<module>", "<cell line"))
        if frame.f_globals is names and is_of_cell:
            line = step.tb_lineno
        step = step.tb_next
    return line


def error_in_a_line(error: BaseException) -> str:
    """Return an error's type and first line, with the line of code that a syntax error has."""
    message_lines = (getattr(error, "msg", "") or str(error)).splitlines() or [""]
    text = (
        f"{type(error).__name__}: {message_lines[0]}" if message_lines[0] else type(error).__name__
    )
    line = short_line(getattr(error, "text", None) or "")
    return f"{text} in the line `{line}`" if line else text


def code_of(value: Any) -> types.CodeType | None:
    """Return the code of a function, or of a class's first method; None for anything else."""
    members = vars(value).values() if isinstance(value, type) else [value]
    return next(
        (member.__code__ for member in members if isinstance(member, types.FunctionType)), None
    )


def capitalised(text: str) -> str:
    """Return a text with a capital letter in front."""
    return text[:1].upper() + text[1:]


def kind_of(value: Any) -> str:
    """Return a value in words: its class, and the value itself where that is short."""
    value_text = "" if hasattr(value, "__len__") and not isinstance(value, str) else repr(value)
    a = "an" if type(value).__name__[0] in "aeiouAEIOU" else "a"
    return f"{a} {type(value).__name__}" + (f" ({value_text})" if 0 < len(value_text) <= 20 else "")


def skipped_lines_note(lines: Iterable[str]) -> str:
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
