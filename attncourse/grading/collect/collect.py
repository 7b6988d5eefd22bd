"""Collecting: the latest attempt of each student is put where grading finds it, with its time.

What was there before is moved to ``submitted/.before``, never overwritten. What came from where is
kept in ``submitted/.collected/ASSIGNMENT.csv``.
"""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from attncourse.grading.collect.attempts import Chosen, HandIn, attempts_in_order, choose_attempt
from attncourse.grading.collect.groups import GROUPS_FILE, with_groups
from attncourse.grading.collect.owners import is_anonymous
from attncourse.grading.collect.roster import Class, Member, read_rosters, with_known_ids
from attncourse.grading.collect.schemes import claim_of_path
from attncourse.grading.collect.sort import Left, Sorting
from attncourse.grading.course import folders
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.course.dates import Zone, moment_in_stamp, moment_in_tables, zone_of
from attncourse.grading.course.forgotten import Forgotten
from attncourse.grading.course.handed_in import find_notebook
from attncourse.grading.course.late import time_in_stamp
from attncourse.grading.course.settings import read_settings
from attncourse.grading.driver.journal import only_process
from attncourse.grading.errors import Unreadable, UserError
from attncourse.grading.files import explained_file_errors, replace_bytes, replace_file
from attncourse.grading.gradebook.connection import gradebook_to_read
from attncourse.grading.gradebook.read import Person, has_gradebook, read_people
from attncourse.grading.harmless import one_line
from attncourse.grading.report import count
from attncourse.grading.results.grade_questions import QUESTION_FILE, keep_question
from attncourse.grading.slips import require_no_slip, require_trust
from attncourse.grading.spreadsheet import csv_table
from attncourse.grading.submission.notebook import read_submission_cells

NEW, SAME, REPLACED, OLDER = "new", "as before", "replaced", "kept: older"
BLANKS = b" \t\r\n\x00\xef\xbb\xbf\xff\xfe"  # and the marks before a text of some encodings
ASKS_UNKNOWN = (
    "asks about a grade, and is nobody of the class: name it with --roster if it is somebody's "
    "other name"
)
MIN_STRANGERS = 3  # in a download of whom none is on the roster: it is another class's
RECORD_HEAD = (
    *("student", "platform", "number", "handed_in_as", "handed_in_at", "collected_at", "done"),
    "group",
)


@dataclass
class Collected:
    """The result of collecting: rows of students, files of nobody, and who handed in nothing.

    ``new`` are students whom the class did not have, ``absent`` those on the roster without a file.
    """

    rows: list[Chosen] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    zone: Zone = None


def collect_downloads(
    course: Path,
    name: str,
    files: Iterable[Path],
    roster: Path | Iterable[Path] | None = None,
    db: str | None = None,
    groups: Path | None = None,
    trust: str = "",
) -> Collected:
    """Put each student's latest attempt at an assignment to ``submitted/STUDENT/ASSIGNMENT/``.

    What a group has handed in is each of its members'. Of several rosters the first names the ids,
    and the others add what they know of the same people. A number and a name of two people raise
    ``UserError``, unless ``trust`` says which is right.
    """
    require_trust(trust)
    assignments = folders.folders_in(course / "solutions")
    folders.require_known(name, assignments)
    zone = zone_of(read_settings(course))
    rosters = [roster] if isinstance(roster, Path) else list(roster or ())
    members = read_rosters(rosters, trust)
    people = class_to_collect_for(course, members, db, closed=bool(roster), trust=trust)
    if groups or (course / GROUPS_FILE).is_file():
        people = with_groups(people, groups or course / GROUPS_FILE, name)
    collected = Collected(zone=zone)
    collected.remarks += [
        f"{path} has no names: whose a file is, its numbers and ids alone say"
        for path in rosters
        if not any(
            member.full_names for member in members if member.row.startswith(f"{path.name}, ")
        )
    ]
    sorting = Sorting(name, people, collected.left, collected.remarks)
    with ExitStack() as stack:
        stack.enter_context(only_process(course / "reports" / name, ""))  # or grading finds half
        for drop, path in enumerate(files):
            sorting.add_download(path, drop, stack)
        require_no_slip(sorting.slips, "nothing was collected")
        require_this_class(sorting, rosters)
        drop_forgotten(sorting, Forgotten(course))
        sorting.leave_namesakes()
        keep_grade_questions(course, sorting)
        every_attempt = attempts_of_all(sorting, zone)
        aside = course / "submitted" / ".before" / f"{datetime.now(UTC):%Y-%m-%d_%H-%M-%S-%f}"
        for attempts in every_attempt:
            try:
                chosen = choose_attempt(attempts, name, assignments)
            except Ungraded as problem:
                sorting.leave(attempts[-1].files[0].item.shown, str(problem))
                continue
            collected.rows.append(write_attempt(course, name, chosen, aside, zone))
        update_record(course, name, collected.rows, zone)
    collected_ids = {row.student for row in collected.rows}
    collected.new = sorted(collected_ids - set(people.members))
    forgotten = Forgotten(course)
    absent = (m.person for m in people.members.values() if roster and m.id not in collected_ids)
    collected.absent = sorted(p.id for p in absent if not forgotten.has_id(p.id, p.email, p.lms_id))
    return collected


