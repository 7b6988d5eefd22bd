"""Where the instructor's cells run among a submission's own.

All places are numbers of parts after which a cell stands; -1 is the start. A test comes after
everything that it needs; a cell that sets something up, before everything that needs it.
"""

from collections import defaultdict

from attncourse.grading.submission.notebook import Assignment, Cell
from attncourse.grading.submission.parts import Part, shows_only
from attncourse.grading.submission.source import NOTHING, names


class Places:
    """The places of an assignment's cells in one submission."""

    def __init__(self, parts: list[Part], assignment: Assignment):
        self.parts, self.cells = parts, assignment.cells
        self.copies = {p.copy_of: n for n, p in enumerate(parts) if p.copy_of}
        self.answers: dict[str, list[int]] = defaultdict(list)
        self.binders: dict[str, list[int]] = defaultdict(list)
        for n, part in enumerate(parts):
            for answer in part.answers if part.runs else ():
                self.answers[answer].append(n)
            for name in part.names.bound:
                self.binders[name].append(n)
        self.names = [(names(cell.source) if cell.code else None) or NOTHING for cell in self.cells]

    def all(self) -> list[tuple[int, Cell]]:
        """Every cell that the instructor's version is taken of, with its place, in order."""
        found, earliest, tests = [], -1, defaultdict(lambda: -1)
        for number, cell in enumerate(self.cells):
            if cell.test and cell.grade_id and not cell.grade and not shows_only(cell):
                earliest = max(earliest, self.of_setup(number))
                found.append((earliest, cell))
            elif cell.test and cell.grade_id:
                used = [tests[name] for name in self.free(number)]
                place = max(earliest, self.of_test(number), *used)
                found.append((place, cell))
                tests |= dict.fromkeys(self.names[number].bound, place)
            elif (use := self.first_use(cell, self.names[number].bound)) is not None:
                found.append((min(self.of_setup(number), use - 1), cell))
        return found

    def answered(self, cells: tuple[Cell, ...]) -> list[int]:
        """The parts that answer any of these cells."""
        return [n for cell in cells if cell.solution for n in self.answers.get(cell.grade_id, ())]

    def of_setup(self, number: int) -> int:
        """Before the answers that follow in the assignment, after those that come first there."""
        low = max(self.answered(self.cells[:number]), default=-1)
        high = min(self.answered(self.cells[number:]), default=len(self.parts))
        copy = self.copies.get(self.cells[number].grade_id)
        if copy is not None and (low < copy < high or high <= low):
            return copy
        if high < len(self.parts):
            return high - 1
        before = {cell.source.strip() for cell in self.cells[:number] if cell.code}
        given = [n for n, p in enumerate(self.parts) if p.runs and p.cell.source.strip() in before]
        return max([low, *given])

    def of_test(self, number: int) -> int:
        """After its own copy, after the answers that come first, after all that it needs."""
        low = max(self.answered(self.cells[:number]), default=-1)
        later = self.cells[number + 1 :]
        copies = [self.copies[c.grade_id] for c in later if c.grade and c.grade_id in self.copies]
        copy = self.copies.get(self.cells[number].grade_id)
        bounds = [n for n in copies if n > low]
        if copy is None or copy > min(bounds, default=copy):  # lost, or below what comes after it
            bounds += [n for n in self.answered(later) if n > low and copy is None]
            copy = min(bounds, default=len(self.parts)) - 1
        return self.after_needs(number, max(low, copy))

    def after_needs(self, number: int, place: int) -> int:
        """The place, or a later one where an answer was written below it.

        A name that later answers bind again says nothing.
        """
        needed = self.bound_by(self.cells[:number]) - self.bound_by(self.cells[number + 1 :])
        for name in needed:
            binders = self.binders.get(name, [-1])
            if binders[0] > place:
                place = max(binders)
        return place

    def bound_by(self, cells: tuple[Cell, ...]) -> frozenset[str]:
        """The names that the instructor's answers among these cells bind."""
        bound = [(names(c.source) or NOTHING).bound for c in cells if c.solution and c.code]
        return frozenset().union(*bound)

    def free(self, number: int) -> frozenset[str]:
        """The names that one of the assignment's cells takes from others."""
        return self.names[number].read - self.names[number].bound

    def first_use(self, cell: Cell, own: frozenset[str]) -> int | None:
        """The first part that reads a name of a given cell before the submission binds it.

        None where the submission has all that it needs of the cell.
        """
        if not cell.code or cell.solution or cell.grade_id:
            return None
        lacking = {name: min(self.binders.get(name, [len(self.parts)])) for name in own}
        for n, part in enumerate(self.parts):
            if any(n < lacking.get(name, -1) for name in part.names.read):
                return n
        return None
