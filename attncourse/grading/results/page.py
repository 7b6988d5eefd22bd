"""The class report as an HTML page: a template, filled in, that loads nothing from elsewhere."""

import base64
import hashlib
import os
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from attncourse.grading.course.dates import shown_in, span_in_words
from attncourse.grading.files import replace_file
from attncourse.grading.harmless import one_line
from attncourse.grading.report import count, shown_mistakes
from attncourse.grading.results.gradescope import is_folder
from attncourse.grading.results.summary import Summary, order_of_urgency

HERE = Path(__file__).parent
MAX_ROWS = 1000  # students in the table
MAX_TABLE_ROWS, MAX_ROWS_TO_LOOK_AT = 12, 100  # rows of the other tables


def write_page(course: Path, summary: Summary, place: Path | None = None) -> Path:
    """Write the page, in ``reports`` if no place is named; return its path.

    It links to each student's feedback page.
    """
    name = summary.results.assignment
    place = place or course / "reports" / name / "index.html"
    pages = {r.student: feedback_page(course, r.student, name) for r in summary.students}
    paths = {s: os.path.relpath(p, place.parent) for s, p in pages.items() if p and p.is_file()}
    links = {student: quote(Path(path).as_posix()) for student, path in paths.items()}
    return replace_file(place, class_page(summary, links=links), way_out="; name another place")


def feedback_page(course: Path, student: str, name: str) -> Path | None:
    """Return the path of a student's feedback page; None if no folder can be called so."""
    is_plain_name = is_folder(student)
    return course / "feedback" / student / name / f"{name}.html" if is_plain_name else None


def class_page(
    summary: Summary, written_at: datetime | None = None, links: dict[str, str] | None = None
) -> str:
    """Return the page's HTML, in which texts of submissions are escaped and run nothing."""
    script = (HERE / "page.js").read_text(encoding="utf-8")
    students = list(summary.students)
    if len(students) > MAX_ROWS:
        students = sorted(students, key=lambda r: (not r.needs_person, *order_of_urgency(r)))[
            :MAX_ROWS
        ]
    return load_template(HERE / "page.html.j2").render(
        summary=summary,
        links=links or {},
        students=students,
        most=MAX_TABLE_ROWS,
        looks=MAX_ROWS_TO_LOOK_AT,
        day=shown_in(summary.results.zone, written_at or datetime.now(UTC)),
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


@cache
def load_template(path: Path) -> Template:
    """Return a template, with filters that write numbers and texts."""
    environment: Any = Environment(
        loader=FileSystemLoader(path.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "text": text_markup,
        "name": name_markup,
        "g": lambda number, digits=6: f"{number:.{digits}g}",
        "told": mistakes_in_a_line,
        "span": span_in_words,
    }
    environment.globals["count"] = count
    return environment.get_template(path.name)


def text_markup(value: str, limit: int = 200) -> Markup:
    """Return anybody's text as safe HTML; `code` in backquotes is set as code."""
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(one_line(value, limit)))))


def name_markup(value: str, limit: int = 80) -> Markup:
    """Return a name as HTML that may break behind underscores, dots and hyphens."""
    return Markup(re.sub(r"([_.-])(?=.)", r"\1<wbr>", str(escape(one_line(value, limit)))))


def mistakes_in_a_line(mistakes: tuple[tuple[str, str], ...]) -> Markup:
    """Return a student's first few mistakes in one line of HTML."""
    line = "; ".join(one_line(s, 90) for s in shown_mistakes(mistakes[:3]))
    return text_markup(line + ("; …" if len(mistakes) > 3 else ""), 300)
