"""The Sphinx extension of the book: each matter in a module of its own."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parent))
import chapter_parts
import citations
import code_rows
import deeper
import drill_pages
import field_guide
import formulas
import functions_page
import icons
import page_head
import page_plots
import search
import steps
import syllabus
from course import loaded
from navigation import course_map
from vendor import VENDOR_FOLDER

TEMPLATES = Path(__file__).resolve().parent / "templates"


class CourseMap(SphinxDirective):
    """``{course-map}``: the chapters, how much each is, and which builds on which."""

    def run(self):
        """Return the place of the map."""
        return [MapNode()]


class MapNode(nodes.Element):
    """Where the map is put once every chapter's title is known."""


def draw_map(app, doctree, page):
    """Put the map in its place."""
    course = loaded(Path(app.srcdir))
    for node in list(doctree.findall(MapNode)):
        titles = {c.stem: app.env.titles[c.page].astext() for c in course.chapters}
        links = {c.stem: app.builder.get_relative_uri(page, c.page) for c in course.chapters}
        node.replace_self(nodes.raw("", course_map(course, titles, links), format="html"))


def link_sources(app, doctree, page):
    """Link the name of a file of the package, `attncourse/kqv.py`, to the file."""
    course = loaded(Path(app.srcdir))
    for node in list(doctree.findall(nodes.literal)):
        path = node.astext()
        file = re.fullmatch(r"attncourse/[\w/]+\.py", path) and (course.root / path).is_file()
        if file and not isinstance(node.parent, nodes.reference):
            link = nodes.reference("", "", node.deepcopy(), refuri=course.blob(path))
            node.replace_self(link)


def add_libraries(app, config):
    """Add the libraries that the pages load: nothing is fetched from another host."""
    config.html_static_path += [str(icons.folder(VENDOR_FOLDER))]
    config.templates_path.append(str(TEMPLATES))


def drop_thebe(app, page, template, context, doctree):
    """Drop sphinx-thebe's scripts: every page has them, live or not, and twice, an error each."""
    context["script_files"] = [
        script
        for script in context["script_files"]
        if "thebe" not in f"{script.filename} {script.attributes.get('body', '')}".lower()
    ]


def launch_chapters_only(app, page, template, context, doctree):
    """Offer Colab on chapters alone: other pages with code have no notebook beside them."""
    if loaded(Path(app.srcdir)).chapter(page) is None:
        buttons = context.get("header_buttons", [])
        context["header_buttons"] = [b for b in buttons if b.get("label") != "launch-buttons"]


# What names a thing otherwise than its text does, and roles that screen readers no longer know.
NAMED_BETTER = {
    '<summary aria-label="Toggle hidden content">': "<summary>",
    ' role="doc-biblioentry"': "",
    '<div role="list" class="citation-list">': '<div class="citation-list">',
}


def name_better(app, page, template, context, doctree):
    """Mend what the writers of other packages call the parts of a page."""
    for sphinx_name, better_name in NAMED_BETTER.items():
        context["body"] = context.get("body", "").replace(sphinx_name, better_name)


def setup(app):
    """Register all extensions of the book with Sphinx."""
    app.add_directive("course-map", CourseMap)
    app.add_node(MapNode)
    citations.setup(app)
    code_rows.setup(app)
    deeper.setup(app)
    drill_pages.setup(app)
    field_guide.setup(app)
    formulas.setup(app)
    functions_page.setup(app)
    page_plots.setup(app)
    search.setup(app)
    steps.setup(app)
    syllabus.setup(app)
    app.connect("config-inited", add_libraries)
    app.connect("config-inited", page_head.name_the_place)
    app.connect("doctree-resolved", draw_map)
    app.connect("doctree-resolved", chapter_parts.add_parts)
    app.connect("doctree-resolved", link_sources)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("html-page-context", launch_chapters_only, priority=900)
    app.connect("html-page-context", chapter_parts.offer_colab_notebook, priority=900)
    app.connect("html-page-context", name_better)
    app.connect("html-page-context", page_head.describe)
    app.connect("build-finished", chapter_parts.copy_notebooks)
    app.connect("build-finished", page_head.write_sitemap)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
