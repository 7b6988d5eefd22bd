"""A test uses a submission that lives in another process as if it were in its own."""

import inspect
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from attncourse.checks import examine, find_exercise, observe
from attncourse.checks.callers import CALLERS
from attncourse.checks.exercise import Case
from attncourse.checks.trying.trials import draw
from attncourse.grading.judge.findings import Findings
from attncourse.grading.judge.judge import grade_submission, libraries_imported
from attncourse.grading.judge.lane_loop import LaneLoop
from attncourse.grading.judge.remarks import remarks
from attncourse.grading.judge.remote.conversation import Ended
from attncourse.grading.judge.remote.proxies import case_as_message, outcomes_from_replies
from attncourse.grading.judge.remote.session import Session
from attncourse.grading.judge.wire.frames import pack_frame, unpack_frame
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment, read_cells
from attncourse.support.alarm import Stopwatch
from corpus.assignment import TORCH_RIGHT
from helpers.dedented_text import dedented
from helpers.judged_cells import LIMITS, judge_answer, passes_all
from helpers.small_course import cell, graded, notebook, solution

# --- values -----------------------------------------------------------------------------------


def test_values_of_every_kind_come_back_unchanged():
    assert passes_all(
        "def f(x):\n    return x",
        "for x in (True, 3, -2.5, 'é', None, b'ab', 2**70, 1 + 2j, [1, (2, {'a': 3})], {4}, ...):\n"
        "    assert f(x) == x and type(f(x)) is type(x), x\n"
        "assert np.isnan(f(float('nan'))) and f(float('inf')) == float('inf')",
        "for a in (np.arange(6.).reshape(2, 3).T, np.zeros((0, 3)), np.float32(2), np.array(True)):\n"
        "    b = f(a)\n"
        "    assert b.dtype == a.dtype and b.shape == a.shape and (b == a).all()\n"
        "    assert b.strides == a.strides",
        "for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.bool):\n"
        "    t = torch.arange(6).reshape(2, 3).to(dtype).T\n"
        "    assert torch.equal(f(t), t) and f(t).dtype is dtype and f(t).stride() == t.stride()",
        "assert f(np.dtype('float64')) == np.float64 and f(torch.float32) is torch.float32\n"
        "assert f(slice(1, None)) == slice(1, None) and list(f(range(3))) == [0, 1, 2]\n"
        "assert (f(np.array(['a', 'bc'])) == ['a', 'bc']).all()",
        "x = np.ones(3)\nassert f(x) is x",
    )


def test_fields_of_a_named_tuple_keep_their_names():
    answer = dedented("""
        from collections import namedtuple
        P = namedtuple('P', 'out weights')
        def f():
            return P(np.ones(2), [1])
    """)
    assert passes_all(
        answer, "out, weights = f()\nassert f().weights == [1] and f().out.sum() == 2"
    )


def test_long_doubles_come_back_as_doubles():
    answer = dedented("""
        def f(x):
            return np.asarray(x, dtype=np.longdouble)
        def h(x):
            return np.asarray(x, dtype=np.clongdouble)
        def g(x):
            return [x, np.longdouble(1) / 3, np.longdouble('1e4000')]
    """)
    assert passes_all(
        answer,
        "x = np.arange(6.).reshape(2, 3).T\nassert (f(x) == x).all() and f(x).dtype == np.float64\n"
        "assert f(x).strides == x.strides and f(1.5).dtype == np.float64",
        "assert h([1 + 2j]).dtype == np.complex128 and (h([1 + 2j]) == 1 + 2j).all()",
        "x = np.array([0.5], np.longdouble)\nassert f(x) == 0.5 and x.dtype == np.longdouble",
        "a, third, much = g(np.longdouble(2))\nassert a == 2 and third == 1 / 3 and much == np.inf",
    )


def test_a_number_subclass_counts_as_its_number():
    answer = dedented("""
        class N(float):
            def __eq__(self, other):
                return True
            __hash__ = None
        def f():
            return N(2)
    """)
    assert judge_answer(answer, "assert f() == 2", "assert f() == 3") == ["", "AssertionError"]


# --- functions --------------------------------------------------------------------------------


def test_arguments_changed_in_place_are_changed_for_the_test():
    assert passes_all(
        dedented("""
            def f(a):
                a += 1
            def g(items):
                items.append(4)
                items[0] = 9
            def h(d, s):
                d['k'] = 1
                s.clear()
        """),
        dedented("""
            x = np.zeros((2, 3)).T
            f(x)
            assert (x == 1).all()
            t = torch.zeros(3)
            f(t)
            assert t.tolist() == [1, 1, 1]
        """),
        "items = [1, 2]\ng(items)\nassert items == [9, 2, 4]",
        "d, s = {}, {1}\nh(d, s)\nassert d == {'k': 1} and s == set()",
    )


def test_unchanged_arguments_stay_unchanged():
    answer = dedented("""
        def f(a, b):
            b *= 2
            return a
    """)
    assert passes_all(
        answer, "a, b = np.ones(2), np.ones(2)\nf(a, b)\nassert a.sum() == 2 < b.sum()"
    )


