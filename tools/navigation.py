"""Help to choose a chapter: its length, its exercises, and the chapters it needs."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

import yaml
from course import Chapter, Course

# What is typical of a chapter, most of them as a matrix of weights, 0 to 9.
CHAPTER_SIGNS = {
    "tokens": "90000 09000 00900 90000 00090",
    "mixing": "55000 33300 03330 00333 00055",
    "lookup": "00900 00900 06960 26962 99999",
    "self_attention": "92600 29100 61920 00294 00049",
    "kqv": "90909 90909 90909 90909 90909",
    "scoring": "90009 09090 00900 09090 90009",
    "scaling": "00099 00090 90090 09900 00900",
    "cross_attention": "99999 00000 27100 00185 90000",
    "multihead": "99099 99099 00000 99099 99099",
    "masking": "90000 99000 99900 99990 99999",
    "positions": "09000 90900 00090 00009 99999",
    "transformer": "99999 00900 99999 00900 99999",
    "gpt": "00000 99900 00000 99999 99090",
    "interpret": "09990 90009 90909 90009 09990",
    "vision": "90090 00990 09999 00990 90090",
    "sequences": "99000 99900 09990 00999 00099",
    "efficient": "99000 99000 00990 00990 00009",
    "llama": "90900 99990 99999 99999 90909",
    "circuits": "90009 03030 00900 03030 90009",
    "serving": "99930 99990 90000 99900 99999",
    "today": "90000 99000 99900 09990 99999",
}
WORDS, LINES = 120, 10  # that are read in a minute: of text with formulas, of code
CODE_CELL = re.compile(r"^```\{code-cell\}.*?^```\n", re.DOTALL | re.MULTILINE)
FOLDED_CODE = re.compile(r"^:?tags:.*\b(?:hide|remove)-(?:input|cell)", re.MULTILINE)
# What is folded on the page: the pieces under Deeper, and a question's answers.
FOLDED_PARTS = re.compile(
    r"^## Deeper\n.*?(?=^## |\Z)|^:::\{dropdown\}.*?^:::\n", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class TitleLine:
    """The line under a chapter's title."""

    reading: int  # minutes
    exercises: int
    points: int
    doing: int  # minutes

    def __str__(self) -> str:
        """Return the line as a page shows it."""
        return f"About {self.reading} minutes to read · {self.tasks}"

    @property
    def tasks(self) -> str:
        """The part of the line on exercises."""
        return f"{self.exercises} exercises, {self.points} points, about {self.doing} minutes"


@cache
def line(root: Path, chapter: Chapter) -> TitleLine:
    """Return a chapter's figures, from its page and from the assignment that students get."""
    assignment = root / "exercises" / chapter.folder / f"{chapter.folder}.ipynb"
    reading = reading_minutes((root / f"{chapter.page}.md").read_text(encoding="utf-8"))
    if not assignment.exists():
        return TitleLine(reading, 0, 0, 0)
    cells = json.loads(assignment.read_text(encoding="utf-8"))["cells"]
    marks = [cell["metadata"].get("nbgrader", {}) for cell in cells]
    facts = [re.search(r"\*Difficulty .* about (\d+) minutes", "".join(c["source"])) for c in cells]
    return TitleLine(
        reading,
        sum(mark.get("solution", False) for mark in marks),
        sum(mark["points"] for mark in marks if mark.get("grade")),
        sum(int(fact[1]) for fact in facts if fact),
    )


def reading_minutes(page: str) -> int:
    """Return the minutes that a page's core path takes to read, to the next five."""
    text = FOLDED_PARTS.sub("", page.partition("\n---\n")[2])
    lines = sum(
        bool(line.strip()) and not line.startswith((":", "```"))
        for cell in CODE_CELL.findall(text)
        if not FOLDED_CODE.search(cell)
        for line in cell.splitlines()
    )
    words = len(re.findall(r"\w[\w’'-]*", CODE_CELL.sub("", text)))
    return max(5, round((words / WORDS + lines / LINES) / 5) * 5)


