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

HEAD = "import math\nimport torch\nfrom attncourse.checks import check, examine, progress"
CHECK = 'check("kqv.project", project)'
OK = "def project(x, weight):\n    return x @ weight"
BAD = f"{OK})"
OLDER = "an older `project` is still in memory, and is not judged"
ATTENTION = """\
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    scores = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value"""


@pytest.fixture
def say(tmp_path):
    def said(*cells: str) -> dict:
        return played([HEAD, *cells], tmp_path)["said"]

    return said


NOT_RUN = {
    "no Python": ([OK, BAD], "SyntaxError: unmatched ')' in the line `return x @ weight)`"),
    "misspelt": ([OK, "dfe project(x, weight):\n    return x"], "SyntaxError: invalid syntax"),
    "not closed": ([OK, "def project(x, weight:\n    return x"], "SyntaxError: '(' was never"),
    "an assignment": ([OK, "project = lambda x, weight: x @"], "SyntaxError: invalid syntax"),
    "a decorator": ([OK, f"@torch.nope\n{OK}"], "stopped with AttributeError"),
    "within a block": ([OK, f"if True:\n    1 / 0\n    {OK.replace(chr(10), chr(10) + '    ')}"],
                       "stopped with ZeroDivisionError"),
    "interrupted": ([OK, f"raise KeyboardInterrupt\n{OK}"], "was interrupted"),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "why"), NOT_RUN.values(), ids=NOT_RUN)
def test_an_attempt_that_did_not_run_passes_nothing(say, cells, why):
    verdict = say(*cells, CHECK)["kqv.project"]
    assert verdict["text"].startswith("✗ kqv.project: not judged (0 of 7 points)\n  The newest")
    assert verdict["unjudged"].startswith("the newest `project` did not run: ")
    assert why in verdict["unjudged"]
    assert verdict["unjudged"].endswith(OLDER)
    assert verdict["earned"] == 0


def test_a_class_as_it_was_handed_out_is_not_attempted(say):
    """Its body raises while the cell runs, where a function's waits for a call."""
    stub = (
        "class AttentionHead(torch.nn.Module):\n    ### YOUR CODE\n    raise NotImplementedError()"
    )
    verdict = say(stub, 'check("kqv.AttentionHead", AttentionHead)')["kqv.AttentionHead"]
    assert verdict["text"].startswith("○ kqv.AttentionHead: not attempted (0 of 13 points)\n")
    assert verdict["unjudged"] == ""
    begun = stub.replace("raise NotImplementedError()", "raise TypeError()")
    verdict = say(begun, 'check("kqv.AttentionHead", AttentionHead)')["kqv.AttentionHead"]
    assert verdict["text"].startswith("✗ kqv.AttentionHead: not judged")


WRONG = OK.replace("@", "*")
SKIPPED = f"ZeroDivisionError: division by zero ({skipped_lines_note(['1 / 0'])})"
WENT_ON = {
    "an error above": (f"1 / 0\n{OK}", SKIPPED),
    "an error between": (f"{WRONG}\n1 / 0\n{OK}", SKIPPED),
    "timed": (f"%%time\n1 / 0\n{OK}", SKIPPED),
    "captured": (f"%%capture\n1 / 0\n{OK}", SKIPPED),
    "kept to itself": (f"%%timeit -n 1 -r 1\n{OK}", TIMEIT_KEEPS_NAMES),
    "kept and stopped": (f"%%timeit -n 1 -r 1\n1 / 0\n{OK}", f"{TIMEIT_KEEPS_NAMES}; {SKIPPED}"),
    "waits": (f"1 / 0\nimport asyncio\n{OK}\nlate = await asyncio.sleep(0, 3)", SKIPPED),
}


@pytest.mark.parametrize(("cell", "note"), WENT_ON.values(), ids=WENT_ON)
def test_a_stopped_cell_is_judged_as_a_grader_runs_it(say, cell, note):
    verdict = say(WRONG, cell, CHECK, CHECK)["kqv.project"]  # the second time nothing runs again
    assert verdict["text"].splitlines()[:2] == ["✓ kqv.project: 7 of 7 points", f"  {note}"]
    wrong = say(OK, cell.replace("@", "*"), CHECK)["kqv.project"]  # never the older one
    assert not wrong["passed"]
    assert note in wrong["text"]
    assert note not in say(cell, CHECK, OK, CHECK)["kqv.project"]["text"]


