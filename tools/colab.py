"""The book's pages as plain notebooks: every directive and role resolved into Markdown.

A page is read into blocks (`parse`), all pages together give the numbers and titles that
references need (`Index`), and one page's blocks become a notebook's cells (`notebook`).
The dialect is what `DIRECTIVES`, `LINKING_ROLES` and `parse` name; anything else is an error with
its file and line, so that no MyST can reach Colab unnoticed.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape

import nbformat
import yaml
from course import Course, CourseError
from formulas import with_plain_macros, wrong_place
from pybtex.database import Entry, Person, parse_file
from pybtex.richtext import Text
from steps import read_role

from attncourse.figures.prose_numbers import PROSE_TAG

ADMONITIONS = {"note": "Note", "tip": "Tip", "important": "Important", "admonition": None}
DIRECTIVES = {*ADMONITIONS, "dropdown", "code-cell", "math", "figure"}
LINKING_ROLES = {"eq", "numref", "ref", "doc", "cite:p", "cite:t", "term", "do"}
TAGS = {
    *("hide-input", "hide-output", "hide-cell", "remove-input", "remove-output", "remove-cell"),
    *("scroll-output", "raises-exception", "in-one-piece", PROSE_TAG),
}
OPTIONS = {  # what each directive may be told; what only dresses the page is left out in Colab
    "code-cell": {"tags", "mystnb"},
    "math": {"label"},
    "figure": {"name", "alt", "width", "align", "class"},
    "dropdown": {"open", "icon", "color", "animate", "class", "class-container", "name"},
} | {name: {"class", "name"} for name in ADMONITIONS}
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}  # in Colab, in Jupyter

OPENING = re.compile(r"(`{3,}|:{3,}|~{3,})(?:\{([^}]*)\})?[ \t]*(.*)")
LABEL = re.compile(r"\(([\w.:-]+)\)=\s*")
HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
NO_MARKDOWN = {  # MyST that stands at the start of a line and that the dialect leaves out
    r"%": "a MyST comment",
    r"\+\+\+": "a MyST cell break",
    r":[ \t]": "a definition list",
    r"\$\$.*\$\$[ \t]*\(": "a label after $$; use ```{math} with :label:",
    r"\$\$[ \t]*\(": "a label after $$; use ```{math} with :label:",
    r"[ \t]+(`{3,}|:{3,})\{": "an indented directive",
    r"\{[.#\w-]+[^}`]*\}[ \t]*$": "block attributes",
}
INLINE = re.compile(
    r"(?P<escape>\\[^\w\s])"
    r"|\{(?P<role>[A-Za-z][\w:.+-]*)\}`(?P<target>[^`]+)`"
    r"|(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<math>\$\$.+?\$\$|\$(?=\S)[^$]+?(?<=\S)\$(?!\d))"
    r"|\]\((?P<url>[^()\s]*)\)"
    r"|(?P<footnote>\[\^[^\]]+\])|(?P<substitution>\{\{.*?\}\})|(?P<attributes>[\])*`]\{[.#][^}]*\})",
    re.DOTALL,
)


@dataclass
class PagePiece:
    """A piece of a page: `text`, `heading`, `label`, `fence` (plain code) or a directive."""

    kind: str
    line: int
    text: str = ""
    argument: str = ""
    options: dict = field(default_factory=dict)
    children: list[PagePiece] = field(default_factory=list)


def fail(page: str, line: int, message: str):
    """Raise ``CourseError`` with a page's line."""
    raise CourseError(f"{page}.md:{line}: {message}")


def parse(lines: list[str], page: str, first: int = 1) -> list[PagePiece]:
    """Return the blocks of a page, or of a directive's body that begins at line `first`."""
    blocks: list[PagePiece] = []
    i = 0
    if first == 1 and lines and lines[0] == "---":  # front matter
        i = lines.index("---", 1) + 1
    while i < len(lines):
        line, number = lines[i], first + i
        if opening := OPENING.match(line):
            fence, name, argument = opening.groups()
            closing = re.compile(rf"{fence[0]}{{{len(fence)},}}[ \t]*")
            end = next((j for j in range(i + 1, len(lines)) if closing.fullmatch(lines[j])), None)
            if end is None:
                fail(page, number, f"this {fence} is never closed")
            if name is None and fence[0] == ":":
                fail(page, number, f"{fence} opens no directive")
            if name is None:
                blocks.append(PagePiece("fence", number, "\n".join(lines[i : end + 1])))
            else:
                blocks.append(directive_piece(name, argument, lines[i + 1 : end], page, number))
            i = end
        elif label := LABEL.fullmatch(line):
            blocks.append(PagePiece("label", number, label[1]))
        elif heading := HEADING.match(line):
            blocks.append(PagePiece("heading", number, heading[2].strip(), heading[1]))
        else:
            for pattern, construct in NO_MARKDOWN.items():
                if re.match(pattern, line):
                    fail(page, number, f"{construct} is not part of the course's dialect")
            if not (blocks and blocks[-1].kind == "text"):
                blocks.append(PagePiece("text", number, line))
            else:
                blocks[-1].text += "\n" + line
        i += 1
    return blocks


