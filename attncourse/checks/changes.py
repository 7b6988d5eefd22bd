"""Changes of a piece of code, one at a time: what may be wrong in one place of it.

A change puts another node in the place of one, or leaves something out, or adds something small.
Its words say what kind of change it is, and not what it puts there.
"""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

NUMBERS = "a wrong number in several places"
NUMBER, NAME = "a wrong number in one place", "a wrong name in one place"
OPERATOR, FUNCTION = "a wrong operator in one place", "a wrong function in one place"
ORDER, LINES = "the wrong way round in one place", "two lines in the wrong order"
MUCH, LITTLE = "something too much in one place", "something missing in one place"
DEFAULT, IN_PLACE = "a wrong default", "an array is changed in place"

OPERATORS: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Div),
    ast.Mult: (ast.Div, ast.MatMult, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv, ast.Sub),
    ast.FloorDiv: (ast.Div, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
    ast.MatMult: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE),
    ast.LtE: (ast.Lt, ast.GtE, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt, ast.LtE),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt),
    ast.Eq: (ast.NotEq, ast.GtE, ast.LtE),
    ast.NotEq: (ast.Eq, ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ALIKE = (
    {"sum", "mean", "prod", "max", "min", "amax", "amin", "norm", "std", "var"},
    {"argmax", "argmin", "argsort"},
    {"tril", "triu"},
    {"log", "log2", "log10", "log1p"},
    {"exp", "exp2", "expm1"},
    {"floor", "ceil", "round"},
    {"softmax", "log_softmax", "sigmoid"},
    {"sin", "cos", "tanh"},
    {"zeros", "ones", "zeros_like", "ones_like"},
    {"cumsum", "cumprod"},
    {"any", "all"},
    {"stack", "cat", "concatenate", "hstack", "vstack"},
    {"relu", "gelu", "silu", "tanh"},
    {"repeat", "tile", "repeat_interleave"},
    {"maximum", "minimum", "fmax"},
    {"rand", "randn"},
    {"upper", "lower"},
)
MAKERS = {"zeros", "ones", "empty", "full", "array", "asarray", "arange", "tensor", "eye"}
MAKERS |= {f"{name}_like" for name in ("zeros", "ones", "empty", "full")}
REDUCTIONS = ALIKE[0] | {"any", "all", "logsumexp", "median", "argmax"}


@dataclass(frozen=True)
class Change:
    """At ``node`` stands something of a ``kind``; ``apply`` changes it and gives the way back.

    ``words`` follow "every result is right", with a place for the piece of the code.
    """

    kind: str
    words: str
    node: ast.AST
    apply: Callable[[], Callable[[], None]]

    @contextmanager
    def applied(self) -> Iterator[None]:
        undo = self.apply()
        try:
            yield
        finally:
            undo()


class Names(NamedTuple):
    """What a definition calls its own: plain names, and what is assigned to ``self``."""

    plain: list[str]
    of_self: list[str]


def changes(definition: ast.FunctionDef | ast.ClassDef) -> Iterator[Change]:
    """All changes of a definition, those first that are likely to be needed."""
    tree, names = list(nodes(definition)), Names(names_in(definition), attributes_in(definition))
    for look in (left_out, exchanged, shortened, added, given_by_name):
        for parent, field, node in tree:
            for kind, words, new in look(parent, node, names):
                apply = put(parent, field, node, new)
                yield Change(kind, words, node, apply)
    yield from lines_exchanged(definition)
    yield from numbers_everywhere(tree)


def nodes(definition: ast.AST) -> Iterator[tuple[ast.AST, tuple[str, int | None], ast.AST]]:
    """Every node below, with what it stands in and where there."""
    for field, value in ast.iter_fields(definition):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for place, node in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(node, ast.AST):
                yield definition, (field, place), node
                if not is_number(node):
                    yield from nodes(node)


def put(parent: ast.AST, field: tuple[str, int | None], old: ast.AST, new: ast.AST) -> Callable:
    """The change that puts a new node in the place of the old one."""
    name, place = field

    def write(node: ast.AST) -> None:
        if place is None:
            setattr(parent, name, node)
        else:
            getattr(parent, name)[place] = node

    def apply() -> Callable[[], None]:
        there = ast.copy_location(copy(new), old)  # a node of the tree keeps its own place
        write(ast.fix_missing_locations(there))
        return lambda: write(old)

    return apply


Made = Iterator[tuple[str, str, ast.AST]]
WITH = "With {} in place of {{}}"


# --- something else in its place -----------------------------------------------------------------


def exchanged(parent: ast.AST, node: ast.AST, names: Names) -> Made:
    if is_number(node):
        yield from other_numbers(parent, node)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        kind = DEFAULT if isinstance(parent, ast.arguments) else NUMBER
        yield kind, WITH.format("another truth value"), ast.Constant(not node.value)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        called = isinstance(parent, ast.Call) and parent.func is node
        for name in () if called else names.plain:
            if name != node.id and node.id in names.plain:
                yield NAME, WITH.format("another name"), ast.Name(name, ast.Load())
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield from other_attributes(node, names)
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp):
        for other in OPERATORS.get(type(node.op), ()):
            yield OPERATOR, "With another operator in {}", like(node, op=other())
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Mult):
            turned = like(node, left=node.right, right=node.left)
            yield ORDER, "With the two sides of {} exchanged", turned
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in OPERATORS.get(type(node.ops[0]), ()):
            yield OPERATOR, "With another comparison in {}", like(node, ops=[other()])
    elif isinstance(node, ast.Call):
        yield from other_calls(node)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        yield IN_PLACE, "With a new array in place of {}", ast.Assign([node.target], value)


