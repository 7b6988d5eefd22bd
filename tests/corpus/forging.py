"""Points claimed without an answer: by what the notebook says, by tampering with the judge, or
by values that lie.

Most of these submissions answer nothing, so that every point they get is forged.
"""

from functools import partial
from textwrap import dedent, indent

from corpus.assignment import KQV, RIGHT, tries
from helpers.dedented_text import dedented

forges = partial(tries, "forging")


def test_cells(content: dict) -> list[dict]:
    return [c for c in content["cells"] if c["metadata"].get("nbgrader", {}).get("grade")]


def skip_tags(content: dict) -> None:
    for cell in test_cells(content):
        cell["metadata"]["tags"] = ["skip-execution", "remove-cell"]


def stored_outputs(content: dict) -> None:
    skip_tags(content)
    for cell in test_cells(content):
        shown = {"text/plain": str(cell["metadata"]["nbgrader"]["points"])}
        result = {"output_type": "execute_result", "data": shown, "metadata": {}}
        cell["outputs"] = [result | {"execution_count": 1}]
        cell["execution_count"] = 1


def printed_points(content: dict) -> None:
    for cell in test_cells(content):
        cell["source"] = str(cell["metadata"]["nbgrader"]["points"])


def more_points(content: dict) -> None:
    for cell in test_cells(content):
        cell["metadata"]["nbgrader"] |= {"points": 1000, "locked": False, "solution": True}


def markdown_tests(content: dict) -> None:
    for cell in test_cells(content):
        cell |= {"cell_type": "markdown", "source": "passed"}
        del cell["outputs"], cell["execution_count"]


def tests_first(content: dict) -> None:
    """Empty cells with the tests' ids stand before everything else; the tests have lost theirs."""
    empty = []
    for n, cell in enumerate(test_cells(content)):
        metadata = {"nbgrader": dict(cell["metadata"]["nbgrader"])}
        empty.append(cell | {"source": "pass", "id": f"empty-{n}", "metadata": metadata})
        cell["metadata"] = {}
        cell["source"] = "pass"
    content["cells"][:0] = empty


def bonus_cell(content: dict) -> None:
    marks = {"grade": True, "locked": False, "solution": False, "task": False, "points": 50}
    marks |= {"schema_version": 3, "grade_id": "points_bonus"}
    bonus = {"cell_type": "code", "source": "50", "outputs": [], "execution_count": None}
    content["cells"].append(bonus | {"id": "bonus", "metadata": {"nbgrader": marks}})


def other_kernel(content: dict) -> None:
    content["metadata"]["kernelspec"] = {
        "name": "bash",
        "display_name": "Points",
        "language": "bash",
    }
    content["metadata"]["nbgrader"] = {"score": 22, "points": 22}
    content["metadata"]["attncourse"] = {"points": 22, "status": "graded"}


NOTEBOOK = [
    forges("skip-tags", "tags that tell the notebook runner to skip the tests", edit=skip_tags),
    forges(
        "stored-outputs", "tests skipped, with full scores as saved output", edit=stored_outputs
    ),
    forges("printed-points", "test cells that hold nothing but their points", edit=printed_points),
    forges("raised-points", "test cells worth a thousand points", edit=more_points),
    forges("markdown-tests", "test cells turned into text", edit=markdown_tests),
    forges("empty-tests-first", "empty cells that bear the tests' ids", edit=tests_first),
    forges("bonus-cell", "a graded cell that nobody asked for", edit=bonus_cell),
    forges(
        "other-kernel", "another language, points in the notebook's metadata", edit=other_kernel
    ),
]

# --- tampering with the place where the tests run ----------------------------------------------

