"""Everything that is generated: notebooks, the README's table, the package's index of exercises.

    python tools/exercises.py            writes what is stale
    python tools/exercises.py --check    only names it, and exits 1 when there is any

A chapter's answers are written by hand in `solutions/02_mixing/02_mixing.py`; from them come the
solved notebook beside it and, through nbgrader's own generate_assignment, the students' notebook
in `exercises/`. What the checks know of an exercise is written in where the source says
`<!-- facts: mix -->`, and into the points of its graded cell; the numbered list behind
`<!-- hints: mix -->` is folded, hint by hint.
All of it is a function of the sources: a second run changes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import colab
import jupytext
import nbformat
import rubrics
from course import ROOT, Chapter, Course, CourseError, load
from progress import Progress, status_of

from attncourse.checks import Exercise, exercises
from attncourse.checks.exercise import HIDDEN_POINTS
from attncourse.checks.index import name_of_place
from attncourse.grading.course.variants import VARIANTS_FILE
from attncourse.grading.driver.rehearsal import failures_of
from attncourse.grading.errors import UserError
from attncourse.grading.submission.notebook import read_assignment

INDEX = "attncourse/checks/index.json"
RELEASED = ROOT / "_build" / ".released"  # what nbgrader made, by what it was made of
START, END = "<!-- chapters -->", "<!-- /chapters -->"
GO_ON = "raises-exception"  # the tag with which *Run All* goes on after a cell that fails
PROGRESS = (
    "## How far you are\n\nWhat the checks said when they were last run, and what comes next."
)
PROGRESS_CODE = 'from attncourse.checks import progress\n\nprogress("{stem}")'
MARKER = r"<!-- (facts|hints): (\w+) -->((?:\n+\d+\. .+(?:\n {2,}.+)*)*)"  # and a list behind it
CELL_ROLES = {  # of a graded cell, by its id's prefix: the short metadata that its source must have
    "": {"solution": True},
    "check_": {"locked": True},
    "points_": {"grade": True, "locked": True},
    "hidden_": {"grade": True, "locked": True},
}


CUSTOM_PREFIX = "own_"  # begins the id of a graded cell that belongs to no exercise


def split_grade_id(grade_id: str, names: set[str]) -> tuple[str, str] | None:
    """Return `check_mix` as (`check_`, `mix`), when mix is an exercise of the chapter."""
    for prefix in CELL_ROLES:
        if grade_id.startswith(prefix) and grade_id[len(prefix) :] in names:
            return prefix, grade_id[len(prefix) :]
    return None


def solved(course: Course, chapter: Chapter, exercises: dict[str, Exercise]) -> str:
    """Return the solved notebook of a chapter from its source and its exercises by name."""
    path = f"solutions/{chapter.folder}/{chapter.folder}.py"
    source: Any = jupytext.read(course.root / path, fmt="py:percent")
    seen: set[str] = set()
    cells, begun = [], False
    for number, cell in enumerate(source.cells, start=1):
        short = cell.metadata.get("nbgrader")
        metadata: dict[str, Any] = {}
        text = cell.source.strip("\n")
        if rubrics.is_question(short) and cell.cell_type == "markdown":
            marks, text = rubrics.question_cell(short, text, path)
            metadata = {"nbgrader": marks}
        elif short is not None:
            metadata = {"nbgrader": complete(short, exercises, path)}
        if short is not None:
            if short["grade_id"] in seen:
                raise CourseError(f"{path}: the grade_id {short['grade_id']!r} is used twice")
            seen.add(short["grade_id"])
        tags = [*cell.metadata.get("tags", ())]
        begun = begun or short is not None
        if begun and cell.cell_type == "code":  # the first answer, and all that is behind it
            tags.append(GO_ON)
        if tags:
            metadata["tags"] = tags
        if cell.cell_type == "markdown":
            text = fill(text, exercises, seen, path)
        new = colab.notebook_cell(number, cell.cell_type, text, metadata)
        if short is not None:
            new.id = short["grade_id"]
        cells.append(new)
    parts = [*CELL_ROLES, "facts: ", "hints: "]
    missing = [prefix + name for name in exercises for prefix in parts if prefix + name not in seen]
    if missing:
        raise CourseError(f"{path}: there is no cell or marker {', '.join(missing)}")
    if cells[0].cell_type != "markdown" or not cells[0].source.startswith("# "):
        raise CourseError(f"{path}: the first cell is Markdown and begins with the title")
    title, _, rest = cells[0].source.partition("\n")
    badge = course.badge(f"exercises/{chapter.folder}/{chapter.folder}.ipynb")
    cells[0].source = f"{title}\n\n{badge}\n{rest}".rstrip("\n")
    cells.insert(1, colab.notebook_cell(0, "code", course.install(chapter.stem), colab.FOLDED))
    cells[1].id = "install"
    cells += [
        colab.notebook_cell(len(cells), "markdown", PROGRESS, {}),
        colab.notebook_cell(len(cells) + 1, "code", PROGRESS_CODE.format(stem=chapter.stem), {}),
    ]
    cells[-2].id, cells[-1].id = "progress-title", "progress"
    return colab.as_notebook(cells)


def fill(text: str, exercises: dict[str, Exercise], seen: set[str], path: str) -> str:
    """Return a Markdown cell with its markers filled by what the checks know, its hints folded."""

    def filled(match: re.Match) -> str:
        kind, name, listed = match.groups()
        marker = f"<!-- {kind}: {name} -->"
        if name not in exercises:
            raise CourseError(f"{path}: {marker}: the checks have no exercise {name!r}")
        seen.add(f"{kind}: {name}")
        if kind == "facts":
            return facts(exercises[name]) + listed
        if len(hints := items(listed)) < 2:
            raise CourseError(f"{path}: {marker}: expected two or more behind it: 1. …, 2. …")
        return folded_hints(hints)

    return re.sub(MARKER, filled, text)


def facts(exercise: Exercise) -> str:
    """Return the line of an exercise's difficulty, time, points and section."""
    stars = "●" * exercise.difficulty + "○" * (3 - exercise.difficulty)
    return (
        f"*Difficulty {stars} · about {exercise.minutes} minutes · {exercise.points} points, "
        f"and {HIDDEN_POINTS} for further tests · {exercise.section}*"
    )


