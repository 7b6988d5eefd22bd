"""Files of a platform's download reach their owners: the latest attempt, with its time."""

import io
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from attncourse.grading.collect import drops, sort
from attncourse.grading.collect.collect import collect_downloads
from attncourse.grading.collect.owners import (
    NEAR_NAME_HINT,
    ROSTER_HINT,
    ROSTER_WITH_NUMBERS_HINT,
    SHOW_NAMES_HINT,
    SPELLING_HINT,
    single_owner,
)
from attncourse.grading.collect.roster import (
    Class,
    Member,
    read_roster,
    with_known_ids,
)
from attncourse.grading.collect.schemes import claim_of_path
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.course.folders import read_record, read_submission
from attncourse.grading.course.handed_in import MAX_BYTES_OF_FILE
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.read import Person
from helpers import platform_downloads
from helpers.platform_downloads import CLASS, write_archive, zip_bytes
from helpers.small_class import refuses, run
from helpers.small_course import NAME, hand_in, make_course, small

FILE = f"{NAME}.ipynb"
RIGHT_NOTEBOOK = small()
ADA, ALAN, GRACE = CLASS[:3]
BERLIN_CONFIG = 'c = get_config()\nc.NbGraderAPI.timezone = "Europe/Berlin"\n'


def notebook_with_comment(text: object) -> bytes:
    """Return a right notebook that differs from others by this comment."""
    return small(add=f"def add(a, b):\n    return a + b  # {text}")


@pytest.fixture
def course(tmp_path) -> Path:
    make_course(tmp_path / "course")
    (tmp_path / "course" / "solutions" / "02_other").mkdir()
    (tmp_path / "course" / "nbgrader_config.py").write_text(BERLIN_CONFIG)
    return tmp_path / "course"


def write_roster(folder: Path, *lines: str, head: str = "id,last_name,first_name,email") -> Path:
    path = folder / "roster.csv"
    path.write_text("\n".join((head, *lines)))
    return path


def submitted_files(course: Path) -> dict[str, bytes]:
    """Return the files of submitted/ by path, without the hidden folders of ``collect``."""
    place = course / "submitted"
    paths = {path.relative_to(place): path for path in place.rglob("*") if path.is_file()}
    return {str(p): path.read_bytes() for p, path in paths.items() if p.parts[0][0] != "."}


def reasons_by_path(collection) -> dict[str, str]:
    """Return why each file was left out of a collection."""
    return {file.path: file.reason for file in collection.left}


# --- whose a file is ----------------------------------------------------------------------------

MOODLE_FOLDER = "Ada Lovelace_1234567_assignsubmission_file"
CANVAS_CLAIM = ("canvas", "lovelaceada", "12345", FILE)
CLAIMS = {
    f"{MOODLE_FOLDER}/{FILE}": ("moodle", "Ada Lovelace", "1234567", FILE),
    f"{MOODLE_FOLDER}_/a/{FILE}": ("moodle", "Ada Lovelace", "1234567", f"a/{FILE}"),
    f"group/{MOODLE_FOLDER}_{FILE}": ("moodle", "Ada Lovelace", "1234567", FILE),
    f"lovelaceada_12345_67890_{NAME}-1.ipynb": (
        "canvas",
        "lovelaceada",
        "12345",
        f"{NAME}-1.ipynb",
    ),
    f"lovelaceada_LATE_12345_67890_{FILE}": CANVAS_CLAIM,
    "lovelace_ada_late_12345_67890_a_1_2_b.zip": ("canvas", "lovelace_ada", "12345", "a_1_2_b.zip"),
    "lovelaceada_12345_text.html": ("canvas", "lovelaceada", "12345", "text.html"),
    f"x/ada/{NAME}/{FILE}": ("nbgrader", "ada", "", FILE),
    f"ada+b+{NAME}+2026-10-12 21:59:00 UTC+Zx/{FILE}": ("nbgrader", "ada+b", "", FILE),
    f"ada/{FILE}": ("", "ada", "", FILE),
    f"ada_{NAME} (2).ipynb": ("", "ada", "", f"ada_{NAME} (2).ipynb"),
    f"{NAME}-ada.ipynb": ("", "ada", "", f"{NAME}-ada.ipynb"),
}


@pytest.mark.parametrize("path", CLAIMS)
def test_a_path_says_whose_a_file_is(path):
    claim = claim_of_path(PurePosixPath(path), NAME)
    assert (claim.platform, claim.names[0], claim.number, str(claim.file)) == CLAIMS[path]
    assert claim.late == ("late_" in path.lower())


def test_a_path_without_owner_or_assignment_is_no_claim():
    assert claim_of_path(PurePosixPath(FILE), NAME) is None
    stamp = "2026-10-12 21:59:00 UTC"
    assert claim_of_path(PurePosixPath(f"ada+02_other+{stamp}/02_other.ipynb"), NAME) is None
    # A name with numbers in it is not taken for Canvas'.
    claim = claim_of_path(PurePosixPath("ada_2026_12_transformer.ipynb"), "12_transformer")
    assert (claim.platform, claim.names[0]) == ("", "ada_2026")


@pytest.mark.parametrize("folders", [True, False])
def test_everybody_of_a_class_is_found_in_moodles_download(course, tmp_path, folders):
    files = [
        (platform_downloads.moodle_path(s, FILE, folders=folders), notebook_with_comment(s.id))
        for s in CLASS
    ]
    sheet = platform_downloads.write_worksheet(
        tmp_path / "w.csv", {ADA.id: "Monday, 12 October 2026, 11:59 PM"}
    )
    collection = collect_downloads(course, NAME, [write_archive(tmp_path / "m.zip", files)], sheet)
    assert collection.left == collection.absent == collection.remarks == []
    expected = {f"{s.id}/{NAME}/{FILE}": notebook_with_comment(s.id) for s in CLASS}
    expected[f"{ADA.id}/{NAME}/timestamp.txt"] = b"2026-10-12 21:59:00 UTC\n"  # Berlin's summer
    assert submitted_files(course) == expected
    assert read_submission(course, NAME, ADA.id).timestamp == "2026-10-12 21:59:00 UTC"


def test_everybody_of_a_class_is_found_in_canvas_download(course, tmp_path):
    files = [
        (
            platform_downloads.canvas_path(s, FILE, 70 + n, late=n % 2 > 0),
            notebook_with_comment(s.id),
        )
        for n, s in enumerate(CLASS)
    ]
    zipped = write_archive(tmp_path / "c.zip", files)
    collection = collect_downloads(
        course, NAME, [zipped], platform_downloads.write_canvas_roster(tmp_path / "r.csv")
    )
    assert (collection.left, collection.absent) == ([], [])
    assert submitted_files(course) == {
        f"{s.id}/{NAME}/{FILE}": notebook_with_comment(s.id) for s in CLASS
    }
    assert [row.student for row in collection.rows if row.late] == [s.id for s in CLASS[1::2]]
    record = read_record(course, NAME)[ADA.id]
    assert (record["platform"], record["number"]) == ("canvas", str(ADA.canvas))
    assert record["handed_in_as"] == files[0][0]