def test_closures_keywords_and_callbacks_work():
    assert passes_all(
        dedented("""
            def make(n):
                calls = []
                def inner(x, *, k=1):
                    calls.append(x)
                    return n * x + k + len(calls)
                return inner
            def twice(function, x):
                return function(function(x))
        """),
        "inner = make(10)\nassert inner(2) == 22 and inner(2, k=0) == 22",
        "assert twice(lambda x: x + np.ones(2), np.zeros(2)).tolist() == [2, 2]",
        dedented("""
            try:
                twice(lambda x: 1 / 0, 3)
                assert False
            except ZeroDivisionError:
                pass
        """),
        "assert twice(make(2), 1) == 11",
    )


def test_an_argument_may_have_any_name():
    """Among them those that the way to the submission's process has itself."""
    answer = dedented("""
        def f(a=0, *, operation=0, leaves=0, args=0, kwargs=0, function=0, target=0, what=0):
            return a + operation + leaves + args + kwargs + function + target + what
        def g(**named):
            return sorted(named)
        class Layer(torch.nn.Module):
            def forward(self, x, leaves=0, target=0, operation=0):
                return x + leaves + target + operation
    """)
    assert passes_all(
        answer,
        "assert f(1, operation=2, leaves=3, args=4, kwargs=5, function=6, target=7, what=8) == 36",
        "assert g(self=1, cls=2, session=3, function=4) == ['cls', 'function', 'self', 'session']",
        "x = torch.ones(2)\nassert Layer()(x, leaves=1, target=2, operation=3).sum() == 14",
    )


def test_a_submission_cannot_catch_a_tests_assertion():
    answer = dedented("""
        def f(function):
            try:
                return function(5)
            except AssertionError:
                return function(2)
    """)
    test = "def g(n):\n    assert n < 4, 'at most 3'\n    return n\n"
    messages = judge_answer(answer, test + "assert f(g) == 2", "assert f(lambda n: n) == 5")
    assert messages == ["AssertionError: at most 3", ""]


KEEPING_ANSWER = """\
kept = []
def twice(function, x):
    kept.append(function)
    return function(function(x))
def answer(x):
    return kept[-1](x)
class Layer:
    def __init__(self, activation):
        self.activation = activation
    def __call__(self, x):
        return self.activation(x)
def same(function):
    kept.append(function)
    return same
"""
FUNCTION_IS_OVER = "RuntimeError: a function was called after the test that handed it over"


def test_a_function_passed_by_a_test_ends_with_the_test():
    messages = judge_answer(
        KEEPING_ANSWER,
        "assert twice(lambda x: x + 1, 3) == 5 and answer(3) == 4",
        "answer(3)",
        "f = same(lambda x: x + 1)",  # it returns what was there before
        "answer(3)",
    )
    assert messages[::2] == ["", ""]
    assert all(message.startswith(FUNCTION_IS_OVER) for message in messages[1::2]), messages


def test_a_function_kept_by_an_object_ends_with_the_object():
    messages = judge_answer(
        KEEPING_ANSWER
        + dedented("""
                kept.append(function)
            def last():
                return kept[0].activation(3)
        """),
        "layer = Layer(lambda x: x + 1)\nassert layer(3) == 4",
        "assert layer(3) == 4\nlayer.activation = lambda x: x + 2",
        "assert layer(3) == 5",
    )
    assert messages == [""] * 3
    module = (
        "from torch import nn\nclass Layer(nn.Module):\n    def __init__(self, activation):\n"
        "        super().__init__()\n        self.activation, kept[:] = activation, [activation]\n"
        "    def forward(self, x):\n        return self.activation(x)\n"
    )
    messages = judge_answer(
        KEEPING_ANSWER + module,
        "layer = Layer(lambda x: x + 1)\nassert layer(torch.ones(1)) == 2",
        "assert layer(torch.ones(1)) == 2\nassert answer(1) == 2",
        "del layer",
        "answer(1)",
        given="import torch",
    )
    assert messages[:3] == [""] * 3
    assert messages[3].startswith(FUNCTION_IS_OVER)


def test_exceptions_keep_their_class_and_message():
    answer = dedented("""
        class Mine(ValueError):
            pass
        def f(kind):
            if kind == 'mine':
                raise Mine('not so')
            raise KeyError(kind)
    """)
    assert passes_all(
        answer,
        dedented("""
            try:
                f('mine')
            except ValueError as error:
                assert str(error) == 'not so'
                assert type(error).__name__ == 'Mine'
            else:
                assert False
        """),
        dedented("""
            try:
                f('x')
            except KeyError as error:
                assert 'x' in str(error)
            else:
                assert 0
        """),
    )


@pytest.mark.parametrize(
    "kind", ["StopIteration", "GeneratorExit", "SystemExit", "KeyboardInterrupt"]
)
def test_no_exception_ends_a_tests_loop_silently(kind):
    test = "for y in map(f, [1, 2]):\n    assert y == 3"
    (message,) = judge_answer(f"def f(x):\n    raise {kind}", test)
    assert kind in message


