"""Manually graded questions, and assignments that change after they were handed in."""

import csv
import json
import re

import pytest
import rubrics
from course import CourseError

import exercises
from attncourse.grading.course.changes import changes_of_cells
from attncourse.grading.feedback.command import give_feedback
from attncourse.grading.gradebook.assignments import record_assignment
from attncourse.grading.gradebook.changes import (
    REMOVED_CELLS_FILE,
    REMOVED_CELLS_HEAD,
    append_rows,
)
from attncourse.grading.gradebook.connection import find_gradebook, open_gradebook
from attncourse.grading.submission.notebook import read_assignment
from helpers.gradebook_scores import (
    MARKS,
    TEXT,
    adas_scores,
    enter_score,
    question_cell,
    with_question,
    write_solved,
)
from helpers.project import ROOT
from helpers.small_class import make_report, run, write_gradebook
from helpers.small_course import NAME, graded, hand_in, make_course, notebook, small

CHAPTERS = sorted(path.name for path in (ROOT / "solutions").glob("[0-9][0-9]_*"))


# --- questions ----------------------------------------------------------------------------------


def test_a_question_gets_nbgraders_metadata_and_its_points():
    marks, text = rubrics.question(MARKS, TEXT, "a.py")
    assert marks == MARKS | {"locked": False, "schema_version": 3, "task": False}
    assert "*3 points, given by a person · three sentences*" in text
    assert "<!--" not in text


@pytest.mark.parametrize(
    ("marks", "old", "new", "complaint"),
    [
        ({}, "| 2 |", "| 3 |", "explain_it: the rubric adds up to 4 points, the cell has 3"),
        ({"points": 2}, "", "", "explain_it: the rubric adds up to 3 points, the cell has 2"),
        ({}, "| 2 | what |\n| 1 | why |", "", "the rubric adds up to 0 points, the cell has 3"),
        ({"points": None}, "", "", "it should have .* and points"),
        ({"locked": True}, "", "", "it should have"),
        ({}, "\nSo.", "", "no answer from ### BEGIN SOLUTION"),
        ({}, "<!-- facts: explain_it -->", "", "there is no marker"),
    ],
)
def test_a_bad_question_is_refused_in_one_line(marks, old, new, complaint):
    with pytest.raises(CourseError, match=complaint) as caught:
        rubrics.question(MARKS | marks, TEXT.replace(old, new), "solutions/a.py")
    assert str(caught.value).startswith("solutions/a.py: explain_it")
    assert "\n" not in str(caught.value)


def test_a_wrong_rubric_stops_make_exercises(tmp_path, monkeypatch):
    from types import SimpleNamespace

    path = tmp_path / "solutions" / "05_x" / "05_x.py"
    path.parent.mkdir(parents=True)
    lines = "".join(
        f"# {line}".rstrip() + "\n" for line in TEXT.replace("| 1 |", "| 9 |").split("\n")
    )
    first_line = f"# %% [markdown] nbgrader={json.dumps(MARKS)}\n"
    path.write_text(f"# %% [markdown]\n# # Title\n\n{first_line}{lines}")
    course, chapter = SimpleNamespace(root=tmp_path), SimpleNamespace(folder="05_x")
    with pytest.raises(CourseError, match="explain_it: the rubric adds up to 11 points"):
        exercises.solved(course, chapter, {})


def read_notebook(path):
    return read_assignment(path, path.read_bytes())


@pytest.mark.parametrize("name", CHAPTERS)
def test_chapters_from_the_fifth_on_have_a_question(name):
    solved = read_notebook(ROOT / "solutions" / name / f"{name}.ipynb")
    released = read_notebook(ROOT / "exercises" / name / f"{name}.ipynb")
    questions = [c for c in solved.cells if c.grade and c.solution]
    assert len(questions) == (1 if name >= "05" else 0)
    for solved_cell in questions:
        released_cell = next(c for c in released.cells if c.grade_id == solved_cell.grade_id)
        assert not solved_cell.code
        assert rubrics.ANSWER.search(solved_cell.source)
        assert released_cell.source.endswith("YOUR ANSWER HERE")
        assert (
            sum(int(row) for row in rubrics.ROW.findall(released_cell.source))
            == released_cell.points
            == 4
        )
        assert "SOLUTION" not in released_cell.source
        answer, _, rubric = rubrics.ANSWER.search(solved_cell.source)[0].partition("\n\n")
        assert " ".join(answer.splitlines()[1:]).count(". ") == 2, "three sentences"
        assert re.findall(r"\((\d)\)", rubric) == rubrics.ROW.findall(released_cell.source)
        assert "three sentences" in " ".join(released_cell.source.split())


# --- changes ------------------------------------------------------------------------------------


def test_changes_of_cells_are_sentences():
    old = {"a": ("1", 2.0), "b": ("2", 3.0), "c": ("3", 1.0), "d": ("4", None), "e": ("5", 1.0)}
    new = {"b": ("2", 4.0), "c": ("9", 1.0), "d": ("8", None), "e": ("5", 1.0), "f": ("6", 2.5)}
    assert list(changes_of_cells(old, new)) == [
        "f is new, 2.5 points",
        "a is gone, 2 points",
        "b has 4 points, it had 3",
        "another text: c",
    ]
    assert list(changes_of_cells(old, old)) == []


