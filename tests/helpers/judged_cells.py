"""Answers judged by tests that a test writes."""

import ast

from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment, read_cells
from helpers.small_course import cell, graded, notebook, solution

LIMITS = Limits(submission=30, cell=3, call=3, grace=0.5)
IMPORTS = cell("import numpy as np\nimport torch\nfrom torch import nn", "imports", locked=True)


def judge_answer(
    answer: str,
    *tests: str,
    given: str = "",
    defines: tuple[str, ...] = (),
    limits: Limits = LIMITS,
    seed: int = 7,
):
    """Return the messages of these tests, run against the answer: "" for each that passes.

    ``given`` is a given cell; ``defines`` names what the instructor's solution defines, by
    default what the answer does.
    """
    stub = "### BEGIN SOLUTION\n" + "\n".join(f"{n} = None" for n in defines or names_in(answer))
    cells = [
        IMPORTS,
        *([cell(given, "given")] if given else []),
        solution("answer", stub + "\n### END SOLUTION"),
        *(graded(f"t{i}", test, 1) for i, test in enumerate(tests)),
    ]
    assignment = Assignment("01_split", read_cells(notebook(*cells)))
    position = next(i for i, c in enumerate(cells) if c["id"] == "answer")
    handed_in = [*cells[:position], solution("answer", answer), *cells[position + 1 :]]
    data = notebook(*handed_in)
    report = grade_submission(data, assignment, limits=limits, seed=seed)
    assert [c.points for c in report.cells.values()] == [
        0 if c.message else 1 for c in report.cells.values()
    ]
    return [c.message for c in report.cells.values()]


def names_in(answer: str) -> list[str]:
    """Return the names that an answer defines; ``f`` where it is no Python."""
    try:
        body = ast.parse(answer).body
    except SyntaxError:
        return ["f"]
    names = [n.name for n in body if hasattr(n, "name")]
    names += [
        t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if hasattr(t, "id")
    ]
    return names or ["f"]


def passes_all(answer: str, *tests: str, **options) -> bool:
    messages = judge_answer(answer, *tests, **options)
    assert messages == [""] * len(tests), messages
    return True
