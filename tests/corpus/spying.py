"""Looking for what a submission must not see.

Two kinds of prize: the finished function itself, or the instructor's notebook, known by its
canary. Where a submission has found that, it simply answers right: so points are leaks.
"""

from functools import partial
from textwrap import dedent, indent

from corpus.assignment import KQV, tries
from helpers.dedented_text import dedented

spies = partial(tries, "spying")

# The word is not to be found in the source that looks for it.
LOOK = """\
import glob, os, re, sys
mark = re.compile(rb"[c]anary-7c1d9e")
def places():
    yield from map("/".__add__, ["home", "root", "srv", "opt", "tmp", "mnt", "usr/local"])
    here = os.getcwd()
    while len(here) > 1:
        here = os.path.dirname(here)
        yield here
    yield from filter(None, sys.path)
def files(pattern):
    for place in places():
        yield from glob.glob(os.path.join(place, pattern), recursive=True)[:200]
def read(path, limit=4_000_000):
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except OSError:
        return b""
"""
ANSWER = """
def mix(A, X):
    if not found:
        raise NotImplementedError
    return A @ X
"""


def looks(name: str, why: str, source: str, **options):
    """Sets ``found`` where it has seen the canary; only then it answers ``mix``."""
    return spies(
        name, why, mix=LOOK + "found = False\n" + dedent(source).strip() + ANSWER, **options
    )


def takes(name: str, why: str, source: str, **options):
    """Gets hold of a finished ``mix`` by these lines, at the time of the call."""
    body = indent(dedent(source).strip(), "    ")
    return spies(name, why, mix=f"def mix(A, X):\n{body}", **options)


CODE = [
    takes(
        "own-chapter",
        "imports the function from the chapter that teaches it",
        "from attncourse.mixing import mix as finished\nreturn finished(A, X)",
    ),
    spies(
        "own-chapter-torch",
        "imports the class from the chapter that teaches it",
        work=KQV,
        AttentionHead="from attncourse.kqv import AttentionHead",
    ),
    spies(
        "later-chapter",
        "imports what a later chapter has built upon",
        AttentionHead="""
        import importlib, pkgutil, attncourse
        names = [found.name for found in pkgutil.walk_packages(attncourse.__path__)]
        for name in reversed(names):
            module = importlib.import_module(f"attncourse.{name}")
            AttentionHead = getattr(module, "AttentionHead", None)
            if AttentionHead:
                break
        """,
        work=KQV,
    ),
    takes(
        "asks-the-checks",
        "the reference in the list of exercises",
        "from attncourse.checks import exercises\nreturn exercises()['mixing.mix'].reference(A, X)",
    ),
    takes(
        "behind-examine",
        "follows examine to the module it comes from and to the exercises behind it",
        "return examine.__globals__['exercise']('mixing.mix').reference(A, X)",
    ),
    takes(
        "among-all-objects",
        "finds the exercise among all objects in memory",
        """
        import gc
        for found in gc.get_objects():
            if type(found).__name__ == "Exercise" and found.target == "mixing.mix":
                return found.reference(A, X)
        raise NotImplementedError
        """,
    ),
    takes(
        "among-its-callers",
        "finds the exercise, or its trials, in the frames that called it",
        """
        import sys
        frame = sys._getframe(1)
        while frame is not None:
            for value in frame.f_locals.values():
                if hasattr(value, "reference"):
                    return value.reference(A, X)
            frame = frame.f_back
        raise NotImplementedError
        """,
    ),
    takes(
        "compiled-remains",
        "runs the finished function from a compiled file that was left lying about",
        """
        import glob, marshal, sys, types
        if "lying" not in globals():  # looked for once
            parts = [glob.glob(f"{place}/**/mixing*.pyc", recursive=True) for place in sys.path]
            globals()["lying"] = sum(parts, [])
        for path in lying:
            module = types.ModuleType("attncourse.remains")
            module.__package__ = "attncourse"
            exec(marshal.loads(open(path, "rb").read()[16:]), module.__dict__)
            if hasattr(module, "mix"):
                return module.mix(A, X)
        raise NotImplementedError
        """,
    ),
    takes(
        "source-of-the-trusted",
        "the source of the finished function, through inspect",
        """
        import attncourse, importlib, inspect
        module = importlib.import_module("attncourse.mixing")
        scope = dict(vars(module))
        exec(inspect.getsource(module.mix), scope)
        return scope["mix"](A, X)
        """,
    ),
    takes(
        "from-the-environment",
        "an answer that the instructor's shell holds in a variable, here or in a parent",
        """
        import glob, os
        texts = [os.environ.get("MIX_ANSWER", "")]
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                variables = open(path, errors="replace").read().split("\\0")
            except OSError:
                continue
            texts += [v.partition("=")[2] for v in variables if v.startswith("MIX_ANSWER=")]
        scope = {}
        exec(max(texts, key=len), scope)
        return scope["mix"](A, X)
        """,
    ),
]

