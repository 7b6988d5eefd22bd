"""What a page shows of long code: its wrong line always, whole statements, and what is left out."""

import re
from dataclasses import replace

import pytest

from attncourse import STEMS
from attncourse.practice.drills import drills_of
from attncourse.practice.excerpt import MOST_LINES, count_of, excerpt_of

DRILL = drills_of("kqv")[0]
LEFT_OUT = re.compile(r"\s*# … (\d+) lines?(: .+)?")
STATEMENTS = [f"        x_{i} = x + {i}" for i in range(12)]
CLASS = [
    "class Block(Module):",
    "    def __init__(self, width):",
    "        super().__init__()",
    "        self.width = width",
    "",
    "    def forward(self, x):",
    *STATEMENTS,
    "        return x_0",
    "",
    "    def backward(self, x):",
    "        y = x + 1",
    *STATEMENTS,
    "        for i in range(3):",
    *[f"    {row}" for row in STATEMENTS],
    *[f"    {row}" for row in STATEMENTS],
    "        return y",
]
FUNCTION = ["def f(x):", *[row[4:] for row in STATEMENTS * 3], "    return x_0"]


def long_drill(code, line):
    return replace(DRILL, code=tuple(code), line=line, id=f"by-hand-{line}")


LONG = [long_drill(code, i) for code in (CLASS, FUNCTION) for i, row in enumerate(code) if row]


@pytest.mark.parametrize("drill", LONG, ids=lambda d: f"{d.code[0].split()[0]}-{d.line}")
def test_the_line_is_shown_and_what_is_left_out_is_counted(drill):
    shown = excerpt_of(drill)
    assert shown.lines[shown.line] == drill.code[drill.line]
    left = [(i, LEFT_OUT.fullmatch(row)) for i, row in enumerate(shown.lines)]
    number = sum(int(found[1]) for _, found in left if found)
    kept = [row for row, (_, found) in zip(shown.lines, left, strict=True) if not found]
    assert number > 0
    assert number + count_of(kept) == count_of(drill.code)
    assert count_of(shown.lines) <= MOST_LINES + 2
    rest = iter(drill.code)
    assert all(row in rest for row in kept)  # in the order of the code


def test_a_method_is_shown_whole_and_others_are_named():
    shown = excerpt_of(long_drill(CLASS, CLASS.index("        return x_0"))).lines
    assert shown[:2] == ("class Block(Module):", "    # … 3 lines: __init__")
    assert shown[2] == "    def forward(self, x):"
    assert shown[-1] == "    # … 40 lines: backward"


def test_a_left_out_part_is_named_by_what_it_sets():
    shown = excerpt_of(long_drill(FUNCTION, 36)).lines
    assert LEFT_OUT.fullmatch(shown[1])[2].startswith(": x_0, x_1, x_2, …")


def test_the_line_is_not_always_in_the_middle():
    places = {excerpt_of(long_drill(FUNCTION, line)).line for line in range(14, 24)}
    assert len(places) > 4


@pytest.mark.parametrize("stem", STEMS)
def test_short_code_is_shown_as_it_is(stem):
    for drill in drills_of(stem):
        shown = excerpt_of(drill)
        assert shown.lines[shown.line] == drill.code[drill.line]
        if count_of(drill.code) <= MOST_LINES:
            assert (shown.lines, shown.line) == (drill.code, drill.line)
