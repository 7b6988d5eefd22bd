"""A student's answers as a package, ``mine``: their right answers, and ours for the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import attncourse
from attncourse import STEMS
from attncourse.checks.index import index
from attncourse.checks.showing.verdict import right_given_words
from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors
from attncourse.grading.harmless import one_line
from attncourse.grading.limits import Limits
from attncourse.grading.machine import slowness
from attncourse.grading.report import Report
from attncourse.grading.student import selfcheck
from attncourse.grading.student.package import (
    PACKAGE_ADVICE,
    ChapterParts,
    definitions_in,
    try_parts,
    write_package,
)
from attncourse.grading.student.progress import INSTRUCTORS, attempted_answers
from attncourse.grading.submission.notebook import Cell
from attncourse.grading.submission.source import python_alone
from attncourse.grading.submission.syntax import parse_or_none
from attncourse.practice.cells import is_for_practice

MISSING = "not written yet"
NO_PYTHON = "its cell is not Python"
IN_VARIANT = "right in the variant {}, while the package is in the book's convention"
TOGETHER = "passes alone, but not with the other parts: "
BECAUSE = "passes alone, but leans on more than is asked of your {}: "


@dataclass(frozen=True)
class Assembled:
    """The package that was made: its folder, its chapters, copies of files changed by hand."""

    folder: Path
    chapters: tuple[ChapterParts, ...]
    copies: tuple[Path, ...] = ()

    def __str__(self) -> str:
        """Return the lines that the command prints: whose each part is, and why."""
        parts = sum(len(chapter.why) for chapter in self.chapters)
        mine = sum(len(chapter.mine) for chapter in self.chapters)
        lines = [f"{mine} of {parts} parts are yours, in {self.folder}"]
        for chapter in self.chapters:
            for name, others in chapter.ours_needed.items():
                if name in chapter.mine:
                    lines.append(
                        f"{chapter.stem}.{name} is yours: right{right_given_words(others)}"
                    )
            lines += [f"{chapter.stem}.{n} is ours: {chapter.why[n]}" for n in chapter.ours]
        names = [f"from mine.{c.stem} import {c.mine[0]}" for c in self.chapters if c.mine]
        if names:
            lines.append(f"in Python, in the folder above: {names[-1]}")
        lines += [f"what you had changed by hand is kept in {path}" for path in self.copies]
        return "\n".join(lines)


def assemble_package(
    notebooks: Sequence[Path],
    folder: Path,
    limits: Limits,
    on_judged: Callable[[int, int, str], None] = lambda *_: None,
) -> Assembled:
    """Write the package ``mine`` of what these notebooks hold to ``folder``; return what was made.

    ``on_judged`` is called for each notebook that has been judged. Raises ``UserError`` for two
    notebooks of one chapter, for two students' notebooks, for one of another version of the course,
    and for a folder that holds anything else.
    """
    if folder.name != "mine":
        raise UserError(f"the package is called mine: expected a folder …/mine, got {folder}")
    require_ours(folder)
    require_one_student(notebooks)
    limits = limits.stretched(slowness())
    read: dict[str, selfcheck.File] = {}
    for path in notebooks:
        data, cells = selfcheck.read_own_notebook(path)
        if is_for_practice(cell.source for cell in cells):  # beside the others, with *.ipynb
            continue
        stem = selfcheck.chapter_of(cells, path.stem)
        require_this_version(path, stem, cells)
        if stem in read:
            raise UserError(
                f"two notebooks of chapter {stem}, {read[stem][0]} and {path}: name one of "
                "them, the one that is yours"
            )
        read[stem] = path, data, cells
    if notebooks and not read:
        raise UserError(f"{notebooks[0]} is for practice: name the notebooks of your exercises")
    chapters: dict[str, ChapterParts] = {}
    reports = selfcheck.check_each([*read.values()], limits, explain=False)
    for number, (stem, (path, _, cells)) in enumerate(read.items(), 1):
        report = next(reports)
        needed_by_name = {
            v["target"].split(".")[1]: v["given"] for v in report.verdicts if v["given"]
        }
        chapters[stem] = ChapterParts(
            stem, path, definitions_in(cells), why_unusable_answers(report, cells), needed_by_name
        )
        on_judged(number, len(read), path.name)
    chapters_mended = parts_given_right_ones(
        parts_that_fit([chapters[s] for s in STEMS if s in chapters], limits), limits
    )
    return Assembled(folder, tuple(chapters_mended), write_package(folder, chapters_mended))


def parts_that_fit(chapters: list[ChapterParts], limits: Limits) -> list[ChapterParts]:
    """Return the chapters without parts that pass alone and fail in the package."""
    while True:
        targets = [f"{c.stem}.{name}" for c in chapters for name in c.mine]
        broken = {t: reason for t, reason in try_parts(chapters, targets, limits).items() if reason}
        if not broken:
            return chapters
        explained = {t for t in broken if broken.keys() & set(called_by(t, chapters))}
        # The others are tried again with ours in place of these.
        for target in broken.keys() - explained or broken:
            reason = broken[target]
            cause = cause_of(target, chapters, limits)
            why = (BECAUSE.format(cause) if cause else TOGETHER) + reason
            chapters = without_part(target, why, chapters)


def without_part(target: str, why: str, chapters: Sequence[ChapterParts]) -> list[ChapterParts]:
    """Return the chapters with our answer for one part, and why it is not the student's."""
    stem, name = target.split(".")
    return [c.changed(**{name: why}) if c.stem == stem else c for c in chapters]


