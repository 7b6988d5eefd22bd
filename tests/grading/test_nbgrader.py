"""nbgrader with this course's configuration, and ``attncourse grade``, give the same results."""

import csv
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from chromium import ABSENT, BROWSER, FLAGS

from attncourse.grading.gradebook.assignments import record_assignment
from attncourse.grading.gradebook.connection import find_gradebook
from attncourse.grading.nbgrader.steps import JudgeExporter
from helpers.dedented_text import dedented
from helpers.forked_commands import command
from helpers.html_markup import Markup, acts
from helpers.project import ROOT
from helpers.small_course import (
    NAME,
    RIGHT,
    STUB,
    TESTS,
    cell,
    make_course,
    notebook,
    small,
    solution,
)

pytestmark = pytest.mark.slow


def run_nbgrader(course: Path, *arguments: str, status: int = 0) -> str:
    returncode, output = command(course, "nbgrader", *arguments)
    assert returncode == status, output
    return output


def run_attncourse(course: Path, *arguments: str) -> None:
    returncode, output = command(course, "attncourse", *arguments)
    assert returncode == 0, output


def export_scores(course: Path) -> dict[str, dict[str, tuple[float, float]]]:
    """Return (score, maximum) by student of each assignment in nbgrader's export."""
    run_nbgrader(course, "export")
    scores: dict[str, dict[str, tuple[float, float]]] = {}
    with (course / "grades.csv").open() as lines:
        for row in csv.DictReader(lines):
            marks = float(row["score"]), float(row["max_score"])
            scores.setdefault(row["assignment"], {})[row["student_id"]] = marks
    return scores


def submit(course: Path, student: str, data: bytes, name: str = f"{NAME}.ipynb", **files) -> None:
    """Write a submission's notebook, and further files by name with _ for the dot."""
    folder = course / "submitted" / student / NAME
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    for stem, text in files.items():
        (folder / stem.replace("_", ".")).write_text(text)


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course released by nbgrader, with four submissions."""
    folder = make_course(tmp_path_factory.mktemp("course"))
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    (folder / "solutions" / NAME / f"{NAME}.py").write_text("# the answers\n")
    run_nbgrader(folder, "generate_assignment", NAME, "--force")
    submit(folder, "solved", small())
    submit(folder, "released", (folder / "exercises" / NAME / f"{NAME}.ipynb").read_bytes())
    submit(folder, "partly", small(add="def add(a, b): return 0"))
    submit(folder, "half", small(twice=STUB))
    return folder


EXPECTED_SCORES = {"solved": (7, 7), "released": (0, 7), "partly": (5, 7), "half": (3, 7)}


def test_an_assignments_second_notebook_is_read_once(tmp_path):
    folder = make_course(tmp_path) / "solutions" / NAME
    (folder / "more.ipynb").write_bytes(notebook(solution("add", RIGHT[0]), TESTS[1]))
    course_directory = SimpleNamespace(
        root=tmp_path, source_directory="", format_path=lambda *_: folder
    )
    judge = SimpleNamespace(parent=SimpleNamespace(coursedir=course_directory), follow_on=False)
    judge._assignments = {}
    assignment = JudgeExporter.assignment(judge, NAME, "more")
    assert [cell.grade_id for cell in assignment.cells] == ["add", "points_add"]
    assert not assignment.follow_on
    assert JudgeExporter.assignment(judge, NAME, "more") is assignment


def test_the_release_holds_only_the_notebook_without_answers(course):
    place = course / "exercises" / NAME
    assert [path.name for path in place.iterdir()] == [f"{NAME}.ipynb"]
    text = (place / f"{NAME}.ipynb").read_text()
    assert "raise NotImplementedError()" in text
    for secret in ("return a + b", "add(5, 6)", "HIDDEN", "BEGIN"):
        assert secret not in text


def test_attncourse_and_nbgrader_give_the_same_grades(course):
    process = subprocess.run(
        [sys.executable, "-W", "error", "-m", "attncourse.grading.cli", "grade", NAME],
        cwd=course,
        capture_output=True,
        text=True,
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert export_scores(course) == {NAME: EXPECTED_SCORES}
    run_nbgrader(course, "generate_feedback", NAME)
    page = (course / "feedback" / "partly" / NAME / f"{NAME}.html").read_text()
    assert "1 of 2 points" in page
    assert "add(5, 6)" not in page
    assert formgrader_scores(course) == {
        s: (True, *points) for s, points in EXPECTED_SCORES.items()
    }
    shutil.rmtree(course / "autograded")
    (course / "gradebook.db").unlink()
    shutil.rmtree(course / "exercises")
    run_nbgrader(course, "generate_assignment", NAME)
    run_nbgrader(course, "autograde", NAME)
    assert export_scores(course) == {NAME: EXPECTED_SCORES}
    run_nbgrader(course, "generate_feedback", NAME, "--force")
    page = (course / "feedback" / "solved" / NAME / f"{NAME}.html").read_text()
    assert "points_add" in page
    assert "add(5, 6)" not in page


CHAPTERS = sorted(path.name for path in (ROOT / "solutions").iterdir() if path.is_dir())


GRADE_CHAPTERS_SCRIPT = """
from pathlib import Path
from attncourse.grading.course.folders import find_assignment
from attncourse.grading.nbgrader import steps
judge, reports, results = steps.grade_submission, [], {}
def grade(*arguments, **options):
    reports.append(judge(*arguments, **options))
    return reports[-1]
