"""Grading one submission: its cells run in its process, the instructor's tests run here."""

import ast
import builtins
import io
import numbers
import random
import sys
import time
import types
from collections.abc import Callable, Set
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from attncourse.alarm import TimeUp, within
from attncourse.checks import observe
from attncourse.grading.limits import Limits
from attncourse.grading.notebook import Assignment, Cell
from attncourse.grading.plan import Step, without_magics
from attncourse.grading.session import Ended, OutOfTime, Session
from attncourse.grading.wire import WireError

RESTARTS = 3
MESSAGE = 2000  # characters of an error's text that are worth keeping

Launch = Callable[[float, bool], Session]


@dataclass
class Outcome:
    """What came of a step. ``kind``: "number", "none", "other", "error", "timeout" or "lost"."""

    kind: str
    message: str = ""
    value: float = 0.0
    error: str = ""  # the exception's class
    verdicts: list[dict[str, Any]] = field(default_factory=list)


class Checker:
    """One run of a plan. ``launch`` starts a fresh process for the submission."""

    def __init__(self, steps: list[Step], assignment: Assignment, seed: int, limits: Limits):
        self.steps = steps
        self.desk = desk_for(assignment)
        self.seed = seed
        self.limits = limits
        self.deadline = time.monotonic() + limits.submission
        self.outcomes: dict[int, Outcome] = {}
        self.fatal: set[int] = set()
        self.trouble: list[str] = []
        self.session: Session | None = None
        self.restarts = 0
        self.namespace = trusted_namespace()
        self.borrowed: set[str] = set()  # names that were taken from the submission
        self.laid_out: set[int] = set()
        self.used: dict[str, Any] = {"call": 0.0}

    def run(self, launch: Launch, told: Callable[[int, Outcome], None]) -> None:
        """Runs every step; ``told`` hears of each outcome as it comes."""
        self.launch = launch
        seed_all(self.seed)
        try:
            self.session = self.start()
            for number in range(len(self.steps)):
                self.outcomes[number] = self.step(number)
                told(number, self.outcomes[number])
            self.again(told)
        except OutOfTime:
            where = self.steps[len(self.outcomes)].name if self.outcomes_missing() else ""
            self.trouble.append(
                f"{where or 'the submission'} was running when the {self.limits.submission:g} s "
                "for the submission were over"
            )
        finally:
            self.hang_up()

    def outcomes_missing(self) -> bool:
        return len(self.outcomes) < len(self.steps)

    def start(self) -> Session:
        return self.launch(self.deadline, self.desk.seeds)

    def hang_up(self) -> None:
        if self.session is not None:
            self.used["call"] = max(self.used["call"], self.session.longest)
            self.used["output"] = self.session.printed_too_much or self.used.get("output", False)
            self.session.close("is over")
            self.session = None

    def step(self, number: int) -> Outcome:
        """The outcome of one step, in a fresh process where the last one is gone."""
        if time.monotonic() >= self.deadline:
            raise OutOfTime
        if self.session is None and not self.restart(number):
            return Outcome("lost", "was not run to its end")
        step = self.steps[number]
        outcome = self.test(step) if step.kind == "test" else self.cell(step)
        if self.session.ended:
            self.fatal.add(number)
            self.trouble.append(self.tell(step))
            self.hang_up()
        return outcome

    def tell(self, step: Step) -> str:
        """A sentence on how the process ended that can be forwarded to the student."""
        why = self.session.ended
        if self.session.stalled:
            limit = self.limits.cell if step.kind != "test" else self.limits.call
            why = f"did not end within {limit:g} s and could not be interrupted"
        return f"{step.name} {why}"

    def restart(self, before: int) -> bool:
        """A fresh process in which the cells before have run, but for those that end it."""
        if self.restarts == RESTARTS:
            return False
        self.restarts += 1
        self.session = self.start()
        for number in range(before):
            step = self.steps[number]
            if step.kind != "test" and number not in self.fatal:
                self.cell(step)
                if self.session.ended:
                    self.fatal.add(number)
                    self.hang_up()
                    return self.restart(before)
        return True

    def again(self, told: Callable[[int, Outcome], None]) -> None:
        """Cells that missed a name which a later cell defines get it now, as in a notebook.

        The tests that gave less than full marks are run again after them.
        """
        missed = [n for n, o in self.outcomes.items() if o.error == "NameError" and self.own(n)]
        if not missed or self.session is None:
            return
        helped = False
        for number in missed:
            outcome = self.step(number)
            helped |= outcome.kind == "none"
            self.outcomes[number] = outcome
        for number, step in enumerate(self.steps):
            if helped and step.kind == "test" and self.session is not None:
                second = self.step(number)
                if earns_more(second, self.outcomes[number]):
                    self.outcomes[number] = second
                    told(number, second)

    def own(self, number: int) -> bool:
        return self.steps[number].kind != "test"

    # --- steps ----------------------------------------------------------------------------------

    def cell(self, step: Step) -> Outcome:
        """What comes of a cell in the submission's process."""
        try:
            with redirect_stdout(io.StringIO()):
                self.session.run_cell(step.name, step.source)
        except (TimeUp, Ended) as problem:
            return self.failure(problem, self.limits.cell)
        except Exception as error:
            return self.failure(error, self.limits.cell)
        return Outcome("none")

    def test(self, step: Step) -> Outcome:
        """What comes of a test, run here with proxies for the submission's names."""
        with observe(self.seed) as verdicts:
            outcome = self.outcome(step)
        outcome.verdicts = [describe(verdict, step.grade_id) for verdict in verdicts]
        return outcome

    def outcome(self, step: Step) -> Outcome:
        printed = io.StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(io.StringIO()):
                left = max(self.deadline - time.monotonic(), 0.01)
                value = within(left, lambda: self.evaluate(step))
        except OutOfTime:
            raise
        except BaseException as error:  # a test cell may end as it likes, the others run
            if isinstance(error, TimeUp) and time.monotonic() >= self.deadline:
                raise OutOfTime from None
            return self.failure(error, self.limits.call)
        if value is None:
            return Outcome("none")
        if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
            with suppress(OverflowError):
                return Outcome("number", value=float(value))
        return Outcome("other", f"a value of type {type(value).__name__}")

    def evaluate(self, step: Step) -> Any:
        """The value of a test's last line where that is an expression, else None."""
        for source in self.desk.needed(step.grade_id, self.laid_out):
            self.bind(source)
            body, _ = compiled(source)
            exec(body, self.namespace)
        self.bind(step.source, step.grade_id)
        body, last = compiled(step.source)
        exec(body, self.namespace)
        return None if last is None else eval(last, self.namespace)

    def bind(self, source: str, grade_id: str = "") -> None:
        """Binds the names that a piece of the instructor's code takes from the submission."""
        own = self.namespace.keys() - self.borrowed
        wanted = [n for n in loads(source) if self.desk.is_students(n, grade_id, own)]
        for name in wanted:
            self.namespace.pop(name, None)
        if wanted:
            found = self.session.names(wanted)
            self.borrowed |= found.keys()
            self.namespace.update(found)

    def failure(self, error: BaseException, limit: float) -> Outcome:
        if isinstance(error, TimeUp):
            if not self.session.ended and self.session.midway:
                self.session.close("could not be interrupted")
            return Outcome("timeout", f"did not end within {limit:g} s")
        if isinstance(error, Ended | WireError):
            return Outcome("lost", f"was not run to its end: the submission {error}")
        return Outcome("error", text_of(error)[:MESSAGE], error=type(error).__name__)


