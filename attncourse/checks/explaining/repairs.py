"""The place of a mistake that nobody foresaw: the one change in the code that mends everything.

The answer's source is varied, one change at a time (another number, name, operator, order), then
two in one line, then two in different lines of which the first alone makes some cases right. Each
variant runs on the cases. Where one is right in every case, and in fresh ones, the change says
where the mistake is and of what kind. It is not told in full: what belongs there is the student's
to find.
"""

import ast
import copy
import inspect
import linecache
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attncourse.checks.exercise import Exercise, Mistake
from attncourse.checks.explaining.changes import (
    AXES,
    BOUND,
    BRACKETS,
    CURES,
    DEFAULT,
    DTYPE,
    ENTRIES,
    FILLED,
    FUNCTION,
    GUARD,
    HANDED_ON,
    IN_PLACE,
    NAME,
    NUMBER,
    OPERATOR,
    ORDER,
    SUMMAND,
    TRUTH,
    Change,
    changes,
    method_name,
)
from attncourse.checks.explaining.effort import calls_around, calls_of_case, work_in
from attncourse.checks.trying.compare import as_numbers
from attncourse.checks.trying.outcome import is_students, is_unwritten, quiet, run
from attncourse.checks.trying.trials import (
    N_FURTHER_DRAWS,
    Trial,
    count_numbers,
    problem_with,
    trials_of,
)
from attncourse.checks.trying.watch import Forbidden, forbidding

try:
    import resource
except ImportError:  # Windows
    resource = None

MAX_CALLS_OF_VARIANTS = 1_200_000  # for all variants, and as much again for one that seems right
MAX_CALLS_OF_PAIRS = 800_000  # for two changes at a time
MAX_STATEMENTS_FOR_PAIRS = 15  # of a definition in which two changes are tried
CALLS_PER_LIST = 15_000  # calls that a list of changes counts as
CALLS_PER_VARIANT = 1500  # calls that making a variant counts as
# Seconds of processor time after which no variant is tried, whatever was counted.
MAX_SECONDS_OF_VARIANTS = 6.0
MAX_SECONDS_PER_CALL = 0.25  # for one call of a variant: a change may make a loop that never ends
MAX_EXTRA_BYTES = 1 << 28
KINDS_TO_PAIR = (NUMBER, TRUTH, OPERATOR, FUNCTION, NAME)  # which people make two of in a line
KINDS_LIKELIEST_FIRST = (
    *KINDS_TO_PAIR,
    AXES,
    BOUND,
    BRACKETS,
    DEFAULT,
    DTYPE,
    ENTRIES,
    FILLED,
    GUARD,
    HANDED_ON,
)
KINDS_LIKELIEST_FIRST += (
    IN_PLACE,
    ORDER,
    SUMMAND,
)  # which people make one of in a line, and one in another
TWO_IN_A_LINE = "two mistakes in one line"
TWO_IN_TWO_PLACES = "two mistakes, in two places"
MAX_FIRST_CHANGES = 2  # changes after which some cases are right, that a second one is tried beside
SOFTMAX_OF_ONE = "a softmax along an axis of length 1"
SOFTMAX_AXIS_HINT = (
    "A softmax shares a 1 among the numbers along its axis: that has to be the keys' axis."
)
MAX_LINE_CHARACTERS = 70  # that are shown
NAMES_OF_OUTSIDE = {
    "open",
    "exec",
    "eval",
    "compile",
    "input",
    "os",
    "sys",
    "shutil",
    "subprocess",
    "Path",
}


@dataclass(frozen=True)
class AnswerSource:
    """The definition of an answer: its tree, the text it stands in, and what it can see."""

    definition: ast.FunctionDef | ast.ClassDef
    lines: list[str]
    names: dict[str, Any]

    def made(self) -> Callable:
        """Return the answer as its tree is now."""
        module = ast.Module([self.definition], type_ignores=[])
        names = dict(self.names)
        with quiet():
            exec(compile(module, "<a variant>", "exec"), names)
        return names[self.definition.name]

    def line(self, node: ast.expr | ast.stmt) -> str:
        """Return the line of the source in which a node begins."""
        return self.lines[node.lineno - 1].strip()

    def text(self, node: ast.AST) -> str:
        """Return a piece of the code as it was written."""
        return ast.get_source_segment("".join(self.lines), node) or ast.unparse(node)


