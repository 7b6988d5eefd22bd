"""The solved notebook for after the deadline, releasing everything, the version."""

import json
from importlib.metadata import version

import pytest

from attncourse.grading.course.folders import releasable_assignments
from attncourse.grading.course.solution import without_nbgrader_marks, write_solution
from attncourse.grading.errors import UserError
from attncourse.grading.submission.notebook import read_cells
from helpers.project import ROOT
from helpers.small_class import NAME, refuses, run
from helpers.small_course import make_course, small

CHAPTERS = sorted(path.name for path in (ROOT / "solutions").glob("[0-9][0-9]_*"))
MARKERS = ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS")


def text(notebook: dict) -> str:
    return "\n".join("".join(cell["source"]) for cell in notebook["cells"])


def test_answers_are_in_hidden_tests_out_and_no_marks_are_left():
    solved = json.loads(small())
    shown = without_nbgrader_marks(solved)
    assert "return a + b" in text(shown)
    assert "add(1, 2) == limit" in text(shown)
    assert "add(5, 6)" not in text(shown)
    assert "# More tests." not in text(shown)  # a cell of which nothing is left but its comment
    assert not [marker for marker in MARKERS if marker in text(shown)]
    assert not any("nbgrader" in cell["metadata"] for cell in shown["cells"])
    whole = without_nbgrader_marks(solved, hidden=True)
    assert "assert add(5, 6) == 11" in text(whole)
    assert not [marker for marker in MARKERS if marker in text(whole)]
    assert solved == json.loads(small())


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_chapters_solution_holds_all_answers(name):
    solved = json.loads((ROOT / "solutions" / name / f"{name}.ipynb").read_text())
    shown = text(without_nbgrader_marks(solved))
    assert not [marker for marker in MARKERS if marker in shown]
    for cell in solved["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            kept = [x for x in cell["source"] if "SOLUTION" not in x and x.strip()]
            assert all(line.rstrip("\n") in shown for line in kept)
    hidden = [c for c in solved["cells"] if c["id"].startswith("hidden_")]
    secret = {x.strip() for c in hidden for x in c["source"] if x.startswith("assert ")}
    assert secret
    assert not [line for line in secret if line in shown]


def test_the_command_writes_a_notebook_and_overwrites_none(tmp_path):
    course = make_course(tmp_path)
    done = run("solution", NAME, cwd=course)
    assert done.stdout == f"reports/{NAME}/{NAME}_solution.ipynb written\n"
    written = (course / "reports" / NAME / f"{NAME}_solution.ipynb").read_bytes()
    assert any("return 2 * a" in cell.source for cell in read_cells(written))
    mine = tmp_path / "mine.ipynb"
    assert write_solution(course, NAME, mine, hidden=True).read_bytes() != written
    with pytest.raises(UserError, match="there already: move it away"):
        write_solution(course, NAME, mine)
    with pytest.raises(UserError, match="is a folder"):
        write_solution(course, NAME, tmp_path)


def test_everything_can_be_released_at_once(tmp_path):
    course = make_course(tmp_path)
    other = course / "solutions" / "02_more" / "02_more.ipynb"
    other.parent.mkdir()
    other.write_bytes(small())
    (course / "solutions" / "drafts").mkdir()
    assert releasable_assignments(course) == [NAME, "02_more"]
    done = run("release", "--all", cwd=course)
    assert (done.returncode, done.stderr) == (0, "")
    names = (NAME, "02_more")
    assert done.stdout.splitlines() == [f"exercises/{n}/{n}.ipynb written" for n in names]
    assert "YOUR CODE HERE" in (course / "exercises" / "02_more" / "02_more.ipynb").read_text()
    refuses(run("release", cwd=course), "name one assignment, or all of them: --all")
    with pytest.raises(UserError, match="no assignment in"):
        releasable_assignments(tmp_path / "none")


def test_the_version_is_the_packages():
    done = run("--version", cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, f"attncourse {version('attncourse')}\n")
