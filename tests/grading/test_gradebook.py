"""The gradebook: the bulk writer enters what nbgrader's own steps would, row for row."""

import errno
import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from attncourse.grading.course.folders import Submission, find_assignment
from attncourse.grading.course.late import LatePenalty, read_stamp, seconds_late, time_in_stamp
from attncourse.grading.course.settings import (
    course_modules_importable,
    read_settings,
    require_nbgrader,
)
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.assignments import record_assignment
from attncourse.grading.gradebook.connection import find_gradebook, move_if_free, open_gradebook
from attncourse.grading.gradebook.write import Graded, save_batch
from attncourse.grading.graded_notebook import autograded_notebook
from attncourse.grading.report import CellResult, Report, report_without_points
from attncourse.grading.results.class_results import class_results
from helpers.dedented_text import dedented
from helpers.small_course import NAME, RIGHT, STUB, TESTS, cell, make_course, notebook, solution

PLUGIN = """
from nbgrader.plugins import BasePlugin

class PerHour(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        if student_id == "broken":
            raise RuntimeError("no rule for this")
        if student_id == "spared":
            return None
        return -1 if student_id == "praised" else total_seconds_late / 3600
"""
CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "attention"
c.AssignLatePenalties.plugin_class = "late_rules_of_this_course.PerHour"
"""
DUE = datetime(2026, 3, 1, 12)
MANUAL = "### BEGIN SOLUTION\nwhy = 'because'\n### END SOLUTION"
ESSAY = "### BEGIN SOLUTION\nAn essay.\n### END SOLUTION"


def late_penalty(course: Path) -> LatePenalty:
    """What being late costs, by the course's configuration."""
    return LatePenalty(course, find_gradebook(course).config)


def rich_assignment() -> bytes:
    """The small assignment with an answer in code, one in text, and a task, for a person."""
    marks = {"grade": True, "solution": True}
    task = {"task": True, "points": 5.0, "locked": True}
    return notebook(
        solution("add", RIGHT[0]),
        solution("twice", RIGHT[1]),
        *TESTS,
        cell(MANUAL, "explain", points=3.0, **marks),
        cell(ESSAY, "essay", code=False, points=2.0, **marks),
        cell(
            dedented("""
                Do something.
                ### BEGIN MARK SCHEME
                x
                ### END MARK SCHEME
            """),
            "job",
            code=False,
        )
        | {"metadata": {"nbgrader": full("job", **task)}},
    )


def full(grade_id: str, **marks) -> dict:
    plain = {"grade": False, "locked": False, "solution": False, "task": False}
    return plain | {"schema_version": 3, "grade_id": grade_id} | marks


def handed_in(add: str = RIGHT[0], why: str = MANUAL, essay: str = "Mine.") -> bytes:
    marks = {"grade": True, "solution": True}
    return notebook(
        solution("add", add),
        solution("twice", STUB),
        *TESTS,
        cell(why, "explain", points=3.0, **marks),
        cell(essay, "essay", code=False, points=2.0, **marks),
    )


CLASS = {  # what they handed in, and when
    "early": (handed_in(), "2026-03-01 11:00:00 UTC"),
    "late": (handed_in(), "2026-03-01 14:00:00 +0000"),
    "very-late": (handed_in(), "2026-03-09 14:00:00"),
    "extended": (handed_in(), "2026-03-01 14:00:00 UTC"),
    "spared": (handed_in(), "2026-03-01 14:00:00 UTC"),
    "praised": (handed_in(), "2026-03-01 14:00:00 UTC"),
    "no time": (handed_in(), ""),
    "unchanged": (handed_in(STUB, STUB, ""), "2026-02-01 14:00:00 UTC"),
    "Zoë Ångström": (handed_in(essay="YOUR ANSWER HERE"), "2026-03-01 15:30:00 CET"),
    "no-cells": (notebook(cell("x = 1")), ""),
    "torn": (b'{"cells": [', ""),
}


