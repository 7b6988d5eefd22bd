"""Answers that are wrong only because they call a wrong one: judged again, with ours in its place.

Ours runs in the submission's process then, where its source can be read. That is safe for three
reasons. Nothing is asked of an answer any more once ours has been there: all tests have run before,
and each answer is judged again in a process of its own, which holds ours of earlier ones alone; the
exercises are taken in order. Of what this process says nothing is listened to but points and which
criteria hold, with the bank's own name for a mistake (``judge/points_with_ours.py``): an answer
that reads ours aloud tells nobody. And these points take the same tests, so what earns them is what
the answer would earn if it called a right one. They never lower what it earned without ours.

Ours is in the published convention, and calls others of ours in it. Where the assignment asks for a
variant, ours runs among others of ours, and what comes of it is rewritten as it is asked for.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field

from attncourse.checks import find_exercise, variants_of
from attncourse.checks.showing.verdict import right_given_words
from attncourse.checks.variants import rewriting
from attncourse.checks.variants.adapter import adapter_as_data
from attncourse.grading.judge.deferred_tests import (
    names_reached,
    names_touched,
    names_touched_by_cells,
)
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.instructor_namespace import names_loaded
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.plan_runner import Means, run_steps_again
from attncourse.grading.judge.points import judge_cell
from attncourse.grading.judge.points_with_ours import counted_with_ours, earns_less, is_in_variant
from attncourse.grading.report import exercise_of
from attncourse.grading.submission.notebook import Assignment
from attncourse.grading.submission.plan import Step
from attncourse.grading.submission.varied import variants_asked

MIN_SECONDS_LEFT = 1.0  # to a submission, else nothing is begun
AMONG_OURS = """\
def _provided():
    names, rewriting = dict(globals()), {{"__name__": "rewriting"}}
    for source in {sources!r}:
        exec(source, names)
    exec({rewriting!r}, rewriting)
    answers = {{name: names[name] for name in {defines!r} if name in names}}
    for name, adapter in {adapters!r}.items():
        answers[name] = rewriting[{rewrite!r}](names[name], **adapter)
    return answers
globals().update(_provided())
del _provided
"""


@dataclass(frozen=True)
class FollowOn:
    """A wrong answer that calls wrong answers, and what its tests gave with ours in their place.

    ``outcomes`` are those of its tests that count with ours in their place; ``right`` if it earns
    all its points then. ``released`` as ``Assignment.released``: a student's own check says all of
    this in its verdicts.
    """

    name: str
    replaced: tuple[str, ...]
    outcomes: dict[str, StepOutcome | None] = field(default_factory=dict)
    right: bool = False
    released: bool = True

    @property
    def note(self) -> str:
        """Return the remark on this answer for its student; "" where the verdict says all."""
        if self.right:
            return f"{self.name} is right{right_given_words(self.replaced)}"
        if not self.released:
            return ""
        called = f"{self.name} calls a wrong {' and '.join(self.replaced)}"
        return (
            f"{called}: judged with a right one" if self.outcomes else f"{called}: mend that first"
        )


def follow_ons(findings: Findings, means: Means) -> tuple[list[FollowOn], bool]:
    """Judge again the wrong answers that call wrong ones, with our answers in place of those.

    Returns what came of each, and whether one of these runs was cut: its time was over.
    """
    followed, cut = [], False
    assignment, wrong = means.assignment, wrong_answers(findings, means.assignment)
    for name in [n for n in wrong if n not in right_as_published(findings)]:
        replaced = wrong_answers_called(name, wrong, findings.steps, assignment)
        steps = steps_with_ours(name, replaced, findings.steps, assignment)
        if not steps or findings.trouble or means.budget.left() < MIN_SECONDS_LEFT:
            continue
        second = run_steps_again(steps, means)
        cut |= bool(second.cut)
        if all(
            earns_full_points(assignment, test, outcome)
            for test, outcome in second.test_outcomes().items()
        ):
            wrong.remove(name)  # who calls it calls the student's own
            followed.append(FollowOn(name, replaced, second.test_outcomes(), right=True))
        elif assignment.released:
            counted = counted_with_ours(
                second.test_outcomes(), findings.test_outcomes(), assignment
            )
            followed.append(FollowOn(name, replaced, counted))
        elif changes_verdict(second, findings, assignment):
            followed.append(FollowOn(name, replaced, second.test_outcomes(), released=False))
    return followed, cut


def changes_verdict(second: Findings, findings: Findings, assignment: Assignment) -> bool:
    """True if our solutions change the verdict on an answer that is wrong all the same.

    A notebook says so. Here its words are told only in a student's own check: see above. The points
    are those that count in a grade.
    """
    first, tests = findings.test_outcomes(), second.test_outcomes()
    if any(earns_less(tests[test], first[test], assignment.graded.get(test)) for test in tests):
        return False
    if any(is_in_variant(outcome) for outcome in tests.values()):
        return False
    return any(
        shown_verdict_fields(now) != shown_verdict_fields(first[test])
        for test, now in tests.items()
    )


def shown_verdict_fields(outcome: StepOutcome | None) -> list[tuple]:
    """Return the fields of a test's verdicts that a student reads, to compare two outcomes by."""
    names = ("earned", "mistake", "symptom", "reason")
    return [tuple(v[name] for name in names) for v in outcome.verdicts] if outcome else []


