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

from attncourse.grading.submission.source import plain
from attncourse.grading.submission.syntax import LONGEST, parse, remembered


def by_name(table: dict[str, str]) -> dict[str, str]:
    """The table turned over: what is said of each of its names."""
    return {name: why for why, names in table.items() for name in names.split()}


PRIVATE = "private parts of torch"
# Whatever the assignment: what looks beyond the student's own functions.
INTERPRETER = by_name(
    {
        "memory itself": "ctypes cffi",
        "objects of others": "gc.get_",
        "frames of others": "sys._getframe sys._current_frames inspect.currentframe inspect.stack "
        "inspect.trace inspect.getouterframes",
        "what others run": "sys.settrace sys.setprofile sys.monitoring",
    }
)
# Where an exercise forbids a function: what could call it unseen, or have it at hand.
WATCH = by_name(
    {
        "operators below torch's functions": "torch.ops",
        "what torch tells of its calls": "torch.overrides",
        "torch's table of operators": "torch.library",
        "code that is compiled": "torch.jit torch.compile torch.compiler",
        "code that is traced": "torch.fx torch.export",
        "code from a file": "torch.package torch.hub",
        "code from bytes": "pickle marshal dill",
        "code from text": "eval exec compile",
        "modules by made-up names": "__import__ importlib.import_module()",
        "modules of others": "sys.modules. sys.meta_path",
        "the checks themselves": "attncourse.checks.watch attncourse.checks.outcome",
        "work outside of the call": "torch.multiprocessing threading _thread concurrent "
        "multiprocessing asyncio subprocess atexit weakref.finalize",
        "finished attention": "torch.nn.attention transformers flash_attn xformers jax flax keras "
        "tensorflow mlx",
    }
)
# Names that give themselves away on whatever object they stand.
ATTRIBUTES = by_name(
    {
        "objects of others": "__globals__ __closure__ __subclasses__",
        "functions of others": "__code__",
        "frames of others": "f_back f_globals tb_frame gi_frame",
        PRIVATE: "_C",
        "what torch tells of its calls": "__torch_function__ __torch_dispatch__",
    }
)
WATCHED_ATTRIBUTES = by_name(
    {
        "operators below torch's functions": "aten",
        "what torch tells of its calls": "handle_torch_function wrap_torch_function "
        "TorchFunctionMode TorchDispatchMode",
        "a watch put out": "DisableTorchFunction DisableTorchFunctionSubclass",
    }
)
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

    aliases: frozenset[tuple[str, str]] = frozenset()
    paths: frozenset[str] = frozenset()
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


@remembered
def suspect(source: str) -> bool:
    """Whether a cell's text holds any word that may matter, so that it is worth a closer look."""
    text = source if source.isascii() else unicodedata.normalize("NFKC", source)
    return len(source) > LONGEST or TELLTALE.search(text) is not None


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
    for path in sorted(set().union(*(resolved(path, aliases) for path in cell.paths))):
        parts = path.split(".")
        for prefix in roots.get(parts[0].removesuffix("()"), ()):
            if matches(path, prefix):
                told[".".join(parts[: prefix.count(".") + 1])] = prefixes[prefix]
        told |= {part: attributes[part] for part in parts if part in attributes}
        hidden = [n for n, part in enumerate(parts, start=1) if re.match("_(?!_)", part)]
        if watched and parts[0] == "torch" and hidden:
            told[".".join(parts[: hidden[0]])] = PRIVATE
    for what, why in told.items():
        if not any(what != other and what in other.split(".") for other in told):
            yield Reach(what, why)


def matches(path: str, prefix: str) -> bool:
    """Whether a path is what the table names, or lies in it; with a dot, only what lies in it."""
    if prefix.endswith((".", "_")):
        return path.startswith(prefix)
    return path == prefix or path.startswith(f"{prefix}.")


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


# --- what a syntax tree names -------------------------------------------------------------------


