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

from collections.abc import Callable
from pathlib import Path

from attncourse.grading.class_.results import ClassResults, people
from attncourse.grading.class_.roster import (
    Roster,
    column_of,
    match,
    own_column,
    read_canvas_roster,
    same,
)
from attncourse.grading.class_.scores import Person
from attncourse.grading.errors import UserError
from attncourse.grading.harmless import one_line
from attncourse.grading.spreadsheet import Value

WHO = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS = "    Points Possible"


def rows(
    classes: list[ClassResults],
    roster: Path | None,
    remark: Callable[[str], None],
    column: str | None = None,
) -> list[list[Value]]:
    """The head, the points, and a row for each student, in the roster's order if there is one.

    With ``column``, the roster's column of that title or id gets the points of the one class.
    """
    students = people(classes)
    known = read_canvas_roster(roster) if roster else Roster(None, list(WHO), [], [], {})
    columns = [column_of(found.assignment, known.others) for found in classes]
    if column is not None:
        columns = [own_column(column, known)]
    if roster:
        matched = match(known, students, remark)
    else:
        matched = {student: who(person) for student, person in students.items()}
    if any(r.penalty for found in classes for r in found.results):
        remark("late penalties are taken off already: Canvas' own late policy would do it again")
    if not matched:
        raise UserError(f"no student of the gradebook is in {roster}: is it this course's?")
    points = [max((r.maximum for r in found.results), default=0.0) for found in classes]
    for name, maximum in zip(columns, points, strict=True):
        if (theirs := known.points.get(name, "")) and not same(theirs, maximum):
            remark(f"{one_line(name)} has {theirs} points in Canvas and {maximum:g} here")
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


def kept(roster: Roster, row: list[str], columns: list[str]) -> set[str]:
    """The columns in which Canvas has a student excused: no grade takes that away."""
    cells = dict(zip(roster.others, row[len(roster.who) :], strict=False))
    return {name for name in columns if cells.get(name, "").strip().upper() == "EX"}
