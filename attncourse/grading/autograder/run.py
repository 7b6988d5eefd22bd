"""The program that ``run_autograder`` runs: one submission in, its results.json out.

A container seldom lets another one be built in it. Where there is no jail, the submission runs
without one, and the output says so; whatever is in the container is then within its reach.
"""

import json
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from attncourse.grading.autograder.bundle import SETTINGS
from attncourse.grading.course.folders import find_assignment, folders_in, read_submission
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.read import Person
from attncourse.grading.jail.jail import missing_required_layers
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.machine import slowness
from attncourse.grading.report import report_without_points
from attncourse.grading.results.class_results import from_report
from attncourse.grading.results.gradescope import results_json

STUDENT = "submission"
OPEN = "Graded without a jail, which this container does not allow ({}): points can be forged."


def main(root: Path) -> None:
    """Grade what lies in ``submission/`` of Gradescope's folder ``root``; write results.json."""
    source = root / "source"
    names = folders_in(source / "solutions")
    if len(names) != 1:
        raise UserError(f"{source}/solutions should hold one assignment: make the zip again")
    settings = json.loads((source / SETTINGS).read_text(encoding="utf-8"))
    assignment = replace(find_assignment(source, names[0]), follow_on=settings["follow_on"])
    missing = missing_required_layers()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "submitted" / STUDENT / assignment.name
        shutil.copytree(root / "submission", place, symlinks=True)
        submission = read_submission(Path(folder), assignment.name, STUDENT)
    if submission.data is None:
        report = report_without_points(assignment, submission.status, submission.reason)
    else:
        limits = Limits.of(Limits.submission).stretched(slowness())
        hidden = (str(root.resolve()),)
        report = grade_submission(
            submission.data, assignment, limits=limits, sandbox=not missing, hidden=hidden
        )
    report = replace(report, notes=(*([submission.note] if submission.note else []), *report.notes))
    content = results_json(from_report(Person(STUDENT), assignment.name, report), report)
    if missing:
        content["output"] += "\n" + OPEN.format(missing[0].name)
    (root / "results").mkdir(exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    (root / "results" / "results.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except UserError as error:  # without results Gradescope says that the autograder failed
        sys.exit(f"attncourse: {error}")
