"""Feedback pages in a zip that Moodle or Canvas takes back, named as in its own download."""

import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from html import escape
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from attncourse.grading.course.choosing import HandedFile, Ungraded, choose_file
from attncourse.grading.course.folders import folders_in, read_record
from attncourse.grading.course.handed_in import (
    BROKEN_ARCHIVE_ERRORS,
    file_of_entry,
    is_put_in_by_student,
    unpack_notebook,
    unpacked_member,
)
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_bytes, zip_archive
from attncourse.grading.gradebook.read import Person
from attncourse.grading.harmless import one_line
from attncourse.grading.names import name_parts
from attncourse.grading.results.class_results import Remark

MOODLE = re.compile(r"(?P<key>(?P<who>[^/]+)_\d+)_assignsubmission_file(?:_?/|_(?=[^/]))")
CANVAS = re.compile(r"(?P<who>[^_/]+)(?:_LATE)?(?P<key>_\d+)_\d+_(?=[^/]+)")
PLATFORMS = {"moodle": MOODLE, "canvas": CANVAS}
GRADESCOPE = "submission_metadata.yml"  # in an export of its submissions


class StudentPage(NamedTuple):
    """A student, the notebook that they handed in, and their feedback page if there is one."""

    person: Person
    notebook: bytes | None
    content: str = ""

    @property
    def student(self) -> str:
        """Return the student's id."""
        return self.person.id


class Home(NamedTuple):
    """A student's place in a download: the path without the file's name, and the name in it.

    ``key`` is the same for all places of one student.
    """

    prefix: str
    who: str
    key: str


def give_back(
    course: Path, name: str, download: Path, pages: list[StudentPage], remark: Remark
) -> tuple[Path, int]:
    """Write the zip; return its path and the number of its pages. ``remark`` hears who has none.

    ``pages`` are those of the whole class: a place may be a student's who has no page, and is
    nobody else's then.
    """
    form, places = read_download(download, name)
    require_own_download(course, name, download, PLATFORMS[form])
    rows = read_record(course, name)
    groups = {s: row.get("group") or "" for s, row in rows.items()}
    pages, alone = one_a_group(pages, groups, remark)
    came_as = {
        s: download_place(row.get("handed_in_as") or "", PLATFORMS[form]) for s, row in rows.items()
    }
    homes = owners_of(places, pages, {s: p.key for s, p in came_as.items() if p and s in alone})
    written = [page for page in pages if page.content]
    owners = {p.student: homes[p.student] for p in written if p.student in homes}
    if not owners:
        raise UserError(f"none of these students is in {download}: is it {name}'s download?")
    files = []
    for page in written:
        if place := owners.get(page.student):
            files.append((f"{place.prefix}{name}.html", page.content, 0o644))
        else:
            remark(f"not in {download.name}, not to be given back: {one_line(page.student)}")
    for place in places:
        if place not in owners.values():
            remark(f"in {download.name} only, with no page: {one_line(place.who)}")
    path = course / "reports" / name / f"feedback-{form}.zip"
    return replace_bytes(path, zip_archive(files)), len(owners)


def one_a_group(
    pages: list[StudentPage], groups: dict[str, str], remark: Remark
) -> tuple[list[StudentPage], set[str]]:
    """Return the pages with one for each group, and the ids of the students whose pages these are.

    A group has one place in the download. If its pages differ in more than names, none is returned:
    it would be the others' as well.
    """
    written, others = [], defaultdict(list)
    for page in pages:
        group = groups.get(page.student, "")
        (others[group] if group and page.content else written).append(page)
    for group, members in others.items():
        if len({anonymous_page(page) for page in members}) == 1:
            written.append(members[0])
        else:
            students = ", ".join(one_line(page.student, 40) for page in members)
            remark(f"the pages of {one_line(group)} differ, give them back by hand: {students}")
    return written, {page.student for page in written}


def anonymous_page(page: StudentPage) -> str:
    """Return a page's text without the student's name and id."""
    shown_names = sorted(
        {escape(page.person.full_name), escape(page.student)}, key=len, reverse=True
    )
    return re.sub("|".join(map(re.escape, shown_names)), "", page.content)


