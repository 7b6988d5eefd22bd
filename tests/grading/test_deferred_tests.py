"""Hidden tests are deferred, and nothing that a submission saw in one comes out."""

import json
from dataclasses import replace

import pytest

from attncourse.grading.judge.deferred_tests import is_disturbed
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.report import to_json
from attncourse.grading.submission.notebook import Assignment, read_cells
from attncourse.grading.submission.plan import Step
from helpers.dedented_text import dedented
from helpers.small_course import cell, graded, notebook, solution

SECRET = "8675309"
IMPORTS = cell("import numpy as np\nimport torch", "imports", locked=True)


def hidden_test(grade_id: str, source: str) -> dict:
    text = f"# More tests.\n### BEGIN HIDDEN TESTS\n{source}\n### END HIDDEN TESTS"
    return graded(grade_id, text, 1)


def report_on(cells: list[dict], handed_in: list[dict], **limits: float):
    """Return the report on a submission to an assignment, each a list of cells."""
    assignment = Assignment("01_split", read_cells(notebook(*cells)))
    chosen = replace(Limits(submission=30, cell=3, call=3), **limits)
    return grade_submission(notebook(*handed_in), assignment, limits=chosen, seed=7)


def points_by_test(report) -> dict[str, float]:
    return {grade_id: cell.points for grade_id, cell in report.cells.items()}


# --- what comes out -----------------------------------------------------------------------------

LISTENING_ANSWER = dedented("""
    heard = []
    def f(x):
        heard.append(x)
        {statement}
        return x + 1
""")
TELLING_STATEMENTS = {
    "in an exception's message": "if heard[-1] > 9: raise ValueError(str(x))",
    "in an exception's class": "if heard[-1] > 9: raise type(f'x{x}', (ValueError,), {})()",
    "in the name of its function": "f.__name__ = f.__qualname__ = f'x{x}'\n    raise ValueError",
    "in what it returns": "return x if heard[-1] > 9 else x + 1",
    "in what it prints": "print(x)\n    if heard[-1] > 9: raise KeyError(x)",
    "in the size of a message that it writes itself": "\n    import os, struct\n"
    "    for fd in range(3, 20):\n        try: os.write(fd, struct.pack('!IQ', 20, x * 10**6))\n"
    "        except OSError: pass\n    if x > 9: os._exit(1)",
    "in a later answer": "if heard[0] > 9: raise ValueError(str(heard))",
}
LATER_ANSWER = dedented("""
    def g(x):
        {statement}
        return x
""")
LATER_STATEMENTS = {
    "a later answer's exception": "raise ValueError(f'heard {heard}')",
    "a later answer's number": "return float(max(heard))",
    "a later answer's type": "return type(f'x{max(heard)}', (), {})()",
    "a later answer's keys": "return {str(h): 1 for h in heard}",
}


@pytest.mark.parametrize("use", ["f({0})", "assert f({0}) == 1", "{{}}[f({0})]", "f.a({0})"])
@pytest.mark.parametrize("statement", TELLING_STATEMENTS.values(), ids=TELLING_STATEMENTS)
def test_no_argument_of_a_hidden_test_comes_out(statement, use):
    answer = solution("f", LISTENING_ANSWER.format(statement=statement))
    tests = [graded("t", "assert f(1) == 2", 1), hidden_test("h", use.format(SECRET))]
    second_hidden_test = hidden_test("i", f"assert f({SECRET}) == 1")
    report = report_on(
        [IMPORTS, solution("f", "f = 1"), *tests, second_hidden_test], [IMPORTS, answer, *tests]
    )
    assert points_by_test(report)["h"] == 0
    assert SECRET not in json.dumps(to_json(report))


@pytest.mark.parametrize("statement", LATER_STATEMENTS.values(), ids=LATER_STATEMENTS)
def test_no_argument_comes_out_in_later_cells(statement):
    first, second = (
        solution("f", LISTENING_ANSWER.format(statement="pass")),
        solution("g", LATER_ANSWER.format(statement=statement)),
    )
    test = hidden_test("h", f"assert f({SECRET}) == {SECRET} + 1")
    visible_test = graded("t", "from attncourse.checks import examine\nassert g(1) == 1, g(1)", 1)
    examining_test = graded("v", "examine('mixing.uniform_weights', g).earned", 9)
    scratch = cell("raise ValueError(f'heard {heard}')")
    cells = [
        IMPORTS,
        solution("f", "f = 1"),
        test,
        solution("g", "g = 1"),
        visible_test,
        examining_test,
    ]
    report = report_on(cells, [IMPORTS, first, test, second, scratch, visible_test, examining_test])
    assert points_by_test(report)["h"] == 1
    assert [note for note in report.notes if "heard []" in note]
    assert SECRET not in json.dumps(to_json(report))


def test_no_argument_comes_out_when_cells_run_again():
    spy = dedented("""
        seen = missing
        def f(x):
            open('heard', 'a').write(str(x))
            return x
    """)
    telling_cell = (
        "import os\nif os.path.exists('heard'): raise ValueError(open('heard').read())\nnothing"
    )
    cells = [IMPORTS, solution("f", "f = 1"), hidden_test("h", f"assert f({SECRET}) == {SECRET}")]
    handed_in = [IMPORTS, solution("f", spy), cells[2], cell(telling_cell), cell("missing = 1")]
    report = report_on(cells, handed_in)
    assert points_by_test(report) == {"h": 1}
    assert SECRET not in json.dumps(to_json(report))


