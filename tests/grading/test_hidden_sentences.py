"""A hidden test that fails tells a student the instructor's sentence, and nothing else."""

import ast
from dataclasses import replace

import pytest
from rich.console import Console

from attncourse.grading.gradebook.read import Person
from attncourse.grading.judge.assertion_message import (
    AssertionMessage,
    assertion_message_of,
    assertions_in,
)
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.report import UNFORESEEN, Report
from attncourse.grading.results.class_results import ClassResults, from_report
from attncourse.grading.results.summary import Summary
from attncourse.grading.results.terminal import at_a_glance, class_table
from attncourse.grading.submission.notebook import Assignment, read_cells
from helpers.hidden_tests import NAMED
from helpers.small_course import cell, graded, notebook, solution

# --- every hidden test of the course ------------------------------------------------------------


@pytest.mark.parametrize(("folder", "name", "source"), NAMED)
def test_every_hidden_assertion_has_a_sentence(folder, name, source):
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    sentences = [sentence for _, _, sentence in assertions_in(source)]
    assert len(sentences) == len(nodes) > 0
    for node, sentence in zip(nodes, sentences, strict=True):
        assert isinstance(node.msg, ast.Constant), ast.unparse(node)
        assert len(sentence.split()) >= 5, f"no sentence: {sentence}"


def test_no_two_assertions_of_an_exercise_say_the_same():
    for _, name, source in (param.values for param in NAMED):
        sentences = [sentence for _, _, sentence in assertions_in(source)]
        assert len(set(sentences)) == len(sentences), name


# --- what is read from a source -----------------------------------------------------------------

SOURCE = """\
def close(a, b):
    assert abs(a - b) < 1, "a and b are close"

x = f(3)
assert (
    x == 4
), "one more than " "it was"
assert x < seen[0], f"seen {seen} times, {len(seen)}"
assert x, str(x)
close(x, 9)
"""


def message_of_failure(f, seen=(9,)) -> AssertionMessage:
    """Return the message that is read from the failure of ``SOURCE`` with this ``f``."""
    try:
        exec(compile(SOURCE, "<test>", "exec"), {"f": f, "seen": seen})
    except Exception as error:
        return assertion_message_of(error, SOURCE, "<test>")
    raise ValueError("expected it to fail")


def test_the_sentence_belongs_to_the_failed_assertion():
    assert message_of_failure(lambda x: 5) == AssertionMessage("one more than it was")
    assert message_of_failure(lambda x: x + 1) == AssertionMessage("a and b are close")
    assert message_of_failure(lambda x: x + 1, seen=[0]) == AssertionMessage("seen … times, …")


def test_a_raising_call_stops_before_the_next_assertion():
    assert message_of_failure(lambda x: 1 / 0) == AssertionMessage("one more than it was", False)


def test_a_message_of_the_submission_is_no_sentence():
    def raise_own_message(x):
        raise AssertionError("what was sent: 3")

    assert message_of_failure(raise_own_message) == AssertionMessage("one more than it was", False)
    assert assertions_in("assert x, str(x)\nassert y\nassert z, f'{z}'") == (
        (1, 1, ""),
        (2, 2, ""),
        (3, 3, ""),
    )


# --- through the judge --------------------------------------------------------------------------

HIDDEN = """\
# One more test of twice.
### BEGIN HIDDEN TESTS
out = twice(21)
assert out == 42, f"twice 21 is 42, and {out} is not"
assert twice(-1) == -2, "a number below zero is doubled too"
### END HIDDEN TESTS
"""
SOLUTION = """\
def twice(x):
    return 2 * x
"""


def message_of_hidden_test(answer: str) -> str:
    """Return the report's message on the hidden test, without any word of the answer."""
    tests = [graded("points_twice", "twice(2) / 4", 1), graded("hidden_twice", HIDDEN, 1)]
    assignment = Assignment("01_small", read_cells(notebook(solution("twice", SOLUTION), *tests)))
    handed_in = notebook(solution("twice", answer), *tests)
    report = grade_submission(handed_in, assignment, limits=Limits(submission=20), seed=5)
    assert report.cells["points_twice"].points == 1
    assert "heard" not in str(report)
    return report.cells["hidden_twice"].message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 2 * x", ""),
        ("return 2 * abs(x)", "a hidden test failed: a number below zero is doubled too"),
        ("return 4", "a hidden test failed: twice 21 is 42, and … is not"),
        (
            'assert x < 20, "heard"; return 2 * x',
            "a hidden test failed (AssertionError) on the way to: twice 21 is 42, and … is not",
        ),
        (
            'if x < 0: raise ValueError("heard")\n    return 2 * x',
            "a hidden test failed (ValueError): a number below zero is doubled too",
        ),
        (
            'return type("heard", (str,), {"__eq__": lambda a, b: x == 2})() if x > 2 else 4',
            "a hidden test failed: twice 21 is 42, and … is not",
        ),
    ],
)
def test_the_report_uses_only_the_instructors_words(body, message):
    assert message_of_hidden_test(f"def twice(x):\n    {body}") == message


# --- what a check did not foresee ---------------------------------------------------------------

MIXING = """\
# One more test of mix.
### BEGIN HIDDEN TESTS
assert mix(np.eye(2), np.eye(2))[0, 0] == {number}, "two tokens, each by itself, come back"
### END HIDDEN TESTS
"""


def report_of(answer: str, number: int) -> Report:
    """Return the report on an answer to ``mix``; the hidden test expects ``number``."""
    cells = [
        cell("import numpy as np\nfrom attncourse.checks import examine"),
        solution("mix", "def mix(A, X):\n    return A @ X"),
        graded("points_mix", 'examine("mixing.mix", mix).earned', 7),
        graded("hidden_mix", MIXING.format(number=number), 1),
    ]
    assignment = Assignment("02_mixing", read_cells(notebook(*cells)))
    cells[1] = solution("mix", answer)
    return grade_submission(
        notebook(*cells), assignment, student="ada", limits=Limits(submission=20), seed=5
    )


def test_failing_only_the_hidden_test_is_noted():
    expected_note = (
        "mix passes its check, but a hidden test failed: two tokens, each by itself, come back"
    )
    right, wrong = "def mix(A, X):\n    return A @ X", "def mix(A, X):\n    return X.T @ A"
    report = report_of(right, 2)
    assert report.notes == (expected_note,)
    assert report_of(right, 1).notes == ()
    assert not any(UNFORESEEN in note for note in report_of(wrong, 2).notes)
    results = (from_report(Person("ada"), "02_mixing", report),) * 2
    summary = Summary(ClassResults("02_mixing", results))
    assert summary.unforeseen == ((expected_note, 2),)
    after, before = (replace(results[0], notes=(name + expected_note,)) for name in "yx")
    tied_summary = Summary(
        ClassResults("02_mixing", (after, before, *results))
    )  # ties by their words
    assert tied_summary.unforeseen == (
        (expected_note, 2),
        ("x" + expected_note, 1),
        ("y" + expected_note, 1),
    )
    for table in (class_table([report], 200), at_a_glance(summary)):
        console = Console(width=200, record=True)
        with console.capture() as captured:
            console.print(table)
        assert expected_note in captured.get()
