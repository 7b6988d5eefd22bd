"""What was collected from where, kept as a table: a platform takes feedback back by these names."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from attncourse.grading.collect.attempts import Chosen
from attncourse.grading.course.collected import place_of_record, record_of
from attncourse.grading.course.dates import written
from attncourse.grading.files import replace_file
from attncourse.grading.spreadsheet import table

NEW, SAME, REPLACED, OLDER = "new", "as before", "replaced", "kept: older"
HEAD = (
    *("student", "platform", "number", "handed_in_as", "handed_in_at", "collected_at", "done"),
    "group",
)


@dataclass(frozen=True)
class RecordRow:
    """What became of a student's latest attempt: where it lies and what was done."""

    student: str
    chosen: Chosen
    done: str
    time: datetime | None


def keep_record(course: Path, name: str, rows: Iterable[RecordRow], zone: ZoneInfo | None) -> None:
    """Adds what was collected now, in the place of what is there of the same students."""
    kept, now = record_of(course, name), written(zone, datetime.now(UTC))
    for row in rows:
        claim, item, group = (getattr(row.chosen.owned, key) for key in ("claim", "item", "group"))
        at = written(zone, row.time) if row.time else ""
        cells = (row.student, claim.platform, claim.number, item.shown, at, now, row.done, group)
        kept[row.student] = dict(zip(HEAD, cells, strict=True))
    if not kept:
        return
    lines = [[kept[student].get(head, "") for head in HEAD] for student in sorted(kept)]
    replace_file(place_of_record(course, name), table([HEAD, *lines]))
