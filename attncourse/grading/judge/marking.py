"""From what came of each step to points, notes and a report."""

import re
import sys
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from attncourse.checks.showing.verdict import IN_FULL, LOOKS_LIKE, NOT_ATTEMPTED, given_right
from attncourse.checks.trying.absent import NOWHERE, is_told
from attncourse.grading.judge.checker import Checker
from attncourse.grading.judge.desk import HIDDEN, binds, imports_in
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.report import UNFORESEEN, CellResult, Report, exercise_of
from attncourse.grading.submission.another import ANOTHER
from attncourse.grading.submission.imports import unusual
from attncourse.grading.submission.newer import needed
from attncourse.grading.submission.notebook import Assignment, Cell
from attncourse.grading.submission.plan import PUT_BACK

MISSING = "ModuleNotFoundError"
MISSED = re.compile(r"raised NameError: name '(\w+)' is not defined[^\n]*")
STUB = "NotImplementedError"  # what an answer raises that is not there
NO_PYTHON = ("SyntaxError", "IndentationError", "TabError")
NEEDS = " needs Python "
NO_POINTS = "earned no points"
SHOWN = 5  # unusual imports
MOST = 100  # notes of a kind, of which an honest submission has a few
UNASKED = "for which the test did not ask: the test went on with its own"


@dataclass(frozen=True)
class Followed:
    """An answer that calls the wrong ones ``given``.

    ``outcomes`` are what its tests gave with ours in their place, if it is right then; in a
    student's own check, also if it is not.
    """

    name: str
    given: tuple[str, ...]
    outcomes: dict[str, StepOutcome] = field(default_factory=dict)
    right: bool = True

    @property
    def note(self) -> str:
        if self.outcomes and self.right:
            return f"{self.name} is right{given_right(self.given)}"
        return f"{self.name} calls a wrong {' and '.join(self.given)}: mend that first"


def make_report(
    checker: Checker,
    assignment: Assignment,
    student: str,
    notes: list[str],
    followed: Collection[Followed] = (),
) -> Report:
    """The report on a run, without its times.

    ``followed`` are the answers that call wrong ones.
    """
    found = {
        step.grade_id: checker.outcomes.get(number)
        for number, step in enumerate(checker.steps)
        if step.kind == "test"
    }
    first = dict(found)
    for one in followed:
        found |= {g: provided(outcome, one.given) for g, outcome in one.outcomes.items()}
    lacking = not_imported(checker)
    found = {g: o and because(o, lacking) for g, o in found.items()}
    verdicts = [v for outcome in found.values() if outcome for v in outcome.verdicts]
    seen = dict.fromkeys((v["target"], v["misconception"]) for v in verdicts if v["misconception"])
    empty = unwritten(checker, verdicts)
    cells = {}
    for grade_id, cell in assignment.graded.items():
        cells[grade_id] = judge_cell(cell, found.get(grade_id))
        name = exercise_of(grade_id)
        if name in empty and not cells[grade_id].points:
            cells[grade_id] = CellResult(0.0, cell.points, NOT_ATTEMPTED)
        elif is_nowhere(name, found.get(grade_id)):
            said = f"nothing is called {name}"
            if not hides(cell):
                said = lacking.get(name) or why_nowhere(name, checker)
            cells[grade_id] = CellResult(0.0, cell.points, said)
    if not assignment.follow_on:
        for one in followed:
            cells |= {g: unpaid(assignment.graded[g], first[g], one.given) for g in one.outcomes}
    trouble, no_python = tuple(checker.trouble.values()), unread(checker, assignment)
    odd = [note for note in notes if note.startswith((PUT_BACK, ANOTHER))]
    told = [
        *few([note for note in notes if not note.startswith(PUT_BACK)]),
        *(said for said in no_python if NEEDS in said),
        *few(remarks(checker, verdicts)),
        *(one.note for one in followed if one.right),
        *unforeseen(first, cells, verdicts),
    ]
    return Report(
        student=student,
        assignment=assignment.name,
        status="interrupted" if trouble else "graded",
        cells=cells,
        misconceptions=tuple(seen),
        notes=(*told, *unexplained(cells, [*told, *trouble], seen), *trouble),
        attention=(
            *trouble,
            *odd,
            *no_python,
            *([NO_POINTS] if not any(cell.points for cell in cells.values()) else []),
            *suspicions(checker, assignment),
        ),
        verdicts=tuple(verdicts),
        seed=checker.seed,
    )


