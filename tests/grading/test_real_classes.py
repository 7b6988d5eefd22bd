"""What real classes bring: worksheets in any language, groups, sections, links, late days."""

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
from helpers.gradebook_scores import score, scores, with_question, write_solved
from helpers.platform_downloads import archive, packed, table
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
    made = make_course(tmp_path / "course")
    (made / "nbgrader_config.py").write_text(CONFIG)
    (made / "class.csv").write_text(ROSTER)
    return made


def moodle(name: str, number: int, file: str = FILE) -> str:
    return f"{name}_{number}_assignsubmission_file/{file}"


def gathered(course: Path, files: dict[str, bytes], roster: str = "class.csv", **more):
    zipped = archive(course / "d.zip", files.items())
    return collect_downloads(course, NAME, [zipped], course / roster if roster else None, **more)


def owners(found) -> dict[str, str]:
    return {row.student: row.owned.item.shown for row in found.rows}


# --- worksheets in other languages -------------------------------------------------------------

SHEETS = {  # heads of Moodle's grading worksheet, and when somebody handed in
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
    "one that nobody here knows": (
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
@pytest.mark.parametrize("language", SHEETS)
def test_a_worksheet_is_read_in_whatever_language_it_is(language, encoding, course):
    head, participant, time = SHEETS[language]
    rows = [
        f"{participant} {n};{name};;{name[:3].lower()}@x;abgegeben zur Bewertung;;43,00;Ja;{at};-"
        for n, name, at in ((101, "Ada Lovelace", time), (102, "Bob Bell", "-"))
    ]
    sheet = course / "w.csv"
    sheet.write_bytes("\r\n".join([head, *rows]).encode(encoding))
    found = gathered(course, {moodle("Ada Lovelace", 101): small()}, "w.csv")
    (row,) = found.rows
    assert (row.student, row.time, row.owned.sure) == (
        "ada@x",
        datetime(2026, 10, 12, 21, 30),
        True,
    )
    assert found.absent == ["bob@x"]
    assert found.left == found.remarks == []


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

TWO = {moodle("Team Rot", 412): small(), moodle("Cy Young", 7): small(add="add = 1")}
LISTED = {
    "a row a member": "group,student\nTeam Rot,ada\nTeam Rot,Bob Bell\n",
    "a row a group": "Group;Member 1;Member 2\nTeam Rot;ada@x;bob\n",
    "of one assignment": "assignment,group,student\n01_small,Team Rot,ada\n"
    "01_small,Team Rot,bob\n02_other,Team Rot,cy\n",
}


@pytest.mark.parametrize("listed", LISTED.values(), ids=LISTED)
def test_what_a_group_hands_in_is_each_members(listed, course, marker):
    (course / "groups.csv").write_text(listed)
    found = gathered(course, TWO)
    assert found.left == found.absent == []
    team = moodle("Team Rot", 412)
    assert owners(found) == {"ada": team, "bob": team, "cy": moodle("Cy Young", 7)}
    assert {s: row["group"] for s, row in read_record(course, NAME).items()} == {
        "ada": "Team Rot",
        "bob": "Team Rot",
        "cy": "",
    }
    grade(course)
    done = give_feedback(course, NAME, download=course / "d.zip")
    results = class_results(course, NAME).results
    assert len({r.score for r in results if r.student != "cy"}) == 1
    for student in ("ada", "bob", "cy"):
        assert (course / "feedback" / student / NAME / f"{NAME}.html").is_file()
    assert done.remarks == []
    with ZipFile(course / "reports" / NAME / "feedback-moodle.zip") as back:
        assert sorted(back.namelist()) == sorted(
            name.replace(".ipynb", ".html") for name in (team, moodle("Cy Young", 7))
        )
    pairs = similar_pairs(course, NAME).pairs  # who worked together is no pair
    assert not any({"ada", "bob"} <= {p.first.split()[0], p.second.split()[0]} for p in pairs)


def test_a_groups_different_pages_are_not_shared(course, marker):
    (course / "groups.csv").write_text(LISTED["a row a member"])
    gathered(course, TWO)
    grade(course)
    score(course, "bob", "points_twice", 1.0)
    done = give_feedback(course, NAME, download=course / "d.zip")
    assert any("the pages of Team Rot differ, give them back by hand: ada, bob" in r
               for r in done.remarks)  # fmt: skip
    with ZipFile(course / "reports" / NAME / "feedback-moodle.zip") as back:
        assert len(back.namelist()) == 1


def test_a_roster_gives_groups_and_reads_moodles_old_names(course):
    (course / "r.csv").write_text(f"{ROSTER}".replace("email", "email,group", 1).replace(
        "ada@x", "ada@x,Rot").replace("bob@x", "bob@x,Rot;Lab 2"))  # fmt: skip
    found = gathered(course, {moodle("Lab 2", 3): small()}, "r.csv")
    assert owners(found) == {"bob": moodle("Lab 2", 3)}
    found = gathered(course, {moodle("Rot-Ada Lovelace", 3): small(add="a = 2")}, "r.csv")
    assert list(owners(found)) == ["ada"]


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("team,who\n", "expected a group and who is in it"),
        ("who,what\nada,x\n", "expected the head group,student"),
        ("group,student\nRot,adda\n", "line 2: adda is nobody of the class; is it ada?"),
        ("group,student\nRot,\n", "line 2: expected a group and who is in it"),
    ],
)
def test_a_list_of_groups_that_is_none_is_told_in_a_line(listed, said, course):
    (course / "groups.csv").write_text(listed if "\nada" in listed or "Rot" in listed else
                                       "group,student\n,ada\n")  # fmt: skip
    with pytest.raises(UserError, match=said.replace("?", r"\?")):
        gathered(course, TWO)


