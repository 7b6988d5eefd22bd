"""The plan of a submission: which steps run, and in which order."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attncourse.checks.reading.cells import TIMEIT_KEEPS_NAMES
from attncourse.grading.judge.instructor_namespace import names_bound
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment, Cell, read_cells
from attncourse.grading.submission.parts import as_released
from attncourse.grading.submission.plan import lay_out, plan
from attncourse.grading.submission.source import names_in_cell as source_names
from attncourse.grading.submission.source import without_magics
from helpers.dedented_text import dedented
from helpers.small_course import NAME, RIGHT, STUB, TESTS, cell, graded, notebook, small
from helpers.small_course import solution as answer

LIMITS = Limits(submission=30, cell=2)
SMALL_ASSIGNMENT = Assignment(NAME, read_cells(small()))
ADD, TWICE = answer("add", RIGHT[0]), answer("twice", RIGHT[1])
SETUP, POINTS_ADD, HIDDEN_ADD, POINTS_TWICE = TESTS


def assignment_of_cells(*cells: dict) -> Assignment:
    return Assignment("a", read_cells(notebook(*cells)))


def names_of_steps(*cells: dict, assignment: Assignment = SMALL_ASSIGNMENT) -> list[str]:
    """Return the names of the steps planned for a submission of these cells."""
    steps, _ = plan(read_cells(notebook(*cells)), assignment)
    return [step.name.removeprefix("cell ").removeprefix("test ") for step in steps]


def notes_of_plan(*cells: dict, assignment: Assignment = SMALL_ASSIGNMENT) -> list[str]:
    """Return the notes on a submission of these cells."""
    return plan(read_cells(notebook(*cells)), assignment)[1]


# --- tests ------------------------------------------------------------------------------------


def test_an_edited_test_runs_as_the_instructors():
    changed = notebook(graded("points_add", "2", 2), answer("add", "def add(a, b): ..."))
    steps, _ = plan(read_cells(changed), SMALL_ASSIGNMENT)
    assert next(s.source for s in steps if s.grade_id == "points_add") == TESTS[1]["source"]


def test_steps_have_kinds():
    loose = cell("helper = 1")
    steps, _ = plan(read_cells(notebook(SETUP, ADD, loose, TWICE, *TESTS[1:])), SMALL_ASSIGNMENT)
    kinds = ["given", "cell", "cell", "cell", "test", "test", "test"]
    assert [step.kind for step in steps] == kinds
    assert [bool(step.grade_id) for step in steps] == [kind == "test" for kind in kinds]


def test_lost_tests_are_put_back_in_order():
    full = ["setup", "add", "twice", "points_add", "hidden_add", "points_twice"]
    assert names_of_steps(SETUP, ADD, TWICE, POINTS_ADD, HIDDEN_ADD) == full
    assert names_of_steps(SETUP, ADD, TWICE, HIDDEN_ADD, POINTS_TWICE) == full
    assert names_of_steps(ADD, TWICE) == full
    assert names_of_steps(ADD, TWICE, POINTS_ADD) == full
    # students' copy of a hidden test is only a comment, so nobody can tell that it is missing
    assert notes_of_plan(ADD, TWICE, POINTS_ADD) == [
        "missing tests were put back: setup, points_twice"
    ]


def test_a_second_copy_of_a_test_is_ignored():
    assert names_of_steps(ADD, *TESTS, *TESTS) == names_of_steps(ADD, *TESTS)
    assert sum("second copy" in note for note in notes_of_plan(ADD, *TESTS, *TESTS)) == len(TESTS)


def test_a_copy_of_a_test_is_recognised_by_its_content():
    loose = [cell("  \n" + as_released(Cell(t["source"])) + "\n\n") for t in TESTS]
    assert names_of_steps(ADD, TWICE, *loose) == names_of_steps(ADD, TWICE, *TESTS)
    assert notes_of_plan(ADD, TWICE, *loose) == []
    mine = graded("points_add", RIGHT[0], 2)
    expected = ["setup", "2", "twice", "points_add", "hidden_add", "points_twice"]
    assert names_of_steps(SETUP, mine, TWICE) == expected
    older = graded("points_add", "assert add(1, 1) == 2", 2)
    assert names_of_steps(SETUP, ADD, TWICE, older, *TESTS[2:])[3:5] == ["4", "points_add"]


TWO_EXERCISES = assignment_of_cells(
    cell("import math"),
    answer("one", "### BEGIN SOLUTION\ndef f(): return 1\n### END SOLUTION"),
    graded("points_one", "assert f() == 1", 1),
    answer("two", "### BEGIN SOLUTION\ndef g(): return 2\n### END SOLUTION"),
    graded("points_two", "assert g() == 2", 1),
)
ANSWER_ONE, ANSWER_TWO = answer("one", "def f(): return 1"), answer("two", "def g(): return 2")
POINTS_ONE = graded("points_one", "assert f() == 1", 1)
POINTS_TWO = graded("points_two", "assert g() == 2", 1)
HELPER = cell("helper = 1")


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        ([ANSWER_ONE, POINTS_ONE, ANSWER_TWO, POINTS_TWO], "one points_one two points_two"),
        ([ANSWER_TWO, POINTS_TWO, ANSWER_ONE, POINTS_ONE], "two one points_two points_one"),
        ([POINTS_ONE, POINTS_TWO, ANSWER_ONE, ANSWER_TWO], "one points_one two points_two"),
        ([ANSWER_ONE, ANSWER_TWO, POINTS_TWO, POINTS_ONE], "one two points_one points_two"),
        ([ANSWER_ONE, HELPER, ANSWER_TWO, POINTS_TWO], "one 2 points_one two points_two"),
        ([ANSWER_ONE, ANSWER_TWO, HELPER], "one points_one two 3 points_two"),
        ([ANSWER_ONE, POINTS_ONE, HELPER, ANSWER_TWO], "one points_one 3 two points_two"),
        ([POINTS_ONE, cell("def f(): return 1"), ANSWER_TWO], "2 points_one two points_two"),
        ([HELPER, cell("f = g = None")], "1 2 points_one points_two"),
        (
            [ANSWER_ONE, graded("points_one", "f()", 1), HELPER, ANSWER_TWO],
            "one 2 points_one 3 two points_two",
        ),
        ([ANSWER_TWO, ANSWER_ONE, ANSWER_ONE], "two one one points_one points_two"),
        ([], "points_one points_two"),
    ],
)
def test_a_test_comes_after_everything_it_needs(cells, order):
    assert names_of_steps(*cells, assignment=TWO_EXERCISES) == order.split()


def test_a_name_that_is_answered_twice_is_tested_twice():
    assignment = assignment_of_cells(
        answer("first", "def f(): return 1"),
        graded("points_first", "assert f() == 1", 1),
        answer("second", "def f(): return 2"),
        graded("points_second", "assert f() == 2", 1),
    )
    first, second = answer("first", "def f(): return 1"), answer("second", "def f(): return 2")
    expected = ["first", "points_first", "second", "points_second"]
    assert names_of_steps(first, second, assignment=assignment) == expected
    test = graded("points_first", "assert f() == 1", 1)
    assert names_of_steps(first, second, test, assignment=assignment)[-1] == "points_second"
    assert (
        names_of_steps(test, second, cell("def f(): return 2"), assignment=assignment)[0]
        == "points_first"
    )


def test_a_test_comes_after_those_whose_names_it_uses():
    course = assignment_of_cells(
        answer("one", "def f(): return 1"),
        graded("points_one", "def near(a, b): return a == b\nassert near(f(), 1)", 1),
        answer("two", "def g(): return 2"),
        graded("points_two", "assert near(g(), 2)", 1),
    )
    test = graded("points_two", "assert near(g(), 2)", 1)
    expected = ["two", "one", "4", "points_one", "points_two"]
    assert names_of_steps(ANSWER_TWO, test, ANSWER_ONE, HELPER, assignment=course) == expected


def test_a_setup_comes_before_the_answers_that_follow_it():
    course = assignment_of_cells(
        cell("import math"),
        answer("one", "def f(): return 1"),
        cell("x = f()", "setup", locked=True),
        answer("two", "y = x"),
        graded("points", "assert y == 1", 1),
    )
    first, second = answer("one", "def f(): return 1"), answer("two", "y = x")
    setup = cell("x = f()", "setup", locked=True)
    expected = ["one", "setup", "two", "points"]
    for cells in (
        [first, setup, second],
        [setup, first, second],
        [first, second, setup],
        [first, second],
    ):
        assert names_of_steps(*cells, assignment=course) == expected
    course_of_setup = assignment_of_cells(
        cell("import math"), cell("x = math.e", "setup", locked=True), POINTS_ONE
    )
    assert names_of_steps(cell("import math"), assignment=course_of_setup) == [
        "1",
        "setup",
        "points_one",
    ]
    edited = cell("x = 7\nmine = 1", "setup", locked=True)
    assert names_of_steps(first, edited, second, assignment=course) == [
        "one",
        "2",
        "setup",
        "two",
        "points",
    ]


def test_given_cells_come_back_where_they_are_needed():
    used, unused = answer("one", "def f(): return math.pi"), answer("one", "def f(): return 3")
    assert names_of_steps(used, assignment=TWO_EXERCISES)[:2] == ["given", "one"]
    assert names_of_steps(used, cell("import math"), assignment=TWO_EXERCISES)[:3] == [
        "given",
        "one",
        "2",
    ]
    assert names_of_steps(cell("import math, sys"), used, assignment=TWO_EXERCISES)[:2] == [
        "1",
        "one",
    ]
    assert names_of_steps(cell("y = math.pi"), used, assignment=TWO_EXERCISES)[:2] == ["given", "1"]
    assert names_of_steps(unused, assignment=TWO_EXERCISES)[0] == "one"
    steps, _ = plan(read_cells(notebook(cell("import math"), ANSWER_ONE)), TWO_EXERCISES)
    assert [step.kind for step in steps][:2] == ["given", "cell"]


def test_a_cell_that_only_shows_a_verdict_is_left_out():
    check = cell("check('g', g)", "check_two", locked=True)
    course = Assignment(
        "a", (*TWO_EXERCISES.cells[:4], *read_cells(notebook(check)), *TWO_EXERCISES.cells[4:])
    )
    tests = [ANSWER_ONE, POINTS_ONE, ANSWER_TWO, POINTS_TWO]
    expected = ["one", "points_one", "two", "points_two"]
    for cells in ([ANSWER_ONE, check, ANSWER_TWO], [*tests, check], [check, *tests]):
        assert names_of_steps(*cells, assignment=course) == expected
    assert names_of_steps(*tests, HELPER, check, assignment=course) == [*expected, "5"]


@pytest.mark.parametrize(
    ("source", "bound"),
    [
        ("[f for f in x]\n{f: f for f in x}\nany(f for f in x)", ""),
        ("[(f := 1) for g in x if (h := g)]", "f h"),
        ("a = [b for b in [c for c in x]]\nd = lambda e: (g := e)", "a d"),
        (
            "match x:\n  case [f, *g]: pass\n  case {'a': h, **i} | j: pass\n  case _: pass",
            "f g h i j",
        ),
        (
            dedented("""
                try:
                  pass
                except ValueError as f:
                  g = 1
            """),
            "g",
        ),
        (
            dedented("""
                with x as f, y as (g, h):
                  pass
                for i, *j in x: pass
                k += 1
            """),
            "f g h i j k",
        ),
        (
            dedented("""
                def f(a, b=(g := 1)):
                  global h
                  c = 1
                  def d(): global i
            """),
            "f g h i",
        ),
        (
            dedented("""
                @(f := x)
                class g((h := y)):
                  i = 1
                  def j(self): k = 1
            """),
            "f g h",
        ),
        (
            dedented("""
                f = g = 1
                del f
                if x:
                  del g
            """),
            "g",
        ),
        ("f = 1\ndel f, x[0]\nf = 2", "f"),
        ("from math import *\nimport a.b, c.d as e\nfrom . import f as g", "a e g"),
        ("f: int\ng: int = 1\nh.i = j[0] = 1", "g"),
        ("async def f():\n  async with x as g: pass\n  async for h in y: pass", "f"),
    ],
)
def test_bound_names_agree_in_plan_and_judge(source, bound):
    assert source_names(source).bound == names_bound(source) == frozenset(bound.split())


def test_a_given_comprehension_hides_no_name_of_an_answer():
    """The test calls the student's ``f``, although a given cell has a loop variable ``f``."""
    course = assignment_of_cells(
        answer("one", "### BEGIN SOLUTION\ndef f(): return 1\n### END SOLUTION"),
        cell("squares = [f * f for f in range(3)]"),
        graded("points", "assert f() == len(squares) - 2", 1),
    )
    report = grade_submission(notebook(answer("one", "def f(): return 1")), course, limits=LIMITS)
    assert report.points == 1, report.cells


