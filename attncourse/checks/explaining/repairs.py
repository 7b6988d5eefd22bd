"""The place of a mistake that nobody foresaw: the one change in the code that mends everything.

The answer's source is varied, one change at a time (another number, name, operator, order), and
each variant runs on the cases. Where one is right in every case, and in fresh ones, the change says
where the mistake is and of what kind. It is not told in full: what belongs there is the student's
to find.
"""

import ast
import inspect
import linecache
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from attncourse.checks.exercise import Exercise, Misconception
from attncourse.checks.explaining.changes import CURES, Change, changes
from attncourse.checks.explaining.effort import calls_in
from attncourse.checks.trying.outcome import is_students, is_unwritten, quiet, run
from attncourse.checks.trying.trials import FRESH, Trial, numbers_in, problem_with, trials_of
from attncourse.checks.trying.watch import Forbidden, forbidding

try:
    import resource
except ImportError:  # Windows
    resource = None

CALLS = 1_200_000  # for all variants, and as much again for one that seems right
MADE = 1500  # calls that making a variant counts as
LAST = 6.0  # seconds of processor time after which no variant is tried, whatever was counted
LIMIT = 0.5  # for one call of a variant: a change may make a loop that never ends
MEMORY = 1 << 28  # bytes
LONGEST = 70  # characters of a line that are shown
OUTSIDE = {"open", "exec", "eval", "compile", "input", "os", "sys", "shutil", "subprocess", "Path"}


@dataclass(frozen=True)
class Source:
    """The definition of an answer: its tree, the text it stands in, and what it can see."""

    definition: ast.FunctionDef | ast.ClassDef
    lines: list[str]
    names: dict[str, Any]

    def made(self) -> Callable:
        """The answer as its tree is now."""
        module = ast.Module([self.definition], type_ignores=[])
        names = dict(self.names)
        with quiet():
            exec(compile(module, "<a variant>", "exec"), names)
        return names[self.definition.name]

    def line(self, node: ast.AST) -> str:
        return self.lines[node.lineno - 1].strip()

    def text(self, node: ast.AST) -> str:
        """A piece of the code as it was written."""
        return ast.get_source_segment("".join(self.lines), node) or ast.unparse(node)


def repaired(
    exercise: Exercise, implementation: Callable, trials: tuple[Trial, ...], seed: int
) -> Misconception | None:
    """The mistake that one change in the code of ``implementation`` mends; None if none does."""
    if hasattr(type(implementation), "attncourse_outcomes"):
        return None  # it lives in another process
    told = any(t.outcome.error is Forbidden for t in trials)  # that is the mistake
    unwritten = all(is_unwritten(t.outcome) for t in trials if t.stands_out)
    source = None if told or unwritten else source_of(implementation)
    if source is None:
        return None
    # Most variants fall at the first case: one that is wrong, and quickly tried.
    order = sorted(trials, key=lambda t: (not t.stands_out, numbers_in(t)))
    limited = replace(exercise, limit=min(LIMIT, exercise.limit))
    ends = time.thread_time() + LAST
    each = calls_in(lambda: run(limited, implementation, order[0].case, watched=False))
    hung = spent = 0

    def mends() -> bool:
        """Whether the definition as it is now is right in these cases, and in fresh ones."""
        try:
            variant = source.made()
        except Exception:
            return False
        nonlocal hung, spent
        spent += MADE
        refused()  # what a variant before called
        for trial in order:
            outcome = run(limited, variant, trial.case, watched=False)
            hung += outcome.kind == "hung"
            spent += each
            if outcome.mutated or problem_with(trial.case, trial.expected, outcome, brief=True):
                return False
            if is_over(2):
                return False
        for more in range(1, 1 + FRESH):
            for trial in trials_of(limited, variant, seed + more):
                spent += each
                if trial.stands_out or is_over(2):
                    return False
        return not refused()

    def is_over(times: int = 1) -> bool:
        return spent > times * CALLS or time.thread_time() > ends

    def first_that_mends() -> Change | None:
        for change in changes(source.definition):
            if is_over() or hung > 1:
                return None
            with change.applied():
                if mends():
                    return change
        return None

    try:
        with bounded_memory() as bounded, forbidding(exercise.forbids) as refused:
            # Wrong for another reason than what stands in the definition, if that alone is right.
            change = None if not bounded or mends() else first_that_mends()
    except MemoryError:  # also while an error is put into words
        return None
    return in_words(source, change) if change else None


@contextmanager
def bounded_memory() -> Iterator[bool]:
    """No more than ``MEMORY`` beside what is in use; whether that can be said here.

    A change may make an array of n by n numbers where one of n was.
    """
    try:
        with open("/proc/self/statm") as told:
            used = int(told.read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        most = used + MEMORY if before[1] == resource.RLIM_INFINITY else before[1]
        resource.setrlimit(resource.RLIMIT_AS, (min(used + MEMORY, most), before[1]))
    except (AttributeError, OSError, ValueError):  # not on Linux
        yield False
        return
    try:
        yield True
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def in_words(source: Source, change: Change) -> Misconception:
    """The mistake in words, without what mends it."""
    line = source.line(change.node)
    line = line if len(line) <= LONGEST else f"{line[:LONGEST]} …"
    piece = source.text(change.node)
    if isinstance(change.node, ast.stmt) or len(piece.splitlines()) > 1:
        piece = line
    there = "" if 2 * len(piece) > len(line) else f", in the line `{line}`,"
    words = change.words.format(f"`{piece}`")
    cure = CURES.get(change.kind, "")
    return Misconception(change.kind, f"{words}{there} every result is right. {cure}".strip())


# --- the source of an answer ---------------------------------------------------------------------


def source_of(implementation: Callable) -> Source | None:
    """Where an answer is defined; None where that cannot be read, or is not a student's."""
    function = inspect.unwrap(implementation)
    if inspect.isclass(function):
        function = next((f for f in vars(function).values() if inspect.isfunction(f)), None)
    if not inspect.isfunction(function) or not is_students(function.__code__.co_filename):
        return None
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    kind = ast.ClassDef if inspect.isclass(implementation) else ast.FunctionDef
    definition = definition_at(lines, function.__code__.co_firstlineno, kind)
    if definition is None or reaches_outside(definition):
        return None
    if kind is ast.FunctionDef and definition.name != function.__code__.co_name:  # a lambda
        return None
    try:
        closed = inspect.getclosurevars(function).nonlocals
    except (TypeError, ValueError):
        return None
    return Source(definition, lines, {**function.__globals__, **closed})


def definition_at(lines: list[str], number: int, kind: type) -> Any:
    """The function or the class that a line belongs to, the innermost one."""
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    there = [n for n in ast.walk(tree) if isinstance(n, kind)]
    around = [n for n in there if begins_at(n) <= number <= (n.end_lineno or 0)]
    definition = max(around, key=begins_at, default=None)
    if definition is not None:
        definition.decorator_list = []
    return definition


def begins_at(node: Any) -> int:
    """The line where a definition begins, with its decorators."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def reaches_outside(definition: ast.AST) -> bool:
    """Whether it does more than compute: then it is not varied."""
    named = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    imports = any(isinstance(n, ast.Import | ast.ImportFrom) for n in ast.walk(definition))
    return imports or bool(named & OUTSIDE)
