"""What the page *During the term* says: gradebooks move, terms end, settings are one's own."""

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


def scores(course, db=None) -> dict:
    return {
        r.student: (r.score, r.manual, r.cells) for r in class_results(course, NAME, db).results
    }


def test_a_gradebook_moves_with_all_that_people_gave(course):
    wanted, other = scores(course), "sqlite:///other.db"
    done = run("move-gradebook", "--to", other, cwd=course)
    assert done.stdout.startswith("2 students, 2 submissions, 0 comments copied"), done
    assert wanted == scores(course)
    assert wanted == scores(course, f"sqlite:///{course / 'other.db'}")
    assert wanted["ada"][:2] == (6.5, ("points_add",))
    before = (course / "other.db").read_bytes()
    refuses(run("move-gradebook", "--to", other, cwd=course), "not empty (student: 2)", "nothing")
    assert (course / "other.db").read_bytes() == before
    done = run("move-gradebook", "--to", "sqlite:///gradebook.db", "--db", other, cwd=course)
    refuses(done, "gradebook.db is not empty")


def test_a_term_ends_and_is_read_where_it_is(course):
    wanted = scores(course)
    (course / "course_settings.py").write_text("c = get_config()\n")
    (course / "weights.csv").write_text("assignment,weight\n")
    assert run("new-term", "2026-autumn", cwd=course).returncode == 0
    assert scores(course / "terms" / "2026-autumn") == wanted
    assert not any((course / one).exists() for one in ("submitted", "reports", "gradebook.db"))
    assert (course / "course_settings.py").is_file()
    assert (course / "terms" / "2026-autumn" / "weights.csv").is_file()
    refuses(run("new-term", "2026-autumn", cwd=course), "is there already", "another name")
    refuses(run("new-term", "2027-spring", cwd=course), "no term's work", "nothing to move")
    refuses(run("new-term", "../x", cwd=course), "a term's name is that of a folder")


def test_a_new_term_tells_of_exercises_still_in_a_variant(course):
    (course / "variants.toml").write_text(f'"{NAME}" = "bits"\n"02_gone" = "bits"\n')
    (course / "exercises" / NAME).mkdir(parents=True, exist_ok=True)
    said = run("new-term", "autumn 2026", cwd=course).stdout.splitlines()
    assert said[0].endswith("--course 'terms/autumn 2026' reads it")
    assert said[1:] == [
        f"exercises/{NAME} is still in the variant bits, and published is asked for: "
        f"attncourse release {NAME}, or with --variant bits",
        "next: attncourse roster class.csv",
    ]


def grade(course) -> str:
    done = run("grade", NAME, "--unsafe-no-sandbox", cwd=course)
    assert done.returncode == 0, done
    return done.stdout


def test_nothing_is_graded_again_on_another_machine(tmp_path):
    """As the page says: copy the folder. The old one is gone then."""
    here, there = tmp_path / "here", tmp_path / "another" / "there"
    make_course(here, ada=small(), bob=small(add="def add(a, b): return 3"))
    assert "2 graded, 0 from the journal" in grade(here)
    with open_gradebook(find_gradebook(here)) as gradebook:
        gradebook.find_grade("points_add", NAME, NAME, "bob").manual_score = 1.25
        gradebook.db.commit()
    wanted = scores(here)
    shutil.copytree(here, there)
    shutil.rmtree(here)
    assert "0 graded, 2 from the journal" in grade(there)
    assert scores(there) == wanted
    assert wanted["bob"][1] == ("points_add",)
    assert run("feedback", NAME, cwd=there).stdout.startswith("2 pages written")


def git(folder, *words: str) -> str:
    known = ("-c", "user.name=A", "-c", "user.email=a@uni.example", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *known, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_an_upgrade_keeps_own_files_and_lists_changed_points(tmp_path):
    theirs, course = make_course(tmp_path / "theirs"), tmp_path / "course"
    for name in (".gitignore", "nbgrader_config.py"):
        shutil.copy(ROOT / name, theirs)
    git(theirs, "init")
    git(theirs, "add", ".")
    git(theirs, "commit", "-m", "first")
    git(tmp_path, "clone", str(theirs), str(course))
    own = {"course_settings.py": "c = get_config()\n", "weights.csv": "assignment,weight\n"}
    for name, text in own.items():
        (course / name).write_text(text)
    hand_in(course, "ada", small())
    hand_in(course, "bob", small(add="def add(a, b): return 11"))
    grade(course)
    assert git(course, "status", "--porcelain") == ""  # so nothing stops the pull
    path = theirs / "solutions" / NAME / f"{NAME}.ipynb"
    path.write_text(path.read_text("utf-8").replace("add(5, 6) == 11", "add(5, 7) == 12"))
    git(theirs, "commit", "-a", "-m", "another test")
    git(course, "pull")
    assert {name: (course / name).read_text() for name in own} == own
    assert run("release", NAME, cwd=course).returncode == 0
    said = grade(course)
    assert "2 graded, 0 from the journal" in said
    assert "other points than before: 1 student" in said
    assert "bob: hidden_add 1 to 0" in said


def test_a_courses_own_settings_have_the_last_word(course):
    shutil.copy(ROOT / "nbgrader_config.py", course)
    assert "timezone" not in read_settings(course).NbGraderAPI
    block = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    (course / "course_settings.py").write_text(block + 'c.CourseDirectory.course_id = "ours"\n')
    found = read_settings(course)
    assert found.NbGraderAPI.timezone == "Europe/Berlin"
    assert found.Assignments.due == {"05_kqv": "2026-10-12 23:59"}
    assert found.CourseDirectory.course_id == "ours"


def test_what_a_course_has_of_its_own_is_not_tracked():
    names = ["course_settings.py", "weights.csv", "terms/x/gradebook.db", "forgotten.csv"]
    done = subprocess.run(["git", "check-ignore", *names], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == names


def test_every_command_of_the_page_is_one():
    from typer.main import get_command

    from attncourse.grading.cli import app

    named = set(re.findall(r"attncourse ([a-z][\w-]+)", PAGE))
    assert {"move-gradebook", "forget", "new-term", "roster"} <= named
    assert named <= set(get_command(app).commands)
