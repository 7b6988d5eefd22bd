"""A student is forgotten: nothing of them stays, and nothing brings them back."""

import csv
import shutil
import zipfile
from pathlib import Path

import pytest

from attncourse.grading.collect.collect import collect_downloads
from attncourse.grading.course.folders import find_students
from attncourse.grading.course.forgotten import Forgotten
from attncourse.grading.driver.journal import open_journal
from attncourse.grading.errors import UserError
from attncourse.grading.results.export import write_export
from helpers.forked_commands import command
from helpers.journal_records import records
from helpers.platform_downloads import archive
from helpers.project import ROOT
from helpers.small_class import NAME, make_report, refuses, run, write_gradebook, write_reports
from helpers.small_course import hand_in, make_course, small

ADA = {
    "first_name": "Ada",
    "last_name": "Lovelace",
    "email": "ada@uni.example",
    "lms_user_id": "71",
}
BOB = {"first_name": "Bob", "last_name": "Li", "email": "bob@uni.example", "lms_user_id": "72"}
REPORTS = (make_report("ada", 2, 1, 4), make_report("bob", 1, 0, 4))
FILE = f"{NAME}.ipynb"


@pytest.fixture
def course(tmp_path) -> Path:
    """A course in which two have handed in, with all that commands make of it."""
    made_of = make_course(tmp_path / "course", ada=small(), bob=small())
    write_reports(made_of, REPORTS)
    write_gradebook(
        made_of, REPORTS, people={"ada": ADA, "bob": BOB}, manual={("ada", "points_add"): 1.5}
    )
    with open_journal(made_of / "reports" / NAME, NAME) as journal:
        for number, report in enumerate(REPORTS):
            journal.write(f"{number:064x}", report)
    for student in ("ada", "bob"):
        for folder in ("autograded", "feedback"):
            place = made_of / folder / student / NAME
            place.mkdir(parents=True)
            (place / FILE).write_bytes(small())
    aside = made_of / "submitted" / ".before" / "2026-10-01" / "ada" / NAME
    aside.mkdir(parents=True)
    (aside / FILE).write_bytes(small())
    zipped = archive(made_of / "submissions.zip", [(f"lovelaceada_71_9_{FILE}", small())])
    collect_downloads(made_of, NAME, [zipped])
    for form in ("csv", "canvas", "moodle", "gradescope"):
        write_export(made_of, NAME, form)
    run("report", NAME, cwd=made_of)
    (made_of / "extensions.csv").write_text(
        f"student,assignment,days\nada,{NAME},2\nbob,{NAME},1\n"
    )
    (made_of / "groups.csv").write_text("group,member 1,member 2\nRed,ada@uni.example,bob\n")
    with zipfile.ZipFile(made_of / "reports" / NAME / "feedback-canvas.zip", "w") as zipped:
        zipped.writestr("lovelaceada_71_9_page.html", "<p>Ada Lovelace</p>")
    return made_of


def holding(course: Path, *words: str) -> set[str]:
    """The files of a course that have one of these words in them, or in their paths."""
    found = set()
    for path in (path for path in course.rglob("*") if path.is_file()):
        inside = path.read_bytes()
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as content:
                inside = b"".join(n.encode() + content.read(n) for n in content.namelist())
        where = str(path.relative_to(course))
        if any(word.encode() in inside or word in where for word in words):
            found.add(where)
    return found


def test_nothing_of_a_person_stays_but_what_is_the_instructors(course):
    words = ("Lovelace", "ada@uni.example", "/ada/", '"ada"', "ada,", "ada.json")
    assert len(holding(course, *words)) > 12
    others = holding(course, "bob")
    done = run("forget", "ada", "--yes", cwd=course)
    assert done.returncode == 0, done
    for part in ("gradebook.db: the student, 1 submission, 0 comments, 1 score by a person",
                 "submitted/ada: 1 file", "autograded/ada", "feedback/ada", ".before",
                 "journal.db", "ada.json", "extensions.csv: 1 row", "groups.csv: a name",
                 "grades.csv: 1 row", "canvas.csv: 1 row", "moodle.csv: 1 row", "gradescope/ada",
                 "index.html", "feedback-canvas.zip"):  # fmt: skip
        assert part in done.stdout, part
    assert "not touched, though the person is named in it: submissions.zip" in done.stderr
    assert holding(course, *words) <= {"submissions.zip"}
    gone = {f"reports/{NAME}/index.html"}  # which a command makes again
    assert holding(course, "bob") == others - gone
    assert (course / "groups.csv").read_text().splitlines()[1] == "Red,,bob"
    refuses(run("forget", "ada", cwd=course), "was forgotten already")