def test_printed_text_can_be_read_by_the_test():
    test = "import contextlib, io\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n"
    test += "    f()\nassert out.getvalue() == 'hi\\n'"
    assert passes_all("def f():\n    print('hi')", test)


def test_generators_are_iterated_lazily():
    answer = dedented("""
        def f(n):
            for i in range(n):
                yield i * i
        def g():
            i = 0
            while True:
                yield i
                i += 1
    """)
    assert passes_all(
        answer,
        "assert list(f(4)) == [0, 1, 4, 9]",
        "import itertools\nassert list(itertools.islice(g(), 3)) == [0, 1, 2]\nassert next(f(1)) == 0",
    )


def test_a_seed_set_by_a_test_holds_in_the_submission():
    answer = "def f():\n    return torch.rand(2), np.random.rand(2)"
    test = "torch.manual_seed(3)\nnp.random.seed(3)\na = f()\nb = f()\ntorch.manual_seed(3)\n"
    test += "np.random.seed(3)\nc = f()\nassert torch.equal(a[0], c[0]) and (a[1] == c[1]).all()\n"
    assert passes_all(answer, test + "assert not torch.equal(a[0], b[0])")


def test_a_test_can_inspect_signatures():
    test = "import inspect\nassert list(inspect.signature(f).parameters) == ['a', 'b']\n"
    test += "assert f.__name__ == 'f' and callable(f)\n"
    assert passes_all("def f(a, b=2):\n    pass", test + "bound = inspect.signature(f).bind(1)")


# --- objects and classes ----------------------------------------------------------------------

VOCABULARY = """
class Vocabulary:
    kind = "words"
    def __init__(self, words):
        self.words = list(words)
        self.extra = None
    def __len__(self):
        return len(self.words)
    def __getitem__(self, i):
        return self.words[i]
    def index(self, word):
        return self.words.index(word)
    def __eq__(self, other):
        return isinstance(other, Vocabulary) and self.words == other.words
    __hash__ = None
    @classmethod
    def of(cls, text):
        return cls(text.split())
"""


def test_objects_of_submitted_classes_work():
    assert passes_all(
        VOCABULARY,
        "v = Vocabulary(['a', 'b'])\nassert len(v) == 2 and v[1] == 'b' and v.index('b') == 1\n"
        "assert list(v) == ['a', 'b'] and 'a' in v and 'z' not in v and v.words == ['a', 'b']",
        dedented("""
            v = Vocabulary.of('x y')
            assert isinstance(v, Vocabulary) and Vocabulary.kind == 'words'
            v.extra = 5
            assert v.extra == 5 and v == Vocabulary(['x', 'y']) != Vocabulary([])
        """),
        dedented("""
            try:
                Vocabulary([]).index('a')
            except ValueError:
                pass
            else:
                assert False
        """),
    )


def test_an_object_that_equals_everything_passes_no_test():
    answer = "class Yes:\n    __hash__ = None\n"
    for name in ("eq", "lt", "le", "gt", "ge", "sub", "rsub", "contains"):
        answer += f"    def __{name}__(self, other):\n        return True\n"
    answer += "    def __bool__(self):\n        return True\n    def __float__(self):\n"
    answer += "        return 0.0\n    def __abs__(self):\n        return 0.0\n"
    answer += "    def __array__(self, *a, **k):\n        return np.array(3.0)\n"
    answer += "def f():\n    return Yes()"
    tests = ["assert f() == 3", "assert f()", "assert f() <= 3", "assert abs(f() - 3) < 1e-9"]
    tests += [
        "assert np.allclose(f(), 3)",
        "assert 5 in f()",
        "assert float(f()) == 0",
        "2.0 * f()",
    ]
    assert all(judge_answer(answer, *tests))


# --- modules ----------------------------------------------------------------------------------

HEAD = """
class Head(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.d = d
        self.W = nn.Linear(d, k)
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("seen", torch.zeros(()))
        self.drop = nn.Dropout(0.5)
    def weights(self, x):
        return torch.softmax(self.W(x) * self.scale, -1)
    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.seen += 1
        return self.drop(self.weights(x))
"""


def test_an_attribute_set_by_a_test_counts_in_the_next_call():
    answer = dedented("""
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.factor = 1.0

            def forward(self, x):
                return x * self.factor + getattr(self, "shift", 0)
    """)
    assert passes_all(
        answer,
        dedented("""
            m = Scaled()
            assert m(torch.ones(1)).item() == 1
            m.factor = 2.0
            assert m.factor == 2 and m(torch.ones(1)).item() == 2
            m.shift = 3
            assert m.shift == 3 and m(torch.ones(1)).item() == 5
            assert m.factor == 2
        """),
    )


