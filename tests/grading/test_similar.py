"""Similar submissions: copies stand out, honest answers do not, and nothing of them runs."""

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

ORIGINAL = '''
def window(n, width, causal=False):
    """A window."""
    back = width - 1 if causal else width // 2
    ahead = 0 if causal else width // 2
    return torch.ones(n, n).triu(-back).tril(ahead).bool()  # cut on both sides
'''
RENAMED_COPY = """
def window(n, width, causal=False):
    a = 0 if causal else width // 2
    # how far to look back
    b = (width - 1
         if causal else width // 2)
    return (torch.ones(n, n)
            .triu(-b).tril(a).bool())
"""


def fingerprints_of(source: str):
    return fingerprints(ast.parse(source))


def test_names_layout_and_comments_change_no_fingerprint():
    assert fingerprints_of(RENAMED_COPY) == fingerprints_of(ORIGINAL)
    assert fingerprints_of("x = f'{a} b'\ny = 'one'") == fingerprints_of("y = 'two'\nx = f'c'")
    assert fingerprints_of("def f(x: int) -> int:\n    return x") == fingerprints_of(
        "def g(y):\n    return y"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [("tril", "triu"), ("width - 1", "width - 2"), ("torch.ones", "torch.zeros"), ("//", "%")],
)
def test_a_changed_computation_changes_the_fingerprint(old, new):
    assert fingerprints_of(ORIGINAL.replace(old, new)) != fingerprints_of(ORIGINAL)


def test_released_cells_have_no_fingerprints(tmp_path):
    assignment = find_assignment(ROOT, "09_multihead")
    released = read_cells((ROOT / "exercises/09_multihead/09_multihead.ipynb").read_bytes())
    assert fingerprints_by_exercise(released, assignment) == {}
    solved = fingerprints_by_exercise(assignment.cells, assignment)
    assert list(solved) == ["split_heads", "merge_heads", "MultiHeadAttention", "naive_to_batched"]
    assert not any("AttentionHead" in print_ for print_ in solved["naive_to_batched"])
    helper = Cell("def helper(x):\n    return x.mean(-1) / 7")
    assert OTHER_CELLS in fingerprints_by_exercise((*released, helper), assignment)


def test_answers_are_compared_with_the_package():
    answers_by_source = published_answers(find_assignment(ROOT, "10_masking"), ROOT)
    assert list(answers_by_source)[:2] == [PUBLISHED, PACKAGE]
    assert {"causal_mask", "leak"} <= answers_by_source[PACKAGE].keys()


def test_answers_are_compared_with_the_books_page(tmp_path):
    assignment = find_assignment(ROOT, "03_lookup")
    answers_by_source = published_answers(assignment, ROOT)
    assert {"softmax", "soft_lookup"} <= answers_by_source[PAGE].keys()
    answers_by_student = {
        "copied": (answers_by_source[PAGE],),
        "own": (answers_by_source[PACKAGE],),
    }
    likeness_by_pair = {
        (pair.first, pair.second): pair.exercises["softmax"]
        for pair in compare_all(answers_by_student, answers_by_source)
    }
    assert likeness_by_pair["copied", PAGE] == 1
    assert likeness_by_pair["own", PAGE] < 1
    assert PAGE not in published_answers(assignment, tmp_path)  # a course without the book


# --- who is alike -------------------------------------------------------------------------------


def honest_class(rng: random.Random, n: int) -> dict[str, tuple[dict[str, frozenset]]]:
    """Return students who each take one of the bank's right answers at random."""
    bank = {
        target: [fingerprints(ast.parse(inspect.getsource(f))) for f in functions]
        for target, functions in test_masking.RIGHT.items()
    }
    return {f"student-{k}": ({t: rng.choice(ways) for t, ways in bank.items()},) for k in range(n)}