def read_download(path: Path, name: str) -> tuple[str, dict[Home, set[bytes]]]:
    """Return a download's platform and, by students' places, digests of what was handed in.

    Of several files in a place, the one counts that grading would choose.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            for form, pattern in PLATFORMS.items():
                files: dict[str, dict[HandedFile, tuple[Home, zipfile.ZipInfo]]] = defaultdict(dict)
                for member in members:
                    filename = place_of_typed_work(member.filename)
                    if (place := download_place(filename, pattern)) is not None:
                        piece = file_of_entry(member, filename.partition(place.prefix)[2])
                        files[place.key][piece] = place, member
                if files:
                    return form, dict(counted_file(archive, each, name) for each in files.values())
            if any(PurePosixPath(m.filename).name == GRADESCOPE for m in members):
                raise UserError(
                    f"{path} is Gradescope's export, and Gradescope takes no pages back: students "
                    "see there what its autograder says (attncourse export "
                    f"{name} --format gradescope-autograder); pages for other ways are in feedback/"
                )
    except (OSError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read {path}: {reason}") from None
    raise UserError(
        f"{path} is not what Moodle or Canvas gives: expected names such as "
        "Ada Lovelace_123_assignsubmission_file/… or lovelaceada_123_456_…"
    )


def require_own_download(course: Path, name: str, download: Path, pattern: re.Pattern[str]) -> None:
    """Raise ``UserError`` where more notebooks in a download are another assignment's than its own.

    The students are the same, so that their pages would find a place there.
    """
    assignments = folders_in(course / "solutions")
    with zipfile.ZipFile(download) as archive:
        filenames = [m for m in archive.namelist() if m.endswith(".ipynb")]
    n_notebooks: Counter[str] = Counter()
    for filename in filenames:
        place = download_place(filename, pattern)
        handed = PurePosixPath(filename.rpartition(place.prefix)[2] if place else filename)
        likely = [a for a in assignments if handed.name.casefold().startswith(a.casefold())]
        n_notebooks.update([max(likely, key=len)] if likely else [])
    most = max(n_notebooks, key=lambda assignment: n_notebooks[assignment], default=name)
    if n_notebooks[most] > n_notebooks[name]:
        raise UserError(
            f"{download} is {most}'s: {n_notebooks[most]} notebooks in it are called so, and "
            f"{n_notebooks[name]} {name}; attncourse feedback {most} --download {download}"
        )


def download_place(filename: str, pattern: re.Pattern[str]) -> Home | None:
    """Return the student's place that a file of a download is in, or None."""
    for part in re.findall(r"[^/]+/?", place_of_typed_work(filename)):
        if match := pattern.match(part):
            return Home(match[0], match["who"], match["key"])
    return None


def place_of_typed_work(filename: str) -> str:
    """Return a file's name, changed to a file's place for work that was typed on Moodle itself.

    Moodle takes nothing back for that work.
    """
    return filename.replace("_assignsubmission_onlinetext", "_assignsubmission_file")


def counted_file(
    archive: zipfile.ZipFile, files: dict[HandedFile, tuple[Home, zipfile.ZipInfo]], name: str
) -> tuple[Home, set[bytes]]:
    """Return a student's place, and the digests of the file that counts there.

    Of an archive these are two, its own and that of the notebook in it. They are none where nobody
    can know which file counts, or can read it.
    """
    place = next(iter(files.values()))[0]
    with suppress(Ungraded, *BROKEN_ARCHIVE_ERRORS):
        if piece := choose_file([piece for piece in files if is_put_in_by_student(piece)], name):
            place, member = files[piece]
            data = unpacked_member(archive, member, name)
            return place, {sha256(data).digest(), sha256(unpack_notebook(data, name)[0]).digest()}
    return place, set()


def owners_of(
    places: dict[Home, set[bytes]], pages: list[StudentPage], came_as: dict[str, str]
) -> dict[str, Home]:
    """Return, by student, the place in the download that is theirs.

    A place is known by ``came_as``, from where work was collected, or by the notebook in it, or by
    its name. Of a notebook that several have, the place's name decides; it is never one whose name
    is another's. A place that may be several students' is left out; so ``pages`` have to be the
    whole class's.
    """
    files = {p.student: {sha256(p.notebook).digest()} if p.notebook else set() for p in pages}
    names = {
        p.student: name_spellings(p.person.full_name) | name_spellings(p.person.id) for p in pages
    }
    parts = {p.student: name_words(f"{p.person.full_name} {p.person.id}") for p in pages}
    place_names = {place: (name_spellings(place.who), name_words(place.who)) for place in places}
    students_named = {
        place: {s for s in names if spellings & names[s] or pieces & parts[s]}
        for place, (spellings, pieces) in place_names.items()
    }
    fits: tuple[Callable[[str, Home], bool], ...] = (
        lambda s, place: place.key == came_as.get(s),
        lambda s, place: bool(files[s] & places[place]) and s in students_named[place],
        lambda s, place: bool(files[s] & places[place]) and not students_named[place],
        lambda s, place: bool(place_names[place][0] & names[s]),
    )
    homes: dict[str, Home] = {}
    for fit in fits:  # the surest first: a place that it gives to one student is no other's
        students_left = [s for s in names if s not in homes]
        free_places = [place for place in places if place not in homes.values()]
        homes |= unambiguous_pairs(
            [(s, place) for s in students_left for place in free_places if fit(s, place)]
        )
    return homes


def unambiguous_pairs(fitting: list[tuple[str, Home]]) -> dict[str, Home]:
    """Return, as a dict, the pairs whose student and whose place are in no other pair."""
    students = Counter(student for student, _ in fitting)
    places = Counter(place for _, place in fitting)
    return {s: place for s, place in fitting if students[s] == 1 and places[place] == 1}


def name_spellings(name: str) -> set[str]:
    """Return a name without signs in two spellings: words in alphabetical order, and as they are.

    Canvas writes the last name before the first and no sign between them.
    """
    words = name_parts(name)
    return {"".join(words), "".join(words[-1:] + words[:-1]), " ".join(sorted(words))} - {""}


def name_words(name: str) -> set[str]:
    """Return the words of a name, without initials."""
    return {word for word in name_parts(name) if len(word) > 1}
