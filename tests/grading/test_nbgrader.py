"""nbgrader itself, with this course's configuration, and `attncourse grade`: the same results."""

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


def nbgrader(course: Path, *arguments: str, status: int = 0) -> str:
    ended, said = command(course, "nbgrader", *arguments)
    assert ended == status, said
    return said


def attncourse(course: Path, *arguments: str) -> None:
    ended, said = command(course, "attncourse", *arguments)
    assert ended == 0, said


def exported(course: Path) -> dict[str, dict[str, tuple[float, float]]]:
    """Each assignment's (score, maximum) by student in nbgrader's export."""
    nbgrader(course, "export")
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with (course / "grades.csv").open() as lines:
        for row in csv.DictReader(lines):
            marks = float(row["score"]), float(row["max_score"])
            found.setdefault(row["assignment"], {})[row["student_id"]] = marks
    return found


def submit(course: Path, student: str, data: bytes, name: str = f"{NAME}.ipynb", **files) -> None:
    place = course / "submitted" / student / NAME
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(data)
    for stem, text in files.items():
        (place / stem.replace("_", ".")).write_text(text)


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course released by nbgrader, with four submissions."""
    folder = make_course(tmp_path_factory.mktemp("course"))
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    (folder / "solutions" / NAME / f"{NAME}.py").write_text("# the answers\n")
    nbgrader(folder, "generate_assignment", NAME, "--force")
    submit(folder, "solved", small())
    submit(folder, "released", (folder / "exercises" / NAME / f"{NAME}.ipynb").read_bytes())
    submit(folder, "partly", small(add="def add(a, b): return 0"))
    submit(folder, "half", small(twice=STUB))
    return folder


EXPECTED = {"solved": (7, 7), "released": (0, 7), "partly": (5, 7), "half": (3, 7)}


def test_an_assignments_second_notebook_is_read_once(tmp_path):
    folder = make_course(tmp_path) / "solutions" / NAME
    (folder / "more.ipynb").write_bytes(notebook(solution("add", RIGHT[0]), TESTS[1]))
    places = SimpleNamespace(root=tmp_path, source_directory="", format_path=lambda *_: folder)
    judge = SimpleNamespace(parent=SimpleNamespace(coursedir=places), follow_on=False)
    judge._assignments = {}
    found = JudgeExporter.assignment(judge, NAME, "more")
    assert [cell.grade_id for cell in found.cells] == ["add", "points_add"]
    assert not found.follow_on
    assert JudgeExporter.assignment(judge, NAME, "more") is found


def test_the_release_holds_the_notebook_alone_without_answers(course):
    place = course / "exercises" / NAME
    assert [path.name for path in place.iterdir()] == [f"{NAME}.ipynb"]
    text = (place / f"{NAME}.ipynb").read_text()
    assert "raise NotImplementedError()" in text
    for secret in ("return a + b", "add(5, 6)", "HIDDEN", "BEGIN"):
        assert secret not in text


def test_attncourse_and_nbgrader_give_the_same_grades(course):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "attncourse.grading.cli", "grade", NAME],
        cwd=course,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert exported(course) == {NAME: EXPECTED}
    nbgrader(course, "generate_feedback", NAME)
    page = (course / "feedback" / "partly" / NAME / f"{NAME}.html").read_text()
    assert "1 of 2 points" in page
    assert "add(5, 6)" not in page
    assert formgrader(course) == {s: (True, *points) for s, points in EXPECTED.items()}
    shutil.rmtree(course / "autograded")
    (course / "gradebook.db").unlink()
    shutil.rmtree(course / "exercises")
    nbgrader(course, "generate_assignment", NAME)
    nbgrader(course, "autograde", NAME)
    assert exported(course) == {NAME: EXPECTED}
    nbgrader(course, "generate_feedback", NAME, "--force")
    page = (course / "feedback" / "solved" / NAME / f"{NAME}.html").read_text()
    assert "points_add" in page
    assert "add(5, 6)" not in page


CHAPTERS = sorted(path.name for path in (ROOT / "solutions").iterdir() if path.is_dir())


GRADED = """
from pathlib import Path
from attncourse.grading.course.folders import find_assignment
from attncourse.grading.nbgrader import steps
judge, reports, found = steps.grade_submission, [], {}
def grade(*arguments, **options):
    reports.append(judge(*arguments, **options))
    return reports[-1]
