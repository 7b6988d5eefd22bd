"""Makes a deck of slides from each chapter's built page: `_build/html/slides/05_kqv.html`.

    python tools/slides.py

Nothing is written twice: a slide's words, equations and figures are the page's own. A deck has the
question, what is drawn and measured before the first section, and for each section its heading,
its equations, its takeaway and its figures, the moving ones at work. What the page's words set
in a figure is a link on the slide, to the page with the figure set so. A deck lies as deep in the
built book as the page does: the page's addresses hold; it is shown without a network, and prints.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from course import ROOT, Chapter, Course, load

EQUATIONS = 2  # at most, on a slide
FIGURES = ".cell_output > figure, .attncourse-moving, .attncourse-view"
WITHOUT_SLIDES = {"check yourself", "summary", "find the mistake", "exercises", "deeper"}
WITHOUT_SLIDES |= {"further reading"}
LOOK_FILES = ("slides.css", "slides.js")
DECK = """<!doctype html>
<html lang="en" data-theme="light">
<head>
{head}
<title>{title} · slides</title>
<link rel="stylesheet" href="slides.css">
<script defer src="slides.js"></script>
</head>
<body class="attn-deck">
<main class="bd-article">
{slides}
</main>
<p class="attn-where" aria-hidden="true"></p>
</body>
</html>
"""


class SlidesError(Exception):
    """A deck cannot be made. The message says why and what to do."""


@dataclass
class Slide:
    """A heading, what is said beside the figure, and the figure."""

    heading: str
    words: list[Tag] = field(default_factory=list)
    figure: Tag | None = None
    kind: str = "part"

    def html(self) -> str:
        """Return the slide as HTML."""
        level = "h1" if self.kind == "title" else "h2"
        words = "".join(map(str, self.words))
        beside = f'<div class="attn-words">{words}</div>' if words else ""
        shown = f'<div class="attn-shown">{self.figure}</div>' if self.figure else ""
        return (
            f'<section class="attn-slide attn-{self.kind}"><{level}>{self.heading}</{level}>'
            f'<div class="attn-sides">{beside}{shown}</div></section>'
        )


def deck(page: str, chapter: Chapter) -> str:
    """Return the deck of a chapter, from the HTML of its page."""
    soup = BeautifulSoup(page, "html.parser")
    chapter_page = soup.select_one("article.bd-article > section")
    if chapter_page is None or soup.head is None:
        raise ValueError(f"the page of {chapter.folder} has no article: build the book first")
    for gone in chapter_page.select("a.headerlink, button.copybtn"):
        gone.decompose()
    lead_back(chapter_page, chapter)
    glyphs = soup.select("svg.attn-glyphs")  # of all formulas
    slides = [*opening(chapter_page)]
    for section in chapter_page.select(":scope > section"):
        if heading_without_number(first(section, "h2")).casefold() not in WITHOUT_SLIDES:
            slides += of_section(section)
    slides += closing_slides(chapter_page, chapter)
    return DECK.format(
        head="\n".join(map(str, looks(soup.head))),
        title=first(chapter_page, "h1").get_text(),
        slides="\n".join([*(slide.html() for slide in slides), *map(str, glyphs)]),
    )


def looks(head: Tag) -> list[Tag]:
    """Return what a page's head loads for its looks, and for light and dark."""
    needed_words = ("localstorage", "dataset.mode")
    scripts = [
        script
        for script in head.select("script")
        if any(word in f"{script.get('src')} {script.string}".lower() for word in needed_words)
    ]
    return [*head.select("meta[charset], meta[name=viewport], link[rel=stylesheet]"), *scripts]


def lead_back(page: Tag, chapter: Chapter) -> None:
    """Have a page's links lead to the book from where the deck is."""
    for link in page.select("a[href]"):
        href = str(link["href"])
        if href.startswith("#"):
            href = f"{chapter.folder}.html{href}"
        if not re.match(r"[a-z]+:|\.\./", href):
            link["href"] = f"../book/{href}"
    for words in page.select("button.attn-do"):
        words["data-to"] = f"../book/{chapter.folder}.html#set={words['data-do']}"


def heading_without_number(heading: Tag) -> str:
    """Return a heading without its number."""
    return re.sub(r"^[\d.]+\s*", "", heading.get_text()).strip()


def inside(heading: Tag) -> str:
    """Return what stands in a heading, as HTML."""
    return heading.decode_contents().strip()


def opening(page: Tag) -> Iterator[Slide]:
    """Yield the title with the question, the figures before the first section, the guess."""
    lead = page.select_one(":scope > p:not([class])")
    question = lead.find_all("strong")[-1:] if lead else []
    yield Slide(inside(first(page, "h1")), words=[paragraph(q) for q in question], kind="title")
    for part in page.find_all(recursive=False):
        if part.name == "section":
            return
        for figure in figures(part):
            heading = first_sentence(figure) or inside(first(page, "h1"))
            yield Slide(heading, settings(page, figure), figure=figure)
        if "tip" in (part.get("class") or ()):
            paragraphs = part.select(":scope > p:not(.admonition-title)")
            yield Slide("Guess first", words=[copy(p) for p in paragraphs], kind="guess")