def our_answers(assignment: Assignment) -> dict[str, str]:
    """Return the sources of the instructor's answers by exercise, in the assignment's order."""
    cells = assignment.cells
    return {c.grade_id: c.source for c in cells if c.code and c.solution and c.grade_id}


def wrong_answers(findings: Findings, assignment: Assignment) -> list[str]:
    """Return the exercises of which a test did not earn all its points, in their order."""
    lost = {
        exercise_of(test)
        for test, outcome in findings.test_outcomes().items()
        if not earns_full_points(assignment, test, outcome)
    }
    return [name for name in our_answers(assignment) if name in lost]


def right_as_published(findings: Findings) -> set[str]:
    """Return the exercises whose answers follow the published convention and not the variant.

    With ours in place of what it calls, an answer that only hands on values would be right in the
    variant as well, so these are not judged again.
    """
    verdicts = [v for o in findings.outcomes.values() for v in o.verdicts if v["variant"]]
    return {
        v["target"].split(".")[1]
        for v in verdicts
        if v["mistake"] == find_exercise(v["target"], v["variant"]).mistakes[0].name
    }


def earns_full_points(assignment: Assignment, grade_id: str, outcome: StepOutcome | None) -> bool:
    """True if a test's outcome earns all its points, or if the test has none."""
    cell = assignment.graded.get(grade_id)
    return cell is None or judge_cell(cell, outcome).points == cell.points


def wrong_answers_called(
    name: str, wrong: list[str], steps: Sequence[Step], assignment: Assignment
) -> tuple[str, ...]:
    """Return the wrong answers to earlier exercises that an answer calls, directly or not."""
    our_sources, earlier = our_answers(assignment), wrong[: wrong.index(name)]
    # An earlier answer may be wrong as well: what ours reads stands for what it reads.
    instead = {earlier_name: names_loaded(our_sources[earlier_name]) for earlier_name in earlier}
    reached = names_reached([name], names_touched_by_cells(steps), instead)
    return tuple(earlier_name for earlier_name in earlier if earlier_name in reached)


def steps_with_ours(
    name: str, called: tuple[str, ...], steps: Sequence[Step], assignment: Assignment
) -> list[Step]:
    """Return the steps with our answers right behind the cells of the ``called`` ones.

    Of the tests only those of the answer ``name`` stay. The list is empty where nothing is called,
    where one of ours cannot be given to another process, and where an answer has no cell.
    """
    sources = {replaced: cell_with_our_answer(replaced, assignment) for replaced in called}
    places = {replaced: answer_place(replaced, steps) for replaced in called}
    if not all(sources.values()) or -1 in places.values():
        return []
    new_steps = []
    for number, step in enumerate(steps if called else ()):
        if step.kind != "test" or exercise_of(step.grade_id) == name:
            new_steps.append(step)
        new_steps += [
            Step(f"cell {replaced}", sources[replaced])
            for replaced in called
            if places[replaced] == number
        ]
    return new_steps


def answer_place(name: str, steps: Sequence[Step]) -> int:
    """Return the index of the step that holds an answer, or -1.

    Where no cell has the exercise's name any more, it is the last cell that binds that name.
    """
    cell_steps = [(n, step) for n, step in enumerate(steps) if step.kind == "cell"]
    named_steps = [n for n, step in cell_steps if step.name == f"cell {name}"]
    return max(
        named_steps or [n for n, s in cell_steps if name in names_touched(s.source).changes],
        default=-1,
    )


def cell_with_our_answer(name: str, assignment: Assignment) -> str:
    """Return the source of a cell that binds our answer, in the convention of the assignment.

    It is empty where what adapts ours to a variant cannot be sent to another process (``as_data``).
    """
    our_sources = our_answers(assignment)
    variants = variants_asked(cell.source for cell in assignment.cells if cell.code)
    if not variants:
        return our_sources[name]
    upto, defines = (
        list(our_sources).index(name) + 1,
        sorted(names_touched(our_sources[name]).changes),
    )
    adapters = {
        exercise: adapter_as_data(variant.adapters[exercise], find_exercise(target))
        for target, chosen in variants.items()
        for variant in variants_of(target.split(".")[0])
        if variant.name == chosen and (exercise := target.split(".")[1]) in variant.adapters
    }
    if not all(adapters[exercise] for exercise in defines if exercise in adapters):
        return ""
    return AMONG_OURS.format(
        sources=list(our_sources.values())[:upto],
        rewriting=inspect.getsource(rewriting),
        rewrite=rewriting.rewrite_from_data.__name__,
        defines=defines,
        adapters={exercise: adapters[exercise] for exercise in defines if exercise in adapters},
    )
