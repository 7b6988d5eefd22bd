"""Entering a class: the people of its lists, with all that they are known by, in the gradebook."""

from pathlib import Path

from attncourse.grading.collect.roster import Class, Member, read_rosters, with_known_ids
from attncourse.grading.course.forgotten import Forgotten
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.connection import find_gradebook, gradebook_to_read
from attncourse.grading.gradebook.read import Person, has_gradebook, read_people
from attncourse.grading.gradebook.students import enter_students
from attncourse.grading.harmless import one_line
from attncourse.grading.report import count
from attncourse.grading.slips import require_trust

MAX_LISTED = 20  # people in a line


def enter_class(
    course: Path, rosters: list[Path], db: str | None = None, trust: str = ""
) -> list[str]:
    """Enter the people of these lists in the gradebook; return what changed, in lines.

    Nobody is taken out, and what a list does not say of a person stays. Raises ``UserError`` where
    a number and a name belong to two people, unless ``trust`` says which is right.
    """
    require_trust(trust)
    people = people_entered(course, db)
    members: dict[str, Member] = {}
    for member in with_known_ids(read_rosters(rosters, trust), people.values(), trust):
        before = members.get(member.id, member)
        members[member.id] = before.merged_with(member) or before
    require_own_class(members, people, rosters)
    forgotten, everybody = Forgotten(course), len(members)
    members = {
        who: member
        for who, member in members.items()
        if not forgotten.has_id(who, member.person.email, member.person.lms_id)
    }
    to_enter: dict[str, dict[str, str]] = {}
    changed = []
    for member in members.values():
        fields = {key: value for key, value in gradebook_fields(member).items() if value}
        before = people.get(member.id)
        old = gradebook_fields(Member(before)) if before else {}
        new = {key: value for key, value in fields.items() if old.get(key) != value}
        if before is None or new:
            to_enter[member.id] = new
        if before is not None and new:
            field_changes = ", ".join(f"{key} {old[key] or 'none'} to {new[key]}" for key in new)
            changed.append(f"{one_line(member.id, 40)}: {one_line(field_changes, 160)}")
    enter_students(find_gradebook(course, db), to_enter)
    n_new = len(to_enter) - len(changed)
    absent = [str(Member(person)) for who, person in people.items() if who not in members]
    lines = []
    if not any(member.full_names for member in members.values()):
        lines.append(f"no names in {', '.join(map(str, rosters))}: numbers and ids alone")
    elif nameless := without_name(members, people):
        listed = ", ".join(str(member) for member in nameless[:MAX_LISTED])
        more = f" and {len(nameless) - MAX_LISTED} more" if len(nameless) > MAX_LISTED else ""
        lines.append(f"no name of {listed}{more}: found by number and id alone")
    if n_forgotten := everybody - len(members):
        lines.append(f"{count(n_forgotten, 'student')} listed who were forgotten: not entered")
    lines += changed
    if absent:
        lines.append(f"in the gradebook and on no list: {', '.join(absent[:MAX_LISTED])}")
    n_same = len(members) - len(to_enter)
    counts = f"{n_new} new, {len(changed)} changed, {n_same} as before"
    return [*lines, f"{count(len(members), 'student')}: {counts}"]


def without_name(members: dict[str, Member], people: dict[str, Person]) -> list[Member]:
    """Return those of whom neither the lists nor the gradebook know a name."""
    return [
        member
        for who, member in members.items()
        if not member.full_names and not (who in people and people[who].name)
    ]


def people_entered(course: Path, db: str | None) -> dict[str, Person]:
    """Return the people in the gradebook by their ids; nobody where it is not made yet."""
    book = find_gradebook(course, db)
    if not has_gradebook(course, db) or (book.file is not None and not book.file.is_file()):
        return {}
    with gradebook_to_read(course, db) as connection:
        return {person.id: person for person in read_people(connection)}


def ids_listed(course: Path, roster: Path, db: str | None = None) -> list[str]:
    """Return the ids of the people on a list, as the gradebook has them."""
    people = people_entered(course, db)
    ids = {m.id for m in with_known_ids(read_rosters([roster]), people.values(), "")}
    if not ids:
        raise UserError(f"{roster} lists nobody")
    return sorted(ids)


def gradebook_fields(member: Member) -> dict[str, str]:
    """Return the fields that nbgrader has for a person, by its names for them."""
    person = member.person
    first = person.first_name
    if not person.name and member.names:  # a list that does not say which part is which
        first = member.names[0]
    return {
        "first_name": first,
        "last_name": person.last_name,
        "email": person.email,
        "lms_user_id": person.lms_id,
    }


def require_own_class(
    members: dict[str, Member], people: dict[str, Person], rosters: list[Path]
) -> None:
    """Raise ``UserError`` if the gradebook has a class and none of these members is in it."""
    if not members:
        raise UserError(f"{rosters[0]} lists nobody")
    class_known = Class({who: Member(person) for who, person in people.items()})
    if not people or people.keys() & members.keys():
        return
    if any(class_known.ids_by_known_name(member.full_names) for member in members.values()):
        return
    raise UserError(
        f"none of the {count(len(members), 'student')} listed is among the {len(people)} in "
        "the gradebook: is the list another term's (attncourse new-term begins one)? Name the "
        "lists of all sections at once if they are another section"
    )
