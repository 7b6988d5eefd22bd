"""Small changes of an answer's code, each of which may mend a mistake in one place.

A change replaces a node of the syntax tree, leaves something out, or adds something small. Its
words say what kind of change it is, and not what the right code is.
"""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

NUMBERS_CHANGED = "a wrong number in several places"
NUMBER, NAME = "a wrong number in one place", "a wrong name in one place"
TRUTH = "a wrong truth value in one place"
OPERATOR, FUNCTION = "a wrong operator in one place", "a wrong function in one place"
ORDER, LINES = "the wrong way round in one place", "two lines in the wrong order"
TOO_MUCH, MISSING_PART = "something too much in one place", "something missing in one place"
DEFAULT, IN_PLACE = "a wrong default", "an array is changed in place"
AXIS = "a wrong axis in one place"
AXES, BRACKETS = "axes counted from the front", "brackets in the wrong place, or missing"
BOUND, GUARD = "a floor or a ceiling that shows", "a guard that shows in the result"
HANDED_ON, SUMMAND = "an argument is not handed on", "a summand is missing"
ENTRIES = "entries multiplied one by one"
DTYPE = "another dtype than what came in"
FILLED = "a mask as an index"
RESHAPED = "reshaped where axes should be exchanged"
OVERWRITTEN = "a name is overwritten while its old value is needed"
CURES = {  # a further sentence for the student, for kinds of which it can be said what to write
    AXES: "With a batch the same axis has another number: count from the end, −1, −2.",
    BRACKETS: "Powers bind first, then products and quotients, then sums; what is alike goes from "
    "left to right.",
    BOUND: "Numbers beyond it are right ones, too, and become others.",
    GUARD: "A number added to every divisor, or under every root or logarithm, changes all "
    "results: treat apart what it is for, or make it 1e-12 at most.",
    ENTRIES: "`*` multiplies what stands at the same place. A sum of products over an axis is the "
    "matrix product, `@`.",
    IN_PLACE: "`+=` and the like write into the array that is there, which keeps its dtype and may "
    "be the caller's: `x = x + …` makes a new one.",
    DTYPE: "What is written into an array is cut to its dtype. Make it like what came in: "
    "`dtype=x.dtype`, or of floats, `dtype=float`, where whole numbers may come.",
    FILLED: "`x[mask] = …` writes into x, which may be the caller's, and the mask does not "
    "broadcast. `masked_fill`, or `where`, makes a new array and broadcasts it.",
    RESHAPED: "`reshape` and `view` hand the numbers out anew in the order of memory; `.mT` or "
    "`transpose` lets rows become columns.",
    OVERWRITTEN: "Give the new value a name of its own.",
}
MAX_GUARD = 1e-2  # of a number that is added only against division by zero

OPERATORS: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Div),
    ast.Mult: (ast.Div, ast.Add),
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
SIMILAR_FUNCTIONS = (
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
    {"upper", "lower", "capitalize", "title", "swapcase"},
)
ARRAY_MAKERS = {"zeros", "ones", "empty", "full", "array", "asarray", "arange", "tensor", "eye"}
ARRAY_MAKERS |= {f"{name}_like" for name in ("zeros", "ones", "empty", "full")}
MAX_SUMMANDS = 4  # names of a definition, arguments first, tried as a missing summand
REDUCTIONS = SIMILAR_FUNCTIONS[0] | {"any", "all", "logsumexp", "median", "argmax"}


