"""Tests in the checker keep their own values, and a comparison of nothing fails."""

import numpy as np
import pytest

from attncourse.checks import in_place
from attncourse.grading.judge.guard import compile_cell, guard_functions
from helpers.dedented_text import dedented
from helpers.judged_cells import judge_answer, passes_all

# --- what a submission changes in place ---------------------------------------------------------

ZEROING_ANSWER = """
def f(x, weight):
    x *= 0
    weight *= 0
    return x @ weight
"""


@pytest.mark.parametrize(
    "arguments", ["np.ones((2, 3)), np.ones((3, 4))", "torch.ones(2, 3), torch.ones(3, 4)"]
)
def test_changing_arguments_makes_no_test_true(arguments):
    test = f"x, weight = {arguments}\nout = f(x, weight)\nassert (out == x @ weight).all()"
    assert judge_answer(ZEROING_ANSWER, test) == ["AssertionError"]
    test_in_one_line = f"x, weight = {arguments}\nassert (f(x, weight) == x @ weight).all()"
    assert judge_answer(ZEROING_ANSWER, test_in_one_line) == ["AssertionError"]
    assert passes_all(
        ZEROING_ANSWER, f"x, weight = {arguments}\nf(x, weight)\nassert (x == 0).all()"
    )


@pytest.mark.parametrize(
    "attack",
    [
        "x[...] = 7\n    return x",
        "x[...] = 7\n    return x[:]",
        "x[...] = 7\n    return x.copy()",
        "x[...] = 7\n    y = x.copy()\n    x.resize(0, refcheck=False)\n    return y",
        "return np.lib.stride_tricks.as_strided(np.full(1, 7.0), x.shape, (0, 0))",
        "return np.broadcast_to(np.float64(7), x.shape)",
    ],
)
def test_a_changed_and_returned_argument_is_a_copy(attack):
    test = "x = np.ones((2, 3))\nout = f(x)\nassert (out == 7).all() and (x == 1).all()"
    assert passes_all(f"def f(x):\n    {attack}", test)


def test_shared_arrays_and_lists_of_arrays_stay_unchanged():
    answer = dedented("""
        def f(a, b):
            a[...] = 5
            return b.sum()
        def g(items):
            items[0][...] = 5
            items.append(1)
            return len(items)
        def h(*, out):
            out[...] = 5
            return out
    """)
    assert passes_all(
        answer,
        "x = np.ones(3)\nassert f(x, x) == 15 and x.sum() == 3",
        "x = np.ones(3)\nassert g([x]) == 2 and x.sum() == 3",
        "x = np.ones(3)\nassert h(out=x).sum() == 15 and x.sum() == 3",
        "x = np.ones(3)\nh(out=x)\nassert x.sum() == 15",
        "x = torch.ones(4)\nassert f(x[:2], x[2:]) == 2 and x.sum() == 4",
    )


def test_a_tests_tensor_stays_unchanged():
    changes = (
        "x.resize_(0)",
        "x.data = x.new_zeros(0)",
        "x.set_()",
        "x.requires_grad_()",
        "x.t_()",
    )
    for change in changes:
        answer = f"def f(x):\n    {change}\n    return 1"
        assert passes_all(
            answer,
            "x = torch.ones(2, 3)\nassert f(x) == 1 and torch.equal(x, torch.ones(2, 3))\n"
            "assert not x.requires_grad",
        )


def test_weights_loaded_into_a_module_stay_the_tests():
    answer = dedented("""
        class Layer(nn.Linear):
            def forward(self, x):
                with torch.no_grad():
                    self.weight.zero_(), x.zero_()
                return x @ self.weight.T
    """)
    for options in ("", ", assign=True"):
        test = "layer, W, x = Layer(3, 2, bias=False), torch.ones(2, 3), torch.ones(4, 3)\n"
        test += f"layer.load_state_dict({{'weight': W}}{options})\nout = layer(x)\n"
        assert passes_all(answer, test + "assert not out.any() and W.all() and x.all()")


