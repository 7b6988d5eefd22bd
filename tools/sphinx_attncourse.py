"""What the book's pages need beyond Jupyter Book: badges, round citations, the field guide."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from docutils import nodes
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

sys.path.insert(0, str(Path(__file__).resolve().parent))
import field_guide
from course import load
from vendor import KEPT, static


def round_brackets() -> BracketStyle:
    return BracketStyle(left="(", right=")", sep="; ", sep2="; ", last_sep="; ")


@dataclass
class AuthorYearRound(AuthorYearReferenceStyle):
    """(Vaswani et al., 2017) and Vaswani et al. (2017)."""

    bracket_textual: BracketStyle = field(default_factory=round_brackets)
    bracket_parenthetical: BracketStyle = field(default_factory=round_brackets)


def add_badges(app, doctree, page):
    """Under a chapter's title: open this page, and its exercises, in Colab."""
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
    line = nodes.raw("", f'<p class="attn-badges">{badges}</p>', format="html")
    title.parent.insert(title.parent.index(title) + 1, line)


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
    field_guide.setup(app)
    app.connect("config-inited", add_libraries)
    app.connect("doctree-resolved", add_badges)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("html-page-context", name_better)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
