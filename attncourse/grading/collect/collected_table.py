"""The output of ``attncourse collect``: who handed in what, files of nobody, who is missing."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from rich.table import Table
from rich.text import Text

from attncourse.grading.collect.attempts import Chosen
from attncourse.grading.collect.collect import NEW, Collected
from attncourse.grading.course.dates import Zone, on_course_clock
from attncourse.grading.harmless import one_line
from attncourse.grading.report import count
from attncourse.grading.results.terminal import empty_table

MAX_TABLE_ROWS = 60  # rows that a person still reads


def collected_table(collected: Collected, name: str) -> Table | None:
    """Return a table with a row for each student; of a large class, for those to look at.

    None if there is no row.
    """
    rows = collected.rows
    if len(rows) > MAX_TABLE_ROWS:
        unusual_rows = (row for row in rows if row.done != NEW or row.attempts > 1 or not row.time)
        rows = list(islice(unusual_rows, MAX_TABLE_ROWS))
    if not rows:
        return None
    table = empty_table("student", "handed in", "when", "")
    table.columns[2].no_wrap = table.columns[3].no_wrap = True
    for row in rows:
        student, file = Text(one_line(row.student, 128)), Text(shown_student_and_file(row, name))
        table.add_row(student, file, time_handed_in(row, collected.zone), row.done)
    return table


def shown_student_and_file(row: Chosen, name: str) -> str:
    """Return the platform's name for a student, and the file's own name where it is unusual."""
    claim = row.owned.claim
    parts = [claim.names[0]] if claim.names[0] != row.student else []
    if row.owned.group:
        parts.append("for the group")
    if row.shown != f"{name}.ipynb":
        parts.append(row.shown)
    if row.attempts > 1:
        parts.append(f"the latest of {row.attempts}")
    return one_line(", ".join(parts), 160)


def time_handed_in(row: Chosen, zone: Zone) -> str:
    """Return when an attempt was handed in, by the class's clocks; "" where nobody knows."""
    if row.time is None:
        return "LATE, no time" if row.late else "no time"
    return f"{on_course_clock(zone, row.time):%Y-%m-%d %H:%M}"


def closing_lines(collected: Collected, name: str) -> Iterator[str]:
    """Yield the last lines of the output: files of nobody, who is missing, what was done."""
    if collected.left:
        yield f"not collected: {len(collected.left)}"
    for left_file in collected.left[:MAX_TABLE_ROWS]:
        yield f"  {one_line(left_file.path, 200)}"
        yield f"    {one_line(left_file.reason, 200)}"
    if len(collected.left) > MAX_TABLE_ROWS:
        yield f"  and {len(collected.left) - MAX_TABLE_ROWS} more"
    yield from collected.remarks
    if collected.absent:
        number = count(len(collected.absent), "student")
        yield f"nothing from {number}: {first_twenty(collected.absent)}"
    if without_notebook := [row for row in collected.rows if row.called != f"{name}.ipynb"]:
        listed = first_twenty(f"{row.student} ({row.called})" for row in without_notebook)
        number = count(len(without_notebook), "student")
        yield f"no notebook from {number}: {listed}; ask for {name}.ipynb"
    if replaced := [row for row in collected.rows if row.aside]:
        yield (f"replaced, and kept as it was before: {first_twenty(r.aside for r in replaced)}")
    for row in replaced:
        if row.why_worse:
            yield (
                f"{one_line(row.student, 60)}: what can be graded was replaced by what cannot, "
                f"{one_line(row.shown, 60)} ({one_line(row.why_worse, 120)}); to have it back, put "
                f"{row.aside} in its place"
            )
    if collected.new:
        yield (
            f"not known before: {first_twenty(collected.new)}; name the class with --roster if "
            "one of them has another id, and the members of a group in groups.csv"
        )
    untimed = [row for row in collected.rows if row.time is None]
    if untimed:
        yield (
            f"no time is known of {count(len(untimed), 'submission')}, counted as on time: "
            "a roster with a timestamp column says when"
        )
    if late := [one_line(row.student, 60) for row in untimed if row.late]:
        yield f"late by what Canvas says: {', '.join(late)}"
    tally = Counter(row.done for row in collected.rows)
    parts = ", ".join(f"{number} {what_was_done}" for what_was_done, number in tally.items())
    zone = f", times in {collected.zone.key if collected.zone else 'UTC'}" if collected.rows else ""
    yield f"{count(len(collected.rows), 'submission')} of {name}{parts and f' ({parts})'}{zone}"


def first_twenty(names: Iterable[str]) -> str:
    """Return the first twenty names in a line, and how many more there are."""
    lines = [one_line(name, 90) for name in names]
    return ", ".join(lines[:20] + ["…"][: len(lines) > 20])
