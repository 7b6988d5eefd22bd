"""The gradebook: the bulk writer enters the same rows as nbgrader's own steps."""

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

LATE_PLUGIN = """
from nbgrader.plugins import BasePlugin

class PerHour(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        if student_id == "broken":
            raise RuntimeError("no rule for this")
        if student_id == "spared":
            return None
        return -1 if student_id == "praised" else total_seconds_late / 3600
"""
CONFIG_WITH_PLUGIN = """
c = get_config()
c.CourseDirectory.course_id = "attention"
c.AssignLatePenalties.plugin_class = "late_rules_of_this_course.PerHour"
"""
DUE = datetime(2026, 3, 1, 12)
MANUAL_ANSWER = "### BEGIN SOLUTION\nwhy = 'because'\n### END SOLUTION"
ESSAY_ANSWER = "### BEGIN SOLUTION\nAn essay.\n### END SOLUTION"


def late_penalty(course: Path) -> LatePenalty:
    """Return the course's late penalty, as configured."""
    return LatePenalty(course, find_gradebook(course).config)


def assignment_with_manual_cells() -> bytes:
    """Return the small assignment with manually graded code, text and a task."""
    marks = {"grade": True, "solution": True}
    task = {"task": True, "points": 5.0, "locked": True}
    return notebook(
        solution("add", RIGHT[0]),
        solution("twice", RIGHT[1]),
        *TESTS,
        cell(MANUAL_ANSWER, "explain", points=3.0, **marks),
        cell(ESSAY_ANSWER, "essay", code=False, points=2.0, **marks),
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
        | {"metadata": {"nbgrader": nbgrader_metadata("job", **task)}},
    )


def nbgrader_metadata(grade_id: str, **marks) -> dict:
    plain = {"grade": False, "locked": False, "solution": False, "task": False}
    return plain | {"schema_version": 3, "grade_id": grade_id} | marks


def submission_notebook(
    add: str = RIGHT[0], why: str = MANUAL_ANSWER, essay: str = "Mine."
) -> bytes:
    marks = {"grade": True, "solution": True}
    return notebook(
        solution("add", add),
        solution("twice", STUB),
        *TESTS,
        cell(why, "explain", points=3.0, **marks),
        cell(essay, "essay", code=False, points=2.0, **marks),
    )


CLASS = {  # what they handed in, and when
    "early": (submission_notebook(), "2026-03-01 11:00:00 UTC"),
    "late": (submission_notebook(), "2026-03-01 14:00:00 +0000"),
    "very-late": (submission_notebook(), "2026-03-09 14:00:00"),
    "extended": (submission_notebook(), "2026-03-01 14:00:00 UTC"),
    "spared": (submission_notebook(), "2026-03-01 14:00:00 UTC"),
    "praised": (submission_notebook(), "2026-03-01 14:00:00 UTC"),
    "no time": (submission_notebook(), ""),
    "unchanged": (submission_notebook(STUB, STUB, ""), "2026-02-01 14:00:00 UTC"),
    "Zoë Ångström": (submission_notebook(essay="YOUR ANSWER HERE"), "2026-03-01 15:30:00 CET"),
    "no-cells": (notebook(cell("x = 1")), ""),
    "torn": (b'{"cells": [', ""),
}


@pytest.fixture
def course(tmp_path) -> Path:
    make_course(tmp_path)
    for part in ("solutions", "exercises"):
        (tmp_path / part / NAME / f"{NAME}.ipynb").write_bytes(assignment_with_manual_cells())
    (tmp_path / "nbgrader_config.py").write_text(CONFIG_WITH_PLUGIN)
    (tmp_path / "late_rules_of_this_course.py").write_text(LATE_PLUGIN)
    return tmp_path


def prepare_gradebook(course: Path, file: str):
    """Make a gradebook with the assignment and its due date."""
    course_gradebook = find_gradebook(course, f"sqlite:///{course / file}")
    record_assignment(course_gradebook, NAME)
    with open_gradebook(course_gradebook) as gradebook:
        gradebook.find_assignment(NAME).duedate = DUE
        gradebook.db.commit()
    return course_gradebook