@remembered
def mentions(source: str) -> Mentions:
    """What a cell names and which names stand for what in it."""
    if len(source) > LONGEST:
        return Mentions(too_long=True)
    tree = parse(plain(source))
    nodes = list(ast.walk(tree)) if tree else []
    # model.eval() without an argument evaluates no text, whatever expression the model is.
    modes = {id(n.func) for n in nodes if isinstance(n, ast.Call) and switches_mode(n)}
    found = {pair for node in nodes if id(node) not in modes for pair in named_by(node)}
    return Mentions(
        aliases=frozenset((name, path) for name, path in found if name),
        paths=frozenset(path for _, path in found),
    )


def named_by(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The paths that a node names, each with the name that it makes stand for it, or with ""."""
    match node:
        case ast.Import(names=items):
            for item in items:
                root = item.name.split(".")[0]
                yield "", f"/{item.name}"
                yield (item.asname, f"/{item.name}") if item.asname else (root, f"/{root}")
        case ast.ImportFrom(module=str(module), names=items):
            yield "", f"/{module}"
            yield from ((item.asname or item.name, f"/{module}.{item.name}") for item in items)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from assigned(target, value)
        case ast.NamedExpr(target=target, value=value) | ast.AnnAssign(target=target, value=value):
            yield from assigned(target, value)
        case ast.arguments():  # defaults
            places = [*node.posonlyargs, *node.args]
            given = zip(places[len(places) - len(node.defaults) :], node.defaults, strict=True)
            for place, value in [*given, *zip(node.kwonlyargs, node.kw_defaults, strict=True)]:
                yield from assigned(ast.Name(place.arg), value)
        case ast.FunctionDef(name=name) if name.startswith("__"):
            yield "", name
        case ast.Attribute(attr=name):
            yield "", path_of(node) or name
        case ast.Name(id=name):
            yield "", name
        case ast.Subscript() if path := path_of(node):
            yield "", path
        case ast.Call(func=function, args=given):
            called = path_of(function)
            if path := path_of(node):
                yield "", path
            elif called.endswith("import_module"):
                yield "", f"{called}()"
            if called.split(".")[-1] in GETS:
                yield from (("", text) for text in map(text_of, given) if text)
        case ast.Constant():
            text = text_of(node)
            if text.startswith("torch.") or "_C" in text.split("."):
                yield "", f"/{text}"


def switches_mode(call: ast.Call) -> bool:
    """Whether a call is a module's ``eval()``."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "eval"
        and not (call.args or call.keywords)
    )


def assigned(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, str]]:
    """What an assignment makes of names."""
    match target, value:
        case ast.Tuple() | ast.List(), ast.Tuple() | ast.List():
            for one, other in zip(target.elts, value.elts, strict=False):
                yield from assigned(one, other)
        case ast.Name(id=name), _ if path := path_of(value):
            yield name, path


def text_of(node: ast.AST) -> str:
    """A constant text that is a dotted name, or nothing."""
    text = node.value if isinstance(node, ast.Constant) else None
    return text if isinstance(text, str) and DOTTED.fullmatch(text) else ""


def path_of(node: ast.AST | None) -> str:
    """The dotted path that an expression stands for, through getattr, vars() and imports; or ""."""
    parts: list[str] = []  # the last first
    while len(parts) < DEEPEST:
        match node:
            case ast.Name(id=name):
                return ".".join([name, *reversed(parts)])
            case ast.Attribute(value=node, attr=name):
                parts += [name] if name != "__dict__" else []
            case ast.NamedExpr(value=node):
                pass
            case ast.Subscript(value=whole, slice=key) if name := text_of(key):
                if isinstance(whole, ast.Name | ast.Attribute) and last_name(whole) == "modules":
                    return ".".join([f"/{name}", *reversed(parts)])  # of sys, or looks like it
                parts.append(name)
                node = whole
            case ast.Call(func=ast.Name() | ast.Attribute() as function, args=[first, *others]):
                text = text_of(first)
                if last_name(function) in ("__import__", "import_module") and text:
                    return ".".join([f"/{text}", *reversed(parts)])
                if last_name(function) == "getattr" and others and (name := text_of(others[0])):
                    parts.append(name)
                elif last_name(function) != "vars":
                    return ""
                node = first
            case _:
                return ""
    return ""


def last_name(node: ast.Name | ast.Attribute) -> str:
    """The last name of a path."""
    return node.id if isinstance(node, ast.Name) else node.attr
