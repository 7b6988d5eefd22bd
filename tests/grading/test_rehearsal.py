"""A test that the instructor's own answer fails stops the release."""

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

WRONG_TEST = graded("own_sum", 'assert add(2, 2) == 5, "two and two should be four"', 3)


def solution_with_wrong_test() -> bytes:
    return notebook(solution("add", RIGHT[0]), solution("twice", RIGHT[1]), *TESTS, WRONG_TEST)


def test_a_test_that_its_own_answer_fails_stops_the_release(tmp_path):
    course = make_course(tmp_path)
    path = course / "solutions" / NAME / f"{NAME}.ipynb"
    path.write_bytes(solution_with_wrong_test())
    released = (course / "exercises" / NAME / f"{NAME}.ipynb").read_bytes()
    process = run("release", NAME, cwd=course)
    refuses(
        process, "fails 1 test of its own", "own_sum (0 of 3 points)", "two and two should be four"
    )
    assert (course / "exercises" / NAME / f"{NAME}.ipynb").read_bytes() == released
    assert not (course / "gradebook.db").exists()
    assert run("release", NAME, "--untested", cwd=course).returncode == 0


def test_a_manually_graded_question_stops_no_release(tmp_path):
    """The instructor's own answer has no points until a person gives them."""
    course = make_course(tmp_path)
    (course / "solutions" / NAME / f"{NAME}.ipynb").write_bytes(with_answer(SOLVED))
    rehearse_assignment(course, NAME)


def test_a_rehearsal_that_was_cut_asks_to_try_again(tmp_path, monkeypatch):
    cut_report = make_report("", 0, 0, 0, status="interrupted", attention=("its time was up",))
    monkeypatch.setattr(rehearsal, "grade_submission", lambda *arguments, **options: cut_report)
    with pytest.raises(UserError, match=r"its time was up\. Try again; --untested releases it"):
        rehearse_assignment(make_course(tmp_path), NAME)


def test_an_unchanged_assignment_is_not_rehearsed_again(tmp_path, monkeypatch):
    course = make_course(tmp_path)
    rehearse_assignment(course, NAME)
    calls = []
    monkeypatch.setattr(
        rehearsal, "failures_of", lambda *arguments: calls.append(arguments) or ["x"]
    )
    rehearse_assignment(course, NAME)
    assert not calls
    path = course / "solutions" / NAME / f"{NAME}.ipynb"
    path.write_bytes(small(add=RIGHT[0] + "\n# changed"))
    with pytest.raises(UserError, match="fails 1 test of its own"):
        rehearse_assignment(course, NAME)


def test_an_exercise_that_fails_its_own_test_is_not_written(tmp_path):
    name, course = f"solutions/{NAME}/{NAME}.ipynb", replace(load(ROOT), root=tmp_path)
    right, wrong = {name: small().decode()}, {name: solution_with_wrong_test().decode()}
    require_passing(course, right, [name])
    with pytest.raises(CourseError, match=rf"{NAME}.*own_sum .*should be four"):
        require_passing(course, wrong, [name])
    require_passing(course, wrong, [])  # an existing exercise was tested when it was made
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(wrong[name].replace("A title.", "Another."))
    require_passing(course, wrong, [name])  # a changed text is no reason to run it again