def other_numbers(parent: ast.AST, node: ast.AST) -> Made:
    kind = DEFAULT if isinstance(parent, ast.arguments) else NUMBER
    for other in others_than(number_of(node)):
        yield kind, WITH.format("another number"), ast.Constant(other)


def others_than(value: Any) -> list[Any]:
    """Numbers that may be meant in place of one."""
    if type(value) is int:
        others: list[Any] = [-1, -2, 0, 1, 2, -3, value - 1, value + 1, -value, 2 * value, 0.5, 3]
    else:
        others = [-value, 2 * value, value / 2, value - 1, value + 1, 1.0, 0.0, 10 * value]
        others += [value / 10, *([1 / value] if value else [])]
    return [other for other in dict.fromkeys(others) if other != value]


def other_attributes(node: ast.Attribute, names: Names) -> Made:
    own = isinstance(node.value, ast.Name) and node.value.id == "self"
    for name in names.of_self if own else ():
        if name != node.attr:
            yield NAME, WITH.format("another name"), like(node, attr=name)
    for group in ALIKE:
        for name in sorted(group - {node.attr}) if node.attr in group else ():
            words = f"With another function in place of `{node.attr}` in {{}}"
            yield FUNCTION, words, like(node, attr=name)
    if node.attr == "T":
        yield FUNCTION, "With other axes exchanged in {}", like(node, attr="mT")


def other_calls(node: ast.Call) -> Made:
    for i in range(len(node.args) - 1):
        args = [*node.args]
        args[i], args[i + 1] = args[i + 1], args[i]
        yield ORDER, "With two arguments of {} exchanged", like(node, args=args)


# --- something less ------------------------------------------------------------------------------


def left_out(parent: ast.AST, node: ast.AST, names: Names) -> Made:
    side = "Without one side of {}"
    if isinstance(node, ast.BinOp):
        yield MUCH, side, node.left
        yield MUCH, side, node.right
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield MUCH, side, value
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield MUCH, f"Without `.{node.attr}` in {{}}", node.value
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield MUCH, f"Without `.{node.func.attr}(…)` in {{}}", node.func.value
        if node.args:
            yield MUCH, "With the first argument alone in place of {}", node.args[0]
    elif isinstance(node, ast.IfExp):
        yield MUCH, "With one case alone in {}", node.body
        yield MUCH, "With one case alone in {}", node.orelse
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Raise | ast.If):
        yield MUCH, "Without {}", ast.Pass()
        if isinstance(node, ast.If):
            yield MUCH, "Without the condition of {}", like(node, test=ast.Constant(True))


def shortened(parent: ast.AST, node: ast.AST, names: Names) -> Made:
    if isinstance(node, ast.UnaryOp) and not is_number(node):
        yield MUCH, "Without the sign in front of {}", node.operand
    elif isinstance(node, ast.Call):
        for keyword in node.keywords:
            rest = [k for k in node.keywords if k is not keyword]
            yield MUCH, f"Without `{keyword.arg}` in {{}}", like(node, keywords=rest)
        if len(node.args) > 1:
            yield MUCH, "Without the last argument in {}", like(node, args=node.args[:-1])
    elif isinstance(node, ast.Slice) and (node.lower or node.upper or node.step):
        yield MUCH, "Without the bounds {}", ast.Slice()


# --- something more ------------------------------------------------------------------------------


