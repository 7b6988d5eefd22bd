"""What runs for a submission: its own cells, with the instructor's tests in their places."""

import ast
import re
from dataclasses import asdict, dataclass

from attncourse.grading.notebook import Assignment, Cell

MAGIC = re.compile(r"^(\s*)(?:([A-Za-z_]\w*)\s*=\s*)?([%!?]).*$")
HELP = re.compile(r"^(\s*)[\w.]+\?{1,2}\s*$")
RUNS_ITS_BODY = {"%%time", "%%timeit", "%%capture", "%%prun"}


@dataclass(frozen=True)
class Step:
    """One cell to run. ``name`` stands in messages; ``grade_id`` is set for tests only."""

    name: str
    source: str
    grade_id: str = ""

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def plan(cells: tuple[Cell, ...], assignment: Assignment) -> tuple[list[Step], list[str]]:
    """The steps to run for a submission's cells, in order, and notes on what was mended.

    Every test of the assignment runs exactly once and with the instructor's source. A test that
    the submission has lost runs just before the next one it has kept, or last.
    """
    tests, notes = assignment.tests, []
    order = list(tests)
    kept = {c.grade_id for c in cells if c.code and c.grade_id in tests}
    placed: set[str] = set()
    steps: list[Step] = []

    def place(grade_id: str) -> None:
        placed.add(grade_id)
        steps.append(Step(f"test {grade_id}", tests[grade_id].source, grade_id))

    for number, cell in enumerate(cells, start=1):
        if not cell.code:
            continue
        if cell.grade_id not in tests:
            source, changed = without_magics(cell.source)
            steps.append(Step(f"cell {number}", source))
            notes += [f"cell {number}: {line} was not run" for line in changed]
        elif cell.grade_id in placed:
            notes.append(f"cell {number}: a second copy of test {cell.grade_id} was ignored")
        else:
            for earlier in order[: order.index(cell.grade_id)]:
                if earlier not in kept and earlier not in placed:
                    place(earlier)
            place(cell.grade_id)
    for grade_id in order:
        if grade_id not in placed:
            place(grade_id)
    lost = [grade_id for grade_id in order if grade_id not in kept]
    if lost:
        notes.append(f"missing tests were put back: {', '.join(lost)}")
    return [step for step in steps if not shows_only(tests.get(step.grade_id))], notes


def shows_only(cell: Cell | None) -> bool:
    """Whether a test only shows a student the verdict that a graded cell finds again."""
    return cell is not None and not cell.grade and cell.grade_id.startswith("check_")


def without_magics(source: str) -> tuple[str, list[str]]:
    """Plain Python with as many lines, and the lines of IPython's that were taken out."""
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
