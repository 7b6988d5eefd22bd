"""Notebooks as grading needs them: bytes in, cells out."""

import math
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from html import unescape
from pathlib import Path
from typing import Any

from attncourse.grading.errors import Unreadable, UserError
from attncourse.grading.submission.raw_cells import MAX_CELLS, raw_cells
from attncourse.grading.submission.source import (
    repaired_python,
    shortened_line,
    top_level_statements,
)
from attncourse.grading.submission.syntax import parse_quietly
from attncourse.grading.submission.text import conflict_sides, to_text

HIDDEN_TESTS_MARK = "BEGIN HIDDEN TESTS"  # in a test that students are not given
MAX_CODE_CHARS = 1_000_000  # characters
TOO_LONG = f"at most {MAX_CODE_CHARS:,} of code are read, so keep data in a file"
MAX_UNCUT_CHARS = 10_000  # characters of a cell that is never cut
SURROGATES = re.compile("[\ud800-\udfff]")
TAGS = re.compile(r"<[^<>]{1,200}>")
SIDES = {"<<<<<<<": 0, "=======": 1, ">>>>>>>": None}
MAX_LABEL_CHARS = 100  # characters of a mark with its name
CONFLICT = "it holds both sides of a merge conflict: each was graded, and the better one counts"


@dataclass(frozen=True)
class Cell:
    """A code or Markdown cell, with what nbgrader's metadata says of it."""

    source: str
    code: bool = True
    grade_id: str = ""
    grade: bool = False
    solution: bool = False
    locked: bool = False
    points: float = 0.0
    task: bool = False

    @property
    def question(self) -> bool:
        """True if the cell is answered in words, to which a person gives the points."""
        return self.grade and self.solution and not self.code

    @property
    def hides(self) -> bool:
        """True if the cell holds a hidden test: nothing of it is said in a submission's words."""
        return HIDDEN_TESTS_MARK in self.source

    @property
    def test(self) -> bool:
        """True if the instructor's version runs, whatever a submission holds in its place."""
        return self.code and not self.solution and (self.grade or self.locked)


Cells = tuple[Cell, ...]


@dataclass(frozen=True)
class Assignment:
    """The instructor's cells, in order, against which submissions are graded.

    ``released`` says whether students were given them, so that a submission lacks those it has not;
    ``follow_on``, whether an answer earns that is right, given right ones in place of wrong ones.
    ``added`` are the ids of cells that came later than the students' copies, which lack them.
    """

    name: str
    cells: Cells
    released: bool = True
    follow_on: bool = True
    added: tuple[str, ...] = ()

    @cached_property
    def tests(self) -> dict[str, Cell]:
        """Return the cells that run in place of the submission's own, by grade id, in order."""
        return {c.grade_id: c for c in self.cells if c.test and c.grade_id}

    @cached_property
    def graded(self) -> dict[str, Cell]:
        """Return the cells that earn points without a person's judgement, by grade id, in order."""
        return {grade_id: c for grade_id, c in self.tests.items() if c.grade}

    @property
    def maximum(self) -> float:
        """Return the points that all graded cells together can earn."""
        return math.fsum(cell.points for cell in self.graded.values())


@dataclass(frozen=True)
class Reading:
    """The cells of a submitted file, and notes for the student on what was mended.

    There are two ``versions`` if the file holds both sides of a merge conflict, else one.
    """

    versions: tuple[Cells, ...]
    notes: tuple[str, ...] = ()


def read_submission_cells(data: bytes) -> Reading:
    """Return the cells of a submitted file, read as tolerantly as a person would read it.

    Raises ``Unreadable``, and nothing else, if there is no telling what the cells are.
    """
    text, notes = to_text(data)
    versions, notes_on_cells = versions_of(text)
    mended: dict[Cells, None] = {}  # each once, in order
    for version in versions:
        cells, more_notes = mend_cells(version)
        mended[cells] = None
        notes_on_cells += more_notes
    return Reading(tuple(mended), (*notes, *dict.fromkeys(notes_on_cells)))


def read_cells(data: bytes) -> Cells:
    """Return the cells of a notebook that has one version, as an instructor's has.

    Raises ``Unreadable`` if there is no telling what the cells are.
    """
    versions = read_submission_cells(data).versions
    if len(versions) != 1:
        raise Unreadable("it holds a merge conflict that nobody has resolved")
    return versions[0]


def versions_of(text: str) -> tuple[list[Cells], list[str]]:
    """Return the cells of a text, as one or two versions, and notes on what was mended.

    There are two where the text holds merge conflicts.
    """
    both = conflict_sides(text)
    if both is None:
        return versions_of_cells(text)
    versions, notes = [], [CONFLICT]
    for side in both:
        with suppress(Unreadable):
            side_versions, more_notes = versions_of_cells(side)
            versions += side_versions
            notes += more_notes
    if not versions:
        line = text[: text.index("<<<<<<<")].count("\n") + 1
        raise Unreadable(f"line {line}: a merge conflict, and neither side of it is a notebook")
    return versions, notes


