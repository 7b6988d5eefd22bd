"""Dates in a course's files, all read by one reader, in the class's time zone.

Moments are kept as nbgrader keeps them, in UTC and without a zone. A text becomes a moment only
where it is a whole date with a time. One without a zone is in the course's,
``c.NbGraderAPI.timezone`` in ``nbgrader_config.py``, in which the formgrader shows dates as well;
where the course names none, it is refused and never guessed. Of an hour that clocks show twice, or
not at all, that counts which is better for students: the later for what is due, the earlier for
what was handed in.
"""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from attncourse.grading.errors import UserError
from attncourse.grading.harmless import one_line
from attncourse.grading.report import count

if TYPE_CHECKING:
    from traitlets.config import Config

REGION = re.compile(r"\s([A-Za-z_]+(?:/[\w+-]+)+)$")
NUMERIC_DATE = re.compile(r"(?<!\d)\d{1,2}([./-])\d{1,2}\1\d{4}")  # 12.10.2026, or 10/12/2026
NO_TIME = re.compile(r"\d{4}-\d\d-\d\d")
Zone = ZoneInfo | None  # the course's, where it names one
MAX_TIME_WIDTH = 100  # characters
YEARS = range(2000, 2200)  # in which a course can be
OTHER_DAYS = datetime(2000, 1, 1), datetime(2001, 2, 2, 1, 1)
WINTER_AND_SUMMER_DAYS = (datetime(2026, 1, 15), datetime(2026, 7, 15))  # of any year
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
LANGUAGES = (
    "de fr es it pt nl pl cs sk sl hr sr hu ro bg uk ru el tr da sv nb fi et lv lt ca eu gl ar he "
    "fa hi bn ta th vi id ms ja ko zh"
)


def due_of(config: "Config", name: str) -> datetime | None:
    """Return when an assignment is due by ``c.Assignments.due = {"05_kqv": "…"}``; else None."""
    due_dates = config.Assignments.get("due", {})
    if not isinstance(due_dates, dict):
        raise UserError('c.Assignments.due: expected {"05_kqv": "2026-10-12 23:59"}')
    if name not in due_dates:
        return None
    try:
        return parse_instant(str(due_dates[name]), zone_of(config), pick=max)
    except ValueError as error:
        raise UserError(f"c.Assignments.due of {name}: {error}") from None


class NoZone(ValueError):
    """A date that does not say in which time zone it is."""


def zone_of(config: "Config") -> Zone:
    """Return the course's time zone, or None where it names none."""
    name = config.NbGraderAPI.get("timezone") or config.Exchange.get("timezone")
    if not name:
        return None
    try:
        return named_zone(str(name))
    except ValueError as error:
        raise UserError(f"c.NbGraderAPI.timezone: {error}") from None


