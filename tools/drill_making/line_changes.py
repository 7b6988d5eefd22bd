"""Right code with one line changed: every change of code that the checks know, turned round.

The checks look for the change that mends a wrong answer. Here the same changes are made in a right
one, with more that only a right answer offers: an operator that is there can be forgotten, and what
a mistake of the bank does in a word can be put in the place of what is right.
"""

from __future__ import annotations

import ast
import copy
import inspect
import io
import itertools
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from attncourse.checks import Exercise
from attncourse.checks.exercise import parts_of
from attncourse.checks.explaining.changes import changes, like, method_name, names_in, nodes, put
from drill_making.by_hand import wrong_lines_by_hand

LAYOUT_TOKENS = (
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
ROUND_NUMBER = re.compile(r"\b1(0{5,})\.0\b")
NEGATIVE_POWER = re.compile(r"\*\* \((-[\w.]+)\)")
SILLY_SPELLING = re.compile(
    r"--|\+ -|- -|~~|~\(~|\.mT\.mT|\.T\.T|not not|\+ 1 \+ 1|- 1 - 1|\+ 1 - 1|- 1 \+ 1|\bif True\b"
    r"|\bpass\b|\* 1\b|\(\(\)|\]\[\.\.\.,|\.mT\[|, 0\]\.mT|\*\* 0\.5 \*\* |- False|1 - self"
    r"|\)\(|\bself, self\b|\.T\.mT|\.mT\.T|\+ 1\[|\bFalse -|keepdim=True, keepdim|\*\* 2 \*\* "
)
LIBRARIES = {"torch", "np", "math", "F"}
RANK_BY_HAND = 0  # the rank of a line that was written by hand
RANK_OF_OPTION = 3  # the rank of a wrong option in the place of an expression
MAX_COMBINATIONS = 12  # of pieces of the code that a wrong option is given


@dataclass(frozen=True)
class LineChange:
    """A right answer's text with one line changed: the number of the line, and what stands there.

    ``rank`` is low for changes that look as if a person had made them.
    """

    line: int
    wrong: str
    right: str
    rank: int

    def applied_to(self, lines: list[str]) -> list[str]:
        """Return lines of code with the wrong line in its place."""
        return [*lines[: self.line], self.wrong, *lines[self.line + 1 :]]


RANKS_BY_KIND = (
    ("in several places", 9),
    ("something missing", 6),
    ("too much", 2),
    ("truth value", 1),
    ("wrong name", 2),
    ("wrong number", 2),
    ("operator", 2),
    ("function", 1),
    ("way round", 2),
    ("default", 2),
    ("brackets", 2),
)


def line_changes(text: str, exercise: Exercise) -> Iterator[LineChange]:
    """Yield every change of one line of a right answer, each text once, likely ones first."""
    seen: dict[tuple[int, str], LineChange] = {}
    for made in all_line_changes(text, exercise):
        key = made.line, made.wrong
        if key not in seen or made.rank < seen[key].rank:
            seen[key] = made
    yield from sorted(seen.values(), key=lambda made: (made.rank, made.line, made.wrong))


def all_line_changes(text: str, exercise: Exercise) -> Iterator[LineChange]:
    """Yield every change of one line: those that the checks know, then the others."""
    definition: Any = ast.parse(text).body[0]
    spelling = Spelling(text, definition)
    if not spelling.is_known:
        return
    for change in known_changes(definition):
        with change.applied():
            if made := spelling.change_of(definition, rank_of(change.kind)):
                yield made
    for rank, apply in more_changes(definition, exercise):
        undo = apply()
        try:
            made = spelling.change_of(definition, rank)
        finally:
            undo()
        if made:
            yield made


def changes_by_hand(text: str, exercise: Exercise) -> Iterator[LineChange]:
    """Yield the wrong lines that were written by hand for lines of this answer."""
    for right, wrong in wrong_lines_by_hand(exercise.stem).get(exercise.target, ()):
        for row, line in enumerate(text.splitlines()):
            if line.strip() == right:
                indent = line[: len(line) - len(line.lstrip())]
                yield LineChange(row, indent + wrong, line, RANK_BY_HAND)


def other_lines_changed(text: str, line: int) -> Iterator[str]:
    """Yield the code with a line other than this one changed, in every way the checks know."""
    definition: Any = ast.parse(text).body[0]
    for change in known_changes(definition):
        if change.node.lineno - 1 == line:
            continue
        with change.applied():
            try:
                yield ast.unparse(definition)
            except (AttributeError, TypeError, ValueError, RecursionError):
                continue
    for node, apply in reader_changes(definition):
        if node.lineno - 1 == line:
            continue
        undo = apply()
        try:
            yield ast.unparse(definition)
        finally:
            undo()


def reader_changes(
    definition: ast.AST,
) -> Iterator[tuple[ast.expr, Callable[[], Callable[[], None]]]]:
    """Yield further changes by which a reader could mend a drill, which the checks do not try.

    A method behind what is returned, or two arguments of ``zip`` exchanged.
    """
    for parent, field, node in list(nodes(definition)):
        is_returned = isinstance(parent, ast.Return) and not isinstance(node, ast.Tuple)
        is_part = isinstance(parent, ast.Tuple) and isinstance(parent.ctx, ast.Load)
        if isinstance(node, ast.expr) and (is_returned or is_part):
            for name in ("bool", "tril"):
                method = ast.Attribute(node, name, ast.Load())
                yield node, put(parent, field, node, ast.Call(method, [], []))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "zip":
            for args in exchanged_pairs(node.args):
                yield node.args[0], put(parent, field, node, like(node, args=args))


def exchanged_pairs(parts: Sequence[ast.expr]) -> Iterator[list[ast.expr]]:
    """Yield the same parts with two of them exchanged."""
    for i, j in itertools.combinations(range(len(parts)), 2):
        reordered = [*parts]
        reordered[i], reordered[j] = reordered[j], reordered[i]
        yield reordered


def known_changes(definition: ast.FunctionDef | ast.ClassDef) -> Iterator:
    """Yield the changes that the checks know, without those that code of an odd form refuses."""
    known = changes(definition)
    while True:
        try:
            yield next(known)
        except StopIteration:
            return
        except (AttributeError, TypeError):
            return


def rank_of(kind: str) -> int:
    """Return how soon a kind of change is tried: 1 first."""
    return next((rank for words, rank in RANKS_BY_KIND if words in kind), 4)


# --- a change of the tree as a change of the text -------------------------------------------------


class Spelling:
    """A definition's text beside its tree: where each token of the tree stands in the text."""

    def __init__(self, text: str, definition: ast.AST):
        self.lines = text.splitlines()
        self.tokens = code_tokens(text)
        self.tree_layout = code_tokens(code_of(definition))
        self.tree_tokens = comparable_tokens(self.tree_layout)
        self.text_tokens = align_tokens(comparable_tokens(self.tokens), self.tree_tokens)
        self.is_known = len(self.text_tokens) == len(self.tree_tokens)

    def change_of(self, definition: ast.AST, rank: int) -> LineChange | None:
        """Return the change of one line that the tree has now; None for no line, or several."""
        try:
            text = code_of(definition)
            after_tokens = code_tokens(text)
        except (tokenize.TokenError, SyntaxError, ValueError, AttributeError, RecursionError):
            return None
        after = comparable_tokens(after_tokens)
        first, last = changed_part([t for t, _ in self.tree_tokens], [t for t, _ in after])
        if first is None:
            return None
        old = [token for _, token in self.text_tokens[first : len(self.text_tokens) - last]]
        new = [token for _, token in after[first : len(after) - last]]
        if not old or not new:  # something is put between two tokens, or taken out
            first, last = max(first - 1, 0), max(last - 1, 0) if not first else last
            old = [token for _, token in self.text_tokens[first : len(self.text_tokens) - last]]
            new = [token for _, token in after[first : len(after) - last]]
        if not old or not new or old[0].start[0] != old[-1].end[0]:
            return None
        if new[0].start[0] != new[-1].end[0]:
            return None
        row = old[0].start[0] - 1
        piece = text.splitlines()[new[0].start[0] - 1][new[0].start[1] : new[-1].end[1]]
        line = self.lines[row]
        before, behind = line[: old[0].start[1]], line[old[-1].end[1] :]
        tree_line = text.splitlines()[new[0].start[0] - 1]
        if tree_line[: new[0].start[1]].endswith(" ") and not before.endswith(" "):
            before += " "
        if tree_line[new[-1].end[1] :].startswith(" ") and behind and not behind.startswith(" "):
            behind = f" {behind}"
        elif new[-1].string in ("-", "~") and not tree_line[new[-1].end[1] :].startswith(" "):
            behind = behind.lstrip()  # a sign stands beside what it is of
        wrong = before + piece + behind
        if wrong == line or (SILLY_SPELLING.search(wrong) and not SILLY_SPELLING.search(line)):
            return None
        changed = [*self.lines[:row], wrong, *self.lines[row + 1 :]]
        try:
            now = ast.unparse(ast.parse("\n".join(changed)).body[0])
        except SyntaxError:
            return None
        same = ast.dump(ast.parse(now)) == ast.dump(ast.parse(ast.unparse(definition)))
        return LineChange(row, wrong, line, rank) if same and len(wrong) <= 88 else None


def code_of(definition: ast.AST) -> str:
    """Return a definition's code, powers and round numbers as people write them."""
    text = NEGATIVE_POWER.sub(r"** \1", ast.unparse(definition)).replace("'", '"')
    return ROUND_NUMBER.sub(lambda found: f"1e{len(found[1])}", text)


def code_tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of a text without line ends, indents and comments."""
    tokens = tokenize.generate_tokens(io.StringIO(text + "\n").readline)
    return [t for t in tokens if t.type not in LAYOUT_TOKENS]


def comparable_tokens(tokens: list[tokenize.TokenInfo]) -> list[tuple[str, tokenize.TokenInfo]]:
    """Return the tokens with one spelling for each, without commas before closing brackets."""
    pairs = []
    for token, following in itertools.zip_longest(tokens, tokens[1:]):
        if token.string == "," and following and following.string in ")]}":
            continue
        pairs.append((spelling_of(token), token))
    return pairs


def spelling_of(token: tokenize.TokenInfo) -> str:
    """Return one spelling for every way to write a number, and for both quotation marks."""
    spelled = token.string
    if token.type == tokenize.NUMBER and re.search(r"[.eE]", spelled):
        with suppress(ValueError):
            spelled = repr(float(spelled))
    return spelled.replace("'", '"')


def align_tokens(tokens: list, tree_tokens: list) -> list:
    """Return a text's tokens without brackets that the tree lacks; fewer where they differ."""
    aligned_tokens: list = []
    for token in tokens:
        if (
            len(aligned_tokens) < len(tree_tokens)
            and token[0] == tree_tokens[len(aligned_tokens)][0]
        ):
            aligned_tokens.append(token)
        elif token[0] not in ("(", ")"):
            return []
    return aligned_tokens


def changed_part(before: list[str], after: list[str]) -> tuple[int | None, int]:
    """Return how many tokens are the same at the beginning and the end; None where all are."""
    if before == after:
        return None, 0
    first = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
        min(len(before), len(after)),
    )
    most = min(len(before), len(after)) - first
    last = 0
    while last < most and before[-1 - last] == after[-1 - last]:
        last += 1
    return first, last