steps.grade_submission = grade
for chapter in sorted(path.name for path in Path("solutions").iterdir()):
    assignment = find_assignment(Path(), chapter)
    manual_points = sum(c.points for c in assignment.cells if c.grade and c.solution)
    results[chapter] = {"automatic": assignment.maximum, "manual": manual_points}
    for student in ("released", "solved"):
        result = api.autograde(chapter, student)
        assert result["success"], result["log"]
        (report,) = reports
        results[chapter][student] = [report.points, *report.notes]
        reports.clear()
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def every_chapter(tmp_path_factory) -> tuple[dict, dict[str, dict[str, tuple[float, float]]]]:
    """Return the judge's results for each chapter, solved and released, and nbgrader's scores."""
    course = tmp_path_factory.mktemp("every")
    shutil.copy(ROOT / "nbgrader_config.py", course)
    for chapter in CHAPTERS:
        for place, part in (
            (course / "solutions" / chapter, "solutions"),
            (course / "submitted" / "solved" / chapter, "solutions"),
            (course / "submitted" / "released" / chapter, "exercises"),
        ):
            place.mkdir(parents=True)
            shutil.copy(ROOT / part / chapter / f"{chapter}.ipynb", place)
        record_assignment(find_gradebook(course), chapter)
    return json.loads(run_with_api(course, GRADE_CHAPTERS_SCRIPT).splitlines()[-1]), export_scores(
        course
    )


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_solved_chapters_earn_full_marks_and_released_ones_zero(every_chapter, chapter):
    judged, graded = (results[chapter] for results in every_chapter)
    automatic_points = judged["automatic"]
    assert judged["released"][0] == 0
    assert judged["solved"] == [automatic_points]  # and no note
    all_points = automatic_points + judged["manual"]  # which nobody has given yet
    assert graded == {"released": (0, all_points), "solved": (automatic_points, all_points)}


def formgrader_scores(course: Path) -> dict[str, tuple[bool, float, float]]:
    """Return the formgrader's list: if a student is graded, the score, the maximum."""
    script = (
        f"rows = api.get_submissions({NAME!r})\n"
        "keys = ('autograded', 'score', 'max_score')\n"
        "print(json.dumps({r['student']: [r[k] for k in keys] for r in rows}))\n"
    )
    rows = json.loads(run_with_api(course, script).splitlines()[-1])
    return {student: tuple(row) for student, row in rows.items()}


