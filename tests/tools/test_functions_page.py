"""The page of the package's functions: formulas as TeX, docstrings as Markdown, every function."""

from __future__ import annotations

import ast

import course
import pytest
from docstring_formulas import formula
from functions_page import as_markdown, module_path, section

from attncourse.checks.index import index
from helpers.project import ROOT

CHAPTERS = course.load(ROOT).chapters


@pytest.mark.parametrize(
    ("code", "tex"),
    [
        ("S = Q Kᵀ", r"S = Q K^{\top}"),
        (
            "softmax(Q Kᵀ / √d_k) V",
            r"\text{softmax}\left(\frac{Q K^{\top}}{\sqrt{d_{k}}}\right) \, V",
        ),
        ("a / (‖X[i]‖ ‖b‖)", r"\frac{a}{\left\Vert X_{i} \right\Vert \left\Vert b \right\Vert}"),
        ("x[t, i·d/h : (i+1)·d/h]", r"x[t, i \cdot d / h : (i + 1) \cdot d / h]"),
        ("2**(-8 (h + 1) / n_heads)", r"2^{-8 (h + 1) / n_{\text{heads}}}"),
        ("J[..., i, j] = p_i (δ_ij − p_j)", r"J_{\ldots, i, j} = p_{i} (\delta_{ij} - p_{j})"),
        ("H = −Σ_j a_j ln a_j", r"H = -\sum_{j} a_{j} \ln a_{j}"),
        ("|i - j| <= (width - 1) / 2", r"\left| i - j \right| \le \frac{\text{width} - 1}{2}"),
        ("min(1, p / q)", r"\min\left(1, \frac{p}{q}\right)"),
        ("(a + b) (c + d) / (e + f)", r"\frac{(a + b) (c + d)}{e + f}"),
        ("warmup^−3/2", r"\text{warmup}^{-3/2}"),
    ],
)
def test_a_formula_is_drawn(code, tex):
    assert formula(code) == tex


@pytest.mark.parametrize(
    "code",
    [
        "(..., n, h·d_head)",
        "(n + 1, d)",
        "i // block == j // block",
        "rms_norm(x) @ tableᵀ",
        "draft(ids, k)",
        "batch_first=True",
        "attncourse/kqv.py",
        "-1e9",
        "d_k",
        "a + (b",
        "x = a; b",
    ],
)
def test_code_that_is_no_formula_stays_code(code):
    assert formula(code) is None


def test_a_docstring_is_markdown():
    text = "Row i is ``U = A X``, *never* [x] or $5.\n\n``(n,)``: one for\neach of a_b."
    assert as_markdown(text) == (
        "Row i is {math}`U = A X`, *never* \\[x\\] or \\$5.\n\n`(n,)`: one for each of a\\_b."
    )


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_every_function_has_an_entry(chapter):
    settings = course.load(ROOT)
    text = section(settings, chapter)
    for node in ast.parse(module_path(settings, chapter).read_text("utf-8")).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        kind = "class" if isinstance(node, ast.ClassDef) else "function"
        is_listed = f"{{py:{kind}}} {node.name}" in text
        assert is_listed is not node.name.startswith(("_", "require_")), node.name
    exercises = [known for known in index().values() if known.stem == chapter.stem]
    assert exercises
    for known in exercises:
        assert known.page.removeprefix("book/") in text
