"""nbgrader itself, with this course's configuration, through its own command line."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_course import NAME, STUB, make_course, small

from attncourse.grading.course import find_assignment
from attncourse.grading.gradebook import record_assignment
from attncourse.grading.judge import grade

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow


def nbgrader(course: Path, *arguments: str) -> str:
    """What an nbgrader command says; it has to succeed."""
    here = str(Path(sys.executable).parent)  # where `nbgrader` and `alembic` are
    environment = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONWARNINGS"] = "ignore"  # nbgrader's own
    done = subprocess.run(
        ["nbgrader", *arguments], cwd=course, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def exported(course: Path) -> dict[str, tuple[float, float]]:
    """Each student's (score, maximum) in nbgrader's export."""
    nbgrader(course, "export")
    with (course / "grades.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    return {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in rows}


def submit(course: Path, student: str, data: bytes) -> None:
    place = course / "submitted" / student / NAME
    place.mkdir(parents=True)
    (place / f"{NAME}.ipynb").write_bytes(data)


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course released by nbgrader, with four submissions."""
    folder = make_course(tmp_path_factory.mktemp("course"))
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    (folder / "solutions" / NAME / f"{NAME}.py").write_text("# the answers\n")
    nbgrader(folder, "generate_assignment", NAME)
    submit(folder, "solved", small())
    submit(folder, "released", (folder / "exercises" / NAME / f"{NAME}.ipynb").read_bytes())
    submit(folder, "partly", small(add="def add(a, b): return 0"))
    submit(folder, "half", small(twice=STUB))
    return folder


EXPECTED = {"solved": (7, 7), "released": (0, 7), "partly": (5, 7), "half": (3, 7)}


def test_the_release_holds_the_notebook_alone_without_answers(course):
    place = course / "exercises" / NAME
    assert [path.name for path in place.iterdir()] == [f"{NAME}.ipynb"]
    text = (place / f"{NAME}.ipynb").read_text()
    assert "raise NotImplementedError()" in text
    for secret in ("return a + b", "add(5, 6)", "HIDDEN", "BEGIN"):
        assert secret not in text


def test_attncourse_and_nbgrader_give_the_same_grades_in_one_gradebook(course):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "attncourse.grading.cli", "grade", NAME],
        cwd=course,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert exported(course) == EXPECTED
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
    assert exported(course) == EXPECTED
    nbgrader(course, "generate_feedback", NAME, "--force")
    page = (course / "feedback" / "solved" / NAME / f"{NAME}.html").read_text()
    assert "points_add" in page
    assert "add(5, 6)" not in page


CHAPTERS = sorted(path.name for path in (ROOT / "solutions").iterdir() if path.is_dir())


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_solved_chapters_earn_full_marks_and_released_ones_zero_both_ways(tmp_path, chapter):
    notebooks = {
        student: (ROOT / part / chapter / f"{chapter}.ipynb").read_bytes()
        for student, part in (("released", "exercises"), ("solved", "solutions"))
    }
    for place, data in (
        (tmp_path / "solutions" / chapter, notebooks["solved"]),
        *((tmp_path / "submitted" / s / chapter, data) for s, data in notebooks.items()),
    ):
        place.mkdir(parents=True)
        (place / f"{chapter}.ipynb").write_bytes(data)
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    assignment = find_assignment(tmp_path, chapter)
    most = assignment.maximum
    reports = {student: grade(data, assignment) for student, data in notebooks.items()}
    assert {s: report.points for s, report in reports.items()} == {"released": 0, "solved": most}
    assert reports["solved"].notes == ()
    record_assignment(tmp_path, chapter)
    nbgrader(tmp_path, "autograde", chapter)
    assert exported(tmp_path) == {"released": (0, most), "solved": (most, most)}


def formgrader(course: Path) -> dict[str, tuple[bool, float, float]]:
    """What nbgrader's formgrader lists: whether a student is graded, the score, the maximum."""
    look = (
        "import json, os\n"
        "from nbgrader.apps import NbGraderAPI\n"
        "from traitlets.config import Config, PyFileConfigLoader\n"
        "loader = PyFileConfigLoader('nbgrader_config.py', path=os.getcwd())\n"
        "config = Config(loader.load_config())\n"
        "config.CourseDirectory.root = os.getcwd()\n"
        f"rows = NbGraderAPI(config=config).get_submissions({NAME!r})\n"
        "keys = ('autograded', 'score', 'max_score')\n"
        "print(json.dumps({r['student']: [r[k] for k in keys] for r in rows}))\n"
    )
    here = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=course, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return {student: tuple(row) for student, row in json.loads(done.stdout).items()}
