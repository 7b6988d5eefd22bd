"""Feedback and graded notebooks show the results, and nothing in them runs or loads."""

import json
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nbformat
import pytest
from chromium import ABSENT, BROWSER, FLAGS
from hypothesis import given, settings
from hypothesis import strategies as st
from nbconvert.filters.markdown_mistune import InvalidNotebook
from nbconvert.filters.markdown_mistune import markdown2html_mistune as stock_html
from nbgrader.utils import determine_grade, is_grade

from attncourse.grading import harmless
from attncourse.grading.graded_notebook import (
    LONGEST,
    ROOM,
    autograded_notebook,
    cell_to_json,
    verdict_html,
)
from attncourse.grading.nbgrader.feedback import CleanOutputs, HideTests
from attncourse.grading.nbgrader.markdown import clean_html, mathml, page_markdown
from attncourse.grading.report import CellResult, Report
from attncourse.grading.submission.notebook import Assignment, Cell, read_cells
from attncourse.grading.submission.parts import as_released
from helpers.dedented_text import dedented
from helpers.html_markup import Markup, acts
from helpers.project import ROOT
from helpers.small_course import NAME, STUB, cell, graded, notebook, small, solution

CANARY = "http://canary.invalid/"

# Stock nbgrader shows most of these as something that runs, loads or links elsewhere.
HOSTILE = (
    "<script>attack()</script>",
    "<img src=x onerror=attack()>",
    f"<img src={CANARY}pixel>",
    f"![a picture]({CANARY}pixel)",
    f"![a picture][there]\n\n[there]: {CANARY}pixel",
    "![a picture](attachment:x.png)",
    "[click](javascript:attack())",
    "[click](JaVaScRiPt:attack())",
    "[click](java\tscript:attack())",
    "[click](&#106;avascript:attack())",
    "[click](data:text/html,<script>attack()</script>)",
    "[click](<javascript:attack()>)",
    "[click][there]\n\n[there]: javascript:attack()",
    "[click][there]\n\n[there]:\n  javascript:attack()",
    "[click](../files/page.html)",
    '[click](https://example.org/"onmouseover="attack())',
    '[click](https://example.org "title" onclick="attack()")',
    "<javascript:attack()>",
    "<https://example.org/?<script>attack()</script>>",
    f"<iframe src={CANARY}></iframe>",
    f"<style>@import '{CANARY}'; body {{ display: none }}</style>",
    f"<link rel=stylesheet href={CANARY}>",
    f'<meta http-equiv=refresh content="0;url={CANARY}">',
    f"<form action={CANARY}><button>Log in</button></form>",
    "<svg/onload=attack()>",
    "<svg><animate onbegin=attack() attributeName=x></svg>",
    "<math><a href=javascript:attack()>x</a></math>",
    "<math><mtext><table><mglyph><style><img src=x onerror=attack()></style></table></mtext>",
    f"<base href={CANARY}>",
    f"<object data={CANARY}></object><embed src={CANARY}>",
    f"<video src={CANARY} autoplay></video>",
    "<details open ontoggle=attack()>",
    "<div onclick=attack()>\n\ntext\n\n</div>",
    "<!--[if gte IE 4]><script>attack()</script><![endif]-->",
    "<?xml <script>attack()</script>?>",
    "```mermaid\ngraph TD\n</pre><script>attack()</script>\n```",
    "`<script>attack()</script>`",
    "    <script>attack()</script>",
    "$\\href{javascript:attack()}{x}$ $<script>attack()</script>$",
    "\\begin{equation}<img src=x onerror=attack()>\\end{equation}",
    "| a | b |\n|---|---|\n| <img src=x onerror=attack()> | [x](javascript:attack()) |",
    "# <img src=x onerror=attack()>",
    "&lt;script&gt;attack()&lt;/script&gt; &#60;script>attack()&#60;/script>",
    "<scr\x00ipt>attack()</script>",
    "<\x1b[31mscript>attack()</script>",
    "x <!-- ",
    "</div></div></body><script>attack()</script>",
)
ORDINARY = (
    "# A heading\n\nSome *text*, **bold**, `code`, a list:\n\n- one\n- two\n",
    "a < b, 1<2, a > b, x & y, x &amp; y, 2 * 3 ! [not a link]",
    "> quoted\n> text\n\n1. first\n2. second",
    "[the book](https://example.org/a?b=1&c=2#d) and [mail](mailto:someone@example.org)",
    "[the book][here]\n\n[here]: https://example.org",
    "| a | b |\n| --- | --- |\n| 1 | 2 |",
    "$$a_j = \\frac{1}{2}$$ and $x^2 < 3$",
    dedented("""
        ```python
        print(1 < 2)
        ```

        ---

        x[1] is x [2]
    """),
)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_is_shown_and_does_nothing(text):
    assert acts(stock_html(harmless.defused_markdown(text))) == []
    assert acts(page_markdown(text)) == []  # also where the text was not defused before
    shown_text = harmless.defused_markdown(text).replace(harmless.ZERO_WIDTH_SPACE, "")
    assert shown_text == harmless.made_visible(text)  # nothing of it is lost


