"""The field guide to attention bugs: every mistake of the checks, as a page.

The directive ``{field-guide}`` lists them under the chapters and exercises of the course, each
folded under its name, after an index from symptoms to mistakes. Nothing on it is typed in: code,
criterion, numbers and explanation are those of the checks.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path

from course import Chapter, Course, loaded
from docutils import nodes
from drill_links import entry_links
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from attncourse.checks import Exercise, exercises
from attncourse.checks.index import name_of_place
from attncourse.figures.moving.real_model import live_address
from field_guide.listing import GuideEntry, entries, sources, with_code, work_ahead

SECTION = "attn-section"
HEADINGS_KEY = "field_guide_headings"  # where Sphinx's environment keeps them from build to build
NO_SCRIPT = (
    '<noscript><p class="attn-noscript">An entry opens where JavaScript runs. The printed book has '
    "them all.</p></noscript>"
)


class FieldGuide(SphinxDirective):
    """``{field-guide}``: the symptoms, then the mistakes of every chapter there is."""

    def run(self) -> list[nodes.Node]:
        """Return the guide's sections, one a chapter."""
        course = loaded(Path(self.env.srcdir))
        for path in sources():
            self.env.note_dependency(str(path))
        self.env.note_dependency(__file__)
        work_ahead(kept_entries(course)).join()
        guide_entries = entries(kept_entries(course))
        known = exercises()
        stems = [chapter.stem for chapter in course.chapters]
        guide_entries = [
            guide_entry for guide_entry in guide_entries if known[guide_entry.target].stem in stems
        ]
        page: list[nodes.Node] = [
            guide_html_node(NO_SCRIPT),
            self.section("symptoms", "By symptom", guide_html_node(by_symptom(guide_entries))),
        ]
        for chapter in course.chapters:
            parts = [
                self.exercise(chapter, known[target], list(group))
                for target, group in groupby(
                    guide_entries, key=lambda guide_entry: guide_entry.target
                )
                if known[target].stem == chapter.stem
            ]
            title = headings(course, chapter)[0].removeprefix("# ")
            page.append(self.section(chapter.stem, f"Chapter {chapter.number} · {title}", *parts))
        setattr(self.env, HEADINGS_KEY, all_headings(course))
        return page

    def section(self, name: str, title: str | nodes.Node, *children: nodes.Node) -> nodes.section:
        """Return a section with a name of its own."""
        heading = nodes.title("", "", nodes.Text(title) if isinstance(title, str) else title)
        place = name_of_place(f"guide {name}")
        section = nodes.section("", heading, *children, ids=[place], names=[place])
        self.state.document.note_explicit_target(section)
        return section

    def exercise(
        self, chapter: Chapter, exercise: Exercise, guide_entries: list[GuideEntry]
    ) -> nodes.section:
        """Return the section of an exercise, with its mistakes."""
        parts: list[nodes.Node] = [self.back("Taught in ", chapter, exercise)]
        course = loaded(Path(self.env.srcdir))
        for guide_entry in guide_entries:
            head = (
                f'<details class="attn-bug" id="{guide_entry.id}"><summary>'
                f"<span>{with_code(guide_entry.name)}</span> "
                f"<small>{escape(guide_entry.symptom)}</small></summary>"
            )
            html = (
                guide_entry.html
                + entry_links(course, guide_entry.id)
                + in_real_model(guide_entry.id)
            )
            parts.append(guide_html_node(f"{head}{sleeping(html)}</details>"))
        title = nodes.literal("", exercise.target)
        return self.section(exercise.target, title, *parts)

    def back(self, lead: str, chapter: Chapter, exercise: Exercise) -> nodes.paragraph:
        """A link to the section that the exercise names; the build fails where it is not there."""
        target = addnodes.pending_xref(
            "",
            nodes.inline("", exercise.section),
            refdomain="",
            reftype=SECTION,
            reftarget=exercise.section.partition("“")[2].rpartition("”")[0],
            refpage=chapter.page,
            refdoc=self.env.docname,
            refwarn=True,
        )
        return nodes.paragraph("", "", nodes.Text(lead), target, nodes.Text("."))


def headings(course: Course, chapter: Chapter) -> list[str]:
    """A chapter's headings. A comment in its code may be among them, which does no harm."""
    text = (course.root / f"{chapter.page}.md").read_text(encoding="utf-8")
    return re.findall(r"(?m)^#+ .+$", text)


