"""Students get back a page with each verdict beside its answer, and platforms get zips."""

import io
import json
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from attncourse.grading.errors import UserError
from attncourse.grading.feedback import page as page_module
from attncourse.grading.feedback.command import give_feedback
from attncourse.grading.feedback.exercise_feedback import feedback_by_exercise
from attncourse.grading.feedback.page import student_page
from attncourse.grading.feedback.returned import (
    PLATFORMS,
    StudentPage,
    download_place,
    owners_of,
    read_download,
)
from attncourse.grading.gradebook.read import Person
from attncourse.grading.graded_notebook import LONGEST, ROOM, autograded_notebook, graded_cell_texts
from attncourse.grading.report import CellResult, Report
from attncourse.grading.results.class_results import StudentResult
from attncourse.grading.submission.notebook import Assignment, read_cells
from helpers.figure_reader import needs_browser
from helpers.html_markup import acts
from helpers.small_class import NAME, make_report, refuses, run, write_gradebook, write_reports
from helpers.small_course import STUB, cell, graded, make_course, notebook, small, solution

SMALL_ASSIGNMENT = Assignment(NAME, read_cells(small()))
WRONG_ADD = "def add(a, b):\n    return a - b  # <script>attack()</script>"
HOSTILE = '</pre><script>attack()</script><img src="http://canary.invalid/" onerror=attack()>\u202e'


def verdict(cell_id: str, name: str = "subtracts", **changes) -> dict:
    """Return a verdict as a report keeps it."""
    criterion = {"name": "sums", "passed": False, "earned": 0, "possible": 2}
    criterion |= {"message": "add(1, 2) returned -1", "brief": "is -1, not 3"}
    fields = {"cell": cell_id, "target": "small.add", "passed": False, "earned": 0, "possible": 2}
    fields |= {"criteria": [criterion], "mistake": name, "explanation": f"It {name}."}
    fields |= {"failed": ["sums"], "symptom": "", "rest": "", "worth": 0, "reason": "is -1, not 3"}
    return fields | {"unwritten": False, "section": "", "seed": 7, "text": "✗ small.add"} | changes


def report_with_wrong_add(**more) -> Report:
    """Return Ada's report: a wrong sum with a verdict, a right double, a failed hidden test."""
    secret = verdict("hidden_add", "SECRET", text="SECRET")
    report = make_report("ada", 0, 0, 4, verdicts=(verdict("points_add"), secret), **more)
    cells = dict(report.cells)
    cells["points_add"] = CellResult(0.0, 2.0, "subtracts")
    cells["hidden_add"] = CellResult(0.0, 1.0, "a hidden test failed (AssertionError)")
    return replace(report, cells=cells)


def result_of(report: Report, **more) -> StudentResult:
    return StudentResult(Person(report.student), NAME, report.status, dict(report.cells), **more)


def page_of(report: Report, data: bytes, assignment: Assignment = SMALL_ASSIGNMENT, **more) -> str:
    """Return the feedback page on a submission with this report."""
    return student_page(assignment, data, result_of(report, **more), report)


def text_of(html: str) -> str:
    """Return the visible text of a page."""
    body = html[html.index("<body>") :]
    return " ".join(
        re.sub(r"<wbr>|<[^>]*>", lambda m: "" if m[0] == "<wbr>" else " ", body).split()
    )


# --- the page ---------------------------------------------------------------------------------


def test_a_verdict_stands_beside_its_answer():
    html = page_of(report_with_wrong_add(notes=("cell 3: was joined",)), small(add=WRONG_ADD))
    add, twice = html.split("<section ")[1:]
    assert "add(1, 2) returned -1" in add
    assert "return a - b" in add
    assert "Subtracts." in add
    assert "return 2 * a" in twice
    assert "ubtracts" not in twice
    text = text_of(html)
    assert "ada 4 of 7 points" in text
    assert "add 0 of 3 subtracts twice 4 of 4 all points" in text
    assert "Notes cell 3: was joined" in text
    assert "points_" not in text