class RepairSearch:
    """A search for changes of an answer's source after which every case is right.

    It has a budget of calls, a limit on the clock, and stops after two endless variants.
    """

    def __init__(
        self,
        exercise: Exercise,
        source: AnswerSource,
        implementation: Callable,
        trials: tuple[Trial, ...],
        seed: int,
    ):
        """Order the cases, and measure what a call of the answer takes of the budget."""
        self.exercise = exercise
        self.limited = replace(exercise, limit=min(MAX_SECONDS_PER_CALL, exercise.limit))
        self.source, self.seed = source, seed
        # Most variants fall at the first case: one that is wrong, and quickly tried.
        weights = [calls_of_case(exercise, i) for i in range(len(trials))]
        self.order = sorted(
            zip(weights, trials, strict=True),
            key=lambda pair: (not pair[1].stands_out, pair[0], count_numbers(pair[1].case)),
        )
        self.n_wrong = sum(t.stands_out for t in trials)
        first_weight, first = self.order[0]
        work = work_in(
            lambda: run(self.limited, implementation, first.case, watched=False),
            calls_around(self.limited),
        )
        self.calls_per_weight = work / first_weight
        self.ends = time.thread_time() + MAX_SECONDS_OF_VARIANTS
        self.spent, self.allowed = 0.0, MAX_CALLS_OF_VARIANTS
        self.n_endless = 0
        self.n_right = 0  # of the first cases, how many were right in the last variant
        self.helpful: list[tuple[int, Change]] = []
        self.forbidden_calls: Callable[[], str] = str  # says what a variant called, and forgets it

    def is_over(self, more: int = 0) -> bool:
        """True if the budget, with ``more`` calls on top, or the time is used up."""
        return self.spent > self.allowed + more or time.thread_time() > self.ends

    def gives_up(self) -> bool:
        """True if no further variant is tried."""
        return self.is_over() or self.n_endless > 1

    def mends(self) -> bool:
        """True if the definition as it is now is right in these cases, and in fresh ones."""
        self.n_right = 0
        try:
            variant = self.source.made()
        except Exception:
            return False
        self.spent += CALLS_PER_VARIANT
        self.forbidden_calls()  # forgets those of the variant before
        for calls, trial in self.order:
            outcome = run(self.limited, variant, trial.case, watched=False)
            self.n_endless += outcome.kind == "hung"
            self.spent += self.calls_per_weight * calls
            if outcome.mutated or problem_with(trial.case, trial.expected, outcome, brief=True):
                return False
            if self.is_over(MAX_CALLS_OF_VARIANTS):
                return False
            self.n_right += 1
        for more in range(1, 1 + N_FURTHER_DRAWS):
            for place, trial in enumerate(trials_of(self.limited, variant, self.seed + more)):
                self.spent += self.calls_per_weight * calls_of_case(self.exercise, place)
                if trial.stands_out or self.is_over(MAX_CALLS_OF_VARIANTS):
                    return False
        return not self.forbidden_calls()

    def single_change(self) -> tuple[Change, ...]:
        """Return the first change that mends everything; collect those that mend some cases."""
        for change in changes(self.source.definition):
            if self.gives_up():
                return ()
            with change.applied():
                if self.mends():
                    return (change,)
            if 0 < self.n_right < self.n_wrong and change.kind in KINDS_LIKELIEST_FIRST:
                self.helpful.append((self.n_right, change))
        return ()

    def pair_in_line(self) -> tuple[Change, ...]:
        """Return the first two changes of one line that together mend everything."""
        self.spent, self.allowed = 0, MAX_CALLS_OF_PAIRS
        definition = self.source.definition
        for statement in plain_lines(definition):
            for first in changes_to_pair(definition, statement):
                self.spent += CALLS_PER_LIST
                with first.applied():
                    for second in changes_to_pair(definition, statement):
                        if self.gives_up():
                            return ()
                        if KINDS_TO_PAIR.index(second.kind) < KINDS_TO_PAIR.index(first.kind):
                            continue  # tried the other way round
                        with second.applied():
                            if self.mends():
                                return first, second
        return ()

    def pair_across_lines(self) -> tuple[Change, ...]:
        """Return the first two changes in different lines, of which one helped by itself."""
        self.spent, self.allowed = 0, MAX_CALLS_OF_PAIRS
        for _, first in sorted(self.helpful, key=lambda pair: -pair[0])[:MAX_FIRST_CHANGES]:
            with first.applied():
                for second in changes(self.source.definition):
                    if self.gives_up():
                        return ()
                    if (
                        second.kind not in KINDS_LIKELIEST_FIRST
                        or second.node.lineno == first.node.lineno
                    ):
                        continue
                    with second.applied():
                        if self.mends():
                            return first, second
        return ()

    def repair(self) -> tuple[Change, ...]:
        """Return the changes that mend everything: one, or two; none where none do."""
        # Wrong for another reason than what stands in the definition, if that alone is right.
        if self.mends():
            return ()
        return self.single_change() or self.pair_in_line() or self.pair_across_lines()