def items(listed: str) -> list[str]:
    """Return the items of a numbered list, each as one line."""
    return [" ".join(item.split()) for item in re.split(r"^\d+\. ", listed, flags=re.M)[1:]]


def folded_hints(hints: list[str]) -> str:
    """Return hints that a reader unfolds one after the other."""
    return "\n\n".join(
        f"<details>\n<summary>Hint {i} of {len(hints)}</summary>\n\n{hint}\n\n</details>"
        for i, hint in enumerate(hints, start=1)
    )


def complete(short: dict, exercises: dict[str, Exercise], path: str) -> dict:
    """Return nbgrader's full cell metadata from the few words in the source."""
    grade_id, names = short.get("grade_id", ""), set(exercises)
    if grade_id.startswith(CUSTOM_PREFIX):
        return custom_test_metadata(short, path)
    known = split_grade_id(grade_id, names)
    if known is None:
        raise CourseError(
            f"{path}: the grade_id {grade_id!r} is none of x, check_x, points_x, hidden_x "
            f"for an exercise x of attncourse.checks ({', '.join(sorted(names)) or 'none'}), "
            f"and does not begin with {CUSTOM_PREFIX}, as that of a graded cell of your own does"
        )
    prefix, name = known
    worth = short.get("points")
    flags = {k: v for k, v in short.items() if k not in ("grade_id", "points") and v}
    if flags != CELL_ROLES[prefix]:
        raise CourseError(f"{path}: {grade_id} has {flags}, it should have {CELL_ROLES[prefix]}")
    if worth != (HIDDEN_POINTS if prefix == "hidden_" else None):
        raise CourseError(
            f"{path}: {grade_id}: a hidden cell is worth {HIDDEN_POINTS} point, the checks say "
            f"what others are; for more points add a graded cell of your own, {CUSTOM_PREFIX}{name}"
        )
    full = {"grade": False, "locked": False, "solution": False} | CELL_ROLES[prefix]
    full |= {"grade_id": grade_id, "schema_version": 3, "task": False}
    if full["grade"]:
        full["points"] = HIDDEN_POINTS if prefix == "hidden_" else exercises[name].points
    return full