def judge_cell(cell: Cell, outcome: StepOutcome | None) -> CellResult:
    """The points of a graded cell, and why they are not full. What is not clearly earned is not.

    Of a hidden test nothing is said in the submission's words. What that saw there it could tell:
    in a message, in a class's name, in a number. The instructor's source says why it failed.
    """
    if outcome is None:
        return CellResult(0.0, cell.points, "was not run to its end")
    if outcome.kind == "none":
        return CellResult(cell.points, cell.points)
    hidden = outcome.hidden or hides(cell)
    if outcome.kind == "number" and 0 <= outcome.value <= cell.points:  # which NaN is not
        points = float(outcome.value)
        said = "" if hidden else mistakes(outcome)
        said = said or f"{points:g} of {cell.points:g} points"
        return CellResult(points, cell.points, "" if points == cell.points else said)
    wanted = f"a number from 0 to {cell.points:g}"
    said = {
        "number": f"gave {outcome.value}, not {wanted}",
        "other": f"gave {outcome.message}, not {wanted}",
    }
    silent = {
        "error": failed(outcome),
        "timeout": "did not end in time",
        "lost": "was not run to its end",
    }
    message = (
        silent.get(outcome.kind, f"a hidden test gave no {wanted.removeprefix('a ')}")
        if hidden
        else said.get(outcome.kind, outcome.message or "failed")
    )
    return CellResult(0.0, cell.points, message)


def hides(cell: Cell) -> bool:
    """Whether a cell holds a hidden test, of which nothing is said in a submission's words."""
    return HIDDEN in cell.source


def not_imported(checker: Checker) -> dict[str, str]:
    """The names that imports of what is not there would have bound, each with what to say of it."""
    found = {}
    for number, step in enumerate(checker.steps):
        outcome = checker.outcomes.get(number)
        if step.kind == "cell" and outcome and outcome.error in ("ImportError", MISSING):
            said = first_line(outcome.message).split(": ", 1)[-1].split(" (skipped")[0]
            module = re.fullmatch(r"No module named '(\w+)[\w.]*'", said)
            sentence = f"`{module[1]}` {NOWHERE}" if module else said
            found |= dict.fromkeys(binds(imports_in(step.source)), sentence * is_told(sentence))
    return {name: sentence for name, sentence in found.items() if sentence}


def because(outcome: StepOutcome, lacking: dict[str, str]) -> StepOutcome:
    """What came of a test, where an answer misses a name that was not imported: the reason why."""
    return replace(outcome, verdicts=[explained(v, lacking) for v in outcome.verdicts])


def explained(verdict: dict[str, Any], lacking: dict[str, str]) -> dict[str, Any]:
    missing = MISSED.search(verdict["reason"])
    if missing is None or missing[1] not in lacking:
        return verdict

    def in_place(value: Any) -> Any:
        return MISSED.sub(lacking[missing[1]], value) if isinstance(value, str) else value

    said = {name: in_place(value) for name, value in verdict.items()}
    criteria = [{n: in_place(value) for n, value in c.items()} for c in verdict["criteria"]]
    symptom = "" if "NameError" in verdict["symptom"] else verdict["symptom"]
    text = "\n".join(
        x for x in said["text"].splitlines() if symptom or not x.startswith(LOOKS_LIKE)
    )
    return said | {"criteria": criteria, "symptom": symptom, "text": text}