steps.grade_submission = grade
for chapter in sorted(path.name for path in Path("solutions").iterdir()):
    assignment = find_assignment(Path(), chapter)
    persons = sum(c.points for c in assignment.cells if c.grade and c.solution)
    found[chapter] = {"most": assignment.maximum, "persons": persons}
    for student in ("released", "solved"):
        done = api.autograde(chapter, student)
        assert done["success"], done["log"]
        (report,) = reports
        found[chapter][student] = [report.points, *report.notes]
        reports.clear()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def every_chapter(tmp_path_factory) -> tuple[dict, dict[str, dict[str, tuple[float, float]]]]:
    """What the judge gives for each chapter's solved and released notebook, and nbgrader has."""
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
    return json.loads(with_api(course, GRADED).splitlines()[-1]), exported(course)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_solved_chapters_earn_full_marks_and_released_ones_zero(every_chapter, chapter):
    judged, graded = (found[chapter] for found in every_chapter)
    most = judged["most"]
    assert judged["released"][0] == 0
    assert judged["solved"] == [most]  # and no note
    whole = most + judged["persons"]  # of which nobody has given the person's yet
    assert graded == {"released": (0, whole), "solved": (most, whole)}


def formgrader(course: Path) -> dict[str, tuple[bool, float, float]]:
    """What nbgrader's formgrader lists: whether a student is graded, the score, the maximum."""
    look = (
        f"rows = api.get_submissions({NAME!r})\n"
        "keys = ('autograded', 'score', 'max_score')\n"
        "print(json.dumps({r['student']: [r[k] for k in keys] for r in rows}))\n"
    )
    rows = json.loads(with_api(course, look).splitlines()[-1])
    return {student: tuple(row) for student, row in rows.items()}


def with_api(course: Path, lines: str) -> str:
    """What a script says that has nbgrader's own interface, which the formgrader works through."""
    start = (
        "import json, os\n"
        "from nbgrader.apps import NbGraderAPI\n"
        "from traitlets.config import Config, PyFileConfigLoader\n"
        "loader = PyFileConfigLoader('nbgrader_config.py', path=os.getcwd())\n"
        "config = Config(loader.load_config())\n"
        "config.CourseDirectory.root = os.getcwd()\n"
        "api = NbGraderAPI(config=config)\n"
    )
    ended, said = command(course, "python", start + lines)
    assert ended == 0, said
    return said


def test_both_find_the_gradebook_that_the_environment_names(tmp_path, monkeypatch):
    made = make_course(tmp_path)
    shutil.copy(ROOT / "nbgrader_config.py", made)
    submit(made, "ada", small())
    monkeypatch.setenv("ATTNCOURSE_DB", f"sqlite:///{made}/elsewhere.db")
    attncourse(made, "release", NAME)
    attncourse(made, "grade", NAME)
    score, maximum = exported(made)[NAME]["ada"]
    assert score == maximum > 0
    assert (made / "elsewhere.db").exists()
    assert not (made / "gradebook.db").exists()


# --- a class with everything in it, graded both ways ---------------------------------------------

