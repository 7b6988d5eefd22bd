"""Written answers are a table with similar ones together, whose points go to the gradebook."""

import csv
import io

import pytest

from attncourse.grading.errors import UserError
from attncourse.grading.results.class_results import class_results
from attncourse.grading.results.written_answers import (
    MANUAL_SCORES_FILE,
    enter_answers,
    text_without_question,
    write_answers,
)
from attncourse.grading.spreadsheet import csv_table
from helpers.small_class import refuses, run
from helpers.small_course import NAME, hand_in, make_course
from helpers.written_question import SOLVED, with_answer

ANSWERS = {
    "ada": "Doubling adds a number to itself, and that needs no table at all.",
    "bob": "=2+2 is what a machine would say, I think.",
    "cy": "Doubling adds a number to itself; that needs no table.",
    "dee": "YOUR ANSWER HERE",
}


@pytest.fixture(scope="module")
def graded_course(tmp_path_factory):
    course = make_course(tmp_path_factory.mktemp("written"))
    (course / "solutions" / NAME / f"{NAME}.ipynb").write_bytes(with_answer(SOLVED))
    for student, text in ANSWERS.items():
        hand_in(course, student, with_answer(f"\n\n{text}"))
    assert run("grade", NAME, "--unsafe-no-sandbox", cwd=course).returncode == 0
    return course


def rows_of_answers(course) -> list[dict[str, str]]:
    path, _ = write_answers(course, NAME)
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def write_marked_table(course, tmp_path, **marks):
    """Write the table with these points and comments, as a spreadsheet saves it."""
    table = rows_of_answers(course)
    for row in table:
        row["points"], row["comment"] = marks.get(row["student"], ("", ""))
    path = tmp_path / "marked.csv"
    path.write_text(csv_table([list(table[0]), *(list(row.values()) for row in table)]))
    return path


def test_similar_answers_stand_together_without_formulas(graded_course):
    table = rows_of_answers(graded_course)
    order = [row["student"] for row in table]
    assert abs(order.index("ada") - order.index("cy")) == 1
    texts = {row["student"]: row["answer"] for row in table}
    assert {name: text.removeprefix("'") for name, text in texts.items()} == ANSWERS | {"dee": ""}
    assert {row["of"] for row in table} == {"3"}
    assert not any(row["answer"].startswith("=") for row in table)


def test_points_and_comments_are_entered_and_logged(graded_course, tmp_path):
    path = write_marked_table(graded_course, tmp_path, ada=("3", "well said"), cy=("2,5", "=well"))
    assert enter_answers(graded_course, NAME, path) == [
        "2 scores and 2 comments entered",
        "1 answer without points yet",  # bob's; dee wrote nothing, which is 0 points
    ]
    results = class_results(graded_course, NAME).by_student
    assert (results["ada"].score, results["cy"].score) == (7, 6.5)  # 4 of them by the test
    row_by_student = {row["student"]: row for row in rows_of_answers(graded_course)}
    assert row_by_student["ada"]["comment"] == "well said"
    assert row_by_student["bob"]["points"] == ""  # an empty cell changes nothing
    log = (graded_course / "reports" / NAME / MANUAL_SCORES_FILE).read_text(encoding="utf-8")
    assert len(log.splitlines()) == 5
    assert ",cy,why,points,,2.5" in log
    # The same table again changes nothing.
    assert enter_answers(graded_course, NAME, path)[0] == "0 scores and 0 comments entered"
    path = write_marked_table(graded_course, tmp_path, ada=("1", ""))
    assert enter_answers(graded_course, NAME, path)[0] == "1 score and 0 comments entered"
    assert ",ada,why,points,3,1" in (
        graded_course / "reports" / NAME / MANUAL_SCORES_FILE
    ).read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("bob", "4", ""), "expected from 0 to 3 points, got 4"),
        (("bob", "many", ""), "expected from 0 to 3 points, got many"),
        (("bob", "nan", ""), "expected from 0 to 3 points, got nan"),
    ],
)
def test_points_above_a_questions_maximum_are_refused(graded_course, tmp_path, change, message):
    student, *marks = change
    before = rows_of_answers(graded_course)
    path = write_marked_table(graded_course, tmp_path, ada=("2", "x"), **{student: marks})
    with pytest.raises(UserError, match=rf"line \d: {message}"):
        enter_answers(graded_course, NAME, path)
    assert rows_of_answers(graded_course) == before


def test_bad_tables_of_marks_are_refused(graded_course, tmp_path):
    path = tmp_path / "x.csv"
    refuses(run("written", NAME, "--enter", path, cwd=graded_course), "x.csv is not there")
    path.write_text("a,b\n1,2\n")
    refuses(run("written", NAME, "--enter", path, cwd=graded_course), "expected the head student,")
    path.write_text("student,question,points,comment\nzoe,why,1,\n")
    refuses(run("written", NAME, "--enter", path, cwd=graded_course), "no answer of zoe to why")


def test_only_the_students_own_lines_are_shown():
    question = f"## Why?\n\nSay it in one sentence.\n\n| 3 | why |\n\n{ANSWERS['dee']}"
    answered = "## Why?\n\nSay it in *one* sentence.\n\n| 3 | why |\n\nFirst.\n\n\n  second"
    assert text_without_question(answered, question) == "First.\n\n  second"
    assert text_without_question(question, question) == ""


def test_an_assignment_without_questions_is_refused(tmp_path):
    refuses(run("written", NAME, cwd=make_course(tmp_path)), "asks nothing that a person marks")
