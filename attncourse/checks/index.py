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
class Known:
    """An exercise's target, points and minutes, and where in the book its section stands."""

    target: str
    points: int
    minutes: int
    page: str

    @property
    def stem(self) -> str:
        """Return the stem of the chapter."""
        return self.target.split(".")[0]

    @property
    def name(self) -> str:
        """Return the name of the function or class."""
        return self.target.split(".")[1]

    @property
    def address(self) -> str:
        """Return the section in the book on the web; empty where the book is not there."""
        return address_of(self.page)


@cache
def read_index() -> dict:
    """Return the whole content of ``index.json``."""
    return json.loads(INDEX_FILE.read_text(encoding="utf-8"))


@cache
def index() -> dict[str, Known]:
    """Return every exercise by its target, in the order of the course."""
    return {target: Known(target, **about) for target, about in read_index()["exercises"].items()}


@cache
def question_points() -> dict[str, int]:
    """Return the points of every question that a person marks, in the order of the course."""
    return read_index()["questions"]


def address_of(page: str) -> str:
    """Return a page of the book, or a place on one, on the web."""
    site = read_index()["site"]
    return site + page if site and page else ""


def guide_address(exercise: Exercise, mistake: Mistake | None) -> str:
    """Return the field guide's entry on a mistake; empty for one that has none."""
    place = guide_place(exercise, mistake)
    return address_of(f"book/field_guide.html#{place}") if place else ""


def guide_place(exercise: Exercise, mistake: Mistake | None) -> str:
    """Return the id of the entry. A number tells names apart that differ in signs alone."""
    names = [m.name for m in exercise.mistakes]
    if mistake is None or mistake.name not in names:
        return ""
    places = [name_of_place(f"{exercise.target} {name}") for name in names]
    number = names.index(mistake.name)
    times = places[: number + 1].count(places[number])
    return places[number] + (f"-{times}" if times > 1 else "")


def name_of_place(text: str) -> str:
    """Return a text as the name of a place on a page."""
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")