def added(parent: ast.AST, node: ast.AST, names: Names) -> Made:
    if isinstance(node, ast.Call) and called(node) in REDUCTIONS:
        for word in ("keepdim", "keepdims"):
            more = [*node.keywords, ast.keyword(word, ast.Constant(True))]
            yield LITTLE, "With the axis kept in {}", like(node, keywords=more)
        last = [*node.keywords, ast.keyword("axis", ast.Constant(-1))]
        yield LITTLE, "With an axis named in {}", like(node, keywords=last)
    if isinstance(node, ast.Call) and called(node) in MAKERS:
        of_floats = [*node.keywords, ast.keyword("dtype", ast.Name("float", ast.Load()))]
        yield LITTLE, "With a dtype named in {}", like(node, keywords=of_floats)
    if not isinstance(node, ast.expr) or not is_used(parent, node):
        return
    one = ast.Constant(1)
    yield LITTLE, "With the last two axes of {} exchanged", ast.Attribute(node, "mT", ast.Load())
    yield LITTLE, "With True and False exchanged in {}", ast.UnaryOp(ast.Invert(), node)
    yield LITTLE, "With one more than {}", ast.BinOp(node, ast.Add(), one)
    yield LITTLE, "With one less than {}", ast.BinOp(node, ast.Sub(), one)
    yield LITTLE, "With another sign of {}", ast.UnaryOp(ast.USub(), node)
    yield LITTLE, "With the root of {}", ast.BinOp(node, ast.Pow(), ast.Constant(0.5))
    if not isinstance(parent, ast.Call):  # no sizes of arrays
        yield LITTLE, "With the square of {}", ast.BinOp(node, ast.Pow(), ast.Constant(2))
    yield LITTLE, "With 1 less {}", ast.BinOp(one, ast.Sub(), node)
    if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.BinOp):
        first = ast.Tuple([ast.Constant(...), ast.Constant(0)], ast.Load())
        yield LITTLE, "With an axis less in {}", ast.Subscript(node, first, ast.Load())
        for index in (
            [ast.Constant(...), ast.Constant(None)],
            [ast.Constant(...), ast.Constant(None), ast.Slice()],
        ):
            where = ast.Tuple(index, ast.Load())
            yield LITTLE, "With an axis more in {}", ast.Subscript(node, where, ast.Load())


def given_by_name(parent: ast.AST, node: ast.AST, names: Names) -> Made:
    if is_number(node) and not isinstance(parent, ast.arguments):
        for name in names.plain:
            yield NUMBER, WITH.format("a name"), ast.Name(name, ast.Load())


def is_used(parent: ast.AST, node: ast.AST) -> bool:
    """Whether an expression is one that something is done to, and no constant or condition."""
    if isinstance(node, ast.Constant | ast.Compare | ast.Lambda | ast.Slice | ast.Starred):
        return False
    if isinstance(node, ast.Tuple | ast.List | ast.Dict | ast.ListComp | ast.GeneratorExp):
        return False
    if isinstance(parent, ast.Call):
        return parent.func is not node
    if isinstance(parent, ast.Assign):
        return parent.value is node
    return isinstance(parent, ast.BinOp | ast.Return | ast.Compare | ast.Slice | ast.UnaryOp)


def lines_exchanged(definition: ast.AST) -> Iterator[Change]:
    """Two simple statements, one after the other, in the other order."""
    simple = ast.Assign | ast.AugAssign | ast.Expr
    for block in [n.body for n in ast.walk(definition) if isinstance(getattr(n, "body", 0), list)]:
        for i, (one, two) in enumerate(pairwise(block)):
            if isinstance(one, simple) and isinstance(two, simple):
                words = "With {} behind the line that follows it"
                yield Change(LINES, words, one, exchange(block, i))


def numbers_everywhere(tree: list) -> Iterator[Change]:
    """A number that stands in several places, changed in all of them."""
    places: dict[Any, list] = {}
    for parent, field, node in tree:
        if is_number(node) and not isinstance(parent, ast.arguments):
            places.setdefault((type(number_of(node)), number_of(node)), []).append(
                (parent, field, node)
            )
    for (_, value), found in places.items():
        for other in others_than(value) if len(found) > 1 else ():
            puts = [put(*place, ast.Constant(other)) for place in found]
            words = "With another number wherever {} stands"
            yield Change(NUMBERS, words, found[0][2], all_of(puts))


def all_of(puts: list[Callable]) -> Callable:
    def apply() -> Callable[[], None]:
        undo = [one() for one in puts]
        return lambda: [one() for one in undo]

    return apply


def exchange(block: list, i: int) -> Callable:
    def apply() -> Callable[[], None]:
        block[i], block[i + 1] = block[i + 1], block[i]
        return lambda: block.__setitem__(slice(i, i + 2), [block[i + 1], block[i]])

    return apply


# --- what stands in the code ---------------------------------------------------------------------


def is_number(node: ast.AST) -> bool:
    """Whether a node is a number, perhaps with a minus sign."""
    inner = node.operand if isinstance(node, ast.UnaryOp) and minus(node) else node
    return isinstance(inner, ast.Constant) and type(inner.value) in (int, float)


def minus(node: ast.UnaryOp) -> bool:
    return isinstance(node.op, ast.USub)


def number_of(node: ast.AST) -> Any:
    return -node.operand.value if isinstance(node, ast.UnaryOp) else node.value


def names_in(definition: ast.AST) -> list[str]:
    """The parameters and the names that are assigned to."""
    found = [n.arg for n in ast.walk(definition) if isinstance(n, ast.arg)]
    for n in ast.walk(definition):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            found.append(n.id)
    return [name for name in dict.fromkeys(found) if name != "self"]


def attributes_in(definition: ast.AST) -> list[str]:
    """What is assigned to ``self``."""
    found = [
        n.attr
        for n in ast.walk(definition)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    ]
    return list(dict.fromkeys(found))


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def like(node: ast.AST, **changed: Any) -> Any:
    """The same node but for what is changed."""
    fields = {name: getattr(node, name) for name in node._fields}
    return type(node)(**{**fields, **changed})
