"""A term's weeks as a table: what to read and to do, for how long, and which model then runs.

    ```{syllabus}
    1: 1 2
    2: 3 4
    12: 15 16 17, one of them
    ```

gives a row a week. Minutes and points are those under the chapters' titles, milestones those of the
package; a chapter that there is not, or one in two weeks, fails the build.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from course import Chapter, Course, CourseError, loaded
from docutils import nodes
from navigation import line
from sphinx.util.docutils import SphinxDirective

from attncourse import milestones

SYLLABUS_COLUMNS = ("Week", "Read", "Do, and hand in", "Then it runs")
ONE_OF = "one of them"


@dataclass(frozen=True)
class Week:
    """Its number, its chapters, and whether a student chooses one of them."""

    number: int
    chapters: tuple[Chapter, ...]
    choose: bool = False


class Syllabus(SphinxDirective):
    """``{syllabus}``: a line for each week, with the numbers of its chapters."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the place of the table."""
        try:
            course_weeks = weeks(loaded(Path(self.env.srcdir)), list(self.content))
        except CourseError as problem:
            raise self.error(str(problem)) from problem
        return [SyllabusNode(weeks=course_weeks)]


class SyllabusNode(nodes.Element):
    """Where the table is put once every chapter's title is known."""


def weeks(course: Course, lines: list[str]) -> list[Week]:
    """Return the weeks that the lines name. Raises ``CourseError`` for what cannot be taught so."""
    chapters = {chapter.number: chapter for chapter in course.chapters}
    course_weeks, seen = [], set()
    for text in lines:
        parts = re.fullmatch(rf"(\d+): (\d+(?: \d+)*)(, {ONE_OF})?", text.strip())
        if parts is None:
            raise CourseError(f"syllabus: expected “1: 1 2”, a week and its chapters, not “{text}”")
        numbers = [int(number) for number in parts[2].split()]
        for number in numbers:
            if number not in chapters:
                raise CourseError(f"syllabus, week {parts[1]}: there is no chapter {number}")
            if number in seen:
                raise CourseError(f"syllabus, week {parts[1]}: chapter {number} was there before")
            seen.add(number)
        course_weeks.append(
            Week(int(parts[1]), tuple(chapters[n] for n in numbers), bool(parts[3]))
        )
    return course_weeks


def draw_syllabus(app, doctree, page):
    """Put the table in its place."""
    course = loaded(Path(app.srcdir))
    for node in list(doctree.findall(SyllabusNode)):
        titles = {c.stem: app.env.titles[c.page].astext() for c in course.chapters}
        links = {c.stem: app.builder.get_relative_uri(page, c.page) for c in course.chapters}
        html = weeks_table_html(course, node["weeks"], titles, links)
        node.replace_self(nodes.raw("", html, format="html"))


def weeks_table_html(course: Course, course_weeks: list[Week], titles: dict, links: dict) -> str:
    """Return the weeks as HTML, with the sums of a course's minutes at the end."""
    head = "".join(f'<th scope="col">{title}</th>' for title in SYLLABUS_COLUMNS)
    rows = "".join(week_row_html(course, week, titles, links) for week in course_weeks)
    reading, doing, points = (
        [
            sum(total)
            for total in zip(*(span(course, week, quantity) for week in course_weeks), strict=True)
        ]
        for quantity in ("reading", "doing", "points")
    )
    return (
        f'<div class="pst-scrollable-table-container"><table class="table attn-syllabus"><thead>'
        f"<tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"<p>In all: {hours(reading)} of reading and {hours(doing)} of exercises, "
        f"{range_text(points)} points.</p>"
    )


def week_row_html(course: Course, week: Week, titles: dict, links: dict) -> str:
    """Return the row of a week."""
    by_stem = {
        module.after: module
        for module in map(milestones.find_milestone, milestones.MILESTONE_NAMES)
    }
    joined = " <em>or</em> " if week.choose else "<br>"
    read = joined.join(
        f'<a href="{escape(links[c.stem])}">{c.number}. {escape(titles[c.stem].split(":")[0])}</a>'
        for c in week.chapters
    )
    todo = joined.join(f"<code>{c.folder}</code>" for c in week.chapters)
    runs = "<br>".join(
        f"<code>{by_stem[c.stem].name}</code>: {escape(by_stem[c.stem].what)}"
        for c in week.chapters
        if c.stem in by_stem
    )
    return (
        f'<tr><th scope="row">{week.number}</th>'
        f"<td>{read}<br><small>{minutes(span(course, week, 'reading'))}</small></td>"
        f"<td>{todo}<br><small>{minutes(span(course, week, 'doing'))}, "
        f"{range_text(span(course, week, 'points'))} points</small></td><td>{runs}</td></tr>"
    )


def span(course: Course, week: Week, quantity: str) -> tuple[int, int]:
    """Return the least and the most that a week asks for: minutes to read or do, or points."""
    each = [int(getattr(line(course.root, chapter), quantity)) for chapter in week.chapters]
    return (min(each), max(each)) if week.choose else (sum(each), sum(each))


def range_text(ends: tuple[int, int] | list[int]) -> str:
    """Return a range in words."""
    low, high = ends
    return str(low) if low == high else f"{low} to {high}"


def minutes(ends: tuple[int, int]) -> str:
    """Return a range of minutes in words."""
    return f"about {range_text(ends)} minutes"


def hours(ends: list[int]) -> str:
    """Return a range of minutes as hours, in words."""
    return f"about {range_text([round(end / 60) for end in ends])} hours"


def setup(app):
    """Register the syllabus with Sphinx."""
    app.add_directive("syllabus", Syllabus)
    app.add_node(SyllabusNode)
    app.connect("doctree-resolved", draw_syllabus)