def run_with_api(course: Path, script: str) -> str:
    """Return the output of a script with nbgrader's ``api``, through which the formgrader works."""
    setup = (
        "import json, os\n"
        "from nbgrader.apps import NbGraderAPI\n"
        "from traitlets.config import Config, PyFileConfigLoader\n"
        "loader = PyFileConfigLoader('nbgrader_config.py', path=os.getcwd())\n"
        "config = Config(loader.load_config())\n"
        "config.CourseDirectory.root = os.getcwd()\n"
        "api = NbGraderAPI(config=config)\n"
    )
    returncode, output = command(course, "python", setup + script)
    assert returncode == 0, output
    return output


def test_both_commands_use_the_environments_gradebook(tmp_path, monkeypatch):
    course = make_course(tmp_path)
    shutil.copy(ROOT / "nbgrader_config.py", course)
    submit(course, "ada", small())
    monkeypatch.setenv("ATTNCOURSE_DB", f"sqlite:///{course}/elsewhere.db")
    run_attncourse(course, "release", NAME)
    run_attncourse(course, "grade", NAME)
    score, maximum = export_scores(course)[NAME]["ada"]
    assert score == maximum > 0
    assert (course / "elsewhere.db").exists()
    assert not (course / "gradebook.db").exists()


# --- a class with everything in it, graded both ways --------------------------------------------