# --- changes that only a right answer offers ------------------------------------------------------

RankedChanges = Iterator[tuple[int, Callable[[], Callable[[], None]]]]


def more_changes(definition: ast.FunctionDef | ast.ClassDef, exercise: Exercise) -> RankedChanges:
    """Yield what is easily forgotten, and the wrong options of the exercise."""
    names = names_in(definition)
    for parent, field, node in list(nodes(definition)):
        for rank, new in forgettings(parent, node):
            yield rank, put(parent, field, node, new)
    yield from with_wrong_options(definition, exercise, names)


def forgettings(parent: ast.AST, node: ast.AST) -> Iterator[tuple[int, ast.AST]]:
    """Yield what stands in a node's place when a part is forgotten, or confused with another."""
    if is_infinite(node):
        for number in (-1e4, -100.0, 0.0, -1.0):
            yield 1, ast.Constant(number)
        yield 2, node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield 1, like(node, op=ast.Mult())
        for side in ("left", "right"):
            turned = ast.Attribute(getattr(node, side), "mT", ast.Load())
            yield 2, like(node, **{side: turned})
    if isinstance(node, ast.Attribute) and node.attr == "mT":
        yield 1, like(node, attr="T")
    if isinstance(node, ast.Attribute) and node.attr == "T":
        yield 2, node.value
    if isinstance(node, ast.Call):
        yield from forgotten_in_call(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult | ast.Div):
        inner = node.left
        if isinstance(inner, ast.Call) and inner.args:  # f(a) + b and f(a + b)
            moved = like(node, left=inner.args[0])
            yield 2, like(inner, args=[moved, *inner.args[1:]])
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if (
            isinstance(target, ast.Name)
            and isinstance(value, ast.BinOp)
            and isinstance(value.left, ast.Name)
            and value.left.id == target.id
        ):
            yield 1, ast.AugAssign(ast.Name(target.id, ast.Store()), value.op, value.right)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield 2, ast.Assign([ast.Name(node.target.id, ast.Store())], node.value)
    if isinstance(node, ast.Slice):
        yield from other_slices(node)
    if isinstance(parent, ast.Subscript) and isinstance(node, ast.Tuple):
        for i, j in itertools.combinations(range(len(node.elts)), 2):
            elts = [*node.elts]
            elts[i], elts[j] = elts[j], elts[i]
            yield 1, like(node, elts=elts)
    if isinstance(node, ast.IfExp):
        yield 1, node.body
        yield 1, node.orelse
        yield 2, like(node, body=node.orelse, orelse=node.body)


