"""What the page *During the term* says: gradebooks move, terms end, settings are one's own."""

import re
import shutil
import subprocess

import pytest
from conftest import ROOT
from small_class import NAME, made, refuses, run, write_gradebook, write_reports
from small_course import make_course, small

from attncourse.grading.class_.results import class_results
from attncourse.grading.course.gradebook import find_book, opened
from attncourse.grading.course.settings import read_settings

PAGE = (ROOT / "book" / "during_the_term.md").read_text(encoding="utf-8")


@pytest.fixture
def course(tmp_path):
    course = make_course(tmp_path / "course", ada=small(), bob=small())
    reports = (made("ada", 2, 1, 4), made("bob", 1, 0, 4))
    write_reports(course, reports)
    write_gradebook(course, reports, manual={("ada", "points_add"): 1.5}, late={"bob": 0.5})
    with opened(find_book(course)) as gradebook:
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


def test_settings_of_a_course_are_in_a_file_of_their_own_and_have_the_last_word(course):
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
