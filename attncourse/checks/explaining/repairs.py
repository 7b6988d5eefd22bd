"""The place of an unknown mistake: the one change in the answer's code that mends everything.

Variants of the answer's source are tried: with one change (another number, name, operator, order),
then with two in one line, then with two in different lines, of which the first alone makes some
cases right. If a variant is right in every case, and in fresh ones, the change says where the
mistake is and of what kind. What belongs there is not told: the student is to find it.
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
    AXIS,
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
from attncourse.checks.explaining.effort import calls_around, calls_of_case, measured_calls
from attncourse.checks.trying.compare import as_numbers
from attncourse.checks.trying.outcome import is_student_file, is_unwritten, quiet, run
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

# Budgets in calls (see ``effort``). One that seems right may spend as much again to be confirmed.
MAX_CALLS_OF_VARIANTS = 1_200_000  # for all variants with one change
MAX_CALLS_OF_PAIRS = 800_000  # for those with two changes, in one line and in several
MAX_STATEMENTS_FOR_PAIRS = 15  # in a definition; in a longer one no two changes of a line are tried
CALLS_PER_LIST = 15_000  # that making a list of changes counts as
CALLS_PER_VARIANT = 1500  # that compiling a variant counts as
MAX_SECONDS_OF_VARIANTS = 6.0  # of processor time, after which none is tried, whatever was counted
MAX_SECONDS_PER_CALL = 0.25  # for one call of a variant: a change may make a loop that never ends
MAX_EXTRA_BYTES = 1 << 28  # of memory, 256 MiB: a change may make a huge array
# Kinds of mistakes that people make twice in a line.
KINDS_TO_PAIR = (AXIS, NUMBER, TRUTH, OPERATOR, FUNCTION, NAME)
# Kinds that people make once in a line and once in another.
KINDS_ACROSS_LINES = (
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
    IN_PLACE,
    ORDER,
    SUMMAND,
)
TWO_IN_A_LINE = "two mistakes in one line"
TWO_IN_TWO_PLACES = "two mistakes, in two places"
MAX_FIRST_CHANGES = 2  # that make some cases right and are tried together with a second one
SOFTMAX_OF_ONE = "a softmax along an axis of length 1"
SOFTMAX_AXIS_HINT = (
    "A softmax shares a 1 among the numbers along its axis: that has to be the keys' axis."
)
MAX_LINE_CHARACTERS = 70  # that are shown
# An answer that reads one of these names may do more than compute: variants of it are not run.
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
    """An answer's source: its definition as a syntax tree, the lines of its file, its globals."""

    definition: ast.FunctionDef | ast.ClassDef
    lines: list[str]
    names: dict[str, Any]

    def compiled(self) -> Callable:
        """Return the function or class that the tree, as it is now, defines."""
        module = ast.Module([self.definition], type_ignores=[])
        names = dict(self.names)
        with quiet():
            exec(compile(module, "<a variant>", "exec"), names)
        return names[self.definition.name]

    def line(self, node: ast.expr | ast.stmt) -> str:
        """Return the line of the source in which a node begins."""
        return self.lines[node.lineno - 1].strip()

    def text(self, node: ast.AST) -> str:
        """Return a node's code as it was written; of a new node, as Python would write it."""
        return ast.get_source_segment("".join(self.lines), node) or ast.unparse(node)