def test_stock_nbgrader_lets_most_hostile_texts_act():
    """Most of the texts above would act without our cleaning, so the tests show something."""

    def fails_or_acts(text: str) -> bool:
        try:
            return bool(acts(stock_html(text)))
        except InvalidNotebook:  # and there would be no feedback for anything
            return True

    harmless_texts = [text for text in HOSTILE if not fails_or_acts(text)]
    assert len(harmless_texts) <= len(HOSTILE) // 3, harmless_texts


@given(st.lists(st.sampled_from([*HOSTILE, *ORDINARY, "\n\n", "`", "$", "[", "](", "<", "\\"])))
@settings(max_examples=150, deadline=None)
def test_mixed_pieces_of_markdown_do_nothing(pieces):
    text = "".join(pieces)
    assert acts(stock_html(harmless.defused_markdown(text))) == []
    assert acts(page_markdown(text)) == []


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_markdown_is_untouched(text):
    assert harmless.defused_markdown(text) == text


def test_messages_show_control_characters_and_no_folders():
    error = "No such file: '/home/teacher/course/.venv/lib/x.py' at C:\\Users\\teacher\\x.py"
    assert harmless.harmless_message(error) == "No such file: '…/x.py' at …/x.py"
    assert harmless.harmless_message("a/b 1 / 2 https://example.org/a/b x=/y") == (
        "a/b 1 / 2 https://example.org/a/b x=/y"
    )
    assert (
        harmless.harmless_message("\x1b[31mred\x00\x9b\ud800\u202e\r\nnext") == "␛[31mred␀���\nnext"
    )


# --- the graded notebook ---------------------------------------------------------------------

WRITTEN_ANSWER = cell("The sum.", "written", code=False, grade=True, solution=True, points=3)
PLOT_ANSWER = cell(
    "### BEGIN SOLUTION\nplot()\n### END SOLUTION", "plot", grade=True, solution=True
)
PLOT_ANSWER["metadata"]["nbgrader"]["points"] = 2
TASK = cell("Do it.", "task", code=False, task=True, points=5, locked=True)
READ_ONLY_CELL = cell("Read this.", "read", code=False, locked=True)
ADD_ANSWER = solution(
    "add",
    dedented("""
        ### BEGIN SOLUTION
        def add(a, b):
            return a + b
        ### END SOLUTION
    """),
)
TESTS = (
    graded("points_add", "2 * (add(1, 2) == 3)", 2),
    graded(
        "hidden_add",
        dedented("""
            # More.
            ### BEGIN HIDDEN TESTS
            assert add(5, 6) == 11, 'secret'
            ### END HIDDEN TESTS
        """),
        1,
    ),
)


def assignment_of_cells(*cells: dict) -> Assignment:
    return Assignment(
        NAME,
        read_cells(
            notebook(*(cells or (ADD_ANSWER, WRITTEN_ANSWER, PLOT_ANSWER, TASK, READ_ONLY_CELL)))
        ),
    )


ALL_CELLS = (READ_ONLY_CELL, ADD_ANSWER, WRITTEN_ANSWER, PLOT_ANSWER, TASK, *TESTS)