def test_a_page_shows_no_source_or_values_of_hidden_tests():
    html = page_of(report_with_wrong_add(), small(add=WRONG_ADD))
    for secret in ("SECRET", "add(5, 6)", "hidden_add", "HIDDEN"):
        assert secret not in html
    sentence = "Further tests, on inputs that are not shown: 0 of 1 point, a hidden test failed"
    assert f"{sentence} (AssertionError)." in text_of(html)


def test_nothing_of_a_submission_acts_in_the_page():
    report = report_with_wrong_add(notes=(HOSTILE,))
    hostile_verdict = verdict("points_add", HOSTILE, explanation=HOSTILE, section=HOSTILE)
    cells = dict(report.cells) | {"points_twice": CellResult(0.0, 4.0, HOSTILE)}
    report = replace(report, verdicts=(hostile_verdict,), cells=cells)
    hostile_cells = cell(f"print(1)  # {HOSTILE}"), cell(HOSTILE, code=False)
    data = json.loads(small(add=WRONG_ADD, twice=f"{STUB}  # {HOSTILE}"))
    data["cells"] += hostile_cells
    html = page_of(report, json.dumps(data).encode(), comments={"add": HOSTILE})
    body = html[html.index("<body>") :]
    harmless_attributes = {"tabindex", "aria-label", "aria-labelledby", "scope"}
    assert [
        action
        for action in acts(body, "body", "main", "section")
        if action[1] not in harmless_attributes
    ] == []
    assert body.count("&lt;script&gt;attack()") >= 5
    assert "\u202e" not in html


def test_an_unchanged_stub_is_not_attempted():
    report = make_report("fay", 0, 0, 0)
    feedback = feedback_by_exercise(
        SMALL_ASSIGNMENT, read_cells(small(STUB, STUB)), result_of(report), report
    )
    assert [(exercise.name, exercise.gist) for exercise in feedback] == [
        ("add", "not attempted"),
        ("twice", "not attempted"),
    ]


def test_an_answer_is_found_with_its_helpers():
    helper = cell("def carry(a):\n    return a")
    answer = cell("def add(a, b):\n    return carry(a) + b")
    data = notebook(helper, answer, solution("twice", "def twice(a):\n    return 2 * a"))
    report = make_report("ada", 2, 1, 4)
    add, twice = feedback_by_exercise(SMALL_ASSIGNMENT, read_cells(data), result_of(report), report)
    assert [c.source for c in add.answers] == [answer["source"]]
    assert [c.grade_id for c in twice.answers] == ["twice"]
    assert "Other cells of your notebook: 1 def carry(a)" in text_of(page_of(report, data))


def test_a_test_belongs_to_the_answer_before_it():
    cells = solution("add", "a = 1"), graded("test_one", "assert a", 1), graded("test_two", "a", 2)
    assignment = Assignment(NAME, read_cells(notebook(*cells)))
    results = {"test_one": CellResult(0, 1, "AssertionError"), "test_two": CellResult(2, 2)}
    report = Report("ada", NAME, "graded", results)
    (exercise,) = feedback_by_exercise(assignment, assignment.cells, result_of(report), report)
    assert (exercise.name, exercise.points, exercise.maximum, exercise.gist) == (
        "add",
        2,
        3,
        "AssertionError",
    )


