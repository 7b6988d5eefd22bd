"""What helps a reader to choose: how long a chapter is, what it asks, which chapters it needs."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from course import Chapter, Course

WORDS, LINES = 120, 10  # that are read in a minute: of text with formulas, of code
CELL = re.compile(r"^```\{code-cell\}.*?^```\n", re.DOTALL | re.MULTILINE)
HIDDEN = re.compile(r"^:?tags:.*\b(?:hide|remove)-(?:input|cell)", re.MULTILINE)
# What is folded on the page: the pieces under Deeper, and a question's answers.
FOLDED = re.compile(
    r"^## Deeper\n.*?(?=^## |\Z)|^:::\{dropdown\}.*?^:::\n", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Line:
    """What stands under a chapter's title."""

    reading: int  # minutes
    exercises: int
    points: int
    doing: int  # minutes

    def __str__(self) -> str:
        return f"About {self.reading} minutes to read · {self.tasks}"

    @property
    def tasks(self) -> str:
        return f"{self.exercises} exercises, {self.points} points, about {self.doing} minutes"


@cache
def line(root: Path, chapter: Chapter) -> Line:
    """A chapter's figures: read from its page, and from the assignment that students are given."""
    assignment = root / "exercises" / chapter.folder / f"{chapter.folder}.ipynb"
    reading = reading_minutes((root / f"{chapter.page}.md").read_text(encoding="utf-8"))
    if not assignment.exists():
        return Line(reading, 0, 0, 0)
    cells = json.loads(assignment.read_text(encoding="utf-8"))["cells"]
    marks = [cell["metadata"].get("nbgrader", {}) for cell in cells]
    facts = [re.search(r"\*Difficulty .* about (\d+) minutes", "".join(c["source"])) for c in cells]
    return Line(
        reading,
        sum(mark.get("solution", False) for mark in marks),
        sum(mark["points"] for mark in marks if mark.get("grade")),
        sum(int(fact[1]) for fact in facts if fact),
    )


def reading_minutes(page: str) -> int:
    """Minutes to read a page's core path, to the next five: text and code that show unfolded."""
    text = FOLDED.sub("", page.partition("\n---\n")[2])
    lines = sum(
        bool(line.strip()) and not line.startswith((":", "```"))
        for cell in CELL.findall(text)
        if not HIDDEN.search(cell)
        for line in cell.splitlines()
    )
    words = len(re.findall(r"\w[\w’'-]*", CELL.sub("", text)))
    return max(5, round((words / WORDS + lines / LINES) / 5) * 5)


def needs(course: Course) -> dict[str, tuple[str, ...]]:
    """The chapters that each chapter builds on: its code or its page takes something from them.

    Raises ``ValueError`` where that goes against the package's contract of layers.
    """
    stems = [chapter.stem for chapter in course.chapters]
    order = layers(course.root)
    found = {}
    for chapter in course.chapters:
        used = modules_of((course.root / "attncourse" / f"{chapter.stem}.py").read_text())
        page = (course.root / f"{chapter.page}.md").read_text(encoding="utf-8")
        for cell in re.findall(r"```\{code-cell\}.*?\n(.*?)```", page, re.DOTALL):
            used |= set(re.findall(r"^\s*from attncourse\.(\w+) import", cell, re.MULTILINE))
            for names in re.findall(r"^\s*from attncourse import ([\w, ]+)", cell, re.MULTILINE):
                used |= {name.strip() for name in names.split(",")}
        found[chapter.stem] = tuple(s for s in stems if s in used and s != chapter.stem)
        for other in found[chapter.stem]:
            if order.index(other) > order.index(chapter.stem):
                raise ValueError(f"chapter {chapter.stem} uses {other}, which is taught later")
    return found


def modules_of(source: str) -> set[str]:
    """The chapters that a module imports from."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return {node.module.split(".")[1] for node in imports if "attncourse." in (node.module or "")}


def layers(root: Path) -> list[str]:
    """The chapters from first to last, as the contract in ``pyproject.toml`` has them."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [name.removeprefix("attncourse.") for name in reversed(contract["layers"])]


def course_map(course: Course, titles: dict[str, str], links: dict[str, str]) -> str:
    """The map as HTML: the chapters in order, and an arc from each to what builds on it."""
    above = needs(course)
    stems = [chapter.stem for chapter in course.chapters]
    rows, arcs = [], []
    for at, chapter in enumerate(course.chapters):
        numbers = [stems.index(stem) + 1 for stem in above[chapter.stem]]
        needed = "builds on chapter" + "s" * (len(numbers) > 1) + f" {listed(numbers)}"
        said = [needed if numbers else "needs no other chapter", str(line(course.root, chapter))]
        rows.append(
            f'<li><a href="{escape(links[chapter.stem])}">{chapter.number}. '
            f"{escape(titles[chapter.stem])}</a><br><small>{'. '.join(map(sentence, said))}."
            "</small></li>"
        )
        for number in numbers:
            start, end = number - 0.5, at + 0.5
            reach = 0.9 - 0.8 * (end - start) / len(stems)
            arcs.append(
                f'<path d="M1 {start:g} C {reach:.2f} {start:g}, {reach:.2f} {end:g}, 1 {end:g}"/>'
                f'<path class="tip" d="M0.93 {end - 0.07:.2f} L1 {end:g} L0.93 {end + 0.07:.2f}"/>'
            )
    return (
        '<div class="attn-map"><svg aria-hidden="true" preserveAspectRatio="none" '
        f'viewBox="0 0 1 {len(stems)}">{"".join(arcs)}</svg>'
        f"<ol>{''.join(rows)}</ol></div>"
    )


def listed(numbers: list[int]) -> str:
    *most, last = map(str, numbers or [0])
    return f"{', '.join(most)} and {last}" if most else last


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