def is_nowhere(name: str, outcome: StepOutcome | None) -> bool:
    """Whether a test found nothing called that."""
    return outcome is not None and outcome.missing == name


def why_nowhere(name: str, checker: Checker) -> str:
    """What became of an answer's own cell, or that nothing is called like it."""
    for number, step in enumerate(checker.steps):
        outcome = checker.outcomes.get(number)
        if step.name == f"cell {name}" and outcome is not None and outcome.kind == "error":
            return f"its cell ended in {first_line(outcome.message)}"
    return f"nothing is called {name}"


def provided(outcome: StepOutcome, given: tuple[str, ...]) -> StepOutcome:
    """What came of a test in which ours stood in place of wrong answers."""
    verdicts = [
        dict(v, given=list(given), text=on_condition(v["text"], given)) for v in outcome.verdicts
    ]
    return replace(outcome, verdicts=verdicts)


def on_condition(text: str, given: tuple[str, ...]) -> str:
    """A verdict's text with the condition behind its first line."""
    head, *rest = text.split("\n")
    kept = (line for line in rest if not line.startswith(IN_FULL))  # which has no such numbers
    return "\n".join([head + given_right(given), *kept]) if text else ""


def unpaid(cell: Cell, outcome: StepOutcome | None, given: tuple[str, ...]) -> CellResult:
    """The points without ours, in a course where an answer has to be right by itself."""
    result = judge_cell(cell, outcome)
    told = f"right{given_right(given)}, which earns nothing more in this course"
    return result if result.points == result.maximum else replace(result, message=told)


def failed(outcome: StepOutcome) -> str:
    """That a hidden test failed, and what the instructor's source says there."""
    sentence, reached = outcome.said
    if outcome.error == "AssertionError" and reached:
        return f"a hidden test failed: {sentence}" if sentence else "a hidden test failed"
    way = ": " if reached else " on the way to: "
    return f"a hidden test failed ({outcome.error}){way + sentence if sentence else ''}"


def mistakes(outcome: StepOutcome) -> str:
    """Why points are missing, from the verdicts behind them."""
    return "; ".join(v["misconception"] or why(v) for v in outcome.verdicts if v["failed"])


def why(verdict: dict[str, Any]) -> str:
    """What is wrong with an answer whose mistake has no name."""
    return first_line(verdict["symptom"] or verdict["reason"] or ", ".join(verdict["failed"]))


def remarks(checker: Checker, verdicts: list[dict[str, Any]]) -> list[str]:
    """What went wrong in the submission's own cells, and answers without a known misconception.

    Exceptions in cells that the assignment gave come from the answers, which have their own.
    """
    said, empty = [], unwritten(checker, verdicts)
    tests = [(s, checker.outcomes.get(n)) for n, s in enumerate(checker.steps) if s.grade_id]
    gone = [*empty, *(name for s, o in tests if is_nowhere(name := exercise_of(s.grade_id), o))]
    for number, step in enumerate(checker.steps):
        outcome = checker.outcomes.get(number)
        if step.kind == "test" or outcome is None or outcome.kind not in ("error", "timeout"):
            continue
        missing = outcome.error == "NameError" and any(f"'{n}'" in outcome.message for n in gone)
        follows = step.given or missing or outcome.error == STUB
        if outcome.kind == "timeout" or not follows:
            said.append(f"{step.name}: {first_line(outcome.message)}")
    for step, outcome in tests:
        if outcome is not None and outcome.cut and not outcome.hidden and outcome.verdicts:
            said.append(f"{exercise_of(step.grade_id)}: {outcome.cut}")
    for verdict in verdicts:
        name = verdict["target"].split(".")[-1]
        if name not in empty and verdict["failed"] and not verdict["misconception"]:
            said.append(f"{name}: {why(verdict)}")
    said += [
        f"{test}: {who} changed an argument in place, {UNASKED}" for test, who in checker.changed
    ]
    if checker.used.get("output"):
        said.append(f"printed more than {checker.limits.output:g} MB: the rest was dropped")
    said = list(dict.fromkeys(said))
    return said + ([f"{NOT_ATTEMPTED}: {', '.join(empty)}"] if empty else [])


