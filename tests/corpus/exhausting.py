"""Using up what a submission may use, or leaving the process in a state that nobody expects.

Every other exercise of these submissions is right and has to keep its points. ``slow`` marks
those that run into a time limit. Bombs have an end of their own, far beyond the limits: should
a jail fail, the machine does not.
"""

from functools import partial

from corpus.assignment import KQV, keeps, spoils
from helpers.dedented_text import dedented

exhausts = partial(spoils, "exhausting")

TIME = [
    exhausts("endless-loop", "a cell that never ends", slow=True, rank="while True:\n    pass"),
    exhausts(
        "endless-call",
        "a function that never ends",
        slow=True,
        rank=dedented("""
            def rank(values):
                while True:
                    pass
        """),
    ),
    exhausts(
        "sleeps",
        "a function that waits for ever",
        slow=True,
        rank=dedented("""
            import time
            def rank(values):
                time.sleep(10**6)
        """),
    ),
    exhausts(
        "sleeps-and-works",
        "a function that sleeps most of the time, and works so much that it does not seem to",
        slow=True,
        rank="""
        import time
        def rank(values):
            while True:
                time.sleep(0.09)
                until = time.process_time() + 0.01
                while time.process_time() < until:
                    pass
        """,
    ),
    exhausts(
        "catches-everything",
        "a loop that swallows every exception",
        slow=True,
        rank="""
        def rank(values):
            while True:
                try:
                    while True:
                        pass
                except:
                    pass
        """,
    ),
    exhausts(
        "blocked-signals",
        "a loop that no signal interrupts",
        slow=True,
        rank="""
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
        def rank(values):
            while True:
                pass
        """,
    ),
    exhausts(
        "own-alarm-handler",
        "a loop that answers the alarm with a longer one",
        slow=True,
        rank="""
        import signal
        def again(number, frame):
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.alarm(1000)
        for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGXCPU):
            signal.signal(number, again)
        again(0, None)
        while True:
            pass
        """,
    ),
    exhausts(
        "power-tower",
        "a whole number that takes hours, in one instruction",
        slow=True,
        rank="def rank(values):\n    return 9 ** 9 ** 9 % 7",
    ),
    exhausts(
        "regular-expression",
        "a regular expression that tries every way",
        slow=True,
        rank=dedented("""
            import re
            def rank(values):
                return re.match('(a|a)*$', 'a' * 60 + 'b')
        """),
    ),
    exhausts(
        "huge-product",
        "a matrix product that takes minutes inside a library",
        slow=True,
        rank="""
        def rank(values):
            A = np.ones((1500, 1500))
            while True:
                A = A @ A / 1500
        """,
    ),
    exhausts(
        "deadlock",
        "waits for a lock that it holds itself",
        slow=True,
        rank=dedented("""
            import threading
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()
        """),
    ),
    exhausts(
        "busy-threads",
        "threads that never end and hardly let another one run",
        slow=True,
        rank="""
        import sys, threading
        def spin():
            while True:
                pass
        sys.setswitchinterval(100)
        for _ in range(8):
            threading.Thread(target=spin).start()
        """,
    ),
    exhausts(
        "event-loop",
        "an event loop with nothing to do",
        slow=True,
        rank="import asyncio\nasyncio.new_event_loop().run_forever()",
    ),
    exhausts(
        "waits-for-input",
        "a question to somebody at the keyboard",
        rank="def rank(values):\n    return input('rank? ')",
    ),
    exhausts(
        "waits-in-debugger",
        "a breakpoint that was left in",
        rank=dedented("""
            def rank(values):
                breakpoint()
                return values
        """),
    ),
    exhausts(
        "slow-destructor",
        "an object that does not want to go",
        slow=True,
        rank="""
        class Stays:
            def __del__(self):
                while True:
                    try:
                        while True:
                            pass
                    except BaseException:
                        pass
        def rank(values):
            Stays()
        """,
    ),
    exhausts(
        "reborn-garbage",
        "garbage that makes new garbage whenever it is collected",
        rank="""
        import gc
        class Phoenix:
            def __init__(self):
                self.me = self
            def __del__(self):
                Phoenix()
        gc.set_threshold(1)
        for _ in range(100):
            Phoenix()
        def rank(values):
            gc.collect()
        """,
    ),
]

