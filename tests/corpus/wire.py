"""Abuse of the connection between a submission's process and the one that judges it.

Written by someone who has read ``attncourse/grading/judge/wire/frames.py``: frames with lying
sizes, forged and replayed replies, and values made to be dear or dangerous to rebuild. As
elsewhere, the other exercises are right and have to keep their points.
"""

from functools import partial
from textwrap import dedent, indent

from corpus.assignment import KQV, spoils

abuses = partial(spoils, "wire")

# What attacks look for in a worker's memory: a test holds that it is called so.
REQUEST_ID = "request_id"
WORKER_NAMES = (REQUEST_ID, "answer_request", "add_reply")
ENCODER_NAMES = ("encode", "encode_array")

FRAMES = f"""\
import json, os, socket, stat, struct, sys
def request_id():  # the name of the request that is being answered: it stands in the frames above
    frame = sys._getframe()
    while frame:
        if hasattr(frame.f_locals.get("self"), "{REQUEST_ID}"):
            return frame.f_locals["self"].{REQUEST_ID}
        frame = frame.f_back
def sockets():
    for fd in range(3, 1024):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                yield socket.socket(fileno=os.dup(fd))
        except OSError:
            pass
def send(message, raw=b"", length=None, total=None, times=1):
    if isinstance(message, dict) and "callback" not in message and "replies" not in message:
        name, sizes = message.pop("id", request_id()), message.pop("sizes", [])
        n_arrays = len(sizes) if isinstance(sizes, list) else 0
        message = {{"id": name, "replies": [{{"arrays": n_arrays, **message}}], "sizes": sizes}}
    elif isinstance(message, dict):
        message = {{"id": request_id(), **message}}
    text = json.dumps(message).encode()
    head = struct.pack("!IQ", length or len(text), len(raw) if total is None else total)
    for wire in sockets():
        try:
            wire.settimeout(1)
            for _ in range(times):
                wire.sendall(head + text + raw)
        except OSError:
            pass
"""


# The exercise that lies is one of the first: those after it lose nothing by what it left behind.
LIAR = "rank"


def sends(name: str, why: str, lines: str, **options):
    """A function that puts these frames on the wire, in place of or before its own reply."""
    body = indent(dedent(lines).strip(), "    ")
    source = f"{FRAMES}def {LIAR}(*args):\n{body}\n    return []"
    return abuses(name, why, **{LIAR: source}, **options)


def claims(name: str, why: str, form: str, raw: str = 'b""', **options):
    """A function that says it returned this value, in the form that values have on the wire."""
    lines = f"raw = {raw}\nsend({{'value': {form}, 'sizes': [len(raw)]}}, raw)"
    return sends(name, why, lines, **options)


