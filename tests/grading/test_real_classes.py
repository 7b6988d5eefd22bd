"""Cases of real classes: worksheets in any language, groups, sections, links, late days."""

import csv
import io
import json
import os
from datetime import datetime
from pathlib import Path
from zipfile import ZipFile

import pytest

from attncourse.grading.collect.collect import collect_downloads
from attncourse.grading.collect.owners import SHOW_NAMES_HINT, TEST_STUDENT_REASON
from attncourse.grading.collect.roster import read_roster
from attncourse.grading.course.extensions import read_extensions
from attncourse.grading.course.folders import read_record, read_submission
from attncourse.grading.course.solution import outdated_solution
from attncourse.grading.driver import command
from attncourse.grading.errors import UserError
from attncourse.grading.feedback.command import give_feedback
from attncourse.grading.gradebook.connection import find_gradebook
from attncourse.grading.gradebook.submissions import grant_extension
from attncourse.grading.limits import Limits
from attncourse.grading.results.canvas import canvas_rows as canvas_rows
from attncourse.grading.results.class_results import class_results
from attncourse.grading.results.late_days import write_late_days_worksheet
from attncourse.grading.results.similar import similar_pairs
from helpers.driver_runs import grade
from helpers.gradebook_scores import adas_scores, enter_score, with_question, write_solved
from helpers.platform_downloads import write_archive, write_table, zip_bytes
from helpers.project import ROOT
from helpers.small_class import refuses, run
from helpers.small_course import (
    NAME,
    graded,
    hand_in,
    make_course,
    notebook,
    released,
    small,
    solution,
)

FILE = f"{NAME}.ipynb"
CONFIG = """
c = get_config()
c.NbGraderAPI.timezone = "Europe/Berlin"
c.Assignments.due = {"01_small": "2026-10-12 23:59"}
"""
ROSTER = (
    "id,last_name,first_name,email\nada,Lovelace,Ada,ada@x\nbob,Bell,Bob,bob@x\ncy,Young,Cy,cy@x"
)


@pytest.fixture
def course(tmp_path) -> Path:
    folder = make_course(tmp_path / "course")
    (folder / "nbgrader_config.py").write_text(CONFIG)
    (folder / "class.csv").write_text(ROSTER)
    return folder


def moodle_path(name: str, number: int, file: str = FILE) -> str:
    """Return the path of a student's file in Moodle's download."""
    return f"{name}_{number}_assignsubmission_file/{file}"


def collect_files(course: Path, files: dict[str, bytes], roster: str = "class.csv", **more):
    """Collect a zip of these files with this roster, and return the collection."""
    zipped = write_archive(course / "d.zip", files.items())
    return collect_downloads(course, NAME, [zipped], course / roster if roster else None, **more)


def path_by_owner(collection) -> dict[str, str]:
    """Return the path in the download that each student's work was taken from."""
    return {row.student: row.owned.item.shown for row in collection.rows}


# --- worksheets in other languages -------------------------------------------------------------

WORKSHEETS = {  # head of Moodle's grading worksheet, word for a participant, hand-in time
    "German": (
        "ID;Vollständiger Name;ID-Nummer;E-Mail-Adresse;Status;Bewertung;Bestwertung;"
        "Bewertung kann geändert werden;Zuletzt geändert (Abgabe);Zuletzt geändert (Bewertung)",
        "Teilnehmer/in",
        "Montag, 12. Oktober 2026, 23:30",
    ),
    "French": (
        "Identifiant;Nom complet;Numéro d'identification;Adresse de courriel;Statut;Note;"
        "Note maximale;La note peut être modifiée;Dernière modification (travail remis);"
        "Dernière modification (note)",
        "Participant",
        "lundi 12 octobre 2026, 23:30",
    ),
    "an unsupported language": (
        "Tunniste;Koko nimi;Tunnus;Sähköposti;Tila;Arvosana;Maksimi;Muokattavissa;Palautettu;"
        "Arvosteltu",
        "Osallistuja",
        "maanantaina 12. lokakuuta 2026, 23:30".replace("maanantaina", "maanantai"),
    ),
    "German, through Excel": (
        "ID;Vollständiger Name;ID-Nummer;E-Mail-Adresse;Status;Bewertung;Bestwertung;"
        "Bewertung kann geändert werden;Zuletzt geändert (Abgabe);Zuletzt geändert (Bewertung)",
        "Teilnehmer/in",
        "12.10.2026 23:30",
    ),
}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("language", WORKSHEETS)
def test_a_worksheet_is_read_in_any_language(language, encoding, course):
    head, participant, time = WORKSHEETS[language]
    rows = [
        f"{participant} {n};{name};;{name[:3].lower()}@x;abgegeben zur Bewertung;;43,00;Ja;{at};-"
        for n, name, at in ((101, "Ada Lovelace", time), (102, "Bob Bell", "-"))
    ]
    sheet = course / "w.csv"
    sheet.write_bytes("\r\n".join([head, *rows]).encode(encoding))
    collection = collect_files(course, {moodle_path("Ada Lovelace", 101): small()}, "w.csv")
    (row,) = collection.rows
    assert (row.student, row.time, row.owned.sure) == (
        "ada@x",
        datetime(2026, 10, 12, 21, 30),
        True,
    )
    assert collection.absent == ["bob@x"]
    assert collection.left == collection.remarks == []


