"""The class: people of a roster, from whichever platform, and whom a name or number means.

A roster is a table with a head, separated by commas, semicolons or tabs (``spreadsheet.rows_in``);
``columns.py`` says what its columns hold.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unicodedata import normalize

from attncourse.grading.collect.columns import NUMBER_COLUMNS, are_addresses, columns_of
from attncourse.grading.course.folders import why_unusable_name
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.read import Person
from attncourse.grading.harmless import one_line
from attncourse.grading.names import NameIndex, is_test_student, same_id
from attncourse.grading.slips import Slip, require_no_slip, settle_owner
from attncourse.grading.spreadsheet import rows_in

EXPECTED_HEAD = "the head id,last_name,first_name,email"
EXPECTED_COLUMNS = f"expected a column of ids or addresses, as in {EXPECTED_HEAD}"
REVEAL_HINT = "reveal the students' identities and download it again"
ROUNDED_NUMBER = re.compile(r"\d+[.,]\d+E\+\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Member:
    """A person of the class. ``names`` are whole names, where they are not known in parts.

    ``others`` are more ids of the person, ``participant`` is Moodle's number, ``at`` is when the
    person handed in, ``groups`` are those that hand in together, ``row`` says which row of which
    list this comes from.
    """

    person: Person
    names: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    participant: str = ""
    at: str = ""
    groups: tuple[str, ...] = ()
    row: str = "the gradebook"

    @property
    def id(self) -> str:
        """Return the id of the person."""
        return self.person.id

    @property
    def keys(self) -> set[tuple[str, str]]:
        """Return pairs of a platform and an id, address or number that is this person's alone.

        A number of one platform means nothing on another, nor as an id; "" stands for no platform.
        """
        ids = {("", same_id(key)) for key in (self.id, self.person.email, *self.others)}
        numbers = {("canvas", same_id(self.person.lms_id)), ("moodle", self.participant)}
        return {(where, key) for where, key in ids | numbers if key}

    @property
    def full_names(self) -> list[str]:
        """Return the person's full names, first or last name first, as platforms may write them."""
        last, first = self.person.last_name, self.person.first_name
        names = {f"{first} {last}".strip(), f"{last} {first}".strip(), *self.names} - {""}
        return sorted(names)

    def __str__(self) -> str:
        """Return the id and the name, as far as they are known, and the row that has them."""
        name = self.person.full_name if self.person.name else " ".join(self.names[:1])
        id_and_name = ", ".join(dict.fromkeys(filter(None, (self.id, name))))
        return f"{one_line(id_and_name, 80)} ({self.row})"

    def merged_with(self, member: "Member") -> "Member | None":
        """Return the one person whom two rows describe, as rows of two sections do.

        None if they contradict each other, and so are of two people.
        """
        own_fields, member_fields = vars(self.person), vars(member.person)
        if any(
            own_fields[k]
            and member_fields[k]
            and same_id(own_fields[k]) != same_id(member_fields[k])
            for k in own_fields
        ):
            return None
        merged: dict[str, Any] = {
            "person": Person(**{key: own_fields[key] or member_fields[key] for key in own_fields})
        }
        for key in ("names", "others", "participant", "at", "groups", "row"):
            own_value, member_value = getattr(self, key), getattr(member, key)
            merged[key] = (
                tuple(dict.fromkeys(own_value + member_value))
                if isinstance(own_value, tuple)
                else own_value or member_value
            )
        return Member(**merged)