@dataclass(frozen=True)
class Change:
    """A change at ``node`` that would mend a mistake of this ``kind``.

    ``apply`` makes the change and returns a function that undoes it. ``words`` begin the sentence
    that ends in "every result is right"; {} in them is for the piece of code.
    """

    kind: str
    words: str
    node: Any  # an expression or a statement, which has a line
    apply: Callable[[], Callable[[], None]]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the change inside a ``with`` block, and take it back at its end."""
        undo = self.apply()
        try:
            yield
        finally:
            undo()


class NodePlace(NamedTuple):
    """A node and where it stands: in a field of ``parent``, with an index if that is a list."""

    parent: ast.AST
    field: tuple[str, int | None]
    node: Any


class Names(NamedTuple):
    """The names that a definition binds: plain names, and attributes of ``self``."""

    plain: list[str]
    of_self: list[str]


def changes(definition: ast.FunctionDef | ast.ClassDef) -> Iterator[Change]:
    """Yield all changes of a definition, the likeliest to mend it first."""
    tree = list(nodes(definition))
    names = Names(names_in(definition), attributes_in(definition))
    yield from changes_by_node(tree, names, usual_repairs)
    yield from guard_removals(tree)
    yield from axes_from_the_end(tree)
    # Before omissions: a step along the wrong axis may be one that could also be left out.
    yield from changes_by_node(tree, names, last_axis_exchanged)
    yield from overwritten_values(definition)
    yield from arguments_handed_on(definition)
    if isinstance(definition, ast.ClassDef):
        yield from changes_by_node(
            tree, Names(arguments_of("forward", definition), []), residual_sums
        )
    for look in (omissions, replacements, shortenings, additions, names_for_numbers):
        yield from changes_by_node(tree, names, look)
    yield from lines_exchanged(definition)
    yield from numbers_everywhere(tree)


def changes_by_node(tree: list[NodePlace], names: Names, look: Callable) -> Iterator[Change]:
    """Yield the changes that replace one node by what ``look`` yields for it, for every node."""
    for parent, field, node in tree:
        for kind, words, new in look(parent, node, names):
            yield Change(kind, words, node, put(parent, field, node, new))


def nodes(definition: ast.AST) -> Iterator[NodePlace]:
    """Yield every node below a definition with its place, but for annotations and decorators."""
    for field, value in ast.iter_fields(definition):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for place, node in children:
            if isinstance(node, ast.AST):
                yield NodePlace(definition, (field, place), node)
                if not is_number(node):  # −1 is one node for all changes
                    yield from nodes(node)


def put(parent: ast.AST, field: tuple[str, int | None], old: ast.AST, new: ast.AST) -> Callable:
    """Return the ``apply`` of a change that replaces an old node by a new one."""
    name, index = field

    def put_here(node: ast.AST) -> None:
        """Put a node into the field of the parent, or into its list at the index."""
        if index is None:
            setattr(parent, name, node)
        else:
            getattr(parent, name)[index] = node

    def apply() -> Callable[[], None]:
        """Replace the node, and return the function that puts the old one back."""
        placed = ast.copy_location(copy(new), old)  # a node of the tree keeps its own place
        put_here(ast.fix_missing_locations(placed))
        return lambda: put_here(old)

    return apply


NewNodes = Iterator[tuple[str, str, ast.AST]]  # a change's kind, its words and the new node
IN_PLACE_OF = "With {} in place of {{}}"


# --- what has a name of its own -------------------------------------------------------------------


def usual_repairs(parent: ast.AST, node: Any, names: Names) -> NewNodes:
    """Yield what mends usual mistakes: in brackets, products, bounds, guards, dtypes, masks."""
    if isinstance(node, ast.BinOp):
        for new in regrouped_calculations(node):
            if ast.dump(new) != ast.dump(node):
                yield BRACKETS, "With other brackets in {}", new
        if isinstance(node.op, ast.Mult):
            transposed = ast.Attribute(node.right, "mT", ast.Load())
            for right in (node.right, transposed):
                new = like(node, op=ast.MatMult(), right=right)
                yield ENTRIES, "With a matrix product in place of {}", new
        for guarded, guard in ((node.left, node.right), (node.right, node.left)):
            if adds_guard(node, guard):
                yield GUARD, "Without the small number in {}", guarded
    if isinstance(node, ast.Call):
        name = method_name(node)
        if name in ARRAY_MAKERS:
            other_keywords = [k for k in node.keywords if k.arg != "dtype"]
            floats = ast.keyword("dtype", ast.Name("float", ast.Load()))
            yield DTYPE, "With another dtype in {}", like(node, keywords=[*other_keywords, floats])
        if name in BOUNDS and isinstance(node.func, ast.Attribute):
            inner = node.args[0] if is_module(node.func.value) and node.args else node.func.value
            yield BOUND, f"Without `{name}` in {{}}", inner
            for i, argument in enumerate(node.args):
                if is_number(argument):
                    args = [*node.args[:i], far_bound(argument), *node.args[i + 1 :]]
                    yield BOUND, "With another number in {}", like(node, args=args)
            for k in node.keywords:
                if is_number(k.value):
                    words = [
                        like(k, value=far_bound(k.value)) if w is k else w for w in node.keywords
                    ]
                    yield BOUND, "With another number in {}", like(node, keywords=words)
        called_on = node.func.value if isinstance(node.func, ast.Attribute) else None
        summed = next(iter(node.args), None) if is_module(called_on) else called_on
        if name == "sum" and isinstance(summed, ast.BinOp) and isinstance(summed.op, ast.Mult):
            transposed = ast.Attribute(summed.right, "mT", ast.Load())
            for right in (transposed, summed.right):
                new = ast.BinOp(summed.left, ast.MatMult(), right)
                yield ENTRIES, "With a matrix product in place of {}", new
    if reduction := reduction_before_newaxis(node):
        for word in ("keepdim", "keepdims"):
            keywords = [*reduction.keywords, ast.keyword(word, ast.Constant(True))]
            kept_axis = like(reduction, keywords=keywords)
            yield MISSING_PART, "With the axis kept, in its place, in {}", kept_axis
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        if isinstance(target.value, ast.Name) and is_mask(target.slice):
            name = target.value.id
            method = ast.Attribute(ast.Name(name, ast.Load()), "masked_fill", ast.Load())
            filled = ast.Call(method, [target.slice, node.value], [])
            new = ast.Assign([ast.Name(name, ast.Store())], filled)
            yield FILLED, "With a new array in place of {}", new
    if isinstance(parent, ast.For | ast.While) and (target := single_target(node)):
        updated = ast.AugAssign(target, ast.Add(), node.value)
        yield OPERATOR, "With another operator than `=` in {}", updated
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store) and len(node.elts) == 2:
        yield ORDER, "With the two names of {} exchanged", like(node, elts=node.elts[::-1])


def single_target(node: Any) -> ast.Name | ast.Subscript | None:
    """Return the name or entry that a statement assigns to; None where there is not exactly one."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    (target,) = node.targets
    return target if isinstance(target, ast.Name | ast.Subscript) else None


