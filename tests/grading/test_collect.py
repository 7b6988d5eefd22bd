"""What platforms hand over comes to its students: the latest attempt, its time, and no other's."""

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
from helpers import platform_downloads as made
from helpers.platform_downloads import CLASS, archive, packed
from helpers.small_class import refuses, run
from helpers.small_course import NAME, hand_in, make_course, small

FILE = f"{NAME}.ipynb"
GOOD = small()
ADA, ALAN, GRACE = CLASS[:3]
CONFIG = 'c = get_config()\nc.NbGraderAPI.timezone = "Europe/Berlin"\n'


def other(text: object) -> bytes:
    """A notebook unlike others."""
    return small(add=f"def add(a, b):\n    return a + b  # {text}")


@pytest.fixture
def course(tmp_path) -> Path:
    make_course(tmp_path / "course")
    (tmp_path / "course" / "solutions" / "02_other").mkdir()
    (tmp_path / "course" / "nbgrader_config.py").write_text(CONFIG)
    return tmp_path / "course"


def roster(folder: Path, *lines: str, head: str = "id,last_name,first_name,email") -> Path:
    path = folder / "roster.csv"
    path.write_text("\n".join((head, *lines)))
    return path


def submitted(course: Path) -> dict[str, bytes]:
    """What lies in submitted/, by path, but for what collecting keeps for itself."""
    place = course / "submitted"
    found = {path.relative_to(place): path for path in place.rglob("*") if path.is_file()}
    return {str(p): path.read_bytes() for p, path in found.items() if p.parts[0][0] != "."}


def reasons(found) -> dict[str, str]:
    return {left.path: left.reason for left in found.left}


# --- whose it is ------------------------------------------------------------------------------