def test_submitted_modules_behave_as_torch_modules():
    assert passes_all(
        HEAD,
        "head = Head(3, 2).eval()\nassert isinstance(head, nn.Module) and issubclass(Head, nn.Module)\n"
        "assert isinstance(head, Head) and isinstance(head.W, nn.Linear) and head.W.in_features == 3\n"
        "assert list(head.state_dict()) == ['scale', 'seen', 'W.weight', 'W.bias']\n"
        "assert sum(p.numel() for p in head.parameters()) == 9 and head.d == 3",
        dedented("""
            head = Head(3, 2).eval()
            x = torch.randn(4, 3)
            want = torch.softmax(x @ head.W.weight.T + head.W.bias, -1)
            assert torch.allclose(head(x), want) and torch.allclose(head.weights(x), want)
            assert torch.allclose(head.W(x), x @ head.W.weight.T + head.W.bias)
        """),
        "head = Head(3, 2).double().eval()\nstate = {n: torch.randn_like(p) for n, p in "
        "head.state_dict().items()}\nhead.load_state_dict(state)\nx = torch.randn(4, 3).double()\n"
        "want = torch.softmax((x @ state['W.weight'].T + state['W.bias']) * state['scale'], -1)\n"
        "assert torch.allclose(head(x), want)",
        dedented("""
            head = Head(3, 2)
            x = torch.ones(50, 3)
            assert (head(x) == 0).any()
            head(x)
            assert head.seen == 2
            head.eval()
            assert not (head(x) == 0).any()
            assert head.seen == 2
        """),
    )


def test_a_test_can_train_with_its_own_optimizer():
    assert passes_all(
        HEAD,
        dedented("""
            torch.manual_seed(0)
            head = Head(3, 2).eval()
            x = torch.randn(16, 3)
            y = (x[:, 0] > 0).long()
            optimizer = torch.optim.Adam(head.parameters(), lr=0.1)
            losses = []
            for _ in range(30):
                optimizer.zero_grad()
                loss = -torch.log(head(x)[range(16), y]).mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            assert losses[-1] < losses[0] / 2, losses
        """),
    )


def test_gradients_reach_arguments_and_parameters():
    answer = HEAD + "def f(x, w):\n    return (x @ w).sigmoid(), x.sum()\n"
    answer += "def g(x):\n    return x.detach() * 2\n"
    assert passes_all(
        answer,
        "x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)\n"
        "w = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)\n"
        "assert torch.autograd.gradcheck(lambda a, b: f(a, b)[0], (x, w))",
        dedented("""
            x = torch.randn(2, 3, requires_grad=True)
            y, s = f(x * 2, torch.ones(3, 1))
            (y.sum() * 0 + s).backward()
            assert torch.equal(x.grad, torch.full((2, 3), 2.0))
        """),
        "head = Head(3, 2).eval()\nx = torch.randn(4, 3)\nwant = torch.autograd.grad(torch.softmax("
        "(x @ head.W.weight.T + head.W.bias) * head.scale, -1)[:, 0].sum(), head.W.weight)[0]\n"
        "got = torch.autograd.grad(head(x)[:, 0].sum(), head.W.weight)[0]\n"
        "assert torch.allclose(got, want, atol=1e-6)\n"
        "assert torch.allclose(torch.autograd.grad(head.weights(x)[:, 0].sum(), head.W.weight)[0], "
        "want, atol=1e-6)",
        dedented("""
            x = torch.ones(2, requires_grad=True)
            assert not g(x).requires_grad
            with torch.no_grad():
                assert not f(x[None], torch.ones(2, 1))[0].requires_grad
        """),
    )


def test_shared_layers_are_shared_in_the_test():
    answer = dedented("""
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(2, 2)
                self.b = self.a
            def forward(self, x):
                return self.b(self.a(x))
    """)
    test = "m = Tied()\nassert m.a is m.b and len(list(m.parameters())) == 2\n"
    test += "with torch.no_grad():\n    m.a.weight.copy_(torch.eye(2))\n    m.a.bias.fill_(1.0)\n"
    assert passes_all(answer, test + "assert m(torch.zeros(1, 2)).tolist() == [[2, 2]]")


@pytest.mark.parametrize("options", [", device='meta'", ""])
def test_an_unreadable_module_fails_only_its_test(options):
    kind = "Linear(2, 2" if options else "LazyLinear(2"
    answer = f"def build():\n    return nn.{kind}{options})\ndef f(x):\n    return x"
    messages = judge_answer(
        answer, "m = build()\nassert m(torch.ones(2)).sum() == 7", "assert f(3) == 3"
    )
    assert messages[0]
    assert messages[1] == ""


def test_a_module_with_broken_parameters_fails_only_its_test():
    answer = dedented("""
        class X(nn.Module):
            @property
            def _parameters(self):
                raise RuntimeError
            @_parameters.setter
            def _parameters(self, value):
                pass
        def f():
            kept.append(X())
            return kept[0]
        kept = []
        def g():
            return 1
    """)
    messages = judge_answer(answer, "x = f()", "assert g() == 1", "assert g() == 1")
    assert messages == ["RuntimeError", "", ""]


def test_a_compiled_answer_can_be_called():
    assert passes_all(
        dedented("""
            @torch.compile
            def f(x):
                return x + 1
        """),
        "assert f(torch.ones(2)).sum() == 4",
    )