def repaired(
    exercise: Exercise, implementation: Callable, trials: tuple[Trial, ...], seed: int
) -> Mistake | None:
    """Return the mistake that one change in the answer's code mends, or two changes; or None."""
    if hasattr(type(implementation), "attncourse_outcomes"):
        return None  # it lives in another process
    # A forbidden call is the mistake, and it is named already.
    is_named = any(t.outcome.error is Forbidden for t in trials)
    unwritten = all(is_unwritten(t.outcome) for t in trials if t.stands_out)
    source = None if is_named or unwritten else answer_source(implementation)
    if source is None:
        return None
    search = RepairSearch(exercise, source, implementation, trials, seed)
    try:
        with bounded_memory() as bounded, forbidding(exercise.forbids) as forbidden_calls:
            if not bounded:
                return None
            search.forbidden_calls = forbidden_calls
            repair = search.repair()
            lone = bool(repair) and is_lone(
                source, repair[0], lambda f: run_all(search.limited, f, trials)
            )
    except MemoryError:  # also while an error is put into words
        return None
    return repair_in_words(source, repair, lone) if repair else None


def plain_lines(definition: ast.FunctionDef | ast.ClassDef) -> list[ast.stmt]:
    """Return the statements without others in them; none of a long definition."""
    statements = [
        s for s in ast.walk(definition) if isinstance(s, ast.stmt) and not hasattr(s, "body")
    ]
    return statements if len(statements) <= MAX_STATEMENTS_FOR_PAIRS else []


def changes_to_pair(
    definition: ast.FunctionDef | ast.ClassDef, statement: ast.stmt
) -> list[Change]:
    """Return the changes of a statement that people need two of, the likeliest first."""
    node_ids = {id(node) for node in ast.walk(statement)} - {id(statement)}
    pairable_changes = [
        c for c in changes(definition) if c.kind in KINDS_TO_PAIR and id(c.node) in node_ids
    ]
    return sorted(pairable_changes, key=lambda change: KINDS_TO_PAIR.index(change.kind))


def run_all(exercise: Exercise, function: Callable, trials: Iterable[Trial]) -> None:
    """Call a function on every case, for what its code notes on the way."""
    for trial in trials:
        run(exercise, function, trial.case, watched=False)


def is_lone(source: AnswerSource, change: Change, use: Callable[[Callable], None]) -> bool:
    """True if the softmax that a change touches returns only ones.

    Then the axis that it runs along is 1 long.
    """
    if not any(is_softmax(node) for node in ast.walk(change.node)):
        around = [n for n in ast.walk(source.definition) if is_softmax(n)]
        if not any(change.node is inner for softmax in around for inner in ast.walk(softmax)):
            return False
    seen: list[bool] = []

    def look(weights: Any) -> Any:
        array = as_numbers(weights)
        if array is None:
            seen.append(False)
        else:
            ones = (array == 1) | np.isnan(array)  # hidden, it is no number
            seen.append(array.size > 1 and bool(ones.all()))
        return weights

    definition = Looked().visit(copy.deepcopy(source.definition))
    named = {**source.names, Looked.NAME: look}
    watching = replace(source, definition=ast.fix_missing_locations(definition), names=named)
    use(watching.made())
    return bool(seen) and all(seen)


