"""Dates of a course: a text becomes a moment only where it says when, and in which time zone.

Moments are kept as nbgrader keeps them, in UTC and without a zone. A date without a zone is in the
course's, ``c.NbGraderAPI.timezone`` in ``nbgrader_config.py``, in which the formgrader shows dates
as well; where the course names none, such a date is refused and never guessed.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from attncourse.grading.errors import UserError
from attncourse.grading.harmless import one_line

if TYPE_CHECKING:
    from traitlets.config import Config

ISO = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[ T]+(?P<time>\d\d?:\d\d(?::\d\d)?)(?:[.,](?P<part>\d+))?"
    r"\s*(?P<zone>[+-]\d\d:?\d\d|[A-Za-z][\w+/-]*)?"
)
NO_TIME = re.compile(r"\d{4}-\d\d-\d\d")
YEARS = range(2000, 2200)  # in which a course can be
OTHER_DAYS = datetime(2000, 1, 1), datetime(2001, 2, 2, 1, 1)
MONTH = re.compile(r"[^\W\d_]{3,}")  # a month as a word: 10/06 may be of June or of October


def due_of(config: "Config", name: str) -> datetime | None:
    """When the settings say that an assignment is due: ``c.Assignments.due = {"05_kqv": "…"}``."""
    found = config.Assignments.get("due", {})
    if not isinstance(found, dict):
        raise UserError('c.Assignments.due: expected {"05_kqv": "2026-10-12 23:59"}')
    if name not in found:
        return None
    try:
        return instant(str(found[name]), zone_of(config))
    except ValueError as error:
        raise UserError(f"c.Assignments.due of {name}: {error}") from None


class NoZone(ValueError):
    """A date that does not say in which time zone it is."""


def zone_of(config: "Config") -> ZoneInfo | None:
    """The course's time zone, or None where it names none."""
    name = config.NbGraderAPI.get("timezone") or config.Exchange.get("timezone")
    if not name:
        return None
    try:
        return named_zone(str(name))
    except ValueError as error:
        raise UserError(f"c.NbGraderAPI.timezone: {error}") from None


def named_zone(name: str) -> ZoneInfo:
    """The time zone of that name; raises ``ValueError`` where there is none."""
    try:
        return ZoneInfo("UTC" if name in ("Z", "z") else name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        shown = one_line(name, 40)
        raise ValueError(f"no time zone is called {shown}; one is Europe/Berlin") from None


def instant(text: str, zone: ZoneInfo | None, *, words: bool = False) -> datetime:
    """The moment that a text names, in UTC. Raises ``ValueError`` that says what is missing.

    With ``words``, dates as learning platforms write them are read as well: *Wednesday, 10 June
    2026, 2:14 PM*.
    """
    text, shown = text.strip(), one_line(text, 60)
    if NO_TIME.fullmatch(text):
        raise ValueError(f"{shown} has no time of day: write {shown} 23:59")
    found = ISO.fullmatch(text)
    if found:
        local, named = iso(found), found["zone"] or ""
    elif words and MONTH.search(text):
        local, named = worded(text), ""
    else:
        raise ValueError(f"{shown} is no date: expected one such as 2026-10-12 23:59")
    if re.fullmatch(r"[+-]\d\d:?\d\d", named):
        local = local.replace(tzinfo=datetime.strptime(named, "%z").tzinfo)
    elif named:
        local = local.replace(tzinfo=named_zone(named))
    elif local.tzinfo is None:
        if zone is None:
            raise NoZone(
                f"{shown} has no time zone: write one behind it, as in 2026-10-12 23:59 "
                "Europe/Berlin, or set c.NbGraderAPI.timezone in nbgrader_config.py"
            )
        local = local.replace(tzinfo=zone)
    require_year(local)
    return local.astimezone(UTC).replace(tzinfo=None)


def iso(found: re.Match[str]) -> datetime:
    """The date and time of a match, before any zone."""
    try:
        hour, rest = found["time"].split(":", 1)
        local = datetime.fromisoformat(f"{found['day']} {int(hour):02}:{rest}")
    except ValueError:
        raise ValueError(f"{one_line(found[0], 60)} is no day or no time") from None
    return local.replace(microsecond=int((found["part"] or "")[:6].ljust(6, "0")))


def worded(text: str) -> datetime:
    """A date with its month as a word, which dateutil reads."""
    from dateutil.parser import parse

    try:
        return complete(parse, text, *OTHER_DAYS)
    except (ValueError, OverflowError):
        shown = one_line(text, 60)
        said = f"{shown} is no date: expected day, month, year and time, in English"
        raise ValueError(said) from None


def complete(parse: Callable[..., datetime], text: str, *others: datetime) -> datetime:
    """What a parser reads, if it is all in the text: it says the same on whichever day it is read.

    Raises ``ValueError`` where it does not.
    """
    first, second = (parse(text, default=other) for other in others)
    if first != second:
        raise ValueError(f"{one_line(text, 60)} is no whole date")
    return first


def require_year(moment: datetime) -> None:
    if moment.year not in YEARS:
        raise ValueError(f"the year {moment.year} is none of a course's")


def stamp(moment: datetime) -> str:
    """A moment as ``timestamp.txt`` holds it."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def shown_in(zone: ZoneInfo | None, moment: datetime) -> str:
    """A moment by the course's clocks."""
    local = moment.replace(tzinfo=UTC).astimezone(zone or UTC)
    return f"{local:%Y-%m-%d %H:%M} {zone.key if zone else 'UTC'}"


def span(seconds: float) -> str:
    """How long something is, as a person says it."""
    if seconds < 3600:
        return f"{max(1, round(seconds / 60))} min"
    if seconds < 86400:
        return f"{seconds / 3600:.1f} h"
    days = f"{seconds / 86400:.1f}".removesuffix(".0")
    return f"{days} day" if days == "1" else f"{days} days"
