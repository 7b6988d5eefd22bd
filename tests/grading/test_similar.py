"""Similar submissions: what copies keep, what honest answers share, and what is never run."""

import ast
import inspect
import json
import random
import re
import tracemalloc

import numpy as np
import pytest
import test_masking
from typer.testing import CliRunner

from attncourse.grading.cli import app
from attncourse.grading.course.folders import find_assignment
from attncourse.grading.errors import UserError
from attncourse.grading.results import similar as similar_module
from attncourse.grading.results.likeness import likeness_matrix
from attncourse.grading.results.similar import (
    MAX_PAIRS_BY_CHANCE,
    PACKAGE,
    PAGE,
    PUBLISHED,
    compare_all,
    published_answers,
    similar_pairs,
)
from attncourse.grading.submission.fingerprints import (
    OTHER_CELLS,
    fingerprints,
    fingerprints_by_exercise,
)
from attncourse.grading.submission.notebook import Cell, read_cells
from helpers.dedented_text import dedented
from helpers.project import ROOT
from helpers.small_course import NAME, cell, hand_in, make_course, small

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
    assert fingerprints_by_exercise(given, assignment) == {}
    solved = fingerprints_by_exercise(assignment.cells, assignment)
    assert list(solved) == ["split_heads", "merge_heads", "MultiHeadAttention", "naive_to_batched"]
    assert not any("AttentionHead" in print_ for print_ in solved["naive_to_batched"])
    helper = Cell("def helper(x):\n    return x.mean(-1) / 7")
    assert OTHER_CELLS in fingerprints_by_exercise((*given, helper), assignment)


def test_the_package_is_compared_too():
    found = published_answers(find_assignment(ROOT, "10_masking"), ROOT)
    assert list(found)[:2] == [PUBLISHED, PACKAGE]
    assert {"causal_mask", "leak"} <= found[PACKAGE].keys()


def test_what_a_page_holds_in_one_piece_is_compared_too(tmp_path):
    assignment = find_assignment(ROOT, "03_lookup")
    found = published_answers(assignment, ROOT)
    assert {"softmax", "soft_lookup"} <= found[PAGE].keys()
    class_ = {"copied": (found[PAGE],), "own": (found[PACKAGE],)}
    alike = {(p.first, p.second): p.exercises["softmax"] for p in compare_all(class_, found)}
    assert alike["copied", PAGE] == 1
    assert alike["own", PAGE] < 1
    assert PAGE not in published_answers(assignment, tmp_path)  # a course without the book


# --- who is alike ---------------------------------------------------------------------------------


def honest_class(rng: random.Random, n: int) -> dict[str, tuple[dict[str, frozenset]]]:
    """Students who take one of the bank's right answers to each exercise, whichever."""
    bank = {
        target: [fingerprints(ast.parse(inspect.getsource(f))) for f in functions]
        for target, functions in test_masking.RIGHT.items()
    }
    return {f"student-{k}": ({t: rng.choice(ways) for t, ways in bank.items()},) for k in range(n)}


def test_what_is_rare_counts_for_more():
    words = ("all rare a", "all rare b", "all common c", "all common d", "all common e", "all f")
    class_ = [frozenset((word,) for word in answer.split()) for answer in words]
    found = likeness_matrix(class_, len(class_), np.arange(len(class_)))
    assert found[0, 1] > found[2, 3] > found[0, 5] > 0
    assert np.allclose(np.diag(found), 1)


def test_what_is_expected_by_chance_is_what_honest_classes_have():
    found = [compare_all(honest_class(random.Random(seed), 30), {}, seed) for seed in range(20)]
    assert len(found[0]) == 30 * 29 / 2
    assert (
        sum(pair.by_chance <= MAX_PAIRS_BY_CHANCE for pairs in found for pair in pairs)
        <= 20 * 2 * MAX_PAIRS_BY_CHANCE
    )
    within_3 = sum(pair.by_chance <= 3 for pairs in found for pair in pairs) / 20
    assert 1.5 < within_3 < 6


def test_copies_of_rare_answers_stand_out_common_ones_do_not():
    common, rng = frozenset({("a",), ("b",)}), random.Random(1)
    exercises = [f"exercise-{k}" for k in range(4)]

    def own():
        return frozenset({("a",), (str(rng.random()),), (str(rng.random()),)})

    students = {f"student-{k}": ({e: own() if k < 10 else common for e in exercises},)
                for k in range(30)}  # fmt: skip
    students["copy"] = students["student-3"]
    first, *others = compare_all(students, {"the book": students["student-7"][0]})
    assert {first.first, first.second} in ({"student-3", "copy"}, {"student-7", "the book"})
    assert {others[0].first, others[0].second} in ({"student-3", "copy"}, {"student-7", "the book"})
    assert first.by_chance <= others[0].by_chance <= MAX_PAIRS_BY_CHANCE
    assert first.bits == pytest.approx(4 * np.log2(31 / 2), abs=4.1)
    assert [pair for pair in others[1:] if pair.by_chance <= MAX_PAIRS_BY_CHANCE] == []
    assert first.exercises == dict.fromkeys(exercises, pytest.approx(1))