def attempts_of_all(sorting: Sorting, zone: Zone) -> list[list[HandIn]]:
    """Return each student's attempts, by student; who has none is left out."""
    every_attempt = []
    for student, owned in sorted(sorting.owned.items()):
        member = sorting.people.members.get(student)
        if attempts := attempts_in_order(owned, member, zone, sorting.remarks):
            every_attempt.append(attempts)
    return every_attempt


def drop_forgotten(sorting: Sorting, forgotten: Forgotten) -> None:
    """Take out what forgotten people have handed in; a remark says how many files, and no name."""
    number = 0
    for student, files in list(sorting.owned.items()):
        member = sorting.people.members.get(student)
        ids = (member.person.email, member.person.lms_id) if member else ()
        unknown = () if member else files[0].claim.names
        if forgotten.has_id(student, *ids) or forgotten.has_name(*unknown):
            number += len(sorting.owned.pop(student))
    if number:
        sorting.remarks.append(
            f"{count(number, 'file')} of people who were forgotten: not collected; "
            "attncourse forget ID --back lets one in again"
        )


def keep_grade_questions(course: Path, sorting: Sorting) -> None:
    """Take out files with questions on a grade, and put them beside the students' feedback."""
    number = 0
    for student, files in list(sorting.owned.items()):
        question_files = [
            asked_file
            for asked_file in files
            if QUESTION_FILE.fullmatch(asked_file.claim.file.name)
        ]
        members = sorting.people.members
        is_known = not members or student in members or len(files) > len(question_files)
        for asked_file in question_files:
            files.remove(asked_file)
            if not is_known:
                sorting.leave(asked_file.item.shown, f"{one_line(student, 60)} {ASKS_UNKNOWN}")
                continue
            try:
                data = asked_file.item.read()
                if not data.strip(BLANKS):
                    raise Ungraded("an empty file: it asks nothing")
                number += keep_question(course, sorting.name, student, data)
            except (Ungraded, UserError) as problem:
                sorting.leave(asked_file.item.shown, str(problem))
        if not files:
            del sorting.owned[student]
    if number:
        sorting.remarks.append(
            f"{count(number, 'file')} with questions on the grade: attncourse questions "
            f"{sorting.name}"
        )