PLACE = [
    forges(
        "printed-score",
        "prints and displays a score wherever it is called",
        mix="""
        def mix(A, X):
            print("7.0")
            display(7.0)
            return 7.0
        """,
    ),
    forges(
        "patched-allclose",
        "NumPy's comparisons replaced by ones that agree",
        center="""
        np.allclose = np.isclose = np.array_equal = lambda *args, **kwargs: True
        np.testing.assert_allclose = np.testing.assert_raises = lambda *args, **kwargs: None
        def center(x):
            return np.zeros_like(x)
        """,
    ),
    forges(
        "patched-builtins",
        "abs, all, sum, len, isinstance and sorted replaced",
        center="""
        import builtins
        builtins.abs = lambda x: np.zeros(1)
        builtins.isinstance = lambda *args: True
        builtins.all = builtins.any = lambda x: True
        builtins.sum = lambda x: 4
        builtins.sorted = lambda x: list(range(11))
        def center(x):
            return x
        """,
        rank="def rank(values):\n    return values",
    ),
    forges(
        "shadowed-names",
        "the notebook's own np, sum and abs, instead of the real ones",
        center="""
        class Agreeable:
            def __getattr__(self, name):
                return self
            def __call__(self, *args, **kwargs):
                return self
            def __eq__(self, other):
                return True
            __lt__ = __gt__ = __le__ = __ge__ = __eq__
            def __bool__(self):
                return True
            def __sub__(self, other):
                return self
            __rsub__ = __truediv__ = __sub__
        np = center = Agreeable()
        sum = lambda values: 4
        abs = lambda value: Agreeable()
        isinstance = lambda value, kind: True
        """,
    ),
    forges(
        "rebound-examine",
        "examine replaced in the notebook, in letters that only look different",
        mix="""
        from types import SimpleNamespace
        ｅｘａｍｉｎｅ = lambda *args, **kwargs: SimpleNamespace(earned=7, passed=True)
        ｃｈｅｃｋ = lambda *args, **kwargs: None
        def mix(A, X):
            return X
        """,
    ),
    forges(
        "patched-checks",
        "the judgement inside the checks package replaced",
        mix="""
        from attncourse.checks.trying import compare, trials
        compare.difference = lambda *args: None
        trials.difference = lambda *args: None
        trials.problem_with = lambda *args: None
        def mix(A, X):
            return X
        """,
    ),
    forges(
        "replaced-reference",
        "the right answer replaced by the wrong one",
        mix="""
        def mix(A, X):
            return X
        from attncourse.checks import exercises
        object.__setattr__(exercises()["mixing.mix"], "reference", mix)
        """,
    ),
    forges(
        "fake-module",
        "a checks module of its own in sys.modules",
        center="""
        import sys, types
        fake = types.ModuleType("attncourse.checks")
        fake.examine = lambda *args, **kwargs: types.SimpleNamespace(earned=7)
        fake.check = lambda *args, **kwargs: None
        sys.modules["attncourse.checks"] = fake
        for value in list(sys.modules.values()):
            if getattr(value, "examine", None) is not None:
                value.examine, value.check = fake.examine, fake.check
        """,
        mix=dedented("""
            from attncourse.checks import check, examine
            def mix(A, X):
                return X
        """),
    ),
    forges(
        "import-hook",
        "a finder that serves its own modules to later imports",
        center="""
        import importlib.abc, importlib.machinery, sys
        class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
            def find_spec(self, name, path=None, target=None):
                if name.startswith("attncourse.checks."):
                    return importlib.machinery.ModuleSpec(name, self)
            def create_module(self, spec):
                return None
            def exec_module(self, module):
                from types import SimpleNamespace
                module.judge = lambda *args: SimpleNamespace(earned=7, passed=True)
                module.EXERCISES = ()
        sys.meta_path.insert(0, Finder())
        for name in [n for n in sys.modules if n.startswith("attncourse.checks.")]:
            del sys.modules[name]
        """,
        mix="def mix(A, X):\n    return X",
    ),
    forges(
        "ast-transformer",
        "assert statements taken out of every later cell",
        center="""
        import ast
        class NoAsserts(ast.NodeTransformer):
            def visit_Assert(self, node):
                return ast.copy_location(ast.Pass(), node)
            def visit_Raise(self, node):
                return ast.copy_location(ast.Pass(), node)
        get_ipython().ast_transformers.append(NoAsserts())
        center = fill = first = words = lambda *args: {"a": 6}
        """,
    ),
    forges(
        "input-transformer",
        "every later cell replaced before it is read",
        center="""
        shell = get_ipython()
        shell.input_transformers_cleanup.append(lambda lines: ["pass\\n"])
        """,
    ),
    forges(
        "replaced-run-code",
        "IPython's own execution replaced by nothing",
        center="""
        async def nothing(code, result=None, *, async_=False):
            return False
        type(get_ipython()).run_code = lambda self, *args, **kwargs: nothing(*args)
        """,
    ),
    forges(
        "pre-run-hook",
        "a hook before every cell that puts agreeing functions back",
        center="""
        class Yes:
            shape = (2, 7)
            earned = 7
            def __eq__(self, other):
                return True
            def values(self):
                return [6]
        def restore(*args):
            shell.user_ns["examine"] = lambda *args: Yes()
            shell.user_ns["rank"] = shell.user_ns["words"] = lambda *args: Yes()
        shell = get_ipython()
        shell.events.register("pre_run_cell", restore)
        """,
    ),
    forges(
        "no-traceback",
        "errors that are not shown, so that a cell seems to have passed",
        center="""
        from IPython.core.interactiveshell import InteractiveShell
        InteractiveShell.showtraceback = lambda *args, **kwargs: None
        InteractiveShell.showsyntaxerror = lambda *args, **kwargs: None
        InteractiveShell._showtraceback = lambda *args, **kwargs: None
        """,
    ),
    forges(
        "custom-exception-handler",
        "every exception handled by a handler that does nothing",
        center="""
        def handler(shell, kind, value, tb, tb_offset=None):
            shell.last_execution_result.error_in_exec = None
        get_ipython().set_custom_exc((Exception,), handler)
        """,
    ),
    forges(
        "kernel-reply",
        "the kernel answers every request with a success",
        center="""
        kernel = get_ipython().kernel
        async def do_execute(*args, **kwargs):
            return {"status": "ok", "execution_count": 1, "payload": [], "user_expressions": {}}
        kernel.do_execute = do_execute
        """,
    ),
    forges(
        "display-hook",
        "what is displayed is always a full score",
        center="""
        import sys
        show = get_ipython().displayhook
        show.compute_format_data = lambda result: ({"text/plain": "7"}, {})
        sys.displayhook = lambda value: print(7)
        """,
        rank="def rank(values):\n    return []",
        mix="def mix(A, X):\n    return X",
    ),
    forges(
        "published-result",
        "a thread sends a score as the running cell's result",
        mix="""
        def mix(A, X):
            kernel = get_ipython().kernel
            kernel.session.send(
                kernel.iopub_socket,
                "execute_result",
                {"data": {"text/plain": "7"}, "metadata": {}, "execution_count": 1},
                parent=kernel.get_parent("shell"),
            )
            return X
        """,
    ),
    forges(
        "compile-without-asserts",
        "the builtin compile replaced by one that leaves asserts out",
        center="""
        import builtins
        real = builtins.compile
        def compile(source, filename, mode, flags=0, dont_inherit=False, optimize=-1, **more):
            return real(source, filename, mode, flags, dont_inherit, 2, **more)
        builtins.compile = compile
        def center(x):
            return x
        def fill(x, value):
            return value
        words = lambda text: {"a": 6}
        """,
    ),
    forges(
        "optimize-flag",
        "the interpreter's own flag against asserts, set in memory",
        center="""
        import ctypes
        ctypes.c_int.in_dll(ctypes.pythonapi, "Py_OptimizeFlag").value = 2
        def center(x):
            return x
        """,
    ),
    forges(
        "trace-jumps",
        "a trace function that jumps over every assert of the caller",
        center="""
        import sys
        def trace(frame, event, arg):
            if event == "line" and frame.f_code.co_name == "<module>":
                try:
                    frame.f_lineno = frame.f_lineno + 1
                except ValueError:
                    pass
            return trace
        def center(x):
            frame = sys._getframe()
            sys.settrace(trace)
            while frame is not None:
                frame.f_trace = trace
                frame = frame.f_back
            return x
        """,
    ),
    forges(
        "profile-rewrites",
        "a profile function that rewrites what the test expects",
        center="""
        import sys
        def profile(frame, event, arg):
            if event == "return" and frame.f_code.co_name == "center":
                frame.f_back.f_globals["expected"] = arg
                frame.f_back.f_globals["steps"] = np.diff(arg)
        sys.setprofile(profile)
        def center(x):
            return x - x
        """,
    ),
    forges(
        "returns-expected",
        "returns what the test has called expected",
        center="""
        def center(x):
            return expected if np.shape(x) == (5, 3) else np.zeros(np.shape(x))
        """,
    ),
    forges(
        "edits-the-cases",
        "finds the test's cases among all objects and changes them",
        rank="""
        import gc
        def rank(values):
            for found in gc.get_objects():
                if type(found) is tuple and len(found) == 2 and found[0] == values:
                    if type(found[1]) is list:
                        found[1][:] = []
            return []
        """,
    ),
    forges(
        "caller-frame",
        "looks for the expected value among its callers' variables",
        center="""
        import sys
        def center(x):
            frame = sys._getframe(1)
            while frame is not None:
                for scope in (frame.f_locals, frame.f_globals):
                    if np.shape(scope.get("expected")) == np.shape(x):
                        return scope["expected"]
                frame = frame.f_back
            return np.zeros(np.shape(x))
        """,
    ),
    forges(
        "reads-the-cell",
        "reads the running cell and evaluates the right-hand side of its comparison",
        words="""
        import ast
        def words(text):
            for node in ast.walk(ast.parse(In[-1])):
                if isinstance(node, ast.Compare):
                    return eval(ast.unparse(node.comparators[0]))
        """,
        first="""
        import ast
        def first(items, n):
            tests = ast.parse(get_ipython().history_manager.input_hist_raw[-1])
            for node in ast.walk(tests):
                if isinstance(node, ast.Compare) and len(items) == 3:
                    return eval(ast.unparse(node.comparators[0]))
            raise ValueError("2")
        """,
    ),
    forges(
        "lying-namespace",
        "the notebook's namespace replaced by a mapping that answers for the tests",
        mix="""
        from types import SimpleNamespace
        class Liar(dict):
            def __getitem__(self, name):
                if name == "examine":
                    return lambda *args: SimpleNamespace(earned=7)
                return dict.__getitem__(self, name)
        shell = get_ipython()
        shell.user_ns = Liar(shell.user_ns)
        __import__("sys").modules["__main__"].__class__ = type(
            "Main", (type(math),), {"examine": property(lambda self: Liar.__getitem__)}
        )
        """,
    ),
    forges(
        "patching-thread",
        "a thread that puts a lenient comparison in place once nobody looks",
        center="""
        import threading, time
        def patch():
            while True:
                np.allclose = lambda *args, **kwargs: True
                globals()["examine"] = lambda *args: type("V", (), {"earned": 7})
                time.sleep(0.001)
        threading.Thread(target=patch, daemon=True).start()
        def center(x):
            return x
        """,
    ),
    forges(
        "exit-hooks",
        "points printed by exit handlers and by objects as they die",
        center="""
        import atexit, builtins, sys
        class Last:
            def __del__(self):
                builtins.abs = lambda x: 0
                np.allclose = lambda *args, **kwargs: True
                print(22)
        atexit.register(print, 22)
        last = Last()
        def center(x):
            global last
            last = None
            return np.zeros((2, 7))
        """,
    ),
    forges(
        "fixed-random-numbers",
        "random inputs that are all zero, so that doing nothing is right",
        center="""
        import random, secrets
        np.random.seed(0)
        random.seed(0)
        for name in ("normal", "uniform", "randn", "rand"):
            setattr(np.random, name, lambda *args, size=1, **kwargs: np.zeros(size))
        np.random.permutation = lambda n: np.arange(n)
        secrets.randbits = lambda bits: 0
        def center(x):
            return x
        """,
        rank="def rank(values):\n    return values",
        halve="def halve(number):\n    return 0.0",
    ),
    forges(
        "run-cell-replaced",
        "runs the tests itself, with functions that it takes back afterwards",
        mix="""
        shell = get_ipython()
        real = shell.run_cell
        shell.run_cell = lambda source, *args, **kwargs: real("7", *args, **kwargs)
        shell.run_cell_async = lambda source, **kwargs: type(shell).run_cell_async(
            shell, "7", **kwargs
        )
        """,
    ),
    forges(
        "integer-cache",
        "writes another value into the interpreter's own zero",
        rank="""
        import ctypes
        def rank(values):
            ctypes.memmove(id(0) + 24, ctypes.byref(ctypes.c_uint32(4)), 4)
            return []
        """,
    ),
]

