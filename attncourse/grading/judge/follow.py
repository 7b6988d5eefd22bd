"""Answers that are wrong only because they call a wrong one: judged again, with ours in its place.

Ours runs in the submission's process then, where its source can be read. That is safe for three
reasons. Nothing is asked of an answer any more once ours has been there: all tests have run before,
and each answer is judged again in a process of its own, which holds ours of earlier ones alone; the
exercises are taken in order. Nothing that this process says is listened to but full marks, which
hold no text of its own: an answer that reads ours aloud tells nobody. And full marks still take the
same tests, so what earns them is an answer that is right once it calls a right one.

Ours is in the published convention, and calls others of ours in it. Where the assignment asks for a
variant, ours runs among others of ours, and what comes of it is rewritten as it is asked for.
"""

import inspect
from collections.abc import Iterator
from dataclasses import replace

from attncourse.checks import exercise, variants_of
from attncourse.checks.variants import rewriting
from attncourse.checks.variants.adapter import as_data
from attncourse.grading.judge.checker import Checker, Launch
from attncourse.grading.judge.desk import loads
from attncourse.grading.judge.late import touched
from attncourse.grading.judge.marking import Followed, judge_cell
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.trial import Begins
from attncourse.grading.limits import Limits
from attncourse.grading.report import exercise_of
from attncourse.grading.submission.notebook import Assignment
from attncourse.grading.submission.plan import Step
from attncourse.grading.submission.varied import variants_asked

LEAST = 1.0  # seconds that must be left to begin
AMONG_OURS = """\
def _provided():
    names, rewriting = dict(globals()), {{"__name__": "rewriting"}}
    for source in {sources!r}:
        exec(source, names)
    exec({rewriting!r}, rewriting)
    found = {{name: names[name] for name in {defines!r} if name in names}}
    for name, told in {told!r}.items():
        found[name] = rewriting["rewritten_as_told"](names[name], **told)
    return found
globals().update(_provided())
del _provided
"""


def follow_ons(
    checker: Checker, assignment: Assignment, launch: Launch, begins: Begins
) -> Iterator[Followed]:
    """The wrong answers of a finished run that call wrong ones, with what came of right ones."""
    wrong = wrong_answers(checker, assignment)
    for name in [n for n in wrong if n not in as_published(checker)]:
        left = checker.whole.left()
        given = called(name, wrong, checker.steps, assignment)
        steps = exchanged(name, given, checker.steps, assignment)
        if not steps or checker.trouble or left < LEAST:
            continue
        limits: Limits = replace(checker.limits, submission=left)
        again = Checker(steps, assignment, checker.seed, limits)
        again.run(launch, lambda number, outcome: None, begins)
        checker.gone += again.gone
        checker.cut |= {len(checker.steps)} if again.cut else set()  # behind them all
        found = {s.grade_id: again.outcomes.get(n) for n, s in enumerate(steps) if s.grade_id}
        if all(is_full(assignment, grade_id, outcome) for grade_id, outcome in found.items()):
            wrong.remove(name)  # who calls it calls the student's own
            yield Followed(name, given, found)
        elif assignment.released:
            yield Followed(name, given)
        elif differs(found, checker):
            yield Followed(name, given, found, right=False)


def differs(found: dict[str, StepOutcome | None], checker: Checker) -> bool:
    """Whether ours change what is told of an answer that is wrong all the same, as in a notebook.

    It is told that only in a student's own check: see above.
    """
    first = {s.grade_id: checker.outcomes.get(n) for n, s in enumerate(checker.steps)}
    return any(told_of(outcome) != told_of(first[grade_id]) for grade_id, outcome in found.items())


def told_of(outcome: StepOutcome | None) -> list[tuple]:
    names = ("earned", "misconception", "symptom", "reason")
    return [tuple(v[name] for name in names) for v in outcome.verdicts] if outcome else []