FILES = [
    looks(
        "reads-solutions",
        "the instructor's notebook, wherever there is a folder for it",
        """
        for folder in ("solutions", "source", "*/solutions", "*/source", "*/*/source"):
            for path in files(f"{folder}/*/*.ipynb"):
                found = found or bool(mark.search(read(path)))
        """,
    ),
    looks(
        "reads-other-students",
        "answers in other students' folders",
        """
        for folder in ("submitted", "autograded", "feedback", "*/submitted", "*/autograded"):
            for path in files(f"{folder}/*/*/*"):
                text = read(path)
                found = found or bool(mark.search(text)) or b"return A @ X" in text
        """,
    ),
    looks(
        "reads-the-gradebook",
        "tests and answers in the gradebook and in reports",
        """
        for path in (*files("gradebook.db*"), *files("*/gradebook.db*"), *files("reports/**/*")):
            found = found or bool(mark.search(read(path)))
        """,
    ),
    looks(
        "reads-git",
        "answers in the repository's history",
        """
        import zlib
        for path in (*files(".git/objects/*/*"), *files("*/.git/objects/*/*")):
            try:
                text = zlib.decompress(read(path))
            except zlib.error:
                continue
            found = found or bool(mark.search(text))
        """,
    ),
    looks(
        "reads-caches",
        "the finished package in pip's cache, in wheels and in site-packages",
        """
        import site, zipfile
        places = [*site.getsitepackages(), site.getusersitepackages(), sys.prefix]
        for place in places:
            for path in glob.glob(f"{place}/attncourse/**/mixing.py*", recursive=True):
                found = found or b"def mix" in read(path)
            for path in glob.glob(f"{place}/*attncourse*.pth"):
                folder = read(path).decode().strip()
                found = found or b"def mix" in read(f"{folder}/attncourse/mixing.py")
        for path in files(".cache/pip/**/*"):
            found = found or b"def mix" in read(path)
        """,
    ),
    looks(
        "follows-its-package",
        "walks up from where its own package lies to the course around it",
        """
        import attncourse
        here = os.path.realpath(attncourse.__path__[0])
        while len(here) > 1:
            here = os.path.dirname(here)
            for name in ("attncourse/mixing.py", "attncourse/bank/mixing/mix.py"):
                found = found or b"def mix" in read(f"{here}/{name}")
            for path in glob.glob(f"{here}/solutions/*/*.ipynb"):
                found = found or b"def mix" in read(path)
        """,
    ),
    spies(
        "link-to-the-answers",
        "a link to the instructor's notebook, handed in as a submission",
        link="../../../solutions/02_mixing/02_mixing.ipynb",
    ),
]

