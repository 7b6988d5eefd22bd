"""The notebook that nbgrader's formgrader and feedback show: a submission with its results.

Of the submission nothing gets in but the text of its cells, made harmless. The tests, the marks
that nbgrader reads, and every output are the instructor's and the judge's.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape
from typing import Any, TypeVar

from attncourse.checks.showing.verdict import MESSAGE_STYLE
from attncourse.grading import harmless
from attncourse.grading.course.newer_hand_ins import notebook_digest
from attncourse.grading.errors import Unreadable
from attncourse.grading.harmless import harmless_message
from attncourse.grading.judge.outcomes import verdict_from_row
from attncourse.grading.report import Report, score_in_words
from attncourse.grading.submission.notebook import Assignment, Cell, read_submission_cells
from attncourse.grading.submission.parts import Part, as_released
from attncourse.grading.submission.plan import PlanEntry, lay_out
from attncourse.grading.submission.questions import answer_lines, normalised_lines

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
# More than a person reads. Longer Markdown can keep what renders it busy for minutes.
LONGEST, ROOM = 20_000, 200_000  # characters of a cell, and of all cells
CHARS_BESIDE_SOURCE = 100  # that each cell counts in addition, so that empty ones are bounded, too
FRAME = '<div class="attncourse-report tex2jax_ignore">{}</div>'  # in it, $ is no formula
LOST_CELL_TEXT = "The submission has lost this cell."


def autograded_notebook(notebook: bytes, assignment: Assignment, report: Report) -> str:
    """Return a submission's notebook with tests and results, as nbgrader's autograde leaves it.

    nbgrader finds exactly the points of the report in it, and what a person has to score. Of a
    submission that cannot be read, it has the tests alone.
    """
    try:
        cells = read_submission_cells(notebook).versions[report.version]
    except Unreadable:
        cells = ()
    released = released_cells(assignment)
    cells_json = [cell_to_json(Cell(points_cell(report), code=False))]
    for cell in with_instructors_marks(
        entries_that_fit(lay_out(cells, assignment)[0]), assignment, released
    ):
        cells_json.append(cell_to_json(cell, released.get(cell.grade_id)))
        if cell.test:
            cells_json[-1]["outputs"] = test_outputs(cell, report)
    content = {
        "cells": [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells_json)],
        "metadata": {"kernelspec": KERNEL, "attncourse": {"made_of": notebook_digest(notebook)}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def graded_cell_texts(notebook: str) -> dict[str, Any]:
    """Return, by grade id, what each graded cell of a graded notebook judges.

    For an answer it is its own text, for a test all code of the student's.
    """
    cells = [(c.get("metadata", {}).get("nbgrader", {}), c) for c in json.loads(notebook)["cells"]]
    sources = [(marks, c["cell_type"], "".join(c["source"])) for marks, c in cells]
    code = [text for marks, kind, text in sources if kind == "code" and not marks.get("locked")]
    return {
        marks["grade_id"]: text if marks.get("solution") or marks.get("task") else code
        for marks, _, text in sources
        if marks.get("grade") or marks.get("task")
    }


def same_answers(before: str, now: str) -> frozenset[str]:
    """Return the grade ids of answers that are the same in two graded notebooks.

    None where there was no notebook before.
    """
    try:
        old, new = graded_cell_texts(before), graded_cell_texts(now)
    except (ValueError, TypeError, KeyError, AttributeError):  # there was none, or no notebook
        return frozenset()
    return frozenset(name for name in old.keys() & new.keys() if old[name] == new[name])


EntryT = TypeVar("EntryT", Part, PlanEntry)


def entries_that_fit(entries: Sequence[EntryT]) -> list[EntryT]:
    """Return the cells of a plan, cut so that the student's together are of bounded length."""
    room, fitting = ROOM, []
    for entry in entries:
        if isinstance(entry, Cell):  # the instructor's
            fitting.append(entry)
        elif room > 0:
            source = entry.cell.source
            shown = source[: min(LONGEST, room)]
            room -= len(shown) + CHARS_BESIDE_SOURCE
            if shown != source:
                shown += f"\n\n… and {len(source) - len(shown)} more characters"
            fitting.append(replace(entry, cell=replace(entry.cell, source=shown)))
    return fitting


