"""Forgetting a person: removing all that a course's folder and its gradebook hold of them."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from attncourse.grading.collect.columns import columns_of
from attncourse.grading.collect.groups import GROUPS_FILE
from attncourse.grading.course.extensions import EXTENSIONS_FILE
from attncourse.grading.course.folders import folders_in
from attncourse.grading.course.forgotten import Forgotten
from attncourse.grading.driver.journal import (
    DAMAGED_JOURNAL,
    only_process,
    remove_student_results,
    students_in_journal,
)
from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors, replace_file
from attncourse.grading.gradebook.connection import find_gradebook, gradebook_to_read
from attncourse.grading.gradebook.read import Person, has_gradebook, read_people
from attncourse.grading.gradebook.students import (
    empty_comments,
    remove_student,
    student_records,
)
from attncourse.grading.harmless import one_line
from attncourse.grading.names import NameIndex, did_you_mean, same_id
from attncourse.grading.report import count
from attncourse.grading.results.totals import WEIGHTS_FILE
from attncourse.grading.spreadsheet import csv_table, line_of_cell, rows_in

MADE_AGAIN = ("*.html", "feedback-*.zip")  # of a class, by a command
# "name" is among them: its column holds the id of who has no name.
PERSON_FIELDS = ("id", "email", "number", "other", "name")


@dataclass(frozen=True)
class Trace:
    """A file or record that names a person: its place, what is in it, and how to remove that."""

    place: Path
    description: str
    remove: Callable[[], object]

    def __str__(self) -> str:
        """Return the line that the command shows."""
        return f"{self.place}: {self.description}"


@dataclass(frozen=True)
class Wanted:
    """The person to forget, as the gradebook has them, and the names that files may have."""

    person: Person

    @property
    def ids(self) -> set[str]:
        """Return the ids by which lists may name the person, as ``same_id`` writes them."""
        person = self.person
        return {same_id(key) for key in (person.id, person.email, person.lms_id) if key}

    @property
    def words(self) -> list[str]:
        """Return the texts by which files may name the person, the id first."""
        person = self.person
        name = person.full_name if person.last_name and person.first_name else ""
        return [word for word in (person.id, person.email, name, person.name and name) if word]

    def names(self, text: str) -> bool:
        """True if a text has the person's id, address or whole name in it as words of their own."""
        return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in self.words)


def find_person(course: Path, student: str, db: str | None = None) -> Person:
    """Return the person of an id that the gradebook or files have; raise ``UserError`` for none."""
    known: dict[str, Person] = {}
    if has_gradebook(course, db):
        with gradebook_to_read(course, db) as connection:
            known = {person.id: person for person in read_people(connection)}
    if student in known or student in people_in_files(course):
        return known.get(student, Person(student))
    names = NameIndex()
    for person in known.values():
        names.add(person.id, person.full_name, person.name)
    called = " or ".join(sorted(names.people_called(student)))
    hint = f"; did you mean {called}?" if called else did_you_mean(student, known)
    if Forgotten(course).has_id(student):
        raise UserError(f"{student} was forgotten already: there is nothing left here")
    raise UserError(f"there is nothing of a student called {student}{hint}")


def people_in_files(course: Path) -> set[str]:
    """Return the ids of all whose folder, report or journal entry there is."""
    people = {
        name
        for folder in ("submitted", "autograded", "feedback", *folders_aside(course))
        for name in folders_in(course / folder)
    }
    for name in folders_in(course / "reports"):
        place = course / "reports" / name
        people |= {path.stem for path in place.glob("[!.]*.json")}
        people |= set(folders_in(place / "gradescope"))
        people |= {student for listed in students_in_journal(place).values() for student in listed}
    return people


def folders_aside(course: Path) -> list[str]:
    """Return the folders to which collecting has moved earlier hand-ins, relative to the course."""
    return [f"submitted/.before/{path.name}" for path in (course / "submitted/.before").glob("*")]


def person_traces(
    course: Path, person: Person, db: str | None = None, *, keep_grade: bool = False
) -> list[Trace]:
    """Return what there is of a person, the gradebook last, since it has their other names."""
    who = Wanted(person)
    traces = [
        *traces_in_folders(course, who),
        *traces_in_reports(course, who),
        *traces_in_lists(course, who),
    ]
    if has_gradebook(course, db):
        book = find_gradebook(course, db)
        if records := student_records(book, person.id):
            if keep_grade:
                what_is_removed = f"comments ({records} stays, without them)"
                traces.append(
                    Trace(
                        Path(str(book)), what_is_removed, partial(empty_comments, book, person.id)
                    )
                )
            else:
                traces.append(
                    Trace(Path(str(book)), records, partial(remove_student, book, person.id))
                )
    return traces


def traces_in_folders(course: Path, who: Wanted) -> Iterator[Trace]:
    """Yield the person's submissions, graded notebooks and feedback."""
    student = who.person.id
    folders = ["submitted", "autograded", "feedback", *folders_aside(course)]
    exports = [f"reports/{name}/gradescope" for name in folders_in(course / "reports")]
    for folder in (*folders, *exports):
        place = course / folder / student
        if place.is_symlink() or place.is_file():
            yield Trace(place, "1 file", place.unlink)
        elif place.is_dir():
            number = sum(path.is_file() for path in place.rglob("*"))
            yield Trace(place, count(number, "file"), partial(shutil.rmtree, place))