def test_a_full_name_identifies_a_student_in_either_order(course, tmp_path):
    lines = [f"{s.id},{s.last},{s.first},{s.email}" for s in CLASS]
    files = [
        (platform_downloads.moodle_path(s, FILE), notebook_with_comment(s.id)) for s in CLASS[::2]
    ]
    files += [
        (platform_downloads.canvas_path(s, FILE, 1), notebook_with_comment(s.id))
        for s in CLASS[1::2]
    ]
    collection = collect_downloads(
        course, NAME, [write_archive(tmp_path / "a.zip", files)], write_roster(tmp_path, *lines)
    )
    assert collection.left == []
    assert submitted_files(course) == {
        f"{s.id}/{NAME}/{FILE}": notebook_with_comment(s.id) for s in CLASS
    }
    # A name in one piece, turned round.
    names = Class({"a": Member(Person("a"), ("Lovelace, Ada King",))})
    assert (
        names.ids_by_name(["Ada King Lovelace"]) == names.ids_by_name(["lovelaceadaking"]) == {"a"}
    )


def test_plain_and_nested_archives_and_folders_are_collected(course, tmp_path):
    lines = ["ada,Lovelace,Ada,a@x.org", "alan,Turing,Alan,b@x.org", "grace,Hopper,Grace,c@x.org"]
    inner = zip_bytes(
        [(f"b@x.org/{FILE}", notebook_with_comment("alan")), ("b@x.org/data.csv", b"1")]
    )
    files = [(f"Lovelace Ada/{NAME}/{FILE}", notebook_with_comment("ada")), ("group 2.zip", inner)]
    folder = tmp_path / "grace"
    folder.mkdir()
    (folder / "homework.ipynb").write_bytes(notebook_with_comment("grace"))
    (folder / ".DS_Store").write_bytes(b"x")
    collection = collect_downloads(
        course,
        NAME,
        [write_archive(tmp_path / "a.zip", files), folder],
        write_roster(tmp_path, *lines),
    )
    assert collection.left == []
    assert submitted_files(course) == {
        f"{name}/{NAME}/{FILE}": notebook_with_comment(name) for name in ("ada", "alan", "grace")
    }


def test_gradescope_metadata_names_the_owners_of_folders(course, tmp_path):
    metadata = (
        "submission_1:\n  :submitters:\n  - :name: Ada\n    :sid: '7'\n    :email: A@x.org\n"
        "  :created_at: 2026-10-12 21:59:00.5 Z\nsubmission_2:\n  :submitters:\n"
        "  - :email: b@x.org\n  - :email: c@x.org\n"
    )
    files = [
        ("e/submission_metadata.yml", metadata.encode()),
        (f"e/submission_1/{FILE}", notebook_with_comment("ada")),
    ]
    files += [
        ("e/submission_2/x.ipynb", notebook_with_comment("two")),
        ("e/submission_3/x.ipynb", RIGHT_NOTEBOOK),
    ]
    lines = ["ada,Lovelace,Ada,a@x.org", "alan,Turing,Alan,b@x.org", "grace,Hopper,Grace,c@x.org"]
    collection = collect_downloads(
        course, NAME, [write_archive(tmp_path / "a.zip", files)], write_roster(tmp_path, *lines)
    )
    assert submitted_files(course) == {
        f"ada/{NAME}/{FILE}": notebook_with_comment("ada"),
        f"ada/{NAME}/timestamp.txt": b"2026-10-12 21:59:00 UTC\n",
        f"alan/{NAME}/{FILE}": notebook_with_comment("two"),
        f"grace/{NAME}/{FILE}": notebook_with_comment("two"),
    }
    assert list(reasons_by_path(collection)) == ["e/submission_3/x.ipynb"]


def test_without_a_roster_only_platform_names_are_accepted(course, tmp_path):
    hand_in(course, "grace", RIGHT_NOTEBOOK)
    files = [
        (f"{MOODLE_FOLDER}/{FILE}", notebook_with_comment(1)),
        (platform_downloads.canvas_path(ALAN, FILE, 1), notebook_with_comment(2)),
    ]
    files += [
        (f"Grace_3_assignsubmission_file/{FILE}", notebook_with_comment(3)),
        (f"bob/{FILE}", notebook_with_comment(4)),
    ]
    collection = collect_downloads(course, NAME, [write_archive(tmp_path / "a.zip", files)])
    assert {row.student for row in collection.rows} == {"ada-lovelace", "turingalan", "grace"}
    assert reasons_by_path(collection) == {
        f"bob/{FILE}": "nobody is known as bob: name the class with --roster"
    }


# --- which of several -------------------------------------------------------------------------


def test_of_several_attempts_the_latest_counts(course, tmp_path):
    first = (f"ada+{NAME}+2026-10-11 10:00:00 UTC+Zx/{FILE}", notebook_with_comment("first"))
    second = (f"ada+{NAME}+2026-10-12 10:00:00 UTC+Ab/{FILE}", notebook_with_comment("second"))
    collection = collect_downloads(
        course, NAME, [write_archive(tmp_path / "a.zip", [second, first])]
    )
    assert submitted_files(course) == {
        f"ada/{NAME}/{FILE}": notebook_with_comment("second"),
        f"ada/{NAME}/timestamp.txt": b"2026-10-12 10:00:00 UTC\n",
    }
    assert collection.rows[0].attempts == 2


def test_later_canvas_downloads_count_more(course, tmp_path):
    files = [(platform_downloads.canvas_path(ADA, FILE, 99), notebook_with_comment("new"))]
    files += [
        (platform_downloads.canvas_path(ADA, f"{NAME}-1.ipynb", 98), notebook_with_comment("old"))
    ]
    sheet = platform_downloads.write_canvas_roster(tmp_path / "r.csv")
    collect_downloads(course, NAME, [write_archive(tmp_path / "a.zip", files)], sheet)
    assert submitted_files(course) == {f"{ADA.id}/{NAME}/{FILE}": notebook_with_comment("new")}
    drops = [
        write_archive(
            tmp_path / f"{n}.zip",
            [(platform_downloads.moodle_path(ADA, FILE), notebook_with_comment(n))],
        )
        for n in (1, 2)
    ]
    collect_downloads(course, NAME, drops, sheet)
    assert submitted_files(course) == {f"{ADA.id}/{NAME}/{FILE}": notebook_with_comment(2)}


