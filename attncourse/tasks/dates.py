"""Dates as people write them, to be written as *year-month-day*: chapter 6 translates them."""

import datetime
from functools import lru_cache

import numpy as np

from attncourse.support.arrays import require_count
from attncourse.support.shapes import Count, shaped

FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
          "october", "november", "december")  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FORMATS = (
    "{day}/{month_number}/{year}",
    "{day} {month:.3} {year}",
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "{weekday} {day} {month} {year}",
    "{weekday}, the {day}{th} of {month} {year}",
)
WRITTEN = "abcdefghijklmnopqrstuvwxyz0123456789/, "  # the characters of a written date
ISO = "0123456789- "  # and of its translation


@shaped
def date_pairs(n: Count, seed: int) -> list[tuple[str, str]]:
    """Return ``n`` random dates of 1900 to 2099, as somebody might write them and as ISO dates.

    Days and the six formats are equally likely; weekdays are the right ones.
    """
    rng = np.random.default_rng(require_count("seed", seed, least=0))
    days = rng.integers(FIRST.toordinal(), LAST.toordinal() + 1, n)
    formats = rng.integers(len(FORMATS), size=n)
    return [write_date(int(day), FORMATS[which]) for day, which in zip(days, formats, strict=True)]


@lru_cache(4096)  # trainings meet the same days again
def write_date(ordinal: int, form: str) -> tuple[str, str]:
    """Return the date with this number, written in this form and as *year-month-day*."""
    date = datetime.date.fromordinal(ordinal)
    endings = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
    written = form.format(
        day=date.day,
        th=endings.get(date.day, "th"),
        month=MONTHS[date.month - 1],
        month_number=date.month,
        year=date.year,
        weekday=WEEKDAYS[date.weekday()],
    )
    return written, date.isoformat()
