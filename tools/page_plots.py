"""Plots of matplotlib as part of the page, so that they follow light and dark."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from inline_svg import SvgError, inline
from sphinx.util import logging


def put_into_the_page(app, doctree, page):
    """Put each SVG that the page's code made in place of its image; captions stay as they are."""
    if app.builder.format != "html":
        return
    stem = page.rpartition("/")[2]
    short = stem[: len(stem) - len(stem.lstrip("0123456789"))] or stem
    plots = [i for i in doctree.findall(nodes.image) if "jupyter_execute/" in i["uri"]]
    for number, image in enumerate(i for i in plots if i["uri"].endswith(".svg")):
        svg = Path(app.srcdir, image["uri"]).read_text(encoding="utf-8")
        try:
            html = inline(svg, f"p{short}-{number}", image.get("alt", ""))
        except SvgError as problem:
            logging.getLogger(__name__).warning("%s", problem, location=image.parent)
        else:
            image.replace_self(nodes.raw("", html, format="html"))


def setup(app):
    """Register figures inside the page with Sphinx."""
    app.connect("doctree-resolved", put_into_the_page)
