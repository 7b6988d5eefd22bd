"""A student's cell: its definitions run although a line fails, and its settings are reset."""

import warnings

import numpy as np
import pytest

from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.judge.worker.calls import Settings
from attncourse.grading.judge.worker.notebook_shell import Skipped, run_cell_source
from attncourse.grading.submission.notebook import Assignment, read_cells
from corpus.assignment import MIXING, keeps
from helpers.dedented_text import dedented


def names_and_skipped_lines(source: str) -> tuple[dict, list[str]]:
    """Return the names that a cell leaves, and the lines that were skipped."""
    names: dict = {}
    try:
        run_cell_source(source, "<cell>", names)
    except Skipped as problem:
        return names, problem.lines
    return names, []


@pytest.mark.parametrize(
    ("source", "bound", "skipped"),
    [
        ("a = 1\nb = 2", "a b", []),
        ("import nope\nimport math\nb = 2", "math b", ["import nope"]),
        (
            dedented("""
                import nope
                def f():
                    return 1
                class G: pass
            """),
            "f G",
            ["import nope"],
        ),
        (
            dedented("""
                f(
                  1,
                  2)
                @print
                def g(): pass
            """),
            "g",
            ["f("],
        ),
        ("x = nope\ny = x\nz = 1", "z", ["x = nope", "y = x"]),
        (
            dedented("""
                nope
                if True:
                    a = 1
                try:
                    b = 1
                finally:
                    pass
            """),
            "a b",
            ["nope"],
        ),
        (
            dedented("""
                nope
                while True:
                    a = 1
                b = 1
            """),
            "b",
            ["nope"],
        ),
        ("nope\nfrom math import *", "pi", ["nope"]),
        ("raise SystemExit(0)\na = 1", "a", ["raise SystemExit(0)"]),
        ("nope\nimport asyncio\na = await asyncio.sleep(0, 1)", "a", ["nope"]),
        ("from __future__ import annotations\nnope\ndef f(a: b): pass", "f", ["nope"]),
        (
            dedented("""
                def f():
                    return nope
                f()
                a = 1
            """),
            "f a",
            ["f()"],
        ),
    ],
)
def test_definitions_below_a_line_that_fails_run(source, bound, skipped):
    names, lines = names_and_skipped_lines(source)
    assert set(bound.split()) <= names.keys()
    assert lines == skipped
    assert not {"x", "y"} & names.keys()


@pytest.mark.parametrize("source", ["a = 1\nnope", "nope\nprint(1)\nfor i in []: pass"])
def test_a_cell_without_later_definitions_raises_its_error(source):
    with pytest.raises(NameError):
        run_cell_source(source, "<cell>", {})


def test_an_interrupt_runs_no_later_definitions():
    with pytest.raises(KeyboardInterrupt):
        run_cell_source("raise KeyboardInterrupt\na = 1", "<cell>", {})


def test_a_note_names_the_skipped_lines():
    before = "import seaborn as sns\nname = input()\n\n"
    case = keeps("honest", "a", "", center=before + MIXING.right["center"])
    assignment = Assignment(MIXING.name, read_cells(MIXING.source))
    report = grade_submission(case.notebook(), assignment)
    assert report.points == report.maximum
    assert report.notes == (
        "cell center: ModuleNotFoundError: No module named 'seaborn' (skipped: "
        "`import seaborn as sns`, `name = input()`; the definitions below it were run)",
    )


def test_settings_of_libraries_are_put_back():
    torch = pytest.importorskip("torch")
    before = Settings()
    with warnings.catch_warnings(), np.errstate():
        before = Settings()
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(True)
        torch.set_float32_matmul_precision("medium")
        torch.set_grad_enabled(False)
        torch.set_default_device("meta")
        np.seterr(all="raise")
        warnings.simplefilter("error")
        before.put_back()
        assert torch.zeros(1).dtype == torch.float32
        assert torch.zeros(1).device.type == "cpu"
        assert not torch.are_deterministic_algorithms_enabled()
        assert torch.get_float32_matmul_precision() == "highest"
        assert torch.is_grad_enabled()
        assert np.geterr() == before.errors
        assert warnings.filters == before.filters
