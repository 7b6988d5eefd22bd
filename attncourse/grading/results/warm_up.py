"""A page to begin a lecture with: the most frequent mistakes as drills, without names."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from attncourse.checks.index import address_of
from attncourse.grading.course.dates import shown_in
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_file
from attncourse.grading.results.page import HERE, load_template
from attncourse.grading.results.summary import Summary, most_frequent_first
from attncourse.practice.cells import value_text
from attncourse.practice.drills import Drill, drills_of
from attncourse.practice.excerpt import Excerpt, excerpt_of

MIN_STUDENTS = 5  # students who have made a mistake that is shown
MAX_DRILLS = 8  # drills on the page
WARM_UP_ADVICE = "; name another place with --html"


@dataclass(frozen=True)
class WarmUp:
    """A drill, and how many of the class have made its mistake."""

    drill: Drill
    students: int
    options: tuple[str, ...]

    @property
    def excerpt(self) -> Excerpt:
        """Return the drill's lines of code that are shown."""
        return excerpt_of(self.drill)

    @property
    def section(self) -> str:
        """Return the address of the section that explains the mistake; "" if the book has none."""
        return address_of(self.drill.section)


@dataclass(frozen=True)
class WarmUpMade:
    """The page that was written, its number of drills, and the frequent mistakes without one."""

    path: Path
    drills: int
    without: tuple[str, ...]


def write_warm_up(course: Path, summary: Summary, place: Path | None = None) -> WarmUpMade:
    """Write the page, in ``reports`` if no place is named; return what is on it.

    Raises ``UserError`` if no mistake is frequent enough, none of them has a drill, or the
    assignment is in another convention than the book's.
    """
    name = summary.results.assignment
    if summary.results.variant:
        raise UserError(f"{name} is in the variant {summary.results.variant}, and drills are not")
    frequent = frequent_mistakes(summary)
    if not frequent:
        raise UserError(
            f"{name}: no mistake was named in {MIN_STUDENTS} submissions or more, so there is no "
            "warm-up; "
            "of fewer nothing is shown"
        )
    drills = list(warm_ups(frequent))
    without = tuple(mistake for (target, mistake), _ in frequent if not drill_of(target, mistake))
    if not drills:
        raise UserError(f"{name}: there is no drill of what was frequent: {'; '.join(without)}")
    page = load_template(HERE / "warm_up.html.j2").render(
        title=name,
        warm_ups=drills,
        handed_in=summary.handed_in,
        day=shown_in(summary.results.zone, datetime.now(UTC)),
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        value_text=value_text,
    )
    place = place or course / "reports" / name / "warm_up.html"
    return WarmUpMade(replace_file(place, page, way_out=WARM_UP_ADVICE), len(drills), without)


def frequent_mistakes(summary: Summary) -> list[tuple[tuple[str, str], int]]:
    """Return mistakes of at least ``MIN_STUDENTS`` submissions, the most frequent first."""
    by_frequency = most_frequent_first(result.mistakes for result in summary.results.results)
    return [(mistake, students) for mistake, students in by_frequency if students >= MIN_STUDENTS]


def warm_ups(frequent: Iterable[tuple[tuple[str, str], int]]) -> Iterator[WarmUp]:
    """Yield the drills of frequent mistakes, at most ``MAX_DRILLS``."""
    n_yielded = 0
    for (target, mistake), students in frequent:
        drill = drill_of(target, mistake)
        if drill is not None and n_yielded < MAX_DRILLS:
            n_yielded += 1
            options = [drill.name, *drill.wrong_names]
            random.Random(drill.id).shuffle(options)
            yield WarmUp(drill, students, tuple(options))


def drill_of(target: str, mistake: str) -> Drill | None:
    """Return the first drill of an exercise's mistake; None if there is none."""
    return next(
        (d for d in drills_of(target.split(".")[0]) if (d.exercise, d.name) == (target, mistake)),
        None,
    )