# --- answers ----------------------------------------------------------------------------------


def test_an_unfilled_stub_does_not_replace_an_answer():
    stub = answer("one", "def f():\n    raise NotImplementedError()")
    course = assignment_of_cells(
        answer(
            "one",
            dedented("""
                def f():
                    ### BEGIN SOLUTION
                    return 1
                    ### END SOLUTION
            """),
        ),
        graded("points_one", "assert f() == 1", 1),
    )
    mine = cell("def f():\n    return 1")
    assert names_of_steps(mine, stub, POINTS_ONE, assignment=course) == ["1", "points_one"]
    assert names_of_steps(stub, POINTS_ONE, mine, assignment=course) == ["3", "points_one"]
    assert names_of_steps(ANSWER_ONE, stub, assignment=course) == ["one", "points_one"]
    assert names_of_steps(stub, assignment=course) == ["one", "points_one"]
    assert names_of_steps(ADD, answer("add", STUB), TWICE, *TESTS).count("add") == 1


def test_markdown_runs_only_where_it_is_the_only_answer():
    parked = {**ANSWER_TWO, "cell_type": "markdown", "source": "def g(): return 3"}
    assert names_of_steps(ANSWER_ONE, parked, assignment=TWO_EXERCISES) == [
        "one",
        "points_one",
        "two",
        "points_two",
    ]
    assert (
        "3"
        not in names_of_steps(
            ANSWER_ONE, parked, cell("def g(): return 2"), assignment=TWO_EXERCISES
        )[2]
    )
    prose = {**parked, "source": "Done"}
    assert names_of_steps(ANSWER_ONE, prose, assignment=TWO_EXERCISES) == [
        "one",
        "points_one",
        "points_two",
    ]