def reduction_before_newaxis(node: ast.AST) -> ast.Call | None:
    """Return the reduction that gets a new last axis: that of ``x.sum(axis)[..., None]``.

    None for any other node.
    """
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return None
    call, index = node.value, [getattr(e, "value", 0) for e in node.slice.elts]
    if not isinstance(call, ast.Call) or method_name(call) not in REDUCTIONS:
        return None
    return call if index == [..., None] else None


def is_mask(index: ast.AST) -> bool:
    """True if an index is a condition, or the negation of one."""
    if isinstance(index, ast.UnaryOp):
        return isinstance(index.op, ast.Invert)
    return isinstance(index, ast.Compare)


def adds_guard(node: ast.AST, side: ast.AST | None) -> bool:
    """True if a node adds this side of it, a number that only guards against division by zero."""
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    return is_sum and is_number(side) and 0 < number_value(side) < MAX_GUARD


def guard_removals(tree: list[NodePlace]) -> Iterator[Change]:
    """Yield one change that leaves out all guards at once, if there are several.

    Only guards on the right of a sum, where people write them, are looked for.
    """
    guarded = [p for p in tree if adds_guard(p.node, getattr(p.node, "right", None))]
    if len(guarded) > 1:
        apply = apply_all([put(*place, place.node.left) for place in guarded])
        yield Change(GUARD, "Without the small numbers in {} and elsewhere", guarded[0].node, apply)


BOUNDS = {"clamp", "clamp_min", "clamp_max", "clip", "maximum", "minimum"}


def far_bound(number: ast.AST) -> ast.Constant:
    """Return a bound on the same side that no number reaches."""
    return ast.Constant(-1e30 if number_value(number) <= 0 else 1e30)


def is_module(node: ast.AST | None) -> bool:
    """True if a node is the name of a library whose functions take their array as an argument."""
    return isinstance(node, ast.Name) and node.id in ("np", "numpy", "torch", "F", "math")


def regrouped_calculations(node: ast.BinOp) -> Iterator[ast.expr]:
    """Yield a calculation with a pair of brackets more, or one less, in every possible place.

    The text of ``expression_text`` has a placeholder for each operand, so brackets are put into its
    list of words, and Python's parser builds the new tree.
    """
    leaves: list[ast.expr] = []
    text = expression_text(node, leaves)
    words = text.split()
    operands = range(0, len(words), 2)  # between them stand the operators
    for i, j in combinations(operands, 2):
        bracketed = [*words[:i], "(", *words[i : j + 1], ")", *words[j + 1 :]]
        yield parsed_expression(" ".join(bracketed), leaves)
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, ast.BinOp):  # it stands in brackets
            added = [*leaves]
            yield parsed_expression(text.replace(f"_{k}_", expression_text(leaf, added)), added)