def all_headings(course: Course) -> list[list[str]]:
    """Return the headings of every chapter."""
    return [headings(course, chapter) for chapter in course.chapters]


def guides(course: Course) -> list[str]:
    """Return the pages that hold the guide."""
    return [page for page in course.pages if page.endswith("/field_guide")]


def kept_entries(course: Course) -> Path:
    """Return the file that keeps the guide's entries from build to build."""
    return course.root / "_build" / "field_guide.json"


def begin(app):
    """Work the guide's entries out, which takes longest, while Sphinx reads other pages."""
    course = loaded(Path(app.srcdir))
    if guides(course):
        work_ahead(kept_entries(course))


def read_last(app, env, pages):
    """Sphinx reads the guide when its entries are there."""
    last = guides(loaded(Path(app.srcdir)))
    pages.sort(key=lambda page: page in last)


def when_headings_change(app, env, added, changed, removed):
    """The guide shows chapters' titles and links to sections; nothing else of theirs."""
    course = loaded(Path(app.srcdir))
    same = getattr(env, HEADINGS_KEY, None) == all_headings(course)
    return [] if same else guides(course)


def resolve(app, env, node, content):
    """The place of a chapter's section, told by its heading; None, a warning, if it has none."""
    if node["reftype"] != SECTION:
        return None
    for link in env.tocs[node["refpage"]].findall(nodes.reference):
        if name_of_place(link.astext()) == name_of_place(node["reftarget"]):
            place = link["anchorname"].removeprefix("#")
            return make_refnode(app.builder, node["refdoc"], node["refpage"], place, content)
    return None


def sleeping(html: str) -> str:
    """Return an entry as text that field_guide.js makes elements of once it is opened.

    All entries together have sixty thousand elements, which no reader should wait for.
    """
    if re.search(r"</?script|<!--", html, re.IGNORECASE):
        raise ValueError(f"an entry of the field guide holds a script or a comment: {html[:80]!r}")
    return f'\n<script type="text/plain" class="attn-body">\n{html}\n</script>'


@cache
def undone_in_real_model() -> dict[str, str]:
    """For the ids of entries that the live page can undo: its address in that state."""
    from attncourse.milestones.undone import ROWS, TEXTS

    places = {}
    for row in ROWS:
        address = live_address(row.name, TEXTS["a story"])
        if row.entry and address:
            places[name_of_place(" ".join(row.entry))] = address
    return places


def in_real_model(entry: str) -> str:
    """A link to the live page with this mistake made there, if it has a switch for it."""
    address = undone_in_real_model().get(entry)
    if address is None:
        return ""
    return f'\n<p><a href="{escape(address)}">Make it in a real model</a>.</p>'


def guide_html_node(html: str) -> nodes.raw:
    """Return HTML as a node."""
    return nodes.raw("", html, format="html")


def by_symptom(guide_entries: list[GuideEntry]) -> str:
    """Each symptom with the mistakes that show it, folded, as links."""
    from field_guide.symptoms import SYMPTOMS

    blocks = []
    for symptom in SYMPTOMS:
        alike = [guide_entry for guide_entry in guide_entries if guide_entry.symptom == symptom]
        if not alike:
            continue
        lines = (
            f"<li><code>{escape(target)}</code>: "
            + "; ".join(
                f'<a href="#{guide_entry.id}">{with_code(guide_entry.name)}</a>'
                for guide_entry in group
            )
            + "</li>"
            for target, group in groupby(alike, key=lambda guide_entry: guide_entry.target)
        )
        links = f"<ul>{''.join(lines)}</ul>"
        blocks.append(
            f'<details class="attn-symptom"><summary>{escape(symptom[0].upper() + symptom[1:])} '
            f"<small>{len(alike)}</small></summary>{sleeping(links)}</details>"
        )
    return "\n".join(blocks)


def add_guide_files(app, page, template, context, doctree):
    """The guide's own style and script, on its page alone."""
    if 'class="attn-bug"' in context.get("body", ""):
        app.add_css_file("field_guide.css")
        app.add_js_file("field_guide.js")


def setup(app):
    """Register the guide with Sphinx."""
    app.add_directive("field-guide", FieldGuide)
    app.connect("builder-inited", begin)
    app.connect("env-before-read-docs", read_last)
    app.connect("env-get-outdated", when_headings_change)
    app.connect("missing-reference", resolve)
    app.connect("html-page-context", add_guide_files)
