"""Unusual imports of a notebook are reported to a person, usual ones are not."""

import pytest

from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.submission.imports import ORDINARY_MODULES, imported_names, unusual_imports
from attncourse.grading.submission.notebook import Assignment, read_cells
from attncourse.grading.submission.plan import plan
from corpus.assignment import KQV
from corpus.honest import CASES as HONEST
from corpus.ordinary import CELLS
from helpers.dedented_text import dedented
from helpers.project import ROOT
from helpers.small_course import NAME, RIGHT, cell, notebook, small
from helpers.small_course import solution as answer


def unusual_modules(*sources: str, given_sources: tuple[str, ...] = ()) -> list[str]:
    """Return the unusual modules that these cells import, in order."""
    return [name for names in unusual_imports(sources, given_sources) for name in names]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import ctypes", ["ctypes"]),
        ("def f():\n    from pydoc import locate as l", ["pydoc"]),
        (
            dedented("""
                try:
                    import pkgutil, numpy
                except ImportError:
                    pass
            """),
            ["pkgutil"],
        ),
        ("import transformers.models as m\nimport transformers.models", ["transformers.models"]),
        ("import torch._C", ["torch._C"]),
        ("from torch import _C, nn", ["torch._C"]),
        ("from torch.utils._python_dispatch import Mode", ["torch.utils._python_dispatch"]),
        ("from torch.overrides import _pop_mode", ["torch.overrides._pop_mode"]),
        ("%%writefile helper.py\nimport ctypes", ["ctypes"]),
        ("%matplotlib inline\nimport socket", ["socket"]),
        ("from . import ctypes\nimport torch.nn as ctypes", []),
        ("from __future__ import annotations", []),
        ("import ctypes(", []),
    ],
)
def test_unusual_and_private_modules_are_reported(source, names):
    assert unusual_modules(source) == names


def test_imports_of_the_assignment_are_not_reported():
    assert unusual_modules("import socket.x", given_sources=("import socket",)) == []
    assert unusual_modules("import helper\nfrom tools.rows import f") == ["helper", "tools.rows"]
    files = ("%%writefile helper.py\nx = 1", "%%file -a tools/rows.py\nf = 1")
    assert unusual_modules(*files, "import helper\nfrom tools.rows import f") == []


def test_at_most_one_of_fifty_honest_notebooks_is_reported():
    assert len(CELLS) >= 50
    files = CELLS["written"]
    assert (
        sum(bool(unusual_modules(source, files)) for source in CELLS.values()) <= len(CELLS) // 50
    )
    cases = {
        case.name: sources_of_students_cells(case.work.source, case.notebook()) for case in HONEST
    }
    assert {name: sources for name, sources in cases.items() if unusual_modules(*sources)} == {}


def test_no_right_answer_is_reported():
    for path in sorted(ROOT.glob("solutions/*/*.ipynb")):
        assert (
            unusual_modules(*sources_of_students_cells(path.read_bytes(), path.read_bytes())) == []
        ), path
    assert unusual_modules(*KQV.right.values()) == []


def sources_of_students_cells(source: bytes, submission: bytes) -> list[str]:
    """Return the sources of cells that are a student's own, not given to all."""
    steps, _ = plan(read_cells(submission), Assignment(NAME, read_cells(source)))
    return [step.source for step in steps if step.kind == "cell"]


def test_the_report_says_which_cell_imports_a_module():
    data = notebook(cell("import socket, ctypes"), answer("add", "import mmap\n" + RIGHT[0]))
    report = grade_submission(data, Assignment(NAME, read_cells(small())))
    assert "imports socket in cell 1, ctypes in cell 1, mmap in cell add: see what for" in (
        report.attention
    )


def test_the_list_of_ordinary_modules_is_short():
    assert len(ORDINARY_MODULES) < 120
    assert all(name.isidentifier() for name in ORDINARY_MODULES)
    assert set(imported_names("import a.b, c\nfrom d import e")) == {"a.b", "c", "d"}