def require_this_class(sorting: Sorting, rosters: list[Path]) -> None:
    """Raise ``UserError`` if nobody of a download is on the roster, and it is another class's.

    That it is where ``MIN_STRANGERS`` people or more are like nobody there. Who is anonymous, or
    has no number of the platform's, does not count. ``rosters`` are named in the message.
    """
    if not sorting.people.closed or sorting.owned:
        return
    strangers = {
        (owner_claim.platform, owner_claim.key)
        for left_file in sorting.left
        if (owner_claim := claim_of_path(PurePosixPath(left_file.path), sorting.name))
        and owner_claim.number
        if not is_anonymous(owner_claim.names[0])
        and not sorting.people.ids_with_similar_name(owner_claim.names[0])
    }
    if len(strangers) >= MIN_STRANGERS:
        paths = ", ".join(str(path) for path in rosters)
        raise UserError(
            f"none of the {len(strangers)} people in this download is one of the "
            f"{len(sorting.people.members)} on {paths}: is it another term's or another course's?"
        )


def class_to_collect_for(
    course: Path, roster_members: list[Member], db: str | None, *, closed: bool, trust: str = ""
) -> Class:
    """Return the class: whom the roster lists or, without one, whom gradebook and folders know."""
    recorded: list[Person] = []
    if has_gradebook(course, db):
        with gradebook_to_read(course, db) as connection:
            recorded = read_people(connection)
    if closed:
        members = with_known_ids(roster_members, recorded, trust)
    else:
        people = (*recorded, *map(Person, folders.folders_in(course / "submitted")))
        members = [Member(person) for person in people]
    by_id: dict[str, Member] = {}
    for member in members:
        before = by_id.get(member.id, member)
        by_id[member.id] = before.merged_with(member) or before
    return Class(by_id, closed, trust)


def write_attempt(course: Path, name: str, chosen: Chosen, aside: Path, zone: Zone) -> Chosen:
    """Write an attempt, unless the file that is there is the same or newer; return what was done.

    What was there before is moved to the folder ``aside``.
    """
    place = course / "submitted" / chosen.student / name
    target, before = place / chosen.called, time_in_stamp(folders.timestamp_in(place), zone)
    row = chosen._replace(done=NEW)
    if target.is_file() and not target.is_symlink() and target.read_bytes() == chosen.data:
        row = chosen._replace(done=SAME, time=chosen.time or before)
        if row.time == before:
            return row
    elif chosen.time and before and chosen.time < before:
        return chosen._replace(done=OLDER)
    elif os.path.lexists(place):
        former = aside.relative_to(course) / chosen.student / name
        why_worse = why_ungradable(chosen.data)
        if why_worse and not is_gradable(course, name, chosen.student):
            why_worse = ""
        row = chosen._replace(done=REPLACED, aside=str(former), why_worse=why_worse)
        with explained_file_errors(aside):
            (aside / chosen.student).mkdir(parents=True)
            os.replace(place, aside / chosen.student / name)
    replace_bytes(target, chosen.data)
    if row.time:
        replace_file(place / "timestamp.txt", moment_in_stamp(row.time) + "\n")
    return row


def why_ungradable(data: bytes) -> str:
    """Return why a file is no notebook that can be graded; "" where it is one."""
    try:
        read_submission_cells(data)
    except Unreadable as problem:
        return str(problem)
    return ""


def is_gradable(course: Path, name: str, student: str) -> bool:
    """True if what lies in a student's folder can be graded."""
    home = course / "submitted" / student
    try:
        data, _, _ = find_notebook(home, name, course / "solutions")
    except (Ungraded, OSError):
        return False
    return not why_ungradable(data)


def update_record(course: Path, name: str, rows: Iterable[Chosen], zone: Zone) -> None:
    """Write the record of what was collected, these rows in place of the same students' earlier."""
    record, now = folders.read_record(course, name), moment_in_tables(zone, datetime.now(UTC))
    for row in rows:
        owned, moment = row.owned, moment_in_tables(zone, row.time) if row.time else ""
        origin = (owned.claim.platform, owned.claim.number, owned.item.shown, moment)
        cells = (row.student, *origin, now, row.done, owned.group)
        record[row.student] = dict(zip(RECORD_HEAD, cells, strict=True))
    if not record:
        return
    lines = [[record[student].get(head, "") for head in RECORD_HEAD] for student in sorted(record)]
    replace_file(folders.record_path(course, name), csv_table([RECORD_HEAD, *lines]))