def test_submitted_names_do_not_disable_a_comparison():
    answer = dedented("""
        expected = out = x = 1
        def f():
            return np.ones((1, 3))
    """)
    tests = [EXPECTED.format("np") + "assert np.allclose(f(), expected)"]
    tests += [EXPECTED.format("np") + "out = f()\nassert np.allclose(out, expected)"]
    assert all(judge_answer(answer, *tests, defines=("f",)))


def test_a_test_can_ask_for_changes_in_place():
    answer = dedented("""
        def fill(x, value):
            x[...] = value
        def scale(x):
            x *= 2
            return x.sum()
        class Buffer:
            def fill(self, x):
                x[...] = 3
    """)
    assert passes_all(
        answer,
        "x = np.ones(2)\nassert fill(x, 4) is None\nassert x.tolist() == [4, 4]",
        "x = torch.ones(2)\nassert fill(x, 4) == None\nassert x.tolist() == [4, 4]",
        dedented("""
            from attncourse.checks import in_place
            x = np.ones(2)
            assert in_place(scale)(x) == 4
            assert x.sum() == 4
        """),
        "x = np.ones(2)\nBuffer().fill(x)\nassert x.tolist() == [3, 3]",
        dedented("""
            def tried(function, x):
                function(x, 6)
                return x
            assert tried(fill, np.ones(2)).tolist() == [6, 6]
        """),
        "x = np.ones(2)\nassert scale(x) == 4 and x.sum() == 2",
    )


def test_a_changing_call_does_not_affect_inner_calls():
    answer = dedented("""
        def fill(x, value):
            x[...] = value
            return 1
    """)
    assert passes_all(
        answer,
        "x, y = np.ones(2), np.ones(2)\nfill(x, fill(y, 3))\nassert x.sum() == 2 == y.sum()",
        "np.testing.assert_allclose(fill(np.ones(2), 3), 1)",
    )


def test_a_check_sees_what_a_wrapped_answer_changes():
    answer = dedented("""
        def mix(A, X):
            X *= 1
            A += 1
            return (A - 1) @ X
    """)
    test = (
        "from attncourse.checks import examine\nv = examine('mixing.mix', lambda A, X: mix(A, X))\n"
    )
    test += (
        "assert [c.name for c in v.criteria if not c.passed] == ['does not change its arguments']"
    )
    assert passes_all(answer, test)


def test_in_place_does_nothing_within_one_process():
    x = np.ones(2)
    assert in_place(np.negative)(x, out=x) is x
    assert x.tolist() == [-1, -1]


def test_the_report_notes_arguments_changed_in_place(small_report):
    report = small_report(
        dedented("""
            def f(x):
                x += 1
                return x
        """),
        "x = np.ones(2)\nf(x) + x",
    )
    assert [note for note in report.notes if "f changed an argument in place" in note]
    report = small_report(
        dedented("""
            def f(x):
                x += 1
                return x
        """),
        "x = np.ones(2)\nf(x)\nx.sum()",
    )
    assert not [note for note in report.notes if "in place" in note]


@pytest.fixture
def small_report():
    """Return a function that grades an answer with one test."""
    from attncourse.grading.judge.judge import grade_submission
    from attncourse.grading.submission.notebook import Assignment, read_cells
    from helpers.small_course import cell, graded, notebook, solution

    def grade_answer(answer, test):
        cells = [cell("import numpy as np"), solution("answer", answer), graded("t", test, 5)]
        data = notebook(*cells)
        return grade_submission(data, Assignment("01_split", read_cells(data)))

    return grade_answer


# --- comparisons --------------------------------------------------------------------------------