class Looked(ast.NodeTransformer):
    """Has every softmax of a definition handed on through a function of this name."""

    NAME = "_attncourse_look"

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return a softmax's call as the argument of the function that looks at it."""
        self.generic_visit(node)
        if not is_softmax(node):
            return node
        return ast.Call(ast.Name(self.NAME, ast.Load()), [node], [])


def is_softmax(node: ast.AST) -> bool:
    """True if a node is a call of a softmax by a name with a dot."""
    return isinstance(node, ast.Call) and method_name(node) == "softmax"


@contextmanager
def bounded_memory() -> Iterator[bool]:
    """Allow no more than ``MAX_EXTRA_BYTES`` beside what is in use; True if that can be done here.

    A change may make an array of n by n numbers where one of n was.
    """
    if resource is None:
        yield False
        return
    try:
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        most = used + MAX_EXTRA_BYTES if before[1] == resource.RLIM_INFINITY else before[1]
        resource.setrlimit(resource.RLIMIT_AS, (min(used + MAX_EXTRA_BYTES, most), before[1]))
    except (AttributeError, OSError, ValueError):  # not on Linux
        yield False
        return
    try:
        yield True
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def repair_in_words(
    source: AnswerSource, repair: tuple[Change, ...], lone: bool = False
) -> Mistake:
    """Return the mistake in words, without what mends it."""
    if len({change.node.lineno for change in repair}) > 1:
        explanations = [repair_in_words(source, (change,)).explanation for change in repair]
        words = [t.split(" every result is right.")[0].removesuffix(",") for t in explanations]
        cures = dict.fromkeys(CURES.get(change.kind, "") for change in repair)
        both = f"{words[0]}, and {words[1][0].lower()}{words[1][1:]}, every result is right."
        return Mistake(TWO_IN_TWO_PLACES, " ".join([both, *filter(None, cures)]))
    line = shortened_code(source.line(repair[0].node))
    pieces = [source.text(change.node) for change in repair]
    if isinstance(repair[0].node, ast.stmt):  # a line may hold several, and one several lines
        pieces = [shortened_code(piece) for piece in pieces]
    elif any(len(piece.splitlines()) > 1 for piece in pieces):
        pieces = [line] * len(repair)
    where = "" if 2 * sum(map(len, pieces)) > len(line) else f", in the line `{line}`,"
    first, *more = (c.words.format(f"`{p}`") for c, p in zip(repair, pieces, strict=True))
    words = " and ".join([first, *(text[0].lower() + text[1:] for text in more)])
    cures = dict.fromkeys(CURES.get(change.kind, "") for change in repair)
    explanation = " ".join([f"{words}{where} every result is right.", *filter(None, cures)])
    if lone:
        return Mistake(
            SOFTMAX_OF_ONE, f"There every weight is 1. {explanation} {SOFTMAX_AXIS_HINT}"
        )
    return Mistake(repair[0].kind if not more else TWO_IN_A_LINE, explanation)


def shortened_code(code: str) -> str:
    """Return a short code as it is; of a longer one the beginning of its first line."""
    first, *more = code.splitlines()
    return (
        code
        if not more and len(code) <= MAX_LINE_CHARACTERS
        else f"{first[:MAX_LINE_CHARACTERS]} …"
    )


# --- the source of an answer ---------------------------------------------------------------------


def answer_source(implementation: Callable) -> AnswerSource | None:
    """Return where an answer is defined; None where that cannot be read, or is not a student's."""
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
    return AnswerSource(definition, lines, {**function.__globals__, **closed})


def definition_at(lines: list[str], number: int, kind: type) -> Any:
    """Return the function or the class that a line belongs to, the innermost one."""
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    definitions = [n for n in ast.walk(tree) if isinstance(n, kind)]
    around = [n for n in definitions if definition_line(n) <= number <= (n.end_lineno or 0)]
    definition = max(around, key=definition_line, default=None)
    if definition is not None:
        definition.decorator_list = []
    return definition


def definition_line(node: Any) -> int:
    """Return the line where a definition begins, with its decorators."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def reaches_outside(definition: ast.AST) -> bool:
    """True if a definition does more than compute, so that variants of it are not run."""
    named = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    imports = any(isinstance(n, ast.Import | ast.ImportFrom) for n in ast.walk(definition))
    return imports or bool(named & NAMES_OF_OUTSIDE)
