"""The heads of the book's pages for search engines, and a page for addresses that have none.

A head has a title, a description and an address.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

from course import loaded
from docutils import nodes
from sphinx.util import logging

from attncourse import __version__

LOG = logging.getLogger(__name__)
CARD = "card.png"  # the picture beside a link that is shared, in book/assets
# Characters of a description, which search engines and messengers cut off
MAX_DESCRIPTION_CHARACTERS = 200
# GitHub answers with this page at any depth, where its relative addresses would lead nowhere.
FROM_ROOT = """<script>
if (location.protocol !== "file:")
  document.write(`<base href="${location.pathname.startsWith(SITE) ? SITE : "/"}">`);
</script>"""


def name_the_place(app, config):
    """Tell Sphinx the book's address, for each page's canonical address, and its name."""
    course = loaded(Path(app.srcdir))
    config.html_baseurl = config.html_baseurl or course.site
    options = config.html_theme_options
    options.setdefault("logo", {})["text"] = course.title
    options["extra_footer"] = f"{options.get('extra_footer', '')} Version {__version__}.".strip()
    config.html_additional_pages = config.html_additional_pages | {"404": "404.html"}


def describe(app, page, template, context, doctree):
    """Give a page its title, and what stands beside a link to it."""
    course = loaded(Path(app.srcdir))
    if page == app.config.root_doc:
        context["docstitle"] = ""  # else the book's name would stand there twice
    if page == "404":
        site = re.sub(r"https?://[^/]+", "", course.site) or "/"
        script = FROM_ROOT.replace("SITE", json.dumps(site))
        context["metatags"] = context.get("metatags", "") + script
    if doctree is None:
        return
    title = re.sub(r"<[^>]+>", "", context.get("title", ""))
    facts = {
        "og:title": title,
        "og:type": "website",
        "og:site_name": escape(course.title),
        "og:description": escape(description(doctree) or f"{title} of “{course.title}”."),
    }
    if course.site:
        facts["og:url"] = f"{course.site}{page}.html"
        facts["og:image"] = f"{course.site}_static/{CARD}"
        facts["og:image:alt"] = "The name of the book above a map of who attends to whom."
    tags = [f'<meta name="description" content="{facts["og:description"]}" />']
    tags += [f'<meta property="{name}" content="{text}" />' for name, text in facts.items() if text]
    context["metatags"] = context.get("metatags", "") + "\n" + "\n".join(tags)


def description(doctree: nodes.document) -> str:
    """Return the sentences that a page begins with, as many as are shown; "" for a list."""
    paragraphs = [
        p for p in doctree.findall(nodes.paragraph) if isinstance(p.parent, nodes.section)
    ]
    text = re.sub(r"\s+", " ", paragraphs[0].astext()).strip() if paragraphs else ""
    sentences = re.split(r"(?<=[.?!]) ", text)
    sentence = sentences.pop(0)
    while sentences and len(sentence) + len(sentences[0]) < MAX_DESCRIPTION_CHARACTERS:
        sentence += " " + sentences.pop(0)
    return (
        sentence
        if len(sentence) <= MAX_DESCRIPTION_CHARACTERS
        else sentence[:MAX_DESCRIPTION_CHARACTERS].rpartition(" ")[0] + " …"
    )


def write_sitemap(app, exception):
    """Write `sitemap.xml` where the book's address is known: a list needs it."""
    if exception or app.builder.format != "html":
        return
    course, file = loaded(Path(app.srcdir)), Path(app.outdir) / "sitemap.xml"
    if not course.site:
        file.unlink(missing_ok=True)
        LOG.info("no sitemap: name the book's address as html.baseurl in _config.yml")
        return
    pages = [f"{course.site}{page}.html" for page in course.pages]
    lines = "".join(f"  <url><loc>{escape(page)}</loc></url>\n" for page in pages)
    file.write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{lines}</urlset>\n',
        encoding="utf-8",
    )
