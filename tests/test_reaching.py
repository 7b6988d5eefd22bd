"""What reaches behind the watch is told to a person; what is honest is not."""

import inspect
import sys
import time

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
from attncourse.grading.submission.reaching import reaches
from attncourse.grading.submission.telltale import ATTRIBUTES, INTERPRETER, WATCH

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
        ("from torch.ao.nn.quantizable import MultiheadAttention", "torch.ao"),
        ("import torch.onnx.ops", "torch.onnx"),
        ("import traceback\nfor f, _ in traceback.walk_stack(None): f.f_locals", "f_locals"),
        ("import inspect\ninspect.getinnerframes(e.__traceback__)", "inspect.getinnerframes"),
        ("import tracemalloc\ntracemalloc.reset_peak()", "tracemalloc"),
        ("import torch\ntorch.load(file, weights_only=False)", "pickle"),
        ("from unittest import mock\nmock.patch('json.loads', f)", "unittest.mock"),
        ("import sys\nsys.addaudithook(f)", "sys.addaudithook"),
        ("import torch\ngetattr(torch, chr(95) + 'C')", "torch.__dict__"),
        ("from torch.nn import functional as F\nvars(F)[name](x)", "__dict__"),
        # what is another's, and is given another value
        ("import json\njson.loads = f", "json.loads"),
        ("import json as j\nk = j\nk.loads = f", "k.loads"),
        ("import json\njson.loads, x = f, 1", "json.loads"),
        ("import json\nfor json.loads in [f]: pass", "json.loads"),
        ("import json\nwith f as json.loads: pass", "json.loads"),
        ("import json\n(json.\\\nloads) = f", "json.loads"),
        ("import json\nsetattr(json, name, f)", "json"),
        ("import json\njson.__setattr__(name, f)", "json"),
        ("import json\nvars(json)[name] = f", "json"),
        ("import json\njson.__dict__.update(a=f)", "json"),
        ("import builtins\nbuiltins.getattr = f", "builtins.getattr"),
        ("from torch import Tensor\nTensor.__add__ = f", "Tensor.__add__"),
        ("import sys\nsys.modules['torch.nn'] = f", "torch.nn"),
        # what was glued together
        ("import torch\nx = getattr(torch, '_' + 'C')", "torch._C"),
        ("import torch\nx = getattr(torch, f'_{\"C\"}')", "torch._C"),
        ("vars(__builtins__)['ex' + 'ec']", "__builtins__"),
        ("import builtins as b\nvars(b)['ex' + 'ec'](text)", "exec"),
        ("import builtins as b\nvars(b)[name](text)", "builtins.__dict__"),
        ("import builtins as b\nb.__dict__.get(name)(text)", "builtins.__dict__"),
        ("import builtins\ngetattr(builtins, name)(text)", "builtins.__dict__"),
        # what runs a text, and what is run as a file
        ("import code\ncode.InteractiveInterpreter().runsource(text)", "code.InteractiveInter"),
        ("from code import InteractiveConsole as C", "code.InteractiveConsole"),
        ("import cProfile\ncProfile.run(text)", "cProfile.run"),
        ("import runpy as r\nr.run_path('notes.txt')", "runpy"),
        ("open('help' + 'er.py', 'w').write(text)\nimport helper", ".py"),
        ("from pathlib import Path\nPath('a', 'helper.py').write_text(text)", ".py"),
        ("import importlib.util as u\nu.spec_from_file_location('a', path)", "importlib.util.spec"),
    ],
)
def test_it_is_seen_under_whatever_name(source, what):
    assert set(what.split()) <= set(found(source).split()) or what in found(source)


def test_what_is_nested_too_deeply_to_read_is_told():
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # Hypothesis has set more
    try:
        said = found("torch._C\ny = " + "+".join(["1"] * 9000))
    finally:
        sys.setrecursionlimit(usual)
    assert said == "code nested very deeply"


INNER = "import sys\nf = sys._getframe()\nwhile f:\n    f = f.f_back\n"