class RepairSearch:
    """A search for changes of an answer's source after which every case is right.

    It has a budget of calls and a limit of time, and gives up after two variants that hang.
    ``helpful`` collects the changes that make some cases right, with how many.
    """

    def __init__(
        self,
        exercise: Exercise,
        source: AnswerSource,
        implementation: Callable,
        trials: tuple[Trial, ...],
        seed: int,
    ):
        """Put the cases in order, and measure how many calls of the budget one takes."""
        self.exercise = exercise
        self.limited_exercise = replace(exercise, limit=min(MAX_SECONDS_PER_CALL, exercise.limit))
        self.source, self.seed = source, seed
        # Most variants fail in the first case: one that is wrong now and takes few calls.
        weights = [calls_of_case(exercise, i) for i in range(len(trials))]
        self.order = sorted(
            zip(weights, trials, strict=True),
            key=lambda pair: (not pair[1].stands_out, pair[0], count_numbers(pair[1].case)),
        )
        self.n_wrong = sum(t.stands_out for t in trials)
        first_weight, first = self.order[0]
        work = measured_calls(
            lambda: run(self.limited_exercise, implementation, first.case, watched=False),
            calls_around(self.limited_exercise),
        )
        self.calls_per_weight = work / first_weight
        self.deadline = time.thread_time() + MAX_SECONDS_OF_VARIANTS
        self.spent, self.max_calls = 0.0, MAX_CALLS_OF_VARIANTS
        self.n_endless = 0
        self.n_right = 0  # cases that were right in the last variant, before its first wrong one
        self.helpful: list[tuple[int, Change]] = []
        # Returns the sentence on a forbidden call since its last call, or "" (see ``watch``).
        self.forbidden_calls: Callable[[], str] = str

    def is_over(self, more: int = 0) -> bool:
        """True if more than the budget and ``more`` calls are spent, or the time is over."""
        return self.spent > self.max_calls + more or time.thread_time() > self.deadline

    def is_given_up(self) -> bool:
        """True if no further variant is tried."""
        return self.is_over() or self.n_endless > 1

    def is_mended(self) -> bool:
        """True if the definition, as it is now, is right in all cases and in fresh ones.

        ``n_right`` says afterwards how many cases were right before the first wrong one.
        """
        self.n_right = 0
        try:
            variant = self.source.compiled()
        except Exception:
            return False
        self.spent += CALLS_PER_VARIANT
        self.forbidden_calls()  # drops those of the variant before
        for calls, trial in self.order:
            outcome = run(self.limited_exercise, variant, trial.case, watched=False)
            self.n_endless += outcome.kind == "hung"
            self.spent += self.calls_per_weight * calls
            if outcome.mutated or problem_with(trial.case, trial.expected, outcome, brief=True):
                return False
            if self.is_over(MAX_CALLS_OF_VARIANTS):
                return False
            self.n_right += 1
        for offset in range(1, 1 + N_FURTHER_DRAWS):
            for place, trial in enumerate(
                trials_of(self.limited_exercise, variant, self.seed + offset)
            ):
                self.spent += self.calls_per_weight * calls_of_case(self.exercise, place)
                if trial.stands_out or self.is_over(MAX_CALLS_OF_VARIANTS):
                    return False
        return not self.forbidden_calls()

    def single_change(self) -> tuple[Change, ...]:
        """Return the first change that mends everything, or (); collect those that help."""
        for change in changes(self.source.definition):
            if self.is_given_up():
                return ()
            with change.applied():
                if self.is_mended():
                    return (change,)
            if 0 < self.n_right < self.n_wrong and change.kind in KINDS_ACROSS_LINES:
                self.helpful.append((self.n_right, change))
        return ()

    def pair_in_line(self) -> tuple[Change, ...]:
        """Return the first two changes of one line that together mend everything, or ()."""
        self.spent, self.max_calls = 0, MAX_CALLS_OF_PAIRS
        definition = self.source.definition
        for statement in plain_lines(definition):
            for first in changes_to_pair(definition, statement):
                self.spent += CALLS_PER_LIST
                with first.applied():
                    for second in changes_to_pair(definition, statement):
                        if self.is_given_up():
                            return ()
                        if KINDS_TO_PAIR.index(second.kind) < KINDS_TO_PAIR.index(first.kind):
                            continue  # tried the other way round
                        with second.applied():
                            if self.is_mended():
                                return first, second
        return ()

    def pair_across_lines(self) -> tuple[Change, ...]:
        """Return the first two changes in different lines that mend everything, or ().

        One of them is a change that made most cases right by itself.
        """
        self.spent, self.max_calls = 0, MAX_CALLS_OF_PAIRS
        for _, first in sorted(self.helpful, key=lambda pair: -pair[0])[:MAX_FIRST_CHANGES]:
            with first.applied():
                for second in changes(self.source.definition):
                    if self.is_given_up():
                        return ()
                    if (
                        second.kind not in KINDS_ACROSS_LINES
                        or second.node.lineno == first.node.lineno
                    ):
                        continue
                    with second.applied():
                        if self.is_mended():
                            return first, second
        return ()

    def repair(self) -> tuple[Change, ...]:
        """Return the one or two changes that mend everything, or ()."""
        # If the definition compiled by itself is right, something outside of it is wrong.
        if self.is_mended():
            return ()
        return self.single_change() or self.pair_in_line() or self.pair_across_lines()


