"""Reports as a table and as text."""

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from attncourse.grading.report import Report


def class_table(reports: Sequence[Report]) -> Table:
    """Student, points, which misconceptions were seen, notes."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("student", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("misconceptions seen", min_width=29, overflow="fold")
    table.add_column("notes", overflow="fold")
    for report in reports:
        full = report.points == report.maximum
        table.add_row(
            Text(report.student),
            Text(score(report), style="green" if full else ""),
            Text(
                "\n".join(
                    f"{target.split('.')[-1]}: {name}" for target, name in report.misconceptions
                )
            ),
            Text("\n".join(notes(report)), style="dim" if full else ""),
        )
    return table


def score(report: Report) -> str:
    return f"{report.points:g} / {report.maximum:g}"


def notes(report: Report, limit: int = 5) -> list[str]:
    """The report's notes, one line each, and the last of many left out."""
    lines = [note if len(note) <= 160 else note[:159] + "…" for note in report.notes]
    more = len(lines) - limit
    return lines if more <= 0 else [*lines[:limit], f"and {more} more"]


def own_verdicts(report: Report) -> str:
    """What a student reads of their own file: each verdict, then the total."""
    seen = {verdict["target"] for verdict in report.verdicts}
    pieces = [verdict["text"] for verdict in report.verdicts]
    for target, cell in report.cells.items():
        if target not in seen:
            pieces.append(f"✗ {target}: 0 of {cell.maximum:g} points\n  {cell.message}")
    pieces += [f"note: {note}" for note in report.notes]
    return "\n\n".join([*pieces, f"total: {report.points:g} of {report.maximum:g} points"])
