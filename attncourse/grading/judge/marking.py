"""From the findings of a run to a report: points, notes, and why a person should look."""

from collections.abc import Collection
from dataclasses import replace

from attncourse.checks.showing.verdict import IN_FULL, NOT_ATTEMPTED, right_given_words
from attncourse.grading.judge import remarks
from attncourse.grading.judge.carried_errors import FollowOn
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.missing_names import (
    is_nowhere,
    outcome_with_reasons,
    reasons_by_missing_import,
    why_nowhere,
)
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.overwritten import OverwrittenAnswer
from attncourse.grading.judge.points import judge_cell, points_without_ours
from attncourse.grading.report import CellResult, Report, exercise_of
from attncourse.grading.submission.notebook import Assignment, Cell
from attncourse.grading.submission.plan import ANOTHER, PUT_BACK
from attncourse.grading.submission.varied import OTHER

NO_POINTS = "earned no points"


def make_report(
    findings: Findings,
    assignment: Assignment,
    student: str,
    notes: list[str],
    follow_ons: Collection[FollowOn] = (),
    overwritten: Collection[OverwrittenAnswer] = (),
) -> Report:
    """Return the report on a run, without the use of its limits.

    ``notes`` are on how the notebook was read, ``follow_ons`` on answers that call wrong ones,
    ``overwritten`` on those that use a name which something else has taken.
    """
    tests = tests_with_reruns(findings, follow_ons, overwritten)
    verdicts = [v for outcome in tests.values() if outcome for v in outcome.verdicts]
    mistakes = dict.fromkeys((v["target"], v["mistake"]) for v in verdicts if v["mistake"])
    empty = remarks.unwritten_answers(findings, verdicts)
    cells = {
        grade_id: cell_result(cell, tests.get(grade_id), exercise_of(grade_id) in empty, findings)
        for grade_id, cell in assignment.graded.items()
    }
    first = findings.test_outcomes()
    if not assignment.follow_on:
        for rerun in follow_ons:
            cells |= {
                g: points_without_ours(assignment.graded[g], first[g], cells[g], rerun.replaced)
                for g in rerun.outcomes
            }
    trouble = tuple(findings.trouble.values())
    no_python = remarks.unread_cells(findings, assignment)
    student_notes = [
        *remarks.first_notes([note for note in notes if not note.startswith(PUT_BACK)]),
        *(sentence for sentence in no_python if remarks.NEEDS_PYTHON in sentence),
        *remarks.first_notes(remarks.remarks(findings, verdicts)),
        *(rerun.note for rerun in follow_ons if rerun.note),
        *remarks.unforeseen_remarks(first, cells, verdicts),
    ]
    return Report(
        student=student,
        assignment=assignment.name,
        status="interrupted" if trouble else "graded",
        cells=cells,
        mistakes=tuple(mistakes),
        notes=(
            *student_notes,
            *remarks.unexplained_losses(cells, [*student_notes, *trouble], mistakes),
            *trouble,
        ),
        attention=(
            *trouble,
            *(note for note in notes if note.startswith((PUT_BACK, ANOTHER, OTHER))),
            *no_python,
            *([NO_POINTS] if not any(cell.points for cell in cells.values()) else []),
            *remarks.suspicions(findings, assignment),
        ),
        verdicts=tuple(verdicts),
        seed=findings.seed,
    )


def tests_with_reruns(
    findings: Findings, follow_ons: Collection[FollowOn], overwritten: Collection[OverwrittenAnswer]
) -> dict[str, StepOutcome | None]:
    """Return by grade id the outcome that counts for each test, None for one not reached.

    It is the rerun's where there is one, a follow-on's before one with a name put back. Verdicts
    say what was replaced, and why an import failed.
    """
    tests = findings.test_outcomes()
    for rerun in overwritten:
        tests |= rerun.outcomes
    for rerun in follow_ons:
        for grade_id, outcome in rerun.outcomes.items():
            tests[grade_id] = outcome and outcome_with_ours(outcome, rerun.replaced)
    reasons = reasons_by_missing_import(findings)
    return {
        grade_id: outcome and outcome_with_reasons(outcome, reasons)
        for grade_id, outcome in tests.items()
    }


def cell_result(
    cell: Cell, outcome: StepOutcome | None, empty: bool, findings: Findings
) -> CellResult:
    """Return the points of a graded cell, and why they are missing.

    ``empty`` says that the answer is as it was released.
    """
    result, name = judge_cell(cell, outcome), exercise_of(cell.grade_id)
    if empty and not result.points:
        return replace(result, message=NOT_ATTEMPTED)
    if is_nowhere(name, outcome):
        hidden = f"nothing is called {name}"
        return CellResult(0.0, cell.points, hidden if cell.hides else why_nowhere(name, findings))
    return result


def outcome_with_ours(outcome: StepOutcome, replaced: tuple[str, ...]) -> StepOutcome:
    """Return the outcome of a test whose verdicts say that our answers replaced wrong ones."""
    verdicts = [
        v | {"given": list(replaced), "text": text_with_condition(v["text"], replaced)}
        for v in outcome.verdicts
    ]
    return replace(outcome, verdicts=verdicts)


def text_with_condition(text: str, replaced: tuple[str, ...]) -> str:
    """Return a verdict's text whose first line says which answers were replaced; "" for ""."""
    if not text:
        return ""
    head, *rest = text.split("\n")
    # Of a rerun nothing is kept that could be printed in full.
    other_lines = (line for line in rest if not line.startswith(IN_FULL))
    return "\n".join([head + right_given_words(replaced), *other_lines])
