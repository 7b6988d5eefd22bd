"""How learning platforms call what they hand over: whose a file is, by its path alone.

Moodle, "Download all submissions" (mod/assign/classes/downloader.php in
https://github.com/moodle/moodle): in folders ``Ada Lovelace_1234567_assignsubmission_file/a.ipynb``
(before 4.1 with a ``_`` at the folder's end), else
``Ada Lovelace_1234567_assignsubmission_file_a.ipynb``. The number is the participant's in this
assignment alone.

Canvas, "Download Submissions" (lib/content_zipper.rb in https://github.com/instructure/canvas-lms):
``lovelaceada_LATE_12345_67890_a-1.ipynb``, which is the sortable name without spaces and signs,
LATE where Canvas counts it so, the user's id, the attachment's id, and the file's name.

nbgrader: ``ada/05_kqv/a.ipynb``, and in its exchange ``ada+05_kqv+2026-10-12 21:59:00 UTC+…/``.
"""

import re
from pathlib import PurePosixPath
from typing import NamedTuple

MOODLE = re.compile(r"(?P<name>[^_]+)_(?P<number>\d+)_assignsubmission_(?P<kind>[a-z]+)_?")
CANVAS = re.compile(
    r"(?P<name>.+?)_(?P<late>LATE_|late_)?(?P<number>[1-9]\d*)_(?P<order>[1-9]\d*)_(?P<file>.+)"
)
TYPED = re.compile(r"(?P<name>.+?)_(?P<late>LATE_|late_)?(?P<number>[1-9]\d*)_(text|link)\.html")
EXCHANGE = re.compile(
    r"(?P<name>.+)\+(?P<assignment>[^+]+)\+(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* \S+?)(\+.*)?"
)
COPY = re.compile(r"\s*(\(\d+\)|-\d+)$")


class Claim(NamedTuple):
    """Whose a file may be. ``names`` are ids, addresses or names of a person, the likeliest first.

    Files of a download with one ``key`` were handed in together. ``number`` is the platform's of
    the person, ``order`` rises with time, ``at`` is the time in the platform's own words.
    """

    platform: str
    names: tuple[str, ...]
    file: PurePosixPath
    key: str
    number: str = ""
    order: int = 0
    at: str = ""
    late: bool = False


def claim(path: PurePosixPath, assignment: str) -> Claim | None:
    """Whose the file at this path is, or None where the path names nobody."""
    for place, part in enumerate(path.parts):
        last, rest = place == len(path.parts) - 1, path.parts[place + 1 :]
        if found := MOODLE.match(part) if last else MOODLE.fullmatch(part):
            file = part[found.end() :] if last else "/".join(rest)
            if file:
                return moodle(found, file)
        if not last and (found := EXCHANGE.fullmatch(part)):
            if found["assignment"].casefold() != assignment.casefold():
                return None
            file = PurePosixPath(*rest)
            return Claim("nbgrader", (found["name"],), file, part, at=found["at"])
        if place and not last and part.casefold() == assignment.casefold():
            owner, below = path.parts[place - 1], plain(PurePosixPath(*rest), assignment)
            names = (owner, *(below.names if below else ()))
            return Claim("nbgrader", names, PurePosixPath(*rest), owner)
    return canvas(path.name, assignment) or plain(path, assignment)


def moodle(found: re.Match[str], file: str) -> Claim:
    name, number = found["name"].strip(), found["number"]
    return Claim("moodle", (name,), PurePosixPath(file), f"{name}_{number}", number)


def canvas(name: str, assignment: str) -> Claim | None:
    """A claim by a file's name as Canvas gives it."""
    if found := TYPED.fullmatch(name):
        file, order = PurePosixPath(f"{found[4]}.html"), 0
    elif found := CANVAS.fullmatch(name):
        file, order = PurePosixPath(found["file"]), int(found["order"])
        if f"{order}_{file}".startswith(assignment):  # ada_2026_12_transformer.ipynb is no Canvas'
            return None
    else:
        return None
    late, number = bool(found["late"]), found["number"]
    return Claim("canvas", (found["name"],), file, f"{number}", number, order, late=late)


def plain(path: PurePosixPath, assignment: str) -> Claim | None:
    """A claim by what may be a name in a path: a folder's, the nearest first, or the file's own."""
    stem = COPY.sub("", path.name.partition(".")[0])
    own = re.sub(re.escape(assignment), "", stem, flags=re.IGNORECASE).strip(" _-+.")
    names = (own, *reversed(path.parts[:-1]))
    names = tuple(name for name in dict.fromkeys(names) if name)
    return Claim("", names, PurePosixPath(path.name), "") if names else None
