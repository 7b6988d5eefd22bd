"""A student's own file, judged without the instructor's notebook: only the public checks."""

import re
from pathlib import Path

from attncourse.grading.errors import Unreadable, UserError
from attncourse.grading.judge.judge import grade
from attncourse.grading.limits import Limits
from attncourse.grading.machine import slowness
from attncourse.grading.report import Report
from attncourse.grading.submission.notebook import Assignment, Cell, read_cells

POINTS = """\
from attncourse.checks import examine as _examine
_examine("{target}", {name}, variant="{variant}").earned
"""


def check_file(path: Path, limits: Limits) -> Report:
    """The verdicts on each exercise of a student's notebook."""
    data, cells = read_file(path)
    return check_cells(path, data, cells, limits.stretched(slowness()))


def check_cells(path: Path, data: bytes, cells: tuple[Cell, ...], limits: Limits) -> Report:
    """The same of a file that has been read."""
    return grade(data, own_assignment(cells, path.stem), limits=limits, sandbox=False)


def read_file(path: Path) -> tuple[bytes, tuple[Cell, ...]]:
    """A notebook's bytes and cells. Raises ``UserError`` where it cannot be read."""
    try:
        data = path.read_bytes()
        return data, read_cells(data)
    except FileNotFoundError:
        raise UserError(
            f"there is no file {path}: name your notebook, say 02_mixing.ipynb"
        ) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except Unreadable as error:
        raise UserError(f"cannot read {path}: {error}; download the notebook again") from None


def own_assignment(cells: tuple[Cell, ...], file_stem: str) -> Assignment:
    """An assignment of one test for each exercise that a student's notebook is about.

    The student's copies of other tests (``check_…``, ``points_…``, ``hidden_…``) do not run, but
    they say which variant was asked for.
    """
    from attncourse.checks import exercises
    from attncourse.grading.submission.varied import variants_asked

    stem = chapter_of(cells, file_stem)
    chosen = [e for e in exercises().values() if e.target.split(".")[0] == stem]
    silent = [Cell("", grade_id=c.grade_id, locked=True) for c in cells if c.test and c.grade_id]
    asked = variants_asked(cell.source for cell in cells if cell.code)
    tests = [
        Cell(
            POINTS.format(target=e.target, name=e.name, variant=asked.get(e.target, "")),
            grade_id=e.target,
            grade=True,
            locked=True,
            points=e.points,
        )
        for e in chosen
    ]
    return Assignment(stem, (*dict.fromkeys(silent), *tests), released=False)


def chapter_of(cells: tuple[Cell, ...], file_stem: str) -> str:
    """The chapter a notebook belongs to: by its grade ids, or else by the file's name."""
    from attncourse.checks import exercises

    targets = [target.split(".") for target in exercises()]
    votes = [stem for stem, name in targets if of_exercise(cells, name)]
    if votes:
        return max(dict.fromkeys(votes), key=votes.count)
    stems = dict.fromkeys(stem for stem, _ in targets)
    named = [stem for stem in stems if re.search(rf"(^|[^a-z]){stem}([^a-z]|$)", file_stem)]
    if named:
        return max(named, key=len)
    raise UserError(
        f"cannot tell which exercises {file_stem}.ipynb is about: it has none of their cells; "
        f"name it after its chapter ({', '.join(stems)})"
    )


def of_exercise(cells: tuple[Cell, ...], name: str) -> bool:
    """Whether these cells are those of an assignment with this exercise."""
    ids = {cell.grade_id for cell in cells}
    return name in ids or f"check_{name}" in ids
