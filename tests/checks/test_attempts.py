"""A check in a notebook is about the cell above it: the newest attempt, or nothing."""

import json
import os
import re
import threading
import time

import pytest

from attncourse.checks.reading.cells import TIMEIT_KEEPS_NAMES, skipped_lines_note
from attncourse.checks.showing import spinner
from helpers.student_cells import played

FIRST_CELL = "import math\nimport torch\nfrom attncourse.checks import check, examine, progress"
CHECK_CELL = 'check("kqv.project", project)'
RIGHT_CELL = "def project(x, weight):\n    return x @ weight"
CELL_WITH_SYNTAX_ERROR = f"{RIGHT_CELL})"
OLDER_ANSWER_NOTE = "an older `project` is still in memory, and is not judged"
ATTENTION = """\
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    scores = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value"""


@pytest.fixture
def run_cells(tmp_path):
    def verdicts_of(*cells: str) -> dict:
        return played([FIRST_CELL, *cells], tmp_path)["said"]

    return verdicts_of


NOT_RUN = {
    "no Python": (
        [RIGHT_CELL, CELL_WITH_SYNTAX_ERROR],
        "SyntaxError: unmatched ')' in the line `return x @ weight)`",
    ),
    "misspelt": (
        [RIGHT_CELL, "dfe project(x, weight):\n    return x"],
        "SyntaxError: invalid syntax",
    ),
    "not closed": (
        [RIGHT_CELL, "def project(x, weight:\n    return x"],
        "SyntaxError: '(' was never",
    ),
    "an assignment": (
        [RIGHT_CELL, "project = lambda x, weight: x @"],
        "SyntaxError: invalid syntax",
    ),
    "a decorator": ([RIGHT_CELL, f"@torch.nope\n{RIGHT_CELL}"], "stopped with AttributeError"),
    "within a block": (
        [RIGHT_CELL, f"if True:\n    1 / 0\n    {RIGHT_CELL.replace(chr(10), chr(10) + '    ')}"],
        "stopped with ZeroDivisionError",
    ),
    "interrupted": ([RIGHT_CELL, f"raise KeyboardInterrupt\n{RIGHT_CELL}"], "was interrupted"),
}


@pytest.mark.parametrize(("cells", "why"), NOT_RUN.values(), ids=NOT_RUN)
def test_an_attempt_that_did_not_run_passes_nothing(run_cells, cells, why):
    verdict = run_cells(*cells, CHECK_CELL)["kqv.project"]
    assert verdict["text"].startswith("✗ kqv.project: not judged (0 of 7 points)\n  The newest")
    assert verdict["unjudged"].startswith("the newest `project` did not run: ")
    assert why in verdict["unjudged"]
    assert verdict["unjudged"].endswith(OLDER_ANSWER_NOTE)
    assert verdict["earned"] == 0


def test_a_class_as_it_was_handed_out_is_not_attempted(run_cells):
    """Its body raises while the cell runs, where a function's waits for a call."""
    stub = (
        "class AttentionHead(torch.nn.Module):\n    ### YOUR CODE\n    raise NotImplementedError()"
    )
    verdict = run_cells(stub, 'check("kqv.AttentionHead", AttentionHead)')["kqv.AttentionHead"]
    assert verdict["text"].startswith("○ kqv.AttentionHead: not attempted (0 of 13 points)\n")
    assert verdict["unjudged"] == ""
    begun = stub.replace("raise NotImplementedError()", "raise TypeError()")
    verdict = run_cells(begun, 'check("kqv.AttentionHead", AttentionHead)')["kqv.AttentionHead"]
    assert verdict["text"].startswith("✗ kqv.AttentionHead: not judged")