def named_zone(name: str) -> ZoneInfo:
    """Return the time zone of that name; raises ``ValueError`` where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        shown_name = one_line(name, 40)
        raise ValueError(f"no time zone is called {shown_name}; one is Europe/Berlin") from None


def parse_instant(
    text: str, zone: tzinfo | None, *, pick: Callable[..., datetime] = min
) -> datetime:
    """Return the moment that a text names, in UTC, without a zone.

    ``pick`` chooses of two moments that the clocks show alike. Raises ``ValueError`` that says what
    is missing in the text.
    """
    return moment_in(text, zone, pick)[0]


def moment_in(
    text: str, zone: tzinfo | None, pick: Callable[..., datetime] = min
) -> tuple[datetime, bool]:
    """Return the moment that a text names, in UTC, and whether the text itself says in which zone.

    ``pick`` chooses of two moments that the clocks show alike. Raises ``ValueError``, and
    ``NoZone`` where neither the text nor ``zone`` says in which zone it is.
    """
    text, shown_text = text.strip(), one_line(text, 60)
    if NO_TIME.fullmatch(text):
        raise ValueError(f"{shown_text} has no time of day: write {shown_text} 23:59")
    # Digits of every script: ٢٠٢٦ is a year as well.
    plain = "".join(str(unicodedata.digit(c, c)) for c in text[:MAX_TIME_WIDTH])
    plain = re.sub(r"\b(?:UTC|GMT)\s*(?=[+-]\d)", "", plain.replace("\u2212", "-"))
    region = REGION.search(plain)
    region_zone = named_zone(region[1]) if region else None
    plain = plain[: region.start()] if region else plain

    def zone_behind(letters: str | None, seconds: int | None) -> tzinfo | None:
        """Return the zone of a time for dateutil, which asks with what stands behind it.

        That is None twice where nothing does. A region's name, taken off before, says it by itself.
        """
        return region_zone or parse_offset(letters, seconds, zone)

    moments = set(date_readings(plain, zone_behind)) or {
        moment
        for words in LANGUAGES.split()
        for moment in date_readings(translated_date(plain, words), zone_behind)
    }
    if not moments:
        raise ValueError(f"{shown_text} is no date: expected one such as 2026-10-12 23:59")
    if len({local.replace(tzinfo=None) for local in moments}) > 1:
        raise ValueError(f"{shown_text} may be two days: write it as in 2026-10-12 23:59")
    local = moments.pop()
    if local.year not in YEARS:
        raise ValueError(f"the year {local.year} is none of a course's")
    zoned = local.tzinfo is not None
    if not zoned and zone is None:
        raise NoZone(
            f"{shown_text} has no time zone: write one behind it, as in 2026-10-12 23:59 "
            "Europe/Berlin, or set c.NbGraderAPI.timezone in nbgrader_config.py"
        )
    return in_utc(local if zoned else local.replace(tzinfo=zone), pick), zoned


def in_utc(local: datetime, pick: Callable[..., datetime] = max) -> datetime:
    """Return a zoned moment in UTC; ``pick`` chooses of two that its clocks show alike."""
    readings = (local.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    return pick(readings).replace(tzinfo=None)


def date_readings(text: str, zone_behind: Callable[..., tzinfo | None]) -> Iterator[datetime]:
    """Yield the dates that dateutil reads in a text, none if the text holds no whole date.

    A month before a day is told from a day before a month by a point between them, or not at all.
    ``zone_behind`` makes a zone of the letters or the offset behind a time.
    """
    from dateutil.parser import parse

    numbers = NUMERIC_DATE.search(text)
    orders = (False,) if numbers is None else (True,) if numbers[1] == "." else (True, False)
    for day_first in orders:
        try:
            first, second = (
                parse(text, default=day, dayfirst=day_first, tzinfos=zone_behind)
                for day in OTHER_DAYS
            )
        except Letters as error:
            raise ValueError(str(error)) from None
        except Exception:  # whatever somebody's text makes of it
            continue
        if first == second and str(first.year) in text:
            yield first


class Letters(Exception):
    """Letters behind a time that are no zone's, or may be several zones'."""


def parse_offset(letters: str | None, seconds: int | None, zone: tzinfo | None) -> tzinfo | None:
    """Return the zone that stands behind a time, by its letters or by seconds from UTC.

    Letters mean what they do in the course's ``zone``, or else what they do wherever they are used.
    None where nothing stands there.
    """
    if seconds is not None:
        return timezone(timedelta(seconds=seconds))
    if letters is None:
        return None
    in_zone = (
        {zone.utcoffset(day) for day in WINTER_AND_SUMMER_DAYS if zone.tzname(day) == letters}
        if zone
        else set()
    )
    differences = in_zone or offsets_of_letters().get(letters, set())
    if len(differences) != 1:
        raise Letters(
            f"{letters} is the name of several time zones: write the difference, as in +02:00"
            if differences
            else f"no time zone is called {letters}; one is Europe/Berlin"
        )
    (difference,) = differences
    return timezone(difference or timedelta())


@cache
def offsets_of_letters() -> dict[str, frozenset[timedelta]]:
    """Return, by the letters of a zone (CEST, say), all offsets from UTC that they stand for."""
    by_letters: dict[str, set[timedelta]] = defaultdict(set)
    for zone in map(ZoneInfo, available_timezones()):
        for day in WINTER_AND_SUMMER_DAYS:
            by_letters[str(zone.tzname(day))].add(zone.utcoffset(day) or timedelta())
    return {letters: frozenset(all_of_them) for letters, all_of_them in by_letters.items()}


def translated_date(text: str, language: str) -> str:
    """Return a date of another language with its month in English and no day of the week."""
    english_words = words_of_dates(language)
    longest = sorted(map(re.escape, english_words), key=len, reverse=True)
    word = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(longest)})\.?(?![^\W\d_])", re.IGNORECASE)
    spaced = re.sub(r"(?<=\d)([年月日년월일])", r"\1 ", text)
    english = word.sub(lambda m: f" {english_words.get(m[0].lower().rstrip('.'), '')} ", spaced)
    return re.sub("[(),\uff08\uff09]", " ", english)


@cache
def words_of_dates(language: str) -> dict[str, str]:
    """Return the words in a language's dates, each with what stands for it in English."""
    from babel import Locale

    locale = Locale.parse(language)
    # Between a date's fields stand quoted words ("12 de octubre") and letters beyond Latin (年). A
    # German time may end in "Uhr", which none of the formats has.
    forms = [*map(str, (*locale.datetime_formats.values(), *locale.date_formats.values()))]
    quoted = " ".join(re.findall("'([^']+)'", str(forms)))
    words = dict.fromkeys(re.findall(r"[^\W\d_]+", quoted), "")
    words |= dict.fromkeys(re.findall(r"[^\x00-\u02ff\W\d_]", str(forms)), "") | {"uhr": ""}
    for form in ("format", "stand-alone"):
        for width in ("wide", "abbreviated"):
            words |= dict.fromkeys(locale.days[form][width].values(), "")
            words |= {name: MONTHS.split()[n - 1] for n, name in locale.months[form][width].items()}
            halves = locale.day_periods.get(form, {}).get(width, {})
            words |= {halves[half]: half for half in ("am", "pm") if half in halves}
    return {name.lower().rstrip("."): english for name, english in words.items() if name.strip(".")}


