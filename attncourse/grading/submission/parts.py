"""The parts of a submission: each cell is a copy of a test, an answer, or the student's own.

Metadata is a hint here and no more. A cell that says it is a test, and holds something else, is the
student's; one that says nothing, and holds what a test was released as, is that test's copy.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import takewhile

from attncourse.grading.submission.notebook import Assignment, Cell, Cells
from attncourse.grading.submission.source import is_python, names_in_cell
from attncourse.grading.submission.syntax import CellNames, remembered_by_class, same_code

HIDDEN_TESTS = re.compile(r"^.*BEGIN HIDDEN TESTS(?:.*\n)*?.*END HIDDEN TESTS.*\n?", re.M)
REGION = r".*BEGIN MARK SCHEME(?:.*\n)*?.*END MARK SCHEME.*"
SCHEME = re.compile(rf"\n{REGION}|\A{REGION}\n?")  # for those who score it
ANSWER = re.compile(r"^([ \t]*).*BEGIN SOLUTION(?:.*\n)*?.*END SOLUTION.*$", re.M)
STUB_TEXT = r"\1# YOUR CODE HERE\n\1raise NotImplementedError()"
TEXT_STUB = r"\1YOUR ANSWER HERE"
FENCED = re.compile(r"\A\s*(?:```|~~~)[^\n`]*\n([^`]*?)\n?(?:```|~~~)\s*\Z")  # code in Markdown
MAX_PIECES = 5  # of a cell that was split


@dataclass(frozen=True)
class Part:
    """A cell of a submission, or several that were joined.

    ``copy_of`` names the test that it is a copy of: the instructor's own runs instead. An
    ``edited`` copy has something in it that the test has not: it runs as well, before the test.
    ``idle`` marks an answer's cell that was left as it was released while the answer is in another
    cell.
    """

    number: int
    cell: Cell
    copy_of: str = ""
    answers: tuple[str, ...] = ()
    idle: bool = False
    edited: bool = False

    @property
    def name(self) -> str:
        """Return the cell's name in messages: by its exercise, or else by its number."""
        return f"cell {self.answers[0] if self.answers else self.number}"

    @property
    def runs(self) -> bool:
        """True if the cell is code that runs: no plain copy of a test, and not idle."""
        return self.cell.code and (self.edited or not self.copy_of) and not self.idle

    @cached_property
    def names(self) -> CellNames:
        """Return the names that the cell binds and reads; none if it does not run or parse."""
        return (names_in_cell(self.cell.source) if self.runs else None) or CellNames()


def labelled_cells(cells: Cells, assignment: Assignment) -> tuple[list[Part], list[str]]:
    """Return each cell as a part that says what it is, and notes.

    A test's second copy is left out.
    """
    answers = {c.grade_id for c in assignment.cells if c.solution and c.grade_id}
    released = {g: bare_text(as_released(cell)) for g, cell in assignment.tests.items()}
    full_texts = {g: bare_text(cell.source) for g, cell in assignment.tests.items()}
    claimed = {c.grade_id for c in cells if claims_test(c, full_texts)}
    copies: set[str] = set()
    parts, notes = [], []
    for number, cell in enumerate(cells, start=1):
        copy_of, edited = cell.grade_id if claims_test(cell, full_texts) else "", False
        if not copy_of and cell.code:
            text = bare_text(cell.source)
            free = [g for g in full_texts if g not in claimed | copies]
            copy_of = next((g for g in free if text and text in (released[g], full_texts[g])), "")
            edited = not copy_of and cell.grade_id in free
            copy_of = cell.grade_id if edited else copy_of
        if copy_of in copies:
            notes.append(f"cell {number}: a second copy of test {copy_of} was ignored")
            continue
        copies |= {copy_of} - {""}
        answer_ids = (cell.grade_id,) if cell.grade_id in answers and not copy_of else ()
        parts.append(Part(number, cell, copy_of, answer_ids, edited=edited))
    return parts, notes


def claims_test(cell: Cell, tests: dict[str, str]) -> bool:
    """True if a cell has a test's grade id and no line that the test does not have."""
    if cell.grade_id not in tests:
        return False
    test = tests[cell.grade_id]
    return not test or set(bare_text(cell.source).split("\n")) <= {*test.split("\n"), ""}


