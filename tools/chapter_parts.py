"""Parts of every chapter's page beside its text: the strip, its length, its notebooks."""

from __future__ import annotations

import shutil
from html import escape
from pathlib import Path

from course import Chapter, Course, loaded
from docutils import nodes
from navigation import line
from strip import strip

from attncourse import MILESTONES, milestones

# In the built book, so that a reader without a network has them too.
PAGES, TASKS = "notebooks", "notebooks/exercises"
BADGES = {"page": "Open this chapter in Colab", "exercises": "Open its exercises in Colab"}


def add_parts(app, doctree, page):
    """Put strip, figures and badges under a chapter's title, and its task under *Exercises*."""
    course = loaded(Path(app.srcdir))
    chapter = course.chapter(page)
    title = next(iter(doctree.findall(nodes.title)), None)
    if chapter is None or title is None or app.builder.format != "html":
        return
    above = "../" * page.count("/")
    parts = strip(course, chapter, lambda target: app.builder.get_relative_uri(page, target))
    figures = f'<p class="attn-line">{line(course.root, chapter)}</p>'
    badges = " ".join(badge(course, chapter, kind, above) for kind in BADGES)
    put_below(title, f'{parts}{figures}<p class="attn-badges">{badges}</p>')
    for section in list(doctree.findall(nodes.section)):
        if f"{chapter.stem}-exercises" in section["names"]:
            put_below(section[0], task(course, chapter, above))


def put_below(title: nodes.Node, html: str) -> None:
    """Insert HTML below a title."""
    title.parent.insert(title.parent.index(title) + 1, nodes.raw("", html, format="html"))


def badge(course: Course, chapter: Chapter, kind: str, above: str) -> str:
    """Return a picture that opens a chapter's page, or its exercises, in Colab."""
    path = f"{chapter.page}.ipynb" if kind == "page" else assignment(chapter)
    return (
        f'<a href="{escape(course.colab(path))}"><img src="{above}_static/badge-{kind}.svg" '
        f'alt="{BADGES[kind]}" height="20"></a>'
    )


def assignment(chapter: Chapter) -> str:
    """Return the path of the notebook that students are given."""
    return f"exercises/{chapter.folder}/{chapter.folder}.ipynb"


def task(course: Course, chapter: Chapter, above: str) -> str:
    """Return the exercises' line: how many they are, where they open, and the notebook itself."""
    name = f"{chapter.folder}.ipynb"
    has_assignment = (course.root / assignment(chapter)).exists()
    file = f' · <a href="{above}{TASKS}/{name}" download>{name}</a>' if has_assignment else ""
    return (
        f'<p class="attn-badges attn-task">{badge(course, chapter, "exercises", above)} '
        f"{line(course.root, chapter).tasks}{file}</p>{milestone_html(chapter)}"
    )


def milestone_html(chapter: Chapter) -> str:
    """Return a paragraph on the model that the answers make, after some chapters; else ""."""
    if chapter.stem not in MILESTONES:
        return ""
    chapter_milestone = milestones.find_milestone(MILESTONES[chapter.stem])
    return (
        "<p>Your answers to this chapter and those before it make a model. In the folder of your "
        f"notebooks, <code>attncourse assemble *.ipynb</code> and <code>attncourse milestone "
        f"{chapter_milestone.name}</code> train it: {escape(chapter_milestone.what)}.</p>"
    )


def offer_colab_notebook(app, page, template, context, doctree):
    """Have *Download .ipynb* offer the notebook for Colab, not MyST; other pages have none."""
    course = loaded(Path(app.srcdir))
    chapter = course.chapter(page)
    offered = chapter is not None and (course.root / f"{page}.ipynb").exists()
    folder = chapter.folder if chapter else ""
    for group in context.get("header_buttons", []):
        if group.get("label") == "download-buttons":
            group["buttons"] = [
                button | {"url": f"{context['pathto'](PAGES, 1)}/{folder}.ipynb"}
                if button["label"] == "download-notebook-button"
                else button
                for button in group["buttons"]
                if offered or button["label"] != "download-notebook-button"
            ]


def copy_notebooks(app, exception):
    """Copy the chapters' notebooks and assignments to where the pages offer them."""
    if exception or app.builder.format != "html":
        return
    course, built = loaded(Path(app.srcdir)), Path(app.outdir)
    for chapter in course.chapters:
        for source, folder in ((f"{chapter.page}.ipynb", PAGES), (assignment(chapter), TASKS)):
            if (course.root / source).exists():
                (built / folder).mkdir(parents=True, exist_ok=True)
                shutil.copy(course.root / source, built / folder)
