"""Prints the built book as one PDF: `_build/book.pdf`, with an outline and page numbers.

    python tools/pdf.py

The pages' articles become one document, in reading order, whose links lead inside it, and Chromium
prints that. Answers stay folded; what only moves on a screen has a static figure beside it.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import time
from pathlib import Path
from posixpath import normpath
from urllib.parse import urldefrag, urlsplit

from bs4 import BeautifulSoup, Tag
from course import ROOT, Course, load

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SCREEN_ONLY = (
    "a.headerlink, .attn-badges, .attn-screen, button, script, .toctree-wrapper, [aria-live]"
)
HEAD = """<!doctype html><html lang="en" data-theme="light" data-mode="light"><head>
<meta charset="utf-8"><title>{title}</title>{head}</head>
<body class="attn-print"><main class="bd-content"><div class="bd-article">{body}</div></main>
</body></html>"""
FOOTER = (
    '<div style="width:100%;font-size:8px;color:#555;text-align:center">'
    '<span class="pageNumber"></span></div>'
)
HEADINGS = "all => all.map(heading => heading.innerText.replace(/\\s+/g, ' ').trim())"


class PrintError(Exception):
    """The book cannot be printed. The message says why and what to do."""


def find_browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise PrintError(
            "printing needs Chromium, which is not installed: on Debian, apt install chromium"
        )
    return found


def whole_book(course: Course, html: Path) -> str:
    """All pages as one document that lies in the built book's folder."""
    places = {f"{page}.html": f"page-{number}" for number, page in enumerate(course.pages)}
    bodies, head = [], {}
    for name in places:
        if not (html / name).exists():
            raise PrintError(f"{html / name} is missing: build the book first (make book)")
        soup = BeautifulSoup((html / name).read_text(encoding="utf-8"), "html.parser")
        head |= dict.fromkeys(styles_and_formulas(soup, name))
        bodies.append(str(section(soup, name, places)))
    return HEAD.format(title=course.title, head="".join(head), body="".join(bodies))


def styles_and_formulas(soup: BeautifulSoup, name: str) -> list[str]:
    """What a page's head loads for its looks, and for formulas."""
    formulas = [
        s for s in soup.select("script") if "mathjax" in f"{s.get('src')}{s.string}".lower()
    ]
    wanted = [*soup.select('link[rel="stylesheet"], style'), *formulas]
    for element in wanted:
        for attribute in {"href", "src"} & element.attrs.keys():
            element[attribute] = within(element[attribute], name)
    return [str(element) for element in wanted]


def section(soup: BeautifulSoup, name: str, places: dict[str, str]) -> Tag:
    """A page's article whose names are its own and whose links lead inside the document."""
    article, place = soup.select_one("article.bd-article"), places[name]
    for element in article.select(SCREEN_ONLY):
        element.decompose()
    for entry in article.select(".attn-bug, .attn-symptom"):  # they have no answer to give away
        entry.name, entry.summary.name = "div", "p"
    for element in article.select("[id]:not(.attn-plot *)"):  # a plot's are its own in the book
        element["id"] = f"{place}--{element['id']}"
    for link in article.select("a[href]"):
        address, fragment = urldefrag(link["href"])
        page = within(address, name) if address else name
        if page in places:
            link["href"] = f"#{places[page]}--{fragment}" if fragment else f"#{places[page]}"
    for image in article.select("img[src]"):
        image["src"] = within(image["src"], name)
    for attribute in ("for", "aria-labelledby", "aria-describedby"):
        for element in article.select(f"[{attribute}]"):
            element[attribute] = f"{place}--{element[attribute]}"
    article["id"] = place
    article["class"] = "attn-page"
    return article


def within(address: str, name: str) -> str:
    """A page's relative address, from the built book's folder; others as they are."""
    if urlsplit(address).scheme:
        return address
    folder = name.rpartition("/")[0]
    return normpath(f"{folder}/{address}") if folder else address


def mend_outline(target: Path, headings: list[str]) -> None:
    """Chromium's outline joins the words at a line's end, and doubles what moved to a next page."""
    from pypdf import PdfWriter
    from pypdf.generic import NameObject, TextStringObject

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it counts Chromium's objects, and says so
    writer = PdfWriter(clone_from=target)
    items = outline_items(writer._root_object["/Outlines"])
    if len(items) != len(headings):
        raise PrintError(
            f"the PDF has {len(items)} entries in its outline, the book {len(headings)}"
        )
    for item, heading in zip(items, headings, strict=True):
        item[NameObject("/Title")] = TextStringObject(heading)
    writer.write(target)


def outline_items(above: dict) -> list[dict]:
    """All entries below one of a PDF's outline, in order."""
    found, item = [], above.get("/First")
    while item is not None:
        entry = item.get_object()
        found += [entry, *outline_items(entry)]
        item = entry.get("/Next")
    return found


def print_book(course: Course, target: Path) -> None:
    from playwright.sync_api import sync_playwright

    html = course.root / "_build" / "html"
    page_file = html / "print.html"
    page_file.write_text(whole_book(course, html), encoding="utf-8")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=find_browser(), args=["--no-sandbox"]
            )
            page = browser.new_page()
            page.goto(page_file.as_uri(), wait_until="load")
            page.evaluate("() => MathJax.startup.promise")
            headings = page.eval_on_selector_all("h1, h2, h3, h4, h5, h6", HEADINGS)
            page.pdf(
                path=target,
                format="A4",
                margin=dict.fromkeys(("top", "bottom", "left", "right"), "18mm"),
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=FOOTER,
                print_background=True,
                outline=True,
                tagged=True,
            )
            browser.close()
    finally:
        page_file.unlink()
    mend_outline(target, headings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    course, started = load(parser.parse_args().root.resolve()), time.perf_counter()
    target = course.root / "_build" / "book.pdf"
    try:
        print_book(course, target)
    except PrintError as problem:
        print(problem, file=sys.stderr)
        return 1
    megabytes = target.stat().st_size / 1e6
    print(f"{target} written ({megabytes:.1f} MB, {time.perf_counter() - started:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
