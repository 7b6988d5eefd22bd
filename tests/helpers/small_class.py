"""Classes made without grading: reports, and a gradebook through nbgrader's own methods."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from attncourse.grading.course.settings import require_nbgrader
from attncourse.grading.gradebook.connection import tables_version
from attncourse.grading.report import CellResult, Report, to_json
from helpers import forked_commands

NAME = "01_small"
MAXIMA = {"points_add": 2.0, "hidden_add": 1.0, "points_twice": 4.0}


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess:
    return forked_commands.run(*arguments, cwd=cwd, COLUMNS="120")


def refuses(process: subprocess.CompletedProcess, *words: str) -> None:
    """Assert exit status 2 and one line on standard error, with these words in it."""
    assert (process.returncode, process.stdout) == (2, ""), process
    assert len(process.stderr.splitlines()) == 1, process.stderr
    for word in words:
        assert word in process.stderr


def make_report(student: str, *points: float, assignment: str = NAME, **more) -> Report:
    """Return a report with these points in the small assignment's cells."""
    earned = dict(zip(MAXIMA, points or (0, 0, 0), strict=True))
    cells = {g: CellResult(float(earned[g]), MAXIMA[g]) for g in MAXIMA}
    return Report(student, assignment, more.pop("status", "graded"), cells, **more)


def mistake_fields(target: str, name: str, explanation: str = "") -> dict:
    """Return the fields of a report whose answer to ``target`` has this mistake."""
    verdict = {"target": target, "mistake": name, "explanation": explanation, "failed": ["values"]}
    verdict |= {"cell": "points_add", "reason": "", "text": f"✗ {name}", "criteria": [], "seed": 7}
    verdict |= {"passed": False, "earned": 0.0, "possible": 2.0}
    return {"mistakes": ((target, name),), "verdicts": (verdict,)}


def write_reports(course: Path, reports: Iterable[Report]) -> Path:
    (course / "solutions" / NAME).mkdir(parents=True, exist_ok=True)
    for report in reports:
        place = course / "reports" / report.assignment
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{report.student}.json").write_text(json.dumps(to_json(report)))
    return course


def write_gradebook(
    course: Path,
    reports: Iterable[Report],
    *,
    course_id: str = "attention",
    manual: dict[tuple[str, str], float] | None = None,
    late: dict[str, float] | None = None,
    people: dict[str, dict[str, str]] | None = None,
    waiting: tuple[tuple[str, str], ...] = (),
) -> Path:
    """A gradebook with these reports' points, as grading leaves it, and what people changed."""
    require_nbgrader()
    from nbgrader import api

    api.get_alembic_version = tables_version  # nbgrader's own starts a program for the number
    with api.Gradebook(f"sqlite:///{course / 'gradebook.db'}", course_id) as gradebook:
        for report in reports:
            enter(gradebook, report, (people or {}).get(report.student, {}))
            if report.status == "missing":
                continue
            submission = gradebook.find_submission(report.assignment, report.student)
            for notebook in submission.notebooks:
                notebook.late_submission_penalty = (late or {}).get(report.student)
                for grade in notebook.grades:
                    grade.auto_score = report.cells[grade.name].points
                    grade.manual_score = (manual or {}).get((report.student, grade.name))
                    grade.needs_manual_grade = grade.manual_score is not None
                    if (report.student, grade.name) in waiting:
                        grade.auto_score, grade.needs_manual_grade = None, True
        gradebook.db.commit()
    return course


def enter(gradebook, report: Report, person: dict[str, str]) -> None:
    name = report.assignment
    gradebook.update_or_create_student(report.student, **person)
    if name not in [assignment.name for assignment in gradebook.assignments]:
        gradebook.add_assignment(name, course_id=gradebook.course_id)
        gradebook.add_notebook(name, name)
        for grade_id, points in MAXIMA.items():
            gradebook.add_grade_cell(grade_id, name, name, max_score=points, cell_type="code")
    if report.status != "missing":
        with gradebook.db.no_autoflush:
            gradebook.update_or_create_submission(name, report.student)
