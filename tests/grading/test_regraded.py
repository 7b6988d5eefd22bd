"""After a regrade, changed points are listed with their reasons, on the screen and in a table."""

import csv
from dataclasses import replace

from attncourse.grading.driver.command import write_and_list_changes
from attncourse.grading.driver.regraded import CHANGED_POINTS_FILE, PointChange, changes_between
from attncourse.grading.report import CellResult
from helpers.small_class import make_report, run
from helpers.small_course import NAME, RIGHT, TESTS, graded, make_course, notebook, small, solution


def test_cells_with_changed_points_are_listed():
    before, now = make_report("ada", 2, 1, 4), make_report("ada", 2, 0, 4)
    assert changes_between(before, now)[0][:4] == ("ada", "hidden_add", 1, 0)
    assert changes_between(before, before) == changes_between(None, now) == []


def test_a_new_test_that_gives_nothing_changes_nothing():
    before, now = make_report("ada", 2, 1, 4), make_report("ada", 2, 1, 4)
    cells = {"own_one": CellResult(0.0, 5.0, "failed"), "own_two": CellResult(2.0, 5.0, "half")}
    now = replace(now, cells=now.cells | cells)
    assert [change[1:4] for change in changes_between(before, now)] == [("own_two", 0.0, 2.0)]


def test_a_reason_ends_in_a_whole_word(tmp_path):
    reason = "the test is new: " + "reasons " * 40
    course = make_course(tmp_path)
    lines = write_and_list_changes(
        course, NAME, [PointChange("ada", "own", 0.0, 2.0, reason.strip())]
    )
    assert lines[1].startswith("  ada: own 0 to 2: the test is new: reasons")
    assert lines[1].endswith("reasons …")


def test_a_changed_test_lists_students_with_changed_points(tmp_path):
    course = make_course(tmp_path, ada=small(), bob=small(add="def add(a, b): return 3"))
    assert "other points" not in run("grade", NAME, cwd=course).stdout
    assert not (course / "reports" / NAME / CHANGED_POINTS_FILE).exists()
    test = 'assert add(2, 2) == 5, "two and two should be five"'
    changed_tests = (TESTS[0], TESTS[1], graded("hidden_add", test, 1), TESTS[3])
    data = notebook(solution("add", RIGHT[0]), solution("twice", RIGHT[1]), *changed_tests)
    (course / "solutions" / NAME / f"{NAME}.ipynb").write_bytes(data)
    output = run("grade", NAME, cwd=course).stdout
    assert "other points than before: 1 student" in output
    assert "ada: hidden_add 1 to 0: AssertionError: two and two should be five" in output
    with (course / "reports" / NAME / CHANGED_POINTS_FILE).open() as file:
        rows = list(csv.DictReader(file))
    assert [tuple(row.values())[:4] for row in rows] == [("ada", "hidden_add", "1", "0")]
    assert "two and two should be five" in rows[0]["why"]


def test_an_assignment_without_hand_ins_is_noted(tmp_path):
    course = make_course(tmp_path)
    (course / "submitted" / "ada" / "02_other").mkdir(parents=True)
    note = f"note: nobody has handed in {NAME}: everybody has 0 points in it"
    assert note in run("grade", NAME, cwd=course).stdout.splitlines()
    (course / "submitted" / "bob" / NAME).mkdir(parents=True)
    (course / "submitted" / "bob" / NAME / f"{NAME}.ipynb").write_bytes(small())
    assert note not in run("grade", NAME, cwd=course).stdout
