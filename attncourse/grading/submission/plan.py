"""What runs for a submission: its own cells, with the instructor's tests in their places."""

from dataclasses import asdict, dataclass
from typing import Any

from attncourse.grading.submission.magics import without_magics
from attncourse.grading.submission.notebook import Assignment, Cell
from attncourse.grading.submission.parts import Part, as_released, bare, parts_of, shows_only
from attncourse.grading.submission.places import Places

PUT_BACK = "missing tests were put back"
__all__ = ["PUT_BACK", "Step", "arrange", "plan", "without_magics"]


@dataclass(frozen=True)
class Step:
    """One cell to run. ``name`` stands in messages; ``grade_id`` is set for tests only.

    ``kind`` is "cell" for the student's own, "given" for one that the submission holds as the
    assignment gave it or that the instructor has locked, and "test" for one that earns points.
    """

    name: str
    source: str
    kind: str = "cell"
    grade_id: str = ""

    @property
    def given(self) -> bool:
        return self.kind == "given"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def plan(cells: tuple[Cell, ...], assignment: Assignment) -> tuple[list[Step], list[str]]:
    """The steps to run for a submission's cells, in order, and notes on what was mended."""
    stands, notes = in_place(cells, assignment)
    given = given_texts(assignment)
    steps = []
    for stand in stands:
        if isinstance(stand, Cell):
            if stand.grade and stand.grade_id:
                steps.append(Step(f"test {stand.grade_id}", stand.source, "test", stand.grade_id))
            elif not shows_only(stand):
                name = f"cell {stand.grade_id or 'given'}"
                steps.append(Step(name, without_magics(stand.source)[0], "given"))
        elif stand.runs:
            source, changed = without_magics(stand.cell.source)
            kind = "given" if bare(stand.cell.source) in given else "cell"
            steps.append(Step(stand.name, source, kind))
            notes += [f"{stand.name}: {line} was not run" for line in changed]
    return steps, notes


def arrange(
    cells: tuple[Cell, ...], assignment: Assignment
) -> tuple[list[tuple[str, Cell]], list[str]]:
    """All cells of a submission as they are shown, each with a name, and the notes of ``plan``.

    Every test of the assignment is there exactly once, in the instructor's words.
    """
    stands, notes = in_place(cells, assignment)
    return [
        (f"test {stand.grade_id}" if stand.test else "cell", stand)
        if isinstance(stand, Cell)
        else (stand.name, stand.cell)
        for stand in stands
    ], notes


def in_place(
    cells: tuple[Cell, ...], assignment: Assignment
) -> tuple[list[Part | Cell], list[str]]:
    """The submission's parts with the instructor's cells among them, and notes."""
    parts, notes = parts_of(cells, assignment)
    waiting: dict[int, list[Cell]] = {}
    for place, cell in Places(parts, assignment).all():
        waiting.setdefault(place, []).append(cell)
    stands: list[Part | Cell] = list(waiting.get(-1, ()))
    for number, part in enumerate(parts):
        if part.edited or not part.copy_of:
            stands.append(part)
        stands += waiting.get(number, ())
    copies = {part.copy_of for part in parts}
    lost = [grade_id for grade_id in assignment.tests if grade_id not in copies]
    if lost:
        notes.append(f"{PUT_BACK}: {', '.join(lost)}")
    return stands, notes


def given_texts(assignment: Assignment) -> set[str]:
    """The cells that students are given, as they are and as they are released."""
    sources = [cell.source for cell in assignment.cells if not cell.solution]
    return {bare(text) for source in sources for text in (source, as_released(source))}