EXPECTED = "expected = {0}.ones((5, 3))\n"
COMPARISONS = {
    "np": [
        "assert np.allclose(f(), expected)",
        "assert np.allclose(expected, f())",
        "assert np.allclose(a=f(), b=expected)",
        "assert np.isclose(2 * f(), 2 * expected).all()",
        "assert (f() == expected).all()",
        "assert np.all(expected == f())",
        "out = f()\nshifted = out + 1\nassert np.allclose(shifted, 2 * expected)",
        dedented("""
            def close(a, b):
                return np.allclose(a, b)
            assert close(f(), expected)
        """),
        "np.testing.assert_allclose(f(), expected)",
        "np.testing.assert_allclose(actual=f(), desired=expected)",
        "np.testing.assert_array_equal(f().sum(-1), 3)",
        "assert np.linalg.norm(f() - expected) < 1e-6",
        "assert ((f() - expected) ** 2).sum() < 1e-6",
        "assert abs(expected - f()).max() < 1e-9",
        "assert abs(f() / expected - 1).sum() < 1e-9",
        "kept = []\nkept.append(f())\nassert np.allclose(kept[0], expected)",
        "kept = {}\nkept['a'] = f()\nassert np.allclose(kept['a'] + 1, 2 * expected)",
        "assert all(np.allclose(a, b) for a, b in [(f(), expected)])",
    ],
    "torch": [
        "assert torch.allclose(f(), expected)",
        "assert f().allclose(expected)",
        "assert torch.isclose(expected, f()).all()",
        "assert f().isclose(expected).all()",
        "assert torch.equal(f(), expected)",
        "assert f().eq(expected).all()",
        "torch.testing.assert_close(f(), expected)",
        "assert (f() - expected).norm() < 1e-6",
        "assert torch.allclose(f()[0], f()[-1:])",
    ],
}
COMPARISONS_BY_LIBRARY = [
    (library, test) for library, tests in COMPARISONS.items() for test in tests
]


@pytest.mark.parametrize(("library", "test"), COMPARISONS_BY_LIBRARY)
def test_a_comparison_of_nothing_fails(library, test):
    answer = "def f():\n    return {0}.ones({1})"
    test = EXPECTED.format(library) + test
    assert passes_all(answer.format(library, (5, 3)), test)
    for shape in ((0, 1, 1), (0, 5, 3), (0, 3)):
        (message,) = judge_answer(answer.format(library, shape), test)
        assert message, shape


@pytest.mark.parametrize(
    "returned", ["np.ones((1, 3))", "np.ones(3)", "np.ones(())", "1.0", "[1.0]"]
)
def test_one_number_is_not_broadcast(returned):
    answer = f"def f():\n    return {returned}"
    tests = [EXPECTED.format("np") + test for test in COMPARISONS["np"][:7]]
    assert all(judge_answer(answer, *tests)[:6])


HONEST_TESTS = [
    "assert np.allclose(f(np.ones((5, 3))).sum(axis=-1), 3)",
    "assert np.allclose(f(np.ones((5, 3))), np.ones(3))",
    "x = np.arange(3.0)\nassert (x <= f(x).max()).all() and (x >= f(x)[:1]).all()",
    "x = np.arange(3.0)\nassert ((x == f(x)[1]).sum() == 1) and 0 <= f(x)[0] < f(x)[1]",
    "x = np.zeros((0, 3))\nassert np.allclose(f(x), x) and np.allclose(f(x).sum(axis=-1), 1)",
    "assert np.array_equal(f(np.ones(2))[:0], []) and (f(np.ones(2))[:0] == np.zeros(0)).all()",
    "a = f(torch.ones(4, 4))\nassert torch.allclose(a.diagonal(), a.diagonal()[0])",
    "assert np.allclose(f(2.5), [2.5]) and np.isclose(f(2.5), 2.5) and f([1, 2]) == [1, 2]",
    "x = np.ones((1, 3))\nassert np.allclose(f(x)[0], x) and (f(x) - x[0] == 0).all()",
    dedented("""
        class T:
            def __init__(self):
                assert (f(np.eye(2)) == np.eye(2)).all()
        t = T()
    """),
    "assert all(np.allclose(f(r), r) for r in np.eye(3)) and (lambda v: f(v) == v)(3)",
    "np.testing.assert_equal(f({'a': [1]}), {'a': [1]})\nassert f('x') == 'x' and f(None) is None",
    dedented("""
        total = 0
        for row in f(np.eye(3)):
            total += (row - 1).sum()
        assert total == -6
    """),
]