def test_sequential_modules_can_be_copied():
    answer = "def build():\n    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))"
    test = "import copy\nm = build()\nc = copy.deepcopy(m)\nx = torch.randn(5, 2)\n"
    test += "assert isinstance(m, nn.Sequential) and len(m) == 3 and m[0].out_features == 3\n"
    test += "assert torch.equal(m(x), c(x))\nwith torch.no_grad():\n    c[0].weight.zero_()\n"
    assert passes_all(answer, test + "assert not torch.equal(m(x), c(x)) and m(x).shape == (5, 1)")


# --- what the instructor's cells define -------------------------------------------------------


def test_names_of_given_cells_are_the_instructors():
    given_cell = dedented("""
        data = np.arange(3.0)
        def expected(x):
            return 2 * x
    """)
    edited = dedented("""
        data = np.zeros(3)
        def expected(x):
            return f(x)
        def f(x):
            return x
    """)
    tests = ["assert np.allclose(f(data), expected(data))"]
    assert judge_answer("def f(x):\n    return 2 * x", *tests, given=given_cell) == [""]
    assert judge_answer(edited, *tests, given=given_cell, defines=("f",)) == ["AssertionError"]


def test_builtins_and_libraries_cannot_be_replaced_for_the_test():
    answer = dedented("""
        import builtins
        builtins.abs = lambda x: 0
        np.allclose = lambda *a, **k: True
        abs = builtins.abs
        def f():
            return 1
    """)
    tests = ["assert abs(f() - 3) < 1e-9", "assert np.allclose(f(), 3)"]
    assert judge_answer(answer, *tests, defines=("f",)) == ["AssertionError"] * 2


def test_replaced_builtins_do_not_change_a_verdict():
    """The worker replaces ``all``; the checker compares by its own and gives no points."""
    answer = dedented("""
        import builtins
        builtins.all = lambda things: True
        def split_by_similarity(sequences, max_distance=1, test_fraction=0.2, seed=0):
            half = np.arange(len(sequences) // 2)
            return half, half
    """)
    test = 'assert examine("sequences.split_by_similarity", split_by_similarity).earned == 0'
    given_cell = "from attncourse.checks import examine\n"
    assert judge_answer(answer, test, given=given_cell, defines=("split_by_similarity",)) == [""]


def test_no_caller_returns_a_truth_value():
    return_types = {
        caller.__name__: str(inspect.signature(caller).return_annotation)
        for caller in CALLERS.values()
    }
    assert not [name for name, return_type in return_types.items() if "bool" in return_type]


def test_names_a_test_defines_stay_for_the_next_test():
    assert passes_all(
        "def f():\n    return 1", "best = f()\nassert best == 1", "assert best + f() == 2"
    )


def test_future_imports_hold_for_later_cells():
    given_cell = "from __future__ import annotations\nx = 1"
    answer = "def f(x: Float[Array, 'n']) -> Nowhere:\n    return x"
    assert passes_all(answer, "assert f(3) == 3", given=given_cell)


def test_a_missing_name_raises_a_name_error():
    assert judge_answer("y = 1", "assert y == 1", "f()") == [
        "",
        "NameError: name 'f' is not defined",
    ]


# --- limits -----------------------------------------------------------------------------------


def test_an_endless_call_fails_only_its_test():
    answer = dedented("""
        def f():
            while True:
                pass
        def g():
            return 1
    """)
    messages = judge_answer(
        answer, "assert g() == 1", "f()", "assert g() == 1", limits=Limits(call=0.5, grace=0.5)
    )
    assert messages[::2] == ["", ""]
    assert messages[1].startswith("did not end within ")


def test_an_uninterruptible_call_fails_only_its_test():
    answer = dedented("""
        import signal
        def f():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            while True:
                pass
        def g():
            return 1
    """)
    messages = judge_answer(
        answer, "assert g() == 1", "f()", "assert g() == 1", limits=Limits(call=0.5, grace=0.5)
    )
    assert messages[::2] == ["", ""]
    assert "did not end" in messages[1]


def test_an_exiting_process_fails_only_its_test():
    answer = dedented("""
        import os
        def f():
            os._exit(0)
        def g():
            return 1
    """)
    messages = judge_answer(answer, "assert g() == 1", "f()", "assert g() == 1")
    assert messages[::2] == ["", ""]
    assert "ended its process" in messages[1]


def test_a_test_that_loops_for_ever_over_an_answer_is_stopped():
    limits = Limits(submission=1, cell=0.5, call=0.5)
    messages = judge_answer(
        "def f():\n    return 0", "assert f() == 0", "while f() < 1:\n    pass", limits=limits
    )
    assert messages[0] == ""
    assert messages[1]


def test_an_answer_too_large_for_the_wire_is_refused():
    answer = dedented("""
        def f():
            return np.zeros(10**7)
        def g():
            return 1
    """)
    messages = judge_answer(answer, "f()", "assert g() == 1", limits=Limits(message=1))
    assert "sent" in messages[0]
    assert messages[1] == ""