def directive_piece(name: str, argument: str, body: list[str], page: str, line: int) -> PagePiece:
    """Return a directive as a piece, its options apart from its body."""
    options: dict = {}
    start = 0
    if body and body[0].strip() == "---":
        start = next(j for j in range(1, len(body)) if body[j].strip() == "---") + 1
        options = yaml.safe_load("\n".join(body[1 : start - 1])) or {}
    else:
        while start < len(body) and (option := re.fullmatch(r":([\w-]+):(.*)", body[start])):
            options[option[1]] = yaml.safe_load(option[2]) if name == "code-cell" else option[2]
            start += 1
    block = PagePiece(name, line, "\n".join(body[start:]), argument.strip(), options)
    if name not in DIRECTIVES:  # pages that stay in the book (the glossary) may hold any
        return block
    unknown = set(options) - OPTIONS[name]
    if unknown:
        fail(page, line, f"{{{name}}} has an option {sorted(unknown)[0]!r}, which is not allowed")
    if name in ADMONITIONS or name == "dropdown":
        block.children = parse(body[start:], page, line + 1 + start)
    return block


@dataclass(frozen=True)
class Target:
    """What a label stands for, and how a notebook names it."""

    page: str
    kind: str
    text: str
    """A number for an equation or a figure, the heading's text for a section."""


class Index:
    """The targets of references, over all pages, numbered as Sphinx numbers them."""

    def __init__(self, course: Course):
        self.course = course
        self.blocks: dict[str, list[PagePiece]] = {}
        self.titles: dict[str, str] = {}
        self.targets: dict[str, Target] = {}
        self.captions: dict[int, str] = {}  # id of a block with a caption -> its figure's number
        counters: Counter = Counter()
        for page in course.pages:
            path = course.root / f"{page}.md"
            if not path.exists():
                continue
            text = path.read_text(encoding="utf-8")
            self.blocks[page] = parse(text.splitlines(), page)
            has_code = any(block.kind == "code-cell" for block in self.blocks[page])
            if has_code and "format_name: myst" not in text.partition("\n---\n")[0]:
                fail(page, 1, "a page with code says `format_name: myst` in its front matter")
            chapter = course.chapter(page)
            prefix = f"{chapter.number}." if chapter else ""
            self._walk(self.blocks[page], page, prefix, counters)

    def _walk(self, blocks: list[PagePiece], page: str, prefix: str, counters: Counter) -> None:
        def number(kind: str) -> str:
            counters[kind, prefix] += 1
            return f"{prefix}{counters[kind, prefix]}"

        labels: list[str] = []
        for block in blocks:
            if block.kind == "label":
                labels.append(block.text)
                continue
            if block.kind == "heading":
                if block.argument == "#":
                    self.titles.setdefault(page, block.text)
                for label in labels:
                    self._add(label, Target(page, "section", block.text), block)
            elif block.kind == "math" and "label" in block.options:
                target = Target(page, "equation", number("equation"))
                self._add(block.options["label"].strip(), target, block)
            elif caption(block):
                self.captions[id(block)] = number("figure")
                if name := figure_label(block):
                    self._add(name, Target(page, "figure", self.captions[id(block)]), block)
            self._walk(block.children, page, prefix, counters)
            if block.kind != "text" or block.text.strip():
                labels = []

    def _add(self, label: str, target: Target, block: PagePiece) -> None:
        if label in self.targets:
            fail(target.page, block.line, f"the label {label!r} is used twice")
        self.targets[label] = target

    @cached_property
    def bibliography(self) -> dict[str, Entry]:
        """The sources of the bibliography, by key."""
        return dict(parse_file(str(self.course.root / "book" / "references.bib")).entries)