def test_a_check_in_a_hidden_test_gives_points_without_words():
    answer = f"def mix(A, X):\n    return {SECRET} * A @ X"
    source = "from attncourse.checks import examine\nexamine('mixing.mix', mix).earned > 99"
    report = report_on(
        [IMPORTS, solution("mix", "mix = 1"), hidden_test("h", source)],
        [IMPORTS, solution("mix", answer)],
    )
    (verdict,) = report.verdicts
    assert verdict["target"] == "mixing.mix"
    assert not verdict["passed"]
    assert not any(criterion["message"] for criterion in verdict["criteria"])
    assert "8675" not in json.dumps(to_json(report))


def test_a_test_that_needs_a_hidden_tests_names_is_deferred():
    test = hidden_test("h", f"secret = {SECRET}")
    visible_test = graded("t", "assert f(secret) == 1, f(secret)", 1)
    cells = [IMPORTS, solution("f", "f = 1"), test, visible_test]
    report = report_on(cells, [IMPORTS, solution("f", "def f(x):\n    raise ValueError(str(x))")])
    assert points_by_test(report) == {"h": 1, "t": 0}
    assert SECRET not in json.dumps(to_json(report))


# --- which state a hidden test finds ------------------------------------------------------------

RIGHT_ANSWER = "def f(x):\n    return x + 1"
HIDDEN_TEST = hidden_test("h", "assert f(1) == 2")
OTHER_CELLS = [solution("g", "def g(x):\n    return x"), graded("t", "assert g(1) == 1", 1)]


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ("", 1),
        ("f = None", 1),
        ("del f", 1),
        ("def f(x):\n    return 0", 1),
        ("from math import cos as f", 1),
        ("table[1] = 0", 1),
        ("table.clear()", 1),
        ("helper.amount = 5", 1),
        ("def helper():\n    return 9", 1),
        (
            dedented("""
                def spoil():
                    global table
                    table = {}
                spoil()
            """),
            1,
        ),
        ("import os\nos._exit(0)", 1),
        ("while True:\n    pass", 1),
    ],
)
def test_a_hidden_test_finds_the_state_at_its_place(later, expected):
    answer = dedented("""
        table = {1: 2}
        def helper():
            return getattr(helper, 'amount', 0)
        def f(x):
            return table[x] + helper()
    """)
    cells = [IMPORTS, solution("f", "f = 1"), HIDDEN_TEST, *OTHER_CELLS]
    handed_in = [IMPORTS, solution("f", answer), HIDDEN_TEST, *OTHER_CELLS, cell(later)]
    assert points_by_test(report_on(cells, handed_in, cell=1)) == {"h": expected, "t": 1}


def test_a_definition_after_a_hidden_test_is_too_late():
    cells = [IMPORTS, solution("f", "f = 1"), HIDDEN_TEST, *OTHER_CELLS]
    handed_in = [IMPORTS, solution("f", "f = None"), HIDDEN_TEST, *OTHER_CELLS, cell(RIGHT_ANSWER)]
    assert points_by_test(report_on(cells, handed_in)) == {"h": 0, "t": 1}
    mended_submission = [
        IMPORTS,
        solution("f", f"missing\n{RIGHT_ANSWER}"),
        HIDDEN_TEST,
        *OTHER_CELLS,
        cell("missing = 1"),
    ]
    assert points_by_test(report_on(cells, mended_submission)) == {"h": 1, "t": 1}


def test_a_hidden_test_finds_the_instructors_names():
    cells = [
        IMPORTS,
        cell(
            dedented("""
                def twice(x):
                    return f(f(x))
                step = 1
            """),
            "given",
            locked=True,
        ),
        solution("f", "f = 1"),
        graded("a", "x = 1\nassert twice(x) == 3 and step == 1", 1),
        hidden_test("h", "y = twice(x)\nassert (x, y, step) == (1, 3, 1)"),
        cell("step = 5", "more", locked=True),
        graded("b", "x = 2\nassert f(x) == 3 and step == 5", 1),
        hidden_test("i", "assert (x, y, step) == (2, 3, 5) and twice(x) == 4"),
    ]
    handed_in = [c for c in cells if c["id"] != "f"]
    all_points = dict.fromkeys("ahbi", 1)
    assert points_by_test(
        report_on(cells, [*handed_in[:2], solution("f", RIGHT_ANSWER), *handed_in[2:]])
    ) == (all_points)
    spoilt_submission = [
        *handed_in[:2],
        solution("f", RIGHT_ANSWER),
        *handed_in[2:],
        cell("f = None"),
    ]
    assert points_by_test(report_on(cells, spoilt_submission)) == all_points


def test_a_hidden_test_that_ends_its_process_fails_alone():
    answer = dedented("""
        import os
        def f(x):
            if x == 7: os._exit(0)
            return x + 1
    """)
    cells = [
        IMPORTS,
        solution("f", "f = 1"),
        hidden_test("h", "f(7)"),
        HIDDEN_TEST | {"id": "x"},
        *OTHER_CELLS,
    ]
    report = report_on(cells[:3] + OTHER_CELLS, [IMPORTS, solution("f", answer), *OTHER_CELLS])
    assert points_by_test(report) == {"h": 0, "t": 1}
    assert report.status == "interrupted"


def step(source: str, kind: str = "cell") -> Step:
    return Step("", source, kind)


def test_ordinary_notebooks_need_no_second_process():
    steps = [
        step("import numpy as np", "given"),
        step("def project(x, weight):\n    return x @ weight"),
        step("x = np.ones(3)\nproject(x, x)", "given"),
        step("x = np.eye(2)\nassert np.allclose(project(x, x), x)", "test"),
        step(
            dedented("""
                import numpy as np
                def rank(x):
                    return np.argsort(project(x, x))
            """)
        ),
        step("x = 3\nweight = 4\nprint(project, x)", "given"),
        step("not python"),
    ]
    assert not is_disturbed(steps, [3])
    assert is_disturbed([*steps, step("def project(x): pass")], [3])
    assert is_disturbed([*steps, step("np = None")], [3])
