"""Names that a test did not find, and what became of them."""

import re
from dataclasses import replace
from typing import Any

from attncourse.checks.showing.verdict import LOOKS_LIKE
from attncourse.checks.trying.unavailable import FILE_ABSENT, is_unavailable_sentence
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.instructor_namespace import imports_in, names_bound
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.points import failure_line

MISSING = "ModuleNotFoundError"
MISSED = re.compile(r"raised NameError: name '(\w+)' is not defined[^\n]*")


def not_imported(findings: Findings) -> dict[str, str]:
    """Return what to say of each name that a failed import would have bound."""
    reasons = {}
    for step, outcome in findings.pairs():
        if step.kind == "cell" and outcome and outcome.error in ("ImportError", MISSING):
            message = failure_line(outcome.message).split(": ", 1)[-1].split(" (skipped")[0]
            module = re.fullmatch(r"No module named '(\w+)[\w.]*'", message)
            sentence = f"`{module[1]}` {FILE_ABSENT}" if module else message
            reasons |= dict.fromkeys(
                names_bound(imports_in(step.source)), sentence * is_unavailable_sentence(sentence)
            )
    return {name: sentence for name, sentence in reasons.items() if sentence}


def with_reason(outcome: StepOutcome, reasons: dict[str, str]) -> StepOutcome:
    """Return a test's outcome with the reason why an answer misses a name that was not imported."""
    return replace(outcome, verdicts=[explained_verdict(v, reasons) for v in outcome.verdicts])


def explained_verdict(verdict: dict[str, Any], reasons: dict[str, str]) -> dict[str, Any]:
    """Return a verdict in which a name that was not imported is said to be that."""
    missing = MISSED.search(verdict["reason"])
    if missing is None or missing[1] not in reasons:
        return verdict

    def in_place(value: Any) -> Any:
        return MISSED.sub(reasons[missing[1]], value) if isinstance(value, str) else value

    reworded = {name: in_place(value) for name, value in verdict.items()}
    criteria = [{n: in_place(value) for n, value in c.items()} for c in verdict["criteria"]]
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
    """True if a test found nothing of that name."""
    return outcome is not None and outcome.missing == name


def why_nowhere(name: str, findings: Findings) -> str:
    """Return why an answer's name is nowhere: an import failed, or its cell, or none has it."""
    if sentence := not_imported(findings).get(name):
        return sentence
    for step, outcome in findings.pairs():
        if step.name == f"cell {name}" and outcome is not None and outcome.kind == "error":
            return f"its cell ended in {failure_line(outcome.message)}"
    return f"nothing is called {name}"
