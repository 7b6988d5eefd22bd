"""Results for Gradescope's autograders: a results.json for each submission."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attncourse.grading.harmless import made_visible, one_line, shortened_text
from attncourse.grading.report import Report
from attncourse.grading.results.class_results import (
    ClassResults,
    Remark,
    StudentResult,
    read_report,
)

MAX_OUTPUT_WIDTH = 20_000  # characters of one output


def results_files(
    course: Path, results_of_class: ClassResults, remark: Remark
) -> Iterator[tuple[str, str]]:
    """Yield each student who handed in, and the content of their results.json."""
    for r in results_of_class.results:
        if not r.handed_in:
            remark(f"{one_line(r.student)} handed in nothing: no file")
        elif not is_folder(r.student):
            remark(f"{one_line(r.student)} is left out: no folder can be called so")
        else:
            report = read_report(course / "reports" / r.assignment / f"{r.student}.json")
            content = results_json(r, report if isinstance(report, Report) else None)
            yield r.student, json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def is_folder(name: str) -> bool:
    """True if a name can be a folder's, and leads to no other folder."""
    unfit = any(c in name for c in '/\\\0:*?"<>|') or len(name.encode("utf-8", "replace")) > 200
    return bool(name.strip(" .")) and not unfit and name.isprintable()


def results_json(r: StudentResult, report: Report | None) -> dict[str, Any]:
    """Return the data of one submission's results.json, with the gradebook's points."""
    lines = [r.lateness] if r.lateness else []
    if r.status != "graded":
        lines.append(f"status: {r.status}")
    results = {
        "score": r.score,
        "output": fitted_text("\n".join([*lines, *r.notes]) or "graded"),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": list(gradescope_tests(r, report)),
        "extra_data": {
            "assignment": r.assignment,
            "late_penalty": r.penalty,
            "days_late": round(r.late / 86400, 6),
            "extension_days": r.extension,
        },
    }
    if report:
        results["execution_time"] = round(report.duration, 3)
        results["extra_data"] |= {"seed": report.seed, "sandbox": report.sandbox}
    return results


def gradescope_tests(r: StudentResult, report: Report | None) -> Iterator[dict[str, Any]]:
    """Yield a test of Gradescope's for each graded cell, with the verdicts made in it."""
    for place, (name, cell) in enumerate(r.cells.items(), start=1):
        verdicts = [v for v in report.verdicts if v.get("cell") == name] if report else []
        texts = [str(v.get("text") or "") for v in verdicts] or [cell.message]
        if name in r.manual:
            texts.insert(0, "The points were given by a person.")
        if name in r.waiting:
            texts.insert(0, "Waits for a person's score.")
        mistakes = dict.fromkeys(v.get("mistake") for v in verdicts)
        yield {
            "name": fitted_text(name),
            "number": str(place),
            "score": cell.points,
            "max_score": cell.maximum,
            "status": "passed" if cell.points >= cell.maximum else "failed",
            "output": fitted_text("\n\n".join(t for t in texts if t)),
            "output_format": "text",
            "tags": [fitted_text(m) for m in mistakes if m],
            "visibility": "visible",
        }


def fitted_text(text: str) -> str:
    """Return a text that JSON and a database can hold, cut where it is very long."""
    return shortened_text(made_visible(text), MAX_OUTPUT_WIDTH)