def versions_of_cells(text: str) -> tuple[list[Cells], list[str]]:
    """Return the cells of a text without conflicts in it, as one or two versions, and notes.

    There are two where cells hold conflicts.
    """
    raw, notes = raw_cells(text)
    if len(raw) > MAX_CELLS:
        raise Unreadable(f"it has more than {MAX_CELLS} cells: hand in only your answers")
    cells, more_notes = cut_to_room([cell_of(cell) for cell in raw])
    notes += more_notes
    split = [conflict_sides(cell.source) or (cell.source, cell.source) for cell in cells]
    versions = [
        tuple(replace(cell, source=source) for cell, source in zip(cells, side, strict=True))
        for side in zip(*split, strict=True)
    ]
    versions = [nbdime_side(version, n) for n, version in enumerate(versions)] or [()]
    if versions[0] == versions[-1]:
        return versions[:1], notes
    return versions, [*notes, CONFLICT]


def nbdime_side(cells: Cells, side: int) -> Cells:
    """Return the cells of one side of the conflicts that nbdime marks by cells of their own."""
    cells_of_side, open_side = [], None
    for cell in cells:
        text = unescape(TAGS.sub("", cell.source)).strip(" *\n") if not cell.code else ""
        mark = text[:7] if text[7:8] in ("", " ") and len(text) < MAX_LABEL_CHARS else ""
        if mark in SIDES:
            open_side = SIDES[mark]
        elif open_side in (None, side):
            cells_of_side.append(cell)
    return tuple(cells_of_side)


def cut_to_room(cells: list[Cell]) -> tuple[list[Cell], list[str]]:
    """Return the cells with at most so much code as is read, and notes on what was left out.

    The longest statements are left out.
    """
    pieces = {
        n: top_level_statements(c.source)
        for n, c in enumerate(cells)
        if c.code and len(c.source) > MAX_UNCUT_CHARS
    }
    over = sum(len(cell.source) for cell in cells if cell.code) - MAX_CODE_CHARS
    lengths = [(len(text), n, line) for n, texts in pieces.items() for line, text in texts.items()]
    notes, shortened = [], list(cells)
    for length, n, line in sorted(lengths, reverse=True):
        if over <= 0:
            break
        over -= length
        text = shortened_line(pieces[n].pop(line)[:200], 40)
        notes.append(f"cell {n + 1}: `{text}`, {length:,} characters, was left out: {TOO_LONG}")
        shortened[n] = replace(shortened[n], source="".join(pieces[n].values()))
    if over > 0:
        raise Unreadable(f"its code has {over + MAX_CODE_CHARS:,} characters: {TOO_LONG}")
    return shortened, notes


def cell_of(raw: dict[str, Any]) -> Cell:
    """Return a cell from its JSON; fields that are missing or of a wrong type are empty."""
    source = next((raw[key] for key in ("source", "input", "code", "text") if key in raw), "")
    if isinstance(source, list):
        source = joined_lines([piece for piece in source if isinstance(piece, str)])
    metadata = raw.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    marks = marks if isinstance(marks, dict) else {}
    points = marks.get("points")
    return Cell(
        source=encodable_text(source),
        code=raw.get("cell_type", "code" if "outputs" in raw else "markdown") == "code",
        grade_id=encodable_text(marks.get("grade_id")),
        points=float(points) if isinstance(points, int | float) else 0.0,
        **{mark: marks.get(mark) is True for mark in ("grade", "solution", "locked", "task")},
    )


def joined_lines(pieces: list[str]) -> str:
    """Return the text of a list of lines; lines without ends get them."""
    ended = any(piece.endswith("\n") for piece in pieces[:-1])
    return ("" if ended else "\n").join(pieces)


def encodable_text(text: Any) -> str:
    """Return a text with plain line ends that a file can hold; "" for what is no text."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n") if isinstance(text, str) else ""
    return SURROGATES.sub("\ufffd", plain)


def mend_cells(cells: Cells) -> tuple[Cells, list[str]]:
    """Return the cells with code repaired where that makes it Python, and notes.

    Invisible and typographic characters are repaired.
    """
    mended, notes = list(cells), []
    for number, cell in enumerate(cells, start=1):
        source = repaired_python(cell.source) if cell.code else None
        if source is not None:
            mended[number - 1] = replace(cell, source=source)
            notes.append(f"cell {number}: invisible characters or typographic quotes were replaced")
    return tuple(mended), notes


def read_assignment(path: Path, data: bytes) -> Assignment:
    """Return the assignment that an instructor's solved notebook, ``data``, defines.

    Its name is that of the folder in ``path``.
    """
    try:
        cells = read_cells(data)
    except Unreadable as error:
        raise UserError(f"cannot read {path}: {error}; make it again: make exercises") from None
    assignment = Assignment(path.parent.name, cells)
    if not any(cell.grade for cell in cells):
        raise UserError(f"{path} has no graded cells: make it again: make exercises")
    for grade_id, number in Counter(cell.grade_id for cell in cells if cell.grade_id).items():
        if number > 1:
            raise UserError(f"{path}: {number} cells are called {grade_id}: give each its own name")
    for grade_id, cell in assignment.graded.items():
        try:
            parse_quietly(cell.source)
        except SyntaxError as error:
            why = f"{error.msg} in line {error.lineno}"
            raise UserError(f"{path}: the test {grade_id} is no Python: {why}") from None
    return assignment