FRAME = [
    sends(
        "junk-everywhere",
        "random bytes on every open descriptor",
        """
        for fd in range(3, 1024):
            try:
                os.set_blocking(fd, False)
                os.write(fd, os.urandom(65536))
            except OSError:
                pass
        """,
    ),
    sends(
        "half-a-frame",
        "the beginning of a frame, and then nothing",
        "send({'value': 0}, length=1000)\n__import__('time').sleep(60)",
        slow=True,
    ),
    sends(
        "drop-by-drop",
        "a frame of which one byte comes now and then",
        """
        import time
        for wire in sockets():
            for byte in struct.pack("!IQ", 1000, 0) + b" " * 1000:
                wire.send(bytes([byte]))
                time.sleep(0.2)
        """,
        slow=True,
    ),
    sends(
        "enormous-frame",
        "a frame that says it has 2**62 bytes",
        "send({'value': 0}, total=2**62)",
    ),
    sends(
        "enormous-text",
        "a frame of JSON larger than any message, sent in full",
        "send({'value': ['x' * 100] * 1_000_000})",
    ),
    sends("no-frame", "JSON that is no message", "send([1, 2, 3])\nsend(7)\nsend(None)\nsend('7')"),
    sends(
        "other-sizes",
        "buffers of other sizes than were announced, or of none",
        "send({'value': 0, 'sizes': [-1, 10**30, 1]}, b'x' * 8)\nsend({'sizes': 'all'}, b'x')",
    ),
    sends(
        "answers-in-advance",
        "replies to every question that may come, before it is asked",
        """
        for value in (7, 7.0, True, {"l": [2, 0, 1]}, {"l": list(range(11))}):
            send({
                "value": value, "sizes": [], "changed": [], "out": "7", "stop": True,
                "values": {"mix": value, "rank": value, "examine": value, "np": value},
                "earned": 7, "passed": True, "verdict": {"earned": 7}, "done": True,
            })
        """,
    ),
    sends(
        "no-replies",
        "a list of replies that is none, is empty, is endless",
        """
        for replies in (None, "all", {}, [], [7], [[]], [{}] * 100_000):
            send({"replies": replies, "sizes": []})
        """,
    ),
    sends(
        "answers-without-a-question",
        "replies that do not say what they reply to, and some to a question of its own",
        """
        for name in (None, "", "0" * 16, 0):
            send({"id": name, "value": {"l": [9]}, "sizes": [], "changed": []})
        """,
    ),
    sends(
        "answers-for-the-next",
        "a thread that goes on answering whatever is asked after it",
        """
        import threading, time
        def answer():
            while True:
                for worker in [f.f_locals.get("self") for f in sys._current_frames().values()]:
                    name = getattr(worker, "request_id", "")
                    send({"id": name, "value": {"l": [9]}, "values": {}, "sizes": []})
                time.sleep(0.001)
        threading.Thread(target=answer, daemon=True).start()
        """,
    ),
    sends(
        "replays",
        "sends back what it was sent, and everything twice",
        """
        for wire in sockets():
            wire.setblocking(False)
            try:
                seen = wire.recv(1 << 20, socket.MSG_PEEK)
            except OSError:
                seen = b""
            wire.setblocking(True)
            wire.sendall(seen)
        send({"op": "names", "names": ["rank"], "sizes": []}, times=2)
        """,
    ),
    sends(
        "hangs-up",
        "the connection shut down and closed",
        """
        for wire in sockets():
            wire.shutdown(socket.SHUT_RDWR)
        os.closerange(3, 1024)
        """,
    ),
    sends(
        "other-end",
        "another socket in the place of the connection",
        """
        ours, theirs = socket.socketpair()
        for wire in sockets():
            os.dup2(ours.fileno(), wire.fileno())
        for fd in range(3, 64):
            if fd not in (ours.fileno(), theirs.fileno()):
                try:
                    os.dup2(theirs.fileno(), fd)
                except OSError:
                    pass
        """,
        slow=True,
    ),
    sends(
        "passes-descriptors",
        "hundreds of open files handed over with the bytes",
        """
        for wire in sockets():
            for _ in range(20):
                try:
                    wire.settimeout(0.2)
                    socket.send_fds(wire, [b"x"], [0] * 200)
                except OSError:
                    pass
        """,
    ),
    sends(
        "leaves-the-wire-unblocked",
        "the flag that says whether to wait belongs to all who hold the wire",
        """
        for wire in sockets():
            wire.setblocking(False)
        """,
    ),
    sends(
        "calls-back",
        "asks for functions of the other side that it was never given, without end",
        """
        while True:
            send({"callback": 1, "args": {"l": []}, "kwargs": {"d": []}, "sizes": []})
        """,
        slow=True,
    ),
    sends(
        "errors-of-its-choice",
        "claims to have raised what would leave a test early",
        """
        for name in ("StopIteration", "GeneratorExit", "SystemExit", "SkipTest", "TimeUp"):
            error = {"type": name, "above": [name, "KeyboardInterrupt", "BaseException"]}
            send({"error": error | {"message": "7", "line": "x" * 100_000}, "sizes": []})
        send({"error": {"type": "a b\\n()", "above": 7}, "sizes": []})
        send({"error": {"timeout": "yes", "forbidden": {}}, "sizes": []})
        """,
    ),
    sends(
        "enormous-error",
        "an exception with a name, a message and a line of megabytes, below half a million classes",
        """
        above = ["ValueError" + str(n) for n in range(500_000)]
        error = {"type": "x" * 10**6, "above": above, "message": "y" * 10**6, "line": ["z"] * 1000}
        send({"error": error, "sizes": []})
        """,
    ),
    sends(
        "changes-everything",
        "claims to have changed arguments that it was not given",
        """
        change = {"l": [{"l": [1, 2, 3]}]}
        places = [0, 1, -1, 99, "x", None]
        send({"value": {"l": []}, "sizes": [], "changed": [[p, change] for p in places]})
        """,
    ),
    sends(
        "modules-nobody-asked-for",
        "describes hundreds of modules with millions of weights each",
        """
        weight = {"T": {"d": "float32", "s": [2500, 1000], "o": [0, 1], "x": 0}}
        raw = bytes(10_000_000)
        described = {
            "class": "X", "bases": [], "transient": [], "plain": {"d": []}, "children": {},
            "tensors": {"w": {"value": weight, "parameter": True, "grad": True, "id": 1}},
        }
        for n in range(200):
            send({"callback": 1, "modules": {str(n): described}, "sizes": [len(raw)]}, raw)
        """,
        slow=True,
    ),
]

