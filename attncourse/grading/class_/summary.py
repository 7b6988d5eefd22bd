"""A class at a glance: counts, distribution, exercises, mistakes, who needs a person."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from attncourse.grading.class_.results import NO_POINTS, OLDER, ClassResults, StudentResult, count
from attncourse.grading.report import UNFORESEEN, exercise_of

STATUSES = ("graded", "interrupted", "unreadable", "missing")
TOLERANCE = 1e-9  # points that are sums of floats


@dataclass(frozen=True)
class ExerciseFigures:
    """How a class did on one exercise.

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
        found = (self.mean, self.full, self.zero)
        return tuple(f"{share:.0%}" if self.settled else "–" for share in found)


@dataclass(frozen=True)
class Bin:
    """A step of the distribution: scores from ``low`` to ``high`` and how many have one."""

    low: float
    high: float
    count: int

    @property
    def label(self) -> str:
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


@dataclass(frozen=True)
class Summary:
    """What ``attncourse report`` says. Figures are of what was handed in."""

    assignment: str
    counts: dict[str, int]
    maximum: float
    mean: float
    quartiles: tuple[float, float, float]
    bins: tuple[Bin, ...]
    exercises: tuple[ExerciseFigures, ...]
    mistakes: tuple[SeenMistake, ...]
    failures: tuple[SeenMistake, ...]
    attention: tuple[StudentResult, ...]
    waiting: str
    stale: str
    students: tuple[StudentResult, ...]
    unforeseen: tuple[tuple[str, int], ...] = ()  # notes on hidden tests, and of how many students
    variant: str = ""
    zone: ZoneInfo | None = None

    @property
    def title(self) -> str:
        return f"{self.assignment}, variant {self.variant}" if self.variant else self.assignment

    @property
    def handed_in(self) -> int:
        return sum(self.counts.values()) - self.counts["missing"]

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
        who = "Most" if 2 * top > self.handed_in else "The largest group"
        return f"{who}, {share}, {'are' if who == 'Most' else 'is'} at {labels[0]} points."

    @property
    def waits(self) -> str:
        """What is left for a person to score, in a sentence; empty if nothing is."""
        said = []
        if self.waiting:
            missing = f"A person's score is still missing for {self.waiting}"
            said.append(f"{missing}: open the formgrader.")
        if self.stale:
            said.append(f"Was {OLDER}, and may be another answer now: {self.stale}.")
        return " ".join(said)

    @property
    def sources(self) -> str:
        """Where the points come from, in a sentence."""
        known = [r for r in self.students if r.handed_in]
        alone = sum(r.source == "report" for r in known)
        manual = sum(bool(r.manual) for r in known)
        late = sum(r.penalty > 0 for r in known)
        if alone == len(known):
            return "Points are from the reports: the gradebook has none of them."
        said = "Points are from the gradebook, with manual scores"
        said += f" ({count(manual, 'submission')}) and late penalties ({count(late, 'submission')})"
        rest = f"; those of {count(alone, 'submission')} that it does not have are from the reports"
        return f"{said}{rest if alone else ''}. Mistakes and notes are from the reports."


def summarize(found: ClassResults) -> Summary:
    """The summary of a class."""
    handed_in = [r for r in found.results if r.handed_in]
    scores = [r.score for r in handed_in]
    maximum = max((r.maximum for r in handed_in), default=sum(found.cells.values()))
    tally = Counter(r.status for r in found.results)
    return Summary(
        assignment=found.assignment,
        counts={status: tally[status] for status in STATUSES},
        maximum=maximum,
        mean=statistics.fmean(scores) if scores else 0.0,
        quartiles=quartiles(scores),
        bins=tuple(histogram(scores, maximum)),
        exercises=tuple(exercises(found, handed_in)),
        mistakes=tuple(mistakes(found)),
        failures=tuple(unnamed(found)),
        attention=tuple(sorted((r for r in found.results if r.needs_person), key=urgency)),
        waiting=found.waiting,
        stale=found.stale,
        students=found.results,
        unforeseen=tuple(unforeseen(found)),
        variant=found.variant,
        zone=found.zone,
    )


def quartiles(scores: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile; zeros where there are no scores."""
    if len(scores) < 2:
        return (scores[0],) * 3 if scores else (0.0, 0.0, 0.0)
    low, middle, high = statistics.quantiles(scores, n=4, method="inclusive")
    return low, middle, high


def histogram(scores: list[float], maximum: float, steps: int = 10) -> Iterator[Bin]:
    """The distribution in steps of whole points, about ten of them.

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


def exercises(found: ClassResults, handed_in: list[StudentResult]) -> Iterator[ExerciseFigures]:
    """Each exercise in the assignment's order."""
    points: dict[str, float] = {}
    for grade_id, maximum in found.cells.items():
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


def mistakes(found: ClassResults) -> Iterator[SeenMistake]:
    """The mistakes by how many submissions show them, those seen most first."""
    tally = Counter(pair for r in found.results for pair in dict.fromkeys(r.mistakes))
    for (target, name), students in sorted(tally.items(), key=lambda item: (-item[1], item[0])):
        told = found.explanations.get((target, name), "")
        yield SeenMistake(exercise_of(target), name, students, told)


def unnamed(found: ClassResults) -> Iterator[SeenMistake]:
    """The failures without a name as ``mistakes`` gives those that have one."""
    tally: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], str] = {}
    for failure in (one for r in found.results for one in r.failures):
        tally[failure.exercise, failure.what] += 1
        examples.setdefault((failure.exercise, failure.what), failure.example)
    for (exercise, what), students in sorted(tally.items(), key=lambda item: (-item[1], item[0])):
        yield SeenMistake(exercise, what, students, examples[exercise, what])


def unforeseen(found: ClassResults) -> Iterator[tuple[str, int]]:
    """Which hidden tests fail answers that pass their checks, those seen most first."""
    notes = (note for r in found.results for note in dict.fromkeys(r.notes))
    tally = Counter(note for note in notes if UNFORESEEN in note)
    yield from sorted(tally.items(), key=lambda item: (-item[1], item[0]))


def urgency(result: StudentResult) -> tuple[int, str]:
    """The order in which to look: what has no points at all first."""
    order = (*NO_POINTS, result.status)
    return order.index(result.status), result.student
