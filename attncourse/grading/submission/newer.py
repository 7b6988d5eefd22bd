"""Syntax that is newer than this Python: which version a cell needs that is no Python here.

Each newer form is rewritten as an older one. If the cell is Python then, it needed what was
rewritten. The result only says that; it is never run, for it may mean something else.
"""

import re
import sys
from collections.abc import Iterator

from attncourse.grading.submission.source import python_alone
from attncourse.grading.submission.syntax import MAX_PARSED_CHARS, parse_or_none

Version = tuple[int, int]
BRACKETS = r"\[(?:[^][]|\[(?:[^][]|\[[^][]*+\])*+\])*+\]"
# def f[T](x), class A[T] and type L[T] = …, of Python 3.12, and of 3.13 with defaults.
PARAMETERS = re.compile(rf"\b(?P<head>(?:def|class|type)\s+\w+)\s*(?P<own>{BRACKETS})")
ALIAS = re.compile(r"^([ \t]*)type\s+(\w+)\s*=", re.M)  # type Matrix = Tensor
EXCEPT = re.compile(r"^([ \t]*except\*?\s+)([\w.]+(?:\s*,\s*[\w.]+)+)\s*:", re.M)  # except A, B:
OLDER_FORMS = ((ALIAS, r"\1\2 =", (3, 12)), (EXCEPT, r"\1(\2):", (3, 14)))
# An f-string or a t-string as far as its braces, or what may only look as if there were one.
TEXT = re.compile(
    r"(?<!\w)(?P<prefix>[fFtT][rR]?|[rR][fFtT])(?P<quote>'''|\"\"\"|'|\")|#.*"
    r"|'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\""
)


def version_needed(source: str) -> str:
    """Return the Python version that a cell needs, as "3.12", if this one is older; else ""."""
    source = python_alone(source)
    if len(source) > MAX_PARSED_CHARS or parse_or_none(source):
        return ""
    versions: list[Version] = []
    for older, used in rewritten_for_older(source):
        versions += used
        newest = max(versions, default=(0, 0))
        if newest > sys.version_info[:2] and parse_or_none(older):
            return ".".join(map(str, newest))
    return ""


def rewritten_for_older(source: str) -> Iterator[tuple[str, list[Version]]]:
    """Yield the source with one more newer form rewritten each time, and that form's versions."""
    parameter_lists = [parameters["own"] for parameters in PARAMETERS.finditer(source)]
    used = [
        (3, 13) if re.search(r"\w\s*=(?!=)", parameters_text) else (3, 12)
        for parameters_text in parameter_lists
    ]
    source = PARAMETERS.sub(r"\g<head>", source)
    yield source, used
    for pattern, older, version in OLDER_FORMS:
        source, count = pattern.subn(older, source)
        yield source, ([version] if count else [])
    yield without_templates(source)


def without_templates(source: str) -> tuple[str, list[Version]]:
    """Return the source with f-strings and t-strings replaced, and the versions that had them.

    f-strings may have quotes, line ends or backslashes in braces since 3.12, t-strings are of 3.14.
    A string ends at the first of its quotes that stands outside of all braces; where one does not
    end, nothing is replaced.
    """
    pieces, used, position = [], [], 0
    while (match := TEXT.search(source, position)) is not None:
        pieces.append(source[position : match.start()])
        position = match.end()
        if not match["prefix"]:
            pieces.append(match[0])
            continue
        marks, depth = re.compile(rf"{{{{|}}}}|[{{}}]|\\[\s\S]|{match['quote']}"), 0
        for token in marks.finditer(source, position):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if token[0] == match["quote"] and not depth:
                break
        else:
            return source, []
        pieces.append("''")
        used.append((3, 14) if "t" in match["prefix"].lower() else (3, 12))
        position = token.end()
    return "".join([*pieces, source[position:]]), used
