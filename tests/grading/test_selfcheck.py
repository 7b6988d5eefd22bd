"""``attncourse check`` names each exercise of a student's own file, and what is missing."""

import json
import re
from pathlib import Path

import pytest

from attncourse.grading.judge.judge import libraries_imported
from attncourse.grading.judge.prestart import likely_libraries
from attncourse.grading.limits import Limits
from attncourse.grading.results.terminal import own_verdicts
from attncourse.grading.student.progress import states_of
from attncourse.grading.student.selfcheck import (
    chapter_of,
    check_cells,
    check_file,
    note_with_names,
    own_assignment,
    page_of,
    read_own_notebook,
)
from attncourse.grading.submission.notebook import Cell
from helpers.command_line import refuses
from helpers.dedented_text import dedented
from helpers.forked_commands import run
from helpers.project import ROOT
from helpers.released_assignment import MIX, released

PROJECT = "def project(x, weight):\n    return x @ weight"
HEAD_WITH_INIT = dedented("""
    class AttentionHead(nn.Module):
        def __init__(self, *sizes, **options):
    {}
""")
LIMITS = Limits.of(60)
CELLS = (
    Cell("import numpy as np"),
    Cell("def mix(A, X): ...", grade_id="mix", solution=True),
    Cell("mix(1, 2)"),
    Cell("check('mixing.mix', mix)", grade_id="check_mix", locked=True),
)


@pytest.fixture(scope="module", params=["", "        raise NotImplementedError()"])
def report(request, tmp_path_factory):
    """Return the report on a notebook of chapter 5 with one answer and an unwritten class."""
    answers = {"project": PROJECT}
    answers |= {"AttentionHead": HEAD_WITH_INIT.format(request.param)} if request.param else {}
    path = released(tmp_path_factory.mktemp("work"), "05_kqv", **answers)
    data, cells = read_own_notebook(path)
    return check_cells(path, data, cells, LIMITS), cells


def test_a_missing_answer_is_reported_as_not_attempted(report):
    own_report, cells = report
    assert [c.message for c in own_report.cells.values()] == ["", *["not attempted"] * 3]
    assert list(states_of(own_report, cells).values()) == ["done", *["open"] * 3]
    names = "attention_scores, scaled_dot_product_attention, AttentionHead"
    assert [set(note.split(": ")[1].split(", ")) for note in own_report.notes] == [
        set(names.split(", "))
    ]
    shown = own_verdicts(own_report)
    assert shown.count("not attempted") == 3
    assert "✗" not in shown
    assert "NameError" not in shown
    assert shown.endswith(
        "total: 7 of 39 points\n"
        "4 more points for tests that are run only when your notebook is graded."
    )


def test_a_cell_is_named_by_its_exercise():
    assert note_with_names("cell 2: NameError", CELLS) == "the cell of mix: NameError"
    assert note_with_names("cell 3 could not be run", CELLS) == "a cell below mix could not be run"
    assert note_with_names("cell 1: no", CELLS) == "a cell above the exercises: no"
    assert note_with_names("cell mix: no", CELLS) == "cell mix: no"


def test_a_chapter_is_known_by_exercises_or_checks():
    assert chapter_of(CELLS, "homework") == "mixing"
    assert chapter_of((Cell("check('kqv.project', project)"),), "homework") == "kqv"
    assert chapter_of((Cell("1"),), "my 02_mixing (2)") == "mixing"


def test_a_pages_notebook_is_recognised(tmp_path):
    page = ROOT / "book/05_kqv.ipynb"
    url, folder, stem = page_of(read_own_notebook(page)[1])
    assert (folder, stem) == ("05_kqv", "kqv")
    assert url.startswith("https://colab.research.google.com/")
    assert page_of(read_own_notebook(released(tmp_path, "05_kqv"))[1]) is None
    assert page_of(CELLS) is None
    assert page_of(()) is None
    words = ("chapter 5's page", "exercises/05_kqv/05_kqv.ipynb")
    refuses(run("check", page), *words)


def test_an_answer_that_fails_in_its_cell_is_named(tmp_path):
    content = json.loads(released(tmp_path, "02_mixing", mix=MIX).read_text())
    number = next(n for n, c in enumerate(content["cells"]) if c["id"] == "check_mix")
    content["cells"][number - 1]["source"] = "1 / 0"
    path = Path(tmp_path, "02_mixing.ipynb")
    path.write_text(json.dumps(content))
    assert check_file(path, LIMITS).notes[0].startswith("a cell below mix: ZeroDivisionError")


def test_a_note_does_not_repeat_or_follow_a_broken_cell(tmp_path):
    answers = {"mix": "def mix(A, X)\n    return A @ X", "normalize_rows": "other = 1"}
    report = check_file(released(tmp_path, "02_mixing", **answers), LIMITS)
    shown = own_verdicts(report)
    assert "✗ mixing.mix: 0 of 7 points\n  its cell ended in SyntaxError" in shown
    assert re.search(r"✗ mixing.normalize_rows: .*\n  nothing is called normalize_rows", shown)
    assert "note:" not in shown
    assert "NameError" not in shown


@pytest.mark.parametrize(
    ("answer", "state"), [("", "is not answered yet"), ("A pronoun looks.", "is answered")]
)
def test_a_question_for_a_person_is_not_forgotten(tmp_path, answer, state):
    path = released(tmp_path, "05_kqv")
    path.write_text(path.read_text().replace("YOUR ANSWER HERE", answer or "YOUR ANSWER HERE"))
    note = f"explain_views {state}: a person gives its 4 points"
    assert f"note: {note}\n" in own_verdicts(check_file(path, LIMITS))


def test_points_are_the_same_without_an_explanation(tmp_path):
    wrong = "def project(x, weight):\n    return x @ weight.mT"
    path = released(tmp_path, "05_kqv", project=wrong)
    data, cells = read_own_notebook(path)
    explained, brief = (
        check_cells(path, data, cells, LIMITS, explain) for explain in (True, False)
    )
    mistakes = [[verdict["mistake"] for verdict in r.verdicts] for r in (explained, brief)]
    assert any(mistakes[0])
    assert not any(mistakes[1])
    assert states_of(explained, cells) == states_of(brief, cells)
    assert list(states_of(brief, cells).values()) == ["tried", *["open"] * 3]
    assert [c.points for c in explained.cells.values()] == [c.points for c in brief.cells.values()]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "solutions").glob("*/*.ipynb")), ids=lambda p: p.stem
)
def test_the_lane_started_ahead_has_the_needed_libraries(path):
    data, cells = read_own_notebook(path)
    assert likely_libraries(data) == libraries_imported(own_assignment(cells, path.stem))
