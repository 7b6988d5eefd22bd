"""Candidates for drills: each change of a line of a right answer that the checks give a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from course import Chapter

from attncourse.checks import Exercise
from drill_making.child import Child, ChildEnded
from drill_making.line_changes import (
    RANK_BY_HAND,
    LineChange,
    changes_by_hand,
    does_nothing,
    is_odd,
    leaves_unused,
    line_changes,
)
from drill_making.proving import (
    fewer_draws,
    fingerprint,
    first_trials,
    implementation_of,
    is_right,
    limited,
    may_be_known,
    named_mistake,
)
from drill_making.sources import RightAnswer, right_answers
from drill_making.spacing import with_formatter_spaces

# Seconds of processor time for the changes of one answer, the likeliest first
SECONDS_PER_ANSWER = 9.0
SECONDS_FOR_ALL_ANSWERS = 27.0  # for those of all answers
# The same for the lines that were written by hand for an answer, which are few
SECONDS_FOR_LINES_BY_HAND = 90.0
SPARE_NAMES = 4  # names more than an exercise lacks, with which no further answer is changed
MAX_ANSWERS = 8  # right answers of an exercise that are changed
MAX_CHANGES_ALIKE = 3  # changes that do the same in the first cases, of which more are not tried


@dataclass(frozen=True)
class Candidate:
    """A right answer with one line changed, and the mistake that the checks call it."""

    answer: RightAnswer
    change: LineChange
    name: str
    is_easy: bool

    @property
    def code(self) -> list[str]:
        """Return the lines of the answer with the change made."""
        return self.change.applied_to(self.answer.lines)


def candidates_by_hand(chapter: Chapter, exercise: Exercise, seed: int) -> Iterator[Candidate]:
    """Yield the candidates of the lines written by hand for an exercise's right answers."""
    with Child(name_of_changes(limited(exercise), seed)) as child:
        for answer in right_answers(chapter, exercise):
            changes = changes_by_hand(answer.text, exercise)
            yield from named_changes(child, answer, changes, SECONDS_FOR_LINES_BY_HAND)


def candidates_of(
    chapter: Chapter,
    exercise: Exercise,
    seed: int,
    names_there: Collection[str] = (),
    n_lacking: int = 8,
) -> Iterator[Candidate]:
    """Yield candidates of an exercise, answer by answer, until there are enough.

    ``names_there`` are the names of its drills; it is to have ``n_lacking`` drills more.
    """
    candidate_names: set[str] = set()  # of candidates that are not easy
    with Child(name_of_changes(limited(exercise), seed)) as child:
        for answer in right_answers(chapter, exercise)[:MAX_ANSWERS]:
            if (
                len(candidate_names.difference(names_there)) >= n_lacking + SPARE_NAMES
                or child.seconds > SECONDS_FOR_ALL_ANSWERS
            ):
                return
            changes = line_changes(answer.text, exercise)
            for candidate in named_changes(child, answer, changes, SECONDS_PER_ANSWER):
                if not candidate.is_easy:
                    candidate_names.add(candidate.name)
                yield candidate


def named_changes(
    child: Child, answer: RightAnswer, changes: Iterable[LineChange], seconds: float
) -> Iterator[Candidate]:
    """Yield the changes of an answer that the checks give a name, as long as there is time."""
    ends = child.seconds + seconds
    for change in changes:
        if child.seconds > ends:
            return
        if is_odd(change.wrong, change.right) or leaves_unused(change, answer.lines):
            continue
        if does_nothing("\n".join(change.applied_to(answer.lines)), answer.text):
            continue
        try:
            named = child.ask(answer, change)
        except ChildEnded:
            continue
        if named:
            name, is_easy = named
            yield Candidate(answer, with_spaces(change, answer.lines), name, is_easy)


def with_spaces(change: LineChange, lines: list[str]) -> LineChange:
    """Return a change with its line spaced as the formatter would have it."""
    code = with_formatter_spaces(["\n".join(change.applied_to(lines))])[0]
    return replace(change, wrong=code.splitlines()[change.line])


def name_of_changes(
    exercise: Exercise, seed: int
) -> Callable[[RightAnswer, LineChange], tuple[str, bool] | None]:
    """Return a function that gives the name of a change of an answer, and whether it is easy.

    It returns None where the checks have no name, where the answer itself is not right in a
    process of its own, and for what does the same as some changes before in the first cases. Of
    lines by hand each is tried: the first cases may be such as show none of them.
    """
    seen: dict[str, Counter[bytes]] = {}
    right: dict[str, bool] = {}

    def name_of(answer: RightAnswer, change: LineChange) -> tuple[str, bool] | None:
        text = answer.text
        if text not in right:
            unchanged = implementation_of(answer.name, answer.setup, text)
            right[text] = is_right(exercise, unchanged, (seed,))
        code = "\n".join(change.applied_to(answer.lines))
        wrong = implementation_of(answer.name, answer.setup, code)
        if wrong is None or not right[text]:
            return None
        first = first_trials(exercise, wrong, seed)
        alike = fingerprint(first)
        counts = seen.setdefault(text, Counter())
        counts[alike] += 1
        is_one_of_many = counts[alike] > MAX_CHANGES_ALIKE and change.rank > RANK_BY_HAND
        if is_one_of_many or not may_be_known(exercise, first, seed):
            return None
        with fewer_draws():
            named = named_mistake(exercise, wrong, seed)
        return (named.mistake.name, named.is_easy) if named else None

    return name_of