def test_manual_scores_stay_when_cells_change(tmp_path):
    course = make_course(tmp_path, ada=small())
    write_solved(course, with_question(small()))
    course_gradebook = find_gradebook(course)
    assert record_assignment(course_gradebook, NAME) == []
    with open_gradebook(course_gradebook) as gradebook:
        gradebook.add_student("ada")
        with gradebook.db.no_autoflush:
            gradebook.add_submission(NAME, "ada")
    enter_score(course, "ada", "explain_it", 2.5, "Say more.")
    enter_score(course, "ada", "points_twice", 3.0)
    content = json.loads(with_question(small()))
    kept_cells = [c for c in content["cells"] if c["id"] not in ("points_twice", "explain_it")]
    changed_question = question_cell(TEXT.replace("Explain", "Do explain"))
    write_solved(course, notebook(*kept_cells, changed_question, graded("points_more", "2", 2)))
    assert record_assignment(course_gradebook, NAME) == [
        "points_more is new, 2 points",
        "points_twice is gone, 4 points",
        "another text: explain_it",
        "what a person has entered for cells that are gone is in "
        f"{course}/reports/{NAME}/{REMOVED_CELLS_FILE}",
    ]
    scores_by_cell = adas_scores(course)
    assert set(scores_by_cell) == {"points_add", "hidden_add", "explain_it", "points_more"}
    assert scores_by_cell["explain_it"][1] == 2.5
    with (course / "reports" / NAME / REMOVED_CELLS_FILE).open(newline="") as file:
        assert list(csv.reader(file)) == [
            list(REMOVED_CELLS_HEAD),
            ["ada", "points_twice", "3", "", ""],
        ]
    with_fewer_points = with_question(small()).replace(b"| 2 | what", b"| 1 | what")
    with_fewer_points = with_fewer_points.replace(b'"points": 3', b'"points": 2')
    write_solved(course, with_fewer_points)
    remarks = record_assignment(course_gradebook, NAME)
    assert "explain_it has 2 points, it had 3" in remarks
    assert "explain_it: the score a person gave is above its 2 points: ada" in remarks
    assert adas_scores(course)["explain_it"][1] == 2.5
    with open_gradebook(course_gradebook) as gradebook:
        comment = gradebook.find_comment("explain_it", NAME, NAME, "ada")
        assert comment.manual_comment == "Say more."
    assert record_assignment(course_gradebook, NAME) == []


def test_removed_cells_are_saved_without_formulas(tmp_path):
    rows = [("=cmd|' C calc'!A0", "points_add", 1.0, None, None), ("ada", "add", None, None, "+1")]
    for row in rows:
        path = append_rows(tmp_path / REMOVED_CELLS_FILE, [row])
    assert list(csv.reader(path.read_text().splitlines())) == [
        list(REMOVED_CELLS_HEAD),
        ["'=cmd|' C calc'!A0", "points_add", "1", "", ""],
        ["ada", "add", "", "", "'+1"],
    ]


def test_manual_points_are_kept_through_every_grading(tmp_path):
    """The commands run from release to feedback, twice, with new tests in between."""
    course = make_course(tmp_path)
    write_solved(course, with_question(small()))
    hand_in(course, "ada", with_question(small(), "Because *it* is so."))
    hand_in(course, "bob", with_question(small(), question_cell()["source"].split("###")[0]))
    assert "gives the points of explain_it" in run("grade", NAME, cwd=course).stdout
    assert adas_scores(course)["explain_it"] == (None, None, True)
    report = run("report", NAME, cwd=course).stdout
    assert "still missing for explain_it of" in report
    enter_score(course, "ada", "explain_it", 2.0, "Why?")
    cells_with_new_test = json.loads(with_question(small()))["cells"] + [
        graded("points_more", "2", 2)
    ]
    write_solved(course, notebook(*cells_with_new_test))
    hand_in(course, "ada", with_question(small(), "Because it is *not* so."))
    process = run("grade", NAME, cwd=course)
    assert "note: the assignment changed: points_more is new, 2 points" in process.stdout
    assert adas_scores(course)["explain_it"][1] == 2.0
    assert adas_scores(course)["points_more"] == (2.0, None, False)
    give_feedback(course, NAME)
    page = (course / "feedback" / "ada" / NAME / f"{NAME}.html").read_text()
    for text in ("is <em>not</em> so", "2 of 3 points", "Why?", "11 of 12 points"):
        assert text in page


def test_a_gradebook_without_cells_gets_them(tmp_path):
    course = make_course(tmp_path, ada=small())
    write_gradebook(course, [make_report("ada", 2, 1, 4)], manual={("ada", "points_twice"): 3.0})
    course_gradebook = find_gradebook(course)
    record_assignment(course_gradebook, NAME)
    assert record_assignment(course_gradebook, NAME) == []
    with open_gradebook(course_gradebook) as gradebook:
        notebook_in_gradebook = gradebook.find_notebook(NAME, NAME)
        assert {"add", "twice", "points_add"} <= {
            cell.name for cell in notebook_in_gradebook.source_cells
        }
        assert gradebook.find_submission(NAME, "ada").score == 2 + 1 + 3