def is_infinite(node: ast.AST) -> bool:
    """True for a negative infinity, or a large negative number in its place."""
    if not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)):
        return False
    inner = node.operand
    if isinstance(inner, ast.Attribute):
        return inner.attr == "inf"
    return isinstance(inner, ast.Constant) and isinstance(inner.value, float) and inner.value > 1e8


def forgotten_in_call(node: ast.Call) -> Iterator[tuple[int, ast.AST]]:
    """Yield what stands in the place of a call when a part of it is forgotten."""
    name = method_name(node) or getattr(node.func, "id", "")
    if isinstance(node.func, ast.Attribute) and name in ("clone", "copy", "detach"):
        yield 1, node.func.value
    if name in ("sqrt", "rsqrt"):
        inner = node.args[0] if node.args else first_argument(node)
        yield 1, inner
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):  # √(a + b), √a + b
            alone = like(node, args=[inner.left]) if node.args else None
            if alone:
                yield 1, ast.BinOp(alone, ast.Add(), inner.right)
    function = node.func
    if name == "masked_fill" and isinstance(function, ast.Attribute) and len(node.args) == 2:
        mask = node.args[0]
        opposite = (
            mask.operand if isinstance(mask, ast.UnaryOp) else ast.UnaryOp(ast.Invert(), mask)
        )
        yield 1, like(node, args=[opposite, node.args[1]])
        allowed = mask.operand if isinstance(mask, ast.UnaryOp) else mask
        yield 1, ast.BinOp(function.value, ast.Mult(), allowed)
        yield 2, ast.BinOp(function.value, ast.Add(), allowed)
    if name == "where" and len(node.args) == 3:
        yield 1, like(node, args=[node.args[0], node.args[2], node.args[1]])
        for number in (0.0, -1e4, -100.0):
            yield 2, like(node, args=[*node.args[:2], ast.Constant(number)])
    if name == "softmax" and (node.args or isinstance(node.func, ast.Attribute)):
        scores = node.args[0] if is_library(node.func) else first_argument(node)
        yield 2, ast.Call(ast.Attribute(scores, "exp", ast.Load()), [], [])
        yield 2, ast.Call(ast.Attribute(scores, "sigmoid", ast.Load()), [], [])
    if name == "range" and len(node.args) == 1:
        stop = node.args[0]
        yield 1, like(node, args=[ast.Constant(1), stop])
        yield 1, like(node, args=[ast.BinOp(stop, ast.Sub(), ast.Constant(1))])
    if name in ("reshape", "view", "permute") and len(node.args) > 2:
        for i, j in itertools.combinations(range(len(node.args)), 2):
            args = [*node.args]
            args[i], args[j] = args[j], args[i]
            yield 2, like(node, args=args)
    for place, argument in enumerate(node.args):
        if isinstance(argument, ast.BinOp) and isinstance(
            argument.op, ast.Mult | ast.Div | ast.Add
        ):
            args = [*node.args]
            args[place] = argument.left
            yield 3, ast.BinOp(like(node, args=args), argument.op, argument.right)