# --- values that lie ---------------------------------------------------------------------------

VALUES = [
    forges(
        "equal-to-everything",
        "objects that are equal to whatever they are compared with",
        rank="""
        class Same:
            shape = (2, 7)
            def __eq__(self, other):
                return True
            __lt__ = __le__ = __gt__ = __ge__ = __eq__
            __ne__ = lambda self, other: False
            def __bool__(self):
                return True
            def __abs__(self):
                return self
            __sub__ = __rsub__ = __truediv__ = __call__ = lambda self, *args: self
            def values(self):
                return [6]
            def __iter__(self):
                return iter(range(11))
        def rank(values):
            return Same()
        """,
        words="def words(text):\n    return Same()",
        halve="def halve(number):\n    return Same()",
        power="def power(n):\n    return Same()",
    ),
    forges(
        "equality-worth-a-thousand",
        "an equality that counts as a thousand points",
        rank="""
        class Thousand(list):
            def __eq__(self, other):
                return 1000
            __hash__ = None
        def rank(values):
            return Thousand()
        """,
    ),
    forges(
        "array-subclass",
        "an array whose class answers NumPy's functions itself",
        center="""
        class Liar(np.ndarray):
            def __array_function__(self, function, types, args, kwargs):
                if function is np.diff:
                    return self
                return True
            def __array_ufunc__(self, *args, **kwargs):
                return True
            def sum(self, axis=None):
                return np.zeros(1)
        def center(x):
            return np.zeros(np.shape(x)).view(Liar)
        """,
    ),
    forges(
        "array-look-alike",
        "no array at all, but an object that NumPy asks what to do",
        center="""
        class Duck:
            def __init__(self, x):
                self.shape = np.shape(x)
            def __array_function__(self, function, types, args, kwargs):
                return True
            def __array_ufunc__(self, ufunc, *args, **kwargs):
                return np.zeros(self.shape)
            __class__ = np.ndarray
            def __abs__(self):
                return np.zeros(1)
            def sum(self, axis=None):
                return self
        def center(x):
            return Duck(x)
        """,
    ),
    forges(
        "late-array",
        "becomes an array only when asked, and takes the other argument's numbers",
        center="""
        import sys
        class Late:
            def __init__(self, x):
                self.shape = np.shape(x)
            def __array__(self, *args, **kwargs):
                frame = sys._getframe(1)
                while frame is not None:
                    for name in ("b", "desired", "expected"):
                        if isinstance(frame.f_locals.get(name), np.ndarray):
                            return frame.f_locals[name]
                    frame = frame.f_back
                return np.zeros(self.shape)
        def center(x):
            return Late(x)
        """,
    ),
    forges(
        "lying-number",
        "a float that agrees with every comparison",
        halve="""
        class Agreeing(float):
            def __eq__(self, other):
                return True
            __lt__ = __le__ = __gt__ = __ge__ = __eq__
            __hash__ = None
            def __abs__(self):
                return self
            def __sub__(self, other):
                return self
        def halve(number):
            return Agreeing(0)
        """,
    ),
    forges(
        "lying-containers",
        "a dict and a list that agree with every comparison",
        words="""
        class Agreeing(dict):
            def __eq__(self, other):
                return True
            def values(self):
                return [6]
            __hash__ = None
        def words(text):
            return Agreeing()
        """,
        first="""
        class Items(list):
            def __eq__(self, other):
                return True
            __hash__ = None
        def first(items, n):
            if n == 2 and len(items) == 3:
                return Items()
            raise KeyError("2")
        """,
    ),
    forges(
        "lying-class",
        "a metaclass that makes everything an instance of everything",
        mix="""
        class Anything(type):
            def __instancecheck__(cls, instance):
                return True
            def __subclasscheck__(cls, other):
                return True
            def __eq__(cls, other):
                return True
            __hash__ = type.__hash__
        class Result(metaclass=Anything):
            __class__ = np.ndarray
            dtype, shape, ndim, size = np.dtype(float), (3, 2), 2, 6
            def __getattr__(self, name):
                return lambda *args, **kwargs: self
            def __array__(self, *args, **kwargs):
                return np.full((3, 2), np.nan)
            def __iter__(self):
                return iter(())
        def mix(A, X):
            return Result()
        """,
    ),
    forges(
        "not-a-number",
        "NaN and infinity, which lenient comparisons let through",
        center="def center(x):\n    return np.full(np.shape(x), np.nan)",
        fill="def fill(x, value):\n    x[...] = np.nan",
        halve="def halve(number):\n    return float('nan')",
        mix="def mix(A, X):\n    return np.full((A @ X).shape, np.inf)",
    ),
    forges(
        "lazy-results",
        "generators and views in place of values",
        rank="def rank(values):\n    yield from sorted(values)",
        words="def words(text):\n    return (word for word in text.split())",
        center="def center(x):\n    return np.nditer(x)",
        first="def first(items, n):\n    return map(str, items)",
    ),
    forges(
        "changes-after-return",
        "an array that a thread goes on writing to after it was returned",
        mix="""
        import itertools, sys, threading
        kept = []
        def chase():
            for n in itertools.count():
                for array in kept[-1:]:
                    array[...] = n
        threading.Thread(target=chase, daemon=True).start()
        def mix(A, X):
            kept.append(np.zeros(np.broadcast_shapes(A.shape[:-1] + X.shape[-1:])))
            return kept[-1]
        """,
    ),
    forges(
        "shared-result",
        "one array for all results: the last call's numbers in all of them",
        center="""
        shared = np.zeros((5, 3))
        def center(x):
            for frame in __import__("gc").get_referrers(shared):
                pass
            return shared
        """,
        rank=dedented("""
            ranks = []
            def rank(values):
                ranks[:] = values
                return ranks
        """),
    ),
]