WRITTEN_ANSWER = cell("### BEGIN SOLUTION\nThe sum.\n### END SOLUTION", "written", code=False)
WRITTEN_ANSWER["metadata"]["nbgrader"] |= {"grade": True, "solution": True, "points": 3}
PLOT_ANSWER = cell("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "plot", grade=True, solution=True)
PLOT_ANSWER["metadata"]["nbgrader"]["points"] = 2
TASK = cell("Draw it on paper.", "task", code=False, task=True, points=4, locked=True)
JUDGE_SETTINGS = """
c.JudgeExporter.timeout = 12
c.AssignLatePenalties.plugin_class = "late_points.LatePoints"
"""
LATE_PLUGIN = """
from nbgrader.plugins import LateSubmissionPlugin


class LatePoints(LateSubmissionPlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return total_seconds_late / 3600
"""
CANARY = "http://canary.invalid/"
HOSTILE = (
    "<script>document.title='hit'</script> <img src=x onerror=\"document.title='hit'\">"
    f"\n\n![p]({CANARY}) [click](javascript:alert(1)) <iframe src={CANARY}></iframe>"
)


def submitted_notebook(
    add=RIGHT[0], twice=RIGHT[1], written="It is three.", plot="x = 2", *more
) -> dict:
    """Return a submission's notebook as a dict."""
    mark = WRITTEN_ANSWER["metadata"]["nbgrader"]
    answers = (
        solution("add", add),
        solution("twice", twice),
        cell(written, **{**mark, "code": False}),
        cell(plot, **PLOT_ANSWER["metadata"]["nbgrader"]),
        cell("Drawn.", **{**TASK["metadata"]["nbgrader"], "code": False}),
    )
    return json.loads(notebook(cell("# Small", code=False), TESTS[0], *answers, *TESTS[1:], *more))


def submitted_data(**parts) -> bytes:
    return json.dumps(submitted_notebook(**parts), indent=1).encode()


def submit_everything(course: Path) -> None:
    """Hand in one submission of each kind."""
    right_data = submitted_data()
    unwritten = {"written": "YOUR ANSWER HERE", "plot": STUB}
    submit(course, "right", right_data)
    submit(course, "wrong", submitted_data(add="def add(a, b): return a - b", **unwritten))
    submit(course, "stub", submitted_data(add=STUB, twice=STUB, **unwritten))
    submit(course, "raises", submitted_data(twice="def twice(a):\n    return values / 0"))
    submit(course, "crashes", submitted_data(twice="import os\nos.abort()"))
    submit(
        course,
        "endless",
        submitted_data(
            twice=dedented("""
                def twice(a):
                    while True:
                        pass
            """)
        ),
    )
    noise = "import sys, warnings\nwarnings.warn('w')\nprint('x', file=sys.stderr)"
    submit(course, "noisy", submitted_data(twice=f"{RIGHT[1]}\n{noise}"))
    submit(course, "bom", b"\xef\xbb\xbf" + right_data)
    submit(course, "crlf", right_data.replace(b"\n", b"\r\n"))
    submit(course, "truncated", right_data[: len(right_data) // 2])
    submit(course, "empty", b"")
    submit(course, "binary", bytes(range(256)))
    version_3 = nbformat.convert(nbformat.from_dict(submitted_notebook()), 3)
    submit(course, "version3", json.dumps(version_3).encode())
    without_ids = submitted_notebook()
    for raw_cell in without_ids["cells"]:
        del raw_cell["id"]
    submit(course, "without-ids", json.dumps({**without_ids, "nbformat_minor": 4}).encode())
    without_metadata = submitted_notebook()
    for raw_cell in without_metadata["cells"]:
        raw_cell["metadata"] = {}
    submit(course, "lost-metadata", json.dumps(without_metadata).encode())
    conflict = right_data.decode().replace(
        '   "source": "# Small",\n',
        '<<<<<<< HEAD\n   "source": "# Small",\n=======\n   "source": "# Big",\n>>>>>>> theirs\n',
    )
    submit(course, "conflict", conflict.encode())
    with_deleted_cells = submitted_notebook()
    with_deleted_cells["cells"] = [
        c for c in with_deleted_cells["cells"] if c["id"] not in ("points_add", "written")
    ]
    submit(course, "deleted", json.dumps(with_deleted_cells).encode())
    with_duplicates = submitted_notebook()
    with_duplicates["cells"] += [
        c for c in with_duplicates["cells"] if c["id"] in ("points_add", "plot")
    ]
    submit(course, "duplicated", json.dumps(with_duplicates).encode())
    submit(
        course, "hostile", submitted_data(written=HOSTILE, plot="s = '</script>" + HOSTILE + "'")
    )
    submit(course, "renamed", right_data, name="my homework (2).ipynb")
    submit(course, "copies", right_data, name=f"{NAME} (1).ipynb")
    submit(course, "copies", b"{}", name=f"{NAME} (2).ipynb")
    os.utime(course / "submitted" / "copies" / NAME / f"{NAME} (2).ipynb", (1e9, 1e9))  # older
    submit(course, "extended", right_data, timestamp_txt="2030-01-03 02:00:00 UTC")
    extensions = f"student,assignment,days\nextended,{NAME},2\n"
    (course / "extensions.csv").write_text(extensions)
    submit(course, "late", right_data, timestamp_txt="2030-01-01 02:00:00 UTC")
    submit(
        course, "in-time", right_data, timestamp_txt="2029-12-31 02:00:00 UTC", page_html=HOSTILE
    )


EXPECTED_POINTS = {
    **dict.fromkeys(("empty", "binary", "truncated", "stub"), 0),
    **dict.fromkeys(("raises", "crashes", "endless"), 3),
    "wrong": 5,
}


@pytest.fixture(scope="module")
def graded_courses(tmp_path_factory) -> tuple[Path, Path]:
    """The same class, graded by nbgrader in the first course and by attncourse in the second."""
    nbgrader_course, attncourse_course = (
        tmp_path_factory.mktemp("way") / name for name in ("nbgrader", "attncourse")
    )
    place = nbgrader_course / "solutions" / NAME
    place.mkdir(parents=True)
    answers = (
        solution("add", RIGHT[0]),
        solution("twice", RIGHT[1]),
        WRITTEN_ANSWER,
        PLOT_ANSWER,
        TASK,
    )
    source = notebook(cell("# Small", code=False), TESTS[0], *answers, *TESTS[1:])
    (place / f"{NAME}.ipynb").write_bytes(source)
    config = (ROOT / "nbgrader_config.py").read_text() + JUDGE_SETTINGS
    (nbgrader_course / "nbgrader_config.py").write_text(config)
    (nbgrader_course / "late_points.py").write_text(LATE_PLUGIN)
    run_nbgrader(nbgrader_course, "generate_assignment", NAME)
    run_nbgrader(
        nbgrader_course, "db", "assignment", "add", NAME, "--duedate=2030-01-01 00:00:00 UTC"
    )
    submit_everything(nbgrader_course)
    shutil.copytree(nbgrader_course, attncourse_course)
    courses = nbgrader_course, attncourse_course
    regrade(*courses)
    for folder in courses:
        run_nbgrader(folder, "generate_feedback", NAME)
    return courses


def regrade(nbgrader_course: Path, attncourse_course: Path, *student: str) -> None:
    run_nbgrader(nbgrader_course, "autograde", NAME, "--force", *student)
    run_attncourse(attncourse_course, "grade", NAME, "--force", "--timeout", "12", *student)


def written_files(course: Path, step: str) -> dict[str, str]:
    """Return the texts of the files that a step has written, by path."""
    paths = sorted(path for path in (course / step).rglob("*") if path.is_file())
    return {str(path.relative_to(course)): path.read_text(encoding="utf-8") for path in paths}


def query_gradebook(course: Path, query: str) -> list[tuple]:
    """Return the sorted rows of a query to a course's gradebook."""
    connection = sqlite3.connect(course / "gradebook.db")
    try:
        return sorted(connection.execute(query).fetchall(), key=repr)
    finally:
        connection.close()


CELL_JOINS = """join submitted_notebook n on n.id = x.notebook_id
    join submitted_assignment s on s.id = n.assignment_id join base_cell c on c.id = x.cell_id"""
GRADES = f"""select s.student_id, c.name, x.auto_score, x.manual_score, x.extra_credit,
    x.needs_manual_grade from grade x {CELL_JOINS}"""
COMMENTS = (
    f"select s.student_id, c.name, x.auto_comment, x.manual_comment from comment x {CELL_JOINS}"
)
PENALTIES = """select s.student_id, s.timestamp, s.extension, n.late_submission_penalty
    from submitted_notebook n join submitted_assignment s on s.id = n.assignment_id"""


def test_every_submission_gets_its_points(graded_courses):
    students = sorted(path.name for path in (graded_courses[0] / "submitted").iterdir())
    for folder in graded_courses:
        sums = dict.fromkeys(students, 0.0)
        for student, _, points, *_ in query_gradebook(folder, GRADES):
            sums[student] += points or 0
        assert sums == {student: EXPECTED_POINTS.get(student, 7) for student in students}


@pytest.mark.parametrize("query", [GRADES, COMMENTS, PENALTIES])
def test_the_gradebooks_are_the_same(graded_courses, query):
    nbgrader_rows, attncourse_rows = (query_gradebook(folder, query) for folder in graded_courses)
    assert nbgrader_rows == attncourse_rows
    assert len(nbgrader_rows) >= 22


def test_the_graded_notebooks_are_the_same(graded_courses):
    nbgrader_files, attncourse_files = (
        written_files(folder, "autograded") for folder in graded_courses
    )
    assert sorted(nbgrader_files) == sorted(attncourse_files)
    assert [path for path in nbgrader_files if nbgrader_files[path] != attncourse_files[path]] == []
    assert {Path(path).name for path in nbgrader_files} == {f"{NAME}.ipynb", "timestamp.txt"}


def test_the_feedback_is_the_same(graded_courses):
    nbgrader_files, attncourse_files = (
        written_files(folder, "feedback") for folder in graded_courses
    )
    assert sorted(nbgrader_files) == sorted(attncourse_files)
    assert [path for path in nbgrader_files if nbgrader_files[path] != attncourse_files[path]] == []
    pages = [path for path in nbgrader_files if path.endswith(".html")]
    assert len(pages) == len(list((graded_courses[0] / "submitted").iterdir()))


def test_feedback_pages_show_remarks_and_no_secrets(graded_courses):
    pages = written_files(graded_courses[0], "feedback")
    for path, text in pages.items():
        assert "add(5, 6)" not in text, path  # a hidden test
        assert "The sum." not in text, path  # the answer
        assert str(graded_courses[0]) not in text, path
        assert str(ROOT) not in text, path
        if path.endswith("html"):
            assert acts(text, "!", "html", "head", "body", "main", "meta", "title", "style") == []
    page = {path.split("/")[1]: text for path, text in pages.items() if path.endswith("html")}
    assert "handed in late: −2" in page["late"]
    assert "handed in late" not in page["in-time"]
    assert "the file is empty" in page["empty"]
    assert "my homework (2).ipynb" in page["renamed"]
    assert "&lt;/script&gt;" in page["hostile"]
    assert "0 of 4" in page["raises"]
    assert "NameError" in page["raises"]


def test_manual_scores_survive_regrading(graded_courses):
    script = "with api.gradebook as gradebook:\n"
    for student, grade_id, points in (("right", "written", 2.5), ("wrong", "points_add", 1.5)):
        script += (
            f"    grade = gradebook.find_grade({grade_id!r}, {NAME!r}, {NAME!r}, {student!r})\n"
            f"    grade.manual_score, grade.extra_credit = {points}, 0.5\n"
            "    grade.needs_manual_grade = False\n"
            f"    comment = gradebook.find_comment('add', {NAME!r}, {NAME!r}, {student!r})\n"
            "    comment.manual_comment = '**Good**, but see <b>this</b>'\n"
            "    gradebook.db.commit()\n"
        )
    for folder in graded_courses:
        run_with_api(folder, script)
    for student in ("right", "wrong"):
        regrade(*graded_courses, "--student", student)
    nbgrader_rows, attncourse_rows = (query_gradebook(course, GRADES) for course in graded_courses)
    assert [row[:5] for row in nbgrader_rows] == [row[:5] for row in attncourse_rows]
    for row in (("right", "written", None, 2.5, 0.5), ("wrong", "points_add", 1.0, 1.5, 0.5)):
        assert (*row, 1) in nbgrader_rows  # nbgrader has a person look again at every score
        assert (*row, 0) in attncourse_rows  # the answer is the one that was scored
    assert query_gradebook(graded_courses[0], COMMENTS) == query_gradebook(
        graded_courses[1], COMMENTS
    )
    assert export_scores(graded_courses[0]) == export_scores(graded_courses[1])
    marks = export_scores(graded_courses[0])[NAME]
    assert marks["right"] == (10, 16)
    assert marks["late"] == (5, 16)
    assert marks["extended"] == (5, 16)  # two hours after its own time
    for folder in graded_courses:
        run_nbgrader(folder, "generate_feedback", NAME, "--force", "--student", "right")
    nbgrader_files, attncourse_files = (
        written_files(folder, f"feedback/right/{NAME}") for folder in graded_courses
    )
    assert nbgrader_files == attncourse_files
    assert "<strong>Good</strong>" in "".join(nbgrader_files.values())


def test_the_formgrader_grades_through_the_judge(graded_courses):
    """The formgrader's button calls ``autograde``; the list then shows the new points."""
    script = f"print(json.dumps(api.autograde({NAME!r}, 'renamed')))\n"
    result = json.loads(run_with_api(graded_courses[0], script).splitlines()[-1])
    assert result["success"], result["log"]
    nbgrader_rows, attncourse_rows = (query_gradebook(folder, GRADES) for folder in graded_courses)
    assert [row[:5] for row in nbgrader_rows] == [
        row[:5] for row in attncourse_rows
    ]  # a person's scores: see above
    assert [row for row in nbgrader_rows if row[3] is None] == [
        row for row in attncourse_rows if row[3] is None
    ]
    assert formgrader_scores(graded_courses[0]) == formgrader_scores(graded_courses[1])


@contextmanager
def formgrader_server(course: Path) -> Iterator[str]:
    """Start a Jupyter server with the formgrader; yield its address with {} for the path."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    extension = "{'nbgrader.server_extensions.formgrader': True}"
    options = {"port": port, "token": "t", "jpserver_extensions": extension}
    command = [Path(sys.executable).parent / "jupyter", "server", "--allow-root", "--no-browser"]
    command += [f"--ServerApp.{name}={value}" for name, value in options.items()]
    process = subprocess.Popen(
        list(map(str, command)),
        cwd=course,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "HOME": str(course), "TMPDIR": str(course)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(480):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.25)
        yield f"http://127.0.0.1:{port}/formgrader/{{}}?token=t"
    finally:
        process.terminate()
        process.wait(120)


def test_the_formgrader_runs_nothing_of_a_submission(graded_courses):
    with formgrader_server(graded_courses[0]) as address:
        with urllib.request.urlopen(address.format(f"api/submissions/{NAME}"), timeout=60) as reply:
            rows_by_student = {row["student"]: row for row in json.load(reply)}
        assert rows_by_student["hostile"]["autograded"] is True
        ids_with_students = query_gradebook(
            graded_courses[0], "select n.id, s.student_id " + PENALTIES.split("penalty")[1]
        )
        (number,) = [number for number, student in ids_with_students if student == "hostile"]
        url = address.format(f"submissions/{number}/")
        with urllib.request.urlopen(url, timeout=60) as reply:
            page = reply.read().decode()
        if BROWSER is None:
            pytest.skip(ABSENT)
        flags = *FLAGS, "--dump-dom", "--virtual-time-budget=3000"
        home = f"--user-data-dir={graded_courses[0] / 'profile'}"
        shown = subprocess.check_output([BROWSER, *flags, home, url], text=True)
    notebook = page[page.rindex('id="notebook-container"') : page.rindex("</main>")]
    assert HOSTILE.split("\n")[0] in Markup(notebook).text.replace("\u200b", "")
    assert acts(notebook, "button", "textarea", "input") == []
    assert f"<title>{NAME}</title>" in shown
    assert f'src="{CANARY}' not in shown


def test_nothing_is_graded_without_a_sandbox(tmp_path):
    make_course(tmp_path, first=small(), second=small())
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    run_nbgrader(tmp_path, "generate_assignment", NAME, "--force")
    earlier = tmp_path / "autograded" / "first" / NAME / f"{NAME}.ipynb"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("what an earlier run made")
    autograde = f"print(api.autograde({NAME!r}, '*')['log'])\n"
    without_jail = (
        "from attncourse.grading.jail import layers\n"
        "from attncourse.grading.nbgrader import steps\n"
        "lost = layers.Layer('own world', False, True, 'not here', 'switch it on')\n"
        "steps.missing_required_layers = lambda: [lost]\n"
    )
    output = run_with_api(tmp_path, without_jail + autograde)
    (line,) = [line for line in output.splitlines() if line.startswith("[ERROR]")]
    assert line.startswith("[ERROR] grading stopped: no jail: own world: not here; switch it on")
    assert "unsafe_no_sandbox" in line
    assert earlier.read_text() == "what an earlier run made"
    assert query_gradebook(tmp_path, GRADES) == []
    with_refusing_judge = (
        "from attncourse.grading.errors import UserError\n"
        "def grade(*arguments, sandbox=True, **options):\n"
        "    raise UserError(f'sandbox={sandbox}: no room')\n"
        "steps.grade_submission = grade\n"
    )
    without_sandbox = (
        "config.JudgeExporter.unsafe_no_sandbox = True\napi = NbGraderAPI(config=config)\n"
    )
    output = run_with_api(
        tmp_path, without_jail + without_sandbox + with_refusing_judge + autograde
    )  # as any other refusal would
    lines = [line for line in output.splitlines() if line.startswith("[ERROR]")]
    assert lines == ["[ERROR] grading stopped: sandbox=False: no room"]
    assert "Traceback" not in output
    assert [row for row in query_gradebook(tmp_path, GRADES) if row[2] is not None] == []


def test_cells_new_to_the_gradebook_are_reported(tmp_path):
    make_course(tmp_path, first=small())
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    run_nbgrader(tmp_path, "generate_assignment", NAME, "--force")
    changed = json.loads(small())
    changed["cells"].append(json.loads(json.dumps(TESTS[1]).replace("points_add", "points_new")))
    (tmp_path / "solutions" / NAME / f"{NAME}.ipynb").write_text(json.dumps(changed))
    output = run_nbgrader(tmp_path, "autograde", NAME)
    assert "points_new is new, 2 points" in output
    assert ("first", "points_new", 2.0) in [row[:3] for row in query_gradebook(tmp_path, GRADES)]
