"""Which changes of a line are refused because a reader would see them at once."""

import pytest
from drill_making.line_changes import OPTION, LineChange, is_odd, leaves_unused

LINES = [
    "def mix(A, X):",
    "    weights = A / A.sum(-1, keepdims=True)",
    "    mixed = weights @ X",
    "    return mixed",
]


@pytest.mark.parametrize(
    ("line", "wrong", "unused"),
    [
        (3, "    return A @ X", True),
        (3, "    return mixed.T", False),
        (2, "    mixed = A @ X", True),
        (2, "    mixed = weights @ X.T", False),
        (1, "    weights = X", False),
    ],
)
def test_an_option_that_leaves_a_value_unread_is_refused(line, wrong, unused):
    change = LineChange(line, wrong, LINES[line], OPTION)
    assert leaves_unused(change, LINES) is unused
    assert not leaves_unused(LineChange(line, wrong, LINES[line], OPTION - 1), LINES)


def test_an_array_of_which_entries_are_set_is_not_read_by_that():
    lines = ["def f(x):", "    y = x + 0", "    y[0] = 1", "    return y"]
    assert leaves_unused(LineChange(3, "    return x", lines[3], OPTION), lines)
    assert not leaves_unused(LineChange(3, "    return -y", lines[3], OPTION), lines)


@pytest.mark.parametrize(
    ("wrong", "right", "odd"),
    [
        ("x = x", "x = x + y", True),
        ("x = x - y", "x = x + y", False),
        ("scores / 1", "scores / 2", True),
        ("while True:", "while i < n:", True),
    ],
)
def test_what_nobody_would_write_is_refused(wrong, right, odd):
    assert is_odd(wrong, right) is odd