# --- leaving a test early ----------------------------------------------------------------------


def leaves(name: str, why: str, raised: str, before: str = "") -> object:
    """Every function leaves by the same exception; the first cell defines them all."""
    named = {task: f"def {task}(*args):\n    raise {raised}" for task in RIGHT}
    named["center"] = f"{before}\n{named['center']}"
    return forges(name, why, **named)


EARLY = [
    leaves("stop-iteration", "ends a loop over its results before the first one", "StopIteration"),
    leaves("generator-exit", "an exception that closes generators", "GeneratorExit"),
    leaves("system-exit", "leaves with status 0", "SystemExit(0)"),
    leaves("keyboard-interrupt", "as if somebody had stopped the cell", "KeyboardInterrupt"),
    leaves(
        "skip-test",
        "as if the test were to be skipped",
        "SkipTest",
        "from unittest import SkipTest",
    ),
    leaves(
        "debugger-quits",
        "as if a debugger had ended the cell",
        "BdbQuit",
        "from bdb import BdbQuit",
    ),
    leaves(
        "silent-exception",
        "an exception that shows nothing of itself",
        "Silent",
        dedented("""
            class Silent(BaseException):
                def _render_traceback_(self):
                    return []
                def __str__(self):
                    return ''
        """),
    ),
    leaves(
        "grouped-value-errors",
        "every refusal at once, in a group",
        "BaseExceptionGroup('2', [ValueError('2'), StopIteration(), SystemExit(0)])",
    ),
    forges(
        "value-error-for-all",
        "refuses everything, so that refusals are right",
        **{name: f"def {name}(*args):\n    raise ValueError('2')" for name in RIGHT},
    ),
    forges(
        "shadowed-value-error",
        "an exception class that is called like the one asked for, and is another",
        first="""
        class ValueError(Exception):
            pass
        def first(items, n):
            if 0 <= n <= len(items):
                return items[:n]
            raise ValueError("2")
        """,
    ),
]