def custom_test_metadata(short: dict, path: str) -> dict:
    """Return the metadata of a graded test that an instructor has added, or raise."""
    required_keys = {"grade_id", "grade", "locked", "points"}
    worth = short.get("points")
    if set(short) != required_keys or short["grade"] is not True or short["locked"] is not True:
        raise CourseError(
            f"{path}: {short['grade_id']}: a graded cell of your own has "
            f'"grade": true, "locked": true and its "points", got {short}'
        )
    if not isinstance(worth, int | float) or isinstance(worth, bool) or worth <= 0:
        raise CourseError(f"{path}: {short['grade_id']}: expected points above 0, got {worth!r}")
    return {"solution": False, "schema_version": 3, "task": False, **short}


def released(course: Course, answers: dict[str, str]) -> dict[str, str]:
    """Return the students' notebooks, by folder.

    nbgrader makes them from what has changed; what it made of the same answers before is kept.
    """
    settings, variants = course.root / "nbgrader_config.py", course.root / VARIANTS_FILE
    if variants.exists():  # what nbgrader makes then depends on the checks as well
        return generate_assignments(settings, variants, answers)
    same = (Path(__file__).read_bytes(), version("nbgrader").encode(),
            settings.read_bytes() if settings.exists() else b"")  # fmt: skip
    released_before = {
        folder: RELEASED / f"{digest(*same, folder.encode(), text.encode())}.ipynb"
        for folder, text in answers.items()
    }
    new = {folder: text for folder, text in answers.items() if not released_before[folder].exists()}
    for folder, text in generate_assignments(settings, variants, new).items():
        replace(released_before[folder], text)
    return {folder: path.read_text(encoding="utf-8") for folder, path in released_before.items()}


def digest(*parts: bytes) -> str:
    """Return one hash of all parts; the same bytes cut elsewhere have another."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8) + part)
    return hasher.hexdigest()


def replace(path: Path, text: str) -> None:
    """Write a file at one stroke: others may read it meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as new:
        new.write(text)
    os.replace(new.name, path)


def generate_assignments(settings: Path, variants: Path, answers: dict[str, str]) -> dict[str, str]:
    """Return the students' notebooks, by folder, made by nbgrader in a course of its own."""
    if not answers:
        return {}
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config, PyFileConfigLoader

    config = Config()
    if settings.exists():
        config.merge(PyFileConfigLoader(settings.name, path=str(settings.parent)).load_config())
    notebooks = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        config.CourseDirectory.root = str(root)
        # No gradebook is made, which would take longest; nor is one of the user's settings opened.
        config.CourseDirectory.db_url = f"sqlite:///{root / 'gradebook.db'}"
        config.GenerateAssignment.no_database = True
        config.SaveCells.enabled = False
        config.CourseDirectory.source_directory = "solutions"
        config.CourseDirectory.release_directory = "exercises"
        # nbgrader reports each step; what matters comes back in its answer.
        config.NbGraderAPI.log_level = logging.CRITICAL
        if variants.exists():  # what was released in a variant stays in it
            shutil.copy(variants, root)
        for name, text in answers.items():
            source = root / "solutions" / name / f"{name}.ipynb"
            source.parent.mkdir(parents=True)
            source.write_text(text, encoding="utf-8")
        api = NbGraderAPI(config=config)
        api.log.setLevel(logging.CRITICAL)
        progress = Progress(len(answers))
        for name in answers:
            result = api.generate_assignment(name, force=True, create=True)
            if not result["success"]:
                raise CourseError(f"nbgrader cannot release {name}:\n{result.get('log') or result}")
            made = root / "exercises" / name / f"{name}.ipynb"
            book: Any = nbformat.read(made, as_version=4)
            notebooks[name] = colab.as_notebook(book.cells)
            progress.done(f"exercises/{name}")
    return notebooks