@pytest.fixture
def course(tmp_path) -> Path:
    make_course(tmp_path)
    for part in ("solutions", "exercises"):
        (tmp_path / part / NAME / f"{NAME}.ipynb").write_bytes(rich_assignment())
    (tmp_path / "nbgrader_config.py").write_text(CONFIG)
    (tmp_path / "late_rules_of_this_course.py").write_text(PLUGIN)
    return tmp_path


def prepare(course: Path, file: str):
    """A gradebook with the assignment and its due date."""
    book = find_gradebook(course, f"sqlite:///{course / file}")
    record_assignment(book, NAME)
    with open_gradebook(book) as gradebook:
        gradebook.find_assignment(NAME).duedate = DUE
        gradebook.db.commit()
    return book


def results(course: Path, seed: int) -> list[Graded]:
    """The class with some points or other."""
    assignment, dice = find_assignment(course, NAME), random.Random(seed)
    found = []
    for student, (data, stamp) in CLASS.items():
        cells = {
            g: CellResult(dice.choice([0.0, c.points / 3, c.points]), c.points)
            for g, c in assignment.graded.items()
        }
        report = Report(student, NAME, "graded", cells)
        lost = seed == 1 and student == "late"  # its time is known from the run before
        made = Submission(student, data, timestamp="" if lost else stamp)
        found.append(Graded(made, report, autograded_notebook(data, assignment, report)))
    return found


def through_nbgrader(book, results: list[Graded]) -> None:
    """What `nbgrader autograde` does with a graded notebook, step by step."""
    import nbformat
    from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades

    for result in results:
        student = result.submission.student
        with open_gradebook(book) as gradebook:
            gradebook.update_or_create_student(student)
            when = time_in_stamp(result.submission.timestamp, None)
            stamp = {} if when is None else {"timestamp": when}
            with gradebook.db.no_autoflush:
                gradebook.update_or_create_submission(NAME, student, **stamp)
        resources = {"notebook": NAME, "assignment": NAME, "student": student}
        resources = {"nbgrader": {**resources, "db_url": book.address}}
        content = nbformat.reads(result.notebook, as_version=4)
        with course_modules_importable(book.course):
            for step in (SaveAutoGrades, AssignLatePenalties):
                step(config=book.config).preprocess(content, resources)


def entries(book) -> dict[str, set]:
    """All that a gradebook holds of submissions, without its own keys."""
    where = (
        "join submitted_notebook n on n.id = g.notebook_id join base_cell c on c.id = g.cell_id "
        "join submitted_assignment s on s.id = n.assignment_id"
    )
    queries = {
        "students": "select id from student",
        "submissions": "select student_id, timestamp, extension from submitted_assignment",
        "notebooks": "select s.student_id, b.name, n.flagged, n.late_submission_penalty from "
        "submitted_notebook n join submitted_assignment s on s.id = n.assignment_id "
        "join notebook b on b.id = n.notebook_id",
        "points": "select s.student_id, c.name, c.type, g.auto_score, g.manual_score, "
        f"g.extra_credit, g.needs_manual_grade from grade g {where}",
        "comments": "select s.student_id, c.name, c.type, g.auto_comment, g.manual_comment "
        f"from comment g {where}",
    }
    with closing(sqlite3.connect(book.file)) as connection:
        return {what: set(connection.execute(query)) for what, query in queries.items()}


def by_hand(book) -> None:
    """What a person does between two runs: scores, extra credit, a comment, an extension."""
    with open_gradebook(book) as gradebook:
        for student, grade_id, manual, extra in (
            ("early", "points_add", 0.5, None),
            ("late", "explain", 2.5, 1.0),
            ("very-late", "points_twice", None, 0.25),
            ("very-late", "essay", 1.25, None),
            ("unchanged", "essay", 0.0, None),
            ("late", "job", 4.0, None),
        ):
            grade = gradebook.find_grade(grade_id, NAME, NAME, student)
            grade.manual_score, grade.extra_credit = manual, extra
            grade.needs_manual_grade = False
        gradebook.find_comment("add", NAME, NAME, "unchanged").manual_comment = "Try it!"
        submission = gradebook.find_submission(NAME, "extended")
        submission.extension = timedelta(hours=1, minutes=30)
        gradebook.db.commit()