@pytest.mark.parametrize("test", HONEST_TESTS)
def test_ordinary_asserts_still_hold(test):
    assert passes_all("def f(x):\n    return x", test)


def test_a_test_without_submitted_names_is_not_guarded():
    source = "x = np.zeros((0, 3))\nassert np.allclose(x, 1) and (x == np.ones((1, 3))).all()"
    body, _ = compile_cell(source, ("f",))
    exec(body, {"np": np} | guard_functions(lambda: False))


def test_a_failed_comparison_says_which_shapes():
    answer = dedented("""
        def f():
            return np.ones((0, 1, 1))
        def g():
            return 1.0
    """)
    test = EXPECTED.format("np")
    messages = judge_answer(
        answer, test + "assert np.allclose(f(), expected)", "assert np.allclose(g(), np.ones(2))"
    )
    assert "nothing to compare" in messages[0]
    assert messages[1] == "AssertionError: got one number, expected shape (2,)"


# --- objects of the submission's own ----------------------------------------------------------

OBJECT_CLASSES = """
import itertools
from collections import namedtuple
N = namedtuple("N", "shape dtype")
class Q:
    shape = (5, 3)
    def __len__(self):
        return 1
    def __getitem__(self, i):
        if i:
            raise IndexError
        return np.empty((0, 1, 1))
    def allclose(self, *args, **kwargs):
        return True
    equal = eq = isclose = allclose
    def sum(self, *args, **kwargs):
        return self
class Module(nn.Module):
    shape = (5, 3)
    def allclose(self, *args, **kwargs):
        return True
    equal = allclose
def f():
    return RETURNED
"""
EXPECTED_NUMBER = "expected = np.float64(5)\n"
TESTS_BY_PRETENCE = {
    "Q()": [
        "assert np.allclose(f(), expected)",
        "assert np.allclose(expected, f())",
        "assert np.isclose(f().sum(axis=-1), 3).all()",
        "assert np.abs(f() - expected).sum() < 1e-9",
        "assert np.abs(expected - f()).sum() < 1e-9",
        "assert (expected == f()).all()",
        "assert (expected >= f()).all()",
        "assert f().allclose(expected)",
        "assert f().equal(expected)",
        "assert np.allclose([f()], expected)",
        "out = f()\nout -= expected\nassert np.abs(out).sum() < 1e-9",
        dedented("""
            def close(a, b):
                return np.allclose(a, b)
            assert close(f(), expected)
        """),
        "assert np.allclose(np.asarray(f()), expected)",
    ],
    "Module()": ["assert f().allclose(expected)", "assert f().equal(expected)"],
    "Q": ["assert np.allclose(f(), expected)"],
    "{}.values()": [EXPECTED_NUMBER + "assert np.allclose(f(), expected)"],
    "range(0)": [
        EXPECTED_NUMBER + "assert np.allclose(f(), expected)",
        EXPECTED_NUMBER + "assert np.linalg.norm(f() - expected) < 1e-9",
    ],
    "np.array([], dtype=str)": ["assert (f() == 'a').all()"],
    "np.zeros(0)": [EXPECTED_NUMBER + "assert np.linalg.norm(expected - f()) < 1e-9"],
    "(range(0),)": [EXPECTED_NUMBER + "assert np.allclose(f(), expected)"],
    "N((), ())": [EXPECTED_NUMBER + "assert np.allclose(f(), expected)"],
    "{'a': np.zeros(0)}": ["np.testing.assert_equal(f(), {'a': np.float64(5)})"],
    "[[1.0, 2.0], np.zeros(0)]": ["np.testing.assert_equal(f(), [[1.0, 2.0], np.float64(5)])"],
}
PRETENCES = [(answer, test) for answer, tests in TESTS_BY_PRETENCE.items() for test in tests]