def first_argument(node: ast.Call) -> ast.expr:
    """Return the first argument of a call, or the value whose method is called."""
    return node.func.value if isinstance(node.func, ast.Attribute) else node.args[0]


def is_library(function: ast.AST) -> bool:
    """True if a function is called as a library's: torch.…, F.…, np.…, math.…."""
    inner = getattr(function, "value", None)
    return isinstance(inner, ast.Name) and inner.id in ("torch", "F", "np", "math")


def other_slices(node: ast.Slice) -> Iterator[tuple[int, ast.AST]]:
    """Yield slices with a bound left out, or one entry longer or shorter."""
    for bound in ("lower", "upper"):
        present = getattr(node, bound)
        if present is None:
            continue
        yield 1, like(node, **{bound: None})
        if not isinstance(present, ast.Constant | ast.UnaryOp):
            for op in (ast.Add(), ast.Sub()):
                yield 1, like(node, **{bound: ast.BinOp(present, op, ast.Constant(1))})
    if node.lower and node.upper is None:
        yield 1, ast.Slice(None, node.lower)
    if node.upper and node.lower is None:
        yield 1, ast.Slice(node.upper, None)


# --- the banks' wrong options ---------------------------------------------------------------------


def with_wrong_options(
    definition: ast.FunctionDef | ast.ClassDef, exercise: Exercise, names: list[str]
) -> RankedChanges:
    """Yield the definition with a wrong option's expression in the place of one of its own.

    Pieces of the code stand for the option's arguments.
    """
    places = [p for p in nodes(definition) if may_be_replaced(p[0], p[2])]
    for option in wrong_options(exercise):
        arguments = [a.arg for a in option.args.args]
        for parent, field, node in places:
            pieces = pieces_of(node)
            choices = [choices_for(name, pieces, names) for name in arguments]
            combined = itertools.islice(itertools.product(*choices), MAX_COMBINATIONS)
            inside = {ast.dump(piece) for piece in pieces}
            for chosen in combined:
                dumps = [ast.dump(c) for c in chosen]
                if len(set(dumps)) < len(dumps) or not inside & set(dumps):
                    continue
                filled = filled_in(option.body, dict(zip(arguments, chosen, strict=True)))
                yield RANK_OF_OPTION, put(parent, field, node, filled)


