"""The spaces of a formatter in code whose lines stay as they are.

Right answers come out of a formatter. A changed line with other spaces, such as ``**0.5`` beside
``** 2``, would be found by them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tokenize
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from attncourse.practice.drills import Drill
from attncourse.practice.excerpt import count_of
from drill_making.line_changes import code_tokens, comparable_tokens, spelling_of
from drill_making.sources import ALLOWED_LINE_COUNTS, tidy_code

MAX_LINE_WIDTH = 320  # characters, so that no line is broken; the lines of the code stay its own
CODE_HEAD = "# code "


def with_formatter_spaces(codes: Sequence[str]) -> list[str]:
    """Return definitions with the spaces that the formatter puts between their tokens.

    Line breaks, brackets, commas and quotation marks stay.
    """
    pairs = zip(codes, format_codes(codes), strict=True)
    return [with_spaces_of(code, formatted_code) for code, formatted_code in pairs]


def with_formatter_lines(drill: Drill) -> Drill:
    """Return a drill whose code has the line breaks that the formatter gives it.

    The right statement may take more lines than the wrong one, or fewer. A short line between
    brackets of its own, or one that is too long, would be found by that. The mended lines then have
    the breaks of the wrong ones. The drill itself where that is not one line's change.
    """
    code = tidy_code("\n".join(drill.code)).splitlines()
    if code == list(drill.code) or count_of(code) not in ALLOWED_LINE_COUNTS:
        return drill
    right = tidy_code("\n".join(drill.right)).splitlines()
    for line, mended in (differing_lines(code, right), differing_tokens(code, right)):
        again = replace(drill, code=tuple(code), line=line, mended=mended)
        if mended and tree_of(again.right) == tree_of(right):
            return again
    return drill


def tree_of(lines: Sequence[str]) -> str:
    """Return the syntax tree of code as text."""
    return ast.dump(ast.parse("\n".join(lines)))


def differing_lines(code: Sequence[str], right: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Return the one line of code that differs from right code, and the lines in its place.

    No lines where more than one differs.
    """
    pairs = [*zip(code, right, strict=False)]
    first = next(
        (i for i, (line, right_line) in enumerate(pairs) if line != right_line), len(pairs) - 1
    )
    last = len(right) - (len(code) - first - 1)
    return first, tuple(right[first:last]) if code[first + 1 :] == right[last:] else ()


def differing_tokens(code: Sequence[str], right: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Return the line in which code differs from right code, and that line with right tokens.

    No line in its place where the tokens that differ are not in one line.
    """
    pairs, right_pairs = (
        comparable_tokens(code_tokens("\n".join(lines))) for lines in (code, right)
    )
    strings, right_strings = [text for text, _ in pairs], [text for text, _ in right_pairs]
    blocks = SequenceMatcher(None, strings, right_strings, False).get_opcodes()
    differences = [block for block in blocks if block[0] != "equal"]
    if not differences:
        return 0, ()
    before, wrong, behind = token_parts(pairs, differences[0][1], differences[-1][2])
    before_mended, mended, behind_mended = token_parts(
        right_pairs, differences[0][3], differences[-1][4]
    )
    rows = {token.start[0] for token in wrong} or {before.end[0]}
    if len(rows) > 1 or len({token.start[0] for token in mended}) > 1:
        return 0, ()
    (row,) = rows
    line = code[row - 1]
    head = line[: before.end[1]] if before.end[0] == row else line[: wrong[0].start[1]]
    tail = line[behind.start[1] :] if behind.start[0] == row else ""
    if not mended:
        return row - 1, ((head + tail).rstrip(),)
    first, last = mended[0], mended[-1]
    text = right[first.start[0] - 1][first.start[1] : last.end[1]]
    beside = before.end[0] == row and before_mended.end[0] == first.start[0]
    gap = " " * (first.start[1] - before_mended.end[1]) if beside else ""
    space = (
        " " * (behind_mended.start[1] - last.end[1])
        if tail and behind_mended.start[0] == last.end[0]
        else ""
    )
    return row - 1, (head + gap + text + space + tail,)


Tokens = list[tokenize.TokenInfo]


def token_parts(
    tokens: list[tuple[str, tokenize.TokenInfo]], first: int, end: int
) -> tuple[tokenize.TokenInfo, Tokens, tokenize.TokenInfo]:
    """Return the tokens from one place to another, with the ones before and behind them."""
    only = [token for _, token in tokens]
    return only[first - 1], only[first:end], only[min(end, len(only) - 1)]


def format_codes(codes: Sequence[str], width: int = MAX_LINE_WIDTH) -> list[str]:
    """Return definitions as the formatter writes them, in very long lines; it is called once."""
    text = "\n".join(f"{CODE_HEAD}{number}\n{code}\n" for number, code in enumerate(codes))
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={width}", "-"]
    run = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True)
    parts = f"\n{run.stdout}".split(f"\n{CODE_HEAD}")[1:]
    return [part.partition("\n")[2].strip("\n") for part in parts]


def with_spaces_of(code: str, spaced_code: str) -> str:
    """Return code with the spaces of another text of it, token by token in each line."""
    tokens, spaced_tokens = code_tokens(code), code_tokens(spaced_code)
    texts, other_texts = [spelling_of(t) for t in tokens], [spelling_of(t) for t in spaced_tokens]
    place: dict[int, int] = {}
    for first, second, size in SequenceMatcher(
        None, texts, other_texts, False
    ).get_matching_blocks():
        place |= {first + i: second + i for i in range(size)}
    lines = code.splitlines()
    for i in reversed(range(len(tokens) - 1)):  # from the end, so that columns stay true
        j = place.get(i)
        if j is None or place.get(i + 1) != j + 1:
            continue
        (row, start), (last, end) = tokens[i].end, tokens[i + 1].start
        (other_row, other_start), (other_last, other_end) = (
            spaced_tokens[j].end,
            spaced_tokens[j + 1].start,
        )
        if row == last and other_row == other_last:
            line = lines[row - 1]
            lines[row - 1] = line[:start] + " " * (other_end - other_start) + line[end:]
    return "\n".join(lines)
