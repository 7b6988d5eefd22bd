"""Assignments of functions to mend: ``attncourse release 05_kqv --mend 4``.

The solved notebook holds each function as it is right, as every solved notebook does. What students
get in its place, the same with one line changed, stands in the cell's metadata (``BROKEN``).
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from attncourse import STEMS
from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors, replace_file
from attncourse.grading.report import count
from attncourse.practice.cells import (
    TO_MEND,
    check_line,
    code_cell,
    notebook_of,
    notebook_text,
    task_text,
    text_cell,
)
from attncourse.practice.drills import Drill, drills_of
from attncourse.practice.order import ordered_drills

BROKEN = "attncourse_broken"  # a cell's metadata: the code that students are given
ENDING = "_mend"  # of the assignment's name, behind the chapter's folder
POINTS_EACH = 2  # for a function that is mended
INTRODUCTION = (
    "Each function below was right until one line of it was changed. Find the line, mend it where "
    "it stands, run its cell and then the check below. A function earns its {} points when the "
    "check says that all of it is right."
)


@cache
def clear_solutions_or_break() -> type:
    """Return nbgrader's step that takes answers out, which puts functions to mend in as broken.

    The class is made when it is asked for: students' machines do without nbgrader, and import this
    module.
    """
    from nbgrader.preprocessors import ClearSolutions

    class ClearSolutionsOrBreak(ClearSolutions):
        """nbgrader's step, in which a function to mend keeps its broken code."""

        def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
            """Return the cell as students get it, and nbgrader's resources."""
            broken = cell.metadata.pop(BROKEN, None)
            cell, resources = super().preprocess_cell(cell, resources, cell_index)
            if broken is not None:
                cell.source = broken
            return cell, resources

    return ClearSolutionsOrBreak


def write_mend_assignment(course: Path, chapter: str, number: int, seed: int) -> str:
    """Write the solved notebook of functions to mend, and return the assignment's name.

    Raises ``UserError`` where there are fewer functions than were asked for, and where another
    choice of them stands there already, which students may have.
    """
    chosen = functions_to_mend(chapter, number, seed)
    name = f"{chapter}{ENDING}"
    place = course / "solutions" / name / f"{name}.ipynb"
    text = notebook_text(mend_notebook(chapter, chosen))
    if place.exists():
        with explained_file_errors(place, doing="read"):
            is_same_notebook = place.read_text(encoding="utf-8") == text
        if not is_same_notebook:
            raise UserError(
                f"{place} is there already, with other functions: attncourse release {name} "
                "releases those; to draw anew, move that folder away"
            )
        return name
    replace_file(place, text)
    return name


def functions_to_mend(chapter: str, number: int, seed: int) -> list[Drill]:
    """Return ``number`` drills of a chapter, one for each function, in the course's order.

    None of them defines a function of another one, which would then be its answer.
    """
    stem = chapter.partition("_")[2]
    all_drills = drills_of(stem) if stem in STEMS else ()
    if not all_drills:
        having = [f"{STEMS.index(s) + 1:02d}_{s}" for s in STEMS if drills_of(s)]
        raise UserError(
            f"{chapter} has no drills; there are some for {', '.join(having) or 'none'}"
        )
    chosen: list[Drill] = []
    drills = ordered_drills(all_drills, seed=seed)
    for drill in sorted(drills, key=needs_functions):  # those that need none are in nobody's way
        if not any(is_in_the_way(drill, chosen_drill) for chosen_drill in chosen):
            chosen.append(drill)
    if number > len(chosen):
        raise UserError(
            f"{chapter} has drills for {count(len(chosen), 'function')} that can stand together: "
            f"--mend {len(chosen)}, or another --seed"
        )
    order = [drill.exercise for drill in all_drills]
    return sorted(chosen[:number], key=lambda drill: order.index(drill.exercise))


def needs_functions(drill: Drill) -> bool:
    """True if functions or classes have to be defined before a drill's code."""
    return any(line.startswith(("def ", "class ")) for line in drill.setup.splitlines())


def is_in_the_way(drill: Drill, other_drill: Drill) -> bool:
    """True if two drills are of one function, or one of them needs the function of the other."""
    if drill.exercise == other_drill.exercise:
        return True
    pairs = ((drill, other_drill), (other_drill, drill))
    return any(f"{kind} {b.function}" in a.setup for a, b in pairs for kind in ("def", "class"))


def mend_notebook(chapter: str, drills: Sequence[Drill]) -> dict[str, Any]:
    """Return the solved notebook of these functions to mend, with nbgrader's metadata."""
    number = STEMS.index(chapter.partition("_")[2]) + 1
    cells = [
        text_cell("title", f"{TO_MEND}{number}\n\n{INTRODUCTION.format(POINTS_EACH)}"),
        code_cell("imports", "from attncourse.checks import check, examine"),
    ]
    before = ""
    for drill in drills:
        name = drill.function
        cells.append(text_cell(f"task-{name}", f"## {task_text(drill)}"))
        if drill.setup and drill.setup != before:
            cells.append(code_cell(f"given-{name}", drill.setup))
            before = drill.setup
        marks = {"nbgrader": nbgrader_marks(name, solution=True), BROKEN: "\n".join(drill.code)}
        cells.append(code_cell(f"answer-{name}", solved_text(drill), **marks))
        marks = {"nbgrader": nbgrader_marks(f"check_{name}", locked=True)}
        cells.append(code_cell(f"check-{name}", check_line(drill), **marks))
    cells.append(text_cell("graded", "## Graded cells\n\nNothing to do here."))
    for drill in drills:
        name = drill.function
        marks = nbgrader_marks(f"points_{name}", locked=True, grade=True) | {"points": POINTS_EACH}
        source = f'{POINTS_EACH} * examine("{drill.exercise}", {name}).passed'
        cells.append(code_cell(f"points-{name}", source, nbgrader=marks))
    return notebook_of(cells)


def solved_text(drill: Drill) -> str:
    """Return the right code of a drill, between nbgrader's lines for a solution."""
    return "\n".join(["### BEGIN SOLUTION", *drill.right, "### END SOLUTION"])


def nbgrader_marks(grade_id: str, **kinds: bool) -> dict[str, Any]:
    """Return nbgrader's metadata of a cell; ``kinds`` are grade, solution, locked and task."""
    marks: dict[str, Any] = {"grade_id": grade_id, "schema_version": 3}
    return marks | {"grade": False, "solution": False, "locked": False, "task": False} | kinds


def has_functions_to_mend(course: Path, name: str) -> bool:
    """True if an assignment is one of functions to mend."""
    place = course / "solutions" / name / f"{name}.ipynb"
    try:
        cells = json.loads(place.read_text(encoding="utf-8"))["cells"]
        return any(BROKEN in cell["metadata"] for cell in cells)
    except (OSError, ValueError, KeyError, TypeError):
        return False
