"""When something was handed in, and what being late costs: nbgrader's rules and its plugin."""

from datetime import datetime, timedelta
from functools import partial
from types import SimpleNamespace

from attncourse.grading.course.dates import complete, require_year
from attncourse.grading.course.gradebook import Book
from attncourse.grading.course.settings import importable
from attncourse.grading.errors import UserError


class LatePenalty:
    """The penalty that the course's plugin gives, within what nbgrader allows."""

    def __init__(self, book: Book) -> None:
        from nbgrader.preprocessors import AssignLatePenalties
        from traitlets import TraitError

        try:
            with importable(book.course):
                self._step = AssignLatePenalties(config=book.config)
                self._step.init_plugin()
        except (TraitError, ImportError, AttributeError) as error:
            raise UserError(f"the plugin for late penalties does not load: {error}") from error

    def __call__(self, student: str, score: float, seconds: float) -> float | None:
        """The points to take off, or None."""
        if seconds <= 0 or not self._step.enabled:
            return None
        try:
            penalty = self._step.plugin_inst.late_submission_penalty(student, score, seconds)
            if penalty is None:
                return None
            return self._step._check_late_penalty(SimpleNamespace(score=score), penalty)
        except Exception as error:
            raise UserError(
                f"the plugin for late penalties fails on {student}, {score:g} points, "
                f"{seconds:g} s late: {type(error).__name__}: {error}"
            ) from error


def moment(stamp: str) -> datetime | None:
    """The time, in UTC, that ``timestamp.txt`` says. Raises ``ValueError`` where it says none.

    nbgrader takes what is missing, in *Monday* or *10* say, from the day on which it reads.
    """
    from dateutil.parser import parse
    from nbgrader.utils import parse_utc

    if not stamp:
        return None
    words = stamp.split(" ")
    day = " ".join(words[:2]) if len(words) == 3 else stamp  # of three, the last is a zone
    try:
        complete(partial(parse, ignoretz=True), day, datetime(2000, 1, 1), datetime(2001, 2, 2))
        found = parse_utc(stamp)
        require_year(found)
    except Exception as error:  # whatever a student's file makes of it
        raise ValueError(f"timestamp.txt holds no time: {stamp[:40]!r}") from error
    return found


def seconds_late(
    handed_in: datetime | None, due: datetime | None, extension: timedelta | None
) -> float:
    """How long after its due date something came, as nbgrader counts it."""
    if handed_in is None or due is None:
        return 0
    return max(0.0, (handed_in - due - (extension or timedelta())).total_seconds())
