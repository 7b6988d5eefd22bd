"""Which candidates become drills: as many kinds as there are before a second of one kind."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from attncourse.checks import Exercise
from attncourse.practice.drills import Drill, about_mistake
from drill_making.candidates import Candidate
from drill_making.child import Child, ChildEnded
from drill_making.elsewhere import with_other_lines
from drill_making.example_choice import NamedCode, names_and_example
from drill_making.line_changes import is_odd, other_lines_changed
from drill_making.proving import (
    fewer_draws,
    implementation_of,
    limited,
    mending_places,
    named_mistake,
)
from drill_making.refused import is_refused_line
from drill_making.spacing import with_formatter_lines

MAX_DRILLS = 12  # drills of an exercise
DRILLS_PER_EASY_DRILL = 5  # of so many drills one may be easy
MAX_DRILLS_OF_A_NAME = 4  # drills of an exercise that have the same name
MAX_CANDIDATES_TRIED = 14  # candidates of one name that are tried


@dataclass
class DrillChoice:
    """The drills of an exercise so far, with the lines that they change."""

    exercise: Exercise
    seed: int
    drills: list[Drill] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def easy(self) -> int:
        """Return how many of the chosen drills are easy."""
        return sum(drill.easy for drill in self.drills)

    def has_room(self, candidate: Candidate) -> bool:
        """True if one more may be chosen, and where it is easy, one more of those."""
        if len(self.drills) >= MAX_DRILLS:
            return False
        n_drills = max(len(self.drills) + 1, DRILLS_PER_EASY_DRILL)
        return not candidate.is_easy or DRILLS_PER_EASY_DRILL * (self.easy + 1) <= n_drills


def chosen_drills(
    exercise: Exercise, candidates: Iterable[Candidate], seed: int, existing: Sequence[Drill] = ()
) -> DrillChoice:
    """Return the existing drills with new ones made of an exercise's candidates, each proved."""
    chosen = DrillChoice(exercise, seed, [*existing])
    by_name: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        change = candidate.change
        if is_odd(change.wrong, change.right) or is_refused_line(exercise.target, change.wrong):
            continue
        by_name.setdefault(candidate.name, []).append(candidate)
    order = sorted(by_name, key=lambda name: min((c.is_easy, c.change.rank) for c in by_name[name]))
    with Child(partial(proved_drill, exercise, seed)) as child:
        for turn, name in itertools.product(range(MAX_DRILLS_OF_A_NAME), order):
            if sum(drill.name == name for drill in chosen.drills) > turn:
                continue
            n_of_name = len(by_name[name]) + sum(drill.name == name for drill in existing)
            if turn and (len(chosen.drills) >= MIN_DRILLS or n_of_name <= turn):
                continue
            add_best_candidate(chosen, child, by_name[name])
    return chosen


MIN_DRILLS = 8  # drills of an exercise for which a second of one name is taken


def add_best_candidate(chosen: DrillChoice, child: Child, candidates: list[Candidate]) -> None:
    """Add the first candidate that can be proved and is unlike the drills chosen so far."""
    known_lines = {(d.code[d.line].strip(), d.mended[0].strip()) for d in chosen.drills}
    places = {(d.name, d.right, d.line) for d in chosen.drills}
    right_texts = [tuple(d.right) for d in chosen.drills]
    changed_lines = [(tuple(d.right), d.line) for d in chosen.drills]

    def drawbacks(c: Candidate) -> tuple:
        """Return what speaks against a candidate, the weightiest first."""
        used = right_texts.count(tuple(c.answer.lines))
        same_line = changed_lines.count((tuple(c.answer.lines), c.change.line))
        is_unlikely = c.change.rank > 3
        return c.is_easy, is_unlikely, same_line, used, c.change.rank, len(c.change.wrong)

    order = sorted(candidates, key=drawbacks)
    for candidate in order[:MAX_CANDIDATES_TRIED]:
        if (candidate.change.wrong.strip(), candidate.change.right.strip()) in known_lines:
            continue
        if (candidate.name, tuple(candidate.answer.lines), candidate.change.line) in places:
            continue
        if not chosen.has_room(candidate):
            continue
        made = proved_in_child(child, candidate)
        if isinstance(made, Drill):
            chosen.drills.append(made)
            return
        chosen.refused[made] = chosen.refused.get(made, 0) + 1


def proved_in_child(child: Child, candidate: Candidate) -> Drill | str:
    """Return the candidate as a drill; why it cannot be one, where it cannot."""
    try:
        return child.ask(candidate)
    except ChildEnded:
        return "it ends the process"


def proved_drill(full_exercise: Exercise, seed: int, candidate: Candidate) -> Drill | str:
    """Return the candidate as a drill; why it cannot be one, where it cannot."""
    exercise = limited(full_exercise)
    answer, change = candidate.answer, candidate.change
    wrong = implementation_of(answer.name, answer.setup, "\n".join(candidate.code))
    with fewer_draws():
        named = named_mistake(exercise, wrong, seed) if wrong else None
    if named is None or named.mistake.name != candidate.name:
        return "named otherwise on another seed"
    right = implementation_of(answer.name, answer.setup, answer.text)
    assert wrong is not None, "what is named can be run"
    assert right is not None, "what was changed can be run"
    code = NamedCode(exercise, named, wrong, right, answer.lines, seed)
    names_and_case = names_and_example(code, random.Random(f"{seed} {answer.text} {change.wrong}"))
    if names_and_case is None:
        return "too few wrong names, or no example"
    names, case = names_and_case
    if mended_elsewhere(exercise, candidate, named.trials, seed):
        return "another line mends it"
    drill = Drill(
        id="",
        exercise=exercise.target,
        code=tuple(candidate.code),
        line=change.line,
        mended=(change.right,),
        name=named.mistake.name,
        wrong_names=tuple(names),
        easy=named.is_easy,
        setup=answer.setup,
        example=case.example,
        elsewhere=(),
        **about_mistake(exercise.target, named.mistake.name),
    )
    return with_other_lines(with_formatter_lines(drill), seed)


def mended_elsewhere(exercise: Exercise, candidate: Candidate, trials: tuple, seed: int) -> bool:
    """True if a change of another line than the drill's makes everything right."""
    answer = candidate.answer
    right = implementation_of(answer.name, answer.setup, answer.text)
    assert right is not None, "what was changed can be run"
    variants = (
        implementation_of(answer.name, answer.setup, code)
        for code in other_lines_changed("\n".join(candidate.code), candidate.change.line)
    )
    return any(True for _ in mending_places(exercise, right, variants, trials, seed))


def with_ids(drills: Iterable[Drill], numbers: dict[str, int]) -> Iterator[Drill]:
    """Yield the drills with their ids: those that have one keep it, new ones get new numbers.

    ``numbers`` are the highest that drills of each exercise have had, also those that are no more:
    somebody may have linked one. The numbers given here are written into it.
    """
    for drill in drills:
        if not drill.id:
            number = numbers[drill.exercise] = numbers.get(drill.exercise, 0) + 1
            drill = replace(drill, id=f"{drill.exercise.replace('.', '-')}-{number}")
        yield drill
