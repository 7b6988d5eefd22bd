"""Students' questions about grades: their files, the list, the answers, the feedback page."""

import csv
import io
import os
import re

import pytest

from attncourse.grading.collect.collect import ASKS_UNKNOWN, collect_downloads
from attncourse.grading.course.folders import find_assignment
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.connection import find_gradebook, open_gradebook
from attncourse.grading.results.grade_questions import (
    ANSWERED,
    MAX_BYTES_OF_QUESTIONS,
    enter_question_answers,
    exercise_names,
    keep_question,
    questions_in,
    questions_on,
    unanswered_questions,
    write_questions,
)
from attncourse.grading.spreadsheet import csv_table
from helpers.forked_commands import command
from helpers.platform_downloads import (
    CLASS,
    canvas_path,
    moodle_path,
    write_archive,
    write_worksheet,
)
from helpers.small_class import refuses, run
from helpers.small_course import NAME, make_course, small
from helpers.written_question import SOLVED, with_answer

WRONG_NOTEBOOK = small(add="def add(a, b):\n    return a - b")
QUESTION_FILE = b"""Hello,

add: why is 5 and 6 wrong?
=1+1 is right here.

twice : I had all points, had I not?
"""


@pytest.fixture
def course(tmp_path):
    """Make a graded course of two students, of whom Ada has asked."""
    folder = make_course(tmp_path / "course", ada=WRONG_NOTEBOOK, bob=small())
    process = run("grade", NAME, "--unsafe-no-sandbox", cwd=folder)
    assert process.returncode == 0, process
    assert keep_question(folder, NAME, "ada", QUESTION_FILE)
    return folder


def write_answers(course, tmp_path, **answers):
    """Write the table with these answers by exercise, as a spreadsheet saves it."""
    questions_path, *_ = write_questions(course, NAME)
    rows = list(csv.DictReader(io.StringIO(questions_path.read_text(encoding="utf-8"))))
    for row in rows:
        row["answer"] = answers.get(row["exercise"] or "none", row["answer"])
        row["exercise"] = answers.get("into", "") if not row["exercise"] else row["exercise"]
    path = tmp_path / "filled.csv"
    path.write_text(csv_table([list(rows[0]), *(list(row.values()) for row in rows)]))
    return path


def page_text(course, student: str = "ada") -> str:
    process = run("feedback", NAME, "--student", student, cwd=course)
    assert process.returncode == 0, process
    return (course / "feedback" / student / NAME / f"{NAME}.html").read_text(encoding="utf-8")


def comment_on(course, exercise: str, student: str = "ada", text: str | None = None) -> str:
    """Return the comment in nbgrader's gradebook, after setting it if there is a text."""
    with open_gradebook(find_gradebook(course)) as gradebook:
        comment = gradebook.find_comment(exercise, NAME, NAME, student)
        if text is not None:
            comment.manual_comment = text
            gradebook.db.commit()
        return comment.manual_comment or ""


def test_a_question_belongs_to_the_exercise_named_before_it():
    names = {"add": "add", "small.add": "add", "3 · why": "why"}
    text = "All of it.\n`add`: one\nmore: of it\n\n3 · Why:\ntwo\nSMALL.ADD: three\nadd:\n"
    assert list(questions_in(text, names)) == [
        ("", "All of it."),
        ("add", "one\nmore: of it"),
        ("why", "two"),
        ("add", "three"),
    ]
    assert list(questions_in(" \n", names)) == []


def test_a_text_question_is_known_by_its_heading(tmp_path):
    course_folder = make_course(tmp_path)
    (course_folder / "solutions" / NAME / f"{NAME}.ipynb").write_bytes(with_answer(SOLVED))
    names = exercise_names(find_assignment(course_folder, NAME))
    expected = {"twice": "twice", "small.twice": "twice", "why": "why", "small.why": "why"}
    assert names == expected | {"why twice?": "why"}


