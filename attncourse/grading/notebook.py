"""Notebooks as far as grading needs them: bytes in, cells out."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attncourse.grading.errors import Unreadable, UserError


@dataclass(frozen=True)
class Cell:
    """One code or Markdown cell, with what nbgrader's metadata says of it."""

    source: str
    code: bool = True
    grade_id: str = ""
    grade: bool = False
    solution: bool = False
    locked: bool = False
    points: float = 0.0

    @property
    def test(self) -> bool:
        """Whether the instructor's version runs, whatever a submission holds in its place."""
        return self.code and not self.solution and (self.grade or self.locked)


@dataclass(frozen=True)
class Assignment:
    """What a submission is graded against: the instructor's cells, in order."""

    name: str
    cells: tuple[Cell, ...]

    @property
    def tests(self) -> dict[str, Cell]:
        """The cells that run in place of the submission's own, by grade id, in order."""
        return {c.grade_id: c for c in self.cells if c.test and c.grade_id}

    @property
    def graded(self) -> dict[str, Cell]:
        """The cells that earn points without a person's judgement, by grade id, in order."""
        return {grade_id: c for grade_id, c in self.tests.items() if c.grade}

    @property
    def maximum(self) -> float:
        return math.fsum(cell.points for cell in self.graded.values())


def read_cells(data: bytes) -> tuple[Cell, ...]:
    """The cells of a notebook file (format 4, or 3 as older tools write it).

    Raises ``Unreadable`` where there is no telling what the cells are.
    """
    if not data.strip():
        raise Unreadable("the file is empty")
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Unreadable(f"line {line}: not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"line {error.lineno}: not valid JSON ({error.msg})") from None
    except RecursionError:
        raise Unreadable("not a notebook: nested too deeply") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if cells is None and isinstance(content, dict) and isinstance(content.get("worksheets"), list):
        sheets = [sheet for sheet in content["worksheets"] if isinstance(sheet, dict)]
        cells = [cell for sheet in sheets for cell in sheet.get("cells") or []]
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise Unreadable("valid JSON, but not a notebook: it has no list of cells")
    return tuple(cell_of(cell) for cell in cells)


def cell_of(raw: dict[str, Any]) -> Cell:
    """One cell from its JSON; whatever is missing or of the wrong type counts as not there."""
    source = raw.get("source", raw.get("input", ""))
    if isinstance(source, list):
        source = "".join(piece for piece in source if isinstance(piece, str))
    metadata = raw.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    marks = marks if isinstance(marks, dict) else {}
    grade_id, points = marks.get("grade_id"), marks.get("points")
    return Cell(
        source=source if isinstance(source, str) else "",
        code=raw.get("cell_type") == "code",
        grade_id=grade_id if isinstance(grade_id, str) else "",
        grade=marks.get("grade") is True,
        solution=marks.get("solution") is True,
        locked=marks.get("locked") is True,
        points=float(points) if isinstance(points, int | float) else 0.0,
    )


def read_assignment(path: Path) -> Assignment:
    """The assignment that an instructor's solved notebook defines; its name is the folder's."""
    try:
        cells = read_cells(path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except Unreadable as error:
        raise UserError(f"cannot read {path}: {error}; make it again: make exercises") from None
    assignment = Assignment(path.parent.name, cells)
    if not assignment.graded:
        raise UserError(f"{path} has no graded cells: make it again: make exercises")
    return assignment
