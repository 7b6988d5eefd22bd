"""Judging a student's own file where there is no Linux: in another process, without a jail.

The code is the student's, and Jupyter runs it without a jail as well. The judge's lanes fork and
pass sockets on, as Linux does: here one Python runs the notebook's steps and judges its answers.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from attncourse.checks import examine
from attncourse.checks.reading.cells import skipped_lines_note
from attncourse.checks.trying.muted import muted
from attncourse.checks.trying.trials import NoReference
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.marking import make_report
from attncourse.grading.judge.outcomes import (
    StepOutcome,
    describe_verdict,
    error_in_words,
    outcome_from_json,
    shortened_value,
)
from attncourse.grading.judge.worker import notebook_shell
from attncourse.grading.limits import Limits
from attncourse.grading.report import Report
from attncourse.grading.submission.notebook import Assignment, Cells
from attncourse.grading.submission.plan import plan
from attncourse.support.alarm import TimeUp, within
from attncourse.support.stopwatch import CLOCK_SECONDS_PER_WORK

INSTALLS = "#@title"  # the cell that installs the package, which is there
PROCESS_ENDED = "the process ended, and what comes after was not run"
TOOK_TOO_LONG = "it took too long, and what comes after was not run"


def judge_unjailed(
    cells: Cells, assignment: Assignment, variants: dict[str, str], limits: Limits, explain: bool
) -> Report:
    """Return the report on a notebook's cells, which another Python runs as they are.

    ``variants`` are by target. Without ``explain``, no mistake is looked for.
    """
    steps, notes = plan(cells, assignment)
    steps = [step for step in steps if not step.source.startswith(INSTALLS)]
    order = {
        "steps": [asdict(step) for step in steps],
        "variants": variants,
        "explain": explain,
        "seconds": limits.cell,
    }
    lines, reason = outcome_lines(json.dumps(order), CLOCK_SECONDS_PER_WORK * limits.submission)
    outcomes = {number: outcome_from_json(json.loads(line)) for number, line in enumerate(lines)}
    missed = len(outcomes)
    trouble = {missed: f"{steps[missed].name}: {reason}"} if missed < len(steps) else {}
    return make_report(Findings(tuple(steps), outcomes, trouble=trouble), assignment, "", notes)


def outcome_lines(order: str, seconds: float) -> tuple[list[str], str]:
    """Return the outcome of each step that has run, as lines of JSON, and why there are no more.

    ``order`` is the JSON that ``main`` reads; ``seconds`` is the time on the clock for all.
    """
    command = [sys.executable, "-m", __name__]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = os.pathsep.join(filter(None, sys.path))  # the package may be no installed one
        try:
            ended = subprocess.run(
                command,
                input=order.encode(),
                stdout=subprocess.PIPE,
                cwd=folder,
                timeout=seconds,
                env=os.environ | {"PYTHONPATH": path},
            )
        except subprocess.TimeoutExpired as late:
            return ended_lines(late.stdout or b""), TOOK_TOO_LONG
    return ended_lines(ended.stdout), PROCESS_ENDED


def ended_lines(output: bytes) -> list[str]:
    """Return the complete lines of an output, without one that was cut."""
    return output.decode().split("\n")[:-1]


def main() -> None:
    """Run the steps that standard input asks for; write each outcome as a line of JSON."""
    order = json.load(sys.stdin.buffer)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what an answer prints, from C as well
    namespace = notebook_shell.notebook_namespace()
    for step in order["steps"]:
        if step["kind"] == "test":
            outcome = judge_answer(step["grade_id"], namespace, order)
        else:
            outcome = run_cell(step, namespace, order["seconds"])
        print(json.dumps(asdict(outcome)), file=out, flush=True)
    os._exit(0)  # a call that nothing could end would keep the process


def run_cell(step: dict[str, Any], namespace: dict[str, Any], seconds: float) -> StepOutcome:
    """Run one of the notebook's own cells; return its outcome."""

    def run_source() -> None:
        """Run the cell's source in the notebook's names."""
        notebook_shell.run_cell_source(step["source"], f"<{step['name']}>", namespace)

    return outcome_of_call(lambda: (within(seconds, run_source), StepOutcome("none"))[1], seconds)


def judge_answer(target: str, namespace: dict[str, Any], order: dict[str, Any]) -> StepOutcome:
    """Check the answer to one exercise; return the outcome, with its verdict."""
    name = target.partition(".")[2]
    if name not in namespace:
        text = f"NameError: name {name!r} is not defined"
        return StepOutcome("error", text, error="NameError", missing=name)

    def examine_answer() -> StepOutcome:
        """Return the points and the verdict of the answer's check."""
        variant = order["variants"].get(target, "")
        verdict = examine(target, namespace[name], variant=variant, explain=order["explain"])
        text = describe_verdict(verdict, target)
        return StepOutcome("number", value=float(verdict.earned), verdicts=[text])

    return outcome_of_call(examine_answer, order["seconds"])


def outcome_of_call(do: Callable[[], StepOutcome], seconds: float) -> StepOutcome:
    """Return the outcome that ``do`` returns, or one that says what it raised."""
    try:
        with muted():
            return do()
    except TimeUp:
        message = f"did not end within {seconds:g} s of processor time"
        return StepOutcome("timeout", message, cut=message)
    except NoReference as error:
        return StepOutcome("lost", str(error), cut=str(error))
    except notebook_shell.Skipped as error:
        first = error_in_words(error.__cause__ or error).partition("\n")[0]
        message = f"{first} ({skipped_lines_note(map(shortened_value, error.lines))})"
        return StepOutcome("error", message, error=type(error.__cause__ or error).__name__)
    except (Exception, SystemExit) as error:
        missing = error.name or "" if isinstance(error, NameError) else ""
        return StepOutcome(
            "error", error_in_words(error), error=type(error).__name__, missing=missing
        )


if __name__ == "__main__":
    main()
