"""Fingerprints of answers: what is left of their code without names, layout, comments and order.

Every statement is a run of the nodes of its syntax tree, and each few neighbours in it are a
fingerprint (Schleimer, Wilkerson and Aiken 2003; answers are short, so all of them are kept). A
program's own names, its texts and its type hints are left out; what it takes from libraries and its
numbers stay. The code is read and never run.
"""

import ast
from collections.abc import Iterator

from attncourse.grading.submission.notebook import Assignment, Cell
from attncourse.grading.submission.parts import as_released
from attncourse.grading.submission.plan import plan
from attncourse.grading.submission.source import plain
from attncourse.grading.submission.syntax import parse

NEIGHBOURS = 4
OTHER = "other cells"
Prints = frozenset[tuple[str, ...]]
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
LEFT_OUT = ("annotation", "returns", "type_comment", "ctx", "kind", "type_ignores", "type_params")


def answers_of(cells: tuple[Cell, ...], assignment: Assignment) -> dict[str, Prints]:
    """The fingerprints of a submission's own code by exercise, without what was given."""
    exercises = [c.grade_id for c in assignment.cells if c.solution and c.code]
    given = given_by(assignment)
    own = [step.source for step in plan(cells, assignment)[0] if step.kind == "cell"]
    found: dict[str, set] = {}
    for source in own:
        tree = parse(source)
        if tree is None:
            continue
        bound = {getattr(node, "name", "") for node in tree.body}
        where = next((name for name in exercises if name in bound), OTHER)
        found.setdefault(where, set()).update(fingerprints(tree) - given)
    return {where: frozenset(prints) for where, prints in found.items() if prints}


def given_by(assignment: Assignment) -> Prints:
    """The fingerprints of what students were given: stubs, signatures, code around the answers."""
    texts = [as_released(c.source, answer=c.solution) for c in assignment.cells if c.code]
    trees = [tree for text in texts if (tree := parse(plain(text)))]
    return frozenset().union(*map(fingerprints, trees))


def fingerprints(tree: ast.Module) -> Prints:
    """The fingerprints of a piece of code."""
    own = own_names(tree)
    found = set()
    for run in statements(tree, own):
        last = max(len(run) - NEIGHBOURS, 0)
        found |= {tuple(run[at : at + NEIGHBOURS]) for at in range(last + 1)}
    return frozenset(found)


def own_names(tree: ast.Module) -> set[str]:
    """The names that the code makes up, its arguments, functions and methods among them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


def statements(node: ast.AST, own: set[str]) -> Iterator[list[str]]:
    """The run of nodes of every statement; those inside of others are runs of their own."""
    for name, value in ast.iter_fields(node):
        if name not in BODIES or not isinstance(value, list):
            continue
        for inner in value:
            if not is_text(inner):
                yield list(nodes(inner, own))
                yield from statements(inner, own)


def nodes(node: ast.AST, own: set[str]) -> Iterator[str]:
    """A statement's nodes, in order, without the statements inside."""
    if isinstance(node, ast.Name):
        yield "name" if node.id in own else node.id
        return
    if isinstance(node, ast.Constant):
        yield "text" if isinstance(node.value, str | bytes) else repr(node.value)
        return
    yield type(node).__name__
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.Attribute):
        yield "." if node.attr in own or is_self(node.value) else f".{node.attr}"
    if isinstance(node, ast.keyword):
        yield f"{node.arg}=" if node.arg not in own else "name="
    for name, value in ast.iter_fields(node):
        if name in LEFT_OUT or (name in BODIES and isinstance(value, list)):
            continue
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.AST):
                yield from nodes(inner, own)


def is_text(node: ast.AST) -> bool:
    """Whether it is a docstring, or an expression that is text alone."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
