"""A test that the own answer fails stops the release, before anybody loses points by it."""

from dataclasses import replace

import pytest
from course import CourseError, load

from attncourse.grading.driver import rehearsal
from attncourse.grading.driver.rehearsal import rehearse_assignment
from attncourse.grading.errors import UserError
from exercises import require_passing
from helpers.project import ROOT
from helpers.small_class import make_report, refuses, run
from helpers.small_course import NAME, RIGHT, TESTS, graded, make_course, notebook, small, solution
from helpers.written_question import SOLVED, with_answer

WRONG = graded("own_sum", 'assert add(2, 2) == 5, "two and two should be four"', 3)


def with_wrong_test() -> bytes:
    return notebook(solution("add", RIGHT[0]), solution("twice", RIGHT[1]), *TESTS, WRONG)


def test_a_test_that_the_own_answer_fails_stops_the_release(tmp_path):
    course = make_course(tmp_path)
    path = course / "solutions" / NAME / f"{NAME}.ipynb"
    path.write_bytes(with_wrong_test())
    there = (course / "exercises" / NAME / f"{NAME}.ipynb").read_bytes()
    done = run("release", NAME, cwd=course)
    refuses(
        done, "fails 1 test of its own", "own_sum (0 of 3 points)", "two and two should be four"
    )
    assert (course / "exercises" / NAME / f"{NAME}.ipynb").read_bytes() == there
    assert not (course / "gradebook.db").exists()
    assert run("release", NAME, "--untested", cwd=course).returncode == 0


def test_a_question_that_a_person_grades_stops_no_release(tmp_path):
    """Its own answer has no points before somebody gives them."""
    course = make_course(tmp_path)
    (course / "solutions" / NAME / f"{NAME}.ipynb").write_bytes(with_answer(SOLVED))
    rehearse_assignment(course, NAME)


def test_a_rehearsal_that_did_not_end_proves_nothing_of_a_test(tmp_path, monkeypatch):
    cut = make_report("", 0, 0, 0, status="interrupted", attention=("its time was up",))
    monkeypatch.setattr(rehearsal, "grade_submission", lambda *given, **options: cut)
    with pytest.raises(UserError, match=r"its time was up\. Try again; --untested releases it"):
        rehearse_assignment(make_course(tmp_path), NAME)


def test_what_passed_is_not_run_again_before_it_changes(tmp_path, monkeypatch):
    course = make_course(tmp_path)
    rehearse_assignment(course, NAME)
    judged = []
    monkeypatch.setattr(rehearsal, "failures_of", lambda *given: judged.append(given) or ["x"])
    rehearse_assignment(course, NAME)
    assert not judged
    path = course / "solutions" / NAME / f"{NAME}.ipynb"
    path.write_bytes(small(add=RIGHT[0] + "\n# changed"))
    with pytest.raises(UserError, match="fails 1 test of its own"):
        rehearse_assignment(course, NAME)


def test_no_exercise_is_written_that_its_answer_fails(tmp_path):
    name, course = f"solutions/{NAME}/{NAME}.ipynb", replace(load(ROOT), root=tmp_path)
    right, wrong = {name: small().decode()}, {name: with_wrong_test().decode()}
    require_passing(course, right, [name])
    with pytest.raises(CourseError, match=rf"{NAME}.*own_sum .*should be four"):
        require_passing(course, wrong, [name])
    require_passing(course, wrong, [])  # what is there already was run when it was made
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(wrong[name].replace("A title.", "Another."))
    require_passing(course, wrong, [name])  # nor is it run for another text
