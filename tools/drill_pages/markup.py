"""A drill as HTML: its lines, its example drawn as tables, and the whole of it for paper.

What a script shows is made here, too, so that it computes nothing: ``packed`` holds the pieces.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from field_guide.listing import coloured, sentence_html

from attncourse.checks import exercises
from attncourse.checks.showing.verdict import inline_html
from attncourse.practice.drills import Drill, DrillExample
from attncourse.practice.excerpt import excerpt_of

ROLE_OF_NAME = {"query": "query", "key": "key", "value": "value", "queries": "query", "keys": "key"}
ROLE_OF_NAME |= {"values": "value", "Q": "query", "K": "key", "V": "value"}
ROLE_OF_NAME |= {"weights": "weight", "A": "weight"}
BREAK = re.compile(r"[(\[](?=[^)\]<])")  # where a line may go on below; no tag has such a sign
DOT = re.compile(r'<span class="o">\.</span>')
TOKEN_SPAN = re.compile(r'<span class="(\w+)">([^<]*)</span>')
DECIMALS, MOST_DECIMALS = 2, 4  # of a number in a table
FINEST = 8  # decimals of two results that differ by less
WIDE_NUMBER, SMALL_NUMBER = 1e5, 1e-3  # from and below which a number is written with a power


@dataclass(frozen=True)
class DrillLinks:
    """Where a drill's links lead from the page on which it stands; empty where nowhere."""

    section: str
    guide: str


def number_html(number: float, decimals: int) -> str:
    """Return a number as the page writes it, with a minus sign."""
    size = abs(number)
    if size >= WIDE_NUMBER or 0 < size < SMALL_NUMBER:
        text = f"{number:.2g}"
    else:
        text = f"{number:.{decimals}f}"
    return text.replace("-", "−")


def decimals_of(numbers: list, most: int = DECIMALS) -> int:
    """Return how many decimals the longest of some numbers has, and at most so many."""
    plain = [n for n in numbers if is_plain_number(n) and SMALL_NUMBER <= abs(n) < WIDE_NUMBER]
    return max((len(f"{n:.{most}f}".rstrip("0").partition(".")[2]) for n in plain), default=0)


def numbers_of_value(value: Any) -> list:
    """Return the numbers in lists of lists, and in parts, in a row."""
    if isinstance(value, dict):
        return numbers_of_value(value.get("parts", value.get("value", [])))
    if isinstance(value, list):
        return [number for part in value for number in numbers_of_value(part)]
    return [value] if is_plain_number(value) else []


def decimals_that_tell(actual: Any, expected: Any) -> int:
    """Return how many decimals two results may need so that what differs looks different."""
    pairs = list(zip(numbers_of_value(actual), numbers_of_value(expected), strict=False))
    differing = [(a, b) for a, b in pairs if a != b]
    for most in range(DECIMALS, FINEST + 1):
        differ = [number_html(a, most) != number_html(b, most) for a, b in differing]
        if all(differ):
            return most
        if most >= MOST_DECIMALS and any(differ):  # what differs is underlined: one is enough
            return most
    return DECIMALS


def decimals_of_input(value: Any) -> int:
    """Return how many decimals the numbers of an input need, so that none looks like a whole one.

    0.9999 is not written as 1.00, nor 0.002 as 0.00: what the code makes of it is another result.
    """
    broken = [n for n in numbers_of_value(value) if n != round(n)]
    for most in range(DECIMALS, MOST_DECIMALS):
        if all(float(f"{n:.{most}f}") != round(n) for n in broken if abs(n) >= SMALL_NUMBER):
            return most
    return MOST_DECIMALS