def needs(course: Course) -> dict[str, tuple[str, ...]]:
    """Return the chapters that each chapter builds on, in its code or on its page.

    Raises ``ValueError`` where that goes against the package's contract of layers.
    """
    stems = [chapter.stem for chapter in course.chapters]
    order = layers(course.root)
    needs_by_stem = {}
    for chapter in course.chapters:
        used = modules_of((course.root / "attncourse" / f"{chapter.stem}.py").read_text())
        page = (course.root / f"{chapter.page}.md").read_text(encoding="utf-8")
        for cell in re.findall(r"```\{code-cell\}.*?\n(.*?)```", page, re.DOTALL):
            used |= set(re.findall(r"^\s*from attncourse\.(\w+) import", cell, re.MULTILINE))
            for names in re.findall(r"^\s*from attncourse import ([\w, ]+)", cell, re.MULTILINE):
                used |= {name.strip() for name in names.split(",")}
        needs_by_stem[chapter.stem] = tuple(s for s in stems if s in used and s != chapter.stem)
        for needed_stem in needs_by_stem[chapter.stem]:
            if order.index(needed_stem) > order.index(chapter.stem):
                raise ValueError(
                    f"chapter {chapter.stem} uses {needed_stem}, which is taught later"
                )
    return needs_by_stem


def modules_of(source: str) -> set[str]:
    """Return the chapters that a module imports from."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    modules = [node.module or "" for node in imports]
    return {module.split(".")[1] for module in modules if "attncourse." in module}


def layers(root: Path) -> list[str]:
    """Return the chapters from first to last, as the contract in ``pyproject.toml`` has them."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [name.removeprefix("attncourse.") for name in reversed(contract["layers"])]


def parts(course: Course) -> list[tuple[str, list[Chapter]]]:
    """Return the parts of the book that hold chapters, as the table of contents has them."""
    toc = yaml.safe_load((course.root / "_toc.yml").read_text(encoding="utf-8"))
    pages = {chapter.page: chapter for chapter in course.chapters}
    parts_of_book = [
        (p.get("caption", ""), [e["file"] for e in p["chapters"]]) for p in toc["parts"]
    ]
    return [
        (caption, [pages[file] for file in files])
        for caption, files in parts_of_book
        if files and set(files) <= pages.keys()
    ]


def branches(chapters: list[Chapter], above: dict[str, tuple[str, ...]]) -> list[Chapter]:
    """Return the chapters at the end of a part on which none builds, where there are several.

    They can be read in any order. A single one is the end of the way.
    """
    needed = {stem for stems in above.values() for stem in stems}
    on_the_way = [i for i, chapter in enumerate(chapters) if chapter.stem in needed]
    ends = chapters[on_the_way[-1] + 1 :] if on_the_way else []
    return ends if len(ends) > 1 else []


def course_map(course: Course, titles: dict[str, str], links: dict[str, str]) -> str:
    """Return the map as HTML: part by part one way through the chapters, and its branches."""
    above, rows = needs(course), []
    for caption, chapters in parts(course):
        off = branches(chapters, above)
        way = [stop(course, c, titles, links) for c in chapters if c not in off]
        if off:
            ends = "".join(stop(course, c, titles, links) for c in off)
            way.append(f'<li class="attn-off"><p>Then, in any order</p><ol>{ends}</ol></li>')
        rows.append(f'<li><p class="attn-part">{escape(caption)}</p><ol>{"".join(way)}</ol></li>')
    return f'<ol class="attn-map">{"".join(rows)}</ol>'


def stop(course: Course, chapter: Chapter, titles: dict, links: dict) -> str:
    """Return a chapter on the map: a small picture, its title, how much it is."""
    facts = line(course.root, chapter)
    facts_text = f"{facts.reading} minutes to read, {facts.exercises} exercises"
    return (
        f'<li><a href="{escape(links[chapter.stem])}">{sign_html(chapter.stem)}{chapter.number}. '
        f"{escape(titles[chapter.stem])}</a><small>{facts_text}</small></li>"
    )


def sign_html(stem: str) -> str:
    """Return a chapter's sign of five by five cells, the darker the larger; "" without one."""
    cells = "".join(
        f'<rect x="{i % 5}" y="{i // 5}" width=".9" height=".9" opacity="{int(dark) / 9:.2f}"/>'
        for i, dark in enumerate(CHAPTER_SIGNS.get(stem, "").replace(" ", ""))
        if dark != "0"
    )
    return f'<svg viewBox="0 0 5 5" aria-hidden="true">{cells}</svg>' if cells else ""
