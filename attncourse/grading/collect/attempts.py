"""A student's attempts: which files belong together, which attempt is the latest and counts."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from attncourse.grading.collect.roster import Member
from attncourse.grading.collect.sort import Owned
from attncourse.grading.course.choosing import HandedFile, Ungraded, choose_file
from attncourse.grading.course.dates import NoZone, Zone, parse_instant
from attncourse.grading.course.handed_in import (
    is_put_in_by_student,
    require_notebook,
    unpack_notebook,
)
from attncourse.grading.errors import UserError
from attncourse.grading.harmless import one_line, printable


@dataclass
class HandIn:
    """The files of one attempt, which were handed in together, and when that was."""

    files: list[Owned] = field(default_factory=list)
    time: datetime | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Return the attempt's rank: the place of its download, then the platform's own order."""
        return self.files[0].drop, max(owned.claim.order for owned in self.files)


def attempts_in_order(
    owned: list[Owned], member: Member | None, zone: Zone, remarks: list[str]
) -> list[HandIn]:
    """Return a student's attempts, the latest last: by time if it is known of all of them.

    Files of one download, archive and attempt belong together; those that a program put there are
    left out, and an attempt of such files alone. Where a time is missing the order is the
    platform's, and a time in the roster is that of the latest attempt. ``remarks`` gets a line for
    a time that cannot be read.
    """
    hand_ins: dict[tuple, HandIn] = {}
    for owned_file in owned:
        key = (owned_file.drop, owned_file.packed, owned_file.claim.key)
        hand_ins.setdefault(key, HandIn()).files.append(owned_file)
    attempts = sorted(hand_ins.values(), key=lambda a: (a.place, a.files[0].claim.at))
    for attempt in attempts:
        # The time first: timestamp.txt, which may say it, is no file of the student's.
        attempt.time = read_time(
            time_said_by_platform(attempt), attempt.files[0].student, zone, remarks
        )
        attempt.files = [o for o in attempt.files if is_put_in_by_student(HandedFile(o.claim.file))]
    attempts = [attempt for attempt in attempts if attempt.files]
    if all(attempt.time for attempt in attempts):
        attempts.sort(key=lambda a: (a.time, a.place))
    elif member and attempts[-1].time is None:
        attempts[-1].time = read_time(member.at, member.id, zone, remarks)
    return attempts


def time_said_by_platform(attempt: HandIn) -> str:
    """Return when an attempt was handed in, in the platform's words; "" if it does not say.

    nbgrader writes ``timestamp.txt``; in other platforms' folders, in folders of their own and in
    archives students could put one. Whoever packs an archive dates what is in it.
    """
    for owned in attempt.files:
        if owned.packed:
            return ""
        if owned.claim.at:
            return owned.claim.at
        if owned.claim.platform == "nbgrader" and str(owned.claim.file) == "timestamp.txt":
            with suppress(Ungraded):
                return owned.item.read()[:100].decode("utf-8", "replace")
    return ""


def read_time(text: str, student: str, zone: Zone, remarks: list[str]) -> datetime | None:
    """Return the moment that a text names; None for no text, and with a remark for no time.

    Raises ``UserError`` for a time without a time zone, in a course that has none.
    """
    if not text.strip():
        return None
    try:
        return parse_instant(text, zone)
    except NoZone as error:  # it would be the same of all others
        raise UserError(f"{one_line(student, 60)} handed in at {error}") from None
    except ValueError as error:
        remarks.append(f"{one_line(student, 60)}: collected without a time: {error}")
        return None


class Chosen(NamedTuple):
    """The file that counts of a student's latest attempt, its bytes, and what became of it.

    ``shown`` is the path as messages show it, ``called`` the name that the file gets. ``late`` says
    that the platform counts it as late, ``attempts`` how many there are, ``done`` what was done
    with it. ``aside`` is the folder that holds what it replaced, and ``why_worse`` says why it
    cannot be graded if what it replaced can.
    """

    owned: Owned
    shown: str
    data: bytes
    called: str
    time: datetime | None
    late: bool
    attempts: int
    done: str = ""
    aside: str = ""
    why_worse: str = ""

    @property
    def student(self) -> str:
        """Return the id of who handed it in."""
        return self.owned.student


def choose_attempt(attempts: list[HandIn], name: str, assignments: list[str]) -> Chosen:
    """Return the file that counts of a student's last attempt.

    A notebook, in an archive or not, gets the assignment's name. Where there is none, the first
    file keeps its own, and grading says so. Raises ``Ungraded`` where nobody can know which file is
    meant, and for a notebook of another assignment.
    """
    attempt = attempts[-1]
    files = {
        HandedFile(o.claim.file, float(o.claim.order) or o.item.time): o
        for o in sorted(attempt.files, key=lambda o: o.claim.order)
    }
    piece = choose_file(list(files), name) or next(iter(files))
    likely = [a for a in assignments if piece.name.startswith(a.casefold())]
    if likely and (other_assignment := max(likely, key=len)) != name:
        raise Ungraded(f"this is of {other_assignment}: attncourse collect {other_assignment}")
    owned = files[piece]
    data, inner = unpack_notebook(owned.item.read(), name)
    shown_path = piece.shown + (inner and f", in it {inner}")
    file_name = f"{name}.ipynb"
    if not (inner or piece.name.endswith(".ipynb")):
        try:
            require_notebook(data, piece, name)
        except Ungraded:
            file_name = safe_file_name(piece.path.name)
    late = any(owned.claim.late for owned in attempt.files)
    return Chosen(owned, shown_path, data, file_name, attempt.time, late, len(attempts))


def safe_file_name(name: str) -> str:
    """Return a file's name that is in no other folder, not hidden, and possible everywhere."""
    safe = "".join("_" if c in '/\\\0:*?"<>|' else c for c in printable(name, 100)).lstrip(".")
    return safe or "file"