def test_a_newer_file_replaces_the_old_one_which_is_kept(course, tmp_path):
    path = hand_in(course, "ada", notebook_with_comment("mine"))
    (path.parent / "timestamp.txt").write_text("2026-10-12 10:00:00 UTC\n")

    def drop(day: int, data: bytes) -> str:
        name = f"ada+{NAME}+2026-10-{day} 10:00:00 UTC+Zx/{FILE}"
        return (
            collect_downloads(course, NAME, [write_archive(tmp_path / "a.zip", [(name, data)])])
            .rows[0]
            .done
        )

    assert drop(11, notebook_with_comment("older")) == "kept: older"
    assert drop(12, notebook_with_comment("mine")) == "as before"
    assert not (course / "submitted" / ".before").exists()
    assert path.read_bytes() == notebook_with_comment("mine")
    assert drop(13, notebook_with_comment("newer")) == "replaced"
    assert path.read_bytes() == notebook_with_comment("newer")
    (copy,) = (course / "submitted" / ".before").glob(f"*/ada/{NAME}/{FILE}")
    assert copy.read_bytes() == notebook_with_comment("mine")
    assert copy.with_name("timestamp.txt").read_text() == "2026-10-12 10:00:00 UTC\n"


def test_a_gradable_file_is_not_replaced_in_silence(course, tmp_path):
    people = ("ada", "bob", "cy")
    for student in people:
        hand_in(course, student, b"{" if student == "cy" else notebook_with_comment(student))
    files = [(f"ada+{NAME}+2026-10-13 10:00:00 UTC+Zx/{FILE}", b'{"a')]
    files += [(f"bob+{NAME}+2026-10-13 10:00:00 UTC+Zx/essay.docx", b"PK")]
    files += [(f"cy+{NAME}+2026-10-13 10:00:00 UTC+Zx/{FILE}", b'{"b')]
    process = run("collect", NAME, write_archive(tmp_path / "a.zip", files), cwd=course)
    output = " ".join(process.stdout.split())
    (ada, bob, cy) = (
        next((course / "submitted/.before").glob(f"*/{student}/{NAME}")).relative_to(course)
        for student in people
    )
    assert f"replaced, and kept as it was before: {ada}, {bob}, {cy}" in output
    message = "what can be graded was replaced by what cannot"
    assert f"ada: {message}, {FILE} (" in output
    assert f"bob: {message}, essay.docx (" in output
    assert f"cy: {message}" not in output  # that could not be graded before either
    assert f"to have it back, put {bob} in its place" in output
    assert (course / bob / FILE).read_bytes() == notebook_with_comment("bob")


