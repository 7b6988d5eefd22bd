"""The class at a glance in the terminal."""

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from attncourse.grading.class_.summary import Summary, count, plain, why

SHOWN = 10
BAR = 40


def at_a_glance(summary: Summary) -> Group:
    """Everything ``attncourse report`` prints."""
    parts = [headline(summary), distribution(summary), by_exercise(summary)]
    parts += [seen_most(summary), for_a_person(summary), Text(summary.sources, style="dim")]
    return Group(*(part for part in parts if part is not None))


def headline(summary: Summary) -> Text:
    """Who handed in what, and the figures of their points."""
    counts = summary.counts
    total = sum(counts.values())
    rest = [f"{counts[s]} {s}" for s in ("missing", "unreadable", "interrupted") if counts[s]]
    line = f"{summary.handed_in} of {count(total, 'student')} handed in"
    text = Text.assemble((summary.assignment, "bold"), ": ", ", ".join([line, *rest]), "\n")
    if summary.handed_in:
        low, median, high = summary.quartiles
        text.append(
            f"of {summary.maximum:g} points: mean {summary.mean:.4g}, median {median:.4g}, "
            f"quartiles {low:.4g} and {high:.4g}\n"
        )
    return text


def distribution(summary: Summary) -> Table | None:
    """A histogram in text."""
    if not summary.handed_in or not summary.bins:
        return None
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    most = max(b.count for b in summary.bins)
    for step in summary.bins:
        length = max(round(BAR * step.count / most), bool(step.count)) if most else 0
        table.add_row(step.label, Text("█" * length, style="blue"), str(step.count))
    return table


def by_exercise(summary: Summary) -> Table | None:
    """How the class did on each exercise."""
    if not summary.handed_in or not summary.exercises:
        return None
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("exercise", overflow="fold")
    for name in ("points", "mean", "full marks", "zero"):
        table.add_column(name, justify="right", no_wrap=True)
    for e in summary.exercises:
        shares = (f"{share:.0%}" for share in (e.mean, e.full, e.zero))
        table.add_row(Text(plain(e.name)), f"{e.points:g}", *shares)
    return table


def seen_most(summary: Summary) -> Table | None:
    """The misconceptions that most submissions show, each explained as one student read it."""
    if not summary.misconceptions:
        return None
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("misconceptions seen most", overflow="fold")
    table.add_column("students", justify="right", no_wrap=True)
    for m in summary.misconceptions[:SHOWN]:
        told = Text(f"{plain(m.target)}: {plain(m.name)}")
        if m.explanation:
            told.append(f"\n{plain(m.explanation, 300)}", style="dim")
        table.add_row(told, str(m.students))
    return table


def for_a_person(summary: Summary) -> Table | None:
    """The submissions that somebody should look at, the most urgent first."""
    if not summary.attention:
        return None
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(f"to look at ({len(summary.attention)})", overflow="fold", min_width=12)
    table.add_column("why", overflow="fold")
    for result in summary.attention[: 2 * SHOWN]:
        table.add_row(Text(plain(result.student, 60)), Text(plain(why(result))))
    more = len(summary.attention) - 2 * SHOWN
    if more > 0:
        table.add_row("…", f"and {more} more: all of them are in the page and in the CSV export")
    return table