@dataclass
class Class:
    """The members of a class by id. ``closed``: a roster lists them, and there are no others.

    ``trust`` says what is right where a number and a name belong to two people: *numbers* or
    *names*; empty where nobody has said.
    """

    members: dict[str, Member] = field(default_factory=dict)
    closed: bool = False
    trust: str = ""

    def __post_init__(self) -> None:
        """Build the indices of keys, names, ids and groups."""
        self._keys: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._names, self._ids, self._groups = NameIndex(), NameIndex(), NameIndex()
        for member in self.members.values():
            for key in member.keys:
                self._keys[key].add(member.id)
            for name in member.full_names or [member.id]:
                words = name.split()
                turned = (" ".join(words[n:] + words[:n]) for n in range(1, len(words)))
                self._names.add(member.id, name, *turned)
            self._ids.add(member.id, member.id)
            for group in member.groups:
                self._groups.add(member.id, group)

    def ids_by_key(self, keys: Iterable[str], where: str = "") -> set[str]:
        """Return the ids of those who have the first of these keys that anybody has.

        Keys are ids and addresses or, with ``where``, a platform's numbers.
        """
        ids = (self._keys.get((where, same_id(key))) for key in keys)
        return set(next(filter(None, ids), ()))

    def ids_by_name(self, names: Iterable[str]) -> set[str]:
        """Return the ids of those who have the first of these names that anybody has.

        It may be one of several who are called the same.
        """
        return next(filter(None, map(self._names.people_called, names)), set())

    def ids_by_known_name(self, names: Iterable[str]) -> set[str]:
        """Return ``ids_by_name`` without those of whom only an id is known, which is no name."""
        return {who for who in self.ids_by_name(names) if self.members[who].full_names}

    def members_in_words(self, who: Iterable[str]) -> str:
        """Return these members with their rows, the first three, joined by "or"."""
        return " or ".join(str(self.members[student]) for student in sorted(who)[:3])

    def ids_meant_by(self, part: str) -> set[str]:
        """Return the ids of those whom a student may have meant by a part of a path.

        By an id, an address or Canvas' number, or else by a name.
        """
        by_keys = self.ids_by_key([part]) | self.ids_by_key([part], "canvas")
        return by_keys or self.ids_by_name([part]) | self._ids.people_called(part)

    def group_named(self, names: Iterable[str]) -> tuple[str, set[str]]:
        """Return the first of these names that is a group's and no person's, and its members.

        They are "" and an empty set if none is.
        """
        for name in names:
            if not self.ids_meant_by(name) and (members := self._groups.people_called(name)):
                return name, members
        return "", set()

    def without_group_name(self, name: str) -> str:
        """Return a name without the group's name that Moodle puts before it: Red-Ada Lovelace."""
        ends = (n for n, c in enumerate(name) if c == "-" and self._groups.people_called(name[:n]))
        return name[next(ends, -1) + 1 :]

    def ids_with_similar_name(self, name: str) -> list[str]:
        """Return the ids of those whose names, or else ids, are most like this name."""
        return self._names.people_called_alike(name) or self._ids.people_called_alike(name)


def read_rosters(paths: Iterable[Path], trust: str = "") -> list[Member]:
    """Return the members of several lists; the first list that has a person gives the id."""
    members: list[Member] = []
    for path in paths:
        members += with_known_ids(read_roster(path), members, trust)
    return members


def read_roster(path: Path) -> list[Member]:
    """Return the members of one list. Raises ``UserError`` if the file is no roster."""
    head, *rows = rows_in(path) or [[]]
    require_roster_head(path, head)
    columns = columns_of(head, rows)
    if not any(columns[kind] for kind in NUMBER_COLUMNS):
        if columns["participant"] and not columns["name"]:
            raise UserError(f"{path} has no names, only numbers: {REVEAL_HINT}")
        titles = one_line(", ".join(head), 80) or "nothing"
        raise UserError(f"{path} is no roster: {EXPECTED_COLUMNS}; found {titles}")
    seen_members: dict[str, tuple[int, Member]] = {}
    for number, row in enumerate(rows, start=2):
        cells = {k: [row[n].strip() for n in ns if n < len(row)] for k, ns in columns.items()}
        about_somebody = any(text for texts in cells.values() for text in texts)
        if not about_somebody or "Points Possible" in row[0]:  # Canvas has rows on columns
            continue
        member = replace(member_of(cells), row=f"{path.name}, line {number}")
        if any(map(is_test_student, member.full_names)):
            continue
        if fault := why_no_folder(member.id):
            raise UserError(f"{path}, line {number}: {fault}")
        before, earlier = seen_members.get(member.id, (number, member))
        merged = earlier.merged_with(member)
        if merged is None:
            raise UserError(
                f"{path}: {one_line(member.id, 60)} is there twice, in lines {before} and "
                f"{number}, with another name, address or number"
            )
        seen_members[member.id] = before, merged
    members = [member for _, member in seen_members.values()]
    require_distinct(path, members)
    return members


