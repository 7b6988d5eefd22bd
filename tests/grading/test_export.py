"""Exports hold the gradebook's points, keep each format's rules, and contain no formula."""

import csv
import io
import json
import os
import re
import time
from html import unescape
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncourse.grading.errors import UserError
from attncourse.grading.graded_notebook import autograded_notebook
from attncourse.grading.results.export import write_export
from attncourse.grading.results.gradescope import is_folder
from attncourse.grading.results.totals import Weighted, lowest_of_group
from attncourse.grading.spreadsheet import csv_cell, csv_table, line_of_cell, plain_number
from attncourse.grading.submission.notebook import Assignment, read_cells
from helpers.gradescope_format import RESULTS
from helpers.small_class import (
    NAME,
    make_report,
    mistake_fields,
    refuses,
    run,
    write_gradebook,
    write_reports,
)
from helpers.small_course import small

REPORTS = [
    make_report("ada", 2, 1, 4),
    make_report(
        "bob", 1, 0, 4, notes=("not attempted: add",), **mistake_fields("small.add", "adds twice")
    ),
    make_report("cy", status="unreadable", notes=("unreadable notebook: line 2",)),
    make_report("dot", status="missing", notes=("nothing handed in",)),
]
PEOPLE = {
    "ada": {"last_name": "Lovelace", "first_name": "Ada", "email": "ada@x.org"},
    "bob": {"last_name": "O'Brien, Jr.", "first_name": "Bob", "email": "bob@x.org"},
}


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """Four students: one late, one with a manual score, one unreadable, one missing."""
    folder = write_reports(tmp_path_factory.mktemp("course"), REPORTS)
    manual = {("bob", "points_add"): 1.5}
    waiting = (("cy", "points_twice"),)
    return write_gradebook(
        folder, REPORTS, manual=manual, late={"ada": 2.5}, people=PEOPLE, waiting=waiting
    )


def read_csv(path: Path, encoding: str = "utf-8") -> list[list[str]]:
    with path.open(encoding=encoding, newline="") as file:
        return list(csv.reader(file))


# --- cells ------------------------------------------------------------------------------------

FORMULA_SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
BLANKS = " \t\r\n\x0b\x0c\x00\u00a0\u200b\u200e\u200f\u202a\u202e\ufeff\"'`\u201c"
HOSTILE_TEXTS = st.lists(st.sampled_from([*FORMULA_SIGNS, *BLANKS, *";,|aé1\\", "=1+1"])).map(
    "".join
)
TEXTS = st.one_of(st.text(), HOSTILE_TEXTS)


@given(TEXTS)
def test_no_cell_begins_with_a_formula(text):
    written = csv_cell(text)
    assert not written.startswith((*FORMULA_SIGNS, "\t", "\r", "\n"))
    if text.lstrip(BLANKS).startswith(tuple(FORMULA_SIGNS)):
        assert written.startswith("'")
    elif text[:1].isalnum() and text.isprintable() and ";" not in text:
        assert written == text


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_no_formula_survives_another_separator(row):
    for piece in re.split(r"[;\t\r\n]", csv_table([["id", *row]])):
        for start in {piece, piece.lstrip(" \"'\x00")}:
            # A comma inside a quoted cell does not separate cells.
            assert not start.startswith(tuple(FORMULA_SIGNS)) or piece.lstrip(' "\x00').startswith(
                "'"
            )


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=4), max_size=4))
def test_written_tables_are_read_back_unchanged(rows):
    rows = [["a", *row] for row in rows]
    expected = [[csv_cell(text) for text in row] for row in rows]
    assert list(csv.reader(io.StringIO(csv_table(rows), newline=""))) == expected


@given(TEXTS)
def test_line_of_cell_undoes_csv_cell(text):
    line = re.sub(r"[\t\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", ";", text)
    assert line_of_cell(csv_cell(line)) == line


@pytest.mark.parametrize(
    "text", ["two\nlines", 'say "x"', "a;b", "a,b", "nul\x00", "\u200fעברית", "é", "x\\", "a\r\nb"]
)
def test_harmless_texts_stay_unchanged(text):
    assert csv_cell(text) == text


