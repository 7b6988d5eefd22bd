"""No space of a drill's code tells which line was changed."""

import ast
from dataclasses import replace

import pytest
from drill_making.candidates import with_spaces
from drill_making.line_changes import LineChange
from drill_making.sources import LINE_WIDTH
from drill_making.spacing import format_codes, with_formatter_lines, with_formatter_spaces

from attncourse import STEMS
from attncourse.practice.drills import drills_of

EVERY = [drill for stem in STEMS for drill in drills_of(stem)]


def test_a_wrong_line_that_fits_stands_on_one_line():
    """The right one takes three; between brackets of its own a short line would be found."""
    right = "        part.repeat_interleave(group, dim=-3).clone() for part in (key, value)"
    head, last = "    key, value = (", "    )"
    rest = ("    weights = key.softmax(dim=-1)", "    return weights @ value")
    code = (
        "def attend(key, value, group):",
        head,
        "        part.mT for part in (key, value)",
        last,
    )
    drill = replace(EVERY[0], code=(*code, *rest), line=2, mended=(right,))
    again = with_formatter_lines(drill)
    assert again.code == (code[0], "    key, value = (part.mT for part in (key, value))", *rest)
    assert (again.line, again.mended) == (1, (head, right, last))
    assert again.right == drill.right
    assert with_formatter_lines(again) == again


def test_a_wrong_line_that_does_not_fit_is_broken():
    """One of 81 characters among lines of 80 would be found by that."""
    right = "    return f(np.concatenate([first_of_all, last_of_all]))"
    wrong = "    return f(np.concatenate([first_of_all[::-1], last_of_all[::-1], first_of_all]))"
    head = ("def joined(first_of_all, last_of_all):", "    x = 1", "    y = 2")
    again = with_formatter_lines(replace(EVERY[0], code=(*head, wrong), line=3, mended=(right,)))
    broken = "        np.concatenate([first_of_all[::-1], last_of_all[::-1], first_of_all])"
    assert again.code == (*head, "    return f(", broken, "    )")
    assert again.line == 4
    assert again.mended == ("        np.concatenate([first_of_all, last_of_all])",)
    assert ast.dump(ast.parse("\n".join(again.right))) == ast.dump(
        ast.parse("\n".join((*head, right)))
    )


def test_every_drill_is_as_the_formatter_writes_it():
    """In a line of its own that fits into another, or that is too long, the mistake is found."""
    codes = ["\n".join(drill.code) for drill in EVERY]
    again = format_codes(codes, LINE_WIDTH)
    odd = [d.id for d, code, other in zip(EVERY, codes, again, strict=True) if code != other]
    assert not odd


@pytest.mark.parametrize("kind", ["code", "right"])
def test_every_drill_is_spaced_as_the_formatter_would(kind):
    codes = ["\n".join(getattr(drill, kind)) for drill in EVERY]
    again = with_formatter_spaces(codes)
    odd = [d.id for d, code, other in zip(EVERY, codes, again, strict=True) if code != other]
    assert not odd


@pytest.mark.parametrize(
    ("line", "formatted"),
    [
        ("return - x @ x", "return -x @ x"),
        ("return x **0.5 + n ** -2", "return x**0.5 + n**-2"),
        ("return f(x ) .sum( n)", "return f(x).sum(n)"),
        ("return x[:n + 1] if x >=1 else 'x'", "return x[: n + 1] if x >= 1 else 'x'"),
        ("return ( x ) / 1e-05", "return (x) / 1e-05"),
    ],
)
def test_only_the_spaces_change(line, formatted):
    code = "def f(x, n):\n    y = g(\n        x,\n        n ** 2\n    )\n    {}"
    before = code.format(line)
    (after,) = with_formatter_spaces([before])
    assert after == code.format(formatted).replace("n ** 2", "n**2")
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(before))
    assert with_formatter_spaces([after, after]) == [after, after]


def test_a_change_is_spaced_in_its_line():
    lines = ["def f(q):", "    scale = q.shape[-1] ** 0.5", "    return q / scale"]
    change = LineChange(1, "    scale = q.shape[-1] **0.25", lines[1], 2)
    assert with_spaces(change, lines).wrong == "    scale = q.shape[-1] ** 0.25"
