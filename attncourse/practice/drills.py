"""Drills as data, one file a chapter: right code with one line changed, and what checks say of it.

``tools/drills.py`` makes and proves them. What the checks and the index say of a drill's mistake is
read from them and not kept twice.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from attncourse.checks import find_exercise
from attncourse.checks.index import guide_place, index

DRILLS_FOLDER = Path(__file__).with_name("drills")


@dataclass(frozen=True)
class DrillExample:
    """A small call: what goes in, what the wrong code makes of it, what it should make.

    A value is a number, a truth value, a text, None, or lists of these, in which ``"nan"``,
    ``"inf"`` and ``"-inf"`` are numbers. ``{"shape": …}`` is an array too large to show,
    ``{"parts": …}`` several results, ``{"raised": …}`` an error, ``{"changed": …}`` an argument
    that was changed in place.
    """

    call: str
    note: str
    inputs: list[dict[str, Any]]
    got: Any
    want: Any


@dataclass(frozen=True)
class MendElsewhere:
    """A statement other than a drill's that mends it as well: its lines, counted from 0.

    ``mended`` is what belongs in the place of the lines from ``first`` to ``last``.
    """

    first: int
    last: int
    mended: tuple[str, ...]

    @property
    def place(self) -> str:
        """Return its lines in words, counted from 1."""
        numbers = f"{self.first + 1} to {self.last + 1}"
        return f"lines {numbers}" if self.last > self.first else f"line {self.last + 1}"

    def applied_to(self, code: Sequence[str]) -> list[str]:
        """Return lines of code with the statement mended."""
        return [*code[: self.first], *self.mended, *code[self.last + 1 :]]


@dataclass(frozen=True)
class Drill:
    """Code in which ``line``, counted from 0, is wrong, and ``mended`` what belongs in its place.

    ``name`` and ``sentence`` are what the check says of it; ``wrong_names`` are mistakes of the
    same exercise that it does not make. ``setup`` runs before the code: imports, earlier functions.
    ``section`` is the place in the book that explains it, ``guide`` its entry in the field guide.
    ``easy`` is one that crashes, or that a shape gives away. ``elsewhere`` are other statements
    with which it can be mended, so that who says one of them is right as well.
    """

    id: str
    exercise: str
    code: tuple[str, ...]
    line: int
    mended: tuple[str, ...]
    name: str
    sentence: str
    guide: str
    wrong_names: tuple[str, ...]
    section: str
    heading: str
    easy: bool
    setup: str
    example: DrillExample
    elsewhere: tuple[MendElsewhere, ...] = ()

    @property
    def stem(self) -> str:
        """The chapter's stem."""
        return self.exercise.split(".")[0]

    @property
    def function(self) -> str:
        """The name of the function or class that is to be mended."""
        return self.exercise.split(".")[1]

    @property
    def right(self) -> tuple[str, ...]:
        """The code with the wrong line mended."""
        return (*self.code[: self.line], *self.mended, *self.code[self.line + 1 :])


def drills_file(stem: str) -> Path:
    """Return where a chapter's drills are kept; there need be no such file."""
    return DRILLS_FOLDER / f"{stem}.json"


@cache
def drills_of(stem: str) -> tuple[Drill, ...]:
    """Return a chapter's drills, in the order of its exercises; none where it has no file."""
    file = drills_file(stem)
    if not file.is_file():
        return ()
    content = json.loads(file.read_text(encoding="utf-8"))
    return tuple(drill_from(entry, content["setups"]) for entry in content["drills"])


def highest_numbers(stem: str) -> dict[str, int]:
    """Return by exercise the highest number in an id that a drill has, or had before it went."""
    file = drills_file(stem)
    if not file.is_file():
        return {}
    return json.loads(file.read_text(encoding="utf-8"))["numbers"]


def drill_from(entry: dict[str, Any], setups: list[str]) -> Drill:
    """Return a drill as it was kept."""
    known = {} if "sentence" in entry else about_mistake(entry["exercise"], entry["name"])
    lines = {name: tuple(entry[name]) for name in ("code", "mended", "wrong_names")}
    others = entry.get("elsewhere", ())
    fields: Any = {
        **entry,
        **known,
        **lines,
        "setup": setups[entry["setup"]],
        "example": DrillExample(**entry["example"]),
        "elsewhere": tuple(MendElsewhere(first, last, tuple(rows)) for first, last, rows in others),
    }
    return Drill(**fields)


def about_mistake(target: str, name: str) -> dict[str, str]:
    """Return what the checks say of a mistake of an exercise, and where the book does.

    Raises ``ValueError`` for a mistake that the exercise has not, or has no more.
    """
    exercise = find_exercise(target)
    mistake = next((m for m in exercise.mistakes if m.name == name), None)
    if mistake is None:
        command = f"python tools/drills.py {exercise.stem}"
        raise ValueError(f"{target} has no mistake called {name}: make its drills anew, {command}")
    return {
        "sentence": mistake.explanation,
        "guide": guide_place(exercise, mistake),
        "section": index()[target].page,
        "heading": exercise.section.split("“")[-1].rstrip("”"),
    }


def kept_entry(drill: Drill, setups: list[str]) -> dict[str, Any]:
    """Return a drill as it is kept; its setup is added to those of the chapter."""
    if drill.setup not in setups:
        setups.append(drill.setup)
    known = about_mistake(drill.exercise, drill.name)
    entry = {name: value for name, value in asdict(drill).items() if name not in known}
    others = [[mend.first, mend.last, [*mend.mended]] for mend in drill.elsewhere]
    entry |= {"elsewhere": others}
    return {name: entry[name] for name in entry if others or name != "elsewhere"} | {
        "setup": setups.index(drill.setup)
    }