def with_instructors_marks(
    entries: list[PlanEntry], assignment: Assignment, released: dict[str, str]
) -> list[Cell]:
    """Return cells that have the instructor's metadata alone; lost cells to score come last.

    If several cells have an answer's grade id, the first counts that holds more than was released.
    """
    instructors = {c.grade_id: c for c in assignment.cells if c.grade_id and not c.test}
    texts = {c.source.strip() for c in assignment.cells if not c.code}
    chosen: dict[str, Cell] = {}
    for cell in (entry.cell for entry in entries if isinstance(entry, Part)):
        earlier = chosen.get(cell.grade_id)
        if cell.grade_id in instructors and (earlier is None or is_untouched(earlier, released)):
            chosen[cell.grade_id] = cell
    cells = []
    for entry in entries:
        if isinstance(entry, Cell):
            cells.append(entry)
        elif chosen.get(entry.cell.grade_id) is entry.cell:
            cells.append(cell_with_answer(entry.cell, instructors[entry.cell.grade_id], released))
        else:
            cells.append(Cell(harmless_source(entry.cell, texts), code=entry.cell.code))
    lost = [c for g, c in instructors.items() if g not in chosen and (c.grade or c.task)]
    return cells + [
        replace(cell, source=f"# {LOST_CELL_TEXT}" if cell.code else LOST_CELL_TEXT)
        for cell in lost
    ]


def cell_with_answer(cell: Cell, instructors_cell: Cell, released: dict[str, str]) -> Cell:
    """Return the instructor's cell with the student's text, if it is for the student to write."""
    if not instructors_cell.solution and not instructors_cell.task:
        return instructors_cell
    if is_untouched(cell, released):
        return replace(instructors_cell, source=released[instructors_cell.grade_id])
    return replace(
        instructors_cell, source=harmless_source(replace(cell, code=instructors_cell.code))
    )


def is_untouched(cell: Cell, released: dict[str, str]) -> bool:
    """True if an answer's cell is empty, or holds what was released, in whichever wording."""
    visible_source = harmless.made_visible(cell.source)
    if not cell.code:
        return not answer_lines(visible_source, released[cell.grade_id])
    return normalised_lines(visible_source) in ((), normalised_lines(released[cell.grade_id]))


def harmless_source(cell: Cell, instructors_texts: frozenset[str] | set[str] = frozenset()) -> str:
    """Return the text of a submission's cell as it may be shown.

    Markdown that is the instructor's own stays as it is.
    """
    if cell.code:
        return harmless.made_visible(cell.source)
    return (
        cell.source
        if cell.source.strip() in instructors_texts
        else harmless.defused_markdown(cell.source)
    )


@lru_cache(maxsize=8)
def released_cells(assignment: Assignment) -> dict[str, str]:
    """Return the text in which each of the instructor's cells is released, by grade id."""
    return {cell.grade_id: as_released(cell) for cell in assignment.cells if cell.grade_id}


def cell_to_json(cell: Cell, released: str | None = None) -> dict[str, Any]:
    """Return a cell in the notebook format, with nbgrader's metadata.

    With ``released``, the text of an answer at its release, it has the checksum by which nbgrader
    sees that nothing was answered.
    """
    fields: dict[str, Any] = {"cell_type": "code" if cell.code else "markdown", "metadata": {}}
    fields["source"] = cell.source.splitlines(keepends=True)
    fields |= {"execution_count": None, "outputs": []} if cell.code else {}
    if not cell.grade_id:
        return fields
    marks = {name: getattr(cell, name) for name in ("grade_id", "grade", "solution", "task")}
    marks |= {"locked": cell.locked, "schema_version": 3, "cell_type": fields["cell_type"]}
    marks |= {"points": cell.points} if cell.grade or cell.task else {}
    fields["metadata"]["nbgrader"] = marks
    if released is not None and cell.solution:
        marks["checksum"] = checksum(replace(cell, source=released))
    return fields