WRONG_CELL = RIGHT_CELL.replace("@", "*")
SKIPPED_ERROR = f"ZeroDivisionError: division by zero ({skipped_lines_note(['1 / 0'])})"
STOPPED_CELLS = {
    "an error above": (f"1 / 0\n{RIGHT_CELL}", SKIPPED_ERROR),
    "an error between": (f"{WRONG_CELL}\n1 / 0\n{RIGHT_CELL}", SKIPPED_ERROR),
    "timed": (f"%%time\n1 / 0\n{RIGHT_CELL}", SKIPPED_ERROR),
    "captured": (f"%%capture\n1 / 0\n{RIGHT_CELL}", SKIPPED_ERROR),
    "kept to itself": (f"%%timeit -n 1 -r 1\n{RIGHT_CELL}", TIMEIT_KEEPS_NAMES),
    "kept and stopped": (
        f"%%timeit -n 1 -r 1\n1 / 0\n{RIGHT_CELL}",
        f"{TIMEIT_KEEPS_NAMES}; {SKIPPED_ERROR}",
    ),
    "waits": (
        f"1 / 0\nimport asyncio\n{RIGHT_CELL}\nlate = await asyncio.sleep(0, 3)",
        SKIPPED_ERROR,
    ),
}


@pytest.mark.parametrize(("cell", "note"), STOPPED_CELLS.values(), ids=STOPPED_CELLS)
def test_a_stopped_cell_is_judged_as_a_grader_runs_it(run_cells, cell, note):
    verdict = run_cells(WRONG_CELL, cell, CHECK_CELL, CHECK_CELL)[
        "kqv.project"
    ]  # the second time nothing runs again
    assert verdict["text"].splitlines()[:2] == ["✓ kqv.project: 7 of 7 points", f"  {note}"]
    wrong = run_cells(RIGHT_CELL, cell.replace("@", "*"), CHECK_CELL)[
        "kqv.project"
    ]  # never the older one
    assert not wrong["passed"]
    assert note in wrong["text"]
    assert note not in run_cells(cell, CHECK_CELL, RIGHT_CELL, CHECK_CELL)["kqv.project"]["text"]


def test_a_cell_that_stopped_before_the_checks_goes_on_too(tmp_path):
    assert played([f"1 / 0\n{RIGHT_CELL}", FIRST_CELL, CHECK_CELL], tmp_path)["said"][
        "kqv.project"
    ]["passed"]


def test_the_course_module_is_absent_inside_a_try(run_cells):
    import_or = "try:\n    from attncourse.kqv import project\nexcept ImportError:\n    {}"
    own_answer = import_or.format(RIGHT_CELL.replace("\n", "\n    "))
    verdict = run_cells(own_answer, CHECK_CELL)["kqv.project"]
    assert verdict["passed"]
    assert verdict["text"].splitlines()[1].endswith("what its cell defines without it was judged")
    assert not run_cells(own_answer.replace("@", "*"), CHECK_CELL)["kqv.project"]["passed"]
    from_package = run_cells(import_or.format("pass"), CHECK_CELL)["kqv.project"]
    assert from_package["unjudged"].startswith(
        "attncourse.kqv is not there while your work is graded"
    )


def test_a_renamed_definition_is_reported_without_cell_ids(run_cells):
    renamed = RIGHT_CELL.replace("project", "projekt")
    reason = run_cells(RIGHT_CELL, renamed, CHECK_CELL)["kqv.project"]["unjudged"]
    assert reason == (
        "nothing is called `project` any more, if cell [3] is its cell: it defines `projekt`, "
        "which is the same"
    )
    assert run_cells(RIGHT_CELL, renamed, RIGHT_CELL, CHECK_CELL)["kqv.project"]["passed"]
    assert run_cells(RIGHT_CELL, renamed.replace("@", "*"), CHECK_CELL)["kqv.project"][
        "passed"
    ]  # another function
    assert run_cells(renamed, RIGHT_CELL, CHECK_CELL)["kqv.project"]["passed"]


