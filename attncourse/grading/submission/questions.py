"""Answers in words: which cells hold them, whatever has become of the question's cell.

It is known by its mark, else by its text. Where nothing was written in its place, what a student
wrote beside it is the answer; else any prose of theirs, so that a person sees it.
"""

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from attncourse.grading.submission.notebook import Assignment, Cell
from attncourse.grading.submission.parts import FENCED, Part, as_released
from attncourse.grading.submission.source import python_alone
from attncourse.grading.submission.syntax import is_text, parse_or_none, remembered_by_class

EMPTY = "YOUR ANSWER HERE"  # nbgrader's words
MIN_PROSE_WORDS = 8  # words: fewer are a heading or a name, if they do not stand below the question
MIN_LIKENESS = 0.75  # of a line to a given one that was reworded since, or before
HEADING = re.compile(r"^## \d+ · `\w+`$", re.M)  # of an exercise
STATEMENT = re.compile(r"^[ \t]*(?:def |class |import |@)|\breturn\b| = ", re.M)


def with_answers_in_place(
    parts: list[Part], assignment: Assignment
) -> tuple[list[Part], list[str]]:
    """Return the parts, each question's answer in one part with its mark, and notes on moves."""
    questions = [
        n for n, c in enumerate(assignment.cells) if c.solution and not c.code and c.grade_id
    ]
    for n in questions:
        parts = marked_by_text(parts, assignment.cells[n])
    places = part_places(parts, assignment)
    prose = own_prose(parts, assignment, places)
    unanswered = [n for n in questions if not has_answer(parts, assignment.cells[n])]
    parts_by_question = prose_of_questions(unanswered, prose, places)
    # Lists, so that indices stay while parts go or are replaced.
    by_place = [[part] for part in parts]
    for holding_parts in parts_by_question.values():
        for place in holding_parts:
            by_place[place] = []
    notes = []
    for n, holding_parts in parts_by_question.items():
        cell = assignment.cells[n]
        place, answer = answer_in_one(parts, cell, holding_parts)
        others = [part for part in by_place[place] if part.cell.grade_id != cell.grade_id]
        by_place[place] = [*others, answer]
        numbers = ", ".join(str(parts[index].number) for index in holding_parts)
        notes.append(f"the answer to {cell.grade_id} was found in cell {numbers}")
    return [part for several in by_place for part in several], notes


def prose_of_questions(
    unanswered: list[int], prose: dict[int, int], places: dict[int, int]
) -> dict[int, list[int]]:
    """Return, by unanswered question, the indices of the parts that answer it, where there are any.

    They are the student's prose beside the question, else all long prose beside no question.
    """
    beside = {n: prose_beside(places, prose, n) for n in unanswered}
    parts_beside = {index for several in beside.values() for index in several}
    rest = [
        index
        for index, words in prose.items()
        if words >= MIN_PROSE_WORDS and index not in parts_beside
    ]
    return {n: several or rest for n, several in beside.items() if several or rest}


def marked_parts(parts: list[Part], cell: Cell) -> list[int]:
    """Return the indices of the parts that have a question's grade id."""
    return [index for index, part in enumerate(parts) if part.cell.grade_id == cell.grade_id]


def marked_by_text(parts: list[Part], cell: Cell) -> list[Part]:
    """Return the parts, with a question's mark on the one that holds most of its text.

    Where parts have the mark, these count.
    """
    if marked_parts(parts, cell):
        return [
            p if p.cell.grade_id != cell.grade_id else as_answer_in_words(p, cell) for p in parts
        ]
    shares = [
        (share_of_question(part.cell.source, cell), -index) for index, part in enumerate(parts)
    ]
    best, index = max(shares, default=(0.0, 0))
    if best >= 0.5:
        return [as_answer_in_words(p, cell) if n == -index else p for n, p in enumerate(parts)]
    return parts


def as_answer_in_words(part: Part, cell: Cell) -> Part:
    """Return a part as the answer to a question: text, with the question's mark."""
    answer_cell = replace(part.cell, grade_id=cell.grade_id, code=False, solution=True)
    return replace(part, cell=answer_cell, answers=(cell.grade_id,))


@remembered_by_class
def normalised_lines(text: str) -> tuple[str, ...]:
    """Return a text's lines with single spaces, without empty ones."""
    return tuple(" ".join(line.split()) for line in text.split("\n") if line.strip())


def share_of_question(text: str, cell: Cell) -> float:
    """Return the share, 0 to 1, of a question's lines that a text holds."""
    question_lines = [line for line in normalised_lines(as_released(cell)) if line != EMPTY]
    present = set(normalised_lines(text))
    return (
        sum(line in present for line in question_lines) / len(question_lines)
        if question_lines
        else 0.0
    )


def has_answer(parts: list[Part], cell: Cell) -> bool:
    """True if a question's own cell holds more than was released."""
    released = as_released(cell)
    return any(
        answer_lines(parts[index].cell.source, released) for index in marked_parts(parts, cell)
    )


