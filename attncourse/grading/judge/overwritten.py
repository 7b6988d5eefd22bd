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
from attncourse.grading.judge.deferred_tests import names_reached, names_touched_by_cells
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.outcomes import StepOutcome, verdict_from_row
from attncourse.grading.judge.plan_runner import Means, run_steps_again
from attncourse.grading.report import exercise_of
from attncourse.grading.submission.plan import Step
from attncourse.grading.submission.syntax import bound_names, parse_or_none

BUILT_IN = "import builtins as _builtins\n{name} = _builtins.{name}"
CRITERION_MARKS = ("  ✗", "  ✓", "  –")  # a criterion's line
MAX_NAMES_TRIED = 3  # for one answer


@dataclass(frozen=True)
class TakenName:
    """A name that ``statement`` took in step ``place``, and the source that bound it ``before``."""

    name: str
    statement: str
    place: str
    before: str

    @property
    def mistake(self) -> Mistake:
        """Return the mistake that a verdict names for this."""
        return taken_name_mistake(self.name, self.statement, self.place)


@dataclass(frozen=True)
class OverwrittenAnswer:
    """An answer that earns more with a taken name restored: outcomes of its tests that say so."""

    name: str
    outcomes: dict[str, StepOutcome]


def overwritten_answers(findings: Findings, means: Means) -> tuple[list[OverwrittenAnswer], bool]:
    """Try wrong answers that use a taken name once more with what the name meant before.

    Returns those that earn more then, and whether one of these runs was cut: its time was over.
    """
    overwritten, cut = [], False
    names = our_answers(means.assignment)
    for name in wrong_answers(findings, means.assignment):
        first = {t: o for t, o in findings.test_outcomes().items() if exercise_of(t) == name}
        if not any(verdict["failed"] for o in first.values() if o for verdict in o.verdicts):
            continue
        candidates = [t for t in taken_names(name, findings.steps) if t.name not in names]
        for taken_name in candidates[:MAX_NAMES_TRIED]:
            if findings.trouble or means.budget.left() < MIN_SECONDS_LEFT:
                break
            second = run_steps_again(
                steps_with_name_restored(name, taken_name, findings.steps), means
            )
            cut |= bool(second.cut)
            if points_earned(second.test_outcomes()) > points_earned(first):
                pairs = {t: (o, second.test_outcomes()[t]) for t, o in first.items()}
                mistake = taken_name.mistake
                outcomes = {t: outcome_with_mistake(*pair, mistake) for t, pair in pairs.items()}
                overwritten.append(OverwrittenAnswer(name, outcomes))
                break
    return overwritten, cut


def taken_names(name: str, steps: Sequence[Step]) -> Iterator[TakenName]:
    """Yield the names that an answer uses and that another statement took before its tests.

    A name counts as taken where it was bound by an import or a definition, or is built in, and an
    ordinary statement binds it anew.
    """
    end = first_test_place(name, steps)
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
    used = names_reached([name], names_touched_by_cells(steps[:end]))
    yield from (taken_name for n, taken_name in sorted(taken_by_name.items()) if n in used)


def first_test_place(name: str, steps: Sequence[Step]) -> int:
    """Return the index of an answer's first test among the steps; their number if it has none."""
    tests = [n for n, s in enumerate(steps) if s.kind == "test" and exercise_of(s.grade_id) == name]
    return min(tests, default=len(steps))


def steps_with_name_restored(name: str, taken_name: TakenName, steps: Sequence[Step]) -> list[Step]:
    """Return the steps with the source that gave a taken name before put in front of the tests.

    Of the tests only those of the answer ``name`` stay.
    """
    first_test = first_test_place(name, steps)
    later_steps = [
        s for s in steps[first_test:] if s.kind != "test" or exercise_of(s.grade_id) == name
    ]
    cells_before = [s for s in steps[:first_test] if s.kind != "test"]
    return [*cells_before, Step(f"cell {name}", taken_name.before), *later_steps]


def points_earned(tests: dict[str, StepOutcome | None]) -> int:
    """Return the sum of what the verdicts of these tests earned."""
    return sum(verdict["earned"] for o in tests.values() if o for verdict in o.verdicts)


def outcome_with_mistake(
    first: StepOutcome | None, again: StepOutcome | None, mistake: Mistake
) -> Any:
    """Return a test's first outcome, its verdicts with the taken name as the mistake.

    A verdict that earns no more the second time, ``again``, stays as it is.
    """
    if first is None or again is None or len(first.verdicts) != len(again.verdicts):
        return first
    pairs = zip(first.verdicts, again.verdicts, strict=True)
    return replace(
        first, verdicts=[explained_by_taken_name(v, mended, mistake) for v, mended in pairs]
    )


def explained_by_taken_name(
    verdict: dict[str, Any], mended: dict[str, Any], mistake: Mistake
) -> dict[str, Any]:
    """Return a verdict with the taken name as its mistake, if ``mended`` earns more than it."""
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
    reworded_verdict = verdict_from_row(verdict | reworded)
    head, *lines = verdict["text"].splitlines()
    start = next(
        (n for n, line in enumerate(lines) if line.startswith(CRITERION_MARKS)), len(lines)
    )
    return (
        verdict
        | reworded
        | {"text": "\n".join([head, *reworded_verdict.cause_lines, *lines[start:]])}
    )