def cause_of(target: str, chapters: Sequence[ChapterParts], limits: Limits) -> str:
    """Return the one part that lets a broken part pass if ours is in its place; "" for none."""
    for dependency in called_by(target, chapters):
        if not any(
            try_parts(without_part(dependency, "ours", chapters), [target], limits).values()
        ):
            return dependency
    return ""


def called_by(target: str, chapters: Sequence[ChapterParts]) -> list[str]:
    """Return the parts that one of the student's parts uses, itself or through helpers."""
    stem, name = target.split(".")
    chapter = next(c for c in chapters if c.stem == stem)
    read, todo = set(), {name}
    while todo:
        read |= todo
        pieces = [piece for piece in chapter.code if piece.bound & todo]
        todo = {n for piece in pieces for n in piece.read} - read
    return [f"{c.stem}.{n}" for c in chapters for n in c.mine if n in read - {name}]


def parts_given_right_ones(chapters: list[ChapterParts], limits: Limits) -> list[ChapterParts]:
    """Return the chapters, with parts that are right if a wrong one they call is ours."""
    for place, chapter in enumerate(chapters):
        for name in chapter.ours:
            chapter = chapters[place]
            pieces = [piece for piece in chapter.code if name in piece.bound]
            called = set().union(*(piece.read for piece in pieces)) & set(chapter.ours) - {name}
            if not called:
                continue
            needed_by_name = chapter.ours_needed | {name: sorted(called)}
            mended = replace(chapter.changed(**{name: ""}), ours_needed=needed_by_name)
            changed = [*chapters[:place], mended, *chapters[place + 1 :]]
            if not any(try_parts(changed, [f"{chapter.stem}.{name}"], limits).values()):
                chapters = changed
    return chapters


def require_ours(folder: Path) -> None:
    """Raise ``UserError`` if a folder of that name holds anything but such a package."""
    with explained_file_errors(folder, PACKAGE_ADVICE):
        is_other_folder = (
            folder.exists() and not (folder / "__init__.py").is_file() and any(folder.iterdir())
        )
    if is_other_folder:
        raise UserError(f"{folder} holds something else: move it, or name another folder with -o")


def require_one_student(notebooks: Sequence[Path]) -> None:
    """Raise ``UserError`` if the notebooks are in several students' folders in ``submitted``."""
    students = sorted({selfcheck.handed_in_by(path) for path in notebooks} - {""})
    if len(students) > 1:
        raise UserError(
            f"these are notebooks of {' and '.join(students)}: name one student's, a package is "
            "made of one student's answers"
        )


def require_this_version(path: Path, stem: str, cells: Sequence[Cell]) -> None:
    """Raise ``UserError`` if a notebook is of another version of the course."""
    if any(INSTRUCTORS in cell.source for cell in cells):
        raise UserError(f"{path} is an instructor's notebook: it holds the answers")
    known_exercises = {exercise.name for exercise in index().values() if exercise.stem == stem}
    answered_exercises = {c.grade_id for c in cells if c.solution and c.code}
    if unknown := answered_exercises - known_exercises:
        raise UserError(
            f"{path} asks for {one_line(', '.join(sorted(unknown)), 200)}, which attncourse "
            f"{attncourse.__version__} does not know: install the version the notebook is of, "
            "or download the notebook again and copy your answers"
        )


def why_unusable_answers(report: Report, cells: Sequence[Cell]) -> dict[str, str]:
    """Return, by exercise, why the student's answer cannot be used; "" if it can."""
    verdicts = {verdict["target"]: verdict for verdict in report.verdicts}
    answers = [cell for cell in cells if cell.solution and cell.code]
    broken = {cell.grade_id for cell in answers if parse_or_none(python_alone(cell.source)) is None}
    reason_of, written = {}, attempted_answers(cells)
    for target, cell in report.cells.items():
        verdict, name = verdicts.get(target), target.split(".")[1]
        if verdict and verdict["passed"]:
            variant = verdict.get("variant")
            reason_of[name] = IN_VARIANT.format(variant) if variant else ""
        elif name in broken:
            reason_of[name] = NO_PYTHON
        elif verdict["unwritten"] if verdict else name not in written:
            reason_of[name] = MISSING
        else:
            message = (verdict and verdict["reason"]) or cell.message  # a check says why
            reason_of[name] = message.splitlines()[0].split(" (in the line")[0]
    return reason_of