def test_the_list_of_participants_is_read_in_german(course):
    (course / "p.csv").write_text(
        "Vorname,Nachname,E-Mail-Adresse,Gruppen\nAda,Lovelace,ada@x,Rot\nBob,Bell,bob@x,Rot\n"
    )
    ada, bob = read_roster(course / "p.csv")
    assert (ada.full_names, ada.groups, bob.person.email) == (
        ["Ada Lovelace", "Lovelace Ada"],
        ("Rot",),
        "bob@x",
    )


def test_the_message_says_which_column_is_missing(course):
    (course / "p.csv").write_text("Nimi,Tila\nAda,ok\nBob,ok\n")
    with pytest.raises(UserError, match=r"expected a column of ids or addresses.*Nimi, Tila"):
        read_roster(course / "p.csv")


# --- groups -------------------------------------------------------------------------------------

TEAM_DOWNLOAD = {
    moodle_path("Team Rot", 412): small(),
    moodle_path("Cy Young", 7): small(add="add = 1"),
}
GROUP_LISTS = {
    "a row a member": "group,student\nTeam Rot,ada\nTeam Rot,Bob Bell\n",
    "a row a group": "Group;Member 1;Member 2\nTeam Rot;ada@x;bob\n",
    "of one assignment": "assignment,group,student\n01_small,Team Rot,ada\n"
    "01_small,Team Rot,bob\n02_other,Team Rot,cy\n",
}


@pytest.mark.parametrize("listed", GROUP_LISTS.values(), ids=GROUP_LISTS)
def test_a_groups_hand_in_counts_for_each_member(listed, course, marker):
    (course / "groups.csv").write_text(listed)
    collection = collect_files(course, TEAM_DOWNLOAD)
    assert collection.left == collection.absent == []
    team = moodle_path("Team Rot", 412)
    assert path_by_owner(collection) == {"ada": team, "bob": team, "cy": moodle_path("Cy Young", 7)}
    assert {s: row["group"] for s, row in read_record(course, NAME).items()} == {
        "ada": "Team Rot",
        "bob": "Team Rot",
        "cy": "",
    }
    grade(course)
    feedback = give_feedback(course, NAME, download=course / "d.zip")
    results = class_results(course, NAME).results
    assert len({r.score for r in results if r.student != "cy"}) == 1
    for student in ("ada", "bob", "cy"):
        assert (course / "feedback" / student / NAME / f"{NAME}.html").is_file()
    assert feedback.remarks == []
    with ZipFile(course / "reports" / NAME / "feedback-moodle.zip") as feedback_zip:
        assert sorted(feedback_zip.namelist()) == sorted(
            name.replace(".ipynb", ".html") for name in (team, moodle_path("Cy Young", 7))
        )
    pairs = similar_pairs(course, NAME).pairs  # who worked together is no pair
    assert not any({"ada", "bob"} <= {p.first.split()[0], p.second.split()[0]} for p in pairs)


def test_a_groups_different_pages_are_not_shared(course, marker):
    (course / "groups.csv").write_text(GROUP_LISTS["a row a member"])
    collect_files(course, TEAM_DOWNLOAD)
    grade(course)
    enter_score(course, "bob", "points_twice", 1.0)
    feedback = give_feedback(course, NAME, download=course / "d.zip")
    assert any("the pages of Team Rot differ, give them back by hand: ada, bob" in remark
               for remark in feedback.remarks)  # fmt: skip
    with ZipFile(course / "reports" / NAME / "feedback-moodle.zip") as feedback_zip:
        assert len(feedback_zip.namelist()) == 1