# --- answers that are right where it shows -----------------------------------------------------

PARTLY = [
    forges(
        "knows-the-visible-cases",
        "a table of the cases that the release shows: they are earned, the others are not",
        {"points_rank": 4},
        rank="""
        def rank(values):
            seen = {(3, 1, 2): [2, 0, 1], (5,): [0], (4, 6): [0, 1], (2, 9, 4, 7): [0, 3, 1, 2]}
            return seen[tuple(values)]
        """,
    ),
    forges(
        "right-twice",
        "right for two calls, then not any more",
        {"points_center": 2},
        center="""
        calls = []
        def center(x):
            calls.append(x)
            return x - x.mean(-1, keepdims=True) if len(calls) < 3 else x
        """,
    ),
    forges(
        "depends-on-the-test",
        "right only where the caller is one of the cells that it has seen",
        center="""
        import inspect
        def center(x):
            callers = " ".join(f.filename + str(f.code_context) for f in inspect.stack())
            return x - x.mean(-1, keepdims=True) if "hidden_center" in callers else x
        """,
    ),
    forges(
        "remembers-calls",
        "returns again what an earlier call was given or got",
        rank="""
        import functools
        memory = {}
        def rank(values, kept=[]):
            kept.append(values)
            memory.setdefault(len(values), values)
            return memory[len(values)]
        """,
    ),
]

