"""What grading says of one submission."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class CellResult:
    """The points of one graded cell, and why they are not full."""

    points: float
    maximum: float
    message: str = ""


@dataclass(frozen=True)
class Report:
    """One submission's grade. Everything in it is plain data.

    ``status``: "graded", "interrupted" (some of it could not be run to its end), "unreadable" or
    "missing". ``misconceptions`` are pairs (target, name) in the order they were seen.
    ``verdicts`` keep the seeds with which each verdict can be made again.
    """

    student: str
    assignment: str
    status: str
    cells: dict[str, CellResult]
    misconceptions: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    verdicts: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    duration: float = 0.0

    @property
    def points(self) -> float:
        return sum(cell.points for cell in self.cells.values())

    @property
    def maximum(self) -> float:
        return sum(cell.maximum for cell in self.cells.values())
