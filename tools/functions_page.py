"""The page of the package's functions: names, shapes and docstrings of every chapter's module.

`<!-- functions -->` in a page becomes an entry for each public function and class, read from the
sources without importing them. An entry links to the chapter, or to the section that teaches it.
"""

from __future__ import annotations

import ast
import re
from html import escape
from pathlib import Path

from course import Chapter, Course, loaded
from docstring_formulas import formula

from attncourse.checks.index import index
from attncourse.figures.signature import GLUE, parameters, shape_line

FUNCTIONS_MARK = "<!-- functions -->"
INLINE_CODE = re.compile(r"``(.+?)``", re.DOTALL)


def fill_in(app, page: str, source: list[str]) -> None:
    """Put the entries in the place of the mark, before the page is read."""
    if FUNCTIONS_MARK not in source[0]:
        return
    course = loaded(Path(app.srcdir))
    for chapter in course.chapters:
        app.env.note_dependency(str(module_path(course, chapter)))
    sections = [section(course, chapter) for chapter in course.chapters]
    source[0] = source[0].replace(FUNCTIONS_MARK, "\n\n".join(sections))


def module_path(course: Course, chapter: Chapter) -> Path:
    """Return the file of a chapter's module."""
    return course.root / "attncourse" / f"{chapter.stem}.py"


def section(course: Course, chapter: Chapter) -> str:
    """Return a chapter's functions as MyST Markdown, under the chapter's title."""
    page = (course.root / f"{chapter.page}.md").read_text(encoding="utf-8")
    title = re.search(r"(?m)^# (.+)$", page)
    if title is None:
        raise ValueError(f"{chapter.page}.md has no title")
    code = module_path(course, chapter).read_text(encoding="utf-8")
    entries = [
        function_entry(code, node, chapter)
        for node in ast.parse(code).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and is_public(node.name)
    ]
    head = (
        f"## Chapter {chapter.number} · {title[1].split(':')[0]}\n\n"
        f"`attncourse/{chapter.stem}.py`, taught in {{doc}}`chapter {chapter.number} "
        f"</{chapter.page}>`."
    )
    return "\n\n".join([head, *entries])


def is_public(name: str) -> bool:
    """True unless the name is private or a check of arguments (``require_…``)."""
    return not name.startswith(("_", "require_"))


def function_entry(code: str, node: ast.FunctionDef | ast.ClassDef, chapter: Chapter) -> str:
    """Return a function, or a class with its methods, as directives of Sphinx's Python domain."""
    if isinstance(node, ast.FunctionDef):
        return domain_directive("py:function", 3, signature(code, node), node, chapter)
    methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    inits = [method for method in methods if method.name == "__init__"]
    head = signature(code, inits[0], node.name) if inits else node.name
    members = [
        domain_directive("py:method", 3, signature(code, method), method)
        for method in methods
        if is_public(method.name) and not has_decorator(method, "property")
        if ast.get_docstring(method)
    ]
    return domain_directive("py:class", 4, head, node, chapter, members)


def has_decorator(node: ast.FunctionDef, name: str) -> bool:
    """True if a function has a decorator of that name."""
    return any(isinstance(d, ast.Name) and d.id == name for d in node.decorator_list)


def signature(code: str, node: ast.FunctionDef, name: str = "") -> str:
    """Return ``project(x, weight)``: no annotations, and no ``self``."""
    names = [part for part in parameters(code, node.args) if part not in ("self", "cls")]
    return f"{name or node.name}({', '.join(' '.join(part.split()) for part in names)})"


def domain_directive(
    kind: str,
    colons: int,
    head: str,
    node: ast.FunctionDef | ast.ClassDef,
    chapter: Chapter | None = None,
    members: list[str] | None = None,
) -> str:
    """Return a function or a class as a directive of the page."""
    fence = ":" * colons
    lines = [f"{fence}{{{kind}}} {head}"]
    if chapter is not None:
        lines.append(f":module: attncourse.{chapter.stem}")
    lines.append("")
    shapes = shape_line(node) if isinstance(node, ast.FunctionDef) else ""
    if shapes:
        shapes = shapes.replace(GLUE, " ").replace("->", "→")
        lines += [f"returns `{shapes[2:]}`" if shapes.startswith("→ ") else f"`{shapes}`", ""]
    lines += [as_markdown(ast.get_docstring(node) or ""), ""]
    if chapter is not None and (place := place_of_exercise(chapter, node.name)):
        lines += [f'An exercise of <a href="{escape(place)}">chapter {chapter.number}</a>.', ""]
    for member in members or ():
        lines += [member, ""]
    return "\n".join([*lines, fence])


def place_of_exercise(chapter: Chapter, name: str) -> str:
    """Return the section that teaches an exercise, from this page; empty where it is none."""
    known = index().get(f"{chapter.stem}.{name}")
    return known.page.removeprefix("book/") if known else ""


def as_markdown(docstring: str) -> str:
    """Return a docstring as MyST Markdown: code stays code, formulas become TeX."""
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", docstring.strip()):
        text = " ".join(paragraph.split())
        pieces = INLINE_CODE.split(text)  # text, code, text, …
        for place, piece in enumerate(pieces):
            pieces[place] = as_code(piece) if place % 2 else as_text(piece)
        paragraphs.append("".join(pieces))
    return "\n\n".join(paragraphs)


def as_code(text: str) -> str:
    """Return a text as a formula where it is one, else as code."""
    tex = formula(text)
    return f"{{math}}`{tex}`" if tex else f"`{text}`"


def as_text(text: str) -> str:
    """Return the text with what Markdown would take for its own; ``*emphasis*`` is both's."""
    return re.sub(r"([\[\]<>$`{}|~\\_]|^#|^[-+>](?= ))", r"\\\1", text)


def setup(app):
    """Register the page of functions with Sphinx."""
    app.connect("source-read", fill_in)