LONG = "Ada Lovelace_1234567_assignsubmission_file"
CANVAS = ("canvas", "lovelaceada", "12345", FILE)
PATHS = {
    f"{LONG}/{FILE}": ("moodle", "Ada Lovelace", "1234567", FILE),
    f"{LONG}_/a/{FILE}": ("moodle", "Ada Lovelace", "1234567", f"a/{FILE}"),
    f"group/{LONG}_{FILE}": ("moodle", "Ada Lovelace", "1234567", FILE),
    f"lovelaceada_12345_67890_{NAME}-1.ipynb": (
        "canvas",
        "lovelaceada",
        "12345",
        f"{NAME}-1.ipynb",
    ),
    f"lovelaceada_LATE_12345_67890_{FILE}": CANVAS,
    "lovelace_ada_late_12345_67890_a_1_2_b.zip": ("canvas", "lovelace_ada", "12345", "a_1_2_b.zip"),
    "lovelaceada_12345_text.html": ("canvas", "lovelaceada", "12345", "text.html"),
    f"x/ada/{NAME}/{FILE}": ("nbgrader", "ada", "", FILE),
    f"ada+b+{NAME}+2026-10-12 21:59:00 UTC+Zx/{FILE}": ("nbgrader", "ada+b", "", FILE),
    f"ada/{FILE}": ("", "ada", "", FILE),
    f"ada_{NAME} (2).ipynb": ("", "ada", "", f"ada_{NAME} (2).ipynb"),
    f"{NAME}-ada.ipynb": ("", "ada", "", f"{NAME}-ada.ipynb"),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_says_whose_a_file_is(path):
    found = claim_of_path(PurePosixPath(path), NAME)
    assert (found.platform, found.names[0], found.number, str(found.file)) == PATHS[path]
    assert found.late == ("late_" in path.lower())


def test_what_names_nobody_or_another_assignment_is_no_claim():
    assert claim_of_path(PurePosixPath(FILE), NAME) is None
    stamp = "2026-10-12 21:59:00 UTC"
    assert claim_of_path(PurePosixPath(f"ada+02_other+{stamp}/02_other.ipynb"), NAME) is None
    # A name with numbers in it is not taken for Canvas'.
    found = claim_of_path(PurePosixPath("ada_2026_12_transformer.ipynb"), "12_transformer")
    assert (found.platform, found.names[0]) == ("", "ada_2026")


@pytest.mark.parametrize("folders", [True, False])
def test_everybody_of_a_class_is_found_in_moodles_download(course, tmp_path, folders):
    files = [(made.moodle(s, FILE, folders=folders), other(s.id)) for s in CLASS]
    sheet = made.worksheet(tmp_path / "w.csv", {ADA.id: "Monday, 12 October 2026, 11:59 PM"})
    found = collect_downloads(course, NAME, [archive(tmp_path / "m.zip", files)], sheet)
    assert found.left == found.absent == found.remarks == []
    wanted = {f"{s.id}/{NAME}/{FILE}": other(s.id) for s in CLASS}
    wanted[f"{ADA.id}/{NAME}/timestamp.txt"] = b"2026-10-12 21:59:00 UTC\n"  # Berlin's summer
    assert submitted(course) == wanted
    assert read_submission(course, NAME, ADA.id).timestamp == "2026-10-12 21:59:00 UTC"


def test_everybody_of_a_class_is_found_in_canvas_download(course, tmp_path):
    files = [
        (made.canvas(s, FILE, 70 + n, late=n % 2 > 0), other(s.id)) for n, s in enumerate(CLASS)
    ]
    zipped = archive(tmp_path / "c.zip", files)
    found = collect_downloads(course, NAME, [zipped], made.canvas_roster(tmp_path / "r.csv"))
    assert (found.left, found.absent) == ([], [])
    assert submitted(course) == {f"{s.id}/{NAME}/{FILE}": other(s.id) for s in CLASS}
    assert [row.student for row in found.rows if row.late] == [s.id for s in CLASS[1::2]]
    kept = read_record(course, NAME)[ADA.id]
    assert (kept["platform"], kept["number"]) == ("canvas", str(ADA.canvas))
    assert kept["handed_in_as"] == files[0][0]


def test_names_alone_are_enough_in_either_order(course, tmp_path):
    lines = [f"{s.id},{s.last},{s.first},{s.email}" for s in CLASS]
    files = [(made.moodle(s, FILE), other(s.id)) for s in CLASS[::2]]
    files += [(made.canvas(s, FILE, 1), other(s.id)) for s in CLASS[1::2]]
    found = collect_downloads(
        course, NAME, [archive(tmp_path / "a.zip", files)], roster(tmp_path, *lines)
    )
    assert found.left == []
    assert submitted(course) == {f"{s.id}/{NAME}/{FILE}": other(s.id) for s in CLASS}
    # A name in one piece, turned round.
    names = Class({"a": Member(Person("a"), ("Lovelace, Ada King",))})
    assert (
        names.ids_by_name(["Ada King Lovelace"]) == names.ids_by_name(["lovelaceadaking"]) == {"a"}
    )


def test_plain_archives_nested_ones_and_folders(course, tmp_path):
    lines = ["ada,Lovelace,Ada,a@x.org", "alan,Turing,Alan,b@x.org", "grace,Hopper,Grace,c@x.org"]
    inner = packed([(f"b@x.org/{FILE}", other("alan")), ("b@x.org/data.csv", b"1")])
    files = [(f"Lovelace Ada/{NAME}/{FILE}", other("ada")), ("group 2.zip", inner)]
    folder = tmp_path / "grace"
    folder.mkdir()
    (folder / "homework.ipynb").write_bytes(other("grace"))
    (folder / ".DS_Store").write_bytes(b"x")
    found = collect_downloads(
        course, NAME, [archive(tmp_path / "a.zip", files), folder], roster(tmp_path, *lines)
    )
    assert found.left == []
    assert submitted(course) == {
        f"{name}/{NAME}/{FILE}": other(name) for name in ("ada", "alan", "grace")
    }


def test_gradescopes_file_says_whose_a_folder_is(course, tmp_path):
    said = (
        "submission_1:\n  :submitters:\n  - :name: Ada\n    :sid: '7'\n    :email: A@x.org\n"
        "  :created_at: 2026-10-12 21:59:00.5 Z\nsubmission_2:\n  :submitters:\n"
        "  - :email: b@x.org\n  - :email: c@x.org\n"
    )
    files = [("e/submission_metadata.yml", said.encode()), (f"e/submission_1/{FILE}", other("ada"))]
    files += [("e/submission_2/x.ipynb", other("two")), ("e/submission_3/x.ipynb", GOOD)]
    lines = ["ada,Lovelace,Ada,a@x.org", "alan,Turing,Alan,b@x.org", "grace,Hopper,Grace,c@x.org"]
    found = collect_downloads(
        course, NAME, [archive(tmp_path / "a.zip", files)], roster(tmp_path, *lines)
    )
    assert submitted(course) == {
        f"ada/{NAME}/{FILE}": other("ada"),
        f"ada/{NAME}/timestamp.txt": b"2026-10-12 21:59:00 UTC\n",
        f"alan/{NAME}/{FILE}": other("two"),
        f"grace/{NAME}/{FILE}": other("two"),
    }
    assert list(reasons(found)) == ["e/submission_3/x.ipynb"]


def test_only_platforms_name_people_without_a_roster(course, tmp_path):
    hand_in(course, "grace", GOOD)
    files = [(f"{LONG}/{FILE}", other(1)), (made.canvas(ALAN, FILE, 1), other(2))]
    files += [(f"Grace_3_assignsubmission_file/{FILE}", other(3)), (f"bob/{FILE}", other(4))]
    found = collect_downloads(course, NAME, [archive(tmp_path / "a.zip", files)])
    assert {row.student for row in found.rows} == {"ada-lovelace", "turingalan", "grace"}
    assert reasons(found) == {f"bob/{FILE}": "nobody is known as bob: name the class with --roster"}


# --- which of several -------------------------------------------------------------------------


def test_of_several_attempts_the_latest_counts(course, tmp_path):
    one = (f"ada+{NAME}+2026-10-11 10:00:00 UTC+Zx/{FILE}", other("first"))
    two = (f"ada+{NAME}+2026-10-12 10:00:00 UTC+Ab/{FILE}", other("second"))
    found = collect_downloads(course, NAME, [archive(tmp_path / "a.zip", [two, one])])
    assert submitted(course) == {
        f"ada/{NAME}/{FILE}": other("second"),
        f"ada/{NAME}/timestamp.txt": b"2026-10-12 10:00:00 UTC\n",
    }
    assert found.rows[0].attempts == 2


def test_later_canvas_downloads_count_more(course, tmp_path):
    files = [(made.canvas(ADA, FILE, 99), other("new"))]
    files += [(made.canvas(ADA, f"{NAME}-1.ipynb", 98), other("old"))]
    sheet = made.canvas_roster(tmp_path / "r.csv")
    collect_downloads(course, NAME, [archive(tmp_path / "a.zip", files)], sheet)
    assert submitted(course) == {f"{ADA.id}/{NAME}/{FILE}": other("new")}
    drops = [archive(tmp_path / f"{n}.zip", [(made.moodle(ADA, FILE), other(n))]) for n in (1, 2)]
    collect_downloads(course, NAME, drops, sheet)
    assert submitted(course) == {f"{ADA.id}/{NAME}/{FILE}": other(2)}


def test_what_was_there_is_kept_and_the_same_or_newer_stays(course, tmp_path):
    path = hand_in(course, "ada", other("mine"))
    (path.parent / "timestamp.txt").write_text("2026-10-12 10:00:00 UTC\n")

    def drop(day: int, data: bytes) -> str:
        name = f"ada+{NAME}+2026-10-{day} 10:00:00 UTC+Zx/{FILE}"
        return (
            collect_downloads(course, NAME, [archive(tmp_path / "a.zip", [(name, data)])])
            .rows[0]
            .done
        )

    assert drop(11, other("older")) == "kept: older"
    assert drop(12, other("mine")) == "as before"
    assert not (course / "submitted" / ".before").exists()
    assert path.read_bytes() == other("mine")
    assert drop(13, other("newer")) == "replaced"
    assert path.read_bytes() == other("newer")
    (copy,) = (course / "submitted" / ".before").glob(f"*/ada/{NAME}/{FILE}")
    assert copy.read_bytes() == other("mine")
    assert copy.with_name("timestamp.txt").read_text() == "2026-10-12 10:00:00 UTC\n"


def test_a_gradable_file_is_not_replaced_in_silence(course, tmp_path):
    people = ("ada", "bob", "cy")
    for student in people:
        hand_in(course, student, b"{" if student == "cy" else other(student))
    files = [(f"ada+{NAME}+2026-10-13 10:00:00 UTC+Zx/{FILE}", b'{"a')]
    files += [(f"bob+{NAME}+2026-10-13 10:00:00 UTC+Zx/essay.docx", b"PK")]
    files += [(f"cy+{NAME}+2026-10-13 10:00:00 UTC+Zx/{FILE}", b'{"b')]
    done = run("collect", NAME, archive(tmp_path / "a.zip", files), cwd=course)
    said = " ".join(done.stdout.split())
    (ada, bob, cy) = (
        next((course / "submitted/.before").glob(f"*/{student}/{NAME}")).relative_to(course)
        for student in people
    )
    assert f"replaced, and kept as it was before: {ada}, {bob}, {cy}" in said
    lost = "what can be graded was replaced by what cannot"
    assert f"ada: {lost}, {FILE} (" in said
    assert f"bob: {lost}, essay.docx (" in said
    assert f"cy: {lost}" not in said  # that could not be graded before either
    assert f"to have it back, put {bob} in its place" in said
    assert (course / bob / FILE).read_bytes() == other("bob")


@pytest.mark.parametrize(
    ("files", "called", "shown"),
    [
        ({f"a/{NAME} (1).ipynb": GOOD, "a/data.csv": b"1"}, FILE, f"a/{NAME} (1).ipynb"),
        ({"all.zip": packed([(f"x/{FILE}", GOOD)])}, FILE, f"all.zip, in it x/{FILE}"),
        ({f"{NAME}.ipynb.txt": GOOD}, FILE, f"{NAME}.ipynb.txt"),
        ({"essay.pdf": b"%PDF"}, "essay.pdf", "essay.pdf"),
        ({"onlinetext.html": b"<p>"}, "onlinetext.html", "onlinetext.html"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_notebook_gets_its_name_and_what_is_none_keeps_it(files, called, shown, course, tmp_path):
    content = [(made.moodle(ADA, file), data) for file, data in files.items()]
    found = collect_downloads(course, NAME, [archive(tmp_path / "a.zip", content)])
    assert list(submitted(course)) == [f"ada-lovelace/{NAME}/{called}"]
    assert found.rows[0].shown == shown
    assert (read_submission(course, NAME, "ada-lovelace").data == GOOD) == (called == FILE)


# --- what is nobody's, and bad input --------------------------------------------------------------


def two_of_one_name() -> list[str]:
    return ["ada1,Lovelace,Ada,a@x.org", "ada2,Lovelace,Ada,b@x.org"]


def test_two_of_one_name_are_not_guessed(course, tmp_path):
    files = [(f"Ada Lovelace_{n}_assignsubmission_file/{FILE}", other(n)) for n in (1, 2)]
    zipped = archive(tmp_path / "a.zip", files)
    found = collect_downloads(course, NAME, [zipped], roster(tmp_path, *two_of_one_name()))
    assert submitted(course) == {}
    assert set(reasons(found).values()) == {
        f"Ada Lovelace ({n}) may be ada1 or ada2: {ROSTER_WITH_NUMBERS_HINT}" for n in (1, 2)
    }
    assert found.absent == ["ada1", "ada2"]
    # A roster with one of them gives her nobody else's work; nor does none at all.
    for people, way_out in (
        (roster(tmp_path, two_of_one_name()[0]), ROSTER_WITH_NUMBERS_HINT),
        (None, ROSTER_HINT),
    ):
        found = collect_downloads(course, NAME, [zipped], people)
        assert submitted(course) == {}
        assert set(reasons(found).values()) == {f"2 are called Ada Lovelace: {way_out}"}
    # The worksheet's numbers tell them apart, and one of them from who is not in it.
    head = "Identifier,Full name,Email address"
    sheet = roster(tmp_path, "Participant 1,Ada Lovelace,1@x.org", head=head)
    assert len(collect_downloads(course, NAME, [zipped], sheet).left) == 1
    assert submitted(course) == {f"1@x.org/{NAME}/{FILE}": other(1)}
    lines = [f"Participant {n},Ada Lovelace,{n}@x.org" for n in (1, 2)]
    sheet = roster(tmp_path, *lines, head=head)
    collect_downloads(course, NAME, [zipped], sheet)
    assert submitted(course) == {f"{n}@x.org/{NAME}/{FILE}": other(n) for n in (1, 2)}


def test_who_is_not_on_the_roster_is_listed_and_who_is_missing(course, tmp_path):
    files = [("Ada Lovlace_9_assignsubmission_file/a.ipynb", GOOD), ("b/readme.md", b"x")]
    files += [(f"Participant_4_assignsubmission_file/{FILE}", GOOD), (f"anon_7_8_{FILE}", GOOD)]
    lines = ["ada,Lovelace,Ada,a@x.org"]
    found = collect_downloads(
        course, NAME, [archive(tmp_path / "a.zip", files)], roster(tmp_path, *lines)
    )
    assert list(reasons(found).values()) == [
        f"Ada Lovlace (9) is not on the roster; is it ada? {SPELLING_HINT}",
        "nobody on the roster is called readme",
        f"handed in anonymously: {SHOW_NAMES_HINT}",
        f"handed in anonymously: {SHOW_NAMES_HINT}",
    ]
    assert (submitted(course), found.absent) == ({}, ["ada"])


def test_another_assignments_notebook_and_several_are_left(course, tmp_path):
    files = [(made.moodle(ADA, "02_other.ipynb"), GOOD), (made.moodle(ALAN, "a.ipynb"), GOOD)]
    files += [(made.moodle(ALAN, "b.ipynb"), GOOD)]
    found = collect_downloads(course, NAME, [archive(tmp_path / "a.zip", files)])
    assert submitted(course) == {}
    first, second = reasons(found).values()
    assert first == "this is of 02_other: attncourse collect 02_other"
    assert second.startswith(f"several notebooks and none is {FILE}: a.ipynb, b.ipynb")


def test_paths_that_climb_out_lead_nowhere(course, tmp_path):
    climbing = [
        f"../../{FILE}",
        f"/etc/{FILE}",
        f"..\\ada\\{FILE}",
        f"C:\\{FILE}",
        f"{LONG}/../../{FILE}",
    ]
    zipped = archive(tmp_path / "a.zip", [(path, GOOD) for path in climbing])
    found = collect_downloads(course, NAME, [zipped])
    assert set(reasons(found).values()) == {"its path leads out of the archive"}
    assert len(found.left) == len(climbing)
    assert submitted(course) == {}


def test_bombs_are_told_of_before_they_are_unpacked(course, tmp_path, monkeypatch):
    many = packed((f"{n}.txt", b"") for n in range(drops.MAX_FILES_OF_ARCHIVE + 1))
    deep = packed([("b.zip", packed([("c.zip", packed([(FILE, GOOD)]))]))])
    big = bytes(MAX_BYTES_OF_FILE + 10)
    files = [(made.moodle(ADA, FILE), big), ("many.zip", many), ("deep.zip", deep)]
    files += [(made.moodle(ALAN, "a.zip"), packed([(FILE, big)])), (made.moodle(GRACE, FILE), GOOD)]
    zipped = archive(tmp_path / "a.zip", files)
    found = collect_downloads(course, NAME, [zipped])
    assert [row.student for row in found.rows] == ["grace-hopper"]
    said = reasons(found)
    assert "over 100 MB" in said[made.moodle(ADA, FILE)]
    assert "over 100 MB" in said[made.moodle(ALAN, "a.zip")]
    assert said["many.zip"] == "an archive of more than 5000 files"
    assert said["c.zip"] == "an archive in an archive in an archive"
    monkeypatch.setattr(drops, "MAX_FILES", 3)
    with pytest.raises(UserError, match="holds more than 3 files"):
        collect_downloads(course, NAME, [zipped])


@pytest.mark.parametrize("encoding", ["utf-8", "cp437", "cp1252"])
def test_names_are_read_in_whichever_encoding_they_are(course, tmp_path, encoding):
    name = "José Müller_5_assignsubmission_file/a.ipynb"
    raw = name.encode(encoding)
    content = packed([("x" * len(raw), GOOD)]).replace(b"x" * len(raw), raw)
    (tmp_path / "a.zip").write_bytes(content)
    assert not zipfile.ZipFile(io.BytesIO(content)).infolist()[0].flag_bits & drops.UTF_8
    people = roster(tmp_path, "jose,Müller,José,a@x.org")
    found = collect_downloads(course, NAME, [tmp_path / "a.zip"], people)
    assert (list(submitted(course)), found.left) == ([f"jose/{NAME}/{FILE}"], [])


ROSTERS = {
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


@pytest.mark.parametrize("content", ROSTERS)
def test_what_is_no_roster_is_told_in_a_line(content, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(content)
    with pytest.raises(UserError) as told:
        read_roster(path)
    assert ROSTERS[content] in str(told.value)


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
    sheet = made.worksheet(tmp_path / "w.csv", times)
    zipped = archive(tmp_path / "a.zip", [(made.moodle(ADA, FILE), GOOD)])
    refuses(
        run("collect", NAME, zipped, "--roster", sheet, cwd=course),
        "Monday, 12 October 2026, 11:59 PM has no time zone",
        "set c.NbGraderAPI.timezone",
    )
    assert submitted(course) == {}


def test_a_time_that_is_none_is_told_and_the_file_collected(course, tmp_path):
    sheet = made.worksheet(tmp_path / "w.csv", {ADA.id: "Montag, 12. Oktober"})
    found = collect_downloads(
        course, NAME, [archive(tmp_path / "a.zip", [(made.moodle(ADA, FILE), GOOD)])], sheet
    )
    (remark,) = found.remarks
    assert "s01: collected without a time: Montag" in remark
    assert submitted(course) == {f"s01/{NAME}/{FILE}": GOOD}


def test_the_command_says_what_went_where_in_eighty_columns(course, tmp_path):
    files = [(made.moodle(s, FILE), other(s.id)) for s in CLASS[:-2]]
    files += [(made.moodle(CLASS[-2], f"{NAME} (1).ipynb"), GOOD), ("notes.txt", b"x")]
    zipped = archive(tmp_path / "m.zip", files)
    sheet = made.worksheet(
        tmp_path / "w.csv", {s.id: "12 October 2026, 11:59 PM" for s in CLASS[1:]}
    )
    command = [sys.executable, "-W", "error", "-m", "attncourse.grading.cli", "collect", NAME]
    done = subprocess.run(
        [*command, str(zipped), "--roster", str(sheet)],
        capture_output=True,
        text=True,
        cwd=course,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 130
    row = next(line for line in lines if line.split()[:1] == ["s07"])
    assert row.split() == ["s07", "Zoë", "Ångström", "2026-10-12", "23:59", "new"]
    assert f"Liam Ryan, {NAME} (1).ipynb" in done.stdout
    assert "nobody on the roster is called notes" in done.stdout
    assert "nothing from 1 student: s30" in done.stdout
    assert "no time is known of 1 submission, counted as on time" in done.stdout
    assert f"29 submissions of {NAME} (29 new), times in Europe/Berlin" in done.stdout


def test_what_is_no_download_is_refused_in_a_line(course, tmp_path):
    broken = tmp_path / "broken.zip"
    broken.write_bytes(packed([(FILE, GOOD)])[:60])
    for name, path, said in (
        (NAME, tmp_path / "none.zip", "cannot read .*No such file"),
        (NAME, broken, "is a damaged archive .*download it again"),
        ("zzz", broken, "no assignment is called zzz"),
    ):
        with pytest.raises(UserError, match=said):
            collect_downloads(course, name, [path])


# --- what a student writes speaks for nobody else ---------------------------------------------

EVE, HERS = "Eve Mallory_2_assignsubmission_file", f"Ada Lovelace_1_assignsubmission_file/{FILE}"
THREE = ("ada,Lovelace,Ada,ada@x.org,123", "eve,Mallory,Eve,eve@x.org,555", "bob,Builder,Bob,,321")
FORGED = """{key}:
  :submitters:
  - :email: ada@x.org
  - :email: bob@x.org
  :created_at: 2026-10-12 21:00:00 Z
"""
SAID = """submission_1:
  :submitters:
  - :email: ada@x.org
  - text
submission_2:
  :submitters:
  - :name: bob
    :sid: eve
  :created_at: 2026-10-15 20:00:00 Z
"""


def gathered(course: Path, files: list[tuple[str, bytes]], *lines: str) -> tuple[dict, dict]:
    """Who gets what of a download, by the text that only it has, and what is left."""
    people = roster(course, *(lines or THREE), head="id,last_name,first_name,email,lms_user_id")
    found = collect_downloads(course, NAME, [archive(course / "d.zip", files)], people)
    ours = {path: data for path, data in submitted(course).items() if path.endswith(FILE)}
    return {path.partition("/")[0]: data for path, data in ours.items()}, reasons(found)


@pytest.mark.parametrize("key", [".", "..", "a", "a: [", "!!int ''", "[" * 9999, "a:\n  - x", "'"])
@pytest.mark.parametrize("place", [EVE, "e/submission_2", f"eve/{NAME}", "eve", "eve/b/c"])
def test_only_gradescopes_own_file_speaks_for_others(course, place, key):
    files = [(f"{place}/{FILE}", other("eve")), (f"{place}/a/{FILE}", other("eve"))]
    files += [(f"{place}/submission_metadata.yml", FORGED.format(key=key).encode())]
    if place.startswith("e/"):
        files += [("e/submission_metadata.yml", SAID.encode())]
        files += [(f"e/submission_1/{FILE}", other("ada"))]
    else:
        files += [(HERS, other("ada"))]
    got, left = gathered(course, files)
    assert got == {"ada": other("ada"), "eve": other("eve")}
    assert left == {}
    stamp = course / "submitted" / "ada" / NAME / "timestamp.txt"
    assert not stamp.exists()


@pytest.mark.parametrize(
    ("said", "why"),
    [("a: [", "cannot be read"), ("- a", "expected a table"), ("[" * 9999, "cannot be read")],
)
def test_gradescopes_empty_file_is_left(course, said, why):
    files = [("e/submission_metadata.yml", said.encode()), (f"e/ada/{FILE}", GOOD)]
    got, left = gathered(course, [*files, (f"bob/{FILE}", other("bob"))])
    assert got == {"bob": other("bob")}
    assert why in left["e/submission_metadata.yml"]
    assert f"e/ada/{FILE}" in left


def test_gradescopes_file_speaks_of_the_folders_beside_it_alone(course):
    said = FORGED.format(key=".") + FORGED.format(key="..") + FORGED.format(key="a/b")
    files = [("e/submission_metadata.yml", said.encode()), (f"e/a/b/{FILE}", GOOD)]
    got, left = gathered(course, [*files, (f"e/{FILE}", GOOD)])
    assert (got, list(left)) == ({}, [f"e/a/b/{FILE}", f"e/{FILE}"])


def test_the_platforms_part_of_a_name_counts(course):
    late = "malloryeve_555_9002_LATE_123_text.html"
    for file in ("malloryeve_555_9002_123_text.html", late):
        found = claim_of_path(PurePosixPath(file), NAME)
        assert (found.number, found.late) == ("555", False)
    hidden = packed([(FILE, other("eve"))])
    assert gathered(course, [("malloryeve_555_9002_123_text.html", hidden)])[0] == {
        "eve": other("eve")
    }
    # Of a name that could have two numbers of people, neither is guessed.
    for number in (555, 999):
        name = f"malloryeve_{number}_9002_123_7_x.ipynb"
        got, left = gathered(course, [(name, other("x")), (late, b"")])
        assert "its path names ada and" in left[name]
        assert "ada" not in got
    upload = claim_of_path(
        PurePosixPath("lovelaceada_123_400_12_transformer.ipynb"), "12_transformer"
    )
    assert (upload.number, upload.rivals) == ("123", ())


@pytest.mark.parametrize(
    ("hers", "eves"),
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
        (HERS, f"Eve_Mallory_2_assignsubmission_file/lovelaceada_123_9_{FILE}"),
        (HERS, "Eve_Mallory_2_assignsubmission_file/ada.ipynb"),
        (HERS, f"Eve_Mallory_2_assignsubmission_file/{HERS}"),
    ],
)
def test_a_download_has_one_platforms_names(course, hers, eves):
    got, left = gathered(course, [(eves, other("eve")), (hers, other("ada"))])
    assert got["ada"] == other("ada")
    assert (got.get("eve") == other("eve")) != (eves in left)


@pytest.mark.parametrize(
    "path",
    [
        f"eve/ada/{NAME}/{FILE}",
        "eve/ada.ipynb",
        f"eve/Ada Lovelace {NAME}.ipynb",
        f"eve/{HERS}",
        f"eve/lovelaceada_123_4_{FILE}",
        f"eve/ada+{NAME}+2026-10-12 21:59:00 UTC+Z/{FILE}",
    ],
)
def test_a_path_that_names_two_is_nobodys(course, path):
    got, left = gathered(course, [(path, other("eve")), (f"bob/{FILE}", other("bob"))])
    assert got == {"bob": other("bob")}
    assert left == {path: "its path names ada and eve: call it after its owner alone"}
    inner = packed([(path.removeprefix("eve/"), other("eve"))])
    (course / "eve.zip").write_bytes(packed([("all of it.zip", inner)]))
    people = roster(course, *THREE, head="id,last_name,first_name,email,lms_user_id")
    assert not any(
        r.student == "ada"
        for r in collect_downloads(course, NAME, [course / "eve.zip"], people).rows
    )


def test_what_somebody_is_called_is_no_id(course, tmp_path):
    files = [(f"ADA_2_assignsubmission_file/{FILE}", other("eve")), (f"bob_5_6_{FILE}", GOOD)]
    got, left = gathered(course, files)
    assert got == {}
    assert list(left.values()) == [
        f"ADA (2) is not on the roster; is it ada? {SPELLING_HINT}",
        f"bob (5) is not on the roster; is it bob? {SPELLING_HINT}",
    ]
    # Without a roster nor does it make one that somebody else has.
    people = Class({"ada": Member(Person("ada", "Lovelace", "Ada"))})
    with pytest.raises(Ungraded, match="may be ada: name the class"):
        single_owner(claim_of_path(PurePosixPath(files[0][0]), NAME), people)


def test_a_platforms_number_is_its_own(course):
    lines = ("123,Lovelace,Ada,ada@x.org,", "124,Mallory,Eve,eve@x.org,")
    files = [(f"malloryeve_123_400_{FILE}", other("eve"))]
    assert gathered(course, files, *lines)[0] == {"124": other("eve")}
    # Nor is an id of the university's, or what the gradebook calls another.
    head = "Student,ID,SIS User ID,SIS Login ID,Section"
    people = roster(course, '"Lovelace, Ada",7,555,ada,A', '"Mallory, Eve",555,9,eve,A', head=head)
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
    hers = [f"lovelaceada_123_99999_{FILE}", HERS, f"ada/{NAME}/{FILE}", "ada.ipynb"]
    files = [(path, packed([(name, other("x")) for name in hers]))]
    if path.startswith("e/"):
        said = "submission_2:\n  :submitters:\n  - :email: z@x.org\n"
        files += [("e/submission_metadata.yml", said.encode())]
    got, left = gathered(course, files)
    assert (got, list(left)) == ({}, [path])


def test_an_archives_time_is_no_hand_in_time(course):
    stamp = b"2026-10-01 10:00:00 UTC"
    early = [(f"eve/{NAME}/timestamp.txt", stamp), (f"eve/{NAME}/{FILE}", other("eve"))]
    days = [(f"bob+{NAME}+2026-10-{day} 10:00:00 UTC+Z/{FILE}", other(day)) for day in (12, 11)]
    got, left = gathered(course, [("stuff.zip", packed(early)), ("more.zip", packed(days))])
    assert (got, left) == ({"eve": other("eve"), "bob": other(12)}, {})
    assert not [path for path in submitted(course) if path.endswith("timestamp.txt")]


def test_damaged_contents_of_an_archive_are_left(course):
    data = bytearray(packed([("ada.ipynb", other("ada")), (f"bob/{FILE}", other("bob"))]))
    start = data.index(b"ada.ipynb") + len("ada.ipynb")
    data[start : start + 60] = b"\xff" * 60
    got, left = gathered(course, [("all.zip", bytes(data))])
    assert got == {"bob": other("bob")}
    assert "damaged in the archive" in left["ada.ipynb"]


def test_what_is_in_archives_is_bounded_together(course, monkeypatch):
    several = [
        (f"{n}.zip", packed([(f"{who}.ipynb", other(who))]))
        for n, who in enumerate(("ada", "eve", "bob"))
    ]
    size = len(several[0][1])
    for room in (drops.ArchiveRoom(bytes=2 * size), drops.ArchiveRoom(files=2)):
        monkeypatch.setattr(sort, "ArchiveRoom", lambda room=room: room)
        got, left = gathered(course, several)
        assert set(got) == {"ada", "eve"}
        assert left == {"2.zip": "the archives in it hold too much: unpack it and name its folder"}


def test_long_hostile_paths_cost_no_time(course):
    names = ["x" + " " * 60_000 + "y.ipynb", "_1" * 30_000 + "\n", "a/" * 30_000 + "b.ipynb"]
    names += ["x" + " " * 900 + "y.ipynb", "_1" * 400 + "\n"]
    inner = packed([(f"{n}{name}", b"x") for n in range(9) for name in names])
    start = time.process_time()
    _, left = gathered(course, [("all.zip", inner)])
    assert time.process_time() - start < 5
    assert any("longer than any platform" in reason for reason in left.values())


def test_no_cell_of_the_record_begins_with_a_formula(course):
    path = f"=1+1'!A0;=2/ada/{NAME}/{FILE}"
    gathered(course, [(path, GOOD)])
    for _ in range(2):  # what is there is kept, and not quoted again
        assert read_record(course, NAME)["ada"]["handed_in_as"] == path
        text = (course / "submitted" / ".collected" / f"{NAME}.csv").read_text()
        assert "'=1+1'!A0;'=2/ada" in text
        assert ",=" not in text
        gathered(course, [(f"eve/{FILE}", GOOD)])


def tape(path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        archive.add(__file__, "Ada Lovelace_1_assignsubmission_file/a.ipynb")


NO_DOWNLOADS = {
    "class.tar.gz": (tape, "should be a zip archive: make it one, or unpack it"),
    "login.zip": (lambda path: path.write_text("<html>Log in"), "should be a zip archive"),
    "nothing.zip": (lambda path: packed_to(path, []), "an archive with nothing in it"),
}


def packed_to(path: Path, files: list) -> None:
    path.write_bytes(packed(files))


@pytest.mark.parametrize("called", NO_DOWNLOADS)
def test_what_is_no_zip_archive_is_not_taken_for_a_person(course, tmp_path, called):
    make, why = NO_DOWNLOADS[called]
    make(tmp_path / called)
    found = collect_downloads(
        course, NAME, [tmp_path / called], roster(tmp_path, "ada,Lovelace,Ada,")
    )
    assert why in reasons(found)[called]


def test_an_archive_that_unpacks_itself_is_one(course, tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"#!/bin/sh\n" + packed([("ada_1_assignsubmission_file/a.ipynb", GOOD)]))
    assert [row.student for row in collect_downloads(course, NAME, [path]).rows] == ["ada"]


def test_nothing_is_said_of_grading_in_a_read_only_folder(course, tmp_path):
    (course / "reports").write_text("in the way")
    download = archive(tmp_path / "a.zip", [("ada_1_assignsubmission_file/a.ipynb", GOOD)])
    with pytest.raises(UserError, match=r"cannot write .*journal.lock: [^:;]*$"):
        collect_downloads(course, NAME, [download])


def test_a_list_with_nothing_in_it_is_told_as_that(course, tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(UserError, match=r"empty.csv is no roster: .*; found nothing$"):
        collect_downloads(course, NAME, [], empty)
    with pytest.raises(UserError, match=r"expected the head group,student; found nothing$"):
        collect_downloads(course, NAME, [], groups=empty)


# --- a column that slipped, and other lists that are not this class's --------------------------

HEADS = "id,last_name,first_name,email,lms_user_id"


def slipped(folder: Path, turn: int = 1) -> Path:
    """A roster whose Canvas numbers stand so many rows below where they belong."""
    lines = [
        f"{s.id},{s.last},{s.first},,{CLASS[(n - turn) % 4].canvas}"
        for n, s in enumerate(CLASS[:4])
    ]
    return roster(folder, *lines, head=HEADS)


def canvas_download(folder: Path, students=CLASS[:4]) -> Path:
    files = [(f"{s.sortable}_{s.canvas}_9{s.canvas}_{FILE}", other(s.id)) for s in students]
    return archive(folder / "submissions.zip", files)


def test_a_column_that_slipped_gives_nobody_anothers_work(course, tmp_path):
    zipped, people = canvas_download(tmp_path), slipped(tmp_path)
    (course / "submitted").mkdir()
    done = run("collect", NAME, zipped, "--roster", people, cwd=course)
    refuses(
        done, ADA.sortable, "s02", "roster.csv, line 3", "s01, Ada Lovelace", "line 2", "--trust"
    )
    assert "and 3 more" in done.stderr
    assert submitted(course) == {}
    right = {f"{s.id}/{NAME}/{FILE}": other(s.id) for s in CLASS[:4]}
    assert collect_downloads(course, NAME, [zipped], people, trust="names").left == []
    assert submitted(course) == right
    collect_downloads(course, NAME, [zipped], people, trust="numbers")
    assert submitted(course)[f"s02/{NAME}/{FILE}"] == other("s01")
    # What the roster's own numbers say of their owners is no slip.
    collect_downloads(course, NAME, [zipped], slipped(tmp_path, turn=0))
    assert submitted(course) == right
    with pytest.raises(UserError, match="--trust: expected numbers or names, got name"):
        collect_downloads(course, NAME, [zipped], people, trust="name")


def test_a_gradebook_with_slipped_numbers_stops_as_well(course, tmp_path):
    run("roster", slipped(tmp_path), cwd=course)
    with pytest.raises(UserError, match="the gradebook"):
        collect_downloads(course, NAME, [canvas_download(tmp_path)])
    # And so does a list that is put beside it: an id of the one, a name of the other.
    ids = [
        f"{s.id},{CLASS[n - 1 if n else 3].last},{CLASS[n - 1 if n else 3].first},,"
        for n, s in enumerate(CLASS[:4])
    ]
    people = roster(tmp_path, *ids, head=HEADS)
    done = run("roster", people, cwd=course)
    refuses(done, "s01", "line 2", "the gradebook", "nothing was changed", "--trust")
    for trust, wanted in (("names", "s04"), ("numbers", "s01")):
        known = [Person(s.id, s.last, s.first) for s in CLASS[:4]]
        assert with_known_ids(read_roster(people), known, trust)[0].id == wanted


def test_another_platform_name_is_known_by_number(course, tmp_path):
    people = roster(
        tmp_path, *(f"{s.id},{s.last},{s.first},,{s.canvas}" for s in CLASS), head=HEADS
    )
    zipped = archive(tmp_path / "a.zip", [(f"augustaking_{ADA.canvas}_91_{FILE}", GOOD)])
    assert collect_downloads(course, NAME, [zipped], people).left == []
    assert submitted(course) == {f"{ADA.id}/{NAME}/{FILE}": GOOD}


def test_the_class_is_entered_and_what_changes_is_told(course, tmp_path):
    lines = [f"{s.id},{s.last},{s.first},{s.email},{s.canvas}" for s in CLASS[:3]]
    assert run("roster", roster(tmp_path, *lines, head=HEADS), cwd=course).stdout.splitlines() == [
        "3 students: 3 new, 0 changed, 0 as before"
    ]
    lines[0] = f"{ADA.id},Lovelace,Ada,ada@new.example,{ADA.canvas}"
    done = run("roster", roster(tmp_path, *lines[:2], head=HEADS), cwd=course)
    assert done.stdout.splitlines() == [
        f"s01: email {ADA.email} to ada@new.example",
        "in the gradebook and on no list: s03, Grace Hopper (the gradebook)",
        "2 students: 0 new, 1 changed, 1 as before",
    ]


def test_a_class_is_the_first_that_a_new_gradebook_has(course, tmp_path):
    lines = [f"{s.id},{s.last},{s.first},,{s.canvas}" for s in CLASS[:3]]
    people = roster(tmp_path, *lines, head=HEADS)
    done = run("roster", people, "--db", f"sqlite:///{tmp_path / 'new.db'}", cwd=course)
    assert done.stdout.splitlines() == ["3 students: 3 new, 0 changed, 0 as before"]
    assert not (course / "gradebook.db").exists()


def test_those_without_a_name_are_told(course, tmp_path):
    lines = [f"{s.id},{s.last},{s.first},,{s.canvas}" for s in CLASS[:3]]
    lines[1] = f"{ALAN.id},,,,{ALAN.canvas}"
    people = roster(tmp_path, *lines, head=HEADS)
    assert run("roster", people, cwd=course).stdout.splitlines() == [
        f"no name of {ALAN.id} (roster.csv, line 3): found by number and id alone",
        "3 students: 3 new, 0 changed, 0 as before",
    ]
    named = roster(tmp_path, f"{ALAN.id},{ALAN.last},{ALAN.first},,", head=HEADS)
    run("roster", named, cwd=course)
    # Now the gradebook knows it, and a list without it takes nothing away.
    done = run("roster", roster(tmp_path, *lines, head=HEADS), cwd=course)
    assert done.stdout.splitlines() == ["3 students: 0 new, 0 changed, 3 as before"]


def test_a_name_like_one_of_a_known_class_is_nobody_new(course, tmp_path):
    lines = [f"{s.id},{s.last},{s.first},,{s.canvas}" for s in CLASS[:3]]
    run("roster", roster(tmp_path, *lines, head=HEADS), cwd=course)
    near, else_ = (
        f"{n}_assignsubmission_file_/{FILE}" for n in ("Ada Lovelance_77", "Who Ever_78")
    )
    zipped = archive(tmp_path / "m.zip", [(near, other("near")), (else_, other("else"))])
    found = collect_downloads(course, NAME, [zipped])
    question = f"nobody is known as Ada Lovelance (77); is it {ADA.id}? {NEAR_NAME_HINT}"
    assert reasons(found) == {near: question}
    assert found.new == ["who-ever"]
    # As the question says: with the name beside its owner's, or as somebody else's.
    more = roster(tmp_path, f"{ADA.id},Lovelace,Ada,,1,Ada Lovelance", head=f"{HEADS},name")
    assert [r.student for r in collect_downloads(course, NAME, [zipped], more).rows] == [ADA.id]
    people = roster(tmp_path, *lines, "new,Lovelance,Ada,,", head=HEADS)
    assert [r.student for r in collect_downloads(course, NAME, [zipped], people).rows] == ["new"]


def test_lists_that_cannot_be_this_classs_are_told_in_a_line(course, tmp_path):
    head = "id,last_name,first_name,email,lms_user_id"
    twice = roster(tmp_path, "a,Lovelace,Ada,,7", "b,Turing,Alan,,7", head=head)
    for words in (
        ("roster", twice),
        ("collect", NAME, canvas_download(tmp_path), "--roster", twice),
    ):
        refuses(run(*words, cwd=course), "line 2", "line 3", "same number, 7")
    old = roster(tmp_path, "x1,Curie,Marie,,71", "x2,Meitner,Lise,,72", head=head)
    done = run("collect", NAME, canvas_download(tmp_path), "--roster", old, cwd=course)
    refuses(done, "none of the 4 people", "another term's")
    run("roster", slipped(tmp_path, turn=0), cwd=course)
    old = roster(tmp_path, "x1,Curie,Marie,,71", "x2,Meitner,Lise,,72", head=head)
    refuses(run("roster", old, cwd=course), "none of the 2 students", "attncourse new-term")
    bare = roster(tmp_path, *(f"{s.id},{s.canvas}" for s in CLASS[:4]), head="id,lms_user_id")
    found = collect_downloads(course, NAME, [canvas_download(tmp_path)], bare)
    assert found.left == []
    assert "has no names" in found.remarks[0]
