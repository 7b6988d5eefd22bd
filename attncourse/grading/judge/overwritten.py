"""Answers that are wrong because a cell took a name which they use: `math = 5`, say.

As in a notebook's check, an answer is tried once more with what the name stood for before, and
where it is better then, that is what happened. What earns points is the first run alone.
"""

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attncourse.checks.eligibility import (
    BINDING_STATEMENTS,
    built_ins_overwritten,
    taken_name_mistake,
)
from attncourse.checks.exercise import Mistake
from attncourse.checks.reading.cells import Statement
from attncourse.grading.judge.carried_errors import MIN_SECONDS_LEFT, our_answers, wrong_answers
from attncourse.grading.judge.deferred_tests import names_reached, touched_by
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.outcomes import StepOutcome, verdict_of
from attncourse.grading.judge.plan_runner import Means, run_again
from attncourse.grading.report import exercise_of
from attncourse.grading.submission.plan import Step
from attncourse.grading.submission.syntax import bound_names, parse_or_none

BUILT_IN = "import builtins as _builtins\n{name} = _builtins.{name}"
CRITERION_MARKS = ("  ✗", "  ✓", "  –")  # a criterion's line
MAX_NAMES_TRIED = 3  # for one answer


@dataclass(frozen=True)
class TakenName:
    """A name that a statement of a step took, and the source that gave it before."""

    name: str
    statement: str
    place: str
    before: str

    @property
    def mistake(self) -> Mistake:
        """The mistake that a verdict names for this."""
        return taken_name_mistake(self.name, self.statement, self.place)


@dataclass(frozen=True)
class OverwrittenAnswer:
    """An answer that is better where a name means what it meant: its tests, told so."""

    name: str
    outcomes: dict[str, StepOutcome]


def overwritten_answers(findings: Findings, means: Means) -> tuple[list[OverwrittenAnswer], bool]:
    """Try the wrong answers that use a taken name with what the name meant before.

    Returns those that are better then, and whether a run that this took was cut.
    """
    overwritten, cut = [], False
    names = our_answers(means.assignment)
    for name in wrong_answers(findings, means.assignment):
        first = {t: o for t, o in findings.tests().items() if exercise_of(t) == name}
        if not any(verdict["failed"] for o in first.values() if o for verdict in o.verdicts):
            continue
        candidates = [t for t in taken_names(name, findings.steps) if t.name not in names]
        for taken_name in candidates[:MAX_NAMES_TRIED]:
            if findings.trouble or means.budget.left() < MIN_SECONDS_LEFT:
                break
            second = run_again(put_back(name, taken_name, findings.steps), means)
            cut |= bool(second.cut)
            if points_earned(second.tests()) > points_earned(first):
                pairs = {t: (o, second.tests()[t]) for t, o in first.items()}
                mistake = taken_name.mistake
                outcomes = {t: outcome_with_mistake(*pair, mistake) for t, pair in pairs.items()}
                overwritten.append(OverwrittenAnswer(name, outcomes))
                break
    return overwritten, cut


def taken_names(name: str, steps: Sequence[Step]) -> Iterator[TakenName]:
    """Yield the names that an answer uses and that something else took before its tests."""
    end = first_test(name, steps)
    bound_sources: dict[str, str] = {}
    taken_by_name: dict[str, TakenName] = {}
    for step in steps[:end]:
        if step.kind != "test":
            for node in getattr(parse_or_none(step.source), "body", ()):
                bound, star = bound_names(ast.Module([node], [])), built_ins_overwritten(node)
                if isinstance(node, BINDING_STATEMENTS) and not star:
                    bound_sources |= dict.fromkeys(bound, ast.unparse(node))
                    for bound_name in bound:
                        taken_by_name.pop(bound_name, None)
                    continue
                for bound_name in star or bound:
                    built_ins = sorted(n for n in star or {bound_name} if hasattr(builtins, n))
                    built_in = "\n".join(BUILT_IN.format(name=n) for n in built_ins)
                    if before := bound_sources.get(bound_name, built_in):
                        taken_by_name[bound_name] = TakenName(
                            bound_name, str(Statement(node)), step.name, before
                        )
    used = names_reached([name], touched_by(steps[:end]))
    yield from (taken_name for n, taken_name in sorted(taken_by_name.items()) if n in used)


def first_test(name: str, steps: Sequence[Step]) -> int:
    """Return the place of an answer's first test among the steps; behind all if it has none."""
    tests = [n for n, s in enumerate(steps) if s.kind == "test" and exercise_of(s.grade_id) == name]
    return min(tests, default=len(steps))


def put_back(name: str, taken_name: TakenName, steps: Sequence[Step]) -> list[Step]:
    """Return the steps with what a name meant in front of an answer's tests.

    Of the tests only these stay.
    """
    at = first_test(name, steps)
    later_steps = [s for s in steps[at:] if s.kind != "test" or exercise_of(s.grade_id) == name]
    cells_before = [s for s in steps[:at] if s.kind != "test"]
    return [*cells_before, Step(f"cell {name}", taken_name.before), *later_steps]


def points_earned(tests: dict[str, StepOutcome | None]) -> int:
    """Return how much the verdicts of these tests earned."""
    return sum(verdict["earned"] for o in tests.values() if o for verdict in o.verdicts)


def outcome_with_mistake(
    first: StepOutcome | None, again: StepOutcome | None, mistake: Mistake
) -> Any:
    """Return a test's outcome with the overwritten name as its mistake."""
    if first is None or again is None or len(first.verdicts) != len(again.verdicts):
        return first
    pairs = zip(first.verdicts, again.verdicts, strict=True)
    return replace(
        first, verdicts=[explained_by_taken_name(v, mended, mistake) for v, mended in pairs]
    )


def explained_by_taken_name(
    verdict: dict[str, Any], mended: dict[str, Any], mistake: Mistake
) -> dict[str, Any]:
    """Return a verdict with the overwritten name as its mistake, if the answer is better then."""
    if not verdict["failed"] or mended["earned"] <= verdict["earned"]:
        return verdict
    rest = mended["mistake"] or mended["symptom"] or mended["reason"]
    reworded = {
        "mistake": mistake.name,
        "explanation": mistake.explanation,
        "symptom": "",
        "rest": "" if mended["passed"] else rest,
        "worth": mended["earned"] - verdict["earned"],
        "guide": "",
    }
    whole = verdict_of(verdict | reworded)
    head, *lines = verdict["text"].splitlines()
    start = next(
        (n for n, line in enumerate(lines) if line.startswith(CRITERION_MARKS)), len(lines)
    )
    return verdict | reworded | {"text": "\n".join([head, *whole.cause_lines, *lines[start:]])}