@lru_cache(maxsize=256)
def checksum(cell: Cell) -> str:
    """Return nbgrader's checksum of a cell."""
    from nbformat.notebooknode import from_dict
    from nbgrader.utils import compute_checksum

    node: Any = from_dict({**cell_to_json(cell), "source": cell.source})
    return compute_checksum(node)


def points_cell(report: Report) -> str:
    """Return the text of the first cell: points of the tests, and notes.

    It is HTML, which is Markdown as well, so that nothing in a note can be Markdown.
    """
    head = f"Tests: {score_in_words(report.points, report.maximum)}."
    notes = [*report.notes] + ([] if report.sandbox else ["Graded without a sandbox."])
    items = "".join(
        f"<li>{escape(' '.join(harmless_message(note).split()))}</li>" for note in notes
    )
    return FRAME.format(f"<strong>{head}</strong>" + (f"<ul>{items}</ul>" if items else ""))


def test_outputs(cell: Cell, report: Report) -> list[dict[str, Any]]:
    """Return a test's outputs: its verdicts, why points are missing, and the points.

    The last one is the plain number that nbgrader takes for the score: without one it would give
    all points. Of a hidden test there is only what its own source says.
    """
    verdicts = [] if cell.hides else [v for v in report.verdicts if v["cell"] == cell.grade_id]
    outputs = [
        display_data("display_data", harmless_message(v["text"]), verdict_html(v)) for v in verdicts
    ]
    result = report.cells.get(cell.grade_id) if cell.grade else None
    if not cell.grade:
        return outputs
    points = result.points if result else 0.0
    message = result.message if result else ""
    message = "" if verdicts or points == cell.points else harmless_message(message)
    html = f"<strong>{score_in_words(points, cell.points)}</strong>"
    if message:
        html += f'<pre style="{MESSAGE_STYLE}">{escape(message)}</pre>'
    return [*outputs, display_data("execute_result", repr(points), FRAME.format(html))]


def display_data(kind: str, text: str, html: str) -> dict[str, Any]:
    """Return an output of this ``kind`` in the notebook format, as text and as HTML."""
    data = {"text/plain": text, "text/html": html}
    data = {name: value.splitlines(keepends=True) for name, value in data.items()}
    output = {"output_type": kind, "metadata": {}, "data": data}
    return output | ({"execution_count": None} if kind == "execute_result" else {})


def verdict_html(verdict: dict[str, Any]) -> str:
    """Return a verdict as a notebook shows it after a check."""
    return FRAME.format(verdict_from_row(verdict, harmless_message)._repr_html_())


def untouched_answers(notebook: str) -> dict[str, bool]:
    """Return, by grade id, whether each answer of a graded notebook is as it was released.

    nbgrader takes such a one for no answer. The notebook has the checksum of what was released
    beside the answer. An empty text has no answers.
    """
    from nbformat.notebooknode import from_dict
    from nbgrader.utils import compute_checksum

    untouched = {}
    if notebook:
        for cell in json.loads(notebook)["cells"]:
            marks = cell["metadata"].get("nbgrader", {})
            if marks.get("solution") or marks.get("task"):
                cell_node: Any = from_dict(
                    {**cell, "source": "".join(cell["source"]), "outputs": []}
                )
                is_same_checksum = marks.get("checksum") == compute_checksum(cell_node)
                # Never a task, as nbgrader has it: a person looks at each.
                untouched[marks["grade_id"]] = is_same_checksum and not marks.get("task")
    return untouched