def test_manual_points_and_comments_are_on_the_page():
    why = solution("why", "## 3 · Why\n\nBecause $x^2$ *grows*.") | {"cell_type": "markdown"}
    why["metadata"]["nbgrader"] |= {"grade": True, "points": 3}
    cells = json.loads(small())["cells"]
    data = notebook(*cells[:4], why, *cells[4:])  # before the tests of the others
    assignment = Assignment(NAME, read_cells(data))
    report = make_report("ada", 2, 1, 4)
    assert "Not final yet: 1 answer waits for a person" in text_of(
        page_of(report, data, assignment)
    )
    scored = {**report.cells, "why": CellResult(2.0, 3.0)}
    result = replace(
        result_of(report), cells=scored, manual=("why",), comments={"why": "Say <more>."}
    )
    html = student_page(assignment, data, result, report)
    section = html.split("<section ")[3]
    assert section.count("3 · Why") == 1
    assert "<em>grows</em>" in section
    assert "<math" in section
    assert "3 · Why 2 of 3 points" in text_of(html)
    assert "Comment Say &lt;more&gt;." in text_of(html)
    assert "Not final" not in html


def question_cell(answer: str, name: str = "why") -> dict:
    """Return a question's cell with an answer in text."""
    made = cell(f"## 3 · Why\n\n{answer}", name, code=False, solution=True, grade=True, points=3)
    return made


def notebook_with_answers(*answers: str) -> bytes:
    return notebook(*json.loads(small())["cells"], *map(question_cell, answers))


ASSIGNMENT_WITH_QUESTION = Assignment(
    NAME, read_cells(notebook_with_answers("### BEGIN SOLUTION\nSo.\n### END SOLUTION"))
)


def test_a_text_answer_is_rendered_once_and_shortened(monkeypatch):
    rendered: list[str] = []
    render = page_module.page_markdown
    monkeypatch.setattr(
        page_module, "page_markdown", lambda text: rendered.append(text) or render(text)
    )
    report = make_report("ada", 2, 1, 4)
    html = page_of(
        report, notebook_with_answers("One half.", "The other."), ASSIGNMENT_WITH_QUESTION
    )
    assert "One half." in html
    assert "The other." in html
    page_of(
        report,
        notebook_with_answers(*(f"{'word ' * 3000}{n}" for n in range(30))),
        ASSIGNMENT_WITH_QUESTION,
    )
    assert len(rendered) == 2
    assert len(rendered[1]) <= LONGEST
    stub = "YOUR ANSWER HERE"
    page_of(report, notebook_with_answers(stub, "More."), ASSIGNMENT_WITH_QUESTION)
    assert "More." in rendered[2]


def test_other_cells_are_shortened():
    cells = [cell(f"x{n} = '{'y' * 15_000}'") for n in range(60)]
    data = notebook(*json.loads(small())["cells"], *cells)
    assert len(page_of(make_report("ada", 2, 1, 4), data)) < 2 * ROOM


def test_a_late_or_unreadable_submission_says_so():
    report = make_report("cy", 0, 0, 0, status="unreadable", notes=("unreadable notebook: line 2",))
    html = page_of(report, b"{", penalty=0.0)
    assert "Notes unreadable notebook: line 2" in text_of(html)
    assert "Your notebook has no answer" in html
    late = page_of(
        make_report("ada", 2, 1, 4), small(), penalty=1.5, timestamp="2026-01-02 03:04:05"
    )
    assert "5.5 of 7 points Handed in late: 7 points were earned, 1.5 taken off" in text_of(late)


@needs_browser
def test_a_page_is_accessible_and_uses_no_network(tmp_path, browser):
    import vendor

    axe = (vendor.library("axe-core") / "axe.min.js").read_text(encoding="utf-8")
    run_axe = "axe.run(document, {runOnly: ['wcag2a','wcag2aa','wcag21aa','wcag22aa']})"
    path = tmp_path / "page.html"
    long_answer = WRONG_ADD.replace("a - b", " + ".join(["a"] * 60))
    report = report_with_wrong_add(notes=("a" * 300,))
    path.write_text(page_of(report, small(add=long_answer), comments={"add": "Look\nagain."}))
    context = browser.new_context(bypass_csp=True)
    tab, requested_urls = context.new_page(), []
    tab.on("request", lambda request: requested_urls.append(request.url))
    for width in (1280, 390):
        for colour_scheme in ("light", "dark"):
            tab.set_viewport_size({"width": width, "height": 844})
            tab.emulate_media(color_scheme=colour_scheme)
            tab.goto(path.as_uri())
            tab.evaluate(axe)
            violations = tab.evaluate(f"{run_axe}.then(found => found.violations.map(v => v.id))")
            assert violations == [], (width, colour_scheme)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert {url.partition(":")[0] for url in requested_urls} <= {"file", "data"}