def test_a_group_is_asked_for_without_a_list(course):
    found = gathered(course, TWO)
    (left,) = found.left
    assert left.reason == (
        "Team Rot (412) is not on the roster; if it is a group, name its members in groups.csv"
    )
    done = run("collect", NAME, course / "d.zip", cwd=course)
    assert "not known before: cy-young, team-rot" in done.stdout


def test_two_of_one_name_are_told_apart_by_a_second_roster(course):
    """The class's own list has ids, Moodle's worksheet numbers: addresses bring them together."""
    lines = "m1,Müller,Anna,m1@x\nm2,Müller,Anna,m2@x\n"
    (course / "r.csv").write_text(f"id,last_name,first_name,email\n{lines}")
    rows = (f"Participant {n},Anna Müller,m{n}@x,-\n" for n in (1, 2))
    head = "Identifier,Full name,Email address,Last modified (submission)\n"
    (course / "w.csv").write_text(head + "".join(rows))
    files = {moodle("Anna Müller", n): small(add=f"a = {n}") for n in (1, 2)}
    zipped = archive(course / "d.zip", files.items())
    assert len(collect_downloads(course, NAME, [zipped], course / "r.csv").left) == 2
    done = run("collect", NAME, zipped, "--roster", "r.csv", "--roster", "w.csv", cwd=course)
    assert done.returncode == 0, done
    for n in (1, 2):
        place = course / "submitted" / f"m{n}" / NAME / FILE
        assert place.read_bytes() == small(add=f"a = {n}")


# --- sections, trials, the anonymous, links ---------------------------------------------------


def test_a_person_in_two_sections_is_one_person(course, marker):
    head = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", f"{NAME} (77)")
    ada = ("Lovelace, Ada", 11, "", "ada")
    rows = [(*ada, "A", ""), (*ada, "B", ""), ("Bell, Bob", 12, "", "bob", "A and B", "")]
    sheet = table(course / "c.csv", head, *rows, ("Student, Test", 13, "", "f0", "A", ""))
    assert [m.id for m in read_roster(sheet)] == ["ada", "bob"]
    found = gathered(course, {f"lovelaceada_11_1_{FILE}": small()}, "c.csv")
    assert (list(owners(found)), found.absent) == (["ada"], ["bob"])
    hand_in(course, "bob", small())
    grade(course)
    said: list[str] = []
    exported = canvas_rows([class_results(course, NAME)], said.append, sheet)
    assert [row[0] for row in exported[2:]] == ["Lovelace, Ada", "Bell, Bob"]
    assert said == []


def test_test_students_and_the_anonymous_are_known_as_such(course):
    files = {f"studenttest_13_1_{FILE}": small(), f"anon_aB3xZ_2_{FILE}": small()}
    files |= {f"anon_LATE_aB3xZ_3_{FILE}": small(), moodle("Teilnehmerin", 4): small()}
    for roster in ("class.csv", ""):
        found = gathered(course, files, roster)
        assert found.rows == []
        assert found.remarks == [f"studenttest_13_1_{FILE}: {TEST_STUDENT_REASON}"]
        assert {left.reason for left in found.left} == {f"handed in anonymously: {SHOW_NAMES_HINT}"}
        assert len(found.left) == 3


