"""Prints the built book as one PDF: `_build/book.pdf`, with title, contents and an outline.

    python tools/pdf.py [PAGE …]

Chromium makes one document of the pages' articles (tools/web/print.js) and prints it. Then it is
known which page each heading is on, and title and contents are printed again, with the numbers.
Quizzes are answered at a chapter's end; folded code is left out; what moves has a static figure.
"""

from __future__ import annotations

import argparse
import sys
import time
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

import chromium
from course import ROOT, Course, load

from attncourse import __version__

WEB_FOLDER = Path(__file__).resolve().parent / "web"
PDF_HEAD = """<!doctype html><html lang="en" data-theme="light" data-mode="light"><head>
<meta charset="utf-8"><title>{title}</title>{head}<style>{style}</style></head>
<body class="attn-print"><main class="bd-content"><div class="bd-article">{front}{body}</div></main>
</body></html>"""
HEADINGS_SCRIPT = "all => all.map(heading => heading.innerText.replace(/\\s+/g, ' ').trim())"
PDF_TIMEOUT_MS = 300_000  # milliseconds, for a busy machine
TITLE_PAGE = """<section class="attn-title"><p>{title}</p><p>{author}</p><p>Version {version}</p>
<p>Text and figures: CC BY 4.0. Code: MIT.<br>{url}</p></section>
<nav class="attn-contents"><h1 id="contents">Contents</h1><div></div></nav>"""


class PrintError(Exception):
    """The book cannot be printed. The message says why and what to do."""


def whole_book(course: Course, html: Path, browser, pages: tuple[str, ...] = ()) -> str:
    """Return all pages, or those named, as one document that lies in the built book's folder."""
    texts = []
    for name in pages or course.pages:
        path = html / f"{name}.html"
        if not path.exists():
            raise PrintError(f"{path} is missing: build the book first (make book)")
        texts.append({"name": f"{name}.html", "text": path.read_text(encoding="utf-8")})
    workshop = browser.new_page()
    parts = workshop.evaluate((WEB_FOLDER / "print.js").read_text(encoding="utf-8"), texts)
    workshop.close()
    facts = {"title": course.title, "author": course.author, "url": course.url}
    facts = {name: escape(fact) for name, fact in facts.items()} | {"version": __version__}
    style = (WEB_FOLDER / "print.css").read_text(encoding="utf-8")
    return PDF_HEAD.format(
        title=facts["title"], style=style, front=TITLE_PAGE.format(**facts), **parts
    )


def add_contents(target: Path, front: Path, headings: list[str]) -> int:
    """Put the contents with their numbers in, and the outline's titles; how many pages there are.

    Chromium's outline joins the words at a line's end, and doubles what moved to a next page.
    """
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import DictionaryObject, NameObject, TextStringObject

    writer = PdfWriter(target, incremental=True)  # writes only what changes: seconds, not minutes
    outlines = writer._root_object["/Outlines"].get_object()
    assert isinstance(outlines, DictionaryObject), "an outline is a dictionary"
    items = outline_items(outlines)
    if len(items) != len(headings):
        raise PrintError(
            f"the PDF has {len(items)} entries in its outline, the book {len(headings)}"
        )
    for item, heading in zip(items, headings, strict=True):
        item[NameObject("/Title")] = TextStringObject(heading)
    for old, new in zip(writer.pages, PdfReader(front).pages, strict=False):
        for part in ("/Contents", "/Resources"):  # links and tags stay
            old[NameObject(part)] = new.raw_get(part).clone(writer)
    writer.write(target)
    return len(writer.pages)


def outline_items(above: dict) -> list[dict]:
    """Return all entries below one of a PDF's outline, in order."""
    items, item = [], above.get("/First")
    while item is not None:
        entry = item.get_object()
        items += [entry, *outline_items(entry)]
        item = entry.get("/Next")
    return items


def numbers(target: Path) -> dict[str, int]:
    """Return the page, counted from 1, of every place in a PDF that a link leads to."""
    from pypdf import PdfReader

    printed = PdfReader(target)
    references = [page.indirect_reference for page in printed.pages]
    at = {place.idnum: number for place, number in zip(references, count(1)) if place}
    places: Any = printed.root_object["/Dests"].get_object()
    return {name[1:]: at[places[name].get_object()[0].idnum] for name in places}


def print_book(course: Course, target: Path, pages: tuple[str, ...] = ()) -> int:
    """Print the book, or those of its pages that are named; how many pages of paper it takes."""
    if chromium.BROWSER is None:
        raise PrintError(
            "printing needs Chromium, which is not installed: on Debian, apt install chromium"
        )
    html = course.root / "_build" / "html"
    document = html / "print.html"
    with chromium.launched() as browser:
        try:
            document.write_text(whole_book(course, html, browser, pages), encoding="utf-8")
            page = browser.new_page()
            page.goto(document.as_uri(), wait_until="load", timeout=PDF_TIMEOUT_MS)
        finally:
            document.unlink(missing_ok=True)
        headings = page.eval_on_selector_all("h1, h2, h3, h4, h5, h6", HEADINGS_SCRIPT)
        list_contents = (WEB_FOLDER / "contents.js").read_text(encoding="utf-8")
        options = dict(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
        page.evaluate(list_contents, {})
        page.pdf(path=target, **options)
        page.evaluate(list_contents, numbers(target))
        page.evaluate("() => document.querySelectorAll('.attn-page').forEach(one => one.remove())")
        front = target.with_suffix(".front.pdf")
        page.pdf(path=front, **options)
    sheets = add_contents(target, front, headings)
    front.unlink()
    return sheets


def main() -> int:
    """Print the book to a file; return 1 where that fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="only these, as _toc.yml names them: book/05_kqv")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help="another file than _build/book.pdf")
    parser.add_argument("--most", type=int, help="fail where it takes more pages of paper")
    arguments = parser.parse_args()
    course, started = load(arguments.root.resolve()), time.perf_counter()
    target = arguments.output or course.root / "_build" / "book.pdf"
    try:
        sheets = print_book(course, target, tuple(arguments.pages))
    except PrintError as problem:
        print(problem, file=sys.stderr)
        return 1
    megabytes, seconds = target.stat().st_size / 1e6, time.perf_counter() - started
    print(f"{target} written ({sheets} pages, {megabytes:.1f} MB, {seconds:.0f} s)")
    if arguments.most and sheets > arguments.most:
        print(f"it should have at most {arguments.most} pages", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
