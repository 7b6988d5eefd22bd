"""A class at a glance: counts, distribution, exercises, mistakes, who needs a person."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from attncourse.grading.report import TOLERANCE, UNFORESEEN, count, exercise_of
from attncourse.grading.results.class_results import (
    NO_POINTS,
    SCORED_BEFORE,
    ClassResults,
    StudentResult,
)

STATUSES = ("graded", "interrupted", "unreadable", "missing")


@dataclass(frozen=True)
class ExerciseFigures:
    """The figures of a class on one exercise.

    Shares are of the submissions that wait for nobody's score of it; they are ``settled`` once
    those are at least half of what was handed in.
    """

    name: str
    points: float
    mean: float
    full: float
    zero: float
    settled: bool = True

    @property
    def shares(self) -> tuple[str, str, str]:
        """Mean, full marks and zero, to be shown."""
        values = (self.mean, self.full, self.zero)
        mean, full, zero = (f"{share:.0%}" if self.settled else "–" for share in values)
        return mean, full, zero


@dataclass(frozen=True)
class Bin:
    """A step of the distribution: scores from ``low`` to ``high`` and how many have one."""

    low: float
    high: float
    count: int

    @property
    def label(self) -> str:
        """The step as a diagram names it."""
        return f"{self.low:g}" if self.low >= self.high else f"{self.low:g}–{self.high:g}"


@dataclass(frozen=True)
class SeenMistake:
    """One that was seen, in how many submissions, and what a student was told.

    Of a failure without a name, ``name`` says what it looks like.
    """

    exercise: str
    name: str
    students: int
    explanation: str


class Summary:
    """The summary of a class for ``attncourse report``. Figures are of what was handed in."""

    def __init__(self, results_of_class: ClassResults) -> None:
        """Work out the figures of a class."""
        self.results, self.students = results_of_class, results_of_class.results
        self._known = [r for r in self.students if r.handed_in]
        scores = [r.score for r in self._known]
        tally = Counter(r.status for r in self.students)
        self.counts = {status: tally[status] for status in STATUSES}
        self.handed_in = sum(tally.values()) - tally["missing"]
        self.maximum = max(
            (r.maximum for r in self._known), default=sum(results_of_class.cells.values())
        )
        self.mean = statistics.fmean(scores) if scores else 0.0
        self.quartiles = quartiles(scores)
        self.bins = tuple(histogram(scores, self.maximum))
        self.exercises = tuple(exercise_figures(results_of_class, self._known))
        self.mistakes, self.failures = (
            tuple(mistakes(results_of_class)),
            tuple(unnamed_failures(results_of_class)),
        )
        self.attention = sorted((r for r in self.students if r.needs_person), key=order_of_urgency)
        self.unforeseen = tuple(unforeseen_failures(results_of_class))

    @property
    def title(self) -> str:
        """The assignment's name, with its variant."""
        name, variant = self.results.assignment, self.results.variant
        return f"{name}, variant {variant}" if variant else name

    @property
    def fullest(self) -> str:
        """Where most students are, in a sentence, or the largest groups of them."""
        top = max(bin.count for bin in self.bins)
        labels = [bin.label for bin in self.bins if bin.count == top]
        share = f"{top} of {self.handed_in}"
        if len(labels) > 3:
            return f"No group has more than {share}."
        if len(labels) > 1:
            return f"The largest groups, {share} each, are at {' and '.join(labels)} points."
        points = "point" if labels == ["1"] else "points"
        who = "Most" if 2 * top > self.handed_in else "The largest group"
        return f"{who}, {share}, {'are' if who == 'Most' else 'is'} at {labels[0]} {points}."

    @property
    def waits(self) -> str:
        """A sentence on what is left for a person to score; empty if nothing is."""
        said = []
        if waiting := self.results.waiting:
            said.append(f"A person's score is still missing for {waiting}: open the formgrader.")
        if stale := self.results.stale:
            said.append(f"Was {SCORED_BEFORE}, and may be another answer now: {stale}.")
        return " ".join(said)

    @property
    def sources(self) -> str:
        """Where the points come from, in a sentence."""
        alone = sum(r.source == "report" for r in self._known)
        manual = sum(bool(r.manual) for r in self._known)
        late = sum(r.penalty > 0 for r in self._known)
        if alone == self.handed_in:
            return "Points are from the reports: the gradebook has none of them."
        said = "Points are from the gradebook, with manual scores"
        said += f" ({count(manual, 'submission')}) and late penalties ({count(late, 'submission')})"
        rest = f"; those of {count(alone, 'submission')} that it does not have are from the reports"
        return f"{said}{rest if alone else ''}. Mistakes and notes are from the reports."