def report_of(task: Assignment, points: float = 0.0, **more) -> Report:
    """Return a graded report with at most this many points in each test."""
    cells = {g: CellResult(min(points, c.points), c.points, "") for g, c in task.graded.items()}
    return Report("student", NAME, "graded", cells, **more)


def graded_cells_by_id(text: str) -> dict[str, dict]:
    """Return the cells with a grade id in a graded notebook, and assert that each occurs once."""
    content = nbformat.reads(text, as_version=4)
    nbformat.validate(content)
    graded_cells = [c for c in content.cells if "nbgrader" in c.metadata]
    cells = {c.metadata.nbgrader.grade_id: c for c in graded_cells}
    assert len(cells) == len(graded_cells)
    return cells


def scores_by_nbgrader(text: str) -> dict[str, float | None]:
    """Return the points that nbgrader reads from a graded notebook."""
    return {g: determine_grade(c)[0] for g, c in graded_cells_by_id(text).items() if is_grade(c)}


@given(st.floats(0, 2), st.floats(0, 1))
@settings(deadline=None)
def test_nbgrader_reads_the_points_of_the_report(first, second):
    task = assignment_of_cells(ADD_ANSWER, *TESTS)
    cells = {"points_add": CellResult(first, 2.0, "x"), "hidden_add": CellResult(second, 1.0, "y")}
    text = autograded_notebook(notebook(ADD_ANSWER), task, Report("s", NAME, "graded", cells))
    assert scores_by_nbgrader(text) == {"points_add": first, "hidden_add": second}


def test_a_test_missing_from_the_report_gets_no_points():
    text = autograded_notebook(
        small(), assignment_of_cells(ADD_ANSWER, *TESTS), Report("s", NAME, "graded", {})
    )
    assert scores_by_nbgrader(text) == {"points_add": 0, "hidden_add": 0}


def test_a_graded_notebook_takes_only_text_from_a_submission():
    task = assignment_of_cells(*ALL_CELLS)
    forged = json.loads(notebook(*ALL_CELLS))
    forged_text = "forged-by-the-student"
    forged["metadata"] = {
        "kernelspec": {"name": forged_text, "display_name": forged_text},
        "widgets": {forged_text: 1},
    }
    for raw_cell in forged["cells"]:
        raw_cell["id"] = forged_text[:10] + str(id(raw_cell))
        raw_cell["attachments"] = {"x.png": {"image/png": forged_text}}
        raw_cell["metadata"] |= {
            "tags": [forged_text],
            "magics_language": forged_text,
            "editable": forged_text,
        }
        raw_cell["metadata"]["nbgrader"] |= {
            "points": 99,
            "comment": forged_text,
            "checksum": forged_text,
        }
        if raw_cell["cell_type"] == "code":
            raw_cell["outputs"] = [{"output_type": "stream", "name": "stderr", "text": forged_text}]
    text = autograded_notebook(json.dumps(forged).encode(), task, report_of(task, 1.5))
    assert forged_text not in text
    assert '"points": 99' not in text
    points = {g: c.metadata.nbgrader.get("points") for g, c in graded_cells_by_id(text).items()}
    assert points == {
        **{"points_add": 2, "hidden_add": 1, "written": 3, "plot": 2, "task": 5},
        **{"add": None, "read": None},
    }
    assert text == nbformat.writes(nbformat.reads(text, as_version=4)) + "\n"


def test_cells_that_claim_to_be_others_are_text():
    """A second copy of a test, an answer marked as a test, a test marked as an answer."""
    task = assignment_of_cells(ADD_ANSWER, *TESTS)
    forged = (
        cell("99", "points_add", grade=True, locked=True, points=2),
        cell("# mine", "points_add", code=False, grade=True, solution=True, points=2),
        cell("100", "hidden_add", grade=True, solution=True, points=1),
        cell("x = 1", "unknown", grade=True, solution=True, points=50),
        *(solution("add", f"def add(a, b): return {n}") for n in range(2)),
    )
    text = autograded_notebook(notebook(*forged), task, report_of(task, 1.0))
    assert scores_by_nbgrader(text) == {"points_add": 1, "hidden_add": 1}
    assert set(graded_cells_by_id(text)) == {"points_add", "hidden_add", "add"}
    assert graded_cells_by_id(text)["add"].source.endswith("return 0")


