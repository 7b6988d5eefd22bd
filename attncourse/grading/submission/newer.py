"""Syntax that is newer than this Python: which version a cell that is no Python here needs.

Each form is rewritten as an older one. If the cell is Python then, it needed what was rewritten.
The result only says that; it is never run, for it may mean something else.
"""

import re
import sys
from collections.abc import Iterator

from attncourse.grading.submission.source import python_alone
from attncourse.grading.submission.syntax import LONGEST, parse

Version = tuple[int, int]
PREFIX = re.compile(r"(?<!\w)(?:[fFtT][rR]?|[rR][fFtT])(?=['\"])")
QUOTE = re.compile(r"'''|\"\"\"|'|\"")
PARAMETERS = re.compile(r"\b(?P<head>(?:def|class|type)\s+\w+)\s*\[")
ALIAS = re.compile(r"^(?P<indent>\s*)type\s+(?P<name>\w+)\s*=", re.M)
EXCEPT = re.compile(r"^(?P<head>\s*except\*?\s+)(?P<names>[\w.]+(?:\s*,\s*[\w.]+)+)\s*:", re.M)
DEEPEST = 20  # texts in texts


def needed(source: str) -> str:
    """The Python version that a cell needs, as "3.12", where this one is older; or nothing."""
    source = python_alone(source)
    if len(source) > LONGEST or parse(source):
        return ""
    versions: list[Version] = []
    for rewrite in (without_parameters, without_aliases, without_commas, without_templates):
        source, used = rewrite(source)
        versions += used
        newest = max(versions, default=(0, 0))
        if newest > sys.version_info[:2] and parse(source):
            return ".".join(map(str, newest))
    return ""


def without_parameters(source: str) -> tuple[str, list[Version]]:
    """``def f[T](x)``, ``class A[T]`` and ``type L[T] = …`` (3.12), with defaults (3.13)."""
    used: list[Version] = []
    at = 0
    while found := PARAMETERS.search(source, at):
        at = found.end("head")
        end = closing(source, found.end() - 1)
        if end is None:
            break
        used.append((3, 13) if re.search(r"\w\s*=(?!=)", source[at:end]) else (3, 12))
        source = source[:at] + source[end:]
    return source, used


def closing(source: str, at: int) -> int | None:
    """Where the brackets that open at a place are closed again."""
    depth = 0
    for place in range(at, len(source)):
        depth += {"[": 1, "]": -1}.get(source[place], 0)
        if not depth:
            return place + 1
    return None


def without_aliases(source: str) -> tuple[str, list[Version]]:
    """``type Matrix = Tensor`` (3.12)."""
    text, count = ALIAS.subn(r"\g<indent>\g<name> =", source)
    return text, [(3, 12)] * bool(count)


def without_commas(source: str) -> tuple[str, list[Version]]:
    """``except A, B:`` (3.14)."""
    text, count = EXCEPT.subn(r"\g<head>(\g<names>):", source)
    return text, [(3, 14)] * bool(count)


def without_templates(source: str) -> tuple[str, list[Version]]:
    """f-strings with quotes, line ends or backslashes inside of their braces (3.12); t"" (3.14)."""
    pieces, used, at = [], [], 0
    for start, end, prefix in templates(source):
        pieces += [source[at:start], "''"]
        used.append((3, 14) if "t" in prefix.lower() else (3, 12))
        at = end
    return "".join([*pieces, source[at:]]), used


def templates(source: str) -> Iterator[tuple[int, int, str]]:
    """The outermost f-strings and t-strings: where each begins and ends, and its prefix."""
    at = 0
    while at < len(source):
        prefix = PREFIX.match(source, at)
        if prefix or QUOTE.match(source, at):
            end = after_text(source, prefix.end() if prefix else at, bool(prefix))
            if end is None:
                return
            if prefix:
                yield at, end, prefix[0]
            at = end
        elif source[at] == "#":
            at = (source.find("\n", at) + 1) or len(source)
        else:
            at += 1


def after_text(source: str, at: int, braces: bool, depth: int = 0) -> int | None:
    """The place after a text that begins with its quotes at a place."""
    opened = QUOTE.match(source, at)
    if opened is None or depth > DEEPEST:
        return None
    at, inside = opened.end(), 0
    while at < len(source):
        if inside and (found := PREFIX.match(source, at) or QUOTE.match(source, at)):
            prefixed = found[0][-1] not in "'\""
            after = after_text(source, found.end() if prefixed else at, prefixed, depth + 1)
            if after is None:
                return None
            at = after
            continue
        if not inside and source.startswith(opened[0], at):
            return at + len(opened[0])
        doubled = braces and source[at : at + 2] in ("{{", "}}")
        if not inside and (doubled or source[at] == "\\"):
            at += 2
        else:
            inside += braces * {"{": 1, "}": -1 if inside else 0}.get(source[at], 0)
            at += 1
    return None