def earns_more(a: Outcome, b: Outcome) -> bool:
    rank = {"none": 2, "number": 1}
    return (rank.get(a.kind, 0), a.value) > (rank.get(b.kind, 0), b.value)


# --- the instructor's notebook ------------------------------------------------------------------


class Desk:
    """What of the instructor's notebook stands around the tests.

    A test may use what other cells of the instructor's define: imports, data, helpers. Those are
    run here, in the instructor's version, when a test first needs them. What solution cells define
    comes from the submission, and so does what nobody else defines.
    """

    def __init__(self, assignment: Assignment):
        self.sources: list[str] = []
        self.kinds: list[str] = []
        self.place: dict[str, int] = {}
        for cell in assignment.cells:
            if not cell.code:
                continue
            source = without_magics(cell.source)[0]
            if cell.solution:  # libraries are the checker's own, wherever they are imported
                self.add("given", imports_in(source))
            if cell.grade_id:
                self.place[cell.grade_id] = len(self.sources)
            graded = cell.grade and not cell.solution
            self.add("solution" if cell.solution else "test" if graded else "given", source)
        self.bound = [
            binds(source) - (binds(imports_in(source)) if kind == "solution" else set())
            for source, kind in zip(self.sources, self.kinds, strict=True)
        ]
        tests = [s for s, kind in zip(self.sources, self.kinds, strict=True) if kind == "test"]
        self.seeds = any("seed" in source for source in tests)

    def add(self, kind: str, source: str) -> None:
        self.kinds.append(kind)
        self.sources.append(source)

    def binder(self, name: str, before: int) -> int | None:
        """The last cell before a place that binds a name."""
        return next((i for i in range(before - 1, -1, -1) if name in self.bound[i]), None)

    def is_students(self, name: str, grade_id: str, own: Set[str]) -> bool:
        """Whether a test takes this name from the submission; ``own`` are those it has itself."""
        binder = self.binder(name, self.place.get(grade_id, len(self.sources)))
        if binder is not None:
            return self.kinds[binder] == "solution"
        return not hasattr(builtins, name) and name not in own

    def needed(self, grade_id: str, done: set[int]) -> list[str]:
        """The given cells that a test needs and that have not run yet, in order."""
        wanted: set[int] = set()
        todo = [(self.place[grade_id], name) for name in loads(self.sources[self.place[grade_id]])]
        while todo:
            before, name = todo.pop()
            found = self.binder(name, before)
            if found is not None and self.kinds[found] == "given" and found not in wanted | done:
                wanted.add(found)
                todo += [(found, other) for other in loads(self.sources[found])]
        done |= wanted
        return [self.sources[i] for i in sorted(wanted)]