@pytest.mark.parametrize(
    "source",
    [
        f"open('helper.txt', 'w').write({INNER!r})",
        f"import timeit\ntimeit.timeit({INNER!r}, number=1)",
        f"import timeit\ntimeit.timeit('pass', setup={INNER!r}, number=1)",
        f"run(text={INNER[:9]!r} + {INNER[9:]!r})",
        f"run(text=f{INNER!r})",
        f"run(b{INNER!r})",
        f"def f():\n    {INNER!r}",
        f"run({f'run({INNER!r})'!r})",
        "def f():\n    '''\n    >>> import sys\n    >>> f = sys._getframe().f_back\n    1\n    '''",
        "import sympy\nsympy.sympify('__import__(\"sys\")._getframe().f_back')",
        r"run('import sys\nx = sys.\x5fgetframe().f\x5fback')",
    ],
)
def test_a_text_that_is_python_is_read_like_the_cell_that_holds_it(source):
    assert {"sys._getframe", "f_back"} <= set(found(source).split())


def test_what_is_forbidden_is_found_in_a_text_of_an_earlier_cell():
    cells = reaches(["import torch as t", "text = 'run(t.ops.aten.x)'", "1"], watched=True)
    assert [bool(cell) for cell in cells] == [False, True, False]


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
        # texts that only look like Python, and Python that reaches for nothing
        "mode = 'eval'\nprint('exec', 'compile', 'threading', 'sys.modules')",
        "ax.set_title('model.compile(x)')\nraise ValueError('f_back')",
        "import timeit\ntimeit.timeit('f(x)', setup='import numpy as np', globals=globals())",
        "'''Scaled.\n\n>>> f(np.ones(3)).shape\n(3,)\n'''",
        "code = pieces.codes\ncode.sum()\nprofile = code.mean()\nprofile.x",
        "import importlib.util\nif importlib.util.find_spec('torch'): pass",
        "import builtins\nbuiltins.sum([1])\ngetattr(builtins, 'sum')\nself.__dict__.update(a=1)",
        "with open('notes.txt', 'w') as file: file.write('import this')",
        "print(vars(model)['scale'], getattr(model, name))",
        "import torch\ntorch.load('head.pt')\ntorch.load('head.pt', weights_only=True)",
        # settings, and what is a student's own
        "import torch\ntorch.backends.cudnn.deterministic = True\ndel torch",
        "import os\nimport matplotlib.pyplot as plt\nplt.rcParams['figure.figsize'] = (3, 4)\n"
        "os.environ['A'] = b",
        "import numpy as np\nx = np.zeros(3)\nx.shape = (3, 1)\nfig.ax, y = a.b, x.shape",
        "from torch import nn\nclass Head(nn.Module):\n    def __init__(self):\n"
        "        self.W = nn.Linear(2, 2)\n        setattr(self, name, 1)\n"
        "Head.forward = forward\nhead = Head()\nhead.W.weight = nn.Parameter(x)",
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


# --- what takes too long --------------------------------------------------------------------------


def stars(number: int, what: str = "a") -> str:
    return "\n".join(f"from {what}{i} import *" for i in range(number))


def names(number: int) -> str:
    return "x.get_x()\n" + "\n".join(f"n{i}.q{i}" for i in range(number))


ALIASES = "\n".join(f"x = torch.x{i}" for i in range(3000))
USES = "gc.get_x\n" + "\n".join(f"x.y{i}" for i in range(8000))
LOOP = "\n".join(f"a{i % 60} = a{i // 60}.b" for i in range(3600)) + "\na1._C"
MANY = {
    "stars of no concern": ([*map(stars, [4500] * 3, "abc"), *[names(8000)] * 3], False),
    "stars of torch": ([stars(3000, "torch.a"), *[names(8000)] * 3], True),
    "one name for much": ([ALIASES, *[USES] * 3], True),
    "each name for each": ([LOOP, *(f"a{i}.c" for i in range(60))], True),
}


@pytest.mark.parametrize(("cells", "too_many"), MANY.values(), ids=MANY)
def test_names_times_meanings_are_bounded(cells, too_many):
    began = time.process_time()
    told = found(*cells)
    assert time.process_time() - began < 5
    assert ("meanings of names" in told) == too_many
    assert "meanings of names" not in found(*cells, watched=False)
    own = reaches([*cells, "import torch\ntorch.jit.script(f)"], watched=True)[-1]
    assert "torch.jit" in [reach.what for reach in own]