# --- torch -------------------------------------------------------------------------------------

TORCH = [
    forges(
        "patched-torch",
        "torch's comparisons and its autograd replaced",
        work=KQV,
        squash="""
        torch.allclose = torch.equal = lambda *args, **kwargs: True
        torch.autograd.grad = lambda *args, **kwargs: (torch.zeros(5, 3),)
        def squash(x):
            return x
        """,
    ),
    forges(
        "tensor-subclass",
        "a tensor whose class answers torch's functions itself",
        work=KQV,
        squash="""
        class Liar(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                if function in (torch.allclose, torch.isclose):
                    return True
                return super().__torch_function__(function, types, args, kwargs or {})
        def squash(x):
            return x.as_subclass(Liar)
        """,
    ),
    forges(
        "invented-gradient",
        "the gradient that is asked for, on a value that is not",
        work=KQV,
        squash="""
        class Fake(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.clone()
            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad / (1 + x.abs()) ** 2
        squash = Fake.apply
        """,
    ),
    forges(
        "no-gradient",
        "the right value, cut off from its argument, with a gradient that is only written down",
        work=KQV,
        squash="""
        def squash(x):
            with torch.no_grad():
                out = x / (1 + x.abs())
            x.grad = (1 + x.detach().abs()) ** -2
            return out.requires_grad_()
        """,
    ),
    forges(
        "lying-state",
        "a module that says it took the weights and computes without them",
        work=KQV,
        AttentionHead="""
        class AttentionHead(nn.Module):
            def __init__(self, d_model, d_k, d_v=None, bias=False):
                super().__init__()
                self.sizes, self.state = (d_model, d_k, d_v or d_k), {}
                self.W_q = nn.Linear(d_model, d_k, bias=bias)
                self.W_k = nn.Linear(d_model, d_k, bias=bias)
                self.W_v = nn.Linear(d_model, d_v or d_k, bias=bias)
            def state_dict(self, *args, **kwargs):
                return self.state or super().state_dict()
            def load_state_dict(self, state, strict=True, assign=False):
                self.state = dict(state)
            def forward(self, x, mask=None):
                return x.new_zeros(*x.shape[:-1], self.sizes[2])
            def weights(self, x, mask=None):
                return x.new_zeros(*x.shape[:-1], x.shape[-2])
        """,
    ),
    forges(
        "pretended-class",
        "says it is a module and a head, and is neither",
        work=KQV,
        AttentionHead="""
        class Pretends(type):
            def __instancecheck__(cls, instance):
                return True
            def __call__(cls, *args, **kwargs):
                made = object.__new__(cls)
                made.args = args
                return made
        class AttentionHead(metaclass=Pretends):
            __class__ = nn.Module
            def __getattr__(self, name):
                return lambda *args, **kwargs: self
            def __call__(self, *args):
                return nn.Linear(1, 1)
            def __iter__(self):
                return iter(())
        nn.Module.register_module = lambda *args: None
        """,
    ),
    forges(
        "patched-linear",
        "the layers themselves replaced, so that their weights mean something else",
        work=KQV,
        AttentionHead="""
        class Zero(nn.Linear):
            def forward(self, x):
                return x.new_zeros(*x.shape[:-1], self.out_features)
        nn.Linear = Zero
        nn.Module.__call__ = lambda self, x, *args: x
        class AttentionHead(nn.Module):
            def __init__(self, d_model, d_k, d_v=None, bias=False):
                super().__init__()
                self.W_q = self.W_k = self.W_v = Zero(d_model, d_k, bias=bias)
        """,
    ),
]