def test_a_cell_is_judged_once_it_has_run(run_cells):
    assert run_cells(RIGHT_CELL, CELL_WITH_SYNTAX_ERROR, CHECK_CELL, RIGHT_CELL, CHECK_CELL)[
        "kqv.project"
    ]["passed"]
    assert (
        OLDER_ANSWER_NOTE
        not in run_cells(CELL_WITH_SYNTAX_ERROR, CHECK_CELL)["kqv.project"]["unjudged"]
    )


@pytest.mark.parametrize(
    "cells",
    [
        [RIGHT_CELL, "project(torch.ones(2, 2), torch.ones(2"],  # a call that is no attempt
        [RIGHT_CELL, f"{RIGHT_CELL}\n1 / 0"],
        [RIGHT_CELL, "1 / 0"],
        [RIGHT_CELL, "if False:\n    project = None"],
        [RIGHT_CELL, "projects = project\n1 / 0"],
        [RIGHT_CELL, "def other(project):\n    project = 3\n    return project"],
        [RIGHT_CELL, "[project for project in range(3)]"],
        [f"%%time\n{RIGHT_CELL}"],
        [f"%%capture\n{RIGHT_CELL}"],
        [CELL_WITH_SYNTAX_ERROR, RIGHT_CELL],
        [f"import functools\n@functools.lru_cache\ndef same():\n    return 1\n{RIGHT_CELL}"],
        [RIGHT_CELL, "%%bash\nproject = 3)"],
        [RIGHT_CELL, "%lsmagic", "?print"],
        ["class project:\n    def __new__(cls, x, weight):\n        return x @ weight"],
        ["first = lambda x, weight: x @ weight", "project = first", "first = 5"],
    ],
)
def test_an_answer_in_its_newest_state_is_judged(run_cells, cells):
    assert run_cells(*cells, CHECK_CELL)["kqv.project"]["passed"]


def test_an_answer_in_the_cell_of_its_check_is_judged(run_cells):
    assert run_cells(RIGHT_CELL, f"{RIGHT_CELL}\n{CHECK_CELL}")["kqv.project"]["passed"]
    wrong = run_cells(RIGHT_CELL, f"{RIGHT_CELL.replace('@', '*')}\n{CHECK_CELL}")["kqv.project"]
    assert (wrong["unjudged"], wrong["passed"]) == ("", False)


@pytest.mark.parametrize(
    "check_call", [CHECK_CELL, 'check(target="kqv.project", implementation=project)']
)
def test_a_check_before_its_answer_says_so(run_cells, tmp_path, check_call):
    verdict = run_cells(check_call)["kqv.project"]
    assert verdict["text"].splitlines() == [
        "○ kqv.project: not judged (0 of 7 points)",
        "  `project` is not there: its cell has not been run since the kernel started.",
        "  Run that cell, then this check.",
    ]
    printed = played([FIRST_CELL, check_call, "progress('kqv')"], tmp_path)["printed"]
    assert not any("NameError" in text for text in printed)
    assert "0 of 5 exercises done, 4 open · 0 of 39 points; 4 points for a person" in printed[-1]


def test_other_missing_names_raise_pythons_own_error(tmp_path):
    printed = played(
        [FIRST_CELL, "other(project)", "f = lambda: check('x', nothing)", "f()"], tmp_path
    )
    assert "NameError: name 'other'" in printed["printed"][1]
    assert "NameError: name 'nothing'" in printed["printed"][3]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("project = 5", "is an int (5), nothing that can be called: `project = 5` in cell [3]"),
        ("for project in (1, 2):\n    pass", "`for project in (1, 2):` in cell [3] took its name"),
        ("import math as project", "`project` is a module"),
        ("x = torch.ones(2, 2)\nproject = project(x, x)", "`project = project(x, x)` in cell [3]"),
        ("del project", "`project` is no longer there: cell [3] deletes it"),
        ("In = project = torch.ones(3)", "`In = project = torch.ones(3)` in cell [3] took its"),
    ],
)
def test_an_overwritten_answer_names_the_statement_that_did_it(run_cells, cell, why):
    assert why in run_cells(RIGHT_CELL, cell, CHECK_CELL)["kqv.project"]["unjudged"]