def of_section(section: Tag) -> Iterator[Slide]:
    """Yield a section's equations and takeaway beside its first figure, then the others."""
    heading, drawn = inside(first(section, "h2")), figures(section)
    words = [copy(e) for e in section.select(":scope > div.math[id]")[:EQUATIONS]]
    words += [copy(p) for p in section.select(":scope > p") if is_takeaway(p)]
    words += settings(section, drawn[0] if drawn else None)
    yield Slide(heading, words, drawn[0] if drawn else None)
    for figure in drawn[1:]:
        yield Slide(heading, settings(section, figure, others=False), figure=figure)


def settings(part: Tag, figure: Tag | None, others: bool = True) -> list[Tag]:
    """Return links to what words in the part set in the figure, and in other pages' figures."""
    links = {}
    for words in part.select("button.attn-do"):
        address = str(words["data-do"])
        if figure is not None and address.partition("&")[0] == figure_state_name(figure):
            links[str(words["data-to"])] = words.get_text()
    if others and part.name == "section" and part.find_parent("section") is not None:
        links |= {str(a["href"]): a.get_text() for a in part.select("a[href*='#set=']")}
    if not links:
        return []
    links_html = " · ".join(
        f'<a href="{escape(to)}">{escape(text)}</a>' for to, text in links.items()
    )
    listed = BeautifulSoup(f'<p class="attn-settings">In the book: {links_html}</p>', "html.parser")
    return [listed.p] if listed.p else []


def figure_state_name(figure: Tag) -> str:
    """Return the name by which states.js knows a figure: its own, or its title's words."""
    name_of_its_own = figure.get("data-figure")
    return str(
        name_of_its_own or "-".join(re.findall(r"[^\W_]+", str(figure.get("aria-label")).lower()))
    )


def closing_slides(page: Tag, chapter: Chapter) -> Iterator[Slide]:
    """Yield the summary, and what there is to do."""
    for section in page.select(":scope > section"):
        paragraphs = section.select(":scope > p")
        if heading_without_number(first(section, "h2")).casefold() == "summary" and paragraphs:
            yield Slide("Summary", [copy(p) for p in paragraphs])
        if heading_without_number(first(section, "h2")).casefold() == "exercises" and paragraphs:
            todo = paragraphs[0].get_text().partition("·")[0].strip()
            work = BeautifulSoup(
                f"<p>{todo}</p><p><code>{chapter.folder}.ipynb</code></p>", "html.parser"
            )
            yield Slide("Exercises", [*work.find_all(recursive=False)])


def figures(part: Tag) -> list[Tag]:
    """Return the page's figures in order; none inside another, and nothing folded."""
    elements = part.select(FIGURES)
    outer = [f for f in elements if not any(f in enclosing.descendants for enclosing in elements)]
    return [copy(f) for f in outer if f.find_parent("details") is None]


def is_takeaway(paragraph: Tag) -> bool:
    """Return a section's one sentence in bold."""
    bold = paragraph.find("strong", recursive=False)
    return bold is not None and len(bold.get_text()) > 0.7 * len(paragraph.get_text())


def first(within: Tag, name: str) -> Tag:
    """Return the first element of a name. Raises ``ValueError`` where there is none."""
    element = within.find(name)
    if element is None:
        raise ValueError(f"the page has no <{name}> where the slides expect one")
    return element


def paragraph(bold: Tag) -> Tag:
    """Return a paragraph that holds a copy of a bold text."""
    around = Tag(name="p")
    around.append(copy(bold))
    return around


def first_sentence(figure: Tag) -> str:
    """Return the first sentence of a figure's caption, where that is short."""
    caption = figure.select_one("figcaption .caption-text")
    sentence = re.match(r"[^.:]{10,80}(?=[.:])", caption.get_text().strip()) if caption else None
    return sentence[0] if sentence else ""


def make_decks(course: Course) -> list[Path]:
    """Write every chapter's deck, and a page that lists them."""
    html = course.root / "_build" / "html"
    target = html / "slides"
    target.mkdir(parents=True, exist_ok=True)
    made = []
    for chapter in course.chapters:
        page = html / f"{chapter.page}.html"
        if not page.exists():
            raise SlidesError(f"{page} is missing: build the book first (make book)")
        path = target / f"{chapter.folder}.html"
        path.write_text(deck(page.read_text(encoding="utf-8"), chapter), encoding="utf-8")
        made.append(path)
    for name in LOOK_FILES:
        shutil.copy(Path(__file__).with_name(name), target)
    return made


def main() -> int:
    """Write the slides; return 1 where a page cannot be made into some."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    course = load(parser.parse_args().root.resolve())
    try:
        made = make_decks(course)
    except SlidesError as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"{len(made)} decks in {made[0].parent}; begin with {made[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