def test_the_same_seed_draws_the_same_cases():
    answer = "def f(x):\n    return x"
    test = "assert f(np.random.rand()) < 0.5"
    messages_by_run = [judge_answer(answer, *[test] * 8, seed=seed) for seed in (1, 1, 2)]
    assert messages_by_run[0] == messages_by_run[1] != messages_by_run[2]


def test_a_worker_starts_with_the_libraries_of_the_assignment():
    cells = read_cells(
        notebook(cell("import torch, math\nfrom torch.nn import functional\nimport os"))
    )
    assert libraries_imported(Assignment("x", cells)) == ("numpy", "torch", "torch.nn")


def test_tests_use_the_checkers_own_libraries():
    right_answer = dedented("""
        import numpy as np
        ### BEGIN SOLUTION
        def f():
            return 3
        ### END SOLUTION
    """)
    cells = [solution("answer", right_answer), graded("t", "assert np.allclose(f(), 3)", 1)]
    forged_answer = dedented("""
        import numpy as np
        np.allclose = lambda *a: True
        def f():
            return 4
    """)
    for answer, points in ((right_answer, 1), (forged_answer, 0)):
        handed_in = notebook(solution("answer", answer), cells[1])
        report = grade_submission(
            handed_in, Assignment("a", read_cells(notebook(*cells))), limits=LIMITS
        )
        assert report.points == points, report


@pytest.mark.parametrize("expression", ["lambda: 0", "type('C', (), {})", "nn.ReLU()", "object()"])
def test_an_object_without_a_value_has_no_truth_value(expression):
    (message,) = judge_answer(f"def f():\n    return {expression}", "assert f()")
    assert "no truth value" in message


def test_the_worker_frees_objects_that_the_test_released():
    answer = HEAD + dedented("""
        import gc
        def alive():
            return sum(type(x) is Head for x in gc.get_objects())
    """)
    test = (
        "for _ in range(9):\n    head = Head(3, 2)\n    head(torch.ones(1, 3)).sum().backward()\n"
    )
    assert passes_all(answer, test + "del head\nalive()\nassert alive() == 0, alive()")


# --- the cases of a check, which go over all at once --------------------------------------------

TRY_OUT_CELL = """\
from attncourse.checks import exercises
from attncourse.checks.trying.trials import try_out
trials = try_out(exercises()["mixing.mix"], mix, 7)
kinds = [trial.outcome.kind for trial in trials]
"""


def mix_with_third_call(third_call: str) -> str:
    """Return the source of a right ``mix`` that runs ``third_call`` first when called a third time."""
    return f"""\
import os
calls = []
def mix(A, X):
    calls.append(1)
    if len(calls) == 3:
        {third_call}
    return A @ X"""


def test_cases_before_a_crash_keep_their_outcomes():
    test = TRY_OUT_CELL + (
        "assert kinds[:3] == ['value', 'value', 'raised'] and {*kinds[3:]} == {'raised'}, kinds\n"
        "assert 'ended its process' in trials[2].outcome.text, trials[2]"
    )
    assert judge_answer(mix_with_third_call("os._exit(0)"), test) == [""]


SLOW_SIGNATURE = """
class Slow:
    def __call__(self):
        pass
    @property
    def __signature__(self):
        while True:
            pass
"""


@pytest.mark.parametrize("third", ["while True: pass", "return Slow()"])
def test_the_cases_after_one_that_hangs_are_not_tried(third):
    """A call hangs, too, if looking at its value never ends."""
    test = TRY_OUT_CELL + (
        "assert kinds[:3] == ['value', 'value', 'hung'] and {*kinds[3:]} == {'skipped'}, kinds\n"
        "assert np.allclose(mix(np.eye(2), np.ones((2, 3))), 1)"
    )
    answer = mix_with_third_call(third) + SLOW_SIGNATURE
    assert judge_answer(answer, test, limits=Limits(call=0.5, grace=0.5)) == [""]


def test_a_case_reports_its_exception_and_its_changes():
    answer = mix_with_third_call("raise KeyError('third')").replace(
        "    return", "    X *= 2\n    return"
    )
    test = TRY_OUT_CELL + (
        dedented("""
            assert kinds[:4] == ['value', 'value', 'raised', 'value'], kinds
            third = trials[2].outcome
            assert third.error is KeyError and 'third' in third.text, third
            assert [trial.outcome.mutated for trial in trials[:4]] == ['X', 'X', '', 'X'], trials
        """)
    )
    assert judge_answer(answer, test) == [""]


def test_a_case_may_pass_functions():
    """The answer's process calls a proxy, and the function itself runs in the checker."""
    answer = """\
def is_permutation_equivariant(function, X, atol=1e-9, rng=None):
    X = np.asarray(X)
    orders = [np.random.default_rng(n).permutation(X.shape[-2]) for n in range(50)]
    return all(
        np.allclose(function(X[..., p, :]), function(X)[..., p, :], rtol=0, atol=atol)
        for p in orders
    )"""
    target = '"self_attention.is_permutation_equivariant"'
    given_cell = "from attncourse.checks import examine\n"
    test = (
        f"verdict = examine({target}, is_permutation_equivariant)\nassert verdict.earned, verdict"
    )
    assert judge_answer(answer, test, given=given_cell) == [""]


