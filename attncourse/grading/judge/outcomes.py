"""Outcomes of steps, and what a report keeps of them: shortened, no control characters."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any

from attncourse.checks.exercise import Mistake
from attncourse.checks.showing.verdict import CriterionVerdict, Verdict
from attncourse.grading.harmless import UNSEEN
from attncourse.grading.judge.assertion_message import NO_ASSERTION, AssertionMessage

MAX_MESSAGE_CHARS = 2000  # of an error's text are worth keeping
# What a report keeps of a verdict, and of a criterion, as it is.
VERDICT_FIELDS = (
    *("target", "variant", "earned", "possible", "symptom", "rest", "worth", "unwritten"),
    *("reason", "section", "read", "guide", "seed"),
)
CRITERION_FIELDS = ("name", "passed", "earned", "possible", "message", "brief", "follows")


@dataclass
class StepOutcome:
    """What came of a step. ``kind``: "number", "none", "other", "error", "timeout" or "lost".

    The first three are the value of a test's last line: a number of points, no value, another
    value. ``cut`` says why a step did not end by itself: the submission is held to that only if it
    happens a second time.
    """

    kind: str
    message: str = ""
    value: float = 0.0
    error: str = ""  # the exception's class, or the library's above one of the submission's own
    missing: str = ""  # the name that a test did not find
    cut: str = ""  # why it did not end by itself, if it did not
    hidden: bool = False  # whether the submission may have seen a hidden test
    assertion: AssertionMessage = NO_ASSERTION  # of the instructor's where the test failed
    verdicts: list[dict[str, Any]] = field(default_factory=list)


def outcome_from_json(data: dict[str, Any]) -> StepOutcome:
    """Return the outcome whose fields, as JSON keeps them, are ``data``."""
    return StepOutcome(**data | {"assertion": AssertionMessage(*data["assertion"])})


def earns_all(outcome: StepOutcome | None) -> bool:
    """True if a test ended without a number: it earns all its points."""
    return outcome is not None and outcome.kind == "none"


def earns_more(a: StepOutcome, b: StepOutcome) -> bool:
    """True if one outcome earns more than another."""
    rank = {"none": 2, "number": 1}
    return (rank.get(a.kind, 0), a.value) > (rank.get(b.kind, 0), b.value)


def describe_verdict(verdict: Any, grade_id: str, silent: bool = False) -> dict[str, Any]:
    """Return a verdict as a report keeps it; a ``silent`` one, of a hidden test, without words."""
    if silent:
        criteria = tuple(replace(c, message="", brief="", follows=False) for c in verdict.criteria)
        verdict = replace(
            verdict, criteria=criteria, diagnosis=None, symptom="", rest="", example="", guide=""
        )
    diagnosis = verdict.diagnosis
    return {
        "cell": grade_id,
        **{name: shortened_value(getattr(verdict, name), 500) for name in VERDICT_FIELDS},
        "passed": bool(verdict.passed),
        "criteria": [
            {n: shortened_value(getattr(c, n)) for n in CRITERION_FIELDS} for c in verdict.criteria
        ],
        "mistake": diagnosis.name if diagnosis else "",
        "explanation": diagnosis.explanation if diagnosis else "",
        "failed": [] if silent else [c.name for c in verdict.criteria if not c.passed],
        "given": list(verdict.given),
        "text": "" if silent else shortened_value(str(verdict), 10_000),
    }


def verdict_from_row(row: dict[str, Any], rewrite: Callable[[str], str] = str) -> Verdict:
    """Return the verdict that ``describe_verdict`` made this row of.

    ``rewrite`` is applied to each text. Fields that an older report does not have get their
    defaults.
    """

    def fields_of_row(kind: type, values: dict[str, Any]) -> dict[str, Any]:
        """Return those of the values that are fields of the class, texts rewritten."""
        names = {field.name for field in fields(kind)} & values.keys()
        return {n: rewrite(values[n]) if isinstance(values[n], str) else values[n] for n in names}

    name, why = rewrite(row["mistake"]), rewrite(row["explanation"])
    objects: dict[str, Any] = {
        "criteria": tuple(
            CriterionVerdict(**fields_of_row(CriterionVerdict, c)) for c in row["criteria"]
        ),
        "given": tuple(map(rewrite, row.get("given", ()))),
        "diagnosis": Mistake(name, why) if name else None,
    }
    return Verdict(**fields_of_row(Verdict, row) | objects)


def shortened_value(value: Any, limit: int = MAX_MESSAGE_CHARS) -> Any:
    """Return a submission's text, cut and without control characters; another value as it is."""
    if not isinstance(value, str):
        return value
    visible = UNSEEN.sub("\N{REPLACEMENT CHARACTER}", value[:limit])
    return visible + "…" if len(value) > limit else visible


def error_in_words(error: BaseException) -> str:
    """Return an exception's class and message; the class alone where the message cannot be had."""
    text = ""
    with suppress(Exception):
        text = shortened_value(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