def test_numbers_stay_numbers():
    assert [csv_cell(n) for n in (-2.5, 0, 7.0, 1 / 3, 100, 1e-9, -0.0, None)] == [
        *("-2.5", "0", "7", "0.333333", "100", "0", "0", "")
    ]


@given(st.floats(-1e6, 1e6))
def test_a_written_number_is_read_back(value):
    assert float(plain_number(value)) == pytest.approx(value, abs=1e-6)
    assert re.fullmatch(r"-?\d+(\.\d*[1-9])?", plain_number(value))


def test_a_long_hostile_text_costs_no_time():
    start = time.process_time()
    for text in (";" * 10**6, "\n" * 10**6, " " * 10**6, "; \"' " * 200_000, "=" * 10**6):
        assert len(csv_cell(text)) <= 64_002
    assert time.process_time() - start < 2


# --- points -----------------------------------------------------------------------------------


def test_exported_scores_agree_with_nbgraders(course, tmp_path):
    """The oracle is nbgrader's exporter, on the same gradebook."""
    from nbgrader.api import Gradebook
    from nbgrader.plugins.export import CsvExportPlugin

    exporter = CsvExportPlugin(to=str(tmp_path / "theirs.csv"))
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "attention") as gradebook:
        for student in gradebook.students:  # nbgrader's plugin does not quote
            student.last_name = None
        exporter.export(gradebook)
    write_export(course, NAME, "csv", output=tmp_path / "ours.csv")
    with (tmp_path / "theirs.csv").open() as file:
        expected = {row["student_id"]: row for row in csv.DictReader(file)}
    with (tmp_path / "ours.csv").open(encoding="utf-8-sig", newline="") as file:
        rows_by_student = {row["student"]: row for row in csv.DictReader(file)}
    assert list(rows_by_student) == sorted(expected) == ["ada", "bob", "cy", "dot"]
    for student, row in rows_by_student.items():
        for column, nbgrader_column in (
            ("score", "score"),
            ("max_score", "max_score"),
            ("raw_score", "raw_score"),
            ("late_penalty", "late_submission_penalty"),
        ):
            assert float(row[column]) == float(expected[student][nbgrader_column])


