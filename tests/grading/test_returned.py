"""What students get back: a page with each verdict beside its answer, and zips for platforms."""

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

SMALL = Assignment(NAME, read_cells(small()))
ADD = "def add(a, b):\n    return a - b  # <script>attack()</script>"
HOSTILE = '</pre><script>attack()</script><img src="http://canary.invalid/" onerror=attack()>\u202e'


def verdict(cell_id: str, name: str = "subtracts", **more) -> dict:
    """A verdict as a report keeps it."""
    criterion = {"name": "sums", "passed": False, "earned": 0, "possible": 2}
    criterion |= {"message": "add(1, 2) returned -1", "brief": "is -1, not 3"}
    kept = {"cell": cell_id, "target": "small.add", "passed": False, "earned": 0, "possible": 2}
    kept |= {"criteria": [criterion], "mistake": name, "explanation": f"It {name}."}
    kept |= {"failed": ["sums"], "symptom": "", "rest": "", "worth": 0, "reason": "is -1, not 3"}
    return kept | {"unwritten": False, "section": "", "seed": 7, "text": "✗ small.add"} | more


def graded_add(**more) -> Report:
    """Ada's report: a wrong sum with a verdict, a right double, and what a hidden test saw."""
    secret = verdict("hidden_add", "SECRET", text="SECRET")
    report = make_report("ada", 0, 0, 4, verdicts=(verdict("points_add"), secret), **more)
    cells = dict(report.cells)
    cells["points_add"] = CellResult(0.0, 2.0, "subtracts")
    cells["hidden_add"] = CellResult(0.0, 1.0, "a hidden test failed (AssertionError)")
    return replace(report, cells=cells)


def result_of(report: Report, **more) -> StudentResult:
    return StudentResult(Person(report.student), NAME, report.status, dict(report.cells), **more)


def page_of(report: Report, data: bytes, assignment: Assignment = SMALL, **more) -> str:
    return student_page(assignment, data, result_of(report, **more), report)


def text_of(html: str) -> str:
    body = html[html.index("<body>") :]
    return " ".join(
        re.sub(r"<wbr>|<[^>]*>", lambda m: "" if m[0] == "<wbr>" else " ", body).split()
    )


# --- the page ---------------------------------------------------------------------------------


def test_a_verdict_stands_beside_the_answer_that_it_is_about():
    html = page_of(graded_add(notes=("cell 3: was joined",)), small(add=ADD))
    add, twice = html.split("<section ")[1:]
    assert "add(1, 2) returned -1" in add
    assert "return a - b" in add
    assert "Subtracts." in add
    assert "return 2 * a" in twice
    assert "ubtracts" not in twice
    said = text_of(html)
    assert "ada 4 of 7 points" in said
    assert "add 0 of 3 subtracts twice 4 of 4 all points" in said
    assert "Notes cell 3: was joined" in said
    assert "points_" not in said


def test_a_hidden_test_keeps_its_source_and_what_it_saw():
    html = page_of(graded_add(), small(add=ADD))
    for secret in ("SECRET", "add(5, 6)", "hidden_add", "HIDDEN"):
        assert secret not in html
    further = "Further tests, on inputs that are not shown: 0 of 1 point, a hidden test failed"
    assert f"{further} (AssertionError)." in text_of(html)


def test_nothing_that_a_submission_wrote_acts_in_the_page():
    report = graded_add(notes=(HOSTILE,))
    mean = verdict("points_add", HOSTILE, explanation=HOSTILE, section=HOSTILE)
    cells = dict(report.cells) | {"points_twice": CellResult(0.0, 4.0, HOSTILE)}
    report = replace(report, verdicts=(mean,), cells=cells)
    mine = cell(f"print(1)  # {HOSTILE}"), cell(HOSTILE, code=False)
    data = json.loads(small(add=ADD, twice=f"{STUB}  # {HOSTILE}"))
    data["cells"] += mine
    html = page_of(report, json.dumps(data).encode(), comments={"add": HOSTILE})
    body = html[html.index("<body>") :]
    inert = {"tabindex", "aria-label", "aria-labelledby", "scope"}
    assert [one for one in acts(body, "body", "main", "section") if one[1] not in inert] == []
    assert body.count("&lt;script&gt;attack()") >= 5
    assert "\u202e" not in html


