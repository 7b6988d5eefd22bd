"""What a student's code reaches for that could hide from the judge what it calls.

Whether a forbidden function was called is seen in the submission's own process, which a determined
author can blind. Nobody does that by accident, so the source shows the attempt, and a person has
a look. The syntax tree is read with its imports and aliases: ``t = torch`` makes ``t._C`` torch's.
"""

import ast
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from attncourse.grading.submission.magics import plain
from attncourse.grading.submission.syntax import LONGEST, parse, remembered

PRIVATE = "private parts of torch"
# Whatever the assignment: what looks beyond the student's own functions.
INTERPRETER = {
    "ctypes": "memory itself",
    "cffi": "memory itself",
    "gc.get_": "objects of others",
    "sys._getframe": "frames of others",
    "sys._current_frames": "frames of others",
    "sys.settrace": "what others run",
    "sys.setprofile": "what others run",
    "sys.monitoring": "what others run",
    "inspect.currentframe": "frames of others",
    "inspect.stack": "frames of others",
    "inspect.trace": "frames of others",
    "inspect.getouterframes": "frames of others",
}
# Where an exercise forbids a function: what could call it unseen, or have it at hand.
WATCH = {
    "torch.ops": "operators below torch's functions",
    "torch.overrides": "what torch tells of its calls",
    "torch.library": "torch's table of operators",
    "torch.jit": "code that is compiled",
    "torch.compile": "code that is compiled",
    "torch.compiler": "code that is compiled",
    "torch.fx": "code that is traced",
    "torch.export": "code that is traced",
    "torch.package": "code from a file",
    "torch.hub": "code from a file",
    "torch.nn.attention": "finished attention",
    "torch.multiprocessing": "work outside of the call",
    "threading": "work outside of the call",
    "_thread": "work outside of the call",
    "concurrent": "work outside of the call",
    "multiprocessing": "work outside of the call",
    "asyncio": "work outside of the call",
    "subprocess": "work outside of the call",
    "atexit": "work outside of the call",
    "weakref.finalize": "work outside of the call",
    "sys.modules.": "modules of others",
    "sys.meta_path": "modules of others",
    "attncourse.checks.watch": "the checks themselves",
    "attncourse.checks.outcome": "the checks themselves",
    "pickle": "code from bytes",
    "marshal": "code from bytes",
    "dill": "code from bytes",
    "eval": "code from text",
    "exec": "code from text",
    "compile": "code from text",
    "__import__": "modules by made-up names",
    "importlib.import_module()": "modules by made-up names",
    **dict.fromkeys(
        ("transformers", "flash_attn", "xformers", "jax", "flax", "keras", "tensorflow", "mlx"),
        "finished attention",
    ),
}
# Names that give themselves away on whatever object they stand.
ATTRIBUTES = {
    "__globals__": "objects of others",
    "__closure__": "objects of others",
    "__subclasses__": "objects of others",
    "__code__": "functions of others",
    "f_back": "frames of others",
    "f_globals": "frames of others",
    "tb_frame": "frames of others",
    "gi_frame": "frames of others",
    "_C": PRIVATE,
    "__torch_function__": "what torch tells of its calls",
    "__torch_dispatch__": "what torch tells of its calls",
}
WATCHED_ATTRIBUTES = {
    "aten": "operators below torch's functions",
    **dict.fromkeys(
        ("handle_torch_function", "wrap_torch_function", "TorchFunctionMode", "TorchDispatchMode"),
        "what torch tells of its calls",
    ),
    **dict.fromkeys(("DisableTorchFunction", "DisableTorchFunctionSubclass"), "a watch put out"),
}
GETS = {"getattr", "hasattr", "setattr", "delattr", "attrgetter"}
DOTTED = re.compile(r"[A-Za-z_][\w.]{0,200}")
# A word of each kind of what is in the tables: where none is, there is nothing to look for.
TABLES = [prefix.rstrip(".()").split(".") for prefix in INTERPRETER | WATCH]
WORDS = {parts[0] if parts[0] == "inspect" else parts[-1] for parts in TABLES}
WORDS |= {*ATTRIBUTES, *WATCHED_ATTRIBUTES, *GETS, "vars", "__dict__", "modules", "import_module"}
TELLTALE = re.compile(rf"\b(?:{'|'.join(sorted(WORDS))}|get_\w+|_(?!_)\w+)\b")
DEEPEST = 12  # attributes in a row
ROUNDS = 4  # aliases of aliases