def require_roster_head(path: Path, head: list[str]) -> None:
    """Raise ``UserError`` where the first line is somebody's: its columns would be taken for it."""
    if any(are_addresses([cell.strip()]) for cell in head):
        somebody = one_line(", ".join(head), 80)
        raise UserError(
            f"{path} has no head: its first line is {somebody}; put one above it, as in "
            f"{EXPECTED_HEAD}"
        )


def require_distinct(path: Path, members: list[Member]) -> None:
    """Raise ``UserError`` if two people have one number or address: it would mean neither."""
    owners: dict[tuple[str, str], Member] = {}
    for member in members:
        person = member.person
        for kind, value in (
            ("number", person.lms_id),
            ("address", person.email),
            ("participant's number", member.participant),
            *(("other id", owner) for owner in member.others),
        ):
            owner = owners.setdefault((kind, same_id(value)), member) if value else member
            if owner is not member:
                raise UserError(
                    f"{path}: {owner} and {member} have the same {kind}, {one_line(value, 60)}: "
                    "give each their own, or leave it out"
                )


def member_of(cells: dict[str, list[str]]) -> Member:
    """Return the member of a row, whose cells are by the kind of their column."""
    first = {kind: next((cell for cell in values if cell), "") for kind, values in cells.items()}
    return Member(
        Person(
            id=normalize("NFC", next((first[kind] for kind in NUMBER_COLUMNS if first[kind]), "")),
            lms_id=first["number"],
            **{kind: first[kind] for kind in ("last_name", "first_name", "email")},
        ),
        names=tuple(filter(None, cells["name"])),
        others=tuple(filter(None, cells["other"])),
        participant=first["participant"].rpartition(" ")[2],  # Participant 1234567
        at="" if first["at"] in ("-", "–") else first["at"],
        groups=tuple(filter(None, map(str.strip, re.split("[,;]", ",".join(cells["group"]))))),
    )


def why_no_folder(student: str) -> str:
    """Return why a student's id can be no folder's name; "" if it can."""
    if not student:
        return "no id and no e-mail address"
    if student != student.strip(" ") or student[0] in ".-~" or set(student) & set('/\\\0:*?"<>|'):
        return f"{one_line(student, 60)} can be no folder's name"
    if ROUNDED_NUMBER.fullmatch(student):
        return f"a spreadsheet has rounded the id to {student}: save its column as text"
    return f"the id {fault}" if (fault := why_unusable_name(student)) else ""


def with_known_ids(
    listed: list[Member], known: Iterable[Person | Member], trust: str = ""
) -> list[Member]:
    """Return a roster's members; who is ``known`` by an id or address has the id known so far.

    Raises ``UserError`` where a row has the number of one person and the name of another.
    """
    people = [Member(person) if isinstance(person, Person) else person for person in known]
    known_class, slips, members = Class({member.id: member for member in people}), [], []
    for member in listed:
        by_key = {key: known_class.ids_by_key([key[1]], key[0]) for key in sorted(member.keys)}
        with_that_name = known_class.ids_by_known_name(member.full_names)
        known_ids = set().union(*by_key.values())
        for (_, key), who in by_key.items():
            if settle_owner(who, with_that_name, trust) is None:
                name = one_line(member.full_names[0], 60)
                slips.append(
                    Slip(
                        str(member),
                        key,
                        name,
                        known_class.members_in_words(who),
                        known_class.members_in_words(with_that_name),
                    )
                )
                break
        if trust == "names" and len(with_that_name) == 1:
            known_ids = with_that_name
        if len(known_ids) == 1:
            member = replace(member, person=replace(member.person, id=known_ids.pop()))
        members.append(member)
    require_no_slip(slips, "nothing was changed")
    return members
