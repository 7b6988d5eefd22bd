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
from drill_making.line_changes import written
from drill_making.proving import as_checked, implementation_of, is_right, limited, mending
from drill_making.sources import tidy_code

Lacks = tuple[ast.expr, ast.expr]  # what stands in the wrong line, and the same with what it lacks
PLACES = (ast.Name, ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript)
SMALL = re.compile(r"(\d)e-0(\d)\b")  # a number as no person writes it, 1e-05
HEADED = (ast.While, ast.If, ast.With)  # of these the first lines may be mended
NOT_LOOKED_AT = (ast.FunctionDef, ast.ClassDef, ast.For)  # a longer loop is no value, either


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
    found: dict[int, MendElsewhere] = {}
    for mend in mends_elsewhere(drill, trials, seed):
        code = "\n".join(mend.applied_to(drill.code))
        if mend.first in found or not is_right(exercise, mended_by(drill, code), seeds):
            continue
        found[mend.first] = replace(mend, mended=formatted_rows(drill.code, mend))
    return replace(drill, elsewhere=tuple(found[first] for first in sorted(found)))


def mended_by(drill: Drill, code: str) -> Callable | None:
    """What a changed code of a drill defines; None where it cannot be run."""
    return implementation_of(drill.function, drill.setup, code)


def mends_elsewhere(drill: Drill, trials: tuple[Trial, ...], seed: int) -> Iterator[MendElsewhere]:
    """Other lines of a drill with which it is right in every case of a seed; short ones first."""
    exercise = limited(find_exercise(drill.exercise))
    right = mended_by(drill, "\n".join(drill.right))
    assert right is not None, "right code can be run"
    tried = sorted(set(changes_elsewhere(drill)), key=length_and_text)
    variants = (mended_by(drill, "\n".join(mend.applied_to(drill.code))) for mend in tried)
    for place in mending(exercise, right, variants, trials, seed):
        yield tried[place]


def length_and_text(mend: MendElsewhere) -> tuple[int, tuple[str, ...]]:
    """Return what mends are sorted by."""
    return sum(map(len, mend.mended)), mend.mended


def changes_elsewhere(drill: Drill) -> Iterator[MendElsewhere]:
    """What a drill's line lacks, put around every value in its other statements."""
    code = "\n".join(drill.code)
    tree = ast.parse(code)
    lacking = list(what_lacks(tree, ast.parse("\n".join(drill.right))))
    for statement in [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]:
        rows = rows_of_head(statement)
        if isinstance(statement, NOT_LOOKED_AT) or drill.line in rows:
            continue
        for there, with_it in lacking:
            for changed in with_part(statement, there, with_it):
                lines = tuple(indented(statement, changed))
                yield MendElsewhere(rows[0], rows[-1], lines)


def what_lacks(wrong: ast.AST, right: ast.AST) -> Iterator[Lacks]:
    """Each value of the wrong line that stands in the right one with something done to it."""
    pair: tuple[ast.AST, ast.AST] | None = (wrong, right)
    while pair:
        there, with_it = pair
        if isinstance(there, ast.expr) and isinstance(with_it, ast.expr):
            inside = [ast.dump(n) for n in ast.walk(with_it) if isinstance(n, ast.expr)]
            is_more = ast.dump(there) != ast.dump(with_it) and inside.count(ast.dump(there)) == 1
            if is_more and not isinstance(with_it, ast.BoolOp):  # a condition more is no value
                yield there, with_it
        pair = only_difference(there, with_it)


def only_difference(one: ast.AST, other: ast.AST) -> tuple[ast.AST, ast.AST] | None:
    """Return the parts of two nodes in which alone they differ; None where these are no nodes."""
    if type(one) is not type(other):
        return None
    found = []
    for name, value in ast.iter_fields(one):
        values, others = as_list(value), as_list(getattr(other, name))
        if len(values) != len(others):
            return None
        for part, opposite in zip(values, others, strict=True):
            if isinstance(part, ast.AST) and isinstance(opposite, ast.AST):
                if ast.dump(part) != ast.dump(opposite):
                    found.append((part, opposite))
            elif part != opposite:
                return None
    return found[0] if len(found) == 1 else None


