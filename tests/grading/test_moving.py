"""The page *During the term* is right: gradebooks move, terms end, settings stay a course's own."""

import re
import shutil
import subprocess

import pytest

from attncourse.grading.course.settings import read_settings
from attncourse.grading.gradebook.connection import find_gradebook, open_gradebook
from attncourse.grading.results.class_results import class_results
from helpers.project import ROOT
from helpers.small_class import NAME, make_report, refuses, run, write_gradebook, write_reports
from helpers.small_course import hand_in, make_course, small

PAGE = (ROOT / "book" / "during_the_term.md").read_text(encoding="utf-8")


@pytest.fixture
def course(tmp_path):
    course = make_course(tmp_path / "course", ada=small(), bob=small())
    reports = (make_report("ada", 2, 1, 4), make_report("bob", 1, 0, 4))
    write_reports(course, reports)
    write_gradebook(course, reports, manual={("ada", "points_add"): 1.5}, late={"bob": 0.5})
    with open_gradebook(find_gradebook(course)) as gradebook:
        grade = gradebook.find_submission(NAME, "bob").notebooks[0].grades[0]
        grade.extra_credit = 0.25
        gradebook.db.commit()
    return course


def scores_of_class(course, db=None) -> dict:
    return {
        r.student: (r.score, r.manual, r.cells) for r in class_results(course, NAME, db).results
    }


def test_a_gradebook_moves_with_all_manual_scores(course):
    expected, other_db = scores_of_class(course), "sqlite:///other.db"
    process = run("move-gradebook", "--to", other_db, cwd=course)
    assert process.stdout.startswith("2 students, 2 submissions, 0 comments copied"), process
    assert expected == scores_of_class(course)
    assert expected == scores_of_class(course, f"sqlite:///{course / 'other.db'}")
    assert expected["ada"][:2] == (6.5, ("points_add",))
    before = (course / "other.db").read_bytes()
    refuses(
        run("move-gradebook", "--to", other_db, cwd=course), "not empty (student: 2)", "nothing"
    )
    assert (course / "other.db").read_bytes() == before
    process = run("move-gradebook", "--to", "sqlite:///gradebook.db", "--db", other_db, cwd=course)
    refuses(process, "gradebook.db is not empty")


def test_an_ended_term_is_read_in_its_own_folder(course):
    expected = scores_of_class(course)
    (course / "course_settings.py").write_text("c = get_config()\n")
    (course / "weights.csv").write_text("assignment,weight\n")
    assert run("new-term", "2026-autumn", cwd=course).returncode == 0
    assert scores_of_class(course / "terms" / "2026-autumn") == expected
    assert not any((course / name).exists() for name in ("submitted", "reports", "gradebook.db"))
    assert (course / "course_settings.py").is_file()
    assert (course / "terms" / "2026-autumn" / "weights.csv").is_file()
    refuses(run("new-term", "2026-autumn", cwd=course), "is there already", "another name")
    refuses(run("new-term", "2027-spring", cwd=course), "no term's work", "nothing to move")
    refuses(run("new-term", "../x", cwd=course), "a term's name is that of a folder")


def test_a_new_term_names_exercises_still_in_a_variant(course):
    (course / "variants.toml").write_text(f'"{NAME}" = "bits"\n"02_gone" = "bits"\n')
    (course / "exercises" / NAME).mkdir(parents=True, exist_ok=True)
    lines = run("new-term", "autumn 2026", cwd=course).stdout.splitlines()
    assert lines[0].endswith("--course 'terms/autumn 2026' reads it")
    assert lines[1:] == [
        f"exercises/{NAME} is still in the variant bits, and published is asked for: "
        f"attncourse release {NAME}, or with --variant bits",
        "next: attncourse roster class.csv",
    ]


def run_grade(course) -> str:
    process = run("grade", NAME, "--unsafe-no-sandbox", cwd=course)
    assert process.returncode == 0, process
    return process.stdout


