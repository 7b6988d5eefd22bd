"""Feedback pages in a zip that Moodle or Canvas takes back, under the names of its own download.

Moodle finds the student in a part of the path that begins FULLNAME_NUMBER_assignsubmission_file:
a folder since 3.1, which ends in _ up to 4.0, before that the file itself. Every file in the zip
becomes a feedback file. See MoodleDocs, "Using Assignment", "Upload multiple feedback files as a
zip", and mod/assign/feedback/file/importziplib.php.

Canvas takes the first two numbers between underscores for the student's and the file's, in names
such as lovelaceada_LATE_123_456_05_kqv.ipynb, and attaches the file to a comment under the name
of the file that was handed in. See its Instructor Guide, "How do I upload all student submissions
for an assignment?", and infer_comment_context_from_filename in app/models/assignment.rb.
"""

import re
import unicodedata
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from attncourse.grading.class_.results import Result
from attncourse.grading.class_.scores import Person
from attncourse.grading.course.collected import record_of
from attncourse.grading.course.handed_in import Ungraded, unpacked, unpacked_member
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_bytes
from attncourse.grading.harmless import one_line

MOODLE = re.compile(r"(?P<owner>(?P<who>[^_/]+)_\d+_assignsubmission_file)(?P<rest>_?/|_(?=[^/]))")
CANVAS = re.compile(r"(?P<owner>(?P<who>[^_/]+)(?:_LATE)?_\d+_\d+)(?P<rest>_)[^/]+")
FORMS = {"moodle": MOODLE, "canvas": CANVAS}
DAY = (1980, 1, 1, 0, 0, 0)  # of all files, so that the same pages are the same zip


class Page(NamedTuple):
    """A student's page, and the notebook that it is about."""

    result: Result
    notebook: bytes | None
    content: str

    @property
    def student(self) -> str:
        return self.result.student


class Place(NamedTuple):
    """Where a download has a student's files: the path without the file's name, and whose it is."""

    prefix: str
    who: str


def give_back(
    course: Path, name: str, download: Path, pages: list[Page], remark: Callable[[str], None]
) -> tuple[Path, int]:
    """Writes the zip; its path, and how many pages are in it. Who has no place in it is told."""
    form, places = read_download(download, name)
    came_as = {s: row.get("handed_in_as") or "" for s, row in record_of(course, name).items()}
    owners = owners_of(places, pages, came_as)
    if not owners:
        raise UserError(f"none of these students is in {download}: is it {name}'s download?")
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for page in pages:
            place = owners.get(page.student)
            if place is None:
                remark(f"not in {download.name}, not to be given back: {one_line(page.student)}")
                continue
            info = zipfile.ZipInfo(f"{place.prefix}{name}.html", DAY)
            info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, page.content)
    for place in places:
        if place not in owners.values():
            remark(f"in {download.name} only, with no page: {one_line(place.who)}")
    path = course / "reports" / name / f"feedback-{form}.zip"
    return replace_bytes(path, made.getvalue()), len(owners)


def read_download(path: Path, name: str) -> tuple[str, dict[Place, set[bytes]]]:
    """Which platform a download is of, and for each place in it what files there are."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            for form, pattern in FORMS.items():
                places: dict[Place, set[bytes]] = defaultdict(set)
                for member in members:
                    if (place := place_of(member.filename, pattern)) is not None:
                        places[place] |= contents(archive, member, name)
                if places:
                    return form, dict(places)
    except (OSError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read {path}: {reason}") from None
    raise UserError(
        f"{path} is not what Moodle or Canvas gives: expected names such as "
        "Ada Lovelace_123_assignsubmission_file/… or lovelaceada_123_456_…"
    )


def place_of(filename: str, pattern: re.Pattern[str]) -> Place | None:
    """Where a file of a download stands. Folders around the student's are left away."""
    for part in re.findall(r"[^/]+/?", filename):
        if found := pattern.match(part):
            return Place(found["owner"] + found["rest"], found["who"])
    return None


def contents(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> set[bytes]:
    """The digests of a file and, where that is an archive, of the notebook in it."""
    try:
        data = unpacked_member(archive, member, name)
        return {sha256(data).digest(), sha256(unpacked(data, name)[0]).digest()}
    except (Ungraded, zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, zlib.error):
        return set()


def owners_of(
    places: dict[Place, set[bytes]], pages: list[Page], came_as: dict[str, str]
) -> dict[str, Place]:
    """Each student's place: where it was collected from, or what holds the same notebook, or name.

    ``came_as`` are the paths that submissions were collected by. What fits several is left out.
    """
    files = {p.student: {sha256(p.notebook).digest()} if p.notebook else set() for p in pages}
    fits: tuple[Callable[[Page, Place], bool], ...] = (
        lambda page, place: place.prefix in came_as.get(page.student, ""),
        lambda page, place: bool(files[page.student] & places[place]),
        lambda page, place: bool(spelled(place.who) & spellings(page.result.person)),
    )
    found: dict[str, Place] = {}
    for fit in fits:
        rest = [page for page in pages if page.student not in found]
        free = [place for place in places if place not in found.values()]
        found |= pairs([(p.student, place) for p in rest for place in free if fit(p, place)])
    return found


def pairs(fitting: list[tuple[str, Place]]) -> dict[str, Place]:
    """Those of the pairs whose student and place are in no other."""
    students = Counter(student for student, _ in fitting)
    places = Counter(place for _, place in fitting)
    return {s: place for s, place in fitting if students[s] == 1 and places[place] == 1}


def spellings(person: Person) -> set[str]:
    """How a platform may write a person's name, from the gradebook or from the folder's name."""
    return spelled(person.full_name) | spelled(person.id)


def spelled(name: str) -> set[str]:
    """A name without accents and signs, with its words in order of the alphabet and as they are.

    Canvas writes the last name before the first and no sign between them.
    """
    plain = unicodedata.normalize("NFKD", name).casefold()
    words = re.findall(r"[^\W_]+", "".join(c for c in plain if not unicodedata.combining(c)))
    return {"".join(words), "".join(words[-1:] + words[:-1]), " ".join(sorted(words))} - {""}
