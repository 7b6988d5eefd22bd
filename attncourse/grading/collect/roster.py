"""Who is in the class: a roster, from whichever platform, and who a name or a number stands for.

A roster is a CSV file with a head. nbgrader's columns are understood (``id``, ``last_name``,
``first_name``, ``email``, ``lms_user_id``), and those of Canvas' gradebook, of Moodle's list of
participants and grading worksheet, and of Gradescope's roster.
"""

import difflib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from attncourse.grading.class_.scores import Person
from attncourse.grading.course.folders import unusable
from attncourse.grading.errors import UserError
from attncourse.grading.harmless import one_line
from attncourse.grading.spreadsheet import rows_in

COLUMNS = {  # what each may be called, in small letters
    "id": ("id", "student_id", "username", "sis login id", "login id", "login"),
    "last_name": ("last_name", "last name", "surname", "lastname", "family name"),
    "first_name": ("first_name", "first name", "firstname", "given name"),
    "name": ("name", "full name", "student", "student name"),
    "email": ("email", "email address", "e-mail", "e-mail address"),
    "number": ("lms_user_id", "id"),
    "other": ("sid", "id number", "sis user id", "integration id"),
    "participant": ("identifier",),
    "at": ("timestamp", "last modified (submission)", "submitted_at", "submission time"),
}
IDS = ("id", "number", "other", "email")  # of which the first that is there names the folder
EXPECTED = (
    "expected a head with id or email, in English, as in: id,last_name,first_name,email,lms_user_id"
)


@dataclass(frozen=True)
class Member:
    """Somebody of the class. ``name`` is the whole name where it is not known in parts.

    ``others`` are more ids of the person, ``participant`` is Moodle's number, ``at`` is when the
    person handed in.
    """

    person: Person
    name: str = ""
    others: tuple[str, ...] = ()
    participant: str = ""
    at: str = ""

    @property
    def id(self) -> str:
        return self.person.id

    @property
    def keys(self) -> set[tuple[str, str]]:
        """Everything by which no other should be known, and where: what one platform counts says
        nothing of who has the same number on another, or as an id.
        """
        ids = {("", key.casefold()) for key in (self.id, self.person.email, *self.others)}
        numbers = {("canvas", self.person.lms_id.casefold()), ("moodle", self.participant)}
        return {(where, key) for where, key in ids | numbers if key}

    @property
    def spellings(self) -> set[str]:
        """The name as a file's name may have it, in either order; the id where there is none."""
        last, first, words = self.person.last_name, self.person.first_name, self.name.split()
        turned = ["".join(words[n:] + words[:n]) for n in range(len(words))]
        found = {squeezed(name) for name in (first + last, last + first, *turned)} - {""}
        return found or {squeezed(self.id)}


@dataclass
class Class:
    """The members of a class. ``closed``: there are no others, for there is a roster."""

    members: dict[str, Member] = field(default_factory=dict)
    closed: bool = False

    def __post_init__(self) -> None:
        self._keys: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._names: dict[str, set[str]] = defaultdict(set)
        self._ids: dict[str, set[str]] = defaultdict(set)
        for member in self.members.values():
            for key in member.keys:
                self._keys[key].add(member.id)
            for spelling in member.spellings:
                self._names[spelling].add(member.id)
            self._ids[squeezed(member.id)].add(member.id)
        self._names.pop("", None)
        self._ids.pop("", None)
        self._spelled = {**self._ids, **self._names}

    def by_key(self, keys: Iterable[str], where: str = "") -> set[str]:
        """Who is known by the first of these keys that anybody is known by: ids or addresses, or a
        platform's numbers.
        """
        known = (self._keys.get((where, key.casefold())) for key in keys)
        return set(next(filter(None, known), ()))

    def by_name(self, names: Iterable[str]) -> set[str]:
        """The ids of those who are called so: none, one, or several, of whom nobody knows which."""
        return set(next((found for n in names if (found := self._names.get(squeezed(n)))), ()))

    def meant(self, part: str) -> set[str]:
        """Whom a part of a path may name that no platform wrote: by id, number, address or name."""
        found = self.by_key([part]) | self.by_key([part], "canvas")
        return found or self.by_name([part]) | self._ids.get(squeezed(part), set())

    def nearest(self, name: str) -> str:
        """The id of whose name is most like this one, or nothing."""
        near = difflib.get_close_matches(squeezed(name), self._spelled, n=1, cutoff=0.75)
        return min(self._spelled[near[0]]) if near else ""