def known(course: Course, answers: dict[str, str]) -> str:
    """Return ``index.json``: what the package has to know without loading the checks."""
    pages = {chapter.stem: chapter.page for chapter in course.chapters}
    known_exercises = {}
    for target, e in exercises().items():
        heading = re.search("“(.+)”", e.section)
        place = f"{pages[e.stem]}.html" if e.stem in pages else ""
        if place and heading:
            place += f"#{name_of_place(heading[1])}"
        known_exercises[target] = {"points": e.points, "minutes": e.minutes, "page": place}
    facts_known = {
        "site": course.site,
        "exercises": known_exercises,
        "questions": question_points(course, answers),
    }
    return json.dumps(facts_known, indent=1) + "\n"


def question_points(course: Course, answers: dict[str, str]) -> dict[str, int]:
    """Return the points of what a person marks, by chapter and name."""
    cells = {
        c.stem: json.loads(answers[c.folder])["cells"]
        for c in course.chapters
        if c.folder in answers
    }
    marks = [(stem, cell["metadata"].get("nbgrader", {})) for stem in cells for cell in cells[stem]]
    return {f"{s}.{m['grade_id']}": m["points"] for s, m in marks if rubrics.is_question(m)}


def chapters_table(course: Course, index: colab.Index) -> str:
    """Return the README's table of chapters."""
    lines = ["| | chapter | page | exercises | in one piece |", "| --- | --- | --- | --- | --- |"]
    for chapter in course.chapters:
        title = index.titles.get(chapter.page, chapter.stem)
        exercise = f"exercises/{chapter.folder}/{chapter.folder}.ipynb"
        lines.append(
            f"| {chapter.number} | [{title}]({chapter.page}.md) "
            f"| {course.badge(chapter.page + '.ipynb')} | {course.badge(exercise)} "
            f"| {in_one_piece(course, chapter, index)} |"
        )
    return "\n".join(lines)


def in_one_piece(course: Course, chapter: Chapter, index: colab.Index) -> str:
    """Return a link to a chapter's mechanism as one listing, or "" if its page has none."""
    label = f"{chapter.stem}-in-one-piece"
    if not any(b.kind == "label" and b.text == label for b in index.blocks.get(chapter.page, ())):
        return ""
    place = name_of_place(label)  # as the page has it
    return f"[code]({course.site or ''}{chapter.page}.{'html' if course.site else 'md'}#{place})"


def generated_files(course: Course) -> tuple[dict[str, str], list[str]]:
    """Return every generated file's text by its path, and why others cannot be made."""
    by_stem: dict[str, dict[str, Exercise]] = {}
    for exercise in exercises().values():
        by_stem.setdefault(exercise.stem, {})[exercise.name] = exercise
    files, problems, answers = {}, [], {}
    index = colab.Index(course)
    for chapter in course.chapters:
        folder = chapter.folder
        if (course.root / f"{chapter.page}.md").exists():
            try:
                files[f"{chapter.page}.ipynb"] = colab.notebook(index, chapter.page)
            except CourseError as error:
                problems.append(str(error))
        else:
            problems.append(f"{chapter.page}.md is missing")
        if not (course.root / f"solutions/{folder}/{folder}.py").exists():
            problems.append(f"solutions/{folder}/{folder}.py is missing")
            continue
        try:
            answers[folder] = solved(course, chapter, by_stem.get(chapter.stem, {}))
        except CourseError as error:
            problems.append(str(error))
    if (course.root / "attncourse").is_dir():  # the package, where the course has its own
        files[INDEX] = known(course, answers)
    for folder, text in released(course, answers).items():
        files[f"solutions/{folder}/{folder}.ipynb"] = answers[folder]
        files[f"exercises/{folder}/{folder}.ipynb"] = text
    readme = (course.root / "README.md").read_text(encoding="utf-8")
    if START in readme and END in readme:
        between = re.compile(f"{START}.*{END}", re.DOTALL)
        text = f"{START}\n{chapters_table(course, index)}\n{END}"
        files["README.md"] = between.sub(lambda _: text, readme, count=1)
    else:
        problems.append(f"README.md has no lines {START} and {END} for the table of chapters")
    return files, problems


