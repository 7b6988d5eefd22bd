"""Unusual submissions that are right, and have to get everything they deserve."""

from functools import partial

from corpus.assignment import KQV, RIGHT, TORCH_RIGHT, keeps
from helpers.dedented_text import dedented

right = partial(keeps, "honest")

CENTER = RIGHT["center"]
SQUASH = TORCH_RIGHT["squash"]


def spread(before: str) -> dict[str, str]:
    return {"center": f"{before}\n\n{CENTER}"}


def fails(name: str, why: str, before: str):
    """A first line that cannot run here, in the cell of an answer."""
    return right(name, why, **spread(before))


def sets(name: str, why: str, before: str):
    """A setting of the whole process, in the cell of an answer."""
    return right(name, why, work=KQV, squash=f"{before}\n\n{SQUASH}")


def coded_name(content: dict) -> None:
    """The cells of two answers have names that a report must not show as they are."""
    marks = [c["metadata"]["nbgrader"] for c in content["cells"] if "nbgrader" in c["metadata"]]
    answers = [mark for mark in marks if mark["solution"]]
    answers[0]["grade_id"] = "<script>alert(1)</script>\x1b[2J\n"
    answers[1]["grade_id"] = "=cmd|' /C calc'!A0" * 1000


CASES = [
    right("plain", "as the instructor would write it"),
    right(
        "prints-much", "prints every step", **spread("for n in range(2000):\n    print('step', n)")
    ),
    right(
        "progress-bars",
        "a progress bar on stderr, redrawn in place",
        **spread(
            "import sys, time\n"
            "for n in range(100):\n    sys.stderr.write(f'\\r{n:3}% ' + '#' * n)\n"
            "    sys.stderr.flush()"
        ),
    ),
    right(
        "warnings",
        "warnings of its own and of NumPy",
        **spread(
            dedented("""
                import warnings
                warnings.warn('careful')
                warnings.warn('old', DeprecationWarning)
                np.array([1.0]) / 0
                np.log(-1.0)
            """)
        ),
    ),
    right(
        "backslashes",
        "a docstring full of formulas, whose backslashes Python does not know",
        center='def center(x):\n    "$\\\\phi(x) = x - \\\\sum_i x_i / n$ \\d \\s"\n'
        "    return np.asarray(x) - np.mean(x, axis=-1, keepdims=True)",
    ),
    right(
        "plots",
        "a figure in a cell",
        **spread(
            dedented("""
                import matplotlib.pyplot as plt
                figure, axes = plt.subplots()
                axes.plot([1, 2, 3])
                plt.show()
                figure
            """)
        ),
    ),
    right(
        "thread-pool",
        "rows worked on by threads",
        center="""
        from concurrent.futures import ThreadPoolExecutor
        def center(x):
            x = np.asarray(x, dtype=float)
            with ThreadPoolExecutor(4) as pool:
                rows = list(pool.map(lambda row: row - row.mean(), x.reshape(-1, x.shape[-1])))
            return np.stack(rows).reshape(x.shape)
        """,
    ),
    right(
        "temporary-files",
        "keeps a result in a file meanwhile",
        center="""
        import pathlib, tempfile
        def center(x):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "x.npy")
                np.save(path, np.asarray(x) - np.mean(x, axis=-1, keepdims=True))
                return np.load(path)
        """,
        words="""
        import json
        def words(text):
            counts = {word: text.split().count(word) for word in text.split()}
            with open("counts.json", "w") as file:
                json.dump(counts, file)
            with open("counts.json") as file:
                return json.load(file)
        """,
    ),
    right(
        "own-exception",
        "an exception class of its own, derived from the one asked for",
        first="""
        class TooFew(ValueError):
            def __init__(self, wanted, there):
                super().__init__(f"cannot take {wanted} of {there} items")
        def first(items, n):
            if n < 0 or n > len(items):
                raise TooFew(n, len(items))
            return [items[i] for i in range(n)]
        """,
    ),
    right(
        "chained-exception",
        "the error asked for, raised from another",
        first="""
        def first(items, n):
            try:
                if n < 0:
                    raise IndexError(n)
                return [items[i] for i in range(n)]
            except IndexError as error:
                raise ValueError(f"not {n} items") from error
        """,
    ),
    right(
        "recursive",
        "functions that call themselves",
        words="""
        def words(text):
            head, _, rest = text.partition(" ")
            counts = words(rest) if rest else {}
            return {**counts, head: counts.get(head, 0) + 1} if head else counts
        """,
        power="""
        def power(n):
            return (lambda x: 1) if n == 0 else lambda x: x * power(n - 1)(x)
        """,
    ),
    right(
        "global-cache",
        "remembers what it has worked out",
        rank="""
        cache = {}
        def rank(values):
            key = tuple(values)
            if key not in cache:
                cache[key] = sorted(range(len(values)), key=values.__getitem__)
            order = cache[key]
            return [order.index(i) for i in range(len(values))]
        """,
        halve="""
        from functools import lru_cache
        @lru_cache
        def halve(number):
            return number / 2
        """,
    ),
    right(
        "partials-and-lambdas",
        "functions made by functools.partial, lambda and a decorator",
        center="""
        from functools import partial, wraps
        def logged(function):
            @wraps(function)
            def inner(*args, **kwargs):
                return function(*args, **kwargs)
            return inner
        @logged
        def center(x):
            return np.asarray(x) - np.mean(x, axis=-1, keepdims=True)
        """,
        halve=dedented("""
            def times(a, b):
                return a * b
            halve = partial(times, 0.5)
        """),
        mix="mix = lambda A, X: np.einsum('...mn,...nd->...md', A, X)",
        power="power = lambda n: partial(lambda x, n: x**n, n=n)",
    ),
    right(
        "callable-objects",
        "objects with __call__ in place of functions, and a static method",
        mix="""
        class Mixer:
            def __init__(self, times=1):
                self.times = times
            def __call__(self, A, X):
                return self.times * np.matmul(A, X)
        mix = Mixer()
        """,
        power="""
        class Power:
            def __init__(self, n):
                self.n = n
            def __call__(self, x):
                return x**self.n
        power = Power
        """,
        halve="""
        class Tools:
            @staticmethod
            def half(x):
                return x / 2
        halve = Tools.half
        """,
    ),
    right(
        "generators-inside",
        "generators, comprehensions and the walrus, within functions",
        words="""
        def pairs(text):
            for word in text.split():
                yield word, 1
        def words(text):
            counts = {}
            for word, n in pairs(text):
                counts[word] = counts.get(word, 0) + n
            return counts
        """,
        rank="""
        def rank(values):
            return [sum(other < value for other in values) for value in values]
        """,
        first="""
        def first(items, n):
            if n < 0 or (there := len(items)) < n:
                raise ValueError(f"{n} is too many")
            return [item for _, item in zip(range(n), items)]
        """,
    ),
    right(
        "annotations-put-off",
        "annotations that name nothing, in cells after one that puts them off",
        center="from __future__ import annotations\n" + CENTER,
        halve="def halve(number: Number) -> Half[Number]:\n    return number / 2",
    ),
    right(
        "properties-and-dataclasses",
        "a dataclass with properties and type hints as a helper",
        center="""
        from __future__ import annotations
        from dataclasses import dataclass
        from typing import NamedTuple
        @dataclass(frozen=True)
        class Rows:
            values: np.ndarray
            @property
            def means(self) -> np.ndarray:
                return self.values.mean(axis=-1, keepdims=True)
        class Pair(NamedTuple):
            rows: Rows
            means: np.ndarray
        def center(x: np.ndarray) -> np.ndarray:
            pair = Pair(Rows(np.asarray(x, dtype=float)), Rows(np.asarray(x, dtype=float)).means)
            return pair.rows.values - pair.means
        """,
    ),
    right(
        "numpy-numbers",
        "NumPy's own numbers where Python's would do",
        rank="def rank(values):\n    return list(np.argsort(np.argsort(values)))",
        halve="def halve(number):\n    return np.float64(number) / 2",
        words="""
        def words(text):
            found, counts = np.unique(text.split(), return_counts=True)
            return dict(zip(found.tolist(), counts))
        """,
    ),
    right(
        "counter",
        "a dict of another class",
        words=dedented("""
            from collections import Counter
            def words(text):
                return Counter(text.split())
        """),
    ),
    right(
        "takes-a-second",
        "a function that takes a second",
        power=dedented("""
            import time
            def power(n):
                time.sleep(0.7)
                return lambda x: x**n
        """),
    ),
    right(
        "async-helper",
        "a coroutine, and one awaited at the top of a cell",
        **spread(
            dedented("""
                import asyncio
                async def later(value):
                    await asyncio.sleep(0)
                    return value
                one = await later(1)
                assert one == 1
            """)
        ),
    ),
    right(
        "star-imports",
        "everything imported from everywhere",
        **spread("from math import *\nfrom numpy.linalg import *\nfrom itertools import *"),
    ),
    right(
        "main-guard",
        "definitions below if __name__ == '__main__'",
        center="""
        if __name__ == "__main__":
            def center(x):
                return np.asarray(x) - np.mean(x, axis=-1, keepdims=True)
        """,
    ),
    right(
        "own-source",
        "looks at its own source and signature",
        center=CENTER + "\nimport inspect\nassert 'keepdims' in inspect.getsource(center)\n"
        "assert list(inspect.signature(center).parameters) == ['x']",
    ),
    right(
        "displays",
        "display, and questions to IPython and Colab",
        **spread(
            dedented("""
                import sys
                display(np.eye(2))
                in_colab = 'google.colab' in sys.modules
                try:
                    shell = get_ipython()
                except NameError:
                    shell = None
                if in_colab:
                    raise RuntimeError('not here')
            """)
        ),
    ),
    right(
        "magic-lines",
        "magics and shell lines, as notebooks have them",
        **spread("%matplotlib inline\n%load_ext autoreload\n!ls\nfiles = !ls"),
        mix="%%time\n" + RIGHT["mix"],
    ),
    right(
        "command-line",
        "reads sys.argv and the environment, changes the folder and the random state",
        **spread(
            dedented("""
                import os, random, sys
                name = sys.argv[0]
                home = os.environ.get('HOME')
                os.makedirs('data', exist_ok=True)
                os.chdir('data')
                random.seed(7)
                np.random.seed(7)
                noise = np.random.normal(size=3)
            """)
        ),
    ),
    right(
        "logging",
        "log messages and assertions in the middle of the work",
        **spread(
            dedented("""
                import logging
                logging.basicConfig(level=logging.DEBUG)
                logging.getLogger(__name__).debug('started')
                assert 1 + 1 == 2, 'arithmetic'
            """)
        ),
    ),
    right(
        "own-tests",
        "tests of its own, with unittest and doctest",
        center='''
        import doctest, unittest
        def center(x):
            """Takes the mean away.

            >>> center([1.0, 3.0]).tolist()
            [-1.0, 1.0]
            """
            return np.asarray(x) - np.mean(x, axis=-1, keepdims=True)
        class TestCenter(unittest.TestCase):
            def test_zero(self):
                self.assertEqual(center(np.zeros((1, 2))).tolist(), [[0, 0]])
        unittest.main(argv=[""], exit=False)
        ''',
    ),
    right(
        "broken-notes",
        "a cell of notes that raises, before answers that are right",
        edit=lambda content: content["cells"].insert(
            2,
            {
                "cell_type": "code",
                "id": "notes",
                "metadata": {},
                "source": "undefined_name + 1",
                "outputs": [],
                "execution_count": None,
            },
        ),
    ),
    right(
        "coded-names", "cells with names that no report should show as they are", edit=coded_name
    ),
    right(
        "views-and-orders",
        "arrays in other orders of memory, and views of the argument",
        center=dedented("""
            def center(x):
                x = np.asarray(x)
                return (x.T - x.mean(-1)).T
        """),
        mix="""
        def mix(A, X):
            mixed = np.swapaxes(X, -1, -2) @ np.swapaxes(A, -1, -2)
            return np.asfortranarray(np.swapaxes(mixed, -1, -2))
        """,
        fill="""
        def fill(x, value):
            for i in range(len(x)):
                x[i] = value if x[i] != x[i] else x[i]
        """,
    ),
    right(
        "einops-and-dtypes",
        "einops where the environment has it, and kinds of numbers of its own",
        mix="""
        try:
            from einops import einsum
            def mix(A, X):
                return einsum(A, X, "... m n, ... n d -> ... m d")
        except ImportError:
            def mix(A, X):
                return A @ X
        """,
    ),
    right(
        "absent-from-annotations",
        "annotations with names that are not here, which Python 3.14 asks for no value",
        work=KQV,
        squash="""
        from dataclasses import dataclass
        @dataclass
        class Scale:
            by: Number = 1.0
        @torch.jit.script
        def size(x: torch.Tensor) -> torch.Tensor:
            return x.abs()
        def squash(x: Tensor, *rest: "Optional") -> Float[Tensor, "n"]:
            return x / (Scale().by + size(x))
        """,
    ),
    right(
        "torch-threads",
        "sets the number of threads, seeds and the default type",
        work=KQV,
        squash="""
        torch.set_num_threads(2)
        torch.manual_seed(0)
        torch.set_default_dtype(torch.float32)
        torch.set_printoptions(precision=3)
        def squash(x):
            return x / (1 + torch.abs(x))
        """,
    ),
    right(
        "own-gradient",
        "a gradient written by hand",
        work=KQV,
        squash="""
        class Squash(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x / (1 + x.abs())
            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad / (1 + x.abs()) ** 2
        def squash(x):
            return Squash.apply(x)
        """,
    ),
    right(
        "module-with-extras",
        "a module with properties, buffers, a dict of layers and a helper class above it",
        work=KQV,
        AttentionHead="""
        class Base(nn.Module):
            @property
            def scale(self) -> float:
                return self.W_q.out_features ** -0.5
        class AttentionHead(Base):
            def __init__(self, d_model: int, d_k: int, d_v: int | None = None, bias: bool = False):
                super().__init__()
                for name, width in {"W_q": d_k, "W_k": d_k, "W_v": d_v or d_k}.items():
                    setattr(self, name, nn.Linear(d_model, width, bias=bias))
                self.register_buffer("calls", torch.zeros(1), persistent=False)
            def weights(self, x, mask=None):
                scores = torch.einsum("...md,...nd->...mn", self.W_q(x), self.W_k(x)) * self.scale
                if mask is not None:
                    scores = torch.where(mask, scores, torch.full_like(scores, -1e30))
                return nn.functional.softmax(scores, -1)
            def forward(self, x, mask=None):
                self.calls += 1
                return torch.matmul(self.weights(x, mask), self.W_v(x))
        """,
    ),
    fails("missing-library", "a library that is not here", "import seaborn as sns\nsns.set()"),
    fails(
        "colab-lines",
        "what a notebook in Colab begins with",
        dedented("""
            from google.colab import drive, files, userdata
            drive.mount('/content/drive')
            uploaded = files.upload()
            for name in uploaded:
                print(name)
            token = userdata.get('HF_TOKEN').strip()
            from google.colab.patches import cv2_imshow
        """),
    ),
    fails(
        "colab-folder",
        "goes to a folder of Colab's where it finds Colab",
        dedented("""
            import os
            try:
                import google.colab
                at_home = False
            except ImportError:
                at_home = True
            if not at_home:
                os.chdir('/content/drive/MyDrive')
        """),
    ),
    fails("asks-input", "asks for a name", "name = input('Your name: ')\nprint(name.upper())"),
    fails("missing-file", "reads a file that is not here", "data = open('missing.csv').read()"),
    fails(
        "plot-style",
        "a style of plots that is not here",
        "import matplotlib.pyplot as plt\nplt.style.use('nope')",
    ),
    fails(
        "leftover-raise", "the released line left above the answer", "raise NotImplementedError()"
    ),
    fails(
        "future-annotations",
        "annotations that are not to be evaluated, below a line that fails",
        "from __future__ import annotations\nimport seaborn\ndef helper(x: Unknown): ...",
    ),
    sets("wide-numbers", "float64 by default", "torch.set_default_dtype(torch.float64)"),
    sets("on-a-gpu", "tensors on a GPU by default", "torch.set_default_device('cuda')"),
    sets("errors-raise", "NumPy's warnings as errors", "np.seterr(all='raise')"),
    sets("gradients-off", "no gradients, for a plot", "torch.set_grad_enabled(False)"),
    sets(
        "inference-left-on",
        "inference, never left",
        "mode = torch.inference_mode()\nmode.__enter__()",
    ),
    sets(
        "autocast-left-on",
        "mixed precision, never left",
        "mixed = torch.autocast('cpu', torch.bfloat16)\nmixed.__enter__()",
    ),
    sets(
        "warnings-are-errors",
        "warnings as errors",
        "import warnings\nwarnings.simplefilter('error')",
    ),
    sets(
        "deterministic",
        "only what is the same at each run",
        "torch.use_deterministic_algorithms(True)\ntorch.manual_seed(0)\nnp.random.seed(0)",
    ),
    sets("low-recursion", "a low limit on recursion", "import sys\nsys.setrecursionlimit(120)"),
    sets(
        "elsewhere",
        "another folder and no environment",
        "import os\nos.chdir('/')\nos.environ.clear()",
    ),
]
