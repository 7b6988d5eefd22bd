"""Judging a student's own file without the instructor's notebook, by public checks alone."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import attncourse
from attncourse import STEMS
from attncourse.checks.index import index
from attncourse.checks.reading.cells import UNANSWERED
from attncourse.grading.errors import Unreadable, UserError
from attncourse.grading.files import explained_file_errors
from attncourse.grading.harmless import one_line
from attncourse.grading.jail.jail import missing_required_layers
from attncourse.grading.judge.judge import grade_submission, start_lanes
from attncourse.grading.limits import Limits
from attncourse.grading.machine import is_linux, slowness, system_name
from attncourse.grading.report import Report, count
from attncourse.grading.student.unjailed import judge_unjailed
from attncourse.grading.submission.notebook import Assignment, Cell, Cells, read_cells
from attncourse.grading.submission.source import names_in_cell
from attncourse.grading.submission.syntax import CellNames
from attncourse.grading.submission.varied import variants_asked

EXAMINE_SOURCE = """\
from attncourse.checks import examine as _examine
_examine("{target}", {name}, variant="{variant}", explain={explain}).earned
"""
OURS = """\
from types import ModuleType as _Module
_ours = _Module("ours")
exec({source!r}, vars(_ours))
{name} = _ours.{name}
"""  # an answer of ours, with the chapter's own text: in a jail the file is not there
UNJAILED = "{} has no jail as Linux has: your notebook ran without one, as in Jupyter"
CHECKED = re.compile(r"""\b(?:check|examine)\(\s*["'](\w+)\.\w+["']""")
PAGE = re.compile(r"\((https://colab[^\s)]*)/book/(\d\d_(\w+))\.ipynb\)")  # a page's badge
MAX_NAME_WIDTH = 60  # characters of a name that a notebook gives
SUBMITTED = "submitted"  # an instructor's folder of what students have handed in
File = tuple[Path, bytes, Cells]  # a notebook that has been read
NUMBERED = re.compile(r"\bcell (\d+)\b")


def check_file(path: Path, limits: Limits) -> Report:
    """Return the report on the exercises of a student's notebook.

    Raises ``UserError`` for a notebook without exercises, a page's for example.
    """
    data, cells = read_own_notebook(path)
    if page := page_of(cells):
        place, folder, stem = page
        raise UserError(
            f"{path} is the notebook of chapter {STEMS.index(stem) + 1}'s page, which has no "
            f"exercises: they are in exercises/{folder}/{folder}.ipynb, "
            f"{place}/exercises/{folder}/{folder}.ipynb"
        )
    report = check_cells(path, data, cells, limits.stretched(slowness()))
    unjailed = () if is_linux() else (UNJAILED.format(system_name()),)
    return replace(report, notes=(*report.notes, *open_questions(cells), *unjailed))


def open_questions(cells: Cells) -> list[str]:
    """Return a line for each question that no check can judge: whether it is answered."""
    states = {True: "is answered", False: "is not answered yet"}
    return [
        f"{one_line(cell.grade_id, MAX_NAME_WIDTH)} {states[UNANSWERED not in cell.source]}: "
        f"a person gives its {count(cell.points, 'point')}"
        for cell in cells
        if cell.question
    ]


def check_cells(
    path: Path, data: bytes, cells: Cells, limits: Limits, explain: bool = True
) -> Report:
    """Return the report on a notebook's cells, which run in a jail wherever there is one.

    Without a jail, ``UserError`` is raised for what somebody else has handed in: only one's own
    work is trusted. Without ``explain``, verdicts say what is right, and not why something is
    wrong.
    """
    sandbox = not missing_required_layers()
    if not sandbox and (student := handed_in_by(path)):
        raise UserError(
            f"{path} was handed in by {one_line(student)}, and there is no jail here to run it in: "
            "attncourse doctor says what is missing"
        )
    assignment = own_assignment(cells, path.stem, explain)
    if is_linux():
        report = grade_submission(data, assignment, limits=limits, sandbox=sandbox)
    else:
        variants = variants_asked(cell.source for cell in cells if cell.code)
        report = judge_unjailed(cells, assignment, variants, limits, explain)
    return replace(report, notes=tuple(note_with_names(note, cells) for note in report.notes))


def check_each(files: Sequence[File], limits: Limits, explain: bool = True) -> Iterator[Report]:
    """Yield the reports on several files, in order, judged on all processors at a time.

    Without ``explain``, verdicts say what is right, and not why something is wrong. What their
    workers import is loaded once for all.
    """
    if not files:
        return
    assignments = [own_assignment(cells, path.stem) for path, _, cells in files]
    if is_linux():
        start_lanes(assignments, limits, sandbox=not missing_required_layers())
    with ThreadPoolExecutor(min(len(files), os.cpu_count() or 1)) as pool:
        paths, data, cells = zip(*files, strict=True)
        check = partial(check_cells, limits=limits, explain=explain)
        yield from pool.map(check, paths, data, cells)


def handed_in_by(path: Path) -> str:
    """Return whose a file in submitted/STUDENT/… is; "" if it is not in such a folder."""
    folders = path.resolve().parts[:-1]
    place = folders.index(SUBMITTED) + 1 if SUBMITTED in folders else len(folders)
    return "".join(folders[place : place + 1])


def read_own_notebook(path: Path) -> tuple[bytes, Cells]:
    """Return a notebook's bytes and cells; raise ``UserError`` if it cannot be read."""
    with explained_file_errors(path, doing="read"):
        if not path.exists():
            raise UserError(f"there is no file {path}: name your notebook, say 02_mixing.ipynb")
        data = path.read_bytes()
    try:
        return data, read_cells(data)
    except Unreadable as error:
        raise UserError(f"cannot read {path}: {error}; download the notebook again") from None


def page_of(cells: Cells) -> tuple[str, str, str] | None:
    """Return the course's address in Colab, folder and chapter of a page's notebook; or None."""
    if any(cell.grade_id for cell in cells):
        return None
    badge = PAGE.search(cells[0].source) if cells else None
    return (badge[1], badge[2], badge[3]) if badge and badge[3] in STEMS else None


def own_assignment(cells: Cells, file_stem: str, explain: bool = True) -> Assignment:
    """Return an assignment that has one test for each exercise of a student's notebook.

    The student's copies of other tests (``check_…``, ``points_…``, ``hidden_…``) do not run, but
    they say which variant is asked for.
    """
    stem = chapter_of(cells, file_stem)
    chosen = [exercise for exercise in index().values() if exercise.stem == stem]
    torch = any(re.search(r"^[ \t]*(import|from) torch\b", c.source, re.M) for c in cells if c.code)
    chapter_source = Path(attncourse.__file__).with_name(f"{stem}.py").read_text(encoding="utf-8")
    answers = [Cell("import torch" if torch else "", solution=True)]  # which a lane starts with
    answers += [
        Cell(
            OURS.format(source=chapter_source, name=exercise.name),
            grade_id=exercise.name,
            solution=True,
        )
        for exercise in chosen
    ]
    asked_for = {
        exercise.name for exercise in chosen
    }  # where no test's cell was taken for an answer
    silent = [
        Cell("", grade_id=c.grade_id, locked=True)
        for c in cells
        if c.test and c.grade_id and not asked_for & (names_in_cell(c.source) or CellNames()).bound
    ]
    variants = variants_asked(cell.source for cell in cells if cell.code)
    tests = []
    for exercise in chosen:
        variant = variants.get(exercise.target, "")
        asks = {"target": exercise.target, "name": exercise.name, "variant": variant}
        source = EXAMINE_SOURCE.format(**asks, explain=explain)
        about = {"grade_id": exercise.target, "points": exercise.points}
        tests.append(Cell(source, grade=True, locked=True, **about))
    return Assignment(stem, (*answers, *dict.fromkeys(silent), *tests), released=False)


def chapter_of(cells: Cells, file_stem: str) -> str:
    """Return the stem of a notebook's chapter: by its grade ids, or else by the file's name."""
    ids = {cell.grade_id for cell in cells}
    votes = [k.stem for k in index().values() if k.name in ids or f"check_{k.name}" in ids]
    votes += [stem for c in cells for stem in CHECKED.findall(c.source) if stem in STEMS]
    if votes:
        return Counter(votes).most_common(1)[0][0]
    stems = [stem for stem in STEMS if re.search(rf"(^|[^a-z]){stem}([^a-z]|$)", file_stem)]
    if stems:
        return max(stems, key=len)
    raise UserError(
        f"cannot tell which exercises {file_stem}.ipynb is about: it has none of their cells; "
        f"name it after its chapter ({', '.join(STEMS)})"
    )


def note_with_names(note: str, cells: Cells) -> str:
    """Return a note in which exercises stand for numbers of cells, which no notebook shows."""

    def name_of_cell(match: re.Match[str]) -> str:
        """Return what stands for a cell's number: its exercise, or the number."""
        above = cells[: int(match[1])]
        answers = [cell.grade_id for cell in above if cell.solution and cell.grade_id]
        if not answers:
            return "a cell above the exercises"
        is_answer_cell = above[-1].grade_id == answers[-1]
        return f"the cell of {answers[-1]}" if is_answer_cell else f"a cell below {answers[-1]}"

    return NUMBERED.sub(name_of_cell, note)