def test_a_roster_gives_groups_and_reads_moodles_old_names(course):
    (course / "r.csv").write_text(f"{ROSTER}".replace("email", "email,group", 1).replace(
        "ada@x", "ada@x,Rot").replace("bob@x", "bob@x,Rot;Lab 2"))  # fmt: skip
    collection = collect_files(course, {moodle_path("Lab 2", 3): small()}, "r.csv")
    assert path_by_owner(collection) == {"bob": moodle_path("Lab 2", 3)}
    collection = collect_files(
        course, {moodle_path("Rot-Ada Lovelace", 3): small(add="a = 2")}, "r.csv"
    )
    assert list(path_by_owner(collection)) == ["ada"]


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ("team,who\n", "expected a group and who is in it"),
        ("who,what\nada,x\n", "expected the head group,student"),
        ("group,student\nRot,adda\n", "line 2: adda is nobody of the class; is it ada?"),
        ("group,student\nRot,\n", "line 2: expected a group and who is in it"),
    ],
)
def test_a_bad_list_of_groups_is_refused_in_one_line(listed, message, course):
    (course / "groups.csv").write_text(listed if "\nada" in listed or "Rot" in listed else
                                       "group,student\n,ada\n")  # fmt: skip
    with pytest.raises(UserError, match=message.replace("?", r"\?")):
        collect_files(course, TEAM_DOWNLOAD)


def test_an_unlisted_group_is_reported(course):
    collection = collect_files(course, TEAM_DOWNLOAD)
    (left_out,) = collection.left
    assert left_out.reason == (
        "Team Rot (412) is not on the roster; if it is a group, name its members in groups.csv"
    )
    process = run("collect", NAME, course / "d.zip", cwd=course)
    assert "not known before: cy-young, team-rot" in process.stdout


def test_a_second_roster_distinguishes_namesakes(course):
    """The class list has ids, Moodle's worksheet has numbers; addresses join the two."""
    lines = "m1,Müller,Anna,m1@x\nm2,Müller,Anna,m2@x\n"
    (course / "r.csv").write_text(f"id,last_name,first_name,email\n{lines}")
    rows = (f"Participant {n},Anna Müller,m{n}@x,-\n" for n in (1, 2))
    head = "Identifier,Full name,Email address,Last modified (submission)\n"
    (course / "w.csv").write_text(head + "".join(rows))
    files = {moodle_path("Anna Müller", n): small(add=f"a = {n}") for n in (1, 2)}
    zipped = write_archive(course / "d.zip", files.items())
    assert len(collect_downloads(course, NAME, [zipped], course / "r.csv").left) == 2
    process = run("collect", NAME, zipped, "--roster", "r.csv", "--roster", "w.csv", cwd=course)
    assert process.returncode == 0, process
    for n in (1, 2):
        place = course / "submitted" / f"m{n}" / NAME / FILE
        assert place.read_bytes() == small(add=f"a = {n}")


# --- sections, trials, the anonymous, links ---------------------------------------------------


def test_a_person_in_two_sections_is_one_person(course, marker):
    head = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", f"{NAME} (77)")
    ada = ("Lovelace, Ada", 11, "", "ada")
    rows = [(*ada, "A", ""), (*ada, "B", ""), ("Bell, Bob", 12, "", "bob", "A and B", "")]
    sheet = write_table(course / "c.csv", head, *rows, ("Student, Test", 13, "", "f0", "A", ""))
    assert [m.id for m in read_roster(sheet)] == ["ada", "bob"]
    collection = collect_files(course, {f"lovelaceada_11_1_{FILE}": small()}, "c.csv")
    assert (list(path_by_owner(collection)), collection.absent) == (["ada"], ["bob"])
    hand_in(course, "bob", small())
    grade(course)
    remarks: list[str] = []
    rows_for_canvas = canvas_rows([class_results(course, NAME)], remarks.append, sheet)
    assert [row[0] for row in rows_for_canvas[2:]] == ["Lovelace, Ada", "Bell, Bob"]
    assert remarks == []


def test_test_students_and_anonymous_files_are_recognised(course):
    files = {f"studenttest_13_1_{FILE}": small(), f"anon_aB3xZ_2_{FILE}": small()}
    files |= {f"anon_LATE_aB3xZ_3_{FILE}": small(), moodle_path("Teilnehmerin", 4): small()}
    for roster in ("class.csv", ""):
        collection = collect_files(course, files, roster)
        assert collection.rows == []
        assert collection.remarks == [f"studenttest_13_1_{FILE}: {TEST_STUDENT_REASON}"]
        assert {left_out.reason for left_out in collection.left} == {
            f"handed in anonymously: {SHOW_NAMES_HINT}"
        }
        assert len(collection.left) == 3