def quartiles(scores: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile; zeros where there are no scores."""
    if len(scores) < 2:
        return (scores[0],) * 3 if scores else (0.0, 0.0, 0.0)
    low, middle, high = statistics.quantiles(scores, n=4, method="inclusive")
    return low, middle, high


def histogram(scores: list[float], maximum: float, steps: int = 10) -> Iterator[Bin]:
    """Yield the distribution in steps of whole points, about ten of them.

    Half a point counts to the step below it, extra credit to the last one.
    """
    if maximum <= 0:
        return
    width = math.ceil(maximum / steps)
    number = int(maximum // width) + 1
    places = (min(max(int((score + TOLERANCE) // width), 0), number - 1) for score in scores)
    tally = Counter(places)
    for n in range(number):
        yield Bin(n * width, min((n + 1) * width - 1, maximum), tally[n])


def exercise_figures(
    results_of_class: ClassResults, handed_in: list[StudentResult]
) -> Iterator[ExerciseFigures]:
    """Return the figures of each exercise, in the assignment's order."""
    points: dict[str, float] = {}
    for grade_id, maximum in results_of_class.cells.items():
        name = exercise_of(grade_id)
        points[name] = points.get(name, 0.0) + maximum
    for name, maximum in points.items():
        earned = [
            sum(cell.points for g, cell in r.cells.items() if exercise_of(g) == name)
            for r in handed_in
            if name not in map(exercise_of, r.waiting)
        ]
        shares = [e / maximum for e in earned] if maximum else []
        number = max(len(shares), 1)
        yield ExerciseFigures(
            name,
            maximum,
            sum(shares) / number,
            sum(share >= 1 - TOLERANCE for share in shares) / number,
            sum(share <= TOLERANCE for share in shares) / number,
            2 * len(shares) >= len(handed_in),
        )


def mistakes(results_of_class: ClassResults) -> Iterator[SeenMistake]:
    """Yield the mistakes by how many submissions show them, those seen most first."""
    for (target, name), students in most_first(r.mistakes for r in results_of_class.results):
        explanation = results_of_class.explanations.get((target, name), "")
        yield SeenMistake(exercise_of(target), name, students, explanation)


def unnamed_failures(results_of_class: ClassResults) -> Iterator[SeenMistake]:
    """Yield the failures without a name as ``mistakes`` gives those that have one."""
    examples = {
        f[:2]: f.example for r in reversed(results_of_class.results) for f in reversed(r.failures)
    }
    for key, students in most_first([f[:2] for f in r.failures] for r in results_of_class.results):
        exercise, name = key
        yield SeenMistake(exercise, name, students, examples[key])


def unforeseen_failures(results_of_class: ClassResults) -> Iterator[tuple[str, int]]:
    """Return which hidden tests fail answers that pass their checks, those seen most first."""
    return most_first(
        [note for note in r.notes if UNFORESEEN in note] for r in results_of_class.results
    )


def most_first(seen: Iterable[Iterable[Any]]) -> Iterator[tuple[Any, int]]:
    """Yield each item and the number of submissions it was seen in, the most frequent first."""
    tally = Counter(entry for several in seen for entry in dict.fromkeys(several))
    return iter(sorted(tally.items(), key=lambda item: (-item[1], item[0])))


def order_of_urgency(result: StudentResult) -> tuple[int, str]:
    """Return the order in which to look: what has no points at all first."""
    order = (*NO_POINTS, result.status)
    return order.index(result.status), result.student