def test_manually_graded_cells_are_left_for_a_person():
    task = assignment_of_cells(*ALL_CELLS)
    answers = (
        cell("It is 3 &lt;b> <b>so</b>.", "written", code=False, grade=True, solution=True),
        cell("plot(1)", "plot", grade=True, solution=True),
        cell("Done.", "task", code=False, task=True),
        cell("I have changed this.", "read", code=False, locked=True),
    )
    cells = graded_cells_by_id(autograded_notebook(notebook(*answers), task, report_of(task)))
    assert (
        scores_by_nbgrader(autograded_notebook(notebook(*answers), task, report_of(task)))[
            "written"
        ]
        is None
    )
    assert determine_grade(cells["plot"])[0] is None
    assert (
        cells["written"].source.replace(harmless.ZERO_WIDTH_SPACE, "")
        == "It is 3 &lt;b> <b>so</b>."
    )
    assert cells["task"].source == "Done."
    assert cells["task"].metadata.nbgrader.task is True
    assert cells["read"].source == "Read this."


@pytest.mark.parametrize(
    ("written", "plot"),
    [("YOUR ANSWER HERE", STUB), ("", ""), (" YOUR ANSWER HERE\n", STUB + "\n")],
)
def test_an_unchanged_answer_gets_no_points(written, plot):
    task = assignment_of_cells(*ALL_CELLS)
    released_answers = (
        cell(written, "written", code=False, grade=True, solution=True),
        cell(plot, "plot", grade=True, solution=True),
    )
    points = scores_by_nbgrader(
        autograded_notebook(notebook(*released_answers), task, report_of(task))
    )
    assert (points["written"], points["plot"]) == (0, 0)


@pytest.mark.parametrize("data", [b"", b"{", notebook(), notebook(cell("x", code=False))])
def test_a_missing_manual_answer_is_left_for_a_person(data):
    task = assignment_of_cells(*ALL_CELLS)
    points = scores_by_nbgrader(autograded_notebook(data, task, report_of(task)))
    assert points == {"points_add": 0, "hidden_add": 0, "written": None, "plot": None}


def test_a_graded_notebook_holds_no_reference_answer():
    task = assignment_of_cells(*ALL_CELLS)
    for data in (b"", notebook(), notebook(cell("", "add", solution=True))):
        text = autograded_notebook(data, task, report_of(task))
        assert "return a + b" not in text
        assert "The sum." not in text
        assert "SOLUTION" not in text


def test_hidden_tests_show_only_their_message():
    """Only the message of a hidden test is shown: a verdict could quote the test or its values."""
    task = assignment_of_cells(*ALL_CELLS)
    message = "a hidden test failed: the sum of two numbers"
    cells = {"points_add": CellResult(0, 2, "open"), "hidden_add": CellResult(0, 1, message)}
    verdict = {"cell": "hidden_add", "target": "kqv.add", "text": "secret", "criteria": []}
    report = Report("s", NAME, "graded", cells, verdicts=(verdict,), attention=("suspicious",))
    outputs = {
        g: str(c.get("outputs"))
        for g, c in graded_cells_by_id(autograded_notebook(b"", task, report)).items()
    }
    assert "secret" not in str(outputs)
    assert message in outputs["hidden_add"]
    assert "open" in outputs["points_add"]
    assert "suspicious" not in autograded_notebook(b"", task, report)


def test_notes_are_escaped():
    task = assignment_of_cells(*ALL_CELLS)
    notes = tuple(f"cell 3: ValueError: {text}\n\n{text}" for text in HOSTILE)
    text = autograded_notebook(b"", task, report_of(task, notes=notes))
    first = nbformat.reads(text, as_version=4).cells[0]
    assert acts(stock_html(first.source)) == []
    assert first.source.count("<li>") == len(HOSTILE)
    assert "/home/teacher" not in autograded_notebook(
        b"", task, report_of(task, notes=("FileNotFoundError: /home/teacher/x",))
    )