def graded_class(course: Path, seed: int) -> list[Graded]:
    """Return the class with points drawn from this seed."""
    assignment, generator = find_assignment(course, NAME), random.Random(seed)
    graded = []
    for student, (data, stamp) in CLASS.items():
        cells = {
            g: CellResult(generator.choice([0.0, c.points / 3, c.points]), c.points)
            for g, c in assignment.graded.items()
        }
        report = Report(student, NAME, "graded", cells)
        without_time = seed == 1 and student == "late"  # its time is known from the run before
        submission = Submission(student, data, timestamp="" if without_time else stamp)
        graded.append(Graded(submission, report, autograded_notebook(data, assignment, report)))
    return graded


def save_through_nbgrader(course_gradebook, results: list[Graded]) -> None:
    """Do what `nbgrader autograde` does with a graded notebook, step by step."""
    import nbformat
    from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades

    for result in results:
        student = result.submission.student
        with open_gradebook(course_gradebook) as gradebook:
            gradebook.update_or_create_student(student)
            handed_in_at = time_in_stamp(result.submission.timestamp, None)
            stamp = {} if handed_in_at is None else {"timestamp": handed_in_at}
            with gradebook.db.no_autoflush:
                gradebook.update_or_create_submission(NAME, student, **stamp)
        resources = {"notebook": NAME, "assignment": NAME, "student": student}
        resources = {"nbgrader": {**resources, "db_url": course_gradebook.address}}
        content = nbformat.reads(result.notebook, as_version=4)
        with course_modules_importable(course_gradebook.course):
            for step in (SaveAutoGrades, AssignLatePenalties):
                step(config=course_gradebook.config).preprocess(content, resources)


def gradebook_rows(course_gradebook) -> dict[str, set]:
    """Return all that a gradebook holds of submissions, without its own keys."""
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
    with closing(sqlite3.connect(course_gradebook.file)) as connection:
        return {name: set(connection.execute(query)) for name, query in queries.items()}


def enter_manual_changes(course_gradebook) -> None:
    """Enter scores, extra credit, a comment and an extension, as a person does between two runs."""
    with open_gradebook(course_gradebook) as gradebook:
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
    bulk_gradebook, nbgrader_gradebook = (
        prepare_gradebook(course, "ours.db"),
        prepare_gradebook(course, "theirs.db"),
    )
    penalty = late_penalty(bulk_gradebook.course)
    for seed in range(2):
        graded = graded_class(course, seed)
        save_batch(bulk_gradebook, NAME, graded, penalty)
        save_through_nbgrader(nbgrader_gradebook, graded)
        assert gradebook_rows(bulk_gradebook) == gradebook_rows(nbgrader_gradebook), f"run {seed}"
        enter_manual_changes(bulk_gradebook)
        enter_manual_changes(nbgrader_gradebook)
    rows = gradebook_rows(bulk_gradebook)
    assert {row[0] for row in rows["students"]} == set(CLASS)
    assert ("unchanged", "add", "SolutionCell", "No response.", "Try it!") in rows["comments"]
    assert {row[1] for row in rows["comments"] if row[3]} == {"add", "twice", "explain", "essay"}
    assert len([row for row in rows["notebooks"] if row[3]]) >= 3  # some are late
    assert len({row[3] for row in rows["points"]}) >= 5


def test_saving_again_changes_no_row_and_no_key(course):
    course_gradebook = prepare_gradebook(course, "ours.db")
    penalty, graded = late_penalty(course_gradebook.course), graded_class(course, 1)
    save_batch(course_gradebook, NAME, graded, penalty)
    with closing(sqlite3.connect(course_gradebook.file)) as connection:
        before = list(connection.iterdump())
    save_batch(course_gradebook, NAME, graded, penalty)
    with closing(sqlite3.connect(course_gradebook.file)) as connection:
        assert list(connection.iterdump()) == before
    save_batch(
        course_gradebook, NAME, [*graded[:3], *graded], penalty
    )  # nor does a student who is there twice
    with closing(sqlite3.connect(course_gradebook.file)) as connection:
        assert list(connection.iterdump()) == before