def test_what_was_left_as_given_is_not_attempted():
    report = make_report("fay", 0, 0, 0)
    found = feedback_by_exercise(SMALL, read_cells(small(STUB, STUB)), result_of(report), report)
    assert [(one.name, one.gist) for one in found] == [
        ("add", "not attempted"),
        ("twice", "not attempted"),
    ]


def test_an_answer_is_found_with_its_helpers():
    helper = cell("def carry(a):\n    return a")
    lost = cell("def add(a, b):\n    return carry(a) + b")
    data = notebook(helper, lost, solution("twice", "def twice(a):\n    return 2 * a"))
    report = make_report("ada", 2, 1, 4)
    add, twice = feedback_by_exercise(SMALL, read_cells(data), result_of(report), report)
    assert [c.source for c in add.answers] == [lost["source"]]
    assert [c.grade_id for c in twice.answers] == ["twice"]
    assert "Other cells of your notebook: 1 def carry(a)" in text_of(page_of(report, data))


def test_a_nameless_cell_belongs_to_the_answer_before_it():
    cells = solution("add", "a = 1"), graded("test_one", "assert a", 1), graded("test_two", "a", 2)
    assignment = Assignment(NAME, read_cells(notebook(*cells)))
    given = {"test_one": CellResult(0, 1, "AssertionError"), "test_two": CellResult(2, 2)}
    report = Report("ada", NAME, "graded", given)
    (one,) = feedback_by_exercise(assignment, assignment.cells, result_of(report), report)
    assert (one.name, one.points, one.maximum, one.gist) == ("add", 2, 3, "AssertionError")


def test_a_persons_points_and_words_are_on_the_page():
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
    r = replace(result_of(report), cells=scored, manual=("why",), comments={"why": "Say <more>."})
    html = student_page(assignment, data, r, report)
    section = html.split("<section ")[3]
    assert section.count("3 · Why") == 1
    assert "<em>grows</em>" in section
    assert "<math" in section
    assert "3 · Why 2 of 3 points" in text_of(html)
    assert "Comment Say &lt;more&gt;." in text_of(html)
    assert "Not final" not in html


def why(answer: str, name: str = "why") -> dict:
    """A question's cell with an answer in text."""
    made = cell(f"## 3 · Why\n\n{answer}", name, code=False, solution=True, grade=True, points=3)
    return made


def with_why(*answers: str) -> bytes:
    return notebook(*json.loads(small())["cells"], *map(why, answers))


ASKING = Assignment(NAME, read_cells(with_why("### BEGIN SOLUTION\nSo.\n### END SOLUTION")))


def test_a_text_answer_is_rendered_once_and_has_an_end(monkeypatch):
    rendered: list[str] = []
    render = page_module.page_markdown
    monkeypatch.setattr(
        page_module, "page_markdown", lambda text: rendered.append(text) or render(text)
    )
    report = make_report("ada", 2, 1, 4)
    html = page_of(report, with_why("One half.", "The other."), ASKING)
    assert "One half." in html
    assert "The other." in html
    page_of(report, with_why(*(f"{'word ' * 3000}{n}" for n in range(30))), ASKING)
    assert len(rendered) == 2
    assert len(rendered[1]) <= LONGEST
    stub = "YOUR ANSWER HERE"
    page_of(report, with_why(stub, "More."), ASKING)
    assert "More." in rendered[2]


def test_other_cells_have_an_end_as_well():
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
    place = tmp_path / "page.html"
    long = ADD.replace("a - b", " + ".join(["a"] * 60))
    report = graded_add(notes=("a" * 300,))
    place.write_text(page_of(report, small(add=long), comments={"add": "Look\nagain."}))
    context = browser.new_context(bypass_csp=True)
    shown, asked = context.new_page(), []
    shown.on("request", lambda request: asked.append(request.url))
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            shown.set_viewport_size({"width": width, "height": 844})
            shown.emulate_media(color_scheme=scheme)
            shown.goto(place.as_uri())
            shown.evaluate(axe)
            found = shown.evaluate(f"{run_axe}.then(found => found.violations.map(v => v.id))")
            assert found == [], (width, scheme)
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}