KINDS = {
    "a.rar": (b"Rar!\x1a\x07\x01\x00rest", "no notebook (this is a RAR archive)"),
    "a.7z": (b"7z\xbc\xaf\x27\x1crest", "no notebook (this is a 7-Zip archive)"),
    "a.pdf": (b"%PDF-1.7", "no notebook (this is a PDF document)"),
    "link.html": (
        b'<meta http-equiv="refresh" content="0; url=https://colab.example/drive/1">',
        "no notebook but a link (https://colab.example/drive/1)",
    ),
}


@pytest.mark.parametrize("called", KINDS)
def test_what_is_handed_in_is_named_as_what_it_is(called, course):
    content, said = KINDS[called]
    gathered(course, {moodle("Ada Lovelace", 1, called): content})
    found = read_submission(course, NAME, "ada")
    assert said in found.reason
    assert found.reason.endswith(f": hand in {FILE}")
    done = run("collect", NAME, course / "d.zip", "--roster", course / "class.csv", cwd=course)
    assert f"no notebook from 1 student: ada ({called}); ask for {FILE}" in done.stdout


def test_a_download_that_is_no_zip_is_named_as_what_it_is(course):
    for called, kind in (("c.rar", "a RAR archive"), ("c.7z", "a 7-Zip archive")):
        path = course / called
        path.write_bytes(KINDS["a" + path.suffix][0])
        (left,) = collect_downloads(course, NAME, [path], course / "class.csv").left
        assert left.reason.startswith(f"this is {kind}; a download should be a zip archive")


def test_a_name_that_begins_with_a_dot_is_somebodys(course):
    (course / "r.csv").write_text("id,last_name,first_name\nnet,Net,.Dot\n")
    path = moodle(".Dot Net", 5)
    found = gathered(
        course, {path: small(), f"__MACOSX/._{path}": b"x", "._a.ipynb": b"x"}, "r.csv"
    )
    assert (owners(found), found.left) == ({"net": path}, [])


def test_what_was_written_on_moodle_itself_gets_its_page_back(course, marker):
    text = "Ada Lovelace_1_assignsubmission_onlinetext/onlinetext.html"
    gathered(course, {text: b"<p>mine</p>", moodle("Bob Bell", 2): small()})
    grade(course)
    done = give_feedback(course, NAME, download=course / "d.zip")
    assert done.remarks == []
    with ZipFile(course / "reports" / NAME / "feedback-moodle.zip") as back:
        assert f"Ada Lovelace_1_assignsubmission_file/{NAME}.html" in back.namelist()


# --- tests that come later, and sources that nobody made a notebook of --------------------------


def judged(course: Path) -> None:
    assert command.grade_course(course, NAME, limits=Limits()).counts["failure"] == 0


def test_a_test_added_after_release_is_nobodys_fault(tmp_path):
    course = make_course(tmp_path)
    write_solved(course, with_question(small()))
    for student in ("ada", "bob"):
        data = with_question(small(), f"Because, says {student}.")
        hand_in(course, student, data)
    judged(course)
    for student in ("ada", "bob"):
        score(course, student, "explain_it", 2.0)
    more = json.loads(with_question(small()))["cells"] + [graded("points_more", "2", 2)]
    write_solved(course, notebook(*more))
    judged(course)
    for student in ("ada", "bob"):
        report = json.loads((course / "reports" / NAME / f"{student}.json").read_text())
        assert "put back" not in json.dumps(report)
        assert "points_more" in report["cells"]
    assert scores(course)["explain_it"] == (None, 2.0, False)  # nothing to doubt
    found = class_results(course, NAME)
    assert found.stale == ""
    hand_in(course, "ada", with_question(small(), "Because, on second thoughts."))
    judged(course)
    assert class_results(course, NAME).stale == "explain_it of 1 student"
    assert scores(course)["explain_it"] == (None, 2.0, True)
    kept = [c for c in json.loads(with_question(small()))["cells"] if c["id"] != "points_add"]
    hand_in(course, "bob", notebook(*kept))  # a test that was there and is not
    judged(course)
    report = json.loads((course / "reports" / NAME / "bob.json").read_text())
    assert "missing tests were put back: points_add" in report["attention"]
    assert not any("put back" in note for note in report["notes"])


