"""Fingerprints of answers: their code without names, layout, comments and order.

Every statement is a run of the nodes of its syntax tree, and each few neighbours in it are a
fingerprint (Schleimer, Wilkerson and Aiken 2003; answers are short, so all of them are kept). A
program's own names, its texts and its type hints are left out; what it takes from libraries and its
numbers stay. The code is read and never run, and no walk goes as deep as a tree may be.
"""

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from attncourse.grading.submission.notebook import Assignment, Cells
from attncourse.grading.submission.parts import as_released
from attncourse.grading.submission.plan import plan
from attncourse.grading.submission.source import file_written, python_alone
from attncourse.grading.submission.syntax import is_text, parse_or_none

N_NEIGHBOURS = 4
MAX_COMPARED_CHARS = 100_000  # characters of a submission's code
OTHER_CELLS = "other cells"
Prints = frozenset[tuple[str, ...]]
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
LEFT_OUT = ("annotation", "returns", "type_comment", "ctx", "kind", "type_ignores", "type_params")


def fingerprints_by_exercise(cells: Cells, assignment: Assignment) -> dict[str, Prints]:
    """Return the fingerprints of a submission's own code, without those of what was given.

    Code that defines no exercise is under ``OTHER_CELLS``. Of more than ``MAX_COMPARED_CHARS``,
    answers come first and then as much else as fits.
    """
    exercises = [c.grade_id for c in assignment.cells if c.solution and c.code]
    given_prints = fingerprints_of_given(assignment)
    steps = plan(cells_that_fit(cells, exercises), assignment)[0]
    cell_sources = [step.source for step in steps if step.kind == "cell"]
    prints_by_exercise: dict[str, set] = {}
    for source in cell_sources:
        tree = parse_or_none(file_written(source)[1] or source)
        if tree is None:
            continue
        bound = {getattr(node, "name", "") for node in tree.body}
        where = next((name for name in exercises if name in bound), OTHER_CELLS)
        prints_by_exercise.setdefault(where, set()).update(fingerprints(tree) - given_prints)
    return {where: frozenset(prints) for where, prints in prints_by_exercise.items() if prints}


def cells_that_fit(cells: Cells, exercises: list[str]) -> Cells:
    """Return the cells with at most ``MAX_COMPARED_CHARS`` of code, answers before other code."""
    names = "|".join(map(re.escape, exercises))
    answer = re.compile(rf"^(?:class|(?:async )?def)\s+(?:{names})\b", re.M)
    fitting, room = set(), MAX_COMPARED_CHARS
    for n, cell in sorted(
        enumerate(cells), key=lambda numbered: not answer.search(numbered[1].source)
    ):
        if cell.code and room > 0:
            fitting.add(n)
            room -= len(cell.source)
    return tuple(cell for n, cell in enumerate(cells) if n in fitting or not cell.code)


@lru_cache(maxsize=8)
def fingerprints_of_given(assignment: Assignment) -> Prints:
    """Return the fingerprints of the code that students are given: stubs and other cells."""
    texts = [as_released(c) for c in assignment.cells if c.code]
    trees = [tree for text in texts if (tree := parse_or_none(python_alone(text)))]
    return frozenset().union(*map(fingerprints, trees))


def fingerprints(tree: ast.Module) -> Prints:
    """Return the fingerprints of a module's code."""
    made_up = names_made_up(tree)
    prints = set()
    for run in statement_runs(tree, made_up):
        last = max(len(run) - N_NEIGHBOURS, 0)
        prints |= {tuple(run[start : start + N_NEIGHBOURS]) for start in range(last + 1)}
    return frozenset(prints)


def names_made_up(tree: ast.Module) -> set[str]:
    """Return the names that code binds itself: variables, arguments, functions, classes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def statement_runs(tree: ast.AST, own_names_of_code: set[str]) -> Iterator[list[str]]:
    """Yield the nodes of every statement as texts; inner statements are runs of their own."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        for name in BODIES:
            value = getattr(node, name, None)
            if isinstance(value, list):
                for inner in value:
                    if not is_text(inner):
                        yield list(statement_nodes(inner, own_names_of_code))
                        waiting.append(inner)


def statement_nodes(tree: ast.AST, own_names_of_code: set[str]) -> Iterator[str]:
    """Yield the nodes of a statement as texts, in order, without statements inside it."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            yield "name" if node.id in own_names_of_code else node.id
            continue
        if isinstance(node, ast.Constant):
            yield fingerprint_of_number(node.value)
            continue
        yield type(node).__name__
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Attribute):
            on_self = isinstance(node.value, ast.Name) and node.value.id == "self"
            yield "." if node.attr in own_names_of_code or on_self else f".{node.attr}"
        if isinstance(node, ast.keyword):
            yield f"{node.arg}=" if node.arg not in own_names_of_code else "name="
        waiting += reversed(nodes_inside(node))


def nodes_inside(node: ast.AST) -> list[ast.AST]:
    """Return a node's child nodes, without statements and what is left out."""
    nodes: list[ast.AST] = []
    for name, value in ast.iter_fields(node):
        if name not in LEFT_OUT and not (name in BODIES and isinstance(value, list)):
            values = value if isinstance(value, list) else [value]
            nodes += [inner for inner in values if isinstance(inner, ast.AST)]
    return nodes


def fingerprint_of_number(value: object) -> str:
    """Return a constant's text: a number's own, and the same one for all texts."""
    if isinstance(value, str | bytes):
        return "text"
    return hex(value) if type(value) is int else repr(value)