def test_functions_an_answer_calls_must_have_run_too(run_cells):
    helper, answer = (
        "def mul(a, b):\n    return a @ b",
        RIGHT_CELL.replace("x @ weight", "mul(x, weight)"),
    )
    assert run_cells(helper, answer, CHECK_CELL)["kqv.project"]["passed"]
    verdict = run_cells(helper, answer, "def mul(a, b)\n    return a @ b", CHECK_CELL)[
        "kqv.project"
    ]
    assert "the newest `mul` did not run: SyntaxError" in verdict["unjudged"]
    assert "(`project` calls it)" in verdict["unjudged"]


def test_an_overwritten_library_names_the_statement_that_did_it(run_cells):
    check = 'check("kqv.scaled_dot_product_attention", scaled_dot_product_attention)'
    target = "kqv.scaled_dot_product_attention"
    assert run_cells(ATTENTION, check)[target]["passed"]
    verdict = run_cells("math = 5", ATTENTION, check)[target]
    assert verdict["in_short"] == "the name `math` was overwritten"
    assert "`math = 5` in cell [2] took the name `math`. Give that another" in verdict["text"]
    builtin = run_cells(
        "len = 3", RIGHT_CELL.replace("return", "assert len(x)\n    return"), CHECK_CELL
    )
    assert builtin["kqv.project"]["in_short"] == "the name `len` was overwritten"
    wrong = "def project(x, weight):\n    math\n    return weight"
    assert "math" not in run_cells("math = 5", wrong, CHECK_CELL)["kqv.project"]["in_short"]


def test_a_function_of_another_name_is_not_what_is_graded(run_cells):
    verdict = run_cells(
        RIGHT_CELL, "def mine(x, weight):\n    return x @ weight", 'check("kqv.project", mine)'
    )
    assert "what is graded is `project`" in verdict["kqv.project"]["unjudged"]


@pytest.mark.parametrize("function", ["check", "examine"])
def test_an_interrupted_check_says_so_in_a_sentence(function, tmp_path):
    loop = "def project(x, weight):\n    raise KeyboardInterrupt"
    printed = played([FIRST_CELL, loop, CHECK_CELL.replace("check", function)], tmp_path)[
        "printed"
    ][2]
    assert re.sub(r"\d+ s", "N s", printed.strip()) == (
        "kqv.project: interrupted after N s, in the line `raise KeyboardInterrupt` of your code; "
        "nothing was judged"
    )


def test_a_long_run_says_that_it_still_runs(monkeypatch):
    """The line's text each time, and nothing at the end."""
    shown, enough = [], threading.Event()

    def show(line: spinner.ReplacedLine, text: str) -> None:
        shown.append(text)
        if len(shown) == 2:
            enough.set()

    monkeypatch.setattr(spinner, "SECONDS_BETWEEN_LINES", 0.01)
    monkeypatch.setattr(spinner.ReplacedLine, "show", show)
    with spinner.show_still_running("02_mixing.ipynb"):
        assert enough.wait(60)
    assert shown[0] == "02_mixing.ipynb: still running, 0 s …"
    assert shown[-1] == ""


# --- the notebook's file --------------------------------------------------------------------------


def saving_cell(folder, *cells: str, minutes: float = 1.0) -> str:
    """Return a cell that saves the notebook, with a time some minutes from now."""
    content = {"cells": [{"cell_type": "code", "metadata": {}, "source": c} for c in cells]}
    path, at = str(folder / "n.ipynb"), time.time() + 60 * minutes  # noqa: TID251
    return (
        f"import os\nopen({path!r}, 'w').write({json.dumps(content)!r})\n"
        f"os.utime({path!r}, ({at}, {at}))\nos.environ['JPY_SESSION_NAME'] = {path!r}"
    )


