"""A report as a student reads it in a notebook: what was mended, and each test's result."""

from html import escape
from types import SimpleNamespace
from typing import Any

from attncourse.checks.verdict import MESSAGE_STYLE, CriterionVerdict, Verdict
from attncourse.grading.harmless import message
from attncourse.grading.report import Report
from attncourse.grading.submission.notebook import Cell

HIDDEN = "BEGIN HIDDEN TESTS"
FRAME = '<div class="attncourse-report tex2jax_ignore">{}</div>'  # in it, $ is no formula


def about(report: Report) -> str:
    """The first cell: the points that the tests gave, and what there is to know of them.

    It is HTML, which is Markdown as well, so that nothing in a note can be Markdown.
    """
    head = f"Tests: {score(report.points, report.maximum)}."
    notes = [*report.notes] + ([] if report.sandbox else ["Graded without a sandbox."])
    items = "".join(f"<li>{escape(' '.join(message(note).split()))}</li>" for note in notes)
    return FRAME.format(f"<strong>{head}</strong>" + (f"<ul>{items}</ul>" if items else ""))


def outputs(cell: Cell, report: Report) -> list[dict[str, Any]]:
    """What a test gave: the verdicts made in it, why points are missing, and the points.

    The last one is the plain number that nbgrader takes for the score. Without one it would give
    all points. What happened in hidden tests stays there: a message may hold a test's values.
    """
    if not cell.test:
        return []
    hidden = HIDDEN in cell.source
    verdicts = [] if hidden else [v for v in report.verdicts if v["cell"] == cell.grade_id]
    made = [data_of("display_data", message(v["text"]), verdict_html(v)) for v in verdicts]
    found = report.cells.get(cell.grade_id) if cell.grade else None
    if not cell.grade:
        return made
    points = found.points if found else 0.0
    said = "not all of the hidden tests passed" if hidden else found.message if found else ""
    said = "" if verdicts or points == cell.points else message(said)
    html = f"<strong>{score(points, cell.points)}</strong>"
    html += f'<pre style="{MESSAGE_STYLE}">{escape(said)}</pre>' if said else ""
    return [*made, data_of("execute_result", repr(points), FRAME.format(html))]


def data_of(kind: str, text: str, html: str) -> dict[str, Any]:
    data = {"text/plain": text, "text/html": html}
    data = {name: value.splitlines(keepends=True) for name, value in data.items()}
    made = {"output_type": kind, "metadata": {}, "data": data}
    return made | ({"execution_count": None} if kind == "execute_result" else {})


def verdict_html(verdict: dict[str, Any]) -> str:
    """The verdict as a notebook shows it when a student runs the check."""
    criteria = tuple(
        CriterionVerdict(
            name=message(c["name"]),
            passed=bool(c["passed"]),
            earned=number(c["earned"]),
            possible=number(c["possible"]),
            message=message(c["message"]),
            brief=message(c.get("brief", "")),
        )
        for c in verdict["criteria"]
    )
    name = message(verdict["misconception"])
    said = SimpleNamespace(name=name, explanation=message(verdict["explanation"]))
    made = Verdict(
        target=message(verdict["target"]),
        criteria=criteria,
        diagnosis=said if name else None,
        seed=int(verdict["seed"]),
        section=message(verdict.get("section", "")),  # older reports have none
        symptom=message(verdict.get("symptom", "")),
        rest=message(verdict.get("rest", "")),
        worth=number(verdict.get("worth", 0)),
    )
    return FRAME.format(made._repr_html_())


def number(value: Any) -> int | float:
    """The value as a number, whole where it is."""
    return int(value) if float(value).is_integer() else float(value)


def score(points: float, maximum: float) -> str:
    return f"{points:g} of {maximum:g} {'point' if maximum == 1 else 'points'}"
