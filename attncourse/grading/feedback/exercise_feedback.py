"""The text of a student's feedback on each exercise: the answer, its verdicts, its points."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from attncourse.grading.graded_notebook import LONGEST, entries_that_fit, released_cells
from attncourse.grading.harmless import harmless_message, made_visible, shortened_text
from attncourse.grading.report import TOLERANCE, CellResult, Report, exercise_of
from attncourse.grading.results.class_results import StudentResult
from attncourse.grading.submission.notebook import Assignment, Cell, Cells
from attncourse.grading.submission.parts import Part, bare_text
from attncourse.grading.submission.plan import given_texts, parts_in_order
from attncourse.grading.submission.source import names_in_cell

FURTHER = "not all of the further tests passed"  # these are hidden, and stay so


@dataclass
class ExerciseFeedback:
    """The feedback on one exercise: its points, its ``answers`` (cells) and what is said of it.

    ``label`` is the name as it is shown: a question's is its heading. ``verdicts`` are as the judge
    made them, ``remarks`` sentences; ``further`` are the points of its hidden tests. ``person``
    says what a person had to do with it: "gave" points, "waits" for one, or nothing.
    """

    name: str
    label: str = ""
    points: float = 0.0
    maximum: float = 0.0
    answers: list[Cell] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    further: CellResult | None = None
    person: str = ""
    comment: str = ""
    empty: bool = False

    @property
    def full(self) -> bool:
        """True if no point is missing."""
        return self.points >= self.maximum - TOLERANCE

    @property
    def gist(self) -> str:
        """Return why points are missing, in a few words; "" if none are."""
        if self.person == "waits":
            return "waits for a person's judgement"
        if self.full:
            return ""
        if self.empty:
            return "not attempted"
        wrong = [v for v in self.verdicts if not v.get("passed")]
        reasons = [v.get("mistake") or v.get("symptom") or v.get("reason") for v in wrong]
        is_further_lost = self.further is not None and self.further.points < self.further.maximum
        reasons = reasons or self.remarks or ([FURTHER] if is_further_lost else [])
        return harmless_message(next((text for text in reasons if text), ""))


def feedback_by_exercise(
    assignment: Assignment, cells: Cells, r: StudentResult, report: Report
) -> list[ExerciseFeedback]:
    """Return the feedback on each exercise, in the answers' order, then on cells that are gone.

    Of hidden tests it has points and the judge's own words, nothing that was computed in them.
    """
    parts = parts_in_order(cells, assignment)[0]
    instructors = {c.grade_id: c for c in assignment.cells if c.solution and c.grade_id}
    released = released_cells(assignment)
    by_exercise: dict[str, ExerciseFeedback] = {}
    before = ""
    for cell in assignment.cells:
        before = cell.grade_id if cell.solution and not cell.grade else before
        if not (cell.grade or cell.task):
            continue
        name = exercise_of(cell.grade_id)
        name = name if name in instructors or cell.task else before or name
        entry = by_exercise.get(name)
        if entry is None:
            question = instructors.get(name, cell)
            heading = question.source.lstrip().partition("\n")[0]  # a question has no other name
            label = name if question.code or heading[:1] != "#" else heading.lstrip("# ")
            entry = by_exercise[name] = ExerciseFeedback(name, label)
            entry.comment = made_visible(r.comments.get(name, ""))
            stub = released[question.grade_id].strip()
            entry.answers = text_cells_joined(answering_cells(parts, question), stub)
            entry.empty = all(c.source.strip() in ("", stub) for c in entry.answers)
        add_result(entry, cell, r, report)
    for grade_id in r.cells:
        if grade_id not in {c.grade_id for c in assignment.cells}:
            name = exercise_of(grade_id)
            entry = by_exercise.setdefault(name, ExerciseFeedback(name, name))
            add_result(entry, Cell("", grade_id=grade_id, grade=True), r, report)
    place = {name: n for n, name in enumerate(instructors)}
    return sorted(by_exercise.values(), key=lambda entry: place.get(entry.name, len(place)))


def add_result(entry: ExerciseFeedback, cell: Cell, r: StudentResult, report: Report) -> None:
    """Add the points of one graded cell, and its verdicts or remarks, to an exercise."""
    grade_id = cell.grade_id
    result = r.cells.get(grade_id, CellResult(0.0, cell.points))
    entry.points += result.points
    entry.maximum += result.maximum
    scored = grade_id in r.manual
    if scored or grade_id in r.waiting or (not cell.test and grade_id not in r.cells):
        entry.person = "gave" if scored else "waits"
    if cell.hides:
        silent = result.message if result.points < result.maximum and not scored else ""
        entry.further = CellResult(result.points, result.maximum, harmless_message(silent))
        return
    verdicts = [v for v in report.verdicts if v.get("cell") == grade_id]
    entry.verdicts += verdicts
    if result.message and not verdicts and not scored and result.points < result.maximum:
        entry.remarks.append(harmless_message(result.message))


def answering_cells(parts: list[Part], question: Cell) -> list[Cell]:
    """Return the cells that answer a question: by their mark, or by a name that it asks for."""
    marked = [p for p in parts if question.grade_id in (*p.answers, p.cell.grade_id) and not p.idle]
    names_asked = names_in_cell(question.source) if question.code else None
    bound = names_asked.bound if names_asked else frozenset()
    written = [p for p in parts if p.runs and bound & p.names.bound]
    chosen = sorted({p.number: p for p in (*marked, *written)}.items())
    return [harmless_cell(part.cell) for part in entries_that_fit([part for _, part in chosen])]


def text_cells_joined(cells: list[Cell], stub: str) -> list[Cell]:
    """Return the cells with all text among them in one cell, so that it is rendered once.

    A stub among the texts is left out if there is another text.
    """
    texts = [cell for cell in cells if not cell.code]
    if len(texts) < 2:
        return cells
    written = [cell for cell in texts if cell.source.strip() not in ("", stub)] or texts[:1]
    joined = replace(written[0], source="\n\n".join(cell.source for cell in written))
    return [harmless_cell(joined), *(cell for cell in cells if cell.code)]


def other_cells(
    assignment: Assignment, cells: Cells, feedback: list[ExerciseFeedback]
) -> Iterator[Cell]:
    """Yield the student's own cells that are in no exercise's answers: helpers, experiments."""
    released_texts = given_texts(assignment)
    used = {cell.source for exercise in feedback for cell in exercise.answers}
    parts = parts_in_order(cells, assignment)[0]
    students_own = [
        part for part in parts if part.runs and bare_text(part.cell.source) not in released_texts
    ]
    for part in entries_that_fit(students_own):
        cell = harmless_cell(part.cell)
        if cell.source not in used:
            yield cell


def harmless_cell(cell: Cell) -> Cell:
    """Return a cell as it may be shown: control characters visible, and of bounded length."""
    return Cell(
        shortened_text(made_visible(cell.source), LONGEST),
        code=cell.code,
        grade_id=cell.grade_id,
    )
