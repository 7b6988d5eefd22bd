"""Reports in the terminal: a class at a glance, a class as a table, a student's own file."""

import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from attncourse.checks.showing.chapter_progress import hidden_tests_sentence
from attncourse.checks.showing.verdict import NOT_ATTEMPTED
from attncourse.grading.course.dates import span_in_words
from attncourse.grading.gradebook.read import SubmissionScores
from attncourse.grading.harmless import one_line
from attncourse.grading.report import Report, count, score_in_words, shown_mistakes
from attncourse.grading.results.class_results import StudentResult, lateness_in_words
from attncourse.grading.results.similar import Likenesses
from attncourse.grading.results.summary import SeenMistake, Summary

MAX_ROWS_SHOWN = 10
MIN_SHARE_SHOWN = 0.5
BAR_CHARACTERS = 40
MAX_NOTES_SHOWN = 5  # notes on one submission
MAX_COLUMN_WIDTH = 100  # characters, of a table with sentences in it
MAX_LINE_WIDTH = 1000  # characters of a line where there is room for all


def wide_console() -> Console:
    """Return a console that breaks no lines if nobody says how wide it is, as in a pipe."""
    console = Console()
    is_width_known = console.is_terminal or "COLUMNS" in os.environ
    return console if is_width_known else Console(width=MAX_LINE_WIDTH)


def empty_table(*heads: str) -> Table:
    """Return a table with these heads; a head that ends in # is of numbers."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in heads:
        if head.endswith("#"):
            table.add_column(head.removesuffix("#"), justify="right", no_wrap=True)
        else:
            table.add_column(head, overflow="fold")
    return table


def first_rows(
    heads: Sequence[str],
    rows: Iterable[tuple],
    most: int = MAX_ROWS_SHOWN,
    where: str = "all of them are in the reports",
) -> Table | None:
    """Return a table of the first rows, and where the rest is; None without any."""
    table, rows = empty_table(*heads), list(rows)
    for column in table.columns:  # in a pipe there is no end of a line
        column.max_width = None if column.no_wrap else MAX_COLUMN_WIDTH
    for row in rows[:most]:
        table.add_row(*(Text(one_line(cell, 300)) if type(cell) is str else cell for cell in row))
    if len(rows) > most:
        table.add_row(Text(f"and {len(rows) - most} more: {where}", style="dim"))
    return table if rows else None


def at_a_glance(summary: Summary) -> Group:
    """Return all that ``attncourse report`` prints."""
    late = sorted((r for r in summary.students if r.late), key=lambda r: -r.late)
    exercises = summary.exercises if summary.handed_in else ()
    parts = [
        headline(summary),
        distribution(summary),
        first_rows(
            ("exercise", "points#", "mean#", "full marks#", "zero#"),
            ((e.name, f"{e.points:g}", *e.shares) for e in exercises),
            most=len(exercises),
        ),
        first_rows(("mistakes seen most", "students#"), map(mistake_seen, summary.mistakes)),
        first_rows(("failures without a name", "students#"), map(mistake_seen, summary.failures)),
        first_rows(
            ("hidden tests that a check did not foresee", "students#"),
            ((note, str(students)) for note, students in summary.unforeseen),
        ),
        first_rows(
            (f"handed in late ({len(late)})", "late#", "points off#", "extension#"),
            map(lateness_lines, late),
            most=2 * MAX_ROWS_SHOWN,
            where="in the CSV export",
        ),
        first_rows(
            (f"to look at ({len(summary.attention)})", "why"),
            ((one_line(r.student, 60), one_line(r.why, 200)) for r in summary.attention),
            most=2 * MAX_ROWS_SHOWN,
            where="all of them are in the page and in the CSV export",
        ),
        Text(summary.waits) if summary.waits else None,
        Text(summary.sources, style="dim"),
    ]
    return Group(*(part for part in parts if part is not None))


def headline(summary: Summary) -> Text:
    """Return who handed in, and the figures of their points."""
    counts = summary.counts
    total = sum(counts.values())
    rest = [f"{counts[s]} {s}" for s in ("missing", "unreadable", "interrupted") if counts[s]]
    line = f"{summary.handed_in} of {count(total, 'student')} handed in"
    text = Text.assemble((summary.title, "bold"), ": ", ", ".join([line, *rest]), "\n")
    if summary.handed_in:
        low, median, high = summary.quartiles
        text.append(
            f"of {count(summary.maximum, 'point')}: mean {summary.mean:.4g}, median {median:.4g}, "
            f"quartiles {low:.4g} and {high:.4g}\n"
        )
    return text


def distribution(summary: Summary) -> Table | None:
    """Return a histogram of the points as a table; None without any."""
    if not summary.handed_in or not summary.bins:
        return None
    table = Table.grid("", "", "", padding=(0, 1, 0, 0))
    most = max(step.count for step in summary.bins)
    for step in summary.bins:
        length = max(round(BAR_CHARACTERS * step.count / most), bool(step.count))
        bar = Text("█" * length, style="blue")
        table.add_row(
            Text(step.label, justify="right"), bar, Text(str(step.count), justify="right")
        )
    return table


def mistake_seen(mistake: SeenMistake) -> tuple[Text, str]:
    """Return a mistake with its explanation, and in how many submissions it was seen."""
    text = Text(f"{one_line(mistake.exercise, 200)}: {one_line(mistake.name, 200)}")
    if mistake.explanation:
        text.append(f"\n{one_line(mistake.explanation, 300)}", style="dim")
    return text, str(mistake.students)


def lateness_lines(r: StudentResult) -> tuple[str, str, str, str]:
    """Return a late student's row: name, how late, points taken off, further time or ""."""
    more = span_in_words(r.extension * 86400) if r.extension else ""
    return one_line(r.student, 60), span_in_words(r.late), f"{r.penalty:g}", more


