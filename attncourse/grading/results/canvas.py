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

import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.read import Person
from attncourse.grading.harmless import one_line
from attncourse.grading.names import NameIndex, is_test_student, same_id
from attncourse.grading.report import count
from attncourse.grading.results.class_results import ClassResults, Remark, people_in
from attncourse.grading.slips import Slip, require_no_slip, settle_owner
from attncourse.grading.spreadsheet import Rows, Value, rows_in

MAX_STUDENTS_NAMED = 5  # of the students whom a section's roster leaves out
PERSON_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS_ROW = "    Points Possible"
CANVAS_ID_COLUMNS = ("ID", "SIS User ID", "SIS Login ID", "Integration ID")
CANVAS_TITLE = re.compile(r"(?P<title>.*\S)\s*\((?P<id>\d+)\)")


def canvas_rows(
    classes: list[ClassResults],
    remark: Remark,
    roster: Path | None = None,
    column: str | None = None,
    trust: str = "",
) -> Rows:
    """Return rows for Canvas: the head, the points possible, a row for each student.

    They are in the order of the ``roster``. With ``column``, the roster's column of that title or
    id gets the points of the one class.
    """
    students = people_in(classes)
    canvas_roster = (
        read_canvas_roster(roster) if roster else Roster(None, list(PERSON_COLUMNS), [], [], {})
    )
    if column is None:
        columns = [
            column_for(results_of_class.assignment, canvas_roster, remark)
            for results_of_class in classes
        ]
    else:
        columns = [own_column(column, canvas_roster)]
    if roster:
        matched = rows_by_student(canvas_roster, students, remark, trust)
    else:
        matched = {s: [p.name or p.id, p.lms_id, "", p.id, ""] for s, p in students.items()}
    if any(r.penalty for results_of_class in classes for r in results_of_class.results):
        remark("late penalties are taken off already: Canvas' own late policy would do it again")
    if not matched:
        raise UserError(f"no student of the gradebook is in {roster}: is it this course's?")
    points = [
        max((r.maximum for r in results_of_class.results), default=0.0)
        for results_of_class in classes
    ]
    for name, maximum in zip(columns, points, strict=True):
        with suppress(ValueError):  # Canvas writes others, "(read only)", as well
            if (canvas_maximum := float(canvas_roster.points.get(name, ""))) != maximum:
                points_in_canvas = f"{count(canvas_maximum, 'point')} in Canvas"
                remark(f"{one_line(name)} has {points_in_canvas} and {maximum:g} here")
    rows: Rows = [
        [one_line(name) for name in (*canvas_roster.who, *columns)],
        [POINTS_ROW, *[""] * (len(canvas_roster.who) - 1), *points],
    ]
    for student, cells in matched.items():
        row: list[Value] = [one_line(text) for text in cells[: len(canvas_roster.who)]]
        canvas_cells = dict(
            zip(canvas_roster.others, cells[len(canvas_roster.who) :], strict=False)
        )
        for column, results_of_class in zip(columns, classes, strict=True):
            result = results_of_class.by_student.get(student)
            # A student excused in Canvas stays excused: no grade takes that away.
            excused = canvas_cells.get(column, "").strip().upper() == "EX"
            row.append("EX" if excused else result.score if result else None)
        rows.append(row)
    return rows


# --- an export of Canvas' gradebook as a roster: its columns, and whose row is whose --------------


@dataclass(frozen=True)
class Roster:
    """An export of Canvas' gradebook: the heads of its columns, and its students' rows.

    ``points`` are those possible in the other columns, by their names, as they are written.
    """

    path: Path | None
    who: list[str]
    others: list[str]
    students: list[list[str]]
    points: dict[str, str]


def read_canvas_roster(path: Path) -> Roster:
    """Return the export of Canvas' in a file; raise ``UserError`` if it is none."""
    lines = rows_in(path)
    head = lines[0] if lines else []
    if "Section" not in head or "ID" not in head or head[0] not in ("Student", "LastName"):
        raise UserError(
            f"{path} is not an export of Canvas' gradebook: "
            "its first line should begin with Student,ID and name a Section"
        )
    width, key = head.index("Section") + 1, head.index("ID")
    students = {}  # each once: who is in two sections may have two rows
    for line in lines[1:]:
        somebody = len(line) > key and line[key].strip() and "Points Possible" not in line[0]
        if somebody and not is_test_student(line[0]):
            students.setdefault(line[key].strip(), line + [""] * (len(head) - len(line)))
    possible = next((line for line in lines if line and "Points Possible" in line[0]), [])
    points = dict(zip(head[width:], (cell.strip() for cell in possible[width:]), strict=False))
    return Roster(path, head[:width], head[width:], list(students.values()), points)


def columns_called(title_or_id: str, roster: Roster) -> list[str]:
    """Return the roster's columns for assignments that have this title, this id, or both."""
    parts = ((name, CANVAS_TITLE.fullmatch(name)) for name in roster.others)
    columns = [(name, (name, part["title"], part["id"])) for name, part in parts if part]
    return [
        name for name, several in columns if title_or_id.casefold() in map(str.casefold, several)
    ]


