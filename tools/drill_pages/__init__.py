"""*Find the mistake*: a section before the exercises of each chapter that has drills, and a page.

Code with one wrong line, an example, *which line?* and *what happened?*. A reader without scripts
and paper get three drills of the chapter, with their answers. For others ``practice.js`` in
``book/assets`` shows one after the other; it loads the chapter's drills, a script in
``_static/drills``, when the section comes near. The page *Practice* (``{practice}``) has all
chapters' drills, and ``practice_page.js`` beside ``practice.js``.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from html import escape
from pathlib import Path

from course import Chapter, Course, loaded
from docutils import nodes
from drill_links import GUIDE, PRACTICE, drills_by_chapter
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from attncourse.practice.drills import Drill, drills_file
from drill_pages import markup
from drill_pages.markup import DrillLinks, packed, short_answers_html, still_html

DRILLS_TITLE = "Find the mistake"
STILL = 3  # drills of a chapter that stand on its page
DRILLS_SITE_FOLDER = "drills"  # of the built book's static files
VERSIONS_KEY = "drill_versions"  # where Sphinx's environment keeps them from build to build


class DrillsNode(nodes.Element):
    """Where a chapter's drills are put once it is known where sections are."""


class PracticeNode(nodes.Element):
    """Where the page of all chapters has its drill."""


class AddDrills(SphinxTransform):
    """Puts the section before a chapter's exercises: numbered, and beside the page, like others."""

    default_priority = 300  # labels have come to their sections, and are not yet gathered

    def apply(self, **kwargs) -> None:
        """Add the section of drills behind a chapter's exercises."""
        course = loaded(Path(self.app.srcdir))
        chapter = course.chapter(self.env.docname)
        if chapter is None or chapter.stem not in drills_by_chapter(course):
            return
        exercises = f"{chapter.stem}-exercises"
        for section in list(self.document.findall(nodes.section)):
            if exercises in section["names"]:
                title, name = nodes.title("", DRILLS_TITLE), f"{chapter.stem}-drills"
                added = nodes.section("", title, DrillsNode(), ids=["find-the-mistake"])
                added["names"] = [name]
                section.parent.insert(section.parent.index(section), added)
                self.document.note_explicit_target(added)


class Practice(SphinxDirective):
    """``{practice}``: a drill of the chapters that a reader chooses."""

    def run(self) -> list[nodes.Node]:
        """Return the place of the drills of all chapters."""
        return [PracticeNode()]


def pages_with_other_drills(app, env, added, changed, removed) -> list[str]:
    """Return the pages that show drills which are others since the last build."""
    course = loaded(Path(app.srcdir))
    now = {stem: address(course, stem) for stem in drills_by_chapter(course)}
    before = getattr(env, VERSIONS_KEY, now)
    setattr(env, VERSIONS_KEY, now)
    stale = {s for s in {*now, *before} if now.get(s) != before.get(s)}
    if not stale:
        return []
    chapters = [chapter.page for chapter in course.chapters if chapter.stem in stale]
    return [page for page in (*chapters, PRACTICE, GUIDE) if page in course.pages]


def put_drills(app, doctree, page):
    """Fill the places of drills on a page."""
    course = loaded(Path(app.srcdir))
    chapter = course.chapter(page)
    for node in list(doctree.findall(DrillsNode)):
        assert chapter is not None, "only chapters have a place of drills"
        node.replace_self(drill_html_node(chapter_html(course, chapter)))
    for node in list(doctree.findall(PracticeNode)):
        titles = {c.stem: app.env.titles[c.page].astext() for c in course.chapters}
        node.replace_self(drill_html_node(practice_html(course, titles)))


def drill_html_node(html: str) -> nodes.raw:
    """Return HTML as a node."""
    return nodes.raw("", html, format="html")


def address(course: Course, stem: str) -> str:
    """Return where the pages find a chapter's drills; other drills have another address."""
    text = Path(markup.__file__).read_bytes() + drills_file(stem).read_bytes()
    return f"../_static/{DRILLS_SITE_FOLDER}/{stem}.js?v={hashlib.sha256(text).hexdigest()[:8]}"