# --- zips that platforms take back --------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "filename", "prefix"),
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
def test_names_of_downloads(form, filename, prefix):
    place = download_place(filename, PLATFORMS[form])
    told = prefix and prefix.replace("folder", "Ada Lovelace_123_assignsubmission_file")
    assert (place and place.prefix) == told


def one_page(student: str, data: bytes | None, first: str = "", last: str = "") -> StudentPage:
    return StudentPage(Person(student, last, first), data, f"the page of {student}")


def download(folder: Path, files: dict[str, bytes], name: str = "download.zip") -> Path:
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return folder / name


def test_a_page_goes_by_the_same_file_then_by_name(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"work/{NAME}.ipynb", small(add=ADD))
    end = "_assignsubmission_file/x.ipynb"
    files = {
        f"Participant_1{end}": packed.getvalue(),  # by content, whatever the name says
        f"José Núñez_2{end}": small(),
        f"Ann Other_3{end}": small(),  # the same file as José's: by name
        f"Two Alike_4{end}": b"4",
        f"Two Alike_5{end}": b"5",
    }
    form, places = read_download(download(tmp_path, files), NAME)
    pages = [
        one_page("ada", small(add=ADD)),
        one_page("s17", small(), "Jose", "Nunez"),
        one_page("ann-other", small()),
        one_page("alike", b"another", "Two", "Alike"),
    ]
    found = {student: place.who for student, place in owners_of(places, pages, {}).items()}
    assert form == "moodle"
    assert found == {"ada": "Participant", "s17": "José Núñez", "ann-other": "Ann Other"}
    canvas = {"nunezjose_1_2_x.ipynb": b"", "otherann_3_4_x.ipynb": b""}
    _, places = read_download(download(tmp_path, canvas), NAME)
    assert set(owners_of(places, pages, {})) == {"s17", "ann-other"}


END = "_assignsubmission_file_"
ADA, EVE = small(add=ADD), small() + b" "


def owned(
    folder: Path, files: dict[str, bytes], *pages: StudentPage, **came_as: str
) -> dict[str, str]:
    _, places = read_download(download(folder, files), NAME)
    return {
        student: place.who for student, place in owners_of(places, list(pages), came_as).items()
    }


@pytest.mark.parametrize("eve", ["eve-mallory", "eve", "s2"])
@pytest.mark.parametrize("shape", ["moodle", "canvas"])
def test_files_beside_a_notebook_give_nobody_its_page(tmp_path, eve, shape):
    """Eve keeps a copy of Ada's notebook beside her own; Ada has no place."""
    files = {
        "moodle": {f"Eve Mallory_2{END}/{NAME}.ipynb": EVE, f"Eve Mallory_2{END}/o/a.ipynb": ADA},
        "canvas": {f"malloryeve_2_77_{NAME}.ipynb": EVE, "malloryeve_2_78_a.ipynb": ADA},
    }[shape]
    found = owned(tmp_path, files, one_page("ada-lovelace", ADA), one_page(eve, EVE))
    assert list(found) == [eve]


def test_a_place_whose_name_is_anothers_is_nobody_elses(tmp_path):
    """All that Eve's place holds is Ada's notebook, and hers is another by now."""
    files = {f"Eve Mallory_2{END}/{NAME}.ipynb": ADA}
    ada = one_page("ada-lovelace", ADA)
    assert owned(tmp_path, files, ada, one_page("eve", EVE)) == {}
    assert owned(tmp_path, files, ada, one_page("eve-mallory", None)) == {
        "eve-mallory": "Eve Mallory"
    }