def test_rare_fingerprints_count_for_more():
    words = ("all rare a", "all rare b", "all common c", "all common d", "all common e", "all f")
    answers = [frozenset((word,) for word in answer.split()) for answer in words]
    likeness = likeness_matrix(answers, len(answers), np.arange(len(answers)))
    assert likeness[0, 1] > likeness[2, 3] > likeness[0, 5] > 0
    assert np.allclose(np.diag(likeness), 1)


def test_honest_classes_have_as_many_pairs_as_expected():
    pairs_by_class = [
        compare_all(honest_class(random.Random(seed), 30), {}, seed) for seed in range(20)
    ]
    assert len(pairs_by_class[0]) == 30 * 29 / 2
    assert (
        sum(pair.by_chance <= MAX_PAIRS_BY_CHANCE for pairs in pairs_by_class for pair in pairs)
        <= 20 * 2 * MAX_PAIRS_BY_CHANCE
    )
    within_3 = sum(pair.by_chance <= 3 for pairs in pairs_by_class for pair in pairs) / 20
    assert 1.5 < within_3 < 6


def test_only_copies_of_rare_answers_stand_out():
    common, rng = frozenset({("a",), ("b",)}), random.Random(1)
    exercises = [f"exercise-{k}" for k in range(4)]

    def answer_of_its_own():
        return frozenset({("a",), (str(rng.random()),), (str(rng.random()),)})

    students = {f"student-{k}": ({e: answer_of_its_own() if k < 10 else common for e in exercises},)
                for k in range(30)}  # fmt: skip
    students["copy"] = students["student-3"]
    first, *other_pairs = compare_all(students, {"the book": students["student-7"][0]})
    assert {first.first, first.second} in ({"student-3", "copy"}, {"student-7", "the book"})
    assert {other_pairs[0].first, other_pairs[0].second} in (
        {"student-3", "copy"},
        {"student-7", "the book"},
    )
    assert first.by_chance <= other_pairs[0].by_chance <= MAX_PAIRS_BY_CHANCE
    assert first.bits == pytest.approx(4 * np.log2(31 / 2), abs=4.1)
    assert [pair for pair in other_pairs[1:] if pair.by_chance <= MAX_PAIRS_BY_CHANCE] == []
    assert first.exercises == dict.fromkeys(exercises, pytest.approx(1))


# --- the command --------------------------------------------------------------------------------

