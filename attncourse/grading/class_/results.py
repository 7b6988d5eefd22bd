"""One student's result of an assignment, and a class's."""

import math
from dataclasses import dataclass, field

from attncourse.grading.class_.scores import Person
from attncourse.grading.report import CellResult


@dataclass(frozen=True)
class Result:
    """One student and one assignment: the points that count, and what grading had to say.

    ``status`` is the report's, or "graded" where the gradebook alone knows of a submission.
    ``source`` says where ``cells`` come from, "gradebook" or "report". ``manual`` are the cells
    that a person has scored.
    """

    person: Person
    assignment: str
    status: str
    cells: dict[str, CellResult]
    source: str = "gradebook"
    penalty: float = 0.0
    timestamp: str = ""
    manual: tuple[str, ...] = ()
    misconceptions: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    attention: tuple[str, ...] = ()

    @property
    def student(self) -> str:
        return self.person.id

    @property
    def name(self) -> str:
        """ "Last, First", as far as it is known."""
        return ", ".join(part for part in (self.person.last_name, self.person.first_name) if part)

    @property
    def handed_in(self) -> bool:
        return self.status != "missing"

    @property
    def raw(self) -> float:
        return math.fsum(cell.points for cell in self.cells.values())

    @property
    def score(self) -> float:
        """The final score: a late penalty takes away what is there, and no more."""
        return max(0.0, self.raw - self.penalty)

    @property
    def maximum(self) -> float:
        return math.fsum(cell.maximum for cell in self.cells.values())


@dataclass(frozen=True)
class ClassResults:
    """An assignment's results in the order of the students' ids.

    ``explanations`` holds, for each misconception that was seen, what one student was told.
    """

    assignment: str
    results: tuple[Result, ...]
    explanations: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def cells(self) -> dict[str, float]:
        """The graded cells in their order, with their points."""
        found: dict[str, float] = {}
        for result in self.results:
            for name, cell in result.cells.items():
                found.setdefault(name, cell.maximum)
        return found
