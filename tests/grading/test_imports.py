"""What a notebook imports that few do is told to a person; what is usual is not."""

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


def told(*sources: str, given: tuple[str, ...] = ()) -> list[str]:
    return [name for names in unusual_imports(sources, given) for name in names]


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
def test_a_module_of_no_usual_package_or_a_private_one_is_told(source, names):
    assert told(source) == names


def test_assignment_imports_are_no_student_imports():
    assert told("import socket.x", given=("import socket",)) == []
    assert told("import helper\nfrom tools.rows import f") == ["helper", "tools.rows"]
    files = ("%%writefile helper.py\nx = 1", "%%file -a tools/rows.py\nf = 1")
    assert told(*files, "import helper\nfrom tools.rows import f") == []


def test_of_fifty_honest_notebooks_at_most_one_is_told():
    assert len(CELLS) >= 50
    files = CELLS["written"]
    assert sum(bool(told(source, files)) for source in CELLS.values()) <= len(CELLS) // 50
    cases = {case.name: own_cells(case.work.source, case.notebook()) for case in HONEST}
    assert {name: own for name, own in cases.items() if told(*own)} == {}


def test_no_right_answer_is_told():
    for path in sorted(ROOT.glob("solutions/*/*.ipynb")):
        assert told(*own_cells(path.read_bytes(), path.read_bytes())) == [], path
    assert told(*KQV.right.values()) == []


def own_cells(source: bytes, submission: bytes) -> list[str]:
    """The cells that are a student's own, not given to all."""
    steps, _ = plan(read_cells(submission), Assignment(NAME, read_cells(source)))
    return [step.source for step in steps if step.kind == "cell"]


def test_the_report_says_where():
    data = notebook(cell("import socket, ctypes"), answer("add", "import mmap\n" + RIGHT[0]))
    report = grade_submission(data, Assignment(NAME, read_cells(small())))
    assert "imports socket in cell 1, ctypes in cell 1, mmap in cell add: see what for" in (
        report.attention
    )


def test_the_list_is_short_and_of_packages():
    assert len(ORDINARY_MODULES) < 120
    assert all(name.isidentifier() for name in ORDINARY_MODULES)
    assert set(imported_names("import a.b, c\nfrom d import e")) == {"a.b", "c", "d"}
