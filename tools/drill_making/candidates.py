"""Candidates for drills: each change of a line of a right answer that the checks give a name."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from course import Chapter

from attncourse.checks import Exercise
from drill_making.line_changes import LineChange, is_odd, line_changes
from drill_making.proving import (
    fingerprint,
    first_trials,
    implementation_of,
    is_right,
    limited,
    may_be_known,
    named_mistake,
)
from drill_making.sources import RightAnswer, right_answers

LONGEST = 9.0  # seconds of processor time for the changes of one answer, the likeliest first

ENOUGH = 12  # names, with which no further answer is changed
MOST_ANSWERS = 3  # right answers of an exercise that are changed
ALIKE = 3  # changes that do the same in the first cases, of which more are not tried


@dataclass(frozen=True)
class Candidate:
    """A right answer with one line changed, and the mistake that the checks call it."""

    answer: RightAnswer
    change: LineChange
    name: str
    is_easy: bool

    @property
    def code(self) -> list[str]:
        return self.change.applied_to(self.answer.lines)


def candidates_of(chapter: Chapter, exercise: Exercise, seed: int) -> Iterator[Candidate]:
    """The candidates of an exercise, in every readable right answer."""
    quick = limited(exercise)
    names: set[str] = set()  # of candidates that are not easy
    for answer in right_answers(chapter, exercise)[:MOST_ANSWERS]:
        if len(names) >= ENOUGH:
            return
        own = implementation_of(answer.name, answer.setup, answer.text)
        if own is None or not is_right(quick, own, (seed,)):
            continue
        ends = time.process_time() + LONGEST
        seen: Counter[bytes] = Counter()
        for change in line_changes(answer.text, exercise):
            if is_odd(change.wrong, change.right):
                continue
            code = "\n".join(change.applied_to(answer.lines))
            wrong = implementation_of(answer.name, answer.setup, code)
            if wrong is None:
                continue
            first = first_trials(quick, wrong, seed)
            seen[alike := fingerprint(first)] += 1
            if seen[alike] > ALIKE or not may_be_known(quick, first, seed):
                continue
            if named := named_mistake(quick, wrong, seed):
                if not named.is_easy:
                    names.add(named.mistake.name)
                yield Candidate(answer, change, named.mistake.name, named.is_easy)
            if time.process_time() > ends:
                break
