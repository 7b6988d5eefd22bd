"""The spaces of a formatter in code whose lines stay as they are.

Right answers come out of a formatter. A changed line with other spaces, such as ``**0.5`` beside
``** 2``, would be found by them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from attncourse.practice.drills import Drill
from attncourse.practice.excerpt import count_of
from drill_making.line_changes import spelling_of, tokens_of
from drill_making.sources import LINES, tidy_code

WIDEST = 320  # characters, so that no line is broken; the lines of the code stay its own
HEAD = "# code "


def spaced(codes: Sequence[str]) -> list[str]:
    """Return definitions with the spaces that the formatter puts between their tokens.

    Line breaks, brackets, commas and quotation marks stay.
    """
    pairs = zip(codes, formatted(codes), strict=True)
    return [with_spaces_of(code, other) for code, other in pairs]


def rejoined(drill: Drill) -> Drill:
    """Return a drill with its wrong line on one line where the formatter has room for it.

    The right statement may take several. A short line between brackets of its own would be found by
    that.
    """
    code, right = tidy_code("\n".join(drill.code)).splitlines(), list(drill.right)
    if code == list(drill.code) or count_of(code) not in LINES:
        return drill
    pairs = [*zip(code, right, strict=False)]
    first = next((i for i, (one, other) in enumerate(pairs) if one != other), len(pairs))
    last = len(right) - (len(code) - first - 1)
    if code[first + 1 :] != right[last:]:
        return drill  # the wrong statement takes several lines, too
    return replace(drill, code=tuple(code), line=first, mended=tuple(right[first:last]))


def formatted(codes: Sequence[str]) -> list[str]:
    """Return definitions as the formatter writes them in very long lines; it is called once."""
    text = "\n".join(f"{HEAD}{number}\n{code}\n" for number, code in enumerate(codes))
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={WIDEST}", "-"]
    done = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True)
    parts = f"\n{done.stdout}".split(f"\n{HEAD}")[1:]
    return [part.partition("\n")[2].strip("\n") for part in parts]


def with_spaces_of(code: str, other: str) -> str:
    """Return code with the spaces of another text of it, token by token in each line."""
    tokens, others = tokens_of(code), tokens_of(other)
    texts, other_texts = [spelling_of(t) for t in tokens], [spelling_of(t) for t in others]
    place: dict[int, int] = {}
    for one, two, size in SequenceMatcher(None, texts, other_texts, False).get_matching_blocks():
        place |= {one + i: two + i for i in range(size)}
    lines = code.splitlines()
    for i in reversed(range(len(tokens) - 1)):  # from the end, so that columns stay true
        j = place.get(i)
        if j is None or place.get(i + 1) != j + 1:
            continue
        (row, start), (last, end) = tokens[i].end, tokens[i + 1].start
        (other_row, other_start), (other_last, other_end) = others[j].end, others[j + 1].start
        if row == last and other_row == other_last:
            line = lines[row - 1]
            lines[row - 1] = line[:start] + " " * (other_end - other_start) + line[end:]
    return "\n".join(lines)