HONEST_BODIES = (  # ways to add, and to double
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
RARE_BODIES = ("return eval(f'{a}').__add__(b)", "return [*range(a), *range(a)].__len__()")


@pytest.fixture
def course(tmp_path):
    course = make_course(tmp_path)
    rng = random.Random(3)
    bodies_by_student = {
        f"s{k:02d}": (rng.choice(HONEST_BODIES)[0], rng.choice(HONEST_BODIES)[1]) for k in range(24)
    }
    bodies_by_student |= {"vera": RARE_BODIES, "walt": RARE_BODIES}
    for student, (add, twice) in bodies_by_student.items():
        answers = f"def add(a, b):\n    {add}", f"def twice(a):\n    {twice}"
        hand_in(course, student, small(*answers))
    return course


def test_similar_lists_pairs_and_students_left_out(course):
    trace = course / "ran"
    hand_in(course, "runs", small(f"open({str(trace)!r}, 'w')\ndef add(a, b):\n    pass"))
    hand_in(course, "broken", b"{")
    command = ["similar", NAME, "--course", str(course)]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert re.search(r"1 pair of 27 students .* is more alike", result.output.replace("\n", " "))
    row = r" vera +\d+\.\d +(<0\.01|0\.\d\d) +add 100%.*\n walt +twice 100%"
    assert re.search(row, result.output)
    assert "not compared: broken: " in result.output
    assert "Alike is not copied" in result.output
    assert not trace.exists()
    assert max(map(len, result.output.splitlines())) <= 80


def deeply_nested_source(depth: int) -> str:
    """Return an answer to ``add`` with sums and branches nested this deeply."""
    sums = (
        dedented("""
            def add(a, b):
                return a + b
            y = 1
        """)
        + " + 1" * depth
    )
    return sums + "\nif y: pass\n" + "".join(f"elif y == {n}: y = {n}\n" for n in range(depth // 2))


def test_deeply_nested_code_is_compared(tmp_path):
    assert fingerprints(ast.parse(deeply_nested_source(1500)))
    course = make_course(tmp_path)
    for student in ("ada", "bob"):
        hand_in(course, student, small(deeply_nested_source(1500)))
    hand_in(course, "cy", small(f"def add(a, b):\n    return a + b - 0x{'f' * 6000}"))
    comparison = similar_pairs(course, NAME)
    assert (comparison.compared, comparison.left_out) == (3, ())


def test_only_an_answer_that_cannot_be_walked_is_left_out(course, monkeypatch):
    def fail_on_torn(cells, assignment):
        if any("torn" in cell.source for cell in cells):
            raise RecursionError
        return fingerprints_by_exercise(cells, assignment)

    monkeypatch.setattr(similar_module, "fingerprints_by_exercise", fail_on_torn)
    hand_in(course, "torn", small("def add(a, b):\n    return torn"))
    comparison = similar_pairs(course, NAME)
    assert comparison.compared == 26
    assert comparison.left_out == ("torn: its code is nested too deeply, or too long",)


def test_each_side_of_a_conflict_is_compared(course):
    """Vera's rare answers are on the second side; the pair is listed whichever side is graded."""
    own_data = small("def add(a, b):\n    return b - -a", "def twice(a):\n    return a + a")
    copied = small(f"def add(a, b):\n    {RARE_BODIES[0]}", f"def twice(a):\n    {RARE_BODIES[1]}")
    torn = b"<<<<<<< a\n" + own_data + b"\n=======\n" + copied + b"\n>>>>>>> b\n"
    hand_in(course, "hid", torn)
    (course / "submitted" / "walt" / NAME / f"{NAME}.ipynb").write_bytes(own_data)
    pairs = {frozenset((p.first, p.second)): p for p in similar_pairs(course, NAME).to_look_at}
    assert pairs[frozenset(("hid", "vera"))].exercises == {"add": 1.0, "twice": 1.0}


def test_much_extra_code_hides_no_answer(course):
    """Code beyond the limit is reported as left out, and answers are compared first."""
    lines = "\n".join(f"q{n}.a{n} = f{n}({n} + {n + 1}, g{n}[{n}])" for n in range(2000))
    junk = [cell(f"j = {n}\n{lines}") for n in range(9)]
    copied = json.loads((course / f"submitted/vera/{NAME}/{NAME}.ipynb").read_bytes())
    copied["cells"] = [*junk, *copied["cells"]]
    hand_in(course, "walt", json.dumps(copied).encode())
    comparison = similar_pairs(course, NAME)
    assert comparison.left_out == ("walt: the part of its code that is beyond 100000 characters",)
    (pair,) = [p for p in comparison.to_look_at if {p.first, p.second} == {"vera", "walt"}]
    assert pair.exercises["add"] == pair.exercises["twice"] == 1
    cells = read_cells(json.dumps(copied).encode())
    prints_ = fingerprints_by_exercise(cells, find_assignment(course, NAME))
    assert sum(map(len, prints_.values())) < 50_000


def test_unique_fingerprints_take_little_memory():
    answers = [frozenset((f"{k}.{n}",) for n in range(1000)) for k in range(200)]
    tracemalloc.start()
    likeness = likeness_matrix(answers, len(answers), np.arange(len(answers)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6
    assert np.allclose(likeness, np.eye(200))


def test_one_submission_is_refused(tmp_path):
    course = make_course(tmp_path)
    hand_in(course, "alone", small())
    with pytest.raises(UserError, match="there are no two submissions to compare"):
        similar_pairs(course, NAME)