MEMORY = [
    exhausts(
        "touched-zeros",
        "eight gigabytes of zeros, each page touched",
        rank="""
        def rank(values):
            kept = [np.ones(10**7) for _ in range(100)]
            return len(kept)
        """,
    ),
    exhausts(
        "growing-list",
        "a list that grows, in a cell",
        slow=True,
        rank=dedented("""
            kept = []
            for n in range(2 * 10**8):
                kept.append([n])
        """),
    ),
    exhausts(
        "doubling-string",
        "a string doubled thirty-three times",
        rank=dedented("""
            def rank(values):
                text = 'x'
                for _ in range(33):
                    text += text
        """),
    ),
    exhausts(
        "zip-bomb",
        "a small block that unpacks to gigabytes",
        rank="""
        import gzip
        packed = gzip.compress(bytes(10**7), 1) * 150
        def rank(values):
            return gzip.decompress(packed)
        """,
    ),
    exhausts(
        "mapped-memory",
        "memory that belongs to no object: anonymous maps and memory files",
        rank="""
        import mmap, os
        kept = []
        def rank(values):
            for _ in range(40):
                kept.append(mmap.mmap(-1, 10**8))
                kept[-1].write(b"x" * 10**8)
                fd = os.memfd_create("more")
                os.write(fd, b"x" * 10**8)
        """,
    ),
    exhausts(
        "recursion",
        "a function that calls itself for ever",
        rank="def rank(values):\n    return rank(values)",
    ),
    exhausts(
        "deep-recursion",
        "recursion beyond what the stack holds",
        rank="""
        import sys
        sys.setrecursionlimit(10**9)
        class Deep:
            def __repr__(self):
                return repr(self)
        def rank(values):
            return repr(Deep())
        """,
    ),
    exhausts(
        "no-recursion-at-all",
        "a recursion limit too low for anything else to work",
        rank="""
        import sys
        def rank(values):
            sys.setrecursionlimit(30)
            return rank(values)
        """,
    ),
    exhausts("nested-source", "a cell nested too deeply to be read", rank="x = " + "(" * 5000),
    exhausts(
        "deep-source",
        "a cell whose syntax tree is too deep for the compiler",
        rank="x = " + "-" * 90_000 + "1",
    ),
    exhausts(
        "long-source",
        "a sum of a hundred thousand terms and a name of as many parts",
        rank="x = 1" + "+1" * 100_000,
        words="x = np" + ".x" * 100_000,
    ),
    exhausts(
        "no-text",
        "cells with characters that no source can hold",
        rank="x = '\x00'",
        words="x = '\ud800'\nraise ValueError(x)",
    ),
    exhausts(
        "large-source",
        "a cell of most of a megabyte",
        rank="x = [\n" + "    [1, 2, 3],\n" * 60_000 + "]\nraise MemoryError",
    ),
]

DISK = [
    exhausts(
        "disk-full",
        "half a gigabyte written",
        rank="""
        with open('big', 'wb') as f:
            for _ in range(500):
                f.write(bytes(10**6))
        """,
    ),
    exhausts(
        "many-files",
        "as many small files as it can make",
        slow=True,
        rank=dedented("""
            for n in range(200_000):
                open(f'file-{n}', 'w').write('x')
            raise OSError
        """),
    ),
    exhausts(
        "deep-folders",
        "folders inside folders, deeper than a path may be long",
        rank="""
        import os
        for n in range(3000):
            os.mkdir("deep")
            os.chdir("deep")
        raise OSError
        """,
    ),
    keeps(
        "exhausting",
        "sparse-file",
        "a file of a terabyte that holds nothing",
        center="""
        try:
            with open("sparse", "wb") as file:
                file.truncate(10**12)
        except OSError:
            pass
        def center(x):
            return np.asarray(x) - np.mean(x, axis=-1, keepdims=True)
        """,
    ),
    exhausts(
        "many-open-files",
        "more open files than there may be",
        rank=dedented("""
            kept = []
            while len(kept) < 100_000:
                kept.append(open('/dev/null'))
        """),
    ),
]

PROCESSES = [
    exhausts(
        "fork-bomb",
        "processes that make processes",
        rank="""
        import os, time
        for _ in range(300):
            if os.fork() == 0:
                time.sleep(20)
                os._exit(0)
        raise OSError
        """,
    ),
    exhausts(
        "fork-in-a-call",
        "answers twice: once as itself and once as its child",
        rank="""
        import os
        def rank(values):
            os.fork()
            return [4]
        """,
    ),
    exhausts(
        "thread-bomb",
        "ten thousand threads",
        rank="""
        import threading, time
        for _ in range(10_000):
            threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
        raise OSError
        """,
    ),
    exhausts(
        "process-pool",
        "a pool of processes that never answer",
        slow=True,
        rank="""
        import multiprocessing, time
        with multiprocessing.get_context("fork").Pool(64) as pool:
            pool.map(time.sleep, [20] * 64)
        raise OSError
        """,
    ),
    exhausts(
        "becomes-another-program",
        "the process replaced by a program that sleeps",
        slow=True,
        rank="import os\nos.execv('/bin/sleep', ['sleep', '30'])",
    ),
]