WRONG_FILES = {
    "a.rar": (b"Rar!\x1a\x07\x01\x00rest", "no notebook (this is a RAR archive)"),
    "a.7z": (b"7z\xbc\xaf\x27\x1crest", "no notebook (this is a 7-Zip archive)"),
    "a.pdf": (b"%PDF-1.7", "no notebook (this is a PDF document)"),
    "link.html": (
        b'<meta http-equiv="refresh" content="0; url=https://colab.example/drive/1">',
        "no notebook but a link (https://colab.example/drive/1)",
    ),
}


@pytest.mark.parametrize("file_name", WRONG_FILES)
def test_a_submitted_file_of_another_kind_is_named(file_name, course):
    content, reason = WRONG_FILES[file_name]
    collect_files(course, {moodle_path("Ada Lovelace", 1, file_name): content})
    submission = read_submission(course, NAME, "ada")
    assert reason in submission.reason
    assert submission.reason.endswith(f": hand in {FILE}")
    process = run("collect", NAME, course / "d.zip", "--roster", course / "class.csv", cwd=course)
    assert f"no notebook from 1 student: ada ({file_name}); ask for {FILE}" in process.stdout


def test_a_download_of_another_kind_is_named(course):
    for file_name, kind in (("c.rar", "a RAR archive"), ("c.7z", "a 7-Zip archive")):
        path = course / file_name
        path.write_bytes(WRONG_FILES["a" + path.suffix][0])
        (left_out,) = collect_downloads(course, NAME, [path], course / "class.csv").left
        assert left_out.reason.startswith(f"this is {kind}; a download should be a zip archive")


def test_a_students_name_may_begin_with_a_dot(course):
    (course / "r.csv").write_text("id,last_name,first_name\nnet,Net,.Dot\n")
    path = moodle_path(".Dot Net", 5)
    collection = collect_files(
        course, {path: small(), f"__MACOSX/._{path}": b"x", "._a.ipynb": b"x"}, "r.csv"
    )
    assert (path_by_owner(collection), collection.left) == ({"net": path}, [])


def test_an_online_text_on_moodle_gets_its_feedback_page(course, marker):
    text_path = "Ada Lovelace_1_assignsubmission_onlinetext/onlinetext.html"
    collect_files(course, {text_path: b"<p>mine</p>", moodle_path("Bob Bell", 2): small()})
    grade(course)
    feedback = give_feedback(course, NAME, download=course / "d.zip")
    assert feedback.remarks == []
    with ZipFile(course / "reports" / NAME / "feedback-moodle.zip") as feedback_zip:
        assert f"Ada Lovelace_1_assignsubmission_file/{NAME}.html" in feedback_zip.namelist()


# --- tests that come later, and sources that nobody made a notebook of --------------------------


def grade_class(course: Path) -> None:
    assert command.grade_course(course, NAME, limits=Limits()).counts["failure"] == 0


def test_a_test_added_after_release_is_no_students_change(tmp_path):
    course = make_course(tmp_path)
    write_solved(course, with_question(small()))
    for student in ("ada", "bob"):
        data = with_question(small(), f"Because, says {student}.")
        hand_in(course, student, data)
    grade_class(course)
    for student in ("ada", "bob"):
        enter_score(course, student, "explain_it", 2.0)
    cells_with_new_test = json.loads(with_question(small()))["cells"] + [
        graded("points_more", "2", 2)
    ]
    write_solved(course, notebook(*cells_with_new_test))
    grade_class(course)
    for student in ("ada", "bob"):
        report = json.loads((course / "reports" / NAME / f"{student}.json").read_text())
        assert "put back" not in json.dumps(report)
        assert "points_more" in report["cells"]
    assert adas_scores(course)["explain_it"] == (None, 2.0, False)  # nothing to doubt
    results = class_results(course, NAME)
    assert results.stale == ""
    hand_in(course, "ada", with_question(small(), "Because, on second thoughts."))
    grade_class(course)
    assert class_results(course, NAME).stale == "explain_it of 1 student"
    assert adas_scores(course)["explain_it"] == (None, 2.0, True)
    cells_without_test = [
        c for c in json.loads(with_question(small()))["cells"] if c["id"] != "points_add"
    ]
    hand_in(course, "bob", notebook(*cells_without_test))  # a test that was there and is not
    grade_class(course)
    report = json.loads((course / "reports" / NAME / "bob.json").read_text())
    assert "missing tests were put back: points_add" in report["attention"]
    assert not any("put back" in note for note in report["notes"])


