"""What came of a step, and what a report may keep of it: shortened, no control characters."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from attncourse.grading.harmless import UNSEEN
from attncourse.grading.judge.sentence import NOWHERE, Said

MESSAGE = 2000  # characters of an error's text that are worth keeping


@dataclass
class StepOutcome:
    """What came of a step. ``kind``: "number", "none", "other", "error", "timeout" or "lost".

    What is ``cut`` says nothing about the submission until it is so a second time.
    """

    kind: str
    message: str = ""
    value: float = 0.0
    error: str = ""  # the exception's class, or the library's above one of the submission's own
    missing: str = ""  # the name that a test did not find
    cut: str = ""  # why it did not end by itself, if it did not
    hidden: bool = False  # whether the submission may have seen a hidden test
    said: Said = NOWHERE  # by the instructor's assertion where the test failed
    verdicts: list[dict[str, Any]] = field(default_factory=list)


def outcome_of(told: dict[str, Any]) -> StepOutcome:
    """The outcome that JSON was made of."""
    return StepOutcome(**told | {"said": Said(*told["said"])})


def earns_all(outcome: StepOutcome | None) -> bool:
    return outcome is not None and outcome.kind == "none"


def earns_more(a: StepOutcome, b: StepOutcome) -> bool:
    rank = {"none": 2, "number": 1}
    return (rank.get(a.kind, 0), a.value) > (rank.get(b.kind, 0), b.value)


def first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def describe_verdict(verdict: Any, grade_id: str, silent: bool = False) -> dict[str, Any]:
    """What a report keeps of a verdict; of a ``silent`` one no words."""
    if silent:
        criteria = tuple(replace(c, message="", brief="", follows=False) for c in verdict.criteria)
        verdict = replace(
            verdict, criteria=criteria, diagnosis=None, symptom="", rest="", example="", guide=""
        )
    diagnosis = verdict.diagnosis
    failed = [] if silent else [c for c in verdict.criteria if not c.passed]
    names = ("name", "passed", "earned", "possible", "message", "brief", "follows")
    return {
        "cell": grade_id,
        "target": verdict.target,
        "variant": verdict.variant,
        "passed": bool(verdict.passed),
        "earned": verdict.earned,
        "possible": verdict.possible,
        "criteria": [
            {name: shortened(getattr(c, name)) for name in names} for c in verdict.criteria
        ],
        "mistake": diagnosis.name if diagnosis else "",
        "explanation": diagnosis.explanation if diagnosis else "",
        "symptom": shortened(verdict.symptom, 500),
        "rest": shortened(verdict.rest, 500),
        "worth": verdict.worth,
        "failed": [c.name for c in failed],
        "reason": shortened(verdict.reason, 500),
        "unwritten": verdict.unwritten,
        "section": verdict.section,
        "read": verdict.read,
        "guide": verdict.guide,
        "given": list(verdict.given),
        "seed": verdict.seed,
        "text": "" if silent else shortened(str(verdict), 10_000),
    }


def shortened(value: Any, limit: int = MESSAGE) -> Any:
    """A text that a submission may have made, cut and without control characters; others as is."""
    if not isinstance(value, str):
        return value
    kept = UNSEEN.sub("\N{REPLACEMENT CHARACTER}", value[:limit])
    return kept + "…" if len(value) > limit else kept


def text_of(error: BaseException) -> str:
    """An exception's class and message; nobody can show some whole numbers."""
    text = ""
    with suppress(Exception):
        text = shortened(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
