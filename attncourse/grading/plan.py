"""What runs for a submission: its own cells, with the instructor's tests in their places."""

import ast
import re
from dataclasses import asdict, dataclass, replace

from attncourse.grading.notebook import Assignment, Cell

MAGIC = re.compile(r"^(\s*)(?:([A-Za-z_]\w*)\s*=\s*)?([%!?]).*$")
HELP = re.compile(r"^(\s*)[\w.]+\?{1,2}\s*$")
PUT_BACK = "missing tests were put back"
# Lines whose absence changes no result: not worth a note.
QUIET = {"%pip", "%conda", "%matplotlib", "%config", "%load_ext", "%autoreload"}
RUNS_ITS_BODY = {"%%time", "%%timeit", "%%capture", "%%prun"}


@dataclass(frozen=True)
class Step:
    """One cell to run. ``name`` stands in messages; ``grade_id`` is set for tests only.

    ``given`` marks a cell that the submission holds as the assignment gave it.
    """

    name: str
    source: str
    grade_id: str = ""
    given: bool = False

    def to_json(self) -> dict[str, str | bool]:
        return asdict(self)


def arrange(
    cells: tuple[Cell, ...], assignment: Assignment
) -> tuple[list[tuple[str, Cell]], list[str]]:
    """A submission's cells, each with a name, and notes on what was mended.

    Every test of the assignment is there exactly once, in the instructor's words. One that the
    submission has lost stands just before the next one it has kept, or last.
    """
    tests, notes = assignment.tests, []
    order = list(tests)
    kept = {c.grade_id for c in cells if c.code and c.grade_id in tests}
    lost = [grade_id for grade_id in order if grade_id not in kept]
    waiting = list(lost)
    placed: set[str] = set()
    arranged: list[tuple[str, Cell]] = []

    def put_back(before: int) -> None:
        while waiting and order.index(waiting[0]) < before:
            grade_id = waiting.pop(0)
            arranged.append((f"test {grade_id}", tests[grade_id]))

    for number, cell in enumerate(cells, start=1):
        if not cell.code or cell.grade_id not in tests:
            name = f"cell {cell.grade_id or number}"
            arranged.append((name, replace(cell, grade=False, locked=False)))
        elif cell.grade_id in placed:
            notes.append(f"cell {number}: a second copy of test {cell.grade_id} was ignored")
        else:
            put_back(order.index(cell.grade_id))
            placed.add(cell.grade_id)
            arranged.append((f"test {cell.grade_id}", tests[cell.grade_id]))
    put_back(len(order))
    if lost:
        notes.append(f"{PUT_BACK}: {', '.join(lost)}")
    return arranged, notes


def plan(cells: tuple[Cell, ...], assignment: Assignment) -> tuple[list[Step], list[str]]:
    """The steps to run for a submission's cells, in order, and notes on what was mended."""
    arranged, notes = arrange(cells, assignment)
    given = {cell.source.strip() for cell in assignment.cells if not cell.solution}
    steps = []
    for name, cell in arranged:
        if cell.test:
            if not shows_only(cell):
                steps.append(Step(name, cell.source, cell.grade_id))
        elif cell.code:
            source, changed = without_magics(cell.source)
            steps.append(Step(name, source, given=cell.source.strip() in given))
            notes += [f"{name}: {line} was not run" for line in changed]
    return steps, notes


def shows_only(cell: Cell) -> bool:
    """Whether a test only shows a student the verdict that a graded cell finds again."""
    return not cell.grade and cell.grade_id.startswith("check_")


def without_magics(source: str) -> tuple[str, list[str]]:
    """Plain Python with as many lines, and what was taken out that may have mattered."""
    if is_python(source):
        return source, []
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    words = lines[first].split()
    if words and words[0].startswith("%%") and words[0] not in RUNS_ITS_BODY:
        return "\n" * (len(lines) - 1), [f"{shorten(lines[first])} and the cell below it"]
    if words and words[0].startswith("%%"):
        lines[first] = ""
    changed = []
    for i, line in enumerate(lines):
        magic = MAGIC.match(line)
        if magic or HELP.match(line):
            indent = line[: len(line) - len(line.lstrip())]
            lines[i] = f"{indent}{magic[2]} = None" if magic and magic[2] else f"{indent}pass"
            if line.split()[0] not in QUIET:
                changed.append(shorten(line))
    return "\n".join(lines), changed


def is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def shorten(line: str, limit: int = 60) -> str:
    line = " ".join(line.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