class Mentions(NamedTuple):
    """What one cell names: dotted paths, from a name of its own or, with "/" first, from a module.

    ``aliases`` are pairs of a name and what it stands for.
    """

    aliases: frozenset[tuple[str, str]]
    paths: frozenset[str]
    too_long: bool = False


class Reach(NamedTuple):
    """What is reached for, and why that matters."""

    what: str
    why: str


def reaches(sources: Iterable[str], *, watched: bool) -> list[list[Reach]]:
    """For each of a student's cells what it reaches for, in order.

    ``watched``: whether there is a function that the assignment forbids.
    """
    sources = list(sources)
    if not any(suspect(source) for source in sources):
        return [[] for _ in sources]
    found = [mentions(source) for source in sources]
    aliases: dict[str, set[str]] = {}
    for cell in found:
        for name, path in cell.aliases:
            aliases.setdefault(name, set()).add(path)
    return [list(reached(cell, aliases, watched)) for cell in found]


def reached(cell: Mentions, aliases: dict[str, set[str]], watched: bool) -> Iterator[Reach]:
    """What one cell reaches for, each thing once."""
    if cell.too_long and watched:
        yield Reach(f"more than {LONGEST} characters", "too many to look through")
    prefixes = INTERPRETER | WATCH if watched else INTERPRETER
    attributes = ATTRIBUTES | WATCHED_ATTRIBUTES if watched else ATTRIBUTES
    roots: dict[str, list[str]] = {}
    for prefix in prefixes:
        roots.setdefault(prefix.split(".")[0], []).append(prefix)
    told: dict[str, str] = {}
    for path in sorted(cell.paths):
        for known in resolved(path, aliases):
            parts = known.split(".")
            for prefix in roots.get(parts[0].removesuffix("()"), ()):
                if matches(known, prefix):
                    told[shown(known, prefix)] = prefixes[prefix]
            told |= {part: attributes[part] for part in parts if part in attributes}
            if watched and parts[0] == "torch" and (hidden := private(parts)):
                told[".".join(parts[:hidden])] = PRIVATE
    for what, why in told.items():
        if not any(what != other and what in other.split(".") for other in told):
            yield Reach(what, why)


def private(parts: list[str]) -> int:
    """How many parts of a path lead to the first that is private, it included; or 0."""
    marked = (n for n, part in enumerate(parts, start=1) if re.match("_(?!_)", part))
    return next(marked, 0)


def resolved(path: str, aliases: dict[str, set[str]]) -> set[str]:
    """A path as it may be written without aliases."""
    found = {path}
    for _ in range(ROUNDS):
        more = set()
        for known in found:
            root, dot, rest = known.partition(".")
            targets = aliases.get(root) or {star[:-1] + root for star in aliases.get("*", ())}
            more |= {f"{target}{dot}{rest}" for target in targets if not root.startswith("/")}
        if more <= found or len(found) > 100:
            break
        found |= more
    short = (known for known in found if known.count(".") <= 2 * DEEPEST)
    return {known.removeprefix("/").removeprefix("builtins.") for known in short}


def matches(path: str, prefix: str) -> bool:
    """Whether a path is what the table names, or lies in it; with a dot, only what lies in it."""
    if prefix.endswith((".", "_")):
        return path.startswith(prefix)
    return path == prefix or path.startswith(f"{prefix}.")


def shown(path: str, prefix: str) -> str:
    """As much of a path as says what is meant."""
    return ".".join(path.split(".")[: prefix.count(".") + 1])


@remembered
def suspect(source: str) -> bool:
    """Whether a cell's text holds any word that may matter, so that it is worth a closer look."""
    text = source if source.isascii() else unicodedata.normalize("NFKC", source)
    return len(source) > LONGEST or TELLTALE.search(text) is not None