def test_a_cell_that_stopped_before_the_checks_goes_on_too(tmp_path):
    assert played([f"1 / 0\n{OK}", HEAD, CHECK], tmp_path)["said"]["kqv.project"]["passed"]


def test_our_module_under_a_try_is_absent(say):
    unless = "try:\n    from attncourse.kqv import project\nexcept ImportError:\n    {}"
    own = unless.format(OK.replace("\n", "\n    "))
    verdict = say(own, CHECK)["kqv.project"]
    assert verdict["passed"]
    assert verdict["text"].splitlines()[1].endswith("what its cell defines without it was judged")
    assert not say(own.replace("@", "*"), CHECK)["kqv.project"]["passed"]
    ours = say(unless.format("pass"), CHECK)["kqv.project"]
    assert ours["unjudged"].startswith("attncourse.kqv is not there while your work is graded")


def test_a_renamed_definition_is_told_without_cell_ids(say):
    renamed = OK.replace("project", "projekt")
    told = say(OK, renamed, CHECK)["kqv.project"]["unjudged"]
    assert told == (
        "nothing is called `project` any more, if cell [3] is its cell: it defines `projekt`, "
        "which is the same"
    )
    assert say(OK, renamed, OK, CHECK)["kqv.project"]["passed"]
    assert say(OK, renamed.replace("@", "*"), CHECK)["kqv.project"]["passed"]  # another function
    assert say(renamed, OK, CHECK)["kqv.project"]["passed"]


def test_what_did_not_run_is_judged_once_it_has(say):
    assert say(OK, BAD, CHECK, OK, CHECK)["kqv.project"]["passed"]
    assert OLDER not in say(BAD, CHECK)["kqv.project"]["unjudged"]


@pytest.mark.parametrize(
    "cells",
    [
        [OK, "project(torch.ones(2, 2), torch.ones(2"],  # a call that is no attempt
        [OK, f"{OK}\n1 / 0"],
        [OK, "1 / 0"],
        [OK, "if False:\n    project = None"],
        [OK, "projects = project\n1 / 0"],
        [OK, "def other(project):\n    project = 3\n    return project"],
        [OK, "[project for project in range(3)]"],
        [f"%%time\n{OK}"],
        [f"%%capture\n{OK}"],
        [BAD, OK],
        [f"import functools\n@functools.lru_cache\ndef same():\n    return 1\n{OK}"],
        [OK, "%%bash\nproject = 3)"],
        [OK, "%lsmagic", "?print"],
        ["class project:\n    def __new__(cls, x, weight):\n        return x @ weight"],
        ["first = lambda x, weight: x @ weight", "project = first", "first = 5"],
    ],
)
def test_an_honest_state_is_judged(say, cells):
    assert say(*cells, CHECK)["kqv.project"]["passed"]


def test_a_cell_with_its_check_is_judged_as_it_is(say):
    assert say(OK, f"{OK}\n{CHECK}")["kqv.project"]["passed"]
    wrong = say(OK, f"{OK.replace('@', '*')}\n{CHECK}")["kqv.project"]
    assert (wrong["unjudged"], wrong["passed"]) == ("", False)


@pytest.mark.parametrize("asked", [CHECK, 'check(target="kqv.project", implementation=project)'])
def test_a_check_before_its_answer_says_so(say, tmp_path, asked):
    verdict = say(asked)["kqv.project"]
    assert verdict["text"].splitlines() == [
        "○ kqv.project: not judged (0 of 7 points)",
        "  `project` is not there: its cell has not been run since the kernel started.",
        "  Run that cell, then this check.",
    ]
    printed = played([HEAD, asked, "progress('kqv')"], tmp_path)["printed"]
    assert not any("NameError" in text for text in printed)
    assert "0 of 5 exercises done, 4 open · 0 of 39 points; 4 points for a person" in printed[-1]


def test_other_names_that_are_not_there_are_pythons_business(tmp_path):
    printed = played([HEAD, "other(project)", "f = lambda: check('x', nothing)", "f()"], tmp_path)
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
def test_a_name_that_was_taken_is_told_with_the_place(say, cell, why):
    assert why in say(OK, cell, CHECK)["kqv.project"]["unjudged"]


def test_what_an_answer_calls_has_to_have_run_as_well(say):
    helper, answer = "def mul(a, b):\n    return a @ b", OK.replace("x @ weight", "mul(x, weight)")
    assert say(helper, answer, CHECK)["kqv.project"]["passed"]
    verdict = say(helper, answer, "def mul(a, b)\n    return a @ b", CHECK)["kqv.project"]
    assert "the newest `mul` did not run: SyntaxError" in verdict["unjudged"]
    assert "(`project` calls it)" in verdict["unjudged"]