def test_csv_has_a_row_for_each_student(course, tmp_path):
    export = write_export(course, NAME, "csv", output=tmp_path / "grades.csv")
    assert (tmp_path / "grades.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    head, *rows = read_csv(tmp_path / "grades.csv", "utf-8-sig")
    rows_by_column = [dict(zip(head, row, strict=True)) for row in rows]
    assert export.number == len(rows_by_column) == 4
    ada, bob, cy, dot = rows_by_column
    assert (ada["score"], ada["raw_score"], ada["late_penalty"]) == ("4.5", "7", "2.5")
    assert (bob["score"], bob["points_add"], bob["manual"]) == ("5.5", "1.5", "points_add")
    assert bob["last_name"] == "O'Brien, Jr."
    assert bob["mistakes"] == "small.add: adds twice"
    assert (cy["status"], dot["status"]) == ("unreadable", "missing")
    assert "line 2" in cy["to_look_at"]
    assert {row["max_score"] for row in rows_by_column} == {"7"}


def test_exporting_changes_nothing_in_the_gradebook(course, tmp_path):
    before = (course / "gradebook.db").read_bytes()
    for file_format in ("csv", "canvas", "moodle"):
        write_export(course, NAME, file_format, output=tmp_path / file_format)
    assert (course / "gradebook.db").read_bytes() == before


def test_all_assignments_are_in_one_table(tmp_path):
    more = {"assignment": "02_more"}
    second = [make_report("ada", 1, 1, 1, **more), make_report("eve", 2, 0, 0, **more)]
    write_gradebook(write_reports(tmp_path, REPORTS), [*REPORTS, *second])
    write_export(tmp_path, None, "csv")
    head, *rows = read_csv(tmp_path / "reports" / "grades.csv", "utf-8-sig")
    assert len(rows) == 10  # five students, two assignments
    scores = {(r[0], r[head.index("assignment")]): r[head.index("score")] for r in rows}
    assert scores["ada", NAME] == "7"
    assert scores["ada", "02_more"] == "3"
    assert scores["eve", NAME] == "0"
    write_export(tmp_path, None, "canvas")
    assert read_csv(tmp_path / "reports" / "canvas.csv")[0][5:] == [NAME, "02_more"]
    export = write_export(tmp_path, None, "gradescope", output=tmp_path / "scope")
    assert export.number == 3 + 2
    assert (tmp_path / "scope" / "02_more" / "eve" / "results.json").is_file()


# --- totals of a course -------------------------------------------------------------------------

WEIGHTS = """assignment,weight,group,drop,excused
01_small,1,home,1,
02_more,2,home,,bob; cy
03_last,1,test,,cy
"""


@pytest.fixture
def term(tmp_path) -> Path:
    """Make a course: ada has 100, 50 and 100 %, bob 0, 100 and 50 %, cy 50 % in the first."""
    points = {
        "ada": ((2, 1, 4), (1, 0.5, 2), (2, 1, 4)),
        "bob": ((0, 0, 0), (2, 1, 4), (1, 0.5, 2)),
    }
    names = (NAME, "02_more", "03_last")
    reports = [
        make_report(student, *cell_points, assignment=name)
        for student, points_by_assignment in points.items()
        for name, cell_points in zip(names, points_by_assignment, strict=True)
    ] + [make_report("cy", 1, 0.5, 2)]
    (tmp_path / "weights.csv").write_text(WEIGHTS)
    return write_gradebook(write_reports(tmp_path, reports), reports)


def test_of_equal_scores_the_heaviest_is_dropped():
    weights = {"a": Weighted(1, "home", 1), "b": Weighted(2, "home"), "c": Weighted(9, "test")}
    assert lowest_of_group({"a": 0.5, "b": 0.5, "c": 0}, weights) == ["b"]
    assert lowest_of_group({"a": 0.25, "b": 0.5, "c": 0}, weights) == ["a"]


def test_totals_use_weights_drops_and_excuses(term):
    """Excused scores are not dropped, and one score of a group always counts."""
    assert write_export(term, None, "totals").number == 3
    head, *rows = read_csv(term / "reports" / "totals.csv")
    rows_by_student = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    outcomes = {s: (r["total"], r["dropped"], r["excused"]) for s, r in rows_by_student.items()}
    assert outcomes == {
        "ada": ("100", "02_more", ""),  # (1 x 100 + 1 x 100) / 2
        "bob": ("25", "", "02_more"),  # (1 x 0 + 1 x 50) / 2: the one that is left is not dropped
        "cy": ("50", "", "02_more; 03_last"),
    }
    assert (rows_by_student["bob"]["02_more"], rows_by_student["ada"]["02_more"]) == ("", "50")
    (term / "weights.csv").write_text("assignment;weight\n01_small;0,5\n02_more;1,5\n04_none;1\n")
    export = write_export(term, None, "totals")
    totals = {row[0]: row[head.index("total") - 1] for row in read_csv(export.path)[1:]}
    assert totals == {"ada": "62.5", "bob": "75", "cy": "12.5"}
    assert export.remarks == (
        "not in weights.csv, and not in the totals: 03_last",
        "nothing is graded of 04_none yet: it is not in the totals",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "weights.csv: expected a table with the head assignment,weight"),
        ("assignment,weight\n01_small,x\n", "line 2: expected numbers"),
        ("assignment,weight\n01_small,nan\n", "line 2: expected numbers"),
        ("assignment,weight,drop\n01_small,1,-1\n", "line 2: expected numbers"),
        (
            "assignment,weight,group,drop\n01_small,1,a,1\n02_more,1,b,1\n03_last,1,a,2\n",
            "line 4: the group a has its drop in another line already",
        ),
        ("assignment,weight\n01_small,1\n01_small,1\n", "line 3: .* in no other line"),
        ("assignment,weight,excused\n01_small,1,bop\n", "called bop; did you mean bob|bop.*bob"),
    ],
)
def test_bad_weights_are_refused_in_one_sentence(term, text, message):
    (term / "weights.csv").unlink()
    if text is not None:
        (term / "weights.csv").write_text(text)
    with pytest.raises(UserError, match=message):
        write_export(term, None, "totals")
    with pytest.raises(UserError, match="--all --format totals"):
        write_export(term, NAME, "totals")