WRITTEN = cell("### BEGIN SOLUTION\nThe sum.\n### END SOLUTION", "written", code=False)
WRITTEN["metadata"]["nbgrader"] |= {"grade": True, "solution": True, "points": 3}
PLOT = cell("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "plot", grade=True, solution=True)
PLOT["metadata"]["nbgrader"]["points"] = 2
TASK = cell("Draw it on paper.", "task", code=False, task=True, points=4, locked=True)
ASKED = "# YOUR CODE HERE\nraise NotImplementedError()"
SETTINGS = """
c.JudgeExporter.timeout = 12
c.AssignLatePenalties.plugin_class = "late_points.LatePoints"
"""
PLUGIN = """
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


def handed_in(add=RIGHT[0], twice=RIGHT[1], written="It is three.", plot="x = 2", *more) -> dict:
    """A submission's notebook as a dict."""
    mark = WRITTEN["metadata"]["nbgrader"]
    answers = (
        solution("add", add),
        solution("twice", twice),
        cell(written, **{**mark, "code": False}),
        cell(plot, **PLOT["metadata"]["nbgrader"]),
        cell("Drawn.", **{**TASK["metadata"]["nbgrader"], "code": False}),
    )
    return json.loads(notebook(cell("# Small", code=False), TESTS[0], *answers, *TESTS[1:], *more))


def data_of(**parts) -> bytes:
    return json.dumps(handed_in(**parts), indent=1).encode()


def submit_everything(course: Path) -> None:
    """One submission of each kind."""
    whole = data_of()
    unwritten = {"written": "YOUR ANSWER HERE", "plot": ASKED}
    submit(course, "right", whole)
    submit(course, "wrong", data_of(add="def add(a, b): return a - b", **unwritten))
    submit(course, "stub", data_of(add=STUB, twice=STUB, **unwritten))
    submit(course, "raises", data_of(twice="def twice(a):\n    return values / 0"))
    submit(course, "crashes", data_of(twice="import os\nos.abort()"))
    submit(
        course,
        "endless",
        data_of(
            twice=dedented("""
                def twice(a):
                    while True:
                        pass
            """)
        ),
    )
    noise = "import sys, warnings\nwarnings.warn('w')\nprint('x', file=sys.stderr)"
    submit(course, "noisy", data_of(twice=f"{RIGHT[1]}\n{noise}"))
    submit(course, "bom", b"\xef\xbb\xbf" + whole)
    submit(course, "crlf", whole.replace(b"\n", b"\r\n"))
    submit(course, "truncated", whole[: len(whole) // 2])
    submit(course, "empty", b"")
    submit(course, "binary", bytes(range(256)))
    old = nbformat.convert(nbformat.from_dict(handed_in()), 3)
    submit(course, "version3", json.dumps(old).encode())
    bare = handed_in()
    for one in bare["cells"]:
        del one["id"]
    submit(course, "without-ids", json.dumps({**bare, "nbformat_minor": 4}).encode())
    lost = handed_in()
    for one in lost["cells"]:
        one["metadata"] = {}
    submit(course, "lost-metadata", json.dumps(lost).encode())
    conflict = whole.decode().replace(
        '   "source": "# Small",\n',
        '<<<<<<< HEAD\n   "source": "# Small",\n=======\n   "source": "# Big",\n>>>>>>> theirs\n',
    )
    submit(course, "conflict", conflict.encode())
    without = handed_in()
    without["cells"] = [c for c in without["cells"] if c["id"] not in ("points_add", "written")]
    submit(course, "deleted", json.dumps(without).encode())
    twofold = handed_in()
    twofold["cells"] += [c for c in twofold["cells"] if c["id"] in ("points_add", "plot")]
    submit(course, "duplicated", json.dumps(twofold).encode())
    submit(course, "hostile", data_of(written=HOSTILE, plot="s = '</script>" + HOSTILE + "'"))
    submit(course, "renamed", whole, name="my homework (2).ipynb")
    submit(course, "copies", whole, name=f"{NAME} (1).ipynb")
    submit(course, "copies", b"{}", name=f"{NAME} (2).ipynb")
    os.utime(course / "submitted" / "copies" / NAME / f"{NAME} (2).ipynb", (1e9, 1e9))  # older
    submit(course, "extended", whole, timestamp_txt="2030-01-03 02:00:00 UTC")
    given = f"student,assignment,days\nextended,{NAME},2\n"
    (course / "extensions.csv").write_text(given)
    submit(course, "late", whole, timestamp_txt="2030-01-01 02:00:00 UTC")
    submit(course, "in-time", whole, timestamp_txt="2029-12-31 02:00:00 UTC", page_html=HOSTILE)


POINTS = {
    **dict.fromkeys(("empty", "binary", "truncated", "stub"), 0),
    **dict.fromkeys(("raises", "crashes", "endless"), 3),
    "wrong": 5,
}


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[Path, Path]:
    """The same class, graded with nbgrader in the first course and with ours in the second."""
    theirs, ours = (tmp_path_factory.mktemp("way") / name for name in ("nbgrader", "attncourse"))
    place = theirs / "solutions" / NAME
    place.mkdir(parents=True)
    answers = (solution("add", RIGHT[0]), solution("twice", RIGHT[1]), WRITTEN, PLOT, TASK)
    source = notebook(cell("# Small", code=False), TESTS[0], *answers, *TESTS[1:])
    (place / f"{NAME}.ipynb").write_bytes(source)
    config = (ROOT / "nbgrader_config.py").read_text() + SETTINGS
    (theirs / "nbgrader_config.py").write_text(config)
    (theirs / "late_points.py").write_text(PLUGIN)
    nbgrader(theirs, "generate_assignment", NAME)
    nbgrader(theirs, "db", "assignment", "add", NAME, "--duedate=2030-01-01 00:00:00 UTC")
    submit_everything(theirs)
    shutil.copytree(theirs, ours)
    courses = theirs, ours
    regrade(*courses)
    for folder in courses:
        nbgrader(folder, "generate_feedback", NAME)
    return courses


def regrade(theirs: Path, ours: Path, *student: str) -> None:
    nbgrader(theirs, "autograde", NAME, "--force", *student)
    attncourse(ours, "grade", NAME, "--force", "--timeout", "12", *student)


def files(course: Path, step: str) -> dict[str, str]:
    """What a step has written, by path; the times in it do not count."""
    found = sorted(path for path in (course / step).rglob("*") if path.is_file())
    return {str(path.relative_to(course)): path.read_text(encoding="utf-8") for path in found}


def rows(course: Path, query: str) -> list[tuple]:
    connection = sqlite3.connect(course / "gradebook.db")
    try:
        return sorted(connection.execute(query).fetchall(), key=repr)
    finally:
        connection.close()


PLACES = """join submitted_notebook n on n.id = x.notebook_id
    join submitted_assignment s on s.id = n.assignment_id join base_cell c on c.id = x.cell_id"""
GRADES = f"""select s.student_id, c.name, x.auto_score, x.manual_score, x.extra_credit,
    x.needs_manual_grade from grade x {PLACES}"""
COMMENTS = f"select s.student_id, c.name, x.auto_comment, x.manual_comment from comment x {PLACES}"
PENALTIES = """select s.student_id, s.timestamp, s.extension, n.late_submission_penalty
    from submitted_notebook n join submitted_assignment s on s.id = n.assignment_id"""


def test_every_submission_is_graded_as_it_deserves(both):
    students = sorted(path.name for path in (both[0] / "submitted").iterdir())
    for folder in both:
        sums = dict.fromkeys(students, 0.0)
        for student, _, points, *_ in rows(folder, GRADES):
            sums[student] += points or 0
        assert sums == {student: POINTS.get(student, 7) for student in students}


@pytest.mark.parametrize("query", [GRADES, COMMENTS, PENALTIES])
def test_the_gradebooks_are_the_same(both, query):
    theirs, ours = (rows(folder, query) for folder in both)
    assert theirs == ours
    assert len(theirs) >= 22


def test_the_graded_notebooks_are_the_same(both):
    theirs, ours = (files(folder, "autograded") for folder in both)
    assert sorted(theirs) == sorted(ours)
    assert [path for path in theirs if theirs[path] != ours[path]] == []
    assert {Path(path).name for path in theirs} == {f"{NAME}.ipynb", "timestamp.txt"}


def test_the_feedback_is_the_same(both):
    theirs, ours = (files(folder, "feedback") for folder in both)
    assert sorted(theirs) == sorted(ours)
    assert [path for path in theirs if theirs[path] != ours[path]] == []
    pages = [path for path in theirs if path.endswith(".html")]
    assert len(pages) == len(list((both[0] / "submitted").iterdir()))


def test_feedback_tells_what_it_should_and_no_more(both):
    pages = files(both[0], "feedback")
    for path, text in pages.items():
        assert "add(5, 6)" not in text, path  # a hidden test
        assert "The sum." not in text, path  # the answer
        assert str(both[0]) not in text, path
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


def test_a_persons_scores_survive_grading_again(both):
    score = "with api.gradebook as gradebook:\n"
    for student, grade_id, points in (("right", "written", 2.5), ("wrong", "points_add", 1.5)):
        score += (
            f"    grade = gradebook.find_grade({grade_id!r}, {NAME!r}, {NAME!r}, {student!r})\n"
            f"    grade.manual_score, grade.extra_credit = {points}, 0.5\n"
            "    grade.needs_manual_grade = False\n"
            f"    comment = gradebook.find_comment('add', {NAME!r}, {NAME!r}, {student!r})\n"
            "    comment.manual_comment = '**Good**, but see <b>this</b>'\n"
            "    gradebook.db.commit()\n"
        )
    for folder in both:
        with_api(folder, score)
    for student in ("right", "wrong"):
        regrade(*both, "--student", student)
    theirs, ours = (rows(folder, GRADES) for folder in both)
    assert [row[:5] for row in theirs] == [row[:5] for row in ours]
    for row in (("right", "written", None, 2.5, 0.5), ("wrong", "points_add", 1.0, 1.5, 0.5)):
        assert (*row, 1) in theirs  # nbgrader has a person look again at every score
        assert (*row, 0) in ours  # the answer is the one that was scored
    assert rows(both[0], COMMENTS) == rows(both[1], COMMENTS)
    assert exported(both[0]) == exported(both[1])
    marks = exported(both[0])[NAME]
    assert marks["right"] == (10, 16)
    assert marks["late"] == (5, 16)
    assert marks["extended"] == (5, 16)  # two hours after its own time
    for folder in both:
        nbgrader(folder, "generate_feedback", NAME, "--force", "--student", "right")
    theirs, ours = (files(folder, f"feedback/right/{NAME}") for folder in both)
    assert theirs == ours
    assert "<strong>Good</strong>" in "".join(theirs.values())


def test_the_formgrader_grades_through_the_judge(both):
    """Its button calls this; and what a changed submission earned is what it then shows."""
    again = f"print(json.dumps(api.autograde({NAME!r}, 'renamed')))\n"
    done = json.loads(with_api(both[0], again).splitlines()[-1])
    assert done["success"], done["log"]
    theirs, ours = (rows(folder, GRADES) for folder in both)
    assert [row[:5] for row in theirs] == [row[:5] for row in ours]  # a person's scores: see above
    assert [row for row in theirs if row[3] is None] == [row for row in ours if row[3] is None]
    assert formgrader(both[0]) == formgrader(both[1])


@contextmanager
def server(course: Path) -> Iterator[str]:
    """A Jupyter server with the formgrader; its address, with the place for a path."""
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


def test_the_formgrader_runs_nothing_of_a_submission(both):
    with server(both[0]) as address:
        with urllib.request.urlopen(address.format(f"api/submissions/{NAME}"), timeout=60) as reply:
            listed = {row["student"]: row for row in json.load(reply)}
        assert listed["hostile"]["autograded"] is True
        key = rows(both[0], "select n.id, s.student_id " + PENALTIES.split("penalty")[1])
        (number,) = [number for number, student in key if student == "hostile"]
        url = address.format(f"submissions/{number}/")
        with urllib.request.urlopen(url, timeout=60) as reply:
            page = reply.read().decode()
        if BROWSER is None:
            pytest.skip(ABSENT)
        flags = *FLAGS, "--dump-dom", "--virtual-time-budget=3000"
        home = f"--user-data-dir={both[0] / 'profile'}"
        shown = subprocess.check_output([BROWSER, *flags, home, url], text=True)
    notebook = page[page.rindex('id="notebook-container"') : page.rindex("</main>")]
    assert HOSTILE.split("\n")[0] in Markup(notebook).text.replace("\u200b", "")
    assert acts(notebook, "button", "textarea", "input") == []
    assert f"<title>{NAME}</title>" in shown
    assert f'src="{CANARY}' not in shown


def test_nothing_is_graded_without_a_sandbox(tmp_path):
    make_course(tmp_path, first=small(), second=small())
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    nbgrader(tmp_path, "generate_assignment", NAME, "--force")
    earlier = tmp_path / "autograded" / "first" / NAME / f"{NAME}.ipynb"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("what an earlier run made")
    call = f"print(api.autograde({NAME!r}, '*')['log'])\n"
    jailless = (
        "from attncourse.grading.jail import layers\n"
        "from attncourse.grading.nbgrader import steps\n"
        "lost = layers.Layer('own world', False, True, 'not here', 'switch it on')\n"
        "steps.missing_required_layers = lambda: [lost]\n"
    )
    said = with_api(tmp_path, jailless + call)
    (line,) = [line for line in said.splitlines() if line.startswith("[ERROR]")]
    assert line.startswith("[ERROR] grading stopped: no jail: own world: not here; switch it on")
    assert "unsafe_no_sandbox" in line
    assert earlier.read_text() == "what an earlier run made"
    assert rows(tmp_path, GRADES) == []
    refuse = (
        "from attncourse.grading.errors import UserError\n"
        "def grade(*arguments, sandbox=True, **options):\n"
        "    raise UserError(f'sandbox={sandbox}: no room')\n"
        "steps.grade_submission = grade\n"
    )
    unsafe = "config.JudgeExporter.unsafe_no_sandbox = True\napi = NbGraderAPI(config=config)\n"
    said = with_api(tmp_path, jailless + unsafe + refuse + call)  # as any other refusal would
    lines = [line for line in said.splitlines() if line.startswith("[ERROR]")]
    assert lines == ["[ERROR] grading stopped: sandbox=False: no room"]
    assert "Traceback" not in said
    assert [row for row in rows(tmp_path, GRADES) if row[2] is not None] == []


def test_cells_new_to_the_gradebook_are_entered_and_told(tmp_path):
    make_course(tmp_path, first=small())
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    nbgrader(tmp_path, "generate_assignment", NAME, "--force")
    changed = json.loads(small())
    changed["cells"].append(json.loads(json.dumps(TESTS[1]).replace("points_add", "points_new")))
    (tmp_path / "solutions" / NAME / f"{NAME}.ipynb").write_text(json.dumps(changed))
    said = nbgrader(tmp_path, "autograde", NAME)
    assert "points_new is new, 2 points" in said
    assert ("first", "points_new", 2.0) in [row[:3] for row in rows(tmp_path, GRADES)]