@pytest.mark.slow
def test_the_bulk_writer_enters_what_nbgraders_own_steps_do(course):
    ours, theirs = prepare(course, "ours.db"), prepare(course, "theirs.db")
    penalty = late_penalty(ours.course)
    for seed in range(2):
        found = results(course, seed)
        save_batch(ours, NAME, found, penalty)
        through_nbgrader(theirs, found)
        assert entries(ours) == entries(theirs), f"run {seed}"
        by_hand(ours)
        by_hand(theirs)
    held = entries(ours)
    assert {row[0] for row in held["students"]} == set(CLASS)
    assert ("unchanged", "add", "SolutionCell", "No response.", "Try it!") in held["comments"]
    assert {row[1] for row in held["comments"] if row[3]} == {"add", "twice", "explain", "essay"}
    assert len([row for row in held["notebooks"] if row[3]]) >= 3  # some are late
    assert len({row[3] for row in held["points"]}) >= 5


def test_saving_again_changes_no_row_and_no_key(course):
    book = prepare(course, "ours.db")
    penalty, found = late_penalty(book.course), results(course, 1)
    save_batch(book, NAME, found, penalty)
    with closing(sqlite3.connect(book.file)) as connection:
        before = list(connection.iterdump())
    save_batch(book, NAME, found, penalty)
    with closing(sqlite3.connect(book.file)) as connection:
        assert list(connection.iterdump()) == before
    save_batch(book, NAME, [*found[:3], *found], penalty)  # nor does a student who is there twice
    with closing(sqlite3.connect(book.file)) as connection:
        assert list(connection.iterdump()) == before


def test_handing_in_nothing_is_no_submission(course):
    book, assignment = prepare(course, "ours.db"), find_assignment(course, NAME)
    for student, status in (("nil", "missing"), ("pipe", "unreadable")):
        report = report_without_points(assignment, status, "why", student)
        made = autograded_notebook(b"", assignment, report) if status == "unreadable" else ""
        save_batch(
            book,
            NAME,
            [Graded(Submission(student), report, made)],
            late_penalty(book.course),
        )
    held = entries(book)
    assert held["students"] == {("nil",), ("pipe",)}
    assert {row[0] for row in held["submissions"]} == {"pipe"}
    scores = {row[1]: row[3] for row in held["points"]}
    assert scores == {
        **dict.fromkeys(["points_add", "hidden_add", "points_twice"], 0.0),
        **dict.fromkeys(["explain", "essay", "job"]),  # a person has to look
    }


def test_withdrawn_work_earns_again_once_it_is_back(course):
    book, assignment = prepare(course, "ours.db"), find_assignment(course, NAME)
    first = next(one for one in results(course, 1) if one.report.points)
    who, penalty = first.submission.student, late_penalty(book.course)

    def points() -> dict[str, tuple]:
        with open_gradebook(book) as gradebook:
            grades = gradebook.find_submission_notebook(NAME, NAME, who).grades
            return {g.name: (g.auto_score, g.manual_score, g.needs_manual_grade) for g in grades}

    save_batch(book, NAME, [first], penalty)
    with open_gradebook(book) as gradebook:
        gradebook.find_grade("essay", NAME, NAME, who).manual_score = 1.5
        gradebook.db.commit()
    save_batch(book, NAME, [first], penalty)
    before = points()
    report = report_without_points(assignment, "missing", "nothing handed in", who)
    for _ in range(2):
        save_batch(book, NAME, [Graded(Submission(who, status="missing"), report)], penalty)
        found = points()
        assert {
            found[name] for name in ("points_add", "hidden_add", "points_twice", "explain")
        } == {(0.0, None, False)}
        assert found["essay"] == (0.0, 1.5, True)  # a person's stays, for a person to look at
    save_batch(book, NAME, [first], penalty)
    assert points() == before