def expression_text(node: ast.expr, leaves: list[ast.expr]) -> str:
    """Return a calculation as text: ``_0_ + _1_ * _2_``.

    A placeholder stands for an operand that is no calculation, or for one in brackets. Its number
    is the operand's place in ``leaves``, to which it is appended.
    """
    if not isinstance(node, ast.BinOp):
        leaves.append(node)
        return f"_{len(leaves) - 1}_"
    sides = []
    for side, weakest in ((node.left, precedence(node)), (node.right, precedence(node) + 1)):
        if isinstance(side, ast.BinOp) and precedence(side) < weakest:
            leaves.append(side)
            sides.append(f"_{len(leaves) - 1}_")
        else:
            sides.append(expression_text(side, leaves))
    return f"{sides[0]} {SIGNS[type(node.op)]} {sides[1]}"


SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
}
SIGNS |= {ast.Mod: "%", ast.MatMult: "@", ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|"}
SIGNS |= {ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
PRECEDENCE_LEVELS = ("|", "^", "&", "<< >>", "+ -", "* / // % @", "**")  # the weakest first


def precedence(node: ast.BinOp) -> int:
    """Return how strongly an operator binds: its place in ``PRECEDENCE_LEVELS``."""
    return next(
        i for i, signs in enumerate(PRECEDENCE_LEVELS) if SIGNS[type(node.op)] in signs.split()
    )


def parsed_expression(text: str, leaves: list[ast.expr]) -> ast.expr:
    """Return the tree of a text that ``expression_text`` wrote, with ``leaves`` put back in."""

    class PlaceholderFiller(ast.NodeTransformer):
        """Puts the leaf of its number in the place of each placeholder."""

        def visit_Name(self, node: ast.Name) -> ast.expr:
            """Return the leaf that a placeholder stands for."""
            return leaves[int(node.id.strip("_"))]

    return PlaceholderFiller().visit(ast.parse(text, mode="eval").body)


FUNCTIONS_OVER_AXES = {
    "softmax",
    "log_softmax",
    "logsumexp",
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "amax",
}
FUNCTIONS_OVER_AXES |= {
    "amin",
    "argmax",
    "argmin",
    "std",
    "var",
    "all",
    "any",
    "cumsum",
    "sort",
    "argsort",
}
FUNCTIONS_OVER_AXES |= {
    "unsqueeze",
    "squeeze",
    "expand_dims",
    "flatten",
    "transpose",
    "swapaxes",
    "movedim",
}
FUNCTIONS_OVER_AXES |= {"cat", "concat", "concatenate", "stack", "size"}
AXIS_WORDS = {"dim", "axis", "dim0", "dim1", "axis1", "axis2", "start_dim"}
AXIS_COUNTS = range(2, 6)  # numbers of axes that an array may have


def axes_from_the_end(tree: list[NodePlace]) -> Iterator[Change]:
    """Yield changes that count axes from the end where they are counted from the front.

    First in each call by itself, then in all calls together.
    """
    calls = [(node, axes) for _, _, node in tree if (axes := axes_of(node))]
    groups = [[call] for call in calls]
    if len(calls) > 1:
        groups.append(calls)
    for group in groups:
        words = "With all axes counted from the end, as in {}"
        if len(group) == 1:
            words = "With the axes counted from the end in {}"
        for n_axes in AXIS_COUNTS:
            applies = [p for _, axes in group for p in axis_changes(axes, n_axes)]
            if applies:
                yield Change(AXES, words, group[0][0], apply_all(applies))


def axes_of(node: ast.AST) -> list[NodePlace]:
    """Return the places of the axes, counted from the front, in a call or an index of a shape."""
    if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape":
        return [NodePlace(node, ("slice", None), node.slice)] if is_axis(node.slice) else []
    if not isinstance(node, ast.Call):
        return []
    places: list[NodePlace] = []
    if method_name(node) in FUNCTIONS_OVER_AXES:
        places += [NodePlace(node, ("args", i), a) for i, a in enumerate(node.args)]
    places += [NodePlace(k, ("value", None), k.value) for k in node.keywords if k.arg in AXIS_WORDS]
    several = [
        NodePlace(p.node, ("elts", i), e)
        for p in places
        for i, e in enumerate(tuple_elements(p.node))
    ]
    return [place for place in places + several if is_axis(place.node)]


def tuple_elements(node: ast.AST) -> list[ast.expr]:
    """Return the elements of a tuple, as of several axes in one argument; [] of another node."""
    return node.elts if isinstance(node, ast.Tuple) else []


def is_axis(node: ast.AST) -> bool:
    """True if a node is a whole number from 0 on, as an axis counted from the front is."""
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 0


def axis_changes(axes: list[NodePlace], n_axes: int) -> list[Callable]:
    """Return the ``apply`` for each axis, for an array of ``n_axes``; [] if one is too large."""
    if any(axis.node.value >= n_axes for axis in axes):
        return []
    return [put(*axis, ast.Constant(axis.node.value - n_axes)) for axis in axes]


def last_axis_exchanged(parent: ast.AST, node: ast.AST, names: Names) -> NewNodes:
    """Yield the last axis for the one before it, and the other way round, in a call over axes."""
    if is_last_axis(parent, node):
        yield AXIS, IN_PLACE_OF.format("another axis"), ast.Constant(-3 - number_value(node))


def is_last_axis(parent: ast.AST, node: ast.AST) -> bool:
    """True if a node is an axis of a call, −1 or −2."""
    if not is_number(node) or number_value(node) not in (-1, -2):
        return False
    if isinstance(parent, ast.keyword):
        return parent.arg in AXIS_WORDS
    return isinstance(parent, ast.Call) and method_name(parent) in FUNCTIONS_OVER_AXES


def overwritten_values(definition: ast.AST) -> Iterator[Change]:
    """Yield changes that read, in a later line, the value of a name from before an assignment."""
    for function in [n for n in ast.walk(definition) if isinstance(n, ast.FunctionDef)]:
        bound_names = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
        for block in blocks_in(function):
            for i, line in enumerate(block):
                name = assigned_name(line)
                if name and name in bound_names:
                    later = block[i + 1 :]
                    reads = [p for s in later for p in nodes(s) if reads_name(p.node, name)]
                    for read in reads[:MAX_READS]:
                        words = f"With the `{name}` from before {{}} in a later line"
                        yield Change(
                            OVERWRITTEN, words, line, read_earlier_value(block, line, name, read)
                        )
                bound_names |= {name} if name else set()


def residual_sums(parent: ast.AST, node: ast.AST, names: Names) -> NewNodes:
    """Yield a call's result with a name added to it, as in a residual connection.

    Only results that are returned or assigned, and not to an attribute.
    """
    if not isinstance(node, ast.Call) or not isinstance(parent, ast.Return | ast.Assign):
        return
    if not isinstance(getattr(parent, "targets", [None])[0], ast.Attribute):
        for name in names.plain[:MAX_SUMMANDS]:
            added = ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), node)
            yield SUMMAND, "With a name added to {}", added