@lru_cache(maxsize=4)
def desk_for(assignment: Assignment) -> Desk:
    return Desk(assignment)


@lru_cache(maxsize=256)
def parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


@lru_cache(maxsize=256)
def binds(source: str) -> frozenset[str]:
    """The names that a cell binds at its top level."""
    found: set[str] = set()
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    todo: list[ast.AST] = list(parsed(source).body)
    while todo:
        node = todo.pop()
        if isinstance(node, inner):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.alias):
            found.add(node.asname or node.name.split(".")[0])
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        todo += ast.iter_child_nodes(node)
    return frozenset(found)


@lru_cache(maxsize=256)
def imports_in(source: str) -> str:
    """The import statements at a cell's top level, alone."""
    nodes = [n for n in parsed(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in nodes)


@lru_cache(maxsize=256)
def loads(source: str) -> tuple[str, ...]:
    """The names that a cell reads, anywhere in it."""
    nodes = ast.walk(parsed(source))
    names = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return tuple(dict.fromkeys(names))


@lru_cache(maxsize=256)
def compiled(source: str) -> tuple[types.CodeType, types.CodeType | None]:
    """A cell's statements, and its last line where that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    body = compile(tree, "<test>", "exec", dont_inherit=True)
    if last is None:
        return body, None
    return body, compile(ast.Expression(last.value), "<test>", "eval", dont_inherit=True)


def trusted_namespace() -> dict[str, Any]:
    """The names that the instructor's code starts with."""
    return {
        "__name__": "__main__",
        "__builtins__": builtins,
        "display": lambda *values, **options: None,
    }


def seed_all(seed: int) -> None:
    """Seeds the generators that a test may draw from."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def is_points(value: Any, cell: Cell) -> bool:
    return 0 <= value <= cell.points  # which NaN and infinity are not


def describe(verdict: Any, grade_id: str) -> dict[str, Any]:
    """What a report keeps of a verdict."""
    diagnosis = verdict.diagnosis
    failed = [c for c in verdict.criteria if not c.passed]
    names = ("name", "passed", "earned", "possible", "message")
    return {
        "cell": grade_id,
        "target": verdict.target,
        "passed": bool(verdict.passed),
        "earned": verdict.earned,
        "possible": verdict.possible,
        "criteria": [
            {name: shortened(getattr(c, name)) for name in names} for c in verdict.criteria
        ],
        "misconception": diagnosis.name if diagnosis else "",
        "explanation": diagnosis.explanation if diagnosis else "",
        "failed": [c.name for c in failed],
        "reason": shortened(last_line(failed[0].message) if failed else "", 500),
        "seed": verdict.seed,
        "text": shortened(str(verdict), 10_000),
    }


def last_line(text: str) -> str:
    return text.splitlines()[-1] if text else ""


def shortened(value: Any, limit: int = MESSAGE) -> Any:
    """A text that a submission may have made long, cut; anything else as it is."""
    return value[:limit] + "…" if isinstance(value, str) and len(value) > limit else value


def text_of(error: BaseException) -> str:
    """An exception's class and message."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