def answer_lines(text: str, released: str) -> list[str]:
    """Return the lines in a question's cell that are the student's.

    The cell may be of another release, in which the question was worded differently: a line like
    a given one is none of theirs, nor one above the line that the answer was to replace.
    """
    lines, given_lines = normalised_lines(text), normalised_lines(released)
    missing = set(given_lines) - set(lines) - {EMPTY}
    begins = lines.index(EMPTY) if missing and EMPTY in lines else 0
    no_answer = {*given_lines, EMPTY}
    return [x for x in lines[begins:] if x not in no_answer and not is_like_one(x, missing)]


def is_like_one(line: str, others: Collection[str]) -> bool:
    """True if a line differs by a few words from one of these."""
    matcher = SequenceMatcher(b=line, autojunk=False)
    bounds_first = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    for other_line in others:
        matcher.set_seq1(other_line)
        if all(ratio() >= MIN_LIKENESS for ratio in bounds_first):
            return True
    return False


def lines_around(text: str, given_lines: Sequence[str]) -> list[str]:
    """Return the lines that stand before a given text's first line or behind its last one."""
    lines = normalised_lines(text)
    first = lines.index(given_lines[0]) if given_lines[0] in lines else 0
    last = (
        len(lines) - 1 - lines[::-1].index(given_lines[-1])
        if given_lines[-1] in lines
        else len(lines)
    )
    return [*lines[:first], *lines[last + 1 :]]


def prose_beside(places: dict[int, int], prose: dict[int, int], n: int) -> list[int]:
    """Return the indices of the student's own prose between the given cells around a question."""
    low = max(
        (index for index, of in places.items() if of <= n),
        key=lambda index: places[index],
        default=-1,
    )
    high = min((index for index in places if index > low), default=max(prose, default=0) + 1)
    return [index for index in prose if low < index < high]


def part_places(parts: list[Part], assignment: Assignment) -> dict[int, int]:
    """Return, by part, which of the assignment's cells it is, by its mark or by its text."""
    ids = {cell.grade_id: n for n, cell in enumerate(assignment.cells) if cell.grade_id}
    texts = {normalised_lines(as_released(c)): n for n, c in enumerate(assignment.cells)}
    cell_of_part = {}
    for index, part in enumerate(parts):
        cell_places = [ids[name] for name in (part.copy_of, *part.answers) if name in ids]
        all_places = [*cell_places, texts.get(normalised_lines(part.cell.source))]
        if all_places[0] is not None:
            cell_of_part[index] = all_places[0]
    return cell_of_part


def own_prose(parts: list[Part], assignment: Assignment, places: dict[int, int]) -> dict[int, int]:
    """Return, by part, the number of words of prose that are the student's own."""
    given_cells = [c for c in assignment.cells if not c.code]
    released_lines = {line for c in given_cells for line in normalised_lines(as_released(c))}
    words_by_part = {}
    for index, part in enumerate(parts):
        if index not in places and is_prose(part.cell):
            given_lines = () if part.cell.code else given_text_of(part.cell.source, given_cells)
            text = (
                lines_around(part.cell.source, given_lines)
                if given_lines
                else normalised_lines(part.cell.source)
            )
            own_lines = [line for line in text if line not in released_lines]
            if not part.cell.code:
                own_lines = [x for x in own_lines if not is_like_one(x, released_lines)]
            words_by_part[index] = len(" ".join(own_lines).split())
    return {index: words for index, words in words_by_part.items() if words}


def given_text_of(text: str, given_cells: list[Cell]) -> tuple[str, ...]:
    """Return the lines of the given cell that a text is another wording of; () for none.

    It holds half of its lines, or the heading of the same exercise.
    """
    heading = HEADING.search(text)
    best = max(given_cells, key=lambda cell: share_of_question(text, cell), default=None)
    if best is not None and share_of_question(text, best) >= 0.5:
        return normalised_lines(as_released(best))
    for cell in given_cells:
        if heading and heading[0] in cell.source.split("\n"):
            return normalised_lines(as_released(cell))
    return ()


def is_prose(cell: Cell) -> bool:
    """True if a cell is text: Markdown, or code that is only comments, texts or words."""
    tree = parse_or_none(python_alone(cell.source if cell.code else FENCED.sub(r"\1", cell.source)))
    if not cell.code:
        kinds = ast.FunctionDef | ast.ClassDef
        return not (tree and any(isinstance(node, kinds) for node in tree.body))
    return not STATEMENT.search(cell.source) if tree is None else all(map(is_text, tree.body))


def answer_in_one(parts: list[Part], cell: Cell, places: list[int]) -> tuple[int, Part]:
    """Return the index of a question's part, and that part with all of the answer in it.

    ``places`` are the parts that hold the answer.
    """
    marked = marked_parts(parts, cell)
    place = marked[0] if marked else places[0]
    released_text = parts[place].cell.source.replace(EMPTY, "").rstrip() if marked else ""
    texts = [
        released_text,
        *(parts[index].cell.source.strip() for index in places if index != place),
    ]
    if not marked:
        texts.append(parts[place].cell.source.strip())
    source = "\n\n".join(dict.fromkeys(filter(None, texts)))
    return place, as_answer_in_words(
        replace(parts[place], cell=replace(parts[place].cell, source=source)), cell
    )