def wrong_options(exercise: Exercise) -> list[ast.Lambda]:
    """The wrong options of an exercise's mistakes that are one expression, each once."""
    lambdas: dict[str, ast.Lambda] = {}
    for mistake in exercise.mistakes:
        for wrong in (mistake.wrong, *mistake.also):
            parts = parts_of(wrong)
            options = list(parts.chosen.values()) if parts else [wrong]
            for option in options:
                node = lambda_of(option) if callable(option) else None
                if node and is_plain_option(node):
                    lambdas.setdefault(ast.dump(node.body), node)
    return list(lambdas.values())


def is_plain_option(node: ast.Lambda) -> bool:
    """True if an option is an expression of its arguments and the libraries, without conditions."""
    arguments = {a.arg for a in node.args.args}
    read = {n.id for n in ast.walk(node.body) if isinstance(n, ast.Name)}
    if not 0 < len(arguments) < 4 or not read <= arguments | LIBRARIES:
        return False
    return not any(isinstance(n, ast.IfExp | ast.Lambda) for n in ast.walk(node.body))


def lambda_of(option: Callable) -> ast.Lambda | None:
    """Return the syntax tree of an option that is a lambda; None for anything else."""
    if getattr(option, "__name__", "") != "<lambda>":
        return None
    try:
        text = textwrap.dedent(inspect.getsource(option))
        lines = text.splitlines()
    except (OSError, TypeError, tokenize.TokenError, IndentationError):
        return None
    for cut in range(min(4, len(lines)) + 1):
        tree = parsed_in_some_way("\n".join(lines[: len(lines) - cut] or lines))
        if tree is not None:
            lambdas = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda)]
            matching = [n for n in lambdas if compiled(n) == option.__code__.co_code]
            return matching[0] if len(matching) >= 1 else None
    return None


def compiled(node: ast.Lambda) -> bytes | None:
    """Return the bytecode of a lambda, by which equal options are known; None without."""
    try:
        return eval(compile(ast.Expression(node), "<option>", "eval")).__code__.co_code
    except Exception:
        return None


