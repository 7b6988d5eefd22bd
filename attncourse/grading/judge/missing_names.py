"""Names that a test did not find in a submission, and why they are not there."""

import re
from dataclasses import replace
from typing import Any

from attncourse.checks.showing.verdict import LOOKS_LIKE
from attncourse.checks.trying.unavailable import FILE_ABSENT, is_unavailable_sentence
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.instructor_namespace import imports_in, names_bound
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.points import failure_line

NO_MODULE_ERROR = "ModuleNotFoundError"
MISSED = re.compile(r"raised NameError: name '(\w+)' is not defined[^\n]*")


def reasons_by_missing_import(findings: Findings) -> dict[str, str]:
    """Return, by name, why an import did not bind it: it is not there while work is graded.

    Imports that failed for another reason are left out; the last failure of a name counts.
    """
    reasons: dict[str, str] = {}
    for step, outcome in findings.steps_with_outcomes():
        if step.kind == "cell" and outcome and outcome.error in ("ImportError", NO_MODULE_ERROR):
            message = failure_line(outcome.message).split(": ", 1)[-1].split(" (skipped")[0]
            module = re.fullmatch(r"No module named '(\w+)[\w.]*'", message)
            sentence = f"`{module[1]}` {FILE_ABSENT}" if module else message
            for name in names_bound(imports_in(step.source)):
                if is_unavailable_sentence(sentence):
                    reasons[name] = sentence
                else:  # the last failure of a name counts, so an earlier reason goes
                    reasons.pop(name, None)
    return reasons


def outcome_with_reasons(outcome: StepOutcome, reasons: dict[str, str]) -> StepOutcome:
    """Return a test's outcome whose verdicts say why a name was not imported, by ``reasons``."""
    return replace(outcome, verdicts=[explained_verdict(v, reasons) for v in outcome.verdicts])


def explained_verdict(verdict: dict[str, Any], reasons: dict[str, str]) -> dict[str, Any]:
    """Return a verdict that says why an import did not bind the name that it misses.

    It stays as it is where it misses no name, or one that ``reasons`` do not have.
    """
    missing = MISSED.search(verdict["reason"])
    if missing is None or missing[1] not in reasons:
        return verdict

    def with_reason_in_place(value: Any) -> Any:
        """Return a field with the reason where it says that the name is not defined."""
        return MISSED.sub(reasons[missing[1]], value) if isinstance(value, str) else value

    reworded = {name: with_reason_in_place(value) for name, value in verdict.items()}
    criteria = [
        {name: with_reason_in_place(value) for name, value in criterion.items()}
        for criterion in verdict["criteria"]
    ]
    symptom = "" if "NameError" in verdict["symptom"] else verdict["symptom"]
    text = "\n".join(
        x for x in reworded["text"].splitlines() if symptom or not x.startswith(LOOKS_LIKE)
    )
    changed: dict[str, Any] = {"criteria": criteria, "symptom": symptom, "text": text}
    if reworded["mistake"] == f"`{missing[1]}` is not defined":  # it was imported, which failed
        headline, _, explanation = reasons[missing[1]].partition(": ")
        changed |= {"mistake": headline, "explanation": explanation}
        for before, now in (
            (reworded["mistake"], headline),
            (reworded["explanation"], explanation),
        ):
            changed["text"] = changed["text"].replace(before, now)
    return reworded | changed


def is_nowhere(name: str, outcome: StepOutcome | None) -> bool:
    """True if a test found nothing of that name among the submission's names."""
    return outcome is not None and outcome.missing == name


def why_nowhere(name: str, findings: Findings) -> str:
    """Return why nothing has an answer's name: its import failed, its cell did, or neither is."""
    if sentence := reasons_by_missing_import(findings).get(name):
        return sentence
    for step, outcome in findings.steps_with_outcomes():
        if step.name == f"cell {name}" and outcome is not None and outcome.kind == "error":
            return f"its cell ended in {failure_line(outcome.message)}"
    return f"nothing is called {name}"