def find_repair(
    exercise: Exercise, implementation: Callable, trials: tuple[Trial, ...], seed: int
) -> Mistake | None:
    """Return the mistake that one or two changes of the answer's code mend, or None.

    None, too, for an answer whose code is not here or does more than compute, and where memory
    cannot be limited.
    """
    if hasattr(type(implementation), "attncourse_outcomes"):
        return None  # it lives in another process
    # A forbidden call is the mistake, and the verdict names it already.
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
            of_one = bool(repair) and is_softmax_of_one(
                source, repair[0], lambda f: call_on_all(search.limited_exercise, f, trials)
            )
    except MemoryError:  # also while an error is put into words
        return None
    return repair_in_words(source, repair, of_one) if repair else None


def plain_lines(definition: ast.FunctionDef | ast.ClassDef) -> list[ast.stmt]:
    """Return the statements that contain no others; [] for a definition with too many of them."""
    statements = [
        s for s in ast.walk(definition) if isinstance(s, ast.stmt) and not hasattr(s, "body")
    ]
    return statements if len(statements) <= MAX_STATEMENTS_FOR_PAIRS else []


def changes_to_pair(
    definition: ast.FunctionDef | ast.ClassDef, statement: ast.stmt
) -> list[Change]:
    """Return the changes of a statement of the kinds in ``KINDS_TO_PAIR``, in that order."""
    node_ids = {id(node) for node in ast.walk(statement)} - {id(statement)}
    pairable_changes = [
        c for c in changes(definition) if c.kind in KINDS_TO_PAIR and id(c.node) in node_ids
    ]
    return sorted(pairable_changes, key=lambda change: KINDS_TO_PAIR.index(change.kind))


def call_on_all(exercise: Exercise, function: Callable, trials: Iterable[Trial]) -> None:
    """Call a function on every case; its results are dropped, what it notes is wanted."""
    for trial in trials:
        run(exercise, function, trial.case, watched=False)


def is_softmax_of_one(
    source: AnswerSource, change: Change, use: Callable[[Callable], None]
) -> bool:
    """True if the softmax that a change touches returns only ones: along an axis of length 1.

    ``use`` calls a function on every case. It is called on the answer with each softmax's result
    handed through ``look``.
    """
    if not any(is_softmax(node) for node in ast.walk(change.node)):
        enclosing = [n for n in ast.walk(source.definition) if is_softmax(n)]
        if not any(change.node is inner for softmax in enclosing for inner in ast.walk(softmax)):
            return False
    only_ones: list[bool] = []

    def look(weights: Any) -> Any:
        """Return a softmax's result, and note whether it holds only ones."""
        array = as_numbers(weights)
        if array is None:
            only_ones.append(False)
        else:
            ones = (array == 1) | np.isnan(array)  # NaN where a mask hides the only entry
            only_ones.append(array.size > 1 and bool(ones.all()))
        return weights

    definition = SoftmaxRewriter().visit(copy.deepcopy(source.definition))
    names = {**source.names, SoftmaxRewriter.NAME: look}
    watching = replace(source, definition=ast.fix_missing_locations(definition), names=names)
    use(watching.compiled())
    return bool(only_ones) and all(only_ones)