def links(course: Course, drill: Drill) -> DrillLinks:
    """Return where a drill leads, from a page in ``book/``."""
    guide = f"field_guide.html#{drill.guide}" if GUIDE in course.pages and drill.guide else ""
    return DrillLinks(drill.section.removeprefix("book/"), guide)


def still_drills(drills: Sequence[Drill]) -> list[Drill]:
    """Return the drills that stand on a chapter's page, of different exercises if there are."""
    shuffled = random.Random(0).sample(drills, len(drills))
    shuffled.sort(key=lambda drill: drill.easy)
    chosen: list[Drill] = []
    for fresh in (True, False):
        for drill in shuffled:
            known = drill.exercise in {drill_shown.exercise for drill_shown in chosen}
            if len(chosen) < STILL and drill not in chosen and not (fresh and known):
                chosen.append(drill)
    return chosen


def chapter_html(course: Course, chapter: Chapter) -> str:
    """Return the place of a chapter's drills, with those that stand there without scripts."""
    shown = still_drills(drills_by_chapter(course)[chapter.stem])
    still = "".join(still_html(drill, links(course, drill)) for drill in shown)
    practice = "practice.html" if PRACTICE in course.pages else ""
    return (
        f'<div class="attncourse-drill tex2jax_ignore mathjax_ignore" role="group" '
        f'aria-label="{DRILLS_TITLE}" data-chapter="{chapter.stem}" '
        f'data-drills="{escape(address(course, chapter.stem))}" data-practice="{practice}">'
        f'<div class="ap-still">{still}</div>{short_answers_html(shown)}</div>'
    )


def practice_html(course: Course, titles: dict[str, str]) -> str:
    """Return the place of the page of all chapters, with what its script has to know."""
    every = drills_by_chapter(course)
    if not every:
        return "<p>There are no drills yet.</p>"
    known = {
        chapter.stem: {
            "number": chapter.number,
            "title": titles[chapter.stem],
            "drills": address(course, chapter.stem),
            "ids": [drill.id.removeprefix(f"{chapter.stem}-") for drill in every[chapter.stem]],
        }
        for chapter in course.chapters
        if chapter.stem in every
    }
    places = "".join(
        f'<li><a href="{chapter.folder}.html#find-the-mistake">{chapter.number}. '
        f"{escape(titles[chapter.stem])}</a></li>"
        for chapter in course.chapters
        if chapter.stem in every
    )
    data = json.dumps(known, separators=(",", ":")).replace("<", "\\u003c")
    return (
        '<div class="attncourse-drill tex2jax_ignore mathjax_ignore" role="group" '
        f'aria-label="Practice" data-chapters=""><script type="application/json">{data}</script>'
        '<div class="ap-still"><p>Here a browser that runs scripts shows one drill after another. '
        f"Three of each chapter stand on its page:</p><ul>{places}</ul></div></div>"
    )


def write_drills(app, exception):
    """Write the scripts that hold the drills, once all pages are made."""
    if exception or app.builder.format != "html":
        return
    course = loaded(Path(app.srcdir))
    folder = Path(app.outdir) / "_static" / DRILLS_SITE_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.js"):
        old.unlink()
    for stem, drills in drills_by_chapter(course).items():
        (folder / f"{stem}.js").write_text(script_of(course, stem, drills), encoding="utf-8")


def script_of(course: Course, stem: str, drills: Sequence[Drill]) -> str:
    """Return the script that hands over a chapter's drills."""
    data = [packed(drill, links(course, drill)) for drill in drills]
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"attncourseDrills({json.dumps(stem)},{text});\n"


def add_drill_files(app, page, template, context, doctree):
    """Load the style and the scripts on the pages that have drills."""
    body = context.get("body", "")
    if 'class="attncourse-drill' in body:
        app.add_css_file("practice.css")
        app.add_js_file("practice.js")
        if "data-chapters" in body:
            app.add_js_file("practice_page.js")


def setup(app):
    """Register the drills with Sphinx."""
    app.add_node(DrillsNode)
    app.add_node(PracticeNode)
    app.add_transform(AddDrills)
    app.add_directive("practice", Practice)
    app.connect("env-get-outdated", pages_with_other_drills)
    app.connect("doctree-resolved", put_drills)
    app.connect("html-page-context", add_drill_files)
    app.connect("build-finished", write_drills)