def class_table(
    reports: Sequence[Report], width: int, late: Mapping[str, SubmissionScores] | None = None
) -> Text:
    """Return students' points, and below each student a line for each finding.

    A line that is longer than ``width`` ends in … after a word. Points are those of the tests; for
    a student in ``late`` the line says what lateness takes off.
    """
    names = [one_line(report.student) for report in reports]
    points = [f"{report.points:g} / {report.maximum:g}" for report in reports]
    across = max(map(len, ["student", *names]))
    down = max(map(len, ["points", *points]))
    text = Text(no_wrap=True, overflow="ignore")
    text.append(f" {'student':<{across}}  {'points':>{down}}\n {'─' * (across + 2 + down)}\n")
    for report, name, earned in zip(reports, names, points, strict=True):
        full = report.points == report.maximum
        text.append(f" {name:<{across}}  ").append(f"{earned:>{down}}", "green" if full else "")
        scores = (late or {}).get(report.student)
        lateness = [lateness_in_words(scores.late, scores.penalty)] if scores else []
        for line in [*lateness, *finding_lines(report)]:  # as many words as there is room for
            room = max(width - 4, 20)
            short = textwrap.shorten(line, room, placeholder=" …", break_on_hyphens=False)
            text.append(f"\n   {short}", "dim")
        text.append("\n")
    return text


def finding_lines(report: Report) -> list[str]:
    """Return a report's mistakes, then its notes, each in one line."""
    notes = [one_line(note) for note in report.notes]
    notes[MAX_NOTES_SHOWN:] = (
        [f"and {len(notes) - MAX_NOTES_SHOWN} more"] if len(notes) > MAX_NOTES_SHOWN else []
    )
    return [*map(one_line, shown_mistakes(report.mistakes)), *notes]


def own_verdicts(report: Report) -> str:
    """Return a student's own report as text: each verdict, then the total."""
    judged = {verdict["target"]: verdict["text"] for verdict in report.verdicts}
    pieces = []
    for target, cell in report.cells.items():
        if target in judged:
            pieces.append(judged[target])
        elif cell.message == NOT_ATTEMPTED:
            pieces.append(f"○ {target}: {NOT_ATTEMPTED} ({score_in_words(0, cell.maximum)})")
        else:
            pieces.append(f"✗ {target}: {score_in_words(0, cell.maximum)}\n  {cell.message}")
    pieces += [f"note: {note}" for note in report.notes if not is_told_above(note, report)]
    total = f"total: {score_in_words(report.points, report.maximum)}"
    return "\n\n".join([*pieces, f"{total}\n{hidden_tests_sentence(len(report.cells))}"])


def is_told_above(note: str, report: Report) -> bool:
    """True if a note repeats what a verdict says of the same exercise."""
    names = {target.split(".")[-1] for target in report.cells}
    about, _, why = note.partition(": ")
    name = about.removeprefix("cell ")
    right = {v["target"].split(".")[-1] + " is right" for v in report.verdicts if v["given"]}
    is_said = about == name or any(cell.message.endswith(why) for cell in report.cells.values())
    return (name in names and is_said) or about == NOT_ATTEMPTED or note.split(",")[0] in right


def pairs_to_look_at(likenesses: Likenesses, most: int) -> Group:
    """Return the pairs to look at, or the nearest if there are none, and how to read them."""
    looked = likenesses.to_look_at
    table = empty_table("pair", "bits#", "by chance#", "alike in")
    for pair in (looked or likenesses.pairs[:3])[:most]:
        exercises = sorted(pair.exercises.items(), key=lambda item: -item[1])
        table.add_row(
            Text(f"{pair.first}\n{pair.second}"),
            f"{pair.bits:.1f}",
            f"{pair.by_chance:.2f}" if pair.by_chance >= 0.01 else "<0.01",
            Text(
                "\n".join(
                    f"{name} {share:.0%}" for name, share in exercises if share >= MIN_SHARE_SHOWN
                )
            ),
        )
    more = f", {most} of them shown" if len(looked) > most else ""
    heading = (
        f"{count(len(looked), 'pair')} of {likenesses.compared} students and the published answers "
        f"{'is' if len(looked) == 1 else 'are'} more alike than chance explains{more}."
        if looked
        else f"No pair of {likenesses.compared} students and the published answers is more alike "
        "than chance explains. The nearest:"
    )
    how = (
        "by chance: how many pairs would be as alike if everybody's answers to each exercise were "
        "dealt out anew in this class. Alike is not copied: look at the notebooks."
    )
    left_out = [Text(f"not compared: {reason}") for reason in likenesses.left_out]
    return Group(Text(heading), table, *left_out, Text(how, style="dim"))