def caption(block: PagePiece) -> str:
    """Return the caption of a figure or of a code cell that draws one; else ""."""
    if block.kind == "code-cell":
        return (block.options.get("mystnb") or {}).get("figure", {}).get("caption", "")
    return block.text.strip() if block.kind == "figure" else ""


def figure_label(block: PagePiece) -> str:
    """Return the label of a figure or of a code cell that draws one; else ""."""
    if block.kind == "code-cell":
        return block.options["mystnb"]["figure"].get("name", "")
    return block.options.get("name", "").strip()


def people_of(entry: Entry) -> list[Person]:
    """Return the authors of a source, or its editors."""
    persons = entry.persons or {}
    return persons.get("author") or persons["editor"]


def fields_of(entry: Entry) -> Mapping[str, str]:
    """Return what the bibliography says of a source, such as its title and its year."""
    return entry.fields or {}


def surname(entry: Entry) -> str:
    """Return the authors as the book prints them: `Vaswani et al.`, `Bahdanau and Cho`."""
    people = people_of(entry)
    names = [" ".join(str(t) for t in p.rich_prelast_names + p.rich_last_names) for p in people]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)


def by_author(entry: Entry) -> tuple:
    """Return the key of the bibliography's order, which the book keeps inside a citation too."""
    people = people_of(entry)
    return [" ".join(p.last_names or ()).casefold() for p in people], fields_of(entry)["year"]


def reference(entry: Entry) -> str:
    """Return a line of the list of references."""
    people = people_of(entry)
    names = [
        " ".join(
            str(t)
            for t in p.rich_first_names + p.rich_middle_names + p.rich_prelast_names
            + p.rich_last_names + p.rich_lineage_names
        )
        for p in people
    ]  # fmt: skip
    authors = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
    values = fields_of(entry)
    fields = {k: str(Text.from_latex(v)) for k, v in values.items() if k not in ("url", "doi")}
    venue = next((fields[k] for k in ("journal", "booktitle", "publisher") if k in fields), "")
    link = values.get("url") or (f"https://doi.org/{values['doi']}" if "doi" in values else "")
    text = f"{authors} ({fields['year']}). *{fields['title']}*."
    return text + (f" {venue}." if venue else "") + (f" <{link}>" if link else "")