@pytest.mark.parametrize(("returned", "test"), PRETENCES)
def test_no_object_passes_as_an_array(returned, test):
    answer = OBJECT_CLASSES.replace("RETURNED", returned)
    (message,) = judge_answer(answer, EXPECTED.format("np") + test, defines=("f",))
    assert message.startswith(("AssertionError: got ", "AssertionError: shapes "))


def test_a_failed_comparison_says_got_and_expected():
    tests = [EXPECTED.format("np") + "assert np.allclose(f(), expected)", "f() - np.ones(2)"]
    messages = judge_answer(OBJECT_CLASSES.replace("RETURNED", "Q()"), *tests, defines=("f",))
    assert messages[0] == (
        "AssertionError: got an object of class Q: expected an array, a number or a list of numbers"
    )
    assert messages[1] == messages[0]


def test_a_submissions_own_objects_are_compared_normally():
    answer = dedented("""
        class V:
            def __init__(self, x):
                self.x = x
            def equal(self, other):
                return self.x == other.x
            isclose = __eq__ = equal
        def allclose(a, b):
            return a.x == b.x
        def f(x):
            return range(x)
    """)
    assert passes_all(
        answer,
        "assert V(1).equal(V(1)) and not V(1).isclose(V(2)) and V(1) == V(1) != V(2)",
        "assert V(1) != 1 and V(1) != [1] and V != 1 and f != np.float64",
        "assert allclose(V(1), V(1)) and not allclose(V(1), V(2))",
        dedented("""
            def equal(a, b):
                return a.x == b
            assert equal(V(1), 1) and not equal(V(1), 2)
        """),
        "np.testing.assert_equal(V(1), V(1))\nnp.testing.assert_equal({'a': V(1)}, {'a': V(1)})",
        "assert np.array_equal(f(3), [0, 1, 2]) and f(3) == range(3) and (f(3) - np.ones(3)).any()",
        "x = np.zeros(0)\nassert (V(x).x - 1.0).sum() == 0",
        "out = V(np.eye(3)).x\nassert not any((out[i, i + 1:] - 0.0).sum() for i in range(3))",
        dedented("""
            out = V(np.ones(3)).x
            out -= 1
            out += np.ones(3)
            assert out.sum() == 3
        """),
        dedented("""
            out = f(3)
            n = 1
            n += sum(out)
            assert n == 4
        """),
    )


CLASSES_WITH_LENGTH = """
import itertools
class L:
    def __init__(self, length, items):
        self.length, self.items = length, items
    def __len__(self):
        return self.length
    def __iter__(self):
        return iter(self.items)
class Iterator:
    def __init__(self):
        self.left = [1, 2]
    def __iter__(self):
        return self
    def __next__(self):
        if not self.left:
            raise StopIteration
        return self.left.pop()
def g(length):
    return L(length, itertools.count())
def numbers():
    yield from [1, 2]
"""


def test_an_object_with_a_length_must_have_items():
    messages = judge_answer(
        CLASSES_WITH_LENGTH,
        "out = L(3, [])\nassert len(out) == 3\n"
        "assert all(np.isclose(a, b) for a, b in zip(out, [1, 2, 3]))",
        "out = g(4)\nassert len(out) == 4\nassert all(v in out for v in [50, 60, 70])",
    )
    assert messages[0] == "TypeError: got L, which has a length of 3 and no items"
    assert messages[1].startswith("AssertionError")
    assert passes_all(
        CLASSES_WITH_LENGTH,
        "assert list(L(3, [1, 2])) == [1, 2] and list(L(0, [])) == [] and 2 in L(3, [1, 2])",
        "assert list(Iterator()) == [2, 1] and 1 in Iterator() and 1 not in L(0, [])",
        "assert list(numbers()) == [1, 2] and 2 in numbers() and 3 not in numbers()",
        "x = numbers()\nassert 1 in x and 2 in x and list(x) == []",
        "assert next(iter(g(4))) == 0 and 3 in g(4) and 4 not in g(4)",
    )