# --- zips that platforms take back --------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "filename", "prefix"),
    [
        ("moodle", "Ada Lovelace_123_assignsubmission_file_/05.ipynb", "folder_/"),
        ("moodle", "Ada Lovelace_123_assignsubmission_file/sub/05.ipynb", "folder/"),
        ("moodle", "C-1/Ada Lovelace_123_assignsubmission_file/05.ipynb", "folder/"),
        ("moodle", "Ada Lovelace_123_assignsubmission_file_05.ipynb", "folder_"),
        ("moodle", "Eve_M_7_assignsubmission_file_/a.ipynb", "Eve_M_7_assignsubmission_file_/"),
        ("moodle", "Ada Lovelace_123_assignsubmission_onlinetext_/onlinetext.html", "folder_/"),
        ("canvas", "lovelaceada_123_456_05_kqv-1.ipynb", "lovelaceada_123_456_"),
        ("canvas", "lovelaceada_LATE_123_456_05_kqv.ipynb", "lovelaceada_LATE_123_456_"),
        ("canvas", "lovelaceada_123_text.html", None),
        ("canvas", "05_kqv.ipynb", None),
    ],
)
def test_a_file_name_of_a_download_gives_its_prefix(platform, filename, prefix):
    place = download_place(filename, PLATFORMS[platform])
    expected = prefix and prefix.replace("folder", "Ada Lovelace_123_assignsubmission_file")
    assert (place and place.prefix) == expected


def page_of_student(
    student: str, data: bytes | None, first: str = "", last: str = ""
) -> StudentPage:
    return StudentPage(Person(student, last, first), data, f"the page of {student}")


def write_download(folder: Path, files: dict[str, bytes], name: str = "download.zip") -> Path:
    """Write a platform's download with these files."""
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return folder / name


def test_pages_are_matched_by_file_then_by_name(tmp_path):
    inner_zip = io.BytesIO()
    with zipfile.ZipFile(inner_zip, "w") as archive:
        archive.writestr(f"work/{NAME}.ipynb", small(add=WRONG_ADD))
    suffix = "_assignsubmission_file/x.ipynb"
    files = {
        f"Participant_1{suffix}": inner_zip.getvalue(),  # by content, whatever the name says
        f"José Núñez_2{suffix}": small(),
        f"Ann Other_3{suffix}": small(),  # the same file as José's: by name
        f"Two Alike_4{suffix}": b"4",
        f"Two Alike_5{suffix}": b"5",
    }
    platform, places = read_download(write_download(tmp_path, files), NAME)
    pages = [
        page_of_student("ada", small(add=WRONG_ADD)),
        page_of_student("s17", small(), "Jose", "Nunez"),
        page_of_student("ann-other", small()),
        page_of_student("alike", b"another", "Two", "Alike"),
    ]
    owner_names = {student: place.who for student, place in owners_of(places, pages, {}).items()}
    assert platform == "moodle"
    assert owner_names == {"ada": "Participant", "s17": "José Núñez", "ann-other": "Ann Other"}
    canvas = {"nunezjose_1_2_x.ipynb": b"", "otherann_3_4_x.ipynb": b""}
    _, places = read_download(write_download(tmp_path, canvas), NAME)
    assert set(owners_of(places, pages, {})) == {"s17", "ann-other"}


MOODLE_SUFFIX = "_assignsubmission_file_"
ADAS_NOTEBOOK, EVES_NOTEBOOK = small(add=WRONG_ADD), small() + b" "