def test_an_edit_that_was_not_run_is_reported(run_cells, tmp_path):
    def after(*cells: str, **when: float) -> dict:
        return run_cells(RIGHT_CELL, saving_cell(tmp_path, FIRST_CELL, *cells, **when), CHECK_CELL)[
            "kqv.project"
        ]

    changed = RIGHT_CELL.replace("@", "*")
    assert (
        after(changed, CHECK_CELL)["unjudged"]
        == "the cell of `project` was changed after it was run"
    )
    assert "was changed" in after(CELL_WITH_SYNTAX_ERROR, CHECK_CELL)["unjudged"]
    assert "no cell of your notebook defines" in after("x = 1", CHECK_CELL)["unjudged"]
    assert after(RIGHT_CELL, CHECK_CELL)["passed"]
    assert after(f"# a comment\n{RIGHT_CELL}\nprint(3)", CHECK_CELL)[
        "passed"
    ]  # the same definition
    assert after(changed, CHECK_CELL, RIGHT_CELL)["passed"]  # another cell has it
    assert after(changed, CHECK_CELL, minutes=-9)["passed"]  # saved before it was run
    assert after(changed)["passed"]  # another notebook's file
    (tmp_path / "n.ipynb").write_text("{")
    os.environ.pop("JPY_SESSION_NAME", None)
    assert run_cells(RIGHT_CELL, CHECK_CELL)["kqv.project"]["passed"]


def test_a_deleted_cell_is_reported_where_the_file_is_known(run_cells, tmp_path):
    """A grade runs the file, where it is not: the answer stops there."""
    scaled = RIGHT_CELL.replace("x @ weight", "x @ weight * unit")

    def after(*cells: str, **when: float) -> dict:
        file = saving_cell(tmp_path, FIRST_CELL, *cells, CHECK_CELL, **when)
        return run_cells("unit = 1", scaled, file, CHECK_CELL)["kqv.project"]

    gone = after(scaled)
    assert "no cell of your notebook defines `unit` any more" in gone["unjudged"]
    assert (gone["earned"], gone["passed"]) == (0, False)
    assert after(scaled, "unit = 1")["passed"]
    assert after("for unit in (2, 1):\n    pass", scaled)["passed"]
    assert after("from there import *", scaled)["passed"]  # perhaps it is among these
    assert after(scaled, minutes=-9)["passed"]
    os.environ.pop("JPY_SESSION_NAME", None)


def test_a_cell_without_the_name_is_known_by_its_id():
    from types import SimpleNamespace

    from IPython.core.interactiveshell import InteractiveShell

    from attncourse.checks.reading.cells import CellRuns

    shell = InteractiveShell()
    cells = CellRuns(shell)

    def ran(source: str, cell: str) -> None:
        cells.note_begin(SimpleNamespace(raw_cell=source, cell_id=cell))
        exec(source if cells.runs[-1].problem is None else "", shell.user_ns)
        cells.note_end(SimpleNamespace(error_before_exec=None, error_in_exec=None))

    def why() -> str:
        unjudged = cells.why_unjudged("project", shell.user_ns["project"])
        return unjudged.why if unjudged else ""

    ran(RIGHT_CELL, "a")
    assert why() == ""
    ran("x = 1", "b")
    assert why() == ""
    ran(RIGHT_CELL.replace("project", "projekt"), "a")
    assert why() == (
        "nothing is called `project` any more in the cell that it came from: it defines `projekt`"
    )
    ran("x @ = weight", "a")
    assert why().startswith("the newest `project` did not run: SyntaxError")


def test_an_ipython_that_runs_no_cell_is_no_notebook():
    from IPython.core.interactiveshell import InteractiveShell

    from attncourse.checks import examine

    was_initialized = InteractiveShell.initialized()
    InteractiveShell.instance()
    try:
        assert examine("kqv.project", lambda x, weight: x @ weight).passed
    finally:
        if not was_initialized:
            InteractiveShell.clear_instance()
