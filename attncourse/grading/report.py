"""The report of one graded submission: the one definition of its format.

From the annotations below come the JSON Schema (``python tools/report_format.py --write``), the
table in the instructors' guide, and what is written and read.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, NotRequired, TypedDict

SCHEMA = 3
TOLERANCE = 1e-9  # points that are sums of floats
UNFORESEEN = " passes its check, but "  # in a note on a hidden test that fails all the same


class ReportedCriterion(TypedDict):
    """One criterion of an exercise."""

    name: Annotated[str, "What it asks for."]
    passed: Annotated[bool, "Whether it holds."]
    earned: Annotated[float, "Its points, none, or what it keeps where it only follows."]
    possible: Annotated[float, "Its points."]
    message: Annotated[str, "What went wrong, in words; empty if nothing did."]
    brief: NotRequired[Annotated[str, "The same in one line."]]
    follows: NotRequired[
        Annotated[bool, "Whether it fails for no other reason than the mistake that is named."]
    ]


class ReportedVerdict(TypedDict):
    """What one check or examination of an exercise has found."""

    cell: Annotated[str, "The grade id of the test that it was made in."]
    target: Annotated[str, "The exercise, say kqv.project."]
    variant: NotRequired[
        Annotated[str, "The variant that it was judged in; empty for the published one."]
    ]
    passed: Annotated[bool, "Whether every criterion holds."]
    earned: Annotated[
        float,
        "The points of the criteria that hold, and half of those that only follow from one slip.",
    ]
    possible: Annotated[float, "The points of all criteria."]
    criteria: Annotated[list[ReportedCriterion], "The criteria in order."]
    mistake: Annotated[
        str, "The name of the mistake behind a failure; empty if none was recognised."
    ]
    explanation: Annotated[str, "The sentence that puts a student right; empty without a mistake."]
    failed: Annotated[list[str], "The names of the criteria that do not hold."]
    symptom: NotRequired[
        Annotated[
            str,
            "What the results have to do with the right ones, where no mistake was recognised; "
            "else empty.",
        ]
    ]
    rest: NotRequired[
        Annotated[str, "What is still wrong once the mistake is mended; empty if nothing is."]
    ]
    worth: NotRequired[
        Annotated[
            float,
            "The points that mending the mistake alone brings, where something else is wrong too.",
        ]
    ]
    reason: Annotated[str, "Why the first of them does not hold, in one line."]
    unwritten: NotRequired[
        Annotated[bool, "Whether the answer is still the given raise NotImplementedError()."]
    ]
    section: NotRequired[Annotated[str, "The section of the book to read again."]]
    read: NotRequired[Annotated[str, "Its address on the web; empty where the book is not there."]]
    guide: NotRequired[
        Annotated[str, "The address of the field guide's entry on the mistake; empty without one."]
    ]
    given: NotRequired[
        Annotated[
            list[str],
            "Wrong answers that this one calls, in whose place ours stood for this verdict.",
        ]
    ]
    seed: Annotated[int, "The number with which this verdict can be repeated alone."]
    text: Annotated[str, "The verdict as a student reads it."]


class ReportedLimit(TypedDict):
    """How much of one limit was used, and whether it was met."""

    limit: Annotated[float, "The bound, in the unit of the setting of that name."]
    used: Annotated[float | None, "How much of it was used."]
    met: Annotated[bool, "Whether the submission ran into it."]


@dataclass(frozen=True)
class CellResult:
    """The result of one graded cell."""

    points: Annotated[float, "The points it earned."]
    maximum: Annotated[float, "The points it could earn.", {"minimum": 0}]
    message: Annotated[str, "Why points are missing; empty for full marks."] = ""


@dataclass(frozen=True)
class Report:
    """The grade of one submission, as in reports/ASSIGNMENT/STUDENT.json.

    Everything in it is plain data: texts, numbers, lists, dicts.
    """

    student: Annotated[str, "The name of the student's folder in submitted/."]
    assignment: Annotated[str, "The name of the assignment, say 05_kqv.", {"minLength": 1}]
    status: Annotated[
        str,
        '"graded"; "interrupted": some of it could not be run to its end, and what was earned'
        ' before counts; "unreadable": it is no notebook; "missing": nothing was handed in.',
        {"enum": ["graded", "interrupted", "unreadable", "missing"]},
    ]
    cells: Annotated[
        dict[str, CellResult],
        "The graded cells by grade id, in the assignment's order. Points of the judge: manual"
        " scores and late penalties are in the gradebook.",
    ]
    mistakes: Annotated[
        tuple[tuple[str, str], ...],
        "The mistakes that were recognised, in the order in which they were seen, each a "
        "target and a name.",
    ] = ()
    notes: Annotated[
        tuple[str, ...],
        "Sentences that can be forwarded to the student: what was mended, what was not "
        "attempted, what ended the run.",
    ] = ()
    attention: Annotated[
        tuple[str, ...], "Why a person should look at the submission. Empty if there is no reason."
    ] = ()
    verdicts: Annotated[
        tuple[Annotated[dict[str, Any], ReportedVerdict], ...],
        "Every verdict that a test made, in the order of the tests.",
    ] = field(default=(), repr=False)
    seed: Annotated[
        int,
        "The number that all random inputs came from. With it the whole report can be made again.",
    ] = 0
    version: Annotated[
        int,
        "Of a file that holds both sides of a merge conflict: the side that counts, from 0.",
        {"minimum": 0},
    ] = 0
    limits: Annotated[
        dict[str, Annotated[dict[str, Any], ReportedLimit]],
        "How each limit that was measured stood, by the limit's name.",
    ] = field(default_factory=dict, repr=False)
    duration: Annotated[float, "Seconds that grading the submission took.", {"minimum": 0}] = 0.0
    sandbox: Annotated[
        bool, "false for a run with --unsafe-no-sandbox: such points can have been forged."
    ] = True

    @property
    def points(self) -> float:
        """Return the points that all cells earned together."""
        return math.fsum(cell.points for cell in self.cells.values())

    @property
    def maximum(self) -> float:
        """Return the points that all cells together can earn."""
        return math.fsum(cell.maximum for cell in self.cells.values())


def count(number: float, noun: str) -> str:
    """Return a number with its noun, as in "1 point" and "2.5 points"."""
    return f"{number:g} {noun}{'' if number == 1 else 's'}"


def score_in_words(points: float, maximum: float) -> str:
    """Return points as they are shown, as in "0.5 of 1 point"."""
    return f"{points:g} of {count(maximum, 'point')}"


def exercise_of(grade_id: str) -> str:
    """Return the exercise of a graded cell: its visible and hidden tests belong to one.

    In a student's own file a test's grade id is its exercise: kqv.project.
    """
    return grade_id.removeprefix("points_").removeprefix("hidden_").rpartition(".")[2]


def report_without_points(assignment: Any, status: str, reason: str, student: str = "") -> Report:
    """Return the report on a submission of which nothing could run: zero points, and why."""
    cells = {g: CellResult(0.0, cell.points, reason) for g, cell in assignment.graded.items()}
    return Report(student, assignment.name, status, cells, notes=(reason,), attention=(reason,))


def shown_mistakes(mistakes: Iterable[tuple[str, str]]) -> list[str]:
    """Return mistakes as they are shown, "EXERCISE: MISTAKE"."""
    return [f"{target.split('.')[-1]}: {name}" for target, name in mistakes]


def to_json(report: Report) -> dict[str, Any]:
    """Return a report as data for JSON, with the version of its schema."""
    cells = {name: vars(cell) for name, cell in report.cells.items()}
    return {"schema": SCHEMA} | vars(report) | {"cells": cells}


def report_from_json(data: dict[str, Any]) -> Report:
    """Return the report of which ``to_json`` made this data.

    Raises ``ValueError`` if it is of another version.
    """
    if data.get("schema") != SCHEMA:
        raise ValueError(f"expected a report of schema {SCHEMA}, got {data.get('schema')!r}")
    values = {name: value for name, value in data.items() if name != "schema"}
    values["cells"] = {name: CellResult(**cell) for name, cell in data["cells"].items()}
    for part in fields(Report):
        if part.default == ():  # JSON has lists in the place of tuples
            values[part.name] = tuple(map(tuple_of_list, data[part.name]))
    return Report(**values)


def tuple_of_list(value: Any) -> Any:
    """Return a list as a tuple, another value as it is."""
    return tuple(value) if isinstance(value, list) else value