VALUES = [
    claims(
        "object-array",
        "an array of objects, pickled",
        "{'n': {'d': '|O', 's': [1], 'o': [0], 'x': 0}}",
        "b'cos\\nsystem\\n(S\"touch /tmp/corpus-was-here\"\\ntR.'",
    ),
    claims(
        "negative-shape",
        "an array of minus one rows",
        "{'n': {'d': '<f8', 's': [-1, -1], 'o': [0, 1], 'x': 0}}",
        "bytes(8)",
    ),
    claims(
        "overflowing-shape",
        "an array of 2**33 by 2**31 entries, which are none once they overflow",
        "{'n': {'d': '<f8', 's': [2**33, 2**31], 'o': [0, 1], 'x': 0}}",
    ),
    claims(
        "empty-and-enormous",
        "an array of 2**62 rows with nothing in them",
        "{'n': {'d': '<f8', 's': [2**62, 0, 2**62], 'o': [0, 1, 2], 'x': 0}}",
    ),
    claims(
        "hundred-axes",
        "an array with a hundred axes, in an order that is none",
        "{'n': {'d': '<f8', 's': [1] * 100, 'o': [7] * 100, 'x': 0}}",
        "bytes(8)",
    ),
    claims(
        "short-buffer",
        "an array larger than the bytes that came with it, and one that has no buffer",
        "{'l': [{'n': {'d': '<f8', 's': [9], 'o': [0], 'x': 0}},"
        " {'n': {'d': '<f8', 's': [1], 'o': [0], 'x': 7}}]}",
        "bytes(8)",
    ),
    claims(
        "unknown-handles",
        "objects that nobody made: handles far beyond, negative, of no kind",
        "{'l': [{'o': {'h': 10**9, 'kind': 'function', 'name': 'x'}}, {'o': {'h': -1}},"
        " {'o': {'h': 1, 'kind': 'module'}}, {'B': 5}, {'A': -1}]}",
    ),
    claims(
        "names-of-its-choice",
        "a function and a class that are called like what they must not be",
        "{'o': {'h': 1, 'kind': 'class', 'name': '__builtins__', 'module': True, 'type': 'type',"
        " 'bases': ['Module', '__class__', 'modules'],"
        " 'signature': [['a', 9, 1], ['import', 0, 0]]}}",
    ),
    claims(
        "deep-value",
        "lists within lists, to the last level that JSON bears",
        "__import__('functools').reduce(lambda deep, _: {'l': [deep]}, range(150), 0)",
    ),
    claims(
        "string-array",
        "a megabyte that becomes two gigabytes: one long word among short ones",
        "{'U': [[501], ['x' * 10**6] + ['y'] * 500]}",
    ),
    claims(
        "colliding-keys",
        "a dict whose keys all have one hash",
        "{'d': [[{'i': hex(n * (2**61 - 1))}, 0] for n in range(1, 60_000)]}",
        slow=True,
    ),
    claims(
        "colliding-set",
        "a set of half a million numbers that all have one hash",
        "{'s': [{'i': hex(n * (2**61 - 1))} for n in range(1, 500_000)]}",
        slow=True,
    ),
    claims(
        "colliding-in-tuples",
        "as many as may be sent, each at the end of a tuple of twenty",
        "{'z': [{'t': [0] * 19 + [{'i': hex(n * (2**61 - 1))}]} for n in range(1, 9_000)]}",
    ),
    claims(
        "one-buffer-many-arrays",
        "five hundred arrays that are all made of the same eight megabytes",
        "{'l': [{'n': {'d': '<f8', 's': [10**6], 'o': [0], 'x': 0}}] * 500}",
        "bytes(8 * 10**6)",
        slow=True,
    ),
    claims(
        "one-array-many-times",
        "a list that names its one array a hundred thousand times",
        "{'l': [{'n': {'d': '<f8', 's': [10**6], 'o': [0], 'x': 0}}] + [{'B': 0}] * 99_000}",
        "bytes(8 * 10**6)",
    ),
    claims(
        "lists-of-nothing",
        "as many empty lists as there is room for in a message",
        "{'l': [{'l': []}] * 990_000}",
        slow=True,
    ),
    claims(
        "many-named-tuples",
        "two hundred thousand classes, each to be made for one value",
        "{'l': [{'N': [f'A{n}', ['f'], [0]]} for n in range(200_000)]}",
        slow=True,
    ),
    claims(
        "many-parameters",
        "a function of half a million parameters",
        "{'o': {'h': 1, 'kind': 'function', 'name': 'f',"
        " 'signature': [[f'a{n}', 1, 0] for n in range(500_000)]}}",
        slow=True,
    ),
    claims(
        "many-ranges",
        "ranges of a hundred thousand numbers, a thousand of them",
        "{'l': [{'r': [0, 100_000, 1]}] * 1000}",
    ),
    claims(
        "one-wide-character",
        "long strings, each with a character that takes four bytes for all of them",
        "{'l': ['\\U0001F600' + 'x' * 3_000_000] * 4}",
    ),
    claims(
        "wide-named-tuple",
        "a class with a hundred thousand fields, to be made for one value",
        "{'N': ['Wide', [f'f{n}' for n in range(100_000)], [0] * 100_000]}",
    ),
    claims(
        "named-after-methods",
        "a tuple whose fields are called like the methods that a test uses",
        "{'N': ['Result', ['values', 'count', 'index', 'sort', 'tolist'], [7, 7, 7, 7, 7]]}",
    ),
    claims(
        "fields-of-code",
        "a class with a field that is a piece of code",
        "{'N': ['A', ['x=__import__(\"os\").abort()', 'y\\nimport os'], [0, 0]]}",
    ),
    claims(
        "numbers-out-of-range",
        "numbers that JSON lets through and others do not",
        "{'l': [float('nan'), 1e400, {'f': 'nan'}, {'i': 'f' * 10**6}, {'c': [{'l': []}, 0]}]}",
    ),
]

