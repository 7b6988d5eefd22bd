"""Where else a drill can be mended: what its line lacks, done to a value in another line.

A scale that is missing where scores are computed may as well stand where they are used. A reader
who says that line is right, too: the page accepts it.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from attncourse.checks import find_exercise
from attncourse.checks.trying.trials import Trial, try_out
from attncourse.practice.drills import Drill, MendElsewhere
from drill_making.line_changes import code_of
from drill_making.proving import as_checked, implementation_of, is_right, limited, mending_places
from drill_making.sources import tidy_code

# A value of the wrong line, and the same value with the part that the line lacks.
LackingPart = tuple[ast.expr, ast.expr]
VALUE_NODES = (
    ast.Name,
    ast.Call,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Attribute,
    ast.Subscript,
)
SMALL_NUMBER = re.compile(r"(\d)e-0(\d)\b")  # a number as no person writes it, 1e-05
STATEMENTS_WITH_HEAD = (ast.While, ast.If, ast.With)  # of these the first lines may be mended
STATEMENTS_LEFT_OUT = (ast.FunctionDef, ast.ClassDef, ast.For)  # a longer loop is no value, either


def with_other_lines(drill: Drill, seed: int) -> Drill:
    """Return a drill with the other lines that mend it, as its cases of three seeds show."""
    exercise = limited(find_exercise(drill.exercise))
    wrong = implementation_of(drill.function, drill.setup, "\n".join(drill.code))
    right = implementation_of(drill.function, drill.setup, "\n".join(drill.right))
    if wrong is None or right is None or next(changes_elsewhere(drill), None) is None:
        return replace(drill, elsewhere=())
    with as_checked():
        trials = try_out(exercise, wrong, seed)
    seeds = seed, seed + 100, seed + 200
    mends: dict[int, MendElsewhere] = {}
    for mend in mends_elsewhere(drill, trials, seed):
        code = "\n".join(mend.applied_to(drill.code))
        if mend.first in mends or not is_right(exercise, mended_implementation(drill, code), seeds):
            continue
        mends[mend.first] = replace(mend, mended=formatted_rows(drill.code, mend))
    return replace(drill, elsewhere=tuple(mends[first] for first in sorted(mends)))


def mended_implementation(drill: Drill, code: str) -> Callable | None:
    """Return what changed code of a drill defines; None where it cannot be run."""
    return implementation_of(drill.function, drill.setup, code)


def mends_elsewhere(drill: Drill, trials: tuple[Trial, ...], seed: int) -> Iterator[MendElsewhere]:
    """Yield other lines of a drill that make it right in every case of a seed; short ones first."""
    exercise = limited(find_exercise(drill.exercise))
    right = mended_implementation(drill, "\n".join(drill.right))
    assert right is not None, "right code can be run"
    tried = sorted(set(changes_elsewhere(drill)), key=length_and_text)
    variants = (
        mended_implementation(drill, "\n".join(mend.applied_to(drill.code))) for mend in tried
    )
    for place in mending_places(exercise, right, variants, trials, seed):
        yield tried[place]


def length_and_text(mend: MendElsewhere) -> tuple[int, tuple[str, ...]]:
    """Return what mends are sorted by."""
    return sum(map(len, mend.mended)), mend.mended


def changes_elsewhere(drill: Drill) -> Iterator[MendElsewhere]:
    """Yield the part that a drill's line lacks, put around each value of its other statements."""
    code = "\n".join(drill.code)
    tree = ast.parse(code)
    lacking = list(lacking_parts(tree, ast.parse("\n".join(drill.right))))
    for statement in [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]:
        rows = rows_of_head(statement)
        if isinstance(statement, STATEMENTS_LEFT_OUT) or drill.line in rows:
            continue
        for present, complete in lacking:
            for changed in statements_with_part(statement, present, complete):
                lines = tuple(indented_lines(statement, changed))
                yield MendElsewhere(rows[0], rows[-1], lines)


def lacking_parts(wrong: ast.AST, right: ast.AST) -> Iterator[LackingPart]:
    """Yield each value of the wrong line that the right line has with something done to it."""
    pair: tuple[ast.AST, ast.AST] | None = (wrong, right)
    while pair:
        present, complete = pair
        if isinstance(present, ast.expr) and isinstance(complete, ast.expr):
            inside = [ast.dump(n) for n in ast.walk(complete) if isinstance(n, ast.expr)]
            is_more = (
                ast.dump(present) != ast.dump(complete) and inside.count(ast.dump(present)) == 1
            )
            if is_more and not isinstance(complete, ast.BoolOp):  # a condition more is no value
                yield present, complete
        pair = only_difference(present, complete)


