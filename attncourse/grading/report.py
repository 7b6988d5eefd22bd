"""The report of one graded submission."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 3
TOLERANCE = 1e-9  # points that are sums of floats
UNFORESEEN = " passes its check, but "  # in a note on a hidden test that fails all the same


@dataclass(frozen=True)
class CellResult:
    """The points of one graded cell, and why they are not full."""

    points: float
    maximum: float
    message: str = ""


@dataclass(frozen=True)
class Report:
    """One submission's grade. Everything in it is plain data: text, numbers, lists, dicts.

    ``status``: "graded", "interrupted" (some of it could not be run to its end), "unreadable" or
    "missing". ``cells`` are the graded cells by grade id. ``mistakes`` are pairs
    (target, name) in the order they were seen. ``notes`` are sentences that can be forwarded to
    the student, ``attention`` says why a person should look. ``verdicts`` are dicts with the keys
    ``cell`` (the grade id of the test it was made in), ``target``, ``passed``, ``earned``,
    ``possible``, ``criteria`` (a list of name, passed, earned, possible, message),
    ``mistake``, ``explanation``, ``failed`` (names of criteria), ``reason``, ``seed`` and
    ``text``. With ``seed`` the whole report can be made again. ``limits`` has, for each limit
    that was measured, ``limit``, ``used`` and ``met``. ``sandbox`` is False for a run with
    --unsafe-no-sandbox. Of a file that holds both sides of a merge conflict, ``version`` is the
    number of the side that counts, from 0.
    """

    student: str
    assignment: str
    status: str
    cells: dict[str, CellResult]
    mistakes: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    attention: tuple[str, ...] = ()
    verdicts: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    seed: int = 0
    version: int = 0
    limits: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    duration: float = 0.0
    sandbox: bool = True

    @property
    def points(self) -> float:
        """The points of all cells together."""
        return math.fsum(cell.points for cell in self.cells.values())

    @property
    def maximum(self) -> float:
        """The points that all cells together can earn."""
        return math.fsum(cell.maximum for cell in self.cells.values())


def count(number: float, noun: str) -> str:
    """Return so many of something, in words: 1 point, 2.5 points."""
    return f"{number:g} {noun}{'' if number == 1 else 's'}"


def score_in_words(points: float, maximum: float) -> str:
    """Points as they are shown: 0.5 of 1 point."""
    return f"{points:g} of {count(maximum, 'point')}"


def exercise_of(grade_id: str) -> str:
    """Return the exercise that a graded cell belongs to: its visible and hidden tests are one.

    A student's own file has a test for each exercise, which is called as that is: kqv.project.
    """
    return grade_id.removeprefix("points_").removeprefix("hidden_").rpartition(".")[2]


def report_without_points(assignment: Any, status: str, reason: str, student: str = "") -> Report:
    """Return the report on a submission of which nothing could be run: zero, and why."""
    cells = {g: CellResult(0.0, cell.points, reason) for g, cell in assignment.graded.items()}
    return Report(student, assignment.name, status, cells, notes=(reason,), attention=(reason,))


def shown_mistakes(mistakes: Iterable[tuple[str, str]]) -> list[str]:
    """Mistakes as they are shown, each behind the name of its exercise."""
    return [f"{target.split('.')[-1]}: {name}" for target, name in mistakes]


def to_json(report: Report) -> dict[str, Any]:
    """Return a report as JSON can hold it, with the number of its schema."""
    cells = {name: vars(cell) for name, cell in report.cells.items()}
    return {"schema": SCHEMA} | vars(report) | {"cells": cells}


def report_from_json(data: dict[str, Any]) -> Report:
    """Return the report that ``to_json`` made this of.

    Raises ``ValueError`` where it is of another version.
    """
    if data.get("schema") != SCHEMA:
        raise ValueError(f"expected a report of schema {SCHEMA}, got {data.get('schema')!r}")
    fields = {name: value for name, value in data.items() if name != "schema"}
    fields["cells"] = {name: CellResult(**cell) for name, cell in data["cells"].items()}
    fields["mistakes"] = tuple((target, name) for target, name in data["mistakes"])
    for name in ("notes", "attention", "verdicts"):
        fields[name] = tuple(fields[name])
    return Report(**fields)