def answers_of(assignment: Assignment) -> dict[str, str]:
    """Ours, by the exercises' names, in order."""
    cells = assignment.cells
    return {c.grade_id: c.source for c in cells if c.code and c.solution and c.grade_id}


def wrong_answers(checker: Checker, assignment: Assignment) -> list[str]:
    """The exercises that did not earn all they can, in order."""
    lost = {
        exercise_of(step.grade_id)
        for number, step in enumerate(checker.steps)
        if step.kind == "test"
        and not is_full(assignment, step.grade_id, checker.outcomes.get(number))
    }
    return [name for name in answers_of(assignment) if name in lost]


def as_published(checker: Checker) -> set[str]:
    """The answers that are right as they were published, where a variant is asked for.

    Given ours, one that only hands on what it gets would be right in the variant as well.
    """
    found = [v for o in checker.outcomes.values() for v in o.verdicts if v["variant"]]
    return {
        v["target"].split(".")[1]
        for v in found
        if v["misconception"] == exercise(v["target"], v["variant"]).misconceptions[0].name
    }


def is_full(assignment: Assignment, grade_id: str, outcome: StepOutcome | None) -> bool:
    cell = assignment.graded.get(grade_id)
    return cell is None or judge_cell(cell, outcome).points == cell.points


def called(
    name: str, wrong: list[str], steps: list[Step], assignment: Assignment
) -> tuple[str, ...]:
    """The wrong answers to earlier exercises that an answer calls, itself or through others."""
    ours, earlier = answers_of(assignment), wrong[: wrong.index(name)]
    own = [touched(step.source) for step in steps if step.kind != "test"]
    todo, seen = [name], set()
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            if one in earlier:
                todo += loads(ours[one])  # ours calls others, which may be wrong as well
            else:
                todo += [n for cell in own if one in cell.changes for n in cell.reads]
    return tuple(one for one in earlier if one in seen)


def exchanged(
    name: str, given: tuple[str, ...], steps: list[Step], assignment: Assignment
) -> list[Step]:
    """The steps with ours behind these answers, wherever they stand, and no tests but its own.

    None where there is nothing to exchange, or an answer that stands nowhere.
    """
    sources = {one: provided_source(one, assignment) for one in given}
    places = {one: place_of(one, steps) for one in given}
    if not all(sources.values()) or -1 in places.values():
        return []
    found = []
    for number, step in enumerate(steps if given else ()):
        if step.kind != "test" or exercise_of(step.grade_id) == name:
            found.append(step)
        found += [Step(f"cell {one}", sources[one]) for one in given if places[one] == number]
    return found


def place_of(name: str, steps: list[Step]) -> int:
    """The answer's cell; where that has lost its name, the last that binds the answer's, or -1."""
    own = [(n, step) for n, step in enumerate(steps) if step.kind == "cell"]
    named = [n for n, step in own if step.name == f"cell {name}"]
    return max(named or [n for n, s in own if name in touched(s.source).changes], default=-1)


def provided_source(name: str, assignment: Assignment) -> str:
    """A cell with our answer, in the convention in which the assignment asks for it.

    Empty where that cannot be told to another process (``as_data``).
    """
    ours = answers_of(assignment)
    asked = variants_asked(cell.source for cell in assignment.cells if cell.code)
    if not asked:
        return ours[name]
    upto, defines = list(ours).index(name) + 1, sorted(touched(ours[name]).changes)
    told = {
        one: as_data(variant.adapters[one], exercise(target))
        for target, chosen in asked.items()
        for variant in variants_of(target.split(".")[0])
        if variant.name == chosen and (one := target.split(".")[1]) in variant.adapters
    }
    if not all(told[one] for one in defines if one in told):
        return ""
    return AMONG_OURS.format(
        sources=list(ours.values())[:upto],
        rewriting=inspect.getsource(rewriting),
        defines=defines,
        told={one: told[one] for one in defines if one in told},
    )