def arguments_handed_on(definition: ast.AST) -> Iterator[Change]:
    """Yield changes that hand an argument on to a call, by a keyword that some call uses.

    Either a parameter that is read nowhere, to all calls of one layer and to each of them; or a
    keyword argument of one call, to another call of the same layer.
    """
    calls_anywhere = [n for n in ast.walk(definition) if isinstance(n, ast.Call)]
    words = {k.arg for call in calls_anywhere for k in call.keywords if k.arg is not None}
    for function in [n for n in ast.walk(definition) if isinstance(n, ast.FunctionDef)]:
        read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        parameters = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
        calls_by_layer: dict[str, list[NodePlace]] = {}
        for place in nodes(function):
            if isinstance(place.node, ast.Call) and method_name(place.node):
                calls_by_layer.setdefault(ast.dump(place.node.func), []).append(place)
        for name, word in product(sorted(parameters - read - {"self"}), sorted(words)):
            for calls in calls_by_layer.values():
                added = ast.keyword(word, ast.Name(name, ast.Load()))
                applies = [put(*c, call_with_keyword(c.node, added)) for c in calls]
                description = f"With `{name}` handed on in {{}}"
                if len(calls) > 1:
                    where = f"{description} and wherever that is called"
                    yield Change(HANDED_ON, where, calls[0].node, apply_all(applies))
                for apply, call in zip(applies, calls, strict=True):
                    yield Change(HANDED_ON, description, call.node, apply)
        for calls in calls_by_layer.values():
            for call, other_call in product(calls, calls):
                keywords = {k.arg for k in call.node.keywords}
                for added in [k for k in other_call.node.keywords if k.arg not in keywords]:
                    description = f"With `{added.arg}`, which another call has, in {{}}"
                    apply = put(*call, call_with_keyword(call.node, added))
                    yield Change(HANDED_ON, description, call.node, apply)


def call_with_keyword(call: ast.Call, keyword: ast.keyword) -> ast.Call:
    """Return a call with one more argument that is given by name."""
    return like(call, keywords=[*call.keywords, keyword])


MAX_READS = 6  # of a name in later lines, which are tried with its earlier value


