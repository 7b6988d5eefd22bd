"""Groups that hand in together: ``groups.csv`` says who is in which, as a roster's column can.

It has the head ``group,student``, and a row for each member, or one for each group with several
columns that begin with ``member`` or ``student``. A column ``assignment`` limits a row to one.
"""

import re
from dataclasses import replace
from pathlib import Path

from attncourse.grading.collect.columns import columns_of
from attncourse.grading.collect.roster import Class, Member, why_no_folder
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.read import Person
from attncourse.grading.harmless import one_line
from attncourse.grading.names import name_parts
from attncourse.grading.spreadsheet import rows_in

GROUPS_FILE = "groups.csv"
MEMBERS = re.compile(r"(member|student|mitglied|membre|miembro)")


def with_groups(people: Class, path: Path, assignment: str) -> Class:
    """Return the class with the groups that the file at ``path`` lists for an assignment.

    Raises ``UserError`` for a member who is not in the class: their work would be nobody's.
    """
    head, *rows = rows_in(path) or [[]]
    columns = columns_of(head, rows)
    if not columns["group"]:
        head_found = one_line(", ".join(head), 80) or "nothing"
        raise UserError(f"{path}: expected the head group,student; found {head_found}")
    titles = [" ".join(name_parts(cell)) for cell in head]
    where = [n for n, name in enumerate(titles) if MEMBERS.match(name)] or sorted(
        n for kind in ("id", "email", "name", "other") for n in columns[kind]
    )
    limited = titles.index("assignment") if "assignment" in titles else None
    members = dict(people.members)
    for number, row in enumerate(rows, start=2):
        row = [cell.strip() for cell in row] + [""] * (len(head) - len(row))
        if not any(row) or (limited is not None and row[limited] not in ("", assignment)):
            continue
        groups = tuple(filter(None, (row[n] for n in columns["group"])))
        identifiers = [
            identifier.strip()
            for n in where
            for identifier in row[n].split(";")
            if identifier.strip()
        ]
        if not groups or not identifiers:
            raise UserError(f"{path}, line {number}: expected a group and who is in it")
        for identifier in identifiers:
            student = person_meant(identifier, people, f"{path}, line {number}")
            before = members.get(student, Member(Person(student)))
            members[student] = replace(before, groups=(*before.groups, *groups))
    return Class(members, people.closed)


def person_meant(name: str, people: Class, place: str) -> str:
    """Return the id of the one member meant by an id, address or name; else raise ``UserError``.

    Without a roster a name that nobody has is the id of somebody new.
    """
    candidates = people.ids_meant_by(name)
    if not candidates and not people.closed and not why_no_folder(name):
        return name
    if len(candidates) != 1:
        similar_ids = sorted(candidates) or people.ids_with_similar_name(name)
        hint = (
            f"; is it {' or '.join(one_line(student_id, 40) for student_id in similar_ids)}?"
            if similar_ids
            else ""
        )
        problem = "may be several" if candidates else "is nobody of the class"
        raise UserError(f"{place}: {one_line(name, 60)} {problem}{hint}")
    return candidates.pop()