OUTPUT = [
    exhausts(
        "floods-stdout",
        "prints for ever",
        slow=True,
        rank="while True:\n    print('x' * 10_000)",
    ),
    exhausts(
        "floods-descriptors",
        "writes to file descriptors 1 and 2, past Python",
        slow=True,
        rank=dedented("""
            import os
            while True:
                os.write(1, b'x' * 65536)
                os.write(2, b'x' * 65536)
        """),
    ),
    exhausts(
        "prints-once-much",
        "prints two hundred megabytes at once",
        rank="print('x' * 200_000_000)\nraise MemoryError",
    ),
    exhausts(
        "a-million-warnings",
        "a warning for every number",
        slow=True,
        rank="""
        import warnings
        warnings.simplefilter("always")
        for n in range(1_000_000):
            warnings.warn(f"warning {n}")
        raise OSError
        """,
    ),
    exhausts(
        "terminal-codes",
        "prints what clears a terminal, renames its window and answers for the user",
        rank="print('\\x1b[2J\\x1b]0;owned\\x07\\x1b[6n\\r' * 3)\nraise OSError('\\x1b[31m\\r7/7')",
    ),
]

RETURNS = [
    exhausts(
        "endless-generator",
        "results that never end, one at a time",
        slow=True,
        rank=dedented("""
            def rank(values):
                while True:
                    yield 0
        """),
    ),
    exhausts(
        "returns-a-billion-zeros",
        "an array of eight gigabytes that nobody has touched",
        center="def center(x):\n    return np.zeros(10**9)",
    ),
    exhausts(
        "returns-a-huge-view",
        "one number that says it is 2**40 numbers",
        center="def center(x):\n    return np.broadcast_to(np.float64(1), (2**20, 2**20))",
    ),
    exhausts(
        "returns-a-deep-list",
        "a list in a list in a list, a hundred thousand times",
        rank="""
        def rank(values):
            deep = []
            for _ in range(100_000):
                deep = [deep]
            return deep
        """,
    ),
    exhausts(
        "returns-itself",
        "a list that holds itself, and a dict too",
        rank=dedented("""
            ring = []
            ring.append(ring)
            def rank(values):
                return ring
        """),
        words=dedented("""
            def words(text):
                ring = {}
                ring['a'] = ring
                return ring
        """),
    ),
    exhausts(
        "returns-a-million-keys",
        "a dict of a million names",
        slow=True,
        words="def words(text):\n    return {f'word {n}': n for n in range(1_000_000)}",
    ),
    exhausts(
        "returns-a-long-string",
        "a string of a hundred megabytes",
        words="def words(text):\n    return 'x' * 100_000_000",
    ),
    exhausts(
        "returns-wide-lists",
        "a list that holds one list of a thousand a thousand times, three levels deep",
        slow=True,
        rank="""
        def rank(values):
            wide = [0] * 1000
            for _ in range(3):
                wide = [wide] * 1000
            return wide
        """,
    ),
    exhausts(
        "returns-long-numbers",
        "a whole number of a hundred thousand digits",
        rank="def rank(values):\n    return [10**100_000]",
        halve="def halve(number):\n    return 10**100_000",
    ),
    exhausts(
        "prints-at-every-step",
        "items that never end, each of which prints as much as a call may",
        slow=True,
        power="""
        def power(n):
            while True:
                print("x" * 19_000)
                yield 0
        """,
        rank="""
        class Steps:
            def __iter__(self):
                return self
            def __next__(self):
                print("x" * 19_000)
                return 0
            def __eq__(self, other):
                return sum(self)
        def rank(values):
            return Steps()
        """,
    ),
    exhausts(
        "result-of-a-billion",
        "a column as long as may be sent, which becomes a table beside a row",
        center="def center(x):\n    return np.zeros((10**6, *np.shape(x)[1:], 1))",
    ),
    exhausts(
        "endless-iterator",
        "a list class that never stops giving",
        rank="""
        class Endless(list):
            def __iter__(self):
                while True:
                    yield 0
            def __len__(self):
                return 1
        def rank(values):
            return Endless([7])
        """,
        slow=True,
    ),
    exhausts(
        "large-error",
        "an exception with a message of a hundred megabytes",
        rank="def rank(values):\n    raise ValueError('x' * 100_000_000)",
    ),
    exhausts(
        "recursive-error",
        "an exception whose text is its own text",
        rank="""
        class Mirror(Exception):
            def __str__(self):
                return str(self)
            __repr__ = __str__
        def rank(values):
            raise Mirror
        """,
    ),
    exhausts(
        "error-that-hangs",
        "an exception whose text never comes",
        slow=True,
        rank="""
        class Silent(Exception):
            def __str__(self):
                while True:
                    pass
            __repr__ = __str__
        def rank(values):
            raise Silent
        """,
    ),
    exhausts(
        "error-that-exits",
        "an exception whose text ends the process",
        rank="""
        import os
        class Last(Exception):
            def __str__(self):
                os._exit(0)
            __repr__ = __str__
        def rank(values):
            raise Last
        """,
    ),
    exhausts(
        "chained-errors",
        "an exception with a hundred thousand causes, the last of which is the first",
        rank="""
        def rank(values):
            first = error = ValueError(0)
            for n in range(100_000):
                error.__cause__ = ValueError(n)
                error = error.__cause__
            error.__context__ = first
            raise first
        """,
    ),
]