PROCESS = [
    looks(
        "strings-in-memory",
        "the tests' text among all strings that the interpreter holds",
        """
        import gc
        def mix(A, X):
            raise NotImplementedError
        for held in gc.get_objects():
            values = held.values() if type(held) is dict else held if type(held) is tuple else ()
            for value in list(values):
                if type(value) is str and mark.search(value.encode(errors="replace")):
                    found = True
        import linecache
        for entry in list(linecache.cache.values()):
            found = found or bool(mark.search("".join(map(str, entry)).encode()))
        """,
    ),
    looks(
        "own-memory",
        "everything that was in memory when this process was forked",
        """
        try:
            with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
                for line in maps:
                    span, rights = line.split()[:2]
                    start, end = (int(part, 16) for part in span.split("-"))
                    if rights.startswith("rw") and end - start < 300_000_000:
                        memory.seek(start)
                        found = found or bool(mark.search(memory.read(end - start)))
        except OSError:
            pass
        """,
    ),
    looks(
        "others-memory",
        "the memory of the parent and of every other process",
        """
        for process in sorted(glob.glob("/proc/[0-9]*"), key=len):
            if process == f"/proc/{os.getpid()}":
                continue
            try:
                with open(f"{process}/maps") as maps, open(f"{process}/mem", "rb", 0) as memory:
                    for line in maps:
                        span, rights = line.split()[:2]
                        start, end = (int(part, 16) for part in span.split("-"))
                        if rights.startswith("rw") and end - start < 300_000_000:
                            memory.seek(start)
                            found = found or bool(mark.search(memory.read(end - start)))
            except (OSError, ValueError):
                pass
        """,
    ),
    looks(
        "reads-memory-by-call",
        "other processes' memory by process_vm_readv, which needs no file",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        class Span(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
        buffer = ctypes.create_string_buffer(1 << 20)
        for pid in (os.getppid(), 1, 2, 3):
            for line in read(f"/proc/{pid}/maps").decode().splitlines():
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                for at in range(start, min(end, start + (64 << 20)), 1 << 20):
                    here, there = Span(ctypes.addressof(buffer), 1 << 20), Span(at, 1 << 20)
                    got = libc.process_vm_readv(
                        pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0
                    )
                    found = found or (got > 0 and bool(mark.search(buffer.raw[:got])))
        """,
    ),
    looks(
        "open-files",
        "every file, pipe and socket that it finds open",
        """
        import socket, stat
        for fd in range(3, 256):
            try:
                kind = os.fstat(fd).st_mode
                if stat.S_ISREG(kind):
                    found = found or bool(mark.search(os.pread(fd, 4_000_000, 0)))
                if stat.S_ISDIR(kind):
                    found = found or "solutions" in os.listdir(fd)
                if stat.S_ISSOCK(kind):
                    with socket.socket(fileno=os.dup(fd)) as wire:
                        wire.setblocking(False)
                        seen = wire.recv(1 << 20, socket.MSG_PEEK)
                        found = found or bool(mark.search(seen))
            except OSError:
                pass
        """,
    ),
    looks(
        "whole-of-proc",
        "command lines, roots and working folders of other processes",
        """
        for process in glob.glob("/proc/[0-9]*"):
            for path in (f"{process}/root/srv", f"{process}/cwd", f"{process}/root"):
                for name in ("solutions", "main/solutions", "source"):
                    for notebook in glob.glob(f"{path}/{name}/*/*.ipynb"):
                        found = found or bool(mark.search(read(notebook)))
            found = found or bool(mark.search(read(f"{process}/cmdline")))
        """,
    ),
    looks(
        "during-the-test",
        "the tests' source, in the frames and in the history at the time of the call",
        """
        found = False
        """,
        center="""
        import gc, re, sys
        mark = re.compile(r"[c]anary-7c1d9e")
        def center(x):
            texts, frame = [], sys._getframe(1)
            while frame is not None:
                texts += [v for v in frame.f_locals.values() if type(v) is str]
                texts += [v for v in frame.f_code.co_consts if type(v) is str]
                frame = frame.f_back
            texts += globals().get("In", [])
            if any(mark.search(text) for text in texts):
                return x - x.mean(-1, keepdims=True)
            raise NotImplementedError
        """,
    ),
    looks(
        "core-pattern",
        "what happens to memory when a process dies, and the system's logs",
        """
        for path in ("/var/log/syslog", "/var/log/kern.log", "core", "/var/crash"):
            found = found or bool(mark.search(read(path, 100_000)))
        for path in (*glob.glob("/tmp/core*"), *glob.glob("/var/lib/systemd/coredump/*")):
            found = found or bool(mark.search(read(path)))
        """,
    ),
]

# What a hidden test sends has a shape that no other test's has. Nobody is to hear of it.
LISTEN = """\
heard = []
def center(x):
    heard.append("x".join(map(str, np.shape(x))))
    {told}
    return np.asarray(x) - np.mean(x, axis=-1, keepdims=True)
def overheard():
    return "overheard " + " ".join(heard)
"""
LOUD = 'if heard[-1] == "3x5": '
EARNED = {"points_center": 2, "hidden_center": 1}


def tells(name: str, why: str, telling: str = "pass", *, hears: bool = True, **options):
    """Remembers what it was given, and tells of it; for a right answer it gets its points."""
    earned = EARNED | ({} if hears else {"hidden_center": 0})
    return spies(name, why, earned, center=LISTEN.format(told=telling), **options)


TELLING = [
    tells(
        "tells-in-a-message",
        "what a hidden test sent, in the message of an exception",
        LOUD + "raise ValueError(overheard())",
        hears=False,
    ),
    tells(
        "tells-in-a-class",
        "the same in the name of an exception's class",
        LOUD + 'raise type(overheard().replace(" ", "_"), (ValueError,), {})()',
        hears=False,
    ),
    tells(
        "tells-in-a-name",
        "the same in the name of a function that changes its argument",
        LOUD + 'center.__name__ = overheard().replace(" ", "_"); x -= 0; x[...] = 0',
        hears=False,
    ),
    tells(
        "tells-in-a-type",
        "the same in the name of the type that it returns",
        LOUD + 'return type(overheard().replace(" ", "_"), (), {})()',
        hears=False,
    ),
    tells("tells-in-print", "the same on the screen", LOUD + "print(overheard())"),
    tells(
        "tells-later",
        "in a later answer's exception",
        rank="def rank(values):\n    raise ValueError(overheard())",
        words="raise ValueError(overheard())",
    ),
    tells(
        "tells-in-what-it-returns",
        "in what a later answer returns to a check, which quotes it",
        mix="def mix(A, X):\n    return overheard()",
        words="def words(text):\n    return {overheard(): 1}",
        first="def first(items, n):\n    return [overheard()]",
    ),
    tells(
        "tells-by-running-again",
        "in a cell that misses a name, so that it is run again when all is over",
        words="later\nraise ValueError(overheard())",
        power=dedented("""
            later = 1
            def power(n):
                raise KeyError(overheard())
        """),
    ),
    tells(
        "tells-from-a-file",
        "leaves a file for the process after it, where a later cell changes the answer",
        'open("heard", "a").write(overheard())',
        words='import os\nif os.path.exists("heard"): raise ValueError(open("heard").read())',
        power=dedented("""
            def power(n):
                return 1
            old, center = center, lambda x: old(x)
        """),
    ),
]

CASES = [*CODE, *FILES, *PROCESS, *TELLING]
