"""Which drills of *Find the mistake* there are, and where the book leads to them."""

from __future__ import annotations

from functools import cache
from html import escape

from course import Course

from attncourse.practice.drills import Drill, drills_of

PRACTICE, GUIDE = "book/practice", "book/field_guide"
N_LINKS_SHOWN = 3  # links from one entry of the field guide


@cache
def drills_by_chapter(course: Course) -> dict[str, tuple[Drill, ...]]:
    """Return the drills of each chapter that has some, in the order of the course."""
    every = {chapter.stem: drills_of(chapter.stem) for chapter in course.chapters}
    return {stem: drills for stem, drills in every.items() if drills}


@cache
def drills_by_entry(course: Course) -> dict[str, list[Drill]]:
    """Return the drills of each entry of the field guide, by the entry's id."""
    drills_of_entry: dict[str, list[Drill]] = {}
    for drills in drills_by_chapter(course).values():
        for drill in drills:
            drills_of_entry.setdefault(drill.guide, []).append(drill)
    return drills_of_entry


def entry_links(course: Course, entry: str) -> str:
    """Return the links from an entry of the field guide to its drills as HTML, or ``""``."""
    drills = drills_by_entry(course).get(entry, []) if PRACTICE in course.pages else []
    if not drills:
        return ""
    links = (
        f'<a href="practice.html#{escape(drill.id)}">drill {number}</a>'
        for number, drill in enumerate(drills[:N_LINKS_SHOWN], 1)
    )
    return f'<p class="attn-screen">Find it in code: {", ".join(links)}.</p>'
