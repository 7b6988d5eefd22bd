"""The plan of a submission: its own cells, with the instructor's among them in their places.

All places are numbers of parts after which a cell stands; -1 is the start. A test comes after
everything that it needs; a cell that sets something up, before everything that needs it.
"""

import re
from collections import defaultdict
from dataclasses import dataclass

from attncourse.grading.submission.notebook import Assignment, Cell, Cells
from attncourse.grading.submission.parts import (
    Part,
    as_released,
    bare_text,
    join_split_cells,
    labelled_cells,
    only_shows_verdict,
    text_answers_as_code,
    with_idle_stubs,
)
from attncourse.grading.submission.questions import with_answers_in_place
from attncourse.grading.submission.source import names_in_cell, python_alone, without_magics
from attncourse.grading.submission.syntax import CellNames

ANOTHER = "this is the notebook of"
CHECKED = re.compile(r"""\b(?:check|examine)\(\s*["'](\w+)\.(\w+)["']""")
HEADING = re.compile(r"^[ \t]*#\s+(.+)$", re.M)
MAX_TITLE_CHARS = 80  # characters of a title
PlanEntry = Part | Cell  # a part of the submission, or a cell of the instructor's
PUT_BACK = "missing tests were put back"  # which is for whoever grades: it costs nobody anything


@dataclass(frozen=True)
class Step:
    """A cell to run. ``name`` stands in messages; ``grade_id`` is set for tests only.

    ``kind`` is "cell" for the student's own, "given" for one that the submission holds as the
    assignment gave it or that the instructor has locked, and "test" for one that earns points.
    """

    name: str
    source: str
    kind: str = "cell"
    grade_id: str = ""

    @property
    def is_given(self) -> bool:
        """True if the cell is the assignment's, and no test."""
        return self.kind == "given"


def plan(cells: Cells, assignment: Assignment) -> tuple[list[Step], list[str]]:
    """Return the steps to run for a submission's cells, and notes on what was mended."""
    entries, notes = lay_out(cells, assignment)
    released = given_texts(assignment)
    steps = []
    for entry in entries:
        if isinstance(entry, Cell):
            if entry.grade and entry.grade_id:
                steps.append(Step(f"test {entry.grade_id}", entry.source, "test", entry.grade_id))
            elif not only_shows_verdict(entry):
                name = f"cell {entry.grade_id or 'given'}"
                steps.append(Step(name, python_alone(entry.source), "given"))
        elif entry.runs:
            source, skipped_lines = without_magics(entry.cell.source)
            kind = "given" if bare_text(entry.cell.source) in released else "cell"
            steps.append(Step(entry.name, source, kind))
            notes += [f"{entry.name}: {note}" for note in skipped_lines]
    return steps, notes


def lay_out(cells: Cells, assignment: Assignment) -> tuple[list[PlanEntry], list[str]]:
    """Return the submission's parts with the instructor's cells among them, and notes.

    Every test of the assignment is there exactly once, in the instructor's words.
    """
    parts, notes = parts_in_order(cells, assignment)
    waiting: dict[int, list[Cell]] = defaultdict(list)
    for place, cell in Places(parts, assignment).placed_cells():
        waiting[place].append(cell)
    entries: list[PlanEntry] = [*waiting[-1]]
    for number, part in enumerate(parts):
        if part.edited or not part.copy_of:
            entries.append(part)
        entries += waiting[number]
    copies = {part.copy_of for part in parts}.union(assignment.added)
    # Of a hidden test students have nothing but a comment, so nobody has taken that out.
    visible_tests = set()
    for grade_id, test in assignment.tests.items():
        names = names_in_cell(as_released(test))
        if names is None or any(names):
            visible_tests.add(grade_id)
    lost_tests = [grade_id for grade_id in assignment.tests if grade_id in visible_tests - copies]
    if lost_tests and assignment.released:
        notes = [
            *notes,
            other_assignment_note(cells, assignment) or f"{PUT_BACK}: {', '.join(lost_tests)}",
        ]
    return entries, notes


def parts_in_order(cells: Cells, assignment: Assignment) -> tuple[list[Part], list[str]]:
    """Return a submission's cells as parts, in order, and notes on what was mended."""
    parts, notes = labelled_cells(cells, assignment)
    steps = (
        (join_split_cells, text_answers_as_code)
        if other_assignment_note(cells, assignment)
        else (with_answers_in_place, join_split_cells, text_answers_as_code)
    )
    for step in steps:
        parts, step_notes = step(parts, assignment)
        notes = notes + step_notes
    return with_idle_stubs(parts, assignment), notes


def other_assignment_note(cells: Cells, assignment: Assignment) -> str:
    """Return a note that names the other assignment that a notebook is of; "" if it is of this.

    It is of another one if it has tests of that and none of this one.
    """
    targets_here = targets_checked(assignment.cells)
    targets = targets_checked(cells)
    marks = {c.grade_id for c in cells if c.grade and c.grade_id} - assignment.graded.keys()
    if not (targets or marks) or targets & targets_here or not assignment.graded:
        return ""
    parts, _ = labelled_cells(cells, assignment)
    if any(part.copy_of or part.answers for part in parts):
        return ""
    titles = (HEADING.search(cell.source) for cell in cells if not cell.code)
    title = next(
        (f"“{title_match[1].strip()[:MAX_TITLE_CHARS]}”" for title_match in titles if title_match),
        "",
    )
    name = title or " and ".join(sorted({stem for stem, _ in targets})) or "something else"
    return f"{ANOTHER} {name}: hand in {assignment.name}.ipynb"