def blocks_in(function: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements in a function: each body, and that of each ``else``."""
    for node in ast.walk(function):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def assigned_name(line: ast.stmt) -> str:
    """Return the one name that a line assigns to, or ""."""
    if not isinstance(line, ast.Assign) or len(line.targets) != 1:
        return ""
    return getattr(line.targets[0], "id", "")


def reads_name(node: ast.AST, name: str) -> bool:
    """True if a node reads the variable of this name."""
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def read_earlier_value(
    block: list[ast.stmt], line: ast.stmt, name: str, read: NodePlace
) -> Callable:
    """Return the ``apply`` that keeps a name's value before a line, and reads it in another."""
    kept_name = f"{name}_before"
    read_kept_value = put(*read, ast.Name(kept_name, ast.Load()))

    def apply() -> Callable[[], None]:
        """Insert the assignment that keeps the value, change the reading, return the undo."""
        assignment = ast.Assign([ast.Name(kept_name, ast.Store())], ast.Name(name, ast.Load()))
        assignment = ast.fix_missing_locations(ast.copy_location(assignment, line))
        block.insert(block.index(line), assignment)
        undo_reading = read_kept_value()

        def undo() -> None:
            """Take both back."""
            undo_reading()
            block.remove(assignment)

        return undo

    return apply


# --- something else in its place -----------------------------------------------------------------


def replacements(parent: ast.AST, node: ast.AST, names: Names) -> NewNodes:
    """Yield what could replace a node: another number, name, operator, function or order."""
    if is_number(node):
        yield from other_numbers(parent, node)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        kind = DEFAULT if isinstance(parent, ast.arguments) else TRUTH
        yield kind, IN_PLACE_OF.format("another truth value"), ast.Constant(not node.value)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        is_called = isinstance(parent, ast.Call) and parent.func is node
        if not is_called:
            for name in names.plain:
                if name != node.id and node.id in names.plain:
                    yield NAME, IN_PLACE_OF.format("another name"), ast.Name(name, ast.Load())
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield from other_attributes(node, names)
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp):
        for operator in OPERATORS.get(type(node.op), ()):
            yield OPERATOR, "With another operator in {}", like(node, op=operator())
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Mult):
            transposed = like(node, left=node.right, right=node.left)
            yield ORDER, "With the two sides of {} exchanged", transposed
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for operator in OPERATORS.get(type(node.ops[0]), ()):
            yield OPERATOR, "With another comparison in {}", like(node, ops=[operator()])
    elif isinstance(node, ast.Call):
        yield from other_calls(node)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        yield IN_PLACE, "With a new array in place of {}", ast.Assign([node.target], value)


def other_numbers(parent: ast.AST, node: ast.AST) -> NewNodes:
    """Yield other numbers to replace one; in a signature they are other defaults."""
    kind = DEFAULT if isinstance(parent, ast.arguments) else NUMBER
    exchanged = -3 - number_value(node) if is_last_axis(parent, node) else None
    for number in numbers_meant(number_value(node)):
        if number != exchanged:  # that is tried by ``last_axis_exchanged``
            yield kind, IN_PLACE_OF.format("another number"), ast.Constant(number)


def numbers_meant(value: Any) -> list[Any]:
    """Return the numbers that may be meant in place of one, the likeliest first."""
    if type(value) is int:
        others: list[Any] = [-1, -2, 0, 1, 2, -3, value - 1, value + 1, -value, 2 * value, 0.5, 3]
    else:
        others = [-value, 2 * value, value / 2, value - 1, value + 1, 1.0, 0.0, 10 * value]
        others += [value / 10, *([1 / value] if value else [])]
    return [number for number in dict.fromkeys(others) if number != value]


def other_attributes(node: ast.Attribute, names: Names) -> NewNodes:
    """Yield other attributes of ``self``, and functions that are confused with the one named."""
    is_of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
    if is_of_self:
        for name in names.of_self:
            if name != node.attr:
                yield NAME, IN_PLACE_OF.format("another name"), like(node, attr=name)
    for group in SIMILAR_FUNCTIONS:
        if node.attr in group:
            for name in sorted(group - {node.attr}):
                words = f"With another function in place of `{node.attr}` in {{}}"
                yield FUNCTION, words, like(node, attr=name)
    if node.attr == "T":
        yield FUNCTION, "With other axes exchanged in {}", like(node, attr="mT")


def other_calls(node: ast.Call) -> NewNodes:
    """Yield a transpose in place of a reshape, and a call with two arguments exchanged."""
    if (
        method_name(node) in ("reshape", "view")
        and len(node.args) == 2
        and isinstance(node.func, ast.Attribute)
    ):
        transposed = ast.Attribute(node.func.value, "mT", ast.Load())
        yield RESHAPED, "With the axes exchanged in place of {}", transposed
    for i in range(len(node.args) - 1):
        args = [*node.args]
        args[i], args[i + 1] = args[i + 1], args[i]
        yield ORDER, "With two arguments of {} exchanged", like(node, args=args)