def column_for(name: str, roster: Roster, remark: Remark) -> str:
    """Return the roster's column of an assignment, or its name, for a new column in Canvas."""
    if columns_called(name, roster):
        return own_column(name, roster)
    if roster.path:
        remark(f"no column of {roster.path} is called {name}: Canvas makes a new one (--column)")
    return name


def own_column(title_or_id: str, roster: Roster) -> str:
    """Return the roster's column of this name, title or id; raise ``UserError`` for none."""
    fitting = columns_called(title_or_id, roster)
    if len(fitting) == 1:
        return fitting[0]
    fault = "several columns are" if fitting else "no column is"
    titled = [name for name in roster.others if CANVAS_TITLE.fullmatch(name)]
    listed = ", ".join(map(one_line, fitting or titled)) or "none"
    raise UserError(f"--column: {fault} called {title_or_id} in {roster.path}; there are: {listed}")


def rows_by_student(
    roster: Roster, students: dict[str, Person], remark: Remark, trust: str = ""
) -> dict[str, list[str]]:
    """Return the roster's rows by student, in its order; ``remark`` hears who is missing.

    A student is known by the Canvas id in the gradebook, by login, SIS id or email address; where
    none of these is the same, by what stands before the @ of an address. Raises ``UserError`` if a
    row has the number of one student and the name of another.
    """
    columns = [n for n, name in enumerate(roster.who) if name in CANVAS_ID_COLUMNS]
    row_keys = {n: {row[c] for c in columns} for n, row in enumerate(roster.students)}
    student_keys = {s: {s, person.email, person.lms_id} for s, person in students.items()}
    exact = rows_of_students(row_keys, student_keys, same_id)
    rest = {s: keys for s, keys in student_keys.items() if s not in exact.values()}
    near = rows_of_students({n: k for n, k in row_keys.items() if n not in exact}, rest, local_part)
    for n, student in near.items():
        names = f"{one_line(student)} and {one_line(roster.students[n][0])}"
        remark(f"taken for the same by what stands before an @: {names}")
    pairs = with_names(exact | near, roster, students, trust)
    for n, row in enumerate(roster.students):
        if n not in pairs:
            remark(f"in the roster only, without a row: {one_line(row[0])}")
    if others := [one_line(s, 40) for s in students if s not in pairs.values()]:
        shown = ", ".join(others[:MAX_STUDENTS_NAMED])
        if len(others) > MAX_STUDENTS_NAMED:
            shown += ", …"
        remark(f"not in the roster, left out: {count(len(others), 'student')} ({shown})")
    return {pairs[n]: roster.students[n] for n in sorted(pairs)}


def with_names(
    pairs: dict[int, str], roster: Roster, students: dict[str, Person], trust: str
) -> dict[int, str]:
    """Return which row is whose (``pairs``), after checking each row's name too.

    Raises ``UserError`` where a name is another student's, unless ``trust`` says which is right.
    """
    names, matched, slips = NameIndex(), {}, []
    for student, person in students.items():
        if person.name:
            names.add(student, person.full_name, person.name)
    for n, student in pairs.items():
        row = roster.students[n]
        with_that_name = names.people_called(row[0])
        settled = settle_owner({student}, with_that_name, trust)
        if settled is None:
            cells = (
                cell
                for cell, head in zip(row, roster.who, strict=False)
                if head in CANVAS_ID_COLUMNS
            )
            number = one_line(", ".join(filter(None, cells)), 60)
            by_name = " or ".join(
                person_in_words(students[who]) for who in sorted(with_that_name)[:3]
            )
            place = f"{roster.path and roster.path.name}, the row of {one_line(row[0], 60)}"
            slips.append(
                Slip(place, number, "the name", person_in_words(students[student]), by_name)
            )
        elif len(settled) == 1:
            matched[n] = settled.pop()
    require_no_slip(slips, "nothing was written")
    return matched


def person_in_words(person: Person) -> str:
    """Return a student's id, name and address, as far as the gradebook has them."""
    return f"{one_line(person.id, 40)}, {one_line(person.full_name, 60)} (the gradebook)"


def rows_of_students(
    row_keys: dict[int, set[str]], student_keys: dict[str, set[str]], spelled: Callable[[str], str]
) -> dict[int, str]:
    """Return, by row number, the one student who shares a key with the row.

    Each student has one row. Keys are compared as ``spelled`` writes them.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    for student, keys in student_keys.items():
        for key in keys - {""}:
            owners[spelled(key)].add(student)
    matched: dict[int, str] = {}
    for n, keys in row_keys.items():
        fitting = [owners[spelled(key)] for key in keys - {""} if spelled(key) in owners]
        students = {student for who in fitting if len(who) == 1 for student in who}
        students -= set(matched.values())
        if len(students) == 1:
            matched[n] = students.pop()
    return matched


def local_part(key: str) -> str:
    """Return the part of an email address before the @; another key as it is."""
    return same_id(key).partition("@")[0]