def test_functions_passed_by_cases_end_with_the_cases():
    answer = """\
kept = []
def is_permutation_equivariant(function, X, atol=1e-9, rng=None):
    kept.append(function)
    return function(X) is not None
def answer(X):
    return kept[0](X)"""
    target = '"self_attention.is_permutation_equivariant"'
    given_cell = "from attncourse.checks import examine\n"
    test = f"examine({target}, is_permutation_equivariant)\nanswer(np.eye(2))"
    (message,) = judge_answer(answer, test, given=given_cell)
    assert message.startswith(FUNCTION_IS_OVER)


def test_many_notes_are_shortened():
    cells = [solution("f", "def f():\n    return 1"), graded("t", "assert f() == 1", 1)]
    cells_with_notes = [cell("!ls\n" * 3000), *(cell(f"raise ValueError({n})") for n in range(150))]
    assignment = Assignment("01_split", read_cells(notebook(*cells)))
    report = grade_submission(
        notebook(cells[0], *cells_with_notes, cells[1]), assignment, limits=LIMITS, seed=1
    )
    assert report.points == 1
    assert len(report.notes) < 250
    assert {"and 2900 notes more", "and 50 notes more"} <= {*report.notes}


def test_a_modules_own_methods_do_not_affect_its_weights():
    """A check loads weights and counts parameters by torch's own methods, not by the class's."""
    right = TORCH_RIGHT["AttentionHead"] + "\n"
    raising_methods = """\
    def state_dict(self, *args, **kwargs):
        raise RuntimeError
    parameters = named_parameters = load_state_dict = state_dict
"""
    test = 'verdict = examine("kqv.AttentionHead", AttentionHead)\nassert verdict.passed, verdict'
    given_cell = "from attncourse.checks import examine\n"
    assert judge_answer(right + raising_methods, test, given=given_cell) == [""]
    extra = right.replace(
        "        self.W_q =", "        self.more = nn.Linear(3, 3)\n        self.W_q ="
    )
    (message,) = judge_answer(extra + raising_methods, test, given=given_cell)
    assert "nobody asked for: more" in message


@pytest.mark.parametrize(
    ("changes", "notes"),
    [
        ({}, ["project: the result is the expected one times 2"]),
        ({"symptom": ""}, ["project: values"]),
        ({"mistake": "no weight"}, []),
        ({"failed": []}, []),
        ({"unwritten": True}, ["not attempted: project"]),
    ],
)
def test_a_wrong_answer_without_a_known_mistake_is_noted(changes, notes):
    symptom = "the result is the expected one times 2"
    verdict = {"target": "kqv.project", "failed": ["values"], "symptom": symptom}
    verdict |= {"mistake": "", "reason": "", "unwritten": False, **changes}
    assert remarks(Findings((), {}), [verdict]) == notes


# --- a conversation with a process that does not keep to it -------------------------------------


@pytest.fixture
def conversation():
    """Return a function that makes a session and the worker's end of its socket.

    Each of its arguments turns the next request into the frames that the worker answers.
    """
    ends: list[socket.socket] = []

    def make(*answers):
        checker_end, worker_end = socket.socketpair()
        ends.extend((checker_end, worker_end))

        def answer_requests() -> None:
            with worker_end.makefile("rb") as stream:
                for make_frames in answers:
                    request, _ = unpack_frame(stream.read, 1 << 30)
                    worker_end.sendall(
                        b"".join(pack_frame(frame, []) for frame in make_frames(request))
                    )

        if answers:
            threading.Thread(target=answer_requests).start()
        return Session(checker_end, LIMITS, Stopwatch(20), carry_seed=False), worker_end

    yield make
    for end in ends:
        end.close()


def reply(request, name="", **more):
    """Return the worker's reply to a request, or one with another id."""
    return {"id": name or request["id"], "replies": [{"values": {}, **more}]}


def test_a_reply_to_another_request_ends_the_conversation(conversation):
    session, _ = conversation(lambda r: [reply(r)], lambda r: [reply(r, "of before")])
    assert session.values_of(["f"]) == {}
    with pytest.raises(Ended, match="not asked for"):
        session.values_of(["f"])
    with pytest.raises(Ended, match="not asked for"):
        session.values_of(["f"])


def test_a_second_reply_ends_the_conversation(conversation):
    session, _ = conversation(lambda r: [reply(r), reply(r)])
    assert session.values_of(["f"]) == {}
    with pytest.raises(Ended, match="not asked for"):
        session.values_of(["f"])


def test_an_unrequested_message_ends_the_conversation(conversation):
    session, worker_end = conversation()
    worker_end.sendall(b"x")
    with pytest.raises(Ended, match="not asked for"):
        session.values_of(["f"])