def unwritten(checker: Checker, verdicts: list[dict[str, Any]]) -> list[str]:
    """The exercises whose answers are what was handed out, and say so where they are used.

    A class that was handed out without a body says it when its cell is run.
    """
    empty = [v["target"].split(".")[-1] for v in verdicts if v["unwritten"]]
    for number, step in enumerate(checker.steps):
        outcome, name = checker.outcomes.get(number), step.name.removeprefix("cell ")
        stub = step.kind == "cell" and outcome is not None and outcome.error == STUB
        empty += [name] if stub and not name.isdigit() else []
    return list(dict.fromkeys(empty))


def unforeseen(
    found: dict[str, StepOutcome | None],
    cells: dict[str, CellResult],
    verdicts: list[dict[str, Any]],
) -> list[str]:
    """What hidden tests say of answers that pass their checks: nothing else would explain it."""
    passed = {v["target"].split(".")[-1] for v in verdicts if v["passed"] and not v["given"]}
    hidden = [g for g, outcome in found.items() if outcome and outcome.hidden]
    lost = [(exercise_of(g), cells[g]) for g in hidden if g in cells]
    return [
        f"{name}{UNFORESEEN}{cell.message}"
        for name, cell in lost
        if name in passed and cell.points < cell.maximum
    ]


def unexplained(
    cells: dict[str, CellResult], told: list[str], seen: Collection[tuple[str, str]]
) -> list[str]:
    """Why points are missing of exercises that nothing else speaks of."""
    named = " ".join([*told, *(exercise_of(target) for target, _ in seen)])
    lost = {}
    for grade_id, cell in cells.items():
        if cell.points < cell.maximum:
            lost.setdefault(exercise_of(grade_id), first_line(cell.message))
    return [
        f"{name}: {why}"
        for name, why in lost.items()
        if not re.search(rf"\b{re.escape(name)}\b", named)
    ]


def unread(checker: Checker, assignment: Assignment) -> list[str]:
    """Cells that are no Python here: answers, and whatever a newer Python would run."""
    names = [c.grade_id for c in assignment.cells if c.code and c.solution and c.grade_id]
    answer = re.compile(rf"^\s*(?:def|class)\s+(?:{'|'.join(map(re.escape, names))})\b", re.M)
    told = []
    for number, step in enumerate(checker.steps):
        outcome = checker.outcomes.get(number)
        if step.kind != "cell" or outcome is None or outcome.error not in NO_PYTHON:
            continue
        if version := needed(step.source):
            here = ".".join(map(str, sys.version_info[:2]))
            told.append(f"{step.name}{NEEDS}{version} or newer, and was run by {here}")
        elif step.name.removeprefix("cell ") in names or (names and answer.search(step.source)):
            told.append(f"{step.name} is no Python: {first_line(outcome.message)}")
    return told


def suspicions(checker: Checker, assignment: Assignment) -> tuple[str, ...]:
    """Why a person should look at a submission whose grade is otherwise sure."""
    given = {cell.source for cell in assignment.cells}
    own = [s for s in checker.steps if s.kind == "cell" and s.source not in given]
    found = unusual([s.source for s in own], given)
    names = [f"{n} in {s.name}" for s, several in zip(own, found, strict=True) for n in several]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (f"imports {', '.join(names[:SHOWN])}{more}: see what for",) if names else ()


def few(notes: list[str]) -> list[str]:
    return notes if len(notes) <= MOST else [*notes[:MOST], f"and {len(notes) - MOST} notes more"]


def first_line(message: Any) -> str:
    lines = str(message or "").splitlines()
    return lines[0] if lines else "failed"