def test_a_batch_is_all_in_or_not_at_all(course):
    book = prepare(course, "ours.db")
    found = results(course, 1)
    broken = Graded(Submission("broken", b"", timestamp="2026-05-01 00:00 UTC"), found[0].report)
    with pytest.raises(UserError, match=r"fails on broken.*RuntimeError: no rule for this"):
        save_batch(book, NAME, [*found, broken], late_penalty(book.course))
    assert not any(entries(book).values())


def test_a_student_whose_name_no_gradebook_can_hold_is_left_out(course):
    book, found = prepare(course, "ours.db"), results(course, 1)[0]
    odd = replace(found, submission=replace(found.submission, named=False))
    save_batch(book, NAME, [odd], late_penalty(book.course))
    assert not any(entries(book).values())


# --- times and penalties -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "hour"),
    [
        ("2026-03-01 12:00:00 UTC", 12),
        ("2026-03-01 12:00:00 Europe/Berlin", 11),
        ("2026-03-01T12:00:00+02:00", 10),
        ("2026-03-01 12:00", 12),
    ],
)
def test_times_are_read_as_nbgrader_reads_them(stamp, hour):
    assert time_in_stamp(stamp, None) == datetime(2026, 3, 1, hour)


NO_TIMES = ("yesterday", "9" * 40, "1e999", "x" * 900, "2026-99-99", "0001-01-01 00:00:00 UTC")
IN_PART = ("10", "Mon", "21:59", "12 October 2026", "12 October 23:59")


@pytest.mark.parametrize("stamp", [*NO_TIMES, *IN_PART])
def test_what_is_no_time_is_said(stamp):
    with pytest.raises(ValueError, match=r"timestamp\.txt: "):
        read_stamp(stamp, None)
    assert time_in_stamp(stamp, None) is time_in_stamp("", None) is None


def test_lateness_counts_from_the_extended_due_date():
    assert seconds_late(DUE + timedelta(hours=2), DUE, None, None) == 7200
    assert seconds_late(DUE + timedelta(hours=2), DUE, timedelta(hours=1), None) == 3600
    assert seconds_late(DUE - timedelta(hours=2), DUE, None, None) == 0
    assert seconds_late(None, DUE, None, None) == 0
    assert seconds_late(DUE, None, timedelta(1), None) == 0


def test_the_courses_configuration_is_read_and_its_plugin_found(course):
    penalty = late_penalty(course)
    assert penalty("late", 7.0, 7200) == 2
    assert penalty("late", 1.5, 7200) == 1.5  # never more than there is
    assert penalty("praised", 7.0, 7200) == 0  # nor less than nothing
    assert penalty("late", 7.0, 0) is None
    (course / "nbgrader_config.py").write_text("c = (")
    with pytest.raises(UserError, match=r"cannot read .*nbgrader_config\.py, line 1: SyntaxError"):
        read_settings(course)
    wrong = CONFIG.replace("late_rules_of_this_course", "no_such_module")
    (course / "nbgrader_config.py").write_text(wrong)
    with pytest.raises(UserError, match="plugin for late penalties does not load"):
        late_penalty(course)


def test_without_a_plugin_late_costs_nothing(tmp_path):
    penalty = late_penalty(make_course(tmp_path))
    assert penalty("late", 7.0, 7200) is None
    (tmp_path / "nbgrader_config.py").write_text(
        'c = get_config()\nc.LateSubmissionPlugin.penalty_method = "zero"\n'
    )
    assert late_penalty(tmp_path)("late", 7.0, 7200) == 7


