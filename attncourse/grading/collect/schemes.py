"""Naming schemes of learning platforms: the path of a file says whose it is.

Moodle, "Download all submissions" (mod/assign/classes/downloader.php in
https://github.com/moodle/moodle): in folders ``Ada Lovelace_1234567_assignsubmission_file/a.ipynb``
(before 4.1 with a ``_`` at the folder's end), else
``Ada Lovelace_1234567_assignsubmission_file_a.ipynb``. The number is the participant's in this
assignment alone.

Canvas, "Download Submissions" (lib/content_zipper.rb in https://github.com/instructure/canvas-lms):
``lovelaceada_LATE_12345_67890_a-1.ipynb``, which is the sortable name without spaces and signs,
LATE where Canvas counts it so, the user's id, the attachment's id, and the file's name. Of whom it
grades anonymously there stands ``anon`` and a code in place of name and id.

nbgrader: ``ada/05_kqv/a.ipynb``, and in its exchange ``ada+05_kqv+2026-10-12 21:59:00 UTC+…/``.

The outermost part of a path that has such a form says whose the file is: the platform wrote it, and
what stands below it a student has named.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

MAX_CHARACTERS_OF_PATH, MAX_FOLDERS_OF_PATH = 1000, 50  # no platform writes more

MOODLE = re.compile(r"(?s)(?P<name>.+?)_(?P<number>\d+)_assignsubmission_(?P<kind>[a-z]+)_?")
CANVAS = re.compile(
    r"(?s)(?P<name>.+?)_(?:LATE_|late_)?(?P<number>[1-9]\d{0,18})_(?P<order>[1-9]\d{0,18})_"
    r"(?P<file>.+)"
)
ANONYMOUS = re.compile(
    r"(?s)(?P<name>anon)_(?:LATE_|late_)?[0-9A-Za-z]{5}_(?P<order>[1-9]\d{0,18})_(?P<file>.+)"
)
TYPED = re.compile(
    r"(?s)(?P<name>.+?)_(?:LATE_|late_)?(?P<number>[1-9]\d{0,18})_(?P<file>(?:text|link)\.html)"
)
# Where else in one name a number could stand, were the student's part of it the platform's.
NUMBER_IN_FILE_NAME = {
    "moodle": re.compile(r"_(\d+)(?=_assignsubmission_[a-z])"),
    "canvas": re.compile(r"_([1-9]\d*)(?=_[1-9]\d*_.)"),
}
EXCHANGE = re.compile(
    r"(?P<name>.+)\+(?P<assignment>[^+]+)\+(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* \S+?)(\+.*)?"
)
COPY = re.compile(r"(\(\d+\)|-\d+)$")


class OwnerClaim(NamedTuple):
    """What a file's path says of whose the file is.

    ``names`` are ids, addresses or names of a person, the likeliest first, ``ids`` those of them
    that are no names.

    Files of a download with one ``key`` were handed in together. ``number`` is the platform's for
    the person, ``rivals`` are other numbers in the name that could be it, ``order`` rises with
    time, ``at`` is the time in the platform's own words. ``outer`` and ``inner`` are the parts of
    the path above and below the one that made the claim, which may name somebody as well.
    """

    platform: str
    names: tuple[str, ...]
    file: PurePosixPath
    key: str
    ids: tuple[str, ...] = ()
    number: str = ""
    rivals: tuple[str, ...] = ()
    order: int = 0
    at: str = ""
    late: bool = False
    outer: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()


def claim_of_path(
    path: PurePosixPath, assignment: str, likely: str = "", around: tuple[str, ...] = ()
) -> OwnerClaim | None:
    """Return what the path of a file says of its owner, or None where it names nobody.

    A part that could be Moodle's and Canvas' is read as that of the ``likely`` one. ``around`` are
    the names of the download and of the archives that the file was in.
    """
    for place, part in enumerate(path.parts):
        rest, outer = path.parts[place + 1 :], (*around, *path.parts[:place])
        for form in sorted(PLATFORMS, key=lambda form: form != likely):
            if platform_claim := PLATFORMS[form](part, rest, assignment):
                return platform_claim._replace(outer=outer)
        if rest and (folder_match := EXCHANGE.fullmatch(part)):
            if folder_match["assignment"].casefold() != assignment.casefold():
                return None
            file, moment = PurePosixPath(*rest), folder_match["at"]
            return OwnerClaim(
                "nbgrader", (folder_match["name"],), file, part, at=moment, outer=outer
            )
        if place and rest and part.casefold() == assignment.casefold():
            *outer, owner = outer
            below, file = claim_by_own_names(PurePosixPath(*rest), assignment), PurePosixPath(*rest)
            inner = below.names if below else ()
            return OwnerClaim("nbgrader", (owner,), file, owner, outer=tuple(outer), inner=inner)
    return claim_by_own_names(path, assignment, around)


def likeliest_scheme(paths: Iterable[PurePosixPath], assignment: str) -> str:
    """Return the platform in whose form most files of a download are named.

    So what a single student calls files does not decide it.
    """
    votes = dict.fromkeys(PLATFORMS, 0)
    for path in paths:
        for form, read in PLATFORMS.items():
            votes[form] += read(path.name, (), assignment) is not None
    return max(votes, key=lambda form: votes[form])


def moodle_claim(part: str, rest: tuple[str, ...], assignment: str) -> OwnerClaim | None:
    """Return the claim of a folder's or a file's name of Moodle's form; None for another.

    ``rest`` are the parts of the path below: with them ``part`` is a folder.
    """
    match = MOODLE.fullmatch(part) if rest else MOODLE.match(part)
    file = PurePosixPath(*rest) if rest else PurePosixPath(part[match.end() :] if match else "")
    if not match or not file.name:
        return None
    name, number = match["name"].strip(), match["number"]
    rivals = () if rest else rival_numbers(part, "moodle", number, assignment)
    return OwnerClaim("moodle", (name,), file, f"{name}_{number}", (), number, rivals)


def canvas_claim(part: str, rest: tuple[str, ...], assignment: str) -> OwnerClaim | None:
    """Return the claim of a file's name of Canvas' form; None for another."""
    if rest:
        return None
    if match := CANVAS.fullmatch(part):
        order = int(match["order"])
        if f"{order}_{match['file']}".startswith(assignment):
            return None  # ada_2026_12_transformer.ipynb is no Canvas'
    elif match := TYPED.fullmatch(part) or ANONYMOUS.fullmatch(part):
        order = 0
    else:
        return None
    number, file = match.groupdict().get("number", ""), PurePosixPath(match["file"])
    late = part[match.end("name") :].casefold().startswith("_late_")
    rivals = rival_numbers(part, "canvas", number, assignment)
    return OwnerClaim(
        "canvas", (match["name"],), file, number, (), number, rivals, order, late=late
    )


PLATFORMS = {"moodle": moodle_claim, "canvas": canvas_claim}


def rival_numbers(part: str, form: str, number: str, assignment: str) -> tuple[str, ...]:
    """Return other numbers in a name that could be the platform's, if the student chose the rest.

    One right before the assignment's name is part of that.
    """
    matches = NUMBER_IN_FILE_NAME[form].finditer(part)
    numbers = {m[1] for m in matches if not part.startswith(assignment, m.end() + 1)}
    return tuple(numbers - {number})


def claim_by_own_names(
    path: PurePosixPath, assignment: str, around: tuple[str, ...] = ()
) -> OwnerClaim | None:
    """Return a claim by the names in a path: the file's, then its folders', the nearest first."""
    stem = COPY.sub("", path.name.partition(".")[0])
    without_assignment = re.sub(re.escape(assignment), "", stem, flags=re.IGNORECASE).strip(" _-+.")
    names = (without_assignment, *reversed((*around, *path.parts[:-1])))
    names = tuple(name for name in dict.fromkeys(names) if name)
    return OwnerClaim("", names, PurePosixPath(path.name), "") if names else None
