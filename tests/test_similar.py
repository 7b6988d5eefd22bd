"""Similar submissions: what copies keep, what honest answers share, and what is never run."""

import ast
import inspect
import random
import re

import numpy as np
import pytest
import test_masking
from conftest import ROOT
from small_course import NAME, hand_in, make_course, small
from typer.testing import CliRunner

from attncourse.grading.class_.similar import (
    FEW,
    PACKAGE,
    PUBLISHED,
    alike,
    compare,
    published,
    similar,
)
from attncourse.grading.cli import app
from attncourse.grading.course.folders import find_assignment
from attncourse.grading.errors import UserError
from attncourse.grading.submission.fingerprints import OTHER, answers_of, fingerprints
from attncourse.grading.submission.notebook import Cell, read_cells

WRITTEN = '''
def window(n, width, causal=False):
    """A window."""
    back = width - 1 if causal else width // 2
    ahead = 0 if causal else width // 2
    return torch.ones(n, n).triu(-back).tril(ahead).bool()  # cut on both sides
'''
COPIED = """
def window(n, width, causal=False):
    a = 0 if causal else width // 2
    # how far to look back
    b = (width - 1
         if causal else width // 2)
    return (torch.ones(n, n)
            .triu(-b).tril(a).bool())
"""


def prints(source: str):
    return fingerprints(ast.parse(source))


def test_names_layout_comments_texts_and_order_leave_no_print():
    assert prints(COPIED) == prints(WRITTEN)
    assert prints("x = f'{a} b'\ny = 'one'") == prints("y = 'two'\nx = f'c'")
    assert prints("def f(x: int) -> int:\n    return x") == prints("def g(y):\n    return y")


@pytest.mark.parametrize(
    ("old", "new"),
    [("tril", "triu"), ("width - 1", "width - 2"), ("torch.ones", "torch.zeros"), ("//", "%")],
)
def test_what_is_computed_leaves_prints(old, new):
    assert prints(WRITTEN.replace(old, new)) != prints(WRITTEN)


def test_what_was_given_is_nobodys(tmp_path):
    assignment = find_assignment(ROOT, "09_multihead")
    given = read_cells((ROOT / "exercises/09_multihead/09_multihead.ipynb").read_bytes())
    assert answers_of(given, assignment) == {}
    solved = answers_of(assignment.cells, assignment)
    assert list(solved) == ["split_heads", "merge_heads", "MultiHeadAttention", "naive_to_batched"]
    assert not any("AttentionHead" in print_ for print_ in solved["naive_to_batched"])
    helper = Cell("def helper(x):\n    return x.mean(-1) / 7")
    assert OTHER in answers_of((*given, helper), assignment)


def test_the_package_is_compared_too():
    found = published(find_assignment(ROOT, "10_masking"))
    assert list(found) == [PUBLISHED, PACKAGE]
    assert {"causal_mask", "leak"} <= found[PACKAGE].keys()


# --- who is alike ---------------------------------------------------------------------------------


def honest_class(rng: random.Random, n: int) -> dict[str, dict[str, frozenset]]:
    """Students who take one of the bank's right answers to each exercise, whichever."""
    bank = {
        target: [fingerprints(ast.parse(inspect.getsource(f))) for f in functions]
        for target, functions in test_masking.RIGHT.items()
    }
    return {f"student-{k}": {t: rng.choice(ways) for t, ways in bank.items()} for k in range(n)}


def test_what_is_rare_counts_for_more():
    words = ("all rare a", "all rare b", "all common c", "all common d", "all common e", "all f")
    class_ = [frozenset((word,) for word in answer.split()) for answer in words]
    found = alike(class_, len(class_))
    assert found[0, 1] > found[2, 3] > found[0, 5] > 0
    assert np.allclose(np.diag(found), 1)


def test_what_is_expected_by_chance_is_what_honest_classes_have():
    found = [compare(honest_class(random.Random(seed), 30), {}, seed) for seed in range(20)]
    assert len(found[0]) == 30 * 29 / 2
    assert sum(pair.by_chance <= FEW for pairs in found for pair in pairs) <= 20 * 2 * FEW
    within_3 = sum(pair.by_chance <= 3 for pairs in found for pair in pairs) / 20
    assert 1.5 < within_3 < 6


def test_a_copy_of_rare_answers_stands_out_and_one_of_common_answers_does_not():
    common, rng = frozenset({("a",), ("b",)}), random.Random(1)
    exercises = [f"exercise-{k}" for k in range(4)]

    def own():
        return frozenset({("a",), (str(rng.random()),), (str(rng.random()),)})

    students = {f"student-{k}": {e: own() if k < 10 else common for e in exercises}
                for k in range(30)}  # fmt: skip
    students["copy"] = students["student-3"]
    first, *others = compare(students, {"the book": students["student-7"]})
    assert {first.first, first.second} in ({"student-3", "copy"}, {"student-7", "the book"})
    assert {others[0].first, others[0].second} in ({"student-3", "copy"}, {"student-7", "the book"})
    assert first.by_chance <= others[0].by_chance <= FEW
    assert first.bits == pytest.approx(4 * np.log2(31 / 2), abs=4.1)
    assert [pair for pair in others[1:] if pair.by_chance <= FEW] == []
    assert first.exercises == dict.fromkeys(exercises, pytest.approx(1))


# --- the command ----------------------------------------------------------------------------------

OWN = (  # ways to add, and to double
    ("return a + b", "return 2 * a"),
    ("return sum((a, b))", "return a + a"),
    ("return -(-a - b)", "return a * 2"),
    ("while b:\n        a, b = a + 1, b - 1\n    return a", "return sum([a, a])"),
    ("return a - -b", "return a << 1"),
    ("return b + a", "return a / 0.5"),
)
RARE = ("return eval(f'{a}').__add__(b)", "return [*range(a), *range(a)].__len__()")


@pytest.fixture
def course(tmp_path):
    course = make_course(tmp_path)
    rng = random.Random(3)
    class_ = {f"s{k:02d}": (rng.choice(OWN)[0], rng.choice(OWN)[1]) for k in range(24)}
    class_ |= {"vera": RARE, "walt": RARE}
    for student, (add, twice) in class_.items():
        answers = f"def add(a, b):\n    {add}", f"def twice(a):\n    {twice}"
        hand_in(course, student, small(*answers))
    return course


def test_the_command_lists_pairs_and_who_was_not_compared(course):
    trace = course / "ran"
    hand_in(course, "runs", small(f"open({str(trace)!r}, 'w')\ndef add(a, b):\n    pass"))
    hand_in(course, "broken", b"{")
    command = ["similar", NAME, "--course", str(course)]
    done = CliRunner().invoke(app, command, env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    assert re.search(r"1 pair of 27 students .* is more alike", done.output.replace("\n", " "))
    row = r" vera +\d+\.\d +(<0\.01|0\.\d\d) +add 100%.*\n walt +twice 100%"
    assert re.search(row, done.output)
    assert "not compared: broken: " in done.output
    assert "Alike is not copied" in done.output
    assert not trace.exists()
    assert max(map(len, done.output.splitlines())) <= 80


def test_two_are_needed(tmp_path):
    course = make_course(tmp_path)
    hand_in(course, "alone", small())
    with pytest.raises(UserError, match="there are no two submissions to compare"):
        similar(course, NAME)
