"""Names around the tests: what instructor's cells bind, and which names are the submission's."""

import ast
import builtins
import re
from collections.abc import KeysView, Set
from contextlib import suppress
from functools import lru_cache

from attncourse.checks import find_exercise
from attncourse.grading.judge.guard import names_read_in
from attncourse.grading.submission.notebook import HIDDEN_TESTS_MARK, Assignment
from attncourse.grading.submission.source import without_magics
from attncourse.grading.submission.syntax import bound_names, parse_or_none

CHECKED = re.compile(r"""\b(?:check|examine)\(\s*["'](\w+\.\w+)["'],\s*(\w+)""")


class InstructorNamespace:
    """The code cells of the instructor's notebook, by which names that a test uses are resolved.

    A test may use what other cells of the instructor's define: imports, data, helpers. Those are
    run in the checker, in the instructor's version, when a test first needs them. What solution
    cells define comes from the submission, and so does what no cell defines.
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
                self.add_source("given", imports_in(source))
            if cell.grade_id:
                self.place[cell.grade_id] = len(self.sources)
            graded = cell.grade and not cell.solution
            self.add_source("solution" if cell.solution else "test" if graded else "given", source)
        self.bound = [
            names_bound(source) - (names_bound(imports_in(source)) if kind == "solution" else set())
            for source, kind in zip(self.sources, self.kinds, strict=True)
        ]
        self.forbids = forbidden_by_answer(self.sources)
        tests = [s for s, kind in zip(self.sources, self.kinds, strict=True) if kind == "test"]
        self.seeds = any("seed" in source for source in tests)
        self.deferred = self.deferred_tests()
        self.students_names_of: dict[tuple[str, str], tuple[str, ...]] = {}

    def add_source(self, kind: str, source: str) -> None:
        """Append the source of a "given", "solution" or "test" cell."""
        self.kinds.append(kind)
        self.sources.append(source)

    def deferred_tests(self) -> frozenset[str]:
        """Return the grade ids of the hidden tests and of the tests that use what these bind.

        A submission could tell what it has seen in them in whatever runs afterwards, so they run
        last.
        """
        deferred: dict[int, str] = {}
        for grade_id, place in self.place.items():
            source = self.sources[place]
            used = {
                self.binding_cell(name, place)
                for name in names_loaded(source) - names_bound(source)
            }
            if self.kinds[place] == "test" and (
                HIDDEN_TESTS_MARK in source or used & deferred.keys()
            ):
                deferred[place] = grade_id
        return frozenset(deferred.values())

    def binding_cell(self, name: str, before: int) -> int | None:
        """Return the number of the last cell before ``before`` that binds a name; None without."""
        return next((i for i in range(before - 1, -1, -1) if name in self.bound[i]), None)

    def is_students(self, name: str, grade_id: str, test_names: Set[str]) -> bool:
        """True if a test takes this name from the submission; the test binds ``test_names``."""
        binder = self.binding_cell(name, self.place.get(grade_id, len(self.sources)))
        if binder is not None:
            return self.kinds[binder] == "solution"
        return not hasattr(builtins, name) and name not in test_names

    def students_names(self, source: str, grade_id: str = "") -> tuple[str, ...]:
        """Return the names that a test always takes from the submission, in alphabetical order.

        ``source`` is the test's or, without a grade id, that of a cell behind all.
        """
        key = source, grade_id
        if key not in self.students_names_of:
            bound, names = names_bound(source), sorted(names_loaded(source))
            self.students_names_of[key] = tuple(
                n for n in names if self.is_students(n, grade_id, bound)
            )
        return self.students_names_of[key]

    def missing_given_cells(self, grade_id: str, cells_run: set[int]) -> list[str]:
        """Return the sources of given cells that a test needs and that have not run, in order.

        ``cells_run`` has the numbers of those that have run; the new ones are added to it.
        """
        needed: set[int] = set()
        todo = [
            (self.place[grade_id], name)
            for name in names_loaded(self.sources[self.place[grade_id]])
        ]
        while todo:
            before, name = todo.pop()
            place = self.binding_cell(name, before)
            if (
                place is not None
                and self.kinds[place] == "given"
                and place not in needed | cells_run
            ):
                needed.add(place)
                todo += [(place, inner_name) for inner_name in names_loaded(self.sources[place])]
        cells_run |= needed
        return [self.sources[i] for i in sorted(needed)]


def forbidden_by_answer(sources: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the library's functions that each checked answer may not use, by the answer's name.

    An answer is checked by ``check`` or ``examine`` in one of these ``sources``; one that may use
    everything is left out.
    """
    checked = {name: target for source in sources for target, name in CHECKED.findall(source)}
    forbids = {}
    for name, target in checked.items():
        with suppress(ValueError):  # no exercise is called so: its test will say that
            forbids[name] = find_exercise(target).forbids
    return {name: functions for name, functions in forbids.items() if functions}


instructor_namespace_for = lru_cache(maxsize=4)(InstructorNamespace)


@lru_cache(maxsize=256)
def parsed_cell(source: str) -> ast.Module:
    """Return a cell's syntax tree; an empty one where it is no Python."""
    return parse_or_none(source) or ast.Module([], [])


@lru_cache(maxsize=256)
def names_bound(source: str) -> frozenset[str]:
    """Return the names that a cell binds for those after it, as in a submission's cells."""
    return bound_names(parsed_cell(source))


@lru_cache(maxsize=256)
def imports_in(source: str) -> str:
    """Return the import statements at a cell's top level, as source."""
    nodes = [n for n in parsed_cell(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in nodes)


@lru_cache(maxsize=256)
def names_loaded(source: str) -> KeysView[str]:
    """Return the names that a cell reads, anywhere in it."""
    return names_read_in(parsed_cell(source))