def join_split_cells(parts: list[Part], assignment: Assignment) -> tuple[list[Part], list[str]]:
    """Return the parts with the pieces of a split cell joined again, and notes."""
    joined_parts, notes, index = [], [], 0
    while index < len(parts):
        run = takewhile(lambda part: part.runs, parts[index : index + MAX_PIECES])
        pieces = parts[index : index + end_of_cell([part.cell.source for part in run]) + 1]
        index += len(pieces)
        if len(pieces) > 1:
            source = "\n".join(part.cell.source for part in pieces)
            answers = tuple(dict.fromkeys(a for part in pieces for a in part.answers))
            numbers = " and ".join(str(part.number) for part in pieces)
            notes.append(f"cells {numbers} were joined: a piece of Python was split between them")
            joined = replace(pieces[0].cell, source=source, grade_id=(*answers, "")[0])
            pieces = [replace(pieces[0], cell=joined, answers=answers)]
        joined_parts += pieces
    return joined_parts, notes


def end_of_cell(sources: list[str]) -> int:
    """Return the number of the last source that, joined with those before, makes the first whole.

    It is 0 where the first source is no piece of a split cell.
    """
    end = 0
    if sources and sources[0].lstrip().startswith("%%"):
        return end
    for number, source in enumerate(sources[1:], start=1):
        if is_python(source) and not source.lstrip("\n")[:1].isspace():
            break
        if is_python("\n".join(sources[: number + 1])):
            end = number
    return end


def text_answers_as_code(parts: list[Part], assignment: Assignment) -> tuple[list[Part], list[str]]:
    """Return the parts with answers in Markdown cells turned into code that runs, and notes.

    Only where no code cell has the answer.
    """
    code = {c.grade_id for c in assignment.cells if c.solution and c.code}
    solved = [names_in_cell(c.source) for c in assignment.cells if c.solution and c.code]
    names_asked_for = frozenset().union(*(cell_names.bound for cell_names in solved if cell_names))
    bound = {name for part in parts for name in part.names.bound if not is_stub(part, assignment)}
    new_parts, notes = list(parts), []
    for n, part in enumerate(parts):
        if part.cell.code:
            continue
        source = FENCED.sub(r"\1", part.cell.source)
        turned = replace(part, cell=replace(part.cell, code=True, source=source))
        answers = code.intersection(part.answers) or names_asked_for & turned.names.bound
        if answers and turned.names.bound and not turned.names.bound <= bound:
            new_parts[n] = turned
            notes.append(f"{part.name} is no code cell, but holds Python: it was run")
    return new_parts, notes


def with_idle_stubs(parts: list[Part], assignment: Assignment) -> list[Part]:
    """Return the parts with those stubs marked idle whose answers are in other cells."""
    stubs = {n for n, part in enumerate(parts) if part.runs and is_stub(part, assignment)}
    others = [part for n, part in enumerate(parts) if n not in stubs and part.runs]
    bound = {name for part in others for name in part.names.bound}
    answered = {answer for part in others for answer in part.answers}
    new_parts = list(parts)
    for n in stubs:
        bound_names = parts[n].names.bound or frozenset(parts[n].answers)  # which are called so
        if answered.issuperset(parts[n].answers) or (bound_names and bound_names <= bound):
            new_parts[n] = replace(parts[n], idle=True)
    return new_parts


def is_stub(part: Part, assignment: Assignment) -> bool:
    """True if an answer's cell holds what was released, comments aside."""
    if "NotImplementedError" not in part.cell.source:
        return False
    released = [c for c in assignment.cells if c.solution and c.grade_id in part.answers]
    return any(same_code(part.cell.source, as_released(cell)) for cell in released)


@lru_cache(maxsize=1024)
def as_released(cell: Cell) -> str:
    """Return the text of an instructor's cell as students get it: marked regions are replaced."""
    stub = STUB_TEXT if cell.code else TEXT_STUB
    text, count = ANSWER.subn(stub, cell.source)
    if cell.solution and not count:
        text = stub.replace(r"\1", "").replace(r"\n", "\n")
    for region in (HIDDEN_TESTS, SCHEME):
        text = region.sub("", text)
    return text


@remembered_by_class
def bare_text(source: str) -> str:
    """Return a cell's text without empty lines and spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in source.split("\n") if line.strip()).strip()


def only_shows_verdict(cell: Cell) -> bool:
    """True if a test earns nothing: it shows the verdict that a graded cell finds again."""
    return not cell.grade and cell.grade_id.startswith("check_")