# --- something less ------------------------------------------------------------------------------


def omissions(parent: ast.AST, node: ast.AST, names: Names) -> NewNodes:
    """Yield a node without one part: a side, a call, a condition, a whole statement."""
    side = "Without one side of {}"
    if isinstance(node, ast.BinOp):
        yield TOO_MUCH, side, node.left
        yield TOO_MUCH, side, node.right
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield TOO_MUCH, side, value
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield TOO_MUCH, f"Without `.{node.attr}` in {{}}", node.value
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield TOO_MUCH, f"Without `.{node.func.attr}(…)` in {{}}", node.func.value
        if node.args:
            yield TOO_MUCH, "With the first argument alone in place of {}", node.args[0]
    elif isinstance(node, ast.IfExp):
        yield TOO_MUCH, "With one case alone in {}", node.body
        yield TOO_MUCH, "With one case alone in {}", node.orelse
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Raise | ast.If):
        yield TOO_MUCH, "Without {}", ast.Pass()
        if isinstance(node, ast.If):
            yield TOO_MUCH, "Without the condition of {}", like(node, test=ast.Constant(True))


def shortenings(parent: ast.AST, node: ast.AST, names: Names) -> NewNodes:
    """Yield a node without its sign, a keyword, the last argument, or the bounds of a slice."""
    if isinstance(node, ast.UnaryOp) and not is_number(node):
        yield TOO_MUCH, "Without the sign in front of {}", node.operand
    elif isinstance(node, ast.Call):
        for keyword in node.keywords:
            other_keywords = [k for k in node.keywords if k is not keyword]
            yield TOO_MUCH, f"Without `{keyword.arg}` in {{}}", like(node, keywords=other_keywords)
        if len(node.args) > 1:
            yield TOO_MUCH, "Without the last argument in {}", like(node, args=node.args[:-1])
    elif isinstance(node, ast.Slice) and (node.lower or node.upper or node.step):
        yield TOO_MUCH, "Without the bounds {}", ast.Slice()


# --- something more ------------------------------------------------------------------------------


def additions(parent: ast.AST, node: ast.AST, names: Names) -> NewNodes:
    """Yield a node with what may be missing: an axis, a transposition, a sign, a root or square, 1.

    ``names`` are not asked: all changes are called alike.
    """
    if isinstance(node, ast.Call) and method_name(node) in REDUCTIONS:
        for word in ("keepdim", "keepdims"):
            added = [*node.keywords, ast.keyword(word, ast.Constant(True))]
            yield MISSING_PART, "With the axis kept in {}", like(node, keywords=added)
        keywords_with_axis = [*node.keywords, ast.keyword("axis", ast.Constant(-1))]
        yield MISSING_PART, "With an axis named in {}", like(node, keywords=keywords_with_axis)
    if not isinstance(node, ast.expr) or not is_value_used(parent, node):
        return
    constant_1 = ast.Constant(1)
    yield (
        MISSING_PART,
        "With the last two axes of {} exchanged",
        ast.Attribute(node, "mT", ast.Load()),
    )
    yield MISSING_PART, "With True and False exchanged in {}", ast.UnaryOp(ast.Invert(), node)
    yield MISSING_PART, "With one more than {}", ast.BinOp(node, ast.Add(), constant_1)
    yield MISSING_PART, "With one less than {}", ast.BinOp(node, ast.Sub(), constant_1)
    yield MISSING_PART, "With another sign of {}", ast.UnaryOp(ast.USub(), node)
    yield MISSING_PART, "With the root of {}", ast.BinOp(node, ast.Pow(), ast.Constant(0.5))
    if not isinstance(parent, ast.Call):  # a squared argument may be a size: a huge array
        yield MISSING_PART, "With the square of {}", ast.BinOp(node, ast.Pow(), ast.Constant(2))
    yield MISSING_PART, "With 1 less {}", ast.BinOp(constant_1, ast.Sub(), node)
    if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.BinOp):
        first = ast.Tuple([ast.Constant(...), ast.Constant(0)], ast.Load())
        yield MISSING_PART, "With an axis less in {}", ast.Subscript(node, first, ast.Load())
        newaxis: list[ast.expr] = [ast.Constant(...), ast.Constant(None)]
        for index in (newaxis, [*newaxis, ast.Slice()]):
            where = ast.Tuple(index, ast.Load())
            yield MISSING_PART, "With an axis more in {}", ast.Subscript(node, where, ast.Load())


