"""What of the instructor's notebook stands around the tests: imports, data, helpers."""

import ast
import builtins
import types
from collections.abc import Set
from functools import lru_cache

from attncourse.grading.submission.notebook import Assignment
from attncourse.grading.submission.plan import without_magics


class Desk:
    """What of the instructor's notebook stands around the tests.

    A test may use what other cells of the instructor's define: imports, data, helpers. Those are
    run here, in the instructor's version, when a test first needs them. What solution cells define
    comes from the submission, and so does what nobody else defines.
    """

    def __init__(self, assignment: Assignment):
        self.sources: list[str] = []
        self.kinds: list[str] = []
        self.place: dict[str, int] = {}
        for cell in assignment.cells:
            if not cell.code:
                continue
            source = without_magics(cell.source)[0]
            if cell.solution:  # libraries are the checker's own, wherever they are imported
                self.add("given", imports_in(source))
            if cell.grade_id:
                self.place[cell.grade_id] = len(self.sources)
            graded = cell.grade and not cell.solution
            self.add("solution" if cell.solution else "test" if graded else "given", source)
        self.bound = [
            binds(source) - (binds(imports_in(source)) if kind == "solution" else set())
            for source, kind in zip(self.sources, self.kinds, strict=True)
        ]
        tests = [s for s, kind in zip(self.sources, self.kinds, strict=True) if kind == "test"]
        self.seeds = any("seed" in source for source in tests)

    def add(self, kind: str, source: str) -> None:
        self.kinds.append(kind)
        self.sources.append(source)

    def binder(self, name: str, before: int) -> int | None:
        """The last cell before a place that binds a name."""
        return next((i for i in range(before - 1, -1, -1) if name in self.bound[i]), None)

    def is_students(self, name: str, grade_id: str, own: Set[str]) -> bool:
        """Whether a test takes this name from the submission; ``own`` are those it has itself."""
        binder = self.binder(name, self.place.get(grade_id, len(self.sources)))
        if binder is not None:
            return self.kinds[binder] == "solution"
        return not hasattr(builtins, name) and name not in own

    def needed(self, grade_id: str, done: set[int]) -> list[str]:
        """The given cells that a test needs and that have not run yet, in order."""
        wanted: set[int] = set()
        todo = [(self.place[grade_id], name) for name in loads(self.sources[self.place[grade_id]])]
        while todo:
            before, name = todo.pop()
            found = self.binder(name, before)
            if found is not None and self.kinds[found] == "given" and found not in wanted | done:
                wanted.add(found)
                todo += [(found, other) for other in loads(self.sources[found])]
        done |= wanted
        return [self.sources[i] for i in sorted(wanted)]


@lru_cache(maxsize=4)
def desk_for(assignment: Assignment) -> Desk:
    return Desk(assignment)


@lru_cache(maxsize=256)
def parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


@lru_cache(maxsize=256)
def binds(source: str) -> frozenset[str]:
    """The names that a cell binds at its top level."""
    found: set[str] = set()
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    todo: list[ast.AST] = list(parsed(source).body)
    while todo:
        node = todo.pop()
        if isinstance(node, inner):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.alias):
            found.add(node.asname or node.name.split(".")[0])
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        todo += ast.iter_child_nodes(node)
    return frozenset(found)


@lru_cache(maxsize=256)
def imports_in(source: str) -> str:
    """The import statements at a cell's top level, alone."""
    nodes = [n for n in parsed(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in nodes)


@lru_cache(maxsize=256)
def loads(source: str) -> tuple[str, ...]:
    """The names that a cell reads, anywhere in it."""
    nodes = ast.walk(parsed(source))
    names = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return tuple(dict.fromkeys(names))


@lru_cache(maxsize=256)
def compiled(source: str) -> tuple[types.CodeType, types.CodeType | None]:
    """A cell's statements, and its last line where that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    body = compile(tree, "<test>", "exec", dont_inherit=True)
    if last is None:
        return body, None
    return body, compile(ast.Expression(last.value), "<test>", "eval", dont_inherit=True)
