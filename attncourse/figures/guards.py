"""Which statements of a function only guard it: found in its tree, for a listing to leave out."""

import ast
import re
from collections.abc import Collection, Iterator
from typing import TypeGuard

CHECK = re.compile(r"require_\w+|as_floats|as_ids")  # these return their argument or raise
Statement = ast.stmt | ast.excepthandler
FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_check(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return a call of a helper that returns its argument or raises: ``require_count("n", n)``."""
    return isinstance(node, ast.Call) and bool(CHECK.fullmatch(ast.unparse(node.func)))


def checked_argument(call: ast.Call) -> ast.expr:
    """Return the first argument of a check that is not a name in quotes: the value it returns."""
    for argument in call.args:
        if not isinstance(argument, ast.Constant):
            return argument
    raise ValueError(f"expected a check of an argument, got {ast.unparse(call)}")


def is_silence(node: ast.AST) -> TypeGuard[ast.With]:
    """True for ``with np.errstate(…)``, which changes what NumPy says and not what it computes."""
    return isinstance(node, ast.With) and "np.errstate(" in ast.unparse(node.items[0])


def walk_listing(top: ast.AST, without: Collection[ast.AST] = ()) -> Iterator[ast.AST]:
    """Yield the tree under a node as a listing has it: of a check only its argument."""
    yield top
    if top in without:
        return
    children = [checked_argument(top)] if is_check(top) else ast.iter_child_nodes(top)
    for child in children:
        yield from walk_listing(child, without)


def is_statement(node: ast.AST) -> TypeGuard[Statement]:
    """True if a node is a statement, or another block that can be left out whole."""
    return isinstance(node, Statement)


def guard_statements(top: ast.stmt) -> set[Statement]:
    """Return the statements under ``top`` that a listing leaves out: docstrings and checks."""
    statements = [node for node in ast.walk(top) if isinstance(node, ast.stmt)]
    guards: set[Statement] = {node for node in statements if guards_only(node)}
    before = -1
    while before < len(guards):
        before = len(guards)
        for node in list(walk_listing(top, guards)):
            body, rest = getattr(node, "body", None), getattr(node, "orelse", None)
            if is_statement(node) and isinstance(body, list) and not rest and guards >= set(body):
                if isinstance(node, FUNCTION_NODES):
                    raise ValueError(f"{node.name}: expected more than checks, got no other line")
                guards.add(node)
            if isinstance(node, FUNCTION_NODES):
                parts = [s for s in walk_listing(node, guards) if isinstance(s, ast.stmt)]
                guards |= {s for s in parts if serves_only(s, node, guards)}
    return guards


def guards_only(node: ast.stmt) -> bool:
    """True if a statement only checks, and computes nothing."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call() as call):
            return is_check(call)
        case ast.If(body=[*_, ast.Raise()], orelse=[]):
            return True
        case ast.Assign(targets=[target], value=ast.Call() as call) if is_check(call):
            checked = call.args if isinstance(target, ast.Tuple) else [checked_argument(call)]
            return ast.unparse(target).strip("()") == ", ".join(map(ast.unparse, checked))
    return False


def serves_only(node: ast.AST, function: ast.AST, left_out: Collection[Statement]) -> bool:
    """True if an assignment is read where ``left_out`` checks are, and nowhere else."""
    if not isinstance(node, ast.Assign):
        return False
    names = {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return bool(names & names_read(ast.walk(function))) and not names & names_read(
        walk_listing(function, left_out)
    )


def names_read(nodes: Iterator[ast.AST]) -> set[str]:
    """Return the names that some nodes read."""
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