def only_difference(node: ast.AST, opposite_node: ast.AST) -> tuple[ast.AST, ast.AST] | None:
    """Return the parts of two nodes in which alone they differ; None where these are no nodes."""
    if type(node) is not type(opposite_node):
        return None
    differences = []
    for name, value in ast.iter_fields(node):
        values, others = as_list(value), as_list(getattr(opposite_node, name))
        if len(values) != len(others):
            return None
        for part, opposite in zip(values, others, strict=True):
            if isinstance(part, ast.AST) and isinstance(opposite, ast.AST):
                if ast.dump(part) != ast.dump(opposite):
                    differences.append((part, opposite))
            elif part != opposite:
                return None
    return differences[0] if len(differences) == 1 else None


def as_list(value: object) -> list:
    """Return what a field of a node holds as a list."""
    return value if isinstance(value, list) else [value]


def statements_with_part(
    statement: ast.stmt, present: ast.expr, complete: ast.expr
) -> Iterator[ast.AST]:
    """Yield the statement with the part put around one of its values, or all of one name."""
    values = [node for node in values_read(statement) if ast.dump(node) != ast.dump(complete)]
    names = [node.id for node in values if isinstance(node, ast.Name)]
    groups = [[node] for node in values]
    groups += [
        [node for node in values if isinstance(node, ast.Name) and node.id == name]
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    for group in groups:
        chosen = {id(node) for node in group}
        yield PartAdder(chosen, present, complete).visit(copied_head(statement, chosen))


def values_read(statement: ast.stmt) -> list[ast.expr]:
    """Return the expressions whose values a statement reads, without functions that it calls."""
    inside = [node for part in head_parts(statement) for node in ast.walk(part)]
    functions = {id(node.func) for node in inside if isinstance(node, ast.Call)}
    return [
        node
        for node in inside
        if isinstance(node, VALUE_NODES)
        and id(node) not in functions
        and not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
    ]


def head_parts(statement: ast.stmt) -> list[ast.AST]:
    """Return the parts of a statement without the statements inside it."""
    return [node for node in ast.iter_child_nodes(statement) if not isinstance(node, ast.stmt)]


def copied_head(statement: ast.stmt, chosen: set[int]) -> ast.stmt:
    """Return a copy of a statement, its chosen nodes the same ones, ``pass`` for what is inside."""
    bare = copy.copy(statement)
    if isinstance(bare, STATEMENTS_WITH_HEAD):
        bare.body = [ast.Pass()]
    if isinstance(bare, ast.While | ast.If):
        bare.orelse = []
    chosen_nodes = {id(n): n for n in ast.walk(statement) if id(n) in chosen}
    return copy.deepcopy(bare, chosen_nodes)


class PartAdder(ast.NodeTransformer):
    """Puts around each chosen node the part that the drill's line lacks."""

    def __init__(self, chosen: set[int], present: ast.expr, complete: ast.expr):
        self.chosen, self.present, self.complete = chosen, ast.dump(present), complete

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the node, or what stands in its place."""
        if id(node) not in self.chosen:
            return super().generic_visit(node)
        return NodeReplacer(self.present, node).visit(copy.deepcopy(self.complete))


class NodeReplacer(ast.NodeTransformer):
    """Puts a node into the place of every expression that is written like another."""

    def __init__(self, present: str, node: ast.AST):
        self.present, self.node = present, node

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the node, or what stands in its place."""
        if isinstance(node, ast.expr) and ast.dump(node) == self.present:
            return self.node
        return super().generic_visit(node)


def rows_of_head(statement: ast.stmt) -> range:
    """Return the rows of a statement, counted from 0; of one that holds others the first ones."""
    last = statement.end_lineno or statement.lineno
    body = getattr(statement, "body", None)
    if body:
        last = max(body[0].lineno - 1, statement.lineno)
    return range(statement.lineno - 1, last)


def indented_lines(statement: ast.stmt, changed: ast.AST) -> Iterator[str]:
    """Yield the lines of a changed statement, indented as the statement was."""
    lines = code_of(ast.fix_missing_locations(changed)).splitlines()
    if isinstance(statement, STATEMENTS_WITH_HEAD):
        lines = lines[:-1]
    for line in lines:
        yield f"{'':{statement.col_offset}}{line}"


def formatted_rows(code: Sequence[str], mend: MendElsewhere) -> tuple[str, ...]:
    """Return the lines of a mend as the formatter writes them where they stand."""
    indent = len(code[mend.first]) - len(code[mend.first].lstrip())
    depth = indent // 4
    heads = [f"{'':{4 * i}}while x:" for i in range(depth)]
    inner = [f"{'':{indent + 4}}pass"] if mend.mended[-1].endswith(":") else []
    text = SMALL_NUMBER.sub(r"\1e-\2", "\n".join([*heads, *mend.mended, *inner]))
    lines = tidy_code(text).splitlines()
    return tuple(lines[depth : len(lines) - len(inner)])