def test_nothing_is_graded_again_on_another_machine(tmp_path):
    """The course's folder is copied, as the page says, and the old one deleted."""
    old_course, new_course = tmp_path / "here", tmp_path / "another" / "there"
    make_course(old_course, ada=small(), bob=small(add="def add(a, b): return 3"))
    assert "2 graded, 0 from the journal" in run_grade(old_course)
    with open_gradebook(find_gradebook(old_course)) as gradebook:
        gradebook.find_grade("points_add", NAME, NAME, "bob").manual_score = 1.25
        gradebook.db.commit()
    expected = scores_of_class(old_course)
    shutil.copytree(old_course, new_course)
    shutil.rmtree(old_course)
    assert "0 graded, 2 from the journal" in run_grade(new_course)
    assert scores_of_class(new_course) == expected
    assert expected["bob"][1] == ("points_add",)
    assert run("feedback", NAME, cwd=new_course).stdout.startswith("2 pages written")


def run_git(folder, *words: str) -> str:
    options = (
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@uni.example",
        "-c",
        "init.defaultBranch=main",
    )
    process = subprocess.run(["git", *options, *words], cwd=folder, capture_output=True, text=True)
    assert process.returncode == 0, process
    return process.stdout


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_an_upgrade_keeps_own_files_and_lists_changed_points(tmp_path):
    upstream, course = make_course(tmp_path / "theirs"), tmp_path / "course"
    for name in (".gitignore", "nbgrader_config.py"):
        shutil.copy(ROOT / name, upstream)
    run_git(upstream, "init")
    run_git(upstream, "add", ".")
    run_git(upstream, "commit", "-m", "first")
    run_git(tmp_path, "clone", str(upstream), str(course))
    own_files = {"course_settings.py": "c = get_config()\n", "weights.csv": "assignment,weight\n"}
    for name, text in own_files.items():
        (course / name).write_text(text)
    hand_in(course, "ada", small())
    hand_in(course, "bob", small(add="def add(a, b): return 11"))
    run_grade(course)
    assert run_git(course, "status", "--porcelain") == ""  # so nothing stops the pull
    path = upstream / "solutions" / NAME / f"{NAME}.ipynb"
    path.write_text(path.read_text("utf-8").replace("add(5, 6) == 11", "add(5, 7) == 12"))
    run_git(upstream, "commit", "-a", "-m", "another test")
    run_git(course, "pull")
    assert {name: (course / name).read_text() for name in own_files} == own_files
    assert run("release", NAME, cwd=course).returncode == 0
    output = run_grade(course)
    assert "2 graded, 0 from the journal" in output
    assert "other points than before: 1 student" in output
    assert "bob: hidden_add 1 to 0" in output


def test_a_courses_own_settings_override_the_others(course):
    shutil.copy(ROOT / "nbgrader_config.py", course)
    assert "timezone" not in read_settings(course).NbGraderAPI
    block = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    (course / "course_settings.py").write_text(block + 'c.CourseDirectory.course_id = "ours"\n')
    settings = read_settings(course)
    assert settings.NbGraderAPI.timezone == "Europe/Berlin"
    assert settings.Assignments.due == {"05_kqv": "2026-10-12 23:59"}
    assert settings.CourseDirectory.course_id == "ours"


def test_a_courses_own_files_are_not_tracked():
    names = ["course_settings.py", "weights.csv", "terms/x/gradebook.db", "forgotten.csv"]
    process = subprocess.run(
        ["git", "check-ignore", *names], cwd=ROOT, capture_output=True, text=True
    )
    assert process.stdout.split() == names


def test_every_command_of_the_page_exists():
    from typer.main import get_command

    from attncourse.grading.cli import app

    commands = set(re.findall(r"attncourse ([a-z][\w-]+)", PAGE))
    assert {"move-gradebook", "forget", "new-term", "roster"} <= commands
    assert commands <= set(get_command(app).commands)