def test_a_students_path_does_not_tell_its_origin(tmp_path):
    files = {f"Ada L_1{END}/{NAME}.ipynb": b"1", f"Eve M_2{END}/{NAME}.ipynb": b"2"}
    pages = one_page("s1", ADA), one_page("s2", EVE)
    assert owned(tmp_path, files, *pages, s1="Ada L_1", s2="Eve M_2") == {
        "s1": "Ada L",
        "s2": "Eve M",
    }
    inner = f"Eve M_2{END}/Ada L_1{END}/{NAME}.ipynb"
    assert download_place(inner, PLATFORMS["moodle"]).key == "Eve M_2"


# --- the command --------------------------------------------------------------------------------


def course_of_two(folder: Path) -> Path:
    """Ada and Bob have handed in and been graded, Cy has handed in."""
    course = make_course(folder, ada=small(add=ADD), bob=small(), cy=small())
    return write_reports(course, [graded_add(), make_report("bob", 2, 1, 4)])


def test_the_command_writes_links_and_packs_pages(tmp_path):
    course = course_of_two(tmp_path)
    graded = [graded_add(), make_report("bob", 2, 1, 4)]
    write_gradebook(course, graded, manual={("bob", "points_twice"): 3.0})
    files = {f"{w} X_{n}_assignsubmission_file_/a.ipynb": d for n, (w, d) in
             enumerate([("Ada", small(add=ADD)), ("Bob", small()), ("Eve", b"")])}  # fmt: skip
    zipped = download(tmp_path, files)
    done = run("feedback", NAME, "--download", zipped, cwd=course)
    assert done.returncode == 0, done
    assert done.stderr.splitlines() == [
        f"attncourse: there is no report on cy: attncourse grade {NAME} --student cy",
        "attncourse: in download.zip only, with no page: Eve X",
    ]
    assert "2 pages written" in done.stdout
    bob = (course / "feedback" / "bob" / NAME / f"{NAME}.html").read_text()
    assert "6 of 7 points" in text_of(bob)
    assert "The points were given by a person." in bob
    report = (course / "reports" / NAME / "index.html").read_text()
    assert f'<a href="../../feedback/ada/{NAME}/{NAME}.html">ada</a>' in report
    assert "feedback/cy" not in report
    with zipfile.ZipFile(course / "reports" / NAME / "feedback-moodle.zip") as archive:
        held = {info.filename: archive.read(info).decode() for info in archive.infolist()}
    assert sorted(held) == [
        f"Ada X_0_assignsubmission_file_/{NAME}.html",
        f"Bob X_1_assignsubmission_file_/{NAME}.html",
    ]
    assert held[f"Bob X_1_assignsubmission_file_/{NAME}.html"] == bob


def test_who_has_no_page_keeps_the_place(tmp_path):
    """Eve, placed by hand, handed in again since grading; Ada handed in elsewhere."""
    course = make_course(tmp_path, **{"ada-lovelace": ADA, "eve-mallory": EVE})
    ada, eve = replace(graded_add(), student="ada-lovelace"), make_report("eve-mallory", 2, 1, 4)
    write_reports(course, [ada, eve])
    place = course / "autograded" / "eve-mallory" / NAME / f"{NAME}.ipynb"
    place.parent.mkdir(parents=True)
    place.write_text(autograded_notebook(small(twice="print(1)"), SMALL, eve))
    zipped = download(tmp_path, {f"Eve Mallory_2{END}/{NAME}.ipynb": ADA})
    with pytest.raises(UserError, match="none of these students is in"):
        give_feedback(course, NAME, download=zipped)
    assert not (course / "reports" / NAME / "feedback-moodle.zip").exists()


def test_a_notebook_that_came_after_its_report_gets_no_page(tmp_path):
    course = course_of_two(tmp_path)
    place = course / "autograded" / "ada" / NAME / f"{NAME}.ipynb"
    place.parent.mkdir(parents=True)
    place.write_text(autograded_notebook(small(add=ADD), SMALL, graded_add()))
    assert give_feedback(course, NAME, "ada").lines
    (course / "submitted" / "ada" / NAME / f"{NAME}.ipynb").write_bytes(small())
    with pytest.raises(UserError, match="ada has handed in again since the report"):
        give_feedback(course, NAME, "ada")
    now = autograded_notebook(small(), SMALL, graded_add())
    assert graded_cell_texts(place.read_text()) != graded_cell_texts(now)


