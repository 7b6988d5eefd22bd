"""Facts about every exercise, without loading its checks, which load torch.

``index.json`` is generated: from the checks, the pages' headings and the settings of the book.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attncourse.checks.exercise import Exercise, Mistake

INDEX_FILE = Path(__file__).with_name("index.json")


@dataclass(frozen=True)
class IndexEntry:
    """An exercise's target, points and minutes, and where in the book its section stands."""

    target: str
    points: int
    minutes: int
    page: str

    @property
    def stem(self) -> str:
        """Return the stem of the chapter: ``"kqv"`` of ``"kqv.project"``."""
        return self.target.split(".")[0]

    @property
    def name(self) -> str:
        """Return the name of the function or class: ``"project"`` of ``"kqv.project"``."""
        return self.target.split(".")[1]

    @property
    def address(self) -> str:
        """Return the section's web address; "" where the book is not on the web."""
        return address_of(self.page)


@cache
def read_index() -> dict:
    """Return the whole content of ``index.json``."""
    return json.loads(INDEX_FILE.read_text(encoding="utf-8"))


@cache
def index() -> dict[str, IndexEntry]:
    """Return what is known of every exercise, by its target, in the order of the course."""
    return {
        target: IndexEntry(target, **about) for target, about in read_index()["exercises"].items()
    }


@cache
def question_points() -> dict[str, int]:
    """Return the points of every question that a person marks, in the order of the course."""
    return read_index()["questions"]


def address_of(page: str) -> str:
    """Return the web address of a page, given relative to the book; "" if it has none.

    The page may end in a place on it, ``#…``.
    """
    site = read_index()["site"]
    return site + page if site and page else ""


def guide_address(exercise: Exercise, mistake: Mistake | None) -> str:
    """Return the web address of the field guide's entry on a mistake; "" if it has none."""
    entry_id = guide_place(exercise, mistake)
    return address_of(f"book/field_guide.html#{entry_id}") if entry_id else ""


def guide_place(exercise: Exercise, mistake: Mistake | None) -> str:
    """Return the HTML id of the field guide's entry on a mistake; "" if it has none.

    Names that differ in signs alone make one id: all but the first get a number.
    """
    names = [m.name for m in exercise.mistakes]
    if mistake is None or mistake.name not in names:
        return ""
    places = [name_of_place(f"{exercise.target} {name}") for name in names]
    number = names.index(mistake.name)
    times = places[: number + 1].count(places[number])
    return places[number] + (f"-{times}" if times > 1 else "")


def name_of_place(text: str) -> str:
    """Return a text as an HTML id: in lower case, with "-" for all but letters and digits."""
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")
