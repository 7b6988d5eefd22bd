"""Whether a notebook is that of another assignment, whatever its file is called."""

import re

from attncourse.grading.submission.notebook import Assignment, Cell
from attncourse.grading.submission.parts import labelled

ANOTHER = "this is the notebook of"
CHECKED = re.compile(r"""\b(?:check|examine)\(\s*["'](\w+)\.(\w+)["']""")
HEADING = re.compile(r"^\s*#\s+(.+)$", re.M)
SHOWN = 80  # characters of a title


def another(cells: tuple[Cell, ...], assignment: Assignment) -> str:
    """That a notebook has another assignment's tests and none of this one's; or nothing."""
    own = targets(assignment.cells)
    theirs = targets(cells)
    marks = {c.grade_id for c in cells if c.grade and c.grade_id} - assignment.graded.keys()
    if not (theirs or marks) or theirs & own or not assignment.graded:
        return ""
    parts, _ = labelled(cells, assignment)
    if any(part.copy_of or part.answers for part in parts):
        return ""
    titles = (HEADING.search(cell.source) for cell in cells if not cell.code)
    title = next((f"“{found[1].strip()[:SHOWN]}”" for found in titles if found), "")
    name = title or " and ".join(sorted({stem for stem, _ in theirs})) or "something else"
    return f"{ANOTHER} {name}: hand in {assignment.name}.ipynb"


def targets(cells: tuple[Cell, ...]) -> set[tuple[str, str]]:
    """The exercises that cells check."""
    return {found for cell in cells if cell.code for found in CHECKED.findall(cell.source)}
