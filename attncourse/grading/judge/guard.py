"""An instructor's test as it runs in the checker: ordinary Python that takes no vacuous answer.

A test's source says which of its values come from the submission: the submission's names, and what
was made of them. Two things follow from that.

A comparison with such a value looks at shapes and at emptiness first. ``np.allclose`` repeats what
is too short and is true of nothing at all: an answer of shape ``(0, 1, 1)`` would agree with
everything, and 0.25 with every matrix of quarters. The test's own values may be repeated; the
submission's may not, and something has to be compared. And what is compared is a value that is the
checker's by now, an array, a number, a text or lists of them: an object that stayed in the
submission's process would be asked for its own verdict.

A call whose result is thrown away, or only compared with None, asks for what it changes in place
(see ``attncourse.checks.trying.asking``).
"""

import ast
import operator
import types
from collections.abc import Callable, KeysView, Set
from functools import lru_cache, partial
from typing import Any, TypeVar

from attncourse.checks.trying.asking import in_place
from attncourse.grading.judge import comparing

COMPARED, OPERATED, ASKED = (f"__attncourse_{name}__" for name in ("compared", "operated", "asked"))
COMPARISONS = {
    *("allclose", "isclose", "equal", "array_equal", "array_equiv", "eq", "assert_close"),
    *("assert_allclose", "assert_almost_equal", "assert_array_almost_equal"),
    *("assert_array_equal", "assert_equal"),
}
OPERANDS = (("a", "b"), ("actual", "desired"), ("actual", "expected"), ("input", "other"))
OPERATORS: dict[type[ast.cmpop | ast.operator], str] = {
    **{ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"},
    **{ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv"},
}
ARITHMETIC = ("add", "sub", "mul", "truediv")
GUARDED_NODES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

TreeT = TypeVar("TreeT", ast.Module, ast.Expression)


@lru_cache(maxsize=256)
def compile_cell(
    source: str, students: tuple[str, ...] = (), file: str = "<given>"
) -> tuple[types.CodeType, types.CodeType | None]:
    """Return a cell's statements and the expression in its last line, compiled with guards.

    The expression is None where the last line is none. ``students`` are the names that the cell
    takes from the submission; ``file`` is what tracebacks call it.
    """
    tree = ast.parse(source)
    submission_names = names_from_submission(tree, students)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        return compile(guarded_tree(tree, submission_names), file, "exec", dont_inherit=True), None
    tree.body.pop()
    body = compile(guarded_tree(tree, submission_names), file, "exec", dont_inherit=True)
    value = guarded_tree(ast.Expression(last.value), submission_names)
    return body, compile(value, file, "eval", dont_inherit=True)


def guarded_tree(tree: TreeT, submission_names: Set[str]) -> TreeT:
    """Return a test's tree with guards around all that concerns the ``submission_names``."""
    return ast.fix_missing_locations(Guarded(submission_names).visit(tree))


def guard_functions(gave_empty: Callable[[], bool]) -> dict[str, Callable]:
    """Return the functions that guarded tests call, by the names that they have there.

    ``gave_empty`` returns True if the present test has handed over something empty, and so may get
    something empty.
    """

    def compare_guarded(comparison: Any, a: Any, b: Any, side: str) -> Callable:
        """Return the comparison of two values, to be called with its options; refuse vacuous ones.

        ``comparison`` is a function, or the name of a method of ``a``.
        """
        if not may_compare_objects(comparison, a, b):
            comparing.require_values(a, b)
        comparing.require_all_comparable(a, b, side, gave_empty())
        return (
            partial(comparison, a, b)
            if callable(comparison)
            else partial(getattr(a, comparison), b)
        )

    def operate_guarded(name: str, a: Any, b: Any, side: str, all_entries: bool) -> Any:
        """Return what an operator gives; refuse one that compares arrays of unlike shapes.

        ``name`` is that of ``operator``'s function. Lists are compared as a whole by Python itself.
        """
        if comparing.is_of_a_library(a) or comparing.is_of_a_library(b):
            comparing.require_values(a, b)
            first, second = comparing.compared_shapes(a, b)
            if name.removeprefix("i") not in ARITHMETIC:
                comparing.require_comparable(first, second, side, all_entries, gave_empty())
            elif (first and second) or (
                all_entries and comparing.is_their_side_empty(first, second, side)
            ):
                comparing.require_comparable(first, second, side, False, gave_empty())
        return getattr(operator, name)(a, b)

    def ask_in_place(function: Any) -> Any:
        """Return a function whose arguments are changed in place, if it is the submission's."""
        return in_place(function) if comparing.is_theirs(function) else function

    return {COMPARED: compare_guarded, OPERATED: operate_guarded, ASKED: ask_in_place}


def may_compare_objects(comparison: Any, a: Any, b: Any) -> bool:
    """True if a comparison may be given objects of the submission's, and not values alone.

    So it is with a function of the submission's own, and with one that the test defines, whose
    parts are guarded. With a method, or ``assert_equal``, both sides have to be such objects: a
    test may be about that.
    """
    if isinstance(comparison, str) or getattr(comparison, "__name__", "") == "assert_equal":
        # Two objects, of a class that the test is about.
        return bool(comparing.objects_in(a) and comparing.objects_in(b))
    return comparing.is_theirs(comparison) or COMPARED in getattr(comparison, "__globals__", ())


# --- what the source says -------------------------------------------------------------------------


def names_from_submission(tree: ast.AST, students: tuple[str, ...]) -> set[str]:
    """Return the names in a test whose values come from the submission's names, ``students``."""
    nodes = list(ast.walk(tree))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    pairs = [pair for node in nodes for pair in flows_into_names(node, stored)]
    foreign_names, before = set(students), -1
    while len(foreign_names) > before:
        before = len(foreign_names)
        for names, value in pairs:
            if names_read_in(value) & foreign_names:
                foreign_names |= names
    return foreign_names


def flows_into_names(node: ast.AST, test_names: set[str]) -> list[tuple[set[str], ast.AST]]:
    """Return pairs: names that a node gives a value to, and the tree that this value comes from.

    A call on a line of its own may change its arguments and the object whose method it is; of these
    the names count that the test itself assigns, ``test_names``.
    """
    if isinstance(node, ast.Assign):
        return [(names_changed(target), node.value) for target in node.targets]
    if isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value:
        return [(names_changed(node.target), node.value)]
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        return [(names_changed(node.target), node.iter)]
    if isinstance(node, ast.withitem) and node.optional_vars:
        return [(names_changed(node.optional_vars), node.context_expr)]
    if isinstance(node, ast.FunctionDef):
        return [({node.name}, ast.Module(node.body, []))]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        changed = names_changed(node.value.func).union(*map(names_changed, node.value.args))
        return [(changed & test_names, node.value)]
    return []


def names_changed(target: ast.AST) -> set[str]:
    """Return the names whose values an assignment to this target changes."""
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        target = target.value
    if isinstance(target, ast.Tuple | ast.List):
        return set().union(*map(names_changed, target.elts))
    return {target.id} if isinstance(target, ast.Name) else set()


def names_read_in(tree: ast.AST) -> KeysView[str]:
    """Return the names that are read anywhere in a tree, in the order of ``ast.walk``."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id: None for node in nodes if isinstance(node.ctx, ast.Load)}.keys()


class Guarded(ast.NodeTransformer):
    """Puts guards into a test's tree; ``submission_names`` hold the submission's values.

    Parameters of the test's own functions may hold the submission's values or the test's: these
    names are ``anybodys`` inside of them.
    """

    def __init__(self, submission_names: Set[str]):
        self.submission_names = submission_names
        self.anybodys: set[str] = set()
        self.all_entry_comparisons: set[int] = set()  # comparisons that are to hold for all entries

    def visit_function(self, node: Any) -> Any:
        """Visit a function or lambda of the test's own, with its parameters among ``anybodys``."""
        outside, a = self.anybodys, node.args
        parameters = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
        self.anybodys = outside | {argument.arg for argument in parameters}
        self.generic_visit(node)
        self.anybodys = outside
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_function

    def submission_side(self, first: ast.AST, second: ast.AST) -> str:
        """Return which of two operands is the submission's: "first", "second" or "both".

        "either" is returned where that is not known, "" where neither can be.
        """
        names = names_read_in(first), names_read_in(second)
        if any(names_of_side & self.anybodys for names_of_side in names):
            return "either"
        sides = [bool(names_of_side & self.submission_names) for names_of_side in names]
        if all(sides):
            return "both"
        return ("first" if sides[0] else "second") if any(sides) else ""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Have a call whose result is thrown away bring back what it changes in place."""
        node.value = self.guard_call(node.value)
        return node

    def guard_call(self, value: ast.expr) -> ast.expr:
        """Return an expression in which a call of the submission's changes the test's arguments.

        A worker gets copies of its arguments; only such a call changes the test's own as well.
        """
        call = isinstance(value, ast.Call) and bool(
            names_read_in(value.func) & (self.submission_names | self.anybodys)
        )
        value = self.visit(value)
        if call and isinstance(value, ast.Call):
            value.func = call_by_name(ASKED, value.func)
        return value

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Put a guard into a comparison by one operator.

        A comparison of a call with None is left as it is: such a call is made for what it changes
        in place.
        """
        if len(node.ops) > 1:
            return self.generic_visit(node)
        (op,), (right,) = node.ops, node.comparators
        nothing = isinstance(right, ast.Constant) and right.value is None
        if nothing and isinstance(op, ast.Is | ast.Eq):
            node.left = self.guard_call(node.left)
            return node
        side = self.submission_side(node.left, right)
        all_entries = id(node) in self.all_entry_comparisons
        self.generic_visit(node)
        if type(op) not in OPERATORS or not side:
            return node
        return operator_guard(
            OPERATORS[type(op)], node.left, node.comparators[0], side, all_entries
        )

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Put a guard into arithmetic with a value of the submission's."""
        side = self.submission_side(node.left, node.right)
        self.generic_visit(node)
        if type(node.op) not in OPERATORS or not side:
            return node
        all_entries = is_difference(node.op, node.left, node.right)
        return operator_guard(OPERATORS[type(node.op)], node.left, node.right, side, all_entries)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Rewrite ``out -= x`` as ``out = isub(out, x)``, which a guard can stand in."""
        if not isinstance(node.target, ast.Name) or type(node.op) not in OPERATORS:
            return self.generic_visit(node)
        before = ast.Name(node.target.id, ast.Load())
        side = self.submission_side(before, node.value)
        self.generic_visit(node)
        if not side:
            return node
        all_entries = is_difference(node.op, before, node.value)
        name = f"i{OPERATORS[type(node.op)]}"
        value = operator_guard(name, before, node.value, side, all_entries)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Put a guard into a call of a comparing function, such as ``np.allclose(a, b)``."""
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name == "all":  # of all(a == b), np.all(a == b) or (a == b).all()
            wholes = [*node.args[:1], getattr(node.func, "value", None)]
            compared = (part for part in wholes if isinstance(part, ast.Compare))
            self.all_entry_comparisons |= {
                id(part) for part in compared if isinstance(part.ops[0], ast.Eq)
            }
        if name not in COMPARISONS:
            return self.generic_visit(node)
        words = {word.arg: word for word in node.keywords}
        keyword_pair = next((pair for pair in OPERANDS if set(pair) <= words.keys()), ())
        if any(isinstance(value, ast.Starred) for value in node.args[:2]):
            return self.generic_visit(node)
        if len(node.args) >= 2:
            comparison, pair, rest = node.func, node.args[:2], node.args[2:]
        elif keyword_pair:
            comparison, pair, rest = (
                node.func,
                [words.pop(word).value for word in keyword_pair],
                node.args,
            )
        elif len(node.args) == 1 and isinstance(node.func, ast.Attribute):
            comparison, pair, rest = ast.Constant(name), [node.func.value, node.args[0]], []
        else:
            return self.generic_visit(node)
        side = self.submission_side(*pair)
        if not side:
            return self.generic_visit(node)
        pair = [self.visit(operand) for operand in pair]
        guarded_call = call_by_name(COMPARED, self.visit(comparison), *pair, ast.Constant(side))
        rest = [self.visit(value) for value in rest]
        return ast.Call(guarded_call, rest, [self.visit(word) for word in words.values()])


def is_difference(op: ast.operator, *operands: ast.AST) -> bool:
    """True if an expression is a difference of two whole values.

    It is zero where both are empty, so it has to be guarded as a comparison is. An operand with an
    index is left out: the part that a test takes may well be empty.
    """
    parts = any(isinstance(operand, ast.Subscript) for operand in operands)
    return isinstance(op, ast.Sub) and not parts


def operator_guard(
    name: str, left: ast.expr, right: ast.expr, side: str, all_entries: bool
) -> ast.Call:
    """Return the tree of a call of ``operate_guarded`` for an operator with these operands."""
    return call_by_name(
        OPERATED, ast.Constant(name), left, right, *map(ast.Constant, (side, all_entries))
    )


def call_by_name(name: str, *args: ast.expr) -> ast.Call:
    """Return the tree of a call of the function that has this name."""
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])
