"""The late days of a term: how many each student takes of those allowed, and for what.

The worksheet is a table of extensions with more columns: put in the place of ``extensions.csv`` it
counts from the next grading on. Days begun count, by the class's clocks; days granted by a person
are not among them.
"""

import math
from collections import defaultdict
from datetime import timedelta
from pathlib import Path

from attncourse.grading.course.dates import moment_in_tables, time_between, zone_of
from attncourse.grading.course.extensions import (
    EXTENSIONS_FILE,
    EXTENSIONS_HEAD,
    LATE_DAYS_COLUMN,
    ExtensionDays,
    read_extensions,
)
from attncourse.grading.course.late import days_begun, seconds_late
from attncourse.grading.course.settings import read_settings
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_file
from attncourse.grading.gradebook.connection import gradebook_to_read
from attncourse.grading.gradebook.read import (
    DAY,
    read_assignment_ids,
    read_hand_ins,
    read_people,
)
from attncourse.grading.spreadsheet import Value, csv_table

LATE_DAYS_HEAD = (
    *EXTENSIONS_HEAD,
    LATE_DAYS_COLUMN,
    "late",
    "not_covered",
    "left",
    "last_name",
    "first_name",
)
MOMENTS = ("due", "handed_in")


def write_late_days_worksheet(
    course: Path, allowed: float, output: Path | None = None, db: str | None = None
) -> tuple[Path, int]:
    """Write the worksheet; return its path and the number of its rows.

    A row is a submission that was late or has an extension. Late days go to assignments in the
    order of their due dates, as long as a student has any.
    """
    if not (math.isfinite(allowed) and allowed >= 0):
        raise UserError(f"--late-days: expected a number of days, 0 or more, got {allowed:g}")
    settings, extensions = read_settings(course), read_extensions(course)
    zone, grace = zone_of(settings), 60 * float(settings.LateDays.get("grace_minutes", 0))
    with gradebook_to_read(course, db) as connection:
        people = {person.id: person for person in read_people(connection)}
        handed_in = [
            (due, name, student, stamp, extension)
            for name, assignment_id in read_assignment_ids(connection).items()
            for student, stamp, extension, due, _ in read_hand_ins(connection, assignment_id)
            if due and stamp
        ]
    days_left: dict[str, float] = defaultdict(lambda: allowed)
    rows: dict[tuple[str, str], list[Value]] = {}
    for due, name, student, stamp, extension in sorted(handed_in, key=lambda hand_in: hand_in[:3]):
        entered = time_between(due, due + (extension or timedelta()), zone) / DAY
        granted = extensions.get((student, name), ExtensionDays(entered)).granted
        seconds = seconds_late(stamp, due, ExtensionDays(granted).length(due, zone), zone)
        begun = days_begun(seconds, grace)
        taken = min(begun, days_left[student])
        days_left[student] -= taken
        if begun or granted:
            person = people[student]
            rows[student, name] = [
                *(student, name, granted, taken, begun, begun - taken, days_left[student]),
                *(person.last_name, person.first_name),
                *(moment_in_tables(zone, moment) for moment in (due, stamp)),
            ]
    # Who has not handed in has an extension all the same.
    for key, extension in extensions.items():
        rows.setdefault(key, [*key, extension.granted, extension.taken])
    place = output or course / "reports" / "late_days.csv"
    if place.resolve() == (course / EXTENSIONS_FILE).resolve():
        raise UserError(f"{place} counts at once: write it to another place, and look at it first")
    body = [rows[key] for key in sorted(rows)]
    replace_file(place, csv_table([(*LATE_DAYS_HEAD, *MOMENTS), *body]), encoding="utf-8-sig")
    return place, len(body)