def strangers(course: Course, made: set[str]) -> Iterator[str]:
    """Yield files that no source makes any more, or that nbgrader did not make.

    A chapter's own stay while it fails.
    """
    made = made | {f"{c.page}.ipynb" for c in course.chapters}
    made |= {f"exercises/{c.folder}/{c.folder}.ipynb" for c in course.chapters}
    for folder in ("book", "exercises"):
        for path in sorted((course.root / folder).rglob("*")):
            name = path.relative_to(course.root).as_posix()
            generated = folder == "exercises" or path.suffix == ".ipynb"
            generated = generated and "/." not in f"/{name}"  # Jupyter's checkpoints
            if path.is_file() and generated and name not in made:
                yield f"{name} comes from no source; delete it"


def require_passing(course: Course, files: dict[str, str], stale: list[str]) -> None:
    """Raise ``CourseError`` where answers that changed fail one of their own tests."""
    changed = [
        Path(name)
        for name in stale
        if name.startswith("solutions/") and code_in(files[name]) != code_before(course.root / name)
    ]
    if not changed or sys.platform != "linux":  # where nothing can be graded
        return
    failed = []
    for path in changed:
        data = files[path.as_posix()].encode()
        tests = failures_of(read_assignment(path, data), data)
        failed += [f"{path}: its own answer fails {test}" for test in tests]
    if failed:
        raise CourseError("\n".join([*failed, "nothing was written: mend the test or the answer"]))


def code_before(path: Path) -> list[str]:
    """Return the code of a notebook that lies there; none where there is none."""
    return code_in(path.read_text(encoding="utf-8")) if path.exists() else []


def code_in(notebook: str) -> list[str]:
    """Return the code of a notebook's own cells: what it is judged by."""
    cells = json.loads(notebook)["cells"]
    code_cells = (cell for cell in cells if cell["cell_type"] == "code" and cell["id"] != "install")
    return ["".join(cell["source"]) for cell in code_cells]


def main() -> int:
    """Write the generated files, or with ``--check`` name stale ones; return 1 for problems."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="name stale files, write nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    started = time.perf_counter()
    try:
        course = load(arguments.root.resolve())
        files, problems = generated_files(course)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2
    problems += strangers(course, {*files})
    stale = []
    for name, text in files.items():
        path = course.root / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    for problem in problems:
        print(problem, file=sys.stderr)
    if arguments.check:
        for name in stale:
            print(f"stale: {name} (run make exercises)", file=sys.stderr)
        return 2 if problems else bool(stale)
    try:
        require_passing(course, files, stale)
    except (CourseError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    for name in stale:
        path = course.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name], encoding="utf-8")
    for name in files:
        if name.startswith("solutions/"):
            os.utime(course.root / name)  # newer than its source, by which grading knows
    seconds = time.perf_counter() - started
    print(f"exercises: {len(files)} files from their sources, {len(stale)} of them new or changed "
          f"({seconds:.0f} s)")  # fmt: skip
    return 2 if problems else 0


if __name__ == "__main__":
    sys.exit(status_of(main))