def owner_names_by_student(
    folder: Path, files: dict[str, bytes], *pages: StudentPage, **came_as: str
) -> dict[str, str]:
    """Return the owner's name of the folder that each student's page is returned to."""
    _, places = read_download(write_download(folder, files), NAME)
    return {
        student: place.who for student, place in owners_of(places, list(pages), came_as).items()
    }


@pytest.mark.parametrize("eves_id", ["eve-mallory", "eve", "s2"])
@pytest.mark.parametrize("platform", ["moodle", "canvas"])
def test_other_files_in_a_folder_match_no_page(tmp_path, eves_id, platform):
    """Eve keeps a copy of Ada's notebook beside her own; Ada is not in the download."""
    files = {
        "moodle": {
            f"Eve Mallory_2{MOODLE_SUFFIX}/{NAME}.ipynb": EVES_NOTEBOOK,
            f"Eve Mallory_2{MOODLE_SUFFIX}/o/a.ipynb": ADAS_NOTEBOOK,
        },
        "canvas": {
            f"malloryeve_2_77_{NAME}.ipynb": EVES_NOTEBOOK,
            "malloryeve_2_78_a.ipynb": ADAS_NOTEBOOK,
        },
    }[platform]
    owner_names = owner_names_by_student(
        tmp_path,
        files,
        page_of_student("ada-lovelace", ADAS_NOTEBOOK),
        page_of_student(eves_id, EVES_NOTEBOOK),
    )
    assert list(owner_names) == [eves_id]


def test_a_folder_with_anothers_name_matches_no_page(tmp_path):
    """Eve's folder holds only Ada's notebook, and her own has changed since."""
    files = {f"Eve Mallory_2{MOODLE_SUFFIX}/{NAME}.ipynb": ADAS_NOTEBOOK}
    adas_page = page_of_student("ada-lovelace", ADAS_NOTEBOOK)
    assert (
        owner_names_by_student(tmp_path, files, adas_page, page_of_student("eve", EVES_NOTEBOOK))
        == {}
    )
    assert owner_names_by_student(
        tmp_path, files, adas_page, page_of_student("eve-mallory", None)
    ) == {"eve-mallory": "Eve Mallory"}


def test_a_folder_inside_a_submission_names_no_owner(tmp_path):
    files = {
        f"Ada L_1{MOODLE_SUFFIX}/{NAME}.ipynb": b"1",
        f"Eve M_2{MOODLE_SUFFIX}/{NAME}.ipynb": b"2",
    }
    pages = page_of_student("s1", ADAS_NOTEBOOK), page_of_student("s2", EVES_NOTEBOOK)
    assert owner_names_by_student(tmp_path, files, *pages, s1="Ada L_1", s2="Eve M_2") == {
        "s1": "Ada L",
        "s2": "Eve M",
    }
    inner = f"Eve M_2{MOODLE_SUFFIX}/Ada L_1{MOODLE_SUFFIX}/{NAME}.ipynb"
    assert download_place(inner, PLATFORMS["moodle"]).key == "Eve M_2"


# --- the command --------------------------------------------------------------------------------


def course_of_two(folder: Path) -> Path:
    """Make a course: Ada and Bob have handed in and been graded, Cy has handed in."""
    course = make_course(folder, ada=small(add=WRONG_ADD), bob=small(), cy=small())
    return write_reports(course, [report_with_wrong_add(), make_report("bob", 2, 1, 4)])