def traces_in_reports(course: Path, who: Wanted) -> Iterator[Trace]:
    """Yield reports on the person, their journal entries, and files that a command makes again."""
    student = who.person.id
    for name in folders_in(course / "reports"):
        folder = course / "reports" / name
        if (report := folder / f"{student}.json").is_file():
            yield Trace(report, "the report", report.unlink)
        for journal, students in students_in_journal(folder).items():
            if number := students.count(student):
                remove = partial(remove_student_results, journal, student)
                yield Trace(journal, count(number, "result"), remove)
        for path in sorted(folder.glob(f"{DAMAGED_JOURNAL}*")):
            if file_mentions(path, who):
                yield Trace(path, "a damaged journal, of which another was made", path.unlink)
        for pattern in MADE_AGAIN:
            for path in sorted(folder.glob(pattern)):
                if file_mentions(path, who):
                    yield Trace(path, "names the person; a command makes it again", path.unlink)


def traces_in_lists(course: Path, who: Wanted) -> Iterator[Trace]:
    """Yield the person's rows in the tables that collecting, extending and exporting write."""
    places = [course / EXTENSIONS_FILE, course / GROUPS_FILE, course / WEIGHTS_FILE]
    places += sorted((course / "submitted" / ".collected").glob("*.csv"))
    places += sorted((course / "reports").rglob("*.csv"))
    for path in places:
        if not path.is_file():
            continue
        rows = rows_in(path)
        remaining = without_rows(rows, who)
        if remaining != rows:
            text = csv_table([[line_of_cell(cell) for cell in row] for row in remaining])
            gone = (
                count(len(rows) - len(remaining), "row") if len(remaining) < len(rows) else "a name"
            )
            yield Trace(path, gone, partial(replace_file, path, text))


def without_rows(rows: list[list[str]], who: Wanted) -> list[list[str]]:
    """Return a table's rows without the person's, and without their cells in others' rows.

    A row that says who is excused is an assignment's: it stays, without them.
    """
    if not rows:
        return rows
    head, *body = rows
    columns = columns_of(head, body)
    members = [n for n, cell in enumerate(head) if re.match("member|student", cell.strip(), re.I)]
    excused = {n for n, cell in enumerate(head) if cell.strip().casefold() == "excused"}
    id_columns = sorted(
        {n for kind in PERSON_FIELDS for n in columns[kind]} | set(members) | excused
    )
    remaining = [head]
    for row in body:
        new = list(row)
        for n in (n for n in id_columns if n < len(row)):
            people = [identifier.strip() for identifier in row[n].split(";")]
            remaining_people = [
                identifier
                for identifier in people
                if same_id(line_of_cell(identifier)) not in who.ids
            ]
            if len(remaining_people) < len(people):
                new[n] = "; ".join(remaining_people)
        others = [new[n] for n in members if n < len(new) and new[n]]
        elsewhere = any(new[n] != row[n] for n in range(len(row)) if n not in excused)
        if not elsewhere or (len(members) > 1 and others):
            remaining.append(new)
    return remaining


def file_mentions(path: Path, who: Wanted) -> bool:
    """True if a file, or one in an archive, has the person's id, address or name in it."""
    with explained_file_errors(path, doing="read"):
        data = path.read_bytes()
    texts = [data.decode("utf-8", "replace")]
    if path.suffix == ".zip":
        try:
            with ZipFile(path) as archive:
                texts = [name.replace("_", " ") for name in archive.namelist()]
                texts += [
                    archive.read(member).decode("utf-8", "replace") for member in archive.infolist()
                ]
        except BadZipFile:
            return True
    words = [*who.words, *map(escape, who.words)]
    return any(who.names(text) or any(word in text for word in words[1:]) for text in texts)


def left_alone(course: Path, person: Person) -> list[str]:
    """Return the instructor's own files in the course's folder that name the person."""
    who, known_files = Wanted(person), {EXTENSIONS_FILE, GROUPS_FILE, WEIGHTS_FILE, "gradebook.db"}
    names = []
    for path in sorted(course.iterdir()):
        is_list = path.suffix in (".csv", ".zip", ".log") or path.name.startswith("gradebook.db.")
        if path.is_file() and is_list and path.name not in known_files and file_mentions(path, who):
            names.append(path.name)
    return names


def forget_person(course: Path, person: Person, traces: list[Trace]) -> None:
    """Remove these traces of a person, and note that nothing is to enter them again."""
    ids = (person.email, person.lms_id)
    with ExitStack() as stack:
        for name in folders_in(course / "reports"):
            stack.enter_context(only_process(course / "reports" / name, ""))
        names = [person.full_name, person.name] if person.name else []
        Forgotten(course).add(person.id, ids, names)
        for trace in traces:
            with explained_file_errors(trace.place, doing="remove"):
                trace.remove()


def take_back(course: Path, student: str) -> None:
    """Let a forgotten person take part again; raise ``UserError`` for somebody else."""
    if not Forgotten(course).take_back(student):
        raise UserError(f"no {one_line(student, 60)} was forgotten: there is nothing to take back")
