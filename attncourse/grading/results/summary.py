"""A class at a glance: counts, distribution, exercises, mistakes, whom to look at."""

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
    """A class's figures on one exercise.

    Shares are of the submissions that do not wait for a person's score of it; they are ``settled``
    once those are at least half of what was handed in.
    """

    name: str
    points: float
    mean: float
    full: float
    zero: float
    settled: bool = True

    @property
    def shares(self) -> tuple[str, str, str]:
        """Return the mean, the share of full marks and the share of zeros, as they are shown."""
        values = (self.mean, self.full, self.zero)
        mean, full, zero = (f"{share:.0%}" if self.settled else "–" for share in values)
        return mean, full, zero


@dataclass(frozen=True)
class Bin:
    """A bar of the distribution: how many scores are from ``low`` to ``high``."""

    low: float
    high: float
    count: int

    @property
    def label(self) -> str:
        """Return the bar's range, as a diagram names it."""
        return f"{self.low:g}" if self.low >= self.high else f"{self.low:g}–{self.high:g}"


@dataclass(frozen=True)
class SeenMistake:
    """A mistake, the number of submissions that show it, and what one student read of it.

    For a failure that has no name, ``name`` says what it looks like.
    """

    exercise: str
    name: str
    students: int
    explanation: str


class Summary:
    """A class's figures for ``attncourse report``; they are of what was handed in."""

    def __init__(self, results_of_class: ClassResults) -> None:
        """Compute the figures of a class."""
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
            tuple(seen_mistakes(results_of_class)),
            tuple(unnamed_failures(results_of_class)),
        )
        self.attention = sorted((r for r in self.students if r.needs_person), key=order_of_urgency)
        self.unforeseen = tuple(unforeseen_failures(results_of_class))

    @property
    def title(self) -> str:
        """Return the assignment's name, with its variant."""
        name, variant = self.results.assignment, self.results.variant
        return f"{name}, variant {variant}" if variant else name

    @property
    def fullest(self) -> str:
        """Return a sentence on where most students are, or the largest groups of them."""
        top = max(bin.count for bin in self.bins)
        labels = [bin.label for bin in self.bins if bin.count == top]
        share = f"{top} of {self.handed_in}"
        if len(labels) > 3:
            return f"No group has more than {share}."
        if len(labels) > 1:
            return f"The largest groups, {share} each, are at {' and '.join(labels)} points."
        points = "point" if labels == ["1"] else "points"
        subject = "Most" if 2 * top > self.handed_in else "The largest group"
        return (
            f"{subject}, {share}, {'are' if subject == 'Most' else 'is'} at {labels[0]} {points}."
        )

    @property
    def waits(self) -> str:
        """Return a sentence on what a person has still to score; "" if nothing."""
        sentences = []
        if waiting := self.results.waiting:
            sentences.append(
                f"A person's score is still missing for {waiting}: open the formgrader."
            )
        if stale := self.results.stale:
            sentences.append(f"Was {SCORED_BEFORE}, and may be another answer now: {stale}.")
        return " ".join(sentences)

    @property
    def sources(self) -> str:
        """Return a sentence on where the points come from."""
        alone = sum(r.source == "report" for r in self._known)
        manual = sum(bool(r.manual) for r in self._known)
        late = sum(r.penalty > 0 for r in self._known)
        if alone == self.handed_in:
            return "Points are from the reports: the gradebook has none of them."
        sentence = "Points are from the gradebook, with manual scores"
        sentence += (
            f" ({count(manual, 'submission')}) and late penalties ({count(late, 'submission')})"
        )
        rest = f"; those of {count(alone, 'submission')} that it does not have are from the reports"
        return f"{sentence}{rest if alone else ''}. Mistakes and notes are from the reports."


def quartiles(scores: list[float]) -> tuple[float, float, float]:
    """Return lower quartile, median and upper quartile; zeros without any scores."""
    if len(scores) < 2:
        return (scores[0],) * 3 if scores else (0.0, 0.0, 0.0)
    low, middle, high = statistics.quantiles(scores, n=4, method="inclusive")
    return low, middle, high


def histogram(scores: list[float], maximum: float, steps: int = 10) -> Iterator[Bin]:
    """Yield the bars of a distribution, about ``steps`` of them, of whole points each.

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
    """Yield the figures of each exercise, in the assignment's order.

    Submissions that wait for a person's score of an exercise are left out of its figures.
    """
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


def seen_mistakes(results_of_class: ClassResults) -> Iterator[SeenMistake]:
    """Yield the mistakes that submissions show, the most frequent first."""
    for (target, name), students in most_frequent_first(
        r.mistakes for r in results_of_class.results
    ):
        explanation = results_of_class.explanations.get((target, name), "")
        yield SeenMistake(exercise_of(target), name, students, explanation)


def unnamed_failures(results_of_class: ClassResults) -> Iterator[SeenMistake]:
    """Yield the failures that have no name, the most frequent first."""
    examples = {
        f[:2]: f.example for r in reversed(results_of_class.results) for f in reversed(r.failures)
    }
    for key, students in most_frequent_first(
        [f[:2] for f in r.failures] for r in results_of_class.results
    ):
        exercise, name = key
        yield SeenMistake(exercise, name, students, examples[key])


def unforeseen_failures(results_of_class: ClassResults) -> Iterator[tuple[str, int]]:
    """Yield hidden tests that fail answers which pass their checks, the most frequent first."""
    return most_frequent_first(
        [note for note in r.notes if UNFORESEEN in note] for r in results_of_class.results
    )


def most_frequent_first(seen: Iterable[Iterable[Any]]) -> Iterator[tuple[Any, int]]:
    """Yield each item and the number of submissions that have it, the most frequent first."""
    tally = Counter(entry for several in seen for entry in dict.fromkeys(several))
    return iter(sorted(tally.items(), key=lambda item: (-item[1], item[0])))


def order_of_urgency(result: StudentResult) -> tuple[int, str]:
    """Return a key that sorts results by how urgent a look is: without points first."""
    order = (*NO_POINTS, result.status)
    return order.index(result.status), result.student