def test_split_statements_are_joined():
    def sources(*texts):
        steps, _ = plan(tuple(Cell(text) for text in texts), Assignment("a", ()))
        return [step.source for step in steps]

    assert sources("def f():", "    return 1") == ["def f():\n    return 1"]
    assert sources("a = (", "1 +", "2)", "b = 1") == ["a = (\n1 +\n2)", "b = 1"]
    assert sources("def f(:", "a = 1") == ["def f(:", "a = 1"]
    assert sources("a = 1", "  b = 2") == ["a = 1", "b = 2"]
    assert sources("@g", "def f(): pass") == ["@g", "def f(): pass"]
    assert sources("%%bash\nls", "    b = 2")[1] == "b = 2"


def test_cells_have_the_names_of_the_assignment():
    strange = cell("a = 1", "x" * 500 + "\n")
    assert names_of_steps(strange)[0] in ("1", "setup")
    placed_cells, _ = lay_out(read_cells(notebook(strange)), SMALL_ASSIGNMENT)
    assert placed_cells[0].grade_id == "setup"


# --- IPython ----------------------------------------------------------------------------------


def test_ipython_lines_are_removed_and_noted():
    source = dedented("""
        %matplotlib inline
        if x:
            !ls -l
        files = !ls
        print?
        y = 5 % 3
    """)
    plain, changed = without_magics(source)
    assert plain == dedented("""
        pass
        if x:
            pass
        files = None
        pass
        y = 5 % 3
    """)
    assert changed == tuple(f"{x} was not run" for x in ("!ls -l", "files = !ls", "print?"))
    assert without_magics('text = """\n%d items\n"""') == ('text = """\n%d items\n"""', ())
    assert without_magics("%%bash\nrm -r x")[0] == "\n"
    assert without_magics("%%time\nx = 1") == ("\nx = 1", ())
    assert without_magics("%time x = 1") == ("x = 1", ())
    assert without_magics("%%timeit\nx = 1") == ("\nx = 1", (TIMEIT_KEEPS_NAMES,))
    assert without_magics("%%timeit\nf(1)") == ("\nf(1)", ())  # which binds no name


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("x = %timeit -o f()", "x = None"),
        ("a.b, c[0] = %who_ls", "a.b, c[0] = None"),
        ("%time x = f()", "x = f()"),
        ("x = %time f()", "x = f()"),
        ("?f\nf??\nf.g?\n%magic?", "pass\npass\npass\npass"),
        ("!pip install \\\n  numpy\nx = 1", "pass\n\nx = 1"),
        ("!ls\nx = (5\n%b)", "pass\nx = (5\n%b)"),
        (
            dedented("""
                !it's
                x = '''
                !y
                '''
            """),
            dedented("""
                pass
                x = '''
                !y
                '''
            """),
        ),
        ("!ls\nx = 5 \\\n%b", "pass\nx = 5 \\\n%b"),
        ("!ls\nx = '\\'' # '''\n!ls", "pass\nx = '\\'' # '''\npass"),
        (
            dedented("""
                if x:
                  !ls
                else:
                  %cd a
            """),
            dedented("""
                if x:
                  pass
                else:
                  pass
            """),
        ),
        ("pip install x\nx = 1", "pass\nx = 1"),
        ("%%writefile a.py\nx = 1", "get_ipython().run_cell_magic('writefile', 'a.py', 'x = 1')\n"),
        ("\n%%capture\n!ls\nx = 1", "\n\npass\nx = 1"),
        ("  x = 1\n  y = 2", "x = 1\ny = 2"),
        ("await f()", "await f()"),
        ("get_ipython().run_line_magic('a', 'b')", "get_ipython().run_line_magic('a', 'b')"),
        ("x = !", "x = None"),
        ("def f(", "def f("),
    ],
)
def test_ipython_lines_have_a_plain_replacement(source, plain):
    assert without_magics(source)[0] == plain