DEATHS = [
    exhausts("exits", "leaves through the back door", rank="import os\nos._exit(0)"),
    exhausts(
        "exits-in-a-call",
        "leaves through the back door when it is called",
        rank=dedented("""
            import os
            def rank(values):
                os._exit(0)
        """),
    ),
    exhausts(
        "exits-in-five-calls",
        "leaves whenever it is called, in five exercises before two that are right",
        **{
            name: f"import os\ndef {name}(*args):\n    os._exit(0)"
            for name in ("rank", "words", "fill", "first", "halve")
        },
    ),
    exhausts("quits", "quit, as at a prompt", rank="quit()"),
    exhausts("aborts", "abort, which asks for a core file", rank="import os\nos.abort()"),
    exhausts(
        "segfault",
        "reads the memory at address zero",
        rank=dedented("""
            import ctypes
            def rank(values):
                ctypes.string_at(0)
        """),
    ),
    exhausts(
        "kills-itself",
        "a signal that cannot be caught",
        rank=dedented("""
            import os
            def rank(values):
                os.kill(os.getpid(), 9)
        """),
    ),
    exhausts(
        "stops-itself",
        "a signal that puts it to sleep until somebody wakes it",
        slow=True,
        rank=dedented("""
            import os
            def rank(values):
                os.kill(os.getpid(), 19)
        """),
    ),
    exhausts(
        "closes-everything",
        "every file descriptor closed",
        rank="import os\nos.closerange(0, 4096)",
    ),
    exhausts(
        "no-streams",
        "no stdout and no stderr to print to",
        rank="""
        import sys
        sys.stdout = sys.stderr = sys.__stdout__ = sys.stdin = None
        print(1 / 0)
        """,
    ),
    exhausts(
        "own-limits",
        "limits of its own, so low that nothing works",
        rank="""
        import resource
        for name in ("RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_AS", "RLIMIT_STACK", "RLIMIT_CPU"):
            resource.setrlimit(getattr(resource, name), (1, 1))
        def rank(values):
            return [x for x in range(10**8)]
        """,
    ),
    exhausts(
        "no-builtins",
        "the interpreter without its builtins",
        rank=dedented("""
            import builtins
            def rank(values):
                vars(builtins).clear()
        """),
    ),
    exhausts(
        "no-modules",
        "the interpreter without its modules",
        rank="""
        import sys
        def rank(values):
            for module in list(sys.modules.values()):
                vars(module).clear()
            sys.modules.clear()
        """,
    ),
    exhausts(
        "frozen-hooks",
        "hooks that fail on every import, audit, trace and exception",
        rank="""
        import sys
        def fails(*args):
            raise SystemExit(0)
        sys.excepthook = sys.unraisablehook = fails
        def rank(values):
            sys.addaudithook(fails)
            sys.setprofile(fails)
        """,
    ),
    exhausts(
        "threads-with-torch",
        "a parallel operation in a process that was forked",
        rank=dedented("""
            import torch
            torch.set_num_threads(8)
            torch.ones(4000, 4000).sum()
            raise OSError
        """),
    ),
    exhausts(
        "module-that-hangs",
        "a module whose weights are never done loading",
        slow=True,
        work=KQV,
        AttentionHead="""
        class AttentionHead(nn.Module):
            def __init__(self, d_model, d_k, d_v=None, bias=False):
                super().__init__()
                self.W_q = self.W_k = self.W_v = nn.Linear(d_model, d_k, bias=bias)
            def state_dict(self, *args, **kwargs):
                while True:
                    pass
            load_state_dict = parameters = named_parameters = forward = state_dict
        """,
    ),
    exhausts(
        "module-too-large",
        "a module with ten gigabytes of weights",
        work=KQV,
        AttentionHead="""
        class AttentionHead(nn.Module):
            def __init__(self, d_model, d_k, d_v=None, bias=False):
                super().__init__()
                self.W_q = nn.Parameter(torch.ones(50_000, 50_000))
        """,
    ),
]

CASES = [*TIME, *MEMORY, *DISK, *PROCESSES, *OUTPUT, *RETURNS, *DEATHS]
