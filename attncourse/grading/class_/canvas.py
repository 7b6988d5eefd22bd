"""Grades as Canvas' gradebook imports them.

The columns Student, ID, SIS User ID, SIS Login ID, Section, then assignments, each called
"title (id)" as Canvas itself exports it; a title alone matches by name or makes a new assignment.
A row "Points Possible" comes before the students. Text is UTF-8, separated by commas. See Canvas'
Instructor Guide, "How do I import grades in the Gradebook?",
https://community.canvaslms.com/t5/Instructor-Guide/How-do-I-import-grades-in-the-Gradebook/ta-p/807,
and the importer, lib/gradebook_importer.rb in https://github.com/instructure/canvas-lms.

The importer finds the separator by counting in the first three lines of the file: no cell may hold
a line break. It clears a score where it finds an empty cell: students without a result get no row.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attncourse.grading.class_.results import ClassResults, people
from attncourse.grading.class_.scores import Person
from attncourse.grading.class_.spreadsheet import Value
from attncourse.grading.errors import UserError
from attncourse.grading.harmless import one_line

WHO = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
IDS = ("ID", "SIS User ID", "SIS Login ID", "Integration ID")
POINTS = "    Points Possible"
TITLE = re.compile(r"(?P<title>.*\S)\s*\((?P<id>\d+)\)")


@dataclass(frozen=True)
class Roster:
    """An export of Canvas': the head of its ID columns and of the others, and its students."""

    who: list[str]
    others: list[str]
    students: list[list[str]]


def rows(
    classes: list[ClassResults], roster: Path | None, remark: Callable[[str], None]
) -> list[list[Value]]:
    """The head, the points, and a row for each student, in the roster's order if there is one."""
    students = people(classes)
    known = read_roster(roster) if roster else Roster(list(WHO), [], [])
    columns = [column_of(found.assignment, known.others) for found in classes]
    if roster:
        matched = match(known, students, remark)
    else:
        matched = {student: who(person) for student, person in students.items()}
    if not matched:
        raise UserError(f"no student of the gradebook is in {roster}: is it this course's?")
    points = [max((r.maximum for r in found.results), default=0.0) for found in classes]
    made: list[list[Value]] = [
        [one_line(name) for name in (*known.who, *columns)],
        [POINTS, *[""] * (len(known.who) - 1), *points],
    ]
    for student, cells in matched.items():
        row: list[Value] = [one_line(text) for text in cells[: len(known.who)]]
        excused = kept(known, cells, columns)
        for column, found in zip(columns, classes, strict=True):
            result = found.by_student.get(student)
            row.append("EX" if column in excused else result.score if result else None)
        made.append(row)
    return made


def who(person: Person) -> list[str]:
    """The ID columns as far as the gradebook knows them."""
    return [person.name or person.id, person.lms_id, "", person.id, ""]


def read_roster(path: Path) -> Roster:
    """A roster from a file; raises ``UserError`` where it is no export of Canvas'."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UserError(f"cannot read {path}: {reason}") from None
    first = text.partition("\n")[0]
    separator = ";" if first.count(";") > first.count(",") else ","
    lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    head = lines[0] if lines else []
    if "Section" not in head or "ID" not in head or head[0] not in ("Student", "LastName"):
        raise UserError(
            f"{path} is not an export of Canvas' gradebook: "
            "its first line should begin with Student,ID and name a Section"
        )
    width, key = head.index("Section") + 1, head.index("ID")
    students = [
        line + [""] * (len(head) - len(line))
        for line in lines[1:]
        if len(line) > key and line[key].strip() and "Points Possible" not in line[0]
    ]
    return Roster(head[:width], head[width:], students)


def column_of(assignment: str, others: list[str]) -> str:
    """The column that Canvas has for an assignment, with its id, or the bare name."""
    for name in others:
        found = TITLE.fullmatch(name)
        if found and found["title"].casefold() == assignment.casefold():
            return name
    return assignment


def match(
    roster: Roster, students: dict[str, Person], remark: Callable[[str], None]
) -> dict[str, list[str]]:
    """The roster's rows by student, in its order; who is missing on either side is told.

    A student is known by the Canvas id in the gradebook, by login, SIS id or email address.
    """
    keys = Counter[str]()
    owners: dict[str, str] = {}
    for student, person in students.items():
        for key in {k.casefold() for k in (student, person.email, person.lms_id) if k}:
            keys[key] += 1
            owners[key] = student
    columns = [n for n, name in enumerate(roster.who) if name in IDS]
    matched: dict[str, list[str]] = {}
    for row in roster.students:
        found = {owners[k] for k in (row[c].casefold() for c in columns) if keys[k] == 1}
        if len(found) == 1 and (student := found.pop()) not in matched:
            matched[student] = row
        else:
            remark(f"in the roster only, without a row: {one_line(row[0])}")
    for student in students:
        if student not in matched:
            remark(f"not in the roster, left out: {one_line(student)}")
    return matched


def kept(roster: Roster, row: list[str], columns: list[str]) -> set[str]:
    """The columns in which Canvas has a student excused: no grade takes that away."""
    cells = dict(zip(roster.others, row[len(roster.who) :], strict=False))
    return {name for name in columns if cells.get(name, "").strip().upper() == "EX"}