@pytest.mark.parametrize("text", ["x", "\ud800", "a\x00b", "𝔸 é 😀"])
def test_any_text_can_be_written_as_utf_8(text):
    task = assignment_of_cells(*ALL_CELLS)
    data = json.loads(notebook(cell(f"# {text}"), cell(text, code=False)))
    text_of_notebook = autograded_notebook(
        json.dumps(data).encode(), task, report_of(task, notes=(text,))
    )
    graded_cells_by_id(text_of_notebook.encode("utf-8").decode("utf-8"))


def test_long_text_is_shortened():
    task = assignment_of_cells(*ALL_CELLS)
    data = notebook(*(cell(f"{n} " + "a " * LONGEST, code=False) for n in range(50)))
    text = autograded_notebook(data, task, report_of(task))
    assert len(text) < 2 * ROOM
    assert re.search(r"… and \d+ more characters", text)


def test_a_verdict_looks_as_it_does_in_a_notebook():
    from attncourse.checks import examine
    from attncourse.grading.judge.outcomes import describe_verdict

    verdict = examine("kqv.attention_scores", lambda query, key: query @ key.T, seed=1)
    reported = describe_verdict(verdict, "points_attention_scores")
    assert verdict._repr_html_() in verdict_html(reported)
    forged_verdict = {**reported, "mistake": "<script>", "text": "<script>", "target": "<script>.x"}
    forged_verdict["criteria"] = [
        {**c, "message": "<script>", "name": "<script>"} for c in reported["criteria"]
    ]
    assert "<script" not in verdict_html(forged_verdict)
    shown = clean_html(verdict_html(reported), styles=True)
    assert Markup(shown).tags == Markup(verdict_html(reported)).tags


def test_formulas_of_the_exercises_become_mathml():
    number_of_formulas = 0
    for path in ROOT.glob("exercises/*/*.ipynb"):
        for raw_cell in nbformat.read(path, as_version=4).cells:
            html = page_markdown(raw_cell.source) if raw_cell.cell_type == "markdown" else ""
            assert "attncourse-formula" not in html
            number_of_formulas += html.count("<math")
            assert not re.search(r"<(pre|code)>[^<]*\\(frac|sum|exp|text)", html), html
    assert number_of_formulas > 10
    assert mathml("\\nonsense<x>", block=True) == "<pre>\\nonsense&lt;x&gt;</pre>"


def test_outputs_of_another_grader_are_cleaned():
    data = {
        "text/html": "<b>x</b><script>attack()</script><img src=x onerror=attack()>",
        "application/javascript": "attack()",
        "image/svg+xml": "<svg onload=attack()>",
        "text/plain": "x",
    }
    metadata = {"text/html": {"isolated": True}}
    output = nbformat.v4.new_output("display_data", data, metadata=metadata)
    cleaned, _ = CleanOutputs().preprocess_cell(nbformat.v4.new_code_cell(outputs=[output]), {}, 0)
    assert set(cleaned.outputs[0].data) == {"text/html", "text/plain"}
    assert acts(cleaned.outputs[0].data["text/html"]) == []
    assert cleaned.outputs[0].metadata == {}


def test_claimed_hidden_tests_do_not_hide_feedback():
    content = nbformat.from_dict(json.loads(notebook(cell("### BEGIN HIDDEN TESTS"), *TESTS)))
    cleaned, _ = HideTests().preprocess(content, {})
    assert cleaned.cells[0].source == "### BEGIN HIDDEN TESTS"
    assert cleaned.cells[-1].source == "# More."


# --- in a browser -------------------------------------------------------------------------------


class Canary(BaseHTTPRequestHandler):
    """Serve nothing, and record the requested paths."""

    def do_GET(self):
        self.server.requested_paths.append(self.path)
        self.send_response(404)
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def canary():
    """Start a web server on this machine that lists the fetched paths in ``requested_paths``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Canary)
    server.requested_paths = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def dom_in_chromium(page: Path, folder: Path) -> str:
    """Return a page's DOM as Chromium has it after two seconds of virtual time."""
    if BROWSER is None:
        pytest.skip(ABSENT)
    flags = *FLAGS, "--dump-dom", "--virtual-time-budget=2000"
    profile = f"--user-data-dir={folder / 'profile'}"
    process = subprocess.run(
        [BROWSER, *flags, profile, page.as_uri()], capture_output=True, text=True, timeout=60
    )
    assert "</html>" in process.stdout, process.stderr
    return process.stdout