def test_unrequested_modules_are_limited(conversation):
    empty = {"plain": {"d": []}, "tensors": {}, "children": {}}
    module = {**empty, "transient": [], "bases": [], "padding": "x" * 300_000}
    answers = [lambda r, n=n: [reply(r, modules={str(n): module})] for n in range(4)]
    session, _ = conversation(*answers)
    session.limits = Limits(message=1)
    for _ in range(3):
        session.values_of(["f"])
    with pytest.raises(Ended, match="more modules"):
        session.values_of(["f"])


def test_the_same_reply_to_the_same_case_is_judged_once(conversation):
    exercise = find_exercise("mixing.mix")

    def outcomes_of(seed=11, **more) -> list:
        case_reply = {
            "kind": "value",
            "changed": [],
            "value": 7,
            "out": "",
            "over": False,
            "arrays": 0,
        }

        def answer(request):
            count = len(draw(exercise, seed))
            return [{"id": request["id"], "replies": [case_reply | more] * count}]

        return list(outcomes_from_replies(conversation(answer)[0], 1, exercise, seed))

    def are_same_objects(first: list, second: list) -> bool:
        return all(a is b for a, b in zip(first, second, strict=True))

    first = outcomes_of()
    assert are_same_objects(first, outcomes_of())
    assert [outcome.value for outcome in outcomes_of(value=8)] == [8] * len(first)
    argument = next(iter(inspect.signature(exercise.reference).parameters))
    assert {outcome.mutated for outcome in outcomes_of(changed=[argument])} == {argument}
    assert not are_same_objects(first, outcomes_of(seed=12))  # other cases
    # Printed text is not shared, since a test may read it.
    assert not are_same_objects(outcomes_of(out="text"), outcomes_of(out="text"))
    object_handle = {"o": {"h": 1, "kind": "object", "type": "T"}}
    # An object is not shared, since it lives in one process.
    assert not are_same_objects(outcomes_of(value=object_handle), outcomes_of(value=object_handle))


def test_judging_starts_no_progress_thread(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("a thread")

    monkeypatch.setattr(threading, "Thread", refuse)
    with observe(1) as verdicts:
        examine("mixing.mix", lambda *args: None)
    assert len(verdicts) == 1


def test_announcements_carry_the_points_earned_so_far():
    """A step that follows at once and may take as long is not announced, unless points came."""
    driver_end, lane_end = socket.socketpair()
    with driver_end, lane_end, driver_end.makefile("rb") as stream:
        lane_loop = LaneLoop(lane_end, lane_end, {"processes": 1})
        for name, seconds in (("a", 5.0), ("b", 5.0), ("c", 9.0), ("d", 9.0)):
            lane_loop.announce(name, seconds)
        lane_loop.earned["points_mix"] = {"points": 2.0}
        lane_loop.announce("e", 9.0)
        lane_loop.announced_at -= 1
        lane_loop.announce("f", 9.0)
        announcements = [unpack_frame(stream.read, 1 << 20)[0] for _ in range(4)]
    assert [message["begins"] for message in announcements] == ["a", "c", "e", "f"]
    assert [message["earned"] for message in announcements] == [
        {},
        {},
        {"points_mix": {"points": 2.0}},
        {},
    ]


def test_an_unimportable_caller_raises_a_type_error(conversation):
    session, _ = conversation()
    case = Case((1,), use=lambda implementation, x: implementation(x))
    with pytest.raises(TypeError, match="none of the CALLERS"):
        case_as_message(case, session, [b""])


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [(Limits(), 5), (Limits().stretched(4), 5), (Limits(call=2).stretched(4), 2)],
)
def test_a_check_has_more_time_on_a_slow_machine(conversation, limits, seconds):
    """A call has the exercise's 5 s or the limit, whichever is less, times the stretch."""
    call_limits = []

    def hang(request):
        call_limits.append(request["limit"])
        return [reply(request, kind="hung")]

    session, _ = conversation(hang)
    session.limits, session.clock = limits, SimpleNamespace(used=time.monotonic)
    (outcome,) = outcomes_from_replies(session, 1, find_exercise("mixing.mix"), 7)
    assert (outcome.kind, call_limits) == ("hung", [seconds * limits.stretch])
    assert session.overdue == f"a call did not end within {seconds} s of processor time"


@pytest.mark.parametrize(
    "source",
    [
        "import urllib.request\nurllib.request.urlopen('https://example.org/a.csv')",
        "import requests\nrequests.get('https://example.org')",
    ],
)
def test_a_note_says_that_there_is_no_network(source):
    right = solution("answer", "def f():\n    return 1")
    test = graded("t", "assert f() == 1", 1)
    assignment = Assignment("01_split", read_cells(notebook(right, test)))
    data = notebook(cell(source), cell("1 / 0"), right, test)
    report = grade_submission(data, assignment, limits=LIMITS, seed=7)
    assert report.points == 1
    network_note, division_note = report.notes
    assert network_note.startswith("cell 1: there is no network where a notebook is graded: ")
    assert division_note == "cell 2: ZeroDivisionError: division by zero"
