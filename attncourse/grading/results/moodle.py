"""Grades as Moodle imports them.

"The import file format is the same as the corresponding export format": a column that identifies
the user (email address, username or ID number), and for each grade item its grade and, because
feedback without a grade takes the grade away, both. Text is UTF-8. See MoodleDocs, "Grade import",
https://docs.moodle.org/en/Grade_import.

What Moodle's importer does with a file (grade/import/csv/classes/load_data.php) decides what is
left out here: one user it does not know stops the whole import, and a row without an identifier
goes to the student of the row before it.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from html import escape

from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.read import Person
from attncourse.grading.harmless import one_line
from attncourse.grading.report import shown_mistakes
from attncourse.grading.results.class_results import ClassResults, Remark, StudentResult, people_in
from attncourse.grading.spreadsheet import Rows, Value, csv_cell

IDENTIFIERS = {
    "email": ("Email address", lambda person: person.email),
    "username": ("Username", lambda person: person.id),
    "idnumber": ("ID number", lambda person: person.lms_id),
}
FORMULA_SIGNS = re.compile(r"(?:^|(?<=;))(?:\s*[=+@-])+", re.MULTILINE)
MAX_GRADE = 100  # a grade above it needs the site's setting "unlimited grades"


def moodle_rows(classes: list[ClassResults], remark: Remark, identifier: str | None = None) -> Rows:
    """Return rows for Moodle: the head, then each student with grades and feedback."""
    identifier = identifier or "username"
    if identifier not in IDENTIFIERS:
        raise UserError(f"--id: expected one of {', '.join(IDENTIFIERS)}, got {identifier}")
    label, value_of = IDENTIFIERS[identifier]
    identifiers = identifiers_by_student(people_in(classes), value_of, label, remark)
    if not identifiers:
        raise UserError(f"no student has a usable {label} in the gradebook: try another --id")
    head: list[Value] = [label]
    for results_of_class in classes:
        head += [
            f"{results_of_class.assignment} (Real)",
            f"{results_of_class.assignment} (Feedback)",
        ]
        if max((r.score for r in results_of_class.results), default=0) > MAX_GRADE:
            where = results_of_class.assignment
            remark(f"{where}: Moodle takes grades above {MAX_GRADE} only if it is told to")
    body: Rows = []
    for student, name in identifiers.items():
        row: list[Value] = [name]
        for results_of_class in classes:
            r = results_of_class.by_student.get(student)
            row += [r.score if r else None, moodle_feedback(r) if r else ""]
        body.append(row)
    return [head, *body]


def identifiers_by_student(
    students: dict[str, Person], value_of: Callable[[Person], str], label: str, remark: Remark
) -> dict[str, str]:
    """Return the identifier of each student who has one that nobody else has.

    ``remark`` hears of the others; ``label`` is what the identifier is called.
    """
    values = {student: value_of(person).strip() for student, person in students.items()}
    owners: dict[str, list[str]] = defaultdict(list)
    identifiers = {}
    for student, value in values.items():
        owners[value].append(student)
    for student, value in values.items():
        if value in ("", "0"):  # PHP takes "0" for empty
            remark(f"{one_line(student)} is left out: no {label} in the gradebook")
        elif len(owners[value]) > 1:
            if owners[value][0] == student:
                sharing = ", ".join(map(one_line, owners[value]))
                remark(f"{sharing} are left out: they have the same {label}, {one_line(value)}")
        elif csv_cell(value) != value or one_line(value) != value or "\\" in value:
            remark(f"{one_line(student)} is left out: the {label} is not one that Moodle knows")
        else:
            identifiers[student] = value
    return identifiers


def moodle_feedback(r: StudentResult) -> str:
    """Return a student's feedback as HTML that Moodle accepts.

    A submission's own markup is not in it. Backslashes are written as entities, because PHP reads
    one before a quote as an escape; so are signs with which a spreadsheet could begin a formula.
    """
    lines = shown_mistakes(r.mistakes)
    if r.lateness:
        lines.append(r.lateness)
    if r.waits:
        lines += [*r.notes, r.waits]
    else:
        lines += r.notes
    text = "\n".join(one_line(line) for line in lines)
    text = escape(text).replace("\\", "&#92;")
    return FORMULA_SIGNS.sub(lambda run: re.sub(r"\S", lambda c: f"&#{ord(c[0])};", run[0]), text)