def is_plain_number(value: object) -> bool:
    """True for a number that is no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_matrix(value: object) -> bool:
    """True if a value is a list of rows of one length, of numbers, truth values or words."""
    if not isinstance(value, list) or not value or not all(isinstance(r, list) for r in value):
        return False
    return len({len(row) for row in value}) == 1 and not any(
        isinstance(x, list | dict) for row in value for x in row
    )


def is_vector(value: object) -> bool:
    """True if a value is a list of numbers or truth values; ``"nan"`` is a number."""
    return isinstance(value, list) and all(
        isinstance(x, int | float) or x in ("nan", "inf", "-inf") for x in value
    )


def is_stack(value: object) -> bool:
    """True if a value is a list of matrices, or of such lists."""
    if not isinstance(value, list) or not value or is_matrix(value):
        return False
    return all(is_matrix(part) or is_stack(part) for part in value)


def is_map(value: Any) -> bool:
    """True if a value is a matrix whose rows sum to 1, or to 0, as weights do."""
    if not is_matrix(value) or not all(
        is_plain_number(x) and 0 <= x <= 1 for row in value for x in row
    ):
        return False
    sums = [sum(row) for row in value]
    return any(sums) and all(abs(total - 1) < 0.01 or total == 0 for total in sums)


def value_html(value: Any, name: str = "", other_value: Any = None, most: int = DECIMALS) -> str:
    """Return a value as HTML; what differs from another of the same shape is underlined."""
    if isinstance(value, dict):
        return special_html(value, other_value, most)
    if is_vector(value) and value:
        return table_html([value], name, [other_value] if is_vector(other_value) else None, most)
    if is_matrix(value) and value[0] and all(is_vector(row) for row in value):
        return table_html(value, name, other_value, most)
    if is_stack(value):
        same = isinstance(other_value, list) and len(other_value) == len(value)
        others = other_value if same else [None] * len(value)
        tables = (value_html(v, name, o, most) for v, o in zip(value, others, strict=True))
        return f'<div class="ap-stack">{"".join(tables)}</div>'
    if is_plain_number(value):
        return f"<code>{number_html(value, decimals_of([value], MOST_DECIMALS))}</code>"
    return f"<code>{escape(repr(value) if isinstance(value, str | list) else str(value))}</code>"


def special_html(value: dict, other_value: Any = None, most: int = DECIMALS) -> str:
    """Return an exception, several results, or what is too large to show, as HTML."""
    if "parts" in value:
        parts = value["parts"]
        others = other_value.get("parts", []) if isinstance(other_value, dict) else []
        others = others if len(others) == len(parts) else [None] * len(parts)
        drawn = (
            part_html(part, other_part, most)
            for part, other_part in zip(parts, others, strict=True)
        )
        return f'<div class="ap-stack">{"".join(drawn)}</div>'
    if "shape" in value:
        return f"an array of shape <code>({', '.join(map(str, value['shape']))})</code>"
    if "raised" in value:
        return f"<code>{escape(value['raised'])}</code>"
    if "changed" in value:
        return f"changes <code>{escape(value['changed'])}</code> in place"
    return f"<code>{escape(value['text'])}</code>"


def part_html(part: Any, other_value: Any = None, most: int = DECIMALS) -> str:
    """Return one of several results, with its name where it has one."""
    if isinstance(part, dict) and "name" in part:
        name = part["name"]
        beside = other_value.get("value") if isinstance(other_value, dict) else None
        drawn = value_html(part["value"], name, beside, most)
        return f"<div><p><code>{escape(name)}</code></p>{drawn}</div>"
    return value_html(part, "", other_value, most)


def table_html(rows: list[list], name: str, others: list[list] | None, most: int) -> str:
    """Draw numbers as cells, the darker the larger, and truth values as cells of a mask."""
    role = ROLE_OF_NAME.get(name, "")
    alike = is_matrix(others) and table_shape(others) == table_shape(rows)
    cells = [x for row in rows for x in row]
    top = max((abs(x) for x in cells if is_plain_number(x) and math.isfinite(x)), default=0) or 1.0
    decimals = decimals_of(cells, most)
    body = ""
    for i, row in enumerate(rows):
        marks = [alike and others is not None and others[i][j] != x for j, x in enumerate(row)]
        drawn = (number_cell_html(x, top, decimals, m) for x, m in zip(row, marks, strict=True))
        body += f"<tr>{''.join(drawn)}</tr>"
    look = f"ap-values ap-{role}" if role else "ap-values"
    label = f' aria-label="{escape(name)}"' if name else ""
    return f'<table class="{look}"{label}>{body}</table>'


def table_shape(rows: Any) -> tuple[int, int]:
    """Return how many rows and columns there are."""
    return len(rows), len(rows[0])


def number_cell_html(value: Any, top: float, decimals: int, differs: bool) -> str:
    """Return a cell of a table, shaded by the size of its number."""
    if isinstance(value, bool):
        text, look = ("T", ' class="ap-true"') if value else ("F", ' class="ap-false"')
    elif is_plain_number(value):
        text = number_html(value, decimals)
        much = min(abs(value) / top, 1)
        look = f' style="--much:{much:.1f}"' if much >= 0.05 else ""
    else:
        text, look = escape(str(value)).replace("-", "−"), ""
    return f"<td{look}>{f'<u>{text}</u>' if differs else text}</td>"


def example_html(example: DrillExample) -> str:
    """Show what goes in, what comes out and what should."""
    inputs = ""
    for array in example.inputs:
        name, value = array["name"], array["value"]
        shown = value_html(value, name, None, decimals_of_input(value))
        inputs += f"<div><p><code>{escape(name)}</code></p>{shown}</div>"
    got, want = example.got, example.want
    most = decimals_that_tell(got, want)
    look = ' class="ap-weight"' if is_map(want) else ""  # both, or the look would tell
    shapes = [shape_html(value) for value in (got, want)]
    first, second = shapes if shapes[0] != shapes[1] else ("", "")
    results = (
        f"<div{look}><p>gives{first}</p>{value_html(got, 'gives', want, most)}</div>"
        f"<div{look}><p>should give{second}</p>"
        f"{value_html(want, 'should give', None, most)}</div>"
    )
    note = f"<p>{inline_html(example.note)}</p>" if example.note else ""
    call = f'<p class="ap-call"><code>{escape(example.call)}</code></p>'
    return f'{call}<div class="ap-pair">{inputs}{results}</div>{note}'


def reads_the_same(example: DrillExample) -> bool:
    """True if what an example gives is written as what it should give."""
    most = decimals_that_tell(example.got, example.want)
    got, want = (
        shape_html(value) + value_html(value, "", None, most)
        for value in (example.got, example.want)
    )
    return got == want


def shape_html(value: Any) -> str:
    """Return the shape of an array that is shown, as what follows a heading; of others nothing."""
    shape = []
    while isinstance(value, list) and value:
        shape.append(len(value))
        value = value[0]
    inside = f"{shape[0]}," if len(shape) == 1 else ", ".join(map(str, shape))
    return f" <code>({inside})</code>" if shape else ""


def code_rows(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return each line's indentation, and what stands behind it, in colours."""
    shown = BREAK.sub(r"\g<0><wbr>", coloured("\n".join(lines))).split("\n")
    return [(len(row) - len(row.lstrip(" ")), row.lstrip(" ")) for row in shown]