def test_a_missing_submission_is_not_entered(course):
    course_gradebook, assignment = (
        prepare_gradebook(course, "ours.db"),
        find_assignment(course, NAME),
    )
    for student, status in (("nil", "missing"), ("pipe", "unreadable")):
        report = report_without_points(assignment, status, "why", student)
        graded_notebook = (
            autograded_notebook(b"", assignment, report) if status == "unreadable" else ""
        )
        save_batch(
            course_gradebook,
            NAME,
            [Graded(Submission(student), report, graded_notebook)],
            late_penalty(course_gradebook.course),
        )
    rows = gradebook_rows(course_gradebook)
    assert rows["students"] == {("nil",), ("pipe",)}
    assert {row[0] for row in rows["submissions"]} == {"pipe"}
    scores = {row[1]: row[3] for row in rows["points"]}
    assert scores == {
        **dict.fromkeys(["points_add", "hidden_add", "points_twice"], 0.0),
        **dict.fromkeys(["explain", "essay", "job"]),  # a person has to look
    }


def test_a_withdrawn_submission_earns_again_once_it_is_back(course):
    course_gradebook, assignment = (
        prepare_gradebook(course, "ours.db"),
        find_assignment(course, NAME),
    )
    first = next(graded for graded in graded_class(course, 1) if graded.report.points)
    student, penalty = first.submission.student, late_penalty(course_gradebook.course)

    def points_in_gradebook() -> dict[str, tuple]:
        with open_gradebook(course_gradebook) as gradebook:
            grades = gradebook.find_submission_notebook(NAME, NAME, student).grades
            return {g.name: (g.auto_score, g.manual_score, g.needs_manual_grade) for g in grades}

    save_batch(course_gradebook, NAME, [first], penalty)
    with open_gradebook(course_gradebook) as gradebook:
        gradebook.find_grade("essay", NAME, NAME, student).manual_score = 1.5
        gradebook.db.commit()
    save_batch(course_gradebook, NAME, [first], penalty)
    before = points_in_gradebook()
    report = report_without_points(assignment, "missing", "nothing handed in", student)
    for _ in range(2):
        save_batch(
            course_gradebook, NAME, [Graded(Submission(student, status="missing"), report)], penalty
        )
        current = points_in_gradebook()
        assert {
            current[name] for name in ("points_add", "hidden_add", "points_twice", "explain")
        } == {(0.0, None, False)}
        assert current["essay"] == (0.0, 1.5, True)  # a person's stays, for a person to look at
    save_batch(course_gradebook, NAME, [first], penalty)
    assert points_in_gradebook() == before


def test_a_batch_is_saved_completely_or_not_at_all(course):
    course_gradebook = prepare_gradebook(course, "ours.db")
    graded = graded_class(course, 1)
    broken = Graded(Submission("broken", b"", timestamp="2026-05-01 00:00 UTC"), graded[0].report)
    with pytest.raises(UserError, match=r"fails on broken.*RuntimeError: no rule for this"):
        save_batch(course_gradebook, NAME, [*graded, broken], late_penalty(course_gradebook.course))
    assert not any(gradebook_rows(course_gradebook).values())


def test_a_student_with_an_impossible_name_is_left_out(course):
    course_gradebook, graded = prepare_gradebook(course, "ours.db"), graded_class(course, 1)[0]
    unnamed = replace(graded, submission=replace(graded.submission, named=False))
    save_batch(course_gradebook, NAME, [unnamed], late_penalty(course_gradebook.course))
    assert not any(gradebook_rows(course_gradebook).values())


# --- times and penalties ------------------------------------------------------------------------


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


BAD_TIMES = ("yesterday", "9" * 40, "1e999", "x" * 900, "2026-99-99", "0001-01-01 00:00:00 UTC")
INCOMPLETE_TIMES = ("10", "Mon", "21:59", "12 October 2026", "12 October 23:59")


@pytest.mark.parametrize("stamp", [*BAD_TIMES, *INCOMPLETE_TIMES])
def test_a_bad_timestamp_is_reported(stamp):
    with pytest.raises(ValueError, match=r"timestamp\.txt: "):
        read_stamp(stamp, None)
    assert time_in_stamp(stamp, None) is time_in_stamp("", None) is None


def test_lateness_counts_from_the_extended_due_date():
    assert seconds_late(DUE + timedelta(hours=2), DUE, None, None) == 7200
    assert seconds_late(DUE + timedelta(hours=2), DUE, timedelta(hours=1), None) == 3600
    assert seconds_late(DUE - timedelta(hours=2), DUE, None, None) == 0
    assert seconds_late(None, DUE, None, None) == 0
    assert seconds_late(DUE, None, timedelta(1), None) == 0