def targets_checked(cells: Cells) -> set[tuple[str, str]]:
    """Return the exercises that cells check, as (chapter, name)."""
    return {target for cell in cells if cell.code for target in CHECKED.findall(cell.source)}


def given_texts(assignment: Assignment) -> set[str]:
    """Return the texts of cells that students are given, as they are and as they are released."""
    instructor_cells = [cell for cell in assignment.cells if not cell.solution]
    return {
        bare_text(text) for cell in instructor_cells for text in (cell.source, as_released(cell))
    }


class Places:
    """Finds the places of an assignment's cells in a submission: after which of its parts."""

    def __init__(self, parts: list[Part], assignment: Assignment):
        self.parts, self.cells = parts, assignment.cells
        self.names = [
            (names_in_cell(c.source) if c.code else None) or CellNames() for c in self.cells
        ]
        self.copies = {p.copy_of: n for n, p in enumerate(parts) if p.copy_of}
        self.answers: dict[str, list[int]] = defaultdict(list)
        self.binders: dict[str, list[int]] = defaultdict(list)
        for n, part in enumerate(parts):
            if part.runs:
                for answer in part.answers:
                    self.answers[answer].append(n)
            for name in part.names.bound:
                self.binders[name].append(n)

    def placed_cells(self) -> list[tuple[int, Cell]]:
        """Return the instructor's cells that run among the student's, with their places, in order.

        A place is the index of the part after which a cell runs; −1 is before all. These are the
        tests, what sets them up, and those cells without which a part would miss a name.
        """
        placed, earliest, tests = [], -1, defaultdict(lambda: -1)
        for number, cell in enumerate(self.cells):
            bound, read = self.names[number]
            if cell.test and cell.grade_id and not cell.grade and not only_shows_verdict(cell):
                earliest = max(earliest, self.place_of_setup(number))
                placed.append((earliest, cell))
            elif cell.test and cell.grade_id:
                used = [tests[name] for name in read - bound]
                place = max(earliest, self.place_of_test(number), *used)
                placed.append((place, cell))
                tests |= dict.fromkeys(bound, place)
            elif (use := self.first_part_needing(cell, bound)) is not None:
                placed.append((min(self.place_of_setup(number), use - 1), cell))
        return placed

    def parts_answering(self, cells: Cells) -> list[int]:
        """Return the indices of the parts that hold answers to any of these cells."""
        return [n for cell in cells if cell.solution for n in self.answers.get(cell.grade_id, ())]

    def place_of_setup(self, number: int) -> int:
        """Return the place of the assignment's cell ``number``, which sets something up.

        It is before the answers that follow in the assignment, after those that come first there.
        """
        low = max(self.parts_answering(self.cells[:number]), default=-1)
        high = min(self.parts_answering(self.cells[number:]), default=len(self.parts))
        copy = self.copies.get(self.cells[number].grade_id)
        if copy is not None and (low < copy < high or high <= low):
            return copy
        if high < len(self.parts):
            return high - 1
        before = {cell.source.strip() for cell in self.cells[:number] if cell.code}
        setup_places = [
            n for n, p in enumerate(self.parts) if p.runs and p.cell.source.strip() in before
        ]
        return max([low, *setup_places])

    def place_of_test(self, number: int) -> int:
        """Return the place of the test that is the assignment's cell ``number``.

        It is after its own copy, after the answers that come first, after all that it needs.
        """
        low = max(self.parts_answering(self.cells[:number]), default=-1)
        later = self.cells[number + 1 :]
        copies = [self.copies[c.grade_id] for c in later if c.grade and c.grade_id in self.copies]
        copy = self.copies.get(self.cells[number].grade_id)
        bounds = [n for n in copies if n > low]
        if copy is None or copy > min(bounds, default=copy):  # lost, or below what comes after it
            bounds += [n for n in self.parts_answering(later) if n > low and copy is None]
            copy = min(bounds, default=len(self.parts)) - 1
        return self.place_after_needs(number, max(low, copy))

    def place_after_needs(self, number: int, place: int) -> int:
        """Return ``place``, or a later one if an answer that the cell needs is below it.

        A name that a later cell of the assignment binds again says nothing of where its answer is.
        """
        for name in self.names_answered(0, number) - self.names_answered(
            number + 1, len(self.cells)
        ):
            binders = self.binders.get(name, [-1])
            if binders[0] > place:
                place = max(binders)
        return place

    def names_answered(self, start: int, end: int) -> frozenset[str]:
        """Return the names that the instructor's answers in cells ``start`` to ``end`` bind."""
        solved = (n for n in range(start, end) if self.cells[n].solution)
        return frozenset().union(*(self.names[n].bound for n in solved))

    def first_part_needing(self, cell: Cell, bound_names: frozenset[str]) -> int | None:
        """Return the index of the first part that reads a name of a given cell before it is bound.

        None if the submission itself binds all that it needs of the cell.
        """
        if not cell.code or cell.solution or cell.grade_id:
            return None
        lacking = {name: min(self.binders.get(name, [len(self.parts)])) for name in bound_names}
        for n, part in enumerate(self.parts):
            if any(n < lacking.get(name, -1) for name in part.names.read):
                return n
        return None