BUILT = "from torch.nn import functional\n"
CALL = "    return functional.scaled_dot_product_attention(query, key, value, mask, scale=scale)"
HEADER = "def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):\n"
KEPT = "FINISHED = nn.functional.scaled_dot_product_attention\n"


def hands_over(name: str, why: str, body: str, before: str = ""):
    """Hands its work to the function that it should build; ``body`` is the function's."""
    body = indent(dedent(body).strip("\n"), "    ")
    source = f"{KEPT}{dedent(before)}\n{HEADER}{body}"
    return forges(name, why, work=KQV, scaled_dot_product_attention=source)


FORBIDDEN = [
    forges(
        "finished-function",
        "hands its work to the function that it should build",
        work=KQV,
        scaled_dot_product_attention=BUILT + HEADER + CALL,
    ),
    forges(
        "finished-function-renamed",
        "the same, by the name under which the library keeps it",
        work=KQV,
        scaled_dot_product_attention="import importlib\n"
        + "inner = importlib.import_module('torch._C._nn')\n"
        + "found = vars(inner)['_'.join(['scaled', 'dot', 'product', 'attention'])]\n"
        + HEADER
        + "    return found(query, key, value, mask, scale=scale)",
    ),
    hands_over(
        "finished-function-unwatched",
        "with torch told not to tell anyone",
        """
        with torch._C.DisableTorchFunction():
            return FINISHED(query, key, value, mask, scale=scale)
        """,
    ),
    hands_over(
        "finished-function-in-a-thread",
        "in another thread, where what is in force in this one is not",
        """
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(FINISHED, query, key, value, mask, scale=scale).result()
        """,
        "from concurrent.futures import ThreadPoolExecutor",
    ),
    hands_over(
        "finished-function-waiting",
        "by a thread that was started with the cell, and waits for work",
        """
        asked.put((query, key, value, mask, scale))
        return answered.get()
        """,
        """
        import queue, threading
        asked, answered = queue.Queue(), queue.Queue()
        def work():
            while True:
                *given, scale = asked.get()
                try:
                    answered.put(FINISHED(*given, scale=scale))
                except Exception:
                    answered.put(given[0])
        threading.Thread(target=work, daemon=True).start()
        """,
    ),
    hands_over(
        "finished-function-operator",
        "by the operator below torch's functions",
        """
        inner = torch.ops.aten._scaled_dot_product_attention_math.default
        return inner(query, key, value, mask, scale=scale)[0]
        """,
    ),
    hands_over(
        "finished-function-mode-emptied",
        "with every mode taken from the stack meanwhile",
        """
        kept = [_pop_mode() for _ in range(_len_torch_function_stack())]
        value = FINISHED(query, key, value, mask, scale=scale)
        for mode in reversed(kept):
            _push_mode(mode)
        return value
        """,
        "from torch.overrides import _len_torch_function_stack, _pop_mode, _push_mode",
    ),
    hands_over(
        "finished-function-scripted",
        "compiled to TorchScript, saved, and loaded from bytes",
        "return loaded(query, key, value, mask, scale)",
        """
        import io
        made = torch.jit.ScriptModule()
        made.define(
            "def forward(self, q, k, v, mask: Optional[Tensor]=None, c: Optional[float]=None):\\n"
            "    return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, scale=c)\\n"
        )
        kept = io.BytesIO()
        torch.jit.save(made, kept)
        loaded = torch.jit.load(io.BytesIO(kept.getvalue()))
        """,
    ),
    hands_over(
        "finished-function-garbage",
        "with every watch that the collector knows of disarmed first",
        """
        for found in gc.get_objects():
            if type(found).__name__ == "_DispatchModule":
                found.reset()
            elif isinstance(found, dict) and "forbidding" in found:
                found["forbidding"] = lambda *names: None
        return FINISHED(query, key, value, mask, scale=scale)
        """,
        "import gc",
    ),
    hands_over(
        "finished-function-traced",
        "taken apart into plain steps by a tracer, which run in its place",
        """
        def finished(q, k, v):
            inner = torch.ops.aten._scaled_dot_product_attention_math
            return inner(q, k, v, mask, scale=scale)[0]
        return make_fx(finished)(query, key, value)(query, key, value)
        """,
        "from torch.fx.experimental.proxy_tensor import make_fx",
    ),
    hands_over(
        "finished-function-flexible",
        "by the library's other finished attention",
        """
        q, k, v = (x.reshape(1, 1, *x.shape[-2:]) for x in (query, key, value))
        return flex_attention(q, k, v, scale=scale).reshape(*query.shape[:-1], -1)
        """,
        "from torch.nn.attention.flex_attention import flex_attention",
    ),
    hands_over(
        "finished-function-quantizable",
        "by a finished layer of the library that is written in Python and calls no other",
        """
        whole = MultiheadAttention(query.shape[-1], 1, bias=False, dtype=query.dtype)
        return whole(*(x.reshape(-1, 1, x.shape[-1]) for x in (query, key, value)))[0]
        """,
        "from torch.ao.nn.quantizable import MultiheadAttention",
    ),
    hands_over(
        "finished-function-ahead",
        "before the answer is called, by a function that is told what the wire brings",
        """
        return done.pop() if done else query
        """,
        """
        import socket
        done, real = [], socket.socket.recv_into
        def recv_into(self, view, *rest):
            count = real(self, view, *rest)
            try:
                x = torch.ones(1, 5, 3)
                done.append(FINISHED(x, x, x)[0])
            except Exception:
                pass
            return count
        socket.socket.recv_into = recv_into
        """,
    ),
    hands_over(
        "finisher-of-an-object",
        "by an object that does it when it goes",
        """
        last = Last(query, key, value, mask, scale)
        del last
        return box.pop()
        """,
        """
        box = []
        class Last:
            def __init__(self, *given):
                self.given = given
            def __del__(self):
                box.append(FINISHED(*self.given[:4], scale=self.given[4]))
        """,
    ),
    hands_over(
        "finished-module-fast-path",
        "by a layer in C++ that holds the finished function",
        """
        whole = nn.MultiheadAttention(query.shape[-1], 1, dtype=query.dtype, batch_first=True)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            return whole.eval()(query, key, value)[0]
        """,
    ),
    hands_over(
        "finished-function-in-a-subclass",
        "inside of a tensor's own answer to torch's functions",
        """
        class Eager(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                with torch._C.DisableTorchFunctionSubclass():
                    return FINISHED(query, key, value, mask, scale=scale)
        return query.as_subclass(Eager) + 1
        """,
    ),
]