def names_for_numbers(parent: ast.AST, node: ast.AST, names: Names) -> NewNodes:
    """Yield each of the definition's names to replace a number."""
    if is_number(node) and not isinstance(parent, ast.arguments):
        for name in names.plain:
            yield NUMBER, IN_PLACE_OF.format("a name"), ast.Name(name, ast.Load())


def is_value_used(parent: ast.AST, node: ast.AST) -> bool:
    """True if a node is an expression, no constant, list or condition, whose value is used."""
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
    """Yield each exchange of two neighbouring statements that contain no others."""
    simple = ast.Assign | ast.AugAssign | ast.Expr
    bodies = [getattr(node, "body", None) for node in ast.walk(definition)]
    for block in [body for body in bodies if isinstance(body, list)]:
        for i, (first, second) in enumerate(pairwise(block)):
            if isinstance(first, simple) and isinstance(second, simple):
                words = "With {} behind the line that follows it"
                yield Change(LINES, words, first, swap_with_next(block, i))


def numbers_everywhere(tree: list[NodePlace]) -> Iterator[Change]:
    """Yield changes of one number to another in all of the several places where it stands."""
    places_by_number: dict[Any, list[NodePlace]] = {}
    for place in tree:
        if is_number(place.node) and not isinstance(place.parent, ast.arguments):
            number = number_value(place.node)
            places_by_number.setdefault((type(number), number), []).append(place)
    for (_, value), places in places_by_number.items():
        if len(places) > 1:
            for new_number in numbers_meant(value):
                applies = [put(*place, ast.Constant(new_number)) for place in places]
                words = "With another number wherever {} stands"
                yield Change(NUMBERS_CHANGED, words, places[0].node, apply_all(applies))


def apply_all(applies: list[Callable]) -> Callable:
    """Return the ``apply`` of several changes that are made, and undone, together."""

    def apply() -> Callable[[], None]:
        """Make all changes, and return the function that undoes them."""
        undo_functions = [apply_one() for apply_one in applies]

        def undo() -> None:
            """Undo all changes."""
            for undo_one in undo_functions:
                undo_one()

        return undo

    return apply


def swap_with_next(block: list, i: int) -> Callable:
    """Return the ``apply`` that exchanges a statement of a block with the one after it."""

    def apply() -> Callable[[], None]:
        """Exchange the two statements, and return the function that exchanges them back."""
        block[i], block[i + 1] = block[i + 1], block[i]
        return lambda: block.__setitem__(slice(i, i + 2), [block[i + 1], block[i]])

    return apply


# --- what stands in the code ---------------------------------------------------------------------


def is_number(node: ast.AST | None) -> bool:
    """True if a node is a number, perhaps with a minus sign."""
    inner = node.operand if isinstance(node, ast.UnaryOp) and is_minus(node) else node
    return isinstance(inner, ast.Constant) and type(inner.value) in (int, float)


def is_minus(node: ast.UnaryOp) -> bool:
    """True if an operation is a minus sign in front of a value."""
    return isinstance(node.op, ast.USub)


def number_value(number: Any) -> Any:
    """Return the value of a node for which ``is_number`` is true, its minus sign included."""
    operand = getattr(number, "operand", None)
    return number.value if operand is None else -operand.value


def names_in(definition: ast.AST) -> list[str]:
    """Return the parameters and the names assigned to in a definition, without ``self``."""
    names = [n.arg for n in ast.walk(definition) if isinstance(n, ast.arg)]
    for n in ast.walk(definition):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            names.append(n.id)
    return [name for name in dict.fromkeys(names) if name != "self"]


def arguments_of(name: str, definition: ast.AST) -> list[str]:
    """Return the parameters of the methods with this name, without ``self``."""
    methods = [n for n in ast.walk(definition) if isinstance(n, ast.FunctionDef)]
    return [a.arg for m in methods if m.name == name for a in m.args.args if a.arg != "self"]


def attributes_in(definition: ast.AST) -> list[str]:
    """Return the names of the attributes that are assigned to ``self``."""
    names = [
        n.attr
        for n in ast.walk(definition)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    ]
    return list(dict.fromkeys(names))


def method_name(node: ast.Call) -> str:
    """Return the name after the dot of a call, ``"sum"`` of ``x.sum()``; "" without a dot."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def like(node: ast.AST, **changed: Any) -> Any:
    """Return a copy of a node with other values in some fields."""
    fields = {name: getattr(node, name) for name in node._fields}
    return type(node)(**{**fields, **changed})