def squeezed(name: str) -> str:
    """The letters and digits of a name, without accents and capitals: Canvas leaves no more."""
    plain = unicodedata.normalize("NFKD", name.casefold().replace("ø", "o").replace("ł", "l"))
    return "".join(c for c in plain if c.isalnum())


def read_roster(path: Path) -> list[Member]:
    """The members that a file lists. Raises ``UserError`` where it is no roster."""
    lines = rows_in(path)
    head = [name.strip().casefold() for name in lines[0]] if lines else []
    columns = columns_of(head)
    if not any(columns[kind] for kind in IDS):
        raise UserError(f"{path} is no roster: {EXPECTED}; found {one_line(', '.join(head), 80)}")
    found: dict[str, tuple[int, Member]] = {}
    for number, line in enumerate(lines[1:], start=2):
        cells = {k: [line[n].strip() for n in ns if n < len(line)] for k, ns in columns.items()}
        about_somebody = any(cell for found in cells.values() for cell in found)
        if not about_somebody or "Points Possible" in line[0]:  # Canvas has rows on columns
            continue
        member = member_of(cells)
        fault = unfit(member.id)
        if fault:
            raise UserError(f"{path}, line {number}: {fault}")
        if member.id in found:
            twice = f"lines {found[member.id][0]} and {number}"
            raise UserError(f"{path}: {one_line(member.id, 60)} is there twice, in {twice}")
        found[member.id] = number, member
    return [member for _, member in found.values()]


def columns_of(head: list[str]) -> dict[str, list[int]]:
    """Where each kind of cell stands. Canvas' ID is a number of its own and not nbgrader's id."""
    found = {kind: [n for n, h in enumerate(head) if h in names] for kind, names in COLUMNS.items()}
    if "section" in head or "sis login id" in head:
        found["id"] = [n for n in found["id"] if head[n] != "id"]
    else:
        found["number"] = [n for n in found["number"] if head[n] != "id"]
    return found


def member_of(cells: dict[str, list[str]]) -> Member:
    first = {kind: next((cell for cell in found if cell), "") for kind, found in cells.items()}
    participant = first["participant"].rpartition(" ")[2]  # Participant 1234567
    return Member(
        Person(
            id=next((first[kind] for kind in IDS if first[kind]), ""),
            last_name=first["last_name"],
            first_name=first["first_name"],
            email=first["email"],
            lms_id=first["number"],
        ),
        name=first["name"],
        others=tuple(cells["other"]),
        participant=participant,
        at="" if first["at"] in ("-", "") else first["at"],
    )


def unfit(student: str) -> str:
    """Why a student's id can be no folder's name; empty if it can."""
    if not student:
        return "no id and no e-mail address"
    if student != student.strip(" ") or student[0] in ".-~" or set(student) & set('/\\\0:*?"<>|'):
        return f"{one_line(student, 60)} can be no folder's name"
    return f"the id {fault}" if (fault := unusable(student)) else ""


def with_known_ids(listed: list[Member], known: Iterable[Person]) -> list[Member]:
    """A roster's members, with their ids in the gradebook where that knows an id or address."""
    own = Class({person.id: Member(person) for person in known})
    members = []
    for member in listed:
        same = set().union(*(own.by_key([key], where) for where, key in member.keys))
        if len(same) == 1:
            member = replace(member, person=replace(member.person, id=same.pop()))
        members.append(member)
    return members