# --- the command ----------------------------------------------------------------------------------

OWN = (  # ways to add, and to double
    ("return a + b", "return 2 * a"),
    ("return sum((a, b))", "return a + a"),
    ("return -(-a - b)", "return a * 2"),
    (
        dedented("""
            while b:
                    a, b = a + 1, b - 1
                return a
        """),
        "return sum([a, a])",
    ),
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


def deep(depth: int) -> str:
    sums = (
        dedented("""
            def add(a, b):
                return a + b
            y = 1
        """)
        + " + 1" * depth
    )
    return sums + "\nif y: pass\n" + "".join(f"elif y == {n}: y = {n}\n" for n in range(depth // 2))


def test_however_deep_code_is_nested_it_is_compared(tmp_path):
    assert fingerprints(ast.parse(deep(1500)))
    course = make_course(tmp_path)
    for student in ("ada", "bob"):
        hand_in(course, student, small(deep(1500)))
    hand_in(course, "cy", small(f"def add(a, b):\n    return a + b - 0x{'f' * 6000}"))
    found = similar_pairs(course, NAME)
    assert (found.compared, found.left_out) == (3, ())


def test_one_that_cannot_be_walked_is_left_out_alone(course, monkeypatch):
    def failing(cells, assignment):
        if any("torn" in cell.source for cell in cells):
            raise RecursionError
        return fingerprints_by_exercise(cells, assignment)

    monkeypatch.setattr(similar_module, "fingerprints_by_exercise", failing)
    hand_in(course, "torn", small("def add(a, b):\n    return torn"))
    found = similar_pairs(course, NAME)
    assert found.compared == 26
    assert found.left_out == ("torn: its code is nested too deeply, or too long",)


def test_each_side_of_a_conflict_is_compared(course):
    """Vera's rare answers come last; whichever side is graded, the pair is told."""
    own = small("def add(a, b):\n    return b - -a", "def twice(a):\n    return a + a")
    copied = small(f"def add(a, b):\n    {RARE[0]}", f"def twice(a):\n    {RARE[1]}")
    torn = b"<<<<<<< a\n" + own + b"\n=======\n" + copied + b"\n>>>>>>> b\n"
    hand_in(course, "hid", torn)
    (course / "submitted" / "walt" / NAME / f"{NAME}.ipynb").write_bytes(own)
    pairs = {frozenset((p.first, p.second)): p for p in similar_pairs(course, NAME).to_look_at}
    assert pairs[frozenset(("hid", "vera"))].exercises == {"add": 1.0, "twice": 1.0}


def test_much_code_costs_little_and_hides_no_answer(course):
    """What is beyond the bound is told of; the answers come first."""
    lines = "\n".join(f"q{n}.a{n} = f{n}({n} + {n + 1}, g{n}[{n}])" for n in range(2000))
    junk = [cell(f"j = {n}\n{lines}") for n in range(9)]
    copied = json.loads((course / f"submitted/vera/{NAME}/{NAME}.ipynb").read_bytes())
    copied["cells"] = [*junk, *copied["cells"]]
    hand_in(course, "walt", json.dumps(copied).encode())
    found = similar_pairs(course, NAME)
    assert found.left_out == ("walt: the part of its code that is beyond 100000 characters",)
    (pair,) = [p for p in found.to_look_at if {p.first, p.second} == {"vera", "walt"}]
    assert pair.exercises["add"] == pair.exercises["twice"] == 1
    cells = read_cells(json.dumps(copied).encode())
    prints_ = fingerprints_by_exercise(cells, find_assignment(course, NAME))
    assert sum(map(len, prints_.values())) < 50_000


def test_what_only_one_has_takes_no_room():
    class_ = [frozenset((f"{k}.{n}",) for n in range(1000)) for k in range(200)]
    tracemalloc.start()
    found = likeness_matrix(class_, len(class_), np.arange(len(class_)))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 150e6
    assert np.allclose(found, np.eye(200))


def test_two_are_needed(tmp_path):
    course = make_course(tmp_path)
    hand_in(course, "alone", small())
    with pytest.raises(UserError, match="there are no two submissions to compare"):
        similar_pairs(course, NAME)
