"""The tables of the class report's page."""

import re
from html import escape

from attncourse.grading.class_.results import Result
from attncourse.grading.class_.summary import Summary, count, needs_person, plain, urgency, why

ROWS = 1000
LOOKS = 100
SEEN = 12


def text(value: str, limit: int = 200) -> str:
    """A text of anybody's, fit to stand in the page; `code` in backquotes is set as such."""
    pieces = escape(plain(value, limit)).split("`")
    if len(pieces) % 2 == 0:  # one without its partner stays what it is
        pieces[-2:] = ["`".join(pieces[-2:])]
    return "".join(f"<code>{p}</code>" if n % 2 else p for n, p in enumerate(pieces))


def identifier(value: str, limit: int = 80) -> str:
    """A name of code or of a student, which may break behind its underscores, dots and hyphens."""
    return re.sub(r"([_.-])(?=.)", r"\1<wbr>", escape(plain(value, limit)))


def exercises(summary: Summary) -> str:
    """How the class did on each exercise."""
    if not summary.handed_in or not summary.exercises:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{identifier(e.name)}</th><td class="number">{e.points:g}</td>'
        f'<td class="share">{share(e.mean)}</td><td class="number">{e.mean:.0%}</td>'
        f'<td class="number">{e.full:.0%}</td><td class="number">{e.zero:.0%}</td></tr>\n'
        for e in summary.exercises
    )
    head = heads("exercise", "points#", "", "mean#", "full marks#", "zero#")
    return f"<h2>Exercises</h2>\n{table(head, rows, 'Exercises')}"


def share(value: float) -> str:
    """A share as a bar; its number stands beside it."""
    width = 100 * min(max(value, 0), 1)
    return (
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="100" height="8"/><rect class="bar" width="{width:.0f}" height="8"/></svg>'
    )


def table(head: str, rows: str, label: str, name: str = "") -> str:
    """A table that scrolls by itself, with the keyboard too, where the window is narrow."""
    named = f' id="{name}"' if name else ""
    return (
        f'<div class="wide" role="region" aria-label="{label}" tabindex="0"><table{named}>{head}'
        f"<tbody>\n{rows}</tbody></table></div>\n"
    )


def heads(*names: str) -> str:
    """A table's head; a name that ends in # is over numbers."""
    cells = "".join(
        f'<th scope="col"{" class=number" if n.endswith("#") else ""}>{n.removesuffix("#")}</th>'
        if n
        else "<td></td>"
        for n in names
    )
    return f"<thead><tr>{cells}</tr></thead>"


def misconceptions(summary: Summary) -> str:
    """The misconceptions seen most, each explained as one student read it."""
    if not summary.misconceptions:
        return ""
    rows = "".join(
        f'<tr><td class="number">{m.students}</td><td class="text">{text(m.name)} '
        f'<code class="quiet">{identifier(m.target)}</code>'
        f"{f'<p class=quiet>{text(m.explanation, 400)}</p>' if m.explanation else ''}</td></tr>\n"
        for m in summary.misconceptions[:SEEN]
    )
    more = len(summary.misconceptions) - SEEN
    rest = f'<p class="quiet">{count(more, "rarer one")} not shown.</p>\n' if more > 0 else ""
    head = heads("students#", "misconception, and what a student was told")
    return f"<h2>Misconceptions seen most</h2>\n{table(head, rows, 'Misconceptions')}{rest}"


def attention(summary: Summary) -> str:
    """The submissions that somebody should look at."""
    if not summary.attention:
        return "<h2>To look at</h2>\n<p>No submission needs a person.</p>\n"
    rows = "".join(
        f'<tr><th scope="row">{identifier(r.student)}</th><td class="word">{text(r.status)}</td>'
        f'<td class="text">{text(why(r), 300)}</td></tr>\n'
        for r in summary.attention[:LOOKS]
    )
    more = len(summary.attention) - LOOKS
    rest = f'<p class="quiet">and {more} more, in the table below.</p>\n' if more > 0 else ""
    looks = table(heads("student", "status", "why"), rows, "To look at")
    return f"<h2>To look at: {len(summary.attention)}</h2>\n{looks}{rest}"


def students(summary: Summary) -> str:
    """Every student, or of a very large class those to look at first."""
    rows, total = list(summary.students), len(summary.students)
    told = f"The whole class: <code>attncourse export {text(summary.assignment)}</code>"
    if total > ROWS:
        rows = sorted(rows, key=lambda r: (not needs_person(r), *urgency(r)))[:ROWS]
        told = f"{ROWS} of {total} students, those to look at first. {told}"
    if not rows:
        return "<h2>Students</h2>\n<p>The gradebook has no students.</p>\n"
    named = any(r.name for r in rows)
    head = heads("student", *(["name"] if named else []), "points#", "status", "misconceptions")
    return (
        f'<h2>Students</h2>\n<p class="quiet">{told}</p>\n'
        '<div class="filter" hidden><label>Filter <input type="search" id="word"></label>'
        '<label><input type="checkbox" id="look"> only those to look at</label>'
        '<span class="quiet" id="shown" role="status"></span></div>\n'
        + table(head, "".join(row(r, named) for r in rows), "Students", "students")
    )


def row(r: Result, named: bool) -> str:
    """A student's row, with or without a column for the name."""
    seen = [f"{target.split('.')[-1]}: {name}" for target, name in r.misconceptions]
    told = "; ".join(plain(s, 90) for s in seen[:3]) + ("; …" if len(seen) > 3 else "")
    late = f' <span class="quiet">(late: −{r.penalty:g})</span>' if r.penalty else ""
    manual = ' <span class="quiet">(manual)</span>' if r.manual else ""
    mark = ' data-look="1"' if needs_person(r) else ""
    status = f'<span class="look">{text(r.status)}, look</span>' if mark else text(r.status)
    name = f"<td>{text(r.name, 80)}</td>" if named else ""
    return (
        f'<tr{mark}><th scope="row">{identifier(r.student)}</th>{name}'
        f'<td class="number" data-key="{r.score:.6g}">{r.score:g}{late}{manual}</td>'
        f'<td class="word">{status}</td><td class="text">{text(told, 300)}</td></tr>\n'
    )