def test_the_courses_late_plugin_is_loaded(course):
    penalty = late_penalty(course)
    assert penalty("late", 7.0, 7200) == 2
    assert penalty("late", 1.5, 7200) == 1.5  # never more than there is
    assert penalty("praised", 7.0, 7200) == 0  # nor less than nothing
    assert penalty("late", 7.0, 0) is None
    (course / "nbgrader_config.py").write_text("c = (")
    with pytest.raises(UserError, match=r"cannot read .*nbgrader_config\.py, line 1: SyntaxError"):
        read_settings(course)
    wrong_config = CONFIG_WITH_PLUGIN.replace("late_rules_of_this_course", "no_such_module")
    (course / "nbgrader_config.py").write_text(wrong_config)
    with pytest.raises(UserError, match="plugin for late penalties does not load"):
        late_penalty(course)


def test_without_a_plugin_late_costs_nothing(tmp_path):
    penalty = late_penalty(make_course(tmp_path))
    assert penalty("late", 7.0, 7200) is None
    (tmp_path / "nbgrader_config.py").write_text(
        'c = get_config()\nc.LateSubmissionPlugin.penalty_method = "zero"\n'
    )
    assert late_penalty(tmp_path)("late", 7.0, 7200) == 7


# --- which gradebook ----------------------------------------------------------------------------


def test_the_gradebooks_url_comes_from_option_to_folder(tmp_path, monkeypatch):
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
    course_gradebook = find_gradebook(
        make_course(tmp_path), "postgresql://ada:s3cret@127.0.0.1:1/course"
    )
    assert str(course_gradebook) == "postgresql+psycopg://ada:***@127.0.0.1:1/course"
    assert "s3cret" in course_gradebook.address
    with (
        pytest.raises(UserError, match="cannot write postgresql") as problem,
        open_gradebook(course_gradebook),
    ):
        pass
    assert "s3cret" not in str(problem.value)
    assert "refused" in str(problem.value)
    assert "\n" not in str(problem.value)


def test_a_new_gradebook_appears_complete(tmp_path, monkeypatch):
    course_gradebook = find_gradebook(make_course(tmp_path))
    (tmp_path / ".gradebook.db.new").write_text("what a killed run has left")
    with open_gradebook(course_gradebook) as gradebook:
        assert gradebook.course_id == "attention"
    assert sorted(p.name for p in tmp_path.glob("*.db*")) == ["gradebook.db"]
    assert not (tmp_path / ".gradebook.db.new").exists()
    with closing(sqlite3.connect(course_gradebook.file)) as connection:
        version = connection.execute("select version_num from alembic_version").fetchall()
    require_nbgrader()  # puts the program that it asks on the path
    command = [sys.executable, "-c", "from nbgrader import api; print(api.get_alembic_version())"]
    expected = subprocess.run(command, capture_output=True, text=True).stdout.split()
    assert [number for (number,) in version] == expected != []


DAMAGING_STATEMENTS = {
    "alter table student drop column lms_user_id": "of an older nbgrader: nbgrader db upgrade",
    "update grade set auto_score = 'many'": "could not convert string to float: 'many'",
    "update grade set manual_score = 'inf'": "inf points",
}


@pytest.mark.parametrize("change", DAMAGING_STATEMENTS)
def test_a_malformed_gradebook_is_reported_in_one_line(tmp_path, change):
    course = make_course(tmp_path)
    record_assignment(find_gradebook(course), NAME)
    with open_gradebook(find_gradebook(course)) as gradebook, gradebook.db.no_autoflush:
        gradebook.update_or_create_student("ada")
        gradebook.update_or_create_submission(NAME, "ada")
    with closing(sqlite3.connect(course / "gradebook.db")) as connection:
        connection.execute(change)
        connection.commit()
    with pytest.raises(UserError, match=DAMAGING_STATEMENTS[change]):
        class_results(course, NAME)


def test_a_gradebook_is_made_without_hard_links(tmp_path, monkeypatch):
    """exFAT and some network drives have no hard links."""

    def refuse(*anything):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    course_gradebook = find_gradebook(make_course(tmp_path))
    with open_gradebook(course_gradebook):
        assert course_gradebook.file.is_file()
    assert [path.name for path in tmp_path.iterdir() if ".new" in path.name] == []
    existing = tmp_path / "quicker.db"
    existing.write_text("another program's")
    with pytest.raises(FileExistsError):
        move_if_free(course_gradebook.file, existing)
    assert existing.read_text() == "another program's"
    assert course_gradebook.file.is_file()
