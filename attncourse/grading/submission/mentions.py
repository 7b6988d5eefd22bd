"""What a cell names, as its syntax tree says it: paths, and the names that stand for them."""

import ast
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import NamedTuple

from attncourse.grading.submission.source import plain
from attncourse.grading.submission.syntax import LONGEST, parse, remembered, too_deep
from attncourse.grading.submission.telltale import GETS, SAFE, suspect

DOTTED = re.compile(r"[A-Za-z_][\w.]{0,200}")
FILE = re.compile(r"\S{0,200}\.py")
PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.) ?(.*)$", re.MULTILINE)
DEEPEST = 12  # attributes in a row
TEXTS = 4  # texts in texts
PIECES = 100  # of one text


class Mentions(NamedTuple):
    """What one cell names: dotted paths, from a name of its own or, with "/" first, from a module.

    One that ends in "=" is given another value. ``aliases`` are pairs of a name and what it stands
    for.
    """

    aliases: frozenset[tuple[str, str]] = frozenset()
    paths: frozenset[str] = frozenset()
    too_much: str = ""  # why nobody can look through it


@remembered
def mentions(source: str) -> Mentions:
    """What a cell names and which names stand for what in it."""
    if len(source) > LONGEST:
        return Mentions(too_much=f"more than {LONGEST} characters")
    tree = parse(plain(source))
    if tree is None and too_deep(plain(source)):
        return Mentions(too_much="code nested very deeply")
    found = named_in(tree) if tree else set()
    return Mentions(
        aliases=frozenset((name, path) for name, path in found if name),
        paths=frozenset(path for _, path in found),
    )


def named_in(tree: ast.AST, depth: int = 0) -> set[tuple[str, str]]:
    """What a tree names. A text in it that is Python may be run: it is read like the rest."""
    nodes = list(ast.walk(tree))
    # model.eval() without an argument evaluates no text, whatever expression the model is.
    modes = {id(n.func) for n in nodes if isinstance(n, ast.Call) and switches_mode(n)}
    found = {pair for node in nodes if id(node) not in modes for pair in named_by(node)}
    found |= {("", f"{path}.=") for path in replaced_in(nodes)}
    if depth < TEXTS:
        inner = (code_in(text) for text in {whole_text(node) for node in nodes})
        found = found.union(*(named_in(code, depth + 1) for code in inner if code))
    return found


def code_in(text: str) -> ast.Module | None:
    """The syntax tree of a text that would do something if it was run; of a doctest's lines."""
    if not suspect(text) or len(text) > LONGEST:
        return None
    tree = parse("\n".join(PROMPT.findall(text)) or dedent(text))
    doing = (ast.Call, ast.Import, ast.ImportFrom)
    return tree if tree and any(isinstance(node, doing) for node in ast.walk(tree)) else None


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
        case ast.Attribute(attr=name, value=whole):
            yield "", path_of(node) or name
            if name == "__dict__":
                yield "", f"{path_of(whole)}.__dict__"
        case ast.Name(id=name):
            yield "", name
        case ast.Subscript() if path := path_of(node):
            yield "", path
        case ast.Call(func=function, args=given):
            called = path_of(function)
            if path := path_of(node):
                yield "", path
            if called.endswith("import_module") and not all(
                isinstance(value, ast.Constant) for value in given[:1]
            ):
                yield "", f"{called}()"
            last, texts = called.split(".")[-1], [text_of(value) for value in given]
            if last in GETS:
                yield from (("", text) for text in texts if text)
            if given and (last == "vars" or (last in GETS and not all(texts[1:2]))):
                yield "", f"{path_of(given[0])}.__dict__"
        case ast.keyword(arg=str(name), value=value) if name in SAFE:
            if not (isinstance(value, ast.Constant) and value.value is SAFE[name]):
                yield "", "/pickle"
        case ast.Constant() | ast.BinOp() | ast.JoinedStr():
            text = text_of(node)
            if text.startswith("torch.") or "_C" in text.split("."):
                yield "", f"/{text}"
            if FILE.fullmatch(whole_text(node)):
                yield "", "/.py"


def replaced_in(nodes: list[ast.AST]) -> Iterator[str]:
    """The paths of attributes that get another value than a constant, which is a setting."""
    settings = {
        id(target)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
    }
    for node in nodes:
        changed: list[str] = []
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) if id(node) not in settings:
                changed = [path_of(node)]
            case ast.Subscript(ctx=ast.Store() | ast.Del(), value=whole):
                of_modules = isinstance(whole, ast.Name | ast.Attribute) and (
                    last_name(whole) == "modules"
                )
                changed = [path_of(node) if of_modules else owner_of(whole)]
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[owner, *_]):
                changed = [path_of(owner)]
            case ast.Call(func=ast.Attribute(attr=name, value=whole), args=given):
                if name in ("__setattr__", "__delattr__"):
                    changed = [path_of(whole), *map(path_of, given[:1])]
                else:
                    changed = [owner_of(whole)]
        yield from filter(None, changed)


def owner_of(node: ast.AST) -> str:
    """What an expression is the dict of: of vars(x) and x.__dict__ it is x; or ""."""
    match node:
        case ast.Call(func=ast.Name(id="vars"), args=[owner]):
            return path_of(owner)
        case ast.Attribute(attr="__dict__", value=owner):
            return path_of(owner)
    return ""


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
    text = whole_text(node)
    return text if DOTTED.fullmatch(text) else ""


def whole_text(node: ast.AST) -> str:
    """A constant text, also one that is glued together of constants; or nothing."""
    pieces: list[str] = []  # the last first
    waiting = [node]
    while waiting and len(pieces) < PIECES:
        match waiting.pop():
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                waiting += [left, right]
            case ast.JoinedStr(values=values):
                waiting += values
            case ast.FormattedValue(value=ast.Constant(value=str() as value)):
                pieces.append(value)
            case ast.Constant(value=str() as value):
                pieces.append(value)
            case ast.Constant(value=bytes() as value):
                pieces.append(value.decode("utf-8", "replace"))
            case _:
                return ""
    return "".join(reversed(pieces))


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
