"""How late something was handed in, and what that costs: nbgrader's rules and its plugin."""

import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from attncourse.grading.course.dates import Zone, moment_in, time_between, zone_of
from attncourse.grading.course.settings import course_modules_importable
from attncourse.grading.errors import UserError
from attncourse.grading.report import count

if TYPE_CHECKING:
    from traitlets.config import Config

SECONDS_OF_DAY = 86_400


class LatePenalty:
    """The penalty that the course's nbgrader plugin gives, within the bounds of nbgrader."""

    def __init__(self, course: Path, config: "Config") -> None:
        """Load the plugin; raise ``UserError`` if it does not load."""
        from nbgrader.preprocessors import AssignLatePenalties
        from traitlets import TraitError

        self.zone = zone_of(config)
        try:
            with course_modules_importable(course):
                self._step = AssignLatePenalties(config=config)
                self._step.init_plugin()
        except (TraitError, ImportError, AttributeError) as error:
            raise UserError(f"the plugin for late penalties does not load: {error}") from error

    def __call__(self, student: str, score: float, seconds: float) -> float | None:
        """Return the points that being ``seconds`` late costs a student; None for no penalty."""
        if seconds <= 0 or not self._step.enabled:
            return None
        try:
            plugin: Any = self._step.plugin_inst
            penalty = plugin.late_submission_penalty(student, score, seconds)
            if penalty is None:
                return None
            return self._step._check_late_penalty(SimpleNamespace(score=score), penalty)
        except Exception as error:
            raise UserError(
                f"the plugin for late penalties fails on {student}, {count(score, 'point')}, "
                f"{seconds:g} s late: {type(error).__name__}: {error}"
            ) from error


def days_begun(seconds_late: float, grace_seconds: float) -> int:
    """Return how many days have begun since the due date; 0 within the grace."""
    return math.ceil(seconds_late / SECONDS_OF_DAY) if seconds_late > grace_seconds else 0


def time_in_stamp(stamp: str, zone: Zone) -> datetime | None:
    """Return the time, in UTC, in the text of ``timestamp.txt``; None if there is none."""
    with suppress(ValueError):
        return read_stamp(stamp, zone)[0]
    return None


def read_stamp(stamp: str, zone: Zone) -> tuple[datetime | None, str]:
    """Return the time in the text of ``timestamp.txt``, and a note on it, or "".

    Where neither it nor the course names a zone, it is taken for UTC, as by nbgrader. Raises
    ``ValueError`` for what is no time.
    """
    if not stamp:
        return None, ""
    try:
        moment, zoned = moment_in(stamp, zone or UTC)
    except ValueError as error:
        raise ValueError(f"timestamp.txt: {error}") from error
    return moment, "" if zoned else f"timestamp.txt names no time zone: read in {zone or 'UTC'}"


def seconds_late(
    handed_in: datetime | None, due: datetime | None, extension: timedelta | None, zone: Zone
) -> float:
    """Return how many seconds after its due date something came, by the class's clocks.

    So a day is from noon to noon, whatever the clocks do in between. What is late by a moment in
    the hour that they show twice is late by that moment. 0 without a due date or a time.
    """
    if handed_in is None or due is None:
        return 0
    end = due + (extension or timedelta())
    if handed_in <= end:
        return 0
    by_clock = time_between(end, handed_in, zone)
    return (by_clock if by_clock > timedelta() else handed_in - end).total_seconds()