def test_the_command_writes_links_and_packs_pages(tmp_path):
    course = course_of_two(tmp_path)
    graded = [report_with_wrong_add(), make_report("bob", 2, 1, 4)]
    write_gradebook(course, graded, manual={("bob", "points_twice"): 3.0})
    files = {f"{w} X_{n}_assignsubmission_file_/a.ipynb": d for n, (w, d) in
             enumerate([("Ada", small(WRONG_ADD)), ("Bob", small()), ("Eve", b"")])}  # fmt: skip
    zipped = write_download(tmp_path, files)
    process = run("feedback", NAME, "--download", zipped, cwd=course)
    assert process.returncode == 0, process
    assert process.stderr.splitlines() == [
        f"attncourse: there is no report on cy: attncourse grade {NAME} --student cy",
        "attncourse: in download.zip only, with no page: Eve X",
    ]
    assert "2 pages written" in process.stdout
    bob = (course / "feedback" / "bob" / NAME / f"{NAME}.html").read_text()
    assert "6 of 7 points" in text_of(bob)
    assert "The points were given by a person." in bob
    report = (course / "reports" / NAME / "index.html").read_text()
    assert f'<a href="../../feedback/ada/{NAME}/{NAME}.html">ada</a>' in report
    assert "feedback/cy" not in report
    with zipfile.ZipFile(course / "reports" / NAME / "feedback-moodle.zip") as archive:
        pages = {info.filename: archive.read(info).decode() for info in archive.infolist()}
    assert sorted(pages) == [
        f"Ada X_0_assignsubmission_file_/{NAME}.html",
        f"Bob X_1_assignsubmission_file_/{NAME}.html",
    ]
    assert pages[f"Bob X_1_assignsubmission_file_/{NAME}.html"] == bob


def test_a_student_without_a_page_keeps_the_folder(tmp_path):
    """Eve handed in again since grading, and her folder in the download holds Ada's notebook."""
    course = make_course(tmp_path, **{"ada-lovelace": ADAS_NOTEBOOK, "eve-mallory": EVES_NOTEBOOK})
    ada, eve = (
        replace(report_with_wrong_add(), student="ada-lovelace"),
        make_report("eve-mallory", 2, 1, 4),
    )
    write_reports(course, [ada, eve])
    path = course / "autograded" / "eve-mallory" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(autograded_notebook(small(twice="print(1)"), SMALL_ASSIGNMENT, eve))
    zipped = write_download(tmp_path, {f"Eve Mallory_2{MOODLE_SUFFIX}/{NAME}.ipynb": ADAS_NOTEBOOK})
    with pytest.raises(UserError, match="none of these students is in"):
        give_feedback(course, NAME, download=zipped)
    assert not (course / "reports" / NAME / "feedback-moodle.zip").exists()


def test_a_notebook_newer_than_its_report_gets_no_page(tmp_path):
    course = course_of_two(tmp_path)
    path = course / "autograded" / "ada" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(
        autograded_notebook(small(add=WRONG_ADD), SMALL_ASSIGNMENT, report_with_wrong_add())
    )
    assert give_feedback(course, NAME, "ada").lines
    (course / "submitted" / "ada" / NAME / f"{NAME}.ipynb").write_bytes(small())
    with pytest.raises(UserError, match="ada has handed in again since the report"):
        give_feedback(course, NAME, "ada")
    newer = autograded_notebook(small(), SMALL_ASSIGNMENT, report_with_wrong_add())
    assert graded_cell_texts(path.read_text()) != graded_cell_texts(newer)


def test_a_text_answer_newer_than_its_report_gets_no_page(tmp_path):
    course = make_course(tmp_path, ada=notebook_with_answers("First."))
    solved = notebook_with_answers("### BEGIN SOLUTION\nSo.\n### END SOLUTION")
    (course / "solutions" / NAME / f"{NAME}.ipynb").write_bytes(solved)
    report = make_report("ada", 2, 1, 4)
    write_reports(course, [report])
    path = course / "autograded" / "ada" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(
        autograded_notebook(notebook_with_answers("First."), ASSIGNMENT_WITH_QUESTION, report)
    )
    assert give_feedback(course, NAME, "ada").lines
    (course / "submitted" / "ada" / NAME / f"{NAME}.ipynb").write_bytes(
        notebook_with_answers("Second.")
    )
    with pytest.raises(UserError, match="ada has handed in again since the report"):
        give_feedback(course, NAME, "ada")