def test_a_library_whose_name_was_taken_is_told_with_the_place(say):
    check = 'check("kqv.scaled_dot_product_attention", scaled_dot_product_attention)'
    target = "kqv.scaled_dot_product_attention"
    assert say(ATTENTION, check)[target]["passed"]
    verdict = say("math = 5", ATTENTION, check)[target]
    assert verdict["in_short"] == "the name `math` was overwritten"
    assert "`math = 5` in cell [2] took the name `math`. Give that another" in verdict["text"]
    builtin = say("len = 3", OK.replace("return", "assert len(x)\n    return"), CHECK)
    assert builtin["kqv.project"]["in_short"] == "the name `len` was overwritten"
    wrong = "def project(x, weight):\n    math\n    return weight"
    assert "math" not in say("math = 5", wrong, CHECK)["kqv.project"]["in_short"]


def test_another_function_is_not_what_is_graded(say):
    verdict = say(OK, "def mine(x, weight):\n    return x @ weight", 'check("kqv.project", mine)')
    assert "what is graded is `project`" in verdict["kqv.project"]["unjudged"]


@pytest.mark.parametrize("asked", ["check", "examine"])
def test_an_interrupted_check_says_so_in_a_sentence(asked, tmp_path):
    loop = "def project(x, weight):\n    raise KeyboardInterrupt"
    printed = played([HEAD, loop, CHECK.replace("check", asked)], tmp_path)["printed"][2]
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


def saved(folder, *cells: str, minutes: float = 1.0) -> str:
    """A cell after which the notebook is saved with these cells, so many minutes from now."""
    content = {"cells": [{"cell_type": "code", "metadata": {}, "source": c} for c in cells]}
    path, at = str(folder / "n.ipynb"), time.time() + 60 * minutes  # noqa: TID251
    return (
        f"import os\nopen({path!r}, 'w').write({json.dumps(content)!r})\n"
        f"os.utime({path!r}, ({at}, {at}))\nos.environ['JPY_SESSION_NAME'] = {path!r}"
    )


def test_an_edit_that_was_not_run_is_told(say, tmp_path):
    def after(*cells: str, **when: float) -> dict:
        return say(OK, saved(tmp_path, HEAD, *cells, **when), CHECK)["kqv.project"]

    changed = OK.replace("@", "*")
    assert after(changed, CHECK)["unjudged"] == "the cell of `project` was changed after it was run"
    assert "was changed" in after(BAD, CHECK)["unjudged"]
    assert "no cell of your notebook defines" in after("x = 1", CHECK)["unjudged"]
    assert after(OK, CHECK)["passed"]
    assert after(f"# a comment\n{OK}\nprint(3)", CHECK)["passed"]  # the same definition
    assert after(changed, CHECK, OK)["passed"]  # another cell has it
    assert after(changed, CHECK, minutes=-9)["passed"]  # saved before it was run
    assert after(changed)["passed"]  # another notebook's file
    (tmp_path / "n.ipynb").write_text("{")
    os.environ.pop("JPY_SESSION_NAME", None)
    assert say(OK, CHECK)["kqv.project"]["passed"]


def test_a_deleted_cells_number_is_told_if_the_file_is_known(say, tmp_path):
    """A grade runs the file, where it is not: the answer stops there."""
    scaled = OK.replace("x @ weight", "x @ weight * unit")

    def after(*cells: str, **when: float) -> dict:
        file = saved(tmp_path, HEAD, *cells, CHECK, **when)
        return say("unit = 1", scaled, file, CHECK)["kqv.project"]

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
        found = cells.why_unjudged("project", shell.user_ns["project"])
        return found.why if found else ""

    ran(OK, "a")
    assert why() == ""
    ran("x = 1", "b")
    assert why() == ""
    ran(OK.replace("project", "projekt"), "a")
    assert why() == (
        "nothing is called `project` any more in the cell that it came from: it defines `projekt`"
    )
    ran("x @ = weight", "a")
    assert why().startswith("the newest `project` did not run: SyntaxError")


def test_an_ipython_that_runs_no_cell_is_no_notebook():
    from IPython.core.interactiveshell import InteractiveShell

    from attncourse.checks import examine

    there = InteractiveShell.initialized()
    InteractiveShell.instance()
    try:
        assert examine("kqv.project", lambda x, weight: x @ weight).passed
    finally:
        if not there:
            InteractiveShell.clear_instance()