def test_a_text_answer_newer_than_its_report_gets_no_page(tmp_path):
    course = make_course(tmp_path, ada=with_why("First."))
    solved = with_why("### BEGIN SOLUTION\nSo.\n### END SOLUTION")
    (course / "solutions" / NAME / f"{NAME}.ipynb").write_bytes(solved)
    report = make_report("ada", 2, 1, 4)
    write_reports(course, [report])
    place = course / "autograded" / "ada" / NAME / f"{NAME}.ipynb"
    place.parent.mkdir(parents=True)
    place.write_text(autograded_notebook(with_why("First."), ASKING, report))
    assert give_feedback(course, NAME, "ada").lines
    (course / "submitted" / "ada" / NAME / f"{NAME}.ipynb").write_bytes(with_why("Second."))
    with pytest.raises(UserError, match="ada has handed in again since the report"):
        give_feedback(course, NAME, "ada")


def test_each_thing_that_cannot_be_done_is_one_line(tmp_path):
    course = course_of_two(tmp_path)
    refuses(run("feedback", NAME, "--student", "bop", cwd=course), "no student", "mean bob?")
    for name, student, words in (
        (NAME, "cy", f"no report on cy: attncourse grade {NAME} --student cy"),
        ("02_small", None, "no assignment is called 02_small"),
    ):
        with pytest.raises(UserError, match=words):
            give_feedback(course, name, student)
    plain = download(tmp_path, {"a/b.ipynb": b""}, "plain.zip")
    for zipped, words in (
        (plain, "not what Moodle or Canvas gives"),
        (
            download(tmp_path, {"assignment_1_export/submission_metadata.yml": b""}, "g.zip"),
            f"Gradescope takes no pages back.* export {NAME} --format gradescope-autograder",
        ),
        (tmp_path / "none.zip", "No such file"),
        (Path(__file__), "not a zip file"),
        (download(tmp_path, {"Eve X_7_assignsubmission_file/a": b""}), "none of these students"),
    ):
        with pytest.raises(UserError, match=words):
            give_feedback(course, NAME, download=zipped)


def test_another_assignments_download_is_refused(tmp_path):
    """The same students have a place in it, by their names."""
    course = course_of_two(tmp_path)
    (course / "solutions" / "02_other").mkdir()
    ends = "_assignsubmission_file_"
    own = {f"Ada X_1{ends}/{NAME}.ipynb": small(add=ADD)}
    others = {f"{who} X_{n}{ends}/02_other.ipynb": b"" for n, who in enumerate(("Bob", "Cy"), 2)}
    zipped = download(tmp_path, own | others)
    words = "is 02_other's: 2 notebooks in it are called so, and 1 01_small; attncourse feedback 02"
    with pytest.raises(UserError, match=words):
        give_feedback(course, NAME, download=zipped)
    assert not (course / "reports" / NAME / "feedback-moodle.zip").exists()
    few = own | {f"Bob X_2{ends}/any.ipynb": small(), f"Cy X_3{ends}/02_other.ipynb": b""}
    give_feedback(course, NAME, download=download(tmp_path, few))
    assert (course / "reports" / NAME / "feedback-moodle.zip").exists()


def test_a_disk_that_refuses_is_told_once(tmp_path):
    """Every page would be refused, each in its own words."""
    course = course_of_two(tmp_path)
    (course / "feedback").write_text("in the way")
    with pytest.raises(UserError) as told:
        give_feedback(course, NAME)
    assert str(told.value).count("cannot write") == 1


def test_pages_of_a_class_take_no_nbgrader_and_one_template(tmp_path):
    """To import the one, or to compile the other for each page, takes longer than all the rest."""
    course = course_of_two(tmp_path)
    graded = (("ada", graded_add(), small(add=ADD)), ("bob", make_report("bob", 2, 1, 4), small()))
    for student, report, data in graded:
        place = course / "autograded" / student / NAME / f"{NAME}.ipynb"
        place.parent.mkdir(parents=True)
        place.write_text(autograded_notebook(data, SMALL, report))
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "2 pages written" in done.stdout