def test_an_answer_is_on_the_next_feedback_page(course, tmp_path):
    comment_on(course, "add", text="Look at the sign.")
    output = run("questions", cwd=course).stdout
    assert re.search(rf"{NAME}  ada  add  asked \d{{4}}-\d\d-\d\d: why is 5 and 6 wrong", output)
    assert f"{NAME}  ada  (no exercise)" in output
    assert f"3 questions of students are open: attncourse questions {NAME}" in (
        run("feedback", NAME, cwd=course).stderr
    )
    process = run("questions", NAME, cwd=course)
    assert f"reports/{NAME}/questions.csv: 3 questions, 3 open" in process.stdout
    table = (course / "reports" / NAME / "questions.csv").read_text()
    assert "\n'=1+1" in table  # quoted, so that no spreadsheet computes it
    path = write_answers(course, tmp_path, add="5 - 6 is -1, and 11 was <asked> for.")
    process = run("questions", NAME, "--enter", path, cwd=course)
    assert process.stdout.splitlines() == [
        "1 answer entered",
        f"next: attncourse feedback {NAME} --student ada",
    ]
    page = page_text(course)
    expected = (
        "Look at the sign.\n\nYou asked: why is 5 and 6 wrong?\n=1+1 is right here.\n"
        "Answer: 5 - 6 is -1, and 11 was &lt;asked&gt; for."
    )
    assert page.count(f'<p class="comment">{expected}</p>') == 1
    assert "You asked" not in page_text(course, "bob")
    log = (course / "reports" / NAME / ANSWERED).read_text(encoding="utf-8")
    row = next(csv.DictReader(io.StringIO(log)))
    assert row["who"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\+00:00", row["time"])
    assert (row["student"], row["exercise"]) == ("ada", "add")
    assert [q.exercise for q in unanswered_questions(course)[NAME]] == ["", "twice"]


def test_a_changed_answer_replaces_the_earlier_one(course, tmp_path):
    enter_question_answers(course, NAME, write_answers(course, tmp_path, add="One.", twice="Yes."))
    path = write_answers(course, tmp_path, add="Another.")
    assert enter_question_answers(course, NAME, path) == (1, ["ada"])
    assert enter_question_answers(course, NAME, path) == (0, [])  # the same table again
    comment = comment_on(course, "add")
    assert comment.endswith("Answer: Another.")
    assert "One." not in comment
    assert len((course / "reports" / NAME / ANSWERED).read_text().splitlines()) >= 4
    # Grading keeps the answer, and only a further question is open.
    assert run("grade", NAME, "--force", "--unsafe-no-sandbox", cwd=course).returncode == 0
    assert comment_on(course, "add") == comment
    assert keep_question(course, NAME, "ada", b"add: and now?")
    assert [q.text for q in unanswered_questions(course)[NAME] if q.exercise] == ["and now?"]


def test_a_question_without_exercise_can_be_answered(course, tmp_path):
    path = write_answers(course, tmp_path, none="Hello.")
    with pytest.raises(UserError, match=rf"line \d: expected an exercise of {NAME} \(add, twice\)"):
        enter_question_answers(course, NAME, path)
    path = write_answers(course, tmp_path, none="Hello.", into="twice")
    assert enter_question_answers(course, NAME, path) == (1, ["ada"])
    assert comment_on(course, "twice") == "You asked: Hello,\nAnswer: Hello."
    assert [q.exercise for q in unanswered_questions(course)[NAME]] == ["add", "twice"]


def test_question_files_in_any_encoding_are_read_once(course):
    assert not keep_question(course, NAME, "ada", QUESTION_FILE)
    assert keep_question(course, NAME, "bob", "add: groß?".encode("utf-16"))
    assert keep_question(course, NAME, "bob", "add: größer?".encode("cp1252"))
    assert keep_question(course, NAME, "bob", "\ufeffadd: am größten?\r\n\u202e".encode())
    texts = [q.text for q in questions_on(course, NAME) if q.student == "bob"]
    assert texts == ["groß?", "größer?", "am größten?\n\ufffd"]
    names = sorted(path.name for path in (course / "feedback" / "bob").iterdir())
    assert names == [f"question-{NAME}{n}.txt" for n in ("-2", "-3", "")]
    with pytest.raises(UserError, match="up to 100 kB"):
        keep_question(course, NAME, "bob", b"x" * (MAX_BYTES_OF_QUESTIONS + 1))
    os.symlink("/etc/hostname", course / "feedback" / "bob" / f"question-{NAME}-9.txt")
    assert len(questions_on(course, NAME)) == 6


@pytest.mark.parametrize("platform", ["moodle", "canvas"])
def test_collecting_puts_questions_beside_the_feedback(tmp_path, platform):
    course_folder = make_course(tmp_path / "course")
    ada, bob = CLASS[:2]
    make_path = {
        "moodle": lambda student, file, n: moodle_path(student, file),
        "canvas": lambda student, file, n: canvas_path(student, file, n),
    }[platform]
    files = [
        (make_path(ada, f"{NAME}.ipynb", 1), small()),
        (make_path(ada, f"question-{NAME}.txt", 2), b"add: why?"),
        (make_path(bob, "Question-1.TXT", 3), b"twice: why?"),
    ]
    rosters = [write_worksheet(tmp_path / "class.csv", {})] if platform == "moodle" else None
    collection = collect_downloads(
        course_folder, NAME, [write_archive(tmp_path / "all.zip", files)], rosters
    )
    assert f"2 files with questions on the grade: attncourse questions {NAME}" in collection.remarks
    assert len(collection.rows) == 1
    assert collection.left == []
    ids = [ada.id, bob.id] if platform == "moodle" else [ada.sortable, bob.sortable]
    assert [(q.student, q.exercise) for q in questions_on(course_folder, NAME)] == [
        *sorted(zip(ids, ("add", "twice"), strict=True))
    ]
    submitted = [p.name for p in (course_folder / "submitted").rglob("*") if p.is_file()]
    assert sorted(name for name in submitted if not name.endswith((".csv", "timestamp.txt"))) == [
        f"{NAME}.ipynb"
    ]
    second_collection = collect_downloads(course_folder, NAME, [tmp_path / "all.zip"], rosters)
    assert not any("questions" in remark for remark in second_collection.remarks)


def test_unknown_students_and_empty_questions_are_left_out(course, tmp_path):
    names = ("ada", "bob", "Nobody Known")
    path_by_name = {
        name: f"{name}_{n}_assignsubmission_file_/question.txt" for n, name in enumerate(names)
    }
    texts = (b"add: why?", b"\xef\xbb\xbf \r\n", b"add: and I?")
    zipped = write_archive(tmp_path / "q.zip", zip(path_by_name.values(), texts, strict=True))
    collection = collect_downloads(course, NAME, [zipped])
    reasons = {file.path: file.reason for file in collection.left}
    assert reasons == {
        path_by_name["bob"]: "an empty file: it asks nothing",
        path_by_name["Nobody Known"]: f"nobody-known {ASKS_UNKNOWN}",
    }
    assert collection.remarks == [
        f"1 file with questions on the grade: attncourse questions {NAME}"
    ]
    assert not (course / "feedback" / "nobody-known").exists()


def test_questions_of_a_forgotten_student_are_removed(course, tmp_path):
    enter_question_answers(course, NAME, write_answers(course, tmp_path, add="One."))
    keep_question(course, NAME, "bob", b"add: and I?")
    write_questions(course, NAME)
    assert run("forget", "ada", "--yes", cwd=course).returncode == 0
    assert [q.student for q in questions_on(course, NAME)] == ["bob"]
    for file in (ANSWERED, "questions.csv"):
        assert "5 and 6" not in (course / "reports" / NAME / file).read_text()


def test_bad_tables_are_refused_and_enter_nothing(course, tmp_path):
    path = tmp_path / "x.csv"
    enter_command = ("questions", NAME, "--enter", path)
    refuses(run(*enter_command, cwd=course), "x.csv is not there: attncourse questions")
    path.write_text("a,b\n1,2\n")
    refuses(run(*enter_command, cwd=course), "expected the head student,exercise,question")
    head = "student,exercise,question,asked,answer\n"
    path.write_text(f"{head}zoe,add,why?,,So.\n")
    refuses(run(*enter_command, cwd=course), "line 2: there is no such question of zoe")
    path.write_text(f"{head}ada,add,why is 5 and 6 wrong? '=1+1 is right here.,,So.\n,,,,x\n")
    refuses(run(*enter_command, cwd=course), "line 3: there is no such question of nobody")
    path.write_text(f"{head}ada,twice,why is 5 and 6 wrong? =1+1 is right here.,,So.\n")
    refuses(run(*enter_command, cwd=course), "line 2: there is no such question of ada")
    refuses(run("questions", "--enter", path, cwd=course), "name the assignment")
    refuses(run("questions", "02_smal", cwd=course), f"did you mean {NAME}?")
    assert comment_on(course, "add") == ""
    keep_question(course, NAME, "cy", b"add: and I?")
    good = write_answers(course, tmp_path, add="So.")
    refuses(
        run("questions", NAME, "--enter", good, cwd=course),
        "nothing of cy is graded",
        "or leave this",
    )
    assert comment_on(course, "add") == ""


def test_without_questions_the_command_says_where_they_lie(tmp_path):
    course_folder = make_course(tmp_path, ada=small())
    assert run("questions", cwd=course_folder).stdout == "no open question\n"
    refuses(run("questions", NAME, cwd=course_folder), f"feedback/STUDENT/question-{NAME}.txt")


def test_nbgraders_feedback_has_the_answer(course, tmp_path):
    """nbgrader empties the assignment's feedback folder; question files lie one folder above."""
    enter_question_answers(course, NAME, write_answers(course, tmp_path, add="So it is."))
    status, output = command(
        course, "nbgrader", "generate_feedback", NAME, "--force", "--CourseDirectory.course_id=x"
    )
    assert status == 0, output
    page = (course / "feedback" / "ada" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "Answer: So it is." in page
    assert len(questions_on(course, NAME)) == 3