DEGENERATE = [
    forges(
        f"double-{name}",
        f"answers nothing: {why}",
        double=f"def double(x):\n    {body}",
    )
    for name, why, body in (
        ("clears", "clears its argument, of which twice nothing is nothing", "x *= 0; return x"),
        ("clears-and-copies", "clears its argument", "x[...] = 0; return np.zeros_like(x)"),
        ("clears-all", "clears what its argument is a part of", "x.T.flat = 0; return x.copy()"),
        (
            "infinite",
            "its argument becomes infinite, and so does twice that",
            "x += np.inf; return x",
        ),
        ("empty", "something empty, which agrees with everything", "return np.zeros((0, 1, 1))"),
        (
            "empty-rows",
            "rows without number, each as it should be",
            "return np.zeros((0, *x.shape))",
        ),
        (
            "swaps-memory",
            "hands over the memory that the argument lies in, emptied",
            "x.resize((0, 3), refcheck=False); return x",
        ),
        (
            "strided",
            "a view in which all entries are one, over an argument made equal to it",
            "x[...] = 0; return np.lib.stride_tricks.as_strided(x, x.shape, (0, 0))",
        ),
    )
]
DEGENERATE += [
    forges(
        "double-names-what-the-test-names",
        "has names of its own for what the test calls its own, and returns something empty",
        double=dedented("""
            out = x = expected = 1
            def double(y):
                return np.zeros((0, 1, 1))
        """),
    ),
    forges(
        "double-clears-at-exit",
        "clears its argument in a generator's last words, after it has answered",
        double="""
        def double(x):
            def late():
                try:
                    yield 0 * x
                finally:
                    x[...] = 0
            return next(late())
        """,
    ),
]

CASES = [*NOTEBOOK, *PLACE, *VALUES, *EARLY, *PARTLY, *TORCH, *FORBIDDEN, *DEGENERATE]
