"""Drills as data, one file a chapter: right code with one line changed, and what checks say of it.

``tools/drills.py`` makes and proves them; nothing here loads an exercise or torch.
"""

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("drills")


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
class Drill:
    """Code in which ``line``, counted from 0, is wrong, and ``mended`` what belongs in its place.

    ``name`` and ``sentence`` are what the check says of it; ``wrong_names`` are mistakes of the
    same exercise that it does not make. ``setup`` runs before the code: imports, earlier functions.
    ``section`` is the place in the book that explains it, ``guide`` its entry in the field guide.
    ``easy`` is one that crashes, or that a shape gives away.
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
    return FOLDER / f"{stem}.json"


@cache
def drills_of(stem: str) -> tuple[Drill, ...]:
    """Return a chapter's drills, in the order of its exercises; none where it has no file."""
    file = drills_file(stem)
    if not file.is_file():
        return ()
    kept = json.loads(file.read_text(encoding="utf-8"))
    return tuple(drill_from(entry, kept["setups"]) for entry in kept["drills"])


def drill_from(entry: dict[str, Any], setups: list[str]) -> Drill:
    """Return a drill as it was kept."""
    fields: dict[str, Any] = dict(entry)
    fields |= {name: tuple(entry[name]) for name in ("code", "mended", "wrong_names")}
    fields |= {"setup": setups[entry["setup"]], "example": DrillExample(**entry["example"])}
    return Drill(**fields)


def kept_entry(drill: Drill, setups: list[str]) -> dict[str, Any]:
    """Return a drill as it is kept; its setup is added to those of the chapter."""
    if drill.setup not in setups:
        setups.append(drill.setup)
    return {**asdict(drill), "setup": setups.index(drill.setup)}