def test_a_manual_score_is_doubted_if_its_answer_changed(tmp_path, marker):
    course = make_course(tmp_path, ada=b"")
    write_solved(course, with_question(small()))
    hand_in(course, "ada", with_question(small(), "Because."))
    grade(course)
    enter_score(course, "ada", "explain_it", 2.0)
    enter_score(course, "ada", "points_twice", 3.0)
    hand_in(course, "ada", with_question(small(), "Because!"))
    grade(course)
    assert [adas_scores(course)[name][2] for name in ("explain_it", "points_twice")] == [
        True,
        False,
    ]
    enter_score(course, "ada", "explain_it", 2.0)
    hand_in(course, "ada", with_question(small(twice="def twice(a): return a + a"), "Because!"))
    grade(course)
    assert [adas_scores(course)[name][2] for name in ("explain_it", "points_twice")] == [
        False,
        True,
    ]


SOURCE = """# %% [markdown]
# # Title

# %% nbgrader={"grade_id": "add", "solution": true}
def add(a, b):
    ### BEGIN SOLUTION
    return a + b
    ### END SOLUTION

# %% nbgrader={"grade_id": "own_more", "grade": true, "locked": true, "points": 2}
assert add(1, 2) == 3
"""


def notebook_of_source(text: str) -> bytes:
    from attncourse.grading.submission.notebook import read_cells

    return notebook(
        *(
            graded(c.grade_id, c.source, c.points)
            if c.grade
            else solution(c.grade_id, c.source)
            for c in read_cells(text.encode())
            if c.code
        )
    )  # fmt: skip


def test_grading_says_that_a_source_is_newer_than_its_notebook(course, marker, capsys):
    folder = course / "solutions" / NAME
    assert outdated_solution(course, NAME) == []  # there is no source
    source, notebook_path = folder / f"{NAME}.py", folder / FILE
    source.write_text(SOURCE)
    notebook_path.write_bytes(notebook_of_source(SOURCE))
    assert outdated_solution(course, NAME) == []
    for old, new in (("return a + b", "return b + a"), ('"points": 2', '"points": 3')):
        source.write_text(SOURCE.replace(old, new))
        os.utime(
            source, (notebook_path.stat().st_mtime - 100,) * 2
        )  # whatever a checkout made of times
        (message,) = outdated_solution(course, NAME)
        assert message.startswith(f"{source} is newer than the notebook made from it")
        assert message.endswith("make exercises")
    source.write_text(SOURCE[: SOURCE.index('# %% nbgrader={"grade_id": "own')])
    assert outdated_solution(course, NAME)
    source.write_text(SOURCE)
    os.utime(source, (notebook_path.stat().st_mtime + 100,) * 2)
    assert outdated_solution(course, NAME)
    hand_in(course, "ada", released())
    grade(course)
    assert "is newer than the notebook made from it" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "solutions").glob("[0-9]*")))
def test_no_solution_of_this_course_is_outdated(name, tmp_path):
    for suffix in (".py", ".ipynb"):
        path = tmp_path / "solutions" / name / f"{name}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((ROOT / "solutions" / name / f"{name}{suffix}").read_bytes())
    assert outdated_solution(tmp_path, name) == []


# --- late days of a term ------------------------------------------------------------------------


