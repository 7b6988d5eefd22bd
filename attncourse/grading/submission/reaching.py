"""What a student's code reaches for that could hide from the judge what it calls.

Whether a forbidden function was called is seen in the submission's own process, which a determined
author can blind. Nobody does that by accident, so the source shows the attempt, and a person has
a look. The syntax tree is read with its imports and aliases: ``t = torch`` makes ``t._C`` torch's.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from attncourse.grading.submission.mentions import DEEPEST, Mentions, mentions
from attncourse.grading.submission.syntax import remembered
from attncourse.grading.submission.telltale import (
    ATTRIBUTES,
    INTERPRETER,
    MADE_UP,
    PRIVATE,
    REPLACED,
    WATCH,
    WATCHED_ATTRIBUTES,
    gives,
    suspect,
)

ROUNDS = 4  # aliases of aliases
STEPS = 100_000  # from a name to what it may stand for, in all cells
suspected, giving = remembered(suspect), remembered(gives)


class Reach(NamedTuple):
    """What is reached for, and why that matters."""

    what: str
    why: str


def reaches(sources: Iterable[str], *, watched: bool) -> list[list[Reach]]:
    """For each of a student's cells what it reaches for, in order.

    ``watched``: whether there is a function that the assignment forbids.
    """
    sources = list(sources)
    if not any(suspected(s) or (watched and giving(s)) for s in sources):
        return [[] for _ in sources]
    found = [mentions(source) for source in sources]
    tables = Tables(watched)
    meanings = Meanings(found, tables.concern)
    return [list(reached(cell, meanings, tables)) for cell in found]


class Tables:
    """What is looked for. ``watched``: whether there is a function that the assignment forbids."""

    def __init__(self, watched: bool):
        self.watched = watched
        self.prefixes = INTERPRETER | WATCH if watched else INTERPRETER
        self.attributes = ATTRIBUTES | WATCHED_ATTRIBUTES if watched else ATTRIBUTES
        self.roots: dict[str, list[str]] = {}
        for prefix in self.prefixes:
            self.roots.setdefault(prefix.split(".")[0], []).append(prefix)

    def concern(self, path: str) -> bool:
        """Whether a path may be, or lead to, anything that is looked for."""
        root, *others = path.split(".")
        return (
            root in self.roots
            or root in ("torch", "builtins")
            or any(part in self.attributes for part in (root, *others))
        )


class Meanings:
    """What the paths in all cells may stand for, by the aliases that these make.

    Many names times many meanings would take minutes: after ``STEPS`` it is given up, and told.
    """

    def __init__(self, cells: list[Mentions], concern: Callable[[str], bool]):
        aliases: dict[str, set[str]] = {}
        for name, path in {alias for cell in cells for alias in cell.aliases}:
            aliases.setdefault(name, set()).add(path)
        stars = sorted(star[1:-1] for star in aliases.pop("*", ()))
        self.stars = [f"/{star}" for star in stars if concern(star)]
        self.aliases = {name: sorted(paths) for name, paths in aliases.items()}
        self.concern = concern
        self.known: dict[str, list[str]] = {}
        self.left = STEPS
        self.imported: set[str] = set()
        for _ in range(ROUNDS):
            self.imported |= {
                name for name, paths in self.aliases.items() if any(map(self.is_imported, paths))
            }

    def is_imported(self, path: str) -> bool:
        """Whether a path leads into a module that a cell imports."""
        return path.startswith("/") or path.split(".")[0] in self.imported

    def of(self, path: str) -> Iterator[str]:
        """A path as it may be written without aliases."""
        yield path.removeprefix("/")
        root, dot, rest = path.partition(".")
        if root not in self.known:
            self.known[root] = self.of_name(root)
        yield from (f"{meaning}{dot}{rest}" for meaning in self.in_steps(self.known[root]))

    def of_name(self, name: str) -> list[str]:
        """What a name may stand for, as far as that is of concern."""
        found, latest = set(), {name}
        for _ in range(ROUNDS):
            latest = {new for known in latest for new in self.in_steps(self.next(known))} - found
            found |= latest
        short = (known.removeprefix("/") for known in found if known.count(".") <= 2 * DEEPEST)
        return sorted(known for known in short if self.concern(known))

    def next(self, path: str) -> Iterator[str]:
        """A path with its first name replaced by what that is an alias of."""
        root, dot, rest = path.partition(".")
        if root.startswith("/"):
            return
        targets = self.aliases.get(root) or (star + root for star in self.stars)
        yield from (f"{target}{dot}{rest}" for target in targets)

    def in_steps(self, paths: Iterable[str]) -> Iterator[str]:
        """The paths, as long as it has not been given up."""
        for path in paths:
            self.left -= 1
            if self.left < 0:
                return
            yield path


def reached(cell: Mentions, meanings: Meanings, tables: Tables) -> Iterator[Reach]:
    """What one cell reaches for, each thing once."""
    if cell.too_much and tables.watched:
        yield Reach(cell.too_much, "too much to look through")
    in_time = meanings.left >= 0
    told: dict[str, str] = {}
    if tables.watched:
        changed = sorted(path for path in cell.paths if path.endswith(".="))
        told = {p.strip("/.="): REPLACED for p in changed if meanings.is_imported(p)}
    for path in sorted({unaliased(p) for named in cell.paths for p in meanings.of(named)}):
        parts = path.split(".")
        for prefix in tables.roots.get(parts[0].removesuffix("()"), ()):
            if matches(path, prefix):
                told[".".join(parts[: prefix.count(".") + 1])] = tables.prefixes[prefix]
        told |= {part: tables.attributes[part] for part in parts if part in tables.attributes}
        hidden = [n for n, part in enumerate(parts, start=1) if re.match("_(?!_)", part)]
        if tables.watched and parts[0] == "torch" and hidden:
            told[".".join(parts[: hidden[0]])] = PRIVATE
        if tables.watched and parts[0] == "torch" and parts[-1] == "__dict__":
            told[path] = MADE_UP
    for what, why in told.items():
        if not any(what != other and what in other.split(".") for other in told):
            yield Reach(what, why)
    if in_time and meanings.left < 0 and tables.watched:
        yield Reach(f"more than {STEPS} meanings of names", "too many to look through")


def unaliased(path: str) -> str:
    """A path without the module that needs no naming, unless it is asked for all that it has."""
    return path if path.startswith("builtins.__dict__") else path.removeprefix("builtins.")


def matches(path: str, prefix: str) -> bool:
    """Whether a path is what the table names, or lies in it; with a dot, only what lies in it."""
    if prefix.endswith((".", "_")):
        return path.startswith(prefix)
    return path == prefix or path.startswith(f"{prefix}.")