@remembered
def mentions(source: str) -> Mentions:
    """What a cell names and which names stand for what in it."""
    if len(source) > LONGEST:
        return Mentions(frozenset(), frozenset(), too_long=True)
    tree = parse(plain(source))
    nodes = list(ast.walk(tree)) if tree else []
    aliases = {pair for node in nodes for pair in aliases_in(node)}
    paths = {path for node in nodes for path in paths_in(node)}
    return Mentions(frozenset(aliases), frozenset(paths | {path for _, path in aliases}))


def aliases_in(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a node makes stand for something that has a path."""
    if isinstance(node, ast.Import):
        for item in node.names:
            yield (
                item.asname or item.name.split(".")[0],
                "/" + (item.name if item.asname else item.name.split(".")[0]),
            )
    elif isinstance(node, ast.ImportFrom) and node.module:
        for item in node.names:
            yield item.asname or item.name, f"/{node.module}.{item.name}"
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from pairs(target, node.value)
    elif isinstance(node, ast.NamedExpr | ast.AnnAssign) and node.value:
        yield from pairs(node.target, node.value)
    elif isinstance(node, ast.arguments):
        places = [*node.posonlyargs, *node.args]
        given = zip(places[len(places) - len(node.defaults) :], node.defaults, strict=True)
        for place, value in [*given, *zip(node.kwonlyargs, node.kw_defaults, strict=True)]:
            if value is not None and (path := path_of(value)):
                yield place.arg, path


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    """What an assignment makes of names."""
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from pairs(one, other)
    elif isinstance(target, ast.Name) and (path := path_of(value)):
        yield target.id, path


def paths_in(node: ast.AST) -> Iterator[str]:
    """The paths that a node names."""
    if isinstance(node, ast.Import):
        yield from (f"/{item.name}" for item in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield f"/{node.module}"
    elif isinstance(node, ast.FunctionDef) and node.name.startswith("__"):
        yield node.name
    elif isinstance(node, ast.Attribute):
        yield path_of(node) or node.attr
    elif isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Subscript) and (path := path_of(node)):
        yield path
    elif isinstance(node, ast.Call):
        called = path_of(node.func)
        if path := path_of(node):
            yield path
        elif called.endswith("import_module"):
            yield f"{called}()"
        if called.split(".")[-1] in GETS:
            yield from (text for text in map(text_of, node.args) if text)
    elif isinstance(node, ast.Constant):
        text = text_of(node)
        if text.startswith("torch.") or "_C" in text.split("."):
            yield f"/{text}"


def text_of(node: ast.AST) -> str:
    """A constant text that is a dotted name, or nothing."""
    text = node.value if isinstance(node, ast.Constant) else None
    return text if isinstance(text, str) and DOTTED.fullmatch(text) else ""


def path_of(node: ast.AST) -> str:
    """The dotted path that an expression stands for, through getattr, vars() and imports; or ""."""
    parts: list[str] = []
    while len(parts) < DEEPEST:
        if isinstance(node, ast.Name):
            return ".".join([node.id, *reversed(parts)])
        if isinstance(node, ast.Attribute):
            if node.attr != "__dict__":
                parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.NamedExpr):
            node = node.value
        elif isinstance(node, ast.Subscript) and (key := text_of(node.slice)):
            if is_modules(node.value):
                return ".".join([f"/{key}", *reversed(parts)])
            parts.append(key)
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            texts = [text_of(value) for value in node.args]
            if name in ("__import__", "import_module") and texts and texts[0]:
                return ".".join([f"/{texts[0]}", *reversed(parts)])
            if name == "getattr" and len(texts) > 1 and texts[1]:
                parts.append(texts[1])
            elif name != "vars" or not texts:
                return ""
            node = node.args[0]
        else:
            return ""
    return ""


def is_modules(node: ast.AST) -> bool:
    """Whether an expression is ``sys.modules``, or looks like it."""
    return (
        isinstance(node, ast.Attribute | ast.Name)
        and (node.attr if isinstance(node, ast.Attribute) else node.id) == "modules"
    )