def parsed_in_some_way(text: str) -> ast.AST | None:
    """Return the tree of code that was cut out of a call; None where it cannot be parsed."""
    bare = text.strip().rstrip(",")
    for shape in (
        "{}",
        "f({})",
        "f({}",
        "x{}",
        "(x{}",
        "{{{}}}",
        "f{}",
        "(f{})",
        "x = ({}",
        "f(({}",
    ):
        try:
            return ast.parse(shape.format(bare))
        except SyntaxError:
            continue
    while bare.endswith(")"):
        bare = bare[:-1].rstrip().rstrip(",")
        for shape in ("{}", "f({})", "x{}", "{{{}}}", "(x{})"):
            try:
                return ast.parse(shape.format(bare))
            except SyntaxError:
                continue
    return None


def may_be_replaced(parent: ast.AST, node: ast.AST) -> bool:
    """True for an expression that computes something, in a place where it is read."""
    if not isinstance(node, ast.Call | ast.BinOp) or isinstance(parent, ast.Expr | ast.If):
        return False
    return not (isinstance(parent, ast.Call) and parent.func is node)


def pieces_of(node: ast.AST) -> list[ast.expr]:
    """Return the expressions inside a node, the largest first, without functions and modules."""
    pieces: dict[str, ast.expr] = {}
    functions = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    modules = {id(n.value) for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    for piece in ast.walk(node):
        if piece is node or not isinstance(piece, ast.expr) or id(piece) in functions:
            continue
        if (
            isinstance(piece, ast.Name)
            and id(piece) in modules
            and piece.id in ("torch", "np", "F", "math")
        ):
            continue
        if isinstance(piece, ast.Name | ast.Call | ast.BinOp | ast.Attribute | ast.Subscript):
            pieces.setdefault(ast.dump(piece), piece)
    return list(pieces.values())


def choices_for(name: str, pieces: list[ast.expr], names: list[str]) -> list[ast.expr]:
    """Return what an option's argument may be: its own name, a piece, names that begin alike."""
    named = [ast.Name(name, ast.Load())] if name in names else []
    if name == "self":
        return [ast.Name("self", ast.Load())]
    alike = [n for n in names if len(name) > 1 and n != name and n[:1] == name[:1]]
    short = [n for n in names if len(name) == 1 and n[:1] == name]
    rest = [ast.Name(n, ast.Load()) for n in [*short, *alike]]
    return list({ast.dump(c): c for c in [*named, *pieces[:4], *rest]}.values())[:6]


def filled_in(body: ast.expr, arguments: dict[str, ast.expr]) -> ast.expr:
    """Return an expression with other expressions in the place of its names."""

    class Filled(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(arguments.get(node.id, node))

    return Filled().visit(copy.deepcopy(body))


# --- what nobody would write ----------------------------------------------------------------------


def leaves_unused(change: LineChange, lines: list[str]) -> bool:
    """True if a wrong option in the place of an expression leaves a value unread that was computed.

    A reader would find the line by that. What somebody forgets may leave one, and is no option.
    """
    if change.rank != RANK_OF_OPTION:
        return False
    before, after = (ast.parse("\n".join(text)) for text in (lines, change.applied_to(lines)))
    stored = {n.id for n in names_in_tree(before) if isinstance(n.ctx, ast.Store)}
    return bool(stored & (names_loaded(before) - names_loaded(after)))


def names_loaded(tree: ast.AST) -> set[str]:
    """Return the names whose values are read; setting entries of an array is no reading."""
    places = [n.value for n in ast.walk(tree) if isinstance(n, ast.Subscript) and is_set(n)]
    return {n.id for n in names_in_tree(tree) if isinstance(n.ctx, ast.Load) and n not in places}


def is_set(node: ast.Subscript) -> bool:
    """True if an entry is assigned to."""
    return isinstance(node.ctx, ast.Store)


def names_in_tree(tree: ast.AST) -> list[ast.Name]:
    """Return every name that is read or bound in a tree."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Name)]


def is_odd(wrong: str, right: str) -> bool:
    """True for a line that gives itself away because nobody would write it so.

    It does nothing with a value, assigns a name to itself, or asks for a constant.
    """
    wrong_statement, right_statement = statement_in(wrong), statement_in(right)
    if wrong_statement is None or right_statement is None or is_part_of_statement(right_statement):
        return bool(ODD_LINE.search(wrong)) and not ODD_LINE.search(right)
    if isinstance(wrong_statement, ast.Expr):
        names = [
            called_name(s.value)
            for s in (wrong_statement, right_statement)
            if isinstance(s, ast.Expr)
        ]
        return len(names) < 2 or not names[0] or names[0] != names[1]
    if isinstance(wrong_statement, ast.Assign) and isinstance(wrong_statement.value, ast.Name):
        return ast.unparse(wrong_statement.targets[0]) == ast.unparse(wrong_statement.value)
    if isinstance(wrong_statement, ast.If | ast.While) and isinstance(
        wrong_statement.test, ast.Constant
    ):
        return True
    return bool(ODD_LINE.search(wrong)) and not ODD_LINE.search(right)


def is_part_of_statement(right: ast.stmt) -> bool:
    """True if a right line is an expression alone, which does nothing unless it is an argument.

    Of a call by itself, such as ``parts.append(x)``, it cannot be told.
    """
    return isinstance(right, ast.Expr) and not isinstance(right.value, ast.Call)


ODD_LINE = re.compile(
    r"[/*] 1\b(?![.\d])|\bsqrt\(1\)|tensor\(1\)|\w\(.*\) \+ 1\b|~ |\b1 - \w+\[|\*\* -0\.25|^\s*1 /"
    r"|- 1\b.*- 1\b.*- 1\b|where\(1 - |\bnot [\w.()]+ [+-] 1\b|^\W*$|(?<![\w\])])\( ?\w+ ?\)"
)


def does_nothing(wrong: str, right: str) -> bool:
    """True if wrong code has an operation without effect that the right code has not.

    A 0 is added, a value is compared with itself or taken from itself, an axis changes places with
    itself, a slice takes all there is, a list is made of each entry as it is.
    """
    before, after = ({*idle_operations(ast.parse(code))} for code in (right, wrong))
    return not after <= before


def idle_operations(tree: ast.AST) -> Iterator[str]:
    """Yield the operations in code that have no effect, or one result for every value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            two = [node.left, node.right]
            is_sum = isinstance(node.op, ast.Add | ast.Sub)
            is_idle = is_sum and any(isinstance(n, ast.Constant) and n.value == 0 for n in two)
            if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod):
                is_idle = is_idle or ast.dump(two[0]) == ast.dump(two[1])
        elif isinstance(node, ast.Compare):
            compared = [ast.dump(n) for n in (node.left, *node.comparators)]
            is_idle = any(first == second for first, second in itertools.pairwise(compared))
        elif isinstance(node, ast.Call) and method_name(node) in ("swapaxes", "transpose"):
            axes = [ast.dump(n) for n in node.args[-2:]]
            is_idle = len(axes) == 2 and axes[0] == axes[1]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            is_idle = all(is_all_of_axis(place) for place in places)
        elif isinstance(node, ast.ListComp | ast.GeneratorExp):
            loop = node.generators[0]
            is_alone = len(node.generators) == 1 and not loop.ifs
            is_idle = is_alone and ast.unparse(node.elt) == ast.unparse(loop.target)
        else:
            continue
        if is_idle:
            yield ast.unparse(node)


def is_all_of_axis(place: ast.expr) -> bool:
    """True for an index that takes all of an axis, or of several: ``:``, ``0:`` or ``...``."""
    if isinstance(place, ast.Constant):
        return place.value is ...
    if not isinstance(place, ast.Slice) or place.upper or place.step:
        return False
    return place.lower is None or getattr(place.lower, "value", None) == 0


def statement_in(line: str) -> ast.stmt | None:
    """Return the statement that a line is, or begins; None for a part of one."""
    bare = line.strip()
    for text in (bare, f"{bare}\n pass", f"def f():\n {bare}"):
        try:
            statement = ast.parse(text).body[0]
        except SyntaxError:
            continue
        return (
            statement.body[0]
            if isinstance(statement, ast.FunctionDef) and text != bare
            else statement
        )
    return None


def called_name(node: ast.AST) -> str:
    """Return the name of the function that a node calls; empty where it calls none."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""