def test_feedback_refuses_in_one_line(tmp_path):
    course = course_of_two(tmp_path)
    refuses(run("feedback", NAME, "--student", "bop", cwd=course), "no student", "mean bob?")
    for name, student, message in (
        (NAME, "cy", f"no report on cy: attncourse grade {NAME} --student cy"),
        ("02_small", None, "no assignment is called 02_small"),
    ):
        with pytest.raises(UserError, match=message):
            give_feedback(course, name, student)
    other_zip = write_download(tmp_path, {"a/b.ipynb": b""}, "plain.zip")
    for zipped, message in (
        (other_zip, "not what Moodle or Canvas gives"),
        (
            write_download(tmp_path, {"assignment_1_export/submission_metadata.yml": b""}, "g.zip"),
            f"Gradescope takes no pages back.* export {NAME} --format gradescope-autograder",
        ),
        (tmp_path / "none.zip", "No such file"),
        (Path(__file__), "not a zip file"),
        (
            write_download(tmp_path, {"Eve X_7_assignsubmission_file/a": b""}),
            "none of these students",
        ),
    ):
        with pytest.raises(UserError, match=message):
            give_feedback(course, NAME, download=zipped)


def test_another_assignments_download_is_refused(tmp_path):
    """The other download has the same students, so their names would match."""
    course = course_of_two(tmp_path)
    (course / "solutions" / "02_other").mkdir()
    suffix = "_assignsubmission_file_"
    adas_file = {f"Ada X_1{suffix}/{NAME}.ipynb": small(add=WRONG_ADD)}
    files_of_others = {
        f"{who} X_{n}{suffix}/02_other.ipynb": b"" for n, who in enumerate(("Bob", "Cy"), 2)
    }
    zipped = write_download(tmp_path, adas_file | files_of_others)
    message = (
        "is 02_other's: 2 notebooks in it are called so, and 1 01_small; attncourse feedback 02"
    )
    with pytest.raises(UserError, match=message):
        give_feedback(course, NAME, download=zipped)
    assert not (course / "reports" / NAME / "feedback-moodle.zip").exists()
    right_files = adas_file | {
        f"Bob X_2{suffix}/any.ipynb": small(),
        f"Cy X_3{suffix}/02_other.ipynb": b"",
    }
    give_feedback(course, NAME, download=write_download(tmp_path, right_files))
    assert (course / "reports" / NAME / "feedback-moodle.zip").exists()


def test_an_unwritable_disk_is_reported_once(tmp_path):
    """Every page would fail, but the error is reported once."""
    course = course_of_two(tmp_path)
    (course / "feedback").write_text("in the way")
    with pytest.raises(UserError) as error:
        give_feedback(course, NAME)
    assert str(error.value).count("cannot write") == 1


def test_pages_load_no_nbgrader_and_compile_templates_once(tmp_path):
    """Importing nbgrader, or compiling a template a page, would take longer than all the rest."""
    course = course_of_two(tmp_path)
    graded = (
        ("ada", report_with_wrong_add(), small(add=WRONG_ADD)),
        ("bob", make_report("bob", 2, 1, 4), small()),
    )
    for student, report, data in graded:
        place = course / "autograded" / student / NAME / f"{NAME}.ipynb"
        place.parent.mkdir(parents=True)
        place.write_text(autograded_notebook(data, SMALL_ASSIGNMENT, report))
    code = (
        "import sys, jinja2\n"
        "from pathlib import Path\n"
        "from attncourse.grading.feedback.command import give_feedback\n"
        "made, compiled = [], jinja2.Environment.compile\n"
        "jinja2.Environment.compile = lambda *a, **o: made.append(a[3]) or compiled(*a, **o)\n"
        f"print(*give_feedback(Path({str(course)!r}), {NAME!r}).lines)\n"
        "assert 'nbgrader' not in sys.modules\n"
        "assert len(made) == len(set(made)), made"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert "2 pages written" in process.stdout
