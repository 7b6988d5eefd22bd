"""The strip at the top of a chapter: the parts of attention in order, this chapter's part lit."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from course import Chapter, Course

# The parts in the order in which numbers pass through them, each with the chapter that builds it.
PATH_TO_CHAPTER = {
    "embed": "tokens",
    "score": "scoring",
    "scale": "scaling",
    "mask": "masking",
    "softmax": "lookup",
    "mix": "mixing",
    "heads": "multihead",
    "positions": "positions",
}
# What each chapter is about. Where it is a whole chain, all of its links are lit; chapters that
# build with attention as a whole have no strip.
LIT = {
    "tokens": ("embed",),
    "mixing": ("mix",),
    "lookup": ("softmax", "mix"),
    "self_attention": ("score", "softmax", "mix"),
    "kqv": ("score", "scale", "softmax", "mix"),
    "scoring": ("score",),
    "scaling": ("scale",),
    "cross_attention": ("score", "softmax", "mix"),
    "multihead": ("heads",),
    "masking": ("mask",),
    "positions": ("positions",),
}


def strip(course: Course, chapter: Chapter, address: Callable[[str], str]) -> str:
    """Return the strip as HTML, ``""`` for a chapter that has no part in it.

    `address` gives the address of a page as the chapter's own page sees it.
    """
    lit = LIT.get(chapter.stem)
    if lit is None:
        return ""
    chapters = {chapter_of_book.stem: chapter_of_book for chapter_of_book in course.chapters}
    items = []
    for part, stem in PATH_TO_CHAPTER.items():
        taught, shown = chapters.get(stem), escape(part)
        if part in lit:
            shown += '<span class="visually-hidden"> (this chapter)</span>'
        if taught:
            shown += f'<small><span class="visually-hidden"> chapter </span>{taught.number}</small>'
        if taught and taught != chapter:
            shown = f'<a href="{escape(address(taught.page))}">{shown}</a>'
        else:
            shown = f"<span>{shown}</span>"
        items.append(f'<li class="attn-lit">{shown}</li>' if part in lit else f"<li>{shown}</li>")
    return (
        '<nav class="attn-strip" aria-label="The parts of attention, this chapter’s lit">'
        f"<ol>{''.join(items)}</ol></nav>"
    )
