"""What the book's pages need beyond Jupyter Book: badges, round citations, the field guide."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

sys.path.insert(0, str(Path(__file__).resolve().parent))
import deeper
import field_guide
from course import load
from inline_svg import SvgError, inline
from navigation import course_map, line
from vendor import KEPT, static


def round_brackets() -> BracketStyle:
    return BracketStyle(left="(", right=")", sep="; ", sep2="; ", last_sep="; ")


@dataclass
class AuthorYearRound(AuthorYearReferenceStyle):
    """(Vaswani et al., 2017) and Vaswani et al. (2017)."""

    bracket_textual: BracketStyle = field(default_factory=round_brackets)
    bracket_parenthetical: BracketStyle = field(default_factory=round_brackets)


def add_badges(app, doctree, page):
    """Under a chapter's title: how much it is, and the page and its exercises in Colab."""
    course = load(Path(app.srcdir))
    chapter = course.chapter(page)
    title = next(iter(doctree.findall(nodes.title)), None)
    if chapter is None or title is None or app.builder.format != "html":
        return
    static = "../" * page.count("/") + "_static"
    folder = chapter.folder
    links = [
        ("page", "Open this chapter in Colab", course.colab(f"{page}.ipynb")),
        (
            "exercises",
            "Open this chapter's exercises in Colab",
            course.colab(f"exercises/{folder}/{folder}.ipynb"),
        ),
    ]
    badges = " ".join(
        f'<a href="{escape(url)}"><img src="{static}/badge-{name}.svg" alt="{alt}" height="20"></a>'
        for name, alt, url in links
    )
    figures = f'<p class="attn-line">{escape(str(line(course.root, chapter)))}</p>'
    below = nodes.raw("", f'{figures}<p class="attn-badges">{badges}</p>', format="html")
    title.parent.insert(title.parent.index(title) + 1, below)


def put_plots_into_the_page(app, doctree, page):
    """What matplotlib drew for a page becomes part of it, so that it follows light and dark."""
    if app.builder.format != "html":
        return
    stem = page.rpartition("/")[2]
    short = re.match(r"\d*", stem)[0] or stem
    plots = [i for i in doctree.findall(nodes.image) if "jupyter_execute/" in i["uri"]]
    for number, image in enumerate(i for i in plots if i["uri"].endswith(".svg")):
        svg = Path(app.srcdir, image["uri"]).read_text(encoding="utf-8")
        try:
            html = inline(svg, f"p{short}-{number}", image.get("alt", ""))
        except SvgError as problem:
            logging.getLogger(__name__).warning("%s", problem, location=image.parent)
        else:
            image.replace_self(nodes.raw("", html, format="html"))


class CourseMap(SphinxDirective):
    """``{course-map}``: the chapters, how much each is, and which builds on which."""

    def run(self):
        return [MapNode()]


class MapNode(nodes.Element):
    """Where the map is put once every chapter's title is known."""


def draw_map(app, doctree, page):
    course = load(Path(app.srcdir))
    for node in list(doctree.findall(MapNode)):
        titles = {c.stem: app.env.titles[c.page].astext() for c in course.chapters}
        links = {c.stem: app.builder.get_relative_uri(page, c.page) for c in course.chapters}
        node.replace_self(nodes.raw("", course_map(course, titles, links), format="html"))


def link_sources(app, doctree, page):
    """The name of a file of the package leads to it: `attncourse/kqv.py`."""
    course = load(Path(app.srcdir))
    for node in list(doctree.findall(nodes.literal)):
        path = node.astext()
        file = re.fullmatch(r"attncourse/[\w/]+\.py", path) and (course.root / path).is_file()
        if file and not isinstance(node.parent, nodes.reference):
            link = nodes.reference("", "", node.deepcopy(), refuri=course.blob(path))
            node.replace_self(link)


def add_libraries(app, config):
    """What the pages load comes with them: nothing is fetched from another host."""
    config.html_static_path.append(str(static(KEPT / "static")))


def drop_thebe(app, page, template, context, doctree):
    """sphinx-thebe's scripts are on every page, live code or not, and twice: an error each."""
    context["script_files"] = [
        script
        for script in context["script_files"]
        if "thebe" not in f"{script.filename} {script.attributes.get('body', '')}".lower()
    ]


def launch_chapters_only(app, page, template, context, doctree):
    """Chapters have a notebook beside them for Colab to open; other pages with code have none."""
    if load(Path(app.srcdir)).chapter(page) is None:
        buttons = context.get("header_buttons", [])
        context["header_buttons"] = [b for b in buttons if b.get("label") != "launch-buttons"]


# What names a thing otherwise than its text does, and roles that screen readers no longer know.
NAMED_BETTER = {
    '<summary aria-label="Toggle hidden content">': "<summary>",
    ' role="doc-biblioentry"': "",
    '<div role="list" class="citation-list">': '<div class="citation-list">',
}


def name_better(app, page, template, context, doctree):
    """Mends what the writers of other packages call the parts of a page."""
    for theirs, ours in NAMED_BETTER.items():
        context["body"] = context.get("body", "").replace(theirs, ours)


def setup(app):
    register_plugin(
        "sphinxcontrib.bibtex.style.referencing", "author_year_round", AuthorYearRound, force=True
    )
    app.add_directive("course-map", CourseMap)
    app.add_node(MapNode)
    deeper.setup(app)
    field_guide.setup(app)
    app.connect("config-inited", add_libraries)
    app.connect("doctree-resolved", draw_map)
    app.connect("doctree-resolved", add_badges)
    app.connect("doctree-resolved", link_sources)
    app.connect("doctree-resolved", put_plots_into_the_page)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("html-page-context", launch_chapters_only, priority=900)
    app.connect("html-page-context", name_better)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