@pytest.mark.parametrize(
    ("files", "collected_name", "shown"),
    [
        ({f"a/{NAME} (1).ipynb": RIGHT_NOTEBOOK, "a/data.csv": b"1"}, FILE, f"a/{NAME} (1).ipynb"),
        ({"all.zip": zip_bytes([(f"x/{FILE}", RIGHT_NOTEBOOK)])}, FILE, f"all.zip, in it x/{FILE}"),
        ({f"{NAME}.ipynb.txt": RIGHT_NOTEBOOK}, FILE, f"{NAME}.ipynb.txt"),
        ({"essay.pdf": b"%PDF"}, "essay.pdf", "essay.pdf"),
        ({"onlinetext.html": b"<p>"}, "onlinetext.html", "onlinetext.html"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_notebooks_are_renamed_and_other_files_are_not(
    files, collected_name, shown, course, tmp_path
):
    content = [(platform_downloads.moodle_path(ADA, file), data) for file, data in files.items()]
    collection = collect_downloads(course, NAME, [write_archive(tmp_path / "a.zip", content)])
    assert list(submitted_files(course)) == [f"ada-lovelace/{NAME}/{collected_name}"]
    assert collection.rows[0].shown == shown
    assert (read_submission(course, NAME, "ada-lovelace").data == RIGHT_NOTEBOOK) == (
        collected_name == FILE
    )


# --- files without an owner, and bad input -------------------------------------------------


def lines_of_namesakes() -> list[str]:
    """Return a roster's lines of two students called Ada Lovelace."""
    return ["ada1,Lovelace,Ada,a@x.org", "ada2,Lovelace,Ada,b@x.org"]


def test_students_with_the_same_name_are_not_guessed(course, tmp_path):
    files = [
        (f"Ada Lovelace_{n}_assignsubmission_file/{FILE}", notebook_with_comment(n)) for n in (1, 2)
    ]
    zipped = write_archive(tmp_path / "a.zip", files)
    collection = collect_downloads(
        course, NAME, [zipped], write_roster(tmp_path, *lines_of_namesakes())
    )
    assert submitted_files(course) == {}
    assert set(reasons_by_path(collection).values()) == {
        f"Ada Lovelace ({n}) may be ada1 or ada2: {ROSTER_WITH_NUMBERS_HINT}" for n in (1, 2)
    }
    assert collection.absent == ["ada1", "ada2"]
    # A roster with one of them gives her nobody else's work; nor does none at all.
    for people, hint in (
        (write_roster(tmp_path, lines_of_namesakes()[0]), ROSTER_WITH_NUMBERS_HINT),
        (None, ROSTER_HINT),
    ):
        collection = collect_downloads(course, NAME, [zipped], people)
        assert submitted_files(course) == {}
        assert set(reasons_by_path(collection).values()) == {f"2 are called Ada Lovelace: {hint}"}
    # The worksheet's numbers tell them apart, and one of them from who is not in it.
    head = "Identifier,Full name,Email address"
    sheet = write_roster(tmp_path, "Participant 1,Ada Lovelace,1@x.org", head=head)
    assert len(collect_downloads(course, NAME, [zipped], sheet).left) == 1
    assert submitted_files(course) == {f"1@x.org/{NAME}/{FILE}": notebook_with_comment(1)}
    lines = [f"Participant {n},Ada Lovelace,{n}@x.org" for n in (1, 2)]
    sheet = write_roster(tmp_path, *lines, head=head)
    collect_downloads(course, NAME, [zipped], sheet)
    assert submitted_files(course) == {
        f"{n}@x.org/{NAME}/{FILE}": notebook_with_comment(n) for n in (1, 2)
    }


def test_unknown_owners_and_absent_students_are_listed(course, tmp_path):
    files = [("Ada Lovlace_9_assignsubmission_file/a.ipynb", RIGHT_NOTEBOOK), ("b/readme.md", b"x")]
    files += [
        (f"Participant_4_assignsubmission_file/{FILE}", RIGHT_NOTEBOOK),
        (f"anon_7_8_{FILE}", RIGHT_NOTEBOOK),
    ]
    lines = ["ada,Lovelace,Ada,a@x.org"]
    collection = collect_downloads(
        course, NAME, [write_archive(tmp_path / "a.zip", files)], write_roster(tmp_path, *lines)
    )
    assert list(reasons_by_path(collection).values()) == [
        f"Ada Lovlace (9) is not on the roster; is it ada? {SPELLING_HINT}",
        "nobody on the roster is called readme",
        f"handed in anonymously: {SHOW_NAMES_HINT}",
        f"handed in anonymously: {SHOW_NAMES_HINT}",
    ]
    assert (submitted_files(course), collection.absent) == ({}, ["ada"])


def test_wrong_or_ambiguous_notebooks_are_left_out(course, tmp_path):
    files = [
        (platform_downloads.moodle_path(ADA, "02_other.ipynb"), RIGHT_NOTEBOOK),
        (platform_downloads.moodle_path(ALAN, "a.ipynb"), RIGHT_NOTEBOOK),
    ]
    files += [(platform_downloads.moodle_path(ALAN, "b.ipynb"), RIGHT_NOTEBOOK)]
    collection = collect_downloads(course, NAME, [write_archive(tmp_path / "a.zip", files)])
    assert submitted_files(course) == {}
    first, second = reasons_by_path(collection).values()
    assert first == "this is of 02_other: attncourse collect 02_other"
    assert second.startswith(f"several notebooks and none is {FILE}: a.ipynb, b.ipynb")


def test_paths_out_of_the_archive_are_left_out(course, tmp_path):
    climbing = [
        f"../../{FILE}",
        f"/etc/{FILE}",
        f"..\\ada\\{FILE}",
        f"C:\\{FILE}",
        f"{MOODLE_FOLDER}/../../{FILE}",
    ]
    zipped = write_archive(tmp_path / "a.zip", [(path, RIGHT_NOTEBOOK) for path in climbing])
    collection = collect_downloads(course, NAME, [zipped])
    assert set(reasons_by_path(collection).values()) == {"its path leads out of the archive"}
    assert len(collection.left) == len(climbing)
    assert submitted_files(course) == {}


def test_archive_bombs_are_reported_before_unpacking(course, tmp_path, monkeypatch):
    many = zip_bytes((f"{n}.txt", b"") for n in range(drops.MAX_FILES_OF_ARCHIVE + 1))
    deep = zip_bytes([("b.zip", zip_bytes([("c.zip", zip_bytes([(FILE, RIGHT_NOTEBOOK)]))]))])
    big = bytes(MAX_BYTES_OF_FILE + 10)
    files = [
        (platform_downloads.moodle_path(ADA, FILE), big),
        ("many.zip", many),
        ("deep.zip", deep),
    ]
    files += [
        (platform_downloads.moodle_path(ALAN, "a.zip"), zip_bytes([(FILE, big)])),
        (platform_downloads.moodle_path(GRACE, FILE), RIGHT_NOTEBOOK),
    ]
    zipped = write_archive(tmp_path / "a.zip", files)
    collection = collect_downloads(course, NAME, [zipped])
    assert [row.student for row in collection.rows] == ["grace-hopper"]
    reason = reasons_by_path(collection)
    assert "over 100 MB" in reason[platform_downloads.moodle_path(ADA, FILE)]
    assert "over 100 MB" in reason[platform_downloads.moodle_path(ALAN, "a.zip")]
    assert reason["many.zip"] == "an archive of more than 5000 files"
    assert reason["c.zip"] == "an archive in an archive in an archive"
    monkeypatch.setattr(drops, "MAX_FILES", 3)
    with pytest.raises(UserError, match="holds more than 3 files"):
        collect_downloads(course, NAME, [zipped])


@pytest.mark.parametrize("encoding", ["utf-8", "cp437", "cp1252"])
def test_names_in_archives_are_read_in_any_encoding(course, tmp_path, encoding):
    name = "José Müller_5_assignsubmission_file/a.ipynb"
    raw = name.encode(encoding)
    content = zip_bytes([("x" * len(raw), RIGHT_NOTEBOOK)]).replace(b"x" * len(raw), raw)
    (tmp_path / "a.zip").write_bytes(content)
    assert not zipfile.ZipFile(io.BytesIO(content)).infolist()[0].flag_bits & drops.UTF_8
    people = write_roster(tmp_path, "jose,Müller,José,a@x.org")
    collection = collect_downloads(course, NAME, [tmp_path / "a.zip"], people)
    assert (list(submitted_files(course)), collection.left) == ([f"jose/{NAME}/{FILE}"], [])


BAD_ROSTERS = {
    "name,points\nAda,3": "is no roster: expected a column of ids or addresses",
    "Identifier,Status\nParticipant 1,-": "has no names, only numbers: reveal the students'",
    "": "is no roster",
    "s1,Lovelace,Ada,ada@x.org,1\ns2,Turing,Alan,alan@x.org,2": (
        "has no head: its first line is s1, Lovelace, Ada, ada@x.org, 1; put one above it, as in "
        "the head id,last_name,first_name,email"
    ),
    "id,email\nada,y\nada,x": "ada is there twice, in lines 2 and 3, with another name, address",
    "id,name\n1.23E+06,Ada": "line 2: a spreadsheet has rounded the id to 1.23E+06",
    "id,email\n../x,": "line 2: ../x can be no folder's name",
    "id,name\n,Ada": "line 2: no id and no e-mail address",
}


@pytest.mark.parametrize("content", BAD_ROSTERS)
def test_a_bad_roster_is_reported_in_one_line(content, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(content)
    with pytest.raises(UserError) as error:
        read_roster(path)
    assert BAD_ROSTERS[content] in str(error.value)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_rosters_are_read_as_spreadsheets_save_them(encoding, separator, tmp_path):
    lines = ["Username,First name,Last name,Email address", "jo,José,Müller,jo@x.org"]
    path = tmp_path / "r.csv"
    path.write_bytes("\r\n".join(lines).replace(",", separator).encode(encoding))
    (member,) = read_roster(path)
    assert member.person == Person("jo", "Müller", "José", "jo@x.org")


def test_times_without_a_zone_stop_before_anything_is_written(course, tmp_path):
    (course / "nbgrader_config.py").write_text("c = get_config()\n")
    times = dict.fromkeys((s.id for s in CLASS), "Monday, 12 October 2026, 11:59 PM")
    sheet = platform_downloads.write_worksheet(tmp_path / "w.csv", times)
    zipped = write_archive(
        tmp_path / "a.zip", [(platform_downloads.moodle_path(ADA, FILE), RIGHT_NOTEBOOK)]
    )
    refuses(
        run("collect", NAME, zipped, "--roster", sheet, cwd=course),
        "Monday, 12 October 2026, 11:59 PM has no time zone",
        "set c.NbGraderAPI.timezone",
    )
    assert submitted_files(course) == {}


def test_an_unreadable_time_is_reported_and_the_file_collected(course, tmp_path):
    sheet = platform_downloads.write_worksheet(tmp_path / "w.csv", {ADA.id: "Montag, 12. Oktober"})
    collection = collect_downloads(
        course,
        NAME,
        [
            write_archive(
                tmp_path / "a.zip", [(platform_downloads.moodle_path(ADA, FILE), RIGHT_NOTEBOOK)]
            )
        ],
        sheet,
    )
    (remark,) = collection.remarks
    assert "s01: collected without a time: Montag" in remark
    assert submitted_files(course) == {f"s01/{NAME}/{FILE}": RIGHT_NOTEBOOK}


def test_the_command_says_what_went_where_in_eighty_columns(course, tmp_path):
    files = [
        (platform_downloads.moodle_path(s, FILE), notebook_with_comment(s.id)) for s in CLASS[:-2]
    ]
    files += [
        (platform_downloads.moodle_path(CLASS[-2], f"{NAME} (1).ipynb"), RIGHT_NOTEBOOK),
        ("notes.txt", b"x"),
    ]
    zipped = write_archive(tmp_path / "m.zip", files)
    sheet = platform_downloads.write_worksheet(
        tmp_path / "w.csv", {s.id: "12 October 2026, 11:59 PM" for s in CLASS[1:]}
    )
    command = [sys.executable, "-W", "error", "-m", "attncourse.grading.cli", "collect", NAME]
    process = subprocess.run(
        [*command, str(zipped), "--roster", str(sheet)],
        capture_output=True,
        text=True,
        cwd=course,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert (process.returncode, process.stderr) == (1, "")
    lines = process.stdout.splitlines()
    assert max(map(len, lines)) <= 130
    row = next(line for line in lines if line.split()[:1] == ["s07"])
    assert row.split() == ["s07", "Zoë", "Ångström", "2026-10-12", "23:59", "new"]
    assert f"Liam Ryan, {NAME} (1).ipynb" in process.stdout
    assert "nobody on the roster is called notes" in process.stdout
    assert "nothing from 1 student: s30" in process.stdout
    assert "no time is known of 1 submission, counted as on time" in process.stdout
    assert f"29 submissions of {NAME} (29 new), times in Europe/Berlin" in process.stdout


def test_a_bad_download_is_refused_in_one_line(course, tmp_path):
    broken = tmp_path / "broken.zip"
    broken.write_bytes(zip_bytes([(FILE, RIGHT_NOTEBOOK)])[:60])
    for name, path, message in (
        (NAME, tmp_path / "none.zip", "cannot read .*No such file"),
        (NAME, broken, "is a damaged archive .*download it again"),
        ("zzz", broken, "no assignment is called zzz"),
    ):
        with pytest.raises(UserError, match=message):
            collect_downloads(course, name, [path])


# --- what a student writes says nothing of others ---------------------------------------------

EVES_FOLDER, ADAS_FILE = (
    "Eve Mallory_2_assignsubmission_file",
    f"Ada Lovelace_1_assignsubmission_file/{FILE}",
)
ROSTER_LINES = (
    "ada,Lovelace,Ada,ada@x.org,123",
    "eve,Mallory,Eve,eve@x.org,555",
    "bob,Builder,Bob,,321",
)
FORGED_METADATA = """{key}:
  :submitters:
  - :email: ada@x.org
  - :email: bob@x.org
  :created_at: 2026-10-12 21:00:00 Z
"""
METADATA = """submission_1:
  :submitters:
  - :email: ada@x.org
  - text
submission_2:
  :submitters:
  - :name: bob
    :sid: eve
  :created_at: 2026-10-15 20:00:00 Z
"""


def collect_files(course: Path, files: list[tuple[str, bytes]], *lines: str) -> tuple[dict, dict]:
    """Collect a zip of these files; return the students' notebooks, and why others were left."""
    people = write_roster(
        course, *(lines or ROSTER_LINES), head="id,last_name,first_name,email,lms_user_id"
    )
    collection = collect_downloads(course, NAME, [write_archive(course / "d.zip", files)], people)
    notebooks = {
        path: data for path, data in submitted_files(course).items() if path.endswith(FILE)
    }
    return {path.partition("/")[0]: data for path, data in notebooks.items()}, reasons_by_path(
        collection
    )


@pytest.mark.parametrize("key", [".", "..", "a", "a: [", "!!int ''", "[" * 9999, "a:\n  - x", "'"])
@pytest.mark.parametrize("place", [EVES_FOLDER, "e/submission_2", f"eve/{NAME}", "eve", "eve/b/c"])
def test_metadata_inside_a_submission_names_no_submitters(course, place, key):
    files = [
        (f"{place}/{FILE}", notebook_with_comment("eve")),
        (f"{place}/a/{FILE}", notebook_with_comment("eve")),
    ]
    files += [(f"{place}/submission_metadata.yml", FORGED_METADATA.format(key=key).encode())]
    if place.startswith("e/"):
        files += [("e/submission_metadata.yml", METADATA.encode())]
        files += [(f"e/submission_1/{FILE}", notebook_with_comment("ada"))]
    else:
        files += [(ADAS_FILE, notebook_with_comment("ada"))]
    collected, left_out = collect_files(course, files)
    assert collected == {"ada": notebook_with_comment("ada"), "eve": notebook_with_comment("eve")}
    assert left_out == {}
    stamp = course / "submitted" / "ada" / NAME / "timestamp.txt"
    assert not stamp.exists()


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [("a: [", "cannot be read"), ("- a", "expected a table"), ("[" * 9999, "cannot be read")],
)
def test_unreadable_gradescope_metadata_is_left_out(course, metadata, reason):
    files = [("e/submission_metadata.yml", metadata.encode()), (f"e/ada/{FILE}", RIGHT_NOTEBOOK)]
    collected, left_out = collect_files(
        course, [*files, (f"bob/{FILE}", notebook_with_comment("bob"))]
    )
    assert collected == {"bob": notebook_with_comment("bob")}
    assert reason in left_out["e/submission_metadata.yml"]
    assert f"e/ada/{FILE}" in left_out


def test_gradescope_metadata_names_only_folders_beside_it(course):
    metadata = (
        FORGED_METADATA.format(key=".")
        + FORGED_METADATA.format(key="..")
        + FORGED_METADATA.format(key="a/b")
    )
    files = [("e/submission_metadata.yml", metadata.encode()), (f"e/a/b/{FILE}", RIGHT_NOTEBOOK)]
    collected, left_out = collect_files(course, [*files, (f"e/{FILE}", RIGHT_NOTEBOOK)])
    assert (collected, list(left_out)) == ({}, [f"e/a/b/{FILE}", f"e/{FILE}"])


def test_only_what_a_platform_writes_identifies_a_student(course):
    late = "malloryeve_555_9002_LATE_123_text.html"
    for file in ("malloryeve_555_9002_123_text.html", late):
        claim = claim_of_path(PurePosixPath(file), NAME)
        assert (claim.number, claim.late) == ("555", False)
    hidden = zip_bytes([(FILE, notebook_with_comment("eve"))])
    assert collect_files(course, [("malloryeve_555_9002_123_text.html", hidden)])[0] == {
        "eve": notebook_with_comment("eve")
    }
    # Of a name that could have two numbers of people, neither is guessed.
    for number in (555, 999):
        name = f"malloryeve_{number}_9002_123_7_x.ipynb"
        collected, left_out = collect_files(
            course, [(name, notebook_with_comment("x")), (late, b"")]
        )
        assert "its path names ada and" in left_out[name]
        assert "ada" not in collected
    upload = claim_of_path(
        PurePosixPath("lovelaceada_123_400_12_transformer.ipynb"), "12_transformer"
    )
    assert (upload.number, upload.rivals) == ("123", ())


@pytest.mark.parametrize(
    ("adas_path", "eves_path"),
    [
        # A display name, or a file's, that has another platform's form.
        (
            f"Ada Lovelace_1_assignsubmission_file_{FILE}",
            f"x_123_4_y_2_assignsubmission_file_{FILE}",
        ),
        (
            f"lovelaceada_123_4_{FILE}",
            f"malloryeve_555_4_Ada Lovelace_1_assignsubmission_file_{FILE}",
        ),
        (ADAS_FILE, f"Eve_Mallory_2_assignsubmission_file/lovelaceada_123_9_{FILE}"),
        (ADAS_FILE, "Eve_Mallory_2_assignsubmission_file/ada.ipynb"),
        (ADAS_FILE, f"Eve_Mallory_2_assignsubmission_file/{ADAS_FILE}"),
    ],
)
def test_names_in_another_platforms_form_are_not_believed(course, adas_path, eves_path):
    collected, left_out = collect_files(
        course,
        [(eves_path, notebook_with_comment("eve")), (adas_path, notebook_with_comment("ada"))],
    )
    assert collected["ada"] == notebook_with_comment("ada")
    assert (collected.get("eve") == notebook_with_comment("eve")) != (eves_path in left_out)


@pytest.mark.parametrize(
    "path",
    [
        f"eve/ada/{NAME}/{FILE}",
        "eve/ada.ipynb",
        f"eve/Ada Lovelace {NAME}.ipynb",
        f"eve/{ADAS_FILE}",
        f"eve/lovelaceada_123_4_{FILE}",
        f"eve/ada+{NAME}+2026-10-12 21:59:00 UTC+Z/{FILE}",
    ],
)
def test_a_path_that_names_two_students_is_left_out(course, path):
    collected, left_out = collect_files(
        course,
        [(path, notebook_with_comment("eve")), (f"bob/{FILE}", notebook_with_comment("bob"))],
    )
    assert collected == {"bob": notebook_with_comment("bob")}
    assert left_out == {path: "its path names ada and eve: call it after its owner alone"}
    inner = zip_bytes([(path.removeprefix("eve/"), notebook_with_comment("eve"))])
    (course / "eve.zip").write_bytes(zip_bytes([("all of it.zip", inner)]))
    people = write_roster(course, *ROSTER_LINES, head="id,last_name,first_name,email,lms_user_id")
    assert not any(
        r.student == "ada"
        for r in collect_downloads(course, NAME, [course / "eve.zip"], people).rows
    )


def test_a_display_name_is_not_taken_for_an_id(course, tmp_path):
    files = [
        (f"ADA_2_assignsubmission_file/{FILE}", notebook_with_comment("eve")),
        (f"bob_5_6_{FILE}", RIGHT_NOTEBOOK),
    ]
    collected, left_out = collect_files(course, files)
    assert collected == {}
    assert list(left_out.values()) == [
        f"ADA (2) is not on the roster; is it ada? {SPELLING_HINT}",
        f"bob (5) is not on the roster; is it bob? {SPELLING_HINT}",
    ]
    # Without a roster nor does it make one that somebody else has.
    people = Class({"ada": Member(Person("ada", "Lovelace", "Ada"))})
    with pytest.raises(Ungraded, match="may be ada: name the class"):
        single_owner(claim_of_path(PurePosixPath(files[0][0]), NAME), people)


def test_a_number_counts_only_for_its_own_platform(course):
    lines = ("123,Lovelace,Ada,ada@x.org,", "124,Mallory,Eve,eve@x.org,")
    files = [(f"malloryeve_123_400_{FILE}", notebook_with_comment("eve"))]
    assert collect_files(course, files, *lines)[0] == {"124": notebook_with_comment("eve")}
    # Nor is an id of the university's, or what the gradebook calls another.
    head = "Student,ID,SIS User ID,SIS Login ID,Section"
    people = write_roster(
        course, '"Lovelace, Ada",7,555,ada,A', '"Mallory, Eve",555,9,eve,A', head=head
    )
    members = with_known_ids(read_roster(people), [Person("555", "Curie", "Marie")])
    assert [member.id for member in members] == ["555", "eve"]  # Ada's number at her university
    assert Class({m.id: m for m in members}).ids_by_key(["555"], "canvas") == {"eve"}


# --- archives that lie in a download ----------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "strangerxy_999_9001_x.zip",
        "Strange R_99_assignsubmission_file/x.zip",
        "e/submission_2/x.zip",
        "e/submission_3/x.zip",
        f"zed/{NAME}/x.zip",
        f"zed+{NAME}+2026-10-12 21:59:00 UTC+Z/x.zip",
    ],
)
def test_an_archive_that_a_platform_names_is_not_opened(course, path):
    adas_paths = [f"lovelaceada_123_99999_{FILE}", ADAS_FILE, f"ada/{NAME}/{FILE}", "ada.ipynb"]
    files = [(path, zip_bytes([(name, notebook_with_comment("x")) for name in adas_paths]))]
    if path.startswith("e/"):
        metadata = "submission_2:\n  :submitters:\n  - :email: z@x.org\n"
        files += [("e/submission_metadata.yml", metadata.encode())]
    collected, left_out = collect_files(course, files)
    assert (collected, list(left_out)) == ({}, [path])


def test_a_time_inside_a_nested_archive_is_not_believed(course):
    stamp = b"2026-10-01 10:00:00 UTC"
    with_time = [
        (f"eve/{NAME}/timestamp.txt", stamp),
        (f"eve/{NAME}/{FILE}", notebook_with_comment("eve")),
    ]
    two_attempts = [
        (f"bob+{NAME}+2026-10-{day} 10:00:00 UTC+Z/{FILE}", notebook_with_comment(day))
        for day in (12, 11)
    ]
    collected, left_out = collect_files(
        course, [("stuff.zip", zip_bytes(with_time)), ("more.zip", zip_bytes(two_attempts))]
    )
    assert (collected, left_out) == (
        {"eve": notebook_with_comment("eve"), "bob": notebook_with_comment(12)},
        {},
    )
    assert not [path for path in submitted_files(course) if path.endswith("timestamp.txt")]


def test_damaged_files_of_an_archive_are_left_out(course):
    data = bytearray(
        zip_bytes(
            [
                ("ada.ipynb", notebook_with_comment("ada")),
                (f"bob/{FILE}", notebook_with_comment("bob")),
            ]
        )
    )
    start = data.index(b"ada.ipynb") + len("ada.ipynb")
    data[start : start + 60] = b"\xff" * 60
    collected, left_out = collect_files(course, [("all.zip", bytes(data))])
    assert collected == {"bob": notebook_with_comment("bob")}
    assert "damaged in the archive" in left_out["ada.ipynb"]


def test_nested_archives_share_one_size_limit(course, monkeypatch):
    archives = [
        (f"{n}.zip", zip_bytes([(f"{who}.ipynb", notebook_with_comment(who))]))
        for n, who in enumerate(("ada", "eve", "bob"))
    ]
    size = len(archives[0][1])
    for room in (drops.ArchiveRoom(bytes=2 * size), drops.ArchiveRoom(files=2)):
        monkeypatch.setattr(sort, "ArchiveRoom", lambda room=room: room)
        collected, left_out = collect_files(course, archives)
        assert set(collected) == {"ada", "eve"}
        assert left_out == {
            "2.zip": "the archives in it hold too much: unpack it and name its folder"
        }


def test_long_hostile_paths_cost_no_time(course):
    names = ["x" + " " * 60_000 + "y.ipynb", "_1" * 30_000 + "\n", "a/" * 30_000 + "b.ipynb"]
    names += ["x" + " " * 900 + "y.ipynb", "_1" * 400 + "\n"]
    inner = zip_bytes([(f"{n}{name}", b"x") for n in range(9) for name in names])
    start = time.process_time()
    _, left_out = collect_files(course, [("all.zip", inner)])
    assert time.process_time() - start < 5
    assert any("longer than any platform" in reason for reason in left_out.values())


def test_no_cell_of_the_record_begins_with_a_formula(course):
    path = f"=1+1'!A0;=2/ada/{NAME}/{FILE}"
    collect_files(course, [(path, RIGHT_NOTEBOOK)])
    for _ in range(2):  # what is there is kept, and not quoted again
        assert read_record(course, NAME)["ada"]["handed_in_as"] == path
        text = (course / "submitted" / ".collected" / f"{NAME}.csv").read_text()
        assert "'=1+1'!A0;'=2/ada" in text
        assert ",=" not in text
        collect_files(course, [(f"eve/{FILE}", RIGHT_NOTEBOOK)])


def write_tar_archive(path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        archive.add(__file__, "Ada Lovelace_1_assignsubmission_file/a.ipynb")


BAD_DOWNLOADS = {
    "class.tar.gz": (write_tar_archive, "should be a zip archive: make it one, or unpack it"),
    "login.zip": (lambda path: path.write_text("<html>Log in"), "should be a zip archive"),
    "nothing.zip": (lambda path: write_zip_archive(path, []), "an archive with nothing in it"),
}


def write_zip_archive(path: Path, files: list) -> None:
    path.write_bytes(zip_bytes(files))


@pytest.mark.parametrize("file_name", BAD_DOWNLOADS)
def test_a_file_that_is_no_zip_is_not_taken_for_a_student(course, tmp_path, file_name):
    write, reason = BAD_DOWNLOADS[file_name]
    write(tmp_path / file_name)
    collection = collect_downloads(
        course, NAME, [tmp_path / file_name], write_roster(tmp_path, "ada,Lovelace,Ada,")
    )
    assert reason in reasons_by_path(collection)[file_name]


def test_a_self_extracting_archive_is_read(course, tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(
        b"#!/bin/sh\n" + zip_bytes([("ada_1_assignsubmission_file/a.ipynb", RIGHT_NOTEBOOK)])
    )
    assert [row.student for row in collect_downloads(course, NAME, [path]).rows] == ["ada"]


def test_an_unwritable_folder_is_reported_on_collecting(course, tmp_path):
    (course / "reports").write_text("in the way")
    download = write_archive(
        tmp_path / "a.zip", [("ada_1_assignsubmission_file/a.ipynb", RIGHT_NOTEBOOK)]
    )
    with pytest.raises(UserError, match=r"cannot write .*journal.lock: [^:;]*$"):
        collect_downloads(course, NAME, [download])


def test_an_empty_list_is_reported_as_empty(course, tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(UserError, match=r"empty.csv is no roster: .*; found nothing$"):
        collect_downloads(course, NAME, [], empty)
    with pytest.raises(UserError, match=r"expected the head group,student; found nothing$"):
        collect_downloads(course, NAME, [], groups=empty)


# --- a column that slipped, and other lists that are not this class's --------------------------

ROSTER_HEAD = "id,last_name,first_name,email,lms_user_id"


def write_shifted_roster(folder: Path, turn: int = 1) -> Path:
    """Write a roster whose Canvas numbers stand ``turn`` rows below where they belong."""
    lines = [
        f"{s.id},{s.last},{s.first},,{CLASS[(n - turn) % 4].canvas}"
        for n, s in enumerate(CLASS[:4])
    ]
    return write_roster(folder, *lines, head=ROSTER_HEAD)


def canvas_download(folder: Path, students=CLASS[:4]) -> Path:
    """Write a Canvas download with one notebook of each student."""
    files = [
        (f"{s.sortable}_{s.canvas}_9{s.canvas}_{FILE}", notebook_with_comment(s.id))
        for s in students
    ]
    return write_archive(folder / "submissions.zip", files)


def test_a_shifted_roster_column_is_refused(course, tmp_path):
    zipped, people = canvas_download(tmp_path), write_shifted_roster(tmp_path)
    (course / "submitted").mkdir()
    process = run("collect", NAME, zipped, "--roster", people, cwd=course)
    refuses(
        process, ADA.sortable, "s02", "roster.csv, line 3", "s01, Ada Lovelace", "line 2", "--trust"
    )
    assert "and 3 more" in process.stderr
    assert submitted_files(course) == {}
    expected = {f"{s.id}/{NAME}/{FILE}": notebook_with_comment(s.id) for s in CLASS[:4]}
    assert collect_downloads(course, NAME, [zipped], people, trust="names").left == []
    assert submitted_files(course) == expected
    collect_downloads(course, NAME, [zipped], people, trust="numbers")
    assert submitted_files(course)[f"s02/{NAME}/{FILE}"] == notebook_with_comment("s01")
    # What the roster's own numbers say of their owners is no slip.
    collect_downloads(course, NAME, [zipped], write_shifted_roster(tmp_path, turn=0))
    assert submitted_files(course) == expected
    with pytest.raises(UserError, match="--trust: expected numbers or names, got name"):
        collect_downloads(course, NAME, [zipped], people, trust="name")


def test_a_gradebook_with_shifted_numbers_is_refused(course, tmp_path):
    run("roster", write_shifted_roster(tmp_path), cwd=course)
    with pytest.raises(UserError, match="the gradebook"):
        collect_downloads(course, NAME, [canvas_download(tmp_path)])
    # And so does a list that is put beside it: an id of the one, a name of the other.
    ids = [
        f"{s.id},{CLASS[n - 1 if n else 3].last},{CLASS[n - 1 if n else 3].first},,"
        for n, s in enumerate(CLASS[:4])
    ]
    people = write_roster(tmp_path, *ids, head=ROSTER_HEAD)
    process = run("roster", people, cwd=course)
    refuses(process, "s01", "line 2", "the gradebook", "nothing was changed", "--trust")
    for trust, student_id in (("names", "s04"), ("numbers", "s01")):
        known = [Person(s.id, s.last, s.first) for s in CLASS[:4]]
        assert with_known_ids(read_roster(people), known, trust)[0].id == student_id


def test_a_student_with_another_name_is_known_by_number(course, tmp_path):
    people = write_roster(
        tmp_path, *(f"{s.id},{s.last},{s.first},,{s.canvas}" for s in CLASS), head=ROSTER_HEAD
    )
    zipped = write_archive(
        tmp_path / "a.zip", [(f"augustaking_{ADA.canvas}_91_{FILE}", RIGHT_NOTEBOOK)]
    )
    assert collect_downloads(course, NAME, [zipped], people).left == []
    assert submitted_files(course) == {f"{ADA.id}/{NAME}/{FILE}": RIGHT_NOTEBOOK}


def test_a_roster_is_entered_and_its_changes_are_listed(course, tmp_path):
    lines = [f"{s.id},{s.last},{s.first},{s.email},{s.canvas}" for s in CLASS[:3]]
    assert run(
        "roster", write_roster(tmp_path, *lines, head=ROSTER_HEAD), cwd=course
    ).stdout.splitlines() == ["3 students: 3 new, 0 changed, 0 as before"]
    lines[0] = f"{ADA.id},Lovelace,Ada,ada@new.example,{ADA.canvas}"
    process = run("roster", write_roster(tmp_path, *lines[:2], head=ROSTER_HEAD), cwd=course)
    assert process.stdout.splitlines() == [
        f"s01: email {ADA.email} to ada@new.example",
        "in the gradebook and on no list: s03, Grace Hopper (the gradebook)",
        "2 students: 0 new, 1 changed, 1 as before",
    ]


def test_a_roster_can_start_a_new_gradebook(course, tmp_path):
    lines = [f"{s.id},{s.last},{s.first},,{s.canvas}" for s in CLASS[:3]]
    people = write_roster(tmp_path, *lines, head=ROSTER_HEAD)
    process = run("roster", people, "--db", f"sqlite:///{tmp_path / 'new.db'}", cwd=course)
    assert process.stdout.splitlines() == ["3 students: 3 new, 0 changed, 0 as before"]
    assert not (course / "gradebook.db").exists()


def test_roster_lines_without_a_name_are_reported(course, tmp_path):
    lines = [f"{s.id},{s.last},{s.first},,{s.canvas}" for s in CLASS[:3]]
    lines[1] = f"{ALAN.id},,,,{ALAN.canvas}"
    people = write_roster(tmp_path, *lines, head=ROSTER_HEAD)
    assert run("roster", people, cwd=course).stdout.splitlines() == [
        f"no name of {ALAN.id} (roster.csv, line 3): found by number and id alone",
        "3 students: 3 new, 0 changed, 0 as before",
    ]
    named = write_roster(tmp_path, f"{ALAN.id},{ALAN.last},{ALAN.first},,", head=ROSTER_HEAD)
    run("roster", named, cwd=course)
    # Now the gradebook knows it, and a list without it takes nothing away.
    process = run("roster", write_roster(tmp_path, *lines, head=ROSTER_HEAD), cwd=course)
    assert process.stdout.splitlines() == ["3 students: 0 new, 0 changed, 3 as before"]


def test_a_misspelt_name_adds_no_new_student(course, tmp_path):
    lines = [f"{s.id},{s.last},{s.first},,{s.canvas}" for s in CLASS[:3]]
    run("roster", write_roster(tmp_path, *lines, head=ROSTER_HEAD), cwd=course)
    misspelt, unknown = (
        f"{n}_assignsubmission_file_/{FILE}" for n in ("Ada Lovelance_77", "Who Ever_78")
    )
    zipped = write_archive(
        tmp_path / "m.zip",
        [(misspelt, notebook_with_comment("near")), (unknown, notebook_with_comment("else"))],
    )
    collection = collect_downloads(course, NAME, [zipped])
    question = f"nobody is known as Ada Lovelance (77); is it {ADA.id}? {NEAR_NAME_HINT}"
    assert reasons_by_path(collection) == {misspelt: question}
    assert collection.new == ["who-ever"]
    # As the question says: with the name beside its owner's, or as somebody else's.
    with_other_name = write_roster(
        tmp_path, f"{ADA.id},Lovelace,Ada,,1,Ada Lovelance", head=f"{ROSTER_HEAD},name"
    )
    assert [r.student for r in collect_downloads(course, NAME, [zipped], with_other_name).rows] == [
        ADA.id
    ]
    people = write_roster(tmp_path, *lines, "new,Lovelance,Ada,,", head=ROSTER_HEAD)
    assert [r.student for r in collect_downloads(course, NAME, [zipped], people).rows] == ["new"]


def test_a_roster_of_another_class_is_refused_in_one_line(course, tmp_path):
    head = "id,last_name,first_name,email,lms_user_id"
    twice = write_roster(tmp_path, "a,Lovelace,Ada,,7", "b,Turing,Alan,,7", head=head)
    for words in (
        ("roster", twice),
        ("collect", NAME, canvas_download(tmp_path), "--roster", twice),
    ):
        refuses(run(*words, cwd=course), "line 2", "line 3", "same number, 7")
    last_year = write_roster(tmp_path, "x1,Curie,Marie,,71", "x2,Meitner,Lise,,72", head=head)
    process = run("collect", NAME, canvas_download(tmp_path), "--roster", last_year, cwd=course)
    refuses(process, "none of the 4 people", "another term's")
    run("roster", write_shifted_roster(tmp_path, turn=0), cwd=course)
    last_year = write_roster(tmp_path, "x1,Curie,Marie,,71", "x2,Meitner,Lise,,72", head=head)
    refuses(run("roster", last_year, cwd=course), "none of the 2 students", "attncourse new-term")
    without_names = write_roster(
        tmp_path, *(f"{s.id},{s.canvas}" for s in CLASS[:4]), head="id,lms_user_id"
    )
    collection = collect_downloads(course, NAME, [canvas_download(tmp_path)], without_names)
    assert collection.left == []
    assert "has no names" in collection.remarks[0]