def read_late_days(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of a worksheet of late days by student and assignment."""
    rows = csv.DictReader(io.StringIO(path.read_text("utf-8-sig")))
    return {(row["student"], row["assignment"]): row for row in rows}


def test_late_days_are_shared_by_a_terms_assignments(course, marker):
    second = course / "solutions" / "02_more"
    second.mkdir()
    (second / "02_more.ipynb").write_bytes(small())
    (course / "exercises" / "02_more").mkdir()
    (course / "exercises" / "02_more" / "02_more.ipynb").write_bytes(released())
    settings = course / "nbgrader_config.py"
    due = '{"01_small": "2026-10-12 23:59", "02_more": "2026-10-19 23:59"}'
    plugin = "attncourse.grading.nbgrader.late_days.LateDays"
    settings.write_text(
        'c = get_config()\nc.NbGraderAPI.timezone = "Europe/Berlin"\n'
        f'c.Assignments.due = {due}\nc.AssignLatePenalties.plugin_class = "{plugin}"\n'
    )
    for name, times in {
        NAME: {"ada": "14 09:00", "bob": "12 10:00", "cy": "15 10:00"},
        "02_more": {"ada": "22 10:00", "bob": "20 10:00", "cy": "23 10:00"},
    }.items():
        for student, hand_in_time in times.items():
            place = course / "submitted" / student / name
            place.mkdir(parents=True)
            (place / f"{name}.ipynb").write_bytes(small())
            (place / "timestamp.txt").write_text(f"2026-10-{hand_in_time}:00 +0200\n")
    grant_extension(find_gradebook(course), "cy", NAME, 2)
    for name in (NAME, "02_more"):
        command.grade_course(course, name, limits=Limits())
    place, number = write_late_days_worksheet(course, 4)
    days_by_row = {
        key: [row[head] for head in ("days", "late_days", "late", "not_covered", "left")]
        for key, row in read_late_days(place).items()
    }
    assert days_by_row == {
        ("ada", NAME): ["0", "2", "2", "0", "2"],
        ("ada", "02_more"): ["0", "2", "3", "1", "0"],
        ("bob", "02_more"): ["0", "1", "1", "0", "3"],
        ("cy", NAME): ["2", "1", "1", "0", "3"],
        ("cy", "02_more"): ["0", "3", "4", "1", "0"],
    }
    assert number == 5
    place.replace(course / "extensions.csv")
    for name in (NAME, "02_more"):
        command.grade_course(course, name, limits=Limits())
    late = {
        (r.student, name): (r.late > 0, round(r.penalty, 6))
        for name in (NAME, "02_more")
        for r in class_results(course, name).results
    }
    assert {key for key, (is_late, _) in late.items() if is_late} == {
        ("ada", "02_more"),
        ("cy", "02_more"),
    }
    earned = {r.student: r.raw for r in class_results(course, "02_more").results}
    assert late["ada", "02_more"][1] == pytest.approx(earned["ada"] / 10) != 0  # of one day
    later_path, _ = write_late_days_worksheet(course, 4)  # what was taken is known, and taken once
    assert {k: r["late_days"] for k, r in read_late_days(later_path).items()} == {
        key: row[1] for key, row in days_by_row.items()
    }
    grant_extension(find_gradebook(course), "ada", NAME, 1)
    assert read_extensions(course)["ada", NAME] == (1, 2)


def test_the_late_days_command_says_what_to_do_next(course, marker):
    hand_in(course, "ada", small())
    grade(course)
    process = run("export", "--all", "--late-days", "5", cwd=course)
    assert process.returncode == 0, process
    assert (
        "0 written to reports/late_days.csv; put in the place of extensions.csv" in process.stdout
    )
    refuses(run("export", NAME, "--late-days", "5", cwd=course), "--all --late-days 5")
    refuses(run("export", "--all", "--late-days", "-1", cwd=course), "expected a number of days")


def test_a_team_archive_is_opened_for_each_member(course):
    (course / "groups.csv").write_text(GROUP_LISTS["a row a member"])
    collection = collect_files(
        course, {moodle_path("Team Rot", 4, "all.zip"): zip_bytes([(FILE, small())])}
    )
    assert list(path_by_owner(collection)) == ["ada", "bob"]
    assert (course / "submitted" / "bob" / NAME / FILE).read_bytes() == small()


def test_the_instructors_page_names_the_limits_that_hold():
    from attncourse.grading.collect import drops
    from attncourse.grading.course import handed_in
    from attncourse.grading.graded_notebook import LONGEST, ROOM
    from attncourse.grading.submission import notebook as notebooks
    from attncourse.grading.submission.raw_cells import MAX_CELLS

    page = " ".join((ROOT / "book" / "instructors.md").read_text(encoding="utf-8").split())

    def spaced(number: int) -> str:
        return f"{number:,}".replace(",", " ") if number > 9999 else str(number)

    for sentence in (
        f"{handed_in.MAX_BYTES_OF_FILE // 1_000_000} MB, outputs and all",
        f"{MAX_CELLS} cells, {spaced(notebooks.MAX_CODE_CHARS)} characters of code",
        f"{spaced(drops.MAX_FILES)} files",
        f"{drops.MAX_ARCHIVES_DEEP} deep, {drops.MAX_FILES_OF_ARCHIVE} files each, "
        f"{drops.ArchiveRoom().bytes // 1_000_000} MB together",
        f"{spaced(LONGEST)} characters of a cell, {spaced(ROOM)} of all",
    ):
        assert sentence in page, sentence