class ColabPage:
    """One page on its way into a notebook."""

    def __init__(self, index: Index, page: str):
        self.index, self.course, self.page = index, index.course, page
        self.cited: set[str] = set()

    # Inline: roles, links and what is not allowed

    def inline(self, text: str, line: int) -> str:
        """Return a text with its roles, links and substitutions resolved."""

        def converted(match: re.Match) -> str:
            match_line = line + text.count("\n", 0, match.start())
            if match["role"]:
                return self.role(match["role"], " ".join(match["target"].split()), match_line)
            if match["url"] is not None:
                return f"]({self.link(match['url'], match_line)})"
            for construct in ("footnote", "substitution", "attributes"):
                if match[construct]:
                    fail(self.page, match_line, f"{match[0]}: a MyST {construct} is not allowed")
            return match[0]

        return self.tex(INLINE.sub(converted, text), line)

    def tex(self, text: str, line: int) -> str:
        """Return the book's own macros as TeX that a notebook knows."""
        try:
            return with_plain_macros(text)
        except ValueError as problem:
            fail(self.page, line + text.count("\n", 0, wrong_place(text)), str(problem))

    def role(self, name: str, body: str, line: int) -> str:
        """Return what a role stands for, in plain Markdown."""
        if name not in LINKING_ROLES:
            fail(self.page, line, f"the role {{{name}}} is not part of the course's dialect")
        if name == "do":  # a notebook has no figure that moves
            setting = read_role(body)
            if setting.page is None:
                return setting.words
            return f"[{setting.words}]({self.address(setting.page)})"  # no figure moves there
        explicit = re.fullmatch(r"(.*?)\s*<([^<>]+)>", body)
        text, target = explicit.groups() if explicit else ("", body)
        if name == "term":
            return f"*{text or target}*"
        if name.startswith("cite"):
            return self.cite([key.strip() for key in body.split(",")], name, line)
        if name == "doc":
            page = self.resolve(target)
            if page not in self.index.titles:
                fail(self.page, line, f"{{doc}}`{target}`: there is no such page")
            title = text or self.inline(self.index.titles[page], line)
            return f"[{title}]({self.address(page)})"
        label_target = self.index.targets.get(target)
        kind = {"eq": "equation", "numref": "figure", "ref": "section"}[name]
        if label_target is None or label_target.kind != kind:
            fail(self.page, line, f"{{{name}}}`{target}`: there is no {kind} with this label")
        if name == "eq":
            return f"({label_target.text})"
        if name == "numref":
            return (
                (text or "Figure %s")
                .replace("%s", label_target.text)
                .replace("{number}", label_target.text)
            )
        title = text or self.inline(label_target.text, line)
        return (
            f"*{title}*"
            if label_target.page == self.page
            else f"[{title}]({self.address(label_target.page)})"
        )

    def cite(self, keys: list[str], name: str, line: int) -> str:
        """Return a citation, and note it for the list of sources."""
        entries = []
        for key in keys:
            if key not in self.index.bibliography:
                fail(self.page, line, f"{key!r} is not in book/references.bib")
            entries.append(self.index.bibliography[key])
        self.cited.update(keys)
        entries.sort(key=by_author)
        if name == "cite:t":
            return ", ".join(f"{surname(e)} ({fields_of(e)['year']})" for e in entries)
        return "(" + "; ".join(f"{surname(e)}, {fields_of(e)['year']}" for e in entries) + ")"

    def resolve(self, target: str) -> str:
        """Return the name in `_toc.yml` of `02_mixing`, `02_mixing.md` or `/book/02_mixing`."""
        return posixpath.normpath(
            posixpath.join("/", posixpath.dirname(self.page), target.removesuffix(".md"))
        ).lstrip("/")

    def address(self, page: str) -> str:
        """Return the address of a page: a chapter's notebook, else its text."""
        if self.course.chapter(page):
            return self.course.colab(f"{page}.ipynb")
        return self.course.blob(f"{page}.md")

    def link(self, url: str, line: int) -> str:
        """Return the address that a link leads to from a notebook."""
        if re.match(r"https?://|mailto:", url):
            return url
        path = url.partition("#")[0]
        if path.endswith(".md") and self.resolve(path) in self.index.titles:
            return self.address(self.resolve(path))
        fail(self.page, line, f"the link {url!r} leads nowhere from a notebook")

    # Blocks

    def markdown(self, blocks: list[PagePiece]) -> str:
        """Return several pieces as Markdown."""
        parts = (self.block(b) for b in blocks if b.kind != "label")
        return re.sub(r"\n{3,}", "\n\n", "\n\n".join(p for p in parts if p.strip())).strip("\n")

    def block(self, block: PagePiece) -> str:
        """Return one piece as Markdown."""
        if block.kind == "fence":
            return block.text
        if block.kind == "text":
            return self.inline(block.text, block.line).strip("\n")
        if block.kind == "heading":
            return f"{block.argument} {self.inline(block.text, block.line)}"
        if block.kind == "math":
            return self.math(block)
        if block.kind == "figure":
            return self.figure(block)
        if block.kind == "code-cell":
            fail(self.page, block.line, "a code cell inside a directive would not be executed")
        if block.kind not in DIRECTIVES:
            fail(self.page, block.line, f"{{{block.kind}}} is not part of the course's dialect")
        title = self.inline(block.argument, block.line)
        folded = "dropdown" in (block.kind, *block.options.get("class", "").split())
        if block.kind in ("admonition", "dropdown") and not title:
            fail(self.page, block.line, f"this {{{block.kind}}} has no title")
        title = ADMONITIONS.get(block.kind) or title
        body = self.markdown(block.children)
        if folded:
            return f"<details>\n<summary><b>{as_html(title)}</b></summary>\n\n{body}\n\n</details>"
        return "\n".join(f"> {line}".rstrip() for line in f"**{title}**\n\n{body}".split("\n"))

    def math(self, block: PagePiece) -> str:
        """Return an equation, with its number where it has a label."""
        body = self.tex(block.text.strip(), block.line)
        if "\n\n" in body or not body:
            fail(self.page, block.line, "an equation is empty or holds an empty line")
        if r"\\" in body and not body.startswith(r"\begin"):  # Sphinx does the same
            body = "\\begin{aligned}\n" + body + "\n\\end{aligned}"
        label = block.options.get("label", "").strip()
        tag = f"\n\\tag{{{self.index.targets[label].text}}}" if label else ""
        return f"$$\n{body}{tag}\n$$"

    def figure(self, block: PagePiece) -> str:
        """Return a figure with its alternative text and its caption."""
        path = self.resolve(block.argument)
        if not (self.course.root / path).is_file():
            fail(self.page, block.line, f"there is no file {path}")
        alt = block.options.get("alt", "").strip()
        return f"![{alt}]({self.course.raw(path)})\n\n{self.caption(block)}".strip()

    def caption(self, block: PagePiece) -> str:
        """Return the caption of a figure with its number; "" where it has none."""
        if not caption(block):
            return ""
        text = self.inline(" ".join(caption(block).split()), block.line)
        return f"**Figure {self.index.captions[id(block)]}.** {text}"

    # Cells

    def cells(self) -> list[nbformat.NotebookNode]:
        """Return the cells of a chapter's notebook."""
        chapter = self.course.chapter(self.page)
        if chapter is None:
            fail(self.page, 1, "only a chapter has a notebook")
        blocks = [b for b in self.index.blocks[self.page] if b.kind != "label"]
        blocks = [b for b in blocks if b.kind != "text" or b.text.strip()]
        if not blocks or (blocks[0].kind, blocks[0].argument) != ("heading", "#"):
            fail(self.page, 1, "a page begins with its title")
        title = self.inline(blocks[0].text, blocks[0].line)
        head = f"# {chapter.number}. {title}\n\n{self.course.badge(self.page + '.ipynb')}"
        sources: list[tuple[str, str, dict]] = [
            ("markdown", head, {}),
            ("code", self.course.install(chapter.stem), FOLDED),
        ]
        text: list[PagePiece] = []

        def flush() -> None:
            if text and (markdown := self.markdown(text)):
                sources.append(("markdown", markdown, {}))
            text.clear()

        for block in blocks[1:]:
            if PROSE_TAG in (block.options.get("tags") or []):
                continue
            if block.kind == "code-cell":
                flush()
                sources.append(("code", block.text.strip("\n"), self.metadata(block)))
                if caption(block):
                    sources.append(("markdown", self.caption(block), {}))
                continue
            if block.kind == "heading" and len(block.argument) <= 2:
                flush()  # sections fold in Colab when they begin a cell
            text.append(block)
        flush()
        if self.cited:
            entries = [self.index.bibliography[key] for key in self.cited]
            lines = sorted(f"- {reference(entry)}" for entry in entries)
            sources.append(("markdown", "## References\n\n" + "\n".join(lines), {}))
        return [notebook_cell(i, *source) for i, source in enumerate(sources, start=1)]

    def metadata(self, block: PagePiece) -> dict:
        """Return the metadata of a code cell; fail for what Colab cannot show."""
        if block.argument not in ("ipython3", "python", "python3"):
            fail(self.page, block.line, f"a code cell in {block.argument!r}")
        mystnb = block.options.get("mystnb") or {}
        if set(mystnb) - {"figure", "image", "code_prompt_show"}:
            fail(self.page, block.line, f"mystnb: {sorted(mystnb)} holds what Colab cannot show")
        tags = block.options.get("tags") or []
        if set(tags) - TAGS:
            fail(self.page, block.line, f"unknown tags {sorted(set(tags) - TAGS)}")
        metadata: dict = {"tags": tags} if tags else {}
        if {"hide-input", "remove-input", "hide-cell", "remove-cell"} & set(tags):
            metadata |= FOLDED
        return metadata


def as_html(title: str) -> str:
    """Return a title as it stands in `<summary>`, where Markdown is not read."""
    title = escape(title, quote=False)
    title = re.sub(r"`([^`]+)`", r"<code>\1</code>", title)
    title = re.sub(r"\*\*([^*]+)\*\*", r"\1", title)
    return re.sub(r"\*([^*]+)\*", r"<i>\1</i>", title)


def notebook_cell(number: int, kind: str, source: str, metadata: dict) -> nbformat.NotebookNode:
    """Return a cell of a notebook, with an id by its number."""
    new = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return new(source, metadata=metadata, id=f"cell-{number}")


def as_notebook(cells: list[nbformat.NotebookNode]) -> str:
    """Return the text of a notebook file: no outputs, and the same bytes on every run."""
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    book = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    book.nbformat_minor = 5
    nbformat.validate(book)
    return nbformat.writes(book) + "\n"


def notebook(index: Index, page: str) -> str:
    """Return the Colab notebook of a chapter's page."""
    return as_notebook(ColabPage(index, page).cells())
