"""The book's search: its sections and the entries of its glossary, in pieces that a query loads.

Sphinx's own search loads every page that it finds, for a line of each, and knows pages only. Here a
query loads the titles, the words that begin as its words do, and the texts that are shown: scripts
in ``_static/search``, since a page opened from a folder may load nothing else. ``search.js`` in
``book/assets`` ranks and shows them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

PAGE, CHAPTER, SECTION, TERM = range(4)  # what a place is
TITLE, MOST = 8, 5  # what a word in a title counts, and in a text at most
CHARACTERS_PER_SCRIPT = 6_000  # characters of texts that are loaded together
WORD_PATTERN = re.compile(r"[^\W_]+")
TEX_SIGNS = {r"\times": "×", r"\top": "ᵀ", r"\sqrt": "√", r"\cdot": "·", r"\le": "≤", r"\ge": "≥",
         r"\infty": "∞", r"\sum": "Σ", r"\in": "∈", r"\dots": "…", r"\approx": "≈"}  # fmt: skip


@dataclass
class SearchPlace:
    """A section to which a result leads: its own text, without the sections in it."""

    page: str
    anchor: str
    title: str
    kind: int
    text: str

    def weights(self) -> dict[str, int]:
        """Return the weight of each word here."""
        counts = {word: min(MOST, n) for word, n in Counter(words(self.text)).items()}
        for word in words(self.title):
            counts[word] = counts.get(word, 0) + TITLE
        return counts


def folded_word(word: str) -> str:
    """Return a word without its plural, as ``search.js`` folds it."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def words(text: str) -> list[str]:
    """Return the words of a text as the search folds them."""
    return [folded_word(word) for word in WORD_PATTERN.findall(text.lower())]


def formula_text(tex: str) -> str:
    """Return a formula in a line of plain text: ``Q Kᵀ``."""
    tex = re.sub(r"\\[a-zA-Z]+", lambda match: TEX_SIGNS.get(match[0], ""), tex)
    return " ".join(re.sub(r"[{}\\&]", "", tex).split())


def paragraph_text(node: nodes.Node) -> str:
    """Return the text of a paragraph, title or caption, with formulas as plain text has them."""
    parts = []
    for text in node.findall(nodes.Text):
        formula = isinstance(text.parent, nodes.math)
        parts.append(formula_text(text.astext()) if formula else text.astext())
    said = " ".join("".join(parts).split())
    return f"{said} …" if said[-1:].isalpha() else said  # a formula that stands alone comes next


def searchable_places(
    doctree: nodes.document, page: str, numbers: dict, chapter: bool
) -> Iterator[SearchPlace]:
    """Yield the sections of a page, and a glossary's entries."""
    for section in doctree.findall(nodes.section):
        title = section.next_node(nodes.title) or section
        top = section.parent is doctree
        paragraphs = [
            paragraph_text(element)
            for element in section.findall(lambda n: isinstance(n, nodes.paragraph | nodes.caption))
            if around(element, nodes.section) is section
            and around(element, addnodes.glossary) is None
        ]
        anchor = "" if top else section["ids"][0]
        number = numbers.get(f"#{anchor}" if anchor else "", numbers.get("", ()) if top else ())
        name = f"{'.'.join(map(str, number))} {paragraph_text(title)}".strip(" …")
        kind = PAGE if not chapter else CHAPTER if top else SECTION
        yield SearchPlace(page, anchor, name, kind, " ".join(paragraphs))
    for glossary in doctree.findall(addnodes.glossary):
        for entry in glossary.findall(nodes.definition_list_item):
            text = " ".join(map(paragraph_text, entry.findall(nodes.paragraph)))
            for term in entry.findall(nodes.term):
                yield SearchPlace(
                    page, term["ids"][0], paragraph_text(term).strip(" …"), TERM, text
                )


def around(node: nodes.Node, kind: type) -> nodes.Node | None:
    """Return the nearest node of a kind around another."""
    while node is not None and not isinstance(node, kind):
        node = node.parent
    return node


def write_search_scripts(app, exception):
    """Write the scripts, once all pages are made."""
    if exception or app.builder.format != "html":
        return
    from course import loaded

    course, env = loaded(Path(app.srcdir)), app.env
    index_places = [
        place
        for page in course.pages
        for place in searchable_places(
            env.get_doctree(page),
            page,
            env.toc_secnumbers.get(page, {}),
            bool(course.chapter(page)),
        )
    ]
    folder = Path(app.outdir) / "_static" / "search"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.js"):
        old.unlink()
    blocks, block, size = [], 0, 0
    for place in index_places:
        blocks.append(block)
        size += len(place.text)
        if size > CHARACTERS_PER_SCRIPT:
            block, size = block + 1, 0
    titles = [
        [p.page, p.anchor, p.title, p.kind, b] for p, b in zip(index_places, blocks, strict=True)
    ]
    for block in set(blocks):
        texts = {i: p.text for i, p in enumerate(index_places) if blocks[i] == block}
        write_data_script(folder / f"texts-{block}.js", f"texts-{block}", texts)
    index: dict[str, dict[str, list[int]]] = {}
    for i, place in enumerate(index_places):
        for word, weight in sorted(place.weights().items()):
            index.setdefault(shelf(word), {}).setdefault(word, []).extend((i, weight))
    for letter, known in index.items():
        write_data_script(folder / f"words-{letter}.js", f"words-{letter}", known)
    write_data_script(folder / "places.js", "places", {"places": titles, "shelves": sorted(index)})


def shelf(word: str) -> str:
    """Return which script has a word: that of its first letter, where that is a plain one."""
    return word[0] if re.match("[a-z0-9]", word) else "other"


def write_data_script(path: Path, name: str, data) -> None:
    """Write a script that hands over its data under its name."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"attncourseSearch({json.dumps(name)},{text});\n", encoding="utf-8")


def make_no_other_index(app):
    """Leave out Sphinx's own index: no page asks it, and it takes a tenth of the layout."""
    if app.builder.format == "html":
        for step in ("load_indexer", "index_page", "dump_search_index"):
            vars(app.builder)[step] = lambda *pages: None


def setup(app):
    """Register the search's index with Sphinx."""
    app.connect("builder-inited", make_no_other_index)
    app.connect("build-finished", write_search_scripts)