@pytest.mark.slow
def test_nothing_of_a_submission_runs_in_a_browser(tmp_path, canary):
    from attncourse.grading.nbgrader.feedback import FeedbackExporter

    canary_address = f"http://127.0.0.1:{canary.server_port}/"
    texts = [
        text.replace(CANARY, canary_address).replace("attack()", "document.title='hit'")
        for text in HOSTILE
    ]
    stock = tmp_path / "stock.html"
    stock.write_text("<!DOCTYPE html><meta charset=utf-8>" + "\n".join(map(stock_html, texts[:4])))
    assert "<title>hit" in dom_in_chromium(stock, tmp_path)
    assert canary.requested_paths  # the test can see it
    canary.requested_paths.clear()
    task = assignment_of_cells(*ALL_CELLS)
    cells = [
        text_cell
        for text in texts
        for text_cell in (cell(text, code=False), cell(f"x = '''{text}'''"))
    ]
    data = notebook(*cells, cell(texts[0], "written", code=False, grade=True, solution=True))
    text = autograded_notebook(data, task, report_of(task, notes=tuple(texts)))
    our_notebook = nbformat.reads(text, as_version=4)
    stock_notebook = nbformat.reads(data, as_version=4)  # as stock nbgrader would have left it
    for number, content in enumerate((our_notebook, stock_notebook)):
        page = tmp_path / f"page{number}.html"
        scores = {"notebook": NAME, "score": 1, "max_score": 3, "late_penalty": 0}
        resources = {"nbgrader": scores, "inlining": {"css": []}}
        for raw_cell in content.cells:
            raw_cell.metadata.get("nbgrader", {}).update(score=0, points=1)  # as GetGrades does
        page.write_text(FeedbackExporter().from_notebook_node(content, resources)[0])
        shown = dom_in_chromium(page, tmp_path)
        assert f"<title>{NAME}" in shown
        assert "</script" not in shown.lower()
        assert canary.requested_paths == []


# --- what students were given -------------------------------------------------------------------


def released_by_nbgrader(raw_cell: Cell) -> str:
    """Return what nbgrader's release leaves of a cell."""
    from nbformat.notebooknode import from_dict
    from nbgrader.preprocessors import ClearMarkScheme, ClearSolutions

    content = {**cell_to_json(raw_cell), "source": raw_cell.source}
    kernel = {"kernelspec": {"language": "python"}}
    released = from_dict({"cells": [content], "metadata": kernel})
    for step in (ClearSolutions(), ClearMarkScheme()):
        released, _ = step.preprocess(released, {})
    return released.cells[0].source


SOLUTION_REGION = "### BEGIN SOLUTION\n{0}x = 1\n{0}### END SOLUTION"
MARK_SCHEME = "=== BEGIN MARK SCHEME ===\ntwo points\n=== END MARK SCHEME ==="


ANSWERS_WITH_REGIONS = [
    "",
    "x = 1",
    "def f():\n    " + SOLUTION_REGION.format("    ") + "\n    return x\n",
    "def f():\n\t" + SOLUTION_REGION.format("\t"),
    f"{SOLUTION_REGION.format('')}\ny = 2\n\n{SOLUTION_REGION.format('')}",
]
TASKS_WITH_SCHEMES = [
    f"Explain.\n{MARK_SCHEME}",
    f"{MARK_SCHEME}\nExplain.\n",
    f"a\n{MARK_SCHEME}\nb\n{MARK_SCHEME}\n\nc",
]


@pytest.mark.parametrize(
    "raw_cell",
    [
        *(Cell(text, code=True, grade_id="q", solution=True) for text in ANSWERS_WITH_REGIONS),
        *(
            Cell(text, code=False, grade_id="q", solution=True, grade=True)
            for text in ANSWERS_WITH_REGIONS
        ),
        *(Cell(text, code=False, grade_id="q", task=True) for text in TASKS_WITH_SCHEMES),
    ],
)
def test_a_released_stub_agrees_with_nbgraders(raw_cell):
    assert as_released(raw_cell) == released_by_nbgrader(raw_cell)