def test_a_hand_score_is_doubted_where_its_own_answer_changed(tmp_path, marker):
    course = make_course(tmp_path, ada=b"")
    write_solved(course, with_question(small()))
    hand_in(course, "ada", with_question(small(), "Because."))
    grade(course)
    score(course, "ada", "explain_it", 2.0)
    score(course, "ada", "points_twice", 3.0)
    hand_in(course, "ada", with_question(small(), "Because!"))
    grade(course)
    assert [scores(course)[name][2] for name in ("explain_it", "points_twice")] == [True, False]
    score(course, "ada", "explain_it", 2.0)
    hand_in(course, "ada", with_question(small(twice="def twice(a): return a + a"), "Because!"))
    grade(course)
    assert [scores(course)[name][2] for name in ("explain_it", "points_twice")] == [False, True]


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


def of_source(text: str) -> bytes:
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
    place = course / "solutions" / NAME
    assert outdated_solution(course, NAME) == []  # there is no source
    source, made = place / f"{NAME}.py", place / FILE
    source.write_text(SOURCE)
    made.write_bytes(of_source(SOURCE))
    assert outdated_solution(course, NAME) == []
    for old, new in (("return a + b", "return b + a"), ('"points": 2', '"points": 3')):
        source.write_text(SOURCE.replace(old, new))
        os.utime(source, (made.stat().st_mtime - 100,) * 2)  # whatever a checkout made of times
        (said,) = outdated_solution(course, NAME)
        assert said.startswith(f"{source} is newer than the notebook made from it")
        assert said.endswith("make exercises")
    source.write_text(SOURCE[: SOURCE.index('# %% nbgrader={"grade_id": "own')])
    assert outdated_solution(course, NAME)
    source.write_text(SOURCE)
    os.utime(source, (made.stat().st_mtime + 100,) * 2)
    assert outdated_solution(course, NAME)
    hand_in(course, "ada", released())
    grade(course)
    assert "is newer than the notebook made from it" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "solutions").glob("[0-9]*")))
def test_no_solution_here_says_so(name, tmp_path):
    for end in (".py", ".ipynb"):
        place = tmp_path / "solutions" / name / f"{name}{end}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((ROOT / "solutions" / name / f"{name}{end}").read_bytes())
    assert outdated_solution(tmp_path, name) == []


# --- late days of a term ------------------------------------------------------------------------


def sheet(path: Path) -> dict[tuple[str, str], dict[str, str]]:
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
        for student, at in times.items():
            place = course / "submitted" / student / name
            place.mkdir(parents=True)
            (place / f"{name}.ipynb").write_bytes(small())
            (place / "timestamp.txt").write_text(f"2026-10-{at}:00 +0200\n")
    grant_extension(find_gradebook(course), "cy", NAME, 2)
    for name in (NAME, "02_more"):
        command.grade_course(course, name, limits=Limits())
    place, number = write_late_days_worksheet(course, 4)
    found = {
        key: [row[head] for head in ("days", "late_days", "late", "not_covered", "left")]
        for key, row in sheet(place).items()
    }
    assert found == {
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
    again, _ = write_late_days_worksheet(course, 4)  # what was taken is known, and taken once
    assert {k: r["late_days"] for k, r in sheet(again).items()} == {
        key: row[1] for key, row in found.items()
    }
    grant_extension(find_gradebook(course), "ada", NAME, 1)
    assert read_extensions(course)["ada", NAME] == (1, 2)


def test_the_command_for_late_days_says_what_to_do_with_them(course, marker):
    hand_in(course, "ada", small())
    grade(course)
    done = run("export", "--all", "--late-days", "5", cwd=course)
    assert done.returncode == 0, done
    assert "0 written to reports/late_days.csv; put in the place of extensions.csv" in done.stdout
    refuses(run("export", NAME, "--late-days", "5", cwd=course), "--all --late-days 5")
    refuses(run("export", "--all", "--late-days", "-1", cwd=course), "expected a number of days")


def test_a_team_archive_is_opened_for_each_member(course):
    (course / "groups.csv").write_text(LISTED["a row a member"])
    found = gathered(course, {moodle("Team Rot", 4, "all.zip"): packed([(FILE, small())])})
    assert list(owners(found)) == ["ada", "bob"]
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

    for said in (
        f"{handed_in.MAX_BYTES_OF_FILE // 1_000_000} MB, outputs and all",
        f"{MAX_CELLS} cells, {spaced(notebooks.MAX_CODE_CHARS)} characters of code",
        f"{spaced(drops.MAX_FILES)} files",
        f"{drops.MAX_ARCHIVES_DEEP} deep, {drops.MAX_FILES_OF_ARCHIVE} files each, "
        f"{drops.ArchiveRoom().bytes // 1_000_000} MB together",
        f"{spaced(LONGEST)} characters of a cell, {spaced(ROOM)} of all",
    ):
        assert said in page, said
