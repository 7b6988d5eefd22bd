"""One cell's Python: whether it is any, which names it binds, and what can be repaired in it."""

import ast
from typing import NamedTuple

from attncourse.grading.submission.magics import plain
from attncourse.grading.submission.syntax import LONGEST, bound_names, parse, remembered

INVISIBLE = (
    dict.fromkeys([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
    | dict.fromkeys([0x2028, 0x2029], "\n")
    | dict.fromkeys(
        [0x00, 0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF]
    )
)
TYPOGRAPHIC = INVISIBLE | {
    ord(character): plain
    for characters, plain in (("“”„‟″", '"'), ("‘’‚‛′", "'"), ("–—−", "-"), ("…", "..."))
    for character in characters
}


class Names(NamedTuple):
    """The names that a cell binds for the cells after it, and those that it reads, locals aside."""

    bound: frozenset[str]
    read: frozenset[str]


NOTHING = Names(frozenset(), frozenset())


@remembered
def names(source: str) -> Names | None:
    """What a cell binds and reads, its magics aside; None where it is no Python."""
    tree = parse(plain(source))
    if tree is None:
        return None
    bound = bound_names(tree)
    everything = list(ast.walk(tree))
    used = [node for node in everything if isinstance(node, ast.Name)]
    read = {node.id for node in used if isinstance(node.ctx, ast.Load)}
    local = {node.arg for node in everything if isinstance(node, ast.arg)}
    local |= {node.id for node in used if isinstance(node.ctx, ast.Store)}
    return Names(bound, frozenset(read - (local - bound)))


def is_python(source: str) -> bool:
    """Whether a cell, its magics aside, is Python as it stands."""
    return names(source) is not None


def repaired(source: str) -> str | None:
    """Python made of a text by replacing what editors, mail and web pages put into it.

    None where there is nothing to repair or where that would not help.
    """
    if len(source) > LONGEST or is_python(source):
        return None
    for table in (INVISIBLE, TYPOGRAPHIC):
        candidate = source.translate(table)
        if candidate != source and is_python(candidate):
            return candidate
    return None