class SoftmaxRewriter(ast.NodeTransformer):
    """Rewrites a definition so that each softmax's result goes through the function ``NAME``."""

    NAME = "_attncourse_look"

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return a call of a softmax as the argument of that function; other calls unchanged."""
        self.generic_visit(node)
        if not is_softmax(node):
            return node
        return ast.Call(ast.Name(self.NAME, ast.Load()), [node], [])


def is_softmax(node: ast.AST) -> bool:
    """True if a node is a call of a softmax by a name with a dot."""
    return isinstance(node, ast.Call) and method_name(node) == "softmax"


@contextmanager
def bounded_memory() -> Iterator[bool]:
    """Limit the process's memory inside the block to ``MAX_EXTRA_BYTES`` more than it uses now.

    Yields False, with no limit, where that is not possible, as on Windows. A change may make an
    array of n by n numbers from one of n.
    """
    if resource is None:
        yield False
        return
    try:
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        soft_limit, hard_limit = used + MAX_EXTRA_BYTES, before[1]
        if hard_limit != resource.RLIM_INFINITY:
            soft_limit = min(soft_limit, hard_limit)
        resource.setrlimit(resource.RLIMIT_AS, (soft_limit, hard_limit))
    except (AttributeError, OSError, ValueError):  # not on Linux
        yield False
        return
    try:
        yield True
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def repair_in_words(
    source: AnswerSource, repair: tuple[Change, ...], of_one: bool = False
) -> Mistake:
    """Return the mistake in words: where it is and of what kind, not what mends it.

    ``of_one`` says that the change is at a softmax along an axis of length 1.
    """
    if len({change.node.lineno for change in repair}) > 1:
        explanations = [repair_in_words(source, (change,)).explanation for change in repair]
        words = [t.split(" every result is right.")[0].removesuffix(",") for t in explanations]
        cures = dict.fromkeys(CURES.get(change.kind, "") for change in repair)
        both = f"{words[0]}, and {words[1][0].lower()}{words[1][1:]}, every result is right."
        return Mistake(TWO_IN_TWO_PLACES, " ".join([both, *filter(None, cures)]))
    line = shortened_code(source.line(repair[0].node))
    pieces = [source.text(change.node) for change in repair]
    if isinstance(repair[0].node, ast.stmt):  # a statement may be longer than its line
        pieces = [shortened_code(piece) for piece in pieces]
    elif any(len(piece.splitlines()) > 1 for piece in pieces):
        pieces = [line] * len(repair)
    # The line is not named where the pieces are most of it.
    where = "" if 2 * sum(map(len, pieces)) > len(line) else f", in the line `{line}`,"
    first, *more = (c.words.format(f"`{p}`") for c, p in zip(repair, pieces, strict=True))
    words = " and ".join([first, *(text[0].lower() + text[1:] for text in more)])
    cures = dict.fromkeys(CURES.get(change.kind, "") for change in repair)
    explanation = " ".join([f"{words}{where} every result is right.", *filter(None, cures)])
    if of_one:
        return Mistake(
            SOFTMAX_OF_ONE, f"There every weight is 1. {explanation} {SOFTMAX_AXIS_HINT}"
        )
    return Mistake(repair[0].kind if not more else TWO_IN_A_LINE, explanation)


def shortened_code(code: str) -> str:
    """Return code of one short line as it is; of longer code the beginning of its first line."""
    first, *more = code.splitlines()
    if not more and len(code) <= MAX_LINE_CHARACTERS:
        return code
    return f"{first[:MAX_LINE_CHARACTERS]} …"


# --- the source of an answer ---------------------------------------------------------------------


def answer_source(implementation: Callable) -> AnswerSource | None:
    """Return an answer's source; None if it cannot be read, is no student's, or is a lambda.

    None, too, for a definition that does more than compute.
    """
    function = inspect.unwrap(implementation)
    if inspect.isclass(function):
        function = next((f for f in vars(function).values() if inspect.isfunction(f)), None)
    if not inspect.isfunction(function) or not is_student_file(function.__code__.co_filename):
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
    """Return the innermost function, or class, that the line of this number belongs to, or None.

    Its decorators are removed, since the answer is called without them.
    """
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    definitions = [n for n in ast.walk(tree) if isinstance(n, kind)]
    enclosing = [n for n in definitions if definition_line(n) <= number <= (n.end_lineno or 0)]
    definition = max(enclosing, key=definition_line, default=None)
    if definition is not None:
        definition.decorator_list = []
    return definition


def definition_line(node: Any) -> int:
    """Return the number of the first line of a definition, decorators included."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def reaches_outside(definition: ast.AST) -> bool:
    """True if a definition imports or reads ``NAMES_OF_OUTSIDE``: it may do more than compute."""
    names = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    imports = any(isinstance(n, ast.Import | ast.ImportFrom) for n in ast.walk(definition))
    return imports or bool(names & NAMES_OF_OUTSIDE)
