"""From what came of each step to points, notes and a report."""

from collections.abc import Collection
from dataclasses import replace

from attncourse.checks.showing.verdict import IN_FULL, NOT_ATTEMPTED, given_right
from attncourse.grading.judge import remarks
from attncourse.grading.judge.carried_errors import Followed
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.missing_names import because, is_nowhere, not_imported, why_nowhere
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.overwritten import Overwritten
from attncourse.grading.judge.points import judge_cell, unpaid
from attncourse.grading.report import CellResult, Report, exercise_of
from attncourse.grading.submission.notebook import Assignment, Cell
from attncourse.grading.submission.plan import ANOTHER, PUT_BACK
from attncourse.grading.submission.varied import OTHER

NO_POINTS = "earned no points"


def make_report(
    found: Findings,
    assignment: Assignment,
    student: str,
    notes: list[str],
    followed: Collection[Followed] = (),
    taken: Collection[Overwritten] = (),
) -> Report:
    """Return the report on a run, without its times.

    ``followed`` are the answers that call wrong ones, ``taken`` those that use a name which
    something else has taken.
    """
    tests, lacking = found.tests(), not_imported(found)
    for rerun in taken:
        tests |= rerun.outcomes
    for rerun in followed:
        tests |= {
            g: outcome and provided(outcome, rerun.given) for g, outcome in rerun.outcomes.items()
        }
    tests = {grade_id: o and because(o, lacking) for grade_id, o in tests.items()}
    verdicts = [v for outcome in tests.values() if outcome for v in outcome.verdicts]
    seen = dict.fromkeys((v["target"], v["mistake"]) for v in verdicts if v["mistake"])
    empty = remarks.unwritten(found, verdicts)
    cells = {
        grade_id: cell_result(cell, tests.get(grade_id), exercise_of(grade_id) in empty, found)
        for grade_id, cell in assignment.graded.items()
    }
    first = found.tests()
    if not assignment.follow_on:
        for rerun in followed:
            cells |= {
                g: unpaid(assignment.graded[g], first[g], rerun.given) for g in rerun.outcomes
            }
    trouble, no_python = tuple(found.trouble.values()), remarks.unread(found, assignment)
    verdict_rows = [
        *remarks.first_notes([note for note in notes if not note.startswith(PUT_BACK)]),
        *(said for said in no_python if remarks.NEEDS in said),
        *remarks.first_notes(remarks.remarks(found, verdicts)),
        *(rerun.note for rerun in followed if rerun.right),
        *remarks.unforeseen_remarks(first, cells, verdicts),
    ]
    return Report(
        student=student,
        assignment=assignment.name,
        status="interrupted" if trouble else "graded",
        cells=cells,
        mistakes=tuple(seen),
        notes=(
            *verdict_rows,
            *remarks.unexplained(cells, [*verdict_rows, *trouble], seen),
            *trouble,
        ),
        attention=(
            *trouble,
            *(note for note in notes if note.startswith((PUT_BACK, ANOTHER, OTHER))),
            *no_python,
            *([NO_POINTS] if not any(cell.points for cell in cells.values()) else []),
            *remarks.suspicions(found, assignment),
        ),
        verdicts=tuple(verdicts),
        seed=found.seed,
    )


def cell_result(
    cell: Cell, outcome: StepOutcome | None, empty: bool, found: Findings
) -> CellResult:
    """Return the points of a graded cell, and why where there is no answer to test."""
    result, name = judge_cell(cell, outcome), exercise_of(cell.grade_id)
    if empty and not result.points:
        return replace(result, message=NOT_ATTEMPTED)
    if is_nowhere(name, outcome):
        hidden = f"nothing is called {name}"
        return CellResult(0.0, cell.points, hidden if cell.hides else why_nowhere(name, found))
    return result


def provided(outcome: StepOutcome, given: tuple[str, ...]) -> StepOutcome:
    """Return the outcome of a test in which our solutions stood in place of wrong answers."""
    verdicts = [
        dict(v, given=list(given), text=on_condition(v["text"], given)) for v in outcome.verdicts
    ]
    return replace(outcome, verdicts=verdicts)


def on_condition(text: str, given: tuple[str, ...]) -> str:
    """Return a verdict's text with the condition behind its first line."""
    head, *rest = text.split("\n")
    other_lines = (
        line for line in rest if not line.startswith(IN_FULL)
    )  # which has no such numbers
    return "\n".join([head + given_right(given), *other_lines]) if text else ""
