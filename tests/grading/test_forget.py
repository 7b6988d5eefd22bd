"""Nothing of a forgotten student stays, and nothing brings the student back."""

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
from helpers.platform_downloads import write_archive
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
    """Make a course in which two have handed in, with everything that commands write."""
    course_folder = make_course(tmp_path / "course", ada=small(), bob=small())
    write_reports(course_folder, REPORTS)
    write_gradebook(
        course_folder, REPORTS, people={"ada": ADA, "bob": BOB}, manual={("ada", "points_add"): 1.5}
    )
    with open_journal(course_folder / "reports" / NAME, NAME) as journal:
        for number, report in enumerate(REPORTS):
            journal.write(f"{number:064x}", report)
    for student in ("ada", "bob"):
        for folder in ("autograded", "feedback"):
            place = course_folder / folder / student / NAME
            place.mkdir(parents=True)
            (place / FILE).write_bytes(small())
    earlier = course_folder / "submitted" / ".before" / "2026-10-01" / "ada" / NAME
    earlier.mkdir(parents=True)
    (earlier / FILE).write_bytes(small())
    files = [(f"lovelaceada_71_9_{FILE}", small())]
    zipped = write_archive(course_folder / "submissions.zip", files)
    collect_downloads(course_folder, NAME, [zipped])
    for file_format in ("csv", "canvas", "moodle", "gradescope"):
        write_export(course_folder, NAME, file_format)
    run("report", NAME, cwd=course_folder)
    (course_folder / "extensions.csv").write_text(
        f"student,assignment,days\nada,{NAME},2\nbob,{NAME},1\n"
    )
    (course_folder / "groups.csv").write_text("group,member 1,member 2\nRed,ada@uni.example,bob\n")
    with zipfile.ZipFile(course_folder / "reports" / NAME / "feedback-canvas.zip", "w") as zipped:
        zipped.writestr("lovelaceada_71_9_page.html", "<p>Ada Lovelace</p>")
    return course_folder