# --- Canvas -----------------------------------------------------------------------------------


def read_as_canvas(path: Path) -> tuple[dict[str, float], dict[tuple[str, str], str]]:
    """Return each assignment's points, and grades by login and assignment, as Canvas reads them.

    Its rules: UTF-8; the separator is found in the first three lines of the file; columns
    Student, ID, then SIS ids, then Section; a row of points before the students.
    """
    text = path.read_bytes().decode("utf-8")
    assert not text.startswith("\ufeff")
    head, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    for line in text.split("\r\n")[:3]:
        assert len(next(csv.reader([line], strict=True))) == len(head)
    assert head[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert "Points Possible" in rows[0][0]
    assert all(len(row) == len(head) for row in rows)
    assert not any(set(text) & set("\r\n") for row in [head, *rows] for text in row)
    points = {name: float(p) for name, p in zip(head[5:], rows[0][5:], strict=True)}
    grades = {}
    for row in rows[1:]:
        assert row[0]
        assert row[1] or row[3]  # known by its id or its login
        for name, grade in zip(head[5:], row[5:], strict=True):
            assert grade == "EX" or re.fullmatch(r"-?\d+(\.\d+)?", grade)
            grades[row[3] or row[1], name] = grade
    return points, grades


def test_canvas_export_works_without_a_roster(course, tmp_path):
    export = write_export(course, NAME, "canvas", output=tmp_path / "canvas.csv")
    points, grades = read_as_canvas(tmp_path / "canvas.csv")
    assert points == {NAME: 7}
    assert grades == {
        (s, NAME): g
        for s, g in zip(("ada", "bob", "cy", "dot"), ("4.5", "5.5", "0", "0"), strict=True)
    }
    assert export.number == 4
    assert read_csv(tmp_path / "canvas.csv")[2][0] == "Lovelace, Ada"


ROSTER = """\
Student,ID,SIS User ID,SIS Login ID,Section,01_Small (4711),Other (12),Final Score
    Points Possible,,,,,10,5,(read only)
,,,,,Manual Posting,,
"O'Brien, Bob",102,,BOB@x.org,"One; two",EX,1,3
"Lovelace, Ada",101,,ada,One,,2,3
"Nobody, Known",103,,nobody,One,,2,3
"Student, Test",99,,,One,,,
"""


@pytest.mark.parametrize("separator", [",", ";"])
def test_canvas_keeps_the_rosters_order_and_ids(course, tmp_path, separator):
    rows = list(csv.reader(io.StringIO(ROSTER)))
    with (tmp_path / "roster.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(rows)
    export = write_export(
        course, NAME, "canvas", output=tmp_path / "c.csv", roster=tmp_path / "roster.csv"
    )
    points, grades = read_as_canvas(tmp_path / "c.csv")
    assert points == {"01_Small (4711)": 7}
    assert grades == {("BOB@x.org", "01_Small (4711)"): "EX", ("ada", "01_Small (4711)"): "4.5"}
    assert [row[1] for row in read_csv(tmp_path / "c.csv")[2:]] == ["102", "101"]
    for message in (
        "in the roster only, without a row: Nobody, Known",
        "not in the roster, left out: 2 students (cy, dot)",
    ):
        assert message in export.remarks


def test_shifted_canvas_rows_are_refused(course, tmp_path):
    swapped_roster = ROSTER.replace("102,,BOB@x.org,", "102,,ada,").replace(
        "101,,ada,", "101,,BOB@x.org,"
    )
    with pytest.raises(UserError, match=r"row of Lovelace, Ada: .* is of bob.* is ada.*--trust"):
        export_with_roster(course, tmp_path, swapped_roster)
    grades, _ = export_with_roster(course, tmp_path, swapped_roster, trust="numbers")
    assert grades["BOB@x.org", "01_Small (4711)"] == "5.5"
    grades, _ = export_with_roster(course, tmp_path, swapped_roster, trust="names")
    assert grades["BOB@x.org", "01_Small (4711)"] == "4.5"


def export_with_roster(course, folder, content: str, **options) -> tuple[dict, list[str]]:
    """Return the grades that Canvas would read of an export with this roster, and the remarks."""
    (folder / "roster.csv").write_text(content)
    path = folder / "c.csv"
    export = write_export(
        course, NAME, "canvas", output=path, roster=folder / "roster.csv", **options
    )
    return read_as_canvas(path)[1], list(export.remarks)


def test_canvas_export_fills_the_named_column(course, tmp_path):
    for column_name in ("Other", "other (12)", "12"):
        grades, remarks = export_with_roster(course, tmp_path, ROSTER, column=column_name)
        assert grades == {("BOB@x.org", "Other (12)"): "5.5", ("ada", "Other (12)"): "4.5"}
        assert "Other (12) has 5 points in Canvas and 7 here" in remarks
    for column_name, message in (
        (
            "Homework",
            r"no column is called Homework in .*roster.csv; there are: 01_Small \(4711\), O",
        ),
        ("Final Score", "no column is called Final Score"),  # Canvas' own, which it does not read
    ):
        with pytest.raises(UserError, match=message):
            export_with_roster(course, tmp_path, ROSTER, column=column_name)
    grades, remarks = export_with_roster(course, tmp_path, ROSTER.replace("01_Small", "HW"))
    assert {column for _, column in grades} == {NAME}
    assert any(
        "roster.csv is called 01_small: Canvas makes a new one" in remark for remark in remarks
    )
    ambiguous_roster = ROSTER.replace("Final Score", "01_small (13)")
    with pytest.raises(UserError, match="several columns are called 01_small"):
        export_with_roster(course, tmp_path, ambiguous_roster)
    roster_with_namesakes = ROSTER.replace("Final Score", "Other (13)")
    with pytest.raises(UserError, match="several columns are called Other"):
        export_with_roster(course, tmp_path, roster_with_namesakes, column="Other")
    with pytest.raises(UserError, match="--column goes with one assignment and --roster"):
        write_export(course, NAME, "canvas", column="Other")


def test_canvas_logins_match_without_their_domain(course, tmp_path):
    head = "Student,ID,SIS User ID,SIS Login ID,Section,01_Small (4711)\n,,,,,\n"
    logins = (
        '"B",1,,bob@elsewhere.org,S,\n"A",2,,ADA@uni.edu,S,\n"C",3,,cy,S,\n"X",4,,x@uni.edu,S,\n'
    )
    grades, remarks = export_with_roster(course, tmp_path, head + logins)
    assert {login: grade for (login, _), grade in grades.items()} == {
        "bob@elsewhere.org": "5.5",
        "ADA@uni.edu": "4.5",
        "cy": "0",
    }
    assert "taken for the same by what stands before an @: ada and A" in remarks
    assert "in the roster only, without a row: X" in remarks
    assert not [remark for remark in remarks if "cy and C" in remark]
    lines_of_namesakes = '"A",2,,ada@uni.edu,S,\n"A2",3,,ada,S,\n'  # the login itself goes before
    assert list(export_with_roster(course, tmp_path, head + lines_of_namesakes)[0]) == [
        ("ada", "01_Small (4711)")
    ]


def test_bad_canvas_rosters_are_refused(course, tmp_path):
    for content, message in (
        ("name,grade\nada,1\n", "not an export of Canvas"),
        ("", "not an export of Canvas"),
        ("Student,ID,SIS User ID,SIS Login ID,Section\nX,1,,nobody,One\n", "no student"),
    ):
        (tmp_path / "roster.csv").write_text(content)
        with pytest.raises(UserError, match=message):
            write_export(course, NAME, "canvas", roster=tmp_path / "roster.csv")
    with pytest.raises(UserError, match="cannot read"):
        write_export(course, NAME, "canvas", roster=tmp_path / "none.csv")


# --- Moodle -----------------------------------------------------------------------------------


def read_as_moodle(path: Path, users: set[str]) -> dict[str, tuple[float, str]]:
    """Return grade and feedback by user, as Moodle's importer reads them.

    It trims every cell, keeps the user of the row before where a row has none, and gives up at
    a user it does not know.
    """
    content = path.read_bytes().decode("utf-8")
    assert not content.startswith("\ufeff")
    assert "\\" not in content  # PHP would take it for an escape
    head, *rows = csv.reader(io.StringIO(content, newline=""), strict=True)
    assert head[0] in ("Username", "Email address", "ID number")
    assert [title.rpartition(" ")[2] for title in head[1:]] == ["(Real)", "(Feedback)"] * (
        len(head) // 2
    )
    grades, user = {}, None
    for row in rows:
        assert len(row) == len(head)
        name = row[0].strip()
        user = name if name not in ("", "0") else user
        assert user in users, f"{name}: the whole import stops"
        assert user not in grades, f"{user} is graded twice"
        grades[user] = (float(row[1]), row[2])
    return grades


@pytest.mark.parametrize("file_format", ["csv", "canvas", "moodle", "gradescope"])
def test_unscored_work_is_reported_on_export(course, tmp_path, file_format):
    export = write_export(course, NAME, file_format, output=tmp_path / "out")
    message = "a person's score is still missing for points_twice of 1 student, and is 0 here"
    assert f"{NAME}: {message}" in export.remarks
    if file_format == "moodle":
        grades = read_as_moodle(tmp_path / "out", {"ada", "bob", "cy", "dot"})
        assert "waits for a person's score: points_twice" in unescape(grades["cy"][1])
        assert "person" not in grades["bob"][1]  # a score that is there


def test_moodle_export_uses_the_chosen_identifier(course, tmp_path):
    write_export(course, NAME, "moodle", output=tmp_path / "m.csv")
    grades = read_as_moodle(tmp_path / "m.csv", {"ada", "bob", "cy", "dot"})
    assert {user: grade for user, (grade, _) in grades.items()} == {
        "ada": 4.5,
        "bob": 5.5,
        "cy": 0,
        "dot": 0,
    }
    assert grades["bob"][1] == "add: adds twice\nnot attempted: add"
    assert "2.5 points taken off" in grades["ada"][1]
    export = write_export(course, NAME, "moodle", output=tmp_path / "m.csv", identifier="email")
    assert set(read_as_moodle(tmp_path / "m.csv", {"ada@x.org", "bob@x.org"})) == {
        "ada@x.org",
        "bob@x.org",
    }
    assert "cy is left out: no Email address in the gradebook" in export.remarks
    with pytest.raises(UserError, match="another --id"):
        write_export(course, NAME, "moodle", identifier="idnumber")
    with pytest.raises(UserError, match="--id: expected one of"):
        write_export(course, NAME, "moodle", identifier="shoe size")
    with pytest.raises(UserError, match="--id goes with --format moodle"):
        write_export(course, NAME, "csv", identifier="email")
    refuses(
        run("export", "--all", "--late-days", "5", "--format", "moodle", cwd=course),
        "--late-days makes one worksheet",
    )


def test_moodle_feedback_is_text_and_identifiers_are_unique(tmp_path):
    hostile = 'a\\" <img src=//evil.example>; =1+1\n-2\\'
    reports = [
        *(
            make_report(s, 1, 0, 0, notes=(hostile, "=1"))
            for s in ("=ada", "b\\", "cy", "dot", "eve")
        ),
    ]
    people = {s: {"email": "same@x.org"} for s in ("cy", "dot")} | {"eve": {"email": "0"}}
    write_gradebook(write_reports(tmp_path, reports), reports, people=people)
    export = write_export(tmp_path, NAME, "moodle", output=tmp_path / "m.csv")
    grades = read_as_moodle(tmp_path / "m.csv", {"cy", "dot", "eve"})
    assert "<" not in grades["cy"][1]
    assert unescape(grades["cy"][1]) == 'a\\" <img src=//evil.example>; =1+1 -2\\\n=1'
    assert len(export.remarks) == 2
    reports_of_others = [make_report(s, 1, 0, 0) for s in ("cy", "dot", "eve")]
    other_course = tmp_path / "other"
    other_course.mkdir()
    people["eve"] = {"email": "eve@x.org"}
    write_gradebook(
        write_reports(other_course, reports_of_others), reports_of_others, people=people
    )
    export = write_export(other_course, NAME, "moodle", identifier="email")
    assert export.remarks == ("cy, dot are left out: they have the same Email address, same@x.org",)
    with pytest.raises(UserError, match="no student has a usable Email address"):
        write_export(tmp_path, NAME, "moodle", identifier="email")


# --- Gradescope -------------------------------------------------------------------------------


def test_gradescope_files_keep_to_the_specification(course, tmp_path):
    export = write_export(course, NAME, "gradescope", output=tmp_path / "gradescope")
    assert sorted(p.parent.name for p in tmp_path.rglob("results.json")) == ["ada", "bob", "cy"]
    assert export.number == 3
    assert "dot handed in nothing: no file" in export.remarks
    for student, score in (("ada", 4.5), ("bob", 5.5), ("cy", 0)):
        content = json.loads((tmp_path / "gradescope" / student / "results.json").read_text())
        jsonschema.Draft202012Validator(RESULTS).validate(content)
        assert content["score"] == score
        assert sum(t["max_score"] for t in content["tests"]) == 7
        late = content["extra_data"]["late_penalty"]
        assert sum(t["score"] for t in content["tests"]) - late == score
        for t in content["tests"]:
            assert t["status"] == ("passed" if t["score"] == t["max_score"] else "failed")
    bob = json.loads((tmp_path / "gradescope" / "bob" / "results.json").read_text())
    assert bob["tests"][0]["tags"] == ["adds twice"]
    assert "given by a person" in bob["tests"][0]["output"]
    cy = json.loads((tmp_path / "gradescope" / "cy" / "results.json").read_text())
    assert "Waits for a person's score" in cy["tests"][2]["output"]
    assert bob["extra_data"]["seed"] == 0


def test_gradescope_texts_are_short_and_valid_unicode(tmp_path):
    hostile_text = "\x00\ud800\x1b[31m" + "x" * 10**6
    reports = [
        make_report(
            "ada", 1, 0, 0, notes=(hostile_text,), **mistake_fields("small.add", hostile_text)
        )
    ]
    write_gradebook(write_reports(tmp_path, reports), reports)
    write_export(tmp_path, NAME, "gradescope", output=tmp_path / "out")
    data = (tmp_path / "out" / "ada" / "results.json").read_bytes()
    assert len(data) < 200_000
    assert "\\u0000" not in data.decode("utf-8", "strict")
    jsonschema.Draft202012Validator(RESULTS).validate(json.loads(data))
    write_export(tmp_path, NAME, "csv", output=tmp_path / "out.csv")
    (row,) = read_csv(tmp_path / "out.csv", "utf-8-sig")[1:]
    assert row[-1].startswith("\x00?\x1b[31mxxx")


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\\b", "a\x00", "\n", "x" * 300, "a:b"])
def test_no_students_name_leads_out_of_the_folder(name):
    assert not is_folder(name)


def test_a_student_called_after_a_path_gets_no_file(tmp_path):
    reports = [make_report("ada", 1, 0, 0), make_report("../../evil", 1, 0, 0)]
    write_gradebook(write_reports(tmp_path, reports[:1]), reports)
    export = write_export(tmp_path, NAME, "gradescope", output=tmp_path / "a" / "b" / "c")
    assert export.number == 1
    assert not list(tmp_path.rglob("evil*"))
    assert any("no folder can be called so" in remark for remark in export.remarks)


# --- the command ------------------------------------------------------------------------------


def test_export_says_what_it_wrote(course):
    process = run("export", NAME, "--format", "moodle", "--id", "email", cwd=course)
    assert process.returncode == 0
    assert process.stdout == f"2 written to reports/{NAME}/moodle.csv\n"
    assert process.stderr.splitlines()[1:] == [
        f"attncourse: {s} is left out: no Email address in the gradebook" for s in ("cy", "dot")
    ]


def test_export_names_students_with_ungraded_hand_ins(tmp_path):
    """A hand-in is newer if it is not the graded file, whatever the times."""
    reports = [
        *(make_report(s, 1, 0, 4) for s in ("ada", "bob", "cy")),
        make_report("dot", status="missing"),
    ]
    write_gradebook(write_reports(tmp_path, reports), reports)
    for student in ("ada", "bob", "cy", "dot", "new", "empty"):
        folder = tmp_path / "submitted" / student / NAME
        folder.mkdir(parents=True)
        if student != "empty":
            (folder / f"{NAME}.ipynb").write_bytes(small())
    for student, graded_data in (("ada", small()), ("bob", b"an older one")):
        notebook_path = tmp_path / "autograded" / student / NAME / f"{NAME}.ipynb"
        notebook_path.parent.mkdir(parents=True)
        notebook_path.write_text(
            autograded_notebook(graded_data, Assignment(NAME, read_cells(small())), reports[0])
        )
    (remark,) = write_export(tmp_path, NAME, "csv").remarks
    assert remark == (
        f"{NAME}: handed in and not graded yet, so it is not in the points here: "
        f"bob, dot, new: attncourse grade {NAME}"
    )


def test_export_refuses_in_one_line(course, tmp_path):
    refuses(run("export", "01_smal", cwd=course), "did you mean 01_small?")
    refuses(run("export", cwd=course), "--all")
    refuses(run("export", NAME, "--all", cwd=course), "--all")
    refuses(run("export", NAME, "--format", "excel", cwd=course), "moodle, totals, gradescope")
    refuses(run("export", NAME, "--roster", "x.csv", cwd=course), "--format canvas")
    refuses(run("export", NAME, "--output", "reports", cwd=course), "is a folder")
    refuses(run("export", NAME, "--output", "gradebook.db/x", cwd=course), "cannot write")
    refuses(run("export", NAME, "--db", "sqlite:///none.db", cwd=course), "no gradebook")
    refuses(run("export", NAME, "--db", "nonsense", cwd=course), "address")
    refuses(run("export", NAME, cwd=tmp_path), "no gradebook", "attncourse grade")


def test_bad_gradebooks_are_refused(tmp_path):
    (tmp_path / "solutions" / NAME).mkdir(parents=True)
    write_gradebook(tmp_path, [make_report("dot", status="missing")])
    refuses(run("export", NAME, cwd=tmp_path), f"attncourse grade {NAME}")
    refuses(run("export", "--all", cwd=tmp_path), "nothing is graded yet")
    (tmp_path / "gradebook.db").unlink()
    write_gradebook(tmp_path, REPORTS, course_id="another")
    refuses(run("export", NAME, cwd=tmp_path), "another course", "--db")
    (tmp_path / "gradebook.db").write_text("not a database, but long enough to look at" * 40)
    refuses(run("export", NAME, cwd=tmp_path), "cannot read gradebook.db")
    (tmp_path / "gradebook.db").write_bytes(b"")
    refuses(run("export", NAME, cwd=tmp_path), "not a gradebook of nbgrader's")


def test_an_interrupted_write_leaves_the_old_file(course, tmp_path, monkeypatch):
    path = tmp_path / "grades.csv"
    path.write_text("old")

    def raise_disk_full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", raise_disk_full)
    with pytest.raises(UserError, match="No space left"):
        write_export(course, NAME, "csv", output=path)
    assert [p.name for p in tmp_path.iterdir()] == ["grades.csv"]
    assert path.read_text() == "old"


def test_ten_thousand_students_take_seconds(tmp_path):
    reports = (make_report(f"s{n:05d}", 1, 0, 4) for n in range(10_000))
    write_reports(tmp_path, reports)
    folder = write_gradebook(tmp_path, [make_report("ada", 2, 1, 4)])
    for n in range(10_000):
        (tmp_path / "submitted" / f"s{n:05d}").mkdir(parents=True)
    start = time.process_time()
    export = write_export(folder, NAME, "csv")
    assert export.number == 10_001
    assert time.process_time() - start < 20  # 1 s on a quiet machine