@pytest.mark.parametrize("mark", ['"', "'"])
def test_a_long_line_is_read_in_linear_time(mark):
    start = time.process_time()
    source = f"!ls\n{mark}" + f"\\{mark}" * 10_000 + "\\\n!ls\n"
    assert without_magics(source)[1] == ("!ls was not run",)
    assert time.process_time() - start < 0.2


# --- the whole --------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32))
def test_points_do_not_depend_on_other_cells(seed):
    """Given cells and tests are shuffled among the answers, deleted, and repeated."""
    draw = random.Random(seed)
    others = [cell("# Small\nA title.", code=False), cell("note = 1"), *TESTS]
    others = [c for c in others for _ in range(draw.choice([0, 1, 1, 2]))]
    cells = [*draw.sample(others, len(others))]
    for solved in draw.sample([ADD, TWICE], 2):
        cells.insert(draw.randint(0, len(cells)), solved)
    report = grade_submission(notebook(*cells), SMALL_ASSIGNMENT, limits=LIMITS)
    assert report.points == 7, (report.notes, [c["source"] for c in cells])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([ADD, TWICE, *TESTS, HELPER, answer("add", STUB)]), max_size=12))
def test_every_test_and_every_students_cell_runs_once(cells):
    planned = names_of_steps(*cells)
    for test in TESTS:
        assert planned.count(test["metadata"]["nbgrader"]["grade_id"]) == 1
    students_sources = [c["source"] for c in cells if c in (ADD, TWICE, HELPER)]
    steps, _ = plan(read_cells(notebook(*cells)), SMALL_ASSIGNMENT)
    assert [s.source for s in steps if s.source in students_sources] == students_sources
    last = max((n for n, name in enumerate(planned) if name in ("add", "twice")), default=-1)
    assert planned.index("points_twice") > last