def files_naming(course: Path, *words: str) -> set[str]:
    """Return the files of a course that hold one of these words, or have it in their paths."""
    paths = set()
    for path in (path for path in course.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as content:
                data = b"".join(n.encode() + content.read(n) for n in content.namelist())
        relative_path = str(path.relative_to(course))
        if any(word.encode() in data or word in relative_path for word in words):
            paths.add(relative_path)
    return paths


def test_nothing_of_a_forgotten_student_stays(course):
    words = ("Lovelace", "ada@uni.example", "/ada/", '"ada"', "ada,", "ada.json")
    assert len(files_naming(course, *words)) > 12
    files_of_bob = files_naming(course, "bob")
    process = run("forget", "ada", "--yes", cwd=course)
    assert process.returncode == 0, process
    for part in ("gradebook.db: the student, 1 submission, 0 comments, 1 score by a person",
                 "submitted/ada: 1 file", "autograded/ada", "feedback/ada", ".before",
                 "journal.db", "ada.json", "extensions.csv: 1 row", "groups.csv: a name",
                 "grades.csv: 1 row", "canvas.csv: 1 row", "moodle.csv: 1 row", "gradescope/ada",
                 "index.html", "feedback-canvas.zip"):  # fmt: skip
        assert part in process.stdout, part
    assert "not touched, though the person is named in it: submissions.zip" in process.stderr
    assert files_naming(course, *words) <= {"submissions.zip"}
    removed_files = {f"reports/{NAME}/index.html"}  # which ``attncourse report`` makes again
    assert files_naming(course, "bob") == files_of_bob - removed_files
    assert (course / "groups.csv").read_text().splitlines()[1] == "Red,,bob"
    refuses(run("forget", "ada", cwd=course), "was forgotten already")


def test_nothing_brings_a_forgotten_student_back(course):
    shutil.copytree(course / "submitted" / "ada", course.parent / "kept")
    run("forget", "ada", "--yes", cwd=course)
    # The download is collected again, with a roster and without.
    roster = course.parent / "class.csv"
    roster.write_text("id,last_name,first_name,email,lms_user_id\nada,Lovelace,Ada,ada@uni.example,71\n"
                      "bob,Li,Bob,,72\n")  # fmt: skip
    for roster_or_none in (None, roster):
        collection = collect_downloads(course, NAME, [course / "submissions.zip"], roster_or_none)
        assert collection.rows == []
        assert "1 file of people who were forgotten" in collection.remarks[0]
        assert "ada" not in collection.absent
    assert "1 student listed who were forgotten" in run("roster", roster, cwd=course).stdout
    # The student's folder is put back.
    shutil.copytree(course.parent / "kept", course / "submitted" / "ada")
    assert find_students(course, NAME) == ["bob"]
    with pytest.raises(UserError, match=r"ada was forgotten.*delete submitted/ada"):
        find_students(course, NAME, "ada")
    for file_format in ("csv", "canvas", "moodle"):
        assert "ada" not in write_export(course, NAME, file_format).path.read_text()
    shutil.copy(ROOT / "nbgrader_config.py", course)
    status, output = command(course, "nbgrader", "autograde", NAME)
    assert status == 1
    assert "ada was forgotten" in output
    assert "ada" not in write_export(course, NAME, "csv").path.read_text()
    assert run("forget", "ada", "--back", cwd=course).returncode == 0
    assert not Forgotten(course).has_id("ada", "ada@uni.example", "71")
    assert find_students(course, NAME) == ["ada", "bob"]
    refuses(run("forget", "ada", "--back", cwd=course), "nothing to take back")


def test_a_deleted_student_is_in_no_export(course):
    """nbgrader's own command removes the student, and a person the folder; reports stay."""
    status, output = command(course, "nbgrader", "db", "student", "remove", "ada", "--force")
    assert status == 0, output
    assert (
        len(write_export(course, NAME, "csv").remarks) == 0
    )  # the submission still exists, so it counts
    shutil.rmtree(course / "submitted" / "ada")
    for file_format in ("csv", "canvas", "moodle"):
        export = write_export(course, NAME, file_format)
        assert "ada" not in export.path.read_text()
        assert export.remarks[0].startswith("ada: left out")
    assert "ada" in run("forget", "ada", "--yes", cwd=course).stdout
    assert write_export(course, NAME, "csv").remarks == ()


def test_the_grade_can_stay_without_comments(course):
    process = run("forget", "ada", "--yes", "--keep-grade", cwd=course)
    assert "gradebook.db: comments (the student, 1 submission" in process.stdout
    path = write_export(course, NAME, "csv").path
    with path.open(encoding="utf-8-sig") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert rows["ada"]["score"] == "6.5"
    assert rows["ada"]["notes"] == ""
    assert not (course / "submitted" / "ada").exists()
    assert [record["student"] for record in records(course)] == ["bob"]


def test_without_confirmation_nothing_is_removed(course):
    before = {p: p.read_bytes() for p in course.rglob("*") if p.is_file()}
    process = run("forget", "ada", cwd=course)  # nobody answers
    assert process.returncode == 2
    assert "nothing was removed; --yes" in process.stderr
    assert {p: p.read_bytes() for p in course.rglob("*") if p.is_file()} == before
    refuses(run("forget", "adda", "--yes", cwd=course), "nothing of a student called adda", "ada?")
    refuses(run("forget", "Ada Lovelace", "--yes", cwd=course), "did you mean ada?")


def test_forgetting_spares_equal_numbers_and_namesakes(course):
    """The id 4 is not points of 4, and of two namesakes only one is forgotten."""
    people = {"4": {**ADA, "email": "", "lms_user_id": ""}}
    write_reports(course, [make_report("4", 2, 1, 4)])
    write_gradebook(course, [make_report("4", 2, 1, 4)], people=people)
    for name in ("csv", "canvas"):
        write_export(course, NAME, name)
    assert run("forget", "4", "--yes", cwd=course).returncode == 0
    for name in ("grades", "canvas"):
        with (course / "reports" / NAME / f"{name}.csv").open(encoding="utf-8-sig") as file:
            text = file.read()
        assert "ada" in text and "bob" in text  # noqa: PT018
    assert hand_in(course, "ada", small()).is_file()


def test_totals_leave_out_a_forgotten_student(course):
    """A row of weights.csv belongs to an assignment, so it stays."""
    path = course / "weights.csv"
    path.write_text(f"assignment,weight,group,drop,excused\n{NAME},2,homework,,ada; bob\n")
    assert write_export(course, None, "totals").number == 2
    process = run("forget", "ada", "--yes", cwd=course)
    assert "weights.csv: a name" in process.stdout
    assert "weights.csv" not in process.stderr
    assert path.read_text().splitlines()[1:] == [f"{NAME},2,homework,,bob"]
    assert write_export(course, None, "totals").number == 1
    run("forget", "bob", "--yes", cwd=course)
    assert path.read_text().splitlines()[1:] == [f"{NAME},2,homework,,"]
