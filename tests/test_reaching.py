"""What reaches behind the watch is told to a person; what is honest is not."""

import inspect

import pytest
from conftest import ROOT
from corpus.assignment import KQV, TORCH_RIGHT
from corpus.forging import CASES as FORGING
from corpus.honest import CASES as HONEST

from attncourse.checks import exercises
from attncourse.grading.judge.desk import Desk
from attncourse.grading.judge.judge import grade
from attncourse.grading.sample import CLASS
from attncourse.grading.submission.notebook import Assignment, read_cells
from attncourse.grading.submission.plan import plan
from attncourse.grading.submission.reaching import ATTRIBUTES, INTERPRETER, WATCH, reaches

FORBIDDING = Assignment(KQV.name, read_cells(KQV.source))


def found(*sources: str, watched: bool = True) -> str:
    return " ".join(reach.what for cell in reaches(sources, watched=watched) for reach in cell)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import torch as t\nt._C._nn", "torch._C"),
        ("from torch import _C as inner", "torch._C"),
        ("import torch\nf = getattr(torch, '_C')", "torch._C"),
        ("import torch\ninner = vars(torch)['_C']", "torch._C"),
        ("import torch\ntorch.__dict__['_C']._nn", "torch._C"),
        ("import importlib as i\ni.import_module('torch._C')", "torch._C"),
        ("__import__('torch._C')", "torch._C __import__"),
        ("from sys import modules as m\nimport sys\nsys.modules['torch._C']", "torch._C"),
        ("from operator import attrgetter as get\nfrom x import y\nget('_C._nn')(y)", "_C"),
        ("import importlib\nimportlib.import_module('_' + 'x')", "importlib.import_module()"),
        ("from torch.overrides import *", "torch.overrides"),
        ("from torch import *\njit.script(f)", "torch.jit"),
        ("from torch import overrides as o\no.x(f)", "torch.overrides"),
        ("import torch\na = b, c = torch, torch.nn\nb.jit.load(c)", "torch.jit"),
        ("import torch\nif (t := torch).ops.x: pass", "torch.ops"),
        ("import torch\ndef f(x, *, t=torch): return t.fx.x", "torch.fx"),
        ("def f(self): return self.torch.ops.aten.x", "aten"),
        ("from torch.utils._python_dispatch import TorchDispatchMode", "torch.utils._python"),
        ("import torch\n@torch.compile\ndef f(): pass", "torch.compile"),
        ("import torch\ntorch.export.export(f)", "torch.export"),
        ("import torch\ntorch.library.Library('aten', 'IMPL')", "torch.library"),
        ("from torch.nn.attention.flex_attention import flex_attention", "torch.nn.attention"),
        ("class T:\n    def __torch_function__(cls): ...", "__torch_function__"),
        ("import threading as t\nt.Thread(target=f)", "threading"),
        ("from concurrent.futures import ThreadPoolExecutor", "concurrent"),
        ("import multiprocessing.dummy", "multiprocessing"),
        ("import asyncio", "asyncio"),
        ("import ctypes", "ctypes"),
        ("import gc\nfor x in gc.get_objects(): pass", "gc.get_objects"),
        ("import sys\nsys._getframe(1)", "sys._getframe"),
        ("import sys\nsys.settrace(f)", "sys.settrace"),
        ("import inspect\ninspect.currentframe().f_back", "f_back inspect.currentframe"),
        ("f.__globals__['x']", "__globals__"),
        ("object.__subclasses__()", "__subclasses__"),
        ("def f(): pass\nf.__code__ = g.__code__", "__code__"),
        ("exec(text)", "exec"),
        ("import builtins as b\nb.eval('1')", "eval"),
        ("import builtins\n[builtins][0].eval('1')", "eval"),
        ("import builtins\ne = [builtins][0].eval\ne('1')", "eval"),
        ("e = compile", "compile"),
        ("import pickle\npickle.loads(x)", "pickle"),
        ("import transformers", "transformers"),
        ("#" * 100_001, "more than 100000 characters"),
    ],
)
def test_it_is_seen_under_whatever_name(source, what):
    assert set(what.split()) <= set(found(source).split()) or what in found(source)


def test_an_alias_holds_in_later_cells():
    cells = reaches(["import torch as t", "u = t", "u._C"], watched=True)
    assert [bool(cell) for cell in cells] == [False, False, True]


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nin_colab = 'google.colab' in sys.modules",
        "import re\nre.compile('a').match(x)\nmodel.eval()\nGPT(x).eval()\nself.compile(1)",
        "import gc\ngc.collect()",
        "import torch\ntorch.__version__\nx.__class__\nself._scale = torch.nn.init.ones_(w)",
        "import inspect\ninspect.getsource(f)\ninspect.signature(f)",
        "import torch\nmine = torch.nn.functional.scaled_dot_product_attention(q, k, v)",
        "'''torch._C and exec() and eval are private.'''\ntext = 'the operators of torch.ops'",
        "from torch.nn import functional as F\nF.softmax(x, -1)\ngetattr(F, 'gelu')(x)",
        "from functools import partial, wraps, lru_cache\nimport itertools, math, os, sys, random",
        "def f(:",
    ],
)
def test_honest_code_gives_no_alarm(source):
    assert found(source) == ""


def test_no_alarm_for_any_right_answer():
    paths = sorted(ROOT.glob("solutions/*/*.ipynb"))
    assert len(paths) > 8
    for path in paths:
        assert own_alarms(path.stem, path.read_bytes(), path.read_bytes()) == "", path
    for name, answers in [*CLASS.items(), ("corpus", TORCH_RIGHT)]:
        assert found(*answers.values()) == "", name
    for target, exercise in exercises().items():
        assert found(inspect.getsource(exercise.reference)) == "", target


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.name)
def test_no_alarm_for_the_honest_corpus(case):
    assert own_alarms(case.work.name, case.work.source, case.notebook()) == ""


def own_alarms(name: str, source: bytes, submission: bytes) -> str:
    """What reaches out in the cells that are a student's own, not given to all."""
    assignment = Assignment(name, read_cells(source))
    steps, _ = plan(read_cells(submission), assignment)
    own = [step.source for step in steps if step.kind == "cell"]
    assert own
    return found(*own, watched=bool(Desk(assignment).forbids))


ROUND_ABOUT = [case for case in FORGING if case.name.startswith("finished-function-")]


@pytest.mark.parametrize("case", ROUND_ABOUT, ids=lambda case: case.name)
def test_who_goes_round_the_watch_is_looked_at(case):
    report = grade(case.notebook(), FORBIDDING)
    (told,) = (said for said in report.attention if said.startswith("uses "))
    assert " in cell scaled_dot_product_attention (" in told


def test_where_nothing_is_forbidden_threads_are_nobodys_business():
    for source in ("import threading", "import asyncio", "import torch\ntorch.jit.script(f)"):
        assert found(source, watched=False) == ""
    assert found("import ctypes", watched=False) == "ctypes"
    assert "kqv" in {target.split(".")[0] for target, e in exercises().items() if e.forbids}


def test_the_tables_read_like_sentences():
    for why in {*INTERPRETER.values(), *WATCH.values(), *ATTRIBUTES.values()}:
        assert why[0].islower()
        assert len(why) < 40