def test_nothing_brings_a_person_back(course):
    shutil.copytree(course / "submitted" / "ada", course.parent / "kept")
    run("forget", "ada", "--yes", cwd=course)
    # A download that is collected again, with a roster, by the number, and by the name alone.
    roster = course.parent / "class.csv"
    roster.write_text("id,last_name,first_name,email,lms_user_id\nada,Lovelace,Ada,ada@uni.example,71\n"
                      "bob,Li,Bob,,72\n")  # fmt: skip
    for people in (None, roster):
        found = collect_downloads(course, NAME, [course / "submissions.zip"], people)
        assert found.rows == []
        assert "1 file of people who were forgotten" in found.remarks[0]
        assert "ada" not in found.absent
    assert "1 student listed who were forgotten" in run("roster", roster, cwd=course).stdout
    # A folder that is put back.
    shutil.copytree(course.parent / "kept", course / "submitted" / "ada")
    assert find_students(course, NAME) == ["bob"]
    with pytest.raises(UserError, match=r"ada was forgotten.*delete submitted/ada"):
        find_students(course, NAME, "ada")
    for form in ("csv", "canvas", "moodle"):
        assert "ada" not in write_export(course, NAME, form).path.read_text()
    shutil.copy(ROOT / "nbgrader_config.py", course)
    status, said = command(course, "nbgrader", "autograde", NAME)
    assert status == 1
    assert "ada was forgotten" in said
    assert "ada" not in write_export(course, NAME, "csv").path.read_text()
    assert run("forget", "ada", "--back", cwd=course).returncode == 0
    assert not Forgotten(course).has_id("ada", "ada@uni.example", "71")
    assert find_students(course, NAME) == ["ada", "bob"]
    refuses(run("forget", "ada", "--back", cwd=course), "nothing to take back")


def test_a_deleted_student_is_in_no_export(course):
    """With nbgrader's own command, and the folder: what grading has made of it stays."""
    status, said = command(course, "nbgrader", "db", "student", "remove", "ada", "--force")
    assert status == 0, said
    assert len(write_export(course, NAME, "csv").remarks) == 0  # the work is there: it counts
    shutil.rmtree(course / "submitted" / "ada")
    for form in ("csv", "canvas", "moodle"):
        found = write_export(course, NAME, form)
        assert "ada" not in found.path.read_text()
        assert found.remarks[0].startswith("ada: left out")
    assert "ada" in run("forget", "ada", "--yes", cwd=course).stdout
    assert write_export(course, NAME, "csv").remarks == ()


def test_the_grade_can_stay_without_what_was_said(course):
    done = run("forget", "ada", "--yes", "--keep-grade", cwd=course)
    assert "gradebook.db: comments (the student, 1 submission" in done.stdout
    found = write_export(course, NAME, "csv").path
    with found.open(encoding="utf-8-sig") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert rows["ada"]["score"] == "6.5"
    assert rows["ada"]["notes"] == ""
    assert not (course / "submitted" / "ada").exists()
    assert [record["student"] for record in records(course)] == ["bob"]


def test_saying_no_forgets_nothing(course):
    before = {p: p.read_bytes() for p in course.rglob("*") if p.is_file()}
    done = run("forget", "ada", cwd=course)  # nobody answers
    assert done.returncode == 2
    assert "nothing was removed; --yes" in done.stderr
    assert {p: p.read_bytes() for p in course.rglob("*") if p.is_file()} == before
    refuses(run("forget", "adda", "--yes", cwd=course), "nothing of a student called adda", "ada?")
    refuses(run("forget", "Ada Lovelace", "--yes", cwd=course), "did you mean ada?")


def test_a_person_is_not_taken_for_a_number_or_a_namesake(course):
    """The id 4 and points of 4, and of two people with one name the one who is meant."""
    people = {"4": {**ADA, "email": "", "lms_user_id": ""}}
    write_reports(course, [make_report("4", 2, 1, 4)])
    write_gradebook(course, [make_report("4", 2, 1, 4)], people=people)
    for form in ("csv", "canvas"):
        write_export(course, NAME, form)
    assert run("forget", "4", "--yes", cwd=course).returncode == 0
    for form in ("grades", "canvas"):
        with (course / "reports" / NAME / f"{form}.csv").open(encoding="utf-8-sig") as file:
            text = file.read()
        assert "ada" in text and "bob" in text  # noqa: PT018
    assert hand_in(course, "ada", small()).is_file()


def test_totals_go_on_without_a_forgotten_student(course):
    """A row of weights.csv is an assignment's, and stays."""
    path = course / "weights.csv"
    path.write_text(f"assignment,weight,group,drop,excused\n{NAME},2,homework,,ada; bob\n")
    assert write_export(course, None, "totals").number == 2
    done = run("forget", "ada", "--yes", cwd=course)
    assert "weights.csv: a name" in done.stdout
    assert "weights.csv" not in done.stderr
    assert path.read_text().splitlines()[1:] == [f"{NAME},2,homework,,bob"]
    assert write_export(course, None, "totals").number == 1
    run("forget", "bob", "--yes", cwd=course)
    assert path.read_text().splitlines()[1:] == [f"{NAME},2,homework,,"]