OBJECTS = [
    abuses(
        "reduces-to-a-call",
        "objects that run a program when they are unpickled or copied",
        rank="""
        import os
        class Bomb(list):
            def __reduce__(self):
                return os.system, ("touch /tmp/corpus-was-here",)
            def __getstate__(self):
                os._exit(0)
            def __deepcopy__(self, memo):
                os._exit(0)
            __copy__ = __reduce_ex__ = __deepcopy__
        def rank(values):
            return Bomb([Bomb()])
        """,
    ),
    abuses(
        "arrays-of-objects",
        "arrays of objects, records, dates and long doubles",
        center="""
        def center(x):
            kinds = (object, "M8[s]", "V16", np.longdouble, [("a", "f8"), ("b", "O")])
            kind = kinds[int(np.size(x)) % len(kinds)]
            return np.zeros(np.shape(x), kind)
        """,
    ),
    abuses(
        "lying-array",
        "an array whose class lies about its shape, type, size and bytes",
        center="""
        class Liar(np.ndarray):
            shape = property(lambda self: (5, 3))
            dtype = property(lambda self: np.dtype(object))
            nbytes = size = property(lambda self: 2**62)
            strides = property(lambda self: (-8, 2**40))
            def tobytes(self, *args):
                return b"x" * 10**8
            def transpose(self, *args):
                return self
            def __array__(self, *args, **kwargs):
                return self
        def center(x):
            return np.zeros(1).view(Liar)
        """,
    ),
    abuses(
        "overlapping-array",
        "an array that reads beyond its own memory, by strides",
        center="""
        def center(x):
            return np.lib.stride_tricks.as_strided(
                np.zeros(1), shape=np.shape(x), strides=(2**20,) * np.ndim(x)
            )
        """,
    ),
    abuses(
        "strange-strings",
        "halves of characters, zeros, and words that end a line of a report",
        words="""
        def words(text):
            return {"\\ud800": 1, "\\x00": "\\udcff", "a\\r\\n,=cmd|' /C calc'!A0": "\\x1b[2J"}
        """,
        rank="def rank(values):\n    raise ValueError('\\ud800 \\x00 <script>alert(1)</script>')",
    ),
    abuses(
        "strange-keys",
        "dicts and sets with keys that are equal to nothing, or to each other",
        words="""
        class Key(str):
            def __hash__(self):
                return 7
            def __eq__(self, other):
                return False
        def words(text):
            return {Key("a"): 2, Key("a"): 1, float("nan"): 3, (1, (2,)): 4, None: 5, b"x": 6}
        """,
        rank="def rank(values):\n    return {float('nan'), frozenset({(1,)}), 1j, b'x', ...}",
    ),
    abuses(
        "many-objects",
        "a hundred thousand functions, each of which returns more",
        slow=True,
        power="""
        def power(n):
            return [lambda x, n=n: power(n) for n in range(100_000)]
        """,
    ),
    abuses(
        "functions-for-ever",
        "a function that returns a function, and itself at the end",
        power="""
        class Chain:
            def __call__(self, *args):
                return Chain()
            def __getattr__(self, name):
                return Chain()
            def __iter__(self):
                return self
            def __next__(self):
                return Chain()
            def __len__(self):
                return 2**62
            def __getitem__(self, key):
                return Chain()
        power = Chain()
        """,
    ),
    abuses(
        "patched-worker",
        "the functions that send its results, found among all objects and replaced",
        rank="""
        import gc, json, sys
        real = json.dumps
        def dumps(message, *args, **kwargs):
            if isinstance(message, dict) and "value" in message:
                message |= {"value": 7, "earned": 7, "kind": "none", "points": 22}
            return real(message, *args, **kwargs)
        def rank(values):
            json.dumps = dumps
            for found in gc.get_objects():
                if type(found).__name__ in ("Worker", "Encoder") and hasattr(found, "__dict__"):
                    for name in NAMES:
                        if hasattr(found, name):
                            setattr(found, name, lambda *args: 7)
            return []
        """.replace("NAMES", repr((*WORKER_NAMES[1:], *ENCODER_NAMES))),
        slow=True,
    ),
    abuses(
        "strange-tensors",
        "tensors without memory, without numbers, sparse, quantised and nested",
        work=KQV,
        squash="""
        kinds = [
            lambda x: torch.empty(x.shape, device="meta"),
            lambda x: x.detach().to_sparse(),
            lambda x: torch.quantize_per_tensor(x.detach().float(), 0.1, 0, torch.qint8),
            lambda x: torch.nested.nested_tensor([x.detach()]),
            lambda x: torch.view_as_real(x.detach() * 1j).conj(),
        ]
        def squash(x):
            return kinds[int(x.abs().sum()) % 5](x)
        """,
    ),
    abuses(
        "module-inside-itself",
        "a module that is its own child, with names that no parameter has",
        work=KQV,
        AttentionHead="""
        class AttentionHead(nn.Module):
            def __init__(self, d_model, d_k, d_v=None, bias=False):
                super().__init__()
                self.W_q = nn.Linear(d_model, d_k, bias=bias)
                self._modules["itself"] = self
                self._parameters["_attncourse"] = nn.Parameter(torch.ones(1))
                self._parameters["state dict()\\n"] = nn.Parameter(torch.ones(1))
                self._buffers["forward"] = torch.ones(1)
                self.attncourse_guard = self.attncourse_handle = 7
        """,
    ),
    abuses(
        "wrong-gradients",
        "gradients of another shape, of another number, of none",
        work=KQV,
        squash="""
        class Odd(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x / (1 + x.abs())
            @staticmethod
            def backward(ctx, grad):
                return grad.new_ones(5, 3) * float("nan")
        squash = Odd.apply
        """,
    ),
]

# What a reply says of the arguments, to a test that works out what it expects afterwards.
ARGUMENTS = [
    abuses(
        f"arguments-{name}",
        why,
        double=f"{FRAMES}def double(x):\n    zeros = x.astype('<f8').tobytes()\n"
        "    zeros, shape = bytes(len(zeros)), list(x.shape)\n"
        "    nothing = {'n': {'d': '<f8', 's': shape, 'o': [0, 1], 'x': 0}}\n"
        f"    send({{'value': {value}, 'changed': {changed}, 'sizes': [len(zeros)]}}, zeros)\n"
        "    return []",
    )
    for name, why, value, changed in (
        ("changed", "says that it was cleared", "nothing", "[[1, nothing]]"),
        (
            "returned",
            "returns the test's own, and says it was cleared",
            "{'A': 1}",
            "[[1, nothing]]",
        ),
        ("function", "says that its own function was changed", "nothing", "[[0, nothing]]"),
        ("elsewhere", "says that what was not given was changed", "nothing", "[[2**40, nothing]]"),
        ("nonsense", "says of the arguments what is no such thing", "nothing", "[[[], 1], 5, 'x']"),
    )
]

CASES = [*FRAME, *VALUES, *OBJECTS, *ARGUMENTS]