def as_list(value: object) -> list:
    """Return what a field of a node holds as a list."""
    return value if isinstance(value, list) else [value]


def with_part(statement: ast.stmt, there: ast.expr, with_it: ast.expr) -> Iterator[ast.AST]:
    """The statement with what lacks done to one of its values, or to all that are of one name."""
    values = [node for node in values_of(statement) if ast.dump(node) != ast.dump(with_it)]
    names = [node.id for node in values if isinstance(node, ast.Name)]
    groups = [[node] for node in values]
    groups += [
        [node for node in values if isinstance(node, ast.Name) and node.id == name]
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    for group in groups:
        chosen = {id(node) for node in group}
        yield Put(chosen, there, with_it).visit(copied_head(statement, chosen))


def values_of(statement: ast.stmt) -> list[ast.expr]:
    """Return the expressions whose values a statement reads, without functions that it calls."""
    inside = [node for part in head_parts(statement) for node in ast.walk(part)]
    functions = {id(node.func) for node in inside if isinstance(node, ast.Call)}
    return [
        node
        for node in inside
        if isinstance(node, PLACES)
        and id(node) not in functions
        and not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
    ]


def head_parts(statement: ast.stmt) -> list[ast.AST]:
    """Return the parts of a statement without the statements inside it."""
    return [node for node in ast.iter_child_nodes(statement) if not isinstance(node, ast.stmt)]


def copied_head(statement: ast.stmt, chosen: set[int]) -> ast.stmt:
    """Return a copy of a statement, its chosen nodes the same ones, ``pass`` for what is inside."""
    bare = copy.copy(statement)
    if isinstance(bare, HEADED):
        bare.body = [ast.Pass()]
    if isinstance(bare, ast.While | ast.If):
        bare.orelse = []
    kept = {id(n): n for n in ast.walk(statement) if id(n) in chosen}
    return copy.deepcopy(bare, kept)


class Put(ast.NodeTransformer):
    """Puts into the place of chosen nodes what lacks, done to them."""

    def __init__(self, chosen: set[int], there: ast.expr, with_it: ast.expr):
        self.chosen, self.there, self.with_it = chosen, ast.dump(there), with_it

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the node, or what stands in its place."""
        if id(node) not in self.chosen:
            return super().generic_visit(node)
        return Within(self.there, node).visit(copy.deepcopy(self.with_it))


class Within(ast.NodeTransformer):
    """Puts a node into the place of what is written as another."""

    def __init__(self, there: str, node: ast.AST):
        self.there, self.node = there, node

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the node, or what stands in its place."""
        if isinstance(node, ast.expr) and ast.dump(node) == self.there:
            return self.node
        return super().generic_visit(node)


def rows_of_head(statement: ast.stmt) -> range:
    """Return the rows of a statement, counted from 0; of one that holds others the first ones."""
    last = statement.end_lineno or statement.lineno
    body = getattr(statement, "body", None)
    if body:
        last = max(body[0].lineno - 1, statement.lineno)
    return range(statement.lineno - 1, last)


def indented(statement: ast.stmt, changed: ast.AST) -> Iterator[str]:
    """The lines of a changed statement, where the statement stood."""
    lines = written(ast.fix_missing_locations(changed)).splitlines()
    if isinstance(statement, HEADED):
        lines = lines[:-1]
    for line in lines:
        yield f"{'':{statement.col_offset}}{line}"


def formatted_rows(code: Sequence[str], mend: MendElsewhere) -> tuple[str, ...]:
    """Return the lines of a mend as the formatter writes them where they stand."""
    indent = len(code[mend.first]) - len(code[mend.first].lstrip())
    depth = indent // 4
    heads = [f"{'':{4 * i}}while x:" for i in range(depth)]
    inner = [f"{'':{indent + 4}}pass"] if mend.mended[-1].endswith(":") else []
    text = SMALL.sub(r"\1e-\2", "\n".join([*heads, *mend.mended, *inner]))
    lines = tidy_code(text).splitlines()
    return tuple(lines[depth : len(lines) - len(inner)])