def code_line_html(number: int, indent: int, text: str) -> str:
    """Return a numbered line of code; what does not fit goes on below its own beginning."""
    return (
        f'<span class="ap-line"><span class="ap-number">{number}</span>'
        f'<span class="ap-text" style="--in:{indent}">{text}</span></span>'
    )


def exercise_question(target: str) -> str:
    """Return the first sentence of what the exercise's reference says that it returns."""
    first_line = (exercises()[target].reference.__doc__ or "").strip().split("\n")[0]
    return sentence_html(first_line)


def shuffled_names(drill: Drill) -> list[str]:
    """Return the four names in an order that is the same at each build."""
    names = [drill.name, *drill.wrong_names]
    seed = hashlib.sha256(drill.id.encode()).digest()
    return random.Random(seed).sample(names, len(names))


def links_html(drill: Drill, links: DrillLinks) -> str:
    """Return the links to the section that explains the mistake and to the field guide."""
    ways = []
    if links.section:
        ways.append(f'<a href="{escape(links.section)}">{escape(drill.heading)}</a>')
    if links.guide:
        ways.append(f'<a href="{escape(links.guide)}">Field guide</a>')
    return " · ".join(ways)


def still_html(drill: Drill, links: DrillLinks) -> str:
    """Return a drill for who has no scripts: its answer is folded."""
    excerpt = excerpt_of(drill)
    rows = "".join(code_line_html(i + 1, *row) for i, row in enumerate(code_rows(excerpt.lines)))
    columns = max(map(len, excerpt.lines))
    named = "".join(f"<li>{inline_html(name)}</li>" for name in shuffled_names(drill))
    mended = escape("\n".join(drill.mended))
    others = "".join(
        f"<p>{mend.place.capitalize()} may be mended instead:</p>"
        f"<pre>{escape(chr(10).join(mend.mended))}</pre>"
        for mend in excerpt.elsewhere
    )
    return (
        f'<div class="ap-still-drill"><p><code>{escape(drill.function)}</code>: '
        f"{exercise_question(drill.exercise)}</p>"
        f'<div class="ap-sides"><div class="ap-left" style="--columns:{columns}">'
        f'<div class="highlight ap-code"><pre>{rows}</pre></div></div>'
        f'<div class="ap-example">{example_html(drill.example)}</div></div>'
        f'<p>Which line is wrong, and what happens there?</p><ul class="ap-names">{named}</ul>'
        f"<details><summary>Answer</summary><p>Line {excerpt.line + 1}: {inline_html(drill.name)}. "
        f"{inline_html(drill.sentence)}</p><pre>{mended}</pre>{others}"
        f"<p>{links_html(drill, links)}</p>"
        "</details></div>"
    )


def short_answers_html(drills: list[Drill]) -> str:
    """Return the answers for paper, where nothing unfolds."""
    items = ""
    for drill in drills:
        mended = escape(" ".join(map(str.strip, drill.mended)))
        named = inline_html(drill.name)
        excerpt = excerpt_of(drill)
        others = "".join(
            f", or {mend.place}: <code>{escape(' '.join(map(str.strip, mend.mended)))}</code>"
            for mend in excerpt.elsewhere
        )
        items += f"<li>Line {excerpt.line + 1}, {named}: <code>{mended}</code>{others}</li>"
    return f'<div class="ap-answers"><p>Answers</p><ol>{items}</ol></div>'


def short_rows(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return rows of code for a script, their tokens in few letters: they are most of it."""
    rows = code_rows(lines)
    return [
        (indent, TOKEN_SPAN.sub(r"<i class=\1>\2</i>", DOT.sub(".", row))) for indent, row in rows
    ]


def packed(drill: Drill, links: DrillLinks) -> dict:
    """Return what the script shows of a drill."""
    excerpt = excerpt_of(drill)
    others = [(mend.first, mend.last, short_rows(mend.mended)) for mend in excerpt.elsewhere]
    return {
        "id": drill.id,
        "function": escape(drill.function),
        "asks": exercise_question(drill.exercise),
        "code": short_rows(excerpt.lines),
        "line": excerpt.line,
        "mended": short_rows(drill.mended),
        **({"elsewhere": others} if others else {}),
        "name": inline_html(drill.name),
        "others": [inline_html(name) for name in drill.wrong_names],
        "says": inline_html(drill.sentence),
        "example": example_html(drill.example),
        "links": links_html(drill, links),
    }