def moment_in_stamp(moment: datetime) -> str:
    """Return a moment as text for ``timestamp.txt``, in UTC."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def on_course_clock(zone: Zone, moment: datetime) -> datetime:
    """Return a moment by the course's clocks."""
    return moment.replace(tzinfo=UTC).astimezone(zone or UTC)


def moment_in_tables(zone: Zone, moment: datetime) -> str:
    """Return a moment by the course's clocks as text that can be read again, for tables."""
    return f"{on_course_clock(zone, moment):%Y-%m-%d %H:%M:%S %z}"


def shown_in(zone: Zone, moment: datetime) -> str:
    """Return a moment by the course's clocks as text for people."""
    return f"{on_course_clock(zone, moment):%Y-%m-%d %H:%M} {zone.key if zone else 'UTC'}"


def days_after(due: datetime, days: float, zone: Zone) -> datetime:
    """Return the moment ``days`` after one, at the same time by the course's clocks."""
    local = on_course_clock(zone, due).replace(tzinfo=None) + timedelta(days=days)
    return in_utc(local.replace(tzinfo=zone or UTC))


def time_between(start: datetime, end: datetime, zone: Zone) -> timedelta:
    """Return the time between two moments by the course's clocks: noon to noon is a day."""
    first, last = (on_course_clock(zone, moment).replace(tzinfo=None) for moment in (start, end))
    return last - first


def span_in_words(seconds: float) -> str:
    """Return a duration in words, rounded up: what is over a day is more than 1 day."""
    if (minutes := up_to(seconds / 60)) < 60:
        return f"{max(1, minutes):g} min"
    if seconds < 86400:
        return f"{up_to(seconds / 3600, digits=1):.1f} h"
    return count(up_to(seconds / 86400, digits=1), "day")


def up_to(number: float, digits: int = 0) -> float:
    """Return a number rounded up; what is a rounding error of floats above stays below."""
    scale = 10**digits
    return math.ceil(round(number * scale, 6)) / scale