# --- which gradebook ------------------------------------------------------------------------------


def test_the_gradebook_is_by_option_variable_settings_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("ATTNCOURSE_DB", raising=False)
    course = make_course(tmp_path)
    assert find_gradebook(course).file == tmp_path / "gradebook.db"
    (course / "nbgrader_config.py").write_text(
        'c = get_config()\nc.CourseDirectory.db_url = "sqlite:////settings.db"\n'
    )
    assert find_gradebook(course).file == Path("/settings.db")
    monkeypatch.setenv("ATTNCOURSE_DB", "sqlite:////variable.db")
    assert find_gradebook(course).file == Path("/variable.db")
    assert find_gradebook(course, "sqlite:////option.db").file == Path("/option.db")
    with pytest.raises(UserError, match="address cannot be read"):
        find_gradebook(course, "gradebook.db")


def test_no_password_is_shown(tmp_path):
    book = find_gradebook(make_course(tmp_path), "postgresql://ada:s3cret@127.0.0.1:1/course")
    assert str(book) == "postgresql+psycopg://ada:***@127.0.0.1:1/course"
    assert "s3cret" in book.address
    with pytest.raises(UserError, match="cannot write postgresql") as problem, open_gradebook(book):
        pass
    assert "s3cret" not in str(problem.value)
    assert "refused" in str(problem.value)
    assert "\n" not in str(problem.value)


def test_a_new_gradebook_is_there_at_one_stroke(tmp_path, monkeypatch):
    book = find_gradebook(make_course(tmp_path))
    (tmp_path / ".gradebook.db.new").write_text("what a killed run has left")
    with open_gradebook(book) as gradebook:
        assert gradebook.course_id == "attention"
    assert sorted(p.name for p in tmp_path.glob("*.db*")) == ["gradebook.db"]
    assert not (tmp_path / ".gradebook.db.new").exists()
    with closing(sqlite3.connect(book.file)) as connection:
        version = connection.execute("select version_num from alembic_version").fetchall()
    require_nbgrader()  # puts the program that it asks on the path
    ask = [sys.executable, "-c", "from nbgrader import api; print(api.get_alembic_version())"]
    asked = subprocess.run(ask, capture_output=True, text=True).stdout.split()
    assert [number for (number,) in version] == asked != []


DAMAGED = {
    "alter table student drop column lms_user_id": "of an older nbgrader: nbgrader db upgrade",
    "update grade set auto_score = 'many'": "could not convert string to float: 'many'",
    "update grade set manual_score = 'inf'": "inf points",
}


@pytest.mark.parametrize("change", DAMAGED)
def test_a_malformed_gradebook_is_told_in_a_line(tmp_path, change):
    course = make_course(tmp_path)
    record_assignment(find_gradebook(course), NAME)
    with open_gradebook(find_gradebook(course)) as gradebook, gradebook.db.no_autoflush:
        gradebook.update_or_create_student("ada")
        gradebook.update_or_create_submission(NAME, "ada")
    with closing(sqlite3.connect(course / "gradebook.db")) as connection:
        connection.execute(change)
        connection.commit()
    with pytest.raises(UserError, match=DAMAGED[change]):
        class_results(course, NAME)


def test_a_gradebook_is_made_where_a_file_cannot_have_two_names(tmp_path, monkeypatch):
    """exFAT and some network drives know no hard links."""

    def refuse(*anything):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    book = find_gradebook(make_course(tmp_path))
    with open_gradebook(book):
        assert book.file.is_file()
    assert [path.name for path in tmp_path.iterdir() if ".new" in path.name] == []
    quicker = tmp_path / "quicker.db"
    quicker.write_text("another program's")
    with pytest.raises(FileExistsError):
        move_if_free(book.file, quicker)
    assert quicker.read_text() == "another program's"
    assert book.file.is_file()
