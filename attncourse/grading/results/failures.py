"""Failures: why points are missing where no mistake was recognised, in words to be counted."""

from collections.abc import Iterator
from typing import NamedTuple

from attncourse.grading.harmless import shortened_text
from attncourse.grading.report import TOLERANCE, Report, exercise_of

MAX_CHARACTERS_OF_FAILURE = 100  # characters; two that differ only behind them count as one


class Failure(NamedTuple):
    """An exercise, what is wrong in words that other answers can share, and one example."""

    exercise: str
    problem: str
    example: str = ""


def failures_in(report: Report) -> tuple[Failure, ...]:
    """Return the failures in a report, each once, in the order of the tests."""
    if report.status in ("missing", "unreadable"):
        return ()
    all_failures = [*failures_of_verdicts(report), *failures_of_cells(report)]
    return tuple(
        {
            (failure.exercise, failure.problem): failure for failure in reversed(all_failures)
        }.values()
    )[::-1]


def failures_of_verdicts(report: Report) -> Iterator[Failure]:
    """Yield the failures that verdicts show: a symptom, or else the first failed criterion."""
    for verdict in report.verdicts:
        failed = verdict.get("failed")
        if not failed or verdict.get("mistake"):
            continue
        name = exercise_of(verdict["target"])
        reason = str(verdict.get("reason") or "")
        if verdict.get("unwritten"):
            yield Failure(name, "not attempted")
        elif verdict.get("symptom"):
            yield Failure(name, first_line_of_failure(verdict["symptom"]), reason)
        else:
            yield Failure(name, f"fails at: {first_line_of_failure(failed[0])}", reason)


def failures_of_cells(report: Report) -> Iterator[Failure]:
    """Yield the failures of tests that made no verdict.

    A hidden test counts if all other tests of its exercise passed.
    """
    judged = {verdict.get("cell") for verdict in report.verdicts}
    lost = {g for g, cell in report.cells.items() if cell.points < cell.maximum - TOLERANCE}
    for grade_id in report.cells:
        name, message = exercise_of(grade_id), first_line_of_failure(report.cells[grade_id].message)
        others = {g for g in report.cells if g != grade_id and exercise_of(g) == name}
        hidden = grade_id.startswith("hidden_") and others & lost
        if grade_id in lost and grade_id not in judged and message and not hidden:
            yield Failure(name, message)


def first_line_of_failure(text: str) -> str:
    """Return the first line of a text, shortened, to tell failures apart by."""
    return shortened_text(
        " ".join(text.strip().partition("\n")[0].split()), MAX_CHARACTERS_OF_FAILURE
    )
