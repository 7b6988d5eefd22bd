"""The commands ``solution``, ``release --all`` and ``--version``."""

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


def text_of_notebook(notebook: dict) -> str:
    return "\n".join("".join(cell["source"]) for cell in notebook["cells"])


def test_a_solution_has_answers_and_no_hidden_tests():
    solved = json.loads(small())
    shown = without_nbgrader_marks(solved)
    assert "return a + b" in text_of_notebook(shown)
    assert "add(1, 2) == limit" in text_of_notebook(shown)
    assert "add(5, 6)" not in text_of_notebook(shown)
    assert "# More tests." not in text_of_notebook(
        shown
    )  # the cell has only its comment left, so it is removed
    assert not [marker for marker in MARKERS if marker in text_of_notebook(shown)]
    assert not any("nbgrader" in cell["metadata"] for cell in shown["cells"])
    with_hidden_tests = without_nbgrader_marks(solved, hidden=True)
    assert "assert add(5, 6) == 11" in text_of_notebook(with_hidden_tests)
    assert not [marker for marker in MARKERS if marker in text_of_notebook(with_hidden_tests)]
    assert solved == json.loads(small())


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_chapters_solution_holds_all_answers(name):
    solved = json.loads((ROOT / "solutions" / name / f"{name}.ipynb").read_text())
    shown = text_of_notebook(without_nbgrader_marks(solved))
    assert not [marker for marker in MARKERS if marker in shown]
    for cell in solved["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            answer_lines = [x for x in cell["source"] if "SOLUTION" not in x and x.strip()]
            assert all(line.rstrip("\n") in shown for line in answer_lines)
    hidden = [c for c in solved["cells"] if c["id"].startswith("hidden_")]
    hidden_lines = {x.strip() for c in hidden for x in c["source"] if x.startswith("assert ")}
    assert hidden_lines
    assert not [line for line in hidden_lines if line in shown]


def test_solution_writes_a_notebook_and_overwrites_none(tmp_path):
    course = make_course(tmp_path)
    process = run("solution", NAME, cwd=course)
    assert process.stdout == f"reports/{NAME}/{NAME}_solution.ipynb written\n"
    written = (course / "reports" / NAME / f"{NAME}_solution.ipynb").read_bytes()
    assert any("return 2 * a" in cell.source for cell in read_cells(written))
    other_path = tmp_path / "mine.ipynb"
    assert write_solution(course, NAME, other_path, hidden=True).read_bytes() != written
    with pytest.raises(UserError, match="there already: move it away"):
        write_solution(course, NAME, other_path)
    with pytest.raises(UserError, match="is a folder"):
        write_solution(course, NAME, tmp_path)


def test_release_all_releases_every_assignment(tmp_path):
    course = make_course(tmp_path)
    other_path = course / "solutions" / "02_more" / "02_more.ipynb"
    other_path.parent.mkdir()
    other_path.write_bytes(small())
    (course / "solutions" / "drafts").mkdir()
    assert releasable_assignments(course) == [NAME, "02_more"]
    process = run("release", "--all", cwd=course)
    assert (process.returncode, process.stderr) == (0, "")
    names = (NAME, "02_more")
    assert process.stdout.splitlines() == [f"exercises/{n}/{n}.ipynb written" for n in names]
    assert "YOUR CODE HERE" in (course / "exercises" / "02_more" / "02_more.ipynb").read_text()
    refuses(run("release", cwd=course), "name one assignment, or all of them: --all")
    with pytest.raises(UserError, match="no assignment in"):
        releasable_assignments(tmp_path / "none")


def test_version_prints_the_packages_version():
    process = run("--version", cwd=ROOT)
    assert (process.returncode, process.stdout) == (0, f"attncourse {version('attncourse')}\n")
